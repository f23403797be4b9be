#ifndef TOOLS_BENCH_STRUCTURES_ROUNDS_H
#define TOOLS_BENCH_STRUCTURES_ROUNDS_H

/*
 * A hashed wheel with a counter of rounds a timer, after the one in go-zero: a ring of slots of a tick each, in which a
 * timer lies where it expires some rounds from now.
 *
 *     hand
 *      v
 *    [ . | . | . | . | . | . ]            each visit to a slot walks all of its entries:
 *              |                            marked    -> given back
 *            entry: circle 2, diff 0        circle > 0 -> one less
 *            entry: circle 0, diff 3 -->    diff > 0  -> moved that many slots on
 *            entry: marked                  else      -> expires
 *
 * A cancelled timer is only marked, and its entry stays until the hand comes by; so entries lie in a pool of the
 * wheel's own, of which there may be more than timers. A touch looks at where the entry is. If the hand comes there
 * before the new deadline, the entry keeps the rounds and the difference that will then be left, and is moved as late
 * as that; otherwise it is marked, and a new one filed.
 *
 * go-zero takes the difference between the numbers of two slots, which is wrong where the hand stands between them:
 * such a timer expires up to a round late. Here it is taken between two distances from the hand, which is exact.
 * Besides, its timers are found by a map from keys, its lists are doubly linked, and entries are garbage: here an
 * object holds the number of its entry, lists are singly linked, and an entry takes 16 bytes. So this is the idea at
 * its best.
 *
 * The functions are inline, and `slots` a constant to each who calls them, so that divisions are multiplications.
 */

#include "tools/bench/structure.h"

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

/* More rounds than this are not counted. */
#define ROUNDS_LONGEST(slots) ((uint64_t)UINT32_MAX * (slots))

/* A pool of three entries a timer, since cancels leave up to two marked ones for each in workload F. */
struct rounds *rounds_create(struct object *objects, uint64_t n, struct sink *sink, uint32_t slots);
void rounds_destroy(void *state);

/* Make the pool larger, as there are more marked entries than was room for. */
void rounds_grow(struct rounds *rounds);

static inline struct rounds_handle *rounds_handle(struct object *object)
{
	return (struct rounds_handle *)(void *)object;
}

/* Put an entry into the slot that lies `ahead` slots ahead of the hand. */
static inline void rounds_file(struct rounds *rounds, uint32_t number, uint32_t ahead, uint32_t slots)
{
	struct rounds_entry *entry = &rounds->entry[number];
	uint32_t slot = (rounds->hand + ahead) % slots;

	entry->slot = (uint16_t)slot;
	entry->next = rounds->first[slot];
	rounds->first[slot] = number;
}

static inline void rounds_schedule(struct rounds *rounds, struct object *object, uint64_t delay, uint32_t slots)
{
	struct rounds_entry *entry;
	uint32_t number;

	if (!rounds->free)
		rounds_grow(rounds);
	number = rounds->free;
	entry = &rounds->entry[number];
	rounds->free = entry->next;
	entry->object = (uint32_t)(object - rounds->objects);
	entry->circle = (uint32_t)((delay - 1) / slots);
	entry->diff = 0;
	rounds_handle(object)->entry = number;
	rounds_file(rounds, number, (uint32_t)((delay - 1) % slots) + 1, slots);
}

static inline void rounds_cancel(struct rounds *rounds, struct object *object)
{
	rounds->entry[rounds_handle(object)->entry].object = ROUNDS_MARKED;
	rounds_handle(object)->entry = 0;
}

static inline void rounds_touch(struct rounds *rounds, struct object *object, uint64_t delay, uint32_t slots)
{
	struct rounds_entry *entry = &rounds->entry[rounds_handle(object)->entry];
	/* Ticks until the hand comes to where the entry is: 1 to slots. */
	uint32_t visit = entry->slot > rounds->hand ? entry->slot - rounds->hand : entry->slot + slots - rounds->hand;

	if (delay < visit) {
		rounds_cancel(rounds, object);
		rounds_schedule(rounds, object, delay, slots);
		return;
	}
	entry->circle = (uint32_t)((delay - visit) / slots);
	entry->diff = (uint16_t)((delay - visit) % slots);
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
static inline void rounds_visit(struct rounds *rounds, uint32_t slots)
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
			/* Less than a round, so never this slot again. */
			rounds_file(rounds, number, entry->diff, slots);
			entry->diff = 0;
		} else {
			rounds_expire(rounds, number);
		}
	}
}

static inline void rounds_advance(struct rounds *rounds, uint64_t now, uint32_t slots)
{
	while (rounds->now < now) {
		rounds->now++;
		rounds->hand = rounds->hand + 1 == slots ? 0 : rounds->hand + 1;
		rounds_visit(rounds, slots);
	}
}

#endif
