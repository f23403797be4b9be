#ifndef TOOLS_WEEKWHEEL_SESSIOND_SERVE_H
#define TOOLS_WEEKWHEEL_SESSIOND_SERVE_H

/* Serving: the loops, the connections of their clients, and the doors by which clients come. */

#include "tools/weekwheel-sessiond/server/server.h"

/* ---- run.c */

/* Serve until a signal or SHUTDOWN ends it. Returns the exit status. */
int sessiond_run(const struct sessiond_settings *settings);

/* ---- loop.c */

int loop_start(struct sessiond *server, struct loop *loop, unsigned number);
void loop_run(struct loop *loop);
void loop_free(struct loop *loop);

/* ---- conn.c */

/* A client has come. It is turned away if there is no memory. */
void conn_begin(struct loop *loop, const struct arrival *arrival);
/* Send the answers of this turn. */
void conn_send_all(struct loop *loop);
/* Close clients beyond --max-buffers. Not while a command is carried out. */
void conn_keep_bounds(struct loop *loop);
void conn_close(struct conn *conn);

/* ---- doors.c */

int doors_start(struct sessiond *server);
/* A client that is counted goes. Any thread. */
void doors_let_out(struct sessiond *server, struct crowd_address *place);

#endif
