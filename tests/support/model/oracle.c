/* The naive oracle of a wheel: an array of deadlines, searched from end to end. */
#include "tests/support/model/oracle.h"

#include <string.h>

#include "weekwheel/wheel.h"

void oracle_init(struct oracle *oracle, uint32_t timers, uint64_t start)
{
	memset(oracle, 0, sizeof *oracle);
	oracle->timers = timers;
	oracle->now = oracle->hand = start;
	for (uint32_t i = 0; i < timers; i++) {
		oracle->order[i] = UINT64_MAX;
	}
}

static void set_state(struct oracle *oracle, uint32_t timer, enum oracle_state state)
{
	oracle->pending += state != ORACLE_IDLE;
	oracle->pending -= oracle->state[timer] != ORACLE_IDLE;
	oracle->state[timer] = (uint8_t)state;
	oracle->order[timer] = state == ORACLE_ORDERED ? oracle->deadline[timer] : UINT64_MAX;
}

/* Whether the timer is due, and no callback of the running advance has put it off to the next one. */
static int is_due(const struct oracle *oracle, uint32_t timer)
{
	if (oracle->state[timer] == ORACLE_IDLE || oracle->deadline[timer] > oracle->now) {
		return 0;
	}
	return !oracle->running || oracle->state[timer] != ORACLE_LATE || oracle->scheduled_in[timer] != oracle->call;
}

void oracle_schedule(struct oracle *oracle, uint32_t timer, uint64_t deadline, uint64_t period)
{
	enum oracle_state state = ORACLE_LATE;

	if (deadline > oracle->hand) {
		state = ORACLE_ORDERED;
	} else if (is_due(oracle, timer) && deadline >= oracle->deadline[timer]) {
		/* A due timer that is moved later, but not beyond the hand, may expire as if it had not been moved. */
		state = ORACLE_UNSURE;
	}
	oracle->scheduled += oracle->state[timer] == ORACLE_IDLE;
	oracle->deadline[timer] = deadline;
	oracle->period[timer] = period;
	oracle->scheduled_in[timer] = oracle->running ? oracle->call : 0;
	set_state(oracle, timer, state);
}

void oracle_cancel(struct oracle *oracle, uint32_t timer)
{
	set_state(oracle, timer, ORACLE_IDLE);
	oracle->cancelled++;
}

void oracle_drain(struct oracle *oracle, uint32_t timer)
{
	set_state(oracle, timer, ORACLE_IDLE);
	oracle->drained++;
}

/* The earliest deadline of the timers that expire in order. */
static uint64_t first_in_order(const struct oracle *oracle)
{
	uint64_t first = UINT64_MAX;

	for (uint32_t i = 0; i < oracle->timers; i++) {
		first = oracle->order[i] < first ? oracle->order[i] : first;
	}
	return first;
}

/* Whether a timer that was late before this call has not expired yet. */
static int late_is_left(const struct oracle *oracle)
{
	for (uint32_t i = 0; i < oracle->timers; i++) {
		if (oracle->state[i] == ORACLE_LATE && oracle->scheduled_in[i] != oracle->call) {
			return 1;
		}
	}
	return 0;
}

uint64_t oracle_earliest(const struct oracle *oracle)
{
	uint64_t earliest = UINT64_MAX;

	for (uint32_t i = 0; i < oracle->timers; i++) {
		if (oracle->state[i] != ORACLE_IDLE && oracle->deadline[i] < earliest) {
			earliest = oracle->deadline[i];
		}
	}
	return earliest;
}

void oracle_begin(struct oracle *oracle, uint64_t now, uint64_t budget)
{
	oracle->now = now;
	oracle->budget = budget;
	oracle->count = 0;
	oracle->call++;
	oracle->running = 1;
}

const char *oracle_expire(struct oracle *oracle, uint32_t timer, uint64_t missed)
{
	uint64_t deadline = oracle->deadline[timer];
	uint64_t period = oracle->period[timer];
	uint64_t expected = period > 0 && deadline <= oracle->now ? (oracle->now - deadline) / period : 0;

	if (oracle->state[timer] == ORACLE_IDLE) {
		return "a timer expired that was not pending: cancelled, drained, or expired already";
	}
	if (deadline > oracle->now) {
		return "a timer expired before its deadline";
	}
	if (oracle->state[timer] == ORACLE_LATE && oracle->scheduled_in[timer] == oracle->call) {
		return "a timer expired in the very call in which it was scheduled too late for it";
	}
	if (oracle->state[timer] == ORACLE_ORDERED && first_in_order(oracle) < deadline) {
		return "a timer expired before another with an earlier deadline";
	}
	if (oracle->state[timer] == ORACLE_ORDERED && late_is_left(oracle)) {
		return "a timer expired before another that was late before the call";
	}
	if (missed != expected) {
		return "a wrong number of missed expiries";
	}
	if (oracle->count == oracle->budget) {
		return "more expiries than the budget";
	}
	if (oracle->state[timer] == ORACLE_ORDERED) {
		oracle->hand = deadline;
	}
	oracle->count++;
	oracle->expired++;
	deadline += missed * period;
	if (period > 0 && period <= WW_TIME_MAX - deadline) {
		oracle->deadline[timer] = deadline + period;
		oracle->scheduled_in[timer] = oracle->call;
		set_state(oracle, timer, ORACLE_ORDERED);
	} else {
		set_state(oracle, timer, ORACLE_IDLE);
	}
	return NULL;
}

const char *oracle_end(struct oracle *oracle, int answer, uint64_t count)
{
	uint64_t left = 0;   /* due: this call had to expire them */
	uint64_t unsure = 0; /* due: this call might have expired them */

	oracle->running = 0;
	if (count != oracle->count) {
		return "a wrong number of expiries is told";
	}
	for (uint32_t i = 0; i < oracle->timers; i++) {
		if (oracle->state[i] == ORACLE_IDLE || oracle->deadline[i] > oracle->now) {
			continue;
		}
		if (oracle->state[i] == ORACLE_ORDERED || oracle->scheduled_in[i] != oracle->call) {
			left++;
		} else if (oracle->state[i] == ORACLE_UNSURE) {
			unsure++;
		}
	}
	if (answer == 0) {
		oracle->hand = oracle->now;
		return left > 0 ? "advance answers 0 but left a timer that is due" : NULL;
	}
	if (answer != 1) {
		return "advance answers an error";
	}
	if (count != oracle->budget) {
		return "advance answers 1 but the budget is not used up";
	}
	return left + unsure == 0 ? "advance answers 1 but nothing is left" : NULL;
}
