/* Serves the clients that wait for jobs, at the end of a turn: those at tubes that may be ready, then those that have just come. */
#include "tools/weekwheeld/clients/clients.h"

/* The next clients that wait there and do not ask already: each alone, or those that follow one another together. */
static void ask_for_some(struct server_tube *tube)
{
	struct connection *together[ASK_MOST];
	size_t count = 0;
	struct watch *watch;

	for (watch = TAILQ_FIRST(&tube->waiting); watch && tube->wanted > 0; watch = TAILQ_NEXT(watch, queue)) {
		struct connection *connection = watch->connection;
		if (connection->is_busy)
			continue;
		int is_alone = ask_goes_alone(connection);
		if (!is_alone)
			together[count++] = connection;
		if (count == ASK_MOST || (is_alone && count > 0)) {
			ask_start(together, count);
			count = 0;
			tube->wanted--;
		}
		if (is_alone && tube->wanted > 0) {
			ask_start(&connection, 1);
			tube->wanted--;
		}
	}
	if (count > 0)
		ask_start(together, count);
	tube->wanted = 0;
}

/* The others after one that got nothing get nothing either, unless they know more code. */
static void serve_some(struct server_tube *tube)
{
	struct watch *next;
	int64_t in_vain = -1;

	for (struct watch *watch = TAILQ_FIRST(&tube->waiting); watch && in_vain < WW_JOB_CODE_MAX; watch = next) {
		struct connection *connection = watch->connection;

		next = TAILQ_NEXT(watch, queue);
		if (connection->code > in_vain && waiting_try(connection) != 1)
			in_vain = connection->code;
	}
}

int serve_tubes(struct server *server)
{
	struct server_tube *tube;
	int is_polled = 0;

	while ((tube = STAILQ_FIRST(&server->tubes.ready)) != NULL) {
		STAILQ_REMOVE_HEAD(&server->tubes.ready, next_ready);
		tube->is_ready = 0;
		if (server->is_shared)
			ask_for_some(tube);
		else
			serve_some(tube);
		tube->calls_pollers = tube->pollers > 0;
		is_polled |= tube->calls_pollers;
		tube_drop(server, tube);
	}
	return is_polled;
}

void serve_fresh(struct server *server)
{
	uint64_t since = uv_hrtime();
	struct connection *connection;

	/* The rest are served in the next turn. */
	while ((connection = STAILQ_FIRST(&server->clients->fresh)) != NULL && !budget_is_spent(server)) {
		uint64_t now = store_now(server);

		STAILQ_REMOVE_HEAD(&server->clients->fresh, next_fresh);
		budget_note(server, &since);
		if (server->is_shared && connection->is_waiting && !connection->is_busy)
			ask_start(&connection, 1);
		connection->is_fresh = 0;
		if (connection->is_closed) {
			connection_let_go(connection);
			continue;
		}
		if (!connection->is_waiting || connection->is_busy || waiting_try(connection) == 1)
			continue;
		if (connection->at_end || connection->give_up <= now)
			waiting_answer(connection, "TIMED_OUT\r\n");
		else
			waiting_schedule(connection, now);
	}
}
