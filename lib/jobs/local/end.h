#ifndef LIB_JOBS_LOCAL_END_H
#define LIB_JOBS_LOCAL_END_H

/*
 * The ends of leases: finish, release, return, bury, and a time to run that is up. A call whose token is not that of
 * the job's lease returns WW_ESTALE and changes nothing. O(log n)
 */

#include <stddef.h>
#include <stdint.h>

struct entry;
struct jobs_local;
struct ww_job_end;
struct ww_jobs;

int ww_jobs_local_finish(struct ww_jobs *handle, uint64_t id, uint64_t token);
int ww_jobs_local_finish_many(struct ww_jobs *handle, struct ww_job_end *ends, size_t count);
int ww_jobs_local_release(
    struct ww_jobs *handle, uint64_t id, uint64_t token, uint32_t priority, uint64_t delay, const char *error);
int ww_jobs_local_bury(struct ww_jobs *handle, uint64_t id, uint64_t token, uint32_t priority, const char *error);
int ww_jobs_local_return(struct ww_jobs *handle, uint64_t id, uint64_t token, uint64_t delay);
int ww_jobs_local_touch(struct ww_jobs *handle, uint64_t id, uint64_t token, uint64_t *ends);

/* The time to run of a lease is up: the job is ready or due again, or was delivered for the last time and is buried. */
int ww_jobs_time_out(struct jobs_local *jobs, struct entry *entry);

#endif
