#ifndef TOOLS_WEEKWHEEL_STORE_PLACE_H
#define TOOLS_WEEKWHEEL_STORE_PLACE_H

/* Where jobs are kept according to the command line: in a directory, or in Redis. */

#include <stdint.h>

#include "tools/common/options.h"
#include "weekwheel/driver.h"

/* The ids of the options below. Commands number their own from 1. */
enum { PLACE_STORE = 200, PLACE_STORE_FILE, PLACE_PREFIX, PLACE_TIMEOUT, PLACE_SHARDS };

/* clang-format off */
#define PLACE_OPTIONS \
	{PLACE_STORE, 's', "store", "URL", "jobs in Redis: redis://HOST:PORT/, or unix:///PATH"}, \
	{PLACE_STORE_FILE, 0, "store-file", "FILE", "read that URL from a file, to hide a password in it"}, \
	{PLACE_PREFIX, 0, "redis-prefix", "NAME", "what each key in Redis begins with; weekwheel"}, \
	{PLACE_TIMEOUT, 0, "redis-timeout", "SECONDS", "how long to wait for an answer of Redis; 10"}
/* clang-format on */

enum { PLACE_OPERANDS = 2, PLACE_NAME = 300 };

struct place {
	const char *path; /* a directory, or NULL: in Redis */
	const char *url;
	const char *store; /* --store, if that was given */
	const char *prefix;
	uint64_t shards; /* of a new store; 0: not given */
	uint64_t timeout;
	char name[PLACE_NAME]; /* for messages: the directory, or the URL without its password */
	int redis;             /* an option that was given and is only for Redis, or 0 */
	char *line;            /* of --store-file */
	size_t count;
	const char *operands[PLACE_OPERANDS];
};

/* What the place is before the options are read. */
#define PLACE_DEFAULT                                                                                                  \
	{                                                                                                              \
		.prefix = "weekwheel", .timeout = 10 * WW_SECOND                                                       \
	}

/* Take an option from PLACE_STORE on, or an operand. Returns 0, or OPTIONS_ERROR after a message. */
int place_take(struct place *place, const struct options *options, int id);

/*
 * Find out the place after the last option. Store a second operand, which is a file, or NULL in *file; where file is
 * NULL there must be none. Returns 0, or OPTIONS_ERROR after a message.
 */
int place_complete(struct place *place, const struct options *options, const char **file);

void place_free(struct place *place);

#endif
