#ifndef LIB_JOBS_LOCAL_ENDED_H
#define LIB_JOBS_LOCAL_ENDED_H

/*
 * Jobs that have ended and are kept for their keys (J9), and the one timer for the first of them that is forgotten.
 *
 * Complexity: O(log n). At most `ended_max` are kept: then the first is forgotten for the next.
 */

#include <stdint.h>

#include "lib/jobs/local/queue.h"
#include "lib/jobs/local/record.h"

/*
 * Keep a job, which ended at job->due and is forgotten at job->ended, instead of erasing its old record. old NULL:
 * the job is new here.
 */
int ww_jobs_keep(struct jobs_local *jobs, uint64_t id, const struct job_record *old, const struct job_record *job);
/* Erase a job that has ended. */
int ww_jobs_forget(struct jobs_local *jobs, uint64_t id, const struct job_record *old);
/* Whether its time is over. It may still be there. */
int ww_jobs_is_forgotten(const struct jobs_local *jobs, const struct job_record *record);
/*
 * Forget those whose time is over, from this time on. Without a timer nothing is planned, and a put forgets its key's.
 */
void ww_jobs_plan_forget(struct jobs_local *jobs, uint64_t at);
/*
 * The store is open: plan which jobs to forget when. A callback may come at once, so this counts as a call, as
 * callbacks do.
 */
call_fn ww_jobs_ended_open;

#endif
