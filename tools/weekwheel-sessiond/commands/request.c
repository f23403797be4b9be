/* What the functions of commands share: their arguments, common refusals, and being called. */
#include "tools/weekwheel-sessiond/commands/request.h"

#include "tools/weekwheel-sessiond/server/bounds.h"

int request_is(const struct request *request, size_t number, const char *word)
{
	return command_is_word(&request->arg[number], word);
}

int request_whole(struct request *request, size_t number, int64_t *value)
{
	if (resp_whole(request->arg[number].data, request->arg[number].size, value) == 0)
		return 0;
	reply_error(request->conn, "ERR value is not an integer or out of range");
	return -1;
}

void request_syntax_error(struct request *request)
{
	reply_error(request->conn, "ERR syntax error");
}

int request_failed(struct request *request, int error)
{
	if (error == WW_OK)
		return 0;
	if (error == WW_ENOMEM || error == WW_ETOOBIG)
		reply_error(request->conn, "OOM command not allowed when used memory > 'maxmemory'.");
	else if (error == WW_EFULL)
		reply_error(request->conn, "ERR a command or transaction cannot change so many bytes at once");
	else if (error == WW_EINVAL)
		reply_error(request->conn, "ERR a key has at most 65535 bytes");
	else
		reply_error(request->conn, "ERR %s", ww_strerror(error));
	return 1;
}

/*
 * Thousands of clients may ask for much in one turn, and others must not wait for all of them. Nor may they take memory while
 * others that are closed still give theirs back.
 */
int request_waits(struct conn *conn)
{
	conn->loop->is_long |= bounds_are_passed(conn->loop->server, 0);
	conn->is_again = conn->loop->is_long && !conn->is_in_exec;
	return conn->is_again;
}

/* All keys at which the walks of a transaction may look: it cannot be divided, and all others wait for it. */
enum { EXEC_LOOKS = 65536 };
/* At least the cost of a short pattern for each key that a transaction may look at. */
enum { EXEC_STEPS = 32 << 20 };

void request_bound(struct conn *conn)
{
	conn->exec_looks = EXEC_LOOKS;
	conn->exec_bytes = REQUEST_BYTES;
	conn->exec_steps = 0;
	conn->exec_ns = 0;
}

int request_took_long(const struct conn *conn)
{
	return conn->is_in_exec && conn->exec_steps > EXEC_STEPS;
}

void request_refuse_long(struct conn *conn)
{
	reply_error(
	    conn, "ERR this looks at too many keys, channels or clients for a transaction: use it outside of MULTI");
}

int request_may_look(struct conn *conn, size_t looks)
{
	if (!conn->is_in_exec)
		return 1;
	if (looks > conn->exec_looks || request_took_long(conn)) {
		request_refuse_long(conn);
		return 0;
	}
	conn->exec_looks -= looks;
	return 1;
}

int request_may_copy(struct conn *conn, size_t bytes)
{
	if (!conn->is_in_exec)
		return 1;
	if (conn->exec_bytes == 0) {
		reply_error(conn, "ERR this copies too many bytes for a transaction: use it outside of MULTI");
		return 0;
	}
	conn->exec_bytes -= bytes < conn->exec_bytes ? bytes : conn->exec_bytes;
	return 1;
}

void request_call(struct conn *conn, const struct command_entry *command, const struct resp_arg *arg, size_t count)
{
	struct request request = {conn, conn->loop->server->data, command, arg, count};

	atomic_store_explicit(&conn->last, command, memory_order_relaxed);
	atomic_fetch_add_explicit(&conn->loop->commands, 1, memory_order_relaxed);
	command->run(&request);
}
