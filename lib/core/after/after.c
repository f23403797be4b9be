/* The calls of after.h, each on a channel: a timer that expires once, a ticker, a sleep. */

#include "lib/core/after/channel.h"
#include "lib/core/driver/layer.h"

/* ---- Once, and a function that is called later */

static int make(struct ww_after **after, struct ww_driver *driver, uint64_t delay, ww_after_fn *fn, void *user)
{
	struct ww_channel *made;
	int error = ww_channel_create(&made, driver, fn, user);

	if (error)
		return error;
	/* Under the lock, as the function may be called at once and must find *after. */
	pthread_mutex_lock(&made->lock);
	error = ww_channel_schedule(made, delay, 0);
	if (!error)
		*after = (struct ww_after *)made;
	pthread_mutex_unlock(&made->lock);
	if (error)
		(void)ww_channel_destroy(made);
	return error;
}

int ww_after_create(struct ww_after **after, struct ww_driver *driver, uint64_t delay)
{
	return after && driver ? make(after, driver, delay, NULL, NULL) : WW_EINVAL;
}

int ww_after_func(struct ww_after **after, struct ww_driver *driver, uint64_t delay, ww_after_fn *fn, void *user)
{
	return after && driver && fn ? make(after, driver, delay, fn, user) : WW_EINVAL;
}

int ww_after_receive(struct ww_after *after, uint64_t *time)
{
	return after ? ww_channel_receive((struct ww_channel *)after, time) : WW_EINVAL;
}

int ww_after_poll(struct ww_after *after, uint64_t *time)
{
	return after ? ww_channel_poll((struct ww_channel *)after, time) : WW_EINVAL;
}

int ww_after_stop(struct ww_after *after)
{
	return after ? ww_channel_stop((struct ww_channel *)after) : WW_EINVAL;
}

int ww_after_reset(struct ww_after *after, uint64_t delay)
{
	return after ? ww_channel_start((struct ww_channel *)after, delay, 0) : WW_EINVAL;
}

int ww_after_destroy(struct ww_after *after)
{
	return ww_channel_destroy((struct ww_channel *)after);
}

/* ---- Again and again */

int ww_ticker_create(struct ww_ticker **ticker, struct ww_driver *driver, uint64_t period)
{
	struct ww_channel *made;
	int error;

	if (!ticker || !driver || period == 0)
		return WW_EINVAL;
	error = ww_channel_create(&made, driver, NULL, NULL);
	if (error)
		return error;
	error = ww_channel_start(made, period, period);
	if (error)
		(void)ww_channel_destroy(made);
	else
		*ticker = (struct ww_ticker *)made;
	return error;
}

int ww_ticker_receive(struct ww_ticker *ticker, uint64_t *time)
{
	return ticker ? ww_channel_receive((struct ww_channel *)ticker, time) : WW_EINVAL;
}

int ww_ticker_poll(struct ww_ticker *ticker, uint64_t *time)
{
	return ticker ? ww_channel_poll((struct ww_channel *)ticker, time) : WW_EINVAL;
}

int ww_ticker_stop(struct ww_ticker *ticker)
{
	return ticker ? ww_channel_stop((struct ww_channel *)ticker) : WW_EINVAL;
}

int ww_ticker_reset(struct ww_ticker *ticker, uint64_t period)
{
	return ticker && period ? ww_channel_start((struct ww_channel *)ticker, period, period) : WW_EINVAL;
}

int ww_ticker_destroy(struct ww_ticker *ticker)
{
	return ww_channel_destroy((struct ww_channel *)ticker);
}

/* ---- Sleeping */

static void close_channel(void *channel)
{
	(void)ww_channel_close(channel);
}

/* The channel lies on the stack. If the thread is cancelled, it closes the channel before the stack goes. */
static void receive_and_close(struct ww_channel *channel, int *result)
{
	pthread_cleanup_push(close_channel, channel);
	*result = ww_channel_receive(channel, NULL);
	pthread_cleanup_pop(1);
}

int ww_sleep(struct ww_driver *driver, uint64_t delay)
{
	struct ww_channel channel;
	int result;

	if (!driver)
		return WW_EINVAL;
	result = ww_driver_refuses(driver);
	if (result || delay == 0)
		return result;
	ww_channel_init(&channel, driver, NULL, NULL, 0);
	result = ww_channel_start(&channel, delay, 0);
	if (result == WW_OK)
		receive_and_close(&channel, &result);
	else
		(void)ww_channel_close(&channel);
	return result;
}
