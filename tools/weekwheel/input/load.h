#ifndef TOOLS_WEEKWHEEL_INPUT_LOAD_H
#define TOOLS_WEEKWHEEL_INPUT_LOAD_H

/* Loads files into one list of events, and counts the lines that could not be read. */

#include <stdint.h>

#include "tools/weekwheel/input/events.h"
#include "tools/weekwheel/input/format.h"

struct load_options {
	const struct format *format; /* NULL: recognise it */
	struct moment timeout;       /* of sessions in access logs */
	int strict;                  /* stop at the first line that cannot be read */
};

/* One input and what was found in it. */
struct source {
	const char *name; /* as it was given */
	const struct format *format;
	int gzip;
	int damaged; /* reading it failed before its end */
	uint64_t lines;
	uint64_t unreadable; /* lines */
	struct format_context context;
};

enum { LOAD_MESSAGES_MAX = 20 };

/* Return the name of the source for people. */
const char *source_title(const struct source *source);

/*
 * Append the events of a file to *events and fill *source. *reported counts the unreadable lines of all files. The first
 * LOAD_MESSAGES_MAX of them get a message. Return 0, also if lines could not be read (source->unreadable), or -1 after a
 * message if the file could not be opened or a strict reading stopped.
 */
int load_file(const char *name, const struct load_options *options, struct events *events, struct source *source,
    uint64_t *reported);

#endif
