/* Carries out what clients send: see input.h. */
#include "tools/weekwheel-sessiond/input.h"

#include <stdlib.h>

#include "tools/weekwheel-sessiond/commands/commands.h"
#include "tools/weekwheel-sessiond/server/bounds.h"
#include "tools/weekwheel-sessiond/server/reply.h"
#include "tools/weekwheel-sessiond/server/walk.h"

/* The number of short commands that are carried out without reading the clock. */
enum { LOOK_EACH = 16 };
/* A turn that takes more than this is long, in ms. */
enum { LONG_TURN_MS = 4 };
/* A command whose beginning has come gets room for this many times as much. */
enum { AHEAD = 4 };

int input_is_full(const struct conn *conn)
{
	return stream_unsent(&conn->stream) > OUTPUT_HIGH;
}

/* ---- Pauses */

static void on_hold_closed(uv_handle_t *handle)
{
	free(handle);
}

static void on_held(uv_timer_t *timer)
{
	struct conn *conn = timer->data;

	conn->hold = NULL;
	uv_close((uv_handle_t *)timer, on_hold_closed);
	input_go_on(conn);
}

/* Run no command and send no answer while the last command's pause lasts. */
static void hold(struct conn *conn)
{
	uv_timer_t *timer = malloc(sizeof *timer);
	uint64_t ms = conn->pause_ms;

	conn->pause_ms = 0;
	if (!timer) {
		conn_fail(conn);
		return;
	}
	uv_timer_init(&conn->loop->uv, timer);
	timer->data = conn;
	conn->hold = timer;
	uv_timer_start(timer, on_held, ms, 0);
}

/* ---- Commands that have come */

/* Carry out the command that was parsed. */
static void answer(struct conn *conn)
{
	conn->silence.is_skipped = conn->silence.skip == 1;
	command_carry_out(conn, conn->parser.arg, conn->parser.count);
	if (conn->silence.skip > 0 && !conn->is_again)
		conn->silence.skip--;
	if (conn->pause_ms)
		hold(conn);
}

/* The part of a turn that a client has had. Reading the clock takes a tenth as long as a short command. */
struct turn_share {
	uint64_t end; /* 0: not looked at yet */
	unsigned count;
	size_t unsent; /* answers before */
};

/* The client has had a command. Returns 1 if others come before its next one. */
static int is_used_up(struct conn *conn, struct turn_share *share)
{
	const struct command_entry *last = conn->last;
	struct loop *loop = conn->loop;
	uint64_t now;

	if (last && command_is_short(last) && conn->stream.out.size < share->unsent + REQUEST_LARGE &&
	    ++share->count % LOOK_EACH != 0)
		return 0;
	now = uv_hrtime();
	loop->is_long |= now / 1000000 > uv_now(&loop->uv) + LONG_TURN_MS;
	/* Where many clients ask for much, each keeps only the buffers that it needs. */
	if (share->end == 0)
		share->end = loop->is_long ? 1 : now + WALK_PIECE;
	return now > share->end;
}

/* Another turn goes on with the client's commands. */
static void rest(struct conn *conn)
{
	/* Without memory for that, this turn continues. */
	if (walk_rest(conn) != 0)
		conn->loop->is_long = 0;
}

/* Carry out the commands of these bytes. Returns how many bytes they took. */
static size_t carry_out(struct conn *conn, const char *data, size_t size)
{
	struct resp_parser *parser = &conn->parser;
	struct turn_share share = {.unsent = conn->stream.out.size};
	size_t used = 0;

	while (conn->life == CONN_OPEN && !conn->hold && !conn->walk && !input_is_full(conn)) {
		enum resp_result result;
		int is_over;
		parser->is_stranger = !conn->auth.is_known;
		result = resp_parse(parser, data + used, size - used);
		if (result == RESP_MORE)
			break;
		if (result != RESP_COMMAND) {
			conn->silence.is_skipped = 0;
			reply_error(conn, "ERR %s", result == RESP_ERROR ? parser->error : "out of memory");
			conn_end(conn);
			break;
		}
		used += parser->used;
		if (parser->count > 0)
			answer(conn);
		if (conn->is_again)
			used -= parser->used;
		is_over = is_used_up(conn, &share) || (conn->is_again && conn->loop->is_long);
		if (is_over && used < size && !conn->walk && conn->life == CONN_OPEN)
			rest(conn);
		conn->is_again = 0;
	}
	return used;
}

void input_more(struct conn *conn)
{
	struct buffer *in = &conn->in;
	size_t used = carry_out(conn, in->data, in->size);

	buffer_drop(in, used);
}

/* Keep the beginning of a command, with room for its rest if much of it has come: announced bytes are not there yet. */
static void keep(struct conn *conn, const char *data, size_t size)
{
	size_t room = conn->parser.needed < size * AHEAD ? conn->parser.needed : size * AHEAD;

	if (room > size)
		(void)buffer_reserve(&conn->in, room);
	if (buffer_append(&conn->in, data, size) != 0)
		conn_fail(conn);
}

static void work_on(struct conn *conn, const char *data, size_t size)
{
	size_t used = carry_out(conn, data, size);

	if (used < size)
		keep(conn, data + used, size - used);
}

void input_take(struct conn *conn, const char *data, size_t size)
{
	struct buffer *in = &conn->in;

	if (in->size == 0)
		work_on(conn, data, size);
	else if (buffer_append(in, data, size) == 0)
		input_more(conn);
	else
		conn_fail(conn);
}

void input_go_on(struct conn *conn)
{
	/* This is the turn that it has waited for. */
	conn->loop->is_long = 0;
	if (conn->in.size > 0)
		input_more(conn);
	reply_flush(conn);
}

void input_end(struct conn *conn)
{
	if (conn->hold)
		uv_close((uv_handle_t *)conn->hold, on_hold_closed);
	buffer_free(&conn->in);
	resp_free(&conn->parser);
}
