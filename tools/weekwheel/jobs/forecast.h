#ifndef TOOLS_WEEKWHEEL_JOBS_FORECAST_H
#define TOOLS_WEEKWHEEL_JOBS_FORECAST_H

/* The number of jobs that become due in each span of time, as the server counts them. */

#include "tools/weekwheel/jobs/jobs.h"

enum { FORECAST_MAX = 64, FORECAST_BAR = 40 };

/* Count jobs in `count` spans of `span` ns from now. Return 0; 1 if the server has no such verb; -1 after a message. */
int forecast_read(struct jobs *jobs, uint64_t span, size_t count, uint64_t *counts, struct reply *reply);

/* Write a bar of 1 to `width` '#' for part of most, or of none for 0. bar has width + 1 bytes. Returns bar. */
const char *forecast_bar(char *bar, size_t width, uint64_t part, uint64_t most);

#endif
