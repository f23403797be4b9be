/* Ends ready jobs that expire when their timers fire. If these are late, no reserve finds the jobs. */
#include "lib/jobs/local/expire.h"

#include <string.h>

#include "lib/jobs/local/ended.h"
#include "lib/jobs/local/entries.h"
#include "lib/jobs/local/history.h"
#include "lib/jobs/local/local.h"
#include "lib/jobs/local/records.h"
#include "lib/jobs/local/timeline.h"
#include "lib/jobs/local/tube.h"
#include "lib/jobs/local/writing.h"

static const char reason[] = "it expired";

static uint64_t now_of(const struct jobs_local *jobs, const struct job_record *record)
{
	return ww_jobs_time(record->flags & WW_JOB_WALL ? &jobs->wall : &jobs->elapsed);
}

uint64_t ww_jobs_expires(const struct job_record *record)
{
	return record->expire ? time_after(record->base, record->expire) : 0;
}

int ww_jobs_has_expired(const struct jobs_local *jobs, const struct job_record *record)
{
	return record->expires && record->expires <= now_of(jobs, record);
}

/* There was no lease, so that no worker has reported. */
static void end_run(struct jobs_local *jobs, enum ww_event_kind outcome, uint64_t id, const struct job_record *record)
{
	const struct ended_run run = {outcome, id, 0, record->tries, record};

	ww_jobs_end_run(jobs, &run);
}

static int bury(struct jobs_local *jobs, uint64_t id, const struct job_record *old, struct job_record *record)
{
	int error = ww_jobs_tube_count(jobs, ww_jobs_tube_number(jobs, old->tube), -1, 1, 0, 0);

	record->buried = ++jobs->meta.burials;
	record->buries++;
	record->version++;
	record->error = (struct store_bytes){reason, sizeof reason - 1};
	end_run(jobs, WW_EVENT_BURIED, id, record);
	return error ? error : ww_jobs_settle(jobs, id, old, record);
}

/* It waits for the first of its next due times that has not expired as well. */
static int pass_over(struct jobs_local *jobs, uint64_t id, const struct job_record *old, struct job_record *record)
{
	uint64_t now = now_of(jobs, record);
	uint64_t ended = ww_jobs_expires(record);
	uint64_t late = now > ended ? now - ended : 0;

	record->base = time_after(record->base, (late / record->period + 1) * record->period);
	record->due = record->base;
	record->expires = ww_jobs_expires(record);
	/* Where others finish jobs, a delivery of a former opening may not end the next run. */
	if (jobs->store.ops->revoke)
		record->fence = jobs->meta.epoch << TOKEN_BITS;
	record->tries = 0;
	record->error.size = 0;
	record->version++;
	end_run(jobs, WW_EVENT_EXPIRED, id, record);
	return ww_jobs_settle(jobs, id, old, record);
}

static int drop(struct jobs_local *jobs, uint64_t id, const struct job_record *old, struct job_record *record)
{
	const struct image none = {0};
	int error = ww_jobs_tube_count(jobs, ww_jobs_tube_number(jobs, old->tube), -1, 0, 0, 1);

	jobs->meta.ended++;
	end_run(jobs, WW_EVENT_EXPIRED, id, record);
	record->due = ww_jobs_time(&jobs->elapsed);
	record->ended = time_after(record->due, record->hold);
	if (!error)
		error = old->hold ? ww_jobs_keep(jobs, id, old, record) : ww_jobs_erase(jobs, id, old);
	return error ? error : ww_jobs_place(jobs, id, &none);
}

void ww_jobs_unexpire(struct job_record *record)
{
	record->expires = 0;
	if (!record->period)
		record->expire = 0;
}

/* End the job, which has this record and no lease. */
static int end(struct jobs_local *jobs, uint64_t id, const struct job_record *old)
{
	struct job_record record = *old;

	jobs->expired++;
	ww_jobs_merge(&record, ww_jobs_find(jobs, id));
	if (record.expired == WW_EXPIRED_BURY)
		return bury(jobs, id, old, &record);
	return record.period ? pass_over(jobs, id, old, &record) : drop(jobs, id, old, &record);
}

int ww_jobs_expire_late(struct jobs_local *jobs, uint64_t id, const struct job_record *record)
{
	struct job_record old;

	if (!ww_jobs_has_expired(jobs, record))
		return 0;
	int error = ww_jobs_read_to_write(jobs, id, &old);
	if (!error)
		error = end(jobs, id, &old);
	return error ? ww_jobs_broken(jobs, error) : 1;
}

static int is_expired(const struct jobs_local *jobs, const struct entry *entry)
{
	return entry->is.state == WW_JOB_READY && entry->is.expires &&
	       entry->is.expires <= ww_jobs_time(entry->is.wall ? &jobs->wall : &jobs->elapsed);
}

int ww_jobs_pass_by(struct jobs_local *jobs, const struct entry *entry)
{
	struct image image = entry->is;

	if (!is_expired(jobs, entry))
		return 0;
	image.is_over = 1;
	int error = ww_jobs_place(jobs, entry->id, &image);
	return error ? error : 1;
}

int ww_jobs_expire_now(struct jobs_local *jobs, uint64_t id)
{
	struct entry *entry = ww_jobs_find(jobs, id);

	return entry && is_expired(jobs, entry) ? ww_jobs_expire(jobs, entry) : WW_OK;
}

int ww_jobs_expire(struct jobs_local *jobs, struct entry *entry)
{
	const struct image none = {0};
	struct job_record old;
	int error = ww_jobs_read_to_write(jobs, entry->id, &old);

	/* What cannot be read cannot be delivered either: a check reports it. */
	if (error == WW_ECORRUPT || error == WW_ENOTFOUND)
		return ww_jobs_place(jobs, entry->id, &none);
	return ww_jobs_broken(jobs, error ? error : end(jobs, entry->id, &old));
}
