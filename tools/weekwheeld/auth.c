/* Who may: takes tokens, slows wrong ones, refuses what a client may not do, and turns other protocols away. */
#include "tools/weekwheeld/auth.h"

#include <inttypes.h>
#include <netinet/in.h>
#include <string.h>
#include <strings.h>

#include "tools/weekwheeld/server.h"
#include "tools/weekwheeld/settings/address.h"

/* The answer to the first wrong token of an address waits so long, and to each further one twice as long as before. */
#define PAUSE_LEAST (100 * WW_MILLISECOND)
enum { PAUSE_DOUBLINGS = 6, FORGET_MS = 600000 };

/* A client without a token may stay so long. */
#define LOGIN_TIME (30 * WW_SECOND)

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

/* ---- Addresses with wrong tokens */

static void culprit_address(const struct sockaddr *address, unsigned char bytes[16])
{
	memset(bytes, 0, 16);
	if (address->sa_family == AF_INET6) {
		const struct in6_addr *six = &((const struct sockaddr_in6 *)(const void *)address)->sin6_addr;
		int is_four = IN6_IS_ADDR_V4MAPPED(six);

		memcpy(bytes + (is_four ? 12 : 0), (const unsigned char *)six + (is_four ? 12 : 0), is_four ? 4 : 8);
	} else if (address->sa_family == AF_INET)
		memcpy(bytes + 12, &((const struct sockaddr_in *)(const void *)address)->sin_addr, 4);
}

/* Find the address, or take the place of the one that failed longest ago. */
static struct culprit *culprit_find(struct server *server, const struct sockaddr *address)
{
	uint64_t now = uv_now(&server->loop);
	struct culprit *found = server->auth.culprits;
	unsigned char bytes[16];

	culprit_address(address, bytes);
	for (struct culprit *culprit = found; culprit < server->auth.culprits + CULPRITS_MAX; culprit++) {
		if (culprit->failures && now - culprit->last > FORGET_MS)
			culprit->failures = 0;
		if (culprit->failures && memcmp(culprit->address, bytes, sizeof bytes) == 0)
			return culprit;
		if (found->failures && (!culprit->failures || culprit->last < found->last))
			found = culprit;
	}
	*found = (struct culprit){.failures = 0};
	memcpy(found->address, bytes, sizeof bytes);
	return found;
}

/* A token was wrong. Return how long the answer has to wait. The log gets the 1st, 2nd, 4th, 8th, ... of an address. */
static uint64_t culprit_failed(struct server *server, const struct sockaddr *address, const char *name)
{
	struct culprit *culprit = culprit_find(server, address);
	uint64_t pause;

	culprit->last = uv_now(&server->loop);
	culprit->failures += culprit->failures < UINT32_MAX;
	server->auth.failures++;
	pause = PAUSE_LEAST << (culprit->failures <= PAUSE_DOUBLINGS ? culprit->failures - 1 : PAUSE_DOUBLINGS);
	if ((culprit->failures & (culprit->failures - 1)) == 0)
		message_log(MESSAGE_WARNING, MESSAGE_FIELDS({"client", name, 0}, {"failures", NULL, culprit->failures}),
		    "a wrong token from %s, number %" PRIu32 " from there; the answer waits %" PRIu64 " ms", name,
		    culprit->failures, pause / WW_MILLISECOND);
	return pause;
}

/* ---- A connection without a token */

static void auth_timer(struct ww_driver *driver, const struct ww_firing *firing, void *user)
{
	struct connection *connection = user;
	struct auth_client *client = &connection->auth;
	char name[ADDRESS_TEXT];
	size_t start = connection->out.size;

	(void)driver;
	(void)firing;
	client->timer = 0;
	if (connection->is_closed)
		return;
	if (!client->is_held) {
		state_seen("tokens", "clients that say no token for %d s are closed; the first came from %s",
		    (int)(LOGIN_TIME / WW_SECOND), client_name(connection, name));
		connection_close(connection);
		return;
	}
	client->is_held = 0;
	answer_text(connection, "DENIED\r\n");
	answer_end(connection, start, 0);
	if (auth_open(connection) != 0)
		connection_close(connection);
	else
		connection_resume(connection);
}

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

/* What it sends meanwhile may take no memory. */
int auth_open(struct connection *connection)
{
	if (!connection->server->auth.tokens || connection->auth.token)
		return 0;
	connection->protocol.body_max = 0;
	return auth_wait(connection, LOGIN_TIME);
}

void auth_close(struct connection *connection)
{
	(void)auth_wait(connection, 0);
}

void auth_login(struct connection *connection, const struct command *command)
{
	struct server *server = connection->server;
	struct span secret = command->own.secret;
	struct sockaddr_storage address = {0};
	char name[ADDRESS_TEXT];
	int size = sizeof address;
	const struct token *token;

	/* A client with a token may talk to a server that wants none. */
	token =
	    server->auth.tokens ? tokens_find(server->auth.tokens, secret.at, (size_t)(secret.end - secret.at)) : NULL;
	if (token || !server->auth.tokens) {
		connection->auth.token = token;
		connection->protocol.body_max = (size_t)server->settings->max_job_size;
		(void)auth_wait(connection, 0);
		answer_text(connection, "OK\r\n");
		return;
	}
	if (connection->io.handle.type == UV_TCP)
		(void)uv_tcp_getpeername(&connection->io.tcp, (struct sockaddr *)&address, &size);
	connection->auth.token = NULL;
	connection->auth.is_held = 1;
	if (auth_wait(connection, culprit_failed(server, (struct sockaddr *)&address, client_name(connection, name))) !=
	    0)
		connection_close(connection);
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

	if (error == WW_ENOTFOUND)
		return 1;
	return error == WW_OK && token_may(token, rights, info.tube);
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

int auth_admits(struct connection *connection, struct command *command)
{
	if (command->refusal == REFUSAL_FOREIGN) {
		auth_foreign(connection);
		return 0;
	}
	if (connection->server->auth.tokens && command->refusal != REFUSAL_BAD_FORMAT &&
	    command->refusal != REFUSAL_UNKNOWN)
		auth_check(connection, command);
	return 1;
}

int auth_http(struct server *server, const struct sockaddr *address, const char *field, const struct command *command)
{
	static const char scheme[] = "Bearer ";
	struct rights_case about = {.command = command, .used = ""};
	char name[ADDRESS_TEXT];
	unsigned rights;

	if (!server->auth.tokens)
		return 0;
	if (field && strncasecmp(field, scheme, sizeof scheme - 1) == 0) {
		field += sizeof scheme - 1;
		about.token = tokens_find(server->auth.tokens, field, strlen(field));
		if (!about.token) {
			(void)address_show(address, name);
			(void)culprit_failed(server, address, name);
		}
	}
	if (!about.token)
		return 401;
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
