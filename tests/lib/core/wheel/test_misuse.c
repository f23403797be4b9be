/*
 * Misuse that a release build does not notice at once. ww_wheel_check finds it in any build, and a debug build
 * (-DWW_DEBUG, which the tests share with their library) answers WW_ECORRUPT in the call that meets it.
 */
/* tier: quick, every-build */

#include "tests/lib/core/wheel/fixture.h"

#define N 8

START_TEST(check_finds_one_overwritten_object_among_many)
{
	struct ww_wheel *wheel = make(NULL);
	static struct ww_timer timers[2000];
	struct ww_timer good;
	char text[256] = "";

	for (size_t i = 0; i < 2000; i++) {
		OK(ww_timer_init(&timers[i], note));
		OK(ww_wheel_schedule(wheel, &timers[i], i * i));
	}
	for (size_t i = 0; i < 2000; i += 37) {
		good = timers[i];
		memset(&timers[i], 0xA5, sizeof good);
		ck_assert_int_eq(ww_wheel_check(wheel, text, sizeof text), WW_ECORRUPT);
		timers[i] = good;
		assert_sound(wheel);
	}
	unmake(wheel);
}
END_TEST

START_TEST(another_wheels_timer_is_refused_and_nothing_changes)
{
	struct placed one = place(NULL);
	struct placed two = place(NULL);
	struct ww_timer timer = WW_TIMER_INIT(note);
	struct ww_timer copy;
	uint64_t left = 4711;

	/*
	 * Parentheses call the functions. The macros would first try the heartbeat, which looks at the deadline alone.
	 */
	OK(ww_wheel_schedule(one.wheel, &timer, 7100));
	copy = timer;
	freeze(&one);
	freeze(&two);
	ck_assert_int_eq(ww_wheel_cancel(two.wheel, &timer), WW_ECORRUPT);
	ck_assert_int_eq(ww_wheel_schedule(two.wheel, &timer, 5), WW_ECORRUPT);
	ck_assert_int_eq(ww_wheel_schedule_at(two.wheel, &timer, 9000), WW_ECORRUPT);
	ck_assert_int_eq(ww_wheel_schedule_every(two.wheel, &timer, 5, 5), WW_ECORRUPT);
	ck_assert_int_eq((ww_wheel_reschedule)(two.wheel, &timer, 5), WW_ECORRUPT);
	ck_assert_int_eq((ww_wheel_reschedule)(two.wheel, &timer, 9000), WW_ECORRUPT);
	ck_assert_int_eq((ww_wheel_reschedule_at)(two.wheel, &timer, 9000), WW_ECORRUPT);
	ck_assert_int_eq(ww_wheel_time_left(two.wheel, &timer, &left), WW_ECORRUPT);
	ck_assert_uint_eq(left, 4711);
	ck_assert(is_frozen(&one));
	ck_assert(is_frozen(&two));
	ck_assert_mem_eq(&copy, &timer, sizeof timer);
	ck_assert_uint_eq(go(one.wheel, 7100), 1);
	unplace(&one);
	unplace(&two);
}
END_TEST

START_TEST(another_wheels_periodic_timer_is_refused)
{
	/* In the first slot of all, and in another one. */
	static const uint64_t delays[] = {60, 7100};

	for (size_t i = 0; i < 2; i++) {
		struct ww_wheel *one = make_from(1);
		struct placed two = place(NULL);
		struct ww_timer timer = WW_TIMER_INIT(note);

		OK(ww_wheel_schedule_every(one, &timer, delays[i] - 1, 5));
		freeze(&two);
		ck_assert_int_eq(ww_wheel_cancel(two.wheel, &timer), WW_ECORRUPT);
		ck_assert_int_eq(ww_wheel_schedule(two.wheel, &timer, 5), WW_ECORRUPT);
		ck_assert(is_frozen(&two));
		ck_assert_int_eq(ww_wheel_cancel(one, &timer), 1);
		unmake(one);
		unplace(&two);
	}
}
END_TEST

#ifdef WW_DEBUG

static void assert_refused(struct ww_wheel *wheel, struct ww_timer *timer)
{
	ck_assert_int_eq(ww_wheel_cancel(wheel, timer), WW_ECORRUPT);
	ck_assert_int_eq(ww_wheel_schedule(wheel, timer, 5), WW_ECORRUPT);
	ck_assert_int_eq(ww_wheel_reschedule(wheel, timer, 5), WW_ECORRUPT);
}

START_TEST(a_debug_build_refuses_a_timer_with_one_overwritten_member)
{
	struct ww_wheel *wheel = make(NULL);
	struct ww_timer timer = WW_TIMER_INIT(note);
	struct ww_timer *nowhere = NULL;
	struct ww_timer good;

	OK(ww_wheel_schedule(wheel, &timer, 7100));
	good = timer;
	for (int member = 0; member < 3; member++) {
		if (member == 0) {
			timer.ww_pprev = &nowhere;
		} else {
			timer.ww_where ^= member == 1 ? UINT64_C(0x7000) : UINT64_C(1) << 16;
		}
		assert_refused(wheel, &timer);
		timer = good;
	}
	ck_assert_uint_eq(go(wheel, 7100), 1);
	unmake(wheel);
}
END_TEST

START_TEST(a_debug_build_refuses_a_timer_overwritten_while_pending)
{
	struct ww_wheel *wheel = make(NULL);
	struct ww_timer timer = WW_TIMER_INIT(note);
	struct ww_timer good;

	OK(ww_wheel_schedule(wheel, &timer, 7100));
	good = timer;
	memset(&timer, 0xA5, sizeof timer);
	assert_refused(wheel, &timer);
	timer = good;
	ck_assert_uint_eq(go(wheel, 7100), 1);
	unmake(wheel);
}
END_TEST

START_TEST(advance_of_a_debug_build_stops_at_a_broken_timer_and_the_rest_stays)
{
	/* The wheel meets it when it expires, when it is due, and when it is demoted from each level. */
	static const uint64_t delays[] = {0, 5, 100, 7100, 100000, 8 * DAY};

	for (size_t d = 0; d < sizeof delays / sizeof delays[0]; d++) {
		struct ww_wheel *wheel = make(NULL);
		struct ww_timer timers[N];
		struct ww_timer before = WW_TIMER_INIT(note);
		struct ww_timer good;
		size_t count = 4711;

		for (size_t i = 0; i < N; i++) {
			OK(ww_timer_init(&timers[i], note));
			OK(ww_wheel_schedule(wheel, &timers[i], delays[d]));
		}
		if (delays[d] > 0) {
			OK(ww_wheel_schedule(wheel, &before, 1));
		}
		good = timers[3];
		memset(&timers[3], 0xA5, sizeof good);
		ck_assert_int_eq(ww_wheel_advance(wheel, delays[d], WW_UNLIMITED, &count), WW_ECORRUPT);
		ck_assert_uint_eq(count, recorded);
		ck_assert_uint_eq(times_recorded(&before), delays[d] > 0);
		ck_assert_uint_eq(times_recorded(&timers[3]), 0);
		/* Once the timer is mended, the wheel goes on and has lost nothing. */
		timers[3] = good;
		go(wheel, delays[d]);
		for (size_t i = 0; i < N; i++) {
			ck_assert_uint_eq(times_recorded(&timers[i]), 1);
		}
		unmake(wheel);
	}
}
END_TEST

START_TEST(drain_of_a_debug_build_stops_at_a_broken_timer)
{
	struct ww_wheel *wheel = make(NULL);
	struct ww_timer timers[N];
	struct ww_expiry batch[N];
	struct ww_timer good;
	size_t count = 4711;
	size_t taken;

	for (size_t i = 0; i < N; i++) {
		OK(ww_timer_init(&timers[i], note));
		OK(ww_wheel_schedule(wheel, &timers[i], 7100));
	}
	good = timers[3];
	memset(&timers[3], 0xA5, sizeof good);
	ck_assert_int_eq(ww_wheel_drain(wheel, batch, N, &count), WW_ECORRUPT);
	ck_assert_uint_lt(count, N);
	taken = count;
	timers[3] = good;
	ck_assert_int_eq(ww_wheel_drain(wheel, batch, N, &count), 0);
	ck_assert_uint_eq(taken + count, N);
	unmake(wheel);
}
END_TEST

TEST_MAIN("wheel/misuse", check_finds_one_overwritten_object_among_many,
    another_wheels_timer_is_refused_and_nothing_changes, another_wheels_periodic_timer_is_refused,
    a_debug_build_refuses_a_timer_with_one_overwritten_member, a_debug_build_refuses_a_timer_overwritten_while_pending,
    advance_of_a_debug_build_stops_at_a_broken_timer_and_the_rest_stays, drain_of_a_debug_build_stops_at_a_broken_timer)

#else

TEST_MAIN("wheel/misuse", check_finds_one_overwritten_object_among_many,
    another_wheels_timer_is_refused_and_nothing_changes, another_wheels_periodic_timer_is_refused)

#endif
