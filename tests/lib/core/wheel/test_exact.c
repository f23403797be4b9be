/* Never early, late or twice: every delay of the adversarial table from every time of it. */
/* tier: check, every-build, no-valgrind (long, and of the wheel others reach each line) */

#include "tests/lib/core/wheel/fixture.h"

/* The default geometry, and others so small that every boundary is near. */
static const struct {
	const char *name;
	uint32_t levels;
	uint32_t slots[WW_LEVELS_MAX];
} geometries[] = {
    {"the default", 4, {60, 60, 24, 7}},
    {"one level of 2", 1, {2}},
    {"one level of 64", 1, {64}},
    {"two of 2", 2, {2, 2}},
    {"six of 2", 6, {2, 2, 2, 2, 2, 2}},
    {"six of 64", 6, {64, 64, 64, 64, 64, 64}},
    {"three primes", 3, {3, 5, 7}},
    {"10, 2, 64 and 3", 4, {10, 2, 64, 3}},
    {"64 and 2", 2, {64, 2}},
    {"2 and 64", 2, {2, 64}},
};
#define GEOMETRIES (sizeof geometries / sizeof geometries[0])

static struct ww_wheel *make_geometry(size_t geometry, uint64_t start)
{
	struct ww_wheel_config config = config_of(geometries[geometry].levels, geometries[geometry].slots);

	config.start = start;
	return make(&config);
}

/*
 * How to go to the deadline: in one jump, by the calls that ww_wheel_next asks for, or tick by tick over the last turns
 * of the lowest level. go_to_the_tick_before returns the number of expiries on the way.
 */
enum how { BY_JUMP, BY_NEXT, BY_TICKS };

static size_t move(struct ww_wheel *wheel, uint64_t now)
{
	size_t count = 0;

	OK(ww_wheel_advance(wheel, now, WW_UNLIMITED, &count));
	return count;
}

static size_t go_to_the_tick_before(struct ww_wheel *wheel, uint64_t deadline, enum how how)
{
	size_t early = 0;
	uint64_t now = ww_wheel_now(wheel);

	if (how == BY_TICKS) {
		now = deadline - now > 200 ? deadline - 200 : now;
		for (; now < deadline; now++) {
			early += move(wheel, now);
		}
	} else if (how == BY_NEXT) {
		uint64_t when = 0;
		size_t calls = 0;

		while (ww_wheel_next(wheel, &when) == 1 && when < deadline && ++calls < 200) {
			early += move(wheel, when);
		}
	}
	return early + go(wheel, deadline - 1);
}

static void assert_exact(size_t geometry, enum how how)
{
	for (size_t s = 0; s < VALID_TIMES; s++) {
		uint64_t start = valid_times[s].time;
		struct ww_wheel *wheel = NULL;

		for (size_t d = 0; d < VALID_TIMES; d++) {
			uint64_t delay = valid_times[d].time;
			struct ww_timer timer = WW_TIMER_INIT(note);

			if (delay > WW_TIME_MAX - start) {
				continue;
			}
			wheel = make_geometry(geometry, start);
			OK(ww_wheel_schedule(wheel, &timer, delay));
			assert_sound(wheel);
			if (delay > 0) {
				ck_assert_msg(go_to_the_tick_before(wheel, start + delay, how) == 0,
				    "%s: %s from %s expired early", geometries[geometry].name, valid_times[d].name,
				    valid_times[s].name);
			}
			ck_assert_msg(go(wheel, start + delay) == 1, "%s: %s from %s did not expire in its tick",
			    geometries[geometry].name, valid_times[d].name, valid_times[s].name);
			ck_assert_ptr_eq(record[0].timer, &timer);
			ck_assert_msg(go(wheel, WW_TIME_MAX) == 0, "%s: %s from %s expired twice",
			    geometries[geometry].name, valid_times[d].name, valid_times[s].name);
			unmake(wheel);
		}
	}
}

START_TEST(every_delay_from_every_time_is_exact_by_one_jump)
{
	for (size_t i = 0; i < GEOMETRIES; i++) {
		assert_exact(i, BY_JUMP);
	}
}
END_TEST

START_TEST(every_delay_from_every_time_is_exact_by_the_calls_that_next_asks_for)
{
	for (size_t i = 0; i < GEOMETRIES; i++) {
		assert_exact(i, BY_NEXT);
	}
}
END_TEST

START_TEST(every_delay_from_every_time_is_exact_by_ticks)
{
	for (size_t i = 0; i < GEOMETRIES; i++) {
		assert_exact(i, BY_TICKS);
	}
}
END_TEST

/* In a wheel small enough to try all: every delay of up to some turns, from every tick of a turn, tick by tick. */
START_TEST(every_delay_of_a_small_wheel_is_exact_from_every_start)
{
	static const struct {
		uint32_t slots[3];
		uint32_t levels;
	} small[] = {{{2, 2, 2}, 3}, {{3, 2, 4}, 3}, {{4, 3, 0}, 2}, {{5, 0, 0}, 1}};

	for (size_t g = 0; g < 4; g++) {
		struct ww_wheel_config config = config_of(small[g].levels, small[g].slots);
		uint64_t horizon = 1;

		for (uint32_t i = 0; i < small[g].levels; i++) {
			horizon *= small[g].slots[i];
		}
		for (uint64_t start = 0; start < 2 * horizon; start++) {
			static struct ww_timer timers[100];
			struct ww_wheel *wheel;

			config.start = start;
			wheel = make(&config);
			for (uint64_t delay = 0; delay <= 4 * horizon; delay++) {
				OK(ww_timer_init(&timers[delay], note));
				OK(ww_wheel_schedule(wheel, &timers[delay], delay));
			}
			for (uint64_t delay = 0; delay <= 4 * horizon; delay++) {
				ck_assert_uint_eq(go(wheel, start + delay), 1);
				ck_assert_ptr_eq(record[delay].timer, &timers[delay]);
			}
			unmake(wheel);
		}
	}
}
END_TEST

/* The same in jumps of every length: each boundary is jumped over from every distance. */
START_TEST(every_delay_of_a_small_wheel_is_exact_by_jumps_of_every_length)
{
	static const uint32_t slots[] = {3, 2, 4};
	const uint64_t last = 99;

	for (uint64_t jump = 1; jump < 60; jump++) {
		for (uint64_t start = 0; start < 24; start++) {
			static struct ww_timer timers[100];
			struct ww_wheel_config config = config_of(3, slots);
			struct ww_wheel *wheel;
			uint64_t now = start;

			config.start = start;
			wheel = make(&config);
			for (uint64_t delay = 0; delay <= last; delay++) {
				OK(ww_timer_init(&timers[delay], note));
				OK(ww_wheel_schedule(wheel, &timers[delay], delay));
			}
			while (recorded <= last) {
				uint64_t until = now - start < last ? now - start : last;

				go(wheel, now);
				ck_assert_uint_eq(recorded, until + 1);
				ck_assert_ptr_eq(record[recorded - 1].timer, &timers[until]);
				now += jump;
			}
			unmake(wheel);
		}
	}
}
END_TEST

TEST_MAIN("wheel/exact", every_delay_from_every_time_is_exact_by_one_jump,
    every_delay_from_every_time_is_exact_by_the_calls_that_next_asks_for, every_delay_from_every_time_is_exact_by_ticks,
    every_delay_of_a_small_wheel_is_exact_from_every_start,
    every_delay_of_a_small_wheel_is_exact_by_jumps_of_every_length)
