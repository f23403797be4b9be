#ifndef LIB_JOBS_LOCAL_BATCH_H
#define LIB_JOBS_LOCAL_BATCH_H

/* The end of a batch. */

struct jobs_local;

/* Write what the calls of the batch have changed, or take it all back and return the error. */
int ww_jobs_commit_batch(struct jobs_local *jobs);

#endif
