/* The end of a lease: finish, release, return, bury; and touch, which lengthens it. */
#include <string.h>

#include "lib/redis/redis_internal.h"

/* Leases of one call. */
enum { END_BATCH = 256 };

int ww_redis_end_finish(struct ww_jobs *jobs, uint64_t id, uint64_t token)
{
	struct ww_job_end end = {.id = id, .token = token};
	int error = ww_redis_end_finish_many(jobs, &end, 1);

	return error ? error : end.result;
}

static int read_end(struct redis_store *store, uint64_t id, const redisReply *reply)
{
	int result;

	if (reply->type == REDIS_REPLY_ARRAY && reply->elements == 3) {
		ww_redis_permit_end(store, reply->element[1], reply->element[2], id, "free");
		reply = reply->element[0];
	}
	if (reply->type == REDIS_REPLY_STRING) {
		ww_redis_hint_finished(store, reply);
		return WW_OK;
	}
	result = (int)ww_redis_call_value(reply);
	/* A periodic job waits again, perhaps for a time that is past. */
	if (!result)
		ww_redis_hint_made(store, NULL, shard_of(store, id), HINT_PERHAPS);
	return result;
}

int ww_redis_end_finish_many(struct ww_jobs *jobs, struct ww_job_end *ends, size_t count)
{
	struct redis_store *store = store_of(jobs);
	struct gather gather;
	redisReply *const *reply;
	int error = ww_redis_gather_make(&gather, store, count, END_BATCH);

	if (!error) {
		for (size_t i = 0; i < count; i++)
			ww_redis_gather_add(&gather, i, shard_of(store, ends[i].id), 0);
		error = ww_redis_gather_begin(&gather, 2);
	}
	if (!error) {
		for (size_t i = 0; i < count; i++) {
			ww_redis_words_number(ww_redis_gather_words(&gather, i), ends[i].id);
			ww_redis_words_number(ww_redis_gather_words(&gather, i), ends[i].token);
		}
		error = ww_redis_gather_run(&gather, &ww_redis_script_shard_finish, 0);
		for (size_t i = 0; i < count; i++) {
			ends[i].result = ww_redis_gather_reply(&gather, i, 1, &reply);
			if (!ends[i].result)
				ends[i].result = read_end(store, ends[i].id, reply[0]);
		}
	}
	ww_redis_gather_free(&gather);
	return error;
}

/* The reply of shard_end.lua. The end is passed on to the home of a tube with a limit. */
static int64_t read_value(struct redis_store *store, uint64_t id, const char *what, const redisReply *reply)
{
	if (reply->type != REDIS_REPLY_ARRAY || reply->elements < 2)
		return ww_redis_call_value(reply);
	int64_t value = ww_redis_call_value(reply->element[0]);
	if (reply->elements == 2)
		ww_redis_permit_end(store, reply->element[1], NULL, id, what);
	else if (strcmp(what, "touch") == 0)
		ww_redis_permit_touch(store, reply->element[1], reply->element[2], id, (uint64_t)value);
	else
		ww_redis_permit_end(
		    store, reply->element[1], reply->element[2], id, strcmp(what, "return") == 0 ? what : "free");
	return value;
}

/* Run shard_end.lua. A delay below 0 is the job's own backoff. */
static int64_t end(struct redis_store *store, uint64_t id, uint64_t token, const char *what, uint32_t priority,
    int64_t delay, const char *error)
{
	struct few_words few;
	struct words *words = ww_redis_words_few(store, &few);
	redisReply *reply;
	char chance[16] = "0.";

	for (int i = 2; i < 10; i++)
		chance[i] = (char)('0' + random_next_shared(&store->random) % 10);
	ww_redis_words_number(words, id);
	ww_redis_words_number(words, token);
	ww_redis_words_text(words, what);
	ww_redis_words_number(words, priority);
	ww_redis_words_signed(words, delay);
	ww_redis_words_text(words, chance);
	if (error)
		ww_redis_words_bytes(words, error, strnlen(error, WW_JOB_ERROR_MAX));
	/* Touching twice is harmless. */
	int is_touch = strcmp(what, "touch") == 0;
	int result = ww_redis_call(
	    store, &ww_redis_script_shard_end, shard_of(store, id), words, is_touch ? REDIS_CALL_AGAIN : 0, &reply);
	if (result)
		return result;
	int64_t value = read_value(store, id, what, reply);
	ww_redis_call_free(reply);
	return value;
}

int ww_redis_end_release(
    struct ww_jobs *jobs, uint64_t id, uint64_t token, uint32_t priority, uint64_t delay, const char *error)
{
	struct redis_store *store = store_of(jobs);
	int64_t us = delay == WW_JOB_BACKOFF ? -1 : (int64_t)us_up(delay);
	int result = (int)end(store, id, token, "release", priority, us, error);

	/* A backoff may be 0. */
	if (result == 0 && us <= 0)
		ww_redis_hint_made(store, NULL, shard_of(store, id), HINT_PERHAPS);
	return result;
}

int ww_redis_end_return(struct ww_jobs *jobs, uint64_t id, uint64_t token, uint64_t delay)
{
	struct redis_store *store = store_of(jobs);
	int result = (int)end(store, id, token, "return", 0, (int64_t)us_up(delay), NULL);

	if (!result && !delay)
		ww_redis_hint_made(store, NULL, shard_of(store, id), HINT_PERHAPS);
	return result;
}

int ww_redis_end_bury(struct ww_jobs *jobs, uint64_t id, uint64_t token, uint32_t priority, const char *error)
{
	return (int)end(store_of(jobs), id, token, "bury", priority, 0, error);
}

int ww_redis_end_touch(struct ww_jobs *jobs, uint64_t id, uint64_t token, uint64_t *ends)
{
	int64_t time = end(store_of(jobs), id, token, "touch", 0, 0, NULL);

	if (time < 0)
		return (int)time;
	if (ends)
		*ends = (uint64_t)time * 1000;
	return WW_OK;
}
