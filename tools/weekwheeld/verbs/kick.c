/*
 * The verbs that kick jobs. In a store of this process the jobs of a tube are kicked in pieces: many would delay other clients.
 * The answer comes with the last piece.
 */
#include "tools/weekwheeld/verbs/verbs.h"

enum { KICK_PIECE = 100 };

static void kick_end(struct connection *connection, int error)
{
	size_t start = connection->stream.out.size;

	connection->kick.go_on = NULL;
	if (error < 0)
		answer_result(connection, error, NULL);
	else
		answer_number(connection, "KICKED", connection->kick.done);
	answer_end(connection, start, 1);
}

/*
 * Kick up to `most`; store how many in *count. Delayed jobs are kicked only if none was buried at the beginning. In a
 * store of this process nothing happens between the two calls.
 */
static int kick_some(struct connection *connection, uint64_t most, uint64_t *count)
{
	struct ww_jobs *jobs = connection->server->jobs;
	const char *tube = connection->used->name;
	struct ww_tube_stats stats;

	*count = 0;
	if (connection->kick.are_buried) {
		if (ww_jobs_tube(jobs, tube, &stats) != WW_OK)
			return WW_OK;
		most = stats.buried < most ? stats.buried : most;
	}
	return most ? ww_jobs_kick(jobs, tube, most, count) : WW_OK;
}

static int kick_go_on(struct connection *connection)
{
	struct server *server = connection->server;
	struct kick *kick = &connection->kick;
	uint64_t most = 0;
	uint64_t count = 0;
	int error = kick->error;

	while (error == WW_OK && count == most && kick->left > 0) {
		if (!budget_take(connection)) {
			answer_expected(connection);
			connection_resume(connection);
			return 0;
		}
		most = kick->left < KICK_PIECE ? kick->left : KICK_PIECE;
		error = turn_begin(server);
		if (error == WW_OK)
			error = kick_some(connection, most, &count);
		kick->left -= count;
		kick->done += count;
	}
	kick_end(connection, error == WW_ENOTFOUND ? WW_OK : error);
	return 1;
}

static void kick_begin(struct connection *connection, const struct command *command)
{
	struct server *server = connection->server;
	struct ww_tube_stats stats;

	connection->kick = (struct kick){.go_on = kick_go_on, .left = command->bound};
	if (ww_jobs_tube(server->jobs, connection->used->name, &stats) == WW_OK && stats.buried) {
		connection->kick.are_buried = 1;
		if (stats.buried < command->bound)
			connection->kick.left = stats.buried;
	}
	(void)kick_go_on(connection);
}

/* In a store of this process a kick is done in pieces, and answers itself. */
static int kick_prepare(struct call *call)
{
	if (call->connection->server->is_shared)
		return 1;
	call->text = "";
	kick_begin(call->connection, call->command);
	return 0;
}

static void kick_run(struct call *call)
{
	call->result = ww_jobs_kick(call_jobs(call), call->used, call->command->bound, &call->number);
}

static void kick_answer(struct call *call)
{
	if (call->result < 0 && call->result != WW_ENOTFOUND)
		answer_result(call->connection, call->result, NULL);
	else
		answer_number(call->connection, "KICKED", call->number);
}

const struct steps verb_kick = {kick_prepare, kick_run, kick_answer, NULL};

/* ---- kick-job */

static void kick_job_run(struct call *call)
{
	call->result = job_is_schedule(call) ? WW_ENOTFOUND : call_begin(call);
	if (call->result == WW_OK)
		call->result = ww_jobs_kick_job(call_jobs(call), call->command->id);
}

static void kick_job_answer(struct call *call)
{
	answer_result(call->connection, job_result(call->result), "KICKED\r\n");
}

const struct steps verb_kick_job = {job_prepare, kick_job_run, kick_job_answer, NULL};
