#ifndef LIB_CORE_DRIVER_SOURCE_H
#define LIB_CORE_DRIVER_SOURCE_H

/*
 * What the driver drives: wheels with a lock each, in groups. The driver's own timers are one group, a keyed map or a
 * session map is another. So who has timers of a kind of their own keeps them in records of their own, under the same
 * lock as their wheel, and is told of expiries in batches.
 *
 *     driver --> group (driver's timers) --> source 0: lock, wheel
 *            |                               source 1: lock, wheel
 *            +-> group (a session map)   --> source 0: lock, wheel
 *
 * Order of locks: the driver's list of groups, a source, the queue; and apart from them the one for arming the alarm,
 * then the list of groups. A source's lock is never held while a callback runs.
 */

#include <pthread.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/core/driver/queue.h"
#include "weekwheel/driver.h"
#include "weekwheel/wheel.h"

/* Timers that are taken out of a wheel at a time, between which others get its lock. */
#define SOURCE_BATCH 64u

struct source {
	pthread_mutex_t lock;
	struct ww_wheel *wheel;
	struct ww_wheel *spare; /* empty; for a clock that may be stepped backwards */
	size_t bytes;           /* of each */
	_Atomic uint64_t next;  /* the tick at which the driver has to look at the wheel */
	uint64_t done;          /* the last pass that let all expire that was due; the driver's alone */
	struct group *group;
};

struct group_ops {
	/*
	 * Timers have expired and are idle. The source's lock is held. Those that want a callback become jobs, which
	 * are put in a chain, linked by next and ended by NULL, at *jobs; returns how many. time is the driver's clock.
	 */
	uint32_t (*expire)(
	    struct source *source, const struct ww_expiry *batch, size_t count, uint64_t time, struct job **jobs);
	/* Run one job, which belongs to the group again from now on. No lock is held. */
	void (*run)(struct group *group, struct job *job);
	/* Whether expiries become jobs. Then they wait for room in the queue... */
	int queues;
	/* ... unless this is set, too, and WW_DRIVER_DROP for the driver: then expire drops what finds no room. */
	int drops;
};

struct group {
	struct ww_driver *driver;
	const struct group_ops *ops;
	char *shards;  /* an array of structs that begin with a struct source */
	size_t stride; /* from one to the next */
	uint32_t count;
	int waits;        /* what is due waits for room in the queue */
	uint32_t running; /* jobs of this group that run; under the queue's lock */
	struct group *next;
};

static inline struct source *group_source(const struct group *group, uint32_t i)
{
	return (struct source *)(void *)(group->shards + i * group->stride);
}

/* Make the sources and let the driver drive them. Errors: WW_ENOMEM, WW_ECLOSED; then nothing is left of it. */
int ww_driver_attach(struct group *group, struct ww_driver *driver, const struct group_ops *ops, void *shards,
    size_t stride, uint32_t count);

/*
 * The driver drives the group no more; waits for jobs that run. Jobs in the queue and timers in the wheels are
 * forgotten. Not to be called in a job of the group (see ww_queue_inside). In a child of the process it gives memory
 * back and no more.
 */
void ww_driver_detach(struct group *group);

/* The memory of a source alone: see ww_queue_free. */
void ww_source_free(struct source *source);

/*
 * Something that has timers of the driver's own is left upon it, until it is released: it cannot be destroyed
 * meanwhile.
 */
void ww_driver_hold(struct ww_driver *driver);
void ww_driver_release(struct ww_driver *driver);

/* Which shard of the group the calling thread uses by choice. */
uint32_t ww_driver_home(const struct group *group);

/* What a call answers before anything else: WW_OK, or WW_ECLOSED after a stop or a fork. */
int ww_driver_refuses(const struct ww_driver *driver);

/* Whether this process is a child of the one that made the driver: no lock may be taken. */
int ww_driver_forked(const struct ww_driver *driver);

struct queue *ww_driver_queue(struct ww_driver *driver);
const struct ww_allocator *ww_driver_allocator(const struct ww_driver *driver);

uint64_t ww_driver_tick(const struct ww_driver *driver);
/* How many shards the driver has for its own timers. */
uint32_t ww_driver_shards(const struct ww_driver *driver);

/* The time of the driver's clock, in ns. */
uint64_t ww_driver_time(const struct ww_driver *driver);

/* The lock is held: the clock is at a tick before the wheel's time. */
void ww_source_rewind(struct source *source, uint64_t tick);

void ww_source_lock(struct source *source);
/* Unlock, and wake the driver if it has to look at this source earlier than it would. */
void ww_source_unlock(struct source *source);

/*
 * The lock is held: schedule a timer, idle or pending, at an absolute deadline in ns of the driver's clock, at most
 * WW_DRIVER_TIME_MAX; it expires in the first tick that is not before. Cannot fail.
 */
void ww_source_schedule(struct source *source, struct ww_timer *timer, uint64_t deadline);

/* The same of a timer that is pending: to move it to a later deadline is one store. */
void ww_source_move(struct source *source, struct ww_timer *timer, uint64_t deadline);

#endif
