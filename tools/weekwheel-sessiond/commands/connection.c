/* Commands about the connection. */
#include <stdlib.h>

#include "tools/weekwheel-sessiond/commands/commands.h"
#include "tools/weekwheel-sessiond/commands/pubsub.h"
#include "tools/weekwheel-sessiond/commands/transaction.h"
#include "tools/weekwheel-sessiond/server/names.h"

void command_ping(struct request *request)
{
	struct conn *conn = request->conn;

	if (request->count > 2) {
		reply_error(conn, "ERR wrong number of arguments for 'ping' command");
	} else if (conn->protocol == 2 && conn_listens(conn)) {
		reply_text(conn, "*2\r\n$4\r\npong\r\n");
		reply_bulk(conn, request->count == 2 ? request->arg[1].data : "",
		    request->count == 2 ? request->arg[1].size : 0);
	} else if (request->count == 2) {
		reply_bulk(conn, request->arg[1].data, request->arg[1].size);
	} else {
		reply_text(conn, "+PONG\r\n");
	}
}

void command_echo(struct request *request)
{
	reply_bulk(request->conn, request->arg[1].data, request->arg[1].size);
}

void command_quit(struct request *request)
{
	reply_ok(request->conn);
	conn_end(request->conn);
}

void command_select(struct request *request)
{
	int64_t number;

	if (request_whole(request, 1, &number) != 0)
		return;
	if (number < INT32_MIN || number > INT32_MAX) {
		reply_error(
		    request->conn, "ERR value is out of range, value must between %d and %d", INT32_MIN, INT32_MAX);
		return;
	}
	if (number < 0 || (uint64_t)number >= data_databases(request->data)) {
		reply_error(request->conn, "ERR DB index is out of range");
		return;
	}
	if (request_failed(request, data_select(request->data, (unsigned)number)))
		return;
	request->conn->database = (unsigned)number;
	reply_ok(request->conn);
}

void command_reset(struct request *request)
{
	struct conn *conn = request->conn;

	transaction_leave(conn);
	if (pubsub_leave_some(conn)) {
		conn->is_again = 1;
		return;
	}
	conn->database = 0;
	conn->protocol = 2;
	conn->silence.is_off = conn->silence.skip = 0;
	(void)names_set(conn, &conn->names.client, NULL, 0);
	auth_begin(conn);
	reply_text(conn, "+RESET\r\n");
}

/* ---- Who it is */

/* What a login costs in a transaction, in keys that KEYS looks at. */
enum { LOGIN_LOOKS = 16 };

/* Returns 0, or -1 after an answer, or if the answer comes later. */
static int log_in(struct request *request, const struct resp_arg *user, const struct resp_arg *secret)
{
	enum access_answer answer;

	if (!request_may_look(request->conn, LOGIN_LOOKS))
		return -1;
	answer = auth_login(request->conn, user, secret);
	if (answer == ACCESS_WRONG)
		reply_error(request->conn, "WRONGPASS invalid username-password pair or user is disabled.");
	request->conn->is_again = answer == ACCESS_LATER;
	return answer == ACCESS_RIGHT ? 0 : -1;
}

void command_auth(struct request *request)
{
	struct conn *conn = request->conn;

	if (request->count > 3)
		request_syntax_error(request);
	else if (request->count == 2 && !access_is_needed(&conn->loop->server->access))
		reply_error(conn, "ERR AUTH <password> called without any password configured for the default user. "
		                  "Are you sure your configuration is correct?");
	else if (log_in(request, request->count == 3 ? &request->arg[1] : NULL, &request->arg[request->count - 1]) == 0)
		reply_ok(conn);
}

static void reply_hello(struct conn *conn)
{
	reply_map(conn, 7);
	reply_string(conn, "server");
	reply_string(conn, "redis");
	reply_string(conn, "version");
	reply_string(conn, REDIS_VERSION);
	reply_string(conn, "proto");
	reply_integer(conn, conn->protocol);
	reply_string(conn, "id");
	reply_integer(conn, (int64_t)conn->id);
	reply_string(conn, "mode");
	reply_string(conn, "standalone");
	reply_string(conn, "role");
	reply_string(conn, "master");
	reply_string(conn, "modules");
	reply_array(conn, 0);
}

static int give_name(struct request *request, const struct resp_arg *name)
{
	const char *why = names_set(request->conn, &request->conn->names.client, name->data, name->size);

	if (!why)
		return 0;
	reply_error(request->conn, "ERR Client names %s", why);
	return -1;
}

/* As in Redis, each option of HELLO is carried out before the next is read. Returns 0, or -1 as log_in. */
static int carry_out_options(struct request *request)
{
	for (size_t i = 2; i < request->count; i++) {
		const struct resp_arg *arg = &request->arg[i];
		size_t more = request->count - i - 1;
		if (request_is(request, i, "AUTH") && more >= 2) {
			if (log_in(request, &arg[1], &arg[2]) != 0)
				return -1;
			i += 2;
		} else if (request_is(request, i, "SETNAME") && more >= 1) {
			if (give_name(request, &arg[1]) != 0)
				return -1;
			i++;
		} else {
			reply_error(
			    request->conn, "ERR Syntax error in HELLO option '%.*s'", (int)arg->size, arg->data);
			return -1;
		}
	}
	return 0;
}

void command_hello(struct request *request)
{
	struct conn *conn = request->conn;
	int64_t version = conn->protocol;

	if (request->count > 1 && resp_whole(request->arg[1].data, request->arg[1].size, &version) != 0) {
		reply_error(conn, "ERR Protocol version is not an integer or out of range");
		return;
	}
	if (version < 2 || version > 3) {
		reply_error(conn, "NOPROTO unsupported protocol version");
		return;
	}
	if (carry_out_options(request) != 0)
		return;
	if (!conn->auth.is_known) {
		reply_error(conn,
		    "NOAUTH HELLO must be called with the client already authenticated, otherwise the HELLO AUTH <user> <pass> "
		    "option can be used to authenticate the client and select the RESP protocol version at the same time");
		return;
	}
	conn->protocol = (int)version;
	reply_hello(conn);
}
