/* The options of jobs in Redis. */
#include <string.h>

#include "message.h"
#include "settings_part.h"
#include "weekwheel/driver.h"
#include "weekwheel/jobs_redis.h"

void settings_redis_default(struct settings *settings)
{
	settings->redis.prefix = "weekwheel";
	settings->redis.lease = 6 * WW_SECOND;
	settings->redis.timeout = 2 * WW_SECOND;
}

int settings_redis_is_url(const char *text)
{
	return strncmp(text, "redis://", 8) == 0 || strncmp(text, "unix://", 7) == 0;
}

void settings_redis_url(struct settings *settings, const char *option, const char *url, const char *shown)
{
	settings->redis.url = url;
	settings->redis.option = option;
	settings->redis.shown = shown;
}

static int read_store(struct settings *settings, const struct options *options)
{
	const char *url = options->value;
	const char *host = strchr(url, '@');

	if (!settings_redis_is_url(url))
		return settings_bad(options, OPTION_STORE, SETTINGS_REDIS_URL);
	/* What stands before an @ is a name and a password. */
	if (host && memchr(url + 8, ':', host > url + 8 ? (size_t)(host - url) - 8 : 0))
		message_line("weekwheeld: warning: everybody on this machine can read the password in --store; use "
		             "--store-file, or WEEKWHEELD_STORE");
	host = strrchr(url, '@');
	settings_redis_url(settings, "--store", url, host ? host + 1 : url);
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

static int read_store_file(struct settings *settings, const struct options *options)
{
	const char *url = settings_line(options, OPTION_STORE_FILE, SETTINGS_REDIS_URL);

	if (!url)
		return -1;
	/* What is in the file is not shown: it may be a password alone. */
	if (!settings_redis_is_url(url))
		return settings_bad_file(
		    options, OPTION_STORE_FILE, SETTINGS_REDIS_URL, "its first line is something else");
	settings_redis_url(settings, "--store-file", url, options->value);
	return 0;
}

int settings_redis_option(struct settings *settings, const struct options *options, int id)
{
	switch (id) {
	case OPTION_STORE:
		return read_store(settings, options);
	case OPTION_STORE_FILE:
		return read_store_file(settings, options);
	default:
		return read_prefix(settings, options);
	}
}
