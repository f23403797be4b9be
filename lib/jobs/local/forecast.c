/* Forecasts how many jobs come due in each of the next spans of time, from the counts of the slots. */
#include "lib/jobs/local/forecast.h"

#include <string.h>

#include "lib/jobs/local/counts.h"
#include "lib/jobs/local/local.h"
#include "lib/jobs/local/queue.h"
#include "lib/jobs/local/records.h"
#include "lib/jobs/local/timeline.h"
#include "lib/jobs/local/tube.h"
#include "lib/jobs/store/slot.h"

/*
 * If spans divide a slot, its jobs are read one by one. One call reads at most this many, because other calls wait
 * meanwhile. A slot with more jobs is not read: going through it in order would cost as much as reading all of it. The
 * present slot is an exception, since its beginning is already in order.
 */
enum { READS_MOST = 500 };

struct forecast_call {
	const char *tube; /* or NULL: of all tubes */
	uint64_t span;
	uint64_t *counts;
	size_t count;
};

struct forecast {
	struct timeline *line;
	const struct forecast_call *call;
	uint32_t tube; /* or ALL_TUBES */
	uint64_t now;
	uint64_t present; /* jobs that are ready or reserved, without those that were counted */
	size_t reads;     /* that are left */
};

static uint64_t span_of(const struct forecast *forecast, uint64_t due)
{
	return due > forecast->now ? (due - forecast->now) / forecast->call->span : 0;
}

static void add(const struct forecast *forecast, uint64_t span, uint64_t jobs)
{
	if (span < forecast->call->count)
		forecast->call->counts[span] += jobs;
}

/* Divide this many jobs evenly among the spans that this time belongs to. */
static void spread(const struct forecast *forecast, uint64_t from, uint64_t to, uint64_t jobs)
{
	double each = (double)jobs / (double)(to - from);
	uint64_t last = span_of(forecast, to - 1);
	uint64_t given = 0;

	for (uint64_t span = span_of(forecast, from); span <= last && span < forecast->call->count; span++) {
		uint64_t up_to = jobs;
		if (span < last)
			up_to = (uint64_t)((double)(forecast->now + (span + 1) * forecast->call->span - from) * each);
		add(forecast, span, up_to - given);
		given = up_to;
	}
}

/* These are due already. */
static void add_past(struct forecast *forecast, uint64_t jobs)
{
	add(forecast, 0, jobs);
	forecast->present -= jobs < forecast->present ? jobs : forecast->present;
}

/* A storage that has `quiet` would have to read all jobs of a later hour, and of what lies there with them. */
static int is_slow(const struct forecast *forecast, uint64_t at)
{
	return forecast->line->jobs->store.ops->quiet && at - forecast->now > SLOT_NS;
}

/* Count the jobs of a slot that are still to come one by one, and spread those for which no reads are left. */
static int read_slot(struct forecast *forecast, const struct slot_count *count)
{
	const struct timeline *line = forecast->line;
	const struct store *store = &line->jobs->store;
	uint64_t end = slot_start(count->slot + 1);
	uint64_t at = slot_start(count->slot);
	uint64_t left = count->jobs;
	uint64_t all;
	unsigned char from[8];
	struct store_bytes key;
	struct store_bytes value;

	int error = ww_jobs_counts_all(line->jobs, count, &all);
	if (error)
		return error;
	if (at > forecast->now && (all > forecast->reads || is_slow(forecast, at))) {
		spread(forecast, at, end, left);
		return WW_OK;
	}
	at = at > forecast->now ? at : forecast->now + 1;
	store_write64(from, at);
	error = store->ops->seek(store->self, line->table, (struct store_bytes){from, sizeof from}, &key, &value);
	for (; !error && left && forecast->reads; forecast->reads--) {
		struct job_record record;
		uint64_t id;
		error = ww_jobs_read_pair(line->table, key, value, &id, &record);
		if (error)
			return error;
		if (record.due >= end)
			break;
		at = record.due;
		if (forecast->tube == ALL_TUBES || forecast->tube == record.tube) {
			add(forecast, span_of(forecast, at), 1);
			left--;
		}
		error = store->ops->next(store->self, line->table, &key, &value);
	}
	if (error && error != WW_ENOTFOUND)
		return error;
	/* The others are due already, or have not been read. */
	uint64_t past = forecast->reads || forecast->present > left ? left : forecast->present;
	add_past(forecast, past);
	if (left > past)
		spread(forecast, at, end, left - past);
	return WW_OK;
}

static int forecast_line(struct forecast *forecast, struct timeline *line)
{
	struct jobs_local *jobs = line->jobs;
	int wall = line == &jobs->wall;
	struct slot_count count;
	int error = line->driver ? ww_jobs_counts_seek(jobs, forecast->tube, wall, 0, &count) : WW_ENOTFOUND;

	forecast->line = line;
	forecast->now = ww_jobs_time(line);
	for (; !error; error = ww_jobs_counts_next(jobs, &count)) {
		uint64_t last = slot_start(count.slot + 1) - 1;
		uint64_t span = span_of(forecast, slot_start(count.slot));
		if (span >= forecast->call->count)
			return WW_OK;
		if (last <= forecast->now)
			add_past(forecast, count.jobs);
		else if (span == span_of(forecast, last))
			add(forecast, span, count.jobs);
		else
			error = read_slot(forecast, &count);
		if (error)
			return error;
	}
	return error == WW_ENOTFOUND ? WW_OK : error;
}

static int forecast_jobs(struct jobs_local *jobs, void *arguments)
{
	const struct forecast_call *call = arguments;
	const struct tube *tube = call->tube ? ww_jobs_tube_find(jobs, call->tube) : NULL;
	struct forecast forecast = {.call = call,
	    .tube = tube ? tube->number : ALL_TUBES,
	    .present = tube ? tube->ready + tube->reserved : jobs->all.ready + jobs->all.reserved,
	    .reads = READS_MOST};

	memset(call->counts, 0, call->count * sizeof *call->counts);
	if (call->tube && !tube)
		return WW_OK;
	int error = forecast_line(&forecast, &jobs->elapsed);
	return error ? error : forecast_line(&forecast, &jobs->wall);
}

int ww_jobs_local_forecast(struct ww_jobs *handle, const char *tube, uint64_t span, uint64_t *counts, size_t count)
{
	struct forecast_call call = {tube, span, counts, count};

	return ww_jobs_submit(local_of(handle), forecast_jobs, &call);
}
