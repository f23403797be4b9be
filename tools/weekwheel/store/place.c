/* Reads from the command line where jobs are kept, and keeps passwords out of messages. */
#include "tools/weekwheel/store/store.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/common/message.h"
#include "tools/common/small_file.h"
#include "tools/weekwheel/jobs/jobs.h"
#include "weekwheel/jobs_redis.h"

static int is_url(const char *text)
{
	size_t scheme = strspn(text, "abcdefghijklmnopqrstuvwxyz");

	return scheme > 0 && strncmp(text + scheme, "://", 3) == 0;
}

/* Name the place by its URL without the user and the password, which stand before the @. */
static void name_url(struct store_place *place)
{
	const char *host = strstr(place->url, "://");
	const char *end;

	host = host ? host + 3 : place->url;
	/* A / in a password is wrong, but must not be shown either: take the last @ of all. */
	end = strrchr(host, '@');
	snprintf(place->name, sizeof place->name, "%.*s%s", (int)(host - place->url), place->url, end ? end + 1 : host);
}

/* ---- Options */

static int bad_file(const struct options *options, const char *reason)
{
	return options_fail(
	    options, "--store-file '%s': expected a file with redis://HOST:PORT/: %s", options->value, reason);
}

static int read_file(struct store_place *place, const struct options *options)
{
	const char *name = options->value;
	struct small_file file;
	char why[SMALL_FILE_WHY];

	if (small_file_read(&file, name, SMALL_FILE_LINE, SMALL_FILE_WAIT_MS, why))
		return bad_file(options, why);
	if (file.mode & 077)
		message_line("warning: others may read %s: 'chmod 600' keeps it secret", name);
	free(place->line);
	place->line = file.text;
	if (!place->line[0])
		return bad_file(options, "its first line is empty");
	/* The line may be just a password, so it is not shown. */
	if (!is_url(place->line))
		return bad_file(options, "its first line is something else");
	place->url = place->line;
	return 0;
}

static int read_prefix(struct store_place *place, const struct options *options)
{
	size_t length = strlen(options->value);

	if (length < 1 || length > WW_REDIS_PREFIX_MAX ||
	    strspn(options->value, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-") != length)
		return options_bad_value(options, "redis-prefix", "1 to 64 letters, digits, '.', '_' and '-'");
	place->prefix = options->value;
	return 0;
}

static int read_timeout(struct store_place *place, const struct options *options)
{
	uint64_t seconds = 0;

	if (jobs_whole(options, "redis-timeout", 1, 3600, &seconds, "whole seconds, 1 to 3600"))
		return OPTIONS_ERROR;
	place->timeout = seconds * WW_SECOND;
	return 0;
}

static void warn_of_password(const char *url, const char *where)
{
	const char *host = strstr(url, "://");
	const char *end = host ? strrchr(host, '@') : NULL;

	if (end && memchr(host + 3, ':', (size_t)(end - host) - 3))
		message_line("warning: everybody on this machine can read the password %s; use --store-file, or "
		             "WEEKWHEELD_STORE",
		    where);
}

static int take_operand(struct store_place *place, const struct options *options)
{
	if (place->count == PLACE_OPERANDS)
		return options_fail(options, "'%s': a directory and one file are expected", options->value);
	place->operands[place->count++] = options->value;
	return 0;
}

int place_take(void *context, struct options *options, int id)
{
	struct store_place *place = context;

	if (id >= PLACE_PREFIX && !place->redis)
		place->redis = id;
	switch (id) {
	case PLACE_STORE:
		if (!is_url(options->value))
			return options_bad_value(options, "store", "redis://HOST:PORT/ or unix:///PATH");
		place->store = place->url = options->value;
		warn_of_password(place->url, "in --store");
		return 0;
	case PLACE_STORE_FILE:
		return read_file(place, options);
	case PLACE_PREFIX:
		return read_prefix(place, options);
	case PLACE_TIMEOUT:
		return read_timeout(place, options);
	case PLACE_SHARDS:
		return jobs_whole(
		    options, "redis-shards", 1, WW_REDIS_SHARDS_MAX, &place->shards, "a whole number, 1 to 4096");
	default:
		return take_operand(place, options);
	}
}

/* ---- All of them together */

static const char *name_of(const struct options *options, int id)
{
	const struct option *option = options->table;

	while (option->id != id)
		option++;
	return option->name;
}

/* Take the place from the first operand, or from the environment if there is none. Returns how many operands it took. */
static size_t find(struct store_place *place)
{
	const char *url = getenv("WEEKWHEELD_STORE");

	if (place->url)
		return 0;
	if (place->count == 0) {
		place->url = url && *url ? url : NULL;
		return 0;
	}
	if (!is_url(place->operands[0])) {
		place->path = place->operands[0];
		return 1;
	}
	place->url = place->operands[0];
	warn_of_password(place->url, "of the URL");
	return 1;
}

static int check_url(struct store_place *place, const struct options *options)
{
	const char *why = NULL;
	char excerpt[80];

	name_url(place);
#ifdef HAVE_REDIS
	(void)ww_jobs_redis_check_url(place->url, &why);
#endif
	if (!why)
		return 0;
	return options_fail(options, "%s: expected redis://HOST:PORT/ or unix:///PATH: %s",
	    message_excerpt(excerpt, sizeof excerpt, place->name, strlen(place->name)), why);
}

int place_complete(struct store_place *place, const struct options *options, const char **file)
{
	size_t used = find(place);

	if (place->store && place->line)
		return options_fail(
		    options, "--store and --store-file exclude each other: jobs are in one place; leave one out");
	if (!place->path && !place->url)
		return options_fail(options, "expected a directory, which weekwheeld has as --data, or a URL of Redis");
	if (place->count > used + (file != NULL))
		return used ? options_fail(options, "'%s': one directory is expected, and '%s' is it",
		                  place->operands[used], place->operands[0])
		            : options_fail(options, "'%s': jobs are in one place, and --store says which",
		                  place->operands[place->count - 1]);
	if (file)
		*file = place->count > used ? place->operands[used] : NULL;
	if (place->path && place->redis)
		return options_fail(options, "--%s is for jobs in Redis, and '%s' is a directory; leave it out",
		    name_of(options, place->redis), place->path);
	if (place->url)
		return check_url(place, options);
	snprintf(place->name, sizeof place->name, "%s", place->path);
	return 0;
}

int place_check(void *place, const struct options *options)
{
	return place_complete(place, options, NULL);
}
