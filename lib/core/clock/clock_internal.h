#ifndef LIB_CORE_CLOCK_CLOCK_INTERNAL_H
#define LIB_CORE_CLOCK_CLOCK_INTERNAL_H

/*
 * What clocks and alarms are made of.
 *
 * An alarm of a real clock is its descriptor (descriptor.h), whose calls are atomic: no lock is needed.
 *
 * The descriptor of a virtual clock's alarm is readable while the alarm has gone off. The clock has a list of its
 * alarms. Its lock covers the list, the alarms' settings and counters, and every change of its time: a thread that sets
 * an alarm sees the new time, or the thread that moves the clock to that time sees the alarm. The time itself is
 * atomic, and is read without the lock.
 */

#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <time.h>

#include "weekwheel/clock.h"

/* What an alarm that is not set is set to. */
#define NEVER UINT64_MAX

struct ww_clock {
	int is_virtual;
	clockid_t id; /* of a real clock; all below is a virtual one's */
	_Atomic uint64_t now;
	pthread_mutex_t lock;
	struct ww_alarm *alarms;
	const struct ww_allocator *allocator;
};

struct ww_alarm {
	int fd;
	struct ww_clock *clock;
	const struct ww_allocator *allocator;
	/* All below is for a virtual clock, under its lock. */
	uint64_t when;
	int went_off; /* the descriptor is readable */
	struct ww_alarm *next;
	struct ww_alarm **pprev;
};

/* The parts of ww_alarm_* for a virtual clock, which need its lock. */
void ww_clock_virtual_add(struct ww_alarm *alarm);
void ww_clock_virtual_remove(struct ww_alarm *alarm);
void ww_clock_virtual_set_alarm(struct ww_alarm *alarm, uint64_t ns);
int ww_clock_virtual_clear_alarm(struct ww_alarm *alarm);

#endif
