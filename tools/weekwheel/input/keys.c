/*
 * Key interning. The texts lie end to end in large blocks, because millions of small allocations would take more memory
 * than the keys themselves.
 */
#include "tools/weekwheel/input/keys.h"

#include <stdlib.h>
#include <string.h>

#include "tools/common/memory.h"
#include "tools/common/message.h"

#define uthash_fatal(text) memory_exhausted()
#include <uthash.h>

enum { BLOCK_BYTES = 1 << 18 };

struct block {
	struct block *next;
	size_t used, size;
	char bytes[];
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
	struct block *blocks;
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
	while (keys->blocks) {
		struct block *next = keys->blocks->next;

		free(keys->blocks);
		keys->blocks = next;
	}
	free(keys->key);
	free(keys);
}

/* Return `size` bytes, aligned for an entry, that live as long as the keys. */
static void *keys_allocate(struct keys *keys, size_t size)
{
	struct block *block = keys->blocks;
	void *bytes;

	size = (size + sizeof(void *) - 1) / sizeof(void *) * sizeof(void *);
	if (!block || block->size - block->used < size) {
		size_t room = size > BLOCK_BYTES ? size : BLOCK_BYTES;

		block = memory_resize(NULL, sizeof *block + room, 1);
		block->next = keys->blocks;
		block->size = room;
		block->used = 0;
		keys->blocks = block;
	}
	bytes = block->bytes + block->used;
	block->used += size;
	return bytes;
}

uint32_t keys_append(struct keys *keys, const char *text, size_t size)
{
	char *copy;

	if (keys->count >= UINT32_MAX) {
		message_error("more than %lu different keys; replay a smaller file", (unsigned long)UINT32_MAX);
		exit(EXIT_FAILURE);
	}
	copy = keys_allocate(keys, size + 1);
	memcpy(copy, text, size);
	copy[size] = 0;
	keys->key = memory_grow(keys->key, &keys->capacity, keys->count, sizeof *keys->key);
	keys->key[keys->count].text = copy;
	keys->key[keys->count].size = size;
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
	entry = keys_allocate(keys, sizeof *entry);
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
