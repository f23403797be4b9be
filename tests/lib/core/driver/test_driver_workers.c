/* Workers and their queue: how many callbacks run at a time, what a full queue does, and the statistics. */
/* tier: quick, threads */

#include "tests/lib/core/driver/fixture.h"

START_TEST(no_more_callbacks_run_at_a_time_than_there_are_workers)
{
	for (uint32_t workers = 1; workers <= 5; workers += 2) {
		struct ww_driver_config config = config_of(0, workers);
		struct gate gate;
		gate_init(&gate);
		config.shards = 8;
		begin_with(&config);
		for (int i = 0; i < 40; i++)
			(void)after_elsewhere((uint64_t)(i % 4) * TICK, hold, &gate);
		advance(5 * TICK);
		gate_wait(&gate, (int)workers);
		UNTIL(stats_of().queued == 40 - workers);
		ck_assert_uint_eq(stats_of().running, workers);
		gate_open(&gate, 40);
		settle();
		ck_assert_int_eq(gate.most, workers);
		ck_assert_int_eq(gate.left, 40);
		end();
	}
}
END_TEST

START_TEST(a_slow_callback_does_not_delay_other_timers)
{
	struct gate gate;

	gate_init(&gate);
	begin(0, 2);
	(void)after(TICK, hold, &gate);
	advance(2 * TICK);
	gate_wait(&gate, 1);
	for (uint64_t i = 0; i < 200; i++) {
		ww_handle handle = after(TICK, note, NULL);
		advance(2 * TICK);
		UNTIL(fired_count == i + 1);
		ck_assert_uint_eq(fired[i].handle, handle);
		ck_assert_uint_le(fired[i].now, fired[i].deadline + 2 * TICK);
	}
	ck_assert_int_eq(gate.left, 0);
	gate_open(&gate, 1);
	end();
}
END_TEST

/* ---- A full queue */

/* A driver whose only worker is in a callback. */
static void begin_blocked(uint32_t flags, size_t queue, struct gate *gate)
{
	struct ww_driver_config config = config_of(flags, 1);

	gate_init(gate);
	config.queue = queue;
	begin_with(&config);
	(void)after(0, hold, gate);
	advance(TICK);
	gate_wait(gate, 1);
}

START_TEST(timers_that_find_the_queue_full_wait_and_none_is_lost)
{
	for (size_t queue = 1; queue <= 100; queue = queue * 3 + 1) {
		struct gate gate;
		begin_blocked(0, queue, &gate);
		for (int i = 0; i < 300; i++)
			(void)after((uint64_t)(i % 3) * TICK, note, NULL);
		advance(10 * TICK);
		UNTIL(stats_of().queued == queue);
		ck_assert_uint_eq(stats_of().pending, 300 - queue);
		advance(10 * TICK);
		ck_assert_uint_eq(stats_of().queued, queue);
		gate_open(&gate, 1);
		settle();
		ck_assert_uint_eq(fired_count, 300);
		ck_assert_uint_eq(stats_of().dropped, 0);
		ck_assert_uint_eq(stats_of().pending, 0);
		ck_assert_uint_eq(stats_of().queued, 0);
		end();
	}
}
END_TEST

START_TEST(a_driver_whose_queue_is_full_does_not_spin)
{
	struct gate gate;

	begin_blocked(0, 2, &gate);
	for (int i = 0; i < 10; i++)
		(void)after(0, note, NULL);
	advance(TICK);
	UNTIL(stats_of().queued == 2 && driver->armed != 0);
	uint64_t wakeups = stats_of().wakeups;
	/* Timers scheduled meanwhile wake it no more often than time does. */
	for (int i = 0; i < 50; i++)
		(void)after(0, note, NULL);
	for (int i = 0; i < 1000; i++)
		sched_yield();
	ck_assert_uint_le(stats_of().wakeups, wakeups + 2);
	gate_open(&gate, 1);
	advance(TICK);
	settle();
	ck_assert_uint_eq(fired_count, 60);
	end();
}
END_TEST

START_TEST(room_made_by_a_cancel_is_used)
{
	/*
	 * The queue is full, all in it is cancelled, and then the worker is free. It finds nothing that would tell it
	 * of room.
	 */
	for (size_t queue = 1; queue <= 9; queue += 4) {
		static ww_handle handle[9];
		struct gate gate;
		begin_blocked(0, queue, &gate);
		for (size_t i = 0; i < queue; i++)
			handle[i] = after(0, note, NULL);
		advance(TICK);
		UNTIL(stats_of().queued == queue);
		ww_handle kept = after(0, note, NULL);
		advance(TICK);
		UNTIL(driver->queue.starving);
		for (size_t i = 0; i < queue; i++)
			ck_assert_int_eq(ww_driver_cancel(driver, handle[i]), 1);
		gate_open(&gate, 1);
		settle();
		ck_assert_uint_eq(fired_count, 1);
		ck_assert_uint_eq(times_fired(kept), 1);
		end();
	}
}
END_TEST

START_TEST(room_made_by_a_reschedule_is_used)
{
	struct gate gate;

	begin_blocked(0, 1, &gate);
	ww_handle moved = after(0, note, NULL);
	advance(TICK);
	UNTIL(stats_of().queued == 1);
	ww_handle kept = after(0, note, NULL);
	advance(TICK);
	UNTIL(driver->queue.starving);
	ck_assert_int_eq(ww_driver_reschedule(driver, moved, DAY_NS), 1);
	gate_open(&gate, 1);
	settle();
	ck_assert_uint_eq(times_fired(kept), 1);
	ck_assert_uint_eq(times_fired(moved), 0);
	go(DAY_NS + TICK);
	ck_assert_uint_eq(times_fired(moved), 1);
	end();
}
END_TEST

START_TEST(with_drop_calls_that_find_the_queue_full_are_counted_and_one_shots_are_gone)
{
	struct gate gate;
	ww_handle handle[10];

	begin_blocked(WW_DRIVER_DROP, 3, &gate);
	for (size_t i = 0; i < 10; i++)
		handle[i] = after(0, note, NULL);
	advance(TICK);
	UNTIL(stats_of().dropped == 7);
	ck_assert_uint_eq(stats_of().queued, 3);
	ck_assert_uint_eq(stats_of().pending, 0);
	gate_open(&gate, 1);
	settle();
	ck_assert_uint_eq(fired_count, 3);
	for (size_t i = 0; i < 10; i++)
		ck_assert_int_eq(ww_driver_cancel(driver, handle[i]), WW_ESTALE);
	end();
}
END_TEST

START_TEST(with_drop_a_periodic_timer_loses_a_call_and_goes_on)
{
	for (uint32_t flags = 0; flags <= WW_EVERY_OVERLAP; flags++) {
		struct gate gate;
		begin_blocked(WW_DRIVER_DROP, 1, &gate);
		(void)after(0, note, NULL);
		advance(TICK);
		UNTIL(stats_of().queued == 1);
		uint64_t first = now_ns();
		ww_handle handle = every(0, 10 * TICK, flags, note, NULL);
		advance(TICK);
		UNTIL(stats_of().dropped == 1);
		advance(10 * TICK);
		UNTIL(stats_of().dropped == 2);
		ck_assert_uint_eq(stats_of().pending, 1);
		gate_open(&gate, 1);
		settle();
		ck_assert_uint_eq(times_fired(handle), 0);
		go(10 * TICK);
		ck_assert_uint_eq(times_fired(handle), 1);
		ck_assert_uint_eq(fired[1].deadline, first + 20 * TICK);
		ck_assert_uint_eq(fired[1].missed, 2);
		go(10 * TICK);
		ck_assert_uint_eq(fired[2].missed, 0);
		end();
	}
}
END_TEST

/* ---- Settle */

START_TEST(settle_waits_for_running_and_queued_callbacks)
{
	struct gate gate;
	pthread_t thread;
	void *result;

	begin_blocked(0, 10, &gate);
	(void)after(0, note, NULL);
	advance(TICK);
	ck_assert_int_eq(pthread_create(&thread, NULL, settle_elsewhere, NULL), 0);
	UNTIL(waiting_for_queue() == 1);
	ck_assert_uint_eq(fired_count, 0);
	gate_open(&gate, 1);
	ck_assert_int_eq(pthread_join(thread, &result), 0);
	ck_assert_int_eq((int)(intptr_t)result, WW_OK);
	ck_assert_uint_eq(fired_count, 1);
	end();
}
END_TEST

START_TEST(settle_ends_when_the_last_timer_it_waits_for_is_cancelled)
{
	pthread_t thread;
	void *result;

	/* As if a worker had been woken and has not looked yet: all in the queue is cancelled before it does. */
	begin(WW_DRIVER_THREADLESS, 0);
	ww_handle handle = after(0, note, NULL);
	advance(TICK);
	ww_driver_pass(driver);
	ck_assert_uint_eq(stats_of().queued, 1);
	driver->flags = 0;
	ck_assert_int_eq(pthread_create(&thread, NULL, settle_elsewhere, NULL), 0);
	UNTIL(waiting_for_queue() == 1);
	ck_assert_int_eq(ww_driver_cancel(driver, handle), 1);
	ck_assert_int_eq(pthread_join(thread, &result), 0);
	ck_assert_int_eq((int)(intptr_t)result, WW_OK);
	driver->flags = WW_DRIVER_THREADLESS;
	end();
}
END_TEST

START_TEST(settle_waits_for_timers_that_wait_for_room_made_by_a_cancel)
{
	struct ww_driver_config config = config_of(WW_DRIVER_THREADLESS, 0);
	pthread_t thread;
	void *result;

	/* The queue is empty, and the worker that will notice and report it has not looked yet. */
	config.queue = 1;
	begin_with(&config);
	ww_handle handle = after(0, note, NULL);
	(void)after(TICK, note, NULL);
	advance(2 * TICK);
	ww_driver_pass(driver);
	ck_assert_int_eq(driver->queue.starving, 1);
	ck_assert_int_eq(ww_driver_cancel(driver, handle), 1);
	driver->flags = 0;
	ck_assert_int_eq(pthread_create(&thread, NULL, settle_elsewhere, NULL), 0);
	UNTIL(waiting_for_queue() == 1);
	/* Now that worker looks. */
	ww_driver_pass(driver);
	ck_assert_int_eq(ww_queue_run(&driver->queue), 1);
	ww_driver_pass(driver);
	ck_assert_int_eq(pthread_join(thread, &result), 0);
	ck_assert_int_eq((int)(intptr_t)result, WW_OK);
	ck_assert_uint_eq(fired_count, 1);
	driver->flags = WW_DRIVER_THREADLESS;
	end();
}
END_TEST

START_TEST(settle_looks_again_if_a_callback_ended_during_its_look)
{
	pthread_t thread;
	void *result;

	begin(WW_DRIVER_THREADLESS, 0);
	driver->flags = 0;
	/* Its look ends and finds nothing due, while the queue is locked. */
	pthread_mutex_lock(&driver->agenda.lock);
	ck_assert_int_eq(pthread_create(&thread, NULL, settle_elsewhere, NULL), 0);
	UNTIL(waiting_for_queue() == 1);
	pthread_mutex_lock(&driver->queue.lock);
	pthread_mutex_unlock(&driver->agenda.lock);
	for (int i = 0; i < 1000; i++)
		sched_yield();
	/* A callback has ended and has left work to do at once. */
	OK(ww_source_prepare(driver->shards[0].source));
	driver->shards[0].source->next = 0;
	ww_agenda_note(&driver->agenda, driver->shards[0].source);
	ww_queue_changed(&driver->queue);
	pthread_mutex_unlock(&driver->queue.lock);
	for (int i = 0; i < 1000; i++)
		sched_yield();
	ck_assert_uint_eq(waiting_for_queue(), 1);
	ww_driver_pass(driver);
	ck_assert_int_eq(pthread_join(thread, &result), 0);
	ck_assert_int_eq((int)(intptr_t)result, WW_OK);
	driver->flags = WW_DRIVER_THREADLESS;
	end();
}
END_TEST

struct settler {
	struct ww_driver *other;
	int own;
	int others;
};

static void settle_inside(struct ww_driver *of, const struct ww_firing *firing, void *user)
{
	struct settler *settler = user;

	(void)firing;
	settler->own = ww_driver_settle(of);
	settler->others = ww_driver_settle(settler->other);
}

START_TEST(a_callback_may_settle_another_driver_but_not_its_own)
{
	for (uint32_t flags = 0; flags <= WW_DRIVER_THREADLESS; flags++) {
		struct ww_driver_config config = config_of(flags, 2);
		struct settler settler = {NULL, 77, 77};
		begin_with(&config);
		OK(ww_driver_create(&settler.other, &config));
		(void)after(0, settle_inside, &settler);
		OK(ww_driver_schedule(settler.other, 0, note, NULL, NULL));
		go(TICK);
		ck_assert_int_eq(settler.own, WW_EBUSY);
		ck_assert_int_eq(settler.others, WW_OK);
		ck_assert_uint_eq(fired_count, 1);
		OK(ww_driver_destroy(settler.other));
		end();
	}
}
END_TEST

/* ---- Numbers */

START_TEST(the_statistics_are_right_at_every_step)
{
	struct gate gate;
	struct ww_driver_stats stats;

	begin_blocked(0, 10, &gate);
	ww_handle one = after(0, note, NULL);
	ww_handle two = after(0, note, NULL);
	ww_handle far = after(DAY_NS, note, NULL);
	stats = stats_of();
	ck_assert_uint_eq(stats.levels, 6);
	ck_assert_uint_eq(stats.level[4], 1);
	ck_assert_uint_eq(stats.level[5], 0);
	ck_assert_uint_eq(stats.pending, 3);
	ck_assert_uint_eq(stats.scheduled, 4);
	ck_assert_uint_eq(stats.fired, 1);
	ck_assert_uint_eq(stats.running, 1);
	ck_assert_uint_eq(stats.queued, 0);
	ck_assert_uint_eq(stats.oldest_ns, 0);
	ck_assert_uint_gt(stats.bytes, 0);
	advance(TICK);
	UNTIL(stats_of().queued == 2);
	advance(7 * TICK + 5);
	stats = stats_of();
	ck_assert_uint_eq(stats.pending, 1);
	ck_assert_uint_eq(stats.oldest_ns, 7 * TICK + 5);
	ck_assert_int_eq(ww_driver_cancel(driver, one), 1);
	ck_assert_int_eq(ww_driver_cancel(driver, far), 1);
	stats = stats_of();
	ck_assert_uint_eq(stats.queued, 1);
	ck_assert_uint_eq(stats.pending, 0);
	ck_assert_uint_eq(stats.cancelled, 2);
	ck_assert_uint_eq(stats.oldest_ns, 7 * TICK + 5);
	gate_open(&gate, 1);
	settle();
	stats = stats_of();
	ck_assert_uint_eq(times_fired(two), 1);
	ck_assert_uint_eq(stats.fired, 2);
	ck_assert_uint_eq(stats.running, 0);
	ck_assert_uint_eq(stats.queued, 0);
	ck_assert_uint_eq(stats.oldest_ns, 0);
	ck_assert_uint_eq(stats.dropped, 0);
	uint64_t bytes = stats.bytes;
	for (int i = 0; i < 10000; i++)
		(void)after(DAY_NS, note, NULL);
	ck_assert_uint_ge(stats_of().bytes - bytes, 9000 * sizeof(struct timer_record));
	end();
}
END_TEST

TEST_MAIN("driver/workers", no_more_callbacks_run_at_a_time_than_there_are_workers,
    a_slow_callback_does_not_delay_other_timers, timers_that_find_the_queue_full_wait_and_none_is_lost,
    a_driver_whose_queue_is_full_does_not_spin, room_made_by_a_cancel_is_used, room_made_by_a_reschedule_is_used,
    with_drop_calls_that_find_the_queue_full_are_counted_and_one_shots_are_gone,
    with_drop_a_periodic_timer_loses_a_call_and_goes_on, settle_waits_for_running_and_queued_callbacks,
    settle_ends_when_the_last_timer_it_waits_for_is_cancelled,
    settle_waits_for_timers_that_wait_for_room_made_by_a_cancel, settle_looks_again_if_a_callback_ended_during_its_look,
    a_callback_may_settle_another_driver_but_not_its_own, the_statistics_are_right_at_every_step)
