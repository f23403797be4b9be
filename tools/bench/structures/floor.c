/*
 * No timer structure at all, but a reference: what the machine asks for one simple way through memory, by the same
 * calls. It is no lower bound: in R a structure that has several misses under way at once is faster than this chase.
 *
 *   A        a line written in order (streaming)
 *   B, C, F  one random line, read and written: objects are touched in random order, each independent of the one before
 *   D        a list in the order of memory, walked once
 *   R        a list in random order, walked once: a chase in which each miss depends on the one before
 *
 * Nothing ever expires before the whole list is walked, at the end of the week; so it has no times of ticks.
 */
#include <stdlib.h>

#include "tools/bench/structure.h"
#include "tools/common/memory.h"

struct floor_line {
	struct floor_line *next;
	uint64_t deadline;
};

struct floor {
	struct floor_line *first;
	struct floor_line **last;
	uint64_t now;
	struct sink *sink;
};

static struct floor_line *line_of(struct object *object)
{
	return (struct floor_line *)(void *)object;
}

static void *floor_create(struct object *objects, uint64_t n, struct sink *sink)
{
	struct floor *floor = memory_zeroed(1, sizeof *floor);

	(void)objects;
	(void)n;
	floor->last = &floor->first;
	floor->sink = sink;
	return floor;
}

static void floor_schedule(void *state, struct object *object, uint64_t delay)
{
	struct floor *floor = state;
	struct floor_line *line = line_of(object);

	line->deadline = floor->now + delay;
	line->next = NULL;
	*floor->last = line;
	floor->last = &line->next;
}

static void floor_write(void *state, struct object *object, uint64_t delay)
{
	struct floor *floor = state;
	struct floor_line *line = line_of(object);

	if (line->deadline != UINT64_MAX)
		line->deadline = floor->now + delay;
}

static void floor_cancel(void *state, struct object *object)
{
	floor_write(state, object, 0);
}

static void floor_advance(void *state, uint64_t now)
{
	struct floor *floor = state;
	struct floor_line *line;

	floor->now = now;
	if (now < BENCH_WEEK)
		return;
	for (line = floor->first; line; line = line->next)
		sink_report(floor->sink, (struct object *)(void *)line);
	floor->first = NULL;
	floor->last = &floor->first;
}

const struct structure structure_floor = {
    .name = "floor",
    .summary = "a reference, not a structure: one random line, or a dependent chase",
    .create = floor_create,
    .destroy = free,
    .schedule = floor_schedule,
    .cancel = floor_cancel,
    .touch = floor_write,
    .advance = floor_advance,
};
