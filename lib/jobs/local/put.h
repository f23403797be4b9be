#ifndef LIB_JOBS_LOCAL_PUT_H
#define LIB_JOBS_LOCAL_PUT_H

/*
 * Puts, moves and cancels jobs. A put that keeps the job of its key writes nothing. A batch of puts has a result for
 * each; an error that breaks the batch ends it. O(log n) for each job.
 */

#include <stddef.h>
#include <stdint.h>

struct jobs_local;
struct ww_job_info;
struct ww_job_put;
struct ww_job_ref;
struct ww_job_spec;
struct ww_jobs;

int ww_jobs_local_put(struct ww_jobs *handle, const struct ww_job_spec *spec, uint64_t *id, uint64_t *version);
int ww_jobs_local_put_many(
    struct ww_jobs *handle, struct ww_job_put *puts, const struct ww_job_info *const *was, size_t count);
int ww_jobs_local_move(
    struct ww_jobs *handle, const struct ww_job_ref *job, uint64_t due, uint32_t flags, uint64_t *version);
/*
 * Put the follow-up of a job that has just ended, in the same batch. If the answer is an error, the batch is broken. A due time
 * that the clock does not reach is its last one.
 */
int ww_jobs_put_then(struct jobs_local *jobs, const struct ww_job_spec *spec);
int ww_jobs_local_cancel(struct ww_jobs *handle, const struct ww_job_ref *job);

#endif
