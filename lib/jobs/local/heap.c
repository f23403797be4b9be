/* The ready jobs of a tube: a heap with four children per node, which lie next to each other in memory. */
#include "lib/jobs/local/local_internal.h"

enum { CHILDREN = 4 };

static int is_less(const struct entry *one, const struct entry *other)
{
	if (one->is.priority != other->is.priority)
		return one->is.priority < other->is.priority;
	return one->id < other->id;
}

static void put_at(struct tube *tube, uint32_t place, struct entry *entry)
{
	tube->heap[place] = entry;
	entry->place = place;
}

static void rise(struct tube *tube, uint32_t place, struct entry *entry)
{
	while (place) {
		uint32_t parent = (place - 1) / CHILDREN;
		if (!is_less(entry, tube->heap[parent]))
			break;
		put_at(tube, place, tube->heap[parent]);
		place = parent;
	}
	put_at(tube, place, entry);
}

static void sink(struct tube *tube, uint32_t place, struct entry *entry)
{
	for (;;) {
		uint32_t first = place * CHILDREN + 1;
		uint32_t least = first;
		if (first >= tube->ready)
			break;
		for (uint32_t i = first + 1; i < first + CHILDREN && i < tube->ready; i++)
			if (is_less(tube->heap[i], tube->heap[least]))
				least = i;
		if (!is_less(tube->heap[least], entry))
			break;
		put_at(tube, place, tube->heap[least]);
		place = least;
	}
	put_at(tube, place, entry);
}

int ww_jobs_heap_reserve(struct tube *tube)
{
	struct jobs_local *jobs = tube->jobs;
	struct entry **more;
	uint32_t room;

	if (tube->ready < tube->room)
		return WW_OK;
	room = tube->room ? 2 * tube->room : 16;
	more = ww_jobs_resize(jobs, tube->heap, tube->room * sizeof *more, room * sizeof *more);
	if (!more)
		return WW_ENOMEM;
	tube->heap = more;
	tube->room = room;
	return WW_OK;
}

void ww_jobs_heap_add(struct tube *tube, struct entry *entry)
{
	rise(tube, tube->ready++, entry);
}

void ww_jobs_heap_remove(struct tube *tube, struct entry *entry)
{
	uint32_t place = entry->place;
	struct entry *last = tube->heap[--tube->ready];

	entry->place = NO_PLACE;
	if (last == entry)
		return;
	if (place && is_less(last, tube->heap[(place - 1) / CHILDREN]))
		rise(tube, place, last);
	else
		sink(tube, place, last);
}
