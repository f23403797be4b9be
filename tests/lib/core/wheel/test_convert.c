/* Nanoseconds to ticks: a deadline is rounded up, the clock's time down. */
/* tier: quick, every-build */

#include "tests/lib/core/wheel/fixture.h"
#include "tests/support/seed.h"

static struct ww_wheel *make_ticking(uint64_t tick_ns)
{
	struct ww_wheel_config config;

	OK(ww_wheel_config_default(&config));
	config.tick_ns = tick_ns;
	return make(&config);
}

static void assert_converts(uint64_t tick_ns, uint64_t ns, uint64_t up, uint64_t down)
{
	struct ww_wheel *wheel = make_ticking(tick_ns);
	uint64_t deadline = 4711;
	uint64_t now = 4711;

	OK(ww_wheel_deadline_ns(wheel, ns, &deadline));
	OK(ww_wheel_now_ns(wheel, ns, &now));
	ck_assert_msg(deadline == up && now == down,
	    "%" PRIu64 " ns of ticks of %" PRIu64 " are a deadline of %" PRIu64 " and a time of %" PRIu64, ns, tick_ns,
	    deadline, now);
	OK(ww_wheel_destroy(wheel));
}

START_TEST(a_deadline_between_two_ticks_is_rounded_up_and_the_clock_down)
{
	static const uint64_t ticks[] = {1, 2, 3, 1000, 1000000, 1000000000, UINT64_C(60000000000)};

	for (size_t i = 0; i < sizeof ticks / sizeof ticks[0]; i++) {
		uint64_t tick = ticks[i];

		assert_converts(tick, 0, 0, 0);
		assert_converts(tick, tick, 1, 1);
		assert_converts(tick, 7100 * tick, 7100, 7100);
		if (tick > 1) {
			assert_converts(tick, 1, 1, 0);
			assert_converts(tick, tick - 1, 1, 0);
			assert_converts(tick, tick + 1, 2, 1);
			assert_converts(tick, 7100 * tick - 1, 7100, 7099);
			assert_converts(tick, 7100 * tick + 1, 7101, 7100);
		}
	}
}
END_TEST

START_TEST(the_largest_clock_does_not_wrap_round)
{
	assert_converts(1000000000, UINT64_MAX, UINT64_C(18446744074), UINT64_C(18446744073));
	assert_converts(1000000, UINT64_MAX, UINT64_C(18446744073710), UINT64_C(18446744073709));
	assert_converts(3, UINT64_MAX, UINT64_MAX / 3, UINT64_MAX / 3);
	assert_converts(UINT64_MAX, UINT64_MAX, 1, 1);
	assert_converts(UINT64_MAX, UINT64_MAX - 1, 1, 0);
	assert_converts(UINT64_MAX, 1, 1, 0);
	assert_converts(1, WW_TIME_MAX, WW_TIME_MAX, WW_TIME_MAX);
	assert_converts(2, UINT64_MAX - 1, WW_TIME_MAX, WW_TIME_MAX);
}
END_TEST

START_TEST(a_result_beyond_the_last_time_is_an_overflow_and_stores_nothing)
{
	struct ww_wheel *one = make_ticking(1);
	struct ww_wheel *two = make_ticking(2);
	uint64_t out = 4711;

	for (size_t i = 0; i < INVALID_TIMES; i++) {
		ck_assert_int_eq(ww_wheel_deadline_ns(one, invalid_times[i].time, &out), WW_EOVERFLOW);
		ck_assert_int_eq(ww_wheel_now_ns(one, invalid_times[i].time, &out), WW_EOVERFLOW);
	}
	/* With ticks of 2 ns, only rounding up the largest number overflows. */
	ck_assert_int_eq(ww_wheel_deadline_ns(two, UINT64_MAX, &out), WW_EOVERFLOW);
	ck_assert_uint_eq(out, 4711);
	OK(ww_wheel_now_ns(two, UINT64_MAX, &out));
	ck_assert_uint_eq(out, WW_TIME_MAX);
	unmake(one);
	unmake(two);
}
END_TEST

START_TEST(a_wait_in_nanoseconds_is_never_cut_short)
{
	static const uint64_t ticks[] = {7, 1000, 1000000, 1000000000};
	uint64_t seed = seed_of_run("a_wait_in_nanoseconds_is_never_cut_short");

	for (size_t t = 0; t < sizeof ticks / sizeof ticks[0]; t++) {
		struct ww_wheel *wheel = make_ticking(ticks[t]);
		uint64_t clock = 0;

		for (int i = 0; i < 200; i++) {
			struct ww_timer timer = WW_TIMER_INIT(note);
			uint64_t wait = 1 + seed_below(&seed, 20 * ticks[t]);
			uint64_t deadline;
			uint64_t now;

			clock += seed_below(&seed, 3 * ticks[t]);
			OK(ww_wheel_now_ns(wheel, clock, &now));
			OK(ww_wheel_advance(wheel, now, WW_UNLIMITED, NULL));
			OK(ww_wheel_deadline_ns(wheel, clock + wait, &deadline));
			OK(ww_wheel_schedule_at(wheel, &timer, deadline));
			/*
			 * Nothing expires one nanosecond before the end of the wait. Less than a tick after it,
			 * everything has expired.
			 */
			OK(ww_wheel_now_ns(wheel, clock + wait - 1, &now));
			ck_assert_uint_eq(go(wheel, now), 0);
			clock += wait + ticks[t] - 1;
			OK(ww_wheel_now_ns(wheel, clock, &now));
			ck_assert_uint_eq(go(wheel, now), 1);
			recorded = 0;
		}
		unmake(wheel);
	}
}
END_TEST

TEST_MAIN("wheel/convert", a_deadline_between_two_ticks_is_rounded_up_and_the_clock_down,
    the_largest_clock_does_not_wrap_round, a_result_beyond_the_last_time_is_an_overflow_and_stores_nothing,
    a_wait_in_nanoseconds_is_never_cut_short)
