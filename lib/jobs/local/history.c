/*
 * The outcomes of runs: for jobs that ask for it (keep), one pair of META for each end of a lease.
 *
 *     META   "run", number -> when, how it ended, until when it is kept | tube, key, error, report
 *
 * Numbers have no gaps. A new run has the next one, and the first ones are forgotten when there are more than
 * history_max or when their time is over. The first and the last number thus give the count, which is not stored. A run
 * whose time is over, but that comes after one whose time is not, is only hidden.
 *
 * A worker may report on a run before it ends. The report is in memory, under the job's id and the lease's token.
 */
#include "lib/jobs/local/history.h"

#include <string.h>

#include "lib/jobs/local/clock.h"
#include "lib/jobs/local/entries.h"
#include "lib/jobs/local/events.h"
#include "lib/jobs/local/local.h"
#include "lib/jobs/local/memory.h"
#include "lib/jobs/local/queue.h"
#include "lib/jobs/local/records.h"
#include "lib/jobs/local/timeline.h"
#include "lib/jobs/local/tube.h"

#define RUN_KEY "run"

enum {
	LOOK_MAX = 1000, /* in one call: the store is locked meanwhile */
	FORMAT = 1,
	PREFIX = sizeof RUN_KEY - 1,
	KEY_SIZE = PREFIX + 8,
	HEAD = 1 + 1 + 4 * 8 + 1 + 1 + 2, /* format, outcome, four numbers, lengths of tube, key and error */
	UNTIL = 1 + 1 + 3 * 8,
	VALUE_MAX = HEAD + WW_TUBE_MAX + WW_JOB_KEY_MAX + WW_JOB_ERROR_MAX + WW_JOB_REPORT_MAX,
	SIZE = 4,       /* before each that waits for the end of its batch */
	FORGET_MAX = 8, /* with each new run */
	SWEEP_LEAST = 64
};

struct run_report {
	UT_hash_handle hh;
	uint64_t id;
	uint64_t token;
	size_t size;
	unsigned char bytes[];
};

static struct store_bytes pair_key(unsigned char key[KEY_SIZE], uint64_t number)
{
	memcpy(key, RUN_KEY, PREFIX);
	store_write64(key + PREFIX, number);
	return (struct store_bytes){key, KEY_SIZE};
}

int ww_jobs_is_run(struct store_bytes key)
{
	return key.size == KEY_SIZE && memcmp(key.data, RUN_KEY, PREFIX) == 0;
}

static uint64_t number_of(struct store_bytes key)
{
	return store_read64((const unsigned char *)key.data + PREFIX);
}

/* ---- Reports */

static void drop_report(struct jobs_local *jobs, struct run_report *report)
{
	HASH_DEL(jobs->reports, report);
	jobs->report_count--;
	ww_jobs_give(jobs, report, sizeof *report + report->size);
}

static int has_lease(struct jobs_local *jobs, uint64_t id, uint64_t token)
{
	const struct entry *entry = ww_jobs_find(jobs, id);

	return entry && entry->is.state == WW_JOB_RESERVED && entry->is.token == token;
}

/* Leases end without a word here. As many reports as there were after the last look may have lost theirs. */
static void sweep_reports(struct jobs_local *jobs)
{
	struct run_report *report;
	struct run_report *next;

	if (jobs->report_count < SWEEP_LEAST || jobs->report_count < 2 * jobs->reports_swept)
		return;
	HASH_ITER(hh, jobs->reports, report, next)
		if (!has_lease(jobs, report->id, report->token))
			drop_report(jobs, report);
	jobs->reports_swept = jobs->report_count;
}

struct report_call {
	uint64_t id;
	uint64_t token;
	const void *report;
	size_t size;
};

static int take_report(struct jobs_local *jobs, void *arguments)
{
	const struct report_call *call = arguments;
	struct job_record record;
	struct run_report *former;
	struct run_report *report;
	int error;

	if (!has_lease(jobs, call->id, call->token))
		return WW_ESTALE;
	error = ww_jobs_read(jobs, call->id, &record);
	if (error || !record.keep)
		return error;
	sweep_reports(jobs);
	report = ww_jobs_resize(jobs, NULL, 0, sizeof *report + call->size);
	if (!report)
		return WW_ENOMEM;
	report->id = call->id;
	report->token = call->token;
	report->size = call->size;
	if (report->size)
		memcpy(report->bytes, call->report, report->size);
	HASH_FIND(hh, jobs->reports, &call->id, sizeof call->id, former);
	if (former)
		drop_report(jobs, former);
	HASH_ADD(hh, jobs->reports, id, sizeof report->id, report);
	jobs->report_count++;
	return WW_OK;
}

int ww_jobs_local_report(struct ww_jobs *handle, uint64_t id, uint64_t token, const void *report, size_t length)
{
	struct report_call call = {id, token, report, length};

	return ww_jobs_submit(local_of(handle), take_report, &call);
}

/* ---- A run */

static unsigned char *add_bytes(unsigned char *to, struct store_bytes bytes)
{
	if (bytes.size)
		memcpy(to, bytes.data, bytes.size);
	return to + bytes.size;
}

static size_t write_run(struct jobs_local *jobs, const struct ended_run *run, unsigned char *to)
{
	const struct job_record *record = run->record;
	const struct tube *tube = ww_jobs_tube_number(jobs, record->tube);
	uint64_t now = ww_jobs_time(&jobs->elapsed);
	const uint64_t numbers[] = {run->id, run->attempt, ww_jobs_clock_wall(jobs), time_after(now, record->keep)};
	struct store_bytes error = {"", 0};
	struct run_report *report;
	unsigned char *at = to;

	if (run->outcome != WW_EVENT_FINISHED && run->outcome != WW_EVENT_EXPIRED)
		error = record->error;
	HASH_FIND(hh, jobs->reports, &run->id, sizeof run->id, report);
	*at++ = FORMAT;
	*at++ = (unsigned char)run->outcome;
	for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++, at += 8)
		store_write64(at, numbers[i]);
	*at++ = (unsigned char)tube->name_length;
	*at++ = (unsigned char)record->key.size;
	*at++ = (unsigned char)(error.size >> 8);
	*at++ = (unsigned char)error.size;
	at = add_bytes(at, (struct store_bytes){tube->name, tube->name_length});
	at = add_bytes(at, record->key);
	at = add_bytes(at, error);
	if (report && report->token == run->token)
		at = add_bytes(at, (struct store_bytes){report->bytes, report->size});
	return (size_t)(at - to);
}

static int is_outcome(unsigned char kind)
{
	return kind == WW_EVENT_FINISHED || kind == WW_EVENT_RELEASED || kind == WW_EVENT_TIMED_OUT ||
	       kind == WW_EVENT_BURIED || kind == WW_EVENT_EXPIRED;
}

/* What a pair says; `until` is when it is forgotten. */
static int read_run(struct store_bytes key, struct store_bytes value, struct ww_job_run *run, uint64_t *until,
    char tube[WW_TUBE_MAX + 1], char error[WW_JOB_ERROR_MAX + 1])
{
	const unsigned char *at = value.data;
	size_t lengths[3];
	uint64_t numbers[4];

	if (value.size < HEAD || value.size > VALUE_MAX || at[0] != FORMAT || !is_outcome(at[1]))
		return WW_ECORRUPT;
	*run = (struct ww_job_run){
	    .number = number_of(key), .outcome = (enum ww_event_kind)at[1], .tube = tube, .error = error};
	for (int i = 0; i < 4; i++)
		numbers[i] = store_read64(at + 2 + 8 * i);
	at += 2 + sizeof numbers;
	lengths[0] = at[0];
	lengths[1] = at[1];
	lengths[2] = (size_t)at[2] << 8 | at[3];
	at += 4;
	if (lengths[0] > WW_TUBE_MAX || lengths[1] > WW_JOB_KEY_MAX || lengths[2] > WW_JOB_ERROR_MAX ||
	    HEAD + lengths[0] + lengths[1] + lengths[2] > value.size)
		return WW_ECORRUPT;
	run->job = numbers[0];
	run->attempt = (uint32_t)numbers[1];
	run->ended = numbers[2];
	*until = numbers[3];
	memcpy(tube, at, lengths[0]);
	tube[lengths[0]] = 0;
	run->key = at + lengths[0];
	run->key_length = lengths[1];
	memcpy(error, at + lengths[0] + lengths[1], lengths[2]);
	error[lengths[2]] = 0;
	run->report = at + lengths[0] + lengths[1] + lengths[2];
	run->report_length = value.size - HEAD - lengths[0] - lengths[1] - lengths[2];
	return WW_OK;
}

/* ---- Keeping and forgetting */

/* The first goes if there are too many, or its time is over, or it cannot be read. Returns 1 if it stays. */
static int forget_first(struct jobs_local *jobs)
{
	char tube[WW_TUBE_MAX + 1];
	char error_text[WW_JOB_ERROR_MAX + 1];
	unsigned char key[KEY_SIZE];
	struct store_bytes value;
	struct ww_job_run run;
	uint64_t until;
	struct store_bytes first = pair_key(key, jobs->meta.first_run);
	int error = jobs->store.ops->get(jobs->store.self, STORE_META, first, &value);

	if (error && error != WW_ENOTFOUND)
		return error;
	if (!error && jobs->meta.last_run - jobs->meta.first_run < jobs->config.history_max &&
	    !read_run(first, value, &run, &until, tube, error_text) && until > ww_jobs_time(&jobs->elapsed))
		return 1;
	if (!error)
		error = jobs->store.ops->remove(jobs->store.self, STORE_META, first);
	jobs->meta.first_run++;
	return error == WW_ENOTFOUND ? WW_OK : error;
}

/*
 * What a store returns is valid until its next change, and the job's end is not written yet. So runs are stored at the
 * end of the batch. Without memory a run is lost: the end of its job matters more.
 */
void ww_jobs_end_run(struct jobs_local *jobs, const struct ended_run *run)
{
	struct ended_runs *runs = &jobs->runs;

	ww_jobs_note_event(jobs, run->outcome, run->id, run->record, run->attempt);
	if (!run->record->keep || !jobs->config.history_max)
		return;
	if (runs->room - runs->size < SIZE + VALUE_MAX) {
		size_t room = 2 * runs->room + SIZE + VALUE_MAX;
		unsigned char *bytes = ww_jobs_resize(jobs, runs->bytes, runs->room, room);
		if (!bytes)
			return;
		runs->bytes = bytes;
		runs->room = room;
	}
	size_t size = write_run(jobs, run, runs->bytes + runs->size + SIZE);
	store_write32(runs->bytes + runs->size, (uint32_t)size);
	runs->size += SIZE + size;
}

static int store_run(struct jobs_local *jobs, struct store_bytes value)
{
	unsigned char key[KEY_SIZE];
	int error;

	/* On a full disk too, it matters more that jobs can end. */
	if (jobs->store.ops->room(jobs->store.self, value.size) != WW_OK)
		return WW_OK;
	error = jobs->store.ops->put(jobs->store.self, STORE_META, pair_key(key, ++jobs->meta.last_run), value);
	for (int i = 0; i < FORGET_MAX && !error && jobs->meta.first_run < jobs->meta.last_run; i++)
		error = forget_first(jobs);
	return error < 0 ? error : WW_OK;
}

int ww_jobs_history_store(struct jobs_local *jobs)
{
	struct ended_runs *runs = &jobs->runs;
	int error = WW_OK;

	for (size_t at = 0; at < runs->size && !error;) {
		size_t size = store_read32(runs->bytes + at);
		error = store_run(jobs, (struct store_bytes){runs->bytes + at + SIZE, size});
		at += SIZE + size;
	}
	return error;
}

void ww_jobs_history_close(struct jobs_local *jobs)
{
	ww_jobs_give(jobs, jobs->runs.bytes, jobs->runs.room);
	jobs->runs = (struct ended_runs){0};
	while (jobs->reports)
		drop_report(jobs, jobs->reports);
}

int ww_jobs_history_open(struct jobs_local *jobs)
{
	unsigned char from[KEY_SIZE];
	struct store_bytes key;
	struct store_bytes value;
	int error = jobs->store.ops->seek(jobs->store.self, STORE_META, pair_key(from, 0), &key, &value);

	jobs->meta.first_run = 1;
	jobs->meta.last_run = 0;
	if (error || !ww_jobs_is_run(key))
		return error == WW_ENOTFOUND ? WW_OK : error;
	jobs->meta.first_run = number_of(key);
	error = jobs->store.ops->before(jobs->store.self, STORE_META, pair_key(from, UINT64_MAX), &key, &value);
	if (!error)
		jobs->meta.last_run = number_of(key);
	return error;
}

/* Let a run be kept until a later time, or an earlier one. What cannot be read stays as it is. */
static int shift_run(struct jobs_local *jobs, struct store_bytes key, struct store_bytes value, int64_t shift)
{
	unsigned char bytes[VALUE_MAX];
	uint64_t until;

	if (value.size < HEAD || value.size > sizeof bytes)
		return WW_OK;
	memcpy(bytes, value.data, value.size);
	until = store_read64(bytes + UNTIL);
	store_write64(bytes + UNTIL, shift < 0 && until < (uint64_t)-shift ? 0 : until + (uint64_t)shift);
	return jobs->store.ops->put(jobs->store.self, STORE_META, key, (struct store_bytes){bytes, value.size});
}

int ww_jobs_history_shift(struct jobs_local *jobs, int64_t shift)
{
	uint64_t number = 0;
	int error = WW_OK;

	while (shift && !error) {
		unsigned char from[KEY_SIZE];
		struct store_bytes key;
		struct store_bytes value;

		error = jobs->store.ops->seek(jobs->store.self, STORE_META, pair_key(from, number), &key, &value);
		if (error || !ww_jobs_is_run(key))
			break;
		number = number_of(key) + 1;
		error = shift_run(jobs, pair_key(from, number - 1), value, shift);
	}
	return error == WW_ENOTFOUND ? WW_OK : error;
}

/* ---- Telling */

static int is_meant(const struct ww_run_filter *filter, const struct ww_job_run *run)
{
	if (filter->job && filter->job != run->job)
		return 0;
	if (filter->tube && strcmp(filter->tube, run->tube) != 0)
		return 0;
	return filter->prefix_length <= run->key_length &&
	       (!filter->prefix_length || memcmp(filter->prefix, run->key, filter->prefix_length) == 0);
}

struct history_call {
	const struct ww_run_filter *filter;
	size_t limit;
	ww_run_fn *fn;
	void *context;
	uint64_t next;
};

static int list_runs(struct jobs_local *jobs, void *arguments)
{
	struct history_call *call = arguments;
	const struct ww_run_filter *filter = call->filter;
	uint64_t before = filter->before ? filter->before : UINT64_MAX;
	uint64_t shown = 0;
	uint64_t next = 0;
	int result = 0;

	for (int looks = 0; !result && shown < call->limit && looks < LOOK_MAX; looks++) {
		char tube[WW_TUBE_MAX + 1];
		char error_text[WW_JOB_ERROR_MAX + 1];
		unsigned char from[KEY_SIZE];
		struct store_bytes key;
		struct store_bytes value;
		struct ww_job_run run;
		uint64_t until;

		result = jobs->store.ops->before(jobs->store.self, STORE_META, pair_key(from, before), &key, &value);
		if (result || !ww_jobs_is_run(key)) {
			result = result == WW_ENOTFOUND ? WW_OK : result;
			next = 0;
			break;
		}
		before = number_of(key);
		next = before > jobs->meta.first_run ? before : 0;
		if (read_run(key, value, &run, &until, tube, error_text) || until <= ww_jobs_time(&jobs->elapsed) ||
		    !is_meant(filter, &run))
			continue;
		result = call->fn(&run, call->context);
		shown++;
	}
	call->next = next;
	return result;
}

int ww_jobs_local_history(struct ww_jobs *handle, const struct ww_run_filter *filter, size_t limit, ww_run_fn *fn,
    void *context, uint64_t *next)
{
	struct history_call call = {.filter = filter, .limit = limit, .fn = fn, .context = context};
	int result = ww_jobs_submit(local_of(handle), list_runs, &call);

	if (result >= 0 && next)
		*next = call.next;
	return result;
}
