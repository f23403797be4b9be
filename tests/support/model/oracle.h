#ifndef TESTS_SUPPORT_MODEL_ORACLE_H
#define TESTS_SUPPORT_MODEL_ORACLE_H

/*
 * The naive oracle states what a wheel must do, with an array of deadlines that is searched from end to end.
 *
 * Times are those of the wheel under test. The oracle never says which timer expires next, since the order within a
 * tick is free. It judges each expiry that it is told of, and at the end of an advance the timers that did not expire.
 *
 * The *hand* is the tick up to which an advance has expired what was due. A timer scheduled in the past of the wheel's
 * time still takes its place in the order of ticks if it is after the hand. Otherwise it is late, and comes first in
 * the next call. When a budget has ended an advance, the hand is at the last tick of which a timer expired.
 */

#include <stddef.h>
#include <stdint.h>

#define ORACLE_TIMERS_MAX 2048

enum oracle_state {
	ORACLE_IDLE,
	ORACLE_ORDERED, /* after the hand: expires in order of tick */
	ORACLE_LATE,    /* at or before the hand: expires in the next call, before all others, in any order */
	ORACLE_UNSURE   /* moved while due, but not beyond the hand: may expire either way */
};

struct oracle {
	uint32_t timers;
	uint64_t now;
	uint64_t hand;
	uint64_t call;   /* number of the current or the last advance */
	uint64_t budget; /* of the current advance */
	uint64_t count;  /* expiries of the current advance */
	int running;     /* whether an advance is running */

	uint64_t pending;
	uint64_t scheduled;
	uint64_t cancelled;
	uint64_t drained;
	uint64_t expired;

	uint64_t deadline[ORACLE_TIMERS_MAX];
	uint64_t period[ORACLE_TIMERS_MAX];       /* 0: one-shot */
	uint64_t scheduled_in[ORACLE_TIMERS_MAX]; /* the advance that was running then; 0: none */
	uint64_t order[ORACLE_TIMERS_MAX];        /* the deadline if ordered, otherwise UINT64_MAX */
	uint8_t state[ORACLE_TIMERS_MAX];
};

void oracle_init(struct oracle *oracle, uint32_t timers, uint64_t start);

/* Schedule or move a timer. The period is 0 for a one-shot. */
void oracle_schedule(struct oracle *oracle, uint32_t timer, uint64_t deadline, uint64_t period);

/* A pending timer was cancelled, or drained. */
void oracle_cancel(struct oracle *oracle, uint32_t timer);
void oracle_drain(struct oracle *oracle, uint32_t timer);

/* An advance begins, a timer expires in it, and it ends with this answer. The last two return a complaint, or NULL. */
void oracle_begin(struct oracle *oracle, uint64_t now, uint64_t budget);
const char *oracle_expire(struct oracle *oracle, uint32_t timer, uint64_t missed);
const char *oracle_end(struct oracle *oracle, int answer, uint64_t count);

static inline int oracle_pending(const struct oracle *oracle, uint32_t timer)
{
	return oracle->state[timer] != ORACLE_IDLE;
}

/* The earliest pending deadline, UINT64_MAX if there is none. */
uint64_t oracle_earliest(const struct oracle *oracle);

#endif
