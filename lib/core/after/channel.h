#ifndef LIB_CORE_AFTER_CHANNEL_H
#define LIB_CORE_AFTER_CHANNEL_H

/*
 * A channel with room for one value, and the driver's timer that fills it or calls a function instead.
 * struct ww_after and struct ww_ticker are names for it: they are never defined.
 *
 *     start ---> timer pending ---> callback runs ---> full ---> received
 *                      |                 |               |
 *                      +-----------------+---------------+----> stop: nothing arrives any more
 *
 * A stop or restart may come while a callback is under way. `timer` is the handle of the timer that counts. The
 * callback compares its own handle with it under the lock, and does nothing if its own is stale. Stop and restart
 * change `timer`, and then wait for the stale callback, which ends soon. While `timer` is 0 and no stop or restart is
 * under way, only the callbacks counted in `running` touch the channel.
 *
 * Locks, in order: that of the driver's watches, the channel's, then the driver's others. No thread holds the channel's
 * lock while the function runs or while it waits for a callback's end.
 */

#include <pthread.h>
#include <stdint.h>

#include "lib/core/driver/layer.h"
#include "weekwheel/after.h"

struct ww_channel {
	struct stop_watch watch; /* wakes the receivers */
	struct ww_driver *driver;
	ww_after_fn *fn; /* NULL: values are received */
	void *user;
	uint32_t forks; /* when it was made */
	pthread_mutex_t lock;
	pthread_cond_t changed; /* there is a value, a call of fn has ended, or the driver has stopped */
	ww_handle timer;        /* 0: stopped, or a one-shot that has arrived */
	uint64_t period;        /* 0: a one-shot */
	uint64_t time;          /* the value, while full */
	int full;
	int closed;         /* its end has begun: nothing starts it any more, not even its own function */
	int doomed;         /* destroyed by its own function, whose last call frees it */
	uint32_t receivers; /* threads that wait for a value */
	uint32_t running;   /* calls of fn */
};

/* Make a channel in this memory, stopped. The driver takes calls in this process. */
void ww_channel_init(struct ww_channel *channel, struct ww_driver *driver, ww_after_fn *fn, void *user, int holds);
/* Stop it and wait for running calls of fn. Then its memory may be freed. Errors: WW_EBUSY. */
int ww_channel_close(struct ww_channel *channel);
/* Make a channel in memory of its own, until whose end the driver cannot be destroyed. Errors: WW_ENOMEM. WW_ECLOSED. */
int ww_channel_create(struct ww_channel **channel, struct ww_driver *driver, ww_after_fn *fn, void *user);
/* Close a channel that was created so, and free it. NULL does nothing. Errors: WW_EBUSY. */
int ww_channel_destroy(struct ww_channel *channel);

/* The lock is held: schedule a timer, which is from now on the one that counts. */
int ww_channel_schedule(struct ww_channel *channel, uint64_t delay, uint64_t period);
/* Start or restart the timer. Returns 1 if it was active, 0 if not, or an error: WW_ECLOSED also once its end began. */
int ww_channel_start(struct ww_channel *channel, uint64_t delay, uint64_t period);
/* Stop it. Returns as ww_channel_start. */
int ww_channel_stop(struct ww_channel *channel);

/* Wait for the value and take it. */
int ww_channel_receive(struct ww_channel *channel, uint64_t *time);
/* Take the value if there is one: returns 1, else 0. */
int ww_channel_poll(struct ww_channel *channel, uint64_t *time);

#endif
