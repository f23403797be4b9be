#ifndef TOOLS_WEEKWHEELD_SETTINGS_PART_H
#define TOOLS_WEEKWHEELD_SETTINGS_PART_H

/*
 * The parts of reading a command line: settings.c has the table of all options and reads the plain ones, the others
 * read those of their subject. What refuses says which option, which word of it, and what is expected instead.
 */

#include "tools/common/options.h"
#include "tools/weekwheeld/protocol/words.h"
#include "tools/weekwheeld/settings/settings.h"

/* Those of one subject stand together, for settings_check.c. */
enum {
	OPTION_DATA = 1,
	OPTION_MEMORY,
	OPTION_STORE,
	OPTION_STORE_FILE,
	OPTION_LISTEN,
	OPTION_UNIX,
	OPTION_HTTP,
	OPTION_SYNC,
	OPTION_SYNC_INTERVAL,
	OPTION_JOB_SIZE,
	OPTION_CONNECTIONS,
	OPTION_OUTPUT,
	OPTION_REDIS_PREFIX,
	OPTION_REDIS_SHARDS,
	OPTION_REDIS_LEASE,
	OPTION_REDIS_TIMEOUT,
	OPTION_PUSH,
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
	OPTION_PUSH_CA_FILE,
	OPTION_CLOCK,
	OPTION_CONFIG,
	OPTION_VERBOSE,
	OPTION_VERSION,
	OPTION_HELP,
	OPTION_END
};

#define SETTINGS_REDIS_URL "redis://HOST:PORT/ or unix:///PATH"

struct span settings_span(const char *text);

/* What an option is called, and whether it was given. */
const char *settings_name(int id);
int settings_has(const struct settings *settings, int id);

/* Say what was expected of the option's value, options->value; returns -1. */
int settings_bad(const struct options *options, int id, const char *expected);
/* The same of a file that it names, and why that is not it. */
int settings_bad_file(const struct options *options, int id, const char *expected, const char *reason);

/* A copy for the life of the program, because settings point into it; NULL without memory. */
char *settings_keep(const char *text);

/*
 * The first line of the file that the value names, which is what it is to be, without its end; kept for the life of the
 * program. NULL after a message. A file that others may read is warned of.
 */
const char *settings_line(const struct options *options, int id, const char *what);

/* Read an option if its value is a number: 0, -1 after a message, or 1: it is another option. */
int settings_number(struct settings *settings, const struct options *options, int id);

/* settings_redis.c, settings_push.c: defaults, and one option of theirs; 0, or -1 after a message. */
void settings_redis_default(struct settings *settings);
int settings_redis_option(struct settings *settings, const struct options *options, int id);
/* Where Redis is. Returns NULL, or why that is no url of it, in a sentence that shows nothing of it. */
const char *settings_redis_url(struct settings *settings, const char *url);
void settings_push_default(struct settings *settings);
int settings_push_option(struct settings *settings, const struct options *options, int id);

/* All was read: see that it goes together, and take what the environment adds. 0, or -1 after a message. */
int settings_check(struct settings *settings);

#endif
