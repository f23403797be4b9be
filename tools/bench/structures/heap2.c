/* A binary heap with positions. */
#define HEAP_ARITY 2
#include "tools/bench/structures/heap.h"

/* Deadlines and positions are of 32 bits; half of the times are left for the clock. */
const struct structure structure_heap2 = {
    .name = "heap2",
    .summary = "binary heap of 8-byte entries, with positions",
    .most = UINT32_MAX - 2 * HEAP_ARITY,
    .longest = UINT32_MAX / 2,
    .create = heap_create,
    .destroy = heap_destroy,
    .schedule = heap_schedule,
    .cancel = heap_cancel,
    .touch = heap_touch,
    .advance = heap_advance,
    .node_bytes = sizeof(struct node),
    .own_bytes = HEAP_OWN_BYTES,
    .fixed_bytes = heap_fixed_bytes,
};
