/* Sends the answers of connections, as far as their clients take them. */
#include "tools/weekwheeld/clients/clients.h"

static void connection_sent(uv_write_t *write, int status)
{
	struct connection *connection = write->data;

	if (connection->is_closed)
		connection->server->clients->going -= buffer_takes(&connection->sending);
	buffer_free(&connection->sending);
	if (connection->is_closed)
		return;
	if (status < 0) {
		connection_close(connection);
		return;
	}
	connection_to_flush(connection);
}

/* Let libuv send the answers that the system did not take at once. */
static void send_rest(struct connection *connection)
{
	uv_buf_t bytes;

	connection->sending = connection->out;
	connection->out = (struct buffer){0};
	bytes = uv_buf_init(connection->sending.data, (unsigned)connection->sending.size);
	connection->write.data = connection;
	if (uv_write(&connection->write, &connection->io.stream, &bytes, 1, connection_sent) == 0)
		return;
	/* libuv has nothing of it. */
	buffer_free(&connection->sending);
	connection_close(connection);
}

void connection_flush(struct connection *connection)
{
	const struct settings *settings = connection->server->settings;
	size_t hard = (size_t)(4 * settings->max_output + settings->max_job_size);
	uv_buf_t bytes;
	int sent;

	if (connection->is_closed)
		return;
	if (connection->is_lost) {
		connection_close(connection);
		return;
	}
	if (connection->tls && connection->sending.size == 0 && secure_seal(connection) != 0) {
		connection_close(connection);
		return;
	}
	if (connection->sending.size == 0 && connection->out.size > 0) {
		bytes = uv_buf_init(connection->out.data, (unsigned)connection->out.size);
		sent = uv_try_write(&connection->io.stream, &bytes, 1);
		if (sent < 0 && sent != UV_EAGAIN) {
			connection_close(connection);
			return;
		}
		if (sent > 0)
			buffer_drop(&connection->out, (size_t)sent);
		if (connection->out.size > 0)
			send_rest(connection);
	}
	if (connection_unread(connection) > hard)
		connection_close(connection);
	else if (connection->is_over && connection_unread(connection) == 0 &&
	         (!connection->is_busy || connection->is_waiting))
		connection_close(connection);
	else if (connection->is_stalled && !connection_is_blocked(connection))
		connection_resume(connection);
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
