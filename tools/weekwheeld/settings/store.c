/* Reads the options that say where jobs are kept, in particular the URL of a store, and checks that exactly one does. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/common/message.h"
#include "tools/weekwheeld/settings/read.h"
#include "weekwheel/jobs_redis.h"

/* Three ports of five digits fit beside it: WW_JOBS_POSTGRES_ADVERTISE_MAX. */
enum { ADVERTISE_MOST = 35 };

#define STORE_URL "redis://HOST:PORT/, unix:///PATH or postgresql://HOST/DATABASE"

/* libpq knows more forms; these two cannot be taken for Redis. */
static int is_postgres(const char *url)
{
	return strncmp(url, "postgresql://", 13) == 0 || strncmp(url, "postgres://", 11) == 0;
}

/* Set the URL of the store. Returns NULL, or why it is wrong, in a sentence that shows nothing of it. */
static const char *read_url(struct settings *settings, const char *url)
{
	const char *why = NULL;

	settings->postgres = is_postgres(url) ? url : NULL;
	settings->redis.url = settings->postgres ? NULL : url;
	if (settings->postgres)
		return NULL;
#ifdef HAVE_REDIS
	(void)ww_jobs_redis_check_url(url, &why);
#endif
	return why;
}

int settings_store_url(void *settings, const struct given *given)
{
	const char *url = given->value;
	const char *why = read_url(settings, url);
	/* A name and a password stand before the @: the message leaves them out. */
	const char *host = strrchr(url, '@');
	struct given shown = {.setting = given->setting, .value = host ? host + 1 : url};
	char expected[300];

	if (why) {
		snprintf(expected, sizeof expected, "%s: %s", STORE_URL, why);
		return settings_bad(&shown, expected);
	}
	host = strchr(url, '@');
	url = strstr(url, "://");
	if (host && url && host > url + 3 && memchr(url + 3, ':', (size_t)(host - url) - 3))
		message_warning("everybody on this machine can read the password in --store; use "
		                "--store-file, or WEEKWHEELD_STORE");
	return 0;
}

int settings_store_file(void *settings, const struct given *given)
{
	const char *url = settings_line(given, STORE_URL);
	/* The message does not show the line: it may be a password. */
	const char *why = url ? read_url(settings, url) : NULL;

	if (!url)
		return -1;
	return why ? settings_bad_file(given, STORE_URL, why) : 0;
}

int settings_store_prefix(void *settings, const struct given *given)
{
	size_t length = strlen(given->value);

	if (length < 1 || length > WW_REDIS_PREFIX_MAX ||
	    strspn(given->value, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-") != length)
		return settings_bad(given, "1 to 64 letters, digits, '.', '_' and '-'");
	((struct settings *)settings)->redis.prefix = given->value;
	return 0;
}

int settings_store_advertise(void *settings, const struct given *given)
{
	size_t length = strlen(given->value);

	if (length < 1 || length > ADVERTISE_MOST ||
	    strspn(given->value, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789.:-") != length)
		return settings_bad(
		    given, "a name or an address without a port, such as 10.0.0.5, of at most 35 bytes");
	((struct settings *)settings)->advertise = given->value;
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
	settings_give(settings, "store");
	why = read_url(settings, url);
	return why ? message_error("WEEKWHEELD_STORE of the environment: expected " STORE_URL ": %s", why) : 0;
}

/* Options that are of one kind of --store. */
static int check_postgres(struct settings *settings)
{
	static const char *const of_redis[] = {
	    "redis-prefix", "redis-shards", "redis-replicas", "redis-lease", "redis-timeout"};

	for (size_t i = 0; i < sizeof of_redis / sizeof *of_redis; i++)
		if (settings_has(settings, of_redis[i]))
			return settings_refuse(of_redis[i], "is for jobs in Redis; leave it out");
	if (settings->postgres_replicas && settings->sync != SETTINGS_ALWAYS)
		return settings_refuse("postgres-replicas",
		    "waits for standbys, and --sync does not even for the disk; leave one out, or give --sync always");
	return settings->is_virtual
	           ? settings_refuse("clock",
	                 "virtual is for --data and --memory: with --store, time is that of PostgreSQL; "
	                 "leave it out")
	           : 0;
}

/* When to sync is for who writes to a disk himself, or asks PostgreSQL to. */
static int check_sync(struct settings *settings)
{
	static const char *const all[] = {"sync", "sync-interval"};

	for (size_t i = 0; i < sizeof all / sizeof *all; i++)
		if (settings_has(settings, all[i]) && !settings_has(settings, "data") && !settings->postgres)
			return settings_refuse(all[i],
			    "is for --data and PostgreSQL: Redis writes when its own configuration says "
			    "(appendonly, appendfsync), and --memory writes nothing; leave it out");
	return 0;
}

int settings_store_check(void *of)
{
	struct settings *settings = of;
	static const char *const places[] = {"data", "memory", "store", "store-file"};
	const char *place = NULL;

	for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
		if (!settings_has(settings, places[i]))
			continue;
		if (place)
			return message_error(
			    "--%s and --%s exclude each other: jobs are kept in one place; leave one out\n"
			    "Try 'weekwheeld --help'.",
			    place, places[i]);
		place = places[i];
	}
	if (!place && check_environment(settings) != 0)
		return -1;
	if (check_sync(settings) != 0)
		return -1;
	if (settings->postgres)
		return check_postgres(settings);
	if (settings->advertise)
		return settings_refuse("advertise", "is for jobs in PostgreSQL; leave it out");
	if (settings_has(settings, "postgres-replicas"))
		return settings_refuse("postgres-replicas", "is for jobs in PostgreSQL; leave it out");
	return settings->redis.url && settings->is_virtual
	           ? settings_refuse("clock",
	                 "virtual is for --data and --memory: with --store, time is that of Redis; leave it out")
	           : 0;
}
