/* Who has reserved which job. What ends with a write that fails has not ended. */
#include <stdlib.h>

#include "tools/weekwheeld/server.h"

#undef uthash_nonfatal_oom
#define uthash_nonfatal_oom(lease) ((lease)->hh.tbl = NULL)

static void lease_link(struct lease *lease)
{
	struct connection *connection = lease->connection;

	lease->before = NULL;
	lease->after = connection->leases;
	if (lease->after)
		lease->after->before = lease;
	connection->leases = lease;
	/* Where it is known, it is kept known: looking for it means to look at all of them. */
	if (!lease->after || (connection->soonest && lease->ends < connection->soonest))
		connection->soonest = lease->ends;
}

void lease_changed(const struct lease *lease)
{
	struct connection *connection = lease->connection;

	if (connection->soonest >= lease->ends)
		connection->soonest = 0;
}

static void lease_unlink(struct lease *lease)
{
	struct connection *connection = lease->connection;

	if (lease->before)
		lease->before->after = lease->after;
	else
		connection->leases = lease->after;
	if (lease->after)
		lease->after->before = lease->before;
	lease_changed(lease);
}

void lease_forget(struct server *server, struct lease *lease)
{
	lease_unlink(lease);
	HASH_DEL(server->leases, lease);
	free(lease);
}

struct lease *lease_add(struct connection *connection, const struct ww_lease *reserved)
{
	struct server *server = connection->server;
	struct lease *lease;

	/* One that was here has ended, since the store gave the job away again. */
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

void lease_end(struct server *server, struct lease *lease)
{
	lease_unlink(lease);
	HASH_DEL(server->leases, lease);
	lease->after = server->ended;
	server->ended = lease;
}

/* The write failed: the job is reserved as it was, unless its connection is gone; then its time runs out. */
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

	while ((lease = server->ended) != NULL) {
		server->ended = lease->after;
		if (committed)
			free(lease);
		else
			lease_restore(server, lease);
	}
}

static void lease_release(struct server *server, struct lease *lease)
{
	/* When it is closed, a store of this process ends all leases itself; a shared one keeps them. */
	if ((server->is_stopping && !server->is_shared) || turn_begin(server) != WW_OK ||
	    ww_jobs_release(server->jobs, lease->id, lease->token, lease->priority, WW_JOB_BACKOFF,
	        "the connection was closed") < 0)
		server_note(server, "job %llu is not given back before its time is up", (unsigned long long)lease->id);
}

void lease_release_all(struct connection *connection)
{
	struct server *server = connection->server;
	struct lease *lease;

	while ((lease = connection->leases) != NULL) {
		lease_release(server, lease);
		lease_forget(server, lease);
	}
	/* Those that ended in this turn are not this connection's any more, however the write goes. */
	for (lease = server->ended; lease; lease = lease->after)
		if (lease->connection == connection)
			lease->connection = NULL;
}

/* Whether the store still holds the lease: its time may be up, or its job replaced. One that does not answer may. */
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
	struct lease *first = connection->leases;
	struct lease *lease;

	for (lease = first; lease; lease = lease->after)
		if (lease->ends < first->ends)
			first = lease;
	return first;
}

uint64_t lease_soonest(struct connection *connection, uint64_t now)
{
	struct lease *lease;

	/* Only one that is about to end is worth asking the store for. */
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
