#ifndef TOOLS_SERVICE_CENSUS_CENSUS_H
#define TOOLS_SERVICE_CENSUS_CENSUS_H

/*
 * A census counts all sessions by the second in which they expire. A thread of its own takes it, when a client asks and
 * the last one is too old. The server says how its sessions are walked, which has to hold nobody up. A census takes a
 * twentieth of the time at most. All calls but census_add are made in the loop's thread.
 */

#include <stddef.h>
#include <stdint.h>
#include <uv.h>

#include "tools/common/survey.h"

#define CENSUS_NEVER UINT64_MAX

/* A week; and the seconds that a census counts: a week and the greatest age of a census. */
enum { CENSUS_WEEK = 7 * 86400, CENSUS_SECONDS = CENSUS_WEEK + 3600 };

struct census {
	uint64_t at;                        /* ns of the server's clock, when it began */
	uint64_t began, ended;              /* ms of the loop's */
	uint32_t by_second[CENSUS_SECONDS]; /* that expire this many seconds after `at` */
	struct survey survey;
};

struct takes;

struct census_source {
	/* Call census_add for each session, and return when it returns 1. Called by the thread. */
	void (*walk)(void *context, struct takes *takes);
	uint64_t (*now)(void *context); /* ns of the clock that the deadlines are of */
	void *context;
};

/* Count a session. deadline: ns, or CENSUS_NEVER. size below 0: it is not known. Returns 1 if the walk is to end. */
int census_add(struct takes *takes, unsigned database, const char *key, size_t length, uint64_t deadline, int64_t size);

/* `done` is called after each one that was begun. Returns NULL without memory. */
struct takes *census_start(
    uv_loop_t *loop, const struct census_source *source, void (*done)(void *context), void *context);
/* A census that is being taken ends early, and the loop goes on until then. NULL is harmless. */
void census_stop(struct takes *takes);

/* Return 0 if the last one is fresh, or there is no memory for another; otherwise 1: one is being taken. */
int census_refresh(struct takes *takes);
/* The last census, or NULL: there was no memory for one. */
const struct census *census_last(const struct takes *takes);

/* How many expire in each of `count` spans of this many seconds from `now` on, by the server's clock. */
void census_forecast(const struct census *census, uint64_t now, uint64_t span, uint64_t *counts, size_t count);

#endif
