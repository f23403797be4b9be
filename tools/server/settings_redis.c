/* The options of jobs in Redis. */
#include <stdlib.h>
#include <string.h>

#include "message.h"
#include "settings_part.h"
#include "weekwheel/driver.h"
#include "weekwheel/jobs_redis.h"

void settings_redis_default(struct settings *settings)
{
	settings->redis.prefix = "weekwheel";
	settings->redis.shards = 16;
	settings->redis.lease = 6 * WW_SECOND;
	settings->redis.timeout = 2 * WW_SECOND;
}

static int read_store(struct settings *settings, const struct options *options)
{
	const char *url = options->value;
	const char *host = strchr(url, '@');

	if (strncmp(url, "redis://", 8) != 0 && strncmp(url, "unix://", 7) != 0)
		return settings_bad(options, OPTION_STORE, "redis://HOST:PORT/ or unix:///PATH");
	/* What stands before an @ is a name and a password. */
	if (host && memchr(url + 8, ':', host > url + 8 ? (size_t)(host - url) - 8 : 0))
		message_line("weekwheeld: warning: everybody on this machine can read the password in --store; use "
		             "--store-file, or WEEKWHEELD_STORE");
	settings->redis.url = url;
	return 0;
}

static int read_prefix(struct settings *settings, const struct options *options)
{
	size_t length = strlen(options->value);

	if (length < 1 || length > WW_REDIS_PREFIX_MAX ||
	    strspn(options->value, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-") != length)
		return settings_bad(options, OPTION_REDIS_PREFIX, "1 to 64 letters, digits, '.', '_' and '-'");
	settings->redis.prefix = options->value;
	return 0;
}

int settings_redis_option(struct settings *settings, const struct options *options, int id)
{
	switch (id) {
	case OPTION_STORE:
		return read_store(settings, options);
	case OPTION_STORE_FILE:
		settings->redis.url = settings_line(options->value);
		return settings->redis.url ? 0 : -1;
	case OPTION_REDIS_PREFIX:
		settings->has_redis = 1;
		return read_prefix(settings, options);
	case OPTION_REDIS_SHARDS:
		settings->has_redis = 1;
		return options_whole(options->value, 1, WW_REDIS_SHARDS_MAX, &settings->redis.shards) == 0
		           ? 0
		           : settings_bad(options, id, "a whole number, 1 to 4096");
	case OPTION_REDIS_LEASE:
		settings->has_redis = 1;
		return settings_seconds(options, id, WW_SECOND, 3600 * WW_SECOND, &settings->redis.lease);
	default:
		settings->has_redis = 1;
		return settings_seconds(options, id, 10 * WW_MILLISECOND, 3600 * WW_SECOND, &settings->redis.timeout);
	}
}

int settings_redis_check(struct settings *settings)
{
	if (!settings->redis.url && !settings->data && !settings->is_memory)
		settings->redis.url = getenv("WEEKWHEELD_STORE");
	if (settings->redis.url && !*settings->redis.url)
		settings->redis.url = NULL;
	if (!settings->redis.url) {
		if (settings->has_redis)
			message_line("weekwheeld: --redis-... is for jobs in Redis: --store is missing");
		return settings->has_redis ? -1 : 0;
	}
	if (settings->data || settings->is_memory)
		message_line("weekwheeld: %s and --store exclude each other: jobs are kept in one place",
		    settings->data ? "--data" : "--memory");
	else if (settings->has_sync)
		message_line("weekwheeld: --sync is for --data: when Redis writes, its own configuration says "
		             "(appendonly, appendfsync)");
	else if (settings->is_virtual)
		message_line(
		    "weekwheeld: --clock virtual is for --data and --memory: with --store, time is that of Redis");
	else
		return 0;
	return -1;
}
