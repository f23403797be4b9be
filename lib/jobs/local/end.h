#ifndef LIB_JOBS_LOCAL_END_H
#define LIB_JOBS_LOCAL_END_H

/*
 * The ends of leases: finish, release, return, bury, and a time to run that is up. A call whose token is not that of
 * the job's lease returns WW_ESTALE and changes nothing. O(log n)
 */

#include "lib/jobs/local/queue.h"

struct entry;
struct jobs_local;

/* Fail is release and bury. */
call_fn ww_jobs_local_finish, ww_jobs_local_finish_many, ww_jobs_local_fail, ww_jobs_local_return, ww_jobs_local_touch;

/* The time to run of a lease is up: the job is ready or due again, or was delivered for the last time and is buried. */
int ww_jobs_time_out(struct jobs_local *jobs, struct entry *entry);

#endif
