/* Reads the options of a store in Redis: its URL and its prefix. */
#include <stdio.h>
#include <string.h>

#include "tools/common/message.h"
#include "tools/weekwheeld/settings/part.h"
#include "weekwheel/jobs_redis.h"

const char *settings_redis_url(struct settings *settings, const char *url)
{
	const char *why = NULL;

	settings->redis.url = url;
#ifdef HAVE_REDIS
	(void)ww_jobs_redis_check_url(url, &why);
#endif
	return why;
}

static int read_store(struct settings *settings, const struct options *options)
{
	const char *url = options->value;
	const char *why = settings_redis_url(settings, url);
	/* A name and a password stand before the @: the message leaves them out. */
	const char *host = strrchr(url, '@');
	struct options shown = *options;
	char expected[300];

	if (why) {
		shown.value = host ? host + 1 : url;
		snprintf(expected, sizeof expected, "%s: %s", SETTINGS_REDIS_URL, why);
		return settings_bad(&shown, OPTION_STORE, expected);
	}
	host = strchr(url, '@');
	if (host && host > url + 8 && memchr(url + 8, ':', (size_t)(host - url) - 8))
		message_line("weekwheeld: warning: everybody on this machine can read the password in --store; use "
		             "--store-file, or WEEKWHEELD_STORE");
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
	const char *why;

	if (!url)
		return -1;
	/* The message does not show the line: it may be a password. */
	why = settings_redis_url(settings, url);
	return why ? settings_bad_file(options, OPTION_STORE_FILE, SETTINGS_REDIS_URL, why) : 0;
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
