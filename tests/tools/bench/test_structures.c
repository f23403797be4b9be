/* The structures that the benchmark compares: each must do the same, or their times would not be comparable. */
/* tier: check, no-valgrind */

#include <string.h>

#include "tests/support/seed.h"
#include "tests/support/suite.h"
#include "tools/bench/structure.h"
#include "tools/common/memory.h"

enum { LIVES = 8, STEPS = 4000, OBJECTS = 200 };

/* A structure, and an array of deadlines that says what it has to do. */
struct rig {
	const struct structure *structure;
	void *state;
	struct object *objects;
	uint64_t *deadline; /* 0: idle */
	uint64_t n, now;
	struct sink sink;
	uint64_t random, seed;
};

static void rig_open(struct rig *rig, const struct structure *structure, uint64_t n)
{
	rig->structure = structure;
	rig->n = n;
	rig->now = 0;
	rig->objects = memory_aligned(n, sizeof *rig->objects);
	rig->deadline = memory_zeroed(n, sizeof *rig->deadline);
	/* Some room for what a wrong structure reports twice. */
	rig->sink.expired = memory_zeroed(4 * n, sizeof(struct object *));
	rig->sink.room = 4 * n;
	rig->sink.count = 0;
	rig->state = structure->create(rig->objects, n, &rig->sink);
}

static void rig_close(struct rig *rig)
{
	rig->structure->destroy(rig->state);
	free(rig->sink.expired);
	free(rig->deadline);
	free(rig->objects);
}

static void rig_fail(const struct rig *rig, const char *what, uint64_t object)
{
	ck_abort_msg("%s: at %" PRIu64 " object %" PRIu64 " of %" PRIu64 ", due at %" PRIu64 ", %s; WW_SEED=%" PRIu64,
	    rig->structure->name, rig->now, object, rig->n, rig->deadline[object], what, rig->seed);
}

static void rig_schedule(struct rig *rig, uint64_t i, uint64_t delay)
{
	rig->structure->schedule(rig->state, &rig->objects[i], delay);
	rig->deadline[i] = rig->now + delay;
}

static void rig_touch(struct rig *rig, uint64_t i, uint64_t delay)
{
	rig->structure->touch(rig->state, &rig->objects[i], delay);
	rig->deadline[i] = rig->now + delay;
}

static void rig_cancel(struct rig *rig, uint64_t i)
{
	rig->structure->cancel(rig->state, &rig->objects[i]);
	rig->deadline[i] = 0;
}

static void rig_check_expired(struct rig *rig, const struct object *object)
{
	uint64_t i = (uint64_t)(object - rig->objects);

	ck_assert_msg(i < rig->n, "%s: no object expired", rig->structure->name);
	if (!rig->deadline[i])
		rig_fail(rig, "expired though idle", i);
	if (rig->deadline[i] > rig->now)
		rig_fail(rig, "expired early", i);
	rig->deadline[i] = 0;
}

static void rig_advance(struct rig *rig, uint64_t now)
{
	rig->sink.count = 0;
	rig->now = now;
	rig->structure->advance(rig->state, now);
	for (uint64_t i = 0; i < rig->sink.count; i++)
		rig_check_expired(rig, rig->sink.expired[i]);
	for (uint64_t i = 0; i < rig->n; i++)
		if (rig->deadline[i] && rig->deadline[i] <= now)
			rig_fail(rig, "has not expired", i);
}

/* Around what the structures have boundaries at, and anywhere in the week; folded into what the structure can hold. */
static uint64_t draw_delay(struct rig *rig)
{
	static const uint64_t least[] = {1, 1, 2, 59, 299, 3599, 3659, 86399, 89999, BENCH_WEEK - 2, 1, 1, 1};
	static const uint64_t count[] = {1, 1, 8, 3, 3, 3, 3, 3, 3, 3, 130, 10000, BENCH_WEEK};
	uint64_t which = seed_below(&rig->random, sizeof least / sizeof *least);
	uint64_t delay = least[which] + seed_below(&rig->random, count[which]);
	uint64_t longest = rig->structure->longest;

	return longest && delay > longest ? delay % longest + 1 : delay;
}

/* A jump to next to the deadline of some timer, or of any length up to a day. */
static uint64_t draw_jump(struct rig *rig)
{
	uint64_t deadline = rig->deadline[seed_below(&rig->random, rig->n)];

	if (seed_below(&rig->random, 2) && deadline > rig->now + 1)
		return deadline - seed_below(&rig->random, 2);
	return rig->now + 1 + seed_below(&rig->random, UINT64_C(1) << seed_below(&rig->random, 17));
}

static void rig_step(struct rig *rig)
{
	uint64_t i = seed_below(&rig->random, rig->n);
	uint64_t what = seed_below(&rig->random, 128);

	if (what == 0)
		rig_advance(rig, draw_jump(rig));
	else if (what < 40)
		rig_advance(rig, rig->now + 1);
	else if (!rig->deadline[i])
		rig_schedule(rig, i, draw_delay(rig));
	else if (what < 110)
		rig_touch(rig, i, draw_delay(rig));
	else
		rig_cancel(rig, i);
}

static void rig_live(struct rig *rig, const struct structure *structure, uint64_t n)
{
	rig_open(rig, structure, n);
	/* All at once to begin with: it must have room for them. */
	for (uint64_t i = 0; i < n; i++)
		rig_schedule(rig, i, draw_delay(rig));
	for (int step = 0; step < STEPS; step++)
		rig_step(rig);
	rig_advance(rig, rig->now + BENCH_WEEK);
	rig_close(rig);
}

/* Call `test` for each structure that expires timers. */
static void for_each(void (*test)(struct rig *rig, const struct structure *structure))
{
	uint64_t seed = seed_of_run("bench/structures");
	const struct structure *const *structure;

	for (structure = structures; *structure; structure++) {
		struct rig rig = {.random = seed, .seed = seed};

		if ((*structure)->create && *structure != &structure_floor)
			test(&rig, *structure);
	}
}

static void random_lives(struct rig *rig, const struct structure *structure)
{
	for (int life = 0; life < LIVES; life++)
		rig_live(rig, structure, life == 0 ? 1 : 1 + seed_below(&rig->random, OBJECTS));
}

START_TEST(every_structure_agrees_with_an_array_of_deadlines)
{
	for_each(random_lives);
}
END_TEST

/* What a structure leaves behind of a cancelled timer must neither fill it up nor come back. */
static void many_in_a_tick(struct rig *rig, const struct structure *structure)
{
	rig_open(rig, structure, 50);
	for (uint64_t delay = 60; delay > 0; delay--) {
		for (uint64_t i = 0; i < rig->n; i++)
			rig_schedule(rig, i, delay);
		for (uint64_t i = 0; i < rig->n; i++)
			rig_cancel(rig, i);
	}
	for (uint64_t i = 0; i < rig->n; i++)
		rig_schedule(rig, i, 60);
	for (uint64_t delay = 60; delay > 1; delay--)
		for (uint64_t i = 0; i < rig->n; i++)
			rig_touch(rig, i, delay);
	rig_advance(rig, 1);
	rig_advance(rig, 2);
	ck_assert_uint_eq(rig->sink.count, rig->n);
	rig_advance(rig, 1000);
	rig_close(rig);
}

START_TEST(any_number_of_operations_fits_into_a_tick)
{
	for_each(many_in_a_tick);
}
END_TEST

START_TEST(a_structure_is_found_by_its_name)
{
	const struct structure *const *structure;

	for (structure = structures; *structure; structure++) {
		ck_assert_ptr_eq(structure_by_name((*structure)->name), *structure);
		ck_assert_uint_le((*structure)->node_bytes, OBJECT_SIZE);
	}
	ck_assert_ptr_null(structure_by_name(""));
	ck_assert_ptr_null(structure_by_name("sundial"));
}
END_TEST

static void schedule_early(void *state, struct object *object, uint64_t delay)
{
	structure_scan.schedule(state, object, delay > 86400 ? delay - 1 : delay);
}

static void schedule_late(void *state, struct object *object, uint64_t delay)
{
	structure_scan.schedule(state, object, delay + 7);
}

static void schedule_not_some(void *state, struct object *object, uint64_t delay)
{
	if (delay % 16 != 1)
		structure_scan.schedule(state, object, delay);
}

/* What is asked to cancel or touch a timer and does not. */
static void cancel_nothing(void *state, struct object *object)
{
	(void)state;
	(void)object;
}

static void touch_nothing(void *state, struct object *object, uint64_t delay)
{
	(void)state;
	(void)object;
	(void)delay;
}

static const char *correct(const struct structure *structure, uint64_t *latest)
{
	return correct_run(structure, seed_of_run("bench/structures"), latest);
}

START_TEST(the_correctness_run_finds_a_wrong_structure)
{
	struct structure early = structure_scan, never = structure_scan, revived = structure_scan;
	struct structure unmoved = structure_scan;
	uint64_t latest;

	early.schedule = early.touch = schedule_early;
	never.schedule = schedule_not_some;
	revived.cancel = cancel_nothing;
	unmoved.touch = touch_nothing;
	ck_assert_str_eq(correct(&early, &latest), "a timer expired early");
	ck_assert_str_eq(correct(&never, &latest), "a timer never expired");
	ck_assert_str_eq(correct(&revived, &latest), "a timer expired twice, or after it was cancelled");
	ck_assert_str_eq(correct(&unmoved, &latest), "a timer expired early");
}
END_TEST

START_TEST(the_correctness_run_says_how_late_a_structure_is)
{
	struct structure late = structure_scan;
	uint64_t latest;

	ck_assert_ptr_null(correct(&structure_scan, &latest));
	ck_assert_uint_eq(latest, 0);
	late.schedule = late.touch = schedule_late;
	ck_assert_ptr_null(correct(&late, &latest));
	ck_assert_uint_eq(latest, 7);
}
END_TEST

TEST_MAIN("bench/structures", every_structure_agrees_with_an_array_of_deadlines,
    any_number_of_operations_fits_into_a_tick, a_structure_is_found_by_its_name,
    the_correctness_run_finds_a_wrong_structure, the_correctness_run_says_how_late_a_structure_is)
