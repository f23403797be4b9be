#ifndef TOOLS_WEEKWHEEL_SESSIOND_PROTOCOL_LINE_H
#define TOOLS_WEEKWHEEL_SESSIOND_PROTOCOL_LINE_H

/* Commands that come as a line of words, which resp.c leaves to line.c. */

#include "tools/weekwheel-sessiond/protocol/resp.h"

/* Parse a command that is a line of words, as people type it. As resp_parse. */
enum resp_result line_parse(struct resp_parser *parser, const char *data, size_t size);

#endif
