/* What limits let start: the next job of a tube, or nothing until a limiter lets one go. */
#include "lib/jobs/local/limit.h"

#include "lib/jobs/local/entries.h"
#include "lib/jobs/local/group.h"
#include "lib/jobs/local/limiter.h"
#include "lib/jobs/local/local.h"
#include "lib/jobs/local/timeline.h"
#include "lib/jobs/local/timer.h"
#include "lib/jobs/local/tube.h"

/* ---- Holding jobs */

static void let(struct limiter *limiter)
{
	if (limiter->group)
		ww_jobs_group_let(limiter->group);
	ww_jobs_tube_notify(limiter->tube);
}

static int end_hold(struct jobs_local *jobs, void *arguments)
{
	const struct fired *fired = arguments;
	struct limiter *limiter = fired->owner;

	if (ww_jobs_take_firing(jobs, fired, &limiter->timer))
		let(limiter);
	return WW_OK;
}

static void on_hold_end(struct ww_driver *driver, const struct ww_firing *firing, void *user)
{
	struct limiter *limiter = user;

	(void)driver;
	ww_jobs_submit_firing(limiter->tube->jobs, end_hold, limiter, firing);
}

/*
 * Whether a limiter holds back its ready jobs. If the answer is 1, callers are woken when one may start. Or an error.
 */
static int hold(struct limiter *limiter)
{
	struct timeline *line = &limiter->tube->jobs->elapsed;

	if (!ww_jobs_limiter_holds(limiter))
		return 0;
	/* At the limit of running jobs, the end of a lease wakes them. */
	limiter->waits = !ww_jobs_limiter_is_full(limiter);
	if (!limiter->waits || limiter->timer)
		return 1;
	uint64_t at = ww_jobs_driver_time(line, ww_jobs_limiter_allows(limiter));
	int error = ww_driver_schedule_at(line->driver, at, on_hold_end, limiter, &limiter->timer);
	return error ? error : 1;
}

/* ---- The next job */

int ww_jobs_ready_next(struct tube *tube, uint32_t code, struct entry **entry)
{
	struct limits *limits = tube->limits;
	struct group *group;
	int held;

	*entry = tube->heap.count ? tube->heap.at[0] : NULL;
	if (!limits)
		return *entry != NULL;
	if (limits->turns && !ww_jobs_group_next(limits, code))
		return 0;
	held = hold(&limits->whole);
	if (held)
		return held < 0 ? held : 0;
	while ((group = ww_jobs_group_next(limits, code))) {
		held = hold(&group->limiter);
		if (held < 0)
			return held;
		*entry = ww_jobs_group_first(group, code);
		if (!held)
			return 1;
		ww_jobs_group_hold(group);
	}
	return 0;
}

struct entry *ww_jobs_ready_first(const struct tube *tube)
{
	const struct limits *limits = tube->limits;
	const struct group *group = limits ? ww_jobs_group_next(limits, WW_JOB_CODE_MAX) : NULL;

	if (!limits)
		return tube->heap.at[0];
	if (!group && ww_jobs_group_ready(limits->none))
		group = limits->none;
	if (!group)
		for (group = limits->named; !ww_jobs_group_ready(group);)
			group = group->hh.next;
	return ww_jobs_group_first(group, WW_JOB_CODE_MAX);
}

/* ---- Leases */

void ww_jobs_limit_start(const struct image *image)
{
	struct group *group = ww_jobs_group_of(image);
	uint64_t now = ww_jobs_time(&image->tube->jobs->elapsed);

	ww_jobs_limiter_start(&image->tube->limits->whole, now, !image->tube->ready);
	ww_jobs_limiter_start(&group->limiter, now, !ww_jobs_group_ready(group));
	ww_jobs_group_turn(group);
}

void ww_jobs_limit_return(const struct image *image)
{
	ww_jobs_limiter_return(&image->tube->limits->whole);
	ww_jobs_limiter_return(&ww_jobs_group_of(image)->limiter);
}

void ww_jobs_limit_end(const struct image *image)
{
	struct group *group = ww_jobs_group_of(image);

	if (ww_jobs_limiter_limit(&image->tube->limits->whole)->running && image->tube->ready)
		ww_jobs_tube_notify(image->tube);
	if (ww_jobs_limiter_limit(&group->limiter)->running && group->place == GROUP_HELD)
		let(&group->limiter);
}

uint64_t ww_jobs_limit_held(const struct tube *tube)
{
	return ww_jobs_limiter_holds(&tube->limits->whole) ? tube->ready : tube->limits->held;
}
