/* The ready jobs of a tube or of a group: a heap with four children per node, which lie next to each other in memory. */
#include "lib/jobs/local/heap.h"

#include "lib/jobs/local/entries.h"
#include "lib/jobs/local/memory.h"

enum { CHILDREN = 4 };

int ww_jobs_heap_is_less(const struct entry *one, const struct entry *other)
{
	if (one->is.priority != other->is.priority)
		return one->is.priority < other->is.priority;
	return one->id < other->id;
}

static void put_at(struct ready_heap *heap, uint32_t place, struct entry *entry)
{
	heap->at[place] = entry;
	entry->place = place;
}

static void rise(struct ready_heap *heap, uint32_t place, struct entry *entry)
{
	while (place) {
		uint32_t parent = (place - 1) / CHILDREN;
		if (!ww_jobs_heap_is_less(entry, heap->at[parent]))
			break;
		put_at(heap, place, heap->at[parent]);
		place = parent;
	}
	put_at(heap, place, entry);
}

static void sink(struct ready_heap *heap, uint32_t place, struct entry *entry)
{
	for (;;) {
		uint32_t first = place * CHILDREN + 1;
		uint32_t least = first;
		if (first >= heap->count)
			break;
		for (uint32_t i = first + 1; i < first + CHILDREN && i < heap->count; i++)
			if (ww_jobs_heap_is_less(heap->at[i], heap->at[least]))
				least = i;
		if (!ww_jobs_heap_is_less(heap->at[least], entry))
			break;
		put_at(heap, place, heap->at[least]);
		place = least;
	}
	put_at(heap, place, entry);
}

int ww_jobs_heap_reserve(struct jobs_local *jobs, struct ready_heap *heap)
{
	struct entry **more;
	uint32_t room;

	if (heap->count < heap->room)
		return WW_OK;
	room = heap->room ? 2 * heap->room : 16;
	more = ww_jobs_resize(jobs, heap->at, heap->room * sizeof *more, room * sizeof *more);
	if (!more)
		return WW_ENOMEM;
	heap->at = more;
	heap->room = room;
	return WW_OK;
}

void ww_jobs_heap_add(struct ready_heap *heap, struct entry *entry)
{
	rise(heap, heap->count++, entry);
}

void ww_jobs_heap_remove(struct ready_heap *heap, struct entry *entry)
{
	uint32_t place = entry->place;
	struct entry *last = heap->at[--heap->count];

	entry->place = NO_PLACE;
	if (last == entry)
		return;
	if (place && ww_jobs_heap_is_less(last, heap->at[(place - 1) / CHILDREN]))
		rise(heap, place, last);
	else
		sink(heap, place, last);
}
