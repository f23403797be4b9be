/*
 * Asks a shared store for jobs for the clients that wait, one task a client. For one event one client of the tube asks;
 * when it gets a job, two more ask. A single job thus goes to the first that waits, and many find all workers soon.
 */
#include <stdlib.h>

#include "tools/weekwheeld/clients/clients.h"

/* With this many tubes, a reserve computes little. */
enum { FEW = 8 };

/* A client asks for a job, or a job is given back. */
struct ask {
	struct task task;
	struct connection *connection;
	int is_fresh;      /* the client has begun to wait just before */
	uint64_t events;   /* of its tubes */
	uint64_t doubtful; /* a lease that is about to end, unless the store has ended it */
	uint64_t token;    /* of that lease */
	int is_held;       /* the store still has it, or may */
	int got;           /* what ww_jobs_reserve returned */
	struct ww_lease lease;
};

static uint64_t events_of(const struct connection *connection)
{
	uint64_t events = 0;

	for (size_t i = 0; i < connection->watch_count; i++)
		events += connection->watches[i]->tube->events;
	return events;
}

/* ---- Giving a job back */

static void return_run(struct task *task)
{
	struct ask *ask = (struct ask *)task;

	ask->got = ww_jobs_return(task->server->jobs, ask->lease.id, ask->lease.token);
}

static void return_done(struct task *task)
{
	struct ask *ask = (struct ask *)task;

	if (ask->got < 0 && ask->got != WW_ENOTFOUND)
		server_note(task->server, "job %llu comes back only when its time to run is over",
		    (unsigned long long)ask->lease.id);
	free(ask);
}

static void ask_give_back(struct server *server, struct ask *ask)
{
	ww_jobs_free(server->jobs, ask->lease.body);
	ask->task.run = return_run;
	ask->task.done = return_done;
	ask->got = WW_ECLOSED;
	task_start(server, &ask->task);
}

void ask_return(struct server *server, const struct ww_lease *lease)
{
	struct ask *ask = server->is_shared ? malloc(sizeof *ask) : NULL;

	if (!ask) {
		if (!server->is_shared)
			(void)ww_jobs_return(server->jobs, lease->id, lease->token);
		ww_jobs_free(server->jobs, lease->body);
		return;
	}
	ask->lease = *lease;
	ask_give_back(server, ask);
}

/* ---- Asking */

static void ask_run(struct task *task)
{
	struct ask *ask = (struct ask *)task;
	struct ww_jobs *jobs = task->server->jobs;
	struct ww_job_ref job = {.id = ask->doubtful};
	struct ww_job_info info;
	int error;

	ask->got = ww_jobs_reserve(jobs, ask->connection->names, ask->connection->watch_count, &ask->lease);
	if (ask->got > 0 || !ask->doubtful)
		return;
	error = ww_jobs_peek(jobs, &job, &info, NULL);
	ask->is_held = error == WW_OK ? info.token == ask->token : error != WW_ENOTFOUND;
}

/* Others that wait for this tube may find jobs, too. */
static void invite(struct server *server, const char *name)
{
	struct server_tube *tube = tube_find(server, name);

	if (!tube)
		return;
	tube_ready(server, tube);
	if (tube->is_ready)
		tube->wanted = 2;
}

static void got_job(struct connection *connection, struct ask *ask)
{
	struct server *server = connection->server;

	if (connection->at_end && !ask->is_fresh) {
		waiting_answer(connection, "TIMED_OUT\r\n");
		ask_give_back(server, ask);
		return;
	}
	/* Another worker may have the job by now, and may have ended it: so it goes back, and the client asks again. */
	if (task_outlasted(&ask->task, &ask->lease)) {
		ask_give_back(server, ask);
		ask_start(connection);
		return;
	}
	waiting_end(connection);
	waiting_give(connection, &ask->lease);
	invite(server, ask->lease.tube);
	free(ask);
}

/* Nothing was found: the answer for the client, or NULL if it goes on waiting. */
static const char *no_job(const struct connection *connection, const struct ask *ask, uint64_t now)
{
	if (ask->is_held)
		return "DEADLINE_SOON\r\n";
	/* It is not known whether there is a job. TIMED_OUT would say that there is none. */
	if (ask->got < 0 && ask->is_fresh && connection->give_up <= now)
		return "INTERNAL_ERROR\r\n";
	return connection->at_end || connection->give_up <= now ? "TIMED_OUT\r\n" : NULL;
}

static void ask_answered(struct connection *connection, const struct ask *ask)
{
	struct server *server = connection->server;
	uint64_t now = store_now(server);
	struct lease *ended = ask->doubtful && !ask->is_held ? lease_of(connection, ask->doubtful) : NULL;
	const char *text = no_job(connection, ask, now);

	if (ask->got < 0)
		store_failed(server, ask->got);
	if (ended && ended->token == ask->token)
		lease_pass(server, ended);
	if (text)
		waiting_answer(connection, text);
	else if (ask->got == 0 && ask->events != events_of(connection))
		ask_start(connection);
	else if (!connection->timer)
		waiting_schedule(connection, now);
}

static void ask_done(struct task *task)
{
	struct ask *ask = (struct ask *)task;
	struct connection *connection = ask->connection;

	connection->is_busy = 0;
	if (connection->is_waiting && ask->got > 0) {
		got_job(connection, ask);
	} else if (connection->is_waiting) {
		ask_answered(connection, ask);
		free(ask);
	} else if (ask->got > 0) {
		ask_give_back(task->server, ask);
	} else {
		free(ask);
	}
	if (!connection->is_busy)
		connection_done(connection);
}

void ask_start(struct connection *connection)
{
	struct server *server = connection->server;
	const struct lease *soon = lease_soon(connection, store_now(server));
	struct ask *ask = malloc(sizeof *ask);

	if (!ask) {
		waiting_answer(connection, "OUT_OF_MEMORY\r\n");
		return;
	}
	ask->task.run = ask_run;
	ask->task.done = ask_done;
	ask->connection = connection;
	ask->is_fresh = connection->is_fresh;
	ask->events = events_of(connection);
	ask->doubtful = soon ? soon->id : 0;
	ask->token = soon ? soon->token : 0;
	ask->is_held = 0;
	ask->got = WW_ECLOSED;
	connection->is_busy = 1;
	(connection->watch_count <= FEW ? task_start_short : task_start)(server, &ask->task);
}
