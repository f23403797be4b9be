/* A limiter of a tube or a group counts starts and leases, and compares them with its limit. */
#include "lib/jobs/local/limiter.h"

#include "lib/jobs/local/group.h"
#include "lib/jobs/local/local.h"
#include "lib/jobs/local/rule.h"
#include "lib/jobs/local/timeline.h"
#include "lib/jobs/local/timer.h"
#include "lib/jobs/local/window.h"

/*
 * While jobs wait, up to SLACK of a start's lateness is made up at once. If a limit's starts are at most QUICK apart,
 * up to DEBT_MOST is made up at twice the pace, as long as no span has too many starts.
 */
#define SLACK (10 * WW_MILLISECOND)
#define QUICK (50 * WW_MILLISECOND)
#define DEBT_MOST (100 * WW_MILLISECOND)

/* ---- The rate */

const struct ww_limit *ww_jobs_limiter_limit(const struct limiter *limiter)
{
	static const struct ww_limit none;

	if (!limiter->group || rule_limits(&limiter->rule))
		return &limiter->rule.limit;
	return limiter->group->number ? &limiter->tube->limits->each.limit : &none;
}

/* From one start to the next; 0: without a rate. */
static uint64_t interval_of(const struct ww_limit *limit)
{
	return limit->starts ? (limit->per + limit->starts - 1) / limit->starts : 0;
}

static uint64_t larger(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

static uint64_t less(uint64_t a, uint64_t b)
{
	return a > b ? a - b : 0;
}

uint64_t ww_jobs_limiter_allows(const struct limiter *limiter)
{
	const struct ww_limit *limit = ww_jobs_limiter_limit(limiter);

	if (!limit->starts)
		return 0;
	uint64_t early = (limit->burst - 1) * interval_of(limit);
	uint64_t time = larger(less(limiter->even, early), less(limiter->brisk, early / 2));
	if (!limiter->window)
		return time;
	/* The slices are one more than the span, and have as many more, or a little over. */
	uint64_t most = limit->starts + limit->starts / 100 + limit->burst - 1;
	return larger(time, ww_jobs_window_below(limiter->window, most));
}

void ww_jobs_limiter_forget(struct limiter *limiter)
{
	ww_jobs_window_free(limiter->tube->jobs, limiter->window);
	limiter->window = NULL;
	limiter->brisk = 0;
}

void ww_jobs_limiter_use_up(struct limiter *limiter, uint64_t time)
{
	const struct ww_limit *limit = ww_jobs_limiter_limit(limiter);

	ww_jobs_limiter_forget(limiter);
	limiter->even = time && limit->starts ? time + limit->burst * interval_of(limit) : 0;
	limiter->waits = 0;
}

int ww_jobs_limiter_is_rested(const struct limiter *limiter)
{
	return !ww_jobs_limiter_limit(limiter)->starts || limiter->even <= ww_jobs_time(&limiter->tube->jobs->elapsed);
}

/* The time of a start that counts as so late at most. */
static uint64_t since(const struct limiter *limiter, uint64_t now, uint64_t late)
{
	return limiter->waits ? less(now, late) : now;
}

/* Returns whether starts are counted, so that lost time can be made up. */
static int count_in_window(struct limiter *limiter, const struct ww_limit *limit, uint64_t now)
{
	if (interval_of(limit) > QUICK)
		return 0;
	if (!limiter->window)
		limiter->window = ww_jobs_window_make(limiter->tube->jobs, limit->per);
	if (limiter->window)
		ww_jobs_window_add(limiter->window, now);
	return limiter->window != NULL;
}

void ww_jobs_limiter_start(struct limiter *limiter, uint64_t now, int is_last)
{
	const struct ww_limit *limit = ww_jobs_limiter_limit(limiter);
	uint64_t interval = interval_of(limit);
	uint64_t debt = limit->per < DEBT_MOST ? limit->per : DEBT_MOST;

	if (interval && count_in_window(limiter, limit, now)) {
		limiter->brisk = larger(limiter->brisk, since(limiter, now, SLACK / 2)) + interval / 2;
		limiter->even = larger(limiter->even, since(limiter, now, debt)) + interval;
	} else if (interval) {
		limiter->even = larger(limiter->even, since(limiter, now, SLACK)) + interval;
	}
	if (is_last)
		limiter->waits = 0;
}

void ww_jobs_limiter_return(struct limiter *limiter)
{
	uint64_t interval = interval_of(ww_jobs_limiter_limit(limiter));

	if (limiter->even > interval)
		limiter->even -= interval;
	if (limiter->window) {
		limiter->brisk = less(limiter->brisk, interval / 2);
		ww_jobs_window_take(limiter->window);
	}
}

/* ---- What it holds */

uint64_t ww_jobs_limiter_running(const struct limiter *limiter)
{
	return limiter->group ? limiter->group->running : limiter->tube->reserved;
}

int ww_jobs_limiter_is_full(const struct limiter *limiter)
{
	const struct ww_limit *limit = ww_jobs_limiter_limit(limiter);

	return limit->running && ww_jobs_limiter_running(limiter) >= limit->running;
}

int ww_jobs_limiter_holds(const struct limiter *limiter)
{
	return ww_jobs_limiter_is_full(limiter) ||
	       (ww_jobs_limiter_limit(limiter)->starts &&
	           ww_jobs_time(&limiter->tube->jobs->elapsed) < ww_jobs_limiter_allows(limiter));
}

void ww_jobs_limiter_cancel(struct limiter *limiter)
{
	ww_jobs_cancel_timer(limiter->tube->jobs, limiter->tube->jobs->elapsed.driver, &limiter->timer);
}
