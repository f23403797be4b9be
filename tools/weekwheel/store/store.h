#ifndef TOOLS_WEEKWHEEL_STORE_STORE_H
#define TOOLS_WEEKWHEEL_STORE_STORE_H

/* A store of jobs, a directory or in Redis, opened by this program itself rather than by a server. */

#include <stdint.h>

#include "tools/weekwheel/store/place.h"
#include "weekwheel/jobs.h"

struct store {
	struct ww_driver *elapsed, *wall; /* of a directory */
	struct ww_jobs *jobs;
	int is_shared; /* in Redis: others change it meanwhile */
};

/*
 * Open it with these WW_JOBS_* flags; READONLY leaves a server alone that has it, and makes none that is not there.
 * Returns a WW_E*; nothing is said.
 */
int store_open(struct store *store, const struct place *place, uint32_t flags);

/* Say why it cannot be opened, or what went wrong, and what to do. Returns the exit status. */
int store_refused(const struct place *place, int error);

/* The same as a sentence. Returns text[0 .. room-1]. */
const char *store_reason(char *text, size_t room, const struct place *place, int error);

/* Returns what could not be written at last. */
int store_close(struct store *store);

/* Whether another process writes to it at this moment. */
int store_is_used(const char *path);

/* What is to be added to elapsed time of jobs to get Unix time; 0 where they differ by less than a second. */
int64_t store_shift(const struct store *store);

/*
 * Call fn for every job. In a directory all are as they were at one moment. In Redis each is as it was when it was
 * looked at, in no order, and once if it was there all the while; one that came or went meanwhile may be missing. A
 * record that cannot be read is left out, and those behind it are not: WW_ECORRUPT is then returned after the last.
 * Other than 0 of fn ends it, and is returned.
 */
int store_each(const struct store *store, ww_job_fn *fn, void *context);

/* How a process that worked for this one has ended. */
struct store_end {
	int status;      /* what the work returned */
	int signal;      /* or what ended it, or 0 */
	int is_damage;   /* a signal that means that what it read is not what it was taken for */
	char reason[80]; /* "SIGBUS, ..." */
};

/*
 * Do the work in a process of its own, which a file that is not what it seems may end: memory is shared with the file.
 * What the work leaves in memory is lost, but for MAP_SHARED. Standard output is flushed. Returns 0, or -1 after a
 * message.
 */
int store_apart(int (*work)(void *context), void *context, struct store_end *end);

/* ---- store_redis.c, for store.c: the same of one in Redis; where that was not built in, it cannot be opened */

int store_redis_open(struct store *store, const struct place *place, uint32_t flags);
const char *store_redis_reason(char *text, size_t room, const struct place *place, int error);
int store_redis_each(const struct store *store, ww_job_fn *fn, void *context);

/* How many shards it has. */
uint32_t store_redis_shards(const struct store *store);

#endif
