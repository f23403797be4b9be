/*
 * The model test: millions of random operations on a wheel and on its oracle, over a table of geometries.
 *
 * WW_MODEL_OPS sets the number of operations in all, 10 million by default. WW_SEED sets the seed, which is printed. A
 * failure prints the geometry, the last operations and the command that repeats it.
 */
/* tier: check, every-build */

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/model/rig.h"
#include "tests/support/seed.h"
#include "tests/support/suite.h"

#define OPERATIONS UINT64_C(10000000)

/* Near the end of time, but with room for some turns. */
#define NEAR_THE_END (WW_TIME_MAX - 5000)
/* The start of the last turn of the default geometry's highest level. Time ends less than a week later. */
#define LAST_TURN (WW_TIME_MAX / 604800 * 604800)

static const struct {
	const char *name;
	uint32_t levels;
	uint32_t slots[WW_LEVELS_MAX];
	uint32_t flags;
	uint32_t timers;
	uint32_t crowded;
} geometries[] = {
    {"default_geometry", 4, {60, 60, 24, 7}, 0, 200, 0},
    {"default_geometry_bounded", 4, {60, 60, 24, 7}, WW_WHEEL_BOUNDED, 200, 0},
    {"default_geometry_with_few_timers", 4, {60, 60, 24, 7}, 0, 5, 0},
    {"default_geometry_crowded", 4, {60, 60, 24, 7}, 0, 1500, 1},
    {"one_level_of_2", 1, {2}, 0, 60, 0},
    {"one_level_of_64", 1, {64}, 0, 150, 0},
    {"one_level_of_5_bounded", 1, {5}, WW_WHEEL_BOUNDED, 60, 0},
    {"two_levels_of_2_and_64", 2, {2, 64}, 0, 100, 0},
    {"three_levels_of_64", 3, {64, 64, 64}, 0, 200, 0},
    {"three_levels_of_primes", 3, {3, 5, 7}, 0, 100, 0},
    {"three_levels_of_64_crowded", 3, {64, 64, 64}, 0, 1500, 1},
    {"four_levels_of_10_2_64_and_3", 4, {10, 2, 64, 3}, 0, 200, 0},
    {"six_levels_of_2", 6, {2, 2, 2, 2, 2, 2}, 0, 100, 0},
    {"six_levels_of_64", 6, {64, 64, 64, 64, 64, 64}, 0, 200, 0},
};
#define GEOMETRIES (sizeof geometries / sizeof geometries[0])

static struct rig rig;
static uint64_t state;
static uint64_t seed;
static const char *running;

static uint64_t draw_random(void *source, uint64_t below)
{
	return seed_below(source, below);
}

static int never_dry(const void *source)
{
	(void)source;
	return 0;
}

static void report(const struct rig *failed, const char *what)
{
	const char *operations = getenv("WW_MODEL_OPS");

	(void)fprintf(stderr, "%s: %s\n", running, what);
	rig_print(failed);
	(void)fprintf(stderr,
	    "  again: WW_SEED=%" PRIu64 "%s%s CK_FORK=no CK_RUN_CASE=%s gdb --args build/tests/test_model\n", seed,
	    operations == NULL ? "" : " WW_MODEL_OPS=", operations == NULL ? "" : operations, running);
	(void)fflush(stderr);
	ck_abort_msg("%s, step %" PRIu64 ", WW_SEED=%" PRIu64, what, failed->steps, seed);
}

/* One wheel's life from a random start. Returns the number of operations. */
static uint64_t live(uint64_t most)
{
	static const uint64_t starts[] = {
	    0, 0, 1, 30, 604799, UINT64_C(1) << 32, (UINT64_C(1) << 53) - 7, LAST_TURN - 30, NEAR_THE_END, WW_TIME_MAX};
	uint64_t start = starts[seed_below(&state, sizeof starts / sizeof starts[0])];
	uint64_t steps = 1 + seed_below(&state, UINT64_C(1) << seed_below(&state, 16));

	/* A wheel whose time has reached its end shows little new. */
	if (start >= NEAR_THE_END && steps > 1000) {
		steps = 1000;
	}
	steps = steps < most ? steps : most;
	rig.config.start = start;
	rig_open(&rig);
	for (uint64_t i = 0; i < steps; i++) {
		rig_step(&rig);
	}
	rig_close(&rig);
	return steps;
}

static void model(const char *name)
{
	size_t geometry = 0;
	const char *text = getenv("WW_MODEL_OPS");
	uint64_t share = (text == NULL || *text == '\0' ? OPERATIONS : strtoull(text, NULL, 0)) / GEOMETRIES + 1;
	uint64_t done = 0;

	while (strcmp(geometries[geometry].name, name) != 0) {
		ck_assert_uint_lt(++geometry, GEOMETRIES);
	}
	running = name;
	state = seed = seed_of_run(running);
	(void)ww_wheel_config_default(&rig.config);
	rig.config.levels = geometries[geometry].levels;
	for (uint32_t i = 0; i < WW_LEVELS_MAX; i++) {
		rig.config.slots[i] = geometries[geometry].slots[i];
	}
	rig.config.flags = geometries[geometry].flags;
	rig.timers = geometries[geometry].timers;
	rig.crowded = geometries[geometry].crowded;
	rig.draw = draw_random;
	rig.dry = never_dry;
	rig.source = &state;
	rig.failed = report;
	while (done < share) {
		/* At first check every invariant after each operation, later only now and then. */
		rig.check_every = done < share / 50 ? 1 : 61;
		done += live(share - done);
	}
}

#define MODEL_TEST(geometry)                                                                                           \
	START_TEST(geometry)                                                                                           \
	{                                                                                                              \
		model(#geometry);                                                                                      \
	}                                                                                                              \
	END_TEST

MODEL_TEST(default_geometry)
MODEL_TEST(default_geometry_bounded)
MODEL_TEST(default_geometry_with_few_timers)
MODEL_TEST(default_geometry_crowded)
MODEL_TEST(one_level_of_2)
MODEL_TEST(one_level_of_64)
MODEL_TEST(one_level_of_5_bounded)
MODEL_TEST(two_levels_of_2_and_64)
MODEL_TEST(three_levels_of_64)
MODEL_TEST(three_levels_of_primes)
MODEL_TEST(three_levels_of_64_crowded)
MODEL_TEST(four_levels_of_10_2_64_and_3)
MODEL_TEST(six_levels_of_2)
MODEL_TEST(six_levels_of_64)

TEST_MAIN("model", default_geometry, default_geometry_bounded, default_geometry_with_few_timers,
    default_geometry_crowded, one_level_of_2, one_level_of_64, one_level_of_5_bounded, two_levels_of_2_and_64,
    three_levels_of_64, three_levels_of_primes, three_levels_of_64_crowded, four_levels_of_10_2_64_and_3,
    six_levels_of_2, six_levels_of_64)
