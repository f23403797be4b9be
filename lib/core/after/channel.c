/* Channels: expiring, starting and stopping, closing, receiving. */

#include "lib/core/after/channel.h"

#include "lib/base/fork.h"

/* The driver has stopped: threads that wait look whether it still takes calls. */
static void wake_receivers(struct stop_watch *watch)
{
	struct ww_channel *channel = (struct ww_channel *)(void *)watch;

	pthread_mutex_lock(&channel->lock);
	pthread_cond_broadcast(&channel->changed);
	pthread_mutex_unlock(&channel->lock);
}

void ww_channel_init(struct ww_channel *channel, struct ww_driver *driver, ww_after_fn *fn, void *user, int holds)
{
	*channel = (struct ww_channel){.driver = driver,
	    .fn = fn,
	    .user = user,
	    .forks = ww_fork_watch(),
	    .watch = {.stopped = wake_receivers, .holds = holds}};
	pthread_mutex_init(&channel->lock, NULL);
	pthread_cond_init(&channel->changed, NULL);
	ww_driver_watch(driver, &channel->watch);
}

int ww_channel_create(struct ww_channel **channel, struct ww_driver *driver, ww_after_fn *fn, void *user)
{
	const struct ww_allocator *allocator = ww_allocator_default();
	int error = ww_driver_refuses(driver);

	if (error)
		return error;
	*channel = allocator->allocate(allocator->user, sizeof **channel);
	if (!*channel)
		return WW_ENOMEM;
	ww_channel_init(*channel, driver, fn, user, 1);
	return WW_OK;
}

/* ---- Expiring: in a worker of the driver */

/* The lock is held. */
static void put(struct ww_channel *channel, uint64_t time)
{
	if (channel->full)
		return;
	channel->time = time;
	channel->full = 1;
	pthread_cond_broadcast(&channel->changed);
}

/* Nobody uses the channel any more. */
static void end_locks(struct ww_channel *channel)
{
	pthread_cond_destroy(&channel->changed);
	pthread_mutex_destroy(&channel->lock);
}

static void free_memory(struct ww_channel *channel)
{
	const struct ww_allocator *allocator = ww_allocator_default();

	allocator->free(allocator->user, channel, sizeof *channel);
}

/* The lock is held, but not while the function runs. */
static void call_fn(struct ww_channel *channel)
{
	struct inside here;

	channel->running++;
	pthread_mutex_unlock(&channel->lock);
	ww_inside_enter(&here, channel);
	channel->fn(channel->user);
	ww_inside_leave(&here);
	pthread_mutex_lock(&channel->lock);
	channel->running--;
	pthread_cond_broadcast(&channel->changed);
}

static void expire(struct ww_driver *driver, const struct ww_firing *firing, void *user)
{
	struct ww_channel *channel = user;
	int is_last;

	(void)driver;
	pthread_mutex_lock(&channel->lock);
	if (firing->handle == channel->timer) {
		if (!channel->period)
			channel->timer = 0;
		if (channel->fn)
			call_fn(channel);
		else
			put(channel, firing->deadline);
	}
	/* No other callback of the channel is on its way: its destruction has waited for those. */
	is_last = channel->doomed && !channel->running;
	pthread_mutex_unlock(&channel->lock);
	if (is_last) {
		end_locks(channel);
		free_memory(channel);
	}
}

/* ---- Starting and stopping */

int ww_channel_schedule(struct ww_channel *channel, uint64_t delay, uint64_t period)
{
	ww_handle timer;
	int error;

	/* The callback may run before this returns, but it waits for the lock. */
	if (channel->fn)
		error = ww_driver_schedule(channel->driver, delay, expire, channel, &timer);
	else
		error = ww_driver_schedule_kept(channel->driver, delay, period, expire, channel, &timer);
	if (error)
		return error;
	channel->timer = timer;
	channel->period = period;
	return WW_OK;
}

/* The lock is not held: cancel a timer that counts no more, and wait for its callback if that is on its way. */
static void withdraw(const struct ww_channel *channel, ww_handle timer)
{
	int former;

	if (!timer)
		return;
	/* The wait is short, and stopping is no point of cancellation. */
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &former);
	(void)ww_driver_cancel_wait(channel->driver, timer);
	pthread_setcancelstate(former, &former);
}

/*
 * The lock is held: move the timer of a one-shot, which is cheaper than a new one. Returns 1 if that was in time, 0 if
 * a new timer is needed. After a 0 the old one may expire twice, and at most one of these expiries counts.
 */
static int move(const struct ww_channel *channel, uint64_t delay, uint64_t period)
{
	int moved;

	if (!channel->timer || channel->period || period)
		return 0;
	moved = ww_driver_reschedule(channel->driver, channel->timer, delay);
	/* A stale timer is one that the driver has dropped. */
	return moved == WW_ESTALE ? 0 : moved;
}

int ww_channel_start(struct ww_channel *channel, uint64_t delay, uint64_t period)
{
	ww_handle former = 0;
	int active;
	int result = ww_driver_refuses(channel->driver);

	if (result)
		return result;
	pthread_mutex_lock(&channel->lock);
	active = channel->timer || channel->full;
	result = channel->closed ? WW_ECLOSED : move(channel, delay, period);
	if (result == 0) {
		former = channel->timer;
		result = ww_channel_schedule(channel, delay, period);
	}
	if (result >= 0)
		channel->full = 0;
	pthread_mutex_unlock(&channel->lock);
	if (result < 0)
		return result;
	withdraw(channel, former);
	return active;
}

/* From now on no timer counts. Returns 1 if one did, or if a value was there. */
static int halt(struct ww_channel *channel)
{
	ww_handle timer;
	int active;

	pthread_mutex_lock(&channel->lock);
	timer = channel->timer;
	active = timer || channel->full;
	channel->timer = 0;
	channel->full = 0;
	pthread_mutex_unlock(&channel->lock);
	withdraw(channel, timer);
	return active;
}

int ww_channel_stop(struct ww_channel *channel)
{
	int error = ww_driver_refuses(channel->driver);

	return error ? error : halt(channel);
}

/* ---- Closing */

static void unlock(void *lock)
{
	pthread_mutex_unlock(lock);
}

static void wait_for_calls(struct ww_channel *channel)
{
	pthread_mutex_lock(&channel->lock);
	pthread_cleanup_push(unlock, &channel->lock);
	while (channel->running)
		pthread_cond_wait(&channel->changed, &channel->lock);
	pthread_cleanup_pop(1);
}

int ww_channel_close(struct ww_channel *channel)
{
	uint32_t receivers;

	pthread_mutex_lock(&channel->lock);
	receivers = channel->receivers;
	channel->closed |= !receivers;
	pthread_mutex_unlock(&channel->lock);
	if (receivers)
		return WW_EBUSY;
	(void)halt(channel);
	wait_for_calls(channel);
	ww_driver_unwatch(channel->driver, &channel->watch);
	end_locks(channel);
	return WW_OK;
}

/* In a call of the channel's function, the last of which frees it. It may be told so again until it returns. */
static void doom(struct ww_channel *channel)
{
	int is_doomed;

	pthread_mutex_lock(&channel->lock);
	is_doomed = channel->doomed;
	channel->doomed = channel->closed = 1;
	pthread_mutex_unlock(&channel->lock);
	if (is_doomed)
		return;
	(void)halt(channel);
	ww_driver_unwatch(channel->driver, &channel->watch);
}

int ww_channel_destroy(struct ww_channel *channel)
{
	int error = WW_OK;
	/* A child of fork has the memory only: no threads, and a lock in an unknown state. */
	int forked = channel && channel->forks != ww_fork_count();

	if (!channel)
		return WW_OK;
	if (!forked && ww_inside_of(channel)) {
		doom(channel);
		return WW_OK;
	}
	if (!forked)
		error = ww_channel_close(channel);
	if (!error)
		free_memory(channel);
	return error;
}

/* ---- Receiving */

static void leave(void *argument)
{
	struct ww_channel *channel = argument;

	channel->receivers--;
	pthread_mutex_unlock(&channel->lock);
}

/* The lock is held. */
static int take(struct ww_channel *channel, uint64_t *time)
{
	if (!channel->full)
		return 0;
	if (time)
		*time = channel->time;
	channel->full = 0;
	return 1;
}

/* Wait for a value and take it. */
static void wait_and_take(struct ww_channel *channel, uint64_t *time, int *result)
{
	pthread_mutex_lock(&channel->lock);
	channel->receivers++;
	pthread_cleanup_push(leave, channel);
	while (!channel->full && ww_driver_refuses(channel->driver) == WW_OK)
		pthread_cond_wait(&channel->changed, &channel->lock);
	*result = take(channel, time) ? WW_OK : WW_ECLOSED;
	pthread_cleanup_pop(1);
}

int ww_channel_receive(struct ww_channel *channel, uint64_t *time)
{
	int result;

	if (channel->fn)
		return WW_EINVAL;
	result = ww_driver_refuses(channel->driver);
	if (result == WW_OK)
		wait_and_take(channel, time, &result);
	return result;
}

int ww_channel_poll(struct ww_channel *channel, uint64_t *time)
{
	int result;

	if (channel->fn)
		return WW_EINVAL;
	result = ww_driver_refuses(channel->driver);
	if (result)
		return result;
	pthread_mutex_lock(&channel->lock);
	result = take(channel, time);
	pthread_mutex_unlock(&channel->lock);
	return result;
}
