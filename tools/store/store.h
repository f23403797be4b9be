#ifndef TOOLS_STORE_H
#define TOOLS_STORE_H

/* A directory of jobs, opened by this program itself rather than by a server. */

#include <stdint.h>

#include "options.h"
#include "weekwheel/jobs.h"

struct store {
	struct ww_driver *elapsed, *wall;
	struct ww_jobs *jobs;
};

/* Open it with these WW_JOBS_* flags; READONLY leaves a server alone that has it. Returns a WW_E*; nothing is said. */
int store_open(struct store *store, const char *path, uint32_t flags);

/* Say why a directory cannot be opened, and what to do. */
void store_refused(const char *path, int error);

/* The same as a sentence. Returns text[0 .. room-1]. */
const char *store_reason(char *text, size_t room, const char *path, int error);

/* Returns what could not be written at last. */
int store_close(struct store *store);

/* Whether another process writes to it at this moment. */
int store_is_used(const char *path);

/* What is to be added to elapsed time of jobs to get Unix time; 0 where they differ by less than a second. */
int64_t store_shift(const struct store *store);

/*
 * Call fn for every job, all as they were at one moment. A record that cannot be read is left out, and those behind it are not:
 * WW_ECORRUPT is then returned after the last. Other than 0 of fn ends it, and is returned.
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
 * Do the work in a process of its own, which a file that is not what it seems may end: memory is shared with the file. What the work
 * leaves in memory is lost, but for MAP_SHARED. Standard output is flushed. Returns 0, or -1 after a message.
 */
int store_apart(int (*work)(void *context), void *context, struct store_end *end);

/* Take the one operand that all commands of stores have, its directory. Returns 0, or OPTIONS_ERROR after a message. */
int store_operand(const struct options *options, const char **path);

/* Returns OPTIONS_ERROR after a message if it was not given. */
int store_needs_operand(const struct options *options, const char *path);

#endif
