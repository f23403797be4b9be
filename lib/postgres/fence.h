#ifndef LIB_POSTGRES_FENCE_H
#define LIB_POSTGRES_FENCE_H

/*
 * The owner's side of ends by SQL (finish.sql): it revokes deliveries, moves the floor of tokens, and empties the
 * parts of `ended`.
 *
 *     tokens:   ...former owners| block | block | block | block |      a block is 2^18 tokens, in the part of its number modulo 4
 *                                               ^floor      ^next
 *
 * Threads: whoever executes calls of the engine. Errors: those of link.h.
 */

#include <stdint.h>

struct postgres;

/*
 * The store is being opened, and delivers nothing yet: from now on, no finish of a former owner's delivery commits.
 * Those that committed are in the inbox. This may wait for a prepared transaction.
 */
int ww_postgres_fence_open(struct postgres *postgres);
/* store_ops.revoke */
int ww_postgres_fence_revoke(void *postgres, uint64_t id, uint64_t token);
/* Now and then: move the floor up to the oldest lease, and empty what is below it. Failures are retried later. */
void ww_postgres_fence_tend(struct postgres *postgres);

#endif
