/* Who may: keeps the tokens, slows wrong ones, and says what the token of a request grants. */
#include "tools/weekwheeld/engine/auth.h"

#include <inttypes.h>
#include <string.h>
#include <strings.h>

#include "tools/service/address.h"
#include "tools/weekwheeld/engine/server.h"

uint64_t auth_now(const struct server *server)
{
	uint64_t now = 0;

	(void)ww_driver_now(server->elapsed, &now);
	return now;
}

/* The log gets the 1st, 2nd, 4th, 8th, ... of an address. */
uint64_t auth_failed(struct server *server, const struct address_key *from, const char *name, const char *what)
{
	uint32_t failures;
	uint64_t pause = culprit_failed(&server->auth.culprits, from, auth_now(server), &failures);

	if ((failures & (failures - 1)) == 0)
		message_log(MESSAGE_WARNING, MESSAGE_FIELDS({"client", name, 0}, {"failures", NULL, failures}),
		    "%s from %s, number %" PRIu32 " from there; the answer waits %" PRIu64
		    " ms, and so do other tokens",
		    what, name, failures, pause / WW_MILLISECOND);
	return pause;
}

int auth_may(struct ww_jobs *jobs, const struct token *token, unsigned rights, uint64_t id)
{
	struct ww_job_ref job = {.id = id};
	struct ww_job_info info;
	int error = id ? ww_jobs_peek(jobs, &job, &info, NULL) : WW_ENOTFOUND;

	return error == WW_OK && !token_may(token, rights, info.tube) ? WW_ENOTFOUND : error;
}

static int http_token(
    struct server *server, const struct sockaddr *address, const char *text, const struct token **token, unsigned *rest)
{
	struct culprits *culprits = &server->auth.culprits;
	struct address_key from = address_key(address);
	unsigned char hash[TOKEN_HASH];
	char name[ADDRESS_TEXT];
	uint64_t rests = culprit_rests(culprits, &from, auth_now(server));

	(void)tokens_hash(text, strlen(text), hash);
	*rest = (unsigned)((rests + WW_SECOND - 1) / WW_SECOND);
	if (rests && !culprit_is_guest(culprits, &from, hash))
		return 429;
	*token = tokens_find_hash(server->auth.tokens, hash);
	(void)address_show(address, name);
	if (*token)
		culprit_welcome(culprits, &from, hash);
	else
		(void)auth_failed(server, &from, name, "a wrong token");
	return 0;
}

int auth_http_token(struct server *server, const struct sockaddr *address, const char *field,
    const struct token **token, unsigned *rest)
{
	static const char scheme[] = "Bearer ";

	*token = NULL;
	if (!server->auth.tokens)
		return 0;
	if (field && strncasecmp(field, scheme, sizeof scheme - 1) == 0 &&
	    http_token(server, address, field + sizeof scheme - 1, token, rest) != 0)
		return 429;
	return *token ? 0 : 401;
}

int auth_http(struct server *server, const struct sockaddr *address, const char *field, const struct command *command,
    unsigned *rest)
{
	struct rights_case about = {.command = command, .used = ""};
	int status = auth_http_token(server, address, field, &about.token, rest);
	unsigned rights;

	if (status != 0 || !server->auth.tokens)
		return status;
	switch (rights_of(&about, &rights)) {
	case RIGHTS_YES:
		return 0;
	default:
		return 403; /* RIGHTS_BY_TUBE, too: the loop cannot wait for a shared store */
	}
}

/* ---- The file */

void auth_start(struct server *server)
{
	server->auth.tokens = server->settings->tokens;
}

void auth_stop(struct server *server)
{
	tokens_free(server->auth.tokens);
	server->auth.tokens = NULL;
}

int auth_reload(struct server *server, struct tokens **former)
{
	const char *path = server->settings->auth_file;
	struct tokens *tokens;
	char why[TOKEN_WHY];

	if (!path)
		return 0;
	tokens = tokens_read(path, why);
	if (!tokens)
		return message_error("the tokens stay as they were: --auth-file '%s': %s", path, why);
	*former = server->auth.tokens;
	server->auth.tokens = tokens;
	return 1;
}
