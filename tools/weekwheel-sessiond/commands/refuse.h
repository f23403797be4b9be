#ifndef TOOLS_WEEKWHEEL_SESSIOND_COMMANDS_REFUSE_H
#define TOOLS_WEEKWHEEL_SESSIOND_COMMANDS_REFUSE_H

/* Answers to commands that are not carried out: unknown ones, and those that this client may not use now. */

#include "tools/weekwheel-sessiond/commands/request.h"

/*
 * Answer that there is no such command, or none in this server. A request of HTTP gets no answer: its client is closed.
 */
void refuse_unknown(struct conn *conn, const struct resp_arg *arg, size_t count);
/* Answer why the command is refused, which spoils a transaction. Returns 0 if it is not refused. */
int refuse_command(struct conn *conn, const struct command_entry *command, const struct resp_arg *arg, size_t count);

#endif
