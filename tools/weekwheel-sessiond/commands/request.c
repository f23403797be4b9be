/* What the functions of commands share: their arguments, common refusals, and being called. */
#include "tools/weekwheel-sessiond/commands/request.h"

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

/* Thousands may ask for much in one turn, and others must not wait for all of them. */
int request_waits(struct conn *conn)
{
	conn->is_again = conn->loop->is_long && !conn->is_in_exec;
	return conn->is_again;
}

void request_call(struct conn *conn, const struct command_entry *command, const struct resp_arg *arg, size_t count)
{
	struct request request = {conn, conn->loop->server->data, arg, count};

	atomic_store_explicit(&conn->last, command, memory_order_relaxed);
	atomic_fetch_add_explicit(&conn->loop->commands, 1, memory_order_relaxed);
	command->run(&request);
}
