/* A timer that expires once, and a function that is called later. */

#include "lib/core/after/channel.h"

static int make(struct ww_after **after, struct ww_driver *driver, uint64_t delay, ww_after_fn *fn, void *user)
{
	struct ww_channel *made = ww_channel_create(driver, fn, user);
	int error;

	if (!made)
		return WW_ENOMEM;
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
