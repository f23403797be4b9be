/* Who may: takes tokens, slows wrong ones, refuses what a client may not do, and turns other protocols away. */
#include "tools/weekwheeld/auth.h"

#include <inttypes.h>
#include <string.h>
#include <strings.h>

#include "tools/common/tls/tls.h"
#include "tools/service/address.h"
#include "tools/weekwheeld/server.h"

/* A client without a token may stay so long, and send so many lines beside tokens. */
#define LOGIN_TIME (30 * WW_SECOND)
enum { REFUSED_MOST = 64 };

static uint64_t now_of(const struct server *server)
{
	uint64_t now = 0;

	(void)ww_driver_now(server->elapsed, &now);
	return now;
}

static const char *client_name(const struct connection *connection, char name[ADDRESS_TEXT])
{
	struct sockaddr_storage address = {0};
	int size = sizeof address;

	if (connection->io.handle.type != UV_TCP ||
	    uv_tcp_getpeername(&connection->io.tcp, (struct sockaddr *)&address, &size) != 0)
		return "a Unix socket";
	(void)address_show((struct sockaddr *)&address, name);
	return name;
}

/* A token was wrong. Return how long its answer has to wait. The log gets the 1st, 2nd, 4th, 8th, ... of an address. */
static uint64_t auth_failed(struct server *server, const struct address_key *from, const char *name, const char *what)
{
	uint32_t failures;
	uint64_t pause = culprit_failed(&server->auth.culprits, from, now_of(server), &failures);

	if ((failures & (failures - 1)) == 0)
		message_log(MESSAGE_WARNING, MESSAGE_FIELDS({"client", name, 0}, {"failures", NULL, failures}),
		    "%s from %s, number %" PRIu32 " from there; the answer waits %" PRIu64
		    " ms, and so do other tokens",
		    what, name, failures, pause / WW_MILLISECOND);
	return pause;
}

/* ---- A connection without a token */

static void auth_timer(struct ww_driver *driver, const struct ww_firing *firing, void *user);

/* Set or, for 0, end the timer. */
static int auth_wait(struct connection *connection, uint64_t ns)
{
	struct ww_driver *driver = connection->server->elapsed;

	if (connection->auth.timer)
		(void)ww_driver_cancel(driver, connection->auth.timer);
	connection->auth.timer = 0;
	if (ns == 0)
		return 0;
	return ww_driver_schedule(driver, ns, auth_timer, connection, &connection->auth.timer) == WW_OK ? 0 : -1;
}

int auth_open(struct connection *connection)
{
	struct auth_client *client = &connection->auth;
	int needs_token = connection->server->auth.tokens && !client->token;
	uint64_t now;

	/* What it sends meanwhile may take no memory. */
	if (needs_token)
		connection->protocol.body_max = 0;
	else if (!connection->tls || tls_is_ready(connection->tls))
		return 0;
	now = now_of(connection->server);
	/* Wrong tokens give no more time. */
	if (client->ends == 0)
		client->ends = now + LOGIN_TIME;
	return auth_wait(connection, client->ends > now ? client->ends - now : 1);
}

void auth_secured(struct connection *connection)
{
	if (!connection->server->auth.tokens)
		(void)auth_wait(connection, 0);
}

void auth_close(struct connection *connection)
{
	(void)auth_wait(connection, 0);
}

/* Its commands and their answers wait. */
static void auth_hold(struct connection *connection, enum auth_held held, uint64_t ns)
{
	connection->auth.held = held;
	if (auth_wait(connection, ns) != 0)
		connection_close(connection);
}

/* It is the turn of the token with the hash that was kept. Answer if it is right, or else later. */
static void auth_decide(struct connection *connection)
{
	struct server *server = connection->server;
	struct auth_client *client = &connection->auth;
	char name[ADDRESS_TEXT];

	client->held = HELD_NOT;
	client->token = tokens_find_hash(server->auth.tokens, client->hash);
	if (!client->token) {
		auth_hold(connection, HELD_ANSWER,
		    auth_failed(server, &connection->from, client_name(connection, name), "a wrong token"));
		return;
	}
	culprit_welcome(&server->auth.culprits, &connection->from, client->hash);
	connection->protocol.body_max = (size_t)server->settings->max_job_size;
	client->ends = 0;
	(void)auth_wait(connection, 0);
	answer_text(connection, "OK\r\n");
}

/* More than that would wait for longer than anyone does. */
static void auth_crowd(struct connection *connection)
{
	char name[ADDRESS_TEXT];

	state_seen("guesses",
	    "wrong tokens come from one address faster than they are looked at: more clients of it with tokens that "
	    "did not come from there before are closed; the first came from %s",
	    client_name(connection, name));
	connection_close(connection);
}

void auth_login(struct connection *connection, const struct command *command)
{
	struct auth *auth = &connection->server->auth;
	struct span secret = command->own.secret;
	uint64_t wait;

	/* A client with a token may talk to a server that wants none. */
	if (!auth->tokens) {
		answer_text(connection, "OK\r\n");
		return;
	}
	connection->auth.token = NULL;
	(void)tokens_hash(secret.at, (size_t)(secret.end - secret.at), connection->auth.hash);
	wait = culprit_is_guest(&auth->culprits, &connection->from, connection->auth.hash)
	           ? 0
	           : culprit_turn(&auth->culprits, &connection->from, now_of(connection->server));
	if (wait == CULPRIT_CROWD)
		auth_crowd(connection);
	else if (wait > 0)
		auth_hold(connection, HELD_TURN, wait);
	else
		auth_decide(connection);
}

/* A client without a token has stayed too long. */
static void auth_late(struct connection *connection)
{
	char name[ADDRESS_TEXT];

	state_seen("tokens",
	    "clients that say no token, or do not finish the handshake of TLS, for %d s are closed; the first came from %s",
	    (int)(LOGIN_TIME / WW_SECOND), client_name(connection, name));
	connection_close(connection);
}

static void auth_timer(struct ww_driver *driver, const struct ww_firing *firing, void *user)
{
	struct connection *connection = user;
	struct auth_client *client = &connection->auth;
	size_t start = connection->out.size;

	(void)driver;
	(void)firing;
	client->timer = 0;
	if (connection->is_closed)
		return;
	if (client->held == HELD_NOT) {
		auth_late(connection);
		return;
	}
	if (client->held == HELD_TURN) {
		auth_decide(connection);
		if (client->held != HELD_NOT || connection->is_closed)
			return;
	} else {
		client->held = HELD_NOT;
		answer_text(connection, "DENIED\r\n");
	}
	answer_end(connection, start, 0);
	if (auth_open(connection) != 0)
		connection_close(connection);
	else
		connection_resume(connection);
}

/* ---- Commands */

/* The client speaks HTTP or TLS, as a web page makes a browser do. */
static void auth_foreign(struct connection *connection)
{
	char name[ADDRESS_TEXT];

	state_seen("foreign",
	    "clients that speak HTTP or TLS to the port of the protocol are closed, as a web page may make a browser do; "
	    "the first came from %s",
	    client_name(connection, name));
	connection_close(connection);
}

int auth_may(struct ww_jobs *jobs, const struct token *token, unsigned rights, uint64_t id)
{
	struct ww_job_ref job = {.id = id};
	struct ww_job_info info;
	int error = id ? ww_jobs_peek(jobs, &job, &info, NULL) : WW_ENOTFOUND;

	return error == WW_OK && !token_may(token, rights, info.tube) ? WW_ENOTFOUND : error;
}

/* Set the refusal or the guard of a command that is well formed. */
static void auth_check(struct connection *connection, struct command *command)
{
	const struct rights_case about = {connection->auth.token, command, connection->used->name, connection->names,
	    connection->watch_count, command->id && lease_of(connection, command->id)};
	unsigned rights;

	switch (rights_of(&about, &rights)) {
	case RIGHTS_BY_TUBE:
		command->guard = rights;
		break;
	case RIGHTS_NO:
		command->refusal = REFUSAL_DENIED;
		break;
	default:
		break;
	}
}

/* Lines that need a token or are none. Whoever sends many of them is no client of ours. */
static int auth_counts(struct connection *connection, const struct command *command)
{
	char name[ADDRESS_TEXT];

	if (connection->auth.token || command->refusal == REFUSAL_NONE || ++connection->auth.refused <= REFUSED_MOST)
		return 1;
	(void)auth_failed(
	    connection->server, &connection->from, client_name(connection, name), "too many lines without a token");
	connection_close(connection);
	return 0;
}

int auth_admits(struct connection *connection, struct command *command)
{
	if (command->refusal == REFUSAL_FOREIGN) {
		auth_foreign(connection);
		return 0;
	}
	if (!connection->server->auth.tokens)
		return 1;
	if (command->refusal != REFUSAL_BAD_FORMAT && command->refusal != REFUSAL_UNKNOWN)
		auth_check(connection, command);
	return auth_counts(connection, command);
}

static int http_token(
    struct server *server, const struct sockaddr *address, const char *text, const struct token **token, unsigned *rest)
{
	struct culprits *culprits = &server->auth.culprits;
	struct address_key from = address_key(address);
	unsigned char hash[TOKEN_HASH];
	char name[ADDRESS_TEXT];
	uint64_t rests = culprit_rests(culprits, &from, now_of(server));

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

void auth_reload(struct server *server)
{
	const char *path = server->settings->auth_file;
	struct tokens *former = server->auth.tokens;
	struct connection *connection;
	struct connection *next;
	struct tokens *tokens;
	char why[TOKEN_WHY];
	unsigned closed = 0;

	if (!path)
		return;
	tokens = tokens_read(path, why);
	if (!tokens) {
		message_error("the tokens stay as they were: --auth-file '%s': %s", path, why);
		return;
	}
	server->auth.tokens = tokens;
	events_reload(server);
	for (connection = LIST_FIRST(&server->connections); connection; connection = next) {
		const struct token *old = connection->auth.token;
		const struct token *now = old ? tokens_find_hash(tokens, old->hash) : NULL;

		next = LIST_NEXT(connection, next);
		connection->auth.token = now;
		/* What it waits for or has reserved came of its former rights. */
		if (old && (!now || strcmp(old->text, now->text) != 0)) {
			connection_close(connection);
			closed++;
		}
	}
	tokens_free(former);
	message_info("%zu tokens have been read; %u clients whose line has changed or is gone were closed",
	    tokens->count, closed);
}
