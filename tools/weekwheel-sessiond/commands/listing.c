/* KEYS and SCAN: the names of keys, found in pieces. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/common/glob.h"
#include "tools/weekwheel-sessiond/commands/commands.h"
#include "tools/weekwheel-sessiond/server/walk.h"

/* The number of entries that SCAN looks at without COUNT, and of the steps that it takes for them. */
enum { SCAN_COUNT = 10, SCAN_STEPS = 64 };
/* Room before the keys for the head of the answer. */
enum { HEAD = 64 };

/* The keys that it has found are in its client's `aside`. */
struct key_list {
	struct key_walk walk;
	struct ww_session *session;
	int is_all; /* keys match any pattern */
	struct resp_arg pattern;
	uint64_t cursor;
	size_t room;  /* how many entries may still be looked at */
	size_t steps; /* and how many steps taken */
	size_t count; /* of keys found */
	int is_scan;  /* the answer has the cursor */
	int is_other; /* a TYPE other than string was asked for: no key has it */
	int failed;   /* without memory */
	char copy[];  /* a copy of the pattern, for when the command's bytes are gone */
};

/* ---- Walking */

static int list_key(const void *key, size_t length, const struct ww_session_found *found, void *context)
{
	struct key_list *listing = context;

	(void)found;
	if (listing->room == 0)
		return 1;
	listing->room--;
	if (!listing->is_all && !glob_matches_count(listing->pattern.data, listing->pattern.size, key, length,
	                            &listing->walk.conn->exec_steps))
		return 0;
	listing->count++;
	listing->failed |= reply_add_bulk(&listing->walk.conn->aside, key, length);
	return 0;
}

static int is_over(const struct key_list *listing)
{
	return listing->cursor == 0 || listing->room == 0 || listing->steps == 0 || listing->failed ||
	       request_took_long(listing->walk.conn);
}

static void take_piece(struct key_list *listing)
{
	uint64_t end = uv_hrtime() + WALK_PIECE;

	do {
		(void)ww_session_scan(listing->session, &listing->cursor, list_key, listing);
		listing->steps--;
	} while (!is_over(listing) && (listing->walk.conn->is_in_exec || uv_hrtime() < end));
}

/* ---- Answering */

static int add_head(const struct key_list *listing, struct buffer *head)
{
	char text[24];
	int length = snprintf(text, sizeof text, "%llu", (unsigned long long)listing->cursor);

	if (listing->is_scan &&
	    (reply_add_header(head, '*', 2) != 0 || reply_add_bulk(head, text, (size_t)length) != 0))
		return -1;
	return reply_add_header(head, '*', listing->count);
}

/* Send the buffer of keys itself: copying it would take the time that the pieces have saved. */
static void send_keys(struct conn *conn)
{
	if (conn->stream.out.size > 0) {
		reply_bytes(conn, conn->aside.data, conn->aside.size);
	} else {
		buffer_free(&conn->stream.out);
		conn->stream.out = conn->aside;
		conn->aside = (struct buffer){0};
	}
}

static void answer(struct key_list *listing)
{
	struct conn *conn = listing->walk.conn;
	struct buffer head = {0};

	listing->failed |= add_head(listing, &head);
	if (listing->failed) {
		conn_fail(conn);
	} else if (request_took_long(conn)) {
		request_refuse_long(conn);
	} else if (!reply_is_silent(conn)) {
		buffer_drop(&conn->aside, HEAD - head.size);
		memcpy(conn->aside.data, head.data, head.size);
		send_keys(conn);
	}
	buffer_free(&head);
	buffer_free(&conn->aside);
}

/* ---- Pieces */

static int take_turn(struct key_walk *walk)
{
	struct key_list *listing = (struct key_list *)(void *)walk;

	take_piece(listing);
	if (!is_over(listing))
		return 0;
	answer(listing);
	return 1;
}

/* Returns 0, or -1 without memory. */
static int go_on_later(const struct key_list *begun)
{
	struct key_list *listing = malloc(sizeof *listing + begun->pattern.size);

	if (!listing)
		return -1;
	*listing = *begun;
	if (begun->pattern.size > 0)
		memcpy(listing->copy, begun->pattern.data, begun->pattern.size);
	listing->pattern.data = listing->copy;
	walk_begin(&listing->walk);
	return 0;
}

static void begin(struct key_list *listing)
{
	static const char head[HEAD];

	listing->failed = buffer_append(&listing->walk.conn->aside, head, HEAD);
	if (!listing->session)
		listing->cursor = 0;
	else if (!listing->failed)
		take_piece(listing);
	if (!is_over(listing) && go_on_later(listing) == 0)
		return;
	listing->failed |= !is_over(listing);
	answer(listing);
}

/* ---- Commands */

void command_keys(struct request *request)
{
	struct key_list listing = {
	    .walk.conn = request->conn, .walk.take_piece = take_turn, .room = SIZE_MAX, .steps = SIZE_MAX};

	listing.session = data_map(request->data, request->conn->database);
	listing.pattern = request->arg[1];
	if (request_waits(request->conn))
		return;
	if (request_may_look(request->conn, data_count(request->data, request->conn->database)))
		begin(&listing);
}

/* As Redis reads a cursor: a sign may precede it, and no digits mean 0. */
static int read_cursor(struct request *request, uint64_t *cursor)
{
	const struct resp_arg *arg = &request->arg[1];
	int is_negative = arg->size > 0 && *arg->data == '-';
	size_t i = arg->size > 1 && (is_negative || *arg->data == '+');
	int is_bad = 0;

	*cursor = 0;
	for (; i < arg->size && !is_bad; i++) {
		unsigned digit = (unsigned)(unsigned char)arg->data[i] - '0';
		is_bad = digit > 9 || __builtin_mul_overflow(*cursor, 10, cursor) ||
		         __builtin_add_overflow(*cursor, digit, cursor);
	}
	if (is_bad) {
		reply_error(request->conn, "ERR invalid cursor");
		return -1;
	}
	*cursor = is_negative ? 0 - *cursor : *cursor;
	return 0;
}

/* Read an option of SCAN and its value. Returns 0, or -1 after an answer. */
static int read_option(struct request *request, size_t i, struct key_list *listing)
{
	int64_t count;

	if (request_is(request, i, "MATCH")) {
		listing->pattern = request->arg[i + 1];
		listing->is_all = 0;
		return 0;
	}
	if (request_is(request, i, "TYPE")) {
		listing->is_other = !request_is(request, i + 1, "STRING");
		return 0;
	}
	if (request_is(request, i, "COUNT")) {
		if (request_whole(request, i + 1, &count) != 0)
			return -1;
		listing->room = count > 0 ? (size_t)count : 0;
		if (count > 0)
			return 0;
	}
	request_syntax_error(request);
	return -1;
}

void command_scan(struct request *request)
{
	struct key_list listing = {
	    .walk.conn = request->conn, .walk.take_piece = take_turn, .is_all = 1, .is_scan = 1, .room = SCAN_COUNT};

	listing.session = data_map(request->data, request->conn->database);
	if (request_waits(request->conn))
		return;
	if (read_cursor(request, &listing.cursor) != 0)
		return;
	for (size_t i = 2; i < request->count; i += 2) {
		if (i + 1 == request->count) {
			request_syntax_error(request);
			return;
		}
		if (read_option(request, i, &listing) != 0)
			return;
	}
	if (listing.is_other)
		listing.session = NULL;
	/* It passes at most this many places without a key. */
	listing.steps = SCAN_STEPS + listing.room / SCAN_COUNT;
	if (request_may_look(request->conn, listing.room))
		begin(&listing);
}
