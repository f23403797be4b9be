/*
 * The oracle: the current deadline of every key in an array, and a binary heap of all deadlines that were ever set, in
 * order. A deadline that comes out of the heap and is not (or no longer) the key's current one is passed over. There is
 * nothing in it to get wrong that a wheel could get wrong in the same way.
 */
#include "tools/weekwheel/replay/oracle.h"

#include <stdlib.h>
#include <string.h>

#include "tools/common/memory.h"
#include "weekwheel/wheel.h"

struct due {
	uint64_t deadline;
	uint32_t id;
};

struct oracle {
	struct outcome *outcome;
	struct due *heap; /* heap[i] is not later than heap[2 i + 1] and heap[2 i + 2] */
	size_t count, capacity;
};

static void heap_push(struct oracle *oracle, uint64_t deadline, uint32_t id)
{
	struct due due = {deadline, id};
	size_t i = oracle->count;

	oracle->heap = memory_grow(oracle->heap, &oracle->capacity, oracle->count, sizeof *oracle->heap);
	oracle->count++;
	while (i > 0 && oracle->heap[(i - 1) / 2].deadline > deadline) {
		oracle->heap[i] = oracle->heap[(i - 1) / 2];
		i = (i - 1) / 2;
	}
	oracle->heap[i] = due;
}

static struct due heap_pop(struct oracle *oracle)
{
	struct due top = oracle->heap[0];
	struct due moved = oracle->heap[--oracle->count];
	size_t i = 0;

	for (;;) {
		size_t child = 2 * i + 1;

		if (child >= oracle->count)
			break;
		if (child + 1 < oracle->count && oracle->heap[child + 1].deadline < oracle->heap[child].deadline)
			child++;
		if (oracle->heap[child].deadline >= moved.deadline)
			break;
		oracle->heap[i] = oracle->heap[child];
		i = child;
	}
	oracle->heap[i] = moved;
	return top;
}

/* Expire what is due up to `time`. `now` is the time at which a deadline that lies before it is noticed. */
static void oracle_expire(struct oracle *oracle, uint64_t now, uint64_t time)
{
	struct outcome *outcome = oracle->outcome;

	while (oracle->count > 0 && oracle->heap[0].deadline <= time) {
		struct due due = heap_pop(oracle);

		if (outcome->deadline[due.id] != due.deadline)
			continue;
		outcome->deadline[due.id] = WW_NEVER;
		outcome->tally.expired++;
		outcome->tally.pending--;
		expiries_add(&outcome->expiries, due.deadline > now ? due.deadline : now, due.id);
	}
}

static void oracle_event(struct oracle *oracle, const struct event *event)
{
	struct tally *tally = &oracle->outcome->tally;
	uint64_t *deadline = &oracle->outcome->deadline[event->id];
	int pending = *deadline != WW_NEVER;

	if (event->kind == EVENT_CANCEL) {
		tally->cancelled += pending ? 1 : 0;
		tally->pending -= pending ? 1 : 0;
		tally->idle_cancels += pending ? 0 : 1;
		*deadline = WW_NEVER;
		return;
	}
	if (pending)
		tally->refreshed++;
	else
		tally_schedule(tally);
	*deadline = event_deadline(event);
	heap_push(oracle, *deadline, event->id);
}

void oracle_run(const struct events *events, int to_end, struct outcome *outcome)
{
	struct oracle oracle = {outcome, NULL, 0, 0};
	uint64_t now = 0;
	size_t i;

	memset(outcome, 0, sizeof *outcome);
	outcome->keys = keys_count(events->keys);
	outcome->deadline = memory_zeroed(outcome->keys, sizeof *outcome->deadline);
	for (i = 0; i < outcome->keys; i++)
		outcome->deadline[i] = WW_NEVER;
	for (i = 0; i < events->count; i++) {
		oracle_expire(&oracle, now, events->at[i].time_seconds);
		now = events->at[i].time_seconds;
		oracle_event(&oracle, &events->at[i]);
	}
	oracle_expire(&oracle, now, to_end ? WW_TIME_MAX : now);
	free(oracle.heap);
}
