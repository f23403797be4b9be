/* A turn's write of the store: all commands of a turn have one, and their answers wait for it. */
#include "tools/weekwheeld/engine/server.h"

int turn_begin(struct server *server)
{
	int error;

	if (server->turn.is_begun)
		return WW_OK;
	error = ww_jobs_begin(server->jobs);
	if (error == WW_OK)
		server->turn.is_begun = 1;
	return error;
}

void turn_commit(struct server *server)
{
	int error;

	if (!server->turn.is_begun)
		return;
	error = ww_jobs_commit(server->jobs);
	server->turn.is_begun = 0;
	server->turn.is_failing = error != WW_OK;
	if (error == WW_OK && server->reported_fault == WW_EFULL)
		(void)store_fault(server, NULL);
	if (error != WW_OK) {
		server->turn.commit_errors++;
		if (server->reported_fault != WW_EIO && store_fault(server, NULL) == WW_OK)
			state_begin(
			    "writes", STATE_STOPS_WRITING, "the changes could not be written: %s", ww_strerror(error));
	} else {
		state_end("writes", "changes are written again");
	}
	for (const struct face *const *face = server->faces; *face; face++)
		(*face)->settle(server, error);
}
