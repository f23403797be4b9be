#ifndef TOOLS_SERVER_SETTINGS_PART_H
#define TOOLS_SERVER_SETTINGS_PART_H

/* The options of one subject, for settings.c, whose table names them all. */

#include "options.h"
#include "settings.h"
#include "words.h"

enum {
	OPTION_STORE = 100,
	OPTION_STORE_FILE,
	OPTION_REDIS_PREFIX,
	OPTION_REDIS_SHARDS,
	OPTION_REDIS_LEASE,
	OPTION_REDIS_TIMEOUT,
	OPTION_PUSH = 200,
	OPTION_PUSH_IN_FLIGHT,
	OPTION_PUSH_PER_HOST,
	OPTION_PUSH_TIMEOUT,
	OPTION_PUSH_CONNECT_TIMEOUT,
	OPTION_PUSH_GRACE,
	OPTION_PUSH_SUCCESS,
	OPTION_PUSH_NETWORKS,
	OPTION_PUSH_DENY,
	OPTION_PUSH_SCHEMES,
	OPTION_PUSH_SECRET_FILE,
	OPTION_PUSH_CA_FILE
};

struct span settings_span(const char *text);

/* Say what was expected of the option's value; returns -1. */
int settings_bad(const struct options *options, int id, const char *expected);

/*
 * The first line of a file, without its end; kept for the life of the program. NULL after a message. One that others may read is
 * warned of.
 */
const char *settings_line(const char *path);

/* Seconds from least to most ns; 0, or -1 after a message. */
int settings_seconds(const struct options *options, int id, uint64_t least, uint64_t most, uint64_t *ns);

/* Parts between commas, each ended by NUL and kept for the life of the program. Returns how many, up to `room`, or -1. */
int settings_split(const char *text, const char **parts, size_t room);

/* settings_redis.c, settings_push.c: defaults, one option of theirs (0, or -1 after a message), and what does not go together. */
void settings_redis_default(struct settings *settings);
int settings_redis_option(struct settings *settings, const struct options *options, int id);
int settings_redis_check(struct settings *settings);
void settings_push_default(struct settings *settings);
int settings_push_option(struct settings *settings, const struct options *options, int id);
int settings_push_check(struct settings *settings);

#endif
