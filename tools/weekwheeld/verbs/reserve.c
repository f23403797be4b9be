/* The verbs that reserve jobs. */
#include "tools/weekwheeld/verbs/verbs.h"

static void become_worker(struct connection *connection)
{
	connection->server->clients->workers += !connection->is_worker;
	connection->is_worker = 1;
}

static int reserve(struct call *call)
{
	const struct command *command = call->command;

	become_worker(call->connection);
	waiting_reserve(call->connection, command->verb == VERB_RESERVE ? WAIT_FOREVER : command->delay);
	return 0;
}

const struct steps verb_reserve = {reserve, NULL, NULL, NULL};

/* ---- reserve-job */

static int reserve_job_prepare(struct call *call)
{
	/* A job that this turn has put is given away only after the commit. */
	turn_commit(call->connection->server);
	return 1;
}

static void reserve_job_run(struct call *call)
{
	call->result = WW_ENOTFOUND;
	if (!job_is_schedule(call))
		call->result = ww_jobs_reserve_job(call_jobs(call), call->command->id, &call->lease);
}

static void reserve_job_answer(struct call *call)
{
	struct connection *connection = call->connection;

	if (call->result < 0) {
		answer_result(connection, job_result(call->result), NULL);
	} else if (connection->is_closed) {
		ask_return(connection->server, &call->lease);
	} else if (task_outlasted(&call->task, &call->lease)) {
		/* As if it had been asked for then. Another worker may have ended the job since. */
		ask_return(connection->server, &call->lease);
		answer_result(connection, job_result(WW_ENOTFOUND), NULL);
	} else {
		become_worker(connection);
		waiting_give(connection, &call->lease);
	}
}

const struct steps verb_reserve_job = {reserve_job_prepare, reserve_job_run, reserve_job_answer, NULL};
