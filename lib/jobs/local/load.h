#ifndef LIB_JOBS_LOCAL_LOAD_H
#define LIB_JOBS_LOCAL_LOAD_H

/*
 * Jobs that come near, and jobs that come due: what is read from the index of due times becomes entries, up to the edge
 * (local.h).
 */

struct entry;
struct jobs_local;
struct timeline;

/* Entries that are loaded at once. */
#define LOAD_BATCH 2048u

/* The timer of a delayed job has fired. On error the batch is broken. */
int ww_jobs_come_due(struct jobs_local *jobs, struct entry *entry);
/*
 * Between two batches: load more if that is wanted, at most LOAD_BATCH, or forget the latest entries if there are too
 * many. What cannot be loaded now is tried again later.
 */
void ww_jobs_load(struct timeline *line);

#endif
