/* The two clocks of jobs: the time on each, the edge of what is loaded, and when to load more. */
#include "lib/jobs/local/timeline.h"

#include "lib/jobs/local/local.h"
#include "lib/jobs/local/timer.h"

/* ---- Clocks */

struct timeline *ww_jobs_timeline(struct jobs_local *jobs, int wall)
{
	return wall ? &jobs->wall : &jobs->elapsed;
}

uint64_t ww_jobs_time(const struct timeline *line)
{
	uint64_t now = 0;

	if (line->driver)
		(void)ww_driver_now(line->driver, &now);
	return now + line->offset;
}

uint64_t ww_jobs_driver_time(const struct timeline *line, uint64_t at)
{
	uint64_t ahead = -line->offset;

	/* No clock reaches 2^63: a difference as great is less than none. */
	if (line->offset > INT64_MAX)
		at = at < WW_DRIVER_TIME_MAX ? at + ahead : WW_DRIVER_TIME_MAX;
	else
		at = at > line->offset ? at - line->offset : 0;
	return at < WW_DRIVER_TIME_MAX ? at : WW_DRIVER_TIME_MAX;
}

void ww_jobs_count_late(const struct timeline *line, uint64_t due)
{
	struct jobs_local *jobs = line->jobs;
	uint64_t now = ww_jobs_time(line);
	uint64_t late = now > due ? now - due : 0;
	uint64_t most = WW_MILLISECOND;
	int late_class = 0;

	if (due < line->opened)
		return;
	for (; late_class < WW_LATE_CLASSES - 1 && late > most; late_class++)
		most *= 10;
	jobs->lateness[late_class]++;
	jobs->late_ns += late;
}

/* ---- When to load */

int ww_jobs_is_near(const struct timeline *line, uint64_t due, uint64_t id)
{
	return due < line->edge_due || (due == line->edge_due && id <= line->edge_id);
}

static int want_more(struct jobs_local *jobs, void *arguments)
{
	const struct fired *fired = arguments;
	struct timeline *line = fired->owner;

	if (!ww_jobs_take_firing(jobs, fired, &line->timer))
		return WW_OK;
	line->planned = UINT64_MAX;
	line->wants = 1;
	return WW_OK;
}

static void on_planned(struct ww_driver *driver, const struct ww_firing *firing, void *user)
{
	struct timeline *line = user;

	(void)driver;
	ww_jobs_submit_firing(line->jobs, want_more, line, firing);
}

void ww_jobs_plan_at(struct timeline *line, uint64_t at)
{
	struct jobs_local *jobs = line->jobs;

	if (at >= line->planned)
		return;
	ww_jobs_cancel_timer(jobs, line->driver, &line->timer);
	line->planned = at;
	if (ww_driver_schedule_at(line->driver, ww_jobs_driver_time(line, at), on_planned, line, &line->timer) !=
	    WW_OK) {
		line->planned = UINT64_MAX;
		line->wants = 1;
	}
}

void ww_jobs_plan(struct timeline *line, uint64_t due)
{
	uint64_t ahead = line->jobs->config.window / 2;

	if (line->driver && !line->cut)
		ww_jobs_plan_at(line, due > ahead ? due - ahead : 0);
}
