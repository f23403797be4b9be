/*
 * The keys and their numbers. The texts lie end to end in large chunks, because millions of small allocations would take
 * more memory than the keys themselves.
 */
#include "tools/weekwheel/input/keys.h"

#include <stdalign.h>
#include <stdlib.h>
#include <string.h>

#include "tools/common/memory.h"
#include "tools/common/message.h"

#define uthash_fatal(text) memory_exhausted()
#include <uthash.h>

enum { CHUNK_BYTES = 1 << 18 };

struct chunk {
	struct chunk *next;
	size_t used, size;
	alignas(max_align_t) char bytes[];
};

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
	struct chunk *chunks; /* of texts and entries; the first has room */
};

struct keys *keys_new(void)
{
	return memory_zeroed(1, sizeof(struct keys));
}

void keys_free(struct keys *keys)
{
	if (!keys)
		return;
	HASH_CLEAR(hh, keys->table);
	for (struct chunk *chunk = keys->chunks, *next; chunk; chunk = next) {
		next = chunk->next;
		free(chunk);
	}
	free(keys->key);
	free(keys);
}

/* Return that many bytes at an address that serves any type. */
static void *take_room(struct keys *keys, size_t size)
{
	struct chunk *chunk = keys->chunks;

	size = (size + alignof(max_align_t) - 1) / alignof(max_align_t) * alignof(max_align_t);
	if (!chunk || size > chunk->size - chunk->used) {
		size_t room = size > CHUNK_BYTES ? size : CHUNK_BYTES;
		chunk = memory_zeroed(1, sizeof *chunk + room);
		*chunk = (struct chunk){.next = keys->chunks, .size = room};
		keys->chunks = chunk;
	}
	chunk->used += size;
	return chunk->bytes + chunk->used - size;
}

uint32_t keys_append(struct keys *keys, const char *text, size_t size)
{
	char *copy;

	if (keys->count >= UINT32_MAX) {
		message_error("more than %lu different keys; replay a smaller file", (unsigned long)UINT32_MAX);
		exit(EXIT_FAILURE);
	}
	copy = take_room(keys, size + 1);
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
	entry = take_room(keys, sizeof *entry);
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
