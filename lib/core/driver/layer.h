#ifndef LIB_CORE_DRIVER_LAYER_H
#define LIB_CORE_DRIVER_LAYER_H

/*
 * All that the layers above see of the driver.
 *
 * A layer with timers of a kind of its own, such as a keyed map, attaches a *group* of shards to the driver. The driver
 * gives each shard a *source*: a wheel and its lock. The layer keeps its records in the shards, under the same locks. A
 * timer that expires becomes a *firing*, which waits in the driver's queue for a worker. The driver's own timers are
 * such a group, too.
 *
 *     driver --> group (its own timers) --> source 0: lock, wheel <--> shard 0: records
 *            |                              source 1: lock, wheel <--> shard 1: records
 *            +-> group (a session map)  --> source 0: lock, wheel <--> shard 0: records
 *
 * Order of locks: the driver's agenda, a source or two of a group, the queue. The alarm is set without a lock, and no
 * lock is held while a callback runs.
 */

#include <pthread.h>
#include <stddef.h>
#include <stdint.h>

#include "weekwheel/driver.h"
#include "weekwheel/wheel.h"

struct timer_group;
struct timer_source;

/* Timers that are taken out of a wheel at a time, between which others get its lock. */
#define SOURCE_BATCH 64u

/*
 * A cell of the queue. It lies in the memory of the timer that expired, which needs its own links no more: queueing
 * allocates nothing. Outside the queue, next and prev are the layer's to use.
 */
struct firing {
	struct firing *next; /* NULL once it has left the queue */
	struct firing *prev;
	struct timer_group *group; /* whose firing it is: its ops->run runs it */
	uint64_t since;            /* when it was queued, in ns of the driver's clock */
};

struct group_ops {
	/*
	 * A timer of the shard has expired and is idle. Returns its firing, which lies in its memory or elsewhere, or
	 * NULL if nothing is to run. The source's lock is held.
	 */
	struct firing *(*expire)(void *shard, struct ww_timer *timer);
	/*
	 * Called instead of expire when the queue is full and the driver is one that drops (WW_DRIVER_DROP). Returns a
	 * firing that is queued all the same, or NULL. NULL: the group's expiries wait for room even then.
	 */
	struct firing *(*drop)(void *shard, struct ww_timer *timer);
	/*
	 * Run a firing, which belongs to the layer again from now on. No lock is held. NULL: expire returns no firings,
	 * and expiries do not wait for room.
	 */
	void (*run)(void *owner, struct firing *firing);
};

/* ---- The driver (driver.c) */

/* What a call answers before anything else: WW_OK, WW_EINVAL without a driver, WW_ECLOSED after a stop or a fork. */
int ww_driver_refuses(const struct ww_driver *driver);
/* Whether this process is a child of the one that made the driver: no lock may be taken. */
int ww_driver_forked(const struct ww_driver *driver);

/*
 * A watch is notified of the driver's stop, in ww_driver_stop, with no lock held but that of the watches. While a
 * driver has a watch that holds it, it cannot be destroyed.
 */
struct stop_watch {
	struct stop_watch *next;
	struct stop_watch **link;
	void (*stopped)(struct stop_watch *watch);
	int holds;
};

/* `stopped` and `holds` are set. */
void ww_driver_watch(struct ww_driver *driver, struct stop_watch *watch);
/* Waits while the watch is being called. */
void ww_driver_unwatch(struct ww_driver *driver, const struct stop_watch *watch);

/*
 * Schedule a timer as ww_driver_schedule_every does, or once if the period is 0, whose expiries are not dropped while
 * the queue is full (WW_DRIVER_DROP): they enter it beyond its limit.
 */
int ww_driver_schedule_kept(
    struct ww_driver *driver, uint64_t delay, uint64_t period, ww_driver_fn *fn, void *user, ww_handle *timer);

const struct ww_allocator *ww_driver_allocator(const struct ww_driver *driver);
uint64_t ww_driver_tick(const struct ww_driver *driver);
/* How many shards the driver has for its own timers. */
uint32_t ww_driver_shards(const struct ww_driver *driver);
/* The time of the driver's clock, in ns. */
uint64_t ww_driver_time(const struct ww_driver *driver);
/* Store the absolute deadline of a delay from now. Errors: WW_EOVERFLOW: it is beyond WW_DRIVER_TIME_MAX. */
static inline int driver_deadline(const struct ww_driver *driver, uint64_t delay, uint64_t *deadline)
{
	uint64_t now = ww_driver_time(driver);

	if (now > WW_DRIVER_TIME_MAX || delay > WW_DRIVER_TIME_MAX - now)
		return WW_EOVERFLOW;
	*deadline = now + delay;
	return WW_OK;
}
/*
 * Expire all that is due now, before the driver does it by itself. Workers run the firings; those without room in the
 * queue wait. Call it without a lock. If nothing is due it costs one lock.
 */
void ww_driver_catch_up(struct ww_driver *driver);

/* ---- Calls of the application's functions (inside.c) */

/* A call on behalf of a map, a channel or a driver, which must not be freed meanwhile. Lies on the thread's stack. */
struct inside {
	const void *what;
	const struct inside *outer;
};

void ww_inside_enter(struct inside *here, const void *what);
void ww_inside_leave(const struct inside *here);
/* In how many such calls this thread is. */
int ww_inside_of(const void *what);

/* ---- Groups (group.c) */

/*
 * Make a source for each of `count` shards, which lie `stride` bytes apart, and let the driver drive them from now on.
 * Errors: WW_ENOMEM, WW_ECLOSED; then nothing is left of it.
 */
int ww_group_attach(struct timer_group **group, struct ww_driver *driver, const struct group_ops *ops, void *owner,
    void *shards, size_t stride, uint32_t count);
/*
 * The driver drives the group no more, and can be destroyed. Firings in the queue are forgotten; those that run go on.
 * The group is there until it is detached. Not in a child of the process.
 */
void ww_group_leave(struct timer_group *group);
/* This thread runs a firing of the group: call this in it when the firing has ended. Of several calls one counts. */
void ww_group_afterwards(const struct timer_group *group, void (*afterwards)(void *argument), void *argument);
/*
 * The driver drives the group no more; waits for firings that run, and frees the group and its sources. Firings in the
 * queue and timers in the wheels are forgotten. Not to be called in a firing of the group (see ww_group_inside). In a
 * child of the process it frees memory and does no more.
 */
void ww_group_detach(struct timer_group *group);

/* The group's share of the workers relative to others, at most WW_DRIVER_SHARE_MAX; 0 means 1, as it is at first. */
void ww_group_share(struct timer_group *group, uint32_t share);

/* The source of shard i. */
struct timer_source *ww_group_source(struct timer_group *group, uint32_t i);
/* The memory that the group and its sources take. */
size_t ww_group_bytes(const struct timer_group *group);
/* Whether this thread runs a firing of the group. */
int ww_group_inside(const struct timer_group *group);
/* Take a firing back. Returns 1, or 0 when it is no more in the queue: it runs or is about to. */
int ww_group_withdraw(struct timer_group *group, struct firing *firing);
/*
 * Take back all firings of the group, in one walk through the queue: a chain, the oldest first, ended by NULL. It is
 * linked by prev, because a next would say that a firing is in the queue.
 */
struct firing *ww_group_withdraw_all(struct timer_group *group);

/* ---- Sources (source.c) */

void ww_source_lock(struct timer_source *source);
/* Unlock, and wake the driver if it has to look at this source earlier than it would. */
void ww_source_unlock(struct timer_source *source);
/* The same for two sources of one group, or one that is named twice. They are locked in the order of their addresses. */
void ww_source_lock_two(struct timer_source *one, struct timer_source *other);
void ww_source_unlock_two(struct timer_source *one, struct timer_source *other);

/* In all that follow the lock is held. */

/* Wait for the condition as pthread_cond_wait does, with the source's lock. */
void ww_source_wait(struct timer_source *source, pthread_cond_t *condition);
/*
 * Make the source's wheel, unless it has one. This comes before the first timer is scheduled here. A shard that is not
 * used takes no memory for one. Errors: WW_ENOMEM.
 */
int ww_source_prepare(struct timer_source *source);
/*
 * Schedule a timer, idle or pending, at an absolute deadline in ns of the driver's clock, at most WW_DRIVER_TIME_MAX;
 * it expires in the first tick that is not before. The source is prepared. Cannot fail.
 */
void ww_source_schedule(struct timer_source *source, struct ww_timer *timer, uint64_t deadline);
/* The same for a timer that is pending: a later deadline costs one store. */
void ww_source_move(struct timer_source *source, struct ww_timer *timer, uint64_t deadline);
void ww_source_cancel(struct timer_source *source, struct ww_timer *timer);
/*
 * Take a timer out of the wheel that has come to its tick and that the driver has not seen to yet: the earliest one, or
 * NULL. `now` is the time when the call began; a clock that was stepped back since is obeyed. O(levels) while nothing
 * is due.
 */
struct ww_timer *ww_source_take_due(struct timer_source *source, uint64_t now);
/* In expire and drop, and behind ww_source_take_due: the deadline of that timer, in ticks. */
uint64_t ww_source_met(const struct timer_source *source);
/* Take up to SOURCE_BATCH pending timers out of the wheel. Returns their number, 0 when none is left. */
size_t ww_source_drain(struct timer_source *source, struct ww_expiry *batch);

#endif
