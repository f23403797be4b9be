/* T: threads that schedule and cancel on one driver. L: how late its callbacks start. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <time.h>

#include "lib/base/time.h"
#include "tools/bench/layers.h"
#include "tools/common/memory.h"
#include "weekwheel/weekwheel.h"

/* ---- T */

enum { HELD = LAYER_TIMERS, ROUNDS = 50 };

struct caller {
	struct ww_driver *driver;
	ww_handle timers[HELD];
};

static void nothing(struct ww_driver *driver, const struct ww_firing *firing, void *user)
{
	(void)driver;
	(void)firing;
	(void)user;
}

static void *call(void *argument)
{
	struct caller *caller = argument;

	for (unsigned round = 0; round < ROUNDS; round++) {
		for (unsigned i = 0; i < HELD; i++)
			layer_check(ww_driver_schedule(
			                caller->driver, (30 + i % 1800) * WW_SECOND, nothing, NULL, &caller->timers[i]),
			    "a timer");
		for (unsigned i = 0; i < HELD; i++)
			layer_check(ww_driver_cancel(caller->driver, caller->timers[i]), "a timer");
	}
	return NULL;
}

static struct layer_sample run_threads(unsigned threads)
{
	struct caller *callers = memory_zeroed(threads, sizeof *callers);
	pthread_t *running = memory_zeroed(threads, sizeof *running);
	struct ww_driver *driver;
	uint64_t begin, ns;

	layer_check(ww_driver_create(&driver, NULL), "the driver");
	begin = time_now(CLOCK_MONOTONIC);
	for (unsigned i = 0; i < threads; i++) {
		callers[i].driver = driver;
		if (pthread_create(&running[i], NULL, call, &callers[i]))
			layer_check(WW_ESYSTEM, "a thread");
	}
	for (unsigned i = 0; i < threads; i++)
		pthread_join(running[i], NULL);
	ns = time_now(CLOCK_MONOTONIC) - begin;
	layer_check(ww_driver_destroy(driver), "the driver");
	free(callers);
	free(running);
	return (struct layer_sample){(double)ns / ((double)threads * HELD * ROUNDS), 0};
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
