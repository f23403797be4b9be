/* The store: leases are renewed, and it is told results. It may be away for a while. */
#include <string.h>

#include "lib/callback/callback_internal.h"
#include "weekwheel/driver.h"

#define PAUSE_MIN (50 * WW_MILLISECOND)
#define PAUSE_MAX (5 * WW_SECOND)
#define MARGIN_MAX (2 * WW_SECOND)

/* As many in a turn, so that what is under way is not kept waiting. */
enum { TELL_BATCH = 64 };

/* What no call of the store answers for one of many. */
enum { UNDECIDED = 1 };

/* ---- Lost and found */

/* xorshift; what matters is that pushers that lost the same store do not all come back at once. */
static uint64_t next_random(struct ww_callback *callback)
{
	callback->random ^= callback->random << 13;
	callback->random ^= callback->random >> 7;
	callback->random ^= callback->random << 17;
	return callback->random;
}

int ww_callback_store_may(const struct ww_callback *callback, uint64_t now)
{
	return now >= callback->ask_again;
}

/* Errors that say what this call was about, and that would come again. */
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
	callback->ask_again = now + callback->pause - next_random(callback) % (callback->pause / 4);
	callback->counters.store_errors++;
	if (!callback->is_lost)
		ww_callback_say(
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
		ww_callback_say(callback, "The store of jobs answers again.");
	callback->is_lost = 0;
	callback->pause = 0;
	return 0;
}

/* A lease that is worth nothing any more. */
static void drop(struct delivery *delivery)
{
	delivery->callback->counters.stale++;
	ww_callback_forget(delivery);
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
		drop(delivery);
		return 0;
	}
	(void)ww_jobs_now(callback->config.jobs, 0, &delivery->touched);
	return 1;
}

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

static int tell_one(const struct delivery *delivery)
{
	struct ww_jobs *jobs = delivery->callback->config.jobs;
	const struct ww_lease *lease = &delivery->lease;
	uint64_t delay = delivery->delay;

	if (delivery->outcome == CALLBACK_GIVE_BACK)
		return ww_jobs_return(jobs, lease->id, lease->token);
	if (delivery->outcome == CALLBACK_BURY)
		return ww_jobs_bury(jobs, lease->id, lease->token, lease->priority, delivery->error);
	if (delay == WW_JOB_BACKOFF && !lease->backoff)
		delay = delivery->callback->config.retry;
	return ww_jobs_release(jobs, lease->id, lease->token, lease->priority, delay, delivery->error);
}

/* The store has decided: take note of that, and forget the delivery. */
static void settle(struct delivery *delivery, int result)
{
	struct ww_callback *callback = delivery->callback;
	struct counters *counters = &callback->counters;

	if (result == WW_ESTALE || result == WW_ENOTFOUND) {
		counters->stale++;
	} else if (result < 0) {
		counters->lost++;
		ww_callback_say(callback, "The result of a job was refused: %s", ww_strerror(result));
	} else if (delivery->outcome == CALLBACK_FINISH) {
		counters->finished++;
	} else if (delivery->outcome == CALLBACK_GIVE_BACK) {
		counters->given_back++;
	} else if (delivery->outcome == CALLBACK_BURY || result == 1) {
		counters->buried++;
	} else {
		counters->retried++;
	}
	ww_callback_forget(delivery);
}

static size_t collect_finished(const struct ww_callback *callback, struct delivery **told, struct ww_job_end *ends)
{
	struct delivery *delivery = callback->lists[CALLBACK_UNTOLD].first;
	size_t count = 0;

	for (; delivery && count < TELL_BATCH; delivery = delivery->next) {
		if (delivery->outcome != CALLBACK_FINISH)
			continue;
		told[count] = delivery;
		ends[count++] = (struct ww_job_end){delivery->lease.id, delivery->lease.token, UNDECIDED};
	}
	return count;
}

/* Tell successes, many at a time. Returns 0 if the store is lost. */
static int tell_finished(struct ww_callback *callback, uint64_t now)
{
	struct delivery *told[TELL_BATCH];
	struct ww_job_end ends[TELL_BATCH];
	size_t count;

	while ((count = collect_finished(callback, told, ends))) {
		int failed = WW_OK;
		int error = ww_jobs_finish_many(callback->config.jobs, ends, count);
		for (size_t i = 0; i < count; i++) {
			int result = ends[i].result == UNDECIDED ? error : ends[i].result;
			if (result >= 0 || is_final(result))
				settle(told[i], result);
			else
				failed = result;
		}
		if (ww_callback_store_failed(callback, failed, now))
			return 0;
	}
	return 1;
}

void ww_callback_tell(struct ww_callback *callback, uint64_t now)
{
	struct delivery *delivery;
	int result;

	if (!tell_finished(callback, now))
		return;
	while ((delivery = callback->lists[CALLBACK_UNTOLD].first)) {
		result = tell_one(delivery);
		if (ww_callback_store_failed(callback, result, now))
			return;
		settle(delivery, result);
	}
}
