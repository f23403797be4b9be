/* Threads that use timers, each with a driver of its own or all with one. */
#include "tools/bench/cores/scenario.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "lib/base/time.h"
#include "tools/common/memory.h"
#include "weekwheel/driver.h"

/* Beyond every deadline that is not to come. */
#define FAR (600 * WW_SECOND)

struct holder {
	_Alignas(64) struct ww_driver *driver;
	ww_handle timers[SCENARIO_TIMERS];
};

struct counter {
	_Alignas(64) _Atomic uint64_t calls;
};

struct scenario {
	unsigned threads, workers;
	struct holder *holders;
	struct counter *counters; /* of workers, or of threads with drivers of their own */
	uint64_t callback_ns;
	uint64_t due; /* of those that come together */
	uint64_t asked;
};

static _Thread_local struct counter *counter_here;

static void check(int result, const char *what)
{
	if (result >= 0)
		return;
	fprintf(stderr, "bench-cores: %s: %s\n", what, ww_strerror(result));
	exit(1);
}

static void called(struct ww_driver *driver, const struct ww_firing *firing, void *user)
{
	const struct scenario *scenario = user;
	struct timespec pause = {0, (long)scenario->callback_ns};

	(void)driver, (void)firing;
	if (scenario->callback_ns)
		(void)nanosleep(&pause, NULL);
	atomic_fetch_add_explicit(&counter_here->calls, 1, memory_order_release);
}

static void begin_thread(const struct ww_driver_thread *thread, void *user)
{
	const struct scenario *scenario = user;

	if (thread->worker >= 0)
		counter_here = &scenario->counters[thread->worker];
}

/* As many shards as on a machine with a processor for each thread. */
static uint32_t shards_for(unsigned threads)
{
	uint32_t shards = 4;

	while (shards < WW_DRIVER_SHARDS_MAX && shards < 2 * threads)
		shards *= 2;
	return shards;
}

static struct ww_driver *make_driver(struct scenario *scenario)
{
	struct ww_driver_config config;
	struct ww_driver *driver;

	check(ww_driver_config_default(&config), "the driver");
	if (scenario->workers) {
		config.workers = scenario->workers;
		config.shards = shards_for(scenario->threads);
		config.thread_begin = begin_thread;
		config.thread_user = scenario;
	} else
		config.flags = WW_DRIVER_THREADLESS;
	check(ww_driver_create(&driver, &config), "the driver");
	return driver;
}

struct scenario *scenario_open(unsigned threads, unsigned workers)
{
	struct scenario *scenario = memory_zeroed(1, sizeof *scenario);
	struct ww_driver *shared = NULL;

	scenario->threads = threads;
	scenario->workers = workers;
	scenario->holders = memory_aligned(threads, sizeof *scenario->holders);
	scenario->counters = memory_aligned(workers ? workers : threads, sizeof *scenario->counters);
	if (workers)
		shared = make_driver(scenario);
	for (unsigned i = 0; i < threads; i++)
		scenario->holders[i].driver = shared ? shared : make_driver(scenario);
	return scenario;
}

void scenario_close(struct scenario *scenario)
{
	for (unsigned i = 0; i < (scenario->workers ? 1 : scenario->threads); i++)
		check(ww_driver_destroy(scenario->holders[i].driver), "the driver");
	free(scenario->holders);
	free(scenario->counters);
	free(scenario);
}

/* All of the round are called at its end, as a loop that has been busy would. */
static void fire(struct scenario *scenario, unsigned thread, unsigned i)
{
	struct ww_driver *driver = scenario->holders[thread].driver;
	uint64_t now;

	counter_here = &scenario->counters[thread];
	check(ww_driver_now(driver, &now), "the driver");
	check(ww_driver_schedule_at(driver, now - WW_SECOND, called, scenario, NULL), "a timer");
	if (i + 1 == SCENARIO_TIMERS && ww_driver_dispatch(driver, SCENARIO_TIMERS) != SCENARIO_TIMERS)
		check(WW_ESTALE, "timers that were due");
}

void scenario_do(struct scenario *scenario, enum deed deed, unsigned thread, unsigned i)
{
	struct holder *holder = &scenario->holders[thread];
	struct holder *next = &scenario->holders[(thread + 1) % scenario->threads];

	switch (deed) {
	case DEED_SCHEDULE:
	case DEED_SCHEDULE_AGAIN:
		check(ww_driver_schedule(holder->driver, FAR + i * WW_SECOND, called, scenario, &holder->timers[i]),
		    "a timer");
		break;
	case DEED_HEARTBEAT:
		check(ww_driver_reschedule(holder->driver, holder->timers[i], 2 * FAR), "a timer");
		break;
	case DEED_CANCEL:
		check(ww_driver_cancel(holder->driver, holder->timers[i]), "a timer");
		break;
	case DEED_CANCEL_OTHERS:
		check(ww_driver_cancel(next->driver, next->timers[i]), "another thread's timer");
		break;
	case DEED_FIRE:
	case DEEDS:
		fire(scenario, thread, i);
	}
}

/* ---- Timers of a shared driver that are due together */

static uint64_t calls(const struct scenario *scenario)
{
	uint64_t sum = 0;

	for (unsigned i = 0; i < scenario->workers; i++)
		sum += scenario->counters[i].calls;
	return sum;
}

void scenario_set_callback(struct scenario *scenario, uint64_t ns)
{
	scenario->callback_ns = ns;
	scenario->due = 0;
}

void scenario_schedule_due(struct scenario *scenario, unsigned thread)
{
	struct ww_driver *driver = scenario->holders[thread].driver;
	uint64_t now;

	if (scenario->due == 0) {
		check(ww_driver_now(driver, &now), "the driver");
		scenario->due = now + WW_SECOND / 5 + scenario->threads * 20 * WW_MILLISECOND;
	}
	for (unsigned i = 0; i < SCENARIO_TIMERS; i++)
		check(ww_driver_schedule_at(driver, scenario->due, called, scenario, NULL), "a timer");
	scenario->asked += SCENARIO_TIMERS;
}

uint64_t scenario_wait_due(struct scenario *scenario)
{
	const struct timespec pause = {0, 1000000};
	uint64_t now, due = scenario->due;

	while (calls(scenario) < scenario->asked)
		(void)nanosleep(&pause, NULL);
	check(ww_driver_now(scenario->holders[0].driver, &now), "the driver");
	scenario->due = 0;
	return now > due ? now - due : 0;
}

unsigned scenario_busy_workers(const struct scenario *scenario)
{
	unsigned busy = 0;

	for (unsigned i = 0; i < scenario->workers; i++)
		busy += scenario->counters[i].calls > 0;
	return busy;
}
