/* Gates: how many jobs of a tube or a group run at once, and how often one starts. */
#include "lib/jobs/local/local_internal.h"
#include "lib/jobs/local/timer.h"

/*
 * While jobs wait, up to SLACK of a start's lateness is made up at once. If a limit's starts are at most QUICK apart,
 * up to DEBT_MOST is made up at twice the pace, as long as no span has too many starts.
 */
#define SLACK (10 * WW_MILLISECOND)
#define QUICK (50 * WW_MILLISECOND)
#define DEBT_MOST (100 * WW_MILLISECOND)

/* ---- The rate */

static const struct ww_limit *limit_of(const struct gate *gate)
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
	const struct ww_limit *limit = limit_of(gate);

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
	const struct ww_limit *limit = limit_of(gate);

	ww_jobs_gate_forget(gate);
	gate->even = time && limit->starts ? time + limit->burst * interval_of(limit) : 0;
	gate->waits = 0;
}

int ww_jobs_gate_is_rested(const struct gate *gate)
{
	return !limit_of(gate)->starts || gate->even <= ww_jobs_time(&gate->tube->jobs->elapsed);
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

static void count_start(struct gate *gate, uint64_t now, int is_last)
{
	const struct ww_limit *limit = limit_of(gate);
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

static void count_return(struct gate *gate)
{
	uint64_t interval = interval_of(limit_of(gate));

	if (gate->even > interval)
		gate->even -= interval;
	if (gate->window) {
		gate->brisk = less(gate->brisk, interval / 2);
		ww_jobs_window_take(gate->window);
	}
}

/* ---- Holding jobs */

uint64_t ww_jobs_gate_running(const struct gate *gate)
{
	return gate->group ? gate->group->running : gate->tube->reserved;
}

static int is_full(const struct gate *gate)
{
	const struct ww_limit *limit = limit_of(gate);

	return limit->running && ww_jobs_gate_running(gate) >= limit->running;
}

int ww_jobs_gate_holds(const struct gate *gate)
{
	return is_full(gate) ||
	       (limit_of(gate)->starts && ww_jobs_time(&gate->tube->jobs->elapsed) < ww_jobs_gate_allows(gate));
}

static void let(struct gate *gate)
{
	if (gate->group)
		ww_jobs_group_let(gate->group);
	ww_jobs_tube_notify(gate->tube);
}

static int end_hold(struct jobs_local *jobs, struct jobs_call *firing)
{
	struct gate *gate = firing->context;

	if (ww_jobs_take_firing(jobs, firing, &gate->timer))
		let(gate);
	return WW_OK;
}

static void on_hold_end(struct ww_driver *driver, const struct ww_firing *firing, void *user)
{
	struct gate *gate = user;

	(void)driver;
	ww_jobs_submit_firing(gate->tube->jobs, end_hold, gate, firing);
}

int ww_jobs_gate_hold(struct gate *gate)
{
	struct timeline *line = &gate->tube->jobs->elapsed;

	if (!ww_jobs_gate_holds(gate))
		return 0;
	/* If as many run as may, the end of a lease will tell. */
	gate->waits = !is_full(gate);
	if (!gate->waits || gate->timer)
		return 1;
	int error = ww_driver_schedule_at(
	    line->driver, ww_jobs_gate_allows(gate) - line->offset, on_hold_end, gate, &gate->timer);
	return error ? error : 1;
}

void ww_jobs_gate_cancel(struct gate *gate)
{
	ww_jobs_cancel_timer(gate->tube->jobs, gate->tube->jobs->elapsed.driver, &gate->timer);
}

/* ---- Leases */

void ww_jobs_limit_start(const struct image *image)
{
	struct group *group = ww_jobs_group_of(image);
	uint64_t now = ww_jobs_time(&image->tube->jobs->elapsed);

	count_start(&image->tube->limits->whole, now, !image->tube->ready);
	count_start(&group->gate, now, !group->heap->count);
	ww_jobs_group_turn(group);
}

void ww_jobs_limit_return(const struct image *image)
{
	count_return(&image->tube->limits->whole);
	count_return(&ww_jobs_group_of(image)->gate);
}

void ww_jobs_limit_end(const struct image *image)
{
	struct group *group = ww_jobs_group_of(image);

	if (limit_of(&image->tube->limits->whole)->running && image->tube->ready)
		ww_jobs_tube_notify(image->tube);
	if (limit_of(&group->gate)->running && group->place == GROUP_HELD)
		let(&group->gate);
}

uint64_t ww_jobs_limit_held(const struct tube *tube)
{
	return ww_jobs_gate_holds(&tube->limits->whole) ? tube->ready : tube->limits->held;
}
