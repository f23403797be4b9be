/*
 * A hashed wheel with a counter of rounds a timer, after the one in go-zero: a ring of slots of a tick each, in which a
 * timer lies where it expires some rounds from now. The file that includes this defines ROUNDS_SLOTS, which is thus a
 * constant to the compiler: divisions are multiplications. It also defines ROUNDS_STRUCTURE, ROUNDS_NAME and
 * ROUNDS_SUMMARY of the structure to make.
 *
 *     hand
 *      v
 *    [ . | . | . | . | . | . ]            each visit to a slot walks all of its entries:
 *              |                            marked    -> given back
 *            entry: circle 2, diff 0        circle > 0 -> one less
 *            entry: circle 0, diff 3 -->    diff > 0  -> moved that many slots on
 *            entry: marked                  else      -> expires
 *
 * A cancelled timer is only marked. Its entry stays until the hand comes by. Entries therefore lie in a pool of the
 * wheel's own, and there may be more of them than timers. A touch looks at where the entry is. If the hand comes there
 * before the new deadline, the entry keeps the rounds and the difference that will then be left, and the hand moves it.
 * Otherwise the entry is marked, and a new one is filed.
 *
 * go-zero takes the difference between the numbers of two slots, which is wrong where the hand stands between them:
 * such a timer expires up to a round late. Here the difference is between two distances from the hand, which is exact.
 * go-zero also finds its timers by a map from keys, its lists are doubly linked, and its entries are garbage. Here an
 * object holds the number of its entry, lists are singly linked, and an entry takes 16 bytes: the idea at its best.
 */

#include <stdlib.h>
#include <string.h>

#include "tools/bench/structure.h"
#include "tools/common/memory.h"

/* What stands in an object's room: the number of its entry, or 0 while it is idle. */
struct rounds_handle {
	uint32_t entry;
};

/* The object of an entry that is marked. */
#define ROUNDS_MARKED UINT32_MAX

struct rounds_entry {
	uint32_t next;   /* of the slot or of the free ones; 0 ends a list */
	uint32_t object; /* its index, or ROUNDS_MARKED */
	uint32_t circle; /* visits to the slot that it has to wait for before the one that concerns it */
	uint16_t diff;   /* slots to be moved on then */
	uint16_t slot;   /* where it is */
};

struct rounds {
	struct object *objects;
	struct sink *sink;
	uint32_t *first;            /* of each slot, its list */
	struct rounds_entry *entry; /* the pool; entry 0 is not used */
	uint32_t entries, free;
	uint32_t hand; /* the slot visited last */
	uint64_t now;
};

/* Put entries from `begin` to `end` - 1 on the free list, which is empty; the lowest is taken first. */
static void rounds_free(struct rounds *rounds, uint32_t begin, uint32_t end)
{
	memset(&rounds->entry[begin], 0, (end - begin) * sizeof *rounds->entry);
	for (uint32_t i = begin; i + 1 < end; i++)
		rounds->entry[i].next = i + 1;
	rounds->free = begin;
}

/* A pool of three entries a timer, since cancels leave up to two marked ones for each in workload F. */
static void *rounds_create(struct object *objects, uint64_t n, struct sink *sink)
{
	struct rounds *rounds = memory_zeroed(1, sizeof *rounds);

	if (n > UINT32_MAX / 6)
		memory_exhausted();
	rounds->objects = objects;
	rounds->sink = sink;
	rounds->first = memory_aligned(ROUNDS_SLOTS, sizeof *rounds->first);
	rounds->entries = (uint32_t)(3 * n + 2);
	rounds->entry = memory_aligned(rounds->entries, sizeof *rounds->entry);
	rounds_free(rounds, 1, rounds->entries);
	return rounds;
}

static void rounds_destroy(void *state)
{
	struct rounds *rounds = state;

	free(rounds->entry);
	free(rounds->first);
	free(rounds);
}

/* Make the pool larger: there are more marked entries than it has room for. */
static __attribute__((noinline)) void rounds_grow(struct rounds *rounds)
{
	uint32_t begin = rounds->entries;

	if (begin > UINT32_MAX / 2)
		memory_exhausted();
	rounds->entries = begin + begin / 2;
	rounds->entry = memory_resize(rounds->entry, rounds->entries, sizeof *rounds->entry);
	rounds_free(rounds, begin, rounds->entries);
}

static inline struct rounds_handle *rounds_handle(struct object *object)
{
	return (struct rounds_handle *)(void *)object;
}

/* Put an entry into the slot that lies `ahead` slots ahead of the hand. */
static inline void rounds_file(struct rounds *rounds, uint32_t number, uint32_t ahead)
{
	struct rounds_entry *entry = &rounds->entry[number];
	uint32_t slot = (rounds->hand + ahead) % ROUNDS_SLOTS;

	entry->slot = (uint16_t)slot;
	entry->next = rounds->first[slot];
	rounds->first[slot] = number;
}

static inline void rounds_schedule(void *state, struct object *object, uint64_t delay)
{
	struct rounds *rounds = state;
	struct rounds_entry *entry;
	uint32_t number;

	if (!rounds->free)
		rounds_grow(rounds);
	number = rounds->free;
	entry = &rounds->entry[number];
	rounds->free = entry->next;
	entry->object = (uint32_t)(object - rounds->objects);
	entry->circle = (uint32_t)((delay - 1) / ROUNDS_SLOTS);
	entry->diff = 0;
	rounds_handle(object)->entry = number;
	rounds_file(rounds, number, (uint32_t)((delay - 1) % ROUNDS_SLOTS) + 1);
}

static inline void rounds_cancel(void *state, struct object *object)
{
	struct rounds *rounds = state;

	rounds->entry[rounds_handle(object)->entry].object = ROUNDS_MARKED;
	rounds_handle(object)->entry = 0;
}

static inline void rounds_touch(void *state, struct object *object, uint64_t delay)
{
	struct rounds *rounds = state;
	struct rounds_entry *entry = &rounds->entry[rounds_handle(object)->entry];
	/* Ticks until the hand comes to where the entry is: 1 to ROUNDS_SLOTS. */
	uint32_t visit =
	    entry->slot > rounds->hand ? entry->slot - rounds->hand : entry->slot + ROUNDS_SLOTS - rounds->hand;

	if (delay < visit) {
		rounds_cancel(rounds, object);
		rounds_schedule(rounds, object, delay);
		return;
	}
	entry->circle = (uint32_t)((delay - visit) / ROUNDS_SLOTS);
	entry->diff = (uint16_t)((delay - visit) % ROUNDS_SLOTS);
}

static inline void rounds_give_back(struct rounds *rounds, uint32_t number)
{
	rounds->entry[number].next = rounds->free;
	rounds->free = number;
}

static inline void rounds_expire(struct rounds *rounds, uint32_t number)
{
	struct object *object = &rounds->objects[rounds->entry[number].object];

	rounds_handle(object)->entry = 0;
	rounds_give_back(rounds, number);
	sink_report(rounds->sink, object);
}

/* Walk all that is in the hand's slot. */
static inline void rounds_visit(struct rounds *rounds)
{
	uint32_t *link = &rounds->first[rounds->hand];

	while (*link) {
		uint32_t number = *link;
		struct rounds_entry *entry = &rounds->entry[number];

		if (entry->circle && entry->object != ROUNDS_MARKED) {
			entry->circle--;
			link = &entry->next;
			continue;
		}
		*link = entry->next;
		if (entry->object == ROUNDS_MARKED) {
			rounds_give_back(rounds, number);
		} else if (entry->diff) {
			/* Less than a round: never this slot again. */
			rounds_file(rounds, number, entry->diff);
			entry->diff = 0;
		} else {
			rounds_expire(rounds, number);
		}
	}
}

static inline void rounds_advance(void *state, uint64_t now)
{
	struct rounds *rounds = state;

	while (rounds->now < now) {
		rounds->now++;
		rounds->hand = rounds->hand + 1 == ROUNDS_SLOTS ? 0 : rounds->hand + 1;
		rounds_visit(rounds);
	}
}

const struct structure ROUNDS_STRUCTURE = {
    .name = ROUNDS_NAME,
    .summary = ROUNDS_SUMMARY,
    .longest = (uint64_t)UINT32_MAX * ROUNDS_SLOTS, /* more rounds are not counted */
    .create = rounds_create,
    .destroy = rounds_destroy,
    .schedule = rounds_schedule,
    .cancel = rounds_cancel,
    .touch = rounds_touch,
    .advance = rounds_advance,
    .node_bytes = sizeof(struct rounds_handle),
    /* The entry. The marked entries that cancels leave are not in it: the pool has room for three a timer. */
    .own_bytes = sizeof(struct rounds_entry),
    .empty_bytes = sizeof(struct rounds) + ROUNDS_SLOTS * sizeof(uint32_t),
};
