#ifndef TOOLS_WEEKWHEEL_SESSIOND_COMMANDS_RIGHTS_H
#define TOOLS_WEEKWHEEL_SESSIOND_COMMANDS_RIGHTS_H

/* What a client may do with its token (auth.h). The table of commands says which keys a command has and whether it writes. */

#include "tools/weekwheel-sessiond/commands/request.h"

/* Return NULL if the client may run the command, otherwise an answer. */
const char *rights_refuse(
    const struct conn *conn, const struct command_entry *command, const struct resp_arg *arg, size_t count);

#endif
