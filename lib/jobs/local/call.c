/* The calls of jobs.h: which function executes each, and what its caller gets if the batch fails. */
#include "lib/jobs/local/call.h"

#include "lib/base/time.h"
#include "lib/jobs/body.h"
#include "lib/jobs/local/check.h"
#include "lib/jobs/local/end.h"
#include "lib/jobs/local/forecast.h"
#include "lib/jobs/local/history.h"
#include "lib/jobs/local/kick.h"
#include "lib/jobs/local/local.h"
#include "lib/jobs/local/look.h"
#include "lib/jobs/local/put.h"
#include "lib/jobs/local/queue.h"
#include "lib/jobs/local/reserve.h"
#include "lib/jobs/local/rule.h"

static call_fn *const functions[] = {
    [JOBS_PUT] = ww_jobs_local_put,
    [JOBS_PUT_MANY] = ww_jobs_local_put_many,
    [JOBS_MOVE] = ww_jobs_local_move,
    [JOBS_CANCEL] = ww_jobs_local_cancel,
    [JOBS_RESERVE] = ww_jobs_local_reserve,
    [JOBS_RESERVE_MANY] = ww_jobs_local_reserve,
    [JOBS_RESERVE_JOB] = ww_jobs_local_reserve_job,
    [JOBS_FINISH] = ww_jobs_local_finish,
    [JOBS_FINISH_MANY] = ww_jobs_local_finish_many,
    [JOBS_RELEASE] = ww_jobs_local_fail,
    [JOBS_RETURN] = ww_jobs_local_return,
    [JOBS_BURY] = ww_jobs_local_fail,
    [JOBS_TOUCH] = ww_jobs_local_touch,
    [JOBS_KICK] = ww_jobs_local_kick,
    [JOBS_KICK_JOB] = ww_jobs_local_kick_job,
    [JOBS_PAUSE] = ww_jobs_local_pause,
    [JOBS_REPORT] = ww_jobs_local_report,
    [JOBS_HISTORY] = ww_jobs_local_history,
    [JOBS_LIMIT_SET] = ww_jobs_local_limit_set,
    [JOBS_LIMIT_GET] = ww_jobs_local_limit_get,
    [JOBS_LIMIT_LIST] = ww_jobs_local_limit_list,
    [JOBS_PEEK] = ww_jobs_local_peek,
    [JOBS_PEEK_NEXT] = ww_jobs_local_peek_next,
    [JOBS_STATE] = ww_jobs_local_state,
    [JOBS_LIST] = ww_jobs_local_list,
    [JOBS_FORECAST] = ww_jobs_local_forecast,
    [JOBS_STATS] = ww_jobs_local_stats,
    [JOBS_TUBE] = ww_jobs_local_tube,
    [JOBS_TUBES] = ww_jobs_local_tubes,
    [JOBS_CHECK] = ww_jobs_local_check,
};

/* A call has failed: take back what it had handed out before it, or the write of its batch, failed. */
static void withdraw(const struct jobs_local *jobs, struct jobs_call *call, int error)
{
	job_body_free(jobs->allocator, call->copy);
	for (size_t i = 0; i < call->leased; i++) {
		job_body_free(jobs->allocator, call->leases[i].body);
		call->leases[i].body = NULL;
	}
	for (size_t i = 0; call->puts && i < call->count; i++)
		if (call->puts[i].result >= 0)
			call->puts[i].result = error;
	for (size_t i = 0; call->ends && i < call->count; i++)
		if (call->ends[i].result >= 0)
			call->ends[i].result = error;
}

static int make_call(struct jobs_local *jobs, struct jobs_call *call)
{
	int is_single = call->op == JOBS_RESERVE || call->op == JOBS_RESERVE_JOB;
	struct ww_lease *leases = call->leases, lease;
	/* A list tells where it ended also if its callback ended it. */
	uint64_t *answer = call->op == JOBS_LIST ? NULL : call->answer, answered = 0;
	uint64_t *new_id = call->new_id, id = 0;
	int result;

	for (size_t i = 0; call->ends && i < call->count; i++)
		call->ends[i].result = WW_OK;
	/* What belongs to the caller changes only if the batch succeeds. */
	if (is_single)
		call->leases = &lease;
	if (answer)
		call->answer = &answered;
	if (new_id)
		call->new_id = &id;
	result = ww_jobs_submit(jobs, functions[call->op], call);
	if (result < 0)
		withdraw(jobs, call, result);
	else if (call->body)
		*call->body = call->copy;
	if (is_single && result >= 0 && call->leased)
		*leases = lease;
	if (answer && result >= 0)
		*answer = answered;
	if (new_id && result >= 0)
		*new_id = id;
	call->leases = leases;
	call->new_id = new_id;
	if (answer)
		call->answer = answer;
	return result;
}

/* ---- Waiting for a job */

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

/* Not one call, but a reserve again and again. */
static int wait_for_job(struct jobs_local *jobs, struct jobs_call *call)
{
	struct wait waiting = {jobs, 0};
	uint64_t left;
	uint64_t seen;
	ww_handle timer = 0;
	int over = 0;
	int result;

	call->op = JOBS_RESERVE;
	result = make_call(jobs, call);
	if (result || !call->ns)
		return result;
	if (ww_jobs_is_mine(jobs))
		return WW_EBUSY;
	result = ww_driver_schedule(jobs->elapsed.driver, call->ns, on_wait_over, &waiting, &timer);
	while (!result && !over) {
		pthread_mutex_lock(&jobs->lock);
		seen = jobs->readies;
		over = waiting.over;
		pthread_mutex_unlock(&jobs->lock);
		result = make_call(jobs, call);
		if (!result && !over)
			wait_a_while(jobs, &waiting, seen);
		if (!result && !over && ww_driver_time_left(jobs->elapsed.driver, timer, &left) == WW_ECLOSED)
			result = WW_ECLOSED;
	}
	(void)ww_driver_cancel_wait(jobs->elapsed.driver, timer);
	return result;
}

/* ---- Either */

int ww_jobs_local_call(struct ww_jobs *handle, struct jobs_call *call)
{
	struct jobs_local *jobs = local_of(handle);

	return call->op == JOBS_WAIT ? wait_for_job(jobs, call) : make_call(jobs, call);
}
