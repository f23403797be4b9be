/* What limits let start: the next job of a tube, or nothing until a gate lets one go. */
#include "lib/jobs/local/limit.h"

#include "lib/jobs/local/entries.h"
#include "lib/jobs/local/gate.h"
#include "lib/jobs/local/group.h"
#include "lib/jobs/local/local.h"
#include "lib/jobs/local/timeline.h"
#include "lib/jobs/local/timer.h"
#include "lib/jobs/local/tube.h"

/* ---- Holding jobs */

static void let(struct gate *gate)
{
	if (gate->group)
		ww_jobs_group_let(gate->group);
	ww_jobs_tube_notify(gate->tube);
}

static int end_hold(struct jobs_local *jobs, void *arguments)
{
	const struct fired *fired = arguments;
	struct gate *gate = fired->owner;

	if (ww_jobs_take_firing(jobs, fired, &gate->timer))
		let(gate);
	return WW_OK;
}

static void on_hold_end(struct ww_driver *driver, const struct ww_firing *firing, void *user)
{
	struct gate *gate = user;

	(void)driver;
	ww_jobs_submit_firing(gate->tube->jobs, end_hold, gate, firing);
}

/* Whether a gate with ready jobs holds them. If the answer is 1, callers hear of it when one may start. Or an error. */
static int hold(struct gate *gate)
{
	struct timeline *line = &gate->tube->jobs->elapsed;

	if (!ww_jobs_gate_holds(gate))
		return 0;
	/* If as many run as may, the end of a lease will tell. */
	gate->waits = !ww_jobs_gate_is_full(gate);
	if (!gate->waits || gate->timer)
		return 1;
	int error = ww_driver_schedule_at(
	    line->driver, ww_jobs_gate_allows(gate) - line->offset, on_hold_end, gate, &gate->timer);
	return error ? error : 1;
}

/* ---- The next job */

int ww_jobs_ready_next(struct tube *tube, struct entry **entry)
{
	struct limits *limits = tube->limits;
	struct group *group;
	int held;

	*entry = tube->heap.count ? tube->heap.at[0] : NULL;
	if (!limits)
		return *entry != NULL;
	held = hold(&limits->whole);
	if (held)
		return held < 0 ? held : 0;
	while ((group = TAILQ_FIRST(&limits->row))) {
		held = hold(&group->gate);
		if (held < 0)
			return held;
		*entry = group->heap->at[0];
		if (!held)
			return 1;
		ww_jobs_group_hold(group);
	}
	return 0;
}

struct entry *ww_jobs_ready_first(const struct tube *tube)
{
	const struct group *group = tube->limits ? TAILQ_FIRST(&tube->limits->row) : NULL;

	if (!tube->limits || (!group && tube->heap.count))
		return tube->heap.at[0];
	if (!group)
		for (group = tube->limits->named; !group->heap->count;)
			group = group->hh.next;
	return group->heap->at[0];
}

/* ---- Leases */

void ww_jobs_limit_start(const struct image *image)
{
	struct group *group = ww_jobs_group_of(image);
	uint64_t now = ww_jobs_time(&image->tube->jobs->elapsed);

	ww_jobs_gate_start(&image->tube->limits->whole, now, !image->tube->ready);
	ww_jobs_gate_start(&group->gate, now, !group->heap->count);
	ww_jobs_group_turn(group);
}

void ww_jobs_limit_return(const struct image *image)
{
	ww_jobs_gate_return(&image->tube->limits->whole);
	ww_jobs_gate_return(&ww_jobs_group_of(image)->gate);
}

void ww_jobs_limit_end(const struct image *image)
{
	struct group *group = ww_jobs_group_of(image);

	if (ww_jobs_gate_limit(&image->tube->limits->whole)->running && image->tube->ready)
		ww_jobs_tube_notify(image->tube);
	if (ww_jobs_gate_limit(&group->gate)->running && group->place == GROUP_HELD)
		let(&group->gate);
}

uint64_t ww_jobs_limit_held(const struct tube *tube)
{
	return ww_jobs_gate_holds(&tube->limits->whole) ? tube->ready : tube->limits->held;
}
