/* Kicks jobs, and pauses tubes. */
#include "lib/jobs/local/kick.h"

#include "lib/jobs/local/entries.h"
#include "lib/jobs/local/events.h"
#include "lib/jobs/local/expire.h"
#include "lib/jobs/local/local.h"
#include "lib/jobs/local/queue.h"
#include "lib/jobs/local/records.h"
#include "lib/jobs/local/search.h"
#include "lib/jobs/local/timeline.h"
#include "lib/jobs/local/timer.h"
#include "lib/jobs/local/tube.h"
#include "lib/jobs/local/writing.h"

/* ---- Kick */

/* Make a delayed or buried job ready. */
static int make_ready(struct jobs_local *jobs, uint64_t id, const struct job_record *old)
{
	struct job_record record = *old;
	int error = WW_OK;

	ww_jobs_merge(&record, ww_jobs_find(jobs, id));
	if (old->buried)
		error = ww_jobs_tube_count(jobs, ww_jobs_tube_number(jobs, old->tube), 1, -1, 0, 0);
	if (old->buried)
		ww_jobs_unexpire(&record);
	record.buried = 0;
	record.due = ww_jobs_time(ww_jobs_timeline(jobs, (record.flags & WW_JOB_WALL) != 0));
	record.tries = 0;
	record.kicks++;
	record.version++;
	ww_jobs_note_event(jobs, WW_EVENT_KICKED, id, &record, 0);
	return error ? error : ww_jobs_settle(jobs, id, old, &record);
}

struct kick_call {
	const char *tube;
	uint64_t bound;
	uint64_t count;
};

static int kick(struct jobs_local *jobs, void *arguments)
{
	struct kick_call *call = arguments;
	struct tube *tube = ww_jobs_tube_find(jobs, call->tube);
	uint64_t kicked = 0;
	uint64_t id;
	struct job_record record;
	int error = ww_jobs_writing_more(jobs, 0);
	int buried = tube && tube->buried;

	while (!error && tube && kicked < call->bound) {
		if (buried)
			error = ww_jobs_search_buried(jobs, tube, &id);
		else
			error = ww_jobs_search_delayed(jobs, tube, &id);
		if (!error)
			error = ww_jobs_read(jobs, id, &record);
		if (!error)
			error = make_ready(jobs, id, &record);
		kicked += !error;
	}
	if (error && error != WW_ENOTFOUND)
		return error;
	call->count = kicked;
	return WW_OK;
}

int ww_jobs_local_kick(struct ww_jobs *handle, const char *tube, uint64_t bound, uint64_t *count)
{
	struct kick_call call = {.tube = tube, .bound = bound};
	int error = ww_jobs_submit(local_of(handle), kick, &call);

	if (!error && count)
		*count = call.count;
	return error;
}

static int kick_job(struct jobs_local *jobs, void *arguments)
{
	const uint64_t id = *(const uint64_t *)arguments;
	const struct entry *entry = ww_jobs_find(jobs, id);
	struct job_record record;
	int error = ww_jobs_writing_more(jobs, 0);

	if (!error)
		error = ww_jobs_read(jobs, id, &record);
	if (error)
		return error;
	if (entry && (entry->is.state == WW_JOB_READY || entry->is.state == WW_JOB_RESERVED))
		return WW_ENOTFOUND;
	return make_ready(jobs, id, &record);
}

int ww_jobs_local_kick_job(struct ww_jobs *handle, uint64_t id)
{
	return ww_jobs_submit(local_of(handle), kick_job, &id);
}

/* ---- Pause */

static int end_pause(struct jobs_local *jobs, void *arguments)
{
	const struct fired *fired = arguments;
	struct tube *tube = fired->owner;

	if (!ww_jobs_take_firing(jobs, fired, &tube->pause_timer))
		return WW_OK;
	tube->pause_ends = tube->pause = 0;
	ww_jobs_tube_touch(tube);
	ww_jobs_tube_notify(tube);
	return WW_OK;
}

static void on_pause_end(struct ww_driver *driver, const struct ww_firing *firing, void *user)
{
	struct tube *tube = user;

	(void)driver;
	ww_jobs_submit_firing(tube->jobs, end_pause, tube, firing);
}

struct pause_call {
	const char *tube;
	uint64_t ns;
};

static int pause_tube(struct jobs_local *jobs, void *arguments)
{
	const struct pause_call *call = arguments;
	struct ww_driver *driver = jobs->elapsed.driver;
	uint64_t ends = time_after(ww_jobs_time(&jobs->elapsed), call->ns);
	uint64_t at = ww_jobs_driver_time(&jobs->elapsed, ends);
	ww_handle timer = 0;
	struct tube *tube;
	int error = jobs->config.flags & WW_JOBS_READONLY ? WW_EDENIED : ww_jobs_tube_get(jobs, call->tube, &tube);

	if (!error && call->ns)
		error = ww_driver_schedule_at(driver, at, on_pause_end, tube, &timer);
	if (error)
		return error;
	ww_jobs_cancel_timer(jobs, driver, &tube->pause_timer);
	tube->pause_timer = timer;
	tube->pause = call->ns;
	tube->pause_ends = call->ns ? ends : 0;
	tube->pauses++;
	jobs->all.pauses++;
	if (!call->ns)
		ww_jobs_tube_notify(tube);
	return WW_OK;
}

int ww_jobs_local_pause(struct ww_jobs *handle, const char *tube, uint64_t ns)
{
	struct pause_call call = {tube, ns};

	return ww_jobs_submit(local_of(handle), pause_tube, &call);
}
