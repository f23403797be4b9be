/* Commands about keys, one or all. */
#include <string.h>

#include "tools/weekwheel-sessiond/commands/commands.h"
#include "tools/weekwheel-sessiond/commands/events.h"

void command_del(struct request *request)
{
	int64_t count = 0;

	for (size_t i = 1; i < request->count; i++) {
		struct data_key key = request_key(request, i);
		if (data_delete(request->data, &key)) {
			event_publish(EVENT_GENERIC, "del", &key);
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

/* Counts as a use of each key, for eviction. */
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
	struct data_entry entry;
	int result = data_inspect(request->data, &from, &entry, NULL, NULL) == 1;

	/* The journal gets the value with its new name. */
	if (result == 1 && entry.size >= REQUEST_LARGE && request_waits(request->conn))
		return 0;
	if (result == 1 && (is_same || (only_if_new && data_is_taken(request->data, &to)))) {
		if (only_if_new)
			reply_integer(request->conn, 0);
		else
			reply_ok(request->conn);
		return 0;
	}
	if (result == 1 && !request_may_copy(request->conn, entry.size))
		return 0;
	if (result == 1)
		result = data_rename(request->data, &from, &to);
	if (result == 0)
		reply_error(request->conn, "ERR no such key");
	else if (result < 0 && result != WW_EBACKWARDS)
		(void)request_failed(request, result);
	/* Its lifetime has ended meanwhile: the name is taken. */
	if (result == WW_EBACKWARDS && only_if_new) {
		reply_integer(request->conn, 0);
		return 0;
	}
	/* Answer as if it had been renamed and had then expired. */
	if (result == WW_EBACKWARDS) {
		(void)data_delete(request->data, &from);
		event_publish(EVENT_GENERIC, "del", &from);
		return 1;
	}
	if (result != 1)
		return 0;
	event_publish(EVENT_GENERIC, "rename_from", &from);
	event_publish(EVENT_GENERIC, "rename_to", &to);
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

/* ---- All keys: see listing.c and flush.c, too */

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

/* Its cost in a transaction, in keys that KEYS looks at. */
enum { RANDOM_LOOKS = 16 };

void command_randomkey(struct request *request)
{
	struct ww_session *session = data_map(request->data, request->conn->database);

	if (!request_may_look(request->conn, RANDOM_LOOKS))
		return;
	if (!session || ww_session_random(session, data_random(request->data), take_key, request->conn) != 1)
		reply_null(request->conn);
}
