/* What all parts of a connection need: what it takes, whether it is blocked, and the queues to which the loop comes back. */
#include "tools/weekwheeld/clients/clients.h"

size_t connection_takes(const struct connection *connection)
{
	return buffer_takes(&connection->in) + stream_takes(&connection->stream);
}

/*
 * A connection that waits for a job or the store, is kicking, or leaves too many answers unread, carries out no command.
 */
int connection_is_blocked(const struct connection *connection)
{
	return connection->is_waiting || connection->is_busy || connection->login.is_held || connection->kick.go_on ||
	       connection->is_over || connection->is_lost || connection->is_closed ||
	       stream_unsent(&connection->stream) > bounds_unread(connection->server);
}

void connection_wait(struct connection *connection, int event, int is_wanted)
{
	int events = connection->stream.events;

	stream_wait(&connection->stream, is_wanted ? events | event : events & ~event);
}

void connection_to_flush(struct connection *connection)
{
	if (connection->in_flush)
		return;
	connection->in_flush = 1;
	SLIST_INSERT_HEAD(&connection->server->clients->flush, connection, next_flush);
}

static void queue(struct connection *connection, struct connection_queue *queue)
{
	struct server *server = connection->server;

	if (connection->in_resume)
		return;
	connection->in_resume = 1;
	server->clients->resuming++;
	STAILQ_INSERT_TAIL(queue, connection, next_resume);
	loop_again(server);
}

void connection_resume(struct connection *connection)
{
	queue(connection, &connection->server->clients->resume);
}

void connection_look_later(struct connection *connection)
{
	queue(connection, &connection->server->clients->looks);
}

void connection_done(struct connection *connection)
{
	connection->is_busy = 0;
	connection->server->clients->go_on(connection);
}
