#ifndef TESTS_LIB_CORE_WHEEL_FIXTURE_H
#define TESTS_LIB_CORE_WHEEL_FIXTURE_H

/*
 * Shared by the tests of the wheel: wheels, a callback that records its calls, and a check that no byte of a wheel has
 * changed.
 */

#include <inttypes.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/memory.h"
#include "tests/support/suite.h"
#include "tests/support/times.h"
#include "weekwheel/wheel.h"

/* ---- Expiries -------------------------------------------------------------------------------------------------- */

#define RECORD_MAX 4096

struct record {
	struct ww_timer *timer;
	uint64_t now;
	uint64_t missed;
};

static struct record record[RECORD_MAX];
static size_t recorded;

/* A callback that records each call. */
static inline void note(struct ww_wheel *wheel, struct ww_timer *timer, uint64_t missed)
{
	ck_assert_uint_lt(recorded, RECORD_MAX);
	record[recorded].timer = timer;
	record[recorded].now = ww_wheel_now(wheel);
	record[recorded].missed = missed;
	recorded++;
}

/* The number of calls recorded for this timer. */
static inline size_t times_recorded(const struct ww_timer *timer)
{
	size_t count = 0;

	for (size_t i = 0; i < recorded; i++) {
		count += record[i].timer == timer;
	}
	return count;
}

/* ---- Wheels ---------------------------------------------------------------------------------------------------- */

/* Assert every invariant of the wheel. */
static inline void assert_sound(const struct ww_wheel *wheel)
{
	char text[512] = "";
	int answer = ww_wheel_check(wheel, text, sizeof text);

	ck_assert_msg(answer == WW_OK, "ww_wheel_check answers %d: %s", answer, text);
}

static inline struct ww_wheel *make(const struct ww_wheel_config *config)
{
	struct ww_wheel *wheel = NULL;

	recorded = 0;
	OK(ww_wheel_create(&wheel, config));
	ck_assert_ptr_nonnull(wheel);
	return wheel;
}

/* A wheel of the default geometry whose time begins at start. */
static inline struct ww_wheel *make_from(uint64_t start)
{
	struct ww_wheel_config config;

	OK(ww_wheel_config_default(&config));
	config.start = start;
	return make(&config);
}

/* A configuration with these numbers of slots. */
static inline struct ww_wheel_config config_of(uint32_t levels, const uint32_t *slots)
{
	struct ww_wheel_config config;

	OK(ww_wheel_config_default(&config));
	config.levels = levels;
	for (uint32_t i = 0; i < WW_LEVELS_MAX; i++) {
		config.slots[i] = i < levels ? slots[i] : 0;
	}
	return config;
}

static inline void unmake(struct ww_wheel *wheel)
{
	assert_sound(wheel);
	OK(ww_wheel_destroy(wheel));
}

/* Advance without a budget, and return the number of expiries. */
static inline size_t go(struct ww_wheel *wheel, uint64_t now)
{
	size_t count = SIZE_MAX;

	OK(ww_wheel_advance(wheel, now, WW_UNLIMITED, &count));
	assert_sound(wheel);
	return count;
}

static inline struct ww_stats stats_of(const struct ww_wheel *wheel)
{
	struct ww_stats stats;

	OK(ww_wheel_stats(wheel, &stats));
	return stats;
}

static inline uint64_t pending_in(const struct ww_wheel *wheel)
{
	return stats_of(wheel).pending;
}

/* The level of the wheel's only timer. The number of levels stands for outside, one more for due. */
static inline uint32_t level_of_only_timer(const struct ww_wheel *wheel)
{
	struct ww_stats stats = stats_of(wheel);
	uint32_t level = 0;

	ck_assert_uint_eq(stats.pending, 1);
	while (level < stats.levels && stats.level[level].pending == 0) {
		level++;
	}
	return level < stats.levels || stats.outside == 1 ? level : stats.levels + 1;
}

/* ---- Nothing has changed --------------------------------------------------------------------------------------- */

/* A wheel in memory of the test's own, whose bytes it can compare. */
struct placed {
	struct ww_wheel *wheel;
	void *memory;
	void *copy;
	size_t size;
};

static inline struct placed place(const struct ww_wheel_config *config)
{
	struct placed placed = {NULL, NULL, NULL, 0};

	recorded = 0;
	OK(ww_wheel_size(config, &placed.size));
	placed.memory = aligned_alloc(64, (placed.size + 63) & ~(size_t)63);
	placed.copy = malloc(placed.size);
	ck_assert_ptr_nonnull(placed.memory);
	ck_assert_ptr_nonnull(placed.copy);
	OK(ww_wheel_create_at(&placed.wheel, placed.memory, placed.size, config));
	return placed;
}

static inline void unplace(struct placed *placed)
{
	unmake(placed->wheel);
	free(placed->memory);
	free(placed->copy);
}

/* Remember every byte of the wheel. */
static inline void freeze(struct placed *placed)
{
	memcpy(placed->copy, placed->memory, placed->size);
}

/* Whether no byte has changed since. */
static inline int is_frozen(const struct placed *placed)
{
	return memcmp(placed->copy, placed->memory, placed->size) == 0;
}

#endif
