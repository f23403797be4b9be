#ifndef TOOLS_WEEKWHEEL_REPLAY_ORACLE_H
#define TOOLS_WEEKWHEEL_REPLAY_ORACLE_H

/* Computes without a wheel what a replay must give. */

#include "tools/weekwheel/input/events.h"
#include "tools/weekwheel/replay/outcome.h"

/*
 * Say what has to come of the events, without a wheel. Fills the outcome with every expiry and, by key, the deadlines
 * that are pending at the end: after the last event, or with to_end when everything has expired.
 */
void oracle_run(const struct events *events, int to_end, struct outcome *outcome);

#endif
