/* Reads the options that say where jobs are kept, in particular the URL of Redis, and checks that exactly one does. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/common/message.h"
#include "tools/weekwheeld/settings/read.h"
#include "weekwheel/jobs_redis.h"

#define REDIS_URL "redis://HOST:PORT/ or unix:///PATH"

/* Set the URL of Redis. Returns NULL, or why it is wrong, in a sentence that shows nothing of it. */
static const char *read_url(struct settings *settings, const char *url)
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
	const char *why = read_url(settings, url);
	/* A name and a password stand before the @: the message leaves them out. */
	const char *host = strrchr(url, '@');
	struct options shown = *options;
	char expected[300];

	if (why) {
		shown.value = host ? host + 1 : url;
		snprintf(expected, sizeof expected, "%s: %s", REDIS_URL, why);
		return settings_bad(&shown, OPTION_STORE, expected);
	}
	host = strchr(url, '@');
	if (host && host > url + 8 && memchr(url + 8, ':', (size_t)(host - url) - 8))
		message_warning("everybody on this machine can read the password in --store; use "
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
	const char *url = settings_line(options, OPTION_STORE_FILE, REDIS_URL);
	const char *why;

	if (!url)
		return -1;
	/* The message does not show the line: it may be a password. */
	why = read_url(settings, url);
	return why ? settings_bad_file(options, OPTION_STORE_FILE, REDIS_URL, why) : 0;
}

int settings_store_option(struct settings *settings, const struct options *options, int id)
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

/* Find the option that says where jobs are kept; *place is 0 if there is none. Two are refused. */
static int check_place(const struct settings *settings, int *place)
{
	static const int places[] = {OPTION_DATA, OPTION_MEMORY, OPTION_STORE, OPTION_STORE_FILE};

	*place = 0;
	for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
		if (!settings_has(settings, places[i]))
			continue;
		if (*place)
			return message_error(
			    "--%s and --%s exclude each other: jobs are kept in one place; leave one out\n"
			    "Try 'weekwheeld --help'.",
			    settings_name(*place), settings_name(places[i]));
		*place = places[i];
	}
	return 0;
}

/* No option says where jobs are kept: the environment may. */
static int check_environment(struct settings *settings)
{
	const char *url = getenv("WEEKWHEELD_STORE");
	const char *why;

	if (!url || !*url)
		return message_error(
		    "--data DIR or --store URL is missing: it says where jobs are kept; or give --memory\n"
		    "Try 'weekwheeld --help'.");
	why = read_url(settings, url);
	if (why)
		message_error("WEEKWHEELD_STORE of the environment: expected " REDIS_URL ": %s", why);
	return why ? -1 : 0;
}

int settings_store_check(struct settings *settings)
{
	int place;

	if (check_place(settings, &place) != 0)
		return -1;
	return place ? 0 : check_environment(settings);
}
