/* Carries out commands: a function for each verb asks the store and answers. */
#include "tools/weekwheeld/commands.h"

#include <string.h>

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
		return 0;
	default:
		return command->refusal == REFUSAL_NONE;
	}
}

struct ww_job_ref command_job(const struct connection *connection, const struct command *command)
{
	if (command->verb < VERB_OWN)
		return (struct ww_job_ref){.id = command->id};
	return (struct ww_job_ref){
	    .id = command->id,
	    .tube = connection->used->name,
	    .key = command->own.key,
	    .key_length = command->own.key_length,
	    .version = command->own.version,
	};
}

static void become_worker(struct connection *connection)
{
	connection->server->workers += !connection->is_worker;
	connection->is_worker = 1;
}

/* ---- Putting and moving */

static void spec_own(struct ww_job_spec *spec, const struct command_own *own)
{
	spec->key = own->key;
	spec->key_length = own->key_length;
	spec->period = own->every;
	spec->skip = own->skip;
	spec->backoff = own->backoff;
	if (own->backoff_max)
		spec->backoff_max = own->backoff_max;
	spec->version = own->version;
	spec->attempts = own->attempts;
	spec->missed = own->missed;
	if (own->at)
		spec->flags = WW_JOB_WALL | WW_JOB_AT;
}

static void put(struct connection *connection, const struct command *command)
{
	struct server *server = connection->server;
	struct ww_job_spec spec;
	uint64_t id;
	int result;

	server->producers += !connection->is_producer;
	connection->is_producer = 1;
	if (server->is_draining) {
		answer_text(connection, "DRAINING\r\n");
		return;
	}
	if (!push_takes(server, connection->used->name, command->body, command->body_length)) {
		answer_text(connection, "BAD_FORMAT\r\n");
		return;
	}
	(void)ww_job_spec_default(&spec);
	if (command->verb != VERB_PUT)
		spec_own(&spec, &command->own);
	spec.tube = connection->used->name;
	spec.body = command->body;
	spec.body_length = command->body_length;
	spec.due = command->delay;
	spec.run = command->run;
	spec.priority = command->priority;
	result = turn_begin(server);
	if (result == WW_OK)
		result = ww_jobs_put(server->jobs, &spec, &id, NULL);
	if (result < 0)
		answer_result(connection, result, NULL);
	else
		answer_number(connection, result ? "REPLACED" : "INSERTED", id);
}

static void move(struct connection *connection, const struct command *command)
{
	struct server *server = connection->server;
	struct ww_job_ref job = command_job(connection, command);
	uint64_t version = 0;
	int error = job.id || job.key_length ? turn_begin(server) : WW_ENOTFOUND;

	if (error == WW_OK)
		error = ww_jobs_move(server->jobs, &job, command->delay, command->own.at ? WW_JOB_AT : 0, &version);
	/* WW_EINVAL: the job is buried and has no due time. */
	if (error < 0)
		answer_result(connection, error == WW_EINVAL ? WW_ENOTFOUND : error, NULL);
	else
		answer_number(connection, "MOVED", version);
}

/* ---- Looking */

static void answer_found(struct connection *connection, int error, const struct ww_job_info *info, void *body)
{
	if (error < 0) {
		answer_result(connection, error, NULL);
		return;
	}
	answer_job(connection, "FOUND", info->id, body, info->body_length);
	ww_jobs_free(connection->server->jobs, body);
}

static void peek(struct connection *connection, const struct command *command)
{
	struct ww_job_ref job = command_job(connection, command);
	struct ww_job_info info;
	void *body = NULL;
	int error = WW_ENOTFOUND;

	if (job.id || job.key_length)
		error = ww_jobs_peek(connection->server->jobs, &job, &info, &body);
	answer_found(connection, error, &info, body);
}

static void peek_next(struct connection *connection, const struct command *command)
{
	enum ww_job_state state = command->verb == VERB_PEEK_READY     ? WW_JOB_READY
	                          : command->verb == VERB_PEEK_DELAYED ? WW_JOB_DELAYED
	                                                               : WW_JOB_BURIED;
	struct ww_job_info info;
	void *body = NULL;
	int error = ww_jobs_peek_next(connection->server->jobs, connection->used->name, state, &info, &body);

	answer_found(connection, error, &info, body);
}

static void list(struct connection *connection, const struct command *command)
{
	struct server *server = connection->server;
	struct buffer made = {0};
	int error =
	    command->verb == VERB_FORECAST ? list_forecast(server, command, &made) : list_jobs(server, command, &made);

	answer_block(connection, error, &made);
}

/* ---- Reserving, and how a lease ends */

static void reserve(struct connection *connection, const struct command *command)
{
	become_worker(connection);
	waiting_reserve(connection, command->verb == VERB_RESERVE ? WAIT_FOREVER : command->delay);
}

/* The store says of a job that cannot be had that it is in use, or that its id is invalid. */
static int not_found(int error)
{
	return error == WW_EINUSE || error == WW_EINVAL ? WW_ENOTFOUND : error;
}

static void reserve_job(struct connection *connection, const struct command *command)
{
	struct server *server = connection->server;
	struct ww_lease lease;
	int error;

	/* A job that this turn has put is given away only after the commit. */
	turn_commit(server);
	error = ww_jobs_reserve_job(server->jobs, command->id, &lease);
	if (error < 0) {
		answer_result(connection, not_found(error), NULL);
		return;
	}
	become_worker(connection);
	waiting_give(connection, &lease);
}

/* Delete a job that this connection has not reserved. A job that another has reserved is not found. */
static int cancel(struct server *server, uint64_t id)
{
	struct ww_job_ref job = {.id = id};
	enum ww_job_state state;
	int error = id ? ww_jobs_state(server->jobs, id, &state) : WW_ENOTFOUND;

	if (error == WW_OK && state == WW_JOB_RESERVED)
		return WW_ENOTFOUND;
	if (error == WW_OK)
		error = turn_begin(server);
	return error == WW_OK ? ww_jobs_cancel(server->jobs, &job) : error;
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
		lease_ended(server, lease, error);
	}
	/* If this connection's lease has run out, it may still delete the job. */
	if (error == WW_ESTALE)
		error = cancel(server, command->id);
	answer_result(connection, error, "DELETED\r\n");
}

static void delete_key(struct connection *connection, const struct command *command)
{
	struct ww_job_ref job = command_job(connection, command);
	int result = turn_begin(connection->server);

	if (result == WW_OK)
		result = ww_jobs_cancel(connection->server->jobs, &job);
	answer_result(connection, result, result ? "DELETED\r\n" : "RUNNING\r\n");
}

static void release_or_bury(struct connection *connection, const struct command *command)
{
	struct server *server = connection->server;
	struct lease *lease = lease_of(connection, command->id);
	const char *reason = command->verb < VERB_OWN ? NULL : command->own.reason;
	int is_bury = command->verb == VERB_BURY || command->verb == VERB_BURY_JOB;
	int result = lease ? turn_begin(server) : WW_ESTALE;

	if (result == WW_OK && is_bury)
		result = ww_jobs_bury(server->jobs, lease->id, lease->token, command->priority, reason);
	else if (result == WW_OK)
		result =
		    ww_jobs_release(server->jobs, lease->id, lease->token, command->priority, command->delay, reason);
	if (lease)
		lease_ended(server, lease, result);
	/* The store buries a job that is released after its last attempt, and returns 1. */
	answer_result(connection, result == WW_ESTALE ? WW_ENOTFOUND : result,
	    is_bury || result == 1 ? "BURIED\r\n" : "RELEASED\r\n");
}

static void touch(struct connection *connection, const struct command *command)
{
	struct server *server = connection->server;
	struct lease *lease = lease_of(connection, command->id);
	uint64_t ends;
	int error = lease ? ww_jobs_touch(server->jobs, lease->id, lease->token, &ends) : WW_ESTALE;

	if (error == WW_OK)
		lease_touched(lease, ends);
	else if (lease)
		lease_ended(server, lease, error);
	answer_result(connection, error == WW_ESTALE ? WW_ENOTFOUND : error, "TOUCHED\r\n");
}

static void kick_job(struct connection *connection, const struct command *command)
{
	int error = command->id ? turn_begin(connection->server) : WW_ENOTFOUND;

	if (error == WW_OK)
		error = ww_jobs_kick_job(connection->server->jobs, command->id);
	answer_result(connection, not_found(error), "KICKED\r\n");
}

/* ---- Tubes */

static void use(struct connection *connection, const struct command *command)
{
	struct server_tube *tube = tube_make(connection->server, command->tube);
	struct server_tube *former = connection->used;

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

static void list_used(struct connection *connection, const struct command *command)
{
	(void)command;
	answer_format(connection, "USING %s\r\n", connection->used->name);
}

static void watch(struct connection *connection, const struct command *command)
{
	struct server_tube *tube = tube_make(connection->server, command->tube);

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
	struct server_tube *tube = tube_find(connection->server, command->tube);

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
	answer_result(connection, error, "PAUSED\r\n");
}

/* ---- Virtual time */

static void advance(struct connection *connection, const struct command *command)
{
	struct server *server = connection->server;
	uint64_t now = 0;
	int error;

	if (!server->elapsed_clock) {
		answer_text(connection, "UNKNOWN_COMMAND\r\n");
		return;
	}
	/* Earlier commands are done before the time changes. */
	turn_commit(server);
	error = server_advance(server, command->delay);
	if (error == WW_OK)
		error = ww_jobs_now(server->jobs, WW_JOB_WALL, &now);
	if (error != WW_OK)
		answer_result(connection, error, NULL);
	else
		answer_format(connection, "ADVANCED %llu\r\n", (unsigned long long)(now / WW_SECOND));
}

/* ---- All */

static void (*const handlers[VERBS])(struct connection *connection, const struct command *command) = {
    [VERB_PUT] = put,
    [VERB_PEEK] = peek,
    [VERB_PEEK_READY] = peek_next,
    [VERB_PEEK_DELAYED] = peek_next,
    [VERB_PEEK_BURIED] = peek_next,
    [VERB_RESERVE] = reserve,
    [VERB_RESERVE_TIMEOUT] = reserve,
    [VERB_RESERVE_JOB] = reserve_job,
    [VERB_DELETE] = delete_job,
    [VERB_RELEASE] = release_or_bury,
    [VERB_BURY] = release_or_bury,
    [VERB_TOUCH] = touch,
    [VERB_KICK] = kick_begin,
    [VERB_KICK_JOB] = kick_job,
    [VERB_USE] = use,
    [VERB_WATCH] = watch,
    [VERB_IGNORE] = ignore,
    [VERB_LIST_TUBES] = stats_list_tubes,
    [VERB_LIST_TUBE_USED] = list_used,
    [VERB_LIST_TUBES_WATCHED] = stats_list_watched,
    [VERB_STATS] = stats_server,
    [VERB_STATS_JOB] = stats_job,
    [VERB_STATS_TUBE] = stats_tube,
    [VERB_PAUSE_TUBE] = pause_tube,
    [VERB_PUT_KEY] = put,
    [VERB_PUT_AT] = put,
    [VERB_MOVE] = move,
    [VERB_MOVE_KEY] = move,
    [VERB_DELETE_KEY] = delete_key,
    [VERB_RELEASE_JOB] = release_or_bury,
    [VERB_BURY_JOB] = release_or_bury,
    [VERB_PEEK_KEY] = peek,
    [VERB_STATS_KEY] = stats_job,
    [VERB_LIST_DELAYED] = list,
    [VERB_FORECAST] = list,
    [VERB_ADVANCE] = advance,
};

static const char *const refusals[] = {
    [REFUSAL_BAD_FORMAT] = "BAD_FORMAT\r\n",
    [REFUSAL_UNKNOWN] = "UNKNOWN_COMMAND\r\n",
    [REFUSAL_CRLF] = "EXPECTED_CRLF\r\n",
    [REFUSAL_TOO_BIG] = "JOB_TOO_BIG\r\n",
};

void command_run(struct connection *connection, const struct command *command)
{
	size_t start = connection->out.size;

	if (command->refusal != REFUSAL_BAD_FORMAT && command->refusal != REFUSAL_UNKNOWN)
		connection->server->commands[command->verb]++;
	if (command->refusal == REFUSAL_NONE)
		handlers[command->verb](connection, command);
	else
		answer_text(connection, refusals[command->refusal]);
	/* waiting_give and kick_end have noted their answers already. */
	if (connection->answer_count == 0 ||
	    connection->answers[connection->answer_count - 1].end != connection->out.size)
		answer_end(connection, start, depends_on_write(command));
}
