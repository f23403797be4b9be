/* Begins the connections of clients, or turns them away when there are too many. */
#include <stdlib.h>
#include <unistd.h>

#include "tools/weekwheeld/clients/clients.h"

static int set_up(struct connection *connection, const struct sockaddr *peer, int is_tls)
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
	access_enter(&server->access, &connection->login.who, peer);
	if (crowd_enter(&server->bounds.crowd, peer, &connection->place) != 0 ||
	    watch_add(connection, server->tubes.default_tube) != 0 ||
	    (is_tls && stream_secure(&connection->stream, &server->certificate, &server->shakes) != 0) ||
	    login_open(connection) != 0)
		return -1;
	server_note(server, "a client has connected, %u in all", server->clients->now);
	connection_read(connection);
	return 0;
}

void connection_begin(void *context, int fd, const struct sockaddr *peer, int is_tls)
{
	struct server *server = context;
	struct connection *connection = NULL;
	int is_full = server->clients->now >= server->clients->most;

	if (is_full)
		server_note(server, "a client is turned away: %u are connected", server->clients->now);
	else
		connection = calloc(1, sizeof *connection);
	if (!connection || stream_open(&connection->stream, &server->loop, fd, connection_came, connection) != 0) {
		if (!is_full)
			state_seen("accept", "a client is turned away: there is no memory for it");
		(void)close(fd);
		free(connection);
		return;
	}
	connection->server = server;
	connection->code = WW_JOB_CODE_MAX;
	if (set_up(connection, peer, is_tls) != 0)
		connection_close(connection);
}
