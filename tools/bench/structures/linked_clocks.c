/*
 * Four cascading wheels of doubly linked lists, as they are often built: each wheel is a clock of its own.
 *
 *     seconds  0 1 2 ... 59     a tick a second
 *     minutes  0 1 2 ... 59     a tick when the seconds have gone round
 *     hours    0 1 2 ... 23     a tick when the minutes have gone round
 *     days     0 1 2 ...  6     a tick when the hours have gone round
 *
 * A timer that has 5 minutes left goes 5 slots ahead of the minutes' hand. That hand was set at its last tick and is
 * behind by up to a minute. The slot comes round too early by as much. What remains then may be more than a minute, and
 * the timer is filed among the minutes once more. The textbook's wheels (linked.c) take the slot from the deadline, and
 * need that at no level. Being too early at a wheel is never late: what remains goes to the seconds, whose hand is exact.
 */
#include <stdlib.h>

#include "tools/bench/structures/list.h"
#include "tools/common/memory.h"

enum { SECONDS = 60, MINUTES = 60, HOURS = 24, DAYS = 7 };
enum { MINUTE = 60, HOUR = 3600, DAY = 86400 };

struct clocks {
	struct list_node *second[SECONDS];
	struct list_node *minute[MINUTES];
	struct list_node *hour[HOURS];
	struct list_node *day[DAYS];
	uint32_t second_hand, minute_hand, hour_hand, day_hand;
	uint64_t now;
	struct sink *sink;
};

static void *clocks_create(struct object *objects, uint64_t n, struct sink *sink)
{
	struct clocks *clocks = memory_aligned(1, sizeof *clocks);

	(void)objects;
	(void)n;
	clocks->sink = sink;
	return clocks;
}

/* The divisions are by constants, which the compiler turns into multiplications. */
static inline struct list_node **clocks_slot(struct clocks *clocks, uint64_t left)
{
	if (left < MINUTE)
		return &clocks->second[(clocks->second_hand + left) % SECONDS];
	if (left < HOUR)
		return &clocks->minute[(clocks->minute_hand + left / MINUTE) % MINUTES];
	if (left < DAY)
		return &clocks->hour[(clocks->hour_hand + left / HOUR) % HOURS];
	return &clocks->day[(clocks->day_hand + left / DAY) % DAYS];
}

static void clocks_schedule(void *state, struct object *object, uint64_t delay)
{
	struct clocks *clocks = state;
	struct list_node *node = node_of(object);

	node->deadline = clocks->now + delay;
	list_push(clocks_slot(clocks, delay), node);
}

static void clocks_touch(void *state, struct object *object, uint64_t delay)
{
	list_remove(node_of(object));
	clocks_schedule(state, object, delay);
}

/* Move a hand on; return whether it has gone round. */
static int hand_tick(uint32_t *hand, uint32_t slots)
{
	*hand = *hand + 1 == slots ? 0 : *hand + 1;
	return *hand == 0;
}

static void clocks_demote(struct clocks *clocks, struct list_node **slot)
{
	for (struct list_node *node = list_take(slot), *next; node; node = next) {
		next = node->next;
		list_push(clocks_slot(clocks, node->deadline - clocks->now), node);
	}
}

static void clocks_minute_tick(struct clocks *clocks)
{
	if (hand_tick(&clocks->minute_hand, MINUTES)) {
		if (hand_tick(&clocks->hour_hand, HOURS)) {
			hand_tick(&clocks->day_hand, DAYS);
			clocks_demote(clocks, &clocks->day[clocks->day_hand]);
		}
		clocks_demote(clocks, &clocks->hour[clocks->hour_hand]);
	}
	clocks_demote(clocks, &clocks->minute[clocks->minute_hand]);
}

static void clocks_advance(void *state, uint64_t now)
{
	struct clocks *clocks = state;

	while (clocks->now < now) {
		clocks->now++;
		/* Before the second expires: timers of the minute with no time left go into it. */
		if (hand_tick(&clocks->second_hand, SECONDS))
			clocks_minute_tick(clocks);
		list_expire(&clocks->second[clocks->second_hand], clocks->sink);
	}
}

const struct structure structure_linked_clocks = {
    .name = "linked-clocks",
    .summary = "four cascading wheels of linked lists, each a clock of its own",
    .longest = BENCH_WEEK,
    .create = clocks_create,
    .destroy = free,
    .schedule = clocks_schedule,
    .cancel = list_cancel,
    .touch = clocks_touch,
    .advance = clocks_advance,
    .node_bytes = sizeof(struct list_node),
    .empty_bytes = sizeof(struct clocks),
};
