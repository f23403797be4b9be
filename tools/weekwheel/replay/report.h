#ifndef TOOLS_WEEKWHEEL_REPLAY_REPORT_H
#define TOOLS_WEEKWHEEL_REPLAY_REPORT_H

/* A replay with all that is known about it, and its summary: for people, as JSON, and as a line an expiry. */

#include <stdio.h>

#include "tools/weekwheel/input/load.h"
#include "tools/weekwheel/replay/replay.h"

/* What the command line asks for. */
struct replay_request {
	struct load_options load;
	struct replay_options replay;
	int json, emit, verify;
	int synthetic;         /* an option for synthetic sessions was given */
	const char *write_csv; /* a file, or NULL */
	uint64_t seed;
	uint32_t sessions;
	const char **files; /* the names are the command line's */
	size_t file_count, file_capacity;
};

struct report {
	struct replay_request request;
	struct source *sources; /* one for each file of the request */
	struct events events;
	size_t out_of_order; /* events that followed a later one */
	uint64_t unreadable; /* lines of all sources */
	struct replay_result result;
	enum { REPORT_NOT_VERIFIED, REPORT_VERIFIED, REPORT_DIFFERENT } verified;
};

void report_text(FILE *out, const struct report *report);

/* Write one object, a key a line, with a line break at its end. */
void report_json(FILE *out, const struct report *report);

/*
 * Write each expiry as a line: time, key, and for a session its length (from its first to its last request, in seconds)
 * and its number of requests, with a tab between. A tab, a backslash or a control character in a key becomes \t, \\ or
 * \x and two hexadecimal digits. Stop at the first write that fails. Return its errno, or 0.
 */
int report_expiries(FILE *out, const struct report *report);

/* Return the timer operations a second, or 0 if the time was too short to be measured. */
static inline double report_rate(const struct report *report)
{
	const struct replay_result *result = &report->result;

	return result->wall_ns ? (double)result->operations * 1e9 / (double)result->wall_ns : 0;
}

#endif
