#ifndef LIB_JOBS_LOCAL_QUEUE_H
#define LIB_JOBS_LOCAL_QUEUE_H

/*
 * How calls are executed: one at a time, and as many together as wait, which is a batch (J2).
 *
 *     thread  --submit-->  | call | call | call |  --the owner executes all-->  `commit`  --> their threads go on
 *
 * Threads: any thread may call these functions, also several at once. The store's lock is held only while the queue is
 * looked at, never while a call is executed. A thread that has begun a batch owns it until it ends it: others wait.
 * Errors: WW_ECLOSED: this process is a child of the one that has opened the store.
 */

#include "lib/jobs/backend.h"

struct jobs_local;

/*
 * A call: it is executed in turn, by whichever thread is busy. `call` is NULL where the function needs no arguments.
 * Returns what the function of jobs.h returns.
 */
typedef int call_fn(struct jobs_local *jobs, struct jobs_call *call);

/*
 * Execute a call and wait until its batch is written. In a batch of this thread, execute it and return at once. Returns
 * what fn returns, or the error of the batch.
 */
int ww_jobs_submit(struct jobs_local *jobs, call_fn *fn, struct jobs_call *call);
/* Whether this thread is the owner. */
int ww_jobs_is_mine(struct jobs_local *jobs);
/* Let this thread be the owner of a batch of its calls, and end it. WW_EBUSY: it is already, or is not. */
int ww_jobs_local_begin(struct ww_jobs *jobs);
int ww_jobs_local_commit(struct ww_jobs *jobs);

#endif
