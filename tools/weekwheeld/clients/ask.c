/*
 * Asks a shared store for jobs for the clients that wait. For one event the first client of the tube asks; when it gets a
 * job, two more ask. A single job thus goes to the first that waits, and many find all workers soon. Clients that wait
 * at one tube alone ask together, in one task: the store is asked once for the jobs of all.
 */
#include <stdlib.h>

#include "tools/weekwheeld/clients/clients.h"

/* With this many tubes, a reserve computes little. */
enum { FEW = 8 };

/* Some clients ask for a job each. */
struct ask {
	struct task task;
	struct connection *connections[ASK_MOST];
	size_t count;
	int is_fresh;      /* the client has begun to wait just before */
	uint64_t events;   /* of its tubes */
	uint64_t doubtful; /* a lease that is about to end, unless the store has ended it */
	uint64_t token;    /* of that lease */
	int is_held;       /* the store still has it, or may */
	int got;           /* what ww_jobs_reserve_many returned */
	struct ww_lease leases[];
};

/* A job is given back. */
struct give_back {
	struct task task;
	struct ww_lease lease;
	int result;
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
	struct give_back *back = (struct give_back *)task;

	back->result = ww_jobs_return(task->server->jobs, back->lease.id, back->lease.token);
}

static void return_done(struct task *task)
{
	struct give_back *back = (struct give_back *)task;

	if (back->result < 0 && back->result != WW_ENOTFOUND)
		server_note(task->server, "job %llu comes back only when its time to run is over",
		    (unsigned long long)back->lease.id);
	free(back);
}

void ask_return(struct server *server, const struct ww_lease *lease)
{
	struct give_back *back = server->is_shared ? malloc(sizeof *back) : NULL;

	ww_jobs_free(server->jobs, lease->body);
	if (!server->is_shared)
		(void)ww_jobs_return(server->jobs, lease->id, lease->token);
	if (!back)
		return;
	back->task.run = return_run;
	back->task.done = return_done;
	back->lease = *lease;
	back->result = WW_ECLOSED;
	task_start(server, &back->task);
}

/* ---- Asking */

static void ask_run(struct task *task)
{
	struct ask *ask = (struct ask *)task;
	struct ww_jobs *jobs = task->server->jobs;
	struct ww_job_ref job = {.id = ask->doubtful};
	struct ww_job_info info;
	int error;

	ask->got = ww_jobs_reserve_many(
	    jobs, ask->connections[0]->names, ask->connections[0]->watch_count, ask->leases, ask->count);
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

/* Returns whether the client has to ask again. */
static int got_job(struct connection *connection, const struct ask *ask, struct ww_lease *lease)
{
	struct server *server = connection->server;

	if (connection->at_end && !ask->is_fresh) {
		waiting_answer(connection, "TIMED_OUT\r\n");
		ask_return(server, lease);
		return 0;
	}
	/* Another worker may have the job by now, and may have ended it: so it goes back. */
	if (task_outlasted(&ask->task, lease)) {
		ask_return(server, lease);
		return 1;
	}
	waiting_end(connection);
	waiting_give(connection, lease);
	invite(server, lease->tube);
	return 0;
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

/* Nothing was found for a client. Returns whether it has to ask again. */
static int ask_answered(struct connection *connection, const struct ask *ask)
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
	else if (ask->got >= 0 && ask->events != events_of(connection))
		return 1;
	else if (!connection->timer)
		waiting_schedule(connection, now);
	return 0;
}

/* A client is told what was found. Returns whether it has to ask again. */
static int ask_tell(struct connection *connection, const struct ask *ask, struct ww_lease *lease)
{
	int asks_again = 0;

	connection->is_busy = 0;
	if (connection->is_waiting)
		asks_again = lease ? got_job(connection, ask, lease) : ask_answered(connection, ask);
	else if (lease)
		ask_return(connection->server, lease);
	if (asks_again)
		connection->is_busy = 1;
	else
		connection_done(connection);
	return asks_again;
}

static void ask_done(struct task *task)
{
	struct ask *ask = (struct ask *)task;
	struct connection *again[ASK_MOST];
	size_t count = 0;

	for (size_t i = 0; i < ask->count; i++) {
		struct connection *connection = ask->connections[i];
		if (!ask_tell(connection, ask, (int)i < ask->got ? &ask->leases[i] : NULL))
			continue;
		if (ask_goes_alone(connection))
			ask_start(&connection, 1);
		else
			again[count++] = connection;
	}
	free(ask);
	if (count > 0)
		ask_start(again, count);
}

int ask_goes_alone(struct connection *connection)
{
	return connection->watch_count != 1 || connection->is_fresh ||
	       lease_soon(connection, store_now(connection->server));
}

void ask_start(struct connection *const *connections, size_t count)
{
	struct connection *connection = connections[0];
	struct server *server = connection->server;
	const struct lease *soon = lease_soon(connection, store_now(server));
	struct ask *ask = malloc(sizeof *ask + count * sizeof ask->leases[0]);

	if (!ask) {
		for (size_t i = 0; i < count; i++)
			waiting_answer(connections[i], "OUT_OF_MEMORY\r\n");
		return;
	}
	ask->task.run = ask_run;
	ask->task.done = ask_done;
	ask->count = count;
	for (size_t i = 0; i < count; i++) {
		ask->connections[i] = connections[i];
		connections[i]->is_busy = 1;
	}
	ask->is_fresh = connection->is_fresh;
	ask->events = events_of(connection);
	ask->doubtful = soon ? soon->id : 0;
	ask->token = soon ? soon->token : 0;
	ask->is_held = 0;
	ask->got = WW_ECLOSED;
	(connection->watch_count <= FEW ? task_start_short : task_start)(server, &ask->task);
}
