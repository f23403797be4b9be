/* ww_sleep: a channel on the stack of the thread that sleeps. */

#include "lib/core/after/channel.h"
#include "lib/core/driver/layer.h"

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
	if (delay == 0)
		return ww_driver_refuses(driver);
	ww_channel_init(&channel, driver, NULL, NULL);
	result = ww_channel_start(&channel, delay, 0);
	if (result == WW_OK)
		receive_and_close(&channel, &result);
	else
		(void)ww_channel_close(&channel);
	return result;
}
