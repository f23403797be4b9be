/* Records of one size: chunks of them, and the list of unused ones. */

#include <stdatomic.h>
#include <string.h>

#include "lib/base/slab.h"

void ww_slab_init(struct slab *slab, size_t size, const struct ww_allocator *allocator)
{
	*slab = (struct slab){.allocator = allocator, .size = size, .top = SLAB_NONE};
}

static size_t chunk_bytes(const struct slab *slab)
{
	return SLAB_CHUNK * slab->size;
}

void ww_slab_destroy(struct slab *slab)
{
	const struct ww_allocator *allocator = slab->allocator;

	for (uint32_t i = 0; i < slab->chunks; i++)
		allocator->free(allocator->user, slab->chunk[i], chunk_bytes(slab));
	if (slab->room)
		allocator->free(allocator->user, slab->chunk, slab->room * sizeof *slab->chunk);
	ww_slab_init(slab, slab->size, allocator);
}

/* An array with room for this many chunks: the slab's own or a larger one. *room gets its size. NULL: no memory. */
static char **find_array(const struct slab *slab, uint32_t chunks, uint32_t *room)
{
	const struct ww_allocator *allocator = slab->allocator;
	char **array;

	*room = slab->room;
	if (chunks <= slab->room)
		return slab->chunk;
	*room += slab->room / 2 + 4;
	if (*room < chunks)
		*room = chunks;
	array = allocator->allocate(allocator->user, *room * sizeof *array);
	if (array && slab->chunks)
		memcpy(array, slab->chunk, slab->chunks * sizeof *array);
	return array;
}

/* Put `count` chunks at the array's `end`, or none on error. */
static int fill_array(const struct slab *slab, char **end, uint32_t count)
{
	const struct ww_allocator *allocator = slab->allocator;

	for (uint32_t made = 0; made < count; made++) {
		end[made] = allocator->allocate(allocator->user, chunk_bytes(slab));
		if (end[made]) {
			memset(end[made], 0, chunk_bytes(slab));
			continue;
		}
		while (made--)
			allocator->free(allocator->user, end[made], chunk_bytes(slab));
		return WW_ENOMEM;
	}
	return WW_OK;
}

static void use_array(struct slab *slab, char **array, uint32_t room)
{
	char **former = slab->chunk;
	uint32_t former_room = slab->room;

	if (array == former)
		return;
	/* A child of fork frees an array that has room: between two of these stores there is none to free. */
	slab->room = 0;
	atomic_signal_fence(memory_order_seq_cst);
	slab->chunk = array;
	atomic_signal_fence(memory_order_seq_cst);
	slab->room = room;
	atomic_signal_fence(memory_order_seq_cst);
	if (former_room)
		slab->allocator->free(slab->allocator->user, former, former_room * sizeof *former);
}

/* Add this many chunks. On error nothing has changed. */
static int add_chunks(struct slab *slab, uint32_t count)
{
	const struct ww_allocator *allocator = slab->allocator;
	uint32_t first = slab_end(slab);
	uint32_t room;
	char **array = find_array(slab, slab->chunks + count, &room);

	if (!array)
		return WW_ENOMEM;
	if (fill_array(slab, array + slab->chunks, count)) {
		if (array != slab->chunk)
			allocator->free(allocator->user, array, room * sizeof *array);
		return WW_ENOMEM;
	}
	use_array(slab, array, room);
	slab->chunks += count;
	for (uint32_t index = slab_end(slab); index > first; index--)
		ww_slab_give(slab, index - 1);
	return WW_OK;
}

int ww_slab_reserve(struct slab *slab, size_t records)
{
	if (records > SLAB_MAX - slab_taken(slab))
		return WW_ENOMEM;
	if (records <= slab->unused)
		return WW_OK;
	return add_chunks(slab, ((uint32_t)records - slab->unused + SLAB_CHUNK - 1) / SLAB_CHUNK);
}

void ww_slab_give(struct slab *slab, uint32_t index)
{
	struct slab_unused *block = slab->top == SLAB_NONE ? NULL : slab_at(slab, slab->top);

	slab->unused++;
	if (block && block->count < SLAB_BLOCK) {
		block->index[block->count++] = index;
		return;
	}
	block = slab_at(slab, index);
	block->next = slab->top;
	block->count = 0;
	slab->top = index;
}

uint32_t ww_slab_take(struct slab *slab)
{
	struct slab_unused *block;
	uint32_t index;

	if (slab->unused == 0 && (slab_end(slab) == SLAB_MAX || add_chunks(slab, 1)))
		return SLAB_NONE;
	slab->unused--;
	block = slab_at(slab, slab->top);
	if (block->count == 0) {
		index = slab->top;
		slab->top = block->next;
		return index;
	}
	index = block->index[--block->count];
	if (block->count)
		__builtin_prefetch(slab_at(slab, block->index[block->count - 1]), 1);
	else if (block->next != SLAB_NONE)
		__builtin_prefetch(slab_at(slab, block->next), 1);
	return index;
}

size_t ww_slab_bytes(const struct slab *slab)
{
	return slab->chunks * chunk_bytes(slab) + slab->room * sizeof *slab->chunk;
}
