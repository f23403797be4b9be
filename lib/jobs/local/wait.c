/* Waits for a job: a reserve again and again, whenever something may have become ready. */
#include "lib/jobs/local/wait.h"

#include "lib/base/time.h"
#include "lib/jobs/local/local.h"
#include "lib/jobs/local/queue.h"
#include "lib/jobs/local/reserve.h"

/* How soon a stopped driver is noticed. */
enum { LOOK_NS = 50000000 };

struct wait {
	struct jobs_local *jobs;
	int over;
};

static void on_wait_over(struct ww_driver *driver, const struct ww_firing *firing, void *user)
{
	struct wait *waiting = user;

	(void)driver;
	(void)firing;
	pthread_mutex_lock(&waiting->jobs->lock);
	waiting->over = 1;
	pthread_cond_broadcast(&waiting->jobs->ready_cond);
	pthread_mutex_unlock(&waiting->jobs->lock);
}

/* Wait until something may be ready, the time is up, or it is time to see whether the driver was stopped. */
static void wait_a_while(struct jobs_local *jobs, const struct wait *waiting, uint64_t seen)
{
	const uint64_t until = time_now(CLOCK_MONOTONIC) + LOOK_NS;

	pthread_mutex_lock(&jobs->lock);
	while (!waiting->over && jobs->readies == seen)
		if (time_wait(&jobs->ready_cond, &jobs->lock, until))
			break;
	pthread_mutex_unlock(&jobs->lock);
}

int ww_jobs_local_wait(struct ww_jobs *handle, const struct ww_reserve *what, uint64_t timeout, struct ww_lease *lease)
{
	struct jobs_local *jobs = local_of(handle);
	struct wait waiting = {jobs, 0};
	uint64_t left;
	uint64_t seen;
	ww_handle timer = 0;
	int over = 0;
	int result = ww_jobs_local_reserve(handle, what, lease);

	if (result || !timeout)
		return result;
	if (ww_jobs_is_mine(jobs))
		return WW_EBUSY;
	result = ww_driver_schedule(jobs->elapsed.driver, timeout, on_wait_over, &waiting, &timer);
	while (!result && !over) {
		pthread_mutex_lock(&jobs->lock);
		seen = jobs->readies;
		over = waiting.over;
		pthread_mutex_unlock(&jobs->lock);
		result = ww_jobs_local_reserve(handle, what, lease);
		if (!result && !over)
			wait_a_while(jobs, &waiting, seen);
		if (!result && !over && ww_driver_time_left(jobs->elapsed.driver, timer, &left) == WW_ECLOSED)
			result = WW_ECLOSED;
	}
	(void)ww_driver_cancel_wait(jobs->elapsed.driver, timer);
	return result;
}
