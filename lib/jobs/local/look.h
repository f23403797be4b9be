#ifndef LIB_JOBS_LOCAL_LOOK_H
#define LIB_JOBS_LOCAL_LOOK_H

/*
 * Looks at jobs and tubes, which change nothing: peeks, lists and statistics.
 *
 * A list reads whole pages of jobs: other calls wait meanwhile, so a page ends after some thousand jobs or some
 * megabytes.
 */

#include "lib/jobs/local/queue.h"

call_fn ww_jobs_local_peek, ww_jobs_local_peek_next, ww_jobs_local_state, ww_jobs_local_list;
call_fn ww_jobs_local_stats, ww_jobs_local_tube, ww_jobs_local_tubes;

#endif
