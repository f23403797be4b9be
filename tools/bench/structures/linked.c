/*
 * Four cascading wheels of doubly linked lists, as the textbook has them: 60 seconds, 60 minutes, 24 hours and 7 days,
 * driven by one tick. At the boundary of a minute, an hour or a day the slot that begins is demoted as a whole: each of
 * its timers moves to the wheel that fits its remaining time. (G. Varghese and T. Lauck, SOSP 1987, scheme 7.)
 */
#include <stdlib.h>

#include "tools/bench/structures/list.h"
#include "tools/common/memory.h"

enum { SECONDS = 60, MINUTES = 60, HOURS = 24, DAYS = 7 };
enum { MINUTE = 60, HOUR = 3600, DAY = 86400 };

struct linked {
	struct list_node *second[SECONDS];
	struct list_node *minute[MINUTES];
	struct list_node *hour[HOURS];
	struct list_node *day[DAYS];
	uint64_t now;
	struct sink *sink;
};

static void *linked_create(struct object *objects, uint64_t n, struct sink *sink)
{
	struct linked *linked = memory_aligned(1, sizeof *linked);

	(void)objects;
	(void)n;
	linked->sink = sink;
	return linked;
}

/* The divisions are by constants, which the compiler turns into multiplications. */
static inline struct list_node **linked_slot(struct linked *linked, uint64_t deadline)
{
	uint64_t left = deadline - linked->now;

	if (left < MINUTE)
		return &linked->second[deadline % SECONDS];
	if (left < HOUR)
		return &linked->minute[deadline / MINUTE % MINUTES];
	if (left < DAY)
		return &linked->hour[deadline / HOUR % HOURS];
	return &linked->day[deadline / DAY % DAYS];
}

static void linked_file(struct linked *linked, struct list_node *node)
{
	list_push(linked_slot(linked, node->deadline), node);
}

static void linked_schedule(void *state, struct object *object, uint64_t delay)
{
	struct linked *linked = state;
	struct list_node *node = node_of(object);

	node->deadline = linked->now + delay;
	linked_file(linked, node);
}

static void linked_touch(void *state, struct object *object, uint64_t delay)
{
	list_remove(node_of(object));
	linked_schedule(state, object, delay);
}

static void linked_demote(struct linked *linked, struct list_node **slot)
{
	for (struct list_node *node = list_take(slot), *next; node; node = next) {
		next = node->next;
		linked_file(linked, node);
	}
}

/* From the highest wheel down: what leaves a day may belong to the hour, the minute and the second that begin. */
static void linked_boundary(struct linked *linked)
{
	uint64_t now = linked->now;

	if (now % DAY == 0)
		linked_demote(linked, &linked->day[now / DAY % DAYS]);
	if (now % HOUR == 0)
		linked_demote(linked, &linked->hour[now / HOUR % HOURS]);
	linked_demote(linked, &linked->minute[now / MINUTE % MINUTES]);
}

static void linked_advance(void *state, uint64_t now)
{
	struct linked *linked = state;

	while (linked->now < now) {
		linked->now++;
		if (linked->now % MINUTE == 0)
			linked_boundary(linked);
		list_expire(&linked->second[linked->now % SECONDS], linked->sink);
	}
}

const struct structure structure_linked = {
    .name = "linked",
    .summary = "four cascading wheels of linked lists, demoted at the boundary: the textbook",
    .longest = BENCH_WEEK,
    .create = linked_create,
    .destroy = free,
    .schedule = linked_schedule,
    .cancel = list_cancel,
    .touch = linked_touch,
    .advance = linked_advance,
    .node_bytes = sizeof(struct list_node),
    .empty_bytes = sizeof(struct linked),
};
