#ifndef LIB_POSTGRES_REQUEST_H
#define LIB_POSTGRES_REQUEST_H

/* The requests of a row of the inbox: one, or with ids one for each of them. */

#include <stddef.h>
#include <stdint.h>

#include "lib/postgres/link.h"
#include "lib/postgres/postgres_internal.h"

/* Columns of the reading's answer. */
enum request_column {
	REQUEST_SNAPSHOT,
	REQUEST_CLOCK,
	REQUEST_RING,
	REQUEST_VERB,
	REQUEST_ID,
	REQUEST_DUE,
	REQUEST_TUBE,
	REQUEST_BODY,
	REQUEST_JOB,
	REQUEST_IDS,
	REQUEST_WALL,
	REQUEST_KEY,
	REQUEST_PRIORITY,
	REQUEST_RUN,
	REQUEST_PERIOD,
	REQUEST_MISSED,
	REQUEST_SKIP,
	REQUEST_BACKOFF,
	REQUEST_BACKOFF_MAX,
	REQUEST_ATTEMPTS,
	REQUEST_KEY_MODE,
	REQUEST_KEY_SPAN,
	REQUEST_KEEP,
	REQUEST_GROUP,
	REQUEST_TOKEN,
	REQUEST_EXPIRE,
	REQUEST_EXPIRED,
	REQUEST_HEADERS,
	REQUEST_THEN
};

/* Verbs from this one on are ends of deliveries. */
enum { REQUESTS_OF_ENDS = 3 };

/* A request: a row, or one of a row's jobs. */
struct request {
	PGresult *row;
	uint64_t id;
	const void *body;
	size_t size;
	int is_last; /* the last one of its row */
	int wrong;   /* an error: the row is malformed */
};

/* The statement that reads them. $1: an xid8, whose and later transactions' rows are read; $2: an xid8[] of more; $3: the least verb, an int2. */
extern const char ww_postgres_request_statement[];

/* Pass it to the engine. Errors are those of ww_jobs_put and others, and WW_EVERSION: an unknown verb. */
int ww_postgres_request_take(struct postgres *postgres, const struct request *request);
/* Whether it fails now but may succeed later: there is no room, or no memory, or a statement was cancelled. */
int ww_postgres_request_can_wait(int error);
/* It makes no sense: keep it in a table where a person finds it. Errors of link.h. */
int ww_postgres_request_refuse(struct postgres *postgres, const struct request *request, int why);

/* ---- Fields */

static inline uint64_t request_number(const PGresult *row, enum request_column column, uint64_t usual)
{
	return PQgetisnull(row, 0, (int)column) ? usual : (uint64_t)ww_postgres_link_number(row, 0, (int)column);
}

static inline const void *request_bytes(const PGresult *row, enum request_column column, size_t *size)
{
	return ww_postgres_link_bytes(row, 0, (int)column, size);
}

static inline unsigned request_ring(const PGresult *row)
{
	return (unsigned)(request_number(row, REQUEST_RING, 0) % RING_PARTS);
}

#endif
