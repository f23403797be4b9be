/* Calls of scripts, what they reply, and a store that is made, also anew when Redis has lost it. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "redis_internal.h"

/* What a store is made as; one of a later version is not touched. */
#define FORMAT 1

int64_t ww_redis_call_value(const redisReply *reply)
{
	if (reply->type == REDIS_REPLY_INTEGER)
		return reply->integer;
	return reply->type == REDIS_REPLY_STRING || reply->type == REDIS_REPLY_STATUS ? strtoll(reply->str, NULL, 10)
	                                                                              : 0;
}

int ww_redis_call_array(struct redis_store *store, const redisReply *reply, size_t least)
{
	if (reply->type == REDIS_REPLY_ARRAY && reply->elements >= least)
		return WW_OK;
	ww_redis_report(
	    store, "A script of weekwheel replied what it never does: is another version at work on this store?");
	return WW_ECORRUPT;
}

void ww_redis_call_free(redisReply *reply)
{
	struct redis_call call = {.reply = reply};

	ww_redis_link_free(&call, 1);
}

static int is_gone(const struct redis_call *call)
{
	return !call->error && call->reply->type == REDIS_REPLY_INTEGER && call->reply->integer == REDIS_GONE;
}

/* ---- Making */

static int read_shard(struct redis_store *store, const redisReply *reply, const char *identity, uint32_t *made)
{
	int error = ww_redis_call_array(store, reply, 2);

	if (error)
		return error;
	if (reply->element[0]->type != REDIS_REPLY_STRING || strcmp(reply->element[0]->str, identity) != 0)
		return WW_ECORRUPT;
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
		error = read_shard(store, calls[i].reply, identity, made);
	if (error == WW_ECORRUPT)
		ww_redis_report(store,
		    "A part of the store in Redis is of another store: was it restored in part? Give "
		    "another prefix, or restore all of it.");
	ww_redis_link_free(calls, store->shards);
	store->allocator->free(store->allocator->user, calls, size);
	return error;
}

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

int ww_redis_call_make(struct redis_store *store, uint32_t *made)
{
	uint32_t count = 0;
	char identity[REDIS_IDENTITY_SIZE] = "";
	struct few_words few;
	struct words *words = ww_redis_words_few(store, &few);
	struct redis_call call = {.script = &ww_redis_script_store_make,
	    .key = store->tag,
	    .also = store->key,
	    .argv = few.argv,
	    .lengths = few.lengths};
	uint64_t began = ww_redis_elapsed();
	int error;

	words->count = 1;
	ww_redis_words_number(words, FORMAT);
	ww_redis_words_number(words, store->tags ? store->shards : store->config.shards);
	ww_redis_words_number(words, store->tags ? store->slice : store->config.slice / 1000);
	ww_redis_words_number(words, store->config.flags & WW_REDIS_EXISTING ? 1 : 0);
	call.argc = words->count;
	call.flags = REDIS_CALL_AGAIN;
	error = ww_redis_link_run(store->link, &call, 1);
	if (!error && call.reply->type == REDIS_REPLY_INTEGER)
		error = (int)call.reply->integer;
	if (!error)
		error = read_store(store, call.reply, identity);
	if (!error && !store->config.now)
		ww_redis_clock(store, (uint64_t)ww_redis_call_value(call.reply->element[4]), began);
	ww_redis_link_free(&call, 1);
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

int ww_redis_call_renew(struct redis_store *store, const char *gone)
{
	char known[REDIS_IDENTITY_SIZE];
	uint32_t made = 0;
	int error;

	pthread_mutex_lock(&store->renewing);
	pthread_mutex_lock(&store->lock);
	memcpy(known, store->identity, sizeof known);
	pthread_mutex_unlock(&store->lock);
	/* Another thread may have made it since, with the same identity. */
	error = strcmp(known, gone) == 0 ? ww_redis_call_make(store, &made) : WW_OK;
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

/* ---- Calling */

/* Calls of shards. Each works on all that its shard has, and would take for lost what has moved to another node already. */
static int run(struct redis_store *store, struct redis_call *calls, size_t count)
{
	for (size_t i = 0; i < count; i++)
		calls[i].also = calls[i].key + store->shards * sizeof *store->tags;
	int error = getpid() == store->process ? ww_redis_link_run(store->link, calls, count) : WW_ECLOSED;

	/* Each says what became of it, also where nothing was begun. */
	for (size_t i = 0; error && i < count; i++)
		if (!calls[i].error && !calls[i].reply)
			calls[i].error = error;
	return error;
}

/* The identity may have become another when the store was made anew. */
static void rename_words(struct redis_store *store, struct words *words)
{
	pthread_mutex_lock(&store->lock);
	memcpy(words->identity, store->identity, sizeof words->identity);
	pthread_mutex_unlock(&store->lock);
	words->lengths[0] = strlen(words->identity);
}

struct redis_call ww_redis_call_say(const struct redis_store *store, const struct redis_script *script, uint32_t shard,
    const struct words *words, unsigned flags)
{
	return (struct redis_call){.script = script,
	    .key = store->tags[shard],
	    .argc = words->count,
	    .argv = words->argv,
	    .lengths = words->lengths,
	    .flags = flags};
}

int ww_redis_call(struct redis_store *store, const struct redis_script *script, uint32_t shard, struct words *words,
    unsigned flags, redisReply **reply)
{
	struct redis_call call = ww_redis_call_say(store, script, shard, words, flags);
	int error = run(store, &call, 1);

	if (!error && is_gone(&call)) {
		ww_redis_link_free(&call, 1);
		error = ww_redis_call_renew(store, words->identity);
		rename_words(store, words);
		if (!error)
			error = run(store, &call, 1);
	}
	if (!error && call.reply->type == REDIS_REPLY_INTEGER && call.reply->integer < 0)
		error = is_gone(&call) ? WW_ECORRUPT : (int)call.reply->integer;
	if (error) {
		ww_redis_link_free(&call, 1);
		return error;
	}
	*reply = call.reply;
	return WW_OK;
}

int64_t ww_redis_call_number(
    struct redis_store *store, const struct redis_script *script, uint32_t shard, struct words *words, unsigned flags)
{
	redisReply *reply;
	int64_t number = ww_redis_call(store, script, shard, words, flags, &reply);

	if (number)
		return number;
	number = reply->type == REDIS_REPLY_INTEGER ? reply->integer : WW_ECORRUPT;
	ww_redis_call_free(reply);
	return number;
}

/* ---- Side by side */

int ww_redis_call_fan_make(struct redis_store *store, struct fan *fan, size_t count)
{
	size_t size = count * (sizeof *fan->calls + sizeof *fan->words);

	*fan = (struct fan){.count = count};
	fan->calls = store->allocator->allocate(store->allocator->user, size ? size : 1);
	if (!fan->calls)
		return WW_ENOMEM;
	memset(fan->calls, 0, size);
	fan->words = (struct words **)(void *)(fan->calls + count);
	return WW_OK;
}

void ww_redis_call_fan_free(struct redis_store *store, struct fan *fan)
{
	size_t size = fan->count * (sizeof *fan->calls + sizeof *fan->words);

	if (!fan->calls)
		return;
	ww_redis_link_free(fan->calls, fan->count);
	for (size_t i = 0; i < fan->count && !fan->all; i++)
		ww_redis_words_free(store, fan->words[i]);
	store->allocator->free(store->allocator->user, fan->calls, size ? size : 1);
	fan->calls = NULL;
}

/* Those that found the store gone, again, after it was made. */
static int repeat(struct redis_store *store, struct fan *fan)
{
	int error = WW_OK;

	for (size_t i = 0; i < fan->count; i++) {
		struct words *words = fan->all ? fan->all : fan->words[i];
		if (!is_gone(&fan->calls[i]))
			continue;
		ww_redis_link_free(&fan->calls[i], 1);
		if (!error)
			error = ww_redis_call_renew(store, words->identity);
		rename_words(store, words);
		fan->calls[i].error = error ? error : run(store, &fan->calls[i], 1);
		if (!fan->calls[i].error && is_gone(&fan->calls[i])) {
			ww_redis_link_free(&fan->calls[i], 1);
			fan->calls[i].error = WW_ECORRUPT;
		}
		if (!error)
			error = fan->calls[i].error;
	}
	return error;
}

int ww_redis_call_fan(struct redis_store *store, struct fan *fan)
{
	int error = run(store, fan->calls, fan->count);

	if (error == WW_ECLOSED)
		return error;
	int again = repeat(store, fan);
	return error ? error : again;
}

static int call_shards(
    struct redis_store *store, const struct redis_script *script, struct words *words, struct fan *fan, int *made)
{
	int error = ww_redis_call_fan_make(store, fan, store->shards);

	*made = !error;
	if (error)
		return error;
	fan->all = words;
	for (uint32_t i = 0; i < store->shards; i++)
		fan->calls[i] = ww_redis_call_say(store, script, i, words, REDIS_CALL_AGAIN);
	return ww_redis_call_fan(store, fan);
}

int ww_redis_call_all(
    struct redis_store *store, const struct redis_script *script, struct words *words, struct fan *fan)
{
	int made;
	int error = call_shards(store, script, words, fan, &made);

	if (error && made)
		ww_redis_call_fan_free(store, fan);
	return error;
}

int ww_redis_call_each(
    struct redis_store *store, const struct redis_script *script, struct words *words, struct fan *fan)
{
	int made;
	int error = call_shards(store, script, words, fan, &made);

	return made ? WW_OK : error;
}
