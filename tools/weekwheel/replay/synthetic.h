#ifndef TOOLS_WEEKWHEEL_REPLAY_SYNTHETIC_H
#define TOOLS_WEEKWHEEL_REPLAY_SYNTHETIC_H

/* Generates a week of sessions for a replay without input. */

#include <stdint.h>

#include "tools/weekwheel/input/events.h"

/*
 * Append the events of a week of made-up sessions. The same seed and number give the same events on every machine.
 * `sessions` is 1 to SYNTHETIC_SESSIONS_MAX.
 */
void synthetic_generate(struct events *events, uint64_t seed, uint32_t sessions);

#define SYNTHETIC_SESSIONS_MAX 50000000u
#define SYNTHETIC_SESSIONS 100000u
#define SYNTHETIC_SEED 1u

#endif
