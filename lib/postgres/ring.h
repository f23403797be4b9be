#ifndef LIB_POSTGRES_RING_H
#define LIB_POSTGRES_RING_H

/*
 * Turns the ring: begins its next part, and empties the oldest one and slots that are done (postgres_internal.h has the
 * picture).
 *
 * Threads: whoever executes calls of the engine, between two writes.
 */

struct postgres;

/*
 * After a turn: begin the next part when it is time, or write on some of the oldest. Failures are retried later,
 * unless the connection is lost. Returns whether there is more to do at once.
 */
int ww_postgres_ring_tend(struct postgres *postgres);

#endif
