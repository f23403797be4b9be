/* A timer that expires again and again. */

#include "lib/core/after/channel.h"

struct ww_ticker {
	struct ww_channel channel;
};

static void give_back(struct ww_ticker *ticker)
{
	const struct ww_allocator *allocator = ww_allocator_default();

	allocator->free(allocator->user, ticker, sizeof *ticker);
}

int ww_ticker_create(struct ww_ticker **ticker, struct ww_driver *driver, uint64_t period)
{
	const struct ww_allocator *allocator = ww_allocator_default();
	struct ww_ticker *made;
	int error;

	if (!ticker || !driver || period == 0)
		return WW_EINVAL;
	made = allocator->allocate(allocator->user, sizeof *made);
	if (!made)
		return WW_ENOMEM;
	ww_channel_init(&made->channel, driver, NULL, NULL);
	error = ww_channel_start(&made->channel, period, period);
	if (error) {
		ww_channel_discard(&made->channel);
		give_back(made);
		return error;
	}
	ww_channel_hold(&made->channel);
	*ticker = made;
	return WW_OK;
}

int ww_ticker_receive(struct ww_ticker *ticker, uint64_t *time)
{
	return ticker ? ww_channel_receive(&ticker->channel, time) : WW_EINVAL;
}

int ww_ticker_poll(struct ww_ticker *ticker, uint64_t *time)
{
	return ticker ? ww_channel_poll(&ticker->channel, time) : WW_EINVAL;
}

int ww_ticker_stop(struct ww_ticker *ticker)
{
	return ticker ? ww_channel_stop(&ticker->channel) : WW_EINVAL;
}

int ww_ticker_reset(struct ww_ticker *ticker, uint64_t period)
{
	return ticker && period ? ww_channel_start(&ticker->channel, period, period) : WW_EINVAL;
}

int ww_ticker_destroy(struct ww_ticker *ticker)
{
	int error = ticker ? ww_channel_close(&ticker->channel) : WW_OK;

	if (ticker && !error)
		give_back(ticker);
	return error;
}
