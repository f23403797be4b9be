#ifndef TOOLS_WEEKWHEELD_ENGINE_AUTH_H
#define TOOLS_WEEKWHEELD_ENGINE_AUTH_H

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

struct ww_jobs;
struct server;

/* A server's. */
struct auth {
	struct tokens *tokens; /* NULL: everybody may do everything */
	struct culprits culprits;
};

/* Take the tokens of the settings. */
void auth_start(struct server *server);
void auth_stop(struct server *server);

/*
 * Read the file again. Returns 1 with the tokens of before in *former, which the caller frees when no client has one of
 * them any more; 0 if the server has no file; or -1 after a message: a file that is wrong changes nothing.
 */
int auth_reload(struct server *server, struct tokens **former);

/* ns of the clock that pauses are measured by. */
uint64_t auth_now(const struct server *server);

/* A client said a wrong token, or did `what`; its name is for the log. Return the ns for which its answer has to wait. */
uint64_t auth_failed(struct server *server, const struct address_key *from, const char *name, const char *what);

/*
 * Return 0 if the token has the rights in the tube of the job, WW_ENOTFOUND if not or if there is no such job, or what
 * else the store said. Any thread if jobs is shared.
 */
int auth_may(struct ww_jobs *jobs, const struct token *token, unsigned rights, uint64_t id);

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
