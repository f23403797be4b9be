/*
 * MULTI keeps copies of commands. EXEC takes the stripes of all their keys and of the watched keys, compares the
 * versions of the watched keys, and runs the commands. Meanwhile nobody else changes or reads a part.
 */
#include "tools/weekwheel-sessiond/commands/transaction.h"

#include <stdlib.h>
#include <string.h>

#include "tools/weekwheel-sessiond/commands/events.h"
#include "tools/weekwheel-sessiond/server/bounds.h"

/* Before a key is added, it is compared with this many of the keys watched last. */
enum { LOOKED_AT = 16 };
/* EXEC counts watched keys and those of its commands together, and must have room for the latter. */
enum { WATCHED = REQUEST_NAMES / 2 };
/* What a command without keys counts if it tells of the server, such as INFO, besides its words. */
enum { TELLING_NAMES = 15 };

/* A command with copies of its arguments, whose bytes follow. Until EXEC each has their place in the block for its data. */
struct queued_command {
	const struct command_entry *command;
	size_t size; /* of the block */
	size_t count;
	struct resp_arg arg[];
};

/* The commands are one after the other in the client's `queued`. */
struct command_queue {
	size_t count;
	size_t names;   /* of all commands, with the words of those that have none */
	size_t largest; /* the bytes of one */
	unsigned flags; /* of all commands */
	int adds;       /* one of them writes what needs room */
	int is_spoilt;
};

struct watched {
	struct watched *next;
	uint64_t version; /* 0: there was none */
	struct data_key key;
	char bytes[];
};

/* ---- The queue */

/* The block of a command: the next one is aligned, too. */
static size_t block_size(const struct resp_arg *arg, size_t count)
{
	size_t size = sizeof(struct queued_command) + count * sizeof *arg;

	for (size_t i = 0; i < count; i++)
		size += arg[i].size;
	return (size + sizeof(size_t) - 1) / sizeof(size_t) * sizeof(size_t);
}

/* Returns 0, or -1 without memory. */
static int copy_command(
    struct buffer *to, const struct command_entry *command, const struct resp_arg *arg, size_t count)
{
	size_t size = block_size(arg, count);
	size_t at = sizeof(struct queued_command) + count * sizeof *arg;
	struct queued_command *queued;

	if (buffer_reserve(to, size) != 0)
		return -1;
	queued = (struct queued_command *)(void *)(to->data + to->size);
	queued->command = command;
	queued->size = size;
	queued->count = count;
	for (size_t i = 0; i < count; i++) {
		memcpy((char *)queued + at, arg[i].data, arg[i].size);
		queued->arg[i] = (struct resp_arg){(const char *)(uintptr_t)at, arg[i].size};
		at += arg[i].size;
	}
	to->size += size;
	return 0;
}

/* The first command, or the one behind another; NULL: there is none. */
static struct queued_command *next_queued(const struct conn *conn, struct queued_command *queued)
{
	size_t at = queued ? (size_t)((char *)queued - conn->queued.data) + queued->size : 0;

	return at < conn->queued.size ? (struct queued_command *)(void *)(conn->queued.data + at) : NULL;
}

static size_t weigh(const struct command_entry *command, size_t count)
{
	size_t names = command_weight(command, count);
	int tells = !(command->flags & (COMMAND_FAST | COMMAND_WRITE | COMMAND_READONLY));

	return names > 0 ? names : count + (tells ? TELLING_NAMES : 0);
}

void transaction_queue(struct conn *conn, const struct command_entry *command, const struct resp_arg *arg, size_t count)
{
	struct command_queue *queue = conn->queue;
	size_t before = conn->queued.size;

	/* After an error EXEC refuses all, so nothing need be kept. */
	if (queue->is_spoilt || copy_command(&conn->queued, command, arg, count) != 0) {
		queue->is_spoilt = 1;
	} else {
		queue->count++;
		queue->names += weigh(command, count);
		if (conn->queued.size - before > queue->largest)
			queue->largest = conn->queued.size - before;
		queue->flags |= command->flags;
		queue->adds |= command_adds(command);
	}
	reply_text(conn, "+QUEUED\r\n");
}

void transaction_spoil(struct conn *conn)
{
	if (conn->queue)
		conn->queue->is_spoilt = 1;
}

static void drop_queue(struct conn *conn)
{
	free(conn->queue);
	conn->queue = NULL;
	buffer_free(&conn->queued);
}

static void unwatch(struct conn *conn)
{
	struct watched *next;

	for (struct watched *watched = conn->watched; watched; watched = next) {
		next = watched->next;
		bounds_count_out(conn, sizeof *watched + watched->key.length);
		free(watched);
	}
	conn->watched = NULL;
	conn->watched_count = 0;
}

void transaction_leave(struct conn *conn)
{
	drop_queue(conn);
	unwatch(conn);
}

/* ---- Commands */

void command_multi(struct request *request)
{
	struct conn *conn = request->conn;

	if (conn->queue) {
		reply_error(conn, "ERR MULTI calls can not be nested");
		return;
	}
	conn->queue = calloc(1, sizeof *conn->queue);
	if (!conn->queue) {
		(void)request_failed(request, WW_ENOMEM);
		return;
	}
	reply_ok(conn);
}

void command_discard(struct request *request)
{
	if (!request->conn->queue) {
		reply_error(request->conn, "ERR DISCARD without MULTI");
		return;
	}
	transaction_leave(request->conn);
	reply_ok(request->conn);
}

static uint64_t version_of(struct data *data, const struct data_key *key)
{
	struct data_entry entry;

	return data_inspect(data, key, &entry, NULL, NULL) == 1 ? entry.version : 0;
}

/*
 * A key may be watched twice: then EXEC compares both versions. The search only keeps a loop over a few keys from
 * piling up.
 */
static int is_watched(const struct conn *conn, const struct data_key *key)
{
	const struct watched *watched = conn->watched;

	for (int i = 0; watched && i < LOOKED_AT; watched = watched->next, i++)
		if (watched->key.database == key->database && watched->key.length == key->length &&
		    memcmp(watched->bytes, key->bytes, key->length) == 0)
			return 1;
	return 0;
}

static int watch(struct request *request, const struct data_key *key)
{
	struct watched *watched;

	if (is_watched(request->conn, key))
		return 0;
	watched = malloc(sizeof *watched + key->length);
	if (!watched)
		return -1;
	memcpy(watched->bytes, key->bytes, key->length);
	watched->key = (struct data_key){key->database, watched->bytes, key->length};
	watched->version = version_of(request->data, key);
	watched->next = request->conn->watched;
	request->conn->watched = watched;
	request->conn->watched_count++;
	bounds_count(request->conn, sizeof *watched + key->length);
	return 0;
}

void command_watch(struct request *request)
{
	if (request->conn->queue) {
		reply_error(request->conn, "ERR WATCH inside MULTI is not allowed");
		return;
	}
	if (request->conn->watched_count + request->count - 1 > WATCHED) {
		reply_error(request->conn, "ERR more than 50000 watched keys: use EXEC or UNWATCH before");
		return;
	}
	for (size_t i = 1; i < request->count; i++) {
		struct data_key key = request_key(request, i);
		if (watch(request, &key) != 0) {
			(void)request_failed(request, WW_ENOMEM);
			return;
		}
	}
	reply_ok(request->conn);
}

void command_unwatch(struct request *request)
{
	unwatch(request->conn);
	reply_ok(request->conn);
}

/* ---- EXEC */

/* The block stays where it is from now on. */
static void find_arguments(const struct conn *conn)
{
	for (struct queued_command *queued = next_queued(conn, NULL); queued; queued = next_queued(conn, queued))
		for (size_t i = 0; i < queued->count; i++)
			queued->arg[i].data = (char *)queued + (uintptr_t)queued->arg[i].data;
}

static void find_stripes(const struct conn *conn, struct data_stripes *stripes)
{
	for (struct queued_command *queued = next_queued(conn, NULL); queued; queued = next_queued(conn, queued))
		command_stripes(queued->command, queued->arg, queued->count, stripes);
	for (const struct watched *watched = conn->watched; watched; watched = watched->next)
		data_stripes_add(stripes, watched->key.bytes, watched->key.length);
}

static int is_unchanged(struct data *data, const struct conn *conn)
{
	for (const struct watched *watched = conn->watched; watched; watched = watched->next)
		if (version_of(data, &watched->key) != watched->version)
			return 0;
	return 1;
}

/* Commands may change the queue and the watched keys. RESET would, but is never queued. */
static void run_queue(struct conn *conn)
{
	struct command_queue *queue = conn->queue;

	conn->queue = NULL;
	request_bound(conn);
	conn->is_in_exec = 1;
	reply_array(conn, queue->count);
	for (struct queued_command *queued = next_queued(conn, NULL); queued; queued = next_queued(conn, queued))
		request_call(conn, queued->command, queued->arg, queued->count);
	conn->is_in_exec = 0;
	conn->queue = queue;
}

/* None of it is carried out. */
static void discard(struct conn *conn, const char *why)
{
	reply_error(conn, "EXECABORT Transaction discarded because of: %s", why);
	transaction_leave(conn);
}

/* Return how many keys FLUSHALL and FLUSHDB could delete. SELECT may choose any database. */
static uint64_t count_flushed(const struct request *request)
{
	const struct conn *conn = request->conn;
	int is_all = 0;
	uint64_t keys = 0;

	for (struct queued_command *queued = next_queued(conn, NULL); queued; queued = next_queued(conn, queued))
		is_all |= queued->command->run == command_flushall || queued->command->flags & COMMAND_SELECTS;
	for (unsigned i = 0; i < data_databases(request->data); i++)
		if (is_all || i == conn->database)
			keys += data_count(request->data, i);
	return keys;
}

/* Follow a SELECT. Other commands change nothing, nor does a SELECT that will fail. */
static void follow_select(struct data *data, const struct queued_command *queued, unsigned *database)
{
	int64_t number;

	if (queued->command->flags & COMMAND_SELECTS &&
	    resp_whole(queued->arg[1].data, queued->arg[1].size, &number) == 0 && number >= 0 &&
	    (uint64_t)number < data_databases(data))
		*database = (unsigned)number;
}

static int have_long_events(const struct request *request)
{
	const struct conn *conn = request->conn;
	struct events_weight weight = {0};
	unsigned database = conn->database;
	int are_long = 0;

	for (struct queued_command *queued = next_queued(conn, NULL); queued && !are_long;
	     queued = next_queued(conn, queued)) {
		follow_select(request->data, queued, &database);
		are_long = events_take_long(&weight, database, queued->command, queued->arg, queued->count);
	}
	return are_long;
}

/* Why the transaction is refused; NULL if it is not. */
static const char *find_obstacle(const struct request *request)
{
	unsigned flags = request->conn->queue->flags;

	if (request->conn->queue->names + request->conn->watched_count > REQUEST_NAMES)
		return "more than 100000 commands, keys and channels, with the watched ones, or 33333 that set or subscribe: use "
		       "several transactions";
	if (request->conn->queued.size - request->conn->queue->largest > REQUEST_BYTES)
		return "more than 32 MiB of commands besides the largest: use several transactions";
	/* Only these two take all stripes. */
	if (flags & COMMAND_ALL && count_flushed(request) > REQUEST_NAMES)
		return "FLUSHALL and FLUSHDB delete too many keys for a transaction: use them outside of MULTI";
	if (flags & COMMAND_WRITE && have_long_events(request))
		return EVENTS_LONG;
	/* The journal may have become full since they were queued. */
	return flags & COMMAND_WRITE ? data_refuses(request->data, !request->conn->queue->adds) : NULL;
}

void command_exec(struct request *request)
{
	struct conn *conn = request->conn;
	struct data_stripes stripes = {0};
	const char *why;

	if (!conn->queue) {
		reply_error(conn, "ERR EXEC without MULTI");
		return;
	}
	if (conn->queue->is_spoilt) {
		reply_error(conn, "EXECABORT Transaction discarded because of previous errors.");
		transaction_leave(conn);
		return;
	}
	if (conn->queue->count >= REQUEST_MANY && request_waits(conn))
		return;
	find_arguments(conn);
	why = find_obstacle(request);
	if (why) {
		discard(conn, why);
		return;
	}
	find_stripes(conn, &stripes);
	data_lock(request->data, &stripes);
	if (is_unchanged(request->data, conn)) {
		data_begin(request->data);
		run_queue(conn);
		data_commit(request->data);
	} else {
		reply_null_array(conn);
	}
	data_unlock(request->data, &stripes);
	transaction_leave(conn);
}
