/* The clients of the protocol together: the loop goes on with them, and the server sees them as one of its faces. */

#include "tools/weekwheeld/clients/clients.h"

/* Its task is done, and all is answered. */
static void go_on(struct connection *connection)
{
	if (!connection->is_closed) {
		connection_process(connection);
		return;
	}
	connection_leave(connection);
	connection_let_go(connection);
}

static void resume_some(struct server *server, struct connection_queue *queue)
{
	struct connection_queue now = STAILQ_HEAD_INITIALIZER(now);
	struct connection *connection;

	/* Connections that are resumed again meanwhile wait for the next turn. */
	STAILQ_CONCAT(&now, queue);
	while ((connection = STAILQ_FIRST(&now)) != NULL && !budget_is_spent(server)) {
		STAILQ_REMOVE_HEAD(&now, next_resume);
		connection->in_resume = 0;
		server->clients->resuming--;
		if (connection->is_closed)
			connection_leave(connection);
		else
			connection_process(connection);
		if (connection->is_closed)
			connection_let_go(connection);
	}
	STAILQ_CONCAT(&now, queue);
	STAILQ_CONCAT(queue, &now);
}

void clients_resume(struct server *server)
{
	struct clients *clients = server->clients;

	resume_some(server, clients->is_looks_turn ? &clients->looks : &clients->resume);
	resume_some(server, clients->is_looks_turn ? &clients->resume : &clients->looks);
	clients->is_looks_turn = !clients->is_looks_turn;
	if (clients->resuming > 0)
		loop_again(server);
}

/* ---- The face */

static void settle(struct server *server, int error)
{
	struct connection *connection;

	lease_settle(server, error == WW_OK);
	while ((connection = SLIST_FIRST(&server->clients->batch)) != NULL) {
		SLIST_REMOVE_HEAD(&server->clients->batch, next_batch);
		answer_settle(connection, error);
	}
}

static uint64_t takes(const struct server *server)
{
	return server->clients->now * (uint64_t)(sizeof(struct connection) + BOUNDS_LINE) +
	       (HASH_COUNT(server->clients->leases) + server->clients->past_count) *
	           (uint64_t)(sizeof(struct lease) + BOUNDS_LINE) +
	       HASH_COUNT(server->clients->watches) * (uint64_t)WATCH_BYTES;
}

static struct face_client worst(const struct server *server, const void *spared)
{
	struct face_client most = {0, NULL};
	struct connection *connection;

	for (connection = LIST_FIRST(&server->clients->all); connection; connection = LIST_NEXT(connection, next))
		if (connection != spared && connection_takes(connection) > most.bytes)
			most = (struct face_client){connection_takes(connection), connection};
	return most;
}

/* Take its body, if that is most of what it has, or else its connection. */
static void end(struct server *server, void *client)
{
	struct connection *connection = client;

	(void)server;
	if (!connection->is_busy && buffer_takes(&connection->in) > stream_takes(&connection->stream) &&
	    protocol_drop(&connection->protocol, connection->in.size)) {
		buffer_free(&connection->in);
		return;
	}
	connection_close(connection);
	buffer_free(&connection->in);
}

const struct face clients_face = {settle, takes, NULL, worst, end};

/* ---- All */

static void take_another_turn(void *context)
{
	loop_again(context);
}

static int64_t known_code(struct server *server, struct server_tube *tube)
{
	struct connection *connection;
	int64_t known = -1;

	LIST_FOREACH(connection, &server->clients->all, next)
	if (connection->is_worker && connection->code > known && watch_has(connection, tube))
		known = connection->code;
	return known;
}

void clients_start(struct server *server)
{
	TAILQ_INIT(&server->clients->ended);
	STAILQ_INIT(&server->clients->resume);
	STAILQ_INIT(&server->clients->looks);
	STAILQ_INIT(&server->clients->fresh);
	shakes_begin(&server->shakes, take_another_turn, server);
	server->clients->go_on = go_on;
	server->tubes.known = known_code;
}

unsigned clients_reload(struct server *server)
{
	struct connection *connection;
	struct connection *next;
	unsigned closed = 0;

	for (connection = LIST_FIRST(&server->clients->all); connection; connection = next) {
		next = LIST_NEXT(connection, next);
		/* What it waits for or has reserved came of its former rights. */
		if (!access_renew(&server->access, &connection->login.who)) {
			connection_close(connection);
			closed++;
		}
	}
	return closed;
}
