#ifndef TOOLS_WEEKWHEELD_SETTINGS_READ_H
#define TOOLS_WEEKWHEELD_SETTINGS_READ_H

/*
 * What the files of this folder share. table.c has the table of all options, and each other file reads some of them.
 * A message names the option, the wrong word, and what is expected instead.
 */

#include "tools/common/options.h"
#include "tools/weekwheeld/protocol/words.h"
#include "tools/weekwheeld/settings/settings.h"

/* check.c needs those of one subject together. */
enum {
	OPTION_DATA = 1,
	OPTION_MEMORY,
	OPTION_STORE,
	OPTION_STORE_FILE,
	OPTION_LISTEN,
	OPTION_UNIX,
	OPTION_TLS_CERT,
	OPTION_TLS_KEY,
	OPTION_TLS_CLIENT_CA,
	OPTION_SOCKET_MODE,
	OPTION_SOCKET_GROUP,
	OPTION_AUTH_FILE,
	OPTION_INSECURE,
	OPTION_HTTP,
	OPTION_HTTP_HOST,
	OPTION_SYNC,
	OPTION_SYNC_INTERVAL,
	OPTION_DOWNTIME,
	OPTION_DISK,
	OPTION_JOB_SIZE,
	OPTION_CONNECTIONS,
	OPTION_PER_ADDRESS,
	OPTION_OUTPUT,
	OPTION_BUFFERS,
	OPTION_MAX_MEMORY,
	OPTION_WATCHED,
	OPTION_TUBES,
	OPTION_JOBS,
	OPTION_TUBE_JOBS,
	OPTION_HISTORY,
	OPTION_REDIS_PREFIX,
	OPTION_REDIS_SHARDS,
	OPTION_REDIS_REPLICAS,
	OPTION_REDIS_LEASE,
	OPTION_REDIS_TIMEOUT,
	OPTION_PUSH,
	OPTION_PUSH_IN_FLIGHT,
	OPTION_PUSH_PER_HOST,
	OPTION_PUSH_TIMEOUT,
	OPTION_PUSH_ATTEMPTS,
	OPTION_PUSH_REST_AFTER,
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
	OPTION_LOG_LEVEL,
	OPTION_LOG_FORMAT,
	OPTION_VERBOSE,
	OPTION_VERSION,
	OPTION_HELP,
	OPTION_END
};

struct span settings_span(const char *text);

/* ---- table.c */

extern const struct option settings_table[];
extern const size_t settings_count;

/* Return the name of an option, and what it takes. */
const char *settings_name(int id);
const char *settings_argument(int id);

/* Return 1 if the option was given. */
int settings_has(const struct settings *settings, int id);

/* ---- value.c */

/* Say what was expected instead of options->value; returns -1. */
int settings_bad(const struct options *options, int id, const char *expected);

/* The same for a file that the value names, with the reason. */
int settings_bad_file(const struct options *options, int id, const char *expected, const char *reason);

/* Set the options that are numbers to their defaults. */
void settings_number_defaults(struct settings *settings);

/* Read an option if its value is a number: 0, -1 after a message, or 1: it is another option. */
int settings_number(struct settings *settings, const struct options *options, int id);

/* Return zeroed memory for the life of the program, or NULL. */
char *settings_keep(size_t size);

/* Return the first MiB of the file that the value names, ended by 0, or NULL after a message. `what` is expected in it. */
char *settings_file(const struct options *options, int id, const char *what);

/* Return the first line of that file, or NULL after a message. Warn if others may read the file. */
const char *settings_line(const struct options *options, int id, const char *what);

/* ---- store.c, push.c: one option of theirs. Return 0, or -1 after a message. */

int settings_store_option(struct settings *settings, const struct options *options, int id);
int settings_push_option(struct settings *settings, const struct options *options, int id);
void settings_push_default(struct settings_push *push);

/* Check that one option, or the environment, says where jobs are kept. Returns 0, or -1 after a message. */
int settings_store_check(struct settings *settings);

/* ---- access.c: one option of those that say who may. Returns 0, or -1 after a message. */

int settings_access_option(struct settings *settings, const struct options *options, int id);

/* Check that no other machine can reach what everybody may use. Returns 0, or -1 after a message. */
int settings_access_check(const struct settings *settings);

/* ---- check.c */

/* Check that all options go together, and read the environment. Returns 0, or -1 after a message. */
int settings_check(struct settings *settings);

#endif
