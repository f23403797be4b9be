/*
 * Keeps the leases: which connection has reserved which job. The store (lib/jobs) makes a job ready again when its
 * lease runs out. The server notices that when it asks. A lease that ends with a write comes back if the write fails.
 * One that the store ended by itself stays with its connection as a past one.
 */
#include <stdlib.h>

#include "tools/weekwheeld/clients/clients.h"

#undef uthash_nonfatal_oom
#define uthash_nonfatal_oom(lease) ((lease)->hh.tbl = NULL)

/* ---- The leases of a connection, in a heap: the first ends first. Each operation takes a logarithm of their number. */

static void heap_set(struct connection *connection, size_t at, struct lease *lease)
{
	connection->heap[at] = lease;
	lease->at = at;
}

/* Move the lease, whose place is free, to where it belongs. */
static void heap_settle(struct connection *connection, struct lease *lease, size_t at)
{
	struct lease **heap = connection->heap;
	size_t child;

	for (; at > 0 && lease->ends < heap[(at - 1) / 2]->ends; at = (at - 1) / 2)
		heap_set(connection, at, heap[(at - 1) / 2]);
	while ((child = 2 * at + 1) < connection->lease_count) {
		child += child + 1 < connection->lease_count && heap[child + 1]->ends < heap[child]->ends;
		if (lease->ends <= heap[child]->ends)
			break;
		heap_set(connection, at, heap[child]);
		at = child;
	}
	heap_set(connection, at, lease);
}

/* Returns 0, or -1 without memory. */
static int heap_add(struct connection *connection, struct lease *lease)
{
	size_t room = connection->lease_room ? 2 * connection->lease_room : 4;
	struct lease **heap;

	if (connection->lease_count == connection->lease_room) {
		heap = realloc(connection->heap, room * sizeof *heap);
		if (!heap)
			return -1;
		connection->heap = heap;
		connection->lease_room = room;
	}
	connection->lease_count++;
	heap_settle(connection, lease, connection->lease_count - 1);
	return 0;
}

static void heap_remove(struct connection *connection, const struct lease *lease)
{
	struct lease *last = connection->heap[--connection->lease_count];

	if (last != lease)
		heap_settle(connection, last, lease->at);
}

/* ---- The past leases of a connection */

/* The most of a connection. If more jobs time out, the oldest are forgotten. */
enum { PAST_MAX = 1000 };

static void past_remove(struct server *server, struct lease *lease)
{
	lease->connection->past_count--;
	server->clients->past_count--;
	TAILQ_REMOVE(&lease->connection->past, lease, next);
	lease->is_past = lease->is_told = 0;
}

static void past_forget_first(struct server *server, struct connection *connection)
{
	struct lease *lease = TAILQ_FIRST(&connection->past);

	past_remove(server, lease);
	free(lease);
}

static void past_add(struct server *server, struct lease *lease)
{
	struct connection *connection = lease->connection;

	if (connection->past_count == PAST_MAX)
		past_forget_first(server, connection);
	lease->is_past = 1;
	connection->past_count++;
	server->clients->past_count++;
	TAILQ_INSERT_TAIL(&connection->past, lease, next);
}

struct lease *lease_past(const struct connection *connection, uint64_t id, const struct lease *older)
{
	struct lease *lease = older ? TAILQ_NEXT(older, next) : TAILQ_FIRST(&connection->past);

	while (lease && lease->id != id)
		lease = TAILQ_NEXT(lease, next);
	return lease;
}

/* ---- One lease */

/* Returns 0, or -1 without memory. */
static int lease_link(struct server *server, struct lease *lease)
{
	if (heap_add(lease->connection, lease) != 0)
		return -1;
	HASH_ADD(hh, server->clients->leases, id, sizeof lease->id, lease);
	if (lease->hh.tbl)
		return 0;
	heap_remove(lease->connection, lease);
	return -1;
}

static void lease_remove(struct server *server, struct lease *lease)
{
	if (lease->is_past) {
		past_remove(server, lease);
		return;
	}
	heap_remove(lease->connection, lease);
	HASH_DEL(server->clients->leases, lease);
}

static void lease_forget(struct server *server, struct lease *lease)
{
	lease_remove(server, lease);
	free(lease);
}

void lease_pass(struct server *server, struct lease *lease)
{
	if (lease->is_past)
		return;
	lease_remove(server, lease);
	past_add(server, lease);
}

void lease_forget_past(struct connection *connection)
{
	while (!TAILQ_EMPTY(&connection->past))
		past_forget_first(connection->server, connection);
}

void lease_known(struct server *server, struct lease *lease)
{
	lease_pass(server, lease);
	lease->is_told = 1;
}

void lease_touched(struct server *server, struct lease *lease, uint64_t ends)
{
	struct lease *newer;

	if (!lease->is_past) {
		lease->ends = ends;
		heap_settle(lease->connection, lease, lease->at);
		return;
	}
	/* Another client may have got the job while a shared store answered. */
	HASH_FIND(hh, server->clients->leases, &lease->id, sizeof lease->id, newer);
	if (newer)
		return;
	past_remove(server, lease);
	lease->ends = ends;
	if (lease_link(server, lease) != 0)
		past_add(server, lease);
}

/*
 * The connection has got the job again. That delivery stands for an earlier one of the same put, and for one of which
 * the client knows that it is over. Of any other the client may still say that it is done. Return how many earlier
 * ones the new one stands for whose ends the client has not said.
 */
static uint32_t past_forget(struct connection *connection, const struct ww_lease *reserved)
{
	struct lease *lease, *next;
	uint32_t earlier = 0;

	for (lease = TAILQ_FIRST(&connection->past); lease; lease = next) {
		next = TAILQ_NEXT(lease, next);
		if (lease->id != reserved->id || (!lease->is_told && lease->created != reserved->created))
			continue;
		earlier += lease->created == reserved->created ? lease->earlier + !lease->is_told : 0;
		lease_forget(connection->server, lease);
	}
	return earlier;
}

/*
 * The store has written that a client ended it, or that the job was put again before. What the client says of an
 * earlier delivery comes later, and must not end what is put until then.
 */
static void lease_written(struct server *server, struct lease *lease)
{
	if (!lease->is_stale) {
		counts_add(lease->counts, lease->count);
		counts_ran(&server->counts, lease->ran, store_now(server));
	}
	if (lease->connection && lease->earlier) {
		lease->earlier--;
		past_add(server, lease);
	} else {
		free(lease);
	}
}

void lease_ended(struct server *server, struct lease *lease, int result, enum count count)
{
	uint64_t now;

	if (result < 0 && result != WW_ESTALE)
		return;
	now = store_now(server);
	lease->is_stale = result == WW_ESTALE;
	lease->was_past = lease->is_past;
	lease->was_told = lease->is_told;
	lease->count = count;
	lease->ran = now > lease->given ? now - lease->given : 0;
	lease_remove(server, lease);
	/* A shared store has written it. */
	if (server->is_shared)
		lease_written(server, lease);
	else
		TAILQ_INSERT_TAIL(&server->clients->ended, lease, next);
}

struct lease *lease_add(struct connection *connection, const struct ww_lease *reserved)
{
	struct server *server = connection->server;
	struct lease *lease;
	uint32_t earlier;

	/* The store gives the job away again: an older lease of it has ended. */
	HASH_FIND(hh, server->clients->leases, &reserved->id, sizeof reserved->id, lease);
	if (lease)
		lease_pass(server, lease);
	earlier = past_forget(connection, reserved);
	lease = calloc(1, sizeof *lease);
	if (!lease)
		return NULL;
	lease->id = reserved->id;
	lease->token = reserved->token;
	lease->created = reserved->created;
	lease->ends = reserved->ends;
	lease->given = store_now(server);
	lease->attempt = reserved->attempt;
	lease->earlier = earlier;
	lease->counts = counts_of(&server->counts, reserved->tube);
	lease->priority = reserved->priority;
	lease->connection = connection;
	if (lease_link(server, lease) != 0) {
		free(lease);
		return NULL;
	}
	counts_deliver(&server->counts, lease->counts, reserved->attempt, reserved->kicks, reserved->late);
	return lease;
}

static struct lease *lease_first(const struct connection *connection)
{
	return connection->lease_count ? connection->heap[0] : NULL;
}

struct lease *lease_of(const struct connection *connection, uint64_t id)
{
	struct lease *lease;

	HASH_FIND(hh, connection->server->clients->leases, &id, sizeof id, lease);
	return lease && lease->connection == connection ? lease : NULL;
}

/* The write failed: all is as before. If the connection is gone, the lease runs out in the store. */
static void lease_restore(struct server *server, struct lease *lease)
{
	struct lease *newer;

	HASH_FIND(hh, server->clients->leases, &lease->id, sizeof lease->id, newer);
	if (lease->connection && lease->is_stale && (lease->was_past || newer)) {
		past_add(server, lease);
		lease->is_told = lease->was_told;
	} else if (!lease->connection || newer || lease_link(server, lease) != 0) {
		free(lease);
	}
}

void lease_settle(struct server *server, int committed)
{
	struct lease *lease;

	while ((lease = TAILQ_FIRST(&server->clients->ended)) != NULL) {
		TAILQ_REMOVE(&server->clients->ended, lease, next);
		if (committed)
			lease_written(server, lease);
		else
			lease_restore(server, lease);
	}
}

static const char lease_closed[] = "the connection was closed";

static void lease_lost(struct server *server, uint64_t id)
{
	server_note(server, "job %llu comes back only when its time to run is over", (unsigned long long)id);
}

/* ---- Giving leases back to a shared store */

/* The most that are given back before tasks of others have their turn. */
enum { RETURNS_MAX = 16 };

struct returns {
	struct task task;
	struct connection *connection;
	size_t count;
	struct {
		uint64_t id;
		uint64_t token;
		uint32_t priority;
		int error;
	} leases[RETURNS_MAX];
};

static void returns_run(struct task *task)
{
	struct returns *returns = (struct returns *)task;

	for (size_t i = 0; i < returns->count; i++)
		returns->leases[i].error = ww_jobs_release(task->server->jobs, returns->leases[i].id,
		    returns->leases[i].token, returns->leases[i].priority, WW_JOB_BACKOFF, lease_closed);
}

static void returns_done(struct task *task)
{
	struct returns *returns = (struct returns *)task;
	struct connection *connection = returns->connection;

	for (size_t i = 0; i < returns->count; i++)
		if (returns->leases[i].error < 0)
			lease_lost(task->server, returns->leases[i].id);
	free(returns);
	connection_done(connection);
}

static int return_some(struct connection *connection)
{
	struct server *server = connection->server;
	struct returns *returns = malloc(sizeof *returns);
	size_t count = 0;
	struct lease *lease;

	for (; count < RETURNS_MAX && (lease = lease_first(connection)) != NULL; count++) {
		if (returns) {
			returns->leases[count].id = lease->id;
			returns->leases[count].token = lease->token;
			returns->leases[count].priority = lease->priority;
			returns->leases[count].error = WW_ECLOSED;
		} else {
			lease_lost(server, lease->id);
		}
		lease_forget(server, lease);
	}
	if (!returns)
		return 1;
	returns->task.run = returns_run;
	returns->task.done = returns_done;
	returns->connection = connection;
	returns->count = count;
	connection->is_busy = 1;
	task_start(server, &returns->task);
	return 1;
}

static void lease_release(struct server *server, struct lease *lease)
{
	int error = WW_ECLOSED;

	/* A store in this process ends all leases when it is closed. */
	if (!server->is_stopping && turn_begin(server) == WW_OK)
		error = ww_jobs_release(
		    server->jobs, lease->id, lease->token, lease->priority, WW_JOB_BACKOFF, lease_closed);
	/* A lease that has ended is not lost: a transaction may have finished the job. */
	if (error < 0 && error != WW_ESTALE)
		lease_lost(server, lease->id);
}

int lease_release_some(struct connection *connection)
{
	struct server *server = connection->server;
	struct lease *lease = lease_first(connection);

	if (!lease)
		return 0;
	if (server->is_shared && !server->tasks.is_stopping)
		return return_some(connection);
	if (server->is_shared)
		lease_lost(server, lease->id);
	else
		lease_release(server, lease);
	lease_forget(server, lease);
	return 1;
}

void lease_disown(struct connection *connection)
{
	struct lease *lease;

	TAILQ_FOREACH(lease, &connection->server->clients->ended, next)
	if (lease->connection == connection)
		lease->connection = NULL;
	lease_forget_past(connection);
}

/*
 * Return 1 if the store still holds the lease, or may. The lease may have run out, or its job may have been replaced. A
 * shared store is asked only when it matters (waiting.c).
 */
static int lease_is_held(struct server *server, const struct lease *lease, uint64_t now)
{
	struct ww_job_ref job = {.id = lease->id};
	struct ww_job_info info;
	int error;

	if (lease->ends <= now)
		return 0;
	if (server->is_shared)
		return 1;
	error = ww_jobs_peek(server->jobs, &job, &info, NULL);
	return error == WW_OK ? info.token == lease->token : error != WW_ENOTFOUND;
}

uint64_t lease_soonest(struct connection *connection, uint64_t now)
{
	struct lease *lease;

	while ((lease = lease_first(connection)) != NULL) {
		/* The store is asked only about a lease that is about to end. */
		if (lease->ends > now + WW_SECOND || lease_is_held(connection->server, lease, now))
			break;
		lease_pass(connection->server, lease);
	}
	return lease ? lease->ends : UINT64_MAX;
}

struct lease *lease_soon(struct connection *connection, uint64_t now)
{
	if (lease_soonest(connection, now) > now + WW_SECOND)
		return NULL;
	return lease_first(connection);
}
