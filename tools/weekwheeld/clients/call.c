/*
 * Takes commands through their steps: prepare, run, answer. With a store of its own all three follow one another.
 * With a shared store, a task (task.c) runs calls of one connection, which carries out nothing else until they are
 * answered.
 */
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "tools/weekwheeld/clients/call.h"

/* The most bytes of bodies that go to a shared store in one task, but for the last one's. */
enum { BODIES_MAX = 1024 * 1024 };

/* No job has this id. */
#define NO_JOB (UINT64_MAX >> 1)

/* Some answers do not depend on the write under way. */
static int depends_on_write(const struct command *command)
{
	switch (command->verb) {
	case VERB_UNKNOWN:
	case VERB_USE:
	case VERB_WATCH:
	case VERB_IGNORE:
	case VERB_LIST_TUBE_USED:
	case VERB_LIST_TUBES_WATCHED:
	case VERB_AUTH:
	case VERB_HEADERS:
	case VERB_CODE:
		return 0;
	default:
		return command->refusal == REFUSAL_NONE;
	}
}

static const char *const refusals[] = {
    [REFUSAL_BAD_FORMAT] = "BAD_FORMAT\r\n",
    [REFUSAL_UNKNOWN] = "UNKNOWN_COMMAND\r\n",
    [REFUSAL_CRLF] = "EXPECTED_CRLF\r\n",
    [REFUSAL_TOO_BIG] = "JOB_TOO_BIG\r\n",
    [REFUSAL_DENIED] = "DENIED\r\n",
    [REFUSAL_MEMORY] = "OUT_OF_MEMORY\r\n",
};

static struct ww_job_ref command_job(const struct connection *connection, const struct command *command)
{
	if (command->verb < VERB_OWN)
		return (struct ww_job_ref){.id = command->id};
	return (struct ww_job_ref){
	    .id = command->id,
	    .tube = connection->used->name,
	    .key = command->own.key,
	    .key_length = command->own.key_length,
	    .version = command->own.job.version,
	};
}

/* The members that the store fills are left as they are. */
static void call_init(struct call *call, struct connection *connection, const struct command *command)
{
	call->task.ran = 0;
	call->connection = connection;
	call->command = command;
	call->text = NULL;
	call->result = WW_OK;
	call->is_asking = 1;
	call->used = connection->used->name;
	call->token = 0;
	call->created = 0;
	call->number = 0;
	call->body = NULL;
	call->made = (struct buffer){0};
	call->who = connection->login.who.token;
	call->tokens = NULL;
	if (command->refusal == REFUSAL_NONE)
		call->job = command_job(connection, command);
}

/* A line that is no verb, and is refused, has none. */
static const struct steps *steps_of(const struct connection *connection, enum verb verb)
{
	static const struct steps none = {NULL, NULL, NULL, NULL};
	const struct steps *steps = connection->server->clients->steps[verb];

	return steps ? steps : &none;
}

/* Returns 1 if the store has to be called. */
static int call_prepare(struct call *call)
{
	const struct command *command = call->command;
	const struct steps *steps = steps_of(call->connection, command->verb);

	if (command->refusal != REFUSAL_NONE) {
		call->text = refusals[command->refusal];
		return 0;
	}
	return !steps->prepare || steps->prepare(call);
}

/* `start`: where the answer begins. A step may have answered already. */
static void call_answer(struct call *call, size_t start)
{
	struct connection *connection = call->connection;
	void (*answer)(struct call * call) = steps_of(connection, call->command->verb)->answer;

	if (call->text)
		answer_text(connection, call->text);
	else if (answer)
		answer(call);
	/* waiting_give has noted its answer already. */
	if (connection->answer_count == 0 ||
	    connection->answers[connection->answer_count - 1].end != connection->stream.out.size)
		answer_end(connection, start, depends_on_write(call->command));
}

/*
 * Some commands name a job in whose tube the client needs a right. Without it, the command runs for a job that never
 * exists, so that its answer does not reveal which jobs there are.
 */
static void call_guard(struct call *call)
{
	int error = WW_OK;

	if (call->is_asking && call->command->guard)
		error = auth_may(call_jobs(call), call->who, call->command->guard, call->command->id);
	if (error == WW_ENOTFOUND) {
		if (call->command != &call->copy)
			call->copy = *call->command;
		call->command = &call->copy;
		call->copy.id = call->job.id = NO_JOB;
	} else if (error != WW_OK) {
		call->is_asking = 0;
		call->result = error;
		call->text = "INTERNAL_ERROR\r\n";
	}
}

int call_begin(struct call *call)
{
	struct server *server = call->connection->server;

	return server->is_shared ? WW_OK : turn_begin(server);
}

/* Everything in place. */
static void call_now(struct connection *connection, const struct command *command)
{
	static struct call call;
	size_t start = connection->stream.out.size;
	void (*run)(struct call * call) = steps_of(connection, command->verb)->run;

	call_init(&call, connection, command);
	call.is_asking = call_prepare(&call) && run;
	call_guard(&call);
	if (call.is_asking)
		run(&call);
	call_answer(&call, start);
}

/* ---- A shared store */

/*
 * Copy the command and its body: the parser goes on. The call has less memory than its struct says if the verb is not
 * one of ours.
 */
static struct call *call_copy(struct connection *connection, const struct command *command)
{
	size_t size = command->verb < VERB_OWN ? offsetof(struct command, own) : sizeof *command;
	size_t head = offsetof(struct call, copy) + size;
	size_t body = 0;
	char *bytes;

	if (protocol_has_body(command->verb))
		body = command->refusal == REFUSAL_NONE ? command->body_length : 0;
	bytes = malloc(head + body);
	if (!bytes)
		return NULL;
	memcpy(bytes + offsetof(struct call, copy), command, size);
	if (body > 0)
		memcpy(bytes + head, command->body, body);
	struct call *call = (struct call *)bytes;
	call->copy.body = bytes + head;
	call->size = body;
	call->takes = head + body;
	buffer_count(call->takes);
	connection->server->bounds.call_bytes += call->takes;
	call_init(call, connection, &call->copy);
	if (command->guard)
		call->tokens = tokens_hold(connection->login.who.tokens);
	return call;
}

static void call_free(struct call *call)
{
	buffer_free(&call->made);
	buffer_count_out(call->takes);
	call->connection->server->bounds.call_bytes -= call->takes;
	tokens_free(call->tokens);
	free(call);
}

/* In a thread. */
static void calls_run(struct task *task)
{
	struct call *first = (struct call *)task;
	const struct steps *steps = steps_of(first->connection, first->command->verb);

	for (struct call *call = first; call; call = STAILQ_NEXT(call, following))
		call_guard(call);
	if (steps->run_all && STAILQ_NEXT(first, following))
		steps->run_all(first);
	else if (first->is_asking)
		steps->run(first);
}

static void calls_done(struct task *task)
{
	struct connection *connection = ((struct call *)task)->connection;
	struct call *call;

	while ((call = STAILQ_FIRST(&connection->calls)) != NULL) {
		STAILQ_REMOVE_HEAD(&connection->calls, following);
		call_answer(call, connection->stream.out.size);
		call_free(call);
	}
	connection_done(connection);
}

/* One call of the store for one job. */
static int is_short(enum verb verb)
{
	switch (verb) {
	case VERB_PUT:
	case VERB_PUT_KEY:
	case VERB_PUT_AT:
	case VERB_DELETE:
	case VERB_RELEASE:
	case VERB_BURY:
	case VERB_TOUCH:
	case VERB_PEEK:
		return 1;
	default:
		return 0;
	}
}

/* They ask about all tubes, or all jobs. */
static int is_heavy(enum verb verb)
{
	return verb == VERB_STATS || verb == VERB_LIST_TUBES || verb == VERB_FORECAST;
}

void call_start(struct connection *connection)
{
	struct call *first = STAILQ_FIRST(&connection->calls);
	struct call *call;

	if (!first || connection->is_busy)
		return;
	/* What is said if the server ends before the store is asked. */
	STAILQ_FOREACH(call, &connection->calls, following)
	if (call->is_asking)
		call->result = call->ended = WW_ECLOSED;
	first->task.run = calls_run;
	first->task.done = calls_done;
	connection->is_busy = 1;
	if (is_short(first->command->verb) && !STAILQ_NEXT(first, following))
		task_start_short(connection->server, &first->task);
	else if (is_heavy(first->command->verb))
		task_start_heavy(connection->server, &first->task);
	else
		task_start(connection->server, &first->task);
}

int call_joins(const struct connection *connection, const char *data, size_t size)
{
	const struct call *first = STAILQ_FIRST(&connection->calls);
	const char *name;

	if (!first)
		return 1;
	name = protocol_verb_name(first->command->verb);
	return steps_of(connection, first->command->verb)->run_all && connection->call_count < CALLS_MAX &&
	       connection->call_bytes < BODIES_MAX && size >= strlen(name) && memcmp(data, name, strlen(name)) == 0;
}

static void call_add(struct connection *connection, struct call *call)
{
	if (STAILQ_EMPTY(&connection->calls))
		connection->call_count = connection->call_bytes = 0;
	STAILQ_INSERT_TAIL(&connection->calls, call, following);
	connection->call_count++;
	connection->call_bytes += call->size;
}

static void call_later(struct connection *connection, const struct command *command)
{
	struct call *call = call_copy(connection, command);

	if (!call) {
		/* Answers of commands before this one may still be missing, so it cannot have one. */
		server_note(connection->server, "no memory for a command: its connection is closed");
		connection->is_lost = 1;
		connection_to_flush(connection);
		return;
	}
	call->is_asking = call_prepare(call);
	call_add(connection, call);
}

/* There is no room for it beside what waits for the store. */
static void call_refused(struct connection *connection, const struct command *command)
{
	static struct command refused;

	refused = *command;
	refused.refusal = REFUSAL_MEMORY;
	if (STAILQ_EMPTY(&connection->calls))
		call_now(connection, &refused);
	else
		call_later(connection, &refused);
}

/* ---- All */

void command_run(struct connection *connection, const struct command *command)
{
	struct server *server = connection->server;
	int is_later =
	    server->is_shared && command->refusal == REFUSAL_NONE && steps_of(connection, command->verb)->run;

	if (command->refusal != REFUSAL_BAD_FORMAT && command->refusal != REFUSAL_UNKNOWN &&
	    command->refusal != REFUSAL_DENIED)
		server->clients->commands[command->verb]++;
	if (is_later && !bounds_call(server, command->body_length))
		call_refused(connection, command);
	else if (is_later || !STAILQ_EMPTY(&connection->calls))
		call_later(connection, command);
	else
		call_now(connection, command);
}
