#ifndef LIB_JOBS_LOCAL_PUT_H
#define LIB_JOBS_LOCAL_PUT_H

/*
 * Puts, moves and cancels jobs. A put that keeps the job of its key writes nothing. A batch of puts has a result for
 * each; an error that breaks the batch ends it. O(log n) for each job.
 */

#include "lib/jobs/local/queue.h"

call_fn ww_jobs_local_put, ww_jobs_local_put_many, ww_jobs_local_move, ww_jobs_local_cancel;

#endif
