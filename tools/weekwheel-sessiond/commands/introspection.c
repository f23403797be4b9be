/* COMMAND: describes the table of commands. */
#include <string.h>

#include "tools/weekwheel-sessiond/commands/commands.h"

/* A command's flags, and their names in Redis. */
static const struct {
	unsigned flag;
	const char *name;
} flags[] = {{COMMAND_WRITE, "write"}, {COMMAND_READONLY, "readonly"}, {COMMAND_DENYOOM, "denyoom"},
    {COMMAND_ADMIN, "admin"}, {COMMAND_PUBSUB, "pubsub"}, {COMMAND_NO_MULTI, "no_multi"}, {COMMAND_LOADING, "loading"},
    {COMMAND_STALE, "stale"}, {COMMAND_FAST, "fast"}, {COMMAND_NO_AUTH, "no_auth"}};

enum { FLAGS = sizeof flags / sizeof *flags };

/* To Redis "pubsub" is what the command is about; libraries look for their channels by it. */
static unsigned shown_flags(const struct command_entry *command)
{
	unsigned shown = command->flags & ~(unsigned)COMMAND_PUBSUB;

	if (strcmp(command->group, "pubsub") == 0 && !(command->flags & COMMAND_SUBCOMMANDS))
		shown |= COMMAND_PUBSUB;
	return shown;
}

static void reply_flags(struct conn *conn, const struct command_entry *command)
{
	unsigned shown = shown_flags(command);
	size_t count = 0;

	for (size_t i = 0; i < FLAGS; i++)
		count += (shown & flags[i].flag) != 0;
	reply_set(conn, count);
	for (size_t i = 0; i < FLAGS; i++) {
		if (!(shown & flags[i].flag))
			continue;
		reply_bytes(conn, "+", 1);
		reply_bytes(conn, flags[i].name, strlen(flags[i].name));
		reply_text(conn, "\r\n");
	}
}

/* Left out: categories of ACLs, tips, places of keys behind words, and subcommands. */
static void reply_info(struct conn *conn, const struct command_entry *command)
{
	if (!command) {
		reply_null(conn);
		return;
	}
	reply_array(conn, 10);
	reply_string(conn, command->name);
	reply_integer(conn, command->arity);
	reply_flags(conn, command);
	reply_integer(conn, command->first);
	reply_integer(conn, command->last);
	reply_integer(conn, command->step);
	reply_set(conn, 0);
	reply_array(conn, 0);
	reply_array(conn, 0);
	reply_array(conn, 0);
}

static size_t count_all(void)
{
	size_t count = 0;

	while (command_at(count))
		count++;
	return count;
}

static void reply_all(struct request *request)
{
	reply_array(request->conn, count_all());
	for (size_t i = 0; command_at(i); i++)
		reply_info(request->conn, command_at(i));
}

static void reply_some(struct request *request)
{
	if (request->count == 2) {
		reply_all(request);
		return;
	}
	reply_array(request->conn, request->count - 2);
	for (size_t i = 2; i < request->count; i++)
		reply_info(request->conn, command_find(&request->arg[i]));
}

static void reply_names(struct request *request)
{
	reply_array(request->conn, count_all());
	for (size_t i = 0; command_at(i); i++)
		reply_string(request->conn, command_at(i)->name);
}

static void reply_doc(struct conn *conn, const struct command_entry *command)
{
	reply_string(conn, command->name);
	reply_map(conn, 3);
	reply_string(conn, "summary");
	reply_string(conn, command->summary);
	reply_string(conn, "since");
	reply_string(conn, "1.0.0");
	reply_string(conn, "group");
	reply_string(conn, command->group);
}

static void reply_docs(struct request *request)
{
	size_t count = request->count == 2 ? count_all() : 0;

	for (size_t i = 2; i < request->count; i++)
		count += command_find(&request->arg[i]) != NULL;
	reply_map(request->conn, count);
	for (size_t i = 0; request->count == 2 && command_at(i); i++)
		reply_doc(request->conn, command_at(i));
	for (size_t i = 2; i < request->count; i++)
		if (command_find(&request->arg[i]))
			reply_doc(request->conn, command_find(&request->arg[i]));
}

static int has_its_word(const struct command_entry *command, const struct resp_arg *arg, size_t count)
{
	return !(command->flags & COMMAND_SUBCOMMANDS) || command_word(command, arg, count);
}

static void reply_keys(struct request *request)
{
	const struct command_entry *command = command_find(&request->arg[2]);
	size_t count = request->count - 2;
	size_t last;
	size_t first;

	if (!command || !has_its_word(command, &request->arg[2], count)) {
		reply_error(request->conn, "ERR Invalid command specified");
		return;
	}
	/* Channels are not keys. */
	if (command->first == 0 || strcmp(command->group, "pubsub") == 0) {
		reply_error(request->conn, "ERR The command has no key arguments");
		return;
	}
	if (!command_has_arity(command->arity, count)) {
		reply_error(request->conn, "ERR Invalid number of arguments specified for command");
		return;
	}
	first = (size_t)command->first;
	last = command->last < 0 ? count - 1 : (size_t)command->last;
	reply_array(request->conn, (last - first) / (size_t)command->step + 1);
	for (size_t i = first; i <= last; i += (size_t)command->step)
		reply_bulk(request->conn, request->arg[i + 2].data, request->arg[i + 2].size);
}

void command_command(struct request *request)
{
	if (request->count == 1)
		reply_all(request);
	else if (request_is(request, 1, "COUNT"))
		reply_integer(request->conn, (int64_t)count_all());
	else if (request_is(request, 1, "INFO"))
		reply_some(request);
	else if (request_is(request, 1, "LIST"))
		reply_names(request);
	else if (request_is(request, 1, "DOCS"))
		reply_docs(request);
	else if (request_is(request, 1, "GETKEYS"))
		reply_keys(request);
	else
		request_help(request);
}
