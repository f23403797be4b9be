#ifndef TOOLS_WEEKWHEEL_REPLAY_VERIFY_H
#define TOOLS_WEEKWHEEL_REPLAY_VERIFY_H

/* Computes without a wheel what a replay must give, and compares the wheel's outcome with it. */

#include "tools/weekwheel/input/events.h"
#include "tools/weekwheel/replay/outcome.h"

/*
 * Compute the outcome of the events, which are in order of time: every expiry and, by key, the deadlines that are pending
 * at the end. The end is after the last event, or with to_end when everything has expired.
 */
void oracle_run(const struct events *events, int to_end, struct outcome *outcome);

/* The first difference, in words. */
struct difference {
	char text[400];
};

/*
 * Compare the outcomes of the wheel and of the oracle. Within a tick the order of expiries is free. Return 0 if they
 * agree, or 1 with the first difference in *difference. Sorts the expiries of the oracle, and leaves the wheel's.
 */
int verify_compare(
    const struct outcome *wheel, struct outcome *oracle, const struct keys *keys, struct difference *difference);

#endif
