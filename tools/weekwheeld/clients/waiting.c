/*
 * Reserves jobs for clients: at once if that overtakes no other client, otherwise at the end of the turn, or when a
 * job becomes ready. A client waits in the queue of each tube that it watches. A shared store is called by tasks
 * (ask.c).
 */
#include "tools/weekwheeld/clients/clients.h"

void waiting_give(struct connection *connection, struct ww_lease *lease)
{
	size_t start = connection->stream.out.size;

	if (lease_add(connection, lease)) {
		answer_job(connection, "RESERVED", lease);
		ww_jobs_free(connection->server->jobs, lease->body);
	} else {
		ask_return(connection->server, lease);
		answer_text(connection, "OUT_OF_MEMORY\r\n");
	}
	answer_end(connection, start, 1);
}

int waiting_try(struct connection *connection)
{
	struct server *server = connection->server;
	const struct ww_reserve what = {connection->names, connection->watch_count, connection->code};
	struct ww_lease lease;
	size_t start = connection->stream.out.size;
	int got = ww_jobs_reserve_known(server->jobs, &what, &lease, 1);

	if (got == 0)
		return 0;
	waiting_end(connection);
	if (got > 0) {
		waiting_give(connection, &lease);
		return 1;
	}
	answer_result(connection, got == WW_ENOMEM || got == WW_EFULL ? got : WW_EIO, NULL);
	answer_end(connection, start, 1);
	return 1;
}

void waiting_answer(struct connection *connection, const char *text)
{
	size_t start = connection->stream.out.size;

	waiting_end(connection);
	answer_text(connection, text);
	answer_end(connection, start, 0);
}

void waiting_end(struct connection *connection)
{
	if (!connection->is_waiting)
		return;
	connection->is_waiting = 0;
	connection->server->tubes.waiting--;
	for (size_t i = 0; i < connection->watch_count; i++) {
		struct watch *watch = connection->watches[i];

		TAILQ_REMOVE(&watch->tube->waiting, watch, queue);
		watch->tube->waiters--;
	}
	if (connection->timer)
		(void)ww_driver_cancel(connection->server->elapsed, connection->timer);
	connection->timer = 0;
	if (connection->in.size > 0 || connection->at_end || !(connection->stream.events & UV_READABLE))
		connection_resume(connection);
}

static void waiting_begin(struct connection *connection, uint64_t timeout)
{
	struct server *server = connection->server;

	connection->is_waiting = 1;
	server->tubes.waiting++;
	connection->give_up = timeout == WAIT_FOREVER ? WAIT_FOREVER : store_now(server) + timeout;
	for (size_t i = 0; i < connection->watch_count; i++) {
		struct watch *watch = connection->watches[i];

		TAILQ_INSERT_TAIL(&watch->tube->waiting, watch, queue);
		watch->tube->waiters++;
	}
	if (connection->is_fresh)
		return;
	connection->is_fresh = 1;
	STAILQ_INSERT_TAIL(&server->clients->fresh, connection, next_fresh);
}

static int somebody_waits(const struct connection *connection)
{
	for (size_t i = 0; i < connection->watch_count; i++)
		if (!TAILQ_EMPTY(&connection->watches[i]->tube->waiting))
			return 1;
	return 0;
}

void waiting_reserve(struct connection *connection, uint64_t timeout)
{
	struct server *server = connection->server;
	uint64_t now = store_now(server);

	if (server->is_shared) {
		waiting_begin(connection, timeout);
		return;
	}
	if (lease_soon(connection, now)) {
		if (waiting_try(connection) != 1)
			waiting_answer(connection, "DEADLINE_SOON\r\n");
		return;
	}
	/* A job that this turn has put must not be seen before the commit. */
	if (!server->turn.is_begun && !somebody_waits(connection)) {
		if (waiting_try(connection) == 1)
			return;
		/* Nor can one come before its end: it need not stand in all the queues. */
		if (timeout == 0) {
			waiting_answer(connection, "TIMED_OUT\r\n");
			return;
		}
	}
	waiting_begin(connection, timeout);
}

static void waiting_timer(struct ww_driver *driver, const struct ww_firing *firing, void *user);

void waiting_schedule(struct connection *connection, uint64_t now)
{
	uint64_t until = connection->give_up;
	uint64_t soonest = lease_soonest(connection, now);

	if (soonest != UINT64_MAX && soonest - WW_SECOND < until)
		until = soonest > WW_SECOND ? soonest - WW_SECOND : 0;
	if (until != WAIT_FOREVER && ww_driver_schedule(connection->server->elapsed, until > now ? until - now : 0,
	                                 waiting_timer, connection, &connection->timer) != WW_OK)
		waiting_answer(connection, "OUT_OF_MEMORY\r\n");
}

static void waiting_timer(struct ww_driver *driver, const struct ww_firing *firing, void *user)
{
	struct connection *connection = user;
	uint64_t now = store_now(connection->server);

	(void)driver;
	(void)firing;
	connection->timer = 0;
	/* While the store is asked, it may find a job. */
	if (!connection->is_waiting || connection->is_busy)
		return;
	if (connection->server->is_shared && lease_soon(connection, now))
		ask_start(&connection, 1);
	else if (lease_soon(connection, now))
		waiting_answer(connection, "DEADLINE_SOON\r\n");
	else if (connection->give_up <= now)
		waiting_answer(connection, "TIMED_OUT\r\n");
	else
		waiting_schedule(connection, now);
}

void waiting_at_end(struct connection *connection)
{
	/* If it has begun in this turn, it may still get a ready job. */
	if (connection->is_waiting && !connection->is_fresh && !connection->is_busy)
		waiting_answer(connection, "TIMED_OUT\r\n");
}
