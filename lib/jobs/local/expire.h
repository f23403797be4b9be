#ifndef LIB_JOBS_LOCAL_EXPIRE_H
#define LIB_JOBS_LOCAL_EXPIRE_H

/*
 * Jobs that expire: those that nobody has leased by then are dropped or buried, and a periodic one is dropped until its next
 * due time. The entry of a ready job has a timer for that moment. A delayed one has none: a retry is due no later than
 * the job expires, and it is ready for a moment then. So no other file ends a job that has expired.
 */

#include <stdint.h>

#include "lib/jobs/local/record.h"

struct entry;
struct jobs_local;

/* When a job expires whose run is due at `base`; 0: never. */
uint64_t ww_jobs_expires(const struct job_record *record);
/* It does not expire any more or, if it is periodic, not until its next due time. */
void ww_jobs_unexpire(struct job_record *record);
/* Whether it may not be leased any more. */
int ww_jobs_has_expired(const struct jobs_local *jobs, const struct job_record *record);
/* End a job that has expired. Returns 1, 0 if it has not, or an error. */
int ww_jobs_expire_late(struct jobs_local *jobs, uint64_t id, const struct job_record *record);
/*
 * If a ready job has expired, let no reserve find it: its timer ends it. To end many in one reserve would be a write
 * without a bound. Returns 1, 0 if it has not, or an error.
 */
int ww_jobs_pass_by(struct jobs_local *jobs, const struct entry *entry);
/* The job has just become ready: end it if it has expired. On error the batch is broken. */
int ww_jobs_expire_now(struct jobs_local *jobs, uint64_t id);
/* The timer of a ready job has fired. On error the batch is broken. */
int ww_jobs_expire(struct jobs_local *jobs, struct entry *entry);

#endif
