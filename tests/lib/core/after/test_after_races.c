/*
 * Several threads use timers to wait for: against a running clock, a stop of the driver and the cancellation of
 * threads, and in a forked child.
 */
/* tier: check, threads, no-valgrind */

#include <errno.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/core/after/channel.h"
#include "tests/lib/core/after/fixture.h"
#include "tests/support/seed.h"

/* ---- A running clock -------------------------------------------------------------------------------------------- */

struct runner {
	struct world world;
	atomic_int stop;
	uint64_t passed;
	pthread_t thread;
};

static void *run_clock(void *argument)
{
	struct runner *runner = argument;

	/* Less than an hour in all. The tests take an hour for never. */
	while (!atomic_load(&runner->stop) && runner->passed < HOUR_NS / 2) {
		OK(ww_clock_virtual_advance(runner->world.clock, MS / 4));
		runner->passed += MS / 4;
		sched_yield();
	}
	return NULL;
}

static void start_clock(struct runner *runner, struct world world)
{
	*runner = (struct runner){.world = world};
	runner->thread = start_thread(run_clock, runner);
}

static void end_clock(struct runner *runner)
{
	atomic_store(&runner->stop, 1);
	end_thread(runner->thread);
}

/* After a random while, in which expiries come close. */
static void dawdle(uint64_t *seed)
{
	for (uint64_t i = seed_below(seed, 4); i > 0; i--)
		sched_yield();
	for (uint64_t i = seed_below(seed, 300); i > 0; i--)
		atomic_signal_fence(memory_order_seq_cst);
}

START_TEST(after_a_reset_or_stop_nothing_stale_is_received)
{
	struct world world = make_world();
	uint64_t seed = seed_of_run("after_a_reset_or_stop_nothing_stale_is_received");
	struct runner runner;
	struct ww_after *after;
	int answers[2] = {0, 0};

	OK(ww_after_create(&after, world.driver, 0));
	start_clock(&runner, world);
	for (int i = 0; i < 5000; i++) {
		uint64_t before = 0;
		uint64_t time = 0;
		int active;
		OK(ww_driver_now(world.driver, &before));
		ck_assert_int_ge(ww_after_reset(after, seed_below(&seed, 2 * MS)), 0);
		dawdle(&seed);
		int received = ww_after_poll(after, &time);
		ck_assert(!received || time >= before);
		active = seed_below(&seed, 2) ? ww_after_reset(after, HOUR_NS) : ww_after_stop(after);
		ck_assert_int_eq(active, !received);
		answers[received]++;
		for (int looks = 0; looks < 5; looks++) {
			ck_assert_int_eq(ww_after_poll(after, NULL), 0);
			sched_yield();
		}
	}
	end_clock(&runner);
	printf("%d in time, %d not\n", answers[0], answers[1]);
	OK(ww_after_destroy(after));
	end_world(world);
}
END_TEST

START_TEST(after_a_reset_or_stop_a_ticker_delivers_no_stale_tick)
{
	struct world world = make_world();
	uint64_t seed = seed_of_run("after_a_reset_or_stop_a_ticker_delivers_no_stale_tick");
	struct runner runner;
	struct ww_ticker *ticker;

	OK(ww_ticker_create(&ticker, world.driver, MS));
	start_clock(&runner, world);
	for (int i = 0; i < 3000; i++) {
		ck_assert_int_ge(ww_ticker_reset(ticker, 1 + seed_below(&seed, MS)), 0);
		dawdle(&seed);
		(void)ww_ticker_poll(ticker, NULL);
		ck_assert_int_eq(seed_below(&seed, 2) ? ww_ticker_reset(ticker, HOUR_NS) : ww_ticker_stop(ticker), 1);
		for (int looks = 0; looks < 5; looks++) {
			ck_assert_int_eq(ww_ticker_poll(ticker, NULL), 0);
			sched_yield();
		}
	}
	end_clock(&runner);
	OK(ww_ticker_destroy(ticker));
	end_world(world);
}
END_TEST

/* Stop and reset answer truly: each start is either taken back or called. */
START_TEST(a_function_is_called_once_for_each_start_that_was_not_taken_back)
{
	struct world world = make_world();
	uint64_t seed = seed_of_run("a_function_is_called_once_for_each_start_that_was_not_taken_back");
	struct gate gate = {0};
	struct runner runner;
	struct ww_after *after;
	int starts = 1;

	OK(ww_after_func(&after, world.driver, MS, gate_fn, &gate));
	start_clock(&runner, world);
	/* Some are called, however busy the machine is. */
	for (int i = 0; i < 5000 || atomic_load(&gate.went) == 0; i++) {
		dawdle(&seed);
		if (seed_below(&seed, 3) == 0) {
			starts -= ww_after_stop(after);
		} else {
			starts -= ww_after_reset(after, seed_below(&seed, MS));
			starts++;
		}
	}
	end_clock(&runner);
	starts -= ww_after_stop(after);
	OK(ww_driver_settle(world.driver));
	ck_assert_int_eq(atomic_load(&gate.went), starts);
	ck_assert_int_gt(starts, 0);
	OK(ww_after_destroy(after));
	end_world(world);
}
END_TEST

/* A sanitizer sees what a callback that comes too late would touch. */
START_TEST(a_timer_may_be_destroyed_while_it_expires)
{
	struct world world = make_world();
	uint64_t seed = seed_of_run("a_timer_may_be_destroyed_while_it_expires");
	struct gate gate = {0};
	struct runner runner;

	start_clock(&runner, world);
	for (int i = 0; i < 1000; i++) {
		uint64_t delay = seed_below(&seed, MS);
		struct ww_after *after;
		struct ww_after *func;
		struct ww_ticker *ticker;
		OK(ww_after_create(&after, world.driver, delay));
		OK(ww_after_func(&func, world.driver, delay, gate_fn, &gate));
		OK(ww_ticker_create(&ticker, world.driver, delay + 1));
		dawdle(&seed);
		OK(ww_after_destroy(after));
		OK(ww_after_destroy(func));
		OK(ww_ticker_destroy(ticker));
	}
	end_clock(&runner);
	OK(ww_driver_settle(world.driver));
	ck_assert_int_eq(atomic_load(&gate.came), atomic_load(&gate.went));
	ck_assert_uint_eq(stats_of(world).pending, 0);
	end_world(world);
}
END_TEST

struct listener {
	struct ww_ticker *ticker;
	struct ww_after *after;
	struct ww_driver *driver;
	_Atomic int received;
	int result;
	uint64_t last;
};

static void *listen(void *argument)
{
	struct listener *listener = argument;
	uint64_t time = 0;

	while ((listener->result = ww_ticker_receive(listener->ticker, &time)) == WW_OK) {
		ck_assert_uint_gt(time, listener->last);
		listener->last = time;
		listener->received++;
	}
	return NULL;
}

START_TEST(threads_sleep_and_receive_while_the_clock_runs)
{
	struct world world = make_world();
	struct listener listener = {0};
	struct runner runner;
	pthread_t thread;

	OK(ww_ticker_create(&listener.ticker, world.driver, 3 * MS));
	thread = start_thread(listen, &listener);
	start_clock(&runner, world);
	for (uint64_t i = 0; i < 300; i++) {
		uint64_t before = 0;
		uint64_t now = 0;
		OK(ww_driver_now(world.driver, &before));
		OK(ww_sleep(world.driver, i % 4 * MS));
		OK(ww_driver_now(world.driver, &now));
		ck_assert_uint_ge(now - before, i % 4 * MS);
	}
	/* On a busy machine the listener has perhaps not begun yet. The clock runs until it has received. */
	while (listener.received == 0)
		sched_yield();
	OK(ww_driver_stop(world.driver, NULL, NULL, NULL));
	end_clock(&runner);
	end_thread(thread);
	ck_assert_int_eq(listener.result, WW_ECLOSED);
	OK(ww_ticker_destroy(listener.ticker));
	end_world(world);
}
END_TEST

/* ---- The driver stops ------------------------------------------------------------------------------------------- */

static void *receive_one(void *argument)
{
	struct listener *listener = argument;

	listener->result =
	    listener->after ? ww_after_receive(listener->after, &listener->last) : ww_sleep(listener->driver, HOUR_NS);
	return NULL;
}

/* Takes the place of the C library's: a thread that waits must not look again and again. */
static _Atomic int timed_waits;

int pthread_cond_timedwait(pthread_cond_t *condition, pthread_mutex_t *lock, const struct timespec *until)
{
	(void)condition;
	(void)lock;
	(void)until;
	timed_waits++;
	return ETIMEDOUT;
}

START_TEST(every_waiting_thread_is_told_of_the_drivers_stop)
{
	struct world world = make_world();
	struct listener ticks = {.result = 1};
	struct listener value = {.result = 1};
	struct listener stopped = {.result = 1};
	struct listener sleeper = {.driver = world.driver, .result = 1};
	struct gate gate = {0};
	struct ww_after *func;
	size_t count = 0;
	pthread_t threads[4];

	OK(ww_ticker_create(&ticks.ticker, world.driver, HOUR_NS));
	OK(ww_after_create(&value.after, world.driver, HOUR_NS));
	OK(ww_after_create(&stopped.after, world.driver, HOUR_NS));
	OK(ww_after_func(&func, world.driver, HOUR_NS, gate_fn, &gate));
	ck_assert_int_eq(ww_after_stop(stopped.after), 1);
	threads[0] = start_thread(listen, &ticks);
	threads[1] = start_thread(receive_one, &value);
	threads[2] = start_thread(receive_one, &stopped);
	threads[3] = start_thread(receive_one, &sleeper);
	wait_until_pending(world, 4);
	OK(ww_driver_stop(world.driver, NULL, NULL, &count));
	ck_assert_uint_eq(count, 4);
	for (int i = 0; i < 4; i++)
		end_thread(threads[i]);
	ck_assert_int_eq(ticks.result, WW_ECLOSED);
	ck_assert_int_eq(value.result, WW_ECLOSED);
	ck_assert_int_eq(stopped.result, WW_ECLOSED);
	ck_assert_int_eq(sleeper.result, WW_ECLOSED);

	ck_assert_int_eq(timed_waits, 0);

	ck_assert_int_eq(ww_after_create(&func, world.driver, 0), WW_ECLOSED);
	ck_assert_int_eq(ww_after_receive(value.after, NULL), WW_ECLOSED);
	ck_assert_int_eq(ww_after_poll(value.after, NULL), WW_ECLOSED);
	ck_assert_int_eq(ww_after_stop(value.after), WW_ECLOSED);
	ck_assert_int_eq(ww_after_reset(func, 0), WW_ECLOSED);
	ck_assert_int_eq(ww_ticker_stop(ticks.ticker), WW_ECLOSED);
	ck_assert_int_eq(ww_ticker_reset(ticks.ticker, 1), WW_ECLOSED);
	ck_assert_int_eq(ww_sleep(world.driver, 0), WW_ECLOSED);
	OK(ww_after_destroy(value.after));
	OK(ww_after_destroy(stopped.after));
	OK(ww_after_destroy(func));
	OK(ww_ticker_destroy(ticks.ticker));
	end_world(world);
	ck_assert_int_eq(atomic_load(&gate.came), 0);
}
END_TEST

static void *destroy_one(void *argument)
{
	struct listener *listener = argument;

	listener->result = ww_after_destroy(listener->after);
	return NULL;
}

START_TEST(destroy_waits_for_a_function_that_still_runs_after_the_stop)
{
	struct world world = make_world();
	struct gate gate = {.closed = 1};
	struct listener destroyer = {.result = 1};
	pthread_t thread;

	OK(ww_after_func(&destroyer.after, world.driver, 0, gate_fn, &gate));
	wait_until_came(&gate, 1);
	OK(ww_driver_stop(world.driver, NULL, NULL, NULL));
	thread = start_thread(destroy_one, &destroyer);
	for (int i = 0; i < 1000; i++)
		sched_yield();
	ck_assert_int_ne(pthread_tryjoin_np(thread, NULL), 0);
	atomic_store(&gate.closed, 0);
	end_thread(thread);
	OK(destroyer.result);
	end_world(world);
}
END_TEST

START_TEST(the_driver_may_stop_while_timers_expire)
{
	enum { MANY = 20 };
	uint64_t seed = seed_of_run("the_driver_may_stop_while_timers_expire");

	for (int round = 0; round < 200; round++) {
		struct world world = make_world();
		struct gate gate = {0};
		struct ww_after *after[MANY];
		struct ww_after *func[MANY];
		struct ww_ticker *ticker[MANY];
		for (int i = 0; i < MANY; i++) {
			OK(ww_after_create(&after[i], world.driver, MS));
			OK(ww_after_func(&func[i], world.driver, MS, gate_fn, &gate));
			OK(ww_ticker_create(&ticker[i], world.driver, MS));
		}
		OK(ww_clock_virtual_advance(world.clock, MS));
		dawdle(&seed);
		OK(ww_driver_stop(world.driver, NULL, NULL, NULL));
		for (int i = MANY - 1; i >= 0; i--) {
			OK(ww_after_destroy(after[i]));
			OK(ww_after_destroy(func[i]));
			OK(ww_ticker_destroy(ticker[i]));
		}
		end_world(world);
		ck_assert_int_eq(atomic_load(&gate.came), atomic_load(&gate.went));
	}
}
END_TEST

/* The only worker is busy and the queue is full. A function's call is dropped, and no value is. */
START_TEST(values_are_not_dropped_when_the_queue_is_full)
{
	struct world world = make_world_of(1, 1, WW_DRIVER_DROP);
	struct gate gate = {.closed = 1};
	struct gate other = {.closed = 0};
	struct listener sleeper = {.driver = world.driver, .result = 1};
	struct ww_after *keeper;
	struct ww_after *filler;
	struct ww_after *func;
	struct ww_after *value;
	struct ww_ticker *ticker;
	uint64_t time = 0;
	pthread_t thread;

	OK(ww_after_func(&keeper, world.driver, 0, gate_fn, &gate));
	wait_until_came(&gate, 1);
	OK(ww_after_func(&filler, world.driver, MS, gate_fn, &other));
	OK(ww_clock_virtual_advance(world.clock, MS));
	while (stats_of(world).queued != 1)
		sched_yield();
	OK(ww_after_create(&value, world.driver, 2 * MS));
	OK(ww_ticker_create(&ticker, world.driver, 2 * MS));
	thread = start_thread(receive_one, &sleeper);
	wait_until_pending(world, 3);
	OK(ww_after_func(&func, world.driver, HOUR_NS, gate_fn, &other));
	OK(ww_clock_virtual_advance(world.clock, HOUR_NS));
	while (stats_of(world).dropped != 1)
		sched_yield();
	/* The function that waited for the worker, a value, a tick and a sleep. */
	while (stats_of(world).queued != 4)
		sched_yield();
	atomic_store(&gate.closed, 0);
	OK(ww_after_receive(value, &time));
	ck_assert_uint_eq(time, START + 3 * MS);
	OK(ww_ticker_receive(ticker, &time));
	ck_assert_uint_eq(time, START + 3 * MS);
	end_thread(thread);
	OK(sleeper.result);
	ck_assert_uint_eq(stats_of(world).dropped, 1);
	ck_assert_int_eq(atomic_load(&other.came), 1);
	OK(ww_after_destroy(keeper));
	OK(ww_after_destroy(filler));
	OK(ww_after_destroy(func));
	OK(ww_after_destroy(value));
	OK(ww_ticker_destroy(ticker));
	end_world(world);
}
END_TEST

/* ---- Cancelled threads ------------------------------------------------------------------------------------------ */

START_TEST(a_cancelled_receiver_loses_no_value)
{
	struct world world = make_world();
	struct listener receiver = {0};
	struct listener second = {0};
	pthread_t thread;
	pthread_t other;

	OK(ww_after_create(&receiver.after, world.driver, HOUR_NS));
	second.after = receiver.after;
	for (int i = 0; i < 20; i++) {
		thread = start_thread(receive_one, &receiver);
		for (int yields = 0; yields < i * 20; yields++)
			sched_yield();
		pthread_cancel(thread);
		ck_assert(end_thread(thread));
	}
	/*
	 * One of two waiting threads is cancelled when the value comes. If it has not taken the value, the other one
	 * does.
	 */
	receiver.result = second.result = 1;
	thread = start_thread(receive_one, &receiver);
	other = start_thread(receive_one, &second);
	OK(ww_clock_virtual_advance(world.clock, HOUR_NS));
	pthread_cancel(thread);
	if (!end_thread(thread)) {
		OK(receiver.result);
		ck_assert_int_eq(ww_after_reset(receiver.after, 0), 0);
	}
	end_thread(other);
	OK(second.result);
	OK(ww_after_destroy(receiver.after));
	end_world(world);
}
END_TEST

/* The number of threads that wait for the timer's value. The channel is its first member. */
static uint32_t receivers_of(struct ww_after *after)
{
	struct ww_channel *channel = (struct ww_channel *)(void *)after;
	uint32_t receivers;

	pthread_mutex_lock(&channel->lock);
	receivers = channel->receivers;
	pthread_mutex_unlock(&channel->lock);
	return receivers;
}

START_TEST(destroy_is_refused_while_a_thread_waits)
{
	struct world world = make_world();
	struct listener receiver = {0};
	pthread_t thread;

	OK(ww_after_create(&receiver.after, world.driver, HOUR_NS));
	thread = start_thread(receive_one, &receiver);
	while (receivers_of(receiver.after) == 0)
		sched_yield();
	ck_assert_int_eq(ww_after_destroy(receiver.after), WW_EBUSY);
	ck_assert_uint_eq(stats_of(world).pending, 1);
	pthread_cancel(thread);
	ck_assert(end_thread(thread));
	OK(ww_after_destroy(receiver.after));
	end_world(world);
}
END_TEST

START_TEST(a_cancelled_sleeper_leaves_no_timer)
{
	struct world world = make_world();
	struct listener sleeper = {.driver = world.driver};

	for (int i = 0; i < 50; i++) {
		pthread_t thread = start_thread(receive_one, &sleeper);
		wait_until_pending(world, 1);
		if (i % 2 == 1) /* if its time comes just now, it may have slept to the end */
			OK(ww_clock_virtual_advance(world.clock, HOUR_NS));
		pthread_cancel(thread);
		int cancelled = end_thread(thread);
		ck_assert(cancelled || i % 2 == 1);
		OK(ww_driver_settle(world.driver));
		ck_assert_uint_eq(stats_of(world).pending, 0);
	}
	end_world(world);
}
END_TEST

START_TEST(a_cancelled_destroy_can_be_repeated)
{
	struct world world = make_world();
	struct gate gate = {.closed = 1};
	struct listener destroyer = {0};
	pthread_t thread;

	OK(ww_after_func(&destroyer.after, world.driver, 0, gate_fn, &gate));
	wait_until_came(&gate, 1);
	ck_assert_int_eq(ww_after_reset(destroyer.after, MS), 0);
	thread = start_thread(destroy_one, &destroyer);
	wait_until_pending(world, 0);
	pthread_cancel(thread);
	ck_assert(end_thread(thread));
	atomic_store(&gate.closed, 0);
	OK(ww_after_destroy(destroyer.after));
	pass(world, HOUR_NS);
	ck_assert_int_eq(atomic_load(&gate.went), 1);
	end_world(world);
}
END_TEST

/* ---- A forked child --------------------------------------------------------------------------------------------- */

START_TEST(in_a_forked_child_every_call_answers_closed)
{
	struct world world = make_world();
	struct ww_after *after;
	struct ww_ticker *ticker;
	pid_t child;
	int status = -1;

	OK(ww_after_create(&after, world.driver, 0));
	OK(ww_ticker_create(&ticker, world.driver, MS));
	OK(ww_driver_settle(world.driver));
	/* As if another thread, which the child does not have, held it at that moment. */
	pthread_mutex_lock(&((struct ww_channel *)(void *)after)->lock);
	child = fork();
	if (child == 0) {
		int wrong = 0;
		(void)alarm(500); /* end rather than hang */
		wrong |= ww_after_receive(after, NULL) != WW_ECLOSED;
		wrong |= (ww_after_poll(after, NULL) != WW_ECLOSED) << 1;
		wrong |= (ww_after_stop(after) != WW_ECLOSED) << 2;
		wrong |= (ww_after_reset(after, 0) != WW_ECLOSED) << 3;
		wrong |= (ww_sleep(world.driver, 1) != WW_ECLOSED) << 4;
		wrong |= (ww_after_destroy(after) != WW_OK) << 5;
		/* In any order. Another thread may have had one more, which the child cannot destroy. */
		wrong |= (ww_driver_destroy(world.driver) != WW_OK) << 6;
		wrong |= (ww_ticker_destroy(ticker) != WW_OK) << 7;
		_exit(wrong);
	}
	pthread_mutex_unlock(&((struct ww_channel *)(void *)after)->lock);
	ck_assert_int_gt(child, 0);
	while (waitpid(child, &status, 0) < 0)
		ck_assert_int_eq(errno, EINTR);
	ck_assert_int_eq(status, 0);
	OK(ww_after_receive(after, NULL));
	OK(ww_after_destroy(after));
	OK(ww_ticker_destroy(ticker));
	end_world(world);
}
END_TEST

TEST_MAIN("after/races", after_a_reset_or_stop_nothing_stale_is_received,
    after_a_reset_or_stop_a_ticker_delivers_no_stale_tick,
    a_function_is_called_once_for_each_start_that_was_not_taken_back, a_timer_may_be_destroyed_while_it_expires,
    threads_sleep_and_receive_while_the_clock_runs, every_waiting_thread_is_told_of_the_drivers_stop,
    destroy_waits_for_a_function_that_still_runs_after_the_stop, the_driver_may_stop_while_timers_expire,
    values_are_not_dropped_when_the_queue_is_full, a_cancelled_receiver_loses_no_value,
    destroy_is_refused_while_a_thread_waits, a_cancelled_sleeper_leaves_no_timer, a_cancelled_destroy_can_be_repeated,
    in_a_forked_child_every_call_answers_closed)
