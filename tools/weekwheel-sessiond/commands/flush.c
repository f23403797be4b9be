/* FLUSHDB and FLUSHALL: few keys at once, many in pieces. */
#include <stdlib.h>
#include <string.h>

#include "tools/weekwheel-sessiond/commands/commands.h"
#include "tools/weekwheel-sessiond/server/walk.h"

/* Up to this many keys are deleted at once, before another client can read. Beyond it, keys are deleted one by one. */
enum { AT_ONCE = 1000 };

/* The keys that a piece has found are in its client's `aside`: each is a struct found and its bytes. */
struct flush {
	struct key_walk walk;
	struct data *data;
	unsigned database;
	unsigned last; /* database */
	uint64_t cursor;
	int failed; /* without memory */
};

struct found {
	size_t length;
};

static int note_key(const void *key, size_t length, const struct ww_session_found *entry, void *context)
{
	struct flush *flush = context;
	struct found found = {length};
	struct buffer *keys = &flush->walk.conn->aside;

	(void)entry;
	flush->failed |= buffer_append(keys, &found, sizeof found) || buffer_append(keys, key, length);
	return flush->failed;
}

static void delete_found(struct flush *flush)
{
	struct buffer *keys = &flush->walk.conn->aside;
	struct found found;

	for (size_t at = 0; at < keys->size; at += found.length) {
		struct data_key key;
		unsigned stripe;
		memcpy(&found, keys->data + at, sizeof found);
		at += sizeof found;
		key = (struct data_key){flush->database, keys->data + at, found.length};
		stripe = data_lock_key(flush->data, key.bytes, key.length);
		(void)data_delete(flush->data, &key);
		data_unlock_key(flush->data, stripe);
	}
	keys->size = 0;
}

/* Returns 1 when all databases are empty, or when it has failed. */
static int take_step(struct flush *flush)
{
	struct ww_session *session = data_map(flush->data, flush->database);

	if (session)
		(void)ww_session_scan(session, &flush->cursor, note_key, flush);
	if (flush->failed)
		return 1;
	delete_found(flush);
	if (flush->cursor != 0)
		return 0;
	return flush->database++ == flush->last;
}

static int take_piece(struct key_walk *walk)
{
	struct flush *flush = (struct flush *)(void *)walk;
	struct conn *conn = walk->conn;
	const char *refused = data_refuses(flush->data, 1);
	uint64_t end = uv_hrtime() + WALK_PIECE;
	int is_over = 0;

	while (!refused && !is_over && uv_hrtime() < end)
		is_over = take_step(flush);
	if (!refused && !is_over)
		return 0;
	buffer_free(&conn->aside);
	if (flush->failed)
		conn_fail(conn);
	if (refused)
		reply_error(conn, "%s", refused);
	else
		reply_ok(conn);
	return 1;
}

/* Returns 0, or -1 after an answer. */
static int read_flush(struct request *request)
{
	if (request->count == 1 ||
	    (request->count == 2 && (request_is(request, 1, "SYNC") || request_is(request, 1, "ASYNC"))))
		return 0;
	request_syntax_error(request);
	return -1;
}

/* In a transaction, when there are few, or when the journal has no room for a record of each: delete them at once. */
static void clear(struct request *request, unsigned database, unsigned last)
{
	struct flush *flush;
	uint64_t keys = 0;

	for (unsigned i = database; i <= last; i++)
		keys += data_count(request->data, i);
	if (keys > AT_ONCE && !request->conn->is_in_exec && !data_refuses(request->data, 0)) {
		flush = malloc(sizeof *flush);
		if (flush) {
			*flush = (struct flush){.walk.conn = request->conn,
			    .walk.take_piece = take_piece,
			    .data = request->data,
			    .database = database,
			    .last = last};
			walk_begin(&flush->walk);
			return;
		}
	}
	if (!request_failed(request, data_clear(request->data, database, last)))
		reply_ok(request->conn);
}

void command_flushdb(struct request *request)
{
	if (read_flush(request) == 0)
		clear(request, request->conn->database, request->conn->database);
}

void command_flushall(struct request *request)
{
	if (read_flush(request) == 0)
		clear(request, 0, data_databases(request->data) - 1);
}
