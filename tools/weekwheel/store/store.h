#ifndef TOOLS_WEEKWHEEL_STORE_STORE_H
#define TOOLS_WEEKWHEEL_STORE_STORE_H

/* Stores of jobs in a directory or in Redis, which this program opens itself instead of asking a server. */

#include <stdint.h>

#include "tools/common/options.h"
#include "weekwheel/driver.h"
#include "weekwheel/jobs.h"

/* ---- place.c: where jobs are kept according to the command line */

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

struct store_place {
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
int place_take(void *place, struct options *options, int id);

/*
 * Find out the place after the last option. Store a second operand, which is a file, or NULL in *file; where file is
 * NULL there must be none. Returns 0, or OPTIONS_ERROR after a message.
 */
int place_complete(struct store_place *place, const struct options *options, const char **file);

/* The same without a file. */
int place_check(void *place, const struct options *options);

/* ---- store.c */

struct opened_store {
	struct ww_driver *elapsed, *wall; /* of a directory */
	struct ww_jobs *jobs;
	int is_shared; /* in Redis: others may change it meanwhile */
};

/*
 * Open it with these WW_JOBS_* flags. READONLY does not disturb a server that uses it, and makes no store.
 * Returns a WW_E* without a message.
 */
int store_open(struct opened_store *store, const struct store_place *place, uint32_t flags);

/* Report why it cannot be opened, or what went wrong, and what to do. Returns the exit status. */
int store_refused(const struct store_place *place, int error);

/* Room for that. */
enum { STORE_REASON = 8300 };

/* Write the same as sentences, a line each, to text[0 .. room-1]. Returns text. */
const char *store_reason(char *text, size_t room, const struct store_place *place, int error);

/* Returns 0, or a WW_E* if the last changes could not be written. */
int store_close(struct opened_store *store);

/* Save what the damaged directory `from` still has into `to`, as ww_jobs_recover does. */
int store_recover(const char *from, const char *to, uint64_t *saved, ww_jobs_problem_fn *problem, void *context);
/* What the library said when it refused that, or "". */
const char *store_complaint(void);

/* Return what to add to elapsed time to get Unix time; 0 if they differ by less than a second. */
int64_t store_shift(const struct opened_store *store);

/*
 * Call fn for every job. In a directory all jobs are as they were at one moment. In Redis they come in no order, each as
 * it is when it is read; a job that was there all the time comes once, and a job that came or went meanwhile may be
 * missing. A record that cannot be read is left out, and WW_ECORRUPT is returned after the last job. If fn returns
 * another number than 0 the walk ends and returns it.
 */
int store_each(const struct opened_store *store, unsigned states, ww_job_fn *fn, void *context);

/* ---- store_redis.c, for store.c: the same for a store in Redis. Without Redis in the build opening fails. */

int store_redis_open(struct opened_store *store, const struct store_place *place, uint32_t flags);
const char *store_redis_reason(char *text, size_t room, const struct store_place *place, int error);
int store_redis_each(const struct opened_store *store, unsigned states, ww_job_fn *fn, void *context);

/* Return the number of its shards. */
uint32_t store_redis_shards(const struct opened_store *store);

#endif
