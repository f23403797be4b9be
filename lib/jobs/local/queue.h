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

struct jobs_local;
struct ww_jobs;

/*
 * A call: it is executed in turn, by whichever thread is busy. `arguments` points to what the function has defined for
 * its arguments and answers; NULL: it needs none. Returns what the function of jobs.h returns.
 *
 * If the batch fails, the call has succeeded for nothing. So its answers go there, and only the function that submits
 * it gives them to the caller.
 */
typedef int call_fn(struct jobs_local *jobs, void *arguments);

/*
 * Execute a call and wait until its batch is written. In a batch of this thread, execute it and return at once. Returns
 * what fn returns, or the error of the batch.
 */
int ww_jobs_submit(struct jobs_local *jobs, call_fn *fn, void *arguments);
/* Whether this thread is the owner. */
int ww_jobs_is_mine(struct jobs_local *jobs);
/* Let this thread be the owner of a batch of its calls, and end it. WW_EBUSY: it is already, or is not. */
int ww_jobs_local_begin(struct ww_jobs *jobs);
int ww_jobs_local_commit(struct ww_jobs *jobs);

#endif
