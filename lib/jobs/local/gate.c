/* A gate of a tube or a group counts starts and leases, and compares them with its limit. */
#include "lib/jobs/local/gate.h"

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

const struct ww_limit *ww_jobs_gate_limit(const struct gate *gate)
{
	static const struct ww_limit none;

	if (!gate->group || rule_is_set(&gate->rule))
		return &gate->rule.limit;
	return gate->group->number ? &gate->tube->limits->each.limit : &none;
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

uint64_t ww_jobs_gate_allows(const struct gate *gate)
{
	const struct ww_limit *limit = ww_jobs_gate_limit(gate);

	if (!limit->starts)
		return 0;
	uint64_t early = (limit->burst - 1) * interval_of(limit);
	uint64_t time = larger(less(gate->even, early), less(gate->brisk, early / 2));
	if (!gate->window)
		return time;
	/* The slices are one more than the span, and have as many more, or a little over. */
	uint64_t most = limit->starts + limit->starts / 100 + limit->burst - 1;
	return larger(time, ww_jobs_window_below(gate->window, most));
}

void ww_jobs_gate_forget(struct gate *gate)
{
	ww_jobs_window_free(gate->tube->jobs, gate->window);
	gate->window = NULL;
	gate->brisk = 0;
}

void ww_jobs_gate_use_up(struct gate *gate, uint64_t time)
{
	const struct ww_limit *limit = ww_jobs_gate_limit(gate);

	ww_jobs_gate_forget(gate);
	gate->even = time && limit->starts ? time + limit->burst * interval_of(limit) : 0;
	gate->waits = 0;
}

int ww_jobs_gate_is_rested(const struct gate *gate)
{
	return !ww_jobs_gate_limit(gate)->starts || gate->even <= ww_jobs_time(&gate->tube->jobs->elapsed);
}

/* The time of a start that counts as so late at most. */
static uint64_t since(const struct gate *gate, uint64_t now, uint64_t late)
{
	return gate->waits ? less(now, late) : now;
}

/* Returns whether starts are counted, so that lost time can be made up. */
static int count_in_window(struct gate *gate, const struct ww_limit *limit, uint64_t now)
{
	if (interval_of(limit) > QUICK)
		return 0;
	if (!gate->window)
		gate->window = ww_jobs_window_make(gate->tube->jobs, limit->per);
	if (gate->window)
		ww_jobs_window_add(gate->window, now);
	return gate->window != NULL;
}

void ww_jobs_gate_start(struct gate *gate, uint64_t now, int is_last)
{
	const struct ww_limit *limit = ww_jobs_gate_limit(gate);
	uint64_t interval = interval_of(limit);
	uint64_t debt = limit->per < DEBT_MOST ? limit->per : DEBT_MOST;

	if (interval && count_in_window(gate, limit, now)) {
		gate->brisk = larger(gate->brisk, since(gate, now, SLACK / 2)) + interval / 2;
		gate->even = larger(gate->even, since(gate, now, debt)) + interval;
	} else if (interval) {
		gate->even = larger(gate->even, since(gate, now, SLACK)) + interval;
	}
	if (is_last)
		gate->waits = 0;
}

void ww_jobs_gate_return(struct gate *gate)
{
	uint64_t interval = interval_of(ww_jobs_gate_limit(gate));

	if (gate->even > interval)
		gate->even -= interval;
	if (gate->window) {
		gate->brisk = less(gate->brisk, interval / 2);
		ww_jobs_window_take(gate->window);
	}
}

/* ---- What it holds */

uint64_t ww_jobs_gate_running(const struct gate *gate)
{
	return gate->group ? gate->group->running : gate->tube->reserved;
}

int ww_jobs_gate_is_full(const struct gate *gate)
{
	const struct ww_limit *limit = ww_jobs_gate_limit(gate);

	return limit->running && ww_jobs_gate_running(gate) >= limit->running;
}

int ww_jobs_gate_holds(const struct gate *gate)
{
	return ww_jobs_gate_is_full(gate) || (ww_jobs_gate_limit(gate)->starts &&
	                                         ww_jobs_time(&gate->tube->jobs->elapsed) < ww_jobs_gate_allows(gate));
}

void ww_jobs_gate_cancel(struct gate *gate)
{
	ww_jobs_cancel_timer(gate->tube->jobs, gate->tube->jobs->elapsed.driver, &gate->timer);
}
