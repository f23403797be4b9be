#ifndef TOOLS_WEEKWHEELD_AUTH_H
#define TOOLS_WEEKWHEELD_AUTH_H

/*
 * Who may. With --auth-file, a connection may only quit and authenticate until it has said a token, and then what the
 * token's line grants. rights.c has the table of what each verb needs.
 */

#include <stdint.h>
#include <sys/socket.h>

#include "tools/service/culprit.h"
#include "tools/service/tokens.h"
#include "tools/weekwheeld/protocol/protocol.h"
#include "weekwheel/driver.h"

struct connection;
struct ww_jobs;
struct server;

/* A server's. */
struct auth {
	struct tokens *tokens; /* NULL: everybody may do everything */
	struct culprits culprits;
};

/* What a client waits for: that its token is looked at, or the answer to a wrong one. */
enum auth_held { HELD_NOT, HELD_TURN, HELD_ANSWER };

/* A connection's. */
struct auth_client {
	const struct token *token; /* NULL: it has said none */
	ww_handle timer;           /* ends a pause, or the time in which a token has to be said */
	enum auth_held held;       /* a token or its answer waits, and so do all commands */
	uint64_t ends;    /* ns of the loop's clock: of the time that a client without a token has; 0: not yet */
	unsigned refused; /* lines before a right token */
	unsigned char hash[TOKEN_HASH]; /* of the token that waits for its turn */
};

/* Take the tokens of the settings. */
void auth_start(struct server *server);
void auth_stop(struct server *server);

/* Read the file again. Clients whose line has changed or is gone are closed. A file that is wrong changes nothing. */
void auth_reload(struct server *server);

/* A connection begins, and ends. Returns 0, or -1 without memory. */
int auth_open(struct connection *connection);
/* Its handshake of TLS is done. */
void auth_secured(struct connection *connection);
void auth_close(struct connection *connection);

/*
 * Return 1 if a command may run. It has then got the refusal of what the client may not do, or the guard that auth_may
 * is to be asked for. The connection of another protocol is closed.
 */
int auth_admits(struct connection *connection, struct command *command);

/*
 * Return 0 if the token has the rights in the tube of the job, WW_ENOTFOUND if not or if there is no such job, or what
 * else the store said. Any thread if jobs is shared.
 */
int auth_may(struct ww_jobs *jobs, const struct token *token, unsigned rights, uint64_t id);

/* Carry out "auth". */
void auth_login(struct connection *connection, const struct command *command);

/*
 * Find the token of a request over HTTP by its field Authorization, or NULL. Return 0, with *token NULL if no tokens are
 * used; 401 if it needs a right token; or 429 if its address, which is the client's, rests, with the seconds in *rest.
 */
int auth_http_token(struct server *server, const struct sockaddr *address, const char *field,
    const struct token **token, unsigned *rest);

/* The same, and 403 if the token may not do what the command would. */
int auth_http(struct server *server, const struct sockaddr *address, const char *field, const struct command *command,
    unsigned *rest);

/* ---- rights.c */

/* What a client may do depends on this. */
struct rights_case {
	const struct token *token;
	const struct command *command;
	const char *used;           /* the tube it uses */
	const char *const *watched; /* the tubes it watches */
	size_t watched_count;
	int has_lease; /* the command names a job that the client has reserved */
};

enum rights_answer {
	RIGHTS_NO,
	RIGHTS_YES,
	RIGHTS_BY_TUBE /* if it has *rights in the tube of the job that the command names by its id */
};

/* Return whether the client may carry out the command. */
enum rights_answer rights_of(const struct rights_case *about, unsigned *rights);

#endif
