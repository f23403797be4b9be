#ifndef LIB_JOBS_TELL_H
#define LIB_JOBS_TELL_H

/* The events of jobs, reported to the listener of a handle (ww_jobs_listen). */

#include <stdatomic.h>

#include "lib/jobs/backend.h"

/* Whether somebody listens. */
static inline int ww_jobs_is_heard(struct ww_jobs *jobs)
{
	return atomic_load_explicit(&jobs->listener, memory_order_acquire) != NULL;
}

/* Tell one event, if somebody listens still. */
void ww_jobs_tell_event(struct ww_jobs *jobs, const struct ww_job_event *event);

/* Ask the kind, which does not tell by itself, and tell what the call has done. Returns what it said. */
int ww_jobs_tell_call(struct ww_jobs *jobs, struct jobs_call *call);

#endif
