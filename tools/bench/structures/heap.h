/*
 * A heap with positions, of HEAP_ARITY children a node. The file that includes this defines HEAP_ARITY, which is thus a
 * constant to the compiler, and HEAP_STRUCTURE, HEAP_NAME and HEAP_SUMMARY of the structure to make.
 *
 * This is the strongest form of a heap that we know. An entry has 8 bytes with the deadline among them: a comparison
 * reads no timer. The position of each timer's entry stands in a dense array of 4 bytes a timer, which the many moves of
 * entries write to. The children of an entry begin at a multiple of HEAP_ARITY: no cache line boundary parts them.
 *
 *     entries, of arity 4   [ - | - | - | 3 ][ 4 | 5 | 6 | 7 ][ 8 | 9 | 10 | 11 ][ 12 ...
 *                                     root     its children     those of 4
 *
 * The object holds its timer's number. Unused entries have the deadline UNUSED, later than any: the earliest of the
 * children is found without asking how many there are.
 */

#include <stdlib.h>
#include <string.h>

#include "tools/bench/structure.h"
#include "tools/common/memory.h"

#define UNUSED UINT32_MAX

enum { ROOT = HEAP_ARITY - 1, LINE = 64 / 8 };

struct heap_entry {
	uint32_t deadline;
	uint32_t timer;
};

struct heap_node {
	uint32_t timer;
};

struct heap {
	struct heap_entry *entries;
	size_t end; /* one past the last entry */
	uint32_t *position;
	uint32_t now;
	struct object *objects;
	struct sink *sink;
};

static struct heap_node *heap_node(struct object *object)
{
	return (struct heap_node *)(void *)object;
}

static void *heap_create(struct object *objects, uint64_t n, struct sink *sink)
{
	struct heap *heap = memory_zeroed(1, sizeof *heap);
	size_t room = (size_t)n + 2 * HEAP_ARITY;

	heap->entries = memory_aligned(room, sizeof *heap->entries);
	memset(heap->entries, 0xff, room * sizeof *heap->entries);
	heap->end = ROOT;
	heap->position = memory_aligned((size_t)n, sizeof *heap->position);
	heap->objects = objects;
	heap->sink = sink;
	for (uint32_t i = 0; i < n; i++)
		heap_node(&objects[i])->timer = i;
	return heap;
}

static void heap_destroy(void *state)
{
	struct heap *heap = state;

	free(heap->entries);
	free(heap->position);
	free(heap);
}

static void heap_put(struct heap *heap, size_t at, struct heap_entry entry)
{
	heap->entries[at] = entry;
	heap->position[entry.timer] = (uint32_t)at;
}

/* Put the entry in the hole `at`, or where it belongs above it. */
static void heap_rise(struct heap *heap, size_t at, struct heap_entry entry)
{
	while (at > ROOT) {
		size_t parent = at / HEAP_ARITY + ROOT - 1;

		if (heap->entries[parent].deadline <= entry.deadline)
			break;
		heap_put(heap, at, heap->entries[parent]);
		at = parent;
	}
	heap_put(heap, at, entry);
}

/* The comparison becomes a mask: a branch would be mispredicted every other time. */
static size_t heap_earlier(const struct heap *heap, size_t one, size_t other)
{
	size_t take_other = -(size_t)(heap->entries[other].deadline < heap->entries[one].deadline);

	return one ^ ((one ^ other) & take_other);
}

/* Return the earliest of the children, the first of which is given. */
static size_t heap_earliest(const struct heap *heap, size_t first)
{
	size_t earliest = heap_earlier(heap, first, first + 1);

	if (HEAP_ARITY == 2)
		return earliest;
	return heap_earlier(heap, earliest, heap_earlier(heap, first + 2, first + 3));
}

static size_t heap_first_child(size_t at)
{
	return (at - ROOT + 1) * HEAP_ARITY;
}

/*
 * Ask for the entries that will be needed later on the way down from these children. What has the same distance from
 * them is side by side: of arity 4 the 16 grandchildren in two cache lines, of arity 2 the 8 one further down in one.
 */
static void heap_ask_ahead(const struct heap *heap, size_t first)
{
	size_t ahead = heap_first_child(HEAP_ARITY == 2 ? heap_first_child(first) : first);

	if (ahead >= heap->end)
		return;
	__builtin_prefetch(&heap->entries[ahead]);
	if (HEAP_ARITY == 4)
		__builtin_prefetch(&heap->entries[ahead + LINE]);
}

/* Put the entry in the hole `at`, or where it belongs below it. */
static void heap_fall(struct heap *heap, size_t at, struct heap_entry entry)
{
	for (size_t first; (first = heap_first_child(at)) < heap->end;) {
		size_t child;

		heap_ask_ahead(heap, first);
		child = heap_earliest(heap, first);

		if (heap->entries[child].deadline >= entry.deadline)
			break;
		heap_put(heap, at, heap->entries[child]);
		at = child;
	}
	heap_put(heap, at, entry);
}

/* Put the entry in the hole `at`, or where it belongs on either side of it. */
static void heap_settle(struct heap *heap, size_t at, struct heap_entry entry)
{
	if (at > ROOT && heap->entries[at / HEAP_ARITY + ROOT - 1].deadline > entry.deadline)
		heap_rise(heap, at, entry);
	else
		heap_fall(heap, at, entry);
}

/* The last entry fills the place of the one that goes. */
static void heap_remove(struct heap *heap, size_t at)
{
	struct heap_entry last = heap->entries[--heap->end];

	heap->entries[heap->end].deadline = UNUSED;
	if (at != heap->end)
		heap_settle(heap, at, last);
}

static void heap_schedule(void *state, struct object *object, uint64_t delay)
{
	struct heap *heap = state;
	struct heap_entry entry = {heap->now + (uint32_t)delay, heap_node(object)->timer};

	heap_rise(heap, heap->end++, entry);
}

static void heap_cancel(void *state, struct object *object)
{
	struct heap *heap = state;

	heap_remove(heap, heap->position[heap_node(object)->timer]);
}

static void heap_touch(void *state, struct object *object, uint64_t delay)
{
	struct heap *heap = state;
	struct heap_entry entry = {heap->now + (uint32_t)delay, heap_node(object)->timer};

	heap_settle(heap, heap->position[entry.timer], entry);
}

static void heap_advance(void *state, uint64_t now)
{
	struct heap *heap = state;
	struct sink *sink = heap->sink;

	heap->now = (uint32_t)now;
	while (heap->entries[ROOT].deadline <= heap->now) {
		sink_report(sink, &heap->objects[heap->entries[ROOT].timer]);
		heap_remove(heap, ROOT);
	}
}

/* Deadlines and positions are of 32 bits. Half of the times are left for the clock. */
const struct structure HEAP_STRUCTURE = {
    .name = HEAP_NAME,
    .summary = HEAP_SUMMARY,
    .most = UINT32_MAX - 2 * HEAP_ARITY,
    .longest = UINT32_MAX / 2,
    .create = heap_create,
    .destroy = heap_destroy,
    .schedule = heap_schedule,
    .cancel = heap_cancel,
    .touch = heap_touch,
    .advance = heap_advance,
    .node_bytes = sizeof(struct heap_node),
    .own_bytes = sizeof(struct heap_entry) + sizeof(uint32_t),
    .empty_bytes = sizeof(struct heap),
};
