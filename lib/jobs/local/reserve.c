/* Leases jobs: the best ones of some tubes, or one by its id. */
#include "lib/jobs/local/reserve.h"

#include <string.h>

#include "lib/jobs/body.h"
#include "lib/jobs/local/entries.h"
#include "lib/jobs/local/events.h"
#include "lib/jobs/local/expire.h"
#include "lib/jobs/local/group.h"
#include "lib/jobs/local/limit.h"
#include "lib/jobs/local/local.h"
#include "lib/jobs/local/queue.h"
#include "lib/jobs/local/records.h"
#include "lib/jobs/local/timeline.h"
#include "lib/jobs/local/tube.h"
#include "lib/jobs/local/writing.h"

/* A reserve of several tubes, or of one job, and its leases. */
struct reserve_call {
	const struct ww_reserve *what;
	uint64_t id;
	struct ww_lease *leases;
	size_t most;
	size_t leased;
};

/* Move a periodic job that skips past the due times that are too old. Returns 1 if it is not due any more, or 0. */
static int skip_old(struct jobs_local *jobs, uint64_t id, struct job_record *record, uint64_t now)
{
	struct job_record old = *record;

	if (!record->period || record->missed != WW_MISSED_SKIP || now <= record->base ||
	    now - record->base <= record->skip)
		return 0;
	uint64_t passed = (now - record->skip - record->base + record->period - 1) / record->period;
	record->base = time_after(record->base, passed * record->period);
	record->due = record->base;
	record->expires = ww_jobs_expires(record);
	ww_jobs_merge(record, ww_jobs_find(jobs, id));
	int error = ww_jobs_settle(jobs, id, &old, record);
	if (!error)
		error = ww_jobs_read(jobs, id, record);
	return error ? error : record->due > now;
}

static void fill_lease(
    struct ww_lease *lease, uint64_t id, const struct image *image, const struct job_record *record, uint64_t now)
{
	*lease = (struct ww_lease){.id = id,
	    .token = image->token,
	    .ends = image->ends,
	    .attempt = (uint32_t)(record->tries + image->tries) + 1,
	    .missed = image->missed,
	    .late = now > record->due ? now - record->due : 0,
	    .body_length = record->body.size,
	    .headers_length = record->headers.size,
	    .backoff = record->backoff,
	    .created = record->created,
	    .scheduled = record->period ? record->base : 0,
	    .attempts = (uint32_t)record->attempts,
	    .kicks = (uint32_t)record->kicks,
	    .priority = image->priority,
	    .key_length = record->key.size};
	memcpy(lease->tube, image->tube->name, sizeof lease->tube);
	if (record->key.size)
		memcpy(lease->key, record->key.data, record->key.size);
}

/* Lease a job, which has this record, to the caller. */
static int lease_job(struct jobs_local *jobs, struct reserve_call *call, uint64_t id, const struct job_record *record)
{
	const struct entry *entry = ww_jobs_find(jobs, id);
	struct image image = entry ? entry->is : ww_jobs_image(jobs, record);
	uint64_t now = ww_jobs_time(ww_jobs_timeline(jobs, image.wall));
	const char *headers = record->headers.data;
	void *body = NULL;
	int error = entry ? WW_OK : ww_jobs_group_get(image.tube, record->group, &image.group);

	if (error)
		return error;
	image.due = record->due;
	image.state = WW_JOB_RESERVED;
	image.token = jobs->meta.epoch << TOKEN_BITS | ++jobs->tokens;
	image.ends = time_after(ww_jobs_time(&jobs->elapsed), record->run);
	image.reserves++;
	image.waits = 0;
	image.missed = 0;
	if (record->period && record->missed == WW_MISSED_ONCE && now > record->base)
		image.missed = (now - record->base) / record->period;
	if (record->body.size + record->headers.size) {
		body = job_body_copy(
		    jobs->allocator, record->body.data, record->body.size, &headers, record->headers.size);
		if (!body)
			return ww_jobs_broken(jobs, WW_ENOMEM);
	}
	error = ww_jobs_place(jobs, id, &image);
	if (error) {
		job_body_free(jobs->allocator, body);
		return error;
	}
	if (image.tube->limits)
		ww_jobs_limit_start(&image);
	ww_jobs_note_event(jobs, WW_EVENT_STARTED, id, record, record->tries + image.tries + 1);
	fill_lease(&call->leases[call->leased], id, &image, record, now);
	call->leases[call->leased].headers = record->headers.size ? headers : NULL;
	call->leases[call->leased++].body = body;
	return WW_OK;
}

/* Find the best job that may start. Returns 1, 0 if there is none, or an error. */
static int find_best(struct jobs_local *jobs, const struct reserve_call *call, struct entry **found)
{
	struct entry *best = NULL;

	for (size_t i = 0; i < call->what->count; i++) {
		struct tube *tube = ww_jobs_tube_find(jobs, call->what->tubes[i]);
		if (!tube || !tube->ready || ww_jobs_tube_is_paused(tube))
			continue;
		struct entry *entry;
		int found_one = ww_jobs_ready_next(tube, call->what->code, &entry);
		if (found_one < 0)
			return found_one;
		if (!found_one)
			continue;
		if (!best || ww_jobs_heap_is_less(entry, best))
			best = entry;
	}
	*found = best;
	return best != NULL;
}

/* Lease the best ready job. Returns 1, or 0 if there is none. */
static int reserve_best(struct jobs_local *jobs, struct reserve_call *call)
{
	const struct image none = {0};
	struct job_record record;
	struct entry *entry;
	int error;

	while ((error = find_best(jobs, call, &entry)) == 1) {
		uint64_t id = entry->id;
		uint64_t now = ww_jobs_time(ww_jobs_timeline(jobs, entry->is.wall));
		if (entry->is.tube->limits)
			ww_jobs_group_comes(ww_jobs_group_of(&entry->is));
		error = ww_jobs_pass_by(jobs, entry);
		if (error == 1)
			continue;
		if (error)
			return error;
		error = ww_jobs_read(jobs, id, &record);
		/* A record that cannot be read is reported once, and then must not keep other jobs from delivery. */
		if (error && call->leased)
			return 0;
		if (error) {
			(void)ww_jobs_place(jobs, id, &none);
			return error == WW_ENOTFOUND ? WW_ECORRUPT : error;
		}
		error = skip_old(jobs, id, &record, now);
		if (!error)
			error = ww_jobs_expire_late(jobs, id, &record);
		if (error == 1)
			continue;
		if (!error)
			error = lease_job(jobs, call, id, &record);
		return error ? error : 1;
	}
	return error;
}

/* A delivery that cannot be ended would only be made again. */
static int can_lease(const struct jobs_local *jobs)
{
	if (jobs->config.flags & WW_JOBS_READONLY)
		return WW_EDENIED;
	int fault = jobs->store.ops->fault(jobs->store.self, NULL);
	return fault == WW_EIO || fault == WW_ECORRUPT ? fault : WW_OK;
}

static int reserve(struct jobs_local *jobs, void *arguments)
{
	struct reserve_call *call = arguments;
	int result = can_lease(jobs);

	if (result)
		return result;
	result = 1;
	while (result == 1 && call->leased < call->most)
		result = reserve_best(jobs, call);
	if (result < 0)
		return call->leased ? ww_jobs_broken(jobs, result) : result;
	return (int)call->leased;
}

static int reserve_job(struct jobs_local *jobs, void *arguments)
{
	struct reserve_call *call = arguments;
	struct job_record record;
	struct job_record old;
	int error = ww_jobs_read(jobs, call->id, &record);
	const struct entry *entry = ww_jobs_find(jobs, call->id);

	if (!error)
		error = can_lease(jobs);
	if (error)
		return error;
	if (entry && entry->is.state == WW_JOB_RESERVED)
		return WW_EINUSE;
	/* Its timer is about to end it. */
	if (!record.buried && ww_jobs_has_expired(jobs, &record))
		return WW_ENOTFOUND;
	uint64_t now = ww_jobs_time(ww_jobs_timeline(jobs, (record.flags & WW_JOB_WALL) != 0));
	if (record.buried || record.due > now) {
		/* Store it as due: when the lease ends, even by a crash, the job is ready. */
		error = ww_jobs_read_to_write(jobs, call->id, &old);
		if (error)
			return error;
		record = old;
		record.buried = 0;
		record.due = now;
		if (old.buried)
			ww_jobs_unexpire(&record);
		if (old.buried)
			error = ww_jobs_tube_count(jobs, ww_jobs_tube_number(jobs, record.tube), 1, -1, 0, 0);
		if (!error)
			error = ww_jobs_settle(jobs, call->id, &old, &record);
		if (!error)
			error = ww_jobs_read(jobs, call->id, &record);
		if (error)
			return error;
	}
	return lease_job(jobs, call, call->id, &record);
}

/* Leases of a call that has failed, or whose batch has failed, are none. */
static int submit(struct ww_jobs *handle, call_fn *fn, struct reserve_call *call)
{
	struct jobs_local *jobs = local_of(handle);
	int result = ww_jobs_submit(jobs, fn, call);

	for (size_t i = 0; result < 0 && i < call->leased; i++) {
		job_body_free(jobs->allocator, call->leases[i].body);
		call->leases[i].body = NULL;
	}
	return result;
}

/* The caller's lease changes only if the call succeeds. */
static int submit_one(struct ww_jobs *handle, call_fn *fn, struct reserve_call *call, struct ww_lease *lease)
{
	struct ww_lease made;

	call->leases = &made;
	call->most = 1;
	int result = submit(handle, fn, call);
	if (result >= 0 && call->leased)
		*lease = made;
	return result;
}

int ww_jobs_local_reserve(struct ww_jobs *handle, const struct ww_reserve *what, struct ww_lease *lease)
{
	struct reserve_call call = {.what = what};

	return submit_one(handle, reserve, &call, lease);
}

int ww_jobs_local_reserve_many(
    struct ww_jobs *handle, const struct ww_reserve *what, struct ww_lease *leases, size_t most)
{
	struct reserve_call call = {.what = what, .leases = leases, .most = most};

	return submit(handle, reserve, &call);
}

int ww_jobs_local_reserve_job(struct ww_jobs *handle, uint64_t id, struct ww_lease *lease)
{
	struct reserve_call call = {.id = id};

	return submit_one(handle, reserve_job, &call, lease);
}
