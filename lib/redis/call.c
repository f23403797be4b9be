/* Calls of scripts, and what they reply. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lib/redis/redis_internal.h"

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

/* ---- Calling */

/*
 * Calls of shards. Each works on all that its shard has, and would take for lost what has moved to another node
 * already.
 */
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
		error = ww_redis_make_anew(store, words->identity);
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
			error = ww_redis_make_anew(store, words->identity);
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
