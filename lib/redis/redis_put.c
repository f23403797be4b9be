/* Put, move, cancel. */
#include <string.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "redis_internal.h"

/* What shard_put.lua takes of a job, and of how many jobs at once. */
enum { PUT_WORDS = 15, PUT_BATCH = 32 };

/* The shard of a key is the same in every process: this hash may not change. */
static uint32_t shard_of_key(const struct redis_store *store, const char *tube, const void *key, size_t length)
{
	uint64_t hash = XXH64(tube, strlen(tube), 0);

	return (uint32_t)(XXH64(key, length, hash) % store->shards);
}

static uint32_t shard_of_spec(struct redis_store *store, const struct ww_job_spec *spec)
{
	if (spec->key_length)
		return shard_of_key(store, spec->tube, spec->key, spec->key_length);
	return atomic_fetch_add(&store->turn, 1) % store->shards;
}

static int check(const struct redis_store *store, const struct ww_job_spec *spec)
{
	if (spec->body_length > store->config.body_max)
		return WW_ETOOBIG;
	if (spec->flags & WW_JOB_AT && spec->due > WW_DRIVER_TIME_MAX) {
		uint64_t now = ww_redis_now(store);
		return spec->due > now && spec->due - now > WW_DRIVER_TIME_MAX ? WW_EOVERFLOW : WW_OK;
	}
	return WW_OK;
}

static void say(struct words *words, const struct ww_job_spec *spec)
{
	ww_redis_words_text(words, spec->tube);
	ww_redis_words_bytes(words, spec->key, spec->key_length);
	ww_redis_words_bytes(words, spec->body, spec->body_length);
	ww_redis_words_text(words, !(spec->flags & WW_JOB_AT) ? "d" : spec->flags & WW_JOB_FUTURE ? "f" : "t");
	ww_redis_words_number(words, us_up(spec->due));
	ww_redis_words_number(words, spec->priority);
	ww_redis_words_number(words, us_up(spec->run));
	ww_redis_words_number(words, us_up(spec->period));
	ww_redis_words_number(words, (uint64_t)spec->missed);
	ww_redis_words_number(words, us_up(spec->skip));
	ww_redis_words_number(words, us_up(spec->backoff));
	ww_redis_words_number(words, us_up(spec->backoff_max));
	ww_redis_words_number(words, spec->attempts);
	ww_redis_words_number(words, spec->flags & WW_JOB_WALL);
	ww_redis_words_number(words, spec->version);
}

/* Whether it may be due at once. */
static int is_soon(const struct redis_store *store, const struct ww_job_spec *spec)
{
	return spec->flags & WW_JOB_AT ? spec->due <= ww_redis_now(store) + WW_SECOND : !spec->due;
}

static int read_put(struct redis_store *store, const redisReply *reply, size_t i, const struct ww_job_spec *spec,
    uint64_t *id, uint64_t *version)
{
	int result = ww_redis_call_array(store, reply, 3 * i + 3);

	if (result)
		return result;
	result = (int)ww_redis_call_value(reply->element[3 * i]);
	if (result < 0)
		return result;
	*id = (uint64_t)ww_redis_call_value(reply->element[3 * i + 1]);
	*version = (uint64_t)ww_redis_call_value(reply->element[3 * i + 2]);
	ww_redis_hint_count(store, spec->tube, 1, 0);
	if (is_soon(store, spec))
		ww_redis_hint_made(store, spec->tube, shard_of(store, *id), spec->priority);
	return result;
}

int ww_redis_put(struct ww_jobs *jobs, const struct ww_job_spec *spec, uint64_t *id, uint64_t *version)
{
	struct redis_store *store = store_of(jobs);
	struct few_words few;
	redisReply *reply;
	uint64_t got[2];
	int result = check(store, spec);

	if (result)
		return result;
	say(ww_redis_words_few(store, &few), spec);
	result = ww_redis_call(store, &ww_redis_script_shard_put, shard_of_spec(store, spec), &few.words, 0, &reply);
	if (result)
		return result;
	result = read_put(store, reply, 0, spec, &got[0], &got[1]);
	ww_redis_call_free(reply);
	if (result >= 0 && id)
		*id = got[0];
	if (result >= 0 && version)
		*version = got[1];
	return result;
}

/* ---- Many */

/*
 * Jobs are gathered by shard, and what is gathered is a call as soon as there are enough. next[] links the jobs of one call.
 */
struct gather {
	struct redis_store *store;
	struct ww_job_put *puts;
	struct fan fan; /* room for as many calls as there are jobs */
	size_t calls;
	uint32_t *call_of;  /* of each job, plus 1; 0: none */
	uint32_t *open;     /* of each shard: the call that takes more, plus 1 */
	uint32_t *jobs_in;  /* each call */
	uint32_t *shard_of; /* each call */
};

static int gather_make(struct gather *gather, size_t count)
{
	struct redis_store *store = gather->store;
	size_t size = (3 * count + store->shards) * sizeof(uint32_t);
	int error = ww_redis_call_fan_make(store, &gather->fan, count);

	if (error)
		return error;
	gather->call_of = store->allocator->allocate(store->allocator->user, size);
	if (!gather->call_of) {
		ww_redis_call_fan_free(store, &gather->fan);
		return WW_ENOMEM;
	}
	memset(gather->call_of, 0, size);
	gather->jobs_in = gather->call_of + count;
	gather->shard_of = gather->jobs_in + count;
	gather->open = gather->shard_of + count;
	return WW_OK;
}

static void gather_free(struct gather *gather, size_t count)
{
	struct redis_store *store = gather->store;
	size_t room = gather->fan.count;

	store->allocator->free(store->allocator->user, gather->call_of, (3 * count + store->shards) * sizeof(uint32_t));
	gather->fan.count = room;
	ww_redis_call_fan_free(store, &gather->fan);
}

/* Which call each job is in. Jobs without a key go to one shard together. */
static void sort(struct gather *gather, size_t count)
{
	struct redis_store *store = gather->store;
	uint32_t shard = 0;
	size_t keyless = 0;

	for (size_t i = 0; i < count; i++) {
		const struct ww_job_spec *spec = gather->puts[i].spec;
		if (gather->puts[i].result == WW_OK)
			gather->puts[i].result = check(store, spec);
		if (gather->puts[i].result)
			continue;
		if (spec->key_length)
			shard = shard_of_spec(store, spec);
		else if (keyless++ % PUT_BATCH == 0)
			shard = shard_of_spec(store, spec);
		uint32_t call = gather->open[shard];
		if (!call || gather->jobs_in[call - 1] == PUT_BATCH) {
			call = gather->open[shard] = (uint32_t)++gather->calls;
			gather->shard_of[call - 1] = shard;
		}
		gather->jobs_in[call - 1]++;
		gather->call_of[i] = call;
	}
}

static int gather_words(struct gather *gather, size_t count)
{
	struct redis_store *store = gather->store;

	for (size_t call = 0; call < gather->calls; call++) {
		gather->fan.words[call] = ww_redis_words_many(store, 2 + (size_t)PUT_WORDS * gather->jobs_in[call]);
		if (!gather->fan.words[call])
			return WW_ENOMEM;
	}
	for (size_t i = 0; i < count; i++)
		if (gather->call_of[i])
			say(gather->fan.words[gather->call_of[i] - 1], gather->puts[i].spec);
	for (size_t call = 0; call < gather->calls; call++) {
		struct words *words = gather->fan.words[call];
		gather->fan.calls[call] = (struct redis_call){.script = &ww_redis_script_shard_put,
		    .key = store->tags[gather->shard_of[call]],
		    .argc = words->count,
		    .argv = words->argv,
		    .lengths = words->lengths};
	}
	return WW_OK;
}

static void read_all(struct gather *gather, size_t count)
{
	struct redis_store *store = gather->store;

	/* From now on, jobs of it that were read. */
	memset(gather->jobs_in, 0, gather->calls * sizeof *gather->jobs_in);
	for (size_t i = 0; i < count; i++) {
		struct ww_job_put *put = &gather->puts[i];
		if (!gather->call_of[i])
			continue;
		size_t call = gather->call_of[i] - 1;
		put->result = gather->fan.calls[call].error;
		if (!put->result)
			put->result = read_put(store, gather->fan.calls[call].reply, gather->jobs_in[call]++, put->spec,
			    &put->id, &put->version);
	}
}

int ww_redis_put_many(struct ww_jobs *jobs, struct ww_job_put *puts, size_t count)
{
	struct redis_store *store = store_of(jobs);
	struct gather gather = {.store = store, .puts = puts};
	int error = count > UINT32_MAX / 4 ? WW_EINVAL : gather_make(&gather, count);

	if (error)
		return error;
	size_t room = gather.fan.count;
	sort(&gather, count);
	error = gather_words(&gather, count);
	if (!error && gather.calls) {
		gather.fan.count = gather.calls;
		error = ww_redis_call_fan(store, &gather.fan);
		read_all(&gather, count);
		gather.fan.count = room;
	}
	gather_free(&gather, count);
	return error;
}

/* ---- Move, cancel */

uint32_t ww_redis_put_refer(struct redis_store *store, struct words *words, const struct ww_job_ref *job)
{
	ww_redis_words_number(words, job->id);
	ww_redis_words_text(words, job->id ? "" : job->tube);
	ww_redis_words_bytes(words, job->key, job->id ? 0 : job->key_length);
	ww_redis_words_number(words, job->version);
	return job->id ? shard_of(store, job->id) : shard_of_key(store, job->tube, job->key, job->key_length);
}

int ww_redis_put_move(
    struct ww_jobs *jobs, const struct ww_job_ref *job, uint64_t due, uint32_t flags, uint64_t *version)
{
	struct redis_store *store = store_of(jobs);
	struct few_words few;
	struct words *words = ww_redis_words_few(store, &few);
	uint32_t shard = ww_redis_put_refer(store, words, job);
	uint64_t now = ww_redis_now(store);

	if (flags & WW_JOB_AT && due > now && due - now > WW_DRIVER_TIME_MAX)
		return WW_EOVERFLOW;
	ww_redis_words_text(words, flags & WW_JOB_AT ? "t" : "d");
	ww_redis_words_number(words, us_up(due));
	int64_t result = ww_redis_call_number(store, &ww_redis_script_shard_move, shard, words, 0);
	if (result < 0)
		return (int)result;
	if (flags & WW_JOB_AT ? due <= now + WW_SECOND : !due)
		ww_redis_hint_made(store, NULL, shard, HINT_PERHAPS);
	if (version)
		*version = (uint64_t)result;
	return WW_OK;
}

int ww_redis_put_cancel(struct ww_jobs *jobs, const struct ww_job_ref *job)
{
	struct redis_store *store = store_of(jobs);
	struct few_words few;
	uint32_t shard = ww_redis_put_refer(store, ww_redis_words_few(store, &few), job);
	redisReply *reply;
	int result = ww_redis_call(store, &ww_redis_script_shard_cancel, shard, &few.words, 0, &reply);

	if (result)
		return result;
	result = ww_redis_call_array(store, reply, 2);
	if (!result) {
		ww_redis_hint_finished(store, reply->element[1]);
		result = (int)ww_redis_call_value(reply->element[0]);
	}
	ww_redis_call_free(reply);
	return result;
}
