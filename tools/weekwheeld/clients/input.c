/* Reads what clients send, deciphers it for those that have TLS, and lets its commands be carried out. */
#include <stddef.h>

#include "tools/weekwheeld/clients/call.h"

/*
 * While a client waits for a job, INPUT_MAX bytes that it sends are kept. A client whose bytes fill the room is read
 * READS_MOST times in a turn. When TURN_BYTES have been read in a turn, a connection is read once more in it,
 * READ_LEAST at most.
 */
enum { INPUT_MAX = 65536, READS_MOST = 32, READ_LEAST = 4096, TURN_BYTES = 4 << 20 };

static size_t input_most(const struct connection *connection)
{
	size_t left = bounds_unread(connection->server);

	return left < INPUT_MAX ? left : INPUT_MAX;
}

void connection_read(struct connection *connection)
{
	if (!connection->at_end && !connection->is_closed && !connection->server->is_stopping)
		connection_wait(connection, UV_READABLE, 1);
}

static void reading_stop(struct connection *connection)
{
	connection_wait(connection, UV_READABLE, 0);
}

/* Close the connection once all is sent. */
static void connection_finish(struct connection *connection)
{
	if (connection->is_closed)
		return;
	connection->is_over = 1;
	reading_stop(connection);
	connection_to_flush(connection);
}

/* Carry out the commands in data[0 .. size-1], as far as its share allows. Return how many bytes were used. */
static size_t input_take(struct connection *connection, const char *data, size_t size)
{
	static struct command command;
	size_t taken = 0;
	size_t used = 0;
	int found = 1;

	budget_begin(connection);
	while (found && taken < size && !connection_is_blocked(connection) &&
	       call_joins(connection, data + taken, size - taken)) {
		if (!budget_take(connection)) {
			connection_resume(connection);
			break;
		}
		found = protocol_next(&connection->protocol, &command, data + taken, size - taken, &used);
		taken += used;
		/*
		 * Thousands may ask for a list at once: each of them waits for a turn with time, and no other client
		 * waits for them.
		 */
		if (found && protocol_is_look(command.verb) && budget_is_spent(connection->server)) {
			taken -= protocol_line_size(&connection->protocol);
			connection_look_later(connection);
			break;
		}
		if (found && command.verb == VERB_QUIT)
			connection_finish(connection);
		else if (found && login_admits(connection, &command))
			command_run(connection, &command);
		if (found && command.is_last && !connection->is_closed) {
			login_unsized(connection);
			connection_finish(connection);
		}
		/* Large answers to many commands of a turn would go beyond all bounds before it ends. */
		if (connection->stream.out.size >= INPUT_MAX)
			bounds_hold_but(connection->server, connection, connection_takes(connection));
	}
	budget_end(connection);
	call_start(connection);
	connection->is_stalled = found && !connection->is_waiting && !connection->is_busy &&
	                         (taken < size || connection_is_blocked(connection));
	return taken;
}

/* Go on reading or stop, and finish if the client sends no more. */
static void input_settle(struct connection *connection)
{
	if (connection->is_closed || connection->is_over)
		return;
	if (connection->at_end && !connection_is_blocked(connection) && !connection->in_resume)
		connection_finish(connection);
	else if ((connection_is_blocked(connection) || connection->in_resume) &&
	         connection->in.size >= input_most(connection))
		reading_stop(connection);
	else
		connection_read(connection);
}

static int keep_input(struct connection *connection, const char *data, size_t size)
{
	struct buffer *in = &connection->in;
	size_t wants = protocol_wants(&connection->protocol);

	/* A body gets its memory when it begins. A very long one gets it as the bytes come. */
	if (wants > in->size && wants <= INPUT_MAX * 16 && buffer_reserve(in, wants - in->size) != 0)
		return -1;
	if (buffer_append(in, data, size) != 0)
		return -1;
	if (size > 0)
		bounds_hold_input(connection->server);
	return 0;
}

static void input_clear(struct connection *connection, const char *data, size_t size)
{
	size_t taken = 0;

	/* Commands that fit into one read are parsed in place: an idle connection has no buffer. */
	if (connection->in.size == 0 && !connection->in_resume) {
		taken = input_take(connection, data, size);
		if (!connection->is_closed && keep_input(connection, data + taken, size - taken) != 0)
			connection_close(connection);
	} else if (keep_input(connection, data, size) != 0) {
		server_note(connection->server, "no memory for a body: its connection is closed");
		connection_close(connection);
	} else if (!connection->in_resume && !connection->is_closed) {
		connection_process(connection);
	}
}

/* Go on with a command that is carried out in pieces. Returns 1 if it is not done. */
static int is_left(struct connection *connection)
{
	int is_done;

	if (!connection->kick.go_on)
		return 0;
	budget_begin(connection);
	is_done = connection->kick.go_on(connection);
	budget_end(connection);
	return !is_done;
}

void connection_process(struct connection *connection)
{
	/* The data of an empty buffer may be NULL, on which pointer arithmetic is undefined. */
	const char *data = connection->in.size > 0 ? connection->in.data : "";
	size_t taken;

	if (is_left(connection))
		return;
	taken = input_take(connection, data, connection->in.size);
	if (connection->is_closed)
		return;
	if (taken > 0)
		buffer_drop(&connection->in, taken);
	input_settle(connection);
}

/* The client sends no more; if the connection is broken, it closes as soon as what there is has been sent. */
static void input_ended(struct connection *connection, int is_broken)
{
	reading_stop(connection);
	connection->at_end = 1;
	waiting_at_end(connection);
	if (is_broken)
		connection_finish(connection);
	else
		input_settle(connection);
}

/* ---- From the system */

/* TLS has failed, or the client sends no more. What TLS still has to say is sent. */
static void input_end(struct connection *connection, ssize_t how)
{
	char reason[TLS_REASON];

	if (how == STREAM_LOST) {
		connection_close(connection);
		return;
	}
	if (how == STREAM_BROKEN) {
		tls_reason(connection->stream.tls, reason);
		server_note(connection->server, "a client is turned away: TLS: %s", reason);
	}
	input_ended(connection, how == STREAM_BROKEN);
}

/* Read once, and settle. Returns 1 if there is more to read. */
static int input_read(struct connection *connection)
{
	struct server *server = connection->server;
	struct stream *stream = &connection->stream;
	size_t room = server->turn.bytes > TURN_BYTES && !stream->tls ? READ_LEAST : sizeof server->input;
	ssize_t got = stream_read(stream, server->input, room);

	server->turn.bytes += stream->taken;
	if (got > 0)
		input_clear(connection, server->input, (size_t)got);
	if (connection->is_closed)
		return 0;
	if (stream->tls && tls_is_ready(stream->tls))
		login_secured(connection);
	if (stream->tls)
		connection_to_flush(connection);
	if (got < 0) {
		input_end(connection, got);
		return 0;
	}
	input_settle(connection);
	if (stream->events & UV_READABLE && server->turn.bytes > TURN_BYTES) {
		reading_stop(connection);
		connection_resume(connection);
	}
	return stream->is_fed || (stream->is_full && stream->events & UV_READABLE);
}

void connection_came(struct stream *stream, int events)
{
	struct connection *connection = stream->owner;

	if (events & UV_WRITABLE)
		connection_to_flush(connection);
	if (events & UV_READABLE)
		for (int i = 0; (i < READS_MOST || stream->is_fed) && input_read(connection); i++)
			;
}
