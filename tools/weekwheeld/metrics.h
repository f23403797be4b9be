#ifndef TOOLS_WEEKWHEELD_METRICS_H
#define TOOLS_WEEKWHEELD_METRICS_H

/* Writes the counters of the server for Prometheus. */

#include "tools/weekwheeld/server.h"

/* Write what the server and its store count in the text format of Prometheus. Returns 0 or a WW_E*. */
int metrics_write(struct server *server, struct buffer *out);

/* Add one number, whose name gets the program's before it; not 0: there is no memory. */
int metrics_number(struct buffer *out, const char *name, const char *type, const char *help, uint64_t value);

#endif
