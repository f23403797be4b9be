/* Forecasts how many jobs come due in each of the next spans of time, from the counts of the slots. */
#include <string.h>

#include "lib/jobs/local/local_internal.h"
#include "lib/jobs/store/slot.h"

/* Where spans divide a slot, its jobs are read one by one. One call reads so many, since other calls wait meanwhile. */
enum { READS_MOST = 20000 };

struct forecast {
	struct timeline *line;
	const struct jobs_call *call;
	uint32_t tube; /* or ALL_TUBES */
	uint64_t now;
	size_t reads; /* that are left */
};

static uint64_t span_of(const struct forecast *forecast, uint64_t due)
{
	return due > forecast->now ? (due - forecast->now) / forecast->call->ns : 0;
}

static void add(const struct forecast *forecast, uint64_t span, uint64_t jobs)
{
	if (span < forecast->call->count)
		forecast->call->counts[span] += jobs;
}

/* Divide so many jobs evenly among the spans that this time belongs to. */
static void spread(const struct forecast *forecast, uint64_t from, uint64_t to, uint64_t jobs)
{
	double each = (double)jobs / (double)(to - from);
	uint64_t last = span_of(forecast, to - 1);
	uint64_t given = 0;

	for (uint64_t span = span_of(forecast, from); span <= last && span < forecast->call->count; span++) {
		uint64_t up_to = jobs;
		if (span < last)
			up_to = (uint64_t)((double)(forecast->now + (span + 1) * forecast->call->ns - from) * each);
		add(forecast, span, up_to - given);
		given = up_to;
	}
}

/* Count the jobs of a slot one by one, and spread those for which no reads are left. */
static int read_slot(struct forecast *forecast, const struct slot_count *count)
{
	const struct timeline *line = forecast->line;
	const struct store *store = &line->jobs->store;
	uint64_t end = slot_start(count->slot + 1);
	uint64_t at = slot_start(count->slot);
	uint64_t left = count->jobs;
	unsigned char from[8];
	struct store_bytes key;
	struct store_bytes value;

	store_write64(from, at);
	int error = store->ops->seek(store->self, line->table, (struct store_bytes){from, sizeof from}, &key, &value);
	for (; !error && left && forecast->reads; forecast->reads--) {
		struct job_record record;
		uint64_t id;
		error = ww_jobs_read_pair(line->table, key, value, &id, &record);
		if (error)
			return error;
		at = record.due;
		if (at >= end || span_of(forecast, at) >= forecast->call->count)
			return WW_OK;
		if (forecast->tube == ALL_TUBES || forecast->tube == record.tube) {
			add(forecast, span_of(forecast, at), 1);
			left--;
		}
		error = store->ops->next(store->self, line->table, &key, &value);
	}
	if (!error && left)
		spread(forecast, at, end, left);
	return error == WW_ENOTFOUND ? WW_OK : error;
}

static int forecast_line(const struct jobs_call *call, uint32_t tube, struct timeline *line)
{
	struct forecast forecast = {line, call, tube, ww_jobs_time(line), READS_MOST};
	int wall = line == &line->jobs->wall;
	struct slot_count count;
	int error = line->driver ? ww_jobs_counts_seek(line->jobs, tube, wall, 0, &count) : WW_ENOTFOUND;

	for (; !error; error = ww_jobs_counts_next(line->jobs, &count)) {
		uint64_t first = span_of(&forecast, slot_start(count.slot));
		if (first >= call->count)
			return WW_OK;
		if (first == span_of(&forecast, slot_start(count.slot + 1) - 1))
			add(&forecast, first, count.jobs);
		else
			error = read_slot(&forecast, &count);
		if (error)
			return error;
	}
	return error == WW_ENOTFOUND ? WW_OK : error;
}

int ww_jobs_local_forecast(struct jobs_local *jobs, struct jobs_call *call)
{
	const struct tube *tube = call->tube ? ww_jobs_tube_find(jobs, call->tube) : NULL;
	int error;

	memset(call->counts, 0, call->count * sizeof *call->counts);
	if (call->tube && !tube)
		return WW_OK;
	error = forecast_line(call, tube ? tube->number : ALL_TUBES, &jobs->elapsed);
	return error ? error : forecast_line(call, tube ? tube->number : ALL_TUBES, &jobs->wall);
}
