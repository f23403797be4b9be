#ifndef TOOLS_WEEKWHEEL_SESSIOND_COMMANDS_TRANSACTION_H
#define TOOLS_WEEKWHEEL_SESSIOND_COMMANDS_TRANSACTION_H

/* MULTI and WATCH: commands that are carried out together, or not at all. */

#include "tools/weekwheel-sessiond/commands/commands.h"

/* Keep a command for EXEC. */
void transaction_queue(
    struct conn *conn, const struct command_entry *command, const struct resp_arg *arg, size_t count);
/* A command could not be queued: EXEC will refuse. Does nothing outside of MULTI. */
void transaction_spoil(struct conn *conn);
/* Forget what is queued and watched. */
void transaction_leave(struct conn *conn);

#endif
