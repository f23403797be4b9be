/* A client: reading what it sends, and sending what it gets. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tools/common/message.h"
#include "tools/weekwheel-sessiond/commands.h"
#include "tools/weekwheel-sessiond/pubsub.h"
#include "tools/weekwheel-sessiond/reply.h"
#include "tools/weekwheel-sessiond/server.h"
#include "tools/weekwheel-sessiond/transaction.h"

/* A command so long is read straight to where it is parsed. */
enum { READ_MOST = 1024 * 1024 };

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

	(void)close(conn->fd);
	free(conn);
}

void conn_close(struct conn *conn)
{
	struct loop *loop = conn->loop;

	if (uv_is_closing((uv_handle_t *)&conn->poll))
		return;
	pubsub_leave(conn);
	transaction_leave(conn);
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
	resp_free(&conn->parser);
	free(conn->name);
	free(conn->library);
	free(conn->library_version);
	loop->client_count--;
	loop->server->clients--;
	uv_close((uv_handle_t *)&conn->poll, on_closed);
}

void conn_flush(struct conn *conn)
{
	if (conn->is_in_flush)
		return;
	conn->is_in_flush = 1;
	SLIST_INSERT_HEAD(&conn->loop->flush, conn, flush);
}

/* ---- Commands that have come */

static int is_full(const struct conn *conn)
{
	return conn->out.size > OUTPUT_HIGH;
}

/* Carry out the command that was parsed, and leave its answer out if the client wants none. */
static void answer(struct conn *conn)
{
	size_t before = conn->out.size;
	int skip = conn->reply_skip == 1;

	command_carry_out(conn, conn->parser.arg, conn->parser.count);
	if (conn->reply_off || skip)
		conn->out.size = before;
	if (conn->reply_skip > 0)
		conn->reply_skip--;
}

/* Carry out the commands of these bytes. Returns how many bytes they took. */
static size_t carry_out(struct conn *conn, const char *data, size_t size)
{
	struct resp_parser *parser = &conn->parser;
	size_t used = 0;

	while (!conn->is_ending && !conn->is_dead && !is_full(conn)) {
		enum resp_result result;
		parser->is_stranger = !conn->is_known;
		result = resp_parse(parser, data + used, size - used);
		if (result == RESP_MORE)
			break;
		if (result != RESP_COMMAND) {
			reply_error(conn, "ERR %s", result == RESP_ERROR ? parser->error : "out of memory");
			conn->is_ending = 1;
			break;
		}
		used += parser->used;
		if (parser->count > 0)
			answer(conn);
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

static void read_some(struct conn *conn)
{
	struct loop *loop = conn->loop;
	struct buffer *in = &conn->in;
	size_t room = INPUT_SIZE;
	ssize_t got;

	if (in->size > 0) {
		/* What is announced gets its memory as it comes. */
		if (conn->parser.needed > in->size + room)
			room = conn->parser.needed - in->size;
		if (room > READ_MOST)
			room = READ_MOST;
		if (buffer_reserve(in, room) != 0) {
			conn_close(conn);
			return;
		}
		got = read(conn->fd, in->data + in->size, in->capacity - in->size);
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
	loop_take_mail(loop);
	atomic_store_explicit(&conn->last_ms, uv_now(&loop->uv), memory_order_relaxed);
	if (in->size > 0) {
		in->size += (size_t)got;
		work(conn);
	} else {
		work_on(conn, loop->input, (size_t)got);
	}
	conn_flush(conn);
}

/* ---- Sending */

/* Returns -1 if the client is gone. */
static int send_some(struct conn *conn)
{
	struct buffer *out = &conn->out;
	ssize_t sent;

	if (out->size == 0)
		return 0;
	sent = write(conn->fd, out->data, out->size);
	if (sent < 0 && errno != EAGAIN && errno != EINTR)
		return -1;
	if (sent > 0) {
		conn->loop->bytes_out += (uint64_t)sent;
		buffer_drop(out, (size_t)sent);
	}
	return 0;
}

static void send_to(struct conn *conn)
{
	int was_full = is_full(conn);

	if (conn->is_dead || send_some(conn) != 0 || (conn->is_ending && conn->out.size == 0)) {
		conn_close(conn);
		return;
	}
	if (was_full && !is_full(conn) && conn->in.size > 0 && !conn->is_ending) {
		work(conn);
		conn_flush(conn);
	}
	wait_for(conn, (conn->out.size > 0 ? UV_WRITABLE : 0) | (is_full(conn) || conn->is_ending ? 0 : UV_READABLE));
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
	if (events & UV_WRITABLE)
		conn_flush(conn);
	if (events & UV_READABLE)
		read_some(conn);
}

void conn_begin(struct loop *loop, int fd)
{
	struct sessiond *server = loop->server;
	struct conn *conn = calloc(1, sizeof *conn);

	if (!conn || uv_poll_init(&loop->uv, &conn->poll, fd) != 0) {
		message_warning("a client is turned away: there is no memory for it");
		(void)close(fd);
		free(conn);
		server->clients--;
		return;
	}
	conn->loop = loop;
	conn->poll.data = conn;
	conn->fd = fd;
	conn->id = ++server->client_ids;
	conn->protocol = 2;
	conn->parser.bulk_max = server->settings->bulk_max;
	conn->is_known = !server->settings->password;
	conn->since_ms = uv_now(&loop->uv);
	conn->last_ms = conn->since_ms;
	pthread_mutex_lock(&loop->lock);
	LIST_INSERT_HEAD(&loop->conns, conn, next);
	pthread_mutex_unlock(&loop->lock);
	loop->client_count++;
	wait_for(conn, UV_READABLE);
}
