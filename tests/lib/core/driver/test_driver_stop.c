/* Stopping and destroying: each pending timer is handed over once, nothing begins afterwards, every caller is told. */
/* tier: quick, threads, forks */

#include "tests/lib/core/driver/fixture.h"

static size_t times_drained(ww_handle handle)
{
	size_t count = 0;

	for (size_t i = 0; i < drained_count; i++)
		count += drained[i].handle == handle;
	return count;
}

static uint64_t left_of(ww_handle handle)
{
	for (size_t i = 0; i < drained_count; i++)
		if (drained[i].handle == handle)
			return drained[i].left;
	ck_abort_msg("not drained");
}

static ww_handle handle_of_firing(const struct firing *firing)
{
	const struct timer_record *record = (const void *)firing;

	return (uint64_t)record->shard << HANDLE_SHARD | (uint64_t)record->index << HANDLE_INDEX | record->generation;
}

static uint32_t records_in_use(void)
{
	uint32_t count = 0;

	for (uint32_t i = 0; i < driver->shard_count; i++)
		count += records_taken(i);
	return count;
}

static void assert_closed(void)
{
	uint64_t left = 9;
	ww_handle handle = 9;

	ck_assert_int_eq(ww_driver_schedule(driver, 0, note, NULL, &handle), WW_ECLOSED);
	ck_assert_int_eq(ww_driver_schedule_at(driver, 0, note, NULL, &handle), WW_ECLOSED);
	ck_assert_int_eq(ww_driver_schedule_every(driver, 0, 1, 0, note, NULL, &handle), WW_ECLOSED);
	ck_assert_int_eq(ww_driver_reschedule(driver, 1, 0), WW_ECLOSED);
	ck_assert_int_eq(ww_driver_cancel(driver, 1), WW_ECLOSED);
	ck_assert_int_eq(ww_driver_cancel_wait(driver, UINT64_MAX), WW_ECLOSED);
	ck_assert_int_eq(ww_driver_time_left(driver, 1, &left), WW_ECLOSED);
	ck_assert_int_eq(ww_driver_reserve(driver, 1), WW_ECLOSED);
	ck_assert_int_eq(ww_driver_settle(driver), WW_ECLOSED);
	ck_assert_int_eq(ww_driver_dispatch(driver, 1), driver->flags & WW_DRIVER_THREADLESS ? WW_ECLOSED : WW_EINVAL);
	ck_assert_uint_eq(left, 9);
	ck_assert_uint_eq(handle, 9);
}

START_TEST(a_stop_hands_over_each_pending_timer_once_and_then_all_is_closed)
{
	struct gate gate;
	ww_handle handle[300];
	size_t count = 99;

	gate_init(&gate);
	begin(0, 1);
	(void)after(0, hold, &gate);
	advance(TICK);
	gate_wait(&gate, 1);
	ww_handle queued = after(0, note, &gate);
	ww_handle overlapping = every(0, 10 * TICK, WW_EVERY_OVERLAP, note, NULL);
	ww_handle moved = after(0, note, NULL);
	advance(TICK);
	UNTIL(stats_of().queued == 3);
	ck_assert_int_eq(ww_driver_reschedule(driver, moved, 40 * TICK), 1);
	for (uint64_t i = 0; i < 300; i++)
		handle[i] = i % 2 ? after(i * TICK, note, NULL) : after_elsewhere(i * TICK, note, NULL);
	ww_handle due = after(0, note, NULL);
	ww_handle cancelled = after(TICK, note, NULL);
	ck_assert_int_eq(ww_driver_cancel(driver, cancelled), 1);
	OK(ww_driver_stop(driver, take, NULL, &count));
	ck_assert_uint_eq(count, 304);
	ck_assert_uint_eq(drained_count, 304);
	for (uint64_t i = 0; i < 300; i++) {
		ck_assert(times_drained(handle[i]) == 1);
		ck_assert(left_of(handle[i]) == i * TICK);
	}
	ck_assert_uint_eq(times_drained(queued), 1);
	ck_assert_uint_eq(left_of(queued), 0);
	ck_assert_uint_eq(times_drained(due), 1);
	ck_assert_uint_eq(left_of(due), 0);
	ck_assert_uint_eq(left_of(moved), 40 * TICK);
	/* The timer itself, not its queued call. */
	ck_assert_uint_eq(times_drained(overlapping), 1);
	ck_assert_uint_eq(times_drained(cancelled), 0);
	for (size_t i = 0; i < drained_count; i++) {
		ck_assert(drained[i].fn == note);
		ck_assert(drained[i].user == (drained[i].handle == queued ? &gate : NULL));
	}
	assert_closed();
	OK(ww_driver_now(driver, &(uint64_t){0}));
	ck_assert_uint_eq(stats_of().pending, 0);
	ck_assert_uint_eq(stats_of().queued, 0);
	ck_assert_uint_eq(stats_of().cancelled, 305);
	ck_assert_uint_eq(stats_of().running, 1);
	/* A second stop does nothing. */
	OK(ww_driver_stop(driver, take, NULL, &count));
	ck_assert_uint_eq(count, 0);
	OK(ww_driver_stop(driver, NULL, NULL, NULL));
	gate_open(&gate, 1);
	advance(WW_SECOND);
	end();
	ck_assert_uint_eq(fired_count, 0);
	ck_assert_int_eq(gate.left, 1);
}
END_TEST

START_TEST(without_a_drain_function_pending_timers_are_dropped_and_counted)
{
	size_t count = 99;

	begin(WW_DRIVER_THREADLESS, 0);
	for (int i = 0; i < 100; i++)
		(void)after((uint64_t)i * TICK, note, NULL);
	/* Some are in the queue. */
	advance(10 * TICK);
	ck_assert_int_eq(ww_driver_dispatch(driver, 1), 1);
	OK(ww_driver_stop(driver, NULL, NULL, &count));
	ck_assert_uint_eq(count, 99);
	assert_closed();
	end();
}
END_TEST

static void stop_inside(struct ww_driver *of, const struct ww_firing *firing, void *user)
{
	size_t *count = user;
	uint64_t ns;

	OK(ww_driver_stop(of, take, NULL, count));
	ck_assert(ww_driver_cancel(of, firing->handle) == WW_ECLOSED);
	ck_assert(ww_driver_now(of, &ns) == WW_OK);
	assert_closed();
}

START_TEST(a_callback_may_stop_the_driver)
{
	for (int kind = 0; kind < 4; kind++) {
		size_t count = 99;
		begin(kind >= 2 ? WW_DRIVER_THREADLESS : 0, 2);
		(void)(kind % 2 ? every(0, TICK, 0, stop_inside, &count) : after(0, stop_inside, &count));
		(void)after(DAY_NS, note, NULL);
		advance(TICK);
		if (kind >= 2)
			ck_assert_int_eq(ww_driver_dispatch(driver, 10), 1);
		else
			UNTIL(driver->closed && stats_of().running == 0);
		/* A periodic timer would go on. */
		ck_assert_uint_eq(count, 1 + (size_t)kind % 2);
		ck_assert_uint_eq(drained_count, count);
		assert_closed();
		end();
	}
}
END_TEST

/* A driver that another driver's drain function destroys. */
static struct ww_driver *second;

static void call_in_drain(ww_handle handle, ww_driver_fn *fn, void *user, uint64_t left, void *context)
{
	(void)handle;
	(void)fn;
	(void)user;
	(void)left;
	/* No lock is held: every call is allowed. */
	assert_closed();
	OK(ww_driver_stop(driver, NULL, NULL, NULL));
	(void)stats_of();
	/* But the rest has yet to be handed over. */
	ck_assert_int_eq(ww_driver_destroy(driver), WW_EBUSY);
	OK(ww_driver_destroy(second));
	second = NULL;
	++*(int *)context;
}

START_TEST(the_drain_function_may_call_the_driver_but_not_destroy_it)
{
	for (uint32_t flags = 0; flags <= WW_DRIVER_THREADLESS; flags++) {
		int calls = 0;
		begin(flags, 1);
		OK(ww_driver_create(&second, NULL));
		(void)after(TICK, note, NULL);
		(void)after(DAY_NS, note, NULL);
		OK(ww_driver_stop(driver, call_in_drain, &calls, NULL));
		ck_assert_int_eq(calls, 2);
		end();
	}
}
END_TEST

/* The first driver's stop runs inside the second one's drain function. There, too, destroying either is refused. */
static void stop_in_drain(ww_handle handle, ww_driver_fn *fn, void *user, uint64_t left, void *context)
{
	(void)handle;
	(void)fn;
	(void)user;
	(void)left;
	if (context)
		OK(ww_driver_stop(driver, stop_in_drain, NULL, NULL));
	else
		ck_assert_int_eq(ww_driver_destroy(driver), WW_EBUSY);
	ck_assert_int_eq(ww_driver_destroy(second), WW_EBUSY);
}

START_TEST(a_stop_in_a_drain_function_does_not_hide_the_outer_one)
{
	begin(WW_DRIVER_THREADLESS, 0);
	OK(ww_driver_create(&second, NULL));
	(void)after(TICK, note, NULL);
	OK(ww_driver_schedule(second, DAY_NS, note, NULL, NULL));
	OK(ww_driver_stop(second, stop_in_drain, second, NULL));
	OK(ww_driver_destroy(second));
	end();
}
END_TEST

START_TEST(a_firing_taken_by_a_worker_but_not_begun_is_handed_over_and_does_not_begin)
{
	/*
	 * The test plays the worker. It goes on before the stop looks, or after that, or after its timer was moved, or
	 * after a call that waits for callbacks came between the closing of the stop and its look.
	 */
	for (int kind = 0; kind < 5; kind++) {
		struct running here = {0};
		size_t count = 99;
		begin(WW_DRIVER_THREADLESS, 0);
		ww_handle handle = kind == 3 ? every(0, TICK, WW_EVERY_OVERLAP, note, NULL) : after(0, note, NULL);
		advance(TICK);
		ww_driver_pass(driver);
		struct firing *firing = ww_queue_withdraw_all(&driver->queue, driver->timers);
		here = (struct running){.queue = &driver->queue, .group = driver->timers, .firing = firing};
		driver->queue.alone.taken = &here;
		if (kind == 1)
			ck_assert_int_eq(ww_driver_reschedule(driver, handle, 5 * TICK), 1);
		if (kind == 2 || kind == 4) {
			driver->closed = 1;
			if (kind == 4)
				ck_assert_int_eq(ww_driver_cancel_wait(driver, handle), WW_ECLOSED);
			ww_driver_fire_ops.run(driver, firing);
			driver->closed = 0;
		}
		OK(ww_driver_stop(driver, take, NULL, &count));
		ck_assert_uint_eq(count, 1);
		ck_assert_uint_eq(times_drained(handle), 1);
		ck_assert_uint_eq(left_of(handle), kind == 1 ? 5 * TICK : kind == 3 ? drained[0].left : 0);
		if (kind != 2 && kind != 4)
			ww_driver_fire_ops.run(driver, firing);
		ck_assert_uint_eq(fired_count, 0);
		ck_assert_uint_eq(records_in_use(), 0);
		driver->queue.alone.taken = NULL;
		end();
	}
}
END_TEST

/* A firing that a worker, played by the test, has taken and begins only after a second stop has returned. */
static void stop_again_and_run(ww_handle handle, ww_driver_fn *fn, void *user, uint64_t left, void *context)
{
	struct running *worker = context;

	take(handle, fn, user, left, NULL);
	if (!worker->firing)
		return;
	OK(ww_driver_stop(driver, NULL, NULL, NULL));
	ww_driver_fire_ops.run(driver, worker->firing);
	ck_assert_uint_eq(fired_count, 0);
	worker->firing = NULL;
}

START_TEST(no_callback_begins_after_a_second_stop_returned_while_the_first_hands_over)
{
	struct ww_driver_config config = config_of(WW_DRIVER_THREADLESS, 0);
	struct running worker = {0};
	ww_handle due = 0;
	size_t count;

	config.shards = 2;
	begin_with(&config);
	/* The stop handles shard 0 first. */
	while (due >> HANDLE_SHARD != 1)
		due = after_elsewhere(0, note, NULL);
	advance(TICK);
	ww_driver_pass(driver);
	struct firing *firing = ww_queue_withdraw_all(&driver->queue, driver->timers);
	while (handle_of_firing(firing) != due)
		firing = firing->prev;
	for (ww_handle handle = 1ULL << HANDLE_SHARD; handle >> HANDLE_SHARD != 0;)
		handle = after_elsewhere(DAY_NS, note, NULL);
	worker = (struct running){.queue = &driver->queue, .group = driver->timers, .firing = firing};
	driver->queue.alone.taken = &worker;
	OK(ww_driver_stop(driver, stop_again_and_run, &worker, &count));
	ck_assert_ptr_null(worker.firing);
	ck_assert_uint_eq(count, drained_count);
	ck_assert_uint_eq(times_drained(due), 1);
	driver->queue.alone.taken = NULL;
	end();
}
END_TEST

/* ---- Timers that would fire again, and whose callback runs */

static void hold_and_come_again(struct ww_driver *of, const struct ww_firing *firing, void *gate)
{
	ck_assert(ww_driver_reschedule(of, firing->handle, 40 * TICK) == 0);
	hold(of, firing, gate);
}

/* The first timer that is handed over lets the callback end. */
static void let_end(ww_handle handle, ww_driver_fn *fn, void *user, uint64_t left, void *context)
{
	struct gate *gate = context;

	take(handle, fn, user, left, NULL);
	if (drained_count > 1)
		return;
	gate_open(gate, 1);
	UNTIL(stats_of().running == 0);
}

/* A one-shot, one that reschedules itself, and periodic ones. The last period goes beyond all deadlines. */
static ww_handle start_kind(int kind, struct gate *gate)
{
	static const uint64_t period[] = {0, 0, 10 * TICK, 10 * TICK, 10 * TICK, WW_DRIVER_TIME_MAX};
	ww_driver_fn *fn = kind % 2 ? hold_and_come_again : hold;

	if (kind == 5)
		fn = hold;
	if (period[kind] == 0)
		return after(0, fn, gate);
	return every(0, period[kind], kind == 4 ? WW_EVERY_OVERLAP : 0, fn, gate);
}

START_TEST(a_timer_that_would_fire_again_is_handed_over_once_although_its_callback_runs)
{
	static const uint64_t left[] = {0, 40 * TICK, 10 * TICK, 40 * TICK, 10 * TICK, 0};

	/*
	 * The callback ends after all was handed over, or between the stop's closing of the queue and its look at the
	 * timer.
	 */
	for (int order = 0; order < 2; order++)
		for (int kind = 0; kind < 6; kind++) {
			struct gate gate;
			size_t count;
			gate_init(&gate);
			begin(0, 1);
			ww_handle handle = start_kind(kind, &gate);
			/* The tick that the deadline is rounded up to. */
			advance(TICK - START % TICK);
			gate_wait(&gate, 1);
			ww_handle other = after(DAY_NS, note, NULL);
			OK(ww_driver_stop(driver, order ? let_end : take, &gate, &count));
			ck_assert_uint_eq(count, 1 + (left[kind] != 0));
			ck_assert_uint_eq(drained_count, count);
			ck_assert_uint_eq(times_drained(other), 1);
			ck_assert_uint_eq(times_drained(handle), left[kind] != 0);
			if (left[kind])
				ck_assert_uint_le(left_of(handle), left[kind]);
			if (left[kind])
				ck_assert_uint_gt(left_of(handle), left[kind] - TICK);
			ck_assert_uint_eq(stats_of().cancelled, count);
			if (!order)
				gate_open(&gate, 1);
			UNTIL(stats_of().running == 0);
			ck_assert_uint_eq(records_in_use(), 0);
			end();
			ck_assert_int_eq(gate.left, 1);
		}
}
END_TEST

static void cancel_and_wait(ww_handle handle, ww_driver_fn *fn, void *user, uint64_t left, void *context)
{
	struct gate *gate = user;

	(void)fn;
	(void)left;
	(void)context;
	gate_open(gate, 1);
	ck_assert_int_eq(ww_driver_cancel_wait(driver, handle), WW_ECLOSED);
	ck_assert_int_eq(gate->left, 1);
}

START_TEST(the_drain_function_may_wait_for_the_end_of_a_callback_that_runs)
{
	struct gate gate;
	size_t count;

	for (uint32_t flags = 0; flags <= WW_EVERY_OVERLAP; flags++) {
		gate_init(&gate);
		begin(0, 1);
		(void)every(0, DAY_NS, flags, hold, &gate);
		advance(TICK);
		gate_wait(&gate, 1);
		OK(ww_driver_stop(driver, cancel_and_wait, NULL, &count));
		ck_assert_uint_eq(count, 1);
		end();
	}
}
END_TEST

/* A call from a thread of its own, which waits for a shard's lock. */
struct overtaken {
	ww_handle handle; /* to cancel; 0: schedule instead */
	_Atomic int answer;
};

static void *call_elsewhere(void *argument)
{
	struct overtaken *call = argument;

	call->answer = call->handle ? ww_driver_cancel(driver, call->handle)
	                            : ww_driver_schedule(driver, DAY_NS, note, NULL, NULL);
	return NULL;
}

START_TEST(a_call_overtaken_by_a_stop_at_the_lock_answers_closed)
{
	for (int kind = 0; kind < 2; kind++) {
		struct ww_driver_config config = config_of(0, 1);
		struct overtaken call = {0, 77};
		pthread_t thread;
		config.shards = 1;
		begin_with(&config);
		call.handle = kind ? after(DAY_NS, note, NULL) : 0;
		ww_source_lock(driver->shards[0].source);
		ck_assert_int_eq(pthread_create(&thread, NULL, call_elsewhere, &call), 0);
		/* Most probably it gets as far as the lock. */
		for (int i = 0; i < 1000; i++)
			sched_yield();
		ck_assert_int_eq(call.answer, 77);
		driver->closed = 1;
		ww_source_unlock(driver->shards[0].source);
		ck_assert_int_eq(pthread_join(thread, NULL), 0);
		ck_assert_int_eq(call.answer, WW_ECLOSED);
		ck_assert_uint_eq(stats_of().pending, (uint64_t)kind);
		driver->closed = 0;
		end();
	}
}
END_TEST

static void destroy_inside(struct ww_driver *of, const struct ww_firing *firing, void *user)
{
	(void)firing;
	*(int *)user = ww_driver_destroy(of);
}

START_TEST(destroy_in_a_callback_is_refused_in_a_driver_with_threads)
{
	int answer = 77;

	begin(0, 2);
	(void)after(0, destroy_inside, &answer);
	go(TICK);
	ck_assert_int_eq(answer, WW_EBUSY);
	/* Nothing has changed. */
	(void)after(0, note, NULL);
	go(TICK);
	ck_assert_uint_eq(fired_count, 1);
	end();
}
END_TEST

static void destroy_and_ask(struct ww_driver *of, const struct ww_firing *firing, void *user)
{
	ww_handle handle = 9;

	destroy_inside(of, firing, user);
	/* It is there until the callback returns. */
	ck_assert_int_eq(ww_driver_schedule(of, 0, note, NULL, &handle), WW_ECLOSED);
	ck_assert_int_eq(ww_driver_dispatch(of, 1), WW_ECLOSED);
	ck_assert_int_eq(ww_driver_settle(of), WW_ECLOSED);
	OK(ww_driver_destroy(of));
}

START_TEST(a_callback_may_destroy_its_driver_without_threads)
{
	for (int kind = 0; kind < 3; kind++) {
		struct ww_driver_config config = config_of(WW_DRIVER_THREADLESS, 0);
		struct test_memory memory;
		int answer = 77;
		test_memory_init(&memory, 0);
		config.allocator = &memory.table;
		begin_with(&config);
		(void)after(0, destroy_and_ask, &answer);
		for (int i = 0; i < 10; i++)
			(void)after(TICK, note, NULL);
		(void)after(DAY_NS, note, NULL);
		advance(2 * TICK);
		if (kind == 0)
			ck_assert_int_eq(ww_driver_dispatch(driver, 100), 1);
		else if (kind == 1)
			ck_assert_int_eq(ww_driver_settle(driver), WW_ECLOSED);
		else
			ck_assert_int_eq(ww_driver_step(driver, WW_NEVER, NULL), WW_ECLOSED);
		ck_assert_int_eq(answer, WW_OK);
		ck_assert_uint_eq(fired_count, 0);
		ck_assert_uint_eq(memory.blocks, 0);
		driver = NULL;
		end();
	}
}
END_TEST

static _Atomic int destroyed;

static void *destroy_elsewhere(void *argument)
{
	(void)argument;
	(void)ww_driver_destroy(driver);
	destroyed = 1;
	return NULL;
}

static int queue_is_closed(void)
{
	pthread_mutex_lock(&driver->queue.lock);
	int closed = driver->queue.closed;
	pthread_mutex_unlock(&driver->queue.lock);
	return closed;
}

START_TEST(destroy_waits_for_callbacks_that_run)
{
	struct gate gate;
	pthread_t thread;

	gate_init(&gate);
	begin(0, 3);
	for (int i = 0; i < 3; i++)
		(void)after(0, hold, &gate);
	(void)every(0, TICK, 0, hold, &gate);
	advance(TICK);
	gate_wait(&gate, 3);
	ck_assert_int_eq(pthread_create(&thread, NULL, destroy_elsewhere, NULL), 0);
	/* Before that, a worker that has ended its callback might take the next one. */
	UNTIL(queue_is_closed());
	gate_open(&gate, 2);
	UNTIL(gate.left == 2);
	ck_assert_int_eq(destroyed, 0);
	gate_open(&gate, 1);
	ck_assert_int_eq(pthread_join(thread, NULL), 0);
	ck_assert_int_eq(gate.left, 3);
	OK(ww_clock_virtual_destroy(virtual_clock));
}
END_TEST

START_TEST(a_stop_ends_a_settle)
{
	struct gate gate;
	pthread_t thread;
	void *result;

	gate_init(&gate);
	begin(0, 1);
	(void)after(0, hold, &gate);
	advance(TICK);
	gate_wait(&gate, 1);
	ck_assert_int_eq(pthread_create(&thread, NULL, settle_elsewhere, NULL), 0);
	UNTIL(waiting_for_queue() == 1);
	OK(ww_driver_stop(driver, NULL, NULL, NULL));
	ck_assert_int_eq(pthread_join(thread, &result), 0);
	ck_assert_int_eq((int)(intptr_t)result, WW_ECLOSED);
	gate_open(&gate, 1);
	end();
}
END_TEST

TEST_MAIN("driver/stop", a_stop_hands_over_each_pending_timer_once_and_then_all_is_closed,
    without_a_drain_function_pending_timers_are_dropped_and_counted, a_callback_may_stop_the_driver,
    the_drain_function_may_call_the_driver_but_not_destroy_it, a_stop_in_a_drain_function_does_not_hide_the_outer_one,
    a_firing_taken_by_a_worker_but_not_begun_is_handed_over_and_does_not_begin,
    no_callback_begins_after_a_second_stop_returned_while_the_first_hands_over,
    a_timer_that_would_fire_again_is_handed_over_once_although_its_callback_runs,
    the_drain_function_may_wait_for_the_end_of_a_callback_that_runs,
    a_call_overtaken_by_a_stop_at_the_lock_answers_closed, destroy_in_a_callback_is_refused_in_a_driver_with_threads,
    a_callback_may_destroy_its_driver_without_threads, destroy_waits_for_callbacks_that_run, a_stop_ends_a_settle)
