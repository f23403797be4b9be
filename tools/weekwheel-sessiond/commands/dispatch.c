/* Carries out a command: refuses it, queues it for EXEC, or calls its function with the stripes of its keys held. */
#include "tools/weekwheel-sessiond/commands/commands.h"
#include "tools/weekwheel-sessiond/commands/refuse.h"
#include "tools/weekwheel-sessiond/commands/transaction.h"

int command_is_short(const struct command_entry *command)
{
	return command->first == 1 && command->last == 1 && command->run != command_append;
}

/* Look at one key. */
static void run_reader(struct conn *conn, const struct command_entry *command, const struct resp_arg *arg, size_t count)
{
	struct data *data = conn->loop->server->data;
	size_t before = conn->stream.out.size;
	struct data_reading reading;

	do {
		conn->stream.out.size = before;
		conn->is_again = 0;
		data_read_begin(data, arg[1].data, arg[1].size, &reading);
		request_call(conn, command, arg, count);
	} while (data_read_end(data, &reading) && conn->life < CONN_DEAD);
}

/* With the stripes that it needs. */
static void run_locked(struct conn *conn, const struct command_entry *command, const struct resp_arg *arg, size_t count)
{
	struct data *data = conn->loop->server->data;
	struct data_stripes stripes = {0};

	if (command->first && command->first == command->last) {
		if (command->flags & COMMAND_WRITE) {
			unsigned stripe = data_lock_key(data, arg[1].data, arg[1].size);
			request_call(conn, command, arg, count);
			data_unlock_key(data, stripe);
		} else if (command->flags & COMMAND_READONLY) {
			run_reader(conn, command, arg, count);
		} else {
			request_call(conn, command, arg, count);
		}
		return;
	}
	if (!command->first && !(command->flags & COMMAND_ALL)) {
		request_call(conn, command, arg, count);
		return;
	}
	command_stripes(command, arg, count, &stripes);
	data_lock(data, &stripes);
	data_begin(data);
	request_call(conn, command, arg, count);
	data_commit(data);
	data_unlock(data, &stripes);
}

void command_carry_out(struct conn *conn, const struct resp_arg *arg, size_t count)
{
	const struct command_entry *command = command_find(&arg[0]);

	if (!command) {
		refuse_unknown(conn, arg, count);
		transaction_spoil(conn);
	} else if (refuse_command(conn, command, arg, count)) {
		return;
	} else if (conn->queue && !(command->flags & COMMAND_AT_ONCE)) {
		transaction_queue(conn, command, arg, count);
	} else if (count < REQUEST_MANY || !request_waits(conn)) {
		run_locked(conn, command, arg, count);
	}
}
