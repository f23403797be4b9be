#ifndef LIB_JOBS_LOCAL_CALL_H
#define LIB_JOBS_LOCAL_CALL_H

/* The calls of jobs.h on the embedded store. */

#include "lib/jobs/backend.h"

int ww_jobs_local_call(struct ww_jobs *jobs, struct jobs_call *call);

#endif
