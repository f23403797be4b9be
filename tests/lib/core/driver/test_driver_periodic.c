/* Periodic timers: they do not drift, they count missed periods, and their calls overlap only on request. */
/* tier: quick, threads */

#include "tests/lib/core/driver/fixture.h"

START_TEST(deadlines_are_first_plus_n_periods_without_drift)
{
	uint64_t period = 3 * TICK + 700001;
	uint64_t first;

	begin(0, 2);
	first = now_ns() + 5 * TICK;
	ww_handle handle = every(5 * TICK, period, 0, note, NULL);
	for (int i = 0; i < 4000; i++)
		go(TICK / 2 + 77);
	ck_assert_uint_gt(fired_count, 500);
	for (size_t i = 0; i < fired_count; i++) {
		ck_assert_uint_eq(fired[i].handle, handle);
		ck_assert(fired[i].deadline == first + i * period);
		ck_assert(fired[i].missed == 0);
		ck_assert(fired[i].now >= fired[i].deadline && fired[i].now < fired[i].deadline + 2 * TICK);
	}
	ck_assert_int_eq(ww_driver_cancel(driver, handle), 1);
	fired_count = 0;
	go(WW_SECOND);
	ck_assert_uint_eq(fired_count, 0);
	end();
}
END_TEST

START_TEST(a_period_shorter_than_a_tick_fires_every_tick)
{
	begin(0, 2);
	for (uint64_t period = 1; period < TICK; period *= 997) {
		fired_count = 0;
		ww_handle handle = every(0, period, 0, note, NULL);
		uint64_t missed = 0;
		uint64_t before = now_ns() - period;
		for (int i = 0; i < 100; i++)
			go(TICK);
		ck_assert_uint_eq(fired_count, 100);
		/* Every period was either called or missed. */
		for (size_t i = 0; i < 100; i++) {
			missed += fired[i].missed;
			ck_assert(fired[i].deadline == before + (i + 1 + missed) * period);
		}
		ck_assert_int_eq(ww_driver_cancel(driver, handle), 1);
	}
	end();
}
END_TEST

START_TEST(the_next_call_is_told_what_a_stall_skipped)
{
	for (uint32_t flags = 0; flags <= WW_EVERY_OVERLAP; flags++) {
		begin(0, 2);
		uint64_t first = now_ns() + 10 * TICK;
		(void)every(10 * TICK, 10 * TICK, flags, note, NULL);
		go(57 * TICK);
		ck_assert_uint_eq(fired_count, 1);
		ck_assert_uint_eq(fired[0].deadline, first);
		ck_assert_uint_eq(fired[0].missed, 0);
		go(4 * TICK);
		ck_assert_uint_eq(fired_count, 2);
		ck_assert_uint_eq(fired[1].deadline, first + 50 * TICK);
		ck_assert_uint_eq(fired[1].missed, 4);
		go(10 * TICK);
		ck_assert_uint_eq(fired_count, 3);
		ck_assert_uint_eq(fired[2].missed, 0);
		end();
	}
}
END_TEST

/* Records, then waits. */
static void note_and_hold(struct ww_driver *of, const struct ww_firing *firing, void *user)
{
	note(of, firing, user);
	hold(of, firing, user);
}

START_TEST(calls_do_not_overlap_and_the_next_one_is_told_what_passed)
{
	struct gate gate;

	gate_init(&gate);
	begin(0, 4);
	uint64_t first = now_ns() + TICK;
	(void)every(TICK, TICK, 0, note_and_hold, &gate);
	advance(2 * TICK);
	gate_wait(&gate, 1);
	/* Other timers show that the driver goes on during the call. */
	for (int i = 0; i < 10; i++) {
		ww_handle other = after(0, note, NULL);
		advance(TICK);
		UNTIL(times_fired(other) == 1);
		/* The other call has recorded, and is about to end. */
		UNTIL(stats_of().running == 1);
	}
	ck_assert_int_eq(gate.most, 1);
	gate_open(&gate, 1);
	UNTIL(stats_of().pending == 1);
	advance(TICK);
	gate_wait(&gate, 1);
	ck_assert_uint_eq(fired[0].deadline, first);
	ck_assert_uint_eq(fired[11].deadline, first + 11 * TICK);
	ck_assert_uint_eq(fired[11].missed, 10);
	ck_assert_int_eq(gate.most, 1);
	gate_open(&gate, 1);
	end();
}
END_TEST

START_TEST(calls_overlap_on_request)
{
	struct gate gate;

	gate_init(&gate);
	begin(0, 3);
	uint64_t first = now_ns() + TICK;
	ww_handle handle = every(TICK, 2 * TICK, WW_EVERY_OVERLAP, note_and_hold, &gate);
	advance(2 * TICK);
	for (int inside = 1; inside <= 3; inside++) {
		gate_wait(&gate, 1);
		ck_assert_int_eq(gate.inside, inside);
		ck_assert_uint_eq(fired_count, (size_t)inside);
		ck_assert_uint_eq(fired[inside - 1].deadline, first + (uint64_t)(inside - 1) * 2 * TICK);
		ck_assert_uint_eq(fired[inside - 1].handle, handle);
		advance(2 * TICK);
	}
	/* Never more at a time than workers. */
	UNTIL(stats_of().queued == 1);
	ck_assert_int_eq(gate.inside, 3);
	gate_open(&gate, 4);
	settle();
	ck_assert_int_eq(gate.left, 4);
	ck_assert_uint_eq(stats_of().pending, 1);
	end();
}
END_TEST

static void *cancel_and_wait(void *argument)
{
	ww_handle handle = *(ww_handle *)argument;

	return (void *)(intptr_t)ww_driver_cancel_wait(driver, handle);
}

/* Cancel it in another thread, and return when it is cancelled: that thread may wait. */
static pthread_t start_cancel(ww_handle *handle)
{
	pthread_t thread;
	uint64_t left;

	ck_assert_int_eq(pthread_create(&thread, NULL, cancel_and_wait, handle), 0);
	UNTIL(ww_driver_time_left(driver, *handle, &left) == WW_ESTALE);
	return thread;
}

/* Wait for that thread. Returns what the call has answered. */
static int end_cancel(pthread_t thread)
{
	void *result;

	ck_assert_int_eq(pthread_join(thread, &result), 0);
	return (int)(intptr_t)result;
}

/* Let a call come due in each tick until so many wait in the queue. */
static void queue_calls(uint64_t count)
{
	for (uint64_t i = 1; i <= count; i++) {
		advance(TICK);
		UNTIL(stats_of().queued == i);
	}
}

START_TEST(a_cancel_in_time_stops_queued_overlapping_calls)
{
	struct gate gate;
	struct gate other;

	gate_init(&gate);
	gate_init(&other);
	begin(0, 1);
	(void)after(0, hold, &other);
	advance(TICK);
	gate_wait(&other, 1);
	ww_handle handle = every(0, TICK, WW_EVERY_OVERLAP, hold, &gate);
	queue_calls(3);
	ck_assert_int_eq(ww_driver_cancel_wait(driver, handle), 1);
	ck_assert_int_eq(ww_driver_cancel(driver, handle), WW_ESTALE);
	gate_open(&other, 1);
	go(10 * TICK);
	ck_assert_int_eq(gate.most, 0);
	ck_assert_uint_eq(stats_of().pending, 0);
	ck_assert_uint_eq(stats_of().fired, 1);
	/* The timer and its calls have released their records. */
	for (uint32_t i = 0; i < driver->shard_count; i++)
		ck_assert_uint_eq(records_taken(i), 0);
	end();
}
END_TEST

START_TEST(moving_a_timer_keeps_its_queued_and_running_overlapping_calls)
{
	struct gate gate;

	gate_init(&gate);
	begin(0, 1);
	ww_handle handle = every(0, TICK, WW_EVERY_OVERLAP, note_and_hold, &gate);
	advance(TICK);
	gate_wait(&gate, 1);
	advance(TICK);
	UNTIL(stats_of().queued == 1);
	ck_assert_int_eq(ww_driver_reschedule(driver, handle, DAY_NS), 1);
	gate_open(&gate, 3);
	settle();
	ck_assert_uint_eq(times_fired(handle), 2);
	go(DAY_NS - TICK);
	ck_assert_uint_eq(times_fired(handle), 2);
	go(2 * TICK);
	ck_assert_uint_eq(times_fired(handle), 3);
	ck_assert_int_eq(ww_driver_cancel(driver, handle), 1);
	end();
}
END_TEST

START_TEST(cancel_wait_waits_only_for_overlapping_calls_that_run)
{
	struct gate gate;
	struct gate other;

	gate_init(&gate);
	gate_init(&other);
	begin(0, 3);
	(void)after(0, hold, &other);
	ww_handle handle = every(0, 2 * TICK, WW_EVERY_OVERLAP, hold, &gate);
	advance(TICK);
	gate_wait(&other, 1);
	advance(2 * TICK);
	gate_wait(&gate, 2);
	/* Behind it in the queue are a firing that takes the next worker, and a call of the timer that finds none. */
	(void)after(0, hold, &other);
	queue_calls(2);
	pthread_t thread = start_cancel(&handle);
	gate_open(&gate, 1);
	gate_wait(&other, 1);
	ck_assert_int_eq(gate.left, 1);
	gate_open(&gate, 1);
	/* The worker takes up the call, which does not begin. */
	ck_assert_int_eq(end_cancel(thread), 0);
	ck_assert_int_eq(gate.left, 2);
	gate_open(&other, 2);
	settle();
	ck_assert_int_eq(gate.left, 2);
	ck_assert_uint_eq(stats_of().fired, 4);
	end();
}
END_TEST

START_TEST(cancel_wait_does_not_wait_for_a_worker_to_take_a_call_that_will_not_run)
{
	struct gate gate;
	struct gate other;

	gate_init(&gate);
	gate_init(&other);
	begin(0, 1);
	ww_handle handle = every(0, 2 * TICK, WW_EVERY_OVERLAP, hold, &gate);
	advance(TICK);
	gate_wait(&gate, 1);
	(void)after(0, hold, &other);
	queue_calls(2);
	pthread_t thread = start_cancel(&handle);
	gate_open(&gate, 1);
	/* The only worker is in the other callback, and the call is still queued behind that. */
	ck_assert_int_eq(end_cancel(thread), 0);
	ck_assert_int_eq(other.left, 0);
	gate_open(&other, 1);
	settle();
	end();
}
END_TEST

static void move_own(struct ww_driver *of, const struct ww_firing *firing, void *user)
{
	note(of, firing, user);
	if (fired_count == 1)
		ck_assert(ww_driver_reschedule(of, firing->handle, 100 * TICK) == 0);
}

START_TEST(a_moved_periodic_timer_keeps_its_period_and_counts_from_there)
{
	begin(0, 2);
	uint64_t start = now_ns();
	ww_handle handle = every(10 * TICK, 10 * TICK, 0, note, NULL);
	go(5 * TICK);
	ck_assert_int_eq(ww_driver_reschedule(driver, handle, 3 * TICK), 1);
	for (int i = 0; i < 30; i++)
		go(TICK);
	ck_assert_uint_eq(fired_count, 3);
	for (size_t i = 0; i < 3; i++)
		ck_assert_uint_eq(fired[i].deadline, start + (8 + 10 * i) * TICK);
	ck_assert_int_eq(ww_driver_cancel(driver, handle), 1);
	/* In its own callback. */
	fired_count = 0;
	(void)every(TICK, 10 * TICK, 0, move_own, NULL);
	uint64_t now = now_ns();
	for (int i = 0; i < 125; i++)
		go(TICK);
	ck_assert_uint_eq(fired_count, 4);
	for (size_t i = 1; i < 4; i++)
		ck_assert_uint_eq(fired[i].deadline, now + 2 * TICK + (100 + 10 * (i - 1)) * TICK);
	end();
}
END_TEST

START_TEST(the_time_left_of_a_running_timer_is_the_time_to_its_next_call)
{
	struct gate gate;
	uint64_t left = 99;

	gate_init(&gate);
	begin(0, 1);
	ww_handle handle = every(0, 10 * TICK, 0, hold, &gate);
	advance(TICK);
	gate_wait(&gate, 1);
	ck_assert_int_eq(ww_driver_time_left(driver, handle, &left), 1);
	ck_assert_uint_eq(left, 9 * TICK);
	advance(20 * TICK);
	ck_assert_int_eq(ww_driver_time_left(driver, handle, &left), 1);
	ck_assert_uint_eq(left, 0);
	gate_open(&gate, 1);
	UNTIL(stats_of().pending == 1);
	ck_assert_int_eq(ww_driver_time_left(driver, handle, &left), 1);
	ck_assert_uint_eq(left, 9 * TICK);
	end();
}
END_TEST

START_TEST(a_timer_whose_next_deadline_is_beyond_the_range_ends_after_its_call)
{
	for (uint32_t flags = 0; flags <= WW_EVERY_OVERLAP; flags++)
		for (int cancel = 0; cancel < 4; cancel++) {
			struct gate gate;
			uint64_t left = 99;
			gate_init(&gate);
			begin(0, 1);
			ww_handle blocker = after(0, hold, &gate);
			advance(TICK);
			gate_wait(&gate, 1);
			ww_handle handle = every(0, WW_DRIVER_TIME_MAX, flags, hold, &gate);
			advance(TICK);
			UNTIL(stats_of().queued == 1);
			/* New timers do not get its record. */
			for (int i = 0; i < 5; i++)
				ck_assert_uint_ne(after(DAY_NS, note, NULL) >> 32, handle >> 32);
			if (cancel == 1)
				ck_assert_int_eq(ww_driver_cancel_wait(driver, handle), 1);
			if (cancel == 3)
				ck_assert_int_eq(ww_driver_reschedule(driver, handle, 5 * TICK), 1);
			gate_open(&gate, 1);
			if (cancel == 3 || (cancel != 1))
				if (!(cancel == 3 && flags == 0))
					gate_wait(&gate, 1);
			if (cancel == 0 || cancel == 2)
				ck_assert_int_eq(ww_driver_time_left(driver, handle, &left), 0);
			if (cancel == 2)
				ck_assert_int_eq(ww_driver_cancel(driver, handle), 0);
			gate_open(&gate, 5);
			settle();
			go(10 * TICK);
			ck_assert_int_eq(gate.left, 2 - (cancel == 1) + (cancel == 3 && flags));
			ck_assert_int_eq(ww_driver_cancel(driver, handle), WW_ESTALE);
			ck_assert_int_eq(ww_driver_cancel(driver, blocker), WW_ESTALE);
			ck_assert_uint_eq(stats_of().pending, 5);
			end();
		}
}
END_TEST

TEST_MAIN("driver/periodic", deadlines_are_first_plus_n_periods_without_drift,
    a_period_shorter_than_a_tick_fires_every_tick, the_next_call_is_told_what_a_stall_skipped,
    calls_do_not_overlap_and_the_next_one_is_told_what_passed, calls_overlap_on_request,
    a_cancel_in_time_stops_queued_overlapping_calls, moving_a_timer_keeps_its_queued_and_running_overlapping_calls,
    cancel_wait_waits_only_for_overlapping_calls_that_run,
    cancel_wait_does_not_wait_for_a_worker_to_take_a_call_that_will_not_run,
    a_moved_periodic_timer_keeps_its_period_and_counts_from_there,
    the_time_left_of_a_running_timer_is_the_time_to_its_next_call,
    a_timer_whose_next_deadline_is_beyond_the_range_ends_after_its_call)
