#ifndef TESTS_LIB_CORE_AFTER_FIXTURE_H
#define TESTS_LIB_CORE_AFTER_FIXTURE_H

/* Shared by the tests of timers to wait for: a driver on a virtual clock, threads, and gates that callbacks wait at. */

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdint.h>

#include "tests/support/suite.h"
#include "weekwheel/after.h"
#include "weekwheel/clock.h"
#include "weekwheel/driver.h"

#define MS WW_MILLISECOND
#define HOUR_NS (3600 * WW_SECOND)
#define START (1000 * WW_SECOND)

struct world {
	struct ww_clock *clock;
	struct ww_driver *driver;
};

static inline struct world make_world_of(uint32_t workers, size_t queue, uint32_t flags)
{
	struct ww_driver_config config;
	struct world world;

	OK(ww_clock_virtual_create(&world.clock, START, NULL));
	OK(ww_driver_config_default(&config));
	config.clock = world.clock;
	config.workers = workers;
	config.queue = queue;
	config.flags = flags;
	OK(ww_driver_create(&world.driver, &config));
	return world;
}

static inline struct world make_world(void)
{
	return make_world_of(2, 1000, 0);
}

static inline void end_world(struct world world)
{
	OK(ww_driver_destroy(world.driver));
	OK(ww_clock_virtual_destroy(world.clock));
}

/* Let time pass, and wait until everything due then has happened. */
static inline void pass(struct world world, uint64_t ns)
{
	OK(ww_clock_virtual_advance(world.clock, ns));
	OK(ww_driver_settle(world.driver));
}

static inline struct ww_driver_stats stats_of(struct world world)
{
	struct ww_driver_stats stats;

	OK(ww_driver_stats(world.driver, &stats));
	return stats;
}

/* Let other threads run until this many timers are pending. */
static inline void wait_until_pending(struct world world, uint64_t pending)
{
	while (stats_of(world).pending != pending)
		sched_yield();
}

static inline pthread_t start_thread(void *(*run)(void *), void *argument)
{
	pthread_t thread;

	ck_assert_int_eq(pthread_create(&thread, NULL, run, argument), 0);
	return thread;
}

/* Wait for the thread's end. Returns whether it was cancelled. */
static inline int end_thread(pthread_t thread)
{
	void *result;

	ck_assert_int_eq(pthread_join(thread, &result), 0);
	return result == PTHREAD_CANCELED;
}

/* A function that counts its calls, and waits at a gate if told to. */
struct gate {
	atomic_int closed;
	atomic_int came;
	atomic_int went;
};

static inline void gate_fn(void *user)
{
	struct gate *gate = user;

	atomic_fetch_add(&gate->came, 1);
	while (atomic_load(&gate->closed))
		sched_yield();
	atomic_fetch_add(&gate->went, 1);
}

static inline void wait_until_came(struct gate *gate, int calls)
{
	while (atomic_load(&gate->came) < calls)
		sched_yield();
}

#endif
