/* Put, move, cancel. */
#include <string.h>

#include "lib/base/time.h"
#include "lib/jobs/local/local_internal.h"

/* The due time and the delay that are meant by either. */
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

struct put {
	const struct ww_job_spec *spec;
	uint64_t *id;
	uint64_t *version;
};

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

/* The job that has the key, if one does. */
static int find_old(struct jobs_local *jobs, const struct ww_job_spec *spec, const struct tube *tube, uint64_t *id,
    struct job_record *old)
{
	int error;

	if (!spec->key_length || !tube)
		return WW_ENOTFOUND;
	error = ww_jobs_key(jobs, tube, (struct store_bytes){spec->key, spec->key_length}, id);
	return error ? error : ww_jobs_read(jobs, *id, old);
}

static int replace(struct jobs_local *jobs, uint64_t id, const struct job_record *old, struct job_record *record)
{
	record->tube = old->tube;
	record->version = old->version + 1;
	struct tube *tube = ww_jobs_tube_number(jobs, old->tube);
	struct image image = ww_jobs_image(jobs, record);
	int error =
	    old->buried ? ww_jobs_tube_count(jobs, tube, 1, -1, 1, 0) : ww_jobs_tube_count(jobs, tube, 0, 0, 1, 0);

	if (!error)
		error = ww_jobs_write(jobs, id, old, record);
	if (!error)
		error = ww_jobs_place(jobs, id, &image);
	return error;
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
	struct image image = ww_jobs_image(jobs, record);
	error = ww_jobs_tube_count(jobs, tube, 1, 0, 1, 0);
	if (!error)
		error = ww_jobs_write(jobs, *id, NULL, record);
	if (!error)
		error = ww_jobs_place(jobs, *id, &image);
	return ww_jobs_broken(jobs, error);
}

static int put(struct jobs_local *jobs, void *arguments)
{
	const struct put *put = arguments;
	const struct ww_job_spec *spec = put->spec;
	int wall = (spec->flags & WW_JOB_WALL) != 0;
	struct job_record record;
	struct job_record old;
	uint64_t id = 0;
	int error = spec->body_length > jobs->config.body_max ? WW_ETOOBIG : ww_jobs_writing(jobs);

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
	if (put->id)
		*put->id = id;
	if (put->version)
		*put->version = record.version;
	return !found;
}

int ww_jobs_local_put(struct ww_jobs *jobs, const struct ww_job_spec *spec, uint64_t *id, uint64_t *version)
{
	struct put call = {spec, id, version};

	return ww_jobs_submit(local_of(jobs), put, &call);
}

struct put_many {
	struct ww_job_put *puts;
	size_t count;
};

static int put_many(struct jobs_local *jobs, void *arguments)
{
	const struct put_many *call = arguments;
	int error = ww_jobs_writing(jobs);

	for (size_t i = 0; i < call->count && !error; i++) {
		struct ww_job_put *one = &call->puts[i];
		struct put as_one = {one->spec, &one->id, &one->version};
		if (one->result == WW_OK)
			one->result = put(jobs, &as_one);
		error = jobs->broken;
	}
	return error;
}

int ww_jobs_local_put_many(struct ww_jobs *jobs, struct ww_job_put *puts, size_t count)
{
	struct put_many call = {puts, count};
	int error = ww_jobs_submit(local_of(jobs), put_many, &call);

	for (size_t i = 0; error && i < count; i++)
		if (puts[i].result >= 0)
			puts[i].result = error;
	return error;
}

/* ---- Move */

struct move {
	const struct ww_job_ref *ref;
	uint64_t due;
	uint32_t flags;
	uint64_t *version;
};

static int move(struct jobs_local *jobs, void *arguments)
{
	const struct move *move = arguments;
	struct job_record old;
	struct job_record record;
	uint64_t id;
	int error = ww_jobs_writing(jobs);

	if (!error)
		error = ww_jobs_refer(jobs, move->ref, &id, &old);
	if (error)
		return error;
	const struct entry *entry = ww_jobs_find(jobs, id);
	if (entry && entry->is.state == WW_JOB_RESERVED)
		return WW_EINUSE;
	if (old.buried)
		return WW_EINVAL;
	int wall = (old.flags & WW_JOB_WALL) != 0;
	record = old;
	error = due_of(jobs, move->due, move->flags, wall, &record);
	if (error)
		return error;
	ww_jobs_merge(&record, entry);
	record.base = record.due;
	record.version++;
	error = ww_jobs_write(jobs, id, &old, &record);
	if (!error) {
		struct image image = ww_jobs_image(jobs, &record);
		error = ww_jobs_place(jobs, id, &image);
	}
	if (!error && move->version)
		*move->version = record.version;
	return error;
}

int ww_jobs_local_move(
    struct ww_jobs *jobs, const struct ww_job_ref *job, uint64_t due, uint32_t flags, uint64_t *version)
{
	struct move call = {job, due, flags, version};

	return ww_jobs_submit(local_of(jobs), move, &call);
}

/* ---- Cancel */

static int cancel(struct jobs_local *jobs, void *arguments)
{
	const struct ww_job_ref *ref = arguments;
	const struct image none = {0};
	struct job_record old;
	uint64_t id;
	int error = ww_jobs_writing(jobs);

	if (!error)
		error = ww_jobs_refer(jobs, ref, &id, &old);
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

int ww_jobs_local_cancel(struct ww_jobs *jobs, const struct ww_job_ref *job)
{
	struct ww_job_ref ref = *job;

	return ww_jobs_submit(local_of(jobs), cancel, &ref);
}
