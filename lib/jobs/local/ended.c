/*
 * Jobs that have ended and are kept for a time, so that their keys are not free yet. They are in the table of buried
 * jobs, after those of all tubes, in order of the time when they are forgotten:
 *
 *     BURIED   tube 0 ... tube n | ALL_TUBES, time, id -> a record without a body
 *
 * The key and the id of such a job lead there. It is in no list of its tube, and in none of the counts except `kept`.
 * One timer waits for the first of them.
 */
#include "lib/jobs/local/ended.h"

#include "lib/jobs/local/local.h"
#include "lib/jobs/local/records.h"
#include "lib/jobs/local/timeline.h"
#include "lib/jobs/local/timer.h"
#include "lib/jobs/local/tube.h"
#include "lib/jobs/local/writing.h"

/* The most that are forgotten in one write. */
enum { BATCH = 1000 };

/* ---- One */

int ww_jobs_is_forgotten(const struct jobs_local *jobs, const struct job_record *record)
{
	return record->ended <= ww_jobs_time(&jobs->elapsed);
}

int ww_jobs_forget(struct jobs_local *jobs, uint64_t id, const struct job_record *old)
{
	int error = ww_jobs_tube_keep(jobs, ww_jobs_tube_number(jobs, old->tube), -1);

	return error ? error : ww_jobs_erase(jobs, id, old);
}

/* The one that is forgotten first. WW_ENOTFOUND: there is none. */
static int find_first(struct jobs_local *jobs, uint64_t *id, struct job_record *record)
{
	unsigned char from[4];
	struct store_bytes key;
	struct store_bytes value;

	store_write32(from, ALL_TUBES);
	int error = jobs->store.ops->seek(
	    jobs->store.self, STORE_BURIED, (struct store_bytes){from, sizeof from}, &key, &value);
	while (!error) {
		error = ww_jobs_read_pair(STORE_BURIED, key, value, id, record);
		/* A damaged one does not keep the others from being forgotten. */
		if (!error && record->ended)
			return WW_OK;
		if (error && error != WW_ECORRUPT)
			return error;
		error = jobs->store.ops->next(jobs->store.self, STORE_BURIED, &key, &value);
	}
	return error;
}

static int forget_first(struct jobs_local *jobs)
{
	struct job_record record;
	uint64_t id;
	int error = find_first(jobs, &id, &record);

	return error ? error : ww_jobs_forget(jobs, id, &record);
}

int ww_jobs_keep(struct jobs_local *jobs, uint64_t id, const struct job_record *old, const struct job_record *job)
{
	struct job_record record = {.version = job->version,
	    .tube = job->tube,
	    .due = job->due,
	    .base = job->due,
	    .created = job->created,
	    .run = job->run,
	    .hold = job->hold,
	    .ended = job->ended,
	    .key = job->key};
	int error = ww_jobs_tube_keep(jobs, ww_jobs_tube_number(jobs, job->tube), 1);

	if (!error)
		error = ww_jobs_write(jobs, id, old, &record);
	if (!error && jobs->all.kept > jobs->config.ended_max)
		error = forget_first(jobs);
	/* If only damaged ones are left, this one is kept all the same. */
	if (error == WW_ENOTFOUND)
		error = WW_OK;
	if (!error)
		ww_jobs_plan_forget(jobs, record.ended);
	return error;
}

/* ---- In time */

/* Plan for the first that is left. */
static void plan_next(struct jobs_local *jobs)
{
	struct job_record record;
	uint64_t id;
	int error = jobs->all.kept ? find_first(jobs, &id, &record) : WW_ENOTFOUND;

	if (!error)
		ww_jobs_plan_forget(jobs, record.ended);
}

static int forget_some(struct jobs_local *jobs, void *fired)
{
	struct job_record record;
	uint64_t id;

	if (!ww_jobs_take_firing(jobs, fired, &jobs->forget_timer))
		return WW_OK;
	jobs->forget_at = UINT64_MAX;
	if (!jobs->all.kept)
		return WW_OK;
	int error = ww_jobs_writing(jobs);
	for (int i = 0; i < BATCH && !error; i++) {
		error = find_first(jobs, &id, &record);
		if (!error && !ww_jobs_is_forgotten(jobs, &record))
			break;
		if (!error)
			error = ww_jobs_forget(jobs, id, &record);
	}
	/* If nothing can be written or read now, try again, but not at once. */
	if (error && error != WW_ENOTFOUND)
		ww_jobs_plan_forget(jobs, time_after(ww_jobs_time(&jobs->elapsed), WW_SECOND));
	else
		plan_next(jobs);
	return error == WW_ENOTFOUND ? WW_OK : error;
}

static void on_time(struct ww_driver *driver, const struct ww_firing *firing, void *user)
{
	(void)driver;
	ww_jobs_submit_firing(user, forget_some, NULL, firing);
}

void ww_jobs_plan_forget(struct jobs_local *jobs, uint64_t at)
{
	struct timeline *line = &jobs->elapsed;

	if (at >= jobs->forget_at || jobs->config.flags & WW_JOBS_READONLY || jobs->closed)
		return;
	ww_jobs_cancel_timer(jobs, line->driver, &jobs->forget_timer);
	jobs->forget_at = at;
	/* Without a timer, puts still find them forgotten. */
	if (ww_driver_schedule_at(line->driver, ww_jobs_driver_time(line, at), on_time, jobs, &jobs->forget_timer) !=
	    WW_OK)
		jobs->forget_at = UINT64_MAX;
}

int ww_jobs_ended_open(struct jobs_local *jobs, void *arguments)
{
	(void)arguments;
	plan_next(jobs);
	return WW_OK;
}
