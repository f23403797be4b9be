#ifndef LIB_JOBS_LOCAL_EVENTS_H
#define LIB_JOBS_LOCAL_EVENTS_H

/*
 * The events that a listener gets when the batch is written (J11). Without a listener nothing is kept and no key is
 * read. If the events of a batch take too much memory, one that says so replaces the last ones. No function fails.
 */

#include <stdint.h>

#include "lib/jobs/local/record.h"
#include "weekwheel/jobs.h"

struct jobs_local;

/*
 * Note for the listener what becomes of a job, which has this record then; `attempt` is its delivery. Called before
 * the change is written, since bytes of the record may lie in the store: if the write fails, so does the batch.
 */
void ww_jobs_note_event(
    struct jobs_local *jobs, enum ww_event_kind kind, uint64_t id, const struct job_record *record, uint64_t attempt);
/* The same for a job whose record is read only for this. */
void ww_jobs_note_event_of(struct jobs_local *jobs, enum ww_event_kind kind, uint64_t id);
/* The batch is written: publish it all. */
void ww_jobs_publish_noted(struct jobs_local *jobs);
/* The batch has failed: publish nothing of it. */
void ww_jobs_drop_noted(struct jobs_local *jobs);

#endif
