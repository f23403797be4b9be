#ifndef LIB_JOBS_PUBLISH_H
#define LIB_JOBS_PUBLISH_H

/* The events of jobs, reported to the listener of a handle (ww_jobs_listen). */

#include <stdatomic.h>

#include "lib/jobs/backend.h"

/* Whether there is a listener. */
static inline int ww_jobs_is_heard(struct ww_jobs *jobs)
{
	return atomic_load_explicit(&jobs->listener, memory_order_acquire) != NULL;
}

/* Publish an event, if there is still a listener. */
void ww_jobs_publish_event(struct ww_jobs *jobs, const struct ww_job_event *event);

/*
 * For a kind that does not publish by itself: publish what a call has done, if it succeeded. Each returns `result`,
 * which is what the call has returned.
 */
int ww_jobs_publish_put(
    struct ww_jobs *jobs, const struct ww_job_spec *spec, uint64_t id, uint64_t version, int result);
int ww_jobs_publish_puts(struct ww_jobs *jobs, const struct ww_job_put *puts, size_t count, int result);
/* The job is due in `left` ns, or WW_EVENT_UNKNOWN. */
int ww_jobs_publish_moved(
    struct ww_jobs *jobs, const struct ww_job_ref *job, uint64_t left, uint64_t version, int result);
int ww_jobs_publish_cancelled(struct ww_jobs *jobs, const struct ww_job_ref *job, int result);
/* Here `result` says how many leases there are. */
int ww_jobs_publish_leases(struct ww_jobs *jobs, const struct ww_lease *leases, int result);
/* What became of a job of which only the id is known. The error may be NULL. */
int ww_jobs_publish_id(struct ww_jobs *jobs, enum ww_event_kind kind, uint64_t id, const char *error, int result);
/* Those that were finished. */
int ww_jobs_publish_ends(struct ww_jobs *jobs, const struct ww_job_end *ends, size_t count, int result);
int ww_jobs_publish_kicks(struct ww_jobs *jobs, const char *tube, uint64_t count, int result);

#endif
