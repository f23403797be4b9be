/*
 * Calls of scripts: their words, their replies, and the time that these contain.
 *
 * When Redis has lost its data, it is empty or has another store, and a script replies REDIS_GONE. Then:
 *   1. The calling thread makes the store anew, unless another has done so meanwhile (ww_redis_make_anew).
 *   2. It puts the new identity into the call's words, and makes the call once more.
 *   3. If that finds the store gone again, another process is changing it: WW_ECORRUPT.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/redis/redis_internal.h"

/* ---- Words: those of the caller stay where they are, and numbers are written here */

static struct words *begin(struct redis_store *store, struct words *words)
{
	words->count = 0;
	copy_identity(store, words->identity);
	ww_redis_words_text(words, words->identity);
	if (store->config.now)
		ww_redis_words_number(words, store->config.now(store->config.context) / 1000);
	else
		ww_redis_words_text(words, "");
	return words;
}

struct words *ww_redis_words_few(struct redis_store *store, struct few_words *few)
{
	few->words =
	    (struct words){.room = FEW_WORDS, .argv = few->argv, .lengths = few->lengths, .numbers = few->numbers};
	return begin(store, &few->words);
}

static size_t size_of(size_t room)
{
	return sizeof(struct words) + room * (sizeof(char *) + sizeof(size_t) + 24);
}

struct words *ww_redis_words_many(struct redis_store *store, size_t room)
{
	struct words *words = memory_take(store->allocator, size_of(room));

	if (!words)
		return NULL;
	*words = (struct words){.room = room, .argv = (const char **)(words + 1)};
	words->lengths = (size_t *)(words->argv + room);
	words->numbers = (char(*)[24])(words->lengths + room);
	return begin(store, words);
}

void ww_redis_words_free(struct redis_store *store, struct words *words)
{
	if (words)
		memory_give(store->allocator, words, size_of(words->room));
}

void ww_redis_words_bytes(struct words *words, const void *bytes, size_t length)
{
	words->argv[words->count] = length ? bytes : "";
	words->lengths[words->count++] = length;
}

void ww_redis_words_text(struct words *words, const char *text)
{
	ww_redis_words_bytes(words, text, strlen(text));
}

void ww_redis_words_number(struct words *words, uint64_t number)
{
	char *to = words->numbers[words->count];

	ww_redis_words_bytes(words, to, (size_t)snprintf(to, 24, "%" PRIu64, number));
}

void ww_redis_words_joined(struct words *words, const char *text, uint64_t number)
{
	char *to = words->numbers[words->count];

	ww_redis_words_bytes(words, to, (size_t)snprintf(to, 24, "%s%" PRIu64, text, number));
}

void ww_redis_words_signed(struct words *words, int64_t number)
{
	char *to = words->numbers[words->count];

	ww_redis_words_bytes(words, to, (size_t)snprintf(to, 24, "%" PRId64, number));
}

/* ---- Replies */

int64_t ww_redis_call_value(const redisReply *reply)
{
	if (reply->type == REDIS_REPLY_INTEGER)
		return reply->integer;
	return reply->str ? strtoll(reply->str, NULL, 10) : 0;
}

int ww_redis_call_array(struct redis_store *store, const redisReply *reply, size_t least)
{
	if (reply->type == REDIS_REPLY_ARRAY && reply->elements >= least)
		return WW_OK;
	ww_redis_link_log(
	    store->link, "A script of weekwheel replied what it never does: is another version at work on this store?");
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
 * A shard's script works on keys that it does not name. While the shard's slot moves, it would take those on the other
 * node for lost: `also` makes it wait (link/link.h).
 */
static int send(struct redis_store *store, struct redis_call *calls, size_t count)
{
	for (size_t i = 0; i < count; i++)
		calls[i].also = calls[i].key + store->shards * sizeof *store->tags;
	return ww_redis_link_run(store->link, calls, count);
}

/* The shard after that key's that serves, or the same one. */
static const char *next_key(struct redis_store *store, const char *key)
{
	size_t shard = (size_t)(key - store->tags[0]) / sizeof *store->tags;

	for (size_t i = 1; i < store->shards; i++) {
		const char *next = store->tags[(shard + i) % store->shards];
		if (ww_redis_link_serves(store->link, next))
			return next;
	}
	return key;
}

/* A call for any shard has failed: while nothing was sent, try others, and at last wait for the first one. */
static void try_elsewhere(struct redis_store *store, struct redis_call *call)
{
	const char *own = call->key;

	for (uint32_t i = 0; i < store->shards && call->flags & REDIS_CALL_ANY_SHARD; i++) {
		if ((call->error != WW_EAGAIN && call->error != WW_EIO) || call->is_sent)
			return;
		const char *next = next_key(store, call->key);
		if (next == call->key || i + 1 == store->shards) {
			next = own;
			call->flags &= ~(REDIS_CALL_ANY_SHARD | REDIS_CALL_SOON);
		}
		call->key = next;
		(void)send(store, call, 1);
	}
}

static int run(struct redis_store *store, struct redis_call *calls, size_t count)
{
	int error = ww_fork_count() == store->forks ? send(store, calls, count) : WW_ECLOSED;

	if (!error)
		return WW_OK;
	for (size_t i = 0; i < count; i++) {
		/* Each call has its error, even if none was begun. */
		if (error == WW_ECLOSED)
			calls[i].error = error;
		try_elsewhere(store, &calls[i]);
	}
	for (size_t i = 0; i < count; i++) {
		if (calls[i].error)
			return calls[i].error;
	}
	return WW_OK;
}

static void rename_words(struct redis_store *store, struct words *words)
{
	copy_identity(store, words->identity);
	words->lengths[0] = strlen(words->identity);
}

struct redis_call ww_redis_call_make(const struct redis_store *store, const struct redis_script *script, uint32_t shard,
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
	struct redis_call call = ww_redis_call_make(store, script, shard, words, flags);
	struct fan one = {.calls = &call, .all = words, .count = 1};
	int error = ww_redis_call_fan(store, &one);

	if (!error && call.reply->type == REDIS_REPLY_INTEGER && call.reply->integer < 0)
		error = (int)call.reply->integer;
	if (error)
		ww_redis_link_free(&call, 1);
	else
		*reply = call.reply;
	return error;
}

int ww_redis_call_list(struct redis_store *store, const struct redis_script *script, uint32_t shard,
    struct words *words, unsigned flags, size_t least, redisReply **reply)
{
	int error = ww_redis_call(store, script, shard, words, flags, reply);

	if (error)
		return error;
	error = ww_redis_call_array(store, *reply, least);
	if (error)
		ww_redis_call_free(*reply);
	return error;
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
	fan->calls = memory_take_zeroed(store->allocator, size ? size : 1);
	if (!fan->calls)
		return WW_ENOMEM;
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
	memory_give(store->allocator, fan->calls, size ? size : 1);
	fan->calls = NULL;
}

/* Repeat the calls that found the store gone. */
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

int ww_redis_call_each(struct redis_store *store, const struct redis_script *script, struct words *words,
    const uint32_t *shards, size_t count, unsigned flags, struct fan *fan)
{
	int error = ww_redis_call_fan_make(store, fan, count);

	if (error)
		return error;
	fan->all = words;
	for (uint32_t i = 0; i < count; i++)
		fan->calls[i] = ww_redis_call_make(store, script, shards ? shards[i] : i, words, flags);
	return ww_redis_call_fan(store, fan);
}

int ww_redis_call_all(
    struct redis_store *store, const struct redis_script *script, struct words *words, size_t least, struct fan *fan)
{
	int error =
	    ww_redis_call_each(store, script, words, NULL, store->shards, REDIS_CALL_AGAIN | REDIS_CALL_SOON, fan);

	for (size_t i = 0; i < fan->count && least && !error; i++)
		error = ww_redis_call_array(store, fan->calls[i].reply, least);
	if (error)
		ww_redis_call_fan_free(store, fan);
	return error;
}

/* ---- Redis's time, as far as replies tell it */

uint64_t ww_redis_clock_now(const struct redis_store *store)
{
	if (store->config.now)
		return store->config.now(store->config.context);
	return (uint64_t)((int64_t)time_now(CLOCK_BOOTTIME) + atomic_load(&store->offset));
}

void ww_redis_clock_learn(struct redis_store *store, uint64_t redis_us, uint64_t began)
{
	uint64_t now = time_now(CLOCK_BOOTTIME);

	/* An answer that took long says little. */
	if (now - began < REDIS_CALL_LONG || atomic_load(&store->offset) == 0)
		atomic_store(&store->offset, (int64_t)(redis_us * 1000) - (int64_t)now);
}
