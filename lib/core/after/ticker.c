/* A timer that expires again and again. */

#include "lib/core/after/channel.h"

int ww_ticker_create(struct ww_ticker **ticker, struct ww_driver *driver, uint64_t period)
{
	struct ww_channel *made;
	int error;

	if (!ticker || !driver || period == 0)
		return WW_EINVAL;
	made = ww_channel_create(driver, NULL, NULL);
	if (!made)
		return WW_ENOMEM;
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
