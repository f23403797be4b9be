#ifndef TOOLS_WEEKWHEEL_SESSIOND_INPUT_H
#define TOOLS_WEEKWHEEL_SESSIOND_INPUT_H

/*
 * A client's commands, carried out in the order of its bytes. What is left of them waits in `in`: the rest of a
 * command, and commands behind one that takes several turns or has to wait.
 */

#include "tools/weekwheel-sessiond/server/server.h"

/* These bytes have come, in clear. */
void input_take(struct conn *conn, const char *data, size_t size);
/* Bytes have come at the end of `in`. */
void input_more(struct conn *conn);
/* The pause or walk that held back its next commands is over. */
void input_go_on(struct conn *conn);
/* Whether it must read answers before its next command is carried out. */
int input_is_full(const struct conn *conn);
/* The client goes. */
void input_end(struct conn *conn);

#endif
