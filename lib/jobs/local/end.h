#ifndef LIB_JOBS_LOCAL_END_H
#define LIB_JOBS_LOCAL_END_H

/* The ends of leases. */

struct entry;
struct jobs_local;

/* The time to run of a lease is up. */
int ww_jobs_time_out(struct jobs_local *jobs, struct entry *entry);

#endif
