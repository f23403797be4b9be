#ifndef LIB_JOBS_LOCAL_CHECK_H
#define LIB_JOBS_LOCAL_CHECK_H

/*
 * ww_jobs_check: everything that must hold between records, indices and counts. It reads the whole store, while other
 * calls wait. Returns how many problems were reported.
 */

#include "weekwheel/jobs.h"

int ww_jobs_local_check(struct ww_jobs *handle, ww_jobs_problem_fn *problem, void *context);

#endif
