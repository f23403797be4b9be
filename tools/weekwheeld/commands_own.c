/* The verbs of our own. */
#include <string.h>

#include "tools/weekwheeld/server.h"

static struct ww_job_ref key_of(const struct connection *connection, const struct command *command)
{
	return (struct ww_job_ref){
	    .id = command->id,
	    .tube = connection->used->name,
	    .key = command->own.key,
	    .key_length = command->own.key_length,
	    .version = command->own.version,
	};
}

static void put_own(struct connection *connection, const struct command *command)
{
	const struct command_own *own = &command->own;
	struct ww_job_spec spec;

	(void)ww_job_spec_default(&spec);
	spec.key = own->key;
	spec.key_length = own->key_length;
	spec.period = own->every;
	spec.skip = own->skip;
	spec.backoff = own->backoff;
	if (own->backoff_max)
		spec.backoff_max = own->backoff_max;
	spec.version = own->version;
	spec.attempts = own->attempts;
	spec.missed = own->missed;
	if (own->at)
		spec.flags = WW_JOB_WALL | WW_JOB_AT;
	command_put(connection, command, &spec);
}

static void move(struct connection *connection, const struct command *command)
{
	struct server *server = connection->server;
	struct ww_job_ref job = key_of(connection, command);
	uint64_t version = 0;
	int error = job.id || job.key_length ? turn_begin(server) : WW_ENOTFOUND;

	if (error == WW_OK)
		error = ww_jobs_move(server->jobs, &job, command->delay, command->own.at ? WW_JOB_AT : 0, &version);
	/* A buried job has no due time: it is not there for this. */
	if (error == WW_EINVAL)
		error = WW_ENOTFOUND;
	if (error < 0)
		answer_error(connection, error);
	else
		answer_format(connection, "MOVED %llu\r\n", (unsigned long long)version);
}

static void delete_key(struct connection *connection, const struct command *command)
{
	struct ww_job_ref job = key_of(connection, command);
	int result = turn_begin(connection->server);

	if (result == WW_OK)
		result = ww_jobs_cancel(connection->server->jobs, &job);
	if (result < 0)
		answer_error(connection, result);
	else
		answer_text(connection, result ? "DELETED\r\n" : "RUNNING\r\n");
}

static void peek_key(struct connection *connection, const struct command *command)
{
	struct ww_job_ref job = key_of(connection, command);
	struct ww_job_info info;
	void *body = NULL;
	int error = ww_jobs_peek(connection->server->jobs, &job, &info, &body);

	command_found(connection, error, &info, body);
}

static void answer_made(struct connection *connection, int error, struct buffer *made)
{
	if (error < 0)
		answer_error(connection, error);
	else
		answer_block(connection, made);
	buffer_free(made);
}

static void advance(struct connection *connection, const struct command *command)
{
	struct server *server = connection->server;
	uint64_t now = 0;
	int error;

	if (!server->elapsed_clock) {
		answer_text(connection, "UNKNOWN_COMMAND\r\n");
		return;
	}
	/* What was asked for before is done before. */
	turn_commit(server);
	error = ww_clock_virtual_advance(server->elapsed_clock, command->delay);
	if (error == WW_OK)
		error = ww_clock_virtual_advance(server->wall_clock, command->delay);
	if (error == WW_OK)
		error = ww_driver_settle(server->elapsed);
	if (error == WW_OK)
		error = ww_driver_settle(server->wall);
	if (error == WW_OK)
		error = ww_jobs_now(server->jobs, WW_JOB_WALL, &now);
	if (error != WW_OK)
		answer_error(connection, error);
	else
		answer_format(connection, "ADVANCED %llu\r\n", (unsigned long long)(now / WW_SECOND));
}

void command_own(struct connection *connection, const struct command *command)
{
	struct server *server = connection->server;
	struct buffer made = {0};
	struct ww_job_ref job;

	switch (command->verb) {
	case VERB_PUT_KEY:
	case VERB_PUT_AT:
		put_own(connection, command);
		break;
	case VERB_MOVE:
	case VERB_MOVE_KEY:
		move(connection, command);
		break;
	case VERB_DELETE_KEY:
		delete_key(connection, command);
		break;
	case VERB_RELEASE_JOB:
		command_release(connection, command, command->own.reason);
		break;
	case VERB_BURY_JOB:
		command_bury(connection, command, command->own.reason);
		break;
	case VERB_PEEK_KEY:
		peek_key(connection, command);
		break;
	case VERB_STATS_KEY:
		job = key_of(connection, command);
		stats_job(connection, &job);
		break;
	case VERB_LIST_DELAYED:
		answer_made(connection, list_jobs(server, command, &made), &made);
		break;
	case VERB_FORECAST:
		answer_made(connection, list_forecast(server, command, &made), &made);
		break;
	case VERB_ADVANCE:
		advance(connection, command);
		break;
	default:
		answer_text(connection, "UNKNOWN_COMMAND\r\n");
	}
}
