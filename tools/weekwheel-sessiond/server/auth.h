#ifndef TOOLS_WEEKWHEEL_SESSIOND_SERVER_AUTH_H
#define TOOLS_WEEKWHEEL_SESSIOND_SERVER_AUTH_H

/*
 * The rights of clients. With --auth-file a client sends a token (AUTH TOKEN, AUTH NAME TOKEN, HELLO 3 AUTH NAME
 * TOKEN). It may then do what the token's line grants (tools/service/tokens.h): read the keys that a pattern matches
 * (read), or change them (write, which is called put for jobs). Commands that look at all keys need their right for
 * "*", and an operator's commands need admin. With --requirepass-file there is one password, which may do everything.
 *
 * A client that guesses is slowed by its address (tools/service/culprit.h): the answer to a wrong token waits, and so
 * do other tokens from that address meanwhile.
 */

#include <pthread.h>
#include <stddef.h>
#include <stdint.h>

#include "tools/service/culprit.h"
#include "tools/service/tokens.h"

struct conn;
struct resp_arg;
struct sessiond;

/* A server's. */
struct admission {
	pthread_mutex_t lock; /* of all */
	struct tokens *tokens;
	struct culprits culprits;
};

/* A client's. */
struct known_client {
	struct tokens *tokens; /* those that `token` is one of; held */
	const struct token *token;
	struct address_key from;
	int is_known; /* it has said a token or the password, or there is none */
	int is_turn;  /* it has waited until its token is looked at */
};

/* The tokens of the settings count from now on. */
void auth_start(struct sessiond *server);
void auth_stop(struct sessiond *server);
/* Read the file again. Clients whose line has changed or is gone are closed by their loops. A wrong file changes nothing. */
void auth_reload(struct sessiond *server);
/* The client's token is now what the file says of it. Returns 1, or 0 if its line has changed or is gone. */
int auth_renew(struct conn *conn);

/* A client begins, or is as new again; and ends. */
void auth_begin(struct conn *conn);
void auth_end(struct conn *conn);

enum auth_answer { AUTH_WRONG, AUTH_RIGHT, AUTH_LATER };

/*
 * It says a user's name, which may be NULL, and a token or the password. AUTH_WRONG: the answer is for the caller to give, and
 * it is sent later. AUTH_LATER: its command is to be carried out again later, and nothing is to be answered now.
 */
enum auth_answer auth_login(struct conn *conn, const struct resp_arg *user, const struct resp_arg *secret);

/* Whether a client has to say a token or the password. */
int auth_is_needed(const struct sessiond *server);

/*
 * A request by HTTP, with its field Authorization or NULL, and the client's address. Returns 0 if it may read, 401 if it has
 * no right token, 403 if that may not read all keys, or 429.
 */
struct sockaddr;
int auth_http(struct sessiond *server, const struct sockaddr *address, const char *field);

#endif
