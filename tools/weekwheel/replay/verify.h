#ifndef TOOLS_WEEKWHEEL_REPLAY_VERIFY_H
#define TOOLS_WEEKWHEEL_REPLAY_VERIFY_H

/* Compares what the wheel did in a replay with what the oracle says. */

#include "tools/weekwheel/input/keys.h"
#include "tools/weekwheel/replay/outcome.h"

/* The first difference, in words. */
struct difference {
	char text[400];
};

/*
 * Compare what the wheel did with what the oracle says. Within a tick the order of expiries is free. Return 0 if they
 * agree, or 1 with the first difference in *difference. Sorts the expiries of the oracle; those of the wheel stay as
 * they are.
 */
int verify_compare(
    const struct outcome *wheel, struct outcome *oracle, const struct keys *keys, struct difference *difference);

#endif
