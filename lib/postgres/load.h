#ifndef LIB_POSTGRES_LOAD_H
#define LIB_POSTGRES_LOAD_H

/* The start: all that was written goes into memory. */

struct postgres;

/*
 * Read all that was written into memory. The caller owns the store. Errors: WW_ECORRUPT: a row makes no sense.
 * WW_ENOMEM, and those of link.h.
 */
int ww_postgres_load(struct postgres *postgres);

#endif
