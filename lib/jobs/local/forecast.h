#ifndef LIB_JOBS_LOCAL_FORECAST_H
#define LIB_JOBS_LOCAL_FORECAST_H

/*
 * ww_jobs_forecast: how many jobs come due in each of the next spans. It reads counts of slots, and at most 500 jobs.
 */

#include <stddef.h>
#include <stdint.h>

struct ww_jobs;

int ww_jobs_local_forecast(struct ww_jobs *handle, const char *tube, uint64_t span, uint64_t *counts, size_t count);

#endif
