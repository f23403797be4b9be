/*
 * A round of the loop: what has come is committed, time passes, those who wait are served, and answers are sent. The loop
 * makes one before it sleeps and one after that.
 */
#include "tools/weekwheeld/engine/schedules.h"
#include "tools/weekwheeld/run.h"

/* How many expiries a round handles at most: a million due jobs must not delay commands. */
enum { ROUND_BUDGET = 1000 };

/* Let the drivers call what is due. */
static void let_time_pass(struct server *server)
{
	if (!server->run->is_due)
		return;
	server->run->is_due = 0;
	/* All that expires in this turn is one write. */
	if (turn_begin(server) != WW_OK)
		state_seen("begin", "the store cannot be written");
	if (ww_driver_dispatch(server->elapsed, ROUND_BUDGET) < 0 || ww_driver_dispatch(server->wall, ROUND_BUDGET) < 0)
		state_seen("dispatch", "a driver cannot dispatch");
	turn_commit(server);
}

void round_end(struct server *server)
{
	budget_turn(server);
	/* With the end of its handshake a client may have sent commands. */
	shake_turn(&server->shakes);
	turn_commit(server);
	tasks_turn(server);
	let_time_pass(server);
	schedules_turn(server);
	if (serve_tubes(server))
		v1_wake(server);
	serve_fresh(server);
	v1_turn(server);
	bounds_hold(server);
	connection_flush_all(server);
	/* A connection that closed here gave jobs back: they need a commit, and clients may wait for them. */
	if (server->turn.is_begun || !STAILQ_EMPTY(&server->tubes.ready) || !STAILQ_EMPTY(&server->clients->fresh) ||
	    server->clients->resuming > 0)
		loop_again(server);
}
