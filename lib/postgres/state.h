#ifndef LIB_POSTGRES_STATE_H
#define LIB_POSTGRES_STATE_H

/* What every part of an open store in PostgreSQL needs. */

#include <stdint.h>

struct postgres;

/* Tell a person. */
__attribute__((format(printf, 2, 3))) void ww_postgres_report(const struct postgres *postgres, const char *format, ...);
/* A connection is lost, for this reason. Any thread may notice it first. */
void ww_postgres_lose(struct postgres *postgres, const char *why);
/*
 * An answer shows that it was this time, in us, by PostgreSQL's clock. How long ago that was is unknown, so this is a
 * lower bound: the quickest answer is the best, until the rates of the two clocks may have changed that.
 */
void ww_postgres_state_clock(struct postgres *postgres, int64_t us);
/* Close the connections, which frees the owner's lock, and free everything. WW_EIO: the connection was lost. */
int ww_postgres_state_end(struct postgres *postgres);

#endif
