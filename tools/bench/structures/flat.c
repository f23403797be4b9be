/*
 * A flat wheel: a slot for each of the 604,800 seconds of a week. A timer is never touched between schedule and expiry,
 * which no hierarchy can beat. The price is memory in proportion to the horizon. Neighbours in time are not neighbours in
 * memory.
 */
#include <stdlib.h>

#include "tools/bench/structures/list.h"
#include "tools/common/memory.h"

enum { SLOTS = BENCH_WEEK };

struct flat {
	uint64_t now;
	uint32_t hand; /* now % SLOTS, without a division in each tick */
	struct sink *sink;
	struct list_node *slot[SLOTS];
};

static void *flat_create(struct object *objects, uint64_t n, struct sink *sink)
{
	struct flat *flat = memory_aligned(1, sizeof *flat);

	(void)objects;
	(void)n;
	flat->sink = sink;
	return flat;
}

static void flat_schedule(void *state, struct object *object, uint64_t delay)
{
	struct flat *flat = state;
	struct list_node *node = node_of(object);

	node->deadline = flat->now + delay;
	list_push(&flat->slot[node->deadline % SLOTS], node);
}

static void flat_touch(void *state, struct object *object, uint64_t delay)
{
	list_remove(node_of(object));
	flat_schedule(state, object, delay);
}

static void flat_advance(void *state, uint64_t now)
{
	struct flat *flat = state;

	while (flat->now < now) {
		flat->now++;
		if (++flat->hand == SLOTS)
			flat->hand = 0;
		list_expire(&flat->slot[flat->hand], flat->sink);
	}
}

static size_t flat_bytes_for(uint64_t horizon)
{
	return sizeof(struct flat) + (horizon - SLOTS) * sizeof(struct list_node *);
}

const struct structure structure_flat = {
    .name = "flat",
    .summary = "a flat wheel of 604,800 slots",
    .longest = BENCH_WEEK,
    .create = flat_create,
    .destroy = free,
    .schedule = flat_schedule,
    .cancel = list_cancel,
    .touch = flat_touch,
    .advance = flat_advance,
    .node_bytes = sizeof(struct list_node),
    .bytes_for = flat_bytes_for,
    .any_horizon = 1,
};
