#ifndef TOOLS_WEEKWHEEL_SESSIOND_HTTP_HTTP_H
#define TOOLS_WEEKWHEEL_SESSIOND_HTTP_HTTP_H

/* HTTP: the server's health and numbers, if the settings say so. */

#include "tools/weekwheel-sessiond/server/server.h"

/* Returns 0, or -1 after a message. */
int http_start(struct sessiond *server);
void http_stop(struct sessiond *server);

#endif
