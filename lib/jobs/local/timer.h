#ifndef LIB_JOBS_LOCAL_TIMER_H
#define LIB_JOBS_LOCAL_TIMER_H

/*
 * Timers whose callbacks become calls, as those of other threads do. A callback may run already when its timer is
 * cancelled; its call comes later, and finds another handle. Until then it counts as `late`, and what it looks at must
 * stay.
 */

#include "lib/jobs/local/queue.h"
#include "weekwheel/driver.h"

/* A timer that has fired: the arguments of its call. */
struct fired {
	void *owner;
	ww_handle handle;
};

/* Cancel a timer, and clear its handle; 0: there is none. */
void ww_jobs_cancel_timer(struct jobs_local *jobs, struct ww_driver *driver, ww_handle *timer);
/* In a callback, in any thread: call fn with a struct fired. */
void ww_jobs_submit_firing(struct jobs_local *jobs, call_fn *fn, void *owner, const struct ww_firing *firing);
/* In that call: whether the timer is still set. If it is, clear its handle. */
int ww_jobs_take_firing(struct jobs_local *jobs, const struct fired *fired, ww_handle *timer);

#endif
