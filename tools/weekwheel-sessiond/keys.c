/* Commands about keys, one or all. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/weekwheel-sessiond/commands.h"
#include "tools/weekwheel-sessiond/events.h"
#include "tools/weekwheel-sessiond/glob.h"

/* As many entries as SCAN looks at without COUNT, and at a time. */
enum { SCAN_COUNT = 10, SCAN_STEPS = 64 };

void command_del(struct request *request)
{
	int64_t count = 0;

	for (size_t i = 1; i < request->count; i++) {
		struct data_key key = request_key(request, i);
		if (data_delete(request->data, &key)) {
			event_tell(request, EVENT_GENERIC, "del", &key);
			count++;
		}
	}
	reply_integer(request->conn, count);
}

static int64_t count_there(struct request *request)
{
	int64_t count = 0;

	for (size_t i = 1; i < request->count; i++) {
		struct data_key key = request_key(request, i);
		count += data_is_there(request->data, &key);
	}
	return count;
}

void command_exists(struct request *request)
{
	reply_integer(request->conn, count_there(request));
}

/* A use of each key, for what is evicted first. */
void command_touch(struct request *request)
{
	int64_t count = 0;

	for (size_t i = 1; i < request->count; i++) {
		struct data_key key = request_key(request, i);
		struct data_entry entry;
		count += data_inspect(request->data, &key, &entry, NULL, NULL) == 1;
	}
	reply_integer(request->conn, count);
}

void command_type(struct request *request)
{
	struct data_key key = request_key(request, 1);

	if (data_is_there(request->data, &key))
		reply_text(request->conn, "+string\r\n");
	else
		reply_text(request->conn, "+none\r\n");
}

/* Returns 1 if it was renamed. Otherwise it was answered. */
static int rename_key(struct request *request, int only_if_new)
{
	struct data_key from = request_key(request, 1);
	struct data_key to = request_key(request, 2);
	int is_same = from.length == to.length && memcmp(from.bytes, to.bytes, to.length) == 0;
	int result = data_is_there(request->data, &from);

	if (result == 1 && (is_same || (only_if_new && data_is_there(request->data, &to)))) {
		if (only_if_new)
			reply_integer(request->conn, 0);
		else
			reply_ok(request->conn);
		return 0;
	}
	if (result == 1)
		result = data_rename(request->data, &from, &to);
	if (result == 0)
		reply_error(request->conn, "ERR no such key");
	else if (result < 0)
		(void)request_failed(request, result);
	if (result != 1)
		return 0;
	event_tell(request, EVENT_GENERIC, "rename_from", &from);
	event_tell(request, EVENT_GENERIC, "rename_to", &to);
	return 1;
}

void command_rename(struct request *request)
{
	if (rename_key(request, 0))
		reply_ok(request->conn);
}

void command_renamenx(struct request *request)
{
	if (rename_key(request, 1))
		reply_integer(request->conn, 1);
}

/* ---- All keys */

struct key_list {
	const struct resp_arg *pattern; /* NULL: all */
	int is_of_others;               /* of types that no key has */
	size_t room;                    /* how many entries may still be looked at */
	struct buffer keys;
	size_t count;
	int failed;
};

static int list_key(const void *key, size_t length, const struct ww_session_found *found, void *context)
{
	struct key_list *listing = context;

	(void)found;
	if (listing->room == 0)
		return 1;
	listing->room--;
	if (listing->pattern && !glob_matches(listing->pattern->data, listing->pattern->size, key, length))
		return 0;
	listing->count++;
	listing->failed |= reply_add_bulk(&listing->keys, key, length);
	return 0;
}

static void reply_listing(struct request *request, struct key_list *listing)
{
	reply_array(request->conn, listing->count);
	reply_bytes(request->conn, listing->keys.data, listing->keys.size);
	request->conn->is_dead |= listing->failed;
	buffer_free(&listing->keys);
}

void command_keys(struct request *request)
{
	struct key_list listing = {.pattern = &request->arg[1], .room = SIZE_MAX};
	struct ww_session *session = data_map(request->data, request->conn->database);

	if (session)
		(void)ww_session_walk(session, list_key, &listing, NULL);
	reply_listing(request, &listing);
}

/* Read the options of SCAN. Returns 0, or -1 after an answer. */
static int read_scan(struct request *request, struct key_list *listing, int64_t *count)
{
	for (size_t i = 2; i < request->count; i += 2) {
		if (i + 1 == request->count) {
			request_syntax_error(request);
			return -1;
		}
		if (request_is(request, i, "COUNT")) {
			if (request_whole(request, i + 1, count) != 0)
				return -1;
			if (*count < 1) {
				request_syntax_error(request);
				return -1;
			}
		} else if (request_is(request, i, "MATCH")) {
			listing->pattern = &request->arg[i + 1];
		} else if (request_is(request, i, "TYPE")) {
			listing->is_of_others = !request_is(request, i + 1, "STRING");
		} else {
			request_syntax_error(request);
			return -1;
		}
	}
	return 0;
}

static int read_cursor(struct request *request, uint64_t *cursor)
{
	char text[24];
	char *end;
	const struct resp_arg *arg = &request->arg[1];

	if (arg->size > 0 && arg->size < sizeof text && arg->data[0] >= '0' && arg->data[0] <= '9') {
		memcpy(text, arg->data, arg->size);
		text[arg->size] = 0;
		*cursor = strtoull(text, &end, 10);
		if (*end == 0)
			return 0;
	}
	reply_error(request->conn, "ERR invalid cursor");
	return -1;
}

/* Until there are enough keys, or many places without one were passed. */
static void scan_on(struct ww_session *session, uint64_t *cursor, struct key_list *listing)
{
	size_t steps = SCAN_STEPS + listing->room / SCAN_COUNT;
	int answer;

	do
		answer = ww_session_scan(session, cursor, list_key, listing);
	while (answer == 0 && *cursor != 0 && listing->room > 0 && --steps > 0);
}

void command_scan(struct request *request)
{
	struct ww_session *session = data_map(request->data, request->conn->database);
	struct key_list listing = {0};
	int64_t count = SCAN_COUNT;
	uint64_t cursor;
	char text[24];

	if (read_cursor(request, &cursor) != 0 || read_scan(request, &listing, &count) != 0)
		return;
	listing.room = (size_t)count;
	if (!session || listing.is_of_others)
		cursor = 0;
	else
		scan_on(session, &cursor, &listing);
	reply_array(request->conn, 2);
	reply_bulk(request->conn, text, (size_t)snprintf(text, sizeof text, "%llu", (unsigned long long)cursor));
	reply_listing(request, &listing);
}

void command_dbsize(struct request *request)
{
	reply_integer(request->conn, (int64_t)data_count(request->data, request->conn->database));
}

static int take_key(const void *key, size_t length, const struct ww_session_found *found, void *context)
{
	(void)found;
	reply_bulk(context, key, length);
	return 1;
}

/* From a place taken at random on: what follows a gap is taken more often. */
void command_randomkey(struct request *request)
{
	struct ww_session *session = data_map(request->data, request->conn->database);
	uint64_t cursor = data_cursor(request->data, request->conn->database);
	int answer = 0;

	/* What lies before that place comes at last. */
	for (int i = 0; session && answer == 0 && i < 2; i++)
		do
			answer = ww_session_scan(session, &cursor, take_key, request->conn);
		while (answer == 0 && cursor != 0);
	if (answer == 0)
		reply_null(request->conn);
}

/* ---- Flushing */

/* Returns 0, or -1 after an answer. */
static int read_flush(struct request *request)
{
	if (request->count == 1 ||
	    (request->count == 2 && (request_is(request, 1, "SYNC") || request_is(request, 1, "ASYNC"))))
		return 0;
	request_syntax_error(request);
	return -1;
}

void command_flushdb(struct request *request)
{
	if (read_flush(request) == 0 && !request_failed(request, data_clear(request->data, request->conn->database)))
		reply_ok(request->conn);
}

void command_flushall(struct request *request)
{
	int error = WW_OK;

	if (read_flush(request) != 0)
		return;
	for (unsigned i = 0; i < data_databases(request->data) && error == WW_OK; i++)
		error = data_clear(request->data, i);
	if (!request_failed(request, error))
		reply_ok(request->conn);
}
