#ifndef TOOLS_WEEKWHEEL_REPLAY_REPLAY_H
#define TOOLS_WEEKWHEEL_REPLAY_REPLAY_H

/*
 * Replays events on a wheel in virtual time: advances the wheel to the time of the next event, and does the event. Nothing
 * waits, and a week takes as long as its timers cost.
 */

#include "tools/weekwheel/input/events.h"
#include "tools/weekwheel/replay/histogram.h"
#include "tools/weekwheel/replay/outcome.h"

struct replay_options {
	int every_tick;    /* advance by every tick, rather than to the ticks in which the wheel has something to do */
	int to_end;        /* go on after the last event until nothing is pending */
	int keep_expiries; /* in outcome.expiries */
	int keep_sessions; /* with each expiry, the first and last request of its session */
	int check;         /* check the wheel's invariants now and then, and keep the deadlines at the end */
};

struct replay_result {
	struct outcome outcome;
	struct histogram advance; /* nanoseconds that each advance took */
	uint64_t operations;      /* calls that set, move or cancel a timer, and expiries */
	uint64_t max_late_ticks;
	uint64_t start, end; /* ticks */
	uint64_t wall_ns;    /* of the replay alone, without reading and checks */
	size_t wheel_bytes;
	uint64_t checks;
	char wheels[2048]; /* a drawing of the wheels at the end */
};

/*
 * Replay the events, which are in order of time, and fill *result. Expiries of a tick come before the events of that tick.
 * Return 0, or -1 after a message if the wheel breaks its contract: it refuses something, expires a timer early, or has a
 * broken invariant. The caller frees result->outcome.
 */
int replay_run(const struct events *events, const struct replay_options *options, struct replay_result *result);

#endif
