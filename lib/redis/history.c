/* What became of runs. Each shard has those of its jobs, in order of time; a call puts those of all shards in one order. */

#include "lib/redis/redis_internal.h"

/* A run as shard_history.lua replies it. */
enum { RUN_TIME, RUN_ID, RUN_OUTCOME, RUN_ATTEMPT, RUN_TUBE, RUN_KEY, RUN_REASON, RUN_REPORT, RUN_WORDS };

/* Of one call. */
enum { RUNS_MOST = 1000 };

/* The number of a run is its time in us, and its shard, as each shard has only one run of a time. */
#define NUMBER_SHARDS UINT64_C(65536)

int ww_redis_history_report(struct ww_jobs *jobs, uint64_t id, uint64_t token, const void *report, size_t length)
{
	struct redis_store *store = store_of(jobs);
	struct few_words few;
	struct words *words = ww_redis_words_few(store, &few);

	ww_redis_words_number(words, id);
	ww_redis_words_number(words, token);
	ww_redis_words_bytes(words, report, length);
	return (int)ww_redis_call_number(
	    store, &ww_redis_script_shard_report, shard_of(store, id), words, REDIS_CALL_AGAIN);
}

struct shard_runs {
	uint32_t shard;
	size_t at; /* the next of its runs */
	const redisReply *runs;
};

static int is_outcome(const redisReply *reply)
{
	uint64_t kind = (uint64_t)ww_redis_call_value(reply);

	return kind == WW_EVENT_FINISHED || kind == WW_EVENT_RELEASED || kind == WW_EVENT_TIMED_OUT ||
	       kind == WW_EVENT_BURIED;
}

/* The number of a run. What cannot be read ends its row. */
static uint64_t number_at(const struct shard_runs *row)
{
	const redisReply *run = row->at < row->runs->elements ? row->runs->element[row->at] : NULL;

	if (!run || run->type != REDIS_REPLY_ARRAY || run->elements != RUN_WORDS ||
	    !is_outcome(run->element[RUN_OUTCOME]))
		return 0;
	return (uint64_t)ww_redis_call_value(run->element[RUN_TIME]) * NUMBER_SHARDS + row->shard;
}

static const char *text_of(const redisReply *reply)
{
	return reply->type == REDIS_REPLY_STRING ? reply->str : "";
}

static int show(const struct shard_runs *row, ww_run_fn *fn, void *context)
{
	redisReply *const *of = row->runs->element[row->at]->element;
	const struct ww_job_run run = {.number = number_at(row),
	    .job = (uint64_t)ww_redis_call_value(of[RUN_ID]),
	    .outcome = (enum ww_event_kind)ww_redis_call_value(of[RUN_OUTCOME]),
	    .attempt = (uint32_t)ww_redis_call_value(of[RUN_ATTEMPT]),
	    .ended = (uint64_t)ww_redis_call_value(of[RUN_TIME]) * 1000,
	    .tube = text_of(of[RUN_TUBE]),
	    .key = text_of(of[RUN_KEY]),
	    .key_length = of[RUN_KEY]->len,
	    .error = text_of(of[RUN_REASON]),
	    .report = text_of(of[RUN_REPORT]),
	    .report_length = of[RUN_REPORT]->len};

	return fn(&run, context);
}

/* Tell the runs of all rows in order. Returns as ww_jobs_history. */
static int show_all(
    struct shard_runs *rows, size_t count, uint64_t before, size_t limit, ww_run_fn *fn, void *context, uint64_t *next)
{
	uint64_t last = 0;
	int result = 0;

	for (size_t shown = 0;; shown++) {
		struct shard_runs *first = NULL;
		uint64_t greatest = 0;
		for (size_t i = 0; i < count; i++) {
			while (before && number_at(&rows[i]) >= before)
				rows[i].at++;
			if (number_at(&rows[i]) > greatest) {
				first = &rows[i];
				greatest = number_at(first);
			}
		}
		if (!first)
			last = 0;
		if (!first || shown == limit || result)
			break;
		result = show(first, fn, context);
		last = greatest;
		first->at++;
	}
	if (next)
		*next = last;
	return result;
}

int ww_redis_history_list(struct ww_jobs *jobs, const struct ww_run_filter *filter, size_t limit, ww_run_fn *fn,
    void *context, uint64_t *next)
{
	struct redis_store *store = store_of(jobs);
	struct few_words few;
	struct words *words = ww_redis_words_few(store, &few);
	struct shard_runs *rows = store->allocator->allocate(store->allocator->user, store->shards * sizeof *rows);
	struct fan fan;
	int result;

	if (!rows)
		return WW_ENOMEM;
	limit = limit < RUNS_MOST ? limit : RUNS_MOST;
	ww_redis_words_number(words, filter->before / NUMBER_SHARDS);
	/* One may be of the time of `before`, and one more shows whether that was all. */
	ww_redis_words_number(words, limit + 2);
	ww_redis_words_text(words, filter->tube ? filter->tube : "");
	if (filter->job)
		ww_redis_words_number(words, filter->job);
	else
		ww_redis_words_text(words, "");
	ww_redis_words_bytes(words, filter->prefix, filter->prefix_length);
	result = ww_redis_call_all(store, &ww_redis_script_shard_history, words, 0, &fan);
	for (size_t i = 0; i < fan.count && !result; i++) {
		rows[i] = (struct shard_runs){.shard = (uint32_t)i, .runs = fan.calls[i].reply};
		if (rows[i].runs->type != REDIS_REPLY_ARRAY)
			result = (int)ww_redis_call_value(rows[i].runs);
	}
	if (!result)
		result = show_all(rows, fan.count, filter->before, limit, fn, context, next);
	ww_redis_call_fan_free(store, &fan);
	store->allocator->free(store->allocator->user, rows, store->shards * sizeof *rows);
	return result;
}
