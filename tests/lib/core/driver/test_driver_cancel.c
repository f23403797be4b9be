/* Cancel, cancel and wait, reschedule, and the time left, in each state of a timer. */
/* tier: quick, threads */

#include "tests/lib/core/driver/fixture.h"

/* The test plays a worker: it takes the oldest firing from the queue, and run_taken begins its callback later. */
static struct firing *take_firing(void)
{
	struct firing *firing = NULL;

	ww_driver_pass(driver);
	firing = ww_queue_withdraw_all(&driver->queue, driver->timers);
	ck_assert_ptr_nonnull(firing);
	return firing;
}

static void run_taken(struct firing *firing)
{
	ww_driver_fire_ops.run(driver, firing);
}

/* ---- Cancel */

START_TEST(a_cancelled_pending_timer_never_fires)
{
	begin(0, 2);
	ww_handle handle = after(TICK, note, NULL);
	ww_handle periodic = every(TICK, TICK, 0, note, NULL);
	ww_handle overlapping = every(TICK, TICK, WW_EVERY_OVERLAP, note, NULL);
	ck_assert_int_eq(ww_driver_cancel(driver, handle), 1);
	ck_assert_int_eq(ww_driver_cancel_wait(driver, periodic), 1);
	ck_assert_int_eq(ww_driver_cancel(driver, overlapping), 1);
	go(WW_SECOND);
	ck_assert_uint_eq(fired_count, 0);
	ck_assert_uint_eq(stats_of().cancelled, 3);
	ck_assert_uint_eq(stats_of().pending, 0);
	end();
}
END_TEST

START_TEST(a_cancelled_queued_timer_never_fires)
{
	struct gate gate;

	gate_init(&gate);
	begin(0, 1);
	(void)after(TICK, hold, &gate);
	advance(2 * TICK);
	gate_wait(&gate, 1);
	ww_handle queued = after(0, note, NULL);
	ww_handle other = after(0, note, NULL);
	advance(TICK);
	UNTIL(stats_of().queued == 2);
	ck_assert_int_eq(ww_driver_cancel(driver, queued), 1);
	ck_assert_uint_eq(stats_of().queued, 1);
	gate_open(&gate, 1);
	settle();
	ck_assert_uint_eq(times_fired(queued), 0);
	ck_assert_uint_eq(times_fired(other), 1);
	end();
}
END_TEST

START_TEST(a_cancelled_running_timer_is_not_called_again)
{
	struct gate gate;

	gate_init(&gate);
	begin(0, 2);
	ww_handle once = after(TICK, hold, &gate);
	ww_handle periodic = every(TICK, TICK, 0, hold, &gate);
	advance(2 * TICK);
	gate_wait(&gate, 2);
	ck_assert_int_eq(ww_driver_reschedule(driver, once, 0), 0);
	ck_assert_int_eq(ww_driver_cancel(driver, once), 0);
	ck_assert_int_eq(ww_driver_cancel(driver, periodic), 0);
	ck_assert_int_eq(ww_driver_cancel(driver, once), WW_ESTALE);
	ck_assert_uint_eq(stats_of().cancelled, 0);
	gate_open(&gate, 10);
	ck_assert_int_eq(ww_driver_cancel_wait(driver, periodic), WW_ESTALE);
	go(WW_SECOND);
	ck_assert_int_eq(gate.left, 2);
	ck_assert_uint_eq(stats_of().fired, 2);
	end();
}
END_TEST

START_TEST(a_timer_taken_by_a_worker_but_not_begun_is_cancelled_in_time)
{
	begin(WW_DRIVER_THREADLESS, 0);
	for (int i = 0; i < 3; i++) {
		ww_handle handle = i == 1 ? every(0, TICK, 0, note, NULL) : after(0, note, NULL);
		advance(TICK);
		struct firing *firing = take_firing();
		if (i == 2)
			ck_assert_int_eq(ww_driver_reschedule(driver, handle, TICK), 1);
		ck_assert_int_eq(ww_driver_cancel_wait(driver, handle), 1);
		ck_assert_int_eq(ww_driver_cancel(driver, handle), WW_ESTALE);
		run_taken(firing);
		go(10 * TICK);
		ck_assert_uint_eq(fired_count, 0);
		ck_assert_uint_eq(records_taken(0), 0);
	}
	ck_assert_uint_eq(stats_of().cancelled, 3);
	end();
}
END_TEST

/* ---- Cancel and wait */

struct waiting {
	ww_handle handle;
	struct gate *gate;
	_Atomic int result;
	int left; /* callbacks that had ended when cancel_wait returned */
};

static void *cancel_and_wait(void *argument)
{
	struct waiting *waiting = argument;
	int result = ww_driver_cancel_wait(driver, waiting->handle);

	waiting->left = waiting->gate->left;
	waiting->result = result;
	return NULL;
}

START_TEST(cancel_wait_returns_when_the_callback_has_ended)
{
	struct waiting waiting;
	struct gate gate;
	pthread_t thread;

	for (int periodic = 0; periodic < 2; periodic++) {
		gate_init(&gate);
		begin(0, 2);
		waiting = (struct waiting){.gate = &gate, .result = 77};
		waiting.handle = periodic ? every(TICK, TICK, 0, hold, &gate) : after(TICK, hold, &gate);
		advance(2 * TICK);
		gate_wait(&gate, 1);
		ck_assert_int_eq(pthread_create(&thread, NULL, cancel_and_wait, &waiting), 0);
		UNTIL(waiting_for_end() == 1);
		/* Only the callback's end ends the wait. */
		(void)after(0, note, NULL);
		advance(TICK);
		UNTIL(fired_count == 1);
		ck_assert_int_eq(waiting.result, 77);
		gate_open(&gate, 1);
		ck_assert_int_eq(pthread_join(thread, NULL), 0);
		ck_assert_int_eq(waiting.result, 0);
		ck_assert_int_eq(waiting.left, 1);
		go(WW_SECOND);
		ck_assert_uint_eq(stats_of().fired, 2);
		end();
	}
}
END_TEST

static void cancel_own(struct ww_driver *of, const struct ww_firing *firing, void *user)
{
	uint64_t left = 0;
	int *answers = user;

	answers[0] = ww_driver_cancel_wait(of, firing->handle);
	/* Nothing has changed: a periodic timer still fires. */
	answers[1] = ww_driver_time_left(of, firing->handle, &left);
	answers[2] = ww_driver_cancel(of, firing->handle);
	answers[3] = ww_driver_cancel_wait(of, firing->handle);
	answers[4]++;
}

START_TEST(cancel_wait_of_a_cancelled_or_stopped_timer_waits_for_its_callback)
{
	struct waiting waiting;
	struct gate gate;
	pthread_t thread;

	for (int kind = 0; kind < 6; kind++) {
		int cancelled = kind / 2 != 0;
		int stopped = kind / 2 != 1;
		gate_init(&gate);
		begin(0, 2);
		waiting = (struct waiting){.gate = &gate, .result = 77};
		waiting.handle = kind % 2 ? every(TICK, TICK, 0, hold, &gate) : after(TICK, hold, &gate);
		advance(2 * TICK);
		gate_wait(&gate, 1);
		if (cancelled)
			ck_assert_int_eq(ww_driver_cancel(driver, waiting.handle), 0);
		if (stopped)
			OK(ww_driver_stop(driver, NULL, NULL, NULL));
		ck_assert_int_eq(pthread_create(&thread, NULL, cancel_and_wait, &waiting), 0);
		UNTIL(waiting_for_end() == 1);
		ck_assert_int_eq(waiting.result, 77);
		gate_open(&gate, 1);
		ck_assert_int_eq(pthread_join(thread, NULL), 0);
		ck_assert_int_eq(waiting.result, stopped ? WW_ECLOSED : WW_ESTALE);
		ck_assert_int_eq(waiting.left, 1);
		/* Nothing is left to wait for. */
		ck_assert_int_eq(ww_driver_cancel_wait(driver, waiting.handle), waiting.result);
		end();
	}
}
END_TEST

/* Callbacks that wait for each other in a ring. */
struct ring {
	pthread_barrier_t *all_here;
	ww_handle *next;
	_Atomic int *busy;
	_Atomic int *ended;
	int twice; /* the second time the timer is cancelled already */
};

static void wait_for_next(struct ww_driver *of, const struct ww_firing *firing, void *user)
{
	struct ring *ring = user;
	int answer;

	(void)firing;
	(void)pthread_barrier_wait(ring->all_here);
	if (ring->twice)
		(void)ww_driver_cancel(of, *ring->next);
	(void)pthread_barrier_wait(ring->all_here);
	answer = ww_driver_cancel_wait(of, *ring->next);
	if (answer == WW_EBUSY)
		++*ring->busy;
	else
		ck_assert_int_eq(answer, ring->twice ? WW_ESTALE : 0);
	++*ring->ended;
}

START_TEST(one_of_the_callbacks_that_wait_for_each_other_is_refused)
{
	for (uint32_t many = 2; many <= 5; many++)
		for (int twice = 0; twice < 2; twice++) {
			struct ring ring[5];
			ww_handle handle[5];
			_Atomic int busy = 0;
			_Atomic int ended = 0;
			begin(0, 5);
			pthread_barrier_t barrier;
			ck_assert_int_eq(pthread_barrier_init(&barrier, NULL, many), 0);
			for (uint32_t i = 0; i < many; i++) {
				ring[i] = (struct ring){.all_here = &barrier,
				    .next = &handle[(i + 1) % many],
				    .busy = &busy,
				    .ended = &ended,
				    .twice = twice};
				handle[i] = after(TICK, wait_for_next, &ring[i]);
			}
			go(3 * TICK);
			ck_assert_int_eq(ended, (int)many);
			ck_assert_int_eq(busy, 1);
			end();
			ck_assert_int_eq(pthread_barrier_destroy(&barrier), 0);
		}
}
END_TEST

START_TEST(cancel_wait_in_the_timers_own_callback_is_refused_and_cancel_ends_it)
{
	begin(0, 2);
	for (int kind = 0; kind < 3; kind++) {
		int answers[5] = {77, 77, 77, 77, 0};
		if (kind == 0)
			(void)after(0, cancel_own, answers);
		else
			(void)every(0, TICK, kind == 1 ? 0 : WW_EVERY_OVERLAP, cancel_own, answers);
		go(TICK);
		go(10 * TICK);
		ck_assert_int_eq(answers[0], WW_EBUSY);
		ck_assert_int_eq(answers[1], kind != 0);
		ck_assert_int_eq(answers[2], 0);
		ck_assert_int_eq(answers[3], WW_ESTALE);
		ck_assert_int_eq(answers[4], 1);
		ck_assert_uint_eq(stats_of().pending, 0);
	}
	end();
}
END_TEST

static void cancel_other(struct ww_driver *of, const struct ww_firing *firing, void *user)
{
	struct waiting *waiting = user;

	(void)firing;
	waiting->result = ww_driver_cancel_wait(of, waiting->handle);
}

START_TEST(a_callback_may_wait_for_the_end_of_another_one)
{
	struct waiting waiting = {.result = 77};
	struct gate gate;

	gate_init(&gate);
	begin(0, 2);
	waiting.handle = after(TICK, hold, &gate);
	advance(2 * TICK);
	gate_wait(&gate, 1);
	(void)after(0, cancel_other, &waiting);
	advance(TICK);
	UNTIL(waiting_for_end() == 1);
	gate_open(&gate, 1);
	settle();
	ck_assert_int_eq(waiting.result, 0);
	end();
}
END_TEST

/* ---- Reschedule */

START_TEST(a_pending_timer_is_moved_earlier_and_later)
{
	begin(0, 1);
	ww_handle handle = after(10 * TICK, note, NULL);
	ck_assert_int_eq(ww_driver_reschedule(driver, handle, 3600 * WW_SECOND), 1);
	go(20 * TICK);
	ck_assert_uint_eq(fired_count, 0);
	ck_assert_int_eq(ww_driver_reschedule(driver, handle, 5 * TICK), 1);
	uint64_t deadline = now_ns() + 5 * TICK;
	go(5 * TICK - 1);
	ck_assert_uint_eq(fired_count, 0);
	go(TICK);
	ck_assert_uint_eq(fired_count, 1);
	ck_assert_uint_eq(fired[0].deadline, deadline);
	ck_assert_int_eq(ww_driver_reschedule(driver, handle, 0), WW_ESTALE);
	go(4000 * WW_SECOND);
	ck_assert_uint_eq(fired_count, 1);
	end();
}
END_TEST

START_TEST(a_queued_timer_is_moved_in_time)
{
	struct gate gate;

	gate_init(&gate);
	begin(0, 1);
	(void)after(TICK, hold, &gate);
	advance(2 * TICK);
	gate_wait(&gate, 1);
	ww_handle queued = after(0, note, NULL);
	advance(TICK);
	UNTIL(stats_of().queued == 1);
	ck_assert_int_eq(ww_driver_reschedule(driver, queued, 50 * TICK), 1);
	ck_assert_uint_eq(stats_of().queued, 0);
	ck_assert_uint_eq(stats_of().pending, 1);
	gate_open(&gate, 1);
	go(49 * TICK);
	ck_assert_uint_eq(fired_count, 0);
	go(2 * TICK);
	ck_assert_uint_eq(times_fired(queued), 1);
	end();
}
END_TEST

START_TEST(a_timer_taken_by_a_worker_but_not_begun_is_moved_in_time)
{
	begin(WW_DRIVER_THREADLESS, 0);
	ww_handle handle = after(0, note, NULL);
	uint64_t left = 0;
	advance(TICK);
	struct firing *firing = take_firing();
	ck_assert_int_eq(ww_driver_reschedule(driver, handle, 5 * TICK), 1);
	ck_assert_int_eq(ww_driver_reschedule(driver, handle, 7 * TICK), 1);
	ck_assert_int_eq(ww_driver_time_left(driver, handle, &left), 1);
	ck_assert_uint_eq(left, 7 * TICK);
	run_taken(firing);
	ck_assert_uint_eq(fired_count, 0);
	uint64_t deadline = now_ns() + 7 * TICK;
	go(7 * TICK - 1);
	ck_assert_uint_eq(fired_count, 0);
	go(TICK);
	ck_assert_uint_eq(fired_count, 1);
	ck_assert_uint_eq(fired[0].deadline, deadline);
	end();
}
END_TEST

START_TEST(a_running_timer_fires_again_but_not_before_the_callbacks_end)
{
	struct gate gate;

	gate_init(&gate);
	begin(0, 2);
	ww_handle handle = after(TICK, hold, &gate);
	advance(2 * TICK);
	gate_wait(&gate, 1);
	ck_assert_int_eq(ww_driver_reschedule(driver, handle, 500 * TICK), 0);
	ck_assert_int_eq(ww_driver_reschedule(driver, handle, 0), 0);
	advance(10 * TICK);
	/* Another deadline passes, and still only one callback is inside. */
	ww_handle other = after(0, note, NULL);
	advance(TICK);
	UNTIL(times_fired(other) == 1);
	ck_assert_int_eq(gate.most, 1);
	gate_open(&gate, 1);
	gate_wait(&gate, 1);
	ck_assert_int_eq(gate.left, 1);
	gate_open(&gate, 1);
	settle();
	ck_assert_int_eq(gate.left, 2);
	ck_assert_int_eq(ww_driver_cancel(driver, handle), WW_ESTALE);
	end();
}
END_TEST

/* A pattern from Go: a function that reschedules itself as long as it wants. */
static void again(struct ww_driver *of, const struct ww_firing *firing, void *user)
{
	int *count = user;

	note(of, firing, user);
	if (++*count < 5)
		ck_assert(ww_driver_reschedule(of, firing->handle, 10 * TICK) == 0);
}

START_TEST(a_callback_keeps_its_own_timer_alive)
{
	int count = 0;

	begin(0, 2);
	ww_handle handle = after(10 * TICK, again, &count);
	for (int i = 0; i < 100; i++)
		go(TICK);
	ck_assert_int_eq(count, 5);
	ck_assert_uint_eq(times_fired(handle), 5);
	for (int i = 0; i < 5; i++)
		ck_assert_uint_eq(fired[i].missed, 0);
	ck_assert_int_eq(ww_driver_reschedule(driver, handle, TICK), WW_ESTALE);
	end();
}
END_TEST

/* ---- Time left */

START_TEST(the_time_left_is_right_in_every_state)
{
	struct gate gate;
	uint64_t left = 99;

	gate_init(&gate);
	begin(0, 1);
	ww_handle handle = after(10 * TICK, hold, &gate);
	ck_assert_int_eq(ww_driver_time_left(driver, handle, &left), 1);
	ck_assert_uint_eq(left, 10 * TICK);
	advance(4 * TICK + 1);
	ck_assert_int_eq(ww_driver_time_left(driver, handle, &left), 1);
	ck_assert_uint_eq(left, 6 * TICK - 1);
	advance(7 * TICK);
	gate_wait(&gate, 1);
	ww_handle queued = after(0, note, NULL);
	advance(TICK);
	UNTIL(stats_of().queued == 1);
	ck_assert_int_eq(ww_driver_time_left(driver, queued, &left), 1);
	ck_assert_uint_eq(left, 0);
	left = 99;
	ck_assert_int_eq(ww_driver_time_left(driver, handle, &left), 0);
	ck_assert_uint_eq(left, 99);
	ck_assert_int_eq(ww_driver_reschedule(driver, handle, 3 * TICK), 0);
	ck_assert_int_eq(ww_driver_time_left(driver, handle, &left), 1);
	ck_assert_uint_eq(left, 3 * TICK);
	gate_open(&gate, 2);
	go(4 * TICK);
	ck_assert_int_eq(ww_driver_time_left(driver, handle, &left), WW_ESTALE);
	end();
}
END_TEST

TEST_MAIN("driver/cancel", a_cancelled_pending_timer_never_fires, a_cancelled_queued_timer_never_fires,
    a_cancelled_running_timer_is_not_called_again, a_timer_taken_by_a_worker_but_not_begun_is_cancelled_in_time,
    cancel_wait_returns_when_the_callback_has_ended, cancel_wait_of_a_cancelled_or_stopped_timer_waits_for_its_callback,
    cancel_wait_in_the_timers_own_callback_is_refused_and_cancel_ends_it,
    one_of_the_callbacks_that_wait_for_each_other_is_refused, a_callback_may_wait_for_the_end_of_another_one,
    a_pending_timer_is_moved_earlier_and_later, a_queued_timer_is_moved_in_time,
    a_timer_taken_by_a_worker_but_not_begun_is_moved_in_time,
    a_running_timer_fires_again_but_not_before_the_callbacks_end, a_callback_keeps_its_own_timer_alive,
    the_time_left_is_right_in_every_state)
