/* A store that is found, or made, also anew when Redis has lost it. */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "redis_internal.h"

/* What a store is made as; one of a later version is not touched. */
#define FORMAT 1

/* What is true of a whole store. */
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

__attribute__((format(printf, 2, 3))) static int corrupt(struct redis_store *store, const char *format, ...)
{
	char sentence[768];
	va_list values;

	va_start(values, format);
	(void)vsnprintf(sentence, sizeof sentence, format, values);
	va_end(values);
	ww_redis_report(store, sentence);
	return WW_ECORRUPT;
}

static int read_shard(
    struct redis_store *store, uint32_t shard, const redisReply *reply, const char *identity, uint32_t *made)
{
	int error;

	if (reply->type == REDIS_REPLY_INTEGER && reply->integer == WW_ENOTFOUND)
		return corrupt(store,
		    "Shard %" PRIu32 " of the store in Redis is lost (there is no key %s:m): put back a copy of it, or "
		    "start weekwheeld with this store, which makes it anew, without the jobs that were in it.",
		    shard, store->tags[shard]);
	error = ww_redis_call_array(store, reply, 2);
	if (error)
		return error;
	if (reply->element[0]->type != REDIS_REPLY_STRING)
		return WW_ECORRUPT;
	if (strcmp(reply->element[0]->str, identity) != 0)
		return corrupt(store,
		    "A part of the store in Redis is of another store: its key %s has the id %s, and %s:m the store %.64s. "
		    "Was one of them restored alone? Put back a copy of all, or give another prefix. If the jobs that are "
		    "there are to be kept, and all shards say the same, \"HSET %s id %.64s\" makes it whole.",
		    store->key, identity, store->tags[shard], reply->element[0]->str, store->key,
		    reply->element[0]->str);
	*made += ww_redis_call_value(reply->element[1]) != 0;
	return WW_OK;
}

static int make_shards(struct redis_store *store, const char *identity, uint32_t *made)
{
	struct redis_call *calls;
	struct few_words few[1];
	size_t size = store->shards * (sizeof *calls + sizeof few);
	int error;

	calls = store->allocator->allocate(store->allocator->user, size);
	if (!calls)
		return WW_ENOMEM;
	struct few_words *words = (struct few_words *)(void *)(calls + store->shards);
	for (uint32_t i = 0; i < store->shards; i++) {
		struct words *say = &words[i].words;
		*say = (struct words){
		    .room = FEW_WORDS, .argv = words[i].argv, .lengths = words[i].lengths, .numbers = words[i].numbers};
		ww_redis_words_text(say, identity);
		ww_redis_words_number(say, store->slice);
		ww_redis_words_number(say, i);
		ww_redis_words_number(say, store->shards);
		ww_redis_words_number(say, (uint64_t)is_existing(store));
		calls[i] = (struct redis_call){.script = &ww_redis_script_shard_make,
		    .key = store->tags[i],
		    .also = store->tags[store->shards + i],
		    .argc = say->count,
		    .argv = say->argv,
		    .lengths = say->lengths,
		    .flags = REDIS_CALL_AGAIN};
	}
	error = ww_redis_link_run(store->link, calls, store->shards);
	for (uint32_t i = 0; i < store->shards && !error; i++)
		error = read_shard(store, i, calls[i].reply, identity, made);
	ww_redis_link_free(calls, store->shards);
	store->allocator->free(store->allocator->user, calls, size);
	return error;
}

/* ---- The whole */

static int make_tags(struct redis_store *store, uint32_t shards)
{
	if (shards < 1 || shards > WW_REDIS_SHARDS_MAX)
		return WW_ECORRUPT;
	if (store->tags)
		return shards == store->shards ? WW_OK : WW_ECORRUPT;
	store->tags = store->allocator->allocate(store->allocator->user, 2 * shards * sizeof *store->tags);
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

/* Find the store, or make it like that. WW_ENOTFOUND: it is not there, and was only to be found. */
static int make_store(
    struct redis_store *store, const struct shape *shape, int is_existing, char identity[REDIS_IDENTITY_SIZE])
{
	struct few_words few;
	struct words *words = ww_redis_words_few(store, &few);
	struct redis_call call = {.script = &ww_redis_script_store_make,
	    .key = store->tag,
	    .also = store->key,
	    .argv = few.argv,
	    .lengths = few.lengths,
	    .flags = REDIS_CALL_AGAIN};
	uint64_t began = ww_redis_elapsed();
	int error;

	words->count = 0;
	ww_redis_words_text(words, shape->identity);
	ww_redis_words_number(words, FORMAT);
	ww_redis_words_number(words, shape->shards);
	ww_redis_words_number(words, shape->slice);
	ww_redis_words_number(words, (uint64_t)is_existing);
	call.argc = words->count;
	error = ww_redis_link_run(store->link, &call, 1);
	if (!error && call.reply->type == REDIS_REPLY_INTEGER)
		error = (int)call.reply->integer;
	if (!error)
		error = read_store(store, call.reply, identity);
	if (!error && !store->config.now)
		ww_redis_clock(store, (uint64_t)ww_redis_call_value(call.reply->element[4]), began);
	ww_redis_link_free(&call, 1);
	return error;
}

/* What the first shard says of its store. Returns 1, or 0: it is not there. */
static int recall(struct redis_store *store, struct shape *shape)
{
	char key[REDIS_TAG_SIZE];
	const char *argv[] = {"HMGET", key, "store", "shards", "slice"};
	struct redis_call call = {.key = key, .argc = 5, .argv = argv, .flags = REDIS_CALL_AGAIN};

	(void)snprintf(key, sizeof key, "{%s:0}:m", store->config.prefix);
	int result = ww_redis_link_run(store->link, &call, 1);
	if (!result)
		result = ww_redis_call_array(store, call.reply, 3);
	if (!result && call.reply->element[0]->type == REDIS_REPLY_STRING &&
	    call.reply->element[0]->len < REDIS_IDENTITY_SIZE) {
		memcpy(shape->identity, call.reply->element[0]->str, call.reply->element[0]->len + 1);
		shape->shards = (uint64_t)ww_redis_call_value(call.reply->element[1]);
		shape->slice = (uint64_t)ww_redis_call_value(call.reply->element[2]);
		result = shape->slice && shape->shards && shape->shards <= WW_REDIS_SHARDS_MAX;
	}
	ww_redis_link_free(&call, 1);
	return result;
}

static int find_or_make(struct redis_store *store, char identity[REDIS_IDENTITY_SIZE])
{
	struct shape shape = {.shards = store->tags ? store->shards : store->config.shards,
	    .slice = store->tags ? store->slice : store->config.slice / 1000};
	int error;

	pthread_mutex_lock(&store->lock);
	memcpy(shape.identity, store->identity, sizeof shape.identity);
	pthread_mutex_unlock(&store->lock);
	error = make_store(store, &shape, 1, identity);
	if (error != WW_ENOTFOUND)
		return error;
	/* If that alone is lost, its shards and their jobs are still there: it is made as they say. */
	error = recall(store, &shape);
	if (error == 1 && is_existing(store))
		return corrupt(store,
		    "The key %s of the store in Redis is lost, while its shards are there: put back a copy of it, or start "
		    "weekwheeld with this store, which makes it as they say.",
		    store->key);
	if (error == 0 && is_existing(store))
		return WW_ENOTFOUND;
	return error < 0 ? error : make_store(store, &shape, 0, identity);
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

	pthread_mutex_lock(&store->renewing);
	pthread_mutex_lock(&store->lock);
	memcpy(known, store->identity, sizeof known);
	pthread_mutex_unlock(&store->lock);
	/* Another thread may have made it since, with the same identity. */
	error = strcmp(known, gone) == 0 ? ww_redis_make(store, &made) : WW_OK;
	if (!error && (made || strcmp(known, store->identity) != 0)) {
		atomic_fetch_add(&store->resets, 1);
		ww_redis_report(store,
		    "Redis has lost this store, or a part of it, and it was made anew: the jobs that were "
		    "in it are gone. See that Redis keeps its data (appendonly yes).");
		ww_redis_hint_forget(store);
	}
	pthread_mutex_unlock(&store->renewing);
	return error;
}
