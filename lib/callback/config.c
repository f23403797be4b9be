/* The configuration of a pusher: its defaults, what it may be, and a copy of it. */
#include <openssl/crypto.h>
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
	    .poll = 100 * WW_MILLISECOND,
	    .retry = WW_SECOND,
	    .retry_after_max = 3600 * WW_SECOND,
	    .schemes = WW_CALLBACK_HTTP | WW_CALLBACK_HTTPS,
	    .redirects = 5,
	    .body_max = 1 << 20,
	    .response_max = 1 << 16,
	};
	return WW_OK;
}

static int bounds_are_good(const struct ww_callback_config *config)
{
	return config->in_flight && config->in_flight <= IN_FLIGHT_MAX && config->per_host && config->waiting &&
	       config->waiting <= WAITING_MAX && config->connect_timeout >= WW_MILLISECOND &&
	       config->connect_timeout <= WW_DRIVER_TIME_MAX && config->timeout <= WW_DRIVER_TIME_MAX &&
	       config->poll >= WW_MILLISECOND && config->poll <= WW_DRIVER_TIME_MAX &&
	       config->retry <= WW_DRIVER_TIME_MAX && config->retry_after_max <= WW_DRIVER_TIME_MAX &&
	       config->redirects <= REDIRECTS_MAX;
}

static int flags_are_good(const struct ww_callback_config *config)
{
	const uint32_t networks =
	    WW_CALLBACK_LOOPBACK | WW_CALLBACK_PRIVATE | WW_CALLBACK_LINK_LOCAL | WW_CALLBACK_SPECIAL;

	return config->schemes && !(config->schemes & ~(WW_CALLBACK_HTTP | WW_CALLBACK_HTTPS)) &&
	       !(config->networks & ~networks);
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

static void *copy(const struct ww_callback *callback, const void *data, size_t size)
{
	void *block = ww_callback_allocate(callback, size);

	if (block)
		memcpy(block, data, size);
	return block;
}

static int copy_string(const struct ww_callback *callback, const char **string)
{
	if (*string)
		*string = copy(callback, *string, strlen(*string) + 1);
	return *string != NULL;
}

static int copy_tubes(struct ww_callback *callback, const struct ww_callback_config *config)
{
	size_t size = config->tube_count * sizeof *config->tubes;
	const char **tubes = ww_callback_allocate(callback, size);

	if (!tubes)
		return 0;
	memset(tubes, 0, size);
	callback->config.tubes = tubes;
	callback->config.tube_count = config->tube_count;
	for (size_t i = 0; i < config->tube_count; i++) {
		tubes[i] = config->tubes[i];
		if (!copy_string(callback, &tubes[i]))
			return 0;
	}
	return 1;
}

static int copy_ranges(const struct ww_callback *callback, const char *const *texts, size_t count,
    struct callback_range **ranges, size_t *range_count)
{
	if (!count)
		return WW_OK;
	*ranges = ww_callback_allocate(callback, count * sizeof **ranges);
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
	int error;

	if (!bounds_are_good(config) || !flags_are_good(config) || !lists_are_good(config))
		return WW_EINVAL;
	*mine = *config;
	mine->tubes = NULL;
	mine->tube_count = mine->success_count = mine->secret_length = 0;
	mine->success = NULL;
	mine->secret = NULL;
	mine->ca_file = NULL;
	mine->user_agent = config->user_agent ? config->user_agent : "weekwheel/" WW_VERSION;
	callback->ranges.networks = config->networks;
	error = copy_ranges(
	    callback, config->deny, config->deny_count, &callback->ranges.deny, &callback->ranges.deny_count);
	if (!error)
		error = copy_ranges(callback, config->allow, config->allow_count, &callback->ranges.allow,
		    &callback->ranges.allow_count);
	if (error) {
		mine->user_agent = NULL;
		return error;
	}
	if (!copy_string(callback, &mine->user_agent) || !copy_tubes(callback, config))
		return WW_ENOMEM;
	mine->ca_file = config->ca_file;
	if (config->ca_file && !copy_string(callback, &mine->ca_file))
		return WW_ENOMEM;
	if (config->success_count) {
		mine->success = copy(callback, config->success, config->success_count * sizeof *config->success);
		mine->success_count = mine->success ? config->success_count : 0;
	}
	if (config->secret) {
		mine->secret = copy(callback, config->secret, config->secret_length);
		mine->secret_length = mine->secret ? config->secret_length : 0;
	}
	return mine->success_count != config->success_count || (config->secret && !mine->secret) ? WW_ENOMEM : WW_OK;
}

static void free_string(const struct ww_callback *callback, const char *string)
{
	if (string)
		ww_callback_free(callback, (void *)(uintptr_t)string, strlen(string) + 1);
}

void ww_callback_config_free(struct ww_callback *callback)
{
	struct ww_callback_config *mine = &callback->config;

	for (size_t i = 0; i < mine->tube_count; i++)
		free_string(callback, mine->tubes[i]);
	ww_callback_free(callback, (void *)(uintptr_t)mine->tubes, mine->tube_count * sizeof *mine->tubes);
	free_string(callback, mine->user_agent);
	free_string(callback, mine->ca_file);
	ww_callback_free(callback, (void *)(uintptr_t)mine->success, mine->success_count * sizeof *mine->success);
	if (mine->secret)
		OPENSSL_cleanse((void *)(uintptr_t)mine->secret, mine->secret_length);
	ww_callback_free(callback, (void *)(uintptr_t)mine->secret, mine->secret_length);
	ww_callback_free(callback, callback->ranges.deny, callback->ranges.deny_count * sizeof *callback->ranges.deny);
	ww_callback_free(
	    callback, callback->ranges.allow, callback->ranges.allow_count * sizeof *callback->ranges.allow);
}
