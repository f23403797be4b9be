#ifndef TOOLS_WEEKWHEEL_INPUT_CSV_WRITE_H
#define TOOLS_WEEKWHEEL_INPUT_CSV_WRITE_H

/* Writes events as CSV. */

#include "tools/weekwheel/input/events.h"

/*
 * Write the events as the CSV that format_csv reads to a file: "-" is standard output, and a name that ends in ".gz" is
 * compressed. `remark`, unless NULL, becomes a comment in the first line. Return 0, or -1 after a message. A reader that
 * closes the pipe early is no error.
 */
int csv_write(const struct events *events, const char *name, const char *remark);

#endif
