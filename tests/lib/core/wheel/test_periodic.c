/* Periodic timers: no drift, missed expiries are counted, and the end of time. */
/* tier: quick, every-build */

#include "tests/lib/core/wheel/fixture.h"

START_TEST(a_periodic_timer_expires_at_first_first_plus_period_and_so_on)
{
	static const uint64_t firsts[] = {0, 1, 10, 59, 60, 3600, 8 * DAY};
	static const uint64_t periods[] = {1, 2, 59, 60, 61, 3600, 86400, 8 * DAY};

	for (size_t f = 0; f < sizeof firsts / sizeof firsts[0]; f++) {
		for (size_t p = 0; p < sizeof periods / sizeof periods[0]; p++) {
			struct ww_wheel *wheel = make_from(17);
			struct ww_timer timer = WW_TIMER_INIT(note);
			uint64_t deadline = 17 + firsts[f];

			OK(ww_wheel_schedule_every(wheel, &timer, firsts[f], periods[p]));
			for (size_t i = 0; i < 50; i++, deadline += periods[p]) {
				uint64_t told = 0;

				if (deadline > ww_wheel_now(wheel)) {
					ck_assert_uint_eq(go(wheel, deadline - 1), 0);
				}
				ck_assert_int_eq(ww_timer_deadline(&timer, &told), 1);
				ck_assert_uint_eq(told, deadline);
				ck_assert_uint_eq(go(wheel, deadline), 1);
				ck_assert_uint_eq(record[i].missed, 0);
				ck_assert_int_eq(ww_timer_pending(&timer), 1);
			}
			unmake(wheel);
		}
	}
}
END_TEST

START_TEST(schedule_every_at_begins_at_an_absolute_deadline)
{
	struct ww_wheel *wheel = make_from(100);
	struct ww_timer timer = WW_TIMER_INIT(note);

	OK(ww_wheel_schedule_every_at(wheel, &timer, 7130, 60));
	ck_assert_uint_eq(go(wheel, 7129), 0);
	ck_assert_uint_eq(go(wheel, 7130), 1);
	ck_assert_uint_eq(go(wheel, 7189), 0);
	ck_assert_uint_eq(go(wheel, 7190), 1);
	unmake(wheel);
}
END_TEST

START_TEST(a_jump_over_several_periods_is_one_expiry_that_says_how_many_it_missed)
{
	struct ww_wheel *wheel = make(NULL);
	struct ww_timer timer = WW_TIMER_INIT(note);
	uint64_t deadline = 0;

	OK(ww_wheel_schedule_every(wheel, &timer, 10, 10));
	ck_assert_uint_eq(go(wheel, 10), 1);
	ck_assert_uint_eq(record[0].missed, 0);
	ck_assert_uint_eq(go(wheel, 39), 1);
	ck_assert_uint_eq(record[1].missed, 1); /* 20, and 30 was missed */
	ck_assert_uint_eq(go(wheel, 40), 1);
	ck_assert_uint_eq(record[2].missed, 0);
	ck_assert_uint_eq(go(wheel, 1000000), 1);
	ck_assert_uint_eq(record[3].missed, 99995); /* 50, and 60 to 1,000,000 were missed */
	/* No drift: the next deadline is still a multiple of the period. */
	ck_assert_int_eq(ww_timer_deadline(&timer, &deadline), 1);
	ck_assert_uint_eq(deadline, 1000010);
	ck_assert_uint_eq(go(wheel, 1000005), 0);
	ck_assert_uint_eq(go(wheel, 1000015), 1);
	ck_assert_uint_eq(record[4].missed, 0);
	ck_assert_int_eq(ww_timer_deadline(&timer, &deadline), 1);
	ck_assert_uint_eq(deadline, 1000020);
	ck_assert_uint_eq(stats_of(wheel).expired, 5);
	ck_assert_uint_eq(stats_of(wheel).scheduled, 1);
	unmake(wheel);
}
END_TEST

START_TEST(a_period_of_one_tick_misses_none_when_every_tick_is_called)
{
	struct ww_wheel *wheel = make(NULL);
	struct ww_timer timer = WW_TIMER_INIT(note);

	OK(ww_wheel_schedule_every(wheel, &timer, 1, 1));
	for (uint64_t now = 1; now <= 4000; now++) {
		ck_assert_uint_eq(go(wheel, now), 1);
		ck_assert_uint_eq(record[now - 1].missed, 0);
	}
	unmake(wheel);
}
END_TEST

START_TEST(a_jump_over_all_of_time_misses_them_all)
{
	struct ww_wheel *wheel = make(NULL);
	struct ww_timer timer = WW_TIMER_INIT(note);

	OK(ww_wheel_schedule_every(wheel, &timer, 1, 1));
	ck_assert_uint_eq(go(wheel, WW_TIME_MAX), 1);
	ck_assert_uint_eq(record[0].missed, WW_TIME_MAX - 1);
	/* The next deadline would lie beyond the last time. */
	ck_assert_int_eq(ww_timer_pending(&timer), 0);
	ck_assert_uint_eq(pending_in(wheel), 0);
	unmake(wheel);
}
END_TEST

START_TEST(a_timer_whose_next_deadline_is_beyond_the_last_time_becomes_idle)
{
	static const struct {
		uint64_t start;
		uint64_t delay;
		uint64_t period;
		size_t expiries;
	} cases[] = {
	    {WW_TIME_MAX - 100, 50, 51, 1},
	    {WW_TIME_MAX - 100, 50, 50, 2},
	    {WW_TIME_MAX - 100, 50, 49, 2},
	    {WW_TIME_MAX - 100, 100, 1, 1},
	    {WW_TIME_MAX - 100, 0, WW_TIME_MAX, 1},
	    {WW_TIME_MAX - 5, 1, 1, 5},
	    {WW_TIME_MAX, 0, 1, 1},
	};

	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		struct ww_wheel *wheel = make_from(cases[i].start);
		struct ww_timer timer = WW_TIMER_INIT(note);

		OK(ww_wheel_schedule_every(wheel, &timer, cases[i].delay, cases[i].period));
		for (uint64_t now = cases[i].start; now < WW_TIME_MAX; now++) {
			go(wheel, now);
		}
		go(wheel, WW_TIME_MAX);
		ck_assert_uint_eq(recorded, cases[i].expiries);
		ck_assert_int_eq(ww_timer_pending(&timer), 0);
		ck_assert_uint_eq(pending_in(wheel), 0);
		unmake(wheel);
	}
}
END_TEST

START_TEST(a_period_of_the_whole_range_expires_twice)
{
	struct ww_wheel *wheel = make(NULL);
	struct ww_timer timer = WW_TIMER_INIT(note);

	OK(ww_wheel_schedule_every(wheel, &timer, 0, WW_TIME_MAX));
	ck_assert_uint_eq(go(wheel, 0), 1);
	ck_assert_int_eq(ww_timer_pending(&timer), 1);
	ck_assert_uint_eq(go(wheel, WW_TIME_MAX - 1), 0);
	ck_assert_uint_eq(go(wheel, WW_TIME_MAX), 1);
	ck_assert_int_eq(ww_timer_pending(&timer), 0);
	unmake(wheel);
}
END_TEST

static uint64_t told_in_callback;

static void is_scheduled_again(struct ww_wheel *wheel, struct ww_timer *timer, uint64_t missed)
{
	note(wheel, timer, missed);
	ck_assert_int_eq(ww_timer_pending(timer), 1);
	ck_assert_int_eq(ww_timer_deadline(timer, &told_in_callback), 1);
}

START_TEST(a_periodic_timer_is_already_scheduled_again_in_its_callback)
{
	struct ww_wheel *wheel = make(NULL);
	struct ww_timer timer = WW_TIMER_INIT(is_scheduled_again);

	OK(ww_wheel_schedule_every(wheel, &timer, 10, 25));
	go(wheel, 10);
	ck_assert_uint_eq(told_in_callback, 35);
	go(wheel, 100);
	ck_assert_uint_eq(told_in_callback, 110);
	unmake(wheel);
}
END_TEST

static void cancel_itself(struct ww_wheel *wheel, struct ww_timer *timer, uint64_t missed)
{
	note(wheel, timer, missed);
	if (recorded == 3) {
		ck_assert_int_eq(ww_wheel_cancel(wheel, timer), 1);
	}
}

START_TEST(a_periodic_timer_can_cancel_itself)
{
	struct ww_wheel *wheel = make(NULL);
	struct ww_timer timer = WW_TIMER_INIT(cancel_itself);

	OK(ww_wheel_schedule_every(wheel, &timer, 10, 10));
	for (uint64_t now = 0; now < 200; now++) {
		go(wheel, now);
	}
	ck_assert_uint_eq(recorded, 3);
	ck_assert_int_eq(ww_timer_pending(&timer), 0);
	unmake(wheel);
}
END_TEST

static void change_itself(struct ww_wheel *wheel, struct ww_timer *timer, uint64_t missed)
{
	note(wheel, timer, missed);
	switch (recorded) {
	case 1: /* another period */
		OK(ww_wheel_schedule_every(wheel, timer, 3, 7));
		break;
	case 3: /* a delay once, the period stays */
		ck_assert_int_eq(ww_wheel_reschedule(wheel, timer, 100), 1);
		break;
	case 5: /* a one-shot */
		OK(ww_wheel_schedule(wheel, timer, 50));
		break;
	default:
		break;
	}
}

START_TEST(a_periodic_timer_can_change_itself)
{
	static const uint64_t expected[] = {10, 13, 20, 120, 127, 177};
	struct ww_wheel *wheel = make(NULL);
	struct ww_timer timer = WW_TIMER_INIT(change_itself);

	OK(ww_wheel_schedule_every(wheel, &timer, 10, 10));
	for (uint64_t now = 0; now < 1000; now++) {
		go(wheel, now);
	}
	ck_assert_uint_eq(recorded, 6);
	for (size_t i = 0; i < 6; i++) {
		ck_assert_uint_eq(record[i].now, expected[i]);
	}
	unmake(wheel);
}
END_TEST

START_TEST(a_one_shot_can_be_made_periodic_and_counts_as_scheduled_once)
{
	struct ww_wheel *wheel = make(NULL);
	struct ww_timer timer = WW_TIMER_INIT(note);

	OK(ww_wheel_schedule(wheel, &timer, 100));
	OK(ww_wheel_schedule_every(wheel, &timer, 20, 5));
	ck_assert_uint_eq(go(wheel, 20), 1);
	ck_assert_uint_eq(go(wheel, 25), 1);
	ck_assert_uint_eq(stats_of(wheel).scheduled, 1);
	unmake(wheel);
}
END_TEST

START_TEST(a_periodic_timer_delayed_by_a_budget_loses_only_the_expiries_it_missed)
{
	struct ww_wheel *wheel = make(NULL);
	struct ww_timer every = WW_TIMER_INIT(note);
	struct ww_timer once = WW_TIMER_INIT(note);

	OK(ww_wheel_schedule(wheel, &once, 5));
	OK(ww_wheel_schedule_every(wheel, &every, 10, 10));
	ck_assert_int_eq(ww_wheel_advance(wheel, 25, 1, NULL), 1);
	ck_assert_ptr_eq(record[0].timer, &once);
	/* The next call expires it, and tells what it missed up to that call's time. */
	ck_assert_int_eq(ww_wheel_advance(wheel, 47, 1, NULL), 0);
	ck_assert_ptr_eq(record[1].timer, &every);
	ck_assert_uint_eq(record[1].missed, 3);
	ck_assert_uint_eq(go(wheel, 49), 0);
	ck_assert_uint_eq(go(wheel, 50), 1);
	unmake(wheel);
}
END_TEST

TEST_MAIN("wheel/periodic", a_periodic_timer_expires_at_first_first_plus_period_and_so_on,
    schedule_every_at_begins_at_an_absolute_deadline,
    a_jump_over_several_periods_is_one_expiry_that_says_how_many_it_missed,
    a_period_of_one_tick_misses_none_when_every_tick_is_called, a_jump_over_all_of_time_misses_them_all,
    a_timer_whose_next_deadline_is_beyond_the_last_time_becomes_idle, a_period_of_the_whole_range_expires_twice,
    a_periodic_timer_is_already_scheduled_again_in_its_callback, a_periodic_timer_can_cancel_itself,
    a_periodic_timer_can_change_itself, a_one_shot_can_be_made_periodic_and_counts_as_scheduled_once,
    a_periodic_timer_delayed_by_a_budget_loses_only_the_expiries_it_missed)
