#ifndef TOOLS_WEEKWHEEL_SESSIOND_SERVER_AUTH_H
#define TOOLS_WEEKWHEEL_SESSIOND_SERVER_AUTH_H

/*
 * The rights of clients (tools/service/access/access.h). With --auth-file a client sends a token (AUTH TOKEN, AUTH NAME TOKEN,
 * HELLO 3 AUTH NAME TOKEN). It may then do what the token's line grants: read the keys that a pattern matches (read), or
 * change them (write, which is called put for jobs). Commands that look at all keys need their right for "*", and an
 * operator's commands need admin. With --requirepass-file there is one password, which may do everything.
 */

#include "tools/service/access/access.h"

struct conn;
struct resp_arg;
struct sessiond;

/* Use the tokens of the settings from now on. */
void auth_start(struct sessiond *server);
/* Read the file again. Clients whose line has changed or is gone are closed by their loops. A wrong file changes nothing. */
void auth_reload(struct sessiond *server);

/* A client begins, or is reset. */
void auth_begin(struct conn *conn);

/*
 * A client sends a user's name, which may be NULL, and a token or the password. ACCESS_WRONG: the caller answers, and
 * the answer is sent later. ACCESS_LATER: the command runs again later, and nothing is answered now, as with
 * ACCESS_CROWD.
 */
enum access_answer auth_login(struct conn *conn, const struct resp_arg *user, const struct resp_arg *secret);

#endif
