/* The owner's side of ends by SQL: which deliveries may still be finished, and which rows of `ended` can go. */
#include "lib/postgres/fence.h"

#include <stdio.h>
#include <time.h>

#include "lib/base/time.h"
#include "lib/postgres/postgres_internal.h"
#include "lib/postgres/state.h"
#include "lib/postgres/store.h"

enum { BLOCK_BITS = 18, TRIES_A_SECOND = 20 };

int ww_postgres_fence_revoke(void *self, uint64_t id, uint64_t token)
{
	struct postgres *postgres = self;
	unsigned char numbers[2][8];
	const struct link_argument arguments[2] = {
	    {LINK_INT8, numbers[0], sizeof numbers[0]}, {LINK_INT8, numbers[1], sizeof numbers[1]}};
	PGresult *result;
	int error = postgres->lost;

	store_write64(numbers[0], id);
	store_write64(numbers[1], token);
	if (!error)
		error =
		    ww_postgres_link_ask(&postgres->writer, "SELECT weekwheel.revoke($1, $2)", arguments, 2, &result);
	if (error)
		return ww_postgres_store_failed(postgres, error);
	if (!ww_postgres_link_number(result, 0, 0))
		error = WW_ESTALE;
	PQclear(result);
	return error;
}

/* From now on, whoever reads the floor accepts no token below this one. */
static int move_floor(struct postgres *postgres, uint64_t floor)
{
	char statement[80];

	(void)snprintf(
	    statement, sizeof statement, "SELECT setval('weekwheel.floor', %llu)", (unsigned long long)floor);
	return ww_postgres_link_execute(&postgres->writer, statement);
}

/* No transaction that saw an earlier floor is about to commit. WW_EAGAIN: one is. */
static int await_checked(struct postgres *postgres)
{
	int error = ww_postgres_link_execute(&postgres->writer,
	    "BEGIN; SET LOCAL lock_timeout = 50; SELECT pg_advisory_xact_lock(1463900017, 4); COMMIT");

	if (error)
		(void)ww_postgres_link_execute(&postgres->writer, "ROLLBACK");
	return error;
}

/*
 * Every row in it is below the floor. A transaction that has added one locks the part until it ends, so that this
 * waits for each that saw an earlier floor at its commit. One that adds a row later sees the new floor.
 */
static int empty(struct postgres *postgres, unsigned part)
{
	char statement[100];
	int error;

	(void)snprintf(statement, sizeof statement,
	    "BEGIN; SET LOCAL lock_timeout = 50; TRUNCATE weekwheel.ended_%u; COMMIT", part);
	error = ww_postgres_link_execute(&postgres->writer, statement);
	if (error)
		(void)ww_postgres_link_execute(&postgres->writer, "ROLLBACK");
	return error;
}

/* Move the floor above the tokens of former owners. */
static int move_above(struct postgres *postgres, uint64_t floor)
{
	int error = move_floor(postgres, floor);

	if (!error)
		error = await_checked(postgres);
	for (unsigned i = 1; error == WW_EAGAIN; i++) {
		if (i == TRIES_A_SECOND)
			ww_postgres_report(postgres,
			    "nothing is delivered before a transaction has ended that has finished a "
			    "job and is about to commit");
		(void)nanosleep(&(struct timespec){.tv_nsec = 1000000000 / TRIES_A_SECOND}, NULL);
		error = await_checked(postgres);
	}
	if (!error)
		error = ww_postgres_link_execute(&postgres->writer, "SELECT setval('weekwheel.opened', 1)");
	/* A transaction under way in the part will fail, so all that is left there can go. */
	for (unsigned part = 0; part < ENDED_PARTS && !error; part++)
		(void)empty(postgres, part);
	postgres->fenced = floor >> BLOCK_BITS;
	for (unsigned part = 0; part < ENDED_PARTS; part++)
		postgres->ended_from[part] = postgres->fenced;
	return error;
}

int ww_postgres_fence_open(struct postgres *postgres)
{
	uint64_t floor, next;
	/* In a batch, as callbacks of the engine write, too. */
	int error = ww_jobs_begin(postgres->jobs);
	int ended;

	if (error)
		return error;
	ww_jobs_port_tokens(postgres->jobs, &floor, &next);
	error = move_above(postgres, floor);
	ended = ww_jobs_commit(postgres->jobs);
	return error ? ww_postgres_store_failed(postgres, error) : ended;
}

/* Whether the part has rows of a block before that of the floor, and none of a later one. */
static int is_dispensable(const struct postgres *postgres, unsigned part, uint64_t last)
{
	uint64_t latest = last - (last - part) % ENDED_PARTS;

	return latest >= postgres->ended_from[part] && latest < postgres->fenced;
}

void ww_postgres_fence_tend(struct postgres *postgres)
{
	uint64_t now = time_now(CLOCK_MONOTONIC);
	uint64_t floor, next;
	int error = WW_OK;

	if (now - postgres->fenced_since < postgres->config.ring)
		return;
	postgres->fenced_since = now;
	ww_jobs_port_tokens(postgres->jobs, &floor, &next);
	if (floor >> BLOCK_BITS > postgres->fenced) {
		error = move_floor(postgres, floor >> BLOCK_BITS << BLOCK_BITS);
		if (!error)
			postgres->fenced = floor >> BLOCK_BITS;
	}
	for (unsigned part = 0; part < ENDED_PARTS && !error; part++) {
		if (!is_dispensable(postgres, part, next >> BLOCK_BITS))
			continue;
		error = empty(postgres, part);
		if (!error)
			postgres->ended_from[part] = postgres->fenced;
	}
	if (error)
		(void)ww_postgres_store_failed(postgres, error);
}
