/*
 * A client of the protocol and its token. It has to say one in time, and wrong ones wait. What the token does not grant is
 * refused. A client that speaks another protocol is turned away.
 */
#include <sys/socket.h>

#include "tools/service/net/address.h"
#include "tools/weekwheeld/clients/clients.h"

/* A client without a token may stay for this time, and send this many lines beside tokens. */
#define LOGIN_TIME (30 * WW_SECOND)
enum { REFUSED_MOST = 64 };

static const char *client_name(const struct connection *connection, char name[ADDRESS_TEXT])
{
	struct sockaddr_storage address = {0};
	socklen_t size = sizeof address;

	if (getpeername(connection->stream.fd, (struct sockaddr *)&address, &size) != 0 || address.ss_family == AF_UNIX)
		return "a Unix socket";
	(void)address_show((struct sockaddr *)&address, name);
	return name;
}

/* ---- A connection without a token */

static void login_timer(struct ww_driver *driver, const struct ww_firing *firing, void *user);

/* Set or, for 0, end the timer. */
static int login_wait(struct connection *connection, uint64_t ns)
{
	struct ww_driver *driver = connection->server->elapsed;

	if (connection->login.timer)
		(void)ww_driver_cancel(driver, connection->login.timer);
	connection->login.timer = 0;
	if (ns == 0)
		return 0;
	return ww_driver_schedule(driver, ns, login_timer, connection, &connection->login.timer) == WW_OK ? 0 : -1;
}

int login_open(struct connection *connection)
{
	struct login *client = &connection->login;
	int needs_token = !client->who.is_known;
	uint64_t now = 0;

	/* What it sends meanwhile may take no memory. */
	if (needs_token)
		connection->protocol.body_max = 0;
	else if (!connection->stream.tls || tls_is_ready(connection->stream.tls))
		return 0;
	(void)ww_driver_now(connection->server->elapsed, &now);
	/* Wrong tokens give no more time. */
	if (client->ends == 0)
		client->ends = now + LOGIN_TIME;
	return login_wait(connection, client->ends > now ? client->ends - now : 1);
}

void login_secured(struct connection *connection)
{
	if (!access_is_needed(&connection->server->access))
		(void)login_wait(connection, 0);
}

void login_close(struct connection *connection)
{
	(void)login_wait(connection, 0);
	access_leave(&connection->server->access, &connection->login.who);
}

/* Its token is right. */
static void login_done(struct connection *connection)
{
	connection->protocol.body_max = (size_t)connection->server->settings->max_job_size;
	connection->login.ends = 0;
	(void)login_wait(connection, 0);
	answer_text(connection, "OK\r\n");
}

void login_answer(struct connection *connection, const struct command *command)
{
	struct access *access = &connection->server->access;
	struct login *client = &connection->login;
	struct span secret = command->own.secret;
	struct access_credentials credentials = {.secret = secret.at, .size = (size_t)(secret.end - secret.at)};
	char name[ADDRESS_TEXT];
	uint64_t wait;

	/* A client with a token may talk to a server that wants none. */
	if (!access_is_needed(access)) {
		answer_text(connection, "OK\r\n");
		return;
	}
	access_leave(access, &client->who);
	switch (access_login(access, &client->who, client_name(connection, name), &credentials, &wait)) {
	case ACCESS_RIGHT:
		login_done(connection);
		break;
	case ACCESS_WRONG:
		/* Commands and their answers wait, too. */
		client->is_held = 1;
		if (login_wait(connection, wait) == 0)
			break;
		/* fall through */
	default:
		connection_close(connection);
	}
}

/* A client without a token has stayed too long. */
static void login_late(struct connection *connection)
{
	char name[ADDRESS_TEXT];

	state_seen("tokens",
	    "clients that say no token, or do not finish the handshake of TLS, for %d s are closed; the first came from %s",
	    (int)(LOGIN_TIME / WW_SECOND), client_name(connection, name));
	connection_close(connection);
}

static void login_timer(struct ww_driver *driver, const struct ww_firing *firing, void *user)
{
	struct connection *connection = user;
	struct login *client = &connection->login;
	size_t start = connection->stream.out.size;

	(void)driver;
	(void)firing;
	client->timer = 0;
	if (connection->is_closed)
		return;
	if (!client->is_held) {
		login_late(connection);
		return;
	}
	client->is_held = 0;
	answer_text(connection, "DENIED\r\n");
	answer_end(connection, start, 0);
	if (login_open(connection) != 0)
		connection_close(connection);
	else
		connection_resume(connection);
}

/* ---- Commands */

/* The client speaks HTTP or TLS, as a web page makes a browser do. */
static void login_foreign(struct connection *connection)
{
	char name[ADDRESS_TEXT];

	state_seen("foreign",
	    "clients that speak HTTP or TLS to the port of the protocol are closed, as a web page may make a browser do; "
	    "the first came from %s",
	    client_name(connection, name));
	connection_close(connection);
}

void login_unsized(struct connection *connection)
{
	char name[ADDRESS_TEXT];

	state_seen("size",
	    "clients that do not say how long a body is are closed, as it would be taken for commands; the first came from %s",
	    client_name(connection, name));
}

/* Set the refusal or the guard of a command that is well formed. */
static void login_check(struct connection *connection, struct command *command)
{
	const struct rights_case about = {connection->login.who.token, command, connection->used->name,
	    connection->names, connection->watch_count, command->id && lease_of(connection, command->id)};
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

/* Lines that need a token or are none. A client that sends many of them is not one of ours. */
static int login_counts(struct connection *connection, const struct command *command)
{
	char name[ADDRESS_TEXT];

	if (connection->login.who.is_known || command->refusal == REFUSAL_NONE ||
	    ++connection->login.refused <= REFUSED_MOST)
		return 1;
	(void)access_failed(&connection->server->access, &connection->login.who, client_name(connection, name),
	    "too many lines without a token");
	connection_close(connection);
	return 0;
}

int login_admits(struct connection *connection, struct command *command)
{
	if (command->refusal == REFUSAL_FOREIGN) {
		login_foreign(connection);
		return 0;
	}
	if (!access_is_needed(&connection->server->access))
		return 1;
	if (command->refusal != REFUSAL_BAD_FORMAT && command->refusal != REFUSAL_UNKNOWN)
		login_check(connection, command);
	return login_counts(connection, command);
}
