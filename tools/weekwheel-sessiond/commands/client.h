#ifndef TOOLS_WEEKWHEEL_SESSIOND_COMMANDS_CLIENT_H
#define TOOLS_WEEKWHEEL_SESSIOND_COMMANDS_CLIENT_H

/* The names that a client gives itself and its library. CLIENT LIST shows them. */

#include "tools/weekwheel-sessiond/server/server.h"

/* Give it a name without blanks; of no bytes: none. Returns 0, or -1. */
int client_rename(struct conn *conn, const char *name, size_t size);
/* Free its names and those of its library. */
void client_forget_names(struct conn *conn);

#endif
