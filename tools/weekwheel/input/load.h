#ifndef TOOLS_WEEKWHEEL_INPUT_LOAD_H
#define TOOLS_WEEKWHEEL_INPUT_LOAD_H

/* Reading files into one list of events, and keeping account of what could not be read. */

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

/* Return what to call the source to a person. */
const char *source_title(const struct source *source);

/*
 * Append a file's events to *events and fill *source. `reported` counts the messages about lines in all files, which
 * end after a while. Return 0, also when lines could not be read (source->unreadable), or -1 after a message when the
 * file could not be opened or a strict reading stopped.
 */
int load_file(const char *name, const struct load_options *options, struct events *events, struct source *source,
    uint64_t *reported);

/* Messages about lines end after this many. */
enum { LOAD_MESSAGES_MAX = 20 };

#endif
