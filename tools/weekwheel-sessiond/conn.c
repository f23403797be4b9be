/* A client: reading what it sends, and sending what it gets. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tools/common/message.h"
#include "tools/weekwheel-sessiond/bounds.h"
#include "tools/weekwheel-sessiond/client.h"
#include "tools/weekwheel-sessiond/commands.h"
#include "tools/weekwheel-sessiond/mail.h"
#include "tools/weekwheel-sessiond/pubsub.h"
#include "tools/weekwheel-sessiond/reply.h"
#include "tools/weekwheel-sessiond/secure.h"
#include "tools/weekwheel-sessiond/server.h"
#include "tools/weekwheel-sessiond/transaction.h"
#include "tools/weekwheel-sessiond/walk.h"

/* A command this long is read directly to where it is parsed. */
enum { READ_MOST = 1024 * 1024 };
/* The most bytes that are sent to a client in a turn. */
enum { SEND_MOST = 256 * 1024 };
/* The number of short commands that are carried out without reading the clock. */
enum { LOOK_EACH = 16 };
/* A turn that takes more than this is long, in ms. */
enum { LONG_TURN_MS = 4 };

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

static void on_hold_closed(uv_handle_t *handle)
{
	free(handle);
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

/* Who has subscribed to much leaves in pieces. Returns 1 while it does, and then is closed again, as it is dead. */
static int is_leaving(struct conn *conn)
{
	int is_over = conn->loop->is_over;

	if (conn->is_leaving && conn->walk && !is_over)
		return 1;
	walk_leave(conn);
	while (pubsub_leave_some(conn)) {
		if (is_over || walk_do(conn, leave_more) != 0)
			continue;
		conn->is_leaving = 1;
		conn->is_dead = 1;
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
	client_forget_names(conn);
	if (conn->hold)
		uv_close((uv_handle_t *)conn->hold, on_hold_closed);
	if (conn->tls)
		secure_close(conn);
	auth_end(conn);
	pthread_mutex_lock(&loop->lock);
	if (conn->is_mailed)
		SLIST_REMOVE(&loop->mailed, conn, conn, mailed);
	LIST_REMOVE(conn, next);
	pthread_mutex_unlock(&loop->lock);
	if (conn->is_in_flush)
		SLIST_REMOVE(&loop->flush, conn, conn, flush);
	buffer_free(&conn->mail);
	buffer_free(&conn->in);
	buffer_free(&conn->out);
	bounds_count_out(conn, resp_takes(&conn->parser));
	buffer_free(&conn->aside);
	resp_free(&conn->parser);
	loop->client_count--;
	uv_close((uv_handle_t *)&conn->poll, on_closed);
}

/* ---- Commands that have come */

static int is_full(const struct conn *conn)
{
	return conn->out.size + conn->sealed.size > OUTPUT_HIGH;
}

/* Carry out the command that was parsed. */
static void answer(struct conn *conn)
{
	conn->is_skipped = conn->reply_skip == 1;
	command_carry_out(conn, conn->parser.arg, conn->parser.count);
	if (conn->reply_skip > 0 && !conn->is_again)
		conn->reply_skip--;
}

/* The part of a turn that a client has had. Reading the clock takes a tenth as long as a short command. */
struct turn_share {
	uint64_t end; /* 0: not looked at yet */
	unsigned count;
};

/* The client has sent another command. Returns 1 if others come first. */
static int is_used_up(struct conn *conn, struct turn_share *share)
{
	const struct command_entry *last = conn->last;
	uint64_t now;

	if (last && command_is_short(last) && ++share->count % LOOK_EACH != 0)
		return 0;
	now = uv_hrtime();
	/* Where many clients ask for much, none has more than it needs to get on. */
	if (share->end == 0)
		share->end = now / 1000000 > uv_now(&conn->loop->uv) + LONG_TURN_MS ? 1 : now + WALK_PIECE;
	return now > share->end;
}

/* Carry out the commands of these bytes. Returns how many bytes they took. */
static size_t carry_out(struct conn *conn, const char *data, size_t size)
{
	struct resp_parser *parser = &conn->parser;
	size_t before = resp_takes(parser);
	struct turn_share share = {0};
	size_t used = 0;

	while (!conn->is_ending && !conn->is_dead && !conn->hold && !conn->walk && !is_full(conn)) {
		enum resp_result result;
		parser->is_stranger = !conn->is_known;
		result = resp_parse(parser, data + used, size - used);
		if (result == RESP_MORE)
			break;
		if (result != RESP_COMMAND) {
			conn->is_skipped = 0;
			reply_error(conn, "ERR %s", result == RESP_ERROR ? parser->error : "out of memory");
			conn->is_ending = 1;
			break;
		}
		used += parser->used;
		if (parser->count > 0)
			answer(conn);
		if (conn->is_again)
			used -= parser->used;
		conn->is_again = 0;
		if (used < size && !conn->walk && is_used_up(conn, &share))
			(void)walk_rest(conn);
	}
	if (resp_takes(parser) != before) {
		bounds_count_out(conn, before);
		bounds_count(conn, resp_takes(parser));
	}
	return used;
}

/* Keep what is left for when more of it has come. */
static void work(struct conn *conn)
{
	struct buffer *in = &conn->in;
	size_t used = carry_out(conn, in->data, in->size);

	buffer_drop(in, used);
}

static void work_on(struct conn *conn, const char *data, size_t size)
{
	size_t used = carry_out(conn, data, size);

	if (used < size && buffer_append(&conn->in, data + used, size - used) != 0)
		conn->is_dead = 1;
}

void conn_input(struct conn *conn, const char *data, size_t size)
{
	struct buffer *in = &conn->in;

	if (in->size == 0)
		work_on(conn, data, size);
	else if (buffer_append(in, data, size) == 0)
		work(conn);
	else
		conn->is_dead = 1;
}

/* ---- Pauses */

void conn_go_on(struct conn *conn)
{
	if (conn->in.size > 0)
		work(conn);
	reply_flush(conn);
}

static void on_held(uv_timer_t *timer)
{
	struct conn *conn = timer->data;

	conn->hold = NULL;
	uv_close((uv_handle_t *)timer, on_hold_closed);
	conn_go_on(conn);
}

void conn_hold(struct conn *conn, uint64_t ms)
{
	uv_timer_t *timer = conn->hold ? NULL : malloc(sizeof *timer);

	if (!timer) {
		conn->is_dead = 1;
		return;
	}
	uv_timer_init(&conn->loop->uv, timer);
	timer->data = conn;
	conn->hold = timer;
	uv_timer_start(timer, on_held, ms, 0);
}

/* ---- Reading */

static void read_some(struct conn *conn)
{
	struct loop *loop = conn->loop;
	struct buffer *in = &conn->in;
	size_t room = INPUT_SIZE;
	ssize_t got;

	if (in->size > 0 && !conn->tls) {
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
	if (conn->tls) {
		secure_input(conn, loop->input, (size_t)got);
	} else if (in->size > 0) {
		in->size += (size_t)got;
		work(conn);
	} else {
		work_on(conn, loop->input, (size_t)got);
	}
	reply_flush(conn);
}

/* ---- Sending */

/* Returns -1 if the client is gone. */
static int send_some(struct conn *conn)
{
	struct buffer *out = conn->tls ? &conn->sealed : &conn->out;
	ssize_t sent;

	if (conn->tls && secure_seal(conn) != 0)
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
	return conn->sealed.size > 0 || (conn->out.size > 0 && (!conn->tls || tls_is_ready(conn->tls)));
}

static void send_to(struct conn *conn)
{
	int was_full = is_full(conn);
	int is_heard;

	if (conn->hold && !conn->is_dead) {
		wait_for(conn, 0);
		return;
	}
	if (conn->is_dead || send_some(conn) != 0 || (conn->is_ending && !is_unsent(conn))) {
		conn_close(conn);
		return;
	}
	/* In another turn: one that reads as fast as it is answered would have this one for itself. */
	if (was_full && !is_full(conn) && conn->in.size > 0 && !conn->is_ending && !conn->walk &&
	    walk_rest(conn) != 0) {
		conn_close(conn);
		return;
	}
	/* What comes while its handshake waits for a turn would grow without a bound. */
	is_heard = !is_full(conn) && !conn->is_ending && !conn->walk && !conn->shake.is_waiting;
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
			conn->is_dead = 1;
		send_to(conn);
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
		bounds_keep(conn->loop);
	}
	if (uv_is_closing((uv_handle_t *)poll) || conn->is_leaving)
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
	if (arrival->is_tls && secure_open(conn) != 0)
		conn_close(conn);
	else
		wait_for(conn, UV_READABLE);
}
