/* What all files of an open store in PostgreSQL need: reporting, losing the connection, and closing. */
#include "lib/postgres/state.h"

#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "lib/base/memory.h"
#include "lib/base/report.h"
#include "lib/base/time.h"
#include "lib/postgres/postgres_internal.h"

void ww_postgres_report(const struct postgres *postgres, const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	report_message(postgres->config.report, postgres->config.jobs.context, format, arguments);
	va_end(arguments);
}

void ww_postgres_lose(struct postgres *postgres, const char *why)
{
	if (atomic_exchange(&postgres->is_losing, 1))
		return;
	(void)snprintf(postgres->why, sizeof postgres->why, "%.*s", (int)strcspn(why, "\n"), why);
	postgres->lost = WW_EIO;
	ww_postgres_report(postgres,
	    "the connection to PostgreSQL is lost (%s): nothing is written or delivered until the store is opened again",
	    postgres->why);
	if (postgres->config.lost)
		postgres->config.lost(postgres->config.jobs.context);
}

void ww_postgres_state_clock(struct postgres *postgres, int64_t us)
{
	uint64_t now = time_now(CLOCK_BOOTTIME);
	uint64_t ahead = (uint64_t)us * WW_MICROSECOND - now;
	uint64_t drift = (now - postgres->ahead_since) / 2000;
	int64_t worse = (int64_t)(postgres->ahead - drift - ahead);

	/* Much worse means that PostgreSQL's clock was set back. */
	if (postgres->ahead_since && worse > 0 && worse < (int64_t)(100 * WW_MILLISECOND))
		ahead = postgres->ahead - drift;
	postgres->ahead = ahead;
	postgres->ahead_since = now;
}

int ww_postgres_state_end(struct postgres *postgres)
{
	const struct ww_allocator *allocator = postgres->allocator;
	int error = postgres->lost;

	ww_postgres_link_close(&postgres->reader);
	/* PostgreSQL notices a little later that a session has ended. The next opening must find the store free. */
	if (!ww_postgres_link_is_lost(&postgres->writer))
		(void)ww_postgres_link_execute(&postgres->writer, "SELECT pg_advisory_unlock_all()");
	ww_postgres_link_close(&postgres->writer);
	if (postgres->memory.ops)
		(void)postgres->memory.ops->close(postgres->memory.self);
	memory_give(allocator, postgres->round.bytes, postgres->round.room);
	for (size_t i = 0; i < PARTS; i++)
		ww_postgres_ids_free(&postgres->parts[i].ids, allocator);
	for (size_t i = 0; i < RING_PARTS; i++)
		memory_give(
		    allocator, postgres->lefts[i].all, postgres->lefts[i].room * sizeof *postgres->lefts[i].all);
	ww_postgres_ids_free(&postgres->moves, allocator);
	ww_postgres_ids_free(&postgres->taken, allocator);
	ww_postgres_ids_free(&postgres->visits, allocator);
	ww_postgres_ids_free(&postgres->open, allocator);
	ww_postgres_ids_clear(&postgres->known, allocator);
	memory_give(allocator, postgres, sizeof *postgres);
	return error;
}
