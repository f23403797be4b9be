#ifndef TOOLS_WEEKWHEELD_VERBS_LIST_H
#define TOOLS_WEEKWHEELD_VERBS_LIST_H

/* Lists of jobs and forecasts in JSON, for the protocol and for HTTP. Any thread. */

#include "tools/common/buffer.h"
#include "tools/weekwheeld/protocol/protocol.h"

struct server;

/* Write jobs as lines of JSON, and a line {"next":ID} if there may be more. Returns 0 or a WW_E*. */
int list_jobs(struct server *server, const struct command *command, struct buffer *out);
int list_forecast(struct server *server, const struct command *command, struct buffer *out);

/* Write a string of JSON. Returns 0, or -1 without memory. */
int list_string(struct buffer *out, const char *text);

#endif
