/* A driver without threads: a descriptor for an event loop, and dispatch. */
/* tier: check, threads */

#include <poll.h>
#include <sys/timerfd.h>

#include "tests/lib/core/driver/fixture.h"

static int is_readable(void)
{
	struct pollfd descriptor = {.fd = ww_driver_fd(driver), .events = POLLIN};

	return poll(&descriptor, 1, 0);
}

START_TEST(the_descriptor_is_readable_exactly_when_something_is_due)
{
	uint64_t seed = seed_of_run("test_driver_loop");

	begin(WW_DRIVER_THREADLESS, 0);
	int fd = ww_driver_fd(driver);
	ck_assert_int_eq(is_readable(), 0);
	for (int i = 0; i < 200; i++) {
		/* Within the lowest level, where nothing is demoted. */
		uint64_t delay = seed_below(&seed, 40 * TICK);
		uint64_t due = (now_ns() + delay + TICK - 1) / TICK * TICK;
		(void)after(delay, note, NULL);
		if (due > now_ns()) {
			ck_assert_int_eq(is_readable(), 0);
			advance(due - now_ns() - 1);
			ck_assert_int_eq(is_readable(), 0);
			advance(1);
		}
		ck_assert_int_eq(is_readable(), 1);
		ck_assert_int_eq(is_readable(), 1);
		ck_assert_int_eq(ww_driver_dispatch(driver, 10), 1);
		ck_assert_int_eq(is_readable(), 0);
		ck_assert_int_eq(ww_driver_dispatch(driver, 10), 0);
		ck_assert_int_eq(is_readable(), 0);
		ck_assert_uint_eq(fired_count, (size_t)i + 1);
		advance(seed_below(&seed, 3 * TICK));
		ck_assert_int_eq(is_readable(), 0);
		ck_assert_int_eq(ww_driver_fd(driver), fd);
	}
	end();
}
END_TEST

START_TEST(an_earlier_timer_makes_the_descriptor_readable_earlier_and_a_far_one_eventually)
{
	begin(WW_DRIVER_THREADLESS, 0);
	(void)after(DAY_NS, note, NULL);
	ck_assert_int_eq(is_readable(), 0);
	(void)after_elsewhere(10 * TICK, note, NULL);
	advance(11 * TICK);
	ck_assert_int_eq(is_readable(), 1);
	ck_assert_int_eq(ww_driver_dispatch(driver, 10), 1);
	ck_assert_int_eq(is_readable(), 0);
	int dispatches = 0;
	while (fired_count == 1) {
		advance(WW_SECOND);
		if (is_readable()) {
			dispatches++;
			ck_assert_int_ge(ww_driver_dispatch(driver, 10), 0);
		}
		ck_assert(is_readable() == 0);
	}
	ck_assert_uint_lt(fired[1].now, fired[1].deadline + WW_SECOND + TICK);
	ck_assert_int_le(dispatches, 8);
	end();
}
END_TEST

START_TEST(asking_for_a_later_wake_up_does_not_put_off_an_earlier_one)
{
	begin(WW_DRIVER_THREADLESS, 0);
	(void)after(10 * TICK, note, NULL);
	/* Like a thread that saw the alarm's former setting and comes late. */
	ww_driver_rearm(driver, now_ns() / TICK + 30);
	advance(11 * TICK);
	ck_assert_int_eq(is_readable(), 1);
	ck_assert_int_eq(ww_driver_dispatch(driver, 1), 1);
	end();
}
END_TEST

START_TEST(dispatch_respects_the_budget_and_the_rest_keeps_the_descriptor_readable)
{
	static const uint32_t budgets[] = {1, 2, 3, 7, 100, UINT32_MAX};

	for (size_t queue = 1; queue <= 1000; queue *= 10)
		for (size_t b = 0; b < sizeof budgets / sizeof budgets[0]; b++) {
			struct ww_driver_config config = config_of(WW_DRIVER_THREADLESS, 0);
			size_t before = 0;
			config.queue = queue;
			begin_with(&config);
			for (int i = 0; i < 50; i++)
				(void)after((uint64_t)i % 5 * TICK, note, NULL);
			advance(10 * TICK);
			while (is_readable()) {
				int ran = ww_driver_dispatch(driver, budgets[b]);
				ck_assert(ran >= 0 && (uint32_t)ran <= budgets[b]);
				ck_assert(fired_count == before + (size_t)ran);
				ck_assert(ran > 0 || fired_count == 50);
				before = fired_count;
				ck_assert(fired_count == 50 || is_readable());
			}
			ck_assert_uint_eq(fired_count, 50);
			for (size_t i = 1; i < 50; i++)
				ck_assert(fired[i].deadline >= fired[i - 1].deadline);
			end();
		}
	begin(WW_DRIVER_THREADLESS, 0);
	ck_assert_int_eq(ww_driver_dispatch(driver, 0), WW_EINVAL);
	end();
}
END_TEST

struct canceller {
	ww_handle *handle;
	size_t count;
};

static void cancel_all(struct ww_driver *of, const struct ww_firing *firing, void *user)
{
	struct canceller *canceller = user;

	note(of, firing, user);
	for (size_t i = 0; i < canceller->count; i++)
		ck_assert(ww_driver_cancel(of, canceller->handle[i]) == 1);
}

START_TEST(room_made_by_a_cancel_is_not_forgotten)
{
	/*
	 * The queue holds 4. The first callback, or the loop between two calls, cancels the other 3, and 4 more are
	 * due.
	 */
	for (int inside = 0; inside < 2; inside++)
		for (uint32_t budget = 1; budget <= 2; budget++) {
			struct ww_driver_config config = config_of(WW_DRIVER_THREADLESS, 0);
			ww_handle handle[3];
			struct canceller canceller = {handle, inside ? 3 : 0};
			config.queue = 4;
			begin_with(&config);
			(void)after(0, cancel_all, &canceller);
			for (int i = 0; i < 3; i++)
				handle[i] = after(TICK, note, NULL);
			for (int i = 0; i < 4; i++)
				(void)after(2 * TICK, note, NULL);
			advance(4 * TICK);
			ck_assert_int_ge(ww_driver_dispatch(driver, inside ? budget : 1), 1);
			if (!inside)
				for (int i = 0; i < 3; i++)
					ck_assert_int_eq(ww_driver_cancel(driver, handle[i]), 1);
			while (is_readable())
				ck_assert_int_ge(ww_driver_dispatch(driver, budget), 0);
			ck_assert_uint_eq(fired_count, 5);
			/* A timer scheduled in that very tick is noticed. */
			(void)ww_driver_schedule_at(driver, 0, note, NULL, NULL);
			ck_assert_int_eq(is_readable(), 1);
			ck_assert_int_eq(ww_driver_dispatch(driver, budget), 1);
			end();
		}
}
END_TEST

START_TEST(room_made_by_a_cancel_between_two_calls_leaves_no_trace)
{
	struct ww_driver_config config = config_of(WW_DRIVER_THREADLESS, 0);
	ww_handle handle[9];

	config.queue = 4;
	begin_with(&config);
	for (int i = 0; i < 9; i++)
		handle[i] = after(0, note, NULL);
	advance(TICK);
	ck_assert_int_eq(ww_driver_dispatch(driver, 1), 1);
	for (int i = 0; i < 9; i++)
		(void)ww_driver_cancel(driver, handle[i]);
	while (is_readable())
		ck_assert_int_eq(ww_driver_dispatch(driver, 5), 0);
	OK(ww_driver_schedule_at(driver, 0, note, NULL, NULL));
	ck_assert_int_eq(is_readable(), 1);
	settle();
	ck_assert_uint_eq(fired_count, 2);
	end();
}
END_TEST

static void dispatch_inside(struct ww_driver *of, const struct ww_firing *firing, void *user)
{
	int *answers = user;

	(void)firing;
	answers[0] = ww_driver_dispatch(of, 1);
	answers[1] = ww_driver_settle(of);
}

START_TEST(a_nested_dispatch_is_refused)
{
	int answers[2] = {77, 77};

	begin(WW_DRIVER_THREADLESS, 0);
	(void)after(0, dispatch_inside, answers);
	advance(TICK);
	ck_assert_int_eq(ww_driver_dispatch(driver, 5), 1);
	ck_assert_int_eq(answers[0], WW_EBUSY);
	ck_assert_int_eq(answers[1], WW_EBUSY);
	(void)after(0, note, NULL);
	go(TICK);
	ck_assert_uint_eq(fired_count, 1);
	end();
}
END_TEST

static void look_inside(struct ww_driver *of, const struct ww_firing *firing, void *user)
{
	note(of, firing, user);
	ck_assert_int_eq(is_readable(), 0);
	/* What comes due now, and what waits for room in the queue, is left for later. */
	(void)after(0, note, NULL);
	advance(TICK);
	ck_assert_int_eq(is_readable(), 0);
	ck_assert_int_eq(ww_driver_dispatch(of, 1), WW_EBUSY);
	ck_assert_int_eq(is_readable(), 0);
}

START_TEST(a_loop_nested_in_a_callback_does_not_find_the_descriptor_readable)
{
	struct ww_driver_config config = config_of(WW_DRIVER_THREADLESS, 0);

	config.queue = 2;
	begin_with(&config);
	for (int i = 0; i < 6; i++)
		(void)after(0, look_inside, NULL);
	advance(TICK);
	for (size_t i = 1; i <= 12; i++) {
		ck_assert_int_eq(is_readable(), 1);
		ck_assert_int_eq(ww_driver_dispatch(driver, 1), 1);
		ck_assert_uint_eq(fired_count, i);
	}
	ck_assert_int_eq(ww_driver_dispatch(driver, 1), 0);
	ck_assert_int_eq(is_readable(), 0);
	end();
}
END_TEST

static void *dispatch_elsewhere(void *argument)
{
	(void)argument;
	return (void *)(intptr_t)ww_driver_dispatch(driver, 1);
}

START_TEST(a_second_thread_that_dispatches_is_refused)
{
	struct gate gate;
	pthread_t thread;
	void *result;

	gate_init(&gate);
	begin(WW_DRIVER_THREADLESS, 0);
	(void)after(0, hold, &gate);
	advance(TICK);
	ck_assert_int_eq(pthread_create(&thread, NULL, dispatch_elsewhere, NULL), 0);
	gate_wait(&gate, 1);
	ck_assert_int_eq(ww_driver_dispatch(driver, 1), WW_EBUSY);
	gate_open(&gate, 1);
	ck_assert_int_eq(pthread_join(thread, &result), 0);
	ck_assert_int_eq((int)(intptr_t)result, 1);
	end();
}
END_TEST

static void come_again(struct ww_driver *of, const struct ww_firing *firing, void *user)
{
	int *left = user;

	if ((*left)-- > 0)
		OK(ww_driver_schedule_at(of, firing->deadline, come_again, user, NULL));
}

START_TEST(settle_dispatches_all_that_is_due_and_nothing_else)
{
	int left = 1000;

	begin(WW_DRIVER_THREADLESS, 0);
	(void)after(0, come_again, &left);
	(void)after(10 * TICK, note, NULL);
	go(TICK);
	ck_assert_int_eq(left, -1);
	ck_assert_uint_eq(fired_count, 0);
	ck_assert_uint_eq(stats_of().pending, 1);
	end();
}
END_TEST

START_TEST(a_dispatch_ends_although_a_callback_reschedules_itself_to_now)
{
	int left = 1000000;

	begin(WW_DRIVER_THREADLESS, 0);
	(void)after(0, come_again, &left);
	advance(TICK);
	ck_assert_int_eq(ww_driver_dispatch(driver, 1000), 1);
	ck_assert_int_eq(is_readable(), 1);
	end();
}
END_TEST

START_TEST(a_stop_makes_the_descriptor_readable_and_dispatch_answers_closed)
{
	begin(WW_DRIVER_THREADLESS, 0);
	OK(ww_driver_stop(driver, NULL, NULL, NULL));
	ck_assert_int_eq(is_readable(), 1);
	ck_assert_int_eq(ww_driver_dispatch(driver, 1), WW_ECLOSED);
	end();
}
END_TEST

START_TEST(the_statistics_count_each_dispatch_as_a_wakeup)
{
	begin(WW_DRIVER_THREADLESS, 0);
	for (uint64_t i = 0; i < 10; i++) {
		ck_assert_uint_eq(stats_of().wakeups, i);
		ck_assert_int_eq(ww_driver_dispatch(driver, 1), 0);
	}
	end();
}
END_TEST

START_TEST(on_a_real_clock_an_idle_driver_has_no_alarm_and_a_due_one_is_readable)
{
	struct ww_driver_config config = config_of(WW_DRIVER_THREADLESS, 0);
	struct itimerspec setting;
	struct ww_clock *clocks[] = {ww_clock_elapsed(), ww_clock_wall(), ww_clock_awake()};
	uint64_t now;

	for (int i = 0; i < 3; i++) {
		config.clock = clocks[i];
		begin_with(&config);
		ck_assert_int_eq(is_readable(), 0);
		ck_assert_int_eq(timerfd_gettime(ww_driver_fd(driver), &setting), 0);
		ck_assert_int_eq(setting.it_value.tv_sec || setting.it_value.tv_nsec, 0);
		OK(ww_driver_now(driver, &now));
		OK(ww_driver_schedule_at(driver, now - 5 * TICK, note, NULL, NULL));
		UNTIL(is_readable());
		ck_assert_int_eq(ww_driver_dispatch(driver, 5), 1);
		ck_assert_int_eq(is_readable(), 0);
		ck_assert_int_eq(timerfd_gettime(ww_driver_fd(driver), &setting), 0);
		ck_assert_int_eq(setting.it_value.tv_sec || setting.it_value.tv_nsec, 0);
		OK(ww_driver_destroy(driver));
	}
}
END_TEST

TEST_MAIN("driver/loop", the_descriptor_is_readable_exactly_when_something_is_due,
    an_earlier_timer_makes_the_descriptor_readable_earlier_and_a_far_one_eventually,
    asking_for_a_later_wake_up_does_not_put_off_an_earlier_one,
    dispatch_respects_the_budget_and_the_rest_keeps_the_descriptor_readable, room_made_by_a_cancel_is_not_forgotten,
    room_made_by_a_cancel_between_two_calls_leaves_no_trace, a_nested_dispatch_is_refused,
    a_loop_nested_in_a_callback_does_not_find_the_descriptor_readable, a_second_thread_that_dispatches_is_refused,
    settle_dispatches_all_that_is_due_and_nothing_else, a_dispatch_ends_although_a_callback_reschedules_itself_to_now,
    a_stop_makes_the_descriptor_readable_and_dispatch_answers_closed, the_statistics_count_each_dispatch_as_a_wakeup,
    on_a_real_clock_an_idle_driver_has_no_alarm_and_a_due_one_is_readable)
