/* Kick, pause, and the search for a tube's delayed jobs. */
#include <string.h>

#include "lib/redis/redis_internal.h"

/* Jobs that one call kicks. */
enum { KICK_BATCH = 256 };

int ww_redis_kick_job(struct ww_jobs *jobs, uint64_t id)
{
	struct redis_store *store = store_of(jobs);
	struct few_words few;
	struct words *words = ww_redis_words_few(store, &few);

	ww_redis_words_text(words, "job");
	ww_redis_words_number(words, id);
	int64_t kicked = ww_redis_call_number(store, &ww_redis_script_shard_kick, shard_of(store, id), words, 0);
	if (kicked < 0)
		return (int)kicked;
	if (kicked)
		ww_redis_hint_made(store, NULL, shard_of(store, id), HINT_PERHAPS);
	return kicked ? WW_OK : WW_ENOTFOUND;
}

/* Kick up to `bound` buried jobs of a shard. */
static int kick_shard(struct redis_store *store, const char *tube, uint32_t shard, uint64_t bound, uint64_t *kicked)
{
	uint64_t left = bound;

	while (left) {
		struct few_words few;
		struct words *words = ww_redis_words_few(store, &few);
		uint64_t most = left < KICK_BATCH ? left : KICK_BATCH;
		ww_redis_words_text(words, "tube");
		ww_redis_words_text(words, tube);
		ww_redis_words_number(words, most);
		int64_t count = ww_redis_call_number(store, &ww_redis_script_shard_kick, shard, words, 0);
		if (count < 0)
			return (int)count;
		*kicked += (uint64_t)count;
		left -= (uint64_t)count;
		if (count)
			ww_redis_hint_made(store, tube, shard, HINT_PERHAPS);
		if ((uint64_t)count < most)
			break;
	}
	return WW_OK;
}

/*
 * ---- Buried jobs of several shards, in the order in which they were buried
 *
 * If there are more than may be kicked, the first few of each shard are merged by the moment of burial: that tells how
 * many to kick in each shard.
 */

struct buried {
	struct fan fan; /* replies: the count of a shard's buried jobs, and when the first few were buried */
	uint64_t count; /* in all shards */
	uint64_t *at;   /* by shard: how many of its jobs the merge has passed */
};

static const redisReply *first_of(const struct buried *buried, size_t shard)
{
	const redisReply *reply = buried->fan.calls[shard].reply;

	return buried->at[shard] + 1 < reply->elements ? reply->element[buried->at[shard] + 1] : NULL;
}

/* Pass the job that was buried first. Returns whether there was one. */
static int step(const struct buried *buried)
{
	size_t best = SIZE_MAX;

	for (size_t i = 0; i < buried->fan.count; i++) {
		const redisReply *one = first_of(buried, i);
		if (one && (best == SIZE_MAX || ww_redis_call_value(one) < ww_redis_call_value(first_of(buried, best))))
			best = i;
	}
	if (best == SIZE_MAX)
		return 0;
	buried->at[best]++;
	return 1;
}

static int look_at_buried(struct redis_store *store, const char *tube, uint64_t most, struct buried *buried)
{
	struct few_words few;
	struct words *words = ww_redis_words_few(store, &few);

	ww_redis_words_text(words, tube);
	ww_redis_words_number(words, most);
	int error = ww_redis_call_all(store, &ww_redis_script_shard_buried, words, 1, &buried->fan);
	for (size_t i = 0; i < buried->fan.count && !error; i++)
		buried->count += (uint64_t)ww_redis_call_value(buried->fan.calls[i].reply->element[0]);
	return error;
}

/* Kick some, at most `bound`; `at` has room for all shards. None kicked: there are no more. */
static int kick_some(struct redis_store *store, const char *tube, uint64_t bound, uint64_t *kicked, uint64_t *at)
{
	struct buried buried = {.at = at};
	uint64_t most = bound < KICK_BATCH ? bound : KICK_BATCH;
	int error = look_at_buried(store, tube, most, &buried);

	if (error)
		return error;
	memset(at, 0, store->shards * sizeof *at);
	/* If all are kicked, their order does not matter. */
	if (buried.count > bound)
		while (most-- && step(&buried))
			continue;
	for (uint32_t i = 0; i < store->shards && !error; i++)
		error = kick_shard(store, tube, i, buried.count > bound ? at[i] : bound - *kicked, kicked);
	ww_redis_call_fan_free(store, &buried.fan);
	return error;
}

static int kick_buried(struct redis_store *store, const char *tube, uint64_t bound, uint64_t *kicked)
{
	size_t size = store->shards * sizeof(uint64_t);
	uint64_t *at = memory_take(store->allocator, size);
	uint64_t before;
	int error = at ? WW_OK : WW_ENOMEM;

	do {
		uint64_t some = 0;
		before = *kicked;
		if (!error)
			error = kick_some(store, tube, bound - *kicked, &some, at);
		*kicked += some;
	} while (!error && before < *kicked && *kicked < bound);
	memory_give(store->allocator, at, size);
	return error;
}

/* ---- Delayed jobs of a tube: all tubes share the slices, which are searched in bounded steps */

struct search {
	const char *tube;
	uint32_t shard;
	int64_t slice; /* where to go on; -1: at the end */
	int64_t place;
};

/* Find the next few. The reply has due times and ids from element 2 on. */
static int search_on(struct redis_store *store, struct search *search, uint64_t most, redisReply **reply)
{
	struct few_words few;
	struct words *words = ww_redis_words_few(store, &few);

	ww_redis_words_text(words, search->tube);
	ww_redis_words_signed(words, search->slice);
	ww_redis_words_signed(words, search->place);
	ww_redis_words_number(words, most);
	int error =
	    ww_redis_call_list(store, &ww_redis_script_shard_delayed, search->shard, words, REDIS_CALL_AGAIN, 2, reply);
	if (error)
		return error;
	search->slice = ww_redis_call_value((*reply)->element[0]);
	search->place = ww_redis_call_value((*reply)->element[1]);
	return WW_OK;
}

static int kick_delayed_of(struct redis_store *store, struct search *search, uint64_t bound, uint64_t *kicked)
{
	int error = WW_OK;

	while (!error && search->slice >= 0 && *kicked < bound) {
		redisReply *reply;
		uint64_t left = bound - *kicked;
		error = search_on(store, search, left < KICK_BATCH ? left : KICK_BATCH, &reply);
		if (error)
			return error;
		for (size_t i = 3; i < reply->elements && !error; i += 2) {
			error = ww_redis_kick_job(&store->base, (uint64_t)ww_redis_call_value(reply->element[i]));
			/* A kicked job is no longer in the slice. */
			search->place -= !error && search->place > 0;
			*kicked += !error;
			error = error == WW_ENOTFOUND ? WW_OK : error;
		}
		ww_redis_call_free(reply);
	}
	return error;
}

int ww_redis_kick(struct ww_jobs *jobs, const char *tube, uint64_t bound, uint64_t *count)
{
	struct redis_store *store = store_of(jobs);
	uint64_t kicked = 0;
	int error = kick_buried(store, tube, bound, &kicked);

	if (!error && !kicked)
		for (uint32_t i = 0; i < store->shards && kicked < bound && !error; i++) {
			struct search search = {.tube = tube, .shard = i};
			error = kick_delayed_of(store, &search, bound, &kicked);
		}
	if (!error && count)
		*count = kicked;
	return error;
}

int ww_redis_kick_soonest(struct redis_store *store, const char *tube, uint64_t *id)
{
	int64_t soonest = INT64_MAX;

	for (uint32_t i = 0; i < store->shards; i++) {
		struct search search = {.tube = tube, .shard = i};
		int is_found = 0;
		while (!is_found && search.slice >= 0) {
			redisReply *reply;
			int error = search_on(store, &search, 1, &reply);
			if (error)
				return error;
			is_found = reply->elements >= 4;
			if (is_found && ww_redis_call_value(reply->element[2]) < soonest) {
				soonest = ww_redis_call_value(reply->element[2]);
				*id = (uint64_t)ww_redis_call_value(reply->element[3]);
			}
			ww_redis_call_free(reply);
		}
	}
	return soonest == INT64_MAX ? WW_ENOTFOUND : WW_OK;
}

/* ---- Pause */

int ww_redis_kick_pause(struct ww_jobs *jobs, const char *tube, uint64_t ns)
{
	struct redis_store *store = store_of(jobs);
	struct few_words few;
	struct words *words = ww_redis_words_few(store, &few);
	struct fan fan;
	int error;

	ww_redis_words_text(words, tube);
	ww_redis_words_number(words, us_up(ns));
	error = ww_redis_call_all(store, &ww_redis_script_shard_pause, words, 0, &fan);
	if (error)
		return error;
	ww_redis_call_fan_free(store, &fan);
	ww_redis_hint_count(store, tube, 0, 0, 1);
	for (uint32_t i = 0; i < store->shards && !ns; i++)
		ww_redis_hint_made(store, tube, i, HINT_PERHAPS);
	return WW_OK;
}
