#ifndef TOOLS_WEEKWHEEL_MOVING_REDIS_SOURCE_H
#define TOOLS_WEEKWHEEL_MOVING_REDIS_SOURCE_H

/* The connection to a Redis whose jobs move: its URL, questions and answers. Each says on standard error what went wrong. */

#include <hiredis/hiredis.h>

#include "lib/redis/link/reader.h"
#include "tools/common/dial.h"
#include "tools/weekwheel/moving/moving.h"

struct redis_source {
	redisContext *redis;
	struct redis_reader_bound bound;
	char host[DIAL_HOST_MAX], user[200], password[500];
	char key[1000];                /* what the URL says behind the database; "" if it may be left out, and was */
	char name[DIAL_HOST_MAX + 40]; /* HOST:PORT/DB, for messages and keys */
	int port;
	uint64_t db;
};

/* Read the URL moving->from. Return 0 or -1. */
int redis_source_url(struct moving *moving, struct redis_source *own);

/* Connect to what the URL says. Return 0 or -1. */
int redis_source_connect(const struct moving *moving, struct redis_source *own);

/* Read the next answer, of this type, which the caller frees, or return NULL. */
redisReply *redis_source_answer(const struct redis_source *own, int type);

/* Send a command and read its answer. */
redisReply *redis_source_ask(const struct redis_source *own, int type, int count, const char **words);

#define REDIS_SOURCE_ASK(own, type, ...)                                                                               \
	redis_source_ask(own, type, (int)(sizeof((const char *[]){__VA_ARGS__}) / sizeof(const char *)),               \
	    (const char *[]){__VA_ARGS__})

/* Free an answer that says nothing. Return 0, or -1 if there was none. */
int redis_source_done(redisReply *reply);

/* Free an answer that Redis would not give. Returns NULL. */
redisReply *redis_source_is_none(const struct redis_source *own, redisReply *reply);

/*
 * What one import takes back, another must not have seen and removed at the source. Imports of the same jobs recognize
 * each other by the names of their connections. Return 0, or -1 if another is at work.
 */
int redis_source_be_alone(const struct redis_source *own, const char *what);

/* Whether programs are connected that wait at a list or for what is published, as workers of Celery do. Return -1 if lost. */
int redis_source_has_workers(const struct redis_source *own);

#endif
