/* A client: reading what it sends, and sending what it gets. */
#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tools/common/message.h"
#include "tools/weekwheel-sessiond/commands/pubsub.h"
#include "tools/weekwheel-sessiond/commands/transaction.h"
#include "tools/weekwheel-sessiond/input.h"
#include "tools/weekwheel-sessiond/serve.h"
#include "tools/weekwheel-sessiond/server/bounds.h"
#include "tools/weekwheel-sessiond/server/mail.h"
#include "tools/weekwheel-sessiond/server/names.h"
#include "tools/weekwheel-sessiond/server/reply.h"
#include "tools/weekwheel-sessiond/server/secure.h"
#include "tools/weekwheel-sessiond/server/walk.h"

/* A command this long is read directly to where it is parsed. */
enum { READ_MOST = 1024 * 1024 };
/* The most bytes that are sent to a client in a turn. */
enum { SEND_MOST = 256 * 1024 };

static void on_event(uv_poll_t *poll, int status, int events);

static void wait_for(struct conn *conn, int events)
{
	if (conn->events == events)
		return;
	conn->events = events;
	if (events)
		uv_poll_start(&conn->poll, events, on_event);
	else
		uv_poll_stop(&conn->poll);
}

static void on_closed(uv_handle_t *handle)
{
	struct conn *conn = handle->data;

	doors_let_out(conn->loop->server, conn->fd, conn->place);
	free(conn);
}

static int leave_more(struct key_walk *walk)
{
	return pubsub_leave_some(walk->conn) == 0;
}

/* A client with thousands of subscriptions leaves in pieces. Returns 1 while it does; it is closed again after each. */
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
		wait_for(conn, 0);
		return 1;
	}
	return 0;
}

void conn_close(struct conn *conn)
{
	struct loop *loop = conn->loop;

	if (uv_is_closing((uv_handle_t *)&conn->poll) || is_leaving(conn))
		return;
	transaction_leave(conn);
	names_forget(conn);
	if (conn->secure.tls)
		secure_close(conn);
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
	buffer_free(&conn->out);
	buffer_free(&conn->aside);
	loop->client_count--;
	uv_close((uv_handle_t *)&conn->poll, on_closed);
}

/* ---- Reading */

/* All that has come: more comes only then. */
static void read_clear(struct conn *conn)
{
	char clear[SECURE_PIECE];
	int got = 1;

	while (got > 0 && conn->life < CONN_DEAD) {
		got = secure_read(conn, clear, sizeof clear);
		if (got > 0 && conn->life == CONN_OPEN)
			input_take(conn, clear, (size_t)got);
	}
	reply_flush(conn);
}

static void on_shaken(struct shake *shake)
{
	read_clear((struct conn *)(void *)((char *)shake - offsetof(struct conn, secure.shake)));
}

static void read_some(struct conn *conn)
{
	struct loop *loop = conn->loop;
	struct buffer *in = &conn->in;
	size_t room = INPUT_SIZE;
	ssize_t got;

	if (in->size > 0 && !conn->secure.tls) {
		/* What is announced gets its memory as it comes. */
		if (conn->parser.needed > in->size + room)
			room = conn->parser.needed - in->size;
		if (room > READ_MOST)
			room = READ_MOST;
		if (buffer_reserve(in, room) != 0) {
			conn_close(conn);
			return;
		}
		got = read(conn->fd, in->data + in->size, room);
	} else {
		got = read(conn->fd, loop->input, sizeof loop->input);
	}
	if (got < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (got <= 0) {
		conn_close(conn);
		return;
	}
	loop->bytes_in += (uint64_t)got;
	/* What channels said before this was sent comes before its answer. */
	mail_take(loop);
	atomic_store_explicit(&conn->last_ms, uv_now(&loop->uv), memory_order_relaxed);
	if (conn->secure.tls) {
		if (secure_feed(conn, loop->input, (size_t)got))
			read_clear(conn);
	} else if (in->size > 0) {
		in->size += (size_t)got;
		input_more(conn);
	} else {
		input_take(conn, loop->input, (size_t)got);
	}
	reply_flush(conn);
}

/* ---- Sending */

/* Returns -1 if the client is gone. */
static int send_some(struct conn *conn)
{
	struct buffer *out = conn->secure.tls ? &conn->secure.sealed : &conn->out;
	ssize_t sent;

	if (conn->secure.tls && secure_seal(conn) != 0)
		return -1;
	if (out->size == 0)
		return 0;
	/* The others come before the rest of much. */
	sent = write(conn->fd, out->data, out->size < SEND_MOST ? out->size : SEND_MOST);
	if (sent < 0 && errno != EAGAIN && errno != EINTR)
		return -1;
	if (sent > 0) {
		conn->loop->bytes_out += (uint64_t)sent;
		buffer_drop(out, (size_t)sent);
	}
	return 0;
}

/* Answers wait for the end of the handshake of TLS, which is the other side's turn. */
static int is_unsent(const struct conn *conn)
{
	return conn->secure.sealed.size > 0 ||
	       (conn->out.size > 0 && (!conn->secure.tls || tls_is_ready(conn->secure.tls)));
}

static void send_to(struct conn *conn)
{
	int was_full = input_is_full(conn);
	int is_heard;

	if (conn->hold && conn->life < CONN_DEAD) {
		wait_for(conn, 0);
		return;
	}
	if (conn->life >= CONN_DEAD || send_some(conn) != 0 || (conn->life == CONN_ENDING && !is_unsent(conn))) {
		conn_close(conn);
		return;
	}
	/* In another turn: one that reads as fast as it is answered would have this one for itself. */
	if (was_full && !input_is_full(conn) && conn->in.size > 0 && conn->life == CONN_OPEN && !conn->walk &&
	    walk_rest(conn) != 0) {
		conn_close(conn);
		return;
	}
	/* What comes while its handshake waits for a turn would grow without a bound. */
	is_heard = !input_is_full(conn) && conn->life == CONN_OPEN && !conn->walk && !conn->secure.shake.is_waiting;
	wait_for(conn, (is_unsent(conn) ? UV_WRITABLE : 0) | (is_heard ? UV_READABLE : 0));
}

void conn_send_all(struct loop *loop)
{
	struct conn *conn;
	int error = data_settle(loop->server->data);

	while ((conn = SLIST_FIRST(&loop->flush))) {
		SLIST_REMOVE_HEAD(&loop->flush, flush);
		conn->is_in_flush = 0;
		/* Nobody may hear that what is not in the journal is kept. */
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

static void on_event(uv_poll_t *poll, int status, int events)
{
	struct conn *conn = poll->data;

	if (status < 0) {
		conn_close(conn);
		return;
	}
	/* A thousand clients that each let a large answer be made must not all have theirs before the turn ends. */
	if (bounds_are_passed(conn->loop->server, 0)) {
		conn_send_all(conn->loop);
		conn_keep_bounds(conn->loop);
	}
	if (uv_is_closing((uv_handle_t *)poll) || conn->life == CONN_LEAVING)
		return;
	if (events & UV_WRITABLE)
		reply_flush(conn);
	if (events & UV_READABLE)
		read_some(conn);
}

void conn_begin(struct loop *loop, const struct arrival *arrival)
{
	struct sessiond *server = loop->server;
	struct conn *conn = calloc(1, sizeof *conn);

	if (!conn || uv_poll_init(&loop->uv, &conn->poll, arrival->fd) != 0) {
		message_warning("a client is turned away: there is no memory for it");
		doors_let_out(server, arrival->fd, arrival->place);
		free(conn);
		return;
	}
	conn->loop = loop;
	conn->poll.data = conn;
	conn->fd = arrival->fd;
	conn->place = arrival->place;
	conn->id = ++server->client_ids;
	conn->protocol = 2;
	conn->parser.bulk_max = server->settings->bulk_max;
	conn->since_ms = uv_now(&loop->uv);
	conn->last_ms = conn->since_ms;
	pthread_mutex_lock(&loop->lock);
	LIST_INSERT_HEAD(&loop->conns, conn, next);
	pthread_mutex_unlock(&loop->lock);
	loop->client_count++;
	auth_begin(conn);
	if (arrival->is_tls && secure_open(conn, on_shaken) != 0)
		conn_close(conn);
	else
		wait_for(conn, UV_READABLE);
}
