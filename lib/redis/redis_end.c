/* The end of a lease: finish, release, bury; and touch, which puts it off. */
#include <string.h>

#include "redis_internal.h"

/* Leases of one call. */
enum { END_BATCH = 256 };

int ww_redis_end_finish(struct ww_jobs *jobs, uint64_t id, uint64_t token)
{
	struct ww_job_end end = {.id = id, .token = token};
	int error = ww_redis_end_finish_many(jobs, &end, 1);

	return error ? error : end.result;
}

/* The calls that are needed: leases of a shard go together. Call i is of shard[i] and ends count[i] leases. */
struct ending {
	struct fan fan;
	size_t calls;
	uint32_t *call_of; /* each lease */
	uint32_t *at;      /* its place in there */
	uint32_t *open;    /* of each shard: the call that takes more, plus 1 */
	uint32_t *shard;
	uint32_t *count;
};

static size_t size_of(const struct redis_store *store, size_t count)
{
	return (4 * count + store->shards) * sizeof(uint32_t);
}

static int ending_make(struct redis_store *store, struct ending *ending, size_t count)
{
	int error = ww_redis_call_fan_make(store, &ending->fan, count);

	if (error)
		return error;
	ending->call_of = store->allocator->allocate(store->allocator->user, size_of(store, count));
	if (!ending->call_of) {
		ww_redis_call_fan_free(store, &ending->fan);
		return WW_ENOMEM;
	}
	memset(ending->call_of, 0, size_of(store, count));
	ending->at = ending->call_of + count;
	ending->shard = ending->at + count;
	ending->count = ending->shard + count;
	ending->open = ending->count + count;
	return WW_OK;
}

static int ending_fill(struct redis_store *store, struct ending *ending, const struct ww_job_end *ends, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		uint32_t shard = shard_of(store, ends[i].id);
		uint32_t call = ending->open[shard];
		if (!call || ending->count[call - 1] == END_BATCH) {
			call = ending->open[shard] = (uint32_t)++ending->calls;
			ending->shard[call - 1] = shard;
		}
		ending->call_of[i] = call - 1;
		ending->at[i] = ending->count[call - 1]++;
	}
	for (size_t call = 0; call < ending->calls; call++) {
		ending->fan.words[call] = ww_redis_words_many(store, 2 + 2 * (size_t)ending->count[call]);
		if (!ending->fan.words[call])
			return WW_ENOMEM;
	}
	for (size_t i = 0; i < count; i++) {
		ww_redis_words_number(ending->fan.words[ending->call_of[i]], ends[i].id);
		ww_redis_words_number(ending->fan.words[ending->call_of[i]], ends[i].token);
	}
	for (size_t call = 0; call < ending->calls; call++) {
		struct words *words = ending->fan.words[call];
		ending->fan.calls[call] = (struct redis_call){.script = &ww_redis_script_shard_finish,
		    .key = store->tags[ending->shard[call]],
		    .argc = words->count,
		    .argv = words->argv,
		    .lengths = words->lengths};
	}
	return WW_OK;
}

static void ending_read(struct redis_store *store, const struct ending *ending, struct ww_job_end *ends, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		const struct redis_call *call = &ending->fan.calls[ending->call_of[i]];
		ends[i].result = call->error;
		if (!call->error)
			ends[i].result = ww_redis_call_array(store, call->reply, ending->count[ending->call_of[i]]);
		if (ends[i].result)
			continue;
		const redisReply *reply = call->reply->element[ending->at[i]];
		if (reply->type == REDIS_REPLY_STRING)
			ww_redis_hint_finished(store, reply);
		else
			ends[i].result = (int)ww_redis_call_value(reply);
		/* It waits again, perhaps for a time that is past. */
		if (reply->type != REDIS_REPLY_STRING && !ends[i].result)
			ww_redis_hint_made(store, NULL, shard_of(store, ends[i].id), HINT_PERHAPS);
	}
}

int ww_redis_end_finish_many(struct ww_jobs *jobs, struct ww_job_end *ends, size_t count)
{
	struct redis_store *store = store_of(jobs);
	struct ending ending = {.calls = 0};
	int error = count > UINT32_MAX / 4 ? WW_EINVAL : ending_make(store, &ending, count);

	if (error)
		return error;
	error = ending_fill(store, &ending, ends, count);
	if (!error) {
		ending.fan.count = ending.calls;
		error = ww_redis_call_fan(store, &ending.fan);
		ending_read(store, &ending, ends, count);
		ending.fan.count = count;
	}
	store->allocator->free(store->allocator->user, ending.call_of, size_of(store, count));
	ww_redis_call_fan_free(store, &ending.fan);
	return error;
}

static int64_t end(struct redis_store *store, uint64_t id, struct words *words, unsigned flags)
{
	return ww_redis_call_number(store, &ww_redis_script_shard_end, shard_of(store, id), words, flags);
}

static struct words *begin(
    struct redis_store *store, struct few_words *few, uint64_t id, uint64_t token, const char *what, uint32_t priority)
{
	struct words *words = ww_redis_words_few(store, few);

	ww_redis_words_number(words, id);
	ww_redis_words_number(words, token);
	ww_redis_words_text(words, what);
	ww_redis_words_number(words, priority);
	return words;
}

static void give_reason(struct words *words, const char *error)
{
	if (error)
		ww_redis_words_bytes(words, error, strnlen(error, WW_JOB_ERROR_MAX));
}

int ww_redis_end_release(
    struct ww_jobs *jobs, uint64_t id, uint64_t token, uint32_t priority, uint64_t delay, const char *error)
{
	struct redis_store *store = store_of(jobs);
	struct few_words few;
	struct words *words = begin(store, &few, id, token, "release", priority);
	char chance[16] = "0.";

	ww_redis_words_signed(words, delay == WW_JOB_BACKOFF ? -1 : (int64_t)us_up(delay));
	for (int i = 2; i < 10; i++)
		chance[i] = (char)('0' + ww_redis_random(store) % 10);
	ww_redis_words_text(words, chance);
	give_reason(words, error);
	int result = (int)end(store, id, words, 0);
	/* A backoff may be none. */
	if (result == 0 && (!delay || delay == WW_JOB_BACKOFF))
		ww_redis_hint_made(store, NULL, shard_of(store, id), HINT_PERHAPS);
	return result;
}

int ww_redis_end_return(struct ww_jobs *jobs, uint64_t id, uint64_t token)
{
	struct redis_store *store = store_of(jobs);
	struct few_words few;

	int result = (int)end(store, id, begin(store, &few, id, token, "return", 0), 0);
	if (!result)
		ww_redis_hint_made(store, NULL, shard_of(store, id), HINT_PERHAPS);
	return result;
}

int ww_redis_end_bury(struct ww_jobs *jobs, uint64_t id, uint64_t token, uint32_t priority, const char *error)
{
	struct redis_store *store = store_of(jobs);
	struct few_words few;
	struct words *words = begin(store, &few, id, token, "bury", priority);

	ww_redis_words_text(words, "0");
	ww_redis_words_text(words, "0");
	give_reason(words, error);
	return (int)end(store, id, words, 0);
}

int ww_redis_end_touch(struct ww_jobs *jobs, uint64_t id, uint64_t token, uint64_t *ends)
{
	struct redis_store *store = store_of(jobs);
	struct few_words few;
	int64_t time = end(store, id, begin(store, &few, id, token, "touch", 0), REDIS_CALL_AGAIN);

	if (time < 0)
		return (int)time;
	if (ends)
		*ends = (uint64_t)time * 1000;
	return WW_OK;
}
