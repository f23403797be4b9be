/* Closes connections: they give their jobs and tubes back in pieces, and are freed when all have let go of them. */
#include <stdlib.h>

#include "tools/weekwheeld/clients/clients.h"

static void connection_free(struct connection *connection)
{
	/* While it gave its jobs back, another client may have got one. */
	lease_forget_past(connection);
	free(connection->heap);
	free(connection->watches);
	free(connection->names);
	buffer_free(&connection->in);
	free(connection->answers);
	free(connection);
}

void connection_let_go(struct connection *connection)
{
	if (connection->is_gone && !connection->in_resume && !connection->is_busy && !connection->is_fresh)
		connection_free(connection);
}

static void leave_used(struct connection *connection)
{
	struct server_tube *used = connection->used;

	connection->used = NULL;
	if (!used)
		return;
	used->users--;
	tube_drop(connection->server, used);
}

/*
 * A closed connection gives its jobs and tubes back, in pieces: thousands would delay others. It does so after its task,
 * which may end a lease and names the tubes.
 */
void connection_leave(struct connection *connection)
{
	int is_left = 1;

	if (connection->is_busy)
		return;
	leave_used(connection);
	budget_begin(connection);
	while (is_left && !connection->is_busy && budget_take(connection)) {
		if (lease_release_some(connection))
			continue;
		is_left = connection->watch_count > 0;
		if (is_left)
			watch_remove(connection, connection->watches[connection->watch_count - 1]->tube);
	}
	budget_end(connection);
	if (is_left && !connection->is_busy)
		connection_resume(connection);
}

static void connection_gone(struct stream *stream)
{
	struct connection *connection = stream->owner;

	connection->is_gone = 1;
	connection_let_go(connection);
}

void connection_close(struct connection *connection)
{
	struct server *server = connection->server;

	if (connection->is_closed)
		return;
	waiting_end(connection);
	login_close(connection);
	connection->is_closed = 1;
	connection->kick.go_on = NULL;
	lease_disown(connection);
	connection_leave(connection);
	crowd_leave(&connection->server->bounds.crowd, connection->place);
	LIST_REMOVE(connection, next);
	server->clients->now--;
	server->clients->producers -= connection->is_producer;
	server->clients->workers -= connection->is_worker;
	server_note(server, "a client has left, %u remain", server->clients->now);
	stream_close(&connection->stream, connection_gone);
}
