#ifndef LIB_JOBS_LOCAL_RESERVE_H
#define LIB_JOBS_LOCAL_RESERVE_H

/*
 * Leases jobs: the best ones of some tubes, or one by its id. Nothing is written, unless a job that is leased by its id
 * is not due yet (J4).
 *
 * A job whose record cannot be read is reported once and leaves memory: it is not delivered again. Complexity: O(tubes)
 * and O(log n) for each job.
 */

#include "lib/jobs/local/queue.h"

/* Reserve also serves JOBS_RESERVE_MANY. WW_EIO, WW_ECORRUPT: the store cannot write what becomes of a lease. */
call_fn ww_jobs_local_reserve, ww_jobs_local_reserve_job;

#endif
