#ifndef LIB_JOBS_LOCAL_LOAD_H
#define LIB_JOBS_LOCAL_LOAD_H

/* Jobs that come near, and jobs that come due. */

struct entry;
struct jobs_local;
struct timeline;

/* The timer of a delayed job has fired. */
int ww_jobs_come_due(struct jobs_local *jobs, struct entry *entry);
/* Between two batches: load more if that is wanted, or forget the latest entries if there are too many. */
void ww_jobs_load(struct timeline *line);

#endif
