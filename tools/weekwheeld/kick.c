/* Kicks the jobs of a tube, in pieces: many would delay other clients. The answer comes with the last piece. */
#include "tools/weekwheeld/commands.h"

enum { KICK_PIECE = 100 };

static void kick_end(struct connection *connection, int error)
{
	size_t start = connection->out.size;

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

void kick_begin(struct connection *connection, const struct command *command)
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
