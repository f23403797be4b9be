/* Sends the answers of connections, as far as their clients take them. */
#include "tools/weekwheeld/clients/clients.h"

void connection_flush(struct connection *connection)
{
	const struct settings *settings = connection->server->settings;
	size_t hard = (size_t)(4 * settings->max_output + settings->max_job_size);
	size_t unread;

	if (connection->is_closed)
		return;
	if (connection->is_lost || stream_send(&connection->stream) < 0) {
		connection_close(connection);
		return;
	}
	unread = stream_unsent(&connection->stream);
	if (unread > hard || (connection->is_over && unread == 0 && (!connection->is_busy || connection->is_waiting))) {
		connection_close(connection);
		return;
	}
	connection_wait(connection, UV_WRITABLE, stream_is_unsent(&connection->stream));
	if (!connection->is_stalled || connection_is_blocked(connection))
		return;
	/* A client that has read its answer and sent nothing more is not queued: it is only read again. */
	if (connection->in.size > 0)
		connection_resume(connection);
	else
		connection_process(connection);
}

void connection_flush_all(struct server *server)
{
	struct connection *connection;

	while ((connection = SLIST_FIRST(&server->clients->flush)) != NULL) {
		SLIST_REMOVE_HEAD(&server->clients->flush, next_flush);
		connection->in_flush = 0;
		connection_flush(connection);
	}
}
