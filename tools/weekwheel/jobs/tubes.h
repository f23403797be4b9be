#ifndef TOOLS_WEEKWHEEL_JOBS_TUBES_H
#define TOOLS_WEEKWHEEL_JOBS_TUBES_H

/* The tubes of a server and their statistics. */

#include "tools/weekwheel/jobs/jobs.h"

struct tube {
	char name[JOBS_TUBE_MAX + 1];
	uint64_t ready, urgent, delayed, reserved, buried, total, deleted, waiting, pause;
};

struct tubes {
	struct tube *at;
	size_t count, capacity;
};

/* Read all tubes in the order of their names, or only jobs->tube if set. Return 0, or -1 after a message. */
int tubes_read(struct jobs *jobs, struct tubes *tubes);
void tubes_free(struct tubes *tubes);

/* Called with the server's answer for a tube. */
typedef void tubes_fn(const struct reply *reply, void *context);

/* The same, but call fn for each answer. */
int tubes_each(struct jobs *jobs, tubes_fn *fn, void *context);

/* Fill a tube from the answer. */
void tube_fill(struct tube *tube, const struct reply *reply);

#endif
