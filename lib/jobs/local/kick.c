/* Kicks jobs, and pauses tubes. */
#include <string.h>

#include "lib/jobs/local/local_internal.h"

/* ---- Kick */

/* Make a delayed or buried job ready. */
static int make_ready(struct jobs_local *jobs, uint64_t id, const struct job_record *old)
{
	struct job_record record = *old;
	int error = WW_OK;

	ww_jobs_merge(&record, ww_jobs_find(jobs, id));
	if (old->buried)
		error = ww_jobs_tube_count(jobs, ww_jobs_tube_number(jobs, old->tube), 1, -1, 0, 0);
	record.buried = 0;
	record.due = ww_jobs_time(ww_jobs_timeline(jobs, (record.flags & WW_JOB_WALL) != 0));
	record.tries = 0;
	record.kicks++;
	record.version++;
	return error ? error : ww_jobs_settle(jobs, id, old, &record);
}

int ww_jobs_first_buried(struct jobs_local *jobs, const struct tube *tube, uint64_t *id)
{
	unsigned char from[4];
	struct store_bytes key;
	struct store_bytes value;
	int error;

	store_write32(from, tube->number);
	error = jobs->store.ops->seek(
	    jobs->store.self, STORE_BURIED, (struct store_bytes){from, sizeof from}, &key, &value);
	if (error)
		return error;
	if (key.size != 20 || memcmp(key.data, from, sizeof from) != 0)
		return WW_ENOTFOUND;
	*id = store_read64((const char *)key.data + 12);
	return WW_OK;
}

/*
 * Find the first delayed job of a tube that is due at *from or later on a timeline. Store its due time in *from, or
 * UINT64_MAX if there is none.
 */
static int soonest_on(struct timeline *line, const struct tube *tube, uint64_t *from, uint64_t *id)
{
	struct jobs_local *jobs = line->jobs;
	const struct store_ops *ops = jobs->store.ops;
	unsigned char start[8];
	struct store_bytes key;
	struct store_bytes value;
	int error;

	store_write64(start, *from);
	error = ops->seek(jobs->store.self, line->table, (struct store_bytes){start, sizeof start}, &key, &value);
	for (; !error; error = ops->next(jobs->store.self, line->table, &key, &value)) {
		struct job_record record;
		error = ww_jobs_read_pair(line->table, key, value, id, &record);
		if (error)
			return error;
		*from = record.due;
		const struct entry *entry = ww_jobs_find(jobs, *id);
		/* A job that was reserved before it was due is in this index too. */
		if (record.tube == tube->number && !(entry && entry->is.state != WW_JOB_DELAYED))
			return WW_OK;
	}
	*from = UINT64_MAX;
	return error == WW_ENOTFOUND ? WW_OK : error;
}

int ww_jobs_soonest(struct jobs_local *jobs, const struct tube *tube, uint64_t from[2], uint64_t *id)
{
	uint64_t left[2] = {UINT64_MAX, UINT64_MAX};
	uint64_t found[2];

	if (tube->waiting <= tube->ready + tube->reserved)
		return WW_ENOTFOUND;
	for (int wall = 0; wall < 2; wall++) {
		struct timeline *line = ww_jobs_timeline(jobs, wall);
		uint64_t now = ww_jobs_time(line);
		if (!line->driver || from[wall] == UINT64_MAX)
			continue;
		from[wall] = from[wall] > now ? from[wall] : now + 1;
		int error = soonest_on(line, tube, &from[wall], &found[wall]);
		if (error)
			return error;
		if (from[wall] != UINT64_MAX)
			left[wall] = from[wall] - now;
	}
	if (left[0] == UINT64_MAX && left[1] == UINT64_MAX)
		return WW_ENOTFOUND;
	*id = found[left[1] < left[0]];
	return WW_OK;
}

int ww_jobs_local_kick(struct jobs_local *jobs, struct jobs_call *call)
{
	const struct tube *tube = ww_jobs_tube_find(jobs, call->tube);
	uint64_t from[2] = {0, 0};
	uint64_t kicked = 0;
	uint64_t id;
	struct job_record record;
	int error = ww_jobs_writing(jobs);
	int buried = tube && tube->buried;

	while (!error && tube && kicked < call->most) {
		if (buried)
			error = tube->buried ? ww_jobs_first_buried(jobs, tube, &id) : WW_ENOTFOUND;
		else
			error = ww_jobs_soonest(jobs, tube, from, &id);
		if (!error)
			error = ww_jobs_read(jobs, id, &record);
		if (!error)
			error = make_ready(jobs, id, &record);
		kicked += !error;
	}
	if (error && error != WW_ENOTFOUND)
		return error;
	if (call->answer)
		*call->answer = kicked;
	return WW_OK;
}

int ww_jobs_local_kick_job(struct jobs_local *jobs, struct jobs_call *call)
{
	const struct entry *entry = ww_jobs_find(jobs, call->id);
	struct job_record record;
	int error = ww_jobs_writing(jobs);

	if (!error)
		error = ww_jobs_read(jobs, call->id, &record);
	if (error)
		return error;
	if (entry && (entry->is.state == WW_JOB_READY || entry->is.state == WW_JOB_RESERVED))
		return WW_ENOTFOUND;
	return make_ready(jobs, call->id, &record);
}

/* ---- Pause */

static void plan_pause_end(struct jobs_local *jobs);

static int end_pauses(struct jobs_local *jobs, struct jobs_call *firing)
{
	if (ww_jobs_take_firing(jobs, firing, &jobs->pause_timer))
		plan_pause_end(jobs);
	return WW_OK;
}

static void on_pause_end(struct ww_driver *driver, const struct ww_firing *firing, void *user)
{
	(void)driver;
	ww_jobs_submit_firing(user, end_pauses, NULL, firing);
}

/* End the pauses that are over, and set the timer for the next end. */
static void plan_pause_end(struct jobs_local *jobs)
{
	uint64_t now = ww_jobs_time(&jobs->elapsed);
	uint64_t first = UINT64_MAX;
	struct tube *tube;
	struct tube *next;

	HASH_ITER(hh, jobs->tubes, tube, next) {
		if (!tube->pause_ends)
			continue;
		if (tube->pause_ends > now) {
			first = tube->pause_ends < first ? tube->pause_ends : first;
			continue;
		}
		tube->pause_ends = tube->pause = 0;
		ww_jobs_tube_touch(tube);
		ww_jobs_tube_notify(tube);
	}
	ww_jobs_cancel_timer(jobs, jobs->elapsed.driver, &jobs->pause_timer);
	if (first != UINT64_MAX)
		(void)ww_driver_schedule_at(
		    jobs->elapsed.driver, first - jobs->elapsed.offset, on_pause_end, jobs, &jobs->pause_timer);
}

int ww_jobs_local_pause(struct jobs_local *jobs, struct jobs_call *call)
{
	struct tube *tube;
	int error = ww_jobs_tube_get(jobs, call->tube, &tube);

	if (error)
		return error;
	tube->pause = call->ns;
	tube->pause_ends = time_after(ww_jobs_time(&jobs->elapsed), call->ns);
	tube->pauses++;
	plan_pause_end(jobs);
	return WW_OK;
}
