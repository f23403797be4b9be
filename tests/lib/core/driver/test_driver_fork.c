/* After a fork the child has the driver's memory, but not its threads, and perhaps not its locks. */
/* tier: check, threads, no-valgrind (in a child of several threads another one's link is half made) */

#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/lib/core/driver/fixture.h"

/* Runs in the child. Returns the number of the first call that answers wrongly, or 0. */
static int first_wrong_answer(void)
{
	struct ww_driver_stats stats;
	uint64_t ns;
	size_t count;
	ww_handle handle;
	int threadless = (driver->flags & WW_DRIVER_THREADLESS) != 0;
	int answers[] = {
	    ww_driver_schedule(driver, 0, note, NULL, &handle),
	    ww_driver_schedule_at(driver, 0, note, NULL, &handle),
	    ww_driver_schedule_every(driver, 0, 1, 0, note, NULL, &handle),
	    ww_driver_reschedule(driver, 1, 0),
	    ww_driver_cancel(driver, 1),
	    ww_driver_cancel_wait(driver, 1),
	    ww_driver_time_left(driver, 1, &ns),
	    ww_driver_reserve(driver, 1),
	    ww_driver_now(driver, &ns),
	    ww_driver_settle(driver),
	    ww_driver_stats(driver, &stats),
	    ww_driver_stop(driver, take, NULL, &count),
	    threadless ? ww_driver_fd(driver) : WW_ECLOSED,
	    threadless ? ww_driver_dispatch(driver, 1) : WW_ECLOSED,
	};
	int wrong = 0;

	for (size_t i = 0; !wrong && i < sizeof answers / sizeof answers[0]; i++)
		if (answers[i] != WW_ECLOSED)
			wrong = (int)i + 1;
	return wrong;
}

static int status_of(pid_t child)
{
	int status;

	ck_assert_int_gt(child, 0);
	while (waitpid(child, &status, 0) != child)
		continue;
	ck_assert(WIFEXITED(status));
	return WEXITSTATUS(status);
}

static uint32_t sleeping_workers(void)
{
	pthread_mutex_lock(&driver->queue.lock);
	uint32_t sleeping = 0;
	for (const struct worker *worker = driver->queue.asleep; worker; worker = worker->below)
		sleeping++;
	pthread_mutex_unlock(&driver->queue.lock);
	return sleeping;
}

/*
 * Wait until the driver's threads have begun and sleep. A sanitizer may have its memory locked while a thread begins,
 * and takes no account of forks.
 */
static void rest(void)
{
	uint64_t wakeups = stats_of().wakeups;

	if (driver->flags & WW_DRIVER_THREADLESS)
		return;
	UNTIL(sleeping_workers() == driver->queue.workers);
	ww_driver_wake(driver);
	UNTIL(stats_of().wakeups > wakeups && driver->armed != 0);
}

START_TEST(in_the_child_every_call_answers_closed_and_destroy_frees)
{
	for (uint32_t flags = 0; flags <= WW_DRIVER_THREADLESS; flags++)
		for (int clock = 0; clock < 4; clock++) {
			struct ww_driver_config config = config_of(flags, 2);
			struct ww_clock *clocks[] = {
			    virtual_clock, ww_clock_elapsed(), ww_clock_wall(), ww_clock_awake()};
			struct test_memory memory;
			test_memory_init(&memory, 0);
			config.allocator = &memory.table;
			config.clock = clocks[clock];
			begin_with(&config);
			for (int i = 0; i < 2000; i++)
				(void)after(DAY_NS, note, NULL);
			rest();
			pid_t child = fork();
			if (child == 0) {
				int wrong = first_wrong_answer();
				if (!wrong && ww_driver_destroy(driver) != WW_OK)
					wrong = 50;
				/* A virtual clock's alarm stays: the clock may be locked. */
				if (!wrong && memory.blocks != (clock == 0))
					wrong = 51;
				_exit(wrong);
			}
			ck_assert_int_eq(status_of(child), 0);
			/* The parent's driver goes on. */
			ck_assert_uint_eq(stats_of().pending, 2000);
			if (clock == 0) {
				go(DAY_NS + TICK);
				ck_assert_uint_eq(fired_count, 2000);
			}
			OK(ww_driver_destroy(driver));
			ck_assert_uint_eq(memory.blocks, 0);
		}
}
END_TEST

START_TEST(a_child_creates_its_own_driver_and_so_does_its_child)
{
	begin(0, 1);
	rest();
	pid_t child = fork();
	if (child == 0) {
		int status = 0;
		(void)ww_driver_destroy(driver);
		virtual_clock = NULL;
		/* ThreadSanitizer ends a process that starts threads after such a fork. */
		begin(SLOW ? WW_DRIVER_THREADLESS : 0, 1);
		(void)ww_driver_schedule(driver, 0, note, NULL, NULL);
		(void)ww_clock_virtual_advance(virtual_clock, TICK);
		(void)ww_driver_settle(driver);
		child = fork();
		if (child == 0)
			_exit(first_wrong_answer());
		(void)waitpid(child, &status, 0);
		_exit(fired_count == 1 && WIFEXITED(status) && WEXITSTATUS(status) == 0 &&
		              ww_driver_destroy(driver) == WW_OK
		          ? 0
		          : 1);
	}
	ck_assert_int_eq(status_of(child), 0);
	end();
}
END_TEST

/* In the child the callback ends, too. */
static void end_child(struct ww_driver *of)
{
	int wrong = first_wrong_answer();

	/* A sanitizer's own memory may be locked. */
	if (!wrong && !(SANITIZED && !(of->flags & WW_DRIVER_THREADLESS)) && ww_driver_destroy(of) != WW_OK)
		wrong = 50;
	_exit(wrong);
}

static void fork_inside(struct ww_driver *of, const struct ww_firing *firing, void *user)
{
	pid_t child = fork();
	int status = 0;

	(void)firing;
	if (child == 0)
		end_child(of);
	(void)waitpid(child, &status, 0);
	*(int *)user = WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}

static void fork_in_drain(ww_handle handle, ww_driver_fn *fn, void *user, uint64_t left, void *context)
{
	(void)handle;
	(void)fn;
	(void)user;
	(void)left;
	fork_inside(driver, NULL, context);
}

START_TEST(a_child_forked_in_a_callback_or_a_drain_function_gets_answers_and_frees)
{
	for (uint32_t flags = 0; flags <= WW_DRIVER_THREADLESS; flags++) {
		int status = 77;
		begin(flags, 1);
		(void)after(0, fork_inside, &status);
		go(TICK);
		ck_assert_int_eq(status, 0);
		status = 77;
		(void)after(0, note, NULL);
		OK(ww_driver_stop(driver, fork_in_drain, &status, NULL));
		ck_assert_int_eq(status, 0);
		end();
	}
}
END_TEST

static _Atomic int stop_now;

static void do_nothing(struct ww_driver *of, const struct ww_firing *firing, void *user)
{
	(void)of;
	(void)firing;
	(void)user;
}

/* Holds locks of the driver most of the time, and lets its memory grow. */
static void *work(void *argument)
{
	static _Thread_local ww_handle handle[5000];
	uint64_t seed = (uint64_t)(uintptr_t)argument;
	size_t count = 0;

	while (!stop_now) {
		struct ww_driver_stats stats;
		if (count < 5000)
			ck_assert(ww_driver_schedule(
			              driver, seed_next(&seed) % DAY_NS, do_nothing, NULL, &handle[count++]) == WW_OK);
		ck_assert(ww_driver_cancel(driver, handle[seed_next(&seed) % count]) != WW_EINVAL);
		ck_assert(ww_driver_schedule(driver, seed_next(&seed) % (3 * TICK), do_nothing, NULL, NULL) == WW_OK);
		ck_assert(ww_driver_stats(driver, &stats) == WW_OK);
	}
	return NULL;
}

START_TEST(a_child_forked_while_other_threads_hold_locks_gets_answers_and_frees)
{
	pthread_t thread[3];
	struct test_memory memory;

	test_memory_init(&memory, 0);
	for (int round = 0; round < 8; round++) {
		struct ww_driver_config config = config_of(0, 2);
		config.allocator = &memory.table;
		config.clock = ww_clock_elapsed();
		begin_with(&config);
		stop_now = 0;
		for (uintptr_t i = 0; i < 3; i++)
			ck_assert_int_eq(pthread_create(&thread[i], NULL, work, (void *)(i + 1)), 0);
		for (int i = 0; i < 5; i++) {
			for (int n = 0; n < 2; n++)
				sched_yield();
			pid_t child = fork();
			if (child == 0) {
				int wrong = first_wrong_answer();
				/* A sanitizer's own memory may be locked. */
				if (!wrong && !SANITIZED && ww_driver_destroy(driver) != WW_OK)
					wrong = 50;
				_exit(wrong);
			}
			ck_assert_int_eq(status_of(child), 0);
		}
		stop_now = 1;
		for (int i = 0; i < 3; i++)
			ck_assert_int_eq(pthread_join(thread[i], NULL), 0);
		OK(ww_driver_destroy(driver));
		ck_assert_uint_eq(memory.blocks, 0);
	}
}
END_TEST

TEST_MAIN("driver/fork", in_the_child_every_call_answers_closed_and_destroy_frees,
    a_child_creates_its_own_driver_and_so_does_its_child,
    a_child_forked_in_a_callback_or_a_drain_function_gets_answers_and_frees,
    a_child_forked_while_other_threads_hold_locks_gets_answers_and_frees)
