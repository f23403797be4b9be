/* Puts, moves and cancels jobs. */
#include "lib/jobs/local/put.h"

#include "lib/base/time.h"
#include "lib/jobs/local/ended.h"
#include "lib/jobs/local/entries.h"
#include "lib/jobs/local/events.h"
#include "lib/jobs/local/expire.h"
#include "lib/jobs/local/local.h"
#include "lib/jobs/local/meta.h"
#include "lib/jobs/local/queue.h"
#include "lib/jobs/local/records.h"
#include "lib/jobs/local/timeline.h"
#include "lib/jobs/local/tube.h"
#include "lib/jobs/local/writing.h"
#include "lib/jobs/then.h"

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
	    .created = time_now(CLOCK_REALTIME),
	    .hold = spec->key_mode == WW_KEY_UNIQUE ? spec->key_span : 0,
	    .key = {spec->key, spec->key_length},
	    .body = {spec->body, spec->body_length},
	    .group = {spec->group, spec->group_length},
	    .headers = {spec->headers, spec->headers_length},
	    .then = {spec->then, spec->then_length}};
	ww_job_record_take(record, spec);
}

/* The record becomes that of a job which has a past. Its due time is known, and the mode of its key was heeded. */
static void fill_past(
    struct jobs_local *jobs, struct job_record *record, const struct ww_job_spec *spec, const struct ww_job_info *was)
{
	uint64_t now = ww_jobs_time(ww_jobs_timeline(jobs, (record->flags & WW_JOB_WALL) != 0));
	uint64_t shown = was->left ? time_sub(record->due, was->left) : now;

	record->version = was->version ? was->version : 1;
	if (was->created) {
		record->created = was->created;
		record->delay = was->delay;
	}
	if (was->debounce)
		record->first = time_sub(shown, was->debounce);
	if (was->expires && record->expire)
		record->expires = was->expires;
	record->tries = was->tries;
	record->reserves = was->reserves;
	record->timeouts = was->timeouts;
	record->releases = was->releases;
	record->buries = was->buries;
	record->kicks = was->kicks;
	record->error = (struct store_bytes){was->error, strnlen(was->error, WW_JOB_ERROR_MAX)};
	if (was->state == WW_JOB_ENDED)
		record->ended = time_after(record->due, spec->flags & WW_JOB_AT ? spec->key_span : was->left);
	else if (was->state == WW_JOB_BURIED)
		record->buried = ++jobs->meta.burials;
}

/* Find the job that has the key of the spec, and may have ended. WW_ENOTFOUND: there is none. */
static int find_old(struct jobs_local *jobs, const struct ww_job_spec *spec, const struct tube *tube, uint64_t *id,
    struct job_record *old)
{
	if (!spec->key_length || !tube)
		return WW_ENOTFOUND;
	return ww_jobs_key(jobs, tube, (struct store_bytes){spec->key, spec->key_length}, id, old);
}

/* ---- The modes of a key */

static uint64_t left_of(struct jobs_local *jobs, const struct job_record *record)
{
	uint64_t now = ww_jobs_time(ww_jobs_timeline(jobs, (record->flags & WW_JOB_WALL) != 0));

	return record->due > now ? record->due - now : 0;
}

/* Whether it has waited ever since it was put or replaced, without a delivery. */
static int is_untouched(const struct job_record *record, const struct entry *entry)
{
	return !record->buried && !record->reserves && !(entry && entry->is.reserves);
}

/* Each debounced put moves the job, but not beyond a span after the first one. The old job is NULL if there is none. */
static void debounce(struct jobs_local *jobs, uint64_t span, const struct job_record *old, struct job_record *record)
{
	uint64_t now = ww_jobs_time(ww_jobs_timeline(jobs, (record->flags & WW_JOB_WALL) != 0));
	uint64_t age = 0, end;

	/* Of the clock of the old job, which may be the other one. */
	if (old && old->first)
		age = ww_jobs_time(ww_jobs_timeline(jobs, (old->flags & WW_JOB_WALL) != 0)) - old->first;
	record->first = now - age;
	end = time_after(now, span - (age < span ? age : span));
	if (record->due > end)
		record->due = record->base = end;
	record->expires = ww_jobs_expires(record);
	record->delay = record->due > now ? record->due - now : 0;
}

/*
 * Whether the job that has the key stays as it is. If not, and the mode says so, the new record gets another due time.
 * `found` says whether there is an old one.
 */
static int decide(struct jobs_local *jobs, const struct ww_job_spec *spec, int found, uint64_t id,
    const struct job_record *old, struct job_record *record)
{
	const struct entry *entry = found ? ww_jobs_find(jobs, id) : NULL;
	int waits = found && !old->buried && !(entry && entry->is.state == WW_JOB_RESERVED);

	switch (spec->key_mode) {
	case WW_KEY_IF_ABSENT:
	case WW_KEY_UNIQUE:
		return found;
	case WW_KEY_KEEP_EARLIER:
		return waits && left_of(jobs, old) <= record->delay;
	case WW_KEY_KEEP_LATER:
		return waits && left_of(jobs, old) >= record->delay;
	case WW_KEY_DEBOUNCE:
		debounce(jobs, spec->key_span, found && is_untouched(old, entry) ? old : NULL, record);
		return 0;
	default:
		return 0;
	}
}

static int replace(struct jobs_local *jobs, uint64_t id, const struct job_record *old, struct job_record *record)
{
	const struct entry *entry = ww_jobs_find(jobs, id);
	int buried = (record->buried != 0) - (old->buried != 0);
	int error = ww_jobs_tube_count(jobs, ww_jobs_tube_number(jobs, old->tube), -buried, buried, 1, 0);

	record->tube = old->tube;
	record->version = old->version + 1;
	record->fence = ww_jobs_fence(jobs, old, entry);
	ww_jobs_note_event(jobs, WW_EVENT_PUT, id, record, 0);
	return error ? error : ww_jobs_settle(jobs, id, old, record);
}

static int insert(struct jobs_local *jobs, const char *name, uint64_t *id, struct job_record *record)
{
	struct tube *tube;
	int error = ww_jobs_tube_get(jobs, name, &tube);

	if (error)
		return ww_jobs_broken(jobs, error);
	*id = ww_jobs_meta_new_id(jobs);
	jobs->meta.accepted++;
	record->tube = tube->number;
	if (record->ended) {
		jobs->meta.ended++;
		error = ww_jobs_tube_count(jobs, tube, 0, 0, 1, 1);
		return error ? error : ww_jobs_keep(jobs, *id, NULL, record);
	}
	ww_jobs_note_event(jobs, WW_EVENT_PUT, *id, record, 0);
	error = ww_jobs_tube_count(jobs, tube, !record->buried, record->buried != 0, 1, 0);
	return error ? error : ww_jobs_settle(jobs, *id, NULL, record);
}

/* A put, and where its answers go. */
struct put_call {
	const struct ww_job_spec *spec;
	const struct ww_job_info *was; /* NULL: it is new */
	uint64_t id;
	uint64_t version;
};

static int answer(struct put_call *call, uint64_t id, uint64_t version, int result)
{
	call->id = id;
	call->version = version;
	return result;
}

/* Whether the old job has expired and its timer is late: it is no job to keep. */
static int is_due_to_expire(const struct jobs_local *jobs, uint64_t id, const struct job_record *old)
{
	const struct entry *entry = ww_jobs_find(jobs, id);

	return !old->ended && !old->buried && !(entry && entry->is.state == WW_JOB_RESERVED) &&
	       ww_jobs_has_expired(jobs, old);
}

/* Put it in place of the job that has its key, if there is one. Without `writes` only find out whether a job is kept. */
static int put_record(struct jobs_local *jobs, struct put_call *call, struct job_record *record, int writes)
{
	const struct ww_job_spec *spec = call->spec;
	struct job_record old = {0};
	uint64_t id = 0;
	int error = find_old(jobs, spec, ww_jobs_tube_find(jobs, spec->tube), &id, &old);
	int found = !error;

	if (error && error != WW_ENOTFOUND)
		return error;
	if (found && is_due_to_expire(jobs, id, &old)) {
		error = writes ? ww_jobs_expire_late(jobs, id, &old) : WW_PUT_NEW;
		return !writes || error < 0 ? error : put_record(jobs, call, record, writes);
	}
	if (found && old.ended && !ww_jobs_is_forgotten(jobs, &old))
		return spec->version ? WW_ESTALE : answer(call, id, old.version, WW_PUT_ENDED);
	if (spec->version && (!found || old.ended || old.version != spec->version))
		return WW_ESTALE;
	if (!old.ended && decide(jobs, spec, found, id, &old, record))
		return answer(call, id, old.version, WW_PUT_KEPT);
	if (!writes)
		return WW_PUT_NEW;
	if (call->was)
		fill_past(jobs, record, spec, call->was);
	error = found && old.ended ? ww_jobs_forget(jobs, id, &old) : WW_OK;
	found = found && !old.ended;
	if (!error)
		error = found ? replace(jobs, id, &old, record) : insert(jobs, spec->tube, &id, record);
	return error ? error : answer(call, id, record->version, found ? WW_PUT_REPLACED : WW_PUT_NEW);
}

/* What the store has to say of a job that the put has checked. */
static int refuse(const struct jobs_local *jobs, const struct ww_job_spec *spec)
{
	struct ww_job_spec job = *spec;

	if (spec->body_length + spec->then_length > jobs->config.body_max)
		return WW_ETOOBIG;
	while (!jobs->wall.driver && job.then_length)
		if (ww_job_then_follow(&job) || job.flags & WW_JOB_WALL)
			return WW_EINVAL;
	return jobs->broken;
}

static int put(struct jobs_local *jobs, void *arguments)
{
	struct put_call *call = arguments;
	const struct ww_job_spec *spec = call->spec;
	int wall = (spec->flags & WW_JOB_WALL) != 0;
	struct job_record record;
	int error = refuse(jobs, spec);

	fill(&record, spec);
	if (!error)
		error = due_of(jobs, spec->due, call->was ? spec->flags & ~WW_JOB_FUTURE : spec->flags, wall, &record);
	if (error)
		return error;
	if (call->was && spec->flags & WW_JOB_AT)
		record.due = spec->due;
	record.base = record.due;
	record.expires = ww_jobs_expires(&record);
	if (spec->key_mode != WW_KEY_REPLACE && spec->key_mode != WW_KEY_DEBOUNCE) {
		/* A job that is kept needs no write. */
		struct job_record draft = record;
		int result = put_record(jobs, call, &draft, 0);
		if (result)
			return result;
	}
	error = ww_jobs_writing_more(
	    jobs, spec->body_length + spec->headers_length + spec->key_length + spec->group_length + spec->then_length);
	return error ? error : put_record(jobs, call, &record, 1);
}

int ww_jobs_put_then(struct jobs_local *jobs, const struct ww_job_spec *spec)
{
	const int wall = (spec->flags & WW_JOB_WALL) != 0;
	const struct timeline *line = ww_jobs_timeline(jobs, wall);
	const uint64_t now = ww_jobs_time(line);
	const uint64_t most = time_sub(WW_DRIVER_TIME_MAX, now - line->offset);
	const uint64_t delay = spec->flags & WW_JOB_AT ? time_sub(spec->due, now) : spec->due;
	struct put_call call = {.spec = spec};
	struct job_record record;
	int result;

	fill(&record, spec);
	result = due_of(jobs, delay < most ? delay : most, 0, wall, &record);
	if (!result) {
		record.base = record.due;
		record.expires = ww_jobs_expires(&record);
		result = put_record(jobs, &call, &record, 1);
	}
	return result < 0 ? ww_jobs_broken(jobs, result) : WW_OK;
}

int ww_jobs_local_put(struct ww_jobs *handle, const struct ww_job_spec *spec, uint64_t *id, uint64_t *version)
{
	struct put_call call = {.spec = spec};
	int result = ww_jobs_submit(local_of(handle), put, &call);

	if (result >= 0 && id)
		*id = call.id;
	if (result >= 0 && version)
		*version = call.version;
	return result;
}

struct put_many_call {
	struct ww_job_put *puts;
	const struct ww_job_info *const *was;
	size_t count;
};

static int put_many(struct jobs_local *jobs, void *arguments)
{
	const struct put_many_call *call = arguments;
	int error = WW_OK;

	for (size_t i = 0; i < call->count && !error; i++) {
		struct ww_job_put *each = &call->puts[i];
		struct put_call one = {each->spec, call->was ? call->was[i] : NULL, each->id, each->version};
		if (each->result == WW_OK)
			each->result = put(jobs, &one);
		each->id = one.id;
		each->version = one.version;
		error = jobs->broken;
	}
	return error;
}

/* If the batch fails, so does each that was not refused. */
int ww_jobs_local_put_many(
    struct ww_jobs *handle, struct ww_job_put *puts, const struct ww_job_info *const *was, size_t count)
{
	struct put_many_call call = {puts, was, count};
	int error = ww_jobs_submit(local_of(handle), put_many, &call);

	for (size_t i = 0; error && i < count; i++)
		if (puts[i].result >= 0)
			puts[i].result = error;
	return error;
}

/* ---- Move */

struct move_call {
	const struct ww_job_ref *job;
	uint64_t due;
	uint32_t flags;
	uint64_t version;
};

static int move(struct jobs_local *jobs, void *arguments)
{
	struct move_call *call = arguments;
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
	error = due_of(jobs, call->due, call->flags, (old.flags & WW_JOB_WALL) != 0, &record);
	if (error)
		return error;
	ww_jobs_merge(&record, entry);
	record.base = record.due;
	record.expires = ww_jobs_expires(&record);
	record.version++;
	ww_jobs_note_event(jobs, WW_EVENT_MOVED, id, &record, 0);
	error = ww_jobs_settle(jobs, id, &old, &record);
	if (!error)
		call->version = record.version;
	return error;
}

int ww_jobs_local_move(
    struct ww_jobs *handle, const struct ww_job_ref *job, uint64_t due, uint32_t flags, uint64_t *version)
{
	struct move_call call = {.job = job, .due = due, .flags = flags};
	int error = ww_jobs_submit(local_of(handle), move, &call);

	if (!error && version)
		*version = call.version;
	return error;
}

/* ---- Cancel */

struct cancel_call {
	const struct ww_job_ref *job;
};

static int cancel(struct jobs_local *jobs, void *arguments)
{
	const struct cancel_call *call = arguments;
	const struct image none = {0};
	struct job_record old;
	uint64_t id;
	int error = ww_jobs_writing(jobs);

	if (!error)
		error = ww_jobs_refer(jobs, call->job, &id, &old);
	/* A key that leads to a job that has ended is free from now on. */
	if (error == WW_ENOTFOUND && !call->job->id && id && old.ended && !ww_jobs_is_forgotten(jobs, &old)) {
		error = ww_jobs_forget(jobs, id, &old);
		return error ? error : 1;
	}
	if (error)
		return error;
	const struct entry *entry = ww_jobs_find(jobs, id);
	int in_time = !entry || entry->is.state != WW_JOB_RESERVED;
	struct tube *tube = ww_jobs_tube_number(jobs, old.tube);
	error = old.buried ? ww_jobs_tube_count(jobs, tube, 0, -1, 0, 1) : ww_jobs_tube_count(jobs, tube, -1, 0, 0, 1);
	ww_jobs_note_event(jobs, WW_EVENT_CANCELLED, id, &old, 0);
	if (!error)
		error = ww_jobs_erase(jobs, id, &old);
	if (!error)
		error = ww_jobs_place(jobs, id, &none);
	jobs->meta.ended++;
	return error ? error : in_time;
}

int ww_jobs_local_cancel(struct ww_jobs *handle, const struct ww_job_ref *job)
{
	struct cancel_call call = {job};

	return ww_jobs_submit(local_of(handle), cancel, &call);
}
