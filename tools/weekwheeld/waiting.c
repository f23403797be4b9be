/* Reserving: at once where nobody is passed over by that, otherwise at the end of the turn, or when a job is ready. */
#include <string.h>

#include "tools/weekwheeld/server.h"

/* So long before the end of a lease its holder is not kept waiting. */
#define MARGIN WW_SECOND

uint64_t server_now(struct server *server)
{
	uint64_t now = 0;

	/* Of the store, which goes on counting across restarts; a driver's does not. */
	(void)ww_jobs_now(server->jobs, 0, &now);
	return now;
}

void waiting_give(struct connection *connection, struct ww_lease *lease)
{
	size_t start = connection->out.size;

	if (lease_add(connection, lease)) {
		answer_format(connection, "RESERVED %llu %zu\r\n", (unsigned long long)lease->id, lease->body_length);
		answer_bytes(connection, lease->body, lease->body_length);
		answer_text(connection, "\r\n");
	} else {
		(void)ww_jobs_return(connection->server->jobs, lease->id, lease->token);
		answer_text(connection, "OUT_OF_MEMORY\r\n");
	}
	answer_end(connection, start, 1);
	ww_jobs_free(connection->server->jobs, lease->body);
}

uint64_t server_uptime(struct server *server)
{
	uint64_t now = server_now(server);

	return now > server->started ? now - server->started : 0;
}

/*
 * Return 1 if the connection was given a job, or told that reserving fails; -1 if a shared store fails: it is asked
 * again later.
 */
static int waiting_try(struct connection *connection)
{
	struct server *server = connection->server;
	struct ww_lease lease;
	size_t start = connection->out.size;
	int got = ww_jobs_reserve(server->jobs, connection->names, connection->watch_count, &lease);

	server->is_away = server->is_shared && got < 0;
	if (got == 0)
		return 0;
	if (server->is_away) {
		store_failed(server, got);
		return -1;
	}
	waiting_end(connection);
	if (got > 0) {
		waiting_give(connection, &lease);
		return 1;
	}
	answer_error(connection, got == WW_ENOMEM || got == WW_EFULL ? got : WW_EIO);
	answer_end(connection, start, 1);
	return 1;
}

static void waiting_say(struct connection *connection, const char *text)
{
	size_t start = connection->out.size;

	waiting_end(connection);
	answer_text(connection, text);
	answer_end(connection, start, 0);
}

static void waiting_join(struct watch *watch)
{
	struct tube *tube = watch->tube;

	watch->after = NULL;
	watch->before = tube->last;
	if (tube->last)
		tube->last->after = watch;
	else
		tube->first = watch;
	tube->last = watch;
	tube->waiters++;
}

static void waiting_leave(struct watch *watch)
{
	struct tube *tube = watch->tube;

	if (watch->before)
		watch->before->after = watch->after;
	else
		tube->first = watch->after;
	if (watch->after)
		watch->after->before = watch->before;
	else
		tube->last = watch->before;
	tube->waiters--;
}

void waiting_end(struct connection *connection)
{
	size_t i;

	if (!connection->is_waiting)
		return;
	connection->is_waiting = 0;
	connection->server->waiting--;
	for (i = 0; i < connection->watch_count; i++)
		waiting_leave(connection->watches[i]);
	if (connection->timer)
		(void)ww_driver_cancel(connection->server->elapsed, connection->timer);
	connection->timer = 0;
	if (connection->in.size > 0 || connection->at_end || !connection->is_reading)
		connection_resume(connection);
}

static void waiting_begin(struct connection *connection, uint64_t timeout)
{
	struct server *server = connection->server;
	size_t i;

	connection->is_waiting = 1;
	server->waiting++;
	connection->give_up = timeout == WAIT_FOREVER ? WAIT_FOREVER : server_now(server) + timeout;
	for (i = 0; i < connection->watch_count; i++)
		waiting_join(connection->watches[i]);
	if (connection->is_fresh)
		return;
	connection->is_fresh = 1;
	connection->next_fresh = NULL;
	*server->fresh_end = connection;
	server->fresh_end = &connection->next_fresh;
}

static int somebody_waits(const struct connection *connection)
{
	size_t i;

	for (i = 0; i < connection->watch_count; i++)
		if (connection->watches[i]->tube->first)
			return 1;
	return 0;
}

void waiting_reserve(struct connection *connection, uint64_t timeout)
{
	struct server *server = connection->server;
	uint64_t now = server_now(server);

	if (!connection->is_worker) {
		connection->is_worker = 1;
		server->workers++;
	}
	if (connection->leases && lease_soonest(connection, now) <= now + MARGIN) {
		if (waiting_try(connection) != 1)
			waiting_say(connection, "DEADLINE_SOON\r\n");
		return;
	}
	/* What this turn has put is not committed: a job of it must not be seen before that. */
	if (!server->is_begun && !somebody_waits(connection) && waiting_try(connection) == 1)
		return;
	waiting_begin(connection, timeout);
}

static void waiting_timer(struct ww_driver *driver, const struct ww_firing *firing, void *user);

/* Wake it when it has waited long enough, or one of its leases is about to end. */
static void waiting_schedule(struct connection *connection, uint64_t now)
{
	uint64_t until = connection->give_up;
	uint64_t soonest = connection->leases ? lease_soonest(connection, now) : UINT64_MAX;

	if (soonest != UINT64_MAX && soonest - MARGIN < until)
		until = soonest > MARGIN ? soonest - MARGIN : 0;
	if (until != WAIT_FOREVER && ww_driver_schedule(connection->server->elapsed, until > now ? until - now : 0,
	                                 waiting_timer, connection, &connection->timer) != WW_OK)
		waiting_say(connection, "OUT_OF_MEMORY\r\n");
}

static void waiting_timer(struct ww_driver *driver, const struct ww_firing *firing, void *user)
{
	struct connection *connection = user;
	uint64_t now = server_now(connection->server);

	(void)driver;
	(void)firing;
	connection->timer = 0;
	if (!connection->is_waiting)
		return;
	if (connection->leases && lease_soonest(connection, now) <= now + MARGIN)
		waiting_say(connection, "DEADLINE_SOON\r\n");
	else if (connection->give_up <= now)
		waiting_say(connection, "TIMED_OUT\r\n");
	else
		waiting_schedule(connection, now);
}

void waiting_at_end(struct connection *connection)
{
	/* One that has come in this turn may still get what is ready. */
	if (connection->is_waiting && !connection->is_fresh)
		waiting_say(connection, "TIMED_OUT\r\n");
}

static void serve_tubes(struct server *server)
{
	struct tube *tube;

	server->is_away = 0;
	while ((tube = server->ready) != NULL) {
		server->ready = tube->next_ready;
		if (!server->ready)
			server->ready_end = &server->ready;
		tube->is_ready = 0;
		/* One failure stands for all: each would fail, and they are asked again soon. */
		while (tube->first && !server->is_away && waiting_try(tube->first->connection) == 1)
			;
		tube_drop(server, tube);
	}
}

static void serve_fresh(struct server *server)
{
	struct connection *connection;

	while ((connection = server->fresh) != NULL) {
		uint64_t now = server_now(server);

		server->fresh = connection->next_fresh;
		if (!server->fresh)
			server->fresh_end = &server->fresh;
		connection->is_fresh = 0;
		if (!connection->is_waiting || (!server->is_away && waiting_try(connection) == 1))
			continue;
		/* Whether there is a job nobody knows: that its time is up would say that there is none. */
		if (server->is_away && connection->give_up <= now)
			waiting_say(connection, "INTERNAL_ERROR\r\n");
		else if (connection->at_end || connection->give_up <= now)
			waiting_say(connection, "TIMED_OUT\r\n");
		else
			waiting_schedule(connection, now);
	}
}

void waiting_serve(struct server *server)
{
	serve_tubes(server);
	serve_fresh(server);
}
