#ifndef LIB_JOBS_STORE_SQLITE_H
#define LIB_JOBS_STORE_SQLITE_H

/*
 * The index: the tables of store.h in a database of SQLite, `index.db`. One thread reads and another one writes, each
 * on a connection of its own. A write is one transaction, which is stable when it has been committed. It also stores up
 * to where the journal was taken over.
 */

#include "lib/jobs/store/connection.h"
#include "lib/jobs/store/slots.h"
#include "lib/jobs/store/store.h"
#include "lib/journal/fault.h"

struct sqlite_table {
	sqlite3_stmt *get;
	sqlite3_stmt *from;   /* forwards, from a key on */
	sqlite3_stmt *before; /* backwards */
	sqlite3_stmt *put;
	sqlite3_stmt *remove;
};

/* Copies of what was read lie in blocks until `rest`. */
struct sqlite_block;

struct sqlite {
	const struct ww_allocator *allocator;
	sqlite3 *reader;
	sqlite3 *writer; /* NULL: read only */
	uint64_t ahead;  /* for slots */
	sqlite3 *file;   /* the index itself, if the reader reads a copy; or NULL */
	struct sqlite_table table[STORE_TABLES];
	struct slots slots;
	int reading;                 /* a read transaction is open */
	int pages;                   /* of the log, after the last commit */
	int is_ended;                /* the store was closed in order */
	int is_stale;                /* slots could not be read again after an error */
	const char *folder;          /* the caller's */
	struct journal_fault *fault; /* the caller's; a failed sync is noted there */
	struct sqlite_block *blocks;
};

/* Open it, and make it if it is missing. *cut and *record: up to where it has taken over the journal. */
int ww_sqlite_open(struct sqlite *sqlite, const struct ww_jobs_config *config, struct journal_fault *fault,
    uint64_t *cut, uint64_t *record);
/*
 * Of one that only reads: go on with a copy, so that the log need not be kept for it. A damaged index cannot be copied,
 * and is read itself.
 */
int ww_sqlite_detach(struct sqlite *sqlite);
/* After a failed sync, without another sync. */
void ww_sqlite_close(struct sqlite *sqlite);

/* ---- For slots */
/* Room, or a copy of a column, until rest. */
unsigned char *ww_sqlite_room(struct sqlite *sqlite, size_t size);
int ww_sqlite_copy(struct sqlite *sqlite, sqlite3_stmt *statement, int column, struct store_bytes *bytes);

/* Take the sum off a value as it is stored. WW_ECORRUPT: it is wrong. */
int ww_sqlite_check(enum store_table table, struct store_bytes key, struct store_bytes *value);

/* ---- The reader's: as in store.h. */
int ww_sqlite_get(struct sqlite *sqlite, enum store_table table, struct store_bytes key, struct store_bytes *value);
int ww_sqlite_seek(struct sqlite *sqlite, enum store_table table, struct store_bytes from, struct store_bytes *key,
    struct store_bytes *value);
int ww_sqlite_before(struct sqlite *sqlite, enum store_table table, struct store_bytes to, struct store_bytes *key,
    struct store_bytes *value);
int ww_sqlite_next(struct sqlite *sqlite, enum store_table table, struct store_bytes *key, struct store_bytes *value);
void ww_sqlite_rest(struct sqlite *sqlite);

/* The writer's. */
/* Bytes that the files take, without those of pages that are free. */
uint64_t ww_sqlite_bytes(const struct sqlite *sqlite, uint64_t *unused);
int ww_sqlite_begin(struct sqlite *sqlite);
int ww_sqlite_put(struct sqlite *sqlite, enum store_table table, struct store_bytes key, struct store_bytes value);
int ww_sqlite_remove(struct sqlite *sqlite, enum store_table table, struct store_bytes key);
/* Commit, and copy the log into the database when it is long. On error nothing was written. */
int ww_sqlite_commit(struct sqlite *sqlite, uint64_t cut, uint64_t record);
/* A page of the index is damaged: note it. Returns WW_ECORRUPT. */
int ww_sqlite_damage(struct journal_fault *fault, const char *folder);
/* After an error, which it returns, or a more exact one. */
int ww_sqlite_abort(struct sqlite *sqlite, int error);
/* There is nothing to do for a while: free the space of the log, unless others read it. */
void ww_sqlite_settle(struct sqlite *sqlite);
/* Commit, or abort if there is an error, which is then the answer. */
int ww_sqlite_end(struct sqlite *sqlite, int error);

#endif
