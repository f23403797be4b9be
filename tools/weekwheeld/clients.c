/* The clients of the protocol as one face of the server: their answers and leases at a commit, their memory, their rights. */
#include <string.h>

#include "tools/weekwheeld/server.h"

static void settle(struct server *server, int error)
{
	struct connection *connection;

	lease_settle(server, error == WW_OK);
	while ((connection = SLIST_FIRST(&server->batch)) != NULL) {
		SLIST_REMOVE_HEAD(&server->batch, next_batch);
		answer_settle(connection, error);
	}
}

static uint64_t takes(const struct server *server)
{
	return server->connections_now * (uint64_t)(sizeof(struct connection) + BOUNDS_LINE) +
	       (HASH_COUNT(server->leases) + server->past_count) * (uint64_t)(sizeof(struct lease) + BOUNDS_LINE) +
	       HASH_COUNT(server->watches) * (uint64_t)TUBE_WATCH_BYTES;
}

static uint64_t going(const struct server *server)
{
	return server->connections_going;
}

static struct face_client worst(const struct server *server, const void *spared)
{
	struct face_client most = {0, NULL};
	struct connection *connection;

	for (connection = LIST_FIRST(&server->connections); connection; connection = LIST_NEXT(connection, next))
		if (connection != spared && connection_takes(connection) > most.bytes)
			most = (struct face_client){connection_takes(connection), connection};
	return most;
}

/* Take its body, if that is most of what it has, or else its connection. */
static void end(struct server *server, void *client)
{
	struct connection *connection = client;

	(void)server;
	if (!connection->is_busy &&
	    buffer_takes(&connection->in) > buffer_takes(&connection->out) + buffer_takes(&connection->sending) &&
	    protocol_drop(&connection->protocol, connection->in.size)) {
		buffer_free(&connection->in);
		return;
	}
	connection_close(connection);
	buffer_free(&connection->in);
	buffer_free(&connection->out);
}

const struct face clients_face = {settle, takes, going, worst, end};

unsigned clients_reload(struct server *server)
{
	struct connection *connection;
	struct connection *next;
	unsigned closed = 0;

	for (connection = LIST_FIRST(&server->connections); connection; connection = next) {
		const struct token *old = connection->login.token;
		const struct token *now = old ? tokens_find_hash(server->auth.tokens, old->hash) : NULL;

		next = LIST_NEXT(connection, next);
		connection->login.token = now;
		/* What it waits for or has reserved came of its former rights. */
		if (old && (!now || strcmp(old->text, now->text) != 0)) {
			connection_close(connection);
			closed++;
		}
	}
	return closed;
}
