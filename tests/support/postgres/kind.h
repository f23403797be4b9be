#ifndef TESTS_SUPPORT_POSTGRES_KIND_H
#define TESTS_SUPPORT_POSTGRES_KIND_H

/* The kind of store in PostgreSQL, on the test's clock. All share the program's server, and begin empty. */

#include "tests/lib/jobs/fixture.h"
#include "tests/support/postgres/postgres_server.h"
#include "weekwheel/jobs_postgres.h"

extern const struct kind kind_postgres;

/* The server, once a test has begun. */
const struct postgres_server *kind_postgres_server(void);
/* The configuration that the world's store is opened with. */
struct ww_jobs_postgres_config *kind_postgres_config(const struct world *world);
/* Open the world's store again, with a ring of so many nanoseconds; what is due after so many hours leaves memory. */
void kind_postgres_reopen(struct world *world, uint64_t ring, unsigned hours);
/* Whether a part of the ring is being emptied. That goes on for as long as a transaction has rows there. */
int kind_postgres_is_emptying(struct world *world, unsigned part);
/* Execute SQL, and return the first number of the answer. */
long long kind_postgres_ask(const char *sql);
/* Wait until a question has this answer. */
void kind_postgres_await(const char *sql, long long answer);

#endif
