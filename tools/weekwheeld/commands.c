/* The commands of beanstalkd. */
#include <string.h>

#include "tools/weekwheeld/server.h"

static int is_of_write(const struct command *command)
{
	switch (command->verb) {
	case VERB_UNKNOWN:
	case VERB_USE:
	case VERB_WATCH:
	case VERB_IGNORE:
	case VERB_LIST_TUBE_USED:
	case VERB_LIST_TUBES_WATCHED:
		return 0;
	default:
		return command->refusal == REFUSAL_NONE;
	}
}

void command_put(struct connection *connection, const struct command *command, struct ww_job_spec *spec)
{
	struct server *server = connection->server;
	uint64_t id;
	int result;

	if (!connection->is_producer) {
		connection->is_producer = 1;
		server->producers++;
	}
	if (server->is_draining) {
		answer_text(connection, "DRAINING\r\n");
		return;
	}
	if (!push_takes(server, connection->used->name, command->body, command->body_length)) {
		answer_text(connection, "BAD_FORMAT\r\n");
		return;
	}
	spec->tube = connection->used->name;
	spec->body = command->body;
	spec->body_length = command->body_length;
	spec->due = command->delay;
	spec->run = command->run;
	spec->priority = command->priority;
	result = turn_begin(server);
	if (result == WW_OK)
		result = ww_jobs_put(server->jobs, spec, &id, NULL);
	if (result < 0) {
		answer_error(connection, result);
		return;
	}
	answer_format(connection, "%s %llu\r\n", result ? "REPLACED" : "INSERTED", (unsigned long long)id);
}

static void put(struct connection *connection, const struct command *command)
{
	struct ww_job_spec spec;

	(void)ww_job_spec_default(&spec);
	command_put(connection, command, &spec);
}

void command_found(struct connection *connection, int error, const struct ww_job_info *info, void *body)
{
	if (error < 0) {
		answer_error(connection, error);
		return;
	}
	answer_format(connection, "FOUND %llu %zu\r\n", (unsigned long long)info->id, info->body_length);
	answer_bytes(connection, body, info->body_length);
	answer_text(connection, "\r\n");
	ww_jobs_free(connection->server->jobs, body);
}

static void peek(struct connection *connection, const struct command *command)
{
	struct ww_job_ref job = {.id = command->id};
	struct ww_job_info info;
	void *body = NULL;
	int error = command->id ? ww_jobs_peek(connection->server->jobs, &job, &info, &body) : WW_ENOTFOUND;

	command_found(connection, error, &info, body);
}

static void peek_next(struct connection *connection, enum ww_job_state state)
{
	struct ww_job_info info;
	void *body = NULL;
	int error = ww_jobs_peek_next(connection->server->jobs, connection->used->name, state, &info, &body);

	command_found(connection, error, &info, body);
}

static void reserve_job(struct connection *connection, const struct command *command)
{
	struct server *server = connection->server;
	struct ww_lease lease;
	int error;

	/* A job that was put in this turn is not given away before it is certain. */
	turn_commit(server);
	error = ww_jobs_reserve_job(server->jobs, command->id, &lease);
	if (error < 0) {
		answer_error(connection, error == WW_EINUSE || error == WW_EINVAL ? WW_ENOTFOUND : error);
		return;
	}
	if (!connection->is_worker) {
		connection->is_worker = 1;
		server->workers++;
	}
	waiting_give(connection, &lease);
}

/* Delete a job that is not this connection's: one that is reserved by another is not found. */
static int cancel(struct server *server, uint64_t id)
{
	struct ww_job_ref job = {.id = id};
	enum ww_job_state state;
	int error = id ? ww_jobs_state(server->jobs, id, &state) : WW_ENOTFOUND;

	if (error == WW_OK && state == WW_JOB_RESERVED)
		return WW_ENOTFOUND;
	if (error == WW_OK)
		error = turn_begin(server);
	if (error == WW_OK)
		error = ww_jobs_cancel(server->jobs, &job);
	return error;
}

static void delete_job(struct connection *connection, const struct command *command)
{
	struct server *server = connection->server;
	struct lease *lease = lease_of(connection, command->id);
	int error = WW_ESTALE;

	if (lease) {
		error = turn_begin(server);
		if (error == WW_OK)
			error = ww_jobs_finish(server->jobs, lease->id, lease->token);
		if (error == WW_OK)
			lease_end(server, lease);
		else if (error == WW_ESTALE)
			lease_forget(server, lease);
	}
	/* Also one that was this connection's until its time was up. */
	if (error == WW_ESTALE)
		error = cancel(server, command->id);
	if (error < 0)
		answer_error(connection, error);
	else
		answer_text(connection, "DELETED\r\n");
}

/* What follows from a lease's end that the store has answered with `error`. */
static void lease_ended(struct connection *connection, struct lease *lease, int error, const char *text)
{
	if (error == WW_OK)
		lease_end(connection->server, lease);
	else if (error == WW_ESTALE)
		lease_forget(connection->server, lease);
	if (error == WW_OK)
		answer_text(connection, text);
	else
		answer_error(connection, error == WW_ESTALE ? WW_ENOTFOUND : error);
}

void command_release(struct connection *connection, const struct command *command, const char *reason)
{
	struct server *server = connection->server;
	struct lease *lease = lease_of(connection, command->id);
	const char *text = "RELEASED\r\n";
	int error;

	if (!lease) {
		answer_text(connection, "NOT_FOUND\r\n");
		return;
	}
	error = turn_begin(server);
	if (error == WW_OK)
		error =
		    ww_jobs_release(server->jobs, lease->id, lease->token, command->priority, command->delay, reason);
	if (error == 1)
		text = "BURIED\r\n";
	lease_ended(connection, lease, error > 0 ? WW_OK : error, text);
}

void command_bury(struct connection *connection, const struct command *command, const char *reason)
{
	struct server *server = connection->server;
	struct lease *lease = lease_of(connection, command->id);
	int error;

	if (!lease) {
		answer_text(connection, "NOT_FOUND\r\n");
		return;
	}
	error = turn_begin(server);
	if (error == WW_OK)
		error = ww_jobs_bury(server->jobs, lease->id, lease->token, command->priority, reason);
	lease_ended(connection, lease, error, "BURIED\r\n");
}

static void touch(struct connection *connection, const struct command *command)
{
	struct lease *lease = lease_of(connection, command->id);
	uint64_t ends;
	int error;

	if (!lease) {
		answer_text(connection, "NOT_FOUND\r\n");
		return;
	}
	error = ww_jobs_touch(connection->server->jobs, lease->id, lease->token, &ends);
	if (error == WW_OK) {
		lease_changed(lease);
		lease->ends = ends;
		answer_text(connection, "TOUCHED\r\n");
		return;
	}
	if (error == WW_ESTALE)
		lease_forget(connection->server, lease);
	answer_error(connection, error == WW_ESTALE ? WW_ENOTFOUND : error);
}

static void kick(struct connection *connection, const struct command *command)
{
	struct server *server = connection->server;
	uint64_t count = 0;
	int error = turn_begin(server);

	if (error == WW_OK)
		error = ww_jobs_kick(server->jobs, connection->used->name, command->bound, &count);
	if (error < 0 && error != WW_ENOTFOUND)
		answer_error(connection, error);
	else
		answer_format(connection, "KICKED %llu\r\n", (unsigned long long)count);
}

static void kick_job(struct connection *connection, const struct command *command)
{
	int error = command->id ? turn_begin(connection->server) : WW_ENOTFOUND;

	if (error == WW_OK)
		error = ww_jobs_kick_job(connection->server->jobs, command->id);
	if (error < 0)
		answer_error(connection, error == WW_EINUSE || error == WW_EINVAL ? WW_ENOTFOUND : error);
	else
		answer_text(connection, "KICKED\r\n");
}

static void use(struct connection *connection, const struct command *command)
{
	struct tube *tube = tube_make(connection->server, command->tube);
	struct tube *former = connection->used;

	if (!tube) {
		answer_text(connection, "OUT_OF_MEMORY\r\n");
		return;
	}
	tube->users++;
	connection->used = tube;
	former->users--;
	tube_drop(connection->server, former);
	answer_format(connection, "USING %s\r\n", tube->name);
}

static void watch(struct connection *connection, const struct command *command)
{
	struct tube *tube = tube_make(connection->server, command->tube);

	if (!tube || tube_watch(connection, tube) != 0) {
		if (tube)
			tube_drop(connection->server, tube);
		answer_text(connection, "OUT_OF_MEMORY\r\n");
		return;
	}
	answer_format(connection, "WATCHING %zu\r\n", connection->watch_count);
}

static void ignore(struct connection *connection, const struct command *command)
{
	struct tube *tube = tube_find(connection->server, command->tube);

	if (tube && tube_is_watched(connection, tube)) {
		if (connection->watch_count == 1) {
			answer_text(connection, "NOT_IGNORED\r\n");
			return;
		}
		tube_ignore(connection, tube);
	}
	answer_format(connection, "WATCHING %zu\r\n", connection->watch_count);
}

static void pause_tube(struct connection *connection, const struct command *command)
{
	struct server *server = connection->server;
	struct ww_tube_stats stats;
	int error = stats_of(server, command->tube, &stats);

	if (error == WW_OK)
		error = ww_jobs_pause(server->jobs, command->tube, command->delay);
	if (error < 0)
		answer_error(connection, error);
	else
		answer_text(connection, "PAUSED\r\n");
}

static void command_refuse(struct connection *connection, const struct command *command)
{
	static const char *const texts[] = {
	    [REFUSAL_BAD_FORMAT] = "BAD_FORMAT\r\n",
	    [REFUSAL_UNKNOWN] = "UNKNOWN_COMMAND\r\n",
	    [REFUSAL_CRLF] = "EXPECTED_CRLF\r\n",
	    [REFUSAL_TOO_BIG] = "JOB_TOO_BIG\r\n",
	};

	answer_text(connection, texts[command->refusal]);
}

static void peek_ready(struct connection *connection, const struct command *command)
{
	(void)command;
	peek_next(connection, WW_JOB_READY);
}

static void peek_delayed(struct connection *connection, const struct command *command)
{
	(void)command;
	peek_next(connection, WW_JOB_DELAYED);
}

static void peek_buried(struct connection *connection, const struct command *command)
{
	(void)command;
	peek_next(connection, WW_JOB_BURIED);
}

static void reserve(struct connection *connection, const struct command *command)
{
	waiting_reserve(connection, command->verb == VERB_RESERVE ? WAIT_FOREVER : command->delay);
}

static void release_job(struct connection *connection, const struct command *command)
{
	command_release(connection, command, NULL);
}

static void bury(struct connection *connection, const struct command *command)
{
	command_bury(connection, command, NULL);
}

static void list_tubes(struct connection *connection, const struct command *command)
{
	(void)command;
	stats_tubes(connection);
}

static void list_used(struct connection *connection, const struct command *command)
{
	(void)command;
	answer_format(connection, "USING %s\r\n", connection->used->name);
}

static void list_watched(struct connection *connection, const struct command *command)
{
	(void)command;
	stats_watched(connection);
}

static void stats(struct connection *connection, const struct command *command)
{
	(void)command;
	stats_server(connection);
}

static void stats_of_job(struct connection *connection, const struct command *command)
{
	stats_job(connection, &(struct ww_job_ref){.id = command->id});
}

static void stats_of_tube(struct connection *connection, const struct command *command)
{
	stats_tube(connection, command->tube);
}

typedef void handler(struct connection *connection, const struct command *command);

/* Verbs that beanstalkd has as well; others are the server's own. */
static handler *const handlers[VERBS] = {
    [VERB_PUT] = put,
    [VERB_PEEK] = peek,
    [VERB_PEEK_READY] = peek_ready,
    [VERB_PEEK_DELAYED] = peek_delayed,
    [VERB_PEEK_BURIED] = peek_buried,
    [VERB_RESERVE] = reserve,
    [VERB_RESERVE_TIMEOUT] = reserve,
    [VERB_RESERVE_JOB] = reserve_job,
    [VERB_DELETE] = delete_job,
    [VERB_RELEASE] = release_job,
    [VERB_BURY] = bury,
    [VERB_TOUCH] = touch,
    [VERB_KICK] = kick,
    [VERB_KICK_JOB] = kick_job,
    [VERB_USE] = use,
    [VERB_WATCH] = watch,
    [VERB_IGNORE] = ignore,
    [VERB_LIST_TUBES] = list_tubes,
    [VERB_LIST_TUBE_USED] = list_used,
    [VERB_LIST_TUBES_WATCHED] = list_watched,
    [VERB_STATS] = stats,
    [VERB_STATS_JOB] = stats_of_job,
    [VERB_STATS_TUBE] = stats_of_tube,
    [VERB_PAUSE_TUBE] = pause_tube,
};

void command_run(struct connection *connection, const struct command *command)
{
	size_t start = connection->out.size;

	if (command->refusal != REFUSAL_BAD_FORMAT && command->refusal != REFUSAL_UNKNOWN)
		connection->server->commands[command->verb]++;
	if (command->refusal == REFUSAL_NONE)
		(handlers[command->verb] ? handlers[command->verb] : command_own)(connection, command);
	else
		command_refuse(connection, command);
	/* A job that was given is an answer by itself, and was noted so. */
	if (connection->answer_count == 0 ||
	    connection->answers[connection->answer_count - 1].end != connection->out.size)
		answer_end(connection, start, is_of_write(command));
}
