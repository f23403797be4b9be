#ifndef LIB_JOBS_LOCAL_LOOK_H
#define LIB_JOBS_LOCAL_LOOK_H

/*
 * Looks at jobs and tubes, which change nothing: peeks, lists and statistics.
 *
 * A list reads whole pages of jobs: other calls wait meanwhile, so a page ends after some thousand jobs or some
 * megabytes.
 */

#include "weekwheel/jobs.h"

int ww_jobs_local_peek(struct ww_jobs *handle, const struct ww_job_ref *job, struct ww_job_info *info, void **body);
int ww_jobs_local_peek_next(
    struct ww_jobs *handle, const char *tube, enum ww_job_state state, struct ww_job_info *info, void **body);
int ww_jobs_local_state(struct ww_jobs *handle, uint64_t id, enum ww_job_state *state);
int ww_jobs_local_list(struct ww_jobs *handle, const struct ww_job_filter *filter, size_t limit, ww_job_fn *fn,
    void *context, uint64_t *next);
int ww_jobs_local_stats(struct ww_jobs *handle, struct ww_jobs_stats *stats);
int ww_jobs_local_tube(struct ww_jobs *handle, const char *tube, struct ww_tube_stats *stats);
int ww_jobs_local_above(struct ww_jobs *handle, const char *tube, uint32_t code, uint64_t *count, uint32_t *lowest);
int ww_jobs_local_tubes(struct ww_jobs *handle, ww_tube_fn *fn, void *context);

#endif
