#ifndef LIB_POSTGRES_STORE_H
#define LIB_POSTGRES_STORE_H

/*
 * The functions of lib/jobs/store/store.h on PostgreSQL: pairs in memory, of which each write is a row of `turn`. Pairs that
 * are missing there, of far jobs, come when they are read.
 *
 * Threads: whoever executes calls of the engine. Errors: those of store.h, and WW_ENOMEM. WW_EIO is final.
 */

#include "lib/jobs/store/store.h"

struct postgres;

/* With PostgreSQL's clock, and with a virtual one, which the drivers have. */
extern const struct store_ops ww_postgres_store_ops;
extern const struct store_ops ww_postgres_store_ops_virtual;

/* What an error of the writer means for the store. A lost connection ends it. */
int ww_postgres_store_failed(struct postgres *postgres, int error);

/*
 * Put a record, whose newest row is in this part, into memory. `kept` is any byte and the record. If a slot has an
 * older row, note in a part of the ring that it is gone.
 */
int ww_postgres_store_place(struct postgres *postgres, enum store_table table, struct store_bytes key,
    struct store_bytes kept, unsigned part, unsigned noted_in);
/* Remove that record from memory. WW_ENOTFOUND. */
int ww_postgres_store_remove(
    struct postgres *postgres, enum store_table table, struct store_bytes key, unsigned noted_in);
/* Let memory have a record that lies in this part, as `kept`, without more. */
int ww_postgres_store_keep(const struct postgres *postgres, enum store_table table, struct store_bytes key,
    struct store_bytes kept, unsigned part);
/* A record goes from one part to another, or to none: at most one of them is a slot. */
int ww_postgres_store_move(struct postgres *postgres, uint64_t id, unsigned from, unsigned to, unsigned noted_in);
/* What was placed, moved and removed since the last time is so; or no record was moved. */
void ww_postgres_store_settle(struct postgres *postgres);
void ww_postgres_store_unsettle(struct postgres *postgres);

/* Add the pairs that belong to no job to the changes of the present write. */
int ww_postgres_store_add_image(struct postgres *postgres);
/* Have that planned on an opened connection. */
int ww_postgres_store_prepare(struct postgres *postgres);
/* Write these changes as a turn, into this part of the ring. */
int ww_postgres_store_write(struct postgres *postgres, unsigned part);

#endif
