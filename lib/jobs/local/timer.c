/* Timers of the driver whose callbacks become calls: they are cancelled, submitted, and recognized. */
#include "lib/jobs/local/timer.h"

#include "lib/jobs/local/local.h"
#include "lib/jobs/local/queue.h"

void ww_jobs_cancel_timer(struct jobs_local *jobs, struct ww_driver *driver, ww_handle *timer)
{
	if (*timer && ww_driver_cancel(driver, *timer) == 0)
		jobs->late++;
	*timer = 0;
}

void ww_jobs_submit_firing(struct jobs_local *jobs, call_fn *fn, void *owner, const struct ww_firing *firing)
{
	struct fired fired = {owner, firing->handle};

	(void)ww_jobs_submit(jobs, fn, &fired);
}

int ww_jobs_take_firing(struct jobs_local *jobs, const struct fired *fired, ww_handle *timer)
{
	if (jobs->closed || *timer != fired->handle) {
		jobs->late -= jobs->late > 0;
		return 0;
	}
	*timer = 0;
	return 1;
}
