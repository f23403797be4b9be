#ifndef LIB_JOBS_LOCAL_TIMER_H
#define LIB_JOBS_LOCAL_TIMER_H

/* Timers whose callbacks become calls. */

#include "lib/jobs/local/queue.h"
#include "weekwheel/driver.h"

/* Cancel a timer. If its callback runs already, that finds another handle. */
void ww_jobs_cancel_timer(struct jobs_local *jobs, struct ww_driver *driver, ww_handle *timer);
/* In a callback: call fn with the owner of the timer as its context and with the handle as its token. */
void ww_jobs_submit_firing(struct jobs_local *jobs, call_fn *fn, void *owner, const struct ww_firing *firing);
/* In that call: whether the timer is still set. If it is, clear its handle. */
int ww_jobs_take_firing(struct jobs_local *jobs, const struct jobs_call *firing, ww_handle *timer);

#endif
