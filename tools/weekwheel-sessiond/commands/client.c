/* CLIENT: what clients ask about themselves and others, and what they set. */
#include <stdlib.h>
#include <string.h>

#include "tools/service/net/address.h"
#include "tools/weekwheel-sessiond/commands/commands.h"
#include "tools/weekwheel-sessiond/commands/pubsub.h"
#include "tools/weekwheel-sessiond/server/mail.h"
#include "tools/weekwheel-sessiond/server/names.h"

/* ---- Names */

static void set_name(struct request *request)
{
	struct conn *conn = request->conn;

	const char *why = names_set(conn, &conn->names.client, request->arg[2].data, request->arg[2].size);

	if (why)
		reply_error(conn, "ERR Client names %s", why);
	else
		reply_ok(conn);
}

static void get_name(struct request *request)
{
	if (request->conn->names.client)
		reply_string(request->conn, request->conn->names.client);
	else
		reply_null(request->conn);
}

static void set_info(struct request *request)
{
	struct conn *conn = request->conn;
	const struct resp_arg *value = &request->arg[3];
	char **to = request_is(request, 2, "LIB-NAME")  ? &conn->names.library
	            : request_is(request, 2, "LIB-VER") ? &conn->names.version
	                                                : NULL;
	const char *why = to ? names_set(conn, to, value->data, value->size) : NULL;

	if (!to)
		reply_error(conn, "ERR Unrecognized option '%.*s'", (int)request->arg[2].size, request->arg[2].data);
	else if (why)
		reply_error(conn, "ERR %s %s", to == &conn->names.library ? "lib-name" : "lib-ver", why);
	else
		reply_ok(conn);
}

/* ---- Lists: the lock of the client's loop is held */

static void address_of(int fd, int is_peer, char text[ADDRESS_TEXT])
{
	struct sockaddr_storage address;
	socklen_t size = sizeof address;

	*text = 0;
	if ((is_peer ? getpeername(fd, (struct sockaddr *)&address, &size)
	             : getsockname(fd, (struct sockaddr *)&address, &size)) == 0 &&
	    (address.ss_family == AF_INET || address.ss_family == AF_INET6))
		(void)address_show((struct sockaddr *)&address, text);
}

static const char *kind_of(const struct conn *conn)
{
	return conn_listens(conn) ? "pubsub" : "normal";
}

static int show(struct buffer *out, const struct conn *conn, uint64_t now_ms)
{
	char peer[ADDRESS_TEXT];
	char local[ADDRESS_TEXT];
	const struct command_entry *last = conn->last;

	address_of(conn->stream.fd, 1, peer);
	address_of(conn->stream.fd, 0, local);
	return buffer_format(out,
	    "id=%llu addr=%s laddr=%s fd=%d name=%s age=%lld idle=%lld flags=%s db=%u sub=%u psub=%u ssub=%u "
	    "cmd=%s user=default resp=%d lib-name=%s lib-ver=%s\n",
	    (unsigned long long)conn->id, peer, local, conn->stream.fd, conn->names.client ? conn->names.client : "",
	    (long long)(now_ms - conn->since_ms) / 1000, (long long)(now_ms - conn->last_ms) / 1000,
	    *kind_of(conn) == 'p' ? "P" : "N", conn->database, conn->channels[PUBSUB_CHANNEL],
	    conn->channels[PUBSUB_PATTERN], conn->channels[PUBSUB_SHARD], last ? last->name : "NULL", conn->protocol,
	    conn->names.library ? conn->names.library : "", conn->names.version ? conn->names.version : "");
}

/* Selects the clients that LIST shows or KILL ends. */
struct filter {
	struct request *request;
	uint64_t id; /* 0: any */
	const struct resp_arg *address;
	const struct resp_arg *local;
	const struct resp_arg *kind;
	int skip_me;
};

static int is_text(const struct resp_arg *arg, const char *text)
{
	return arg->size == strlen(text) && memcmp(arg->data, text, arg->size) == 0;
}

/* Getting an address is a system call, which takes long for thousands of clients. */
static int is_at(const struct resp_arg *address, int fd, int is_peer)
{
	char text[ADDRESS_TEXT];

	if (!address)
		return 1;
	address_of(fd, is_peer, text);
	return is_text(address, text);
}

static int passes(const struct filter *filter, const struct conn *conn)
{
	/* A killed client is gone at once for all others, though its loop closes it a moment later. */
	return !(conn->is_killed && conn != filter->request->conn) && (!filter->id || filter->id == conn->id) &&
	       (!filter->kind || command_is_word(filter->kind, kind_of(conn))) &&
	       !(filter->skip_me && conn == filter->request->conn) && is_at(filter->address, conn->stream.fd, 1) &&
	       is_at(filter->local, conn->stream.fd, 0);
}

typedef void each_fn(struct conn *conn, void *context);

static void each(struct request *request, const struct filter *filter, each_fn *act, void *context)
{
	struct sessiond *server = request->conn->loop->server;

	for (unsigned i = 0; i < server->loop_count; i++) {
		struct loop *loop = &server->loop[i];
		struct conn *conn;
		pthread_mutex_lock(&loop->lock);
		LIST_FOREACH(conn, &loop->conns, next)
		if (passes(filter, conn))
			act(conn, context);
		pthread_mutex_unlock(&loop->lock);
	}
}

struct listed {
	struct buffer text;
	uint64_t now_ms;
};

/* Returns 0, or -1 after an answer. No client is a replica or a master. */
static int read_kind(struct request *request, size_t number, struct filter *filter)
{
	static const char *const kinds[] = {"NORMAL", "PUBSUB", "MASTER", "REPLICA", "SLAVE"};

	filter->kind = &request->arg[number];
	for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
		if (request_is(request, number, kinds[i]))
			return 0;
	reply_error(request->conn, "ERR Unknown client type '%.*s'", (int)filter->kind->size, filter->kind->data);
	return -1;
}

static void add_to_list(struct conn *conn, void *context)
{
	struct listed *listed = context;

	(void)show(&listed->text, conn, listed->now_ms);
}

/* What a client costs in a transaction, in keys that KEYS looks at: the system is asked for its address. */
enum { CLIENT_LOOKS = 4 };

/* Return 1 if the transaction may still look at all clients. */
static int may_look_at_all(struct request *request)
{
	return request_may_look(request->conn, CLIENT_LOOKS * request->conn->loop->server->clients);
}

static void reply_list(struct request *request, const struct filter *filter)
{
	struct listed listed = {.now_ms = uv_hrtime() / 1000000};

	if (!may_look_at_all(request))
		return;
	each(request, filter, add_to_list, &listed);
	reply_verbatim(request->conn, listed.text.data ? listed.text.data : "", listed.text.size);
	buffer_free(&listed.text);
}

static void list(struct request *request)
{
	struct filter filter = {.request = request};
	int64_t id;

	if (request->count == 4 && request_is(request, 2, "TYPE")) {
		if (read_kind(request, 3, &filter) != 0)
			return;
	} else if (request->count == 4 && request_is(request, 2, "ID")) {
		if (request_whole(request, 3, &id) != 0)
			return;
		filter.id = (uint64_t)id;
	} else if (request->count != 2) {
		request_syntax_error(request);
		return;
	}
	reply_list(request, &filter);
}

static void info(struct request *request)
{
	struct filter filter = {.request = request, .id = request->conn->id};

	reply_list(request, &filter);
}

struct killed {
	struct conn *by;
	int64_t count;
};

static void kill_one(struct conn *conn, void *context)
{
	struct killed *killed = context;

	killed->count++;
	/* A client that kills itself gets the answer first. It can send nothing more. */
	if (conn == killed->by) {
		conn_end(conn);
		return;
	}
	conn->is_killed = 1;
	mail_post(conn);
}

static int read_id(struct request *request, size_t number, struct filter *filter)
{
	int64_t id;

	if (resp_whole(request->arg[number].data, request->arg[number].size, &id) != 0 || id <= 0) {
		reply_error(request->conn, "ERR client-id should be greater than 0");
		return -1;
	}
	filter->id = (uint64_t)id;
	return 0;
}

/* Every client is listed as this user. */
static int read_user(struct request *request, size_t number)
{
	const struct resp_arg *user = &request->arg[number];

	if (is_text(user, "default"))
		return 0;
	reply_error(request->conn, "ERR No such user '%.*s'", (int)user->size, user->data);
	return -1;
}

/* Read a condition and its value. Returns 0, or -1 after an answer. */
static int read_condition(struct request *request, size_t i, struct filter *filter)
{
	int has_value = i + 1 < request->count;

	if (has_value && request_is(request, i, "ID"))
		return read_id(request, i + 1, filter);
	if (has_value && request_is(request, i, "TYPE"))
		return read_kind(request, i + 1, filter);
	if (has_value && request_is(request, i, "USER"))
		return read_user(request, i + 1);
	if (has_value && request_is(request, i, "ADDR")) {
		filter->address = &request->arg[i + 1];
	} else if (has_value && request_is(request, i, "LADDR")) {
		filter->local = &request->arg[i + 1];
	} else if (has_value && request_is(request, i, "SKIPME") &&
	           (request_is(request, i + 1, "YES") || request_is(request, i + 1, "NO"))) {
		filter->skip_me = request_is(request, i + 1, "YES");
	} else {
		request_syntax_error(request);
		return -1;
	}
	return 0;
}

static void kill_some(struct request *request)
{
	struct filter filter = {.request = request, .skip_me = request->count > 3};
	struct killed killed = {.by = request->conn};

	if (request->count == 3)
		filter.address = &request->arg[2];
	for (size_t i = 2; request->count > 3 && i < request->count; i += 2)
		if (read_condition(request, i, &filter) != 0)
			return;
	if (!may_look_at_all(request))
		return;
	each(request, &filter, kill_one, &killed);
	if (request->count > 3)
		reply_integer(request->conn, killed.count);
	else if (killed.count > 0)
		reply_ok(request->conn);
	else
		reply_error(request->conn, "ERR No such client");
}

/* ---- The rest */

static void get_id(struct request *request)
{
	reply_integer(request->conn, (int64_t)request->conn->id);
}

static void set_reply(struct request *request)
{
	struct conn *conn = request->conn;

	if (request_is(request, 2, "ON")) {
		conn->silence = (struct reply_silence){0};
		reply_ok(conn);
	} else if (request_is(request, 2, "OFF")) {
		conn->silence.is_off = 1;
	} else if (request_is(request, 2, "SKIP")) {
		conn->silence.skip = conn->silence.is_off ? 0 : 2;
	} else {
		request_syntax_error(request);
	}
}

static void on_or_off(struct request *request)
{
	if (request_is(request, 2, "ON") || request_is(request, 2, "OFF"))
		reply_ok(request->conn);
	else
		request_syntax_error(request);
}

static void get_redirection(struct request *request)
{
	reply_integer(request->conn, -1);
}

static const struct {
	const char *name;
	command_fn *run;
} words[] = {{"ID", get_id}, {"GETNAME", get_name}, {"SETNAME", set_name}, {"SETINFO", set_info}, {"LIST", list},
    {"INFO", info}, {"KILL", kill_some}, {"REPLY", set_reply}, {"NO-EVICT", on_or_off}, {"NO-TOUCH", on_or_off},
    {"GETREDIR", get_redirection}, {"HELP", request_help}};

void command_client(struct request *request)
{
	for (size_t i = 0; i < sizeof words / sizeof *words; i++)
		if (request_is(request, 1, words[i].name))
			words[i].run(request);
}
