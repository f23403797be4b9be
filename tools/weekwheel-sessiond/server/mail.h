#ifndef TOOLS_WEEKWHEEL_SESSIOND_SERVER_MAIL_H
#define TOOLS_WEEKWHEEL_SESSIOND_SERVER_MAIL_H

/*
 * What other threads leave for a loop: new clients, messages of channels, and notices. The loop takes it in its next
 * turn. Any thread may call what has no other note.
 */

#include "tools/weekwheel-sessiond/server/server.h"

/* The loop whose thread this is, or NULL. */
struct loop *mail_here(void);
/* This thread runs the loop from now on. */
void mail_begin_here(struct loop *loop);

/* Hand a new client to the loop. Returns 0, or -1: it is stopping, or there is no memory. */
int mail_arrival(struct loop *loop, const struct arrival *arrival);
/* There is mail for the client, or it is to be closed. The loop's lock is held. */
void mail_post(struct conn *conn);
/* In the loop's thread: give its clients their mail. */
void mail_take(struct loop *loop);

/* Let each loop check the tokens of its clients. */
void mail_check_tokens(struct sessiond *server);
/* End all loops. */
void mail_stop(struct sessiond *server);

#endif
