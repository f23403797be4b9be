#ifndef TOOLS_WEEKWHEELD_ENGINE_AUTH_H
#define TOOLS_WEEKWHEELD_ENGINE_AUTH_H

/*
 * Who may. With --auth-file, a connection may only quit and authenticate until it has said a token, and then what the
 * token's line grants. rights.c has the table of what each verb needs.
 */

#include <stdint.h>

#include "tools/service/access/access.h"
#include "tools/weekwheeld/protocol/protocol.h"
#include "weekwheel/driver.h"

struct ww_jobs;
struct server;

/* Take the tokens of the settings. */
void auth_start(struct server *server);

/*
 * Return 0 if the token has the rights in the tube of the job, WW_ENOTFOUND if not or if there is no such job, or what
 * else the store said. Any thread if jobs is shared.
 */
int auth_may(struct ww_jobs *jobs, const struct token *token, unsigned rights, uint64_t id);

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
