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
			event_tell(EVENT_GENERIC, "del", &key);
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
	if (result == 1)
		result = data_rename(request->data, &from, &to);
	if (result == 0)
		reply_error(request->conn, "ERR no such key");
	else if (result < 0 && result != WW_EBACKWARDS)
		(void)request_failed(request, result);
	/* Its lifetime has ended since it was looked at: the name is taken. */
	if (result == WW_EBACKWARDS && only_if_new) {
		reply_integer(request->conn, 0);
		return 0;
	}
	/* As if it had been renamed, and had ended. */
	if (result == WW_EBACKWARDS) {
		(void)data_delete(request->data, &from);
		event_tell(EVENT_GENERIC, "del", &from);
		return 1;
	}
	if (result != 1)
		return 0;
	event_tell(EVENT_GENERIC, "rename_from", &from);
	event_tell(EVENT_GENERIC, "rename_to", &to);
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

/* So many keys are passed over at most. */
enum { PASSED = 64 };

struct random_key {
	struct conn *conn;
	uint64_t passes; /* before the one that is taken */
};

static int take_key(const void *key, size_t length, const struct ww_session_found *found, void *context)
{
	struct random_key *random = context;

	(void)found;
	if (random->passes-- > 0)
		return 0;
	reply_bulk(random->conn, key, length);
	return 1;
}

/* A table that had many keys once takes many steps: then those behind in the transaction may look at fewer. */
static void pass(struct conn *conn)
{
	conn->exec_looks -= conn->exec_looks > 0;
}

/*
 * From a place taken at random on, and then some keys further: each can be taken, wherever it lies. Of few keys each is
 * taken as often; of many, what follows a gap is taken more often.
 */
static void reply_random(struct request *request)
{
	struct ww_session *session = data_map(request->data, request->conn->database);
	uint64_t count = data_count(request->data, request->conn->database);
	uint64_t cursor = count > PASSED ? data_cursor(request->data, request->conn->database) : 0;
	struct random_key random = {
	    request->conn, data_random(request->data) % (count > PASSED ? PASSED : count + !count)};
	int answer = 0;

	/* What lies before that place comes then. At last, when keys have gone meanwhile, the first. */
	for (int i = 0; session && answer == 0 && i < 3; i++) {
		random.passes = i < 2 ? random.passes : 0;
		do {
			answer = ww_session_scan(session, &cursor, take_key, &random);
			pass(request->conn);
		} while (answer == 0 && cursor != 0);
	}
	if (answer == 0)
		reply_null(request->conn);
}

void command_randomkey(struct request *request)
{
	if (request_may_look(request->conn, PASSED / 4))
		reply_random(request);
}
