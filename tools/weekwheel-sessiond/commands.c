/* The table of commands, and how one is carried out. */
#include "tools/weekwheel-sessiond/commands.h"

#include <string.h>
#include <strings.h>

enum {
	W = COMMAND_WRITE,
	R = COMMAND_READONLY,
	M = COMMAND_DENYOOM,
	F = COMMAND_FAST,
	ALL = COMMAND_ALL,
	NOAUTH = COMMAND_NO_AUTH,
	SUB = COMMAND_PUBSUB,
	ONCE = COMMAND_AT_ONCE,
	ADMIN = COMMAND_ADMIN,
	L = COMMAND_LOADING | COMMAND_STALE
};

/* clang-format off */
static const struct command_entry table[] = {
    {"get", 2, R | F, 1, 1, 1, command_get, "string", "Returns the value of a key."},
    {"set", -3, W | M, 1, 1, 1, command_set, "string", "Sets the value of a key, and how long it lives."},
    {"del", -2, W, 1, -1, 1, command_del, "generic", "Deletes keys."},
    {"expire", -3, W | F, 1, 1, 1, command_expire, "generic", "Lets a key expire in so many seconds."},
    {"ttl", 2, R | F, 1, 1, 1, command_ttl, "generic", "Returns the seconds that a key has left."},
    {"ping", -1, F | SUB, 0, 0, 0, command_ping, "connection", "Answers PONG."},
    {"info", -1, L, 0, 0, 0, command_info, "server", "Returns numbers of the server."},
};
/* clang-format on */

enum { COMMANDS = sizeof table / sizeof *table };

const struct command_entry *command_at(size_t number)
{
	return number < COMMANDS ? &table[number] : NULL;
}

const struct command_entry *command_find(const struct resp_arg *name)
{
	for (size_t i = 0; i < COMMANDS; i++)
		if (strlen(table[i].name) == name->size && strncasecmp(table[i].name, name->data, name->size) == 0)
			return &table[i];
	return NULL;
}

void command_stripes(
    const struct command_entry *command, const struct resp_arg *arg, size_t count, struct data_stripes *stripes)
{
	size_t last;

	if (command->flags & COMMAND_ALL)
		data_stripes_all(stripes);
	if (command->first == 0)
		return;
	last = command->last < 0 ? count + (size_t)(ptrdiff_t)command->last : (size_t)command->last;
	for (size_t i = (size_t)command->first; i <= last && i < count; i += (size_t)command->step)
		data_stripes_add(stripes, arg[i].data, arg[i].size);
}

void command_call(struct conn *conn, const struct command_entry *command, const struct resp_arg *arg, size_t count)
{
	struct request request = {conn, conn->loop->server->data, arg, count};

	conn->last = command;
	atomic_fetch_add_explicit(&conn->loop->commands, 1, memory_order_relaxed);
	command->run(&request);
}

/* With the stripes that it needs. */
static void run_locked(struct conn *conn, const struct command_entry *command, const struct resp_arg *arg, size_t count)
{
	struct data *data = conn->loop->server->data;
	struct data_stripes stripes = {0};

	if (command->first && command->first == command->last) {
		if (command->flags & COMMAND_WRITE) {
			unsigned stripe = data_lock_key(data, arg[1].data, arg[1].size);
			command_call(conn, command, arg, count);
			data_unlock_key(data, stripe);
		} else {
			int begun = data_read_begin(data, arg[1].data, arg[1].size);
			command_call(conn, command, arg, count);
			data_read_end(data, begun);
		}
		return;
	}
	if (!command->first && !(command->flags & COMMAND_ALL)) {
		command_call(conn, command, arg, count);
		return;
	}
	command_stripes(command, arg, count, &stripes);
	data_lock(data, &stripes);
	command_call(conn, command, arg, count);
	data_unlock(data, &stripes);
}

void command_carry_out(struct conn *conn, const struct resp_arg *arg, size_t count)
{
	const struct command_entry *command = command_find(&arg[0]);
	const char *refusal;

	if (!command) {
		reply_error(
		    conn, "ERR unknown command '%.*s'", (int)(arg[0].size > 128 ? 128 : arg[0].size), arg[0].data);
		return;
	}
	if (command->arity > 0 ? count != (size_t)command->arity : count < (size_t)-command->arity) {
		reply_error(conn, "ERR wrong number of arguments for '%s' command", command->name);
		return;
	}
	refusal = command->flags & COMMAND_WRITE ? data_refuses(conn->loop->server->data) : NULL;
	if (refusal) {
		reply_error(conn, "%s", refusal);
		return;
	}
	run_locked(conn, command, arg, count);
}

/* ---- What the files of commands share */

int request_is(const struct request *request, size_t number, const char *word)
{
	const struct resp_arg *arg = &request->arg[number];

	return strncasecmp(arg->data, word, arg->size) == 0 && word[arg->size] == 0;
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
	else if (error == WW_EINVAL)
		reply_error(request->conn, "ERR a key has at most 65535 bytes");
	else
		reply_error(request->conn, "ERR %s", ww_strerror(error));
	return 1;
}
