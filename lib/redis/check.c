/* The check of a store: whether its keys in Redis agree with each other. */
#include <limits.h>
#include <stdio.h>

#include "lib/redis/redis_internal.h"

/* Jobs that one call looks at. */
enum { CHECK_BATCH = 500 };

struct inspection {
	struct redis_store *store;
	ww_jobs_problem_fn *problem;
	void *context;
	int problems;
};

static void report(struct inspection *inspection, uint32_t shard, const char *what)
{
	char text[512];

	snprintf(text, sizeof text, "shard %u: %s", (unsigned)shard, what);
	if (inspection->problem)
		inspection->problem(text, inspection->context);
	if (inspection->problems < INT_MAX)
		inspection->problems++;
}

/* Check on in a shard's "jobs" or "keys". The script replies the next cursor, then the problems in words. */
static int check_some(struct inspection *inspection, uint32_t shard, const char *what, uint64_t *cursor)
{
	struct redis_store *store = inspection->store;
	struct few_words few;
	struct words *words = ww_redis_words_few(store, &few);
	redisReply *reply;

	ww_redis_words_number(words, *cursor);
	ww_redis_words_number(words, CHECK_BATCH);
	ww_redis_words_text(words, what);
	int error = ww_redis_call_list(store, &ww_redis_script_shard_check, shard, words, REDIS_CALL_AGAIN, 1, &reply);
	if (error)
		return error;
	*cursor = (uint64_t)ww_redis_call_value(reply->element[0]);
	for (size_t i = 1; i < reply->elements; i++)
		if (reply->element[i]->type == REDIS_REPLY_STRING)
			report(inspection, shard, reply->element[i]->str);
	ww_redis_call_free(reply);
	return WW_OK;
}

int ww_redis_check(struct ww_jobs *jobs, ww_jobs_problem_fn *problem, void *context)
{
	struct redis_store *store = store_of(jobs);
	struct inspection inspection = {store, problem, context, 0};
	int error = WW_OK;

	for (uint32_t i = 0; i < 2 * store->shards && !error; i++) {
		uint64_t cursor = 0;
		do
			error = check_some(&inspection, i / 2, i % 2 ? "keys" : "jobs", &cursor);
		while (!error && cursor);
	}
	return error ? error : inspection.problems;
}
