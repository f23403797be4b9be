/* A plain table of sessions: see table.h. */
#include "tools/weekwheel-sessiond/keep/table.h"

#include <stdlib.h>
#include <string.h>

#include "lib/base/memory.h"
#include "lib/base/seeded.h"

/* The size of the map's own blocks, which reuse the memory. Words are numbered through all blocks. */
enum { BLOCK_WORDS = (2 << 20) / 8 - 1, BLOCKS_MOST = 1 << 14 };
enum { PLACES_LEAST = 1024 };

struct keep_block {
	uint64_t used; /* words */
	uint64_t word[BLOCK_WORDS];
};

static uint32_t words_of(size_t length)
{
	return (uint32_t)((offsetof(struct keep_session, key) + length + 7) / 8);
}

static struct keep_session *session_at(const struct keep_table *table, uint32_t word)
{
	return (struct keep_session *)&table->block[word / BLOCK_WORDS]->word[word % BLOCK_WORDS];
}

static int is_of(const struct keep_session *session, const void *key, size_t length)
{
	return session->length == length && memcmp(session->key, key, length) == 0;
}

/* The session's place, or where it belongs. */
static uint64_t *find(const struct keep_table *table, const void *key, size_t length, uint32_t hash)
{
	size_t at = hash & (table->places - 1);

	while (table->place[at] && (table->place[at] >> 32 != hash ||
	                               !is_of(session_at(table, (uint32_t)table->place[at] - 1), key, length)))
		at = (at + 1) & (table->places - 1);
	return &table->place[at];
}

struct keep_session *keep_table_find(const struct keep_table *table, const void *key, size_t length)
{
	uint64_t place = table->places ? *find(table, key, length, seeded_hash(key, length)) : 0;
	struct keep_session *session = place ? session_at(table, (uint32_t)place - 1) : NULL;

	return session && session->value ? session : NULL;
}

void keep_table_expect(const struct keep_table *table, const void *key, size_t length)
{
	if (table->places)
		__builtin_prefetch(&table->place[seeded_hash(key, length) & (table->places - 1)]);
}

/* A fifth of the places stays free, so that searches are short. */
static int grow(struct keep_table *table)
{
	size_t places = table->places ? 2 * table->places : PLACES_LEAST;
	uint64_t *place;

	if (table->count < table->places / 5 * 4)
		return WW_OK;
	place = calloc(places, sizeof *place);
	if (!place)
		return WW_ENOMEM;
	for (size_t i = 0; i < table->places; i++) {
		size_t at = table->place[i] >> 32 & (places - 1);
		while (table->place[i] && place[at])
			at = (at + 1) & (places - 1);
		if (table->place[i])
			place[at] = table->place[i];
	}
	free(table->place);
	table->place = place;
	table->places = places;
	return WW_OK;
}

static struct keep_block *add_block(struct keep_table *table)
{
	struct keep_block **more = realloc(table->block, (table->blocks + 1) * sizeof *more);
	struct keep_block *block;

	if (!more)
		return NULL;
	table->block = more;
	if (table->blocks == BLOCKS_MOST)
		return NULL;
	block = memory_take(ww_allocator_default(), sizeof *block);
	if (!block)
		return NULL;
	block->used = 0;
	return table->block[table->blocks++] = block;
}

/* The block with room for this many words, or NULL. */
static struct keep_block *block_for(struct keep_table *table, uint32_t words)
{
	struct keep_block *last = table->blocks ? table->block[table->blocks - 1] : NULL;

	return last && BLOCK_WORDS - last->used >= words ? last : add_block(table);
}

struct keep_session *keep_table_add(struct keep_table *table, const void *key, size_t length)
{
	uint32_t hash = seeded_hash(key, length);
	struct keep_block *block;
	struct keep_session *session;
	uint64_t *place;
	uint32_t word;

	if (grow(table) != WW_OK)
		return NULL;
	place = find(table, key, length, hash);
	if (*place)
		return session_at(table, (uint32_t)*place - 1);
	block = block_for(table, words_of(length));
	if (!block)
		return NULL;
	word = (table->blocks - 1) * BLOCK_WORDS + (uint32_t)block->used;
	*place = (uint64_t)hash << 32 | (word + 1);
	table->count++;
	block->used += words_of(length);
	session = session_at(table, word);
	session->value = NULL;
	session->end = KEEP_GONE;
	session->length = (uint16_t)length;
	memcpy(session->key, key, length);
	return session;
}

static int walk_block(struct keep_block *block, keep_session_fn *fn, void *context)
{
	const struct keep_session *session;
	int error = WW_OK;

	for (size_t at = 0; at < block->used && !error; at += words_of(session->length)) {
		session = (struct keep_session *)&block->word[at];
		if (session->value || session->end != KEEP_GONE)
			error = fn((struct keep_session *)&block->word[at], context);
	}
	return error;
}

int keep_table_walk(const struct keep_table *table, keep_session_fn *fn, void *context)
{
	int error = WW_OK;

	for (uint32_t i = 0; i < table->blocks && !error; i++)
		error = walk_block(table->block[i], fn, context);
	return error;
}

static int drop(struct keep_session *session, void *context)
{
	(void)context;
	free(session->value);
	return WW_OK;
}

int keep_table_drain(struct keep_table *table, keep_session_fn *fn, void *context)
{
	int error = WW_OK;

	free(table->place);
	for (uint32_t i = 0; i < table->blocks; i++) {
		if (!error)
			error = walk_block(table->block[i], fn, context);
		if (error)
			(void)walk_block(table->block[i], drop, NULL);
		memory_give(ww_allocator_default(), table->block[i], sizeof *table->block[i]);
	}
	free(table->block);
	*table = (struct keep_table){0};
	return error;
}

void keep_table_clear(struct keep_table *table)
{
	(void)keep_table_drain(table, drop, NULL);
}
