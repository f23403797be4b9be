/*
 * Finding a store, or making it; also anew when Redis has lost it.
 *
 * A store is a key of the whole, with its identity, and a key of each shard, which repeats that identity. Parts may be
 * missing (a node of a cluster lost its data) or foreign (a copy of one part was put back):
 *   1. Look for the key of the whole. If it is there, it says how many shards there are.
 *   2. If it is not, ask the shards. If some are there and all say the same, make the whole as they say; if they
 *      differ, stop. If none is there, make a new store.
 *   3. Ask all shards which store they are of. A foreign one stops everything before anything is made.
 *   4. Make the shards that are missing.
 * WW_REDIS_EXISTING forbids all making: it would hide a loss.
 *
 * When a call finds the store gone, one thread goes through this (`renewing`). Other threads wait for it, and then find
 * a new identity, or nothing missing. Other processes do the same at the same time: the scripts make a key only if it
 * is missing, and reply the identity that is there.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "lib/redis/redis_internal.h"

/* The format of a new store; a store of a later format is not touched. */
#define FORMAT 1

/* What the whole store has. */
struct shape {
	char identity[REDIS_IDENTITY_SIZE];
	uint64_t shards;
	uint64_t slice; /* us */
};

static int is_existing(const struct redis_store *store)
{
	return (store->config.flags & WW_REDIS_EXISTING) != 0;
}

/* ---- Shards */

/* Each call finds this again, and reports it again. */
#define corrupt(store, ...) (ww_redis_link_complain((store)->link, __VA_ARGS__), WW_ECORRUPT)

/* A visit to all shards. */
struct visit {
	const char *identity; /* that each shard must have */
	int is_whole_lost;    /* the identity is a shard's */
	int only_find;
	uint32_t made;
	uint32_t lost;
	uint32_t first_lost;
};

static int refuse_mixed(struct redis_store *store, uint32_t shard, const char *other, const struct visit *visit)
{
	const char *tag = store->tags[shard];

	if (visit->is_whole_lost)
		return corrupt(store,
		    "The key %s of the store in Redis is lost, and its shards are of several stores: %s:m has the store "
		    "%.64s, and another one %s. Put back a copy of all, or give another prefix.",
		    store->key, tag, other, visit->identity);
	return corrupt(store,
	    "A part of the store in Redis is of another store: its key %s has the id %s, and %s:m the store %.64s. "
	    "Was one of them restored alone? Put back a copy of all, or give another prefix. If the jobs that are "
	    "there are to be kept, and all shards say the same, \"HSET %s id %.64s\" makes it whole.",
	    store->key, visit->identity, tag, other, store->key, other);
}

static int read_shard(struct redis_store *store, uint32_t shard, const redisReply *reply, struct visit *visit)
{
	int error;

	if (reply->type == REDIS_REPLY_INTEGER && reply->integer == WW_ENOTFOUND) {
		if (!visit->lost++)
			visit->first_lost = shard;
		return WW_OK;
	}
	error = ww_redis_call_array(store, reply, 2);
	if (error)
		return error;
	if (reply->element[0]->type != REDIS_REPLY_STRING)
		return WW_ECORRUPT;
	visit->made += ww_redis_call_value(reply->element[1]) != 0;
	if (strcmp(reply->element[0]->str, visit->identity) == 0)
		return WW_OK;
	return refuse_mixed(store, shard, reply->element[0]->str, visit);
}

/* Ask all shards which store they are of. Make those that are missing, or count them with only_find. */
static int visit_shards(struct redis_store *store, struct visit *visit)
{
	struct fan fan;
	int error = ww_redis_call_fan_make(store, &fan, store->shards);

	for (uint32_t i = 0; i < store->shards && !error; i++) {
		struct words *words = fan.words[i] = ww_redis_words_many(store, 5);
		if (!words) {
			error = WW_ENOMEM;
			break;
		}
		words->count = 0;
		ww_redis_words_text(words, visit->identity);
		ww_redis_words_number(words, store->slice);
		ww_redis_words_number(words, i);
		ww_redis_words_number(words, store->shards);
		ww_redis_words_number(words, (uint64_t)visit->only_find);
		fan.calls[i] = ww_redis_call_make(store, &ww_redis_script_shard_make, i, words, REDIS_CALL_AGAIN);
		fan.calls[i].also = store->tags[store->shards + i];
	}
	if (!error)
		error = ww_redis_link_run(store->link, fan.calls, fan.count);
	for (uint32_t i = 0; i < store->shards && !error; i++)
		error = read_shard(store, i, fan.calls[i].reply, visit);
	ww_redis_call_fan_free(store, &fan);
	return error;
}

static int make_shards(struct redis_store *store, const char *identity, uint32_t *made)
{
	struct visit visit = {.identity = identity, .only_find = 1};
	int error = visit_shards(store, &visit);

	if (error || !visit.lost)
		return error;
	if (is_existing(store))
		return corrupt(store,
		    "Shard %" PRIu32 " of the store in Redis is lost (there is no key %s:m): put back a copy of it, or "
		    "open the store without WW_REDIS_EXISTING, as weekwheeld does when it starts: that makes it anew, "
		    "without the jobs that were in it.",
		    visit.first_lost, store->tags[visit.first_lost]);
	visit.only_find = 0;
	error = visit_shards(store, &visit);
	*made = visit.made;
	return error;
}

/* ---- The whole */

static int make_tags(struct redis_store *store, uint32_t shards)
{
	if (shards < 1 || shards > WW_REDIS_SHARDS_MAX)
		return WW_ECORRUPT;
	if (store->tags)
		return shards == store->shards ? WW_OK : WW_ECORRUPT;
	store->tags = memory_take(store->allocator, 2 * shards * sizeof *store->tags);
	if (!store->tags)
		return WW_ENOMEM;
	store->shards = shards;
	for (uint32_t i = 0; i < shards; i++) {
		snprintf(store->tags[i], REDIS_TAG_SIZE, "{%s:%" PRIu32 "}", store->config.prefix, i);
		snprintf(store->tags[shards + i], REDIS_TAG_SIZE, "{%s:%" PRIu32 "}:m", store->config.prefix, i);
	}
	return WW_OK;
}

static int read_store(struct redis_store *store, const redisReply *reply, char identity[REDIS_IDENTITY_SIZE])
{
	int error = ww_redis_call_array(store, reply, 6);

	if (error)
		return error;
	if (reply->element[0]->type != REDIS_REPLY_STRING || reply->element[0]->len >= REDIS_IDENTITY_SIZE)
		return WW_ECORRUPT;
	if (ww_redis_call_value(reply->element[1]) > FORMAT)
		return WW_EVERSION;
	memcpy(identity, reply->element[0]->str, reply->element[0]->len + 1);
	store->slice = (uint64_t)ww_redis_call_value(reply->element[3]);
	return store->slice ? make_tags(store, (uint32_t)ww_redis_call_value(reply->element[2])) : WW_ECORRUPT;
}

/* Find the store, or make it with that shape. WW_ENOTFOUND: it is not there, with only_find. */
static int make_store(
    struct redis_store *store, const struct shape *shape, int only_find, char identity[REDIS_IDENTITY_SIZE])
{
	struct few_words few;
	struct words *words = ww_redis_words_few(store, &few);
	struct redis_call call = {.script = &ww_redis_script_store_make,
	    .key = store->tag,
	    .also = store->key,
	    .argv = few.argv,
	    .lengths = few.lengths,
	    .flags = REDIS_CALL_AGAIN};
	uint64_t began = time_now(CLOCK_BOOTTIME);
	int error;

	words->count = 0;
	ww_redis_words_text(words, shape->identity);
	ww_redis_words_number(words, FORMAT);
	ww_redis_words_number(words, shape->shards);
	ww_redis_words_number(words, shape->slice);
	ww_redis_words_number(words, (uint64_t)only_find);
	call.argc = words->count;
	error = ww_redis_link_run(store->link, &call, 1);
	if (!error && call.reply->type == REDIS_REPLY_INTEGER)
		error = (int)call.reply->integer;
	if (!error)
		error = read_store(store, call.reply, identity);
	if (!error && !store->config.now)
		ww_redis_clock_learn(store, (uint64_t)ww_redis_call_value(call.reply->element[4]), began);
	ww_redis_link_free(&call, 1);
	return error;
}

/* Read what a shard says of its store. Returns 1, or 0: the shard is not there. */
static int read_shape(struct redis_store *store, const char *key, const redisReply *reply, struct shape *shape)
{
	int error = ww_redis_call_array(store, reply, 3);

	if (error)
		return error;
	if (reply->element[0]->type == REDIS_REPLY_NIL)
		return 0;
	shape->shards = (uint64_t)ww_redis_call_value(reply->element[1]);
	shape->slice = (uint64_t)ww_redis_call_value(reply->element[2]);
	if (reply->element[0]->type != REDIS_REPLY_STRING || reply->element[0]->len >= REDIS_IDENTITY_SIZE ||
	    !shape->slice || shape->shards < 1 || shape->shards > WW_REDIS_SHARDS_MAX)
		return corrupt(
		    store, "What the key %s of the store in Redis says makes no sense: put back a copy of it.", key);
	memcpy(shape->identity, reply->element[0]->str, reply->element[0]->len + 1);
	return 1;
}

/* A command that asks a shard for that. */
struct question {
	const char *argv[5];
	char key[REDIS_TAG_SIZE];
};

/* Learn the store's shape from the first shard that is there. Returns 1, or 0: none is there. */
static int recall(struct redis_store *store, struct shape *shape)
{
	uint32_t count = (uint32_t)shape->shards;
	struct redis_call *calls;
	struct question *questions;
	size_t size = count * (sizeof *calls + sizeof *questions);
	int result;

	calls = memory_take(store->allocator, size);
	if (!calls)
		return WW_ENOMEM;
	questions = (struct question *)(void *)(calls + count);
	for (uint32_t i = 0; i < count; i++) {
		questions[i] = (struct question){.argv = {"HMGET", questions[i].key, "store", "shards", "slice"}};
		(void)snprintf(questions[i].key, REDIS_TAG_SIZE, "{%s:%" PRIu32 "}:m", store->config.prefix, i);
		calls[i] = (struct redis_call){
		    .key = questions[i].key, .argc = 5, .argv = questions[i].argv, .flags = REDIS_CALL_AGAIN};
	}
	result = ww_redis_link_run(store->link, calls, count);
	for (uint64_t i = 0; i < count && !result; i++)
		result = read_shape(store, questions[i].key, calls[i].reply, shape);
	ww_redis_link_free(calls, count);
	memory_give(store->allocator, calls, size);
	return result;
}

/* Step 2: the key of the whole is not there. */
static int make_whole(struct redis_store *store, struct shape *shape, char identity[REDIS_IDENTITY_SIZE])
{
	struct visit visit = {.identity = shape->identity, .is_whole_lost = 1, .only_find = 1};
	int found = recall(store, shape);
	int error = found < 0 ? found : WW_OK;

	if (found == 1)
		error = make_tags(store, (uint32_t)shape->shards);
	if (found == 1 && !error)
		error = visit_shards(store, &visit);
	if (error)
		return error;
	if (!is_existing(store))
		return make_store(store, shape, 0, identity);
	if (!found)
		return WW_ENOTFOUND;
	return corrupt(store,
	    "The key %s of the store in Redis is lost, while its shards are there: put back a copy of it, or open the "
	    "store without WW_REDIS_EXISTING, as weekwheeld does when it starts: that makes it as they say.",
	    store->key);
}

static int find_or_make(struct redis_store *store, char identity[REDIS_IDENTITY_SIZE])
{
	struct shape shape = {.shards = store->tags ? store->shards : store->config.shards,
	    .slice = store->tags ? store->slice : store->config.slice / 1000};
	int error;

	copy_identity(store, shape.identity);
	error = make_store(store, &shape, 1, identity);
	return error == WW_ENOTFOUND ? make_whole(store, &shape, identity) : error;
}

int ww_redis_make(struct redis_store *store, uint32_t *made)
{
	uint32_t count = 0;
	char identity[REDIS_IDENTITY_SIZE] = "";
	int error = find_or_make(store, identity);

	if (!error)
		error = make_shards(store, identity, &count);
	if (error)
		return error;
	if (made)
		*made = count;
	pthread_mutex_lock(&store->lock);
	memcpy(store->identity, identity, sizeof identity);
	pthread_mutex_unlock(&store->lock);
	return WW_OK;
}

int ww_redis_make_anew(struct redis_store *store, const char *gone)
{
	char known[REDIS_IDENTITY_SIZE];
	uint32_t made = 0;
	int error;

	if (store->config.slow)
		store->config.slow(store->config.context);
	pthread_mutex_lock(&store->renewing);
	copy_identity(store, known);
	/* A lost shard is made anew under the same identity: if another thread did that, this finds nothing missing. */
	error = strcmp(known, gone) == 0 ? ww_redis_make(store, &made) : WW_OK;
	if (!error && (made || strcmp(known, store->identity) != 0)) {
		atomic_fetch_add(&store->resets, 1);
		ww_redis_link_log(store->link,
		    "Redis has lost this store, or a part of it, and it was made anew: the jobs that were "
		    "in it are gone. See that Redis keeps its data (appendonly yes).");
		ww_redis_hint_forget(store);
	}
	pthread_mutex_unlock(&store->renewing);
	return error;
}
