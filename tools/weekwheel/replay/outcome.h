#ifndef TOOLS_WEEKWHEEL_REPLAY_OUTCOME_H
#define TOOLS_WEEKWHEEL_REPLAY_OUTCOME_H

/*
 * What came of a list of events, told in the same terms by the wheel and by the oracle, so that they can be compared.
 */

#include <stddef.h>
#include <stdint.h>

struct tally {
	uint64_t scheduled;    /* idle timers that were started */
	uint64_t refreshed;    /* pending timers that were moved */
	uint64_t cancelled;    /* pending timers that were cancelled */
	uint64_t idle_cancels; /* cancels that came after the expiry, or for no timer at all */
	uint64_t expired;
	uint64_t pending; /* at the end: scheduled - cancelled - expired */
	uint64_t peak;    /* the most that were pending at once */
};

struct expiry {
	uint64_t time; /* in ticks */
	uint32_t id;
	uint32_t requests;  /* with sessions: since the timer was started */
	size_t first, last; /* with sessions: the events that were the first and the last of them */
};

struct expiries {
	struct expiry *at;
	size_t count, capacity;
};

struct outcome {
	struct tally tally;
	struct expiries expiries;
	uint64_t *deadline; /* at the end, by key: of a pending timer, or WW_NEVER; NULL where it was not asked for */
	size_t keys;
};

/* Append an expiry at `time`, and return it to have its other members filled. */
struct expiry *expiries_add(struct expiries *expiries, uint64_t time, uint32_t id);

/* Count a timer that was started. */
static inline void tally_schedule(struct tally *tally)
{
	tally->scheduled++;
	if (++tally->pending > tally->peak)
		tally->peak = tally->pending;
}

void outcome_free(struct outcome *outcome);

#endif
