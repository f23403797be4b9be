/*
 * The oracle: the current deadline of every key in an array, and all deadlines that are ever set, sorted. A deadline
 * comes up in its turn, and is passed over if it is not, or no longer, the current one of its key. No mistake of a wheel
 * is possible here.
 */
#include <stdlib.h>
#include <string.h>

#include "tools/common/memory.h"
#include "tools/weekwheel/replay/verify.h"
#include "weekwheel/wheel.h"

struct due {
	uint64_t deadline;
	size_t event; /* that sets it */
};

struct oracle {
	const struct events *events;
	struct outcome *outcome;
	struct due *due; /* all of due[next] and later are still to come */
	size_t count, next;
};

static int compare_due(const void *left, const void *right)
{
	const struct due *a = left;
	const struct due *b = right;

	if (a->deadline != b->deadline)
		return a->deadline < b->deadline ? -1 : 1;
	return (a->event > b->event) - (a->event < b->event);
}

static void oracle_sort(struct oracle *oracle)
{
	const struct events *events = oracle->events;

	oracle->due = memory_resize(NULL, events->count, sizeof *oracle->due);
	for (size_t i = 0; i < events->count; i++)
		if (events->at[i].kind != EVENT_CANCEL)
			oracle->due[oracle->count++] = (struct due){event_deadline(&events->at[i]), i};
	qsort(oracle->due, oracle->count, sizeof *oracle->due, compare_due);
}

/*
 * Expire what is due up to `time` and was set by one of the first `done` events. `now` is the time at which an earlier
 * deadline is noticed. No deadline is before its event, and a later event's deadline in this tick sorts last.
 */
static void oracle_expire(struct oracle *oracle, size_t done, uint64_t now, uint64_t time)
{
	struct outcome *outcome = oracle->outcome;

	for (; oracle->next < oracle->count; oracle->next++) {
		const struct due *due = &oracle->due[oracle->next];
		uint32_t id;

		if (due->deadline > time || due->event >= done)
			return;
		id = oracle->events->at[due->event].id;
		if (outcome->deadline[id] != due->deadline)
			continue;
		outcome->deadline[id] = WW_NEVER;
		outcome->tally.expired++;
		outcome->tally.pending--;
		expiries_add(&outcome->expiries, due->deadline > now ? due->deadline : now, id);
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
}

void oracle_run(const struct events *events, int to_end, struct outcome *outcome)
{
	struct oracle oracle = {.events = events, .outcome = outcome};
	uint64_t now = 0;

	memset(outcome, 0, sizeof *outcome);
	outcome->keys = keys_count(events->keys);
	outcome->deadline = memory_resize(NULL, outcome->keys, sizeof *outcome->deadline);
	for (size_t i = 0; i < outcome->keys; i++)
		outcome->deadline[i] = WW_NEVER;
	oracle_sort(&oracle);
	for (size_t i = 0; i < events->count; i++) {
		oracle_expire(&oracle, i, now, events->at[i].time_seconds);
		now = events->at[i].time_seconds;
		oracle_event(&oracle, &events->at[i]);
	}
	oracle_expire(&oracle, events->count, now, to_end ? WW_TIME_MAX : now);
	free(oracle.due);
}

/* ---- The memory of an outcome */

struct replay_expiry *expiries_add(struct expiries *expiries, uint64_t time, uint32_t id)
{
	struct replay_expiry *expiry;

	expiries->at = memory_grow(expiries->at, &expiries->capacity, expiries->count, sizeof *expiries->at);
	expiry = &expiries->at[expiries->count++];
	*expiry = (struct replay_expiry){.time = time, .id = id};
	return expiry;
}

void outcome_free(struct outcome *outcome)
{
	free(outcome->expiries.at);
	free(outcome->deadline);
	memset(outcome, 0, sizeof *outcome);
}
