#ifndef TESTS_LIB_CORE_DRIVER_FIXTURE_H
#define TESTS_LIB_CORE_DRIVER_FIXTURE_H

/*
 * Shared by the tests of the driver: a driver on a virtual clock, and callbacks that record or wait. Check runs each
 * test in a process of its own, which begins with this state fresh.
 */

#include <inttypes.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "lib/core/driver/driver_internal.h"
#include "tests/support/memory.h"
#include "tests/support/seed.h"
#include "tests/support/suite.h"
#include "weekwheel/driver.h"

#define TICK WW_MILLISECOND
#define DAY_NS (86400 * WW_SECOND)
/* The time at which the clock begins: between two ticks. */
#define START (1000 * WW_SECOND + 300000)

/* Wait for a condition that another thread brings about without a signal. */
#define UNTIL(condition)                                                                                               \
	do {                                                                                                           \
		while (!(condition))                                                                                   \
			sched_yield();                                                                                 \
	} while (0)

/* ---- The driver and its clock */

extern struct ww_clock *virtual_clock;
extern struct ww_driver *driver;

/* The default on a new virtual clock. */
struct ww_driver_config config_of(uint32_t flags, uint32_t workers);
void begin_with(const struct ww_driver_config *config);
void begin(uint32_t flags, uint32_t workers);
/* Destroy both. */
void end(void);

/* Let time pass, and wait until everything due then has happened. */
void go(uint64_t ns);
void settle(void);
/* Like go, but do not wait. */
void advance(uint64_t ns);
uint64_t now_ns(void);
struct ww_driver_stats stats_of(void);
/* Schedule a timer that calls fn. */
ww_handle after(uint64_t delay, ww_driver_fn *fn, void *user);
ww_handle every(uint64_t delay, uint64_t period, uint32_t flags, ww_driver_fn *fn, void *user);
/* The same from a new thread, which gets a shard of its own while there are enough. */
ww_handle after_elsewhere(uint64_t delay, ww_driver_fn *fn, void *user);

/* Records of a shard that are in use. */
uint32_t records_taken(uint32_t shard);
/* A thread that settles the driver, and returns the answer. */
void *settle_elsewhere(void *unused);
/* The number of threads in ww_driver_settle, and in ww_driver_cancel_wait. */
uint32_t waiting_for_queue(void);
uint32_t waiting_for_end(void);

/* Whether the test is built with ThreadSanitizer, and with any sanitizer that has its own memory. */
#if defined(__has_feature)
#define SANITIZED (__has_feature(thread_sanitizer) || __has_feature(address_sanitizer))
#define SLOW __has_feature(thread_sanitizer)
#else
#if defined(__SANITIZE_THREAD__)
#define SLOW 1
#else
#define SLOW 0
#endif
#if defined(__SANITIZE_ADDRESS__)
#define SANITIZED 1
#else
#define SANITIZED SLOW
#endif
#endif

/* ---- Recorded calls */

#define FIRED_MAX 20000

struct fired {
	ww_handle handle;
	uint64_t deadline;
	uint64_t missed;
	uint64_t now;
	void *user;
};

extern struct fired fired[FIRED_MAX];
extern _Atomic size_t fired_count;

/* The callback that records. */
void note(struct ww_driver *of, const struct ww_firing *firing, void *user);
size_t times_fired(ww_handle handle);

/* ---- A callback that waits */

struct gate {
	sem_t entered;
	sem_t open;
	_Atomic int inside;
	_Atomic int most; /* most that were inside at one time */
	_Atomic int left;
};

void gate_init(struct gate *gate);
/* The callback. user is the gate. */
void hold(struct ww_driver *of, const struct ww_firing *firing, void *gate);
/* Wait until `count` more callbacks are inside. */
void gate_wait(struct gate *gate, int count);
/* Let `count` of them leave. */
void gate_open(struct gate *gate, int count);

/* ---- Timers handed over by a stop */

struct drained {
	ww_handle handle;
	ww_driver_fn *fn;
	void *user;
	uint64_t left;
};

extern struct drained drained[FIRED_MAX];
extern _Atomic size_t drained_count;

void take(ww_handle handle, ww_driver_fn *fn, void *user, uint64_t left, void *context);

#endif
