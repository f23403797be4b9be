/* Ends leases: finish, release, return, bury, or a time to run that is up. Touch extends one. */
#include "lib/jobs/local/end.h"

#include <string.h>

#include "lib/base/random.h"
#include "lib/jobs/local/ended.h"
#include "lib/jobs/local/entries.h"
#include "lib/jobs/local/events.h"
#include "lib/jobs/local/expire.h"
#include "lib/jobs/local/group.h"
#include "lib/jobs/local/history.h"
#include "lib/jobs/local/limit.h"
#include "lib/jobs/local/local.h"
#include "lib/jobs/local/memory.h"
#include "lib/jobs/local/port.h"
#include "lib/jobs/local/put.h"
#include "lib/jobs/local/queue.h"
#include "lib/jobs/local/records.h"
#include "lib/jobs/local/timeline.h"
#include "lib/jobs/local/tube.h"
#include "lib/jobs/local/writing.h"

/*
 * How long until the store checks again whether a transaction under way that finishes a job has ended. It doubles each
 * time: one transaction may finish many jobs, and each check costs a round trip.
 */
#define FINISH_WAIT (2 * WW_SECOND)
#define FINISH_WAIT_MAX (60 * WW_SECOND)

/* A call that ends or extends a lease. Not each has all members. */
struct lease_call {
	uint64_t id;
	uint64_t token;
	uint64_t delay; /* of a release or a return */
	uint32_t priority;
	int keeps_priority;
	int buries;
	int is_elsewhere; /* the end was made where the storage is */
	const char *error;
	uint64_t ends; /* the answer of touch */
};

/* The entry of the call's lease, or NULL if that has ended. */
static struct entry *find_lease(struct jobs_local *jobs, const struct lease_call *call)
{
	struct entry *entry = ww_jobs_find(jobs, call->id);

	return entry && entry->is.state == WW_JOB_RESERVED && entry->is.token == call->token ? entry : NULL;
}

/* Before a lease ends: find its entry, its record, and a copy of the record with what only memory knows. */
static int begin_end(struct jobs_local *jobs, const struct lease_call *call, struct entry **entry,
    struct job_record *old, struct job_record *record)
{
	int error;

	*entry = find_lease(jobs, call);
	if (!*entry)
		return WW_ESTALE;
	error = ww_jobs_read_to_write(jobs, call->id, old);
	if (error)
		return error;
	*record = *old;
	ww_jobs_merge(record, *entry);
	return WW_OK;
}

/* Somebody else finishes the job, or is about to. What becomes of that is waited for, but not for the whole time to run. */
static int wait_for_finish(struct jobs_local *jobs, const struct entry *entry)
{
	struct image image = entry->is;
	uint64_t now = ww_jobs_time(&jobs->elapsed);
	uint64_t wait = FINISH_WAIT << image.waits;
	uint64_t then = time_after(now, wait < FINISH_WAIT_MAX ? wait : FINISH_WAIT_MAX);

	if (wait < FINISH_WAIT_MAX)
		image.waits++;
	if (image.ends <= now || image.ends > then)
		image.ends = then;
	return ww_jobs_place(jobs, entry->id, &image);
}

/*
 * Where others may finish the job: revoke their right to finish this delivery. WW_ESTALE: one of them is finishing it,
 * and the lease goes on.
 */
static int revoke(struct jobs_local *jobs, const struct entry *entry)
{
	const struct store *store = &jobs->store;
	int error = store->ops->revoke ? store->ops->revoke(store->self, entry->id, entry->is.token) : WW_OK;
	int waits = error == WW_ESTALE ? wait_for_finish(jobs, entry) : WW_OK;

	return waits ? waits : error;
}

static void set_reason(struct job_record *record, const char *error)
{
	if (error)
		record->error = (struct store_bytes){error, strnlen(error, WW_JOB_ERROR_MAX)};
}

/* The lease of an entry ends like this. */
static void end_run(struct jobs_local *jobs, enum ww_event_kind outcome, const struct entry *entry,
    const struct job_record *record, uint64_t attempt)
{
	const struct ended_run run = {outcome, entry->id, entry->is.token, attempt, record};

	ww_jobs_end_run(jobs, &run);
}

static int bury_job(struct jobs_local *jobs, const struct entry *entry, const struct job_record *old,
    struct job_record *record, uint64_t attempt)
{
	int error = ww_jobs_tube_count(jobs, ww_jobs_tube_number(jobs, old->tube), -1, 1, 0, 0);

	record->buried = ++jobs->meta.burials;
	record->buries++;
	record->version++;
	end_run(jobs, WW_EVENT_BURIED, entry, record, attempt);
	return error ? error : ww_jobs_settle(jobs, entry->id, old, record);
}

/* A periodic job waits for its next due time. */
static int finish_run(
    struct jobs_local *jobs, const struct entry *entry, const struct job_record *old, struct job_record *record)
{
	const uint64_t id = entry->id;

	/* A job that was kicked before its due time keeps that due time. */
	if (record->base <= ww_jobs_time(ww_jobs_timeline(jobs, entry->is.wall)))
		record->base = time_after(record->base, (entry->is.missed + 1) * record->period);
	record->due = record->base;
	record->expires = ww_jobs_expires(record);
	record->fence = ww_jobs_fence(jobs, old, entry);
	record->tries = 0;
	record->error.size = 0;
	record->version++;
	end_run(jobs, WW_EVENT_FINISHED, entry, record, old->tries + entry->is.tries + 1);
	int error = ww_jobs_settle(jobs, id, old, record);
	return error ? error : ww_jobs_expire_now(jobs, id);
}

static int finish_job(
    struct jobs_local *jobs, const struct entry *entry, const struct job_record *old, struct job_record *record)
{
	const struct image none = {0};
	const uint64_t id = entry->id;

	jobs->meta.ended++;
	end_run(jobs, WW_EVENT_FINISHED, entry, old, record->tries + 1);
	int error = ww_jobs_tube_count(jobs, ww_jobs_tube_number(jobs, old->tube), -1, 0, 0, 1);
	record->due = ww_jobs_time(&jobs->elapsed);
	record->ended = time_after(record->due, record->hold);
	if (!error)
		error = old->hold ? ww_jobs_keep(jobs, id, old, record) : ww_jobs_erase(jobs, id, old);
	return error ? error : ww_jobs_place(jobs, id, &none);
}

/* The same, and put its follow-up, whose bytes lie where the end writes. */
static int finish_then(
    struct jobs_local *jobs, const struct entry *entry, const struct job_record *old, struct job_record *record)
{
	const size_t size = old->then.size;
	struct ww_job_spec spec;
	void *copy = ww_jobs_allocate(jobs, size);

	if (!copy)
		return WW_ENOMEM;
	memcpy(copy, old->then.data, size);
	int error = ww_job_then_read(&spec, copy, size) ? WW_ECORRUPT : finish_job(jobs, entry, old, record);
	if (!error)
		error = ww_jobs_put_then(jobs, &spec);
	ww_jobs_give(jobs, copy, size);
	return error;
}

static int finish(struct jobs_local *jobs, void *arguments)
{
	const struct lease_call *call = arguments;
	struct job_record old;
	struct job_record record;
	struct entry *entry;
	int error = begin_end(jobs, call, &entry, &old, &record);

	if (error)
		return error;
	if (record.period)
		return finish_run(jobs, entry, &old, &record);
	return (old.then.size ? finish_then : finish_job)(jobs, entry, &old, &record);
}

int ww_jobs_local_finish(struct ww_jobs *handle, uint64_t id, uint64_t token)
{
	struct lease_call call = {.id = id, .token = token};

	return ww_jobs_submit(local_of(handle), finish, &call);
}

struct finish_many_call {
	struct ww_job_end *ends;
	size_t count;
};

static int finish_many(struct jobs_local *jobs, void *arguments)
{
	const struct finish_many_call *call = arguments;
	int error = ww_jobs_writing(jobs);

	for (size_t i = 0; i < call->count && !error; i++) {
		struct lease_call one = {.id = call->ends[i].id, .token = call->ends[i].token};
		call->ends[i].result = finish(jobs, &one);
		error = jobs->broken;
	}
	return error;
}

/* If the batch fails, so does each that was not refused. */
int ww_jobs_local_finish_many(struct ww_jobs *handle, struct ww_job_end *ends, size_t count)
{
	struct finish_many_call call = {ends, count};

	for (size_t i = 0; i < count; i++)
		ends[i].result = WW_OK;
	int error = ww_jobs_submit(local_of(handle), finish_many, &call);
	for (size_t i = 0; error && i < count; i++)
		if (ends[i].result >= 0)
			ends[i].result = error;
	return error;
}

/* The delay after the attempts so far: doubles with each up to backoff_max, less a random part of up to a quarter. */
static uint64_t backoff_of(struct jobs_local *jobs, const struct job_record *record)
{
	uint64_t delay = record->backoff;

	for (uint64_t i = 1; i < record->tries && delay < record->backoff_max; i++)
		delay *= 2;
	if (delay > record->backoff_max && record->backoff_max)
		delay = record->backoff_max;
	return delay - (delay ? random_below(&jobs->random, delay / 4 + 1) : 0);
}

/* The job is due again after the delay, because of what the event says. */
static int delay_job(struct jobs_local *jobs, const struct entry *entry, const struct job_record *old,
    struct job_record *record, uint64_t delay, enum ww_event_kind event)
{
	const uint64_t id = entry->id;
	uint64_t now = ww_jobs_time(ww_jobs_timeline(jobs, (record->flags & WW_JOB_WALL) != 0));

	record->delay = delay;
	record->due = time_after(now, delay);
	/* Until then it may be moved or kicked: it does not end before. */
	if (record->expires && record->due > record->expires)
		record->due = record->expires > now ? record->expires : now;
	record->version++;
	if (event == WW_EVENT_RETURNED)
		ww_jobs_note_event(jobs, event, entry->id, record, record->tries);
	else
		end_run(jobs, event, entry, record, record->tries);
	int error = ww_jobs_settle(jobs, id, old, record);
	return error ? error : ww_jobs_expire_now(jobs, id);
}

/* An attempt has failed: the job is due again after the delay or, after its last attempt, buried. Returns 1 then. */
static int try_again(struct jobs_local *jobs, const struct entry *entry, const struct job_record *old,
    struct job_record *record, uint64_t delay, enum ww_event_kind event)
{
	int error;

	record->tries++;
	if (record->attempts && record->tries >= record->attempts) {
		error = bury_job(jobs, entry, old, record, record->tries);
		return error ? error : 1;
	}
	if (delay == WW_JOB_BACKOFF)
		delay = backoff_of(jobs, record);
	return delay_job(jobs, entry, old, record, delay, event);
}

/* Release and bury: the attempt has failed. */
static int fail(struct jobs_local *jobs, void *arguments)
{
	const struct lease_call *call = arguments;
	struct job_record old;
	struct job_record record;
	struct entry *entry;
	int error = ww_jobs_writing_more(jobs, 0);

	if (!error)
		error = begin_end(jobs, call, &entry, &old, &record);
	if (!error && !call->is_elsewhere)
		error = revoke(jobs, entry);
	if (error)
		return error;
	set_reason(&record, call->error);
	if (!call->keeps_priority)
		record.priority = call->priority;
	if (call->buries)
		return bury_job(jobs, entry, &old, &record, record.tries + 1);
	record.releases++;
	return try_again(jobs, entry, &old, &record, call->delay, WW_EVENT_RELEASED);
}

int ww_jobs_local_release(
    struct ww_jobs *handle, uint64_t id, uint64_t token, uint32_t priority, uint64_t delay, const char *error)
{
	struct lease_call call = {.id = id, .token = token, .priority = priority, .delay = delay, .error = error};

	return ww_jobs_submit(local_of(handle), fail, &call);
}

int ww_jobs_local_bury(struct ww_jobs *handle, uint64_t id, uint64_t token, uint32_t priority, const char *error)
{
	struct lease_call call = {.id = id, .token = token, .priority = priority, .buries = 1, .error = error};

	return ww_jobs_submit(local_of(handle), fail, &call);
}

static int return_later(struct jobs_local *jobs, const struct lease_call *call)
{
	struct job_record old;
	struct job_record record;
	struct entry *entry;
	int error = ww_jobs_writing_more(jobs, 0);

	if (!error)
		error = begin_end(jobs, call, &entry, &old, &record);
	if (!error)
		error = revoke(jobs, entry);
	if (error)
		return error;
	if (entry->is.tube->limits)
		ww_jobs_limit_return(&entry->is);
	return delay_job(jobs, entry, &old, &record, call->delay, WW_EVENT_RETURNED);
}

/* Without a delay nothing is written: only memory knows of the lease, and the stored job is one that waits. */
static int return_job(struct jobs_local *jobs, void *arguments)
{
	const struct lease_call *call = arguments;
	const struct entry *entry = find_lease(jobs, call);

	if (call->delay)
		return return_later(jobs, call);
	int error = entry ? revoke(jobs, entry) : WW_ESTALE;
	if (error)
		return error;
	struct image image = entry->is;
	image.state = WW_JOB_READY;
	image.token = 0;
	if (image.tube->limits)
		ww_jobs_limit_return(&image);
	ww_jobs_note_event_of(jobs, WW_EVENT_RETURNED, call->id);
	error = ww_jobs_place(jobs, call->id, &image);
	return error ? error : ww_jobs_expire_now(jobs, call->id);
}

int ww_jobs_local_return(struct ww_jobs *handle, uint64_t id, uint64_t token, uint64_t delay)
{
	struct lease_call call = {.id = id, .token = token, .delay = delay};

	return ww_jobs_submit(local_of(handle), return_job, &call);
}

static int touch(struct jobs_local *jobs, void *arguments)
{
	struct lease_call *call = arguments;
	const struct entry *entry = find_lease(jobs, call);
	struct job_record record;
	int error;

	if (!entry)
		return WW_ESTALE;
	error = ww_jobs_read(jobs, call->id, &record);
	if (error)
		return error;
	struct image image = entry->is;
	image.ends = time_after(ww_jobs_time(&jobs->elapsed), record.run);
	error = ww_jobs_place(jobs, call->id, &image);
	call->ends = image.ends;
	return error;
}

int ww_jobs_local_touch(struct ww_jobs *handle, uint64_t id, uint64_t token, uint64_t *ends)
{
	struct lease_call call = {.id = id, .token = token};
	int error = ww_jobs_submit(local_of(handle), touch, &call);

	if (!error && ends)
		*ends = call.ends;
	return error;
}

int ww_jobs_time_out(struct jobs_local *jobs, struct entry *entry)
{
	struct image image = entry->is;
	struct job_record old;
	struct job_record record;
	int error = revoke(jobs, entry);

	if (error)
		return error == WW_ESTALE ? WW_OK : error;
	error = ww_jobs_read(jobs, entry->id, &old);

	jobs->timeouts++;
	image.timeouts++;
	/* Without a limit of attempts and a backoff there is nothing to write: the stored job is one that waits. */
	if (error || (!old.attempts && !old.backoff && !old.keep)) {
		image.state = WW_JOB_READY;
		image.token = 0;
		image.tries++;
		if (!error)
			ww_jobs_note_event(jobs, WW_EVENT_TIMED_OUT, entry->id, &old, old.tries + image.tries);
		int broken = ww_jobs_place(jobs, entry->id, &image);
		return broken ? broken : ww_jobs_expire_now(jobs, entry->id);
	}
	error = ww_jobs_read_to_write(jobs, entry->id, &old);
	if (error)
		return ww_jobs_broken(jobs, error);
	record = old;
	ww_jobs_merge(&record, entry);
	record.timeouts++;
	set_reason(&record, "the time to run was up");
	error = try_again(jobs, entry, &old, &record, WW_JOB_BACKOFF, WW_EVENT_TIMED_OUT);
	return error < 0 ? error : WW_OK;
}

/* ---- For stores outside this library (port.h) */

/*
 * The delivery is from a former opening, and nothing has ended it: its lease continues until this end is done. When it
 * began is not known, so no time of a periodic job counts as missed: it may run once more, but never too seldom.
 */
static int resume(struct jobs_local *jobs, const struct lease_call *call)
{
	const struct entry *entry = ww_jobs_find(jobs, call->id);
	struct job_record record;
	struct image image;
	int error = ww_jobs_read_to_write(jobs, call->id, &record);

	if (error)
		return error == WW_ENOTFOUND ? WW_ESTALE : error;
	image = entry ? entry->is : ww_jobs_image(jobs, &record);
	if (call->token >> TOKEN_BITS >= jobs->meta.epoch || call->token <= record.fence || record.buried ||
	    image.state == WW_JOB_RESERVED)
		return WW_ESTALE;
	if (!entry)
		error = ww_jobs_group_get(image.tube, record.group, &image.group);
	if (error)
		return ww_jobs_broken(jobs, error);
	image.state = WW_JOB_RESERVED;
	image.waits = 0;
	image.missed = 0;
	image.token = call->token;
	image.ends = time_after(ww_jobs_time(&jobs->elapsed), FINISH_WAIT);
	return ww_jobs_place(jobs, call->id, &image);
}

struct end_call {
	struct lease_call lease;
	int finishes;
};

static int end_elsewhere(struct jobs_local *jobs, void *arguments)
{
	struct end_call *call = arguments;
	int error = find_lease(jobs, &call->lease) ? WW_OK : resume(jobs, &call->lease);

	return error ? error : call->finishes ? finish(jobs, &call->lease) : fail(jobs, &call->lease);
}

int ww_jobs_port_end(struct ww_jobs *handle, const struct port_end *end)
{
	struct end_call call = {.finishes = end->how == PORT_FINISH,
	    .lease = {.id = end->id,
	        .token = end->token,
	        .delay = end->delay,
	        .priority = end->priority,
	        .keeps_priority = end->keeps_priority,
	        .buries = end->how == PORT_BURY,
	        .is_elsewhere = 1,
	        .error = end->error}};

	return ww_jobs_submit(local_of(handle), end_elsewhere, &call);
}

void ww_jobs_port_tokens(struct ww_jobs *handle, uint64_t *floor, uint64_t *next)
{
	const struct jobs_local *jobs = local_of(handle);
	uint64_t left = jobs->all.reserved;

	*floor = *next = jobs->meta.epoch << TOKEN_BITS | (jobs->tokens + 1);
	for (uint32_t i = 0; left && i < slab_end(&jobs->entries); i++) {
		const struct entry *entry = slab_at(&jobs->entries, i);
		if (entry->is.state != WW_JOB_RESERVED)
			continue;
		left--;
		if (entry->is.token < *floor)
			*floor = entry->is.token;
	}
}
