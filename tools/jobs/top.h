#ifndef TOOLS_TOP_H
#define TOOLS_TOP_H

/* What weekwheel top shows. */

#include "jobs/forecast.h"
#include "jobs/jobs.h"
#include "jobs/tubes.h"

enum { TOP_ROWS = 24, TOP_MINUTES = 60 };

/* What the server said at one moment. */
struct top_sample {
	int64_t taken; /* ms of a clock that nobody sets */
	struct tubes tubes;
	struct tube all; /* sums, named after the server's version */
	uint64_t uptime, workers;
	char oldest[40]; /* seconds that the first job has been overdue; "": not known */
	uint64_t minutes[FORECAST_MAX];
	int has_forecast;
};

/* Ask the server. Return 0, or -1 after a message. */
int top_sample(struct jobs *jobs, struct top_sample *sample);
void top_sample_free(struct top_sample *sample);

/* Write a frame of `rows` rows, at least TOP_ROWS, and 80 columns. `before` gives the rates; NULL: there are none yet. */
void top_frame(FILE *out, const struct jobs *jobs, const struct top_sample *now, const struct top_sample *before,
    int rows, int colour, int cursor);

#endif
