/* A hashed wheel with rounds, of 300 slots. */
#include "tools/bench/structures/rounds.h"

enum { SLOTS = 300 };

static void *rounds300_create(struct object *objects, uint64_t n, struct sink *sink)
{
	return rounds_create(objects, n, sink, SLOTS);
}

static void rounds300_schedule(void *state, struct object *object, uint64_t delay)
{
	rounds_schedule(state, object, delay, SLOTS);
}

static void rounds300_cancel(void *state, struct object *object)
{
	rounds_cancel(state, object);
}

static void rounds300_touch(void *state, struct object *object, uint64_t delay)
{
	rounds_touch(state, object, delay, SLOTS);
}

static void rounds300_advance(void *state, uint64_t now)
{
	rounds_advance(state, now, SLOTS);
}

static size_t rounds300_fixed_bytes(uint64_t horizon)
{
	(void)horizon;
	return sizeof(struct rounds) + SLOTS * sizeof(uint32_t);
}

const struct structure structure_rounds300 = {
    .name = "rounds300",
    .summary = "a hashed wheel of 300 slots with a counter of rounds a timer",
    .longest = ROUNDS_LONGEST(SLOTS),
    .create = rounds300_create,
    .destroy = rounds_destroy,
    .schedule = rounds300_schedule,
    .cancel = rounds300_cancel,
    .touch = rounds300_touch,
    .advance = rounds300_advance,
    .node_bytes = sizeof(struct rounds_handle),
    /* The entry; not that cancels leave marked ones, for which the pool has room for three a timer. */
    .own_bytes = sizeof(struct rounds_entry),
    .fixed_bytes = rounds300_fixed_bytes,
};
