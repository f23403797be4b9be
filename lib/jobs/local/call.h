#ifndef LIB_JOBS_LOCAL_CALL_H
#define LIB_JOBS_LOCAL_CALL_H

/*
 * The calls of jobs.h on the embedded store: which function executes each, and the wait, which repeats one. Any thread
 * may call. What belongs to the caller changes only if the batch succeeds.
 */

#include "lib/jobs/backend.h"

/* Returns what the function of jobs.h returns. WW_EBUSY: a wait in a batch of its own thread. */
int ww_jobs_local_call(struct ww_jobs *jobs, struct jobs_call *call);

#endif
