/* A timer that expires once, and a function that is called later. */

#include "lib/core/after/channel.h"

struct ww_after {
	struct ww_channel channel;
};

static void give_back(struct ww_after *after)
{
	const struct ww_allocator *allocator = ww_allocator_default();

	allocator->free(allocator->user, after, sizeof *after);
}

static int make(struct ww_after **after, struct ww_driver *driver, uint64_t delay, ww_after_fn *fn, void *user)
{
	const struct ww_allocator *allocator = ww_allocator_default();
	struct ww_after *made = allocator->allocate(allocator->user, sizeof *made);
	int error;

	if (!made)
		return WW_ENOMEM;
	ww_channel_init(&made->channel, driver, fn, user);
	/* Under the lock, as the function may be called at once and must find *after. */
	pthread_mutex_lock(&made->channel.lock);
	error = ww_channel_schedule(&made->channel, delay, 0);
	if (!error) {
		ww_channel_hold(&made->channel);
		*after = made;
	}
	pthread_mutex_unlock(&made->channel.lock);
	if (error) {
		ww_channel_discard(&made->channel);
		give_back(made);
	}
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
	return after ? ww_channel_receive(&after->channel, time) : WW_EINVAL;
}

int ww_after_poll(struct ww_after *after, uint64_t *time)
{
	return after ? ww_channel_poll(&after->channel, time) : WW_EINVAL;
}

int ww_after_stop(struct ww_after *after)
{
	return after ? ww_channel_stop(&after->channel) : WW_EINVAL;
}

int ww_after_reset(struct ww_after *after, uint64_t delay)
{
	return after ? ww_channel_start(&after->channel, delay, 0) : WW_EINVAL;
}

int ww_after_destroy(struct ww_after *after)
{
	int error = after ? ww_channel_close(&after->channel) : WW_OK;

	if (after && !error)
		give_back(after);
	return error;
}
