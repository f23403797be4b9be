/* Puts, moves and cancels jobs. */
#include <string.h>

#include "lib/base/time.h"
#include "lib/jobs/local/local_internal.h"

/* Fill in the due time and the delay from either of them, as the flags say. */
static int due_of(struct jobs_local *jobs, uint64_t due, uint32_t flags, int wall, struct job_record *record)
{
	const struct timeline *line = ww_jobs_timeline(jobs, wall);
	uint64_t now = ww_jobs_time(line);

	if (!line->driver)
		return WW_EINVAL;
	if ((flags & (WW_JOB_AT | WW_JOB_FUTURE)) == (WW_JOB_AT | WW_JOB_FUTURE) && due < now)
		return WW_EBACKWARDS;
	if (flags & WW_JOB_AT)
		due = due > now ? due - now : 0;
	if (due > WW_DRIVER_TIME_MAX || now + due - line->offset > WW_DRIVER_TIME_MAX)
		return WW_EOVERFLOW;
	record->due = now + due;
	record->delay = due;
	return WW_OK;
}

/* ---- Put */

static void fill(struct job_record *record, const struct ww_job_spec *spec)
{
	*record = (struct job_record){.version = 1,
	    .flags = spec->flags & WW_JOB_WALL,
	    .priority = spec->priority,
	    .created = time_now(CLOCK_REALTIME),
	    .run = spec->run,
	    .period = spec->period,
	    .missed = spec->missed,
	    .skip = spec->skip,
	    .backoff = spec->backoff,
	    .backoff_max = spec->backoff_max,
	    .attempts = spec->attempts,
	    .key = {spec->key, spec->key_length},
	    .body = {spec->body, spec->body_length}};
}

/* Find the job that has the key of the spec. WW_ENOTFOUND: there is none. */
static int find_old(struct jobs_local *jobs, const struct ww_job_spec *spec, const struct tube *tube, uint64_t *id,
    struct job_record *old)
{
	if (!spec->key_length || !tube)
		return WW_ENOTFOUND;
	return ww_jobs_key(jobs, tube, (struct store_bytes){spec->key, spec->key_length}, id, old);
}

static int replace(struct jobs_local *jobs, uint64_t id, const struct job_record *old, struct job_record *record)
{
	int was_buried = old->buried != 0;
	int error = ww_jobs_tube_count(jobs, ww_jobs_tube_number(jobs, old->tube), was_buried, -was_buried, 1, 0);

	record->tube = old->tube;
	record->version = old->version + 1;
	return error ? error : ww_jobs_settle(jobs, id, old, record);
}

static int insert(struct jobs_local *jobs, const char *name, uint64_t *id, struct job_record *record)
{
	struct tube *tube;
	int error = ww_jobs_tube_get(jobs, name, &tube);

	if (error)
		return ww_jobs_broken(jobs, error);
	*id = jobs->meta.next_id++;
	jobs->meta.accepted++;
	record->tube = tube->number;
	error = ww_jobs_tube_count(jobs, tube, 1, 0, 1, 0);
	return error ? error : ww_jobs_settle(jobs, *id, NULL, record);
}

int ww_jobs_local_put(struct jobs_local *jobs, struct jobs_call *call)
{
	const struct ww_job_spec *spec = call->spec;
	int wall = (spec->flags & WW_JOB_WALL) != 0;
	struct job_record record;
	struct job_record old;
	uint64_t id = 0;
	size_t size = spec->body_length + spec->key_length;
	int error = spec->body_length > jobs->config.body_max ? WW_ETOOBIG : ww_jobs_writing_more(jobs, size);

	fill(&record, spec);
	if (!error)
		error = due_of(jobs, spec->due, spec->flags, wall, &record);
	if (error)
		return error;
	record.base = record.due;
	int found = find_old(jobs, spec, ww_jobs_tube_find(jobs, spec->tube), &id, &old);
	if (found && found != WW_ENOTFOUND)
		return found;
	if (spec->version && (found || old.version != spec->version))
		return WW_ESTALE;
	error = found ? insert(jobs, spec->tube, &id, &record) : replace(jobs, id, &old, &record);
	if (error)
		return error;
	if (call->new_id)
		*call->new_id = id;
	if (call->answer)
		*call->answer = record.version;
	return !found;
}

int ww_jobs_local_put_many(struct jobs_local *jobs, struct jobs_call *call)
{
	int error = WW_OK;

	for (size_t i = 0; i < call->count && !error; i++) {
		struct ww_job_put *put = &call->puts[i];
		struct jobs_call one = {.spec = put->spec, .new_id = &put->id, .answer = &put->version};
		if (put->result == WW_OK)
			put->result = ww_jobs_local_put(jobs, &one);
		error = jobs->broken;
	}
	return error;
}

/* ---- Move */

int ww_jobs_local_move(struct jobs_local *jobs, struct jobs_call *call)
{
	struct job_record old;
	struct job_record record;
	uint64_t id;
	int error = ww_jobs_writing_more(jobs, 0);

	if (!error)
		error = ww_jobs_refer(jobs, call->job, &id, &old);
	if (error)
		return error;
	const struct entry *entry = ww_jobs_find(jobs, id);
	if (entry && entry->is.state == WW_JOB_RESERVED)
		return WW_EINUSE;
	if (old.buried)
		return WW_EINVAL;
	record = old;
	error = due_of(jobs, call->ns, call->flags, (old.flags & WW_JOB_WALL) != 0, &record);
	if (error)
		return error;
	ww_jobs_merge(&record, entry);
	record.base = record.due;
	record.version++;
	error = ww_jobs_settle(jobs, id, &old, &record);
	if (!error && call->answer)
		*call->answer = record.version;
	return error;
}

/* ---- Cancel */

int ww_jobs_local_cancel(struct jobs_local *jobs, struct jobs_call *call)
{
	const struct image none = {0};
	struct job_record old;
	uint64_t id;
	int error = ww_jobs_writing(jobs);

	if (!error)
		error = ww_jobs_refer(jobs, call->job, &id, &old);
	if (error)
		return error;
	const struct entry *entry = ww_jobs_find(jobs, id);
	int in_time = !entry || entry->is.state != WW_JOB_RESERVED;
	struct tube *tube = ww_jobs_tube_number(jobs, old.tube);
	error = old.buried ? ww_jobs_tube_count(jobs, tube, 0, -1, 0, 1) : ww_jobs_tube_count(jobs, tube, -1, 0, 0, 1);
	if (!error)
		error = ww_jobs_erase(jobs, id, &old);
	if (!error)
		error = ww_jobs_place(jobs, id, &none);
	jobs->meta.ended++;
	return error ? error : in_time;
}
