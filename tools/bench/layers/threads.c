/* T: threads that schedule and cancel on one driver. L: how late its callbacks start. */
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <time.h>

#include "lib/base/time.h"
#include "tools/bench/layers.h"
#include "tools/common/memory.h"
#include "weekwheel/weekwheel.h"

/* ---- T */

enum { HELD = LAYER_TIMERS, ROUNDS = 200 };

struct caller {
	struct ww_driver *driver;
	pthread_barrier_t *start;
	unsigned number;
	uint64_t ns;
	ww_handle timers[HELD];
};

static void nothing(struct ww_driver *driver, const struct ww_firing *firing, void *user)
{
	(void)driver;
	(void)firing;
	(void)user;
}

/* Keep this thread on the n-th of the processors that the process may use, counted from 0; if there is none, on any. */
static void pin_nth(unsigned n)
{
	cpu_set_t set, one;

	if (sched_getaffinity(0, sizeof set, &set))
		return;
	CPU_ZERO(&one);
	for (unsigned cpu = 0; cpu < CPU_SETSIZE; cpu++)
		if (CPU_ISSET(cpu, &set) && n-- == 0)
			CPU_SET(cpu, &one);
	(void)sched_setaffinity(0, sizeof one, &one);
}

static void call_round(struct caller *caller)
{
	for (unsigned i = 0; i < HELD; i++)
		layer_check(
		    ww_driver_schedule(caller->driver, (30 + i % 1800) * WW_SECOND, nothing, NULL, &caller->timers[i]),
		    "a timer");
	for (unsigned i = 0; i < HELD; i++)
		layer_check(ww_driver_cancel(caller->driver, caller->timers[i]), "a timer");
}

/* A round that touches all memory, and then all threads begin together. */
static void *call(void *argument)
{
	struct caller *caller = argument;
	uint64_t begin;

	pin_nth(caller->number);
	call_round(caller);
	(void)pthread_barrier_wait(caller->start);
	begin = time_now(CLOCK_MONOTONIC);
	for (unsigned round = 0; round < ROUNDS; round++)
		call_round(caller);
	caller->ns = time_now(CLOCK_MONOTONIC) - begin;
	return NULL;
}

/* ns for a schedule and a cancel of any thread: the rates of the threads are added. */
static struct layer_sample run_threads(unsigned threads)
{
	struct caller *callers = memory_zeroed(threads, sizeof *callers);
	pthread_t *running = memory_zeroed(threads, sizeof *running);
	pthread_barrier_t start;
	struct ww_driver *driver;
	double a_ns = 0;

	layer_check(ww_driver_create(&driver, NULL), "the driver");
	pthread_barrier_init(&start, NULL, threads);
	for (unsigned i = 0; i < threads; i++) {
		callers[i] = (struct caller){.driver = driver, .start = &start, .number = i};
		if (pthread_create(&running[i], NULL, call, &callers[i]))
			layer_check(WW_ESYSTEM, "a thread");
	}
	for (unsigned i = 0; i < threads; i++) {
		pthread_join(running[i], NULL);
		a_ns += 1.0 * HELD * ROUNDS / (double)callers[i].ns;
	}
	pthread_barrier_destroy(&start);
	layer_check(ww_driver_destroy(driver), "the driver");
	free(callers);
	free(running);
	return (struct layer_sample){1 / a_ns, 0};
}

struct layer_sample layer_one_thread(uint64_t n, uint64_t seed)
{
	(void)n, (void)seed;
	return run_threads(1);
}

struct layer_sample layer_two_threads(uint64_t n, uint64_t seed)
{
	(void)n, (void)seed;
	return run_threads(2);
}

/* ---- L */

enum { FIRINGS = LAYER_FIRINGS, FIRINGS_A_SECOND = 100000 };

struct firings {
	_Atomic unsigned count;
	uint32_t late_ns[FIRINGS];
};

static void fire(struct ww_driver *driver, const struct ww_firing *firing, void *user)
{
	struct firings *firings = user;
	uint64_t now = firing->deadline;
	unsigned i = atomic_fetch_add(&firings->count, 1);

	(void)ww_driver_now(driver, &now);
	if (i < FIRINGS)
		firings->late_ns[i] =
		    now - firing->deadline < UINT32_MAX ? (uint32_t)(now - firing->deadline) : UINT32_MAX;
}

static int by_lateness(const void *one, const void *other)
{
	uint32_t a = *(const uint32_t *)one, b = *(const uint32_t *)other;

	return (a > b) - (a < b);
}

static struct layer_sample lateness_of(uint32_t *late_ns)
{
	qsort(late_ns, FIRINGS, sizeof *late_ns, by_lateness);
	return (struct layer_sample){late_ns[FIRINGS / 2] / 1e3, late_ns[(uint64_t)FIRINGS * 999 / 1000] / 1e3};
}

static struct layer_sample late_with(uint32_t workers)
{
	struct firings *firings = memory_zeroed(1, sizeof *firings);
	struct ww_driver_config config;
	struct ww_driver *driver;
	uint64_t begin;

	layer_check(ww_driver_config_default(&config), "the driver");
	config.workers = workers ? workers : config.workers;
	layer_check(ww_driver_create(&driver, &config), "the driver");
	layer_check(ww_driver_now(driver, &begin), "the driver");
	/* A second to schedule them all in. */
	begin += WW_SECOND;
	for (uint64_t i = 0; i < FIRINGS; i++)
		layer_check(
		    ww_driver_schedule_at(driver, begin + i * (WW_SECOND / FIRINGS_A_SECOND), fire, firings, NULL),
		    "a timer");
	layer_check(ww_sleep(driver, (FIRINGS / FIRINGS_A_SECOND + 2) * WW_SECOND), "sleep");
	layer_check(ww_driver_destroy(driver), "the driver");
	layer_check(firings->count == FIRINGS ? 0 : WW_ESTALE, "a timer was lost or came twice");
	struct layer_sample lateness = lateness_of(firings->late_ns);
	free(firings);
	return lateness;
}

struct layer_sample layer_late(uint64_t n, uint64_t seed)
{
	(void)n, (void)seed;
	return late_with(0);
}

struct layer_sample layer_late_64(uint64_t n, uint64_t seed)
{
	struct rusage before, after;
	struct layer_sample sample;

	(void)n, (void)seed;
	(void)getrusage(RUSAGE_SELF, &before);
	sample = late_with(64);
	(void)getrusage(RUSAGE_SELF, &after);
	sample.second = (double)(after.ru_nvcsw + after.ru_nivcsw - before.ru_nvcsw - before.ru_nivcsw);
	return sample;
}

struct layer_sample layer_sleep(uint64_t n, uint64_t seed)
{
	enum { TICK_NS = 1000000 };
	const uint64_t between = WW_SECOND / FIRINGS_A_SECOND;
	uint32_t *late_ns = memory_zeroed(FIRINGS, sizeof *late_ns);
	uint64_t begin = time_now(CLOCK_MONOTONIC) + 10 * TICK_NS;
	uint64_t now;
	size_t i = 0;

	(void)n, (void)seed;
	for (uint64_t tick = begin; i < FIRINGS; tick += TICK_NS) {
		struct timespec until = {(time_t)(tick / WW_SECOND), (long)(tick % WW_SECOND)};
		while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL))
			continue;
		now = time_now(CLOCK_MONOTONIC);
		for (; i < FIRINGS && begin + i * between <= tick; i++)
			late_ns[i] = (uint32_t)(now - (begin + i * between));
	}
	struct layer_sample lateness = lateness_of(late_ns);
	free(late_ns);
	return lateness;
}
