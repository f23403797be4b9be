#ifndef TOOLS_WEEKWHEEL_STORE_PLACE_H
#define TOOLS_WEEKWHEEL_STORE_PLACE_H

/* Where jobs are kept, as the command line says: in a directory, or in Redis. */

#include <stdint.h>

#include "tools/common/options.h"

/* The ids of the options below; commands have theirs from 1. */
enum { PLACE_STORE = 200, PLACE_STORE_FILE, PLACE_PREFIX, PLACE_TIMEOUT, PLACE_SHARDS };

#define PLACE_OPTIONS                                                                                                  \
	{PLACE_STORE, 's', "store", "URL", "jobs in Redis: redis://HOST:PORT/, or unix:///PATH"},                      \
	    {PLACE_STORE_FILE, 0, "store-file", "FILE", "read that URL from a file, lest a password be seen"},         \
	    {PLACE_PREFIX, 0, "redis-prefix", "NAME", "what each key in Redis begins with; weekwheel"},                \
	{                                                                                                              \
		PLACE_TIMEOUT, 0, "redis-timeout", "SECONDS", "how long an answer of Redis is waited for; 10"          \
	}

enum { PLACE_OPERANDS = 2, PLACE_NAME = 300 };

struct place {
	const char *path; /* a directory, or NULL: in Redis */
	const char *url;
	const char *store; /* --store, if that was given */
	const char *prefix;
	uint64_t shards; /* of a store that is made; 0: not said */
	uint64_t timeout;
	char name[PLACE_NAME]; /* what to call it in messages: the URL without a password */
	int redis;             /* an option for Redis alone that was given, or 0 */
	char *line;            /* of --store-file */
	size_t count;
	const char *operands[PLACE_OPERANDS];
};

/* Set the defaults. */
void place_init(struct place *place);

/* Take an option from PLACE_STORE on, or an operand. Returns 0, or OPTIONS_ERROR after a message. */
int place_take(struct place *place, const struct options *options, int id);

/*
 * All was taken: find out where it is. What is left of the operands is a file, stored in *file, or NULL; where file is
 * NULL, there may be none. Returns 0, or OPTIONS_ERROR after a message.
 */
int place_complete(struct place *place, const struct options *options, const char **file);

void place_free(struct place *place);

#endif
