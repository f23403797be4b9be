/* When callbacks run: never early, in order, in the tick of the deadline. And how rarely the driver wakes. */
/* tier: check, threads, forks */

#include <sys/timerfd.h>

#include "tests/lib/core/driver/fixture.h"

/* The first time at which the driver's ticks have reached the deadline. */
static uint64_t tick_end(uint64_t deadline)
{
	return (deadline + TICK - 1) / TICK * TICK;
}

START_TEST(at_every_phase_of_a_tick_a_timer_fires_in_the_tick_of_its_deadline_and_not_a_ns_before)
{
	static const uint64_t phases[] = {0, 1, 2, TICK / 2 - 1, TICK / 2, TICK / 2 + 1, TICK - 2, TICK - 1};
	static const uint64_t delays[] = {0, 1, TICK - 1, TICK, TICK + 1, 2 * TICK, 49 * TICK, 50 * TICK, 51 * TICK,
	    999 * TICK + 1, WW_SECOND, 59 * WW_SECOND + 999999999, 61 * WW_SECOND};
	size_t phase_count = sizeof phases / sizeof phases[0];

	begin(0, 1);
	for (size_t p = 0; p < phase_count; p++)
		for (size_t d = 0; d < sizeof delays / sizeof delays[0]; d++) {
			uint64_t start = (now_ns() / TICK + 2) * TICK + phases[p];
			uint64_t due = tick_end(start + delays[d]);
			go(start - now_ns());
			fired_count = 0;
			(void)after(delays[d], note, NULL);
			if (due > start) {
				go(due - 1 - start);
				ck_assert_uint_eq(fired_count, 0);
				advance(1);
			}
			settle();
			ck_assert_uint_eq(fired_count, 1);
			ck_assert_uint_eq(fired[0].deadline, start + delays[d]);
			ck_assert_uint_eq(fired[0].now, due > start ? due : start);
		}
	end();
}
END_TEST

START_TEST(an_absolute_deadline_is_met_and_a_past_one_fires_at_once)
{
	ww_handle handle;

	begin(0, 1);
	OK(ww_driver_schedule_at(driver, START + 7 * TICK, note, NULL, &handle));
	OK(ww_driver_schedule_at(driver, 0, note, NULL, NULL));
	OK(ww_driver_schedule_at(driver, START, note, NULL, NULL));
	OK(ww_driver_schedule_at(driver, START - START % TICK, note, NULL, NULL));
	settle();
	/* START lies within a tick, which counts only once it is complete. */
	ck_assert_uint_eq(fired_count, 2);
	go(TICK);
	ck_assert_uint_eq(fired_count, 3);
	go(tick_end(START + 7 * TICK) - 1 - now_ns());
	ck_assert_uint_eq(times_fired(handle), 0);
	go(1);
	ck_assert_uint_eq(times_fired(handle), 1);
	end();
}
END_TEST

START_TEST(deadlines_beyond_the_range_are_refused_and_the_last_ones_are_met)
{
	ww_handle handle = 77;
	uint64_t left;

	begin(0, 1);
	ck_assert_int_eq(ww_driver_schedule_at(driver, WW_DRIVER_TIME_MAX + 1, note, NULL, &handle), WW_EOVERFLOW);
	ck_assert_int_eq(ww_driver_schedule_at(driver, UINT64_MAX, note, NULL, &handle), WW_EOVERFLOW);
	ck_assert_int_eq(ww_driver_schedule(driver, WW_DRIVER_TIME_MAX - START + 1, note, NULL, &handle), WW_EOVERFLOW);
	ck_assert_int_eq(ww_driver_schedule(driver, UINT64_MAX, note, NULL, &handle), WW_EOVERFLOW);
	ck_assert_int_eq(
	    ww_driver_schedule_every(driver, UINT64_MAX - START + 1, 1, 0, note, NULL, &handle), WW_EOVERFLOW);
	ck_assert_int_eq(
	    ww_driver_schedule_every(driver, 0, WW_DRIVER_TIME_MAX + 1, 0, note, NULL, &handle), WW_EOVERFLOW);
	ck_assert_uint_eq(handle, 77);
	OK(ww_driver_schedule_at(driver, WW_DRIVER_TIME_MAX, note, NULL, NULL));
	handle = after(WW_DRIVER_TIME_MAX - START, note, NULL);
	ck_assert_int_eq(ww_driver_reschedule(driver, handle, WW_DRIVER_TIME_MAX - START + 1), WW_EOVERFLOW);
	ck_assert_int_eq(ww_driver_reschedule(driver, handle, UINT64_MAX), WW_EOVERFLOW);
	ck_assert_int_eq(ww_driver_time_left(driver, handle, &left), 1);
	ck_assert_uint_eq(left, WW_DRIVER_TIME_MAX - START);
	go(WW_DRIVER_TIME_MAX - START - 1);
	ck_assert_uint_eq(fired_count, 0);
	go(TICK);
	ck_assert_uint_eq(fired_count, 2);
	/* The clock goes on beyond the last deadline. */
	ck_assert_int_eq(ww_driver_schedule(driver, 0, note, NULL, NULL), WW_EOVERFLOW);
	OK(ww_driver_schedule_at(driver, 5, note, NULL, NULL));
	go(WW_CLOCK_MAX - now_ns());
	ck_assert_uint_eq(fired_count, 3);
	end();
}
END_TEST

START_TEST(after_a_stall_all_overdue_timers_fire_in_order_of_tick)
{
	/* One worker, so that calls start in order. Timers of one thread, and of several threads with a wheel each. */
	for (int threads = 0; threads < 2; threads++) {
		struct ww_driver_config config = config_of(0, 1);
		uint64_t seed = 12345;
		config.shards = 4;
		begin_with(&config);
		for (int i = 0; i < 400; i++) {
			uint64_t delay = seed_next(&seed) % (i % 2 ? 200 * TICK : 90 * WW_SECOND);
			(void)(threads ? after_elsewhere(delay, note, NULL) : after(delay, note, NULL));
		}
		ck_assert_uint_eq(fired_count, 0);
		go(100 * WW_SECOND);
		ck_assert_uint_eq(fired_count, 400);
		for (size_t i = 1; i < fired_count; i++)
			ck_assert_uint_ge(tick_end(fired[i].deadline), tick_end(fired[i - 1].deadline));
		end();
	}
}
END_TEST

START_TEST(after_a_stall_the_order_holds_even_with_a_short_queue)
{
	struct ww_driver_config config = config_of(0, 1);
	uint64_t seed = 54321;

	config.shards = 4;
	config.queue = 3;
	begin_with(&config);
	for (int i = 0; i < 200; i++)
		(void)after_elsewhere(seed_next(&seed) % (100 * TICK), note, NULL);
	go(WW_SECOND);
	ck_assert_uint_eq(fired_count, 200);
	for (size_t i = 1; i < fired_count; i++)
		ck_assert_uint_ge(tick_end(fired[i].deadline), tick_end(fired[i - 1].deadline));
	end();
}
END_TEST

START_TEST(a_timer_in_three_days_wakes_an_idle_driver_at_most_eight_times)
{
	static const uint64_t ticks[] = {TICK, 10 * TICK, WW_SECOND};
	static const uint64_t steps[] = {60 * WW_SECOND, 977 * WW_SECOND, 3600 * WW_SECOND};

	for (size_t i = 0; i < 3; i++) {
		struct ww_driver_config config = config_of(0, 1);
		config.tick_ns = ticks[i];
		begin_with(&config);
		ww_handle handle = after(3 * DAY_NS, note, NULL);
		uint64_t due = now_ns() + 3 * DAY_NS;
		while (now_ns() + steps[i] < due)
			go(steps[i]);
		ck_assert_uint_eq(times_fired(handle), 0);
		go(due - now_ns() + ticks[i]);
		ck_assert_uint_eq(times_fired(handle), 1);
		ck_assert_uint_le(stats_of().wakeups, 8);
		/* And never from then on. */
		uint64_t wakeups = stats_of().wakeups;
		for (int day = 0; day < 60; day++)
			go(DAY_NS);
		ck_assert_uint_eq(stats_of().wakeups, wakeups);
		end();
	}
}
END_TEST

static struct itimerspec alarm_of(const struct ww_driver *of)
{
	struct itimerspec setting;

	ck_assert_int_eq(timerfd_gettime(ww_alarm_fd(of->alarm), &setting), 0);
	return setting;
}

START_TEST(in_real_time_an_idle_driver_has_no_alarm_set)
{
	struct ww_driver *real;
	struct ww_driver_stats stats;
	struct itimerspec setting;

	OK(ww_driver_create(&real, NULL));
	setting = alarm_of(real);
	ck_assert_int_eq(setting.it_value.tv_sec || setting.it_value.tv_nsec, 0);
	OK(ww_driver_stats(real, &stats));
	ck_assert_uint_eq(stats.wakeups, 0);
	OK(ww_driver_schedule(real, 0, note, NULL, NULL));
	UNTIL(fired_count == 1 && real->armed == WW_NEVER);
	setting = alarm_of(real);
	ck_assert_int_eq(setting.it_value.tv_sec || setting.it_value.tv_nsec, 0);
	OK(ww_driver_destroy(real));
}
END_TEST

START_TEST(in_real_time_the_alarm_is_set_to_the_tick_of_the_deadline_or_before)
{
	struct ww_driver *real;
	struct itimerspec setting;
	uint64_t now;

	OK(ww_driver_create(&real, NULL));
	OK(ww_driver_schedule(real, 40 * TICK, note, NULL, NULL));
	OK(ww_driver_now(real, &now));
	setting = alarm_of(real);
	uint64_t left = (uint64_t)setting.it_value.tv_sec * WW_SECOND + (uint64_t)setting.it_value.tv_nsec;
	/* Nothing is left if it has gone off meanwhile. */
	ck_assert_uint_le(now + left, tick_end(now + 40 * TICK));
	OK(ww_driver_destroy(real));
}
END_TEST

START_TEST(with_ticks_of_a_second_far_deadlines_are_met_from_any_time)
{
	/* From within a turn of a level, a deadline in the next turn, with nothing else pending. */
	static const uint64_t delays[] = {
	    1, 59, 60, 61, 1500, 3599, 3600, 90000, 604799, 604800, 604801, 700000, 1300000, 30000000};
	struct ww_driver_config config = config_of(0, 1);

	config.tick_ns = WW_SECOND;
	begin_with(&config);
	for (int turn = 0; turn < 3; turn++)
		for (size_t i = 0; i < sizeof delays / sizeof delays[0]; i++) {
			uint64_t weeks = now_ns() / (7 * DAY_NS) + 2;
			go(weeks * 7 * DAY_NS - (turn ? 800 : 1) * WW_SECOND - now_ns());
			fired_count = 0;
			(void)after(delays[i] * WW_SECOND, note, NULL);
			go(delays[i] * WW_SECOND - 1);
			ck_assert_uint_eq(fired_count, 0);
			go(1);
			ck_assert_uint_eq(fired_count, 1);
		}
	end();
}
END_TEST

START_TEST(a_timer_scheduled_behind_a_cancelled_one_is_not_forgotten)
{
	static const uint64_t delays[] = {0, 1, 2, 49, 50, 51, 999, 1000, 61000, 3700000, 90000000, 700000000};
	size_t count = sizeof delays / sizeof delays[0];

	begin(0, 1);
	for (size_t first = 0; first < count; first++)
		for (size_t second = 0; second < count; second++) {
			ww_handle gone = after(delays[first] * TICK, note, NULL);
			if (second % 2 == 0)
				(void)ww_driver_cancel(driver, gone);
			fired_count = 0;
			ww_handle kept = after(delays[second] * TICK, note, NULL);
			if (second % 2 == 1)
				(void)ww_driver_cancel(driver, gone);
			go(delays[second] * TICK + TICK);
			ck_assert_uint_eq(times_fired(kept), 1);
		}
	end();
}
END_TEST

TEST_MAIN("driver/precision", at_every_phase_of_a_tick_a_timer_fires_in_the_tick_of_its_deadline_and_not_a_ns_before,
    an_absolute_deadline_is_met_and_a_past_one_fires_at_once,
    deadlines_beyond_the_range_are_refused_and_the_last_ones_are_met,
    after_a_stall_all_overdue_timers_fire_in_order_of_tick, after_a_stall_the_order_holds_even_with_a_short_queue,
    a_timer_in_three_days_wakes_an_idle_driver_at_most_eight_times, in_real_time_an_idle_driver_has_no_alarm_set,
    in_real_time_the_alarm_is_set_to_the_tick_of_the_deadline_or_before,
    with_ticks_of_a_second_far_deadlines_are_met_from_any_time,
    a_timer_scheduled_behind_a_cancelled_one_is_not_forgotten)
