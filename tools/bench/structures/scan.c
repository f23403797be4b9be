/*
 * No structure at all: an array of deadlines, which every tick reads from end to end.
 *
 * Schedule, cancel and touch are a store. All the cost is in the tick. Deadlines have 32 bits and are compared a block
 * at a time, which compilers turn into vector instructions: the scan at its best.
 */
#include <stdlib.h>

#include "tools/bench/structure.h"
#include "tools/common/memory.h"

enum { BLOCK = 64 };

struct handle {
	uint32_t index;
};

struct scan_structure {
	struct object *objects;
	struct sink *sink;
	uint32_t *deadline; /* 0: idle, because no tick is at time 0 */
	uint64_t blocks;
	uint64_t now;
};

static uint32_t *deadline_of(const struct scan_structure *scan, struct object *object)
{
	return &scan->deadline[((struct handle *)(void *)object)->index];
}

static void *scan_create(struct object *objects, uint64_t n, struct sink *sink)
{
	struct scan_structure *scan = memory_zeroed(1, sizeof *scan);

	scan->objects = objects;
	scan->sink = sink;
	scan->blocks = (n + BLOCK - 1) / BLOCK;
	scan->deadline = memory_aligned(scan->blocks, BLOCK * sizeof *scan->deadline);
	for (uint64_t i = 0; i < n; i++)
		((struct handle *)(void *)&objects[i])->index = (uint32_t)i;
	return scan;
}

static void scan_destroy(void *state)
{
	struct scan_structure *scan = state;

	free(scan->deadline);
	free(scan);
}

static void scan_schedule(void *state, struct object *object, uint64_t delay)
{
	struct scan_structure *scan = state;

	*deadline_of(scan, object) = (uint32_t)(scan->now + delay);
}

static void scan_cancel(void *state, struct object *object)
{
	*deadline_of(state, object) = 0;
}

/* Return whether one of the block's deadlines is now. No branch depends on a deadline. */
static int block_is_due(const uint32_t deadline[BLOCK], uint32_t now)
{
	uint32_t due = 0;

	for (int i = 0; i < BLOCK; i++)
		due |= deadline[i] == now;
	return due != 0;
}

static void block_expire(struct scan_structure *scan, uint64_t block, uint32_t now)
{
	for (uint64_t i = block * BLOCK; i < (block + 1) * BLOCK; i++) {
		if (scan->deadline[i] == now) {
			scan->deadline[i] = 0;
			sink_report(scan->sink, &scan->objects[i]);
		}
	}
}

static void tick(struct scan_structure *scan)
{
	uint32_t now = (uint32_t)++scan->now;

	for (uint64_t block = 0; block < scan->blocks; block++) {
		if (block_is_due(&scan->deadline[block * BLOCK], now))
			block_expire(scan, block, now);
	}
}

static void scan_advance(void *state, uint64_t now)
{
	struct scan_structure *scan = state;

	while (scan->now < now)
		tick(scan);
}

const struct structure structure_scan = {
    .name = "scan",
    .summary = "an array of deadlines, read from end to end every tick",
    .most = 100000,
    .longest = UINT32_MAX / 2,
    .create = scan_create,
    .destroy = scan_destroy,
    .schedule = scan_schedule,
    .cancel = scan_cancel,
    .touch = scan_schedule,
    .advance = scan_advance,
    .node_bytes = sizeof(struct handle),
    .own_bytes = sizeof(uint32_t),
};
