#ifndef TOOLS_WEEKWHEEL_REPLAY_EMIT_H
#define TOOLS_WEEKWHEEL_REPLAY_EMIT_H

/* Writes the expiries of a replay, a line each. */

#include <stdio.h>

#include "tools/weekwheel/input/events.h"
#include "tools/weekwheel/replay/outcome.h"

/*
 * Write each expiry as a line: time, key, and with `sessions` the session's length (from its first to its last request,
 * in seconds) and the number of its requests, with a tab between. A tab, a backslash or a control character in a key is
 * written as \t, \\ or \x and two hexadecimal digits. Return 0, or the errno of the first
 * write that failed, which is the last.
 */
int emit_expiries(FILE *out, const struct events *events, const struct expiries *expiries, int sessions);

#endif
