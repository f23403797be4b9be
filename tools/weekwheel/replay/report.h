#ifndef TOOLS_WEEKWHEEL_REPLAY_REPORT_H
#define TOOLS_WEEKWHEEL_REPLAY_REPORT_H

/* The summary of a replay, for a person and as JSON. */

#include <stdio.h>

#include "tools/weekwheel/input/load.h"
#include "tools/weekwheel/replay/replay.h"

enum report_verified { REPORT_NOT_VERIFIED, REPORT_VERIFIED, REPORT_DIFFERENT };

struct report {
	const struct source *sources; /* none: the sessions are synthetic */
	size_t source_count;
	const struct events *events;
	const struct replay_result *result;
	size_t out_of_order; /* events that stood in a file before an earlier one */
	enum report_verified verified;
	int every_tick;
	int to_end;
	uint64_t seed; /* of synthetic sessions */
	uint32_t sessions;
};

void report_text(FILE *out, const struct report *report);

/* One object, a key a line, with a line break at its end. */
void report_json(FILE *out, const struct report *report);

/* Lines that could not be read, in all sources. */
uint64_t report_unreadable(const struct report *report);

/* Timer operations a second, 0 where the time was too short to be measured. */
double report_rate(const struct report *report);

#endif
