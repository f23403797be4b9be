#ifndef TOOLS_WEEKWHEEL_REPLAY_OUTCOME_H
#define TOOLS_WEEKWHEEL_REPLAY_OUTCOME_H

/* The outcome of a list of events. The wheel and the oracle give it in the same terms, and --verify compares them. */

#include <stddef.h>
#include <stdint.h>

struct tally {
	uint64_t scheduled;    /* idle timers that were started */
	uint64_t refreshed;    /* pending timers that were moved */
	uint64_t cancelled;    /* pending timers that were cancelled */
	uint64_t idle_cancels; /* cancels after the expiry, or of no timer at all */
	uint64_t expired;
	uint64_t pending; /* at the end: scheduled - cancelled - expired */
	uint64_t peak;    /* the most that were pending at once */
};

struct replay_expiry {
	uint64_t time; /* in ticks */
	uint32_t id;
	uint32_t requests;  /* with sessions: their number since the timer was started */
	size_t first, last; /* with sessions: the events of the first and the last request */
};

struct expiries {
	struct replay_expiry *at;
	size_t count, capacity;
};

struct outcome {
	struct tally tally;
	struct expiries expiries;
	uint64_t *deadline; /* by key, at the end: of a pending timer, or WW_NEVER; NULL if not asked for */
	size_t keys;
};

/* Append an expiry and return it. Its other members are 0. */
struct replay_expiry *expiries_add(struct expiries *expiries, uint64_t time, uint32_t id);

/* Count a started timer. */
static inline void tally_schedule(struct tally *tally)
{
	tally->scheduled++;
	if (++tally->pending > tally->peak)
		tally->peak = tally->pending;
}

void outcome_free(struct outcome *outcome);

#endif
