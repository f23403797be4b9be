/*
 * Keeps the leases: which connection has reserved which job. The store (lib/jobs) makes a job ready again when its lease
 * runs out. The server notices that when it asks. A lease that ends with a write comes back if the write fails.
 */
#include <stdlib.h>

#include "tools/weekwheeld/server.h"

#undef uthash_nonfatal_oom
#define uthash_nonfatal_oom(lease) ((lease)->hh.tbl = NULL)

static void lease_link(struct lease *lease)
{
	struct connection *connection = lease->connection;

	/* While the soonest end is known, keep it known: to find it takes a look at all leases. */
	if (LIST_EMPTY(&connection->leases) || (connection->soonest && lease->ends < connection->soonest))
		connection->soonest = lease->ends;
	LIST_INSERT_HEAD(&connection->leases, lease, next);
}

static void lease_changes(const struct lease *lease)
{
	struct connection *connection = lease->connection;

	if (connection->soonest >= lease->ends)
		connection->soonest = 0;
}

void lease_touched(struct lease *lease, uint64_t ends)
{
	lease_changes(lease);
	lease->ends = ends;
}

static void lease_remove(struct server *server, struct lease *lease)
{
	LIST_REMOVE(lease, next);
	lease_changes(lease);
	HASH_DEL(server->leases, lease);
}

static void lease_forget(struct server *server, struct lease *lease)
{
	lease_remove(server, lease);
	free(lease);
}

void lease_ended(struct server *server, struct lease *lease, int result)
{
	if (result == WW_ESTALE)
		lease_forget(server, lease);
	if (result < 0)
		return;
	lease_remove(server, lease);
	LIST_INSERT_HEAD(&server->ended, lease, next);
}

struct lease *lease_add(struct connection *connection, const struct ww_lease *reserved)
{
	struct server *server = connection->server;
	struct lease *lease;

	/* The store gives the job away again: an older lease of it has ended. */
	HASH_FIND(hh, server->leases, &reserved->id, sizeof reserved->id, lease);
	if (lease)
		lease_forget(server, lease);
	lease = calloc(1, sizeof *lease);
	if (!lease)
		return NULL;
	lease->id = reserved->id;
	lease->token = reserved->token;
	lease->ends = reserved->ends;
	lease->priority = reserved->priority;
	lease->connection = connection;
	HASH_ADD(hh, server->leases, id, sizeof lease->id, lease);
	if (!lease->hh.tbl) {
		free(lease);
		return NULL;
	}
	lease_link(lease);
	return lease;
}

struct lease *lease_of(const struct connection *connection, uint64_t id)
{
	struct lease *lease;

	HASH_FIND(hh, connection->server->leases, &id, sizeof id, lease);
	return lease && lease->connection == connection ? lease : NULL;
}

/* The write failed: the job is reserved as before. If the connection is gone, the lease runs out in the store. */
static void lease_restore(struct server *server, struct lease *lease)
{
	struct lease *newer;

	HASH_FIND(hh, server->leases, &lease->id, sizeof lease->id, newer);
	if (!lease->connection || newer) {
		free(lease);
		return;
	}
	HASH_ADD(hh, server->leases, id, sizeof lease->id, lease);
	if (lease->hh.tbl)
		lease_link(lease);
	else
		free(lease);
}

void lease_settle(struct server *server, int committed)
{
	struct lease *lease;

	while ((lease = LIST_FIRST(&server->ended)) != NULL) {
		LIST_REMOVE(lease, next);
		if (committed)
			free(lease);
		else
			lease_restore(server, lease);
	}
}

static void lease_release(struct server *server, struct lease *lease)
{
	/* A store in this process ends all leases when it is closed. A shared one keeps them. */
	if ((server->is_stopping && !server->is_shared) || turn_begin(server) != WW_OK ||
	    ww_jobs_release(server->jobs, lease->id, lease->token, lease->priority, WW_JOB_BACKOFF,
	        "the connection was closed") < 0)
		server_note(
		    server, "job %llu comes back only when its time to run is over", (unsigned long long)lease->id);
}

int lease_release_one(struct connection *connection)
{
	struct lease *lease = LIST_FIRST(&connection->leases);

	if (!lease)
		return 0;
	lease_release(connection->server, lease);
	lease_forget(connection->server, lease);
	return 1;
}

void lease_disown(struct connection *connection)
{
	struct lease *lease;

	LIST_FOREACH(lease, &connection->server->ended, next)
	if (lease->connection == connection)
		lease->connection = NULL;
}

/*
 * Return 1 if the store still holds the lease, or may: it does not answer. The lease may have run out, or its job may
 * have been replaced.
 */
static int lease_is_held(struct server *server, const struct lease *lease, uint64_t now)
{
	struct ww_job_ref job = {.id = lease->id};
	struct ww_job_info info;
	int error;

	if (lease->ends <= now)
		return 0;
	error = ww_jobs_peek(server->jobs, &job, &info, NULL);
	return error == WW_OK ? info.token == lease->token : error != WW_ENOTFOUND;
}

static struct lease *lease_first(const struct connection *connection)
{
	struct lease *first = LIST_FIRST(&connection->leases);

	for (struct lease *lease = first; lease; lease = LIST_NEXT(lease, next))
		if (lease->ends < first->ends)
			first = lease;
	return first;
}

uint64_t lease_soonest(struct connection *connection, uint64_t now)
{
	struct lease *lease;

	/* The store is asked only about a lease that is about to end. */
	if (connection->soonest > now + WW_SECOND)
		return connection->soonest;
	while ((lease = lease_first(connection)) != NULL) {
		if (lease->ends > now + WW_SECOND || lease_is_held(connection->server, lease, now))
			break;
		lease_forget(connection->server, lease);
	}
	connection->soonest = lease ? lease->ends : UINT64_MAX;
	return connection->soonest;
}
