/* The end of a lease: finish, release, bury, or time that is up; and touch, which puts it off. */
#include <string.h>

#include "lib/base/random.h"
#include "lib/jobs/local/local_internal.h"

/* Store a job and let memory know it as it is stored. */
int ww_jobs_settle(struct jobs_local *jobs, uint64_t id, const struct job_record *old, struct job_record *record)
{
	int error = ww_jobs_write(jobs, id, old, record);

	if (error)
		return error;
	struct image image = ww_jobs_image(jobs, record);
	return ww_jobs_place(jobs, id, &image);
}

struct ending {
	uint64_t id;
	uint64_t token;
	uint32_t priority;
	uint64_t delay;
	const char *error;
	uint64_t *ends;
};

/* The entry of a lease, its record, and the same with what memory knows beside it. */
static int leased(struct jobs_local *jobs, const struct ending *ending, struct entry **entry, struct job_record *old,
    struct job_record *record)
{
	int error;

	*entry = ww_jobs_find(jobs, ending->id);
	if (!*entry || (*entry)->is.state != WW_JOB_RESERVED || (*entry)->is.token != ending->token)
		return WW_ESTALE;
	error = ww_jobs_writing(jobs);
	if (!error)
		error = ww_jobs_read(jobs, ending->id, old);
	if (error)
		return error;
	*record = *old;
	ww_jobs_merge(record, *entry);
	return WW_OK;
}

static void give_reason(struct job_record *record, const char *error)
{
	if (error)
		record->error = (struct store_bytes){error, strnlen(error, WW_JOB_ERROR_MAX)};
}

static int bury_it(struct jobs_local *jobs, uint64_t id, const struct job_record *old, struct job_record *record)
{
	int error = ww_jobs_tube_count(jobs, ww_jobs_tube_number(jobs, old->tube), -1, 1, 0, 0);

	record->buried = ++jobs->meta.burials;
	record->buries++;
	record->version++;
	return error ? error : ww_jobs_settle(jobs, id, old, record);
}

static int finish(struct jobs_local *jobs, void *arguments)
{
	const struct ending *ending = arguments;
	const struct image none = {0};
	struct job_record old;
	struct job_record record;
	struct entry *entry;
	int error = leased(jobs, ending, &entry, &old, &record);

	if (error)
		return error;
	if (record.period) {
		/* One that was kicked before its time has that still before it. */
		if (record.base <= ww_jobs_time(ww_jobs_timeline(jobs, entry->is.wall)))
			record.base = time_after(record.base, (entry->is.missed + 1) * record.period);
		record.due = record.base;
		record.tries = 0;
		record.error.size = 0;
		record.version++;
		return ww_jobs_settle(jobs, ending->id, &old, &record);
	}
	jobs->meta.ended++;
	error = ww_jobs_tube_count(jobs, ww_jobs_tube_number(jobs, old.tube), -1, 0, 0, 1);
	if (!error)
		error = ww_jobs_erase(jobs, ending->id, &old);
	return error ? error : ww_jobs_place(jobs, ending->id, &none);
}

int ww_jobs_local_finish(struct ww_jobs *jobs, uint64_t id, uint64_t token)
{
	struct ending ending = {.id = id, .token = token};

	return ww_jobs_submit(local_of(jobs), finish, &ending);
}

struct finish_many {
	struct ww_job_end *ends;
	size_t count;
};

static int finish_many(struct jobs_local *jobs, void *arguments)
{
	const struct finish_many *call = arguments;
	int error = ww_jobs_writing(jobs);

	for (size_t i = 0; i < call->count && !error; i++) {
		struct ending ending = {.id = call->ends[i].id, .token = call->ends[i].token};
		call->ends[i].result = finish(jobs, &ending);
		error = jobs->broken;
	}
	return error;
}

int ww_jobs_local_finish_many(struct ww_jobs *jobs, struct ww_job_end *ends, size_t count)
{
	struct finish_many call = {ends, count};
	int error;

	for (size_t i = 0; i < count; i++)
		ends[i].result = WW_OK;
	error = ww_jobs_submit(local_of(jobs), finish_many, &call);
	for (size_t i = 0; error && i < count; i++)
		if (ends[i].result == WW_OK)
			ends[i].result = error;
	return error;
}

/* After so many tries: doubled with each, up to the greatest, less up to a quarter. */
static uint64_t backoff_of(struct jobs_local *jobs, const struct job_record *record)
{
	uint64_t delay = record->backoff;

	for (uint64_t i = 1; i < record->tries && delay < record->backoff_max; i++)
		delay *= 2;
	if (delay > record->backoff_max && record->backoff_max)
		delay = record->backoff_max;
	return delay - (delay ? random_below(&jobs->random, delay / 4 + 1) : 0);
}

/* An attempt has failed: again after a delay, or never. Returns 1 if it is buried. */
static int try_again(
    struct jobs_local *jobs, uint64_t id, const struct job_record *old, struct job_record *record, uint64_t delay)
{
	int error;

	record->tries++;
	if (record->attempts && record->tries >= record->attempts) {
		error = bury_it(jobs, id, old, record);
		return error ? error : 1;
	}
	if (delay == WW_JOB_BACKOFF)
		delay = backoff_of(jobs, record);
	record->delay = delay;
	record->due = time_after(ww_jobs_time(ww_jobs_timeline(jobs, (record->flags & WW_JOB_WALL) != 0)), delay);
	record->version++;
	return ww_jobs_settle(jobs, id, old, record);
}

static int release(struct jobs_local *jobs, void *arguments)
{
	const struct ending *ending = arguments;
	struct job_record old;
	struct job_record record;
	struct entry *entry;
	int error = leased(jobs, ending, &entry, &old, &record);

	if (error)
		return error;
	give_reason(&record, ending->error);
	record.priority = ending->priority;
	record.releases++;
	return try_again(jobs, ending->id, &old, &record, ending->delay);
}

int ww_jobs_local_release(
    struct ww_jobs *jobs, uint64_t id, uint64_t token, uint32_t priority, uint64_t delay, const char *error)
{
	struct ending ending = {.id = id, .token = token, .priority = priority, .delay = delay, .error = error};

	return ww_jobs_submit(local_of(jobs), release, &ending);
}

/* It is stored as one that waits, and only memory knows of the lease. */
static int give_back(struct jobs_local *jobs, void *arguments)
{
	const struct ending *ending = arguments;
	const struct entry *entry = ww_jobs_find(jobs, ending->id);

	if (!entry || entry->is.state != WW_JOB_RESERVED || entry->is.token != ending->token)
		return WW_ESTALE;
	struct image image = entry->is;
	image.state = WW_JOB_READY;
	image.token = 0;
	return ww_jobs_place(jobs, ending->id, &image);
}

int ww_jobs_local_return(struct ww_jobs *jobs, uint64_t id, uint64_t token)
{
	struct ending ending = {.id = id, .token = token};

	return ww_jobs_submit(local_of(jobs), give_back, &ending);
}

static int bury(struct jobs_local *jobs, void *arguments)
{
	const struct ending *ending = arguments;
	struct job_record old;
	struct job_record record;
	struct entry *entry;
	int error = leased(jobs, ending, &entry, &old, &record);

	if (error)
		return error;
	give_reason(&record, ending->error);
	record.priority = ending->priority;
	return bury_it(jobs, ending->id, &old, &record);
}

int ww_jobs_local_bury(struct ww_jobs *jobs, uint64_t id, uint64_t token, uint32_t priority, const char *error)
{
	struct ending ending = {.id = id, .token = token, .priority = priority, .error = error};

	return ww_jobs_submit(local_of(jobs), bury, &ending);
}

static int touch(struct jobs_local *jobs, void *arguments)
{
	const struct ending *ending = arguments;
	const struct entry *entry = ww_jobs_find(jobs, ending->id);
	struct job_record record;
	int error;

	if (!entry || entry->is.state != WW_JOB_RESERVED || entry->is.token != ending->token)
		return WW_ESTALE;
	error = ww_jobs_read(jobs, ending->id, &record);
	if (error)
		return error;
	struct image image = entry->is;
	image.ends = time_after(ww_jobs_time(&jobs->elapsed), record.run);
	error = ww_jobs_place(jobs, ending->id, &image);
	if (!error && ending->ends)
		*ending->ends = image.ends;
	return error;
}

int ww_jobs_local_touch(struct ww_jobs *jobs, uint64_t id, uint64_t token, uint64_t *ends)
{
	struct ending ending = {.id = id, .token = token, .ends = ends};

	return ww_jobs_submit(local_of(jobs), touch, &ending);
}

int ww_jobs_time_out(struct jobs_local *jobs, struct entry *entry)
{
	struct image image = entry->is;
	struct job_record old;
	struct job_record record;
	int error = ww_jobs_read(jobs, entry->id, &old);

	jobs->timeouts++;
	image.timeouts++;
	/* Without limit and backoff nothing has to be written: it is stored as one that waits. */
	if (error || (!old.attempts && !old.backoff)) {
		image.state = WW_JOB_READY;
		image.token = 0;
		image.tries++;
		return ww_jobs_place(jobs, entry->id, &image);
	}
	record = old;
	ww_jobs_merge(&record, entry);
	record.timeouts++;
	give_reason(&record, "the time to run was up");
	error = try_again(jobs, entry->id, &old, &record, WW_JOB_BACKOFF);
	return error < 0 ? error : WW_OK;
}
