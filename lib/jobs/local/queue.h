#ifndef LIB_JOBS_LOCAL_QUEUE_H
#define LIB_JOBS_LOCAL_QUEUE_H

/* How calls are executed: one at a time, each by some thread, and several in a batch. */

#include "lib/jobs/backend.h"

struct jobs_local;

/*
 * A call: it is executed in turn, by whichever thread is busy. `call` is NULL where the function needs no arguments.
 * Returns what the function of jobs.h returns.
 */
typedef int call_fn(struct jobs_local *jobs, struct jobs_call *call);

int ww_jobs_submit(struct jobs_local *jobs, call_fn *fn, struct jobs_call *call);
/* Whether this thread is the owner. */
int ww_jobs_is_mine(struct jobs_local *jobs);
/* Let this thread be the owner of a batch of its calls, and end it. */
int ww_jobs_local_begin(struct ww_jobs *jobs);
int ww_jobs_local_commit(struct ww_jobs *jobs);

#endif
