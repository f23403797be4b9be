/* The configuration of a pusher: its defaults, its limits, and the pusher's copy of it. */
#include <openssl/crypto.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "lib/callback/callback_internal.h"
#include "weekwheel/driver.h"
#include "weekwheel/version.h"

enum { IN_FLIGHT_MAX = 65536, WAITING_MAX = 1 << 20, REDIRECTS_MAX = 50 };

int ww_callback_config_default(struct ww_callback_config *config)
{
	if (!config)
		return WW_EINVAL;
	*config = (struct ww_callback_config){
	    .in_flight = 256,
	    .per_host = 16,
	    .waiting = 1024,
	    .connect_timeout = 5 * WW_SECOND,
	    .timeout = 30 * WW_SECOND,
	    .poll = 100 * WW_MILLISECOND,
	    .retry = WW_SECOND,
	    .retry_max = 3600 * WW_SECOND,
	    .attempts = 25,
	    .rest_after = 5,
	    .rest = WW_SECOND,
	    .rest_max = 60 * WW_SECOND,
	    .retry_after_max = 3600 * WW_SECOND,
	    .schemes = WW_CALLBACK_HTTP | WW_CALLBACK_HTTPS,
	    .redirects = 5,
	    .body_max = 1 << 20,
	    .response_max = 1 << 16,
	};
	return WW_OK;
}

static int numbers_are_good(const struct ww_callback_config *config)
{
	return config->in_flight && config->in_flight <= IN_FLIGHT_MAX && config->per_host && config->waiting &&
	       config->waiting <= WAITING_MAX && config->connect_timeout >= WW_MILLISECOND &&
	       config->connect_timeout <= WW_DRIVER_TIME_MAX && config->timeout <= WW_DRIVER_TIME_MAX &&
	       config->poll >= WW_MILLISECOND && config->poll <= WW_DRIVER_TIME_MAX &&
	       config->retry <= WW_DRIVER_TIME_MAX && config->retry_max <= WW_DRIVER_TIME_MAX &&
	       config->rest >= WW_MILLISECOND && config->rest <= config->rest_max &&
	       config->rest_max <= WW_DRIVER_TIME_MAX && config->retry_after_max <= WW_DRIVER_TIME_MAX &&
	       config->redirects <= REDIRECTS_MAX && config->schemes &&
	       !(config->schemes & ~(WW_CALLBACK_HTTP | WW_CALLBACK_HTTPS)) && !(config->networks & ~CALLBACK_NETWORKS);
}

static int lists_are_good(const struct ww_callback_config *config)
{
	if (!config->tube_count || !config->tubes || (config->success_count && !config->success) ||
	    (config->deny_count && !config->deny) || (config->allow_count && !config->allow) ||
	    (config->secret && !config->secret_length))
		return 0;
	if (config->user_agent && ww_callback_text_header(&(struct ww_callback_header){"User-Agent",
	                              strlen("User-Agent"), config->user_agent, strlen(config->user_agent)}))
		return 0;
	for (size_t i = 0; i < config->tube_count; i++)
		if (!config->tubes[i] || !config->tubes[i][0] || strlen(config->tubes[i]) > WW_TUBE_MAX)
			return 0;
	for (size_t i = 0; i < config->success_count; i++)
		if (config->success[i] < 200 || config->success[i] > 599)
			return 0;
	return 1;
}

/* ---- Copies. What could not be copied is NULL; ww_callback_config_free frees the others. */

/* A copy, or NULL of nothing. Without memory it is NULL, too, and *failed is set. */
static void *copy(const struct ww_callback *callback, const void *data, size_t size, int *failed)
{
	void *block = data && size ? memory_take(callback->allocator, size) : NULL;

	if (block)
		memcpy(block, data, size);
	*failed |= data && size && !block;
	return block;
}

static const char *copy_string(const struct ww_callback *callback, const char *string, int *failed)
{
	return copy(callback, string, string ? strlen(string) + 1 : 0, failed);
}

static void copy_tubes(struct ww_callback *callback, const struct ww_callback_config *config, int *failed)
{
	const char **tubes = memory_take_zeroed(callback->allocator, config->tube_count * sizeof *tubes);

	*failed |= !tubes;
	callback->config.tubes = tubes;
	callback->config.tube_count = tubes ? config->tube_count : 0;
	for (size_t i = 0; i < callback->config.tube_count; i++)
		tubes[i] = copy_string(callback, config->tubes[i], failed);
}

static int read_ranges(const struct ww_callback *callback, const char *const *texts, size_t count,
    struct callback_range **ranges, size_t *range_count)
{
	if (!count)
		return WW_OK;
	*ranges = memory_take(callback->allocator, count * sizeof **ranges);
	if (!*ranges)
		return WW_ENOMEM;
	*range_count = count;
	for (size_t i = 0; i < count; i++)
		if (!texts[i] || !ww_callback_address_range(texts[i], &(*ranges)[i]))
			return WW_EINVAL;
	return WW_OK;
}

int ww_callback_config_copy(struct ww_callback *callback, const struct ww_callback_config *config)
{
	struct ww_callback_config *mine = &callback->config;
	struct callback_ranges *ranges = &callback->ranges;
	int failed = 0;
	int error;

	if (!numbers_are_good(config) || !lists_are_good(config))
		return WW_EINVAL;
	*mine = *config;
	copy_tubes(callback, config, &failed);
	mine->user_agent =
	    copy_string(callback, config->user_agent ? config->user_agent : "weekwheel/" WW_VERSION, &failed);
	mine->ca_file = copy_string(callback, config->ca_file, &failed);
	mine->success = copy(callback, config->success, config->success_count * sizeof *config->success, &failed);
	mine->secret = copy(callback, config->secret, config->secret_length, &failed);
	ranges->networks = config->networks;
	error = read_ranges(callback, config->deny, config->deny_count, &ranges->deny, &ranges->deny_count);
	if (!error)
		error = read_ranges(callback, config->allow, config->allow_count, &ranges->allow, &ranges->allow_count);
	return error ? error : failed ? WW_ENOMEM : WW_OK;
}

static void free_string(const struct ww_callback *callback, const char *string)
{
	if (string)
		memory_give(callback->allocator, (void *)(uintptr_t)string, strlen(string) + 1);
}

void ww_callback_config_free(struct ww_callback *callback)
{
	struct ww_callback_config *mine = &callback->config;

	for (size_t i = 0; i < mine->tube_count; i++)
		free_string(callback, mine->tubes[i]);
	memory_give(callback->allocator, (void *)(uintptr_t)mine->tubes, mine->tube_count * sizeof *mine->tubes);
	free_string(callback, mine->user_agent);
	free_string(callback, mine->ca_file);
	memory_give(callback->allocator, (void *)(uintptr_t)mine->success, mine->success_count * sizeof *mine->success);
	if (mine->secret)
		OPENSSL_cleanse((void *)(uintptr_t)mine->secret, mine->secret_length);
	memory_give(callback->allocator, (void *)(uintptr_t)mine->secret, mine->secret_length);
	memory_give(
	    callback->allocator, callback->ranges.deny, callback->ranges.deny_count * sizeof *callback->ranges.deny);
	memory_give(
	    callback->allocator, callback->ranges.allow, callback->ranges.allow_count * sizeof *callback->ranges.allow);
}

void ww_callback_log(const struct ww_callback *callback, const char *format, ...)
{
	char sentence[512];
	va_list arguments;

	if (!callback->config.report)
		return;
	va_start(arguments, format);
	(void)vsnprintf(sentence, sizeof sentence, format, arguments);
	va_end(arguments);
	callback->config.report(sentence, callback->config.context);
}
