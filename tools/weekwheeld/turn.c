/* A turn of the loop: one write of the store for all its commands, then time, clients that wait, and sending. */
#include "tools/weekwheeld/schedules.h"
#include "tools/weekwheeld/server.h"

/* How many expiries a turn handles at most: a million due jobs must not delay commands. */
enum { TURN_BUDGET = 1000 };

int turn_begin(struct server *server)
{
	int error;

	if (server->is_begun)
		return WW_OK;
	error = ww_jobs_begin(server->jobs);
	if (error == WW_OK)
		server->is_begun = 1;
	return error;
}

void turn_commit(struct server *server)
{
	struct connection *connection;
	int error;

	if (!server->is_begun)
		return;
	error = ww_jobs_commit(server->jobs);
	server->is_begun = 0;
	server->is_failing = error != WW_OK;
	if (error == WW_OK && server->said_fault == WW_EFULL)
		(void)store_fault(server, NULL);
	if (error != WW_OK) {
		server->commit_errors++;
		if (server->said_fault != WW_EIO && store_fault(server, NULL) == WW_OK)
			state_begin(
			    "writes", STATE_STOPS_WRITING, "the changes could not be written: %s", ww_strerror(error));
	} else {
		state_end("writes", "changes are written again");
	}
	lease_settle(server, error == WW_OK);
	while ((connection = SLIST_FIRST(&server->batch)) != NULL) {
		SLIST_REMOVE_HEAD(&server->batch, next_batch);
		answer_settle(connection, error);
	}
	v1_settle(server, error);
}

/* Let the drivers call what is due. */
static void turn_time(struct server *server)
{
	if (!server->is_due)
		return;
	server->is_due = 0;
	/* All that expires in this turn is one write. */
	if (turn_begin(server) != WW_OK)
		state_seen("begin", "the store cannot be written");
	if (ww_driver_dispatch(server->elapsed, TURN_BUDGET) < 0 || ww_driver_dispatch(server->wall, TURN_BUDGET) < 0)
		state_seen("dispatch", "a driver cannot dispatch");
	turn_commit(server);
}

void turn_end(struct server *server)
{
	struct connection *connection;

	budget_turn(server);
	turn_commit(server);
	tasks_turn(server);
	turn_time(server);
	schedules_turn(server);
	waiting_serve(server);
	v1_turn(server);
	shake_turn(&server->shakes);
	bounds_hold(server);
	while ((connection = SLIST_FIRST(&server->flush)) != NULL) {
		SLIST_REMOVE_HEAD(&server->flush, next_flush);
		connection->in_flush = 0;
		connection_flush(connection);
	}
	/* A connection that closed here gave jobs back: they need a commit, and clients may wait for them. */
	if (server->is_begun || !STAILQ_EMPTY(&server->ready) || !STAILQ_EMPTY(&server->fresh) ||
	    !STAILQ_EMPTY(&server->resume))
		loop_again(server);
}
