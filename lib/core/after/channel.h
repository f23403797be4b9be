#ifndef LIB_CORE_AFTER_CHANNEL_H
#define LIB_CORE_AFTER_CHANNEL_H

/*
 * A channel with room for one value, and the driver's timer that fills it; or a function that it calls instead.
 *
 *     start ---> timer pending ---> callback runs ---> full ---> received
 *                      |                 |               |
 *                      +-----------------+---------------+----> stop: nothing arrives any more
 *
 * What makes an expiry stale: `timer` names the one that counts, and the callback, which gets its own handle, compares
 * under the lock. Stop and restart put another there, and so nothing of a callback that was on its way comes through.
 * They then wait for its end, which is near since it finds itself stale; so whenever `timer` is 0 and no stop or
 * restart is under way, no callback will touch the channel but those counted in `running`.
 *
 * Locks: the channel's, then the driver's. Not held while the function runs, nor while a callback's end is waited for.
 */

#include <pthread.h>
#include <stdint.h>
#include <sys/types.h>

#include "weekwheel/after.h"

struct ww_channel {
	struct ww_driver *driver;
	ww_after_fn *fn; /* NULL: values are received */
	void *user;
	pid_t process; /* that made it */
	int holds;     /* the driver, until it is closed */
	pthread_mutex_t lock;
	pthread_cond_t changed; /* there is a value, or a call of fn has ended */
	ww_handle timer;        /* 0: stopped, or a one-shot that has arrived */
	uint64_t period;        /* 0: a one-shot */
	uint64_t time;          /* the value, while full */
	int full;
	uint32_t receivers; /* threads that wait for a value */
	uint32_t running;   /* calls of fn */
};

/* Make a channel in this memory, stopped. */
void ww_channel_init(struct ww_channel *channel, struct ww_driver *driver, ww_after_fn *fn, void *user);
/* Of a channel in which nothing was started yet: its memory may be freed then. */
void ww_channel_discard(struct ww_channel *channel);
/* Let the driver not be destroyed before the channel is closed: for one that may outlive the call that made it. */
void ww_channel_hold(struct ww_channel *channel);
/* Stop it and wait for calls of fn that run; its memory may be freed then. Errors: WW_EBUSY. */
int ww_channel_close(struct ww_channel *channel);

/* The lock is held: schedule a timer and let it be the one that counts. */
int ww_channel_schedule(struct ww_channel *channel, uint64_t delay, uint64_t period);
/* Start the timer, again if it was started. Returns 1 if it was active, 0 if not, or an error. */
int ww_channel_start(struct ww_channel *channel, uint64_t delay, uint64_t period);
/* Stop it. Returns the same. */
int ww_channel_stop(struct ww_channel *channel);

/* Take the value, and wait for it. */
int ww_channel_receive(struct ww_channel *channel, uint64_t *time);
/* Take the value if there is one: returns 1, else 0. */
int ww_channel_poll(struct ww_channel *channel, uint64_t *time);

#endif
