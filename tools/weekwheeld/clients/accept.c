/* Accepts the connections of clients, or turns them away when there are too many. */
#include <stdlib.h>

#include "tools/common/tls/tls.h"
#include "tools/weekwheeld/clients/clients.h"

/* How long a client may be silent before the system asks whether its machine is there. */
enum { KEEPALIVE_SECONDS = 60 };

/* A connection that is closed at once, because too many are open. */
static void connection_refused(uv_handle_t *handle)
{
	free(handle->data);
}

/* Returns 0, or -1 if its address has too many. */
static int note_address(struct connection *connection)
{
	struct sockaddr_storage address = {0};
	int size = sizeof address;
	int is_tcp = connection->io.handle.type == UV_TCP &&
	             uv_tcp_getpeername(&connection->io.tcp, (struct sockaddr *)&address, &size) == 0;

	access_enter(&connection->server->access, &connection->login.who, (struct sockaddr *)&address);
	if (!is_tcp)
		return 0;
	return crowd_enter(&connection->server->bounds.crowd, (struct sockaddr *)&address, &connection->place);
}

static int connection_open(struct connection *connection)
{
	struct server *server = connection->server;

	STAILQ_INIT(&connection->calls);
	TAILQ_INIT(&connection->past);
	connection->used = server->tubes.default_tube;
	connection->used->users++;
	protocol_init(&connection->protocol, (size_t)server->settings->max_job_size);
	LIST_INSERT_HEAD(&server->clients->all, connection, next);
	server->clients->now++;
	server->clients->total++;
	if (note_address(connection) != 0 || watch_add(connection, server->tubes.default_tube) != 0 ||
	    login_open(connection) != 0)
		return -1;
	/* Answers leave at once. A client whose machine died does not hold its jobs for ever. */
	if (connection->io.handle.type == UV_TCP) {
		(void)uv_tcp_nodelay(&connection->io.tcp, 1);
		(void)uv_tcp_keepalive(&connection->io.tcp, 1, KEEPALIVE_SECONDS);
	}
	server_note(server, "a client has connected, %u in all", server->clients->now);
	connection_read(connection);
	return connection->is_reading ? 0 : -1;
}

static int open_tls(struct connection *connection)
{
	connection->shake.go_on = connection_shake;
	connection->tls = certificate_open(&connection->server->certificate);
	return connection->tls ? login_open(connection) : -1;
}

int connection_accept(struct server *server, uv_stream_t *listener, int is_tls)
{
	struct connection *connection = calloc(1, sizeof *connection);
	int bad;

	if (!connection)
		return UV_ENOMEM;
	connection->server = server;
	if (listener->type == UV_TCP)
		bad = uv_tcp_init(&server->loop, &connection->io.tcp);
	else
		bad = uv_pipe_init(&server->loop, &connection->io.pipe, 0);
	if (bad) {
		free(connection);
		return bad;
	}
	connection->io.handle.data = connection;
	bad = uv_accept(listener, &connection->io.stream);
	if (bad) {
		uv_close(&connection->io.handle, connection_refused);
	} else if (server->clients->now >= server->clients->most) {
		server_note(server, "a client is turned away: %u are connected", server->clients->now);
		uv_close(&connection->io.handle, connection_refused);
	} else if (connection_open(connection) != 0 || (is_tls && open_tls(connection) != 0)) {
		connection_close(connection);
	}
	return bad;
}
