/*
 * The keys and their numbers. The texts lie end to end in an obstack, because millions of small allocations would take
 * more memory than the keys themselves.
 */
#include "tools/weekwheel/input/keys.h"

#include <obstack.h>
#include <stdlib.h>
#include <string.h>

#include "tools/common/memory.h"
#include "tools/common/message.h"

#define uthash_fatal(text) memory_exhausted()
#include <uthash.h>

#define obstack_chunk_alloc malloc
#define obstack_chunk_free free
enum { CHUNK_BYTES = 1 << 18 };

struct key {
	const char *text;
	size_t size;
};

struct key_entry {
	UT_hash_handle hh;
	uint32_t id;
};

struct keys {
	struct key *key;
	size_t count, capacity;
	struct key_entry *table;
	struct obstack texts; /* and entries */
};

struct keys *keys_new(void)
{
	struct keys *keys = memory_zeroed(1, sizeof *keys);

	obstack_alloc_failed_handler = memory_exhausted;
	obstack_begin(&keys->texts, CHUNK_BYTES);
	return keys;
}

void keys_free(struct keys *keys)
{
	if (!keys)
		return;
	HASH_CLEAR(hh, keys->table);
	obstack_free(&keys->texts, NULL);
	free(keys->key);
	free(keys);
}

uint32_t keys_append(struct keys *keys, const char *text, size_t size)
{
	char *copy;

	if (keys->count >= UINT32_MAX) {
		message_error("more than %lu different keys; replay a smaller file", (unsigned long)UINT32_MAX);
		exit(EXIT_FAILURE);
	}
	/* No key is longer than a line. */
	copy = obstack_alloc(&keys->texts, (int)size + 1);
	memcpy(copy, text, size);
	copy[size] = 0;
	keys->key = memory_grow(keys->key, &keys->capacity, keys->count, sizeof *keys->key);
	keys->key[keys->count] = (struct key){copy, size};
	return (uint32_t)keys->count++;
}

static struct key_entry *keys_find(const struct keys *keys, const char *text, size_t size)
{
	struct key_entry *found;

	HASH_FIND(hh, keys->table, text, size, found);
	return found;
}

int keys_known(const struct keys *keys, const char *text, size_t size)
{
	return keys_find(keys, text, size) != NULL;
}

uint32_t keys_intern(struct keys *keys, const char *text, size_t size)
{
	struct key_entry *entry = keys_find(keys, text, size);

	if (entry)
		return entry->id;
	entry = obstack_alloc(&keys->texts, sizeof *entry);
	entry->id = keys_append(keys, text, size);
	HASH_ADD_KEYPTR(hh, keys->table, keys->key[entry->id].text, size, entry);
	return entry->id;
}

size_t keys_count(const struct keys *keys)
{
	return keys->count;
}

const char *keys_text(const struct keys *keys, uint32_t id, size_t *size)
{
	*size = keys->key[id].size;
	return keys->key[id].text;
}
