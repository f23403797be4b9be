#ifndef TOOLS_WEEKWHEEL_JOBS_TUBES_H
#define TOOLS_WEEKWHEEL_JOBS_TUBES_H

/* What a server counts: the statistics of its tubes, and a forecast of the jobs that become due. */

#include "tools/weekwheel/jobs/jobs.h"

struct tube_row {
	char name[WW_TUBE_MAX + 1];
	uint64_t ready, urgent, delayed, reserved, buried, total, deleted, waiting, pause, held;
};

struct tube_rows {
	struct tube_row *at;
	size_t count, capacity;
};

/* Read all tubes in the order of their names, or only jobs->tube if set. Return 0, or -1 after a message. */
int tubes_read(struct jobs *jobs, struct tube_rows *tubes);
void tubes_free(struct tube_rows *tubes);

/* Called with the server's answer for a tube. */
typedef void tubes_fn(const struct reply *reply, void *context);

/* The same, but call fn for each answer. */
int tubes_each(struct jobs *jobs, tubes_fn *fn, void *context);

/* Return 0 if the server has jobs->tube, or if that is not set; otherwise -1 after a message that names a near one. */
int tubes_known(struct jobs *jobs);

enum { TUBE_HINT = WW_TUBE_MAX + 40 };

/*
 * Return 1 if the server does not know the tube, with a question in `hint` that names a near one, or "". Return 0 if it
 * does, or if the token may not ask, and -1 after a message.
 */
int tube_is_new(struct jobs *jobs, const char *tube, char hint[TUBE_HINT]);

/* Fill a tube from the answer. */
void tube_fill(struct tube_row *tube, const struct reply *reply);

enum { FORECAST_MAX = 64, FORECAST_BAR = 40 };

/* Count jobs in `count` spans of `span` ns from now. Return 0; 1 if the server has no such verb; -1 after a message. */
int forecast_read(struct jobs *jobs, uint64_t span, size_t count, uint64_t *counts, struct reply *reply);

/* Write a bar of 1 to `width` '#' for part of most, or of none for 0. bar has width + 1 bytes. Returns bar. */
const char *forecast_bar(char *bar, size_t width, uint64_t part, uint64_t most);

#endif
