#ifndef TOOLS_WEEKWHEEL_JOBS_TOP_H
#define TOOLS_WEEKWHEEL_JOBS_TOP_H

/* What weekwheel top shows. */

#include "tools/weekwheel/jobs/jobs.h"
#include "tools/weekwheel/jobs/top_wheel.h"
#include "tools/weekwheel/jobs/tubes.h"

enum { TOP_ROWS = 24 };

/* What the server said at one moment. */
struct top_sample {
	int64_t taken; /* ms of a clock that nobody sets */
	struct tubes tubes;
	struct tube all; /* sums, named after the server's version */
	uint64_t uptime, workers;
	char oldest[40]; /* seconds that the first job has been overdue; "": not known */
};

/* Ask the server. The wheels go on from one sample to the next. Return 0, or -1 after a message. */
int top_sample(struct jobs *jobs, struct top_sample *sample, struct top_wheels *wheels);
void top_sample_free(struct top_sample *sample);

/* What the terminal can do. */
struct top_look {
	int rows; /* fewer than TOP_ROWS are taken for that many */
	int colour, cursor, utf8;
};

/* Write a frame of 80 columns. `before` gives the rates; NULL: there are none yet. */
void top_frame(FILE *out, const struct jobs *jobs, const struct top_sample *now, const struct top_sample *before,
    const struct top_wheels *wheels, const struct top_look *look);

#endif
