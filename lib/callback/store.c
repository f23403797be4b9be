/*
 * The store: renewing leases and reporting results, also when it fails for a while.
 *
 * When a lease is renewed:
 *   1. While its delivery waits, also after a redirection, as soon as half of it is over (ww_callback_tend).
 *   2. Just before the first request is sent, if an eighth of it is over: the request gets nearly the whole time to run.
 *   3. Not during a request, nor before a redirected one: the time to run bounds them together. Of what is left, a
 *      tenth, 2 s at most, is kept for reporting the result.
 * A renewal that the store refuses means that the lease has ended: the delivery is dropped, and the job is somebody
 * else's.
 *
 * What becomes of a result:
 *   1. Successes are reported many at a time, the others one by one.
 *   2. An error of the store's (it cannot be reached, it is full) leaves the result unreported. The store is left alone for
 *      a pause that doubles, and then reported again.
 *   3. An error that would come again for this job, such as WW_ESTALE, ends the delivery: a stale lease means that the
 *      job was delivered again.
 */
#include <inttypes.h>
#include <stdio.h>

#include "lib/base/random.h"
#include "lib/callback/callback_internal.h"
#include "weekwheel/driver.h"

#define PAUSE_MIN (50 * WW_MILLISECOND)
#define PAUSE_MAX (5 * WW_SECOND)
#define MARGIN_MAX (2 * WW_SECOND)

/* Results reported at once: more would keep the transfers waiting. */
enum { REPORT_BATCH = 512 };

/* A result that no call of the store gives to one of many. */
enum { UNDECIDED = 1 };

/* ---- Lost and found */

int ww_callback_store_may(const struct ww_callback *callback, uint64_t now)
{
	return now >= callback->ask_again;
}

/* Errors about the job, not the store: another attempt would fail in the same way. */
static int is_final(int error)
{
	switch (error) {
	case WW_ESTALE:
	case WW_ENOTFOUND:
	case WW_EINVAL:
	case WW_EOVERFLOW:
	case WW_ECORRUPT:
	case WW_ECLOSED:
		return 1;
	default:
		return 0;
	}
}

void ww_callback_store_lost(struct ww_callback *callback, int error, uint64_t now)
{
	uint64_t pause = callback->pause ? callback->pause * 2 : PAUSE_MIN;

	callback->pause = pause > PAUSE_MAX ? PAUSE_MAX : pause;
	/* Pushers that lost the same store do not all come back at once. */
	callback->ask_again = now + callback->pause - random_below(&callback->random, callback->pause / 4);
	callback->counters.store_errors++;
	if (!callback->is_lost)
		ww_callback_log(
		    callback, "The store of jobs fails, and is asked again until it answers: %s", ww_strerror(error));
	callback->is_lost = 1;
}

int ww_callback_store_failed(struct ww_callback *callback, int error, uint64_t now)
{
	if (error < 0 && !is_final(error)) {
		ww_callback_store_lost(callback, error, now);
		return 1;
	}
	if (callback->is_lost)
		ww_callback_log(callback, "The store of jobs answers again.");
	callback->is_lost = 0;
	callback->pause = 0;
	return 0;
}

/* ---- Leases */

static int renew(struct delivery *delivery, uint64_t now)
{
	struct ww_callback *callback = delivery->callback;
	struct ww_lease *lease = &delivery->lease;
	int error = ww_jobs_touch(callback->config.jobs, lease->id, lease->token, &lease->ends);

	if (ww_callback_store_failed(callback, error, now))
		return 0;
	if (error) {
		callback->counters.stale++;
		ww_callback_forget(delivery);
		return 0;
	}
	/* Reading the clock would give a later time, and the next renewal would be late. */
	delivery->touched = lease->ends > delivery->run ? lease->ends - delivery->run : 0;
	return 1;
}

/* Whether that part of the lease is over. */
static int is_worn(const struct delivery *delivery, uint64_t part)
{
	uint64_t now = 0;

	(void)ww_jobs_now(delivery->callback->config.jobs, 0, &now);
	return now > delivery->touched && now - delivery->touched >= delivery->run / part;
}

void ww_callback_tend(struct ww_callback *callback, uint64_t now)
{
	uint64_t soonest = WW_SECOND;
	struct delivery *next;

	if (now < callback->tend || !ww_callback_store_may(callback, now))
		return;
	for (struct delivery *delivery = callback->lists[CALLBACK_WAITING].first; delivery; delivery = next) {
		next = delivery->next;
		if (delivery->run / 8 < soonest)
			soonest = delivery->run / 8;
		if (is_worn(delivery, 2) && !renew(delivery, now) && callback->is_lost)
			break;
	}
	callback->tend = now + soonest;
}

int ww_callback_freshen(struct delivery *delivery, uint64_t now)
{
	return delivery->redirects || !is_worn(delivery, 8) || renew(delivery, now);
}

uint64_t ww_callback_time_left(const struct delivery *delivery, uint64_t now)
{
	const struct ww_callback_config *config = &delivery->callback->config;
	uint64_t store_now = 0;
	uint64_t left;

	(void)ww_jobs_now(config->jobs, 0, &store_now);
	if (store_now >= delivery->lease.ends)
		return 0;
	left = delivery->lease.ends - store_now;
	left -= left / 10 < MARGIN_MAX ? left / 10 : MARGIN_MAX;
	if (config->timeout) {
		uint64_t passed = now - delivery->began;
		uint64_t rest = passed < config->timeout ? config->timeout - passed : 0;
		left = rest < left ? rest : left;
	}
	return left;
}

/* ---- Results */

/* The delay after this attempt of a job without a backoff: doubles with each, less a random part of up to a quarter. */
static uint64_t delay_after(struct ww_callback *callback, uint32_t attempt)
{
	const uint64_t most = callback->config.retry_max;
	uint64_t delay = callback->config.retry;

	for (uint32_t i = 1; i < attempt && delay && delay < most; i++)
		delay *= 2;
	if (delay > most)
		delay = most;
	return delay - random_below(&callback->random, delay / 4 + 1);
}

/* The job has no limit of attempts, and that many have failed. */
static int is_last(const struct delivery *delivery)
{
	const uint32_t most = delivery->callback->config.attempts;

	return most && !delivery->lease.attempts && delivery->lease.attempt >= most;
}

static int bury_last(const struct delivery *delivery)
{
	const struct ww_lease *lease = &delivery->lease;
	char error[WW_JOB_ERROR_MAX + 32];

	(void)snprintf(error, sizeof error, "after %" PRIu32 " attempts: %s", lease->attempt, delivery->error);
	return ww_jobs_bury(delivery->callback->config.jobs, lease->id, lease->token, lease->priority, error);
}

static int report_one(const struct delivery *delivery)
{
	struct ww_jobs *jobs = delivery->callback->config.jobs;
	const struct ww_lease *lease = &delivery->lease;
	uint64_t delay = delivery->delay;

	if (delivery->outcome == CALLBACK_GIVE_BACK)
		return ww_jobs_return_after(jobs, lease->id, lease->token, delay);
	if (delivery->outcome == CALLBACK_BURY)
		return ww_jobs_bury(jobs, lease->id, lease->token, lease->priority, delivery->error);
	if (is_last(delivery))
		return bury_last(delivery);
	if (delay == WW_JOB_BACKOFF && !lease->backoff)
		delay = delay_after(delivery->callback, lease->attempt);
	return ww_jobs_release(jobs, lease->id, lease->token, lease->priority, delay, delivery->error);
}

static void report_result(const struct delivery *delivery, enum ww_callback_what what)
{
	const struct ww_callback_config *config = &delivery->callback->config;
	const struct ww_callback_result result = {.what = what,
	    .id = delivery->lease.id,
	    .attempt = delivery->lease.attempt,
	    .kicks = delivery->lease.kicks,
	    .late = delivery->lease.late,
	    .tube = delivery->lease.tube,
	    .error = delivery->error};

	if (config->result)
		config->result(&result, config->context);
}

/* The store has decided: count the result and forget the delivery. */
static void settle(struct delivery *delivery, int result)
{
	struct ww_callback *callback = delivery->callback;
	struct counters *counters = &callback->counters;

	if (result == WW_ESTALE || result == WW_ENOTFOUND) {
		counters->stale++;
	} else if (result < 0) {
		counters->lost++;
		ww_callback_log(callback, "The result of a job was refused: %s", ww_strerror(result));
	} else if (delivery->outcome == CALLBACK_FINISH) {
		counters->finished++;
		report_result(delivery, WW_CALLBACK_DONE);
	} else if (delivery->outcome == CALLBACK_GIVE_BACK) {
		counters->given_back++;
	} else if (delivery->outcome == CALLBACK_BURY || result == 1 || is_last(delivery)) {
		counters->buried++;
		report_result(delivery, WW_CALLBACK_BURIED);
	} else {
		counters->retried++;
		report_result(delivery, WW_CALLBACK_RETRIED);
	}
	ww_callback_forget(delivery);
}

static size_t collect_finished(const struct ww_callback *callback, struct delivery **reported, struct ww_job_end *ends)
{
	struct delivery *delivery = callback->lists[CALLBACK_UNREPORTED].first;
	size_t count = 0;

	for (; delivery && count < REPORT_BATCH; delivery = delivery->next) {
		if (delivery->outcome != CALLBACK_FINISH)
			continue;
		reported[count] = delivery;
		ends[count++] = (struct ww_job_end){delivery->lease.id, delivery->lease.token, UNDECIDED};
	}
	return count;
}

/* Tell successes, many at a time. Returns 0 if the store is lost. */
static int report_finished(struct ww_callback *callback, uint64_t now)
{
	struct delivery *reported[REPORT_BATCH];
	struct ww_job_end ends[REPORT_BATCH];
	size_t count;

	while ((count = collect_finished(callback, reported, ends))) {
		int failed = WW_OK;
		int error = ww_jobs_finish_many(callback->config.jobs, ends, count);
		for (size_t i = 0; i < count; i++) {
			int result = ends[i].result == UNDECIDED ? error : ends[i].result;
			if (result >= 0 || is_final(result))
				settle(reported[i], result);
			else
				failed = result;
		}
		if (ww_callback_store_failed(callback, failed, now))
			return 0;
	}
	return 1;
}

/*
 * Tell other results, in one write of a store on this machine: a sync for each would take too long where many jobs are
 * put off. Returns 0 if the store is lost.
 */
static int report_others(struct ww_callback *callback, uint64_t now)
{
	struct delivery *delivery = callback->lists[CALLBACK_UNREPORTED].first;
	struct delivery *reported[REPORT_BATCH];
	int results[REPORT_BATCH];
	size_t count = 0;
	int failed = WW_OK;
	int error = ww_jobs_begin(callback->config.jobs);

	/* That a write begins and ends well says nothing: a store may fail in between only. */
	if (error) {
		(void)ww_callback_store_failed(callback, error, now);
		return 0;
	}
	for (; delivery && count < REPORT_BATCH && !failed; delivery = delivery->next) {
		int result = report_one(delivery);
		if (result < 0 && !is_final(result)) {
			failed = result;
			break;
		}
		reported[count] = delivery;
		results[count++] = result;
	}
	error = ww_jobs_commit(callback->config.jobs);
	if (error && ww_callback_store_failed(callback, error, now))
		return 0;
	for (size_t i = 0; i < count; i++)
		settle(reported[i], results[i]);
	return !ww_callback_store_failed(callback, failed, now);
}

void ww_callback_report(struct ww_callback *callback, uint64_t now)
{
	if (!report_finished(callback, now))
		return;
	while (callback->lists[CALLBACK_UNREPORTED].first)
		if (!report_others(callback, now))
			return;
}
