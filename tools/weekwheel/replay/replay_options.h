#ifndef TOOLS_WEEKWHEEL_REPLAY_REPLAY_OPTIONS_H
#define TOOLS_WEEKWHEEL_REPLAY_REPLAY_OPTIONS_H

/* The command line of the subcommand replay. */

#include <stdint.h>
#include <stdio.h>

#include "tools/weekwheel/input/load.h"
#include "tools/weekwheel/replay/replay.h"

struct replay_request {
	struct load_options load;
	struct replay_options replay;
	int json, emit, verify;
	const char *write_csv; /* a file, or NULL */
	uint64_t seed;
	uint32_t sessions;
	const char **files; /* the caller frees the array; the names are the command line's */
	size_t file_count;
};

enum replay_request_kind { REPLAY_REQUEST_RUN, REPLAY_REQUEST_HELP, REPLAY_REQUEST_WRONG };

/* Read the command line into *request. Return REPLAY_REQUEST_WRONG after a message. */
enum replay_request_kind replay_request_parse(struct replay_request *request, char **arguments);

void replay_request_help(FILE *out);

#endif
