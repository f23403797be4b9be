/* A client: reading what it sends, and sending what it gets. */
#include <stdlib.h>
#include <unistd.h>

#include "tools/common/message.h"
#include "tools/service/state/state.h"
#include "tools/weekwheel-sessiond/commands/pubsub.h"
#include "tools/weekwheel-sessiond/commands/transaction.h"
#include "tools/weekwheel-sessiond/input.h"
#include "tools/weekwheel-sessiond/serve.h"
#include "tools/weekwheel-sessiond/server/bounds.h"
#include "tools/weekwheel-sessiond/server/mail.h"
#include "tools/weekwheel-sessiond/server/names.h"
#include "tools/weekwheel-sessiond/server/reply.h"
#include "tools/weekwheel-sessiond/server/walk.h"

/*
 * A command this long is read directly to where it is parsed. When TURN_BYTES have been read in a turn, a client is read
 * READ_LEAST more: thousands may send long commands.
 */
enum { READ_MOST = 1024 * 1024, READ_LEAST = 4096, TURN_BYTES = 4 * 1024 * 1024 };

static void on_closed(struct stream *stream)
{
	free(stream->owner);
}

static int leave_more(struct key_walk *walk)
{
	return pubsub_leave_some(walk->conn) == 0;
}

/* A client with thousands of subscriptions is closed in pieces. Returns 1 if another call is needed. */
static int is_leaving(struct conn *conn)
{
	int is_over = conn->loop->is_over;

	if (conn->life == CONN_LEAVING && conn->walk && !is_over)
		return 1;
	walk_leave(conn);
	while (pubsub_leave_some(conn)) {
		if (is_over || walk_do(conn, leave_more) != 0)
			continue;
		conn->life = CONN_LEAVING;
		stream_wait(&conn->stream, 0);
		return 1;
	}
	return 0;
}

void conn_close(struct conn *conn)
{
	struct loop *loop = conn->loop;

	if (conn->stream.fd < 0 || is_leaving(conn))
		return;
	transaction_leave(conn);
	names_forget(conn);
	access_leave(&conn->loop->server->access, &conn->auth);
	pthread_mutex_lock(&loop->lock);
	if (conn->is_mailed)
		SLIST_REMOVE(&loop->mail.clients, conn, conn, mailed);
	LIST_REMOVE(conn, next);
	pthread_mutex_unlock(&loop->lock);
	if (conn->is_in_flush)
		SLIST_REMOVE(&loop->flush, conn, conn, flush);
	buffer_free(&conn->mail);
	input_end(conn);
	buffer_free(&conn->aside);
	doors_let_out(loop->server, conn->place);
	stream_close(&conn->stream, on_closed);
}

/* ---- Reading */

/* Return where to read to, or NULL without memory. */
static char *space_for(struct conn *conn, size_t *room)
{
	struct buffer *in = &conn->in;

	*room = conn->loop->turn_bytes < TURN_BYTES || conn->stream.tls ? INPUT_SIZE : READ_LEAST;
	if (in->size == 0 || conn->stream.tls)
		return conn->loop->input;
	/* Announced bytes get memory as they arrive. */
	if (conn->parser.needed > in->size && conn->parser.needed <= in->capacity && *room == INPUT_SIZE)
		*room = in->capacity - in->size;
	else if (conn->parser.needed > in->size + *room && *room == INPUT_SIZE)
		*room = conn->parser.needed - in->size;
	if (*room > READ_MOST)
		*room = READ_MOST;
	return buffer_reserve(in, *room) == 0 ? in->data + in->size : NULL;
}

/* TLS has ended or was never spoken. Send what it still has to send. */
static void ended(struct conn *conn, ssize_t how)
{
	char reason[TLS_REASON];

	if (how == STREAM_BROKEN) {
		tls_reason(conn->stream.tls, reason);
		state_seen("handshakes", "clients are turned away: TLS: %s", reason);
	}
	conn_end(conn);
}

/* Read some bytes, and run the commands that they complete. Returns 1 if more bytes have arrived. */
static int read_piece(struct conn *conn)
{
	struct loop *loop = conn->loop;
	size_t room;
	char *space = space_for(conn, &room);
	ssize_t got = space ? stream_read(&conn->stream, space, room) : STREAM_LOST;

	if (got == STREAM_SHUT || got == STREAM_LOST) {
		conn_close(conn);
		return 0;
	}
	loop->bytes_in += conn->stream.taken;
	loop->turn_bytes += conn->stream.taken;
	/* Messages published before this command come before its answer. */
	mail_take(loop);
	atomic_store_explicit(&conn->last_ms, uv_now(&loop->uv), memory_order_relaxed);
	if (got < 0) {
		ended(conn, got);
	} else if (got > 0 && space == loop->input) {
		input_take(conn, space, (size_t)got);
	} else if (got > 0) {
		conn->in.size += (size_t)got;
		input_more(conn);
	}
	reply_flush(conn);
	return conn->stream.is_fed && conn->life == CONN_OPEN;
}

/* ---- Sending */

static void send_to(struct conn *conn)
{
	int was_full = input_is_full(conn);
	ssize_t sent = -1;
	int is_heard;

	if (conn->hold && conn->life < CONN_DEAD) {
		stream_wait(&conn->stream, 0);
		return;
	}
	if (conn->life < CONN_DEAD)
		sent = stream_send(&conn->stream);
	if (sent < 0 || (conn->life == CONN_ENDING && !stream_is_unsent(&conn->stream))) {
		conn_close(conn);
		return;
	}
	conn->loop->bytes_out += (uint64_t)sent;
	/* Continue in another turn: a client that reads as fast as it is answered would keep this turn for itself. */
	if (was_full && !input_is_full(conn) && conn->in.size > 0 && conn->life == CONN_OPEN && !conn->walk &&
	    walk_rest(conn) != 0) {
		conn_close(conn);
		return;
	}
	is_heard = !input_is_full(conn) && conn->life == CONN_OPEN && !conn->walk;
	stream_wait(&conn->stream, (stream_is_unsent(&conn->stream) ? UV_WRITABLE : 0) | (is_heard ? UV_READABLE : 0));
}

void conn_send_all(struct loop *loop)
{
	struct conn *conn;
	int error = data_settle(loop->server->data);

	while ((conn = SLIST_FIRST(&loop->flush))) {
		SLIST_REMOVE_HEAD(&loop->flush, flush);
		conn->is_in_flush = 0;
		/* Send no answer before the journal has the change. */
		if (error != 0)
			conn_fail(conn);
		send_to(conn);
	}
}

void conn_keep_bounds(struct loop *loop)
{
	struct conn *next;
	size_t least;

	while (bounds_find_large(loop, &least))
		for (struct conn *conn = LIST_FIRST(&loop->conns); conn && bounds_are_passed(loop->server, 0);
		     conn = next) {
			next = LIST_NEXT(conn, next);
			if (bounds_size(conn) >= least)
				conn_close(conn);
		}
}

static void on_event(struct stream *stream, int events)
{
	struct conn *conn = stream->owner;

	/* A thousand clients that each ask for a large answer must not all hold one until the turn ends. */
	if (bounds_are_passed(conn->loop->server, 0)) {
		conn_send_all(conn->loop);
		conn_keep_bounds(conn->loop);
	}
	if (stream->fd < 0 || conn->life == CONN_LEAVING)
		return;
	if (events & UV_WRITABLE)
		reply_flush(conn);
	if (events & UV_READABLE)
		while (read_piece(conn))
			;
}

void conn_begin(struct loop *loop, const struct arrival *arrival)
{
	struct sessiond *server = loop->server;
	struct conn *conn = calloc(1, sizeof *conn);

	if (!conn || stream_open(&conn->stream, &loop->uv, arrival->fd, on_event, conn) != 0) {
		message_warning("a client is turned away: there is no memory for it");
		doors_let_out(server, arrival->place);
		(void)close(arrival->fd);
		free(conn);
		return;
	}
	conn->loop = loop;
	conn->place = arrival->place;
	conn->id = ++server->client_ids;
	conn->protocol = 2;
	pubsub_enter(conn);
	conn->parser.bulk_max = server->settings->bulk_max;
	conn->since_ms = uv_now(&loop->uv);
	conn->last_ms = conn->since_ms;
	pthread_mutex_lock(&loop->lock);
	LIST_INSERT_HEAD(&loop->conns, conn, next);
	pthread_mutex_unlock(&loop->lock);
	auth_begin(conn);
	if (arrival->is_tls && stream_secure(&conn->stream, &server->certificate, &loop->shakes) != 0)
		conn_close(conn);
	else
		stream_wait(&conn->stream, UV_READABLE);
}
