/* The arguments of a call: words that stay where the caller has them, and numbers that are written here. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "lib/redis/redis_internal.h"

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

void ww_redis_words_signed(struct words *words, int64_t number)
{
	char *to = words->numbers[words->count];

	ww_redis_words_bytes(words, to, (size_t)snprintf(to, 24, "%" PRId64, number));
}
