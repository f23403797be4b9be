/* The memory of a hashed wheel with rounds. */
#include "tools/bench/structures/rounds.h"

#include <stdlib.h>
#include <string.h>

#include "tools/common/memory.h"

/* Put entries from `begin` to `end` - 1 on the free list, which is empty; the lowest is taken first. */
static void rounds_free(struct rounds *rounds, uint32_t begin, uint32_t end)
{
	memset(&rounds->entry[begin], 0, (end - begin) * sizeof *rounds->entry);
	for (uint32_t i = begin; i + 1 < end; i++)
		rounds->entry[i].next = i + 1;
	rounds->free = begin;
}

struct rounds *rounds_create(struct object *objects, uint64_t n, struct sink *sink, uint32_t slots)
{
	struct rounds *rounds = memory_zeroed(1, sizeof *rounds);

	if (n > UINT32_MAX / 6)
		memory_exhausted();
	rounds->objects = objects;
	rounds->sink = sink;
	rounds->first = memory_aligned(slots, sizeof *rounds->first);
	rounds->entries = (uint32_t)(3 * n + 2);
	rounds->entry = memory_aligned(rounds->entries, sizeof *rounds->entry);
	rounds_free(rounds, 1, rounds->entries);
	return rounds;
}

void rounds_destroy(void *state)
{
	struct rounds *rounds = state;

	free(rounds->entry);
	free(rounds->first);
	free(rounds);
}

void rounds_grow(struct rounds *rounds)
{
	uint32_t begin = rounds->entries;

	if (begin > UINT32_MAX / 2)
		memory_exhausted();
	rounds->entries = begin + begin / 2;
	rounds->entry = memory_resize(rounds->entry, rounds->entries, sizeof *rounds->entry);
	rounds_free(rounds, begin, rounds->entries);
}
