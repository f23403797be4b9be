/* Accepts connections, reads their commands, sends their answers and closes them. */
#include <stdlib.h>

#include "tools/weekwheeld/commands.h"

/*
 * While a client waits for a job, INPUT_MAX bytes that it sends are kept. When TURN_BYTES have been read in a turn, a
 * connection is read once more in it: of each that is ready, libuv would read two MB.
 */
enum { INPUT_MAX = 65536, TURN_BYTES = 4 << 20, KEEPALIVE_SECONDS = 60 };

static void connection_read(uv_stream_t *stream, ssize_t size, const uv_buf_t *unused);

static size_t unread(const struct connection *connection)
{
	return connection->out.size + connection->sending.size;
}

size_t connection_takes(const struct connection *connection)
{
	return buffer_takes(&connection->in) + buffer_takes(&connection->out) + buffer_takes(&connection->sending);
}

/*
 * A connection that waits for a job or the store, is kicking, or leaves too many answers unread, carries out no command.
 */
static int is_blocked(const struct connection *connection)
{
	return connection->is_waiting || connection->is_busy || connection->login.held || connection->kick.is_begun ||
	       connection->is_over || connection->is_lost || connection->is_closed ||
	       unread(connection) > bounds_unread(connection->server);
}

static size_t input_most(const struct connection *connection)
{
	size_t left = bounds_unread(connection->server);

	return left < INPUT_MAX ? left : INPUT_MAX;
}

static void connection_room(uv_handle_t *handle, size_t suggested, uv_buf_t *room)
{
	struct connection *connection = handle->data;

	(void)suggested;
	*room = uv_buf_init(connection->server->input, sizeof connection->server->input);
}

static void reading_start(struct connection *connection)
{
	if (connection->is_reading || connection->at_end || connection->is_closed || connection->server->is_stopping)
		return;
	if (uv_read_start(&connection->io.stream, connection_room, connection_read) == 0)
		connection->is_reading = 1;
}

static void reading_stop(struct connection *connection)
{
	if (connection->is_reading)
		uv_read_stop(&connection->io.stream);
	connection->is_reading = 0;
}

void connection_to_flush(struct connection *connection)
{
	if (connection->in_flush)
		return;
	connection->in_flush = 1;
	SLIST_INSERT_HEAD(&connection->server->flush, connection, next_flush);
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
static size_t connection_take(struct connection *connection, const char *data, size_t size)
{
	static struct command command;
	size_t taken = 0;
	size_t used = 0;
	int found = 1;

	budget_begin(connection);
	while (found && !is_blocked(connection) && call_joins(connection, data + taken, size - taken)) {
		if (!budget_take(connection)) {
			connection_resume(connection);
			break;
		}
		found = protocol_next(&connection->protocol, &command, data + taken, size - taken, &used);
		taken += used;
		if (found && command.verb == VERB_QUIT)
			connection_finish(connection);
		else if (found && login_admits(connection, &command))
			command_run(connection, &command);
		/* Large answers to many commands of a turn would go beyond all bounds before it ends. */
		if (connection->out.size >= INPUT_MAX)
			bounds_hold_but(connection->server, connection, connection_takes(connection));
	}
	budget_end(connection);
	call_start(connection);
	connection->is_stalled = found && !connection->is_waiting && !connection->is_busy;
	return taken;
}

/* Go on reading or stop, and finish if the client sends no more. */
static void connection_settle(struct connection *connection)
{
	if (connection->is_closed || connection->is_over)
		return;
	if (connection->at_end && !is_blocked(connection) && !connection->in_resume)
		connection_finish(connection);
	else if (connection->shake.is_waiting ||
	         ((is_blocked(connection) || connection->in_resume) && connection->in.size >= input_most(connection)))
		reading_stop(connection);
	else
		reading_start(connection);
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

void connection_input(struct connection *connection, const char *data, size_t size)
{
	size_t taken = 0;

	/* Commands that fit into one read are parsed in place: an idle connection has no buffer. */
	if (connection->in.size == 0 && !connection->in_resume) {
		taken = connection_take(connection, data, size);
		if (!connection->is_closed && keep_input(connection, data + taken, size - taken) != 0)
			connection_close(connection);
	} else if (keep_input(connection, data, size) != 0) {
		server_note(connection->server, "no memory for a body: its connection is closed");
		connection_close(connection);
	} else if (!connection->in_resume && !connection->is_closed) {
		connection_process(connection);
	}
}

static int kick_is_left(struct connection *connection)
{
	int is_done;

	if (!connection->kick.is_begun)
		return 0;
	budget_begin(connection);
	is_done = kick_go_on(connection);
	budget_end(connection);
	return !is_done;
}

void connection_process(struct connection *connection)
{
	/* The data of an empty buffer may be NULL, on which pointer arithmetic is undefined. */
	const char *data = connection->in.size > 0 ? connection->in.data : "";
	size_t taken;

	if (kick_is_left(connection))
		return;
	taken = connection_take(connection, data, connection->in.size);
	if (connection->is_closed)
		return;
	if (taken > 0)
		buffer_drop(&connection->in, taken);
	connection_settle(connection);
}

void connection_ended(struct connection *connection, int is_broken)
{
	reading_stop(connection);
	connection->at_end = 1;
	waiting_at_end(connection);
	if (is_broken)
		connection_finish(connection);
	else
		connection_settle(connection);
}

static void connection_read(uv_stream_t *stream, ssize_t size, const uv_buf_t *unused)
{
	struct connection *connection = stream->data;

	(void)unused;
	if (size == 0)
		return;
	if (size > 0) {
		connection->server->turn_bytes += (size_t)size;
		(connection->tls ? secure_input : connection_input)(
		    connection, connection->server->input, (size_t)size);
		connection_settle(connection);
		if (connection->is_reading && !connection->is_closed && connection->server->turn_bytes > TURN_BYTES) {
			reading_stop(connection);
			connection_resume(connection);
		}
	} else if (size == UV_EOF) {
		connection_ended(connection, 0);
	} else {
		connection_close(connection);
	}
}

void connection_resume(struct connection *connection)
{
	struct server *server = connection->server;

	if (connection->in_resume)
		return;
	connection->in_resume = 1;
	server->resuming++;
	STAILQ_INSERT_TAIL(&server->resume, connection, next_resume);
	loop_again(server);
}

static void connection_free(struct connection *connection)
{
	/* While it gave its jobs back, another client may have got one. */
	lease_forget_past(connection);
	free(connection->heap);
	free(connection->watches);
	free(connection->names);
	buffer_free(&connection->in);
	buffer_free(&connection->out);
	buffer_free(&connection->sending);
	free(connection->answers);
	free(connection);
}

void connection_let_go(struct connection *connection)
{
	if (connection->io.handle.data == NULL && !connection->in_resume && !connection->is_busy &&
	    !connection->is_fresh)
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
static void connection_leave(struct connection *connection)
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
			tube_ignore(connection, connection->watches[connection->watch_count - 1]->tube);
	}
	budget_end(connection);
	if (is_left && !connection->is_busy)
		connection_resume(connection);
}

void connection_resume_all(struct server *server)
{
	STAILQ_HEAD(, connection) now = STAILQ_HEAD_INITIALIZER(now);
	struct connection *connection;

	/* Connections that are resumed again meanwhile wait for the next turn. */
	STAILQ_CONCAT(&now, &server->resume);
	while ((connection = STAILQ_FIRST(&now)) != NULL && !budget_is_spent(server)) {
		STAILQ_REMOVE_HEAD(&now, next_resume);
		connection->in_resume = 0;
		server->resuming--;
		if (connection->is_closed)
			connection_leave(connection);
		else
			connection_process(connection);
		if (connection->is_closed)
			connection_let_go(connection);
	}
	STAILQ_CONCAT(&now, &server->resume);
	STAILQ_CONCAT(&server->resume, &now);
	if (!STAILQ_EMPTY(&server->resume))
		loop_again(server);
}

void connection_done(struct connection *connection)
{
	connection->is_busy = 0;
	if (!connection->is_closed) {
		connection_process(connection);
		return;
	}
	connection_leave(connection);
	connection_let_go(connection);
}

static void connection_sent(uv_write_t *write, int status)
{
	struct connection *connection = write->data;

	if (connection->is_closed)
		connection->server->connections_going -= buffer_takes(&connection->sending);
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
	if (unread(connection) > hard)
		connection_close(connection);
	else if (connection->is_over && unread(connection) == 0 && (!connection->is_busy || connection->is_waiting))
		connection_close(connection);
	else if (connection->is_stalled && !is_blocked(connection))
		connection_resume(connection);
}

void connection_flush_all(struct server *server)
{
	struct connection *connection;

	while ((connection = SLIST_FIRST(&server->flush)) != NULL) {
		SLIST_REMOVE_HEAD(&server->flush, next_flush);
		connection->in_flush = 0;
		connection_flush(connection);
	}
}

static void connection_gone(uv_handle_t *handle)
{
	struct connection *connection = handle->data;

	handle->data = NULL;
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
	server->connections_going += buffer_takes(&connection->sending);
	connection->kick.is_begun = 0;
	lease_disown(connection);
	connection_leave(connection);
	crowd_leave(&connection->server->bounds.crowd, connection->place);
	LIST_REMOVE(connection, next);
	server->connections_now--;
	server->producers -= connection->is_producer;
	server->workers -= connection->is_worker;
	if (connection->tls)
		secure_close(connection);
	server_note(server, "a client has left, %u remain", server->connections_now);
	uv_close(&connection->io.handle, connection_gone);
}

/* A connection that is closed at once, because too many are open. */
static void connection_refused(uv_handle_t *handle)
{
	free(handle->data);
}

/* Returns 0, or -1 if its address has too many. */
static int note_address(struct connection *connection)
{
	struct sockaddr_storage address;
	int size = sizeof address;

	if (connection->io.handle.type != UV_TCP ||
	    uv_tcp_getpeername(&connection->io.tcp, (struct sockaddr *)&address, &size) != 0)
		return 0;
	connection->from = address_key((struct sockaddr *)&address);
	return crowd_enter(&connection->server->bounds.crowd, (struct sockaddr *)&address, &connection->place);
}

static int connection_open(struct connection *connection)
{
	struct server *server = connection->server;

	STAILQ_INIT(&connection->calls);
	TAILQ_INIT(&connection->past);
	connection->used = server->default_tube;
	connection->used->users++;
	protocol_init(&connection->protocol, (size_t)server->settings->max_job_size);
	LIST_INSERT_HEAD(&server->connections, connection, next);
	server->connections_now++;
	server->connections_total++;
	if (note_address(connection) != 0 || tube_watch(connection, server->default_tube) != 0 ||
	    login_open(connection) != 0)
		return -1;
	/* Answers leave at once. A client whose machine died does not hold its jobs for ever. */
	if (connection->io.handle.type == UV_TCP) {
		(void)uv_tcp_nodelay(&connection->io.tcp, 1);
		(void)uv_tcp_keepalive(&connection->io.tcp, 1, KEEPALIVE_SECONDS);
	}
	server_note(server, "a client has connected, %u in all", server->connections_now);
	reading_start(connection);
	return connection->is_reading ? 0 : -1;
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
	} else if (server->connections_now >= server->connections_max) {
		server_note(server, "a client is turned away: %u are connected", server->connections_now);
		uv_close(&connection->io.handle, connection_refused);
	} else if (connection_open(connection) != 0 || (is_tls && secure_open(connection) != 0)) {
		connection_close(connection);
	}
	return bad;
}
