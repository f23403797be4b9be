/* Scheduling: by delay, by deadline, near and far, and what a timer tells about itself. */
/* tier: quick, every-build */

#include "tests/lib/core/wheel/fixture.h"
#include "tests/support/seed.h"

START_TEST(a_new_timer_is_idle_however_it_was_initialised)
{
	struct ww_timer by_macro = WW_TIMER_INIT(note);
	struct ww_timer by_zero;
	struct ww_timer by_call;
	uint64_t deadline = 4711;

	memset(&by_zero, 0, sizeof by_zero);
	memset(&by_call, 0xA5, sizeof by_call);
	OK(ww_timer_init(&by_call, note));
	ck_assert_int_eq(ww_timer_pending(&by_macro), 0);
	ck_assert_int_eq(ww_timer_pending(&by_zero), 0);
	ck_assert_int_eq(ww_timer_pending(&by_call), 0);
	ck_assert_int_eq(ww_timer_deadline(&by_macro, &deadline), 0);
	ck_assert_int_eq(ww_timer_deadline(&by_zero, &deadline), 0);
	ck_assert_int_eq(ww_timer_deadline(&by_call, &deadline), 0);
	ck_assert_uint_eq(deadline, 4711);
}
END_TEST

START_TEST(the_owner_is_found_from_its_timer)
{
	struct object {
		char before[24];
		struct ww_timer timer;
	} object;

	ck_assert_ptr_eq(WW_TIMER_OWNER(&object.timer, struct object, timer), &object);
}
END_TEST

START_TEST(a_timer_without_a_callback_becomes_idle_and_is_counted)
{
	struct ww_wheel *wheel = make(NULL);
	struct ww_timer timer;

	memset(&timer, 0, sizeof timer);
	OK(ww_wheel_schedule(wheel, &timer, 3));
	ck_assert_uint_eq(go(wheel, 3), 1);
	ck_assert_int_eq(ww_timer_pending(&timer), 0);
	ck_assert_uint_eq(stats_of(wheel).expired, 1);
	unmake(wheel);
}
END_TEST

START_TEST(a_pending_timer_tells_its_deadline_and_the_time_left)
{
	struct ww_wheel *wheel = make_from(1000);
	struct ww_timer timer = WW_TIMER_INIT(note);
	uint64_t deadline = 4711;
	uint64_t left = 4711;

	ck_assert_int_eq(ww_wheel_time_left(wheel, &timer, &left), 0);
	ck_assert_uint_eq(left, 4711);
	OK(ww_wheel_schedule(wheel, &timer, 5000));
	ck_assert_int_eq(ww_timer_pending(&timer), 1);
	ck_assert_int_eq(ww_timer_deadline(&timer, &deadline), 1);
	ck_assert_uint_eq(deadline, 6000);
	ck_assert_int_eq(ww_wheel_time_left(wheel, &timer, &left), 1);
	ck_assert_uint_eq(left, 5000);
	go(wheel, 5999);
	ck_assert_int_eq(ww_timer_deadline(&timer, &deadline), 1);
	ck_assert_uint_eq(deadline, 6000);
	ck_assert_int_eq(ww_wheel_time_left(wheel, &timer, &left), 1);
	ck_assert_uint_eq(left, 1);
	go(wheel, 6000);
	deadline = left = 4711;
	ck_assert_int_eq(ww_timer_pending(&timer), 0);
	ck_assert_int_eq(ww_timer_deadline(&timer, &deadline), 0);
	ck_assert_int_eq(ww_wheel_time_left(wheel, &timer, &left), 0);
	ck_assert_uint_eq(deadline, 4711);
	ck_assert_uint_eq(left, 4711);
	unmake(wheel);
}
END_TEST

START_TEST(a_delay_of_0_expires_in_the_next_advance_and_not_before)
{
	struct ww_wheel *wheel = make_from(100);
	struct ww_timer timer = WW_TIMER_INIT(note);
	uint64_t when = 0;
	uint64_t left = 4711;

	OK(ww_wheel_schedule(wheel, &timer, 0));
	ck_assert_uint_eq(recorded, 0);
	assert_sound(wheel);
	ck_assert_int_eq(ww_wheel_next(wheel, &when), 1);
	ck_assert_uint_eq(when, 100);
	ck_assert_int_eq(ww_wheel_time_left(wheel, &timer, &left), 1);
	ck_assert_uint_eq(left, 0);
	ck_assert_uint_eq(stats_of(wheel).due, 1);
	ck_assert_uint_eq(go(wheel, 100), 1);
	ck_assert_uint_eq(go(wheel, 100), 0);
	unmake(wheel);
}
END_TEST

START_TEST(a_deadline_that_has_passed_expires_in_the_next_advance)
{
	static const uint64_t past[] = {0, 1, 5000, 99999, 100000};
	struct ww_wheel *wheel = make(NULL);
	struct ww_timer timers[5];

	go(wheel, 100000);
	for (size_t i = 0; i < 5; i++) {
		uint64_t deadline = 4711;
		uint64_t left = 4711;

		OK(ww_timer_init(&timers[i], note));
		OK(ww_wheel_schedule_at(wheel, &timers[i], past[i]));
		ck_assert_int_eq(ww_timer_deadline(&timers[i], &deadline), 1);
		ck_assert_uint_eq(deadline, past[i]);
		ck_assert_int_eq(ww_wheel_time_left(wheel, &timers[i], &left), 1);
		ck_assert_uint_eq(left, 0);
	}
	assert_sound(wheel);
	ck_assert_uint_eq(stats_of(wheel).due, 5);
	ck_assert_uint_eq(go(wheel, 100000), 5);
	for (size_t i = 0; i < 5; i++) {
		ck_assert_uint_eq(times_recorded(&timers[i]), 1);
	}
	unmake(wheel);
}
END_TEST

START_TEST(scheduling_at_a_deadline_means_that_deadline_whatever_the_time)
{
	struct ww_wheel *wheel = make_from(777);
	struct ww_timer timer = WW_TIMER_INIT(note);

	go(wheel, 3000);
	OK(ww_wheel_schedule_at(wheel, &timer, 7130));
	ck_assert_uint_eq(go(wheel, 7129), 0);
	ck_assert_uint_eq(go(wheel, 7130), 1);
	unmake(wheel);
}
END_TEST

START_TEST(a_delay_counts_from_the_time_last_advanced_to)
{
	struct ww_wheel *wheel = make(NULL);
	struct ww_timer timer = WW_TIMER_INIT(note);

	go(wheel, 30);
	OK(ww_wheel_schedule(wheel, &timer, 7100));
	ck_assert_uint_eq(go(wheel, 7129), 0);
	ck_assert_uint_eq(go(wheel, 7130), 1);
	unmake(wheel);
}
END_TEST

START_TEST(scheduling_a_pending_timer_reschedules_it)
{
	static const uint64_t delays[] = {0, 1, 59, 60, 3599, 3600, 7100, 86400, 604800, 700000, 5000000};
	const size_t count = sizeof delays / sizeof delays[0];

	for (size_t i = 0; i < count; i++) {
		for (size_t k = 0; k < count; k++) {
			struct ww_wheel *wheel = make_from(30);
			struct ww_timer timer = WW_TIMER_INIT(note);

			OK(ww_wheel_schedule(wheel, &timer, delays[i]));
			OK(ww_wheel_schedule(wheel, &timer, delays[k]));
			assert_sound(wheel);
			ck_assert_uint_eq(pending_in(wheel), 1);
			ck_assert_uint_eq(stats_of(wheel).scheduled, 1);
			if (delays[k] > 0) {
				ck_assert_uint_eq(go(wheel, 30 + delays[k] - 1), 0);
			}
			ck_assert_uint_eq(go(wheel, 30 + delays[k]), 1);
			ck_assert_uint_eq(go(wheel, 10000000), 0);
			unmake(wheel);
		}
	}
}
END_TEST

START_TEST(schedule_makes_a_periodic_timer_a_one_shot)
{
	struct ww_wheel *wheel = make(NULL);
	struct ww_timer timer = WW_TIMER_INIT(note);

	OK(ww_wheel_schedule_every(wheel, &timer, 10, 10));
	OK(ww_wheel_schedule(wheel, &timer, 15));
	ck_assert_uint_eq(go(wheel, 15), 1);
	ck_assert_int_eq(ww_timer_pending(&timer), 0);
	OK(ww_wheel_schedule_every_at(wheel, &timer, 20, 10));
	OK(ww_wheel_schedule_at(wheel, &timer, 100));
	ck_assert_uint_eq(go(wheel, 1000), 1);
	ck_assert_int_eq(ww_timer_pending(&timer), 0);
	unmake(wheel);
}
END_TEST

static const struct {
	const char *name;
	uint64_t delay;
} far_delays[] = {
    {"a week + 1 s", WEEK + 1},
    {"8 days", 8 * DAY},
    {"14 days", 14 * DAY},
    {"30 days", 30 * DAY},
    {"92.6 days", 926 * DAY / 10},
    {"400 days", 400 * DAY},
    {"10 years and 1 s", 3653 * DAY + 1},
};

START_TEST(a_delay_beyond_a_week_waits_outside_and_is_exact)
{
	static const uint64_t starts[] = {0, 1, 30, DAY - 1, WEEK - 1, WEEK, 1234567};

	for (size_t s = 0; s < sizeof starts / sizeof starts[0]; s++) {
		for (size_t i = 0; i < sizeof far_delays / sizeof far_delays[0]; i++) {
			struct ww_wheel *wheel = make_from(starts[s]);
			struct ww_timer timer = WW_TIMER_INIT(note);
			uint64_t deadline = starts[s] + far_delays[i].delay;

			OK(ww_wheel_schedule(wheel, &timer, far_delays[i].delay));
			ck_assert_msg(stats_of(wheel).outside == 1, "%s is not outside", far_delays[i].name);
			/* By days, then hours, then minutes, then every second of the last two. */
			while (ww_wheel_now(wheel) + 2 * DAY < deadline) {
				ck_assert_uint_eq(go(wheel, ww_wheel_now(wheel) + DAY - 7), 0);
			}
			while (ww_wheel_now(wheel) + 2 * HOUR < deadline) {
				ck_assert_uint_eq(go(wheel, ww_wheel_now(wheel) + HOUR), 0);
			}
			while (ww_wheel_now(wheel) + 2 * MINUTE < deadline) {
				ck_assert_uint_eq(go(wheel, ww_wheel_now(wheel) + MINUTE), 0);
			}
			while (ww_wheel_now(wheel) + 1 < deadline) {
				ck_assert_uint_eq(go(wheel, ww_wheel_now(wheel) + 1), 0);
			}
			ck_assert_msg(go(wheel, deadline) == 1, "%s from %" PRIu64, far_delays[i].name, starts[s]);
			unmake(wheel);
		}
	}
}
END_TEST

START_TEST(a_delay_beyond_a_week_is_exact_by_jumps_too)
{
	for (size_t i = 0; i < sizeof far_delays / sizeof far_delays[0]; i++) {
		struct ww_wheel *wheel = make_from(99);
		struct ww_timer timers[3];

		for (uint64_t k = 0; k < 3; k++) {
			OK(ww_timer_init(&timers[k], note));
			OK(ww_wheel_schedule(wheel, &timers[k], far_delays[i].delay + k));
		}
		ck_assert_uint_eq(go(wheel, 99 + far_delays[i].delay - 1), 0);
		ck_assert_uint_eq(go(wheel, 99 + far_delays[i].delay), 1);
		ck_assert_uint_eq(go(wheel, 99 + far_delays[i].delay + 1000), 2);
		ck_assert_ptr_eq(record[1].timer, &timers[1]);
		unmake(wheel);
	}
}
END_TEST

START_TEST(many_timers_outside_all_expire_in_their_tick)
{
	struct ww_wheel *wheel = make(NULL);
	static struct ww_timer timers[500];
	uint64_t seed = 1;
	size_t fired = 0;

	for (size_t i = 0; i < 500; i++) {
		OK(ww_timer_init(&timers[i], note));
		OK(ww_wheel_schedule(wheel, &timers[i], 1 + seed_below(&seed, 10 * WEEK)));
	}
	while (fired < 500) {
		uint64_t when = 0;

		ck_assert_int_eq(ww_wheel_next(wheel, &when), 1);
		fired += go(wheel, when);
		for (size_t i = 0; i < 500; i++) {
			uint64_t deadline;

			if (ww_timer_deadline(&timers[i], &deadline) == 1) {
				ck_assert_uint_gt(deadline, when);
			}
		}
	}
	ck_assert_uint_eq(recorded, 500);
	ck_assert_uint_eq(pending_in(wheel), 0);
	unmake(wheel);
}
END_TEST

START_TEST(the_last_time_of_all_can_be_a_deadline)
{
	struct ww_wheel *wheel = make(NULL);
	struct ww_timer last = WW_TIMER_INIT(note);
	struct ww_timer before = WW_TIMER_INIT(note);

	OK(ww_wheel_schedule(wheel, &last, WW_TIME_MAX));
	OK(ww_wheel_schedule_at(wheel, &before, WW_TIME_MAX - 1));
	ck_assert_uint_eq(go(wheel, WW_TIME_MAX - 2), 0);
	ck_assert_uint_eq(go(wheel, WW_TIME_MAX - 1), 1);
	ck_assert_ptr_eq(record[0].timer, &before);
	ck_assert_uint_eq(go(wheel, WW_TIME_MAX), 1);
	unmake(wheel);
}
END_TEST

/*
 * Three ways to bring a wheel to that time: create it there, go there tick by tick, or jump there from the turn before.
 */
static struct ww_wheel *at_time(uint64_t now, int way)
{
	struct ww_wheel *wheel = make_from(way == 0 ? now : way == 1 ? now - 5 : now - WEEK);

	for (uint64_t tick = now - 4; way == 1 && tick <= now; tick++) {
		OK(ww_wheel_advance(wheel, tick, WW_UNLIMITED, NULL));
	}
	if (way == 2) {
		OK(ww_wheel_advance(wheel, now, WW_UNLIMITED, NULL));
	}
	return wheel;
}

START_TEST(in_the_last_weeks_a_delay_reaches_the_end_of_time_and_no_further)
{
	/* The last turn of the days begins in the middle of the last week. */
	const uint64_t last_turn = WW_TIME_MAX / WEEK * WEEK;
	const uint64_t times[] = {WW_TIME_MAX - WEEK, WW_TIME_MAX - WEEK + 1, last_turn - DAY, last_turn - 1, last_turn,
	    last_turn + 1, WW_TIME_MAX - HOUR, WW_TIME_MAX - 59, WW_TIME_MAX - 1};

	for (size_t i = 0; i < sizeof times / sizeof times[0]; i++) {
		for (int way = 0; way < 3; way++) {
			struct ww_wheel *wheel = at_time(times[i], way);
			struct ww_timer timer = WW_TIMER_INIT(note);

			ck_assert_int_eq(ww_wheel_schedule(wheel, &timer, WW_TIME_MAX - times[i] + 1), WW_EOVERFLOW);
			ck_assert_int_eq(ww_timer_pending(&timer), 0);
			ck_assert_uint_eq(pending_in(wheel), 0);
			OK(ww_wheel_schedule(wheel, &timer, WW_TIME_MAX - times[i]));
			ck_assert_uint_eq(go(wheel, WW_TIME_MAX - 1), 0);
			ck_assert_uint_eq(go(wheel, WW_TIME_MAX), 1);
			unmake(wheel);
		}
	}
}
END_TEST

START_TEST(an_idle_timer_that_was_periodic_is_scheduled_as_a_one_shot)
{
	struct ww_wheel *wheel = make(NULL);
	struct ww_timer timer = WW_TIMER_INIT(note);
	struct ww_expiry taken;
	size_t count;

	OK(ww_wheel_schedule_every(wheel, &timer, 10, 10));
	ck_assert_int_eq(ww_wheel_cancel(wheel, &timer), 1);
	OK(ww_wheel_schedule(wheel, &timer, 5));
	ck_assert_uint_eq(go(wheel, 100), 1);
	ck_assert_int_eq(ww_timer_pending(&timer), 0);
	OK(ww_wheel_schedule_every(wheel, &timer, 10, 10));
	OK(ww_wheel_drain(wheel, &taken, 1, &count));
	OK(ww_wheel_schedule(wheel, &timer, 5));
	ck_assert_uint_eq(go(wheel, 200), 1);
	ck_assert_uint_eq(record[1].missed, 0);
	ck_assert_int_eq(ww_timer_pending(&timer), 0);
	unmake(wheel);
}
END_TEST

TEST_MAIN("wheel/schedule", a_new_timer_is_idle_however_it_was_initialised, the_owner_is_found_from_its_timer,
    a_timer_without_a_callback_becomes_idle_and_is_counted, a_pending_timer_tells_its_deadline_and_the_time_left,
    a_delay_of_0_expires_in_the_next_advance_and_not_before, a_deadline_that_has_passed_expires_in_the_next_advance,
    scheduling_at_a_deadline_means_that_deadline_whatever_the_time, a_delay_counts_from_the_time_last_advanced_to,
    scheduling_a_pending_timer_reschedules_it, schedule_makes_a_periodic_timer_a_one_shot,
    a_delay_beyond_a_week_waits_outside_and_is_exact, a_delay_beyond_a_week_is_exact_by_jumps_too,
    many_timers_outside_all_expire_in_their_tick, the_last_time_of_all_can_be_a_deadline,
    in_the_last_weeks_a_delay_reaches_the_end_of_time_and_no_further,
    an_idle_timer_that_was_periodic_is_scheduled_as_a_one_shot)
