#ifndef LIB_JOBS_LOCAL_FORECAST_H
#define LIB_JOBS_LOCAL_FORECAST_H

/*
 * ww_jobs_forecast: how many jobs come due in each of the next spans. It reads counts of slots, and at most 500 jobs.
 */

#include "lib/jobs/local/queue.h"

call_fn ww_jobs_local_forecast;

#endif
