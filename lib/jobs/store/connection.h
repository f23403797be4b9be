#ifndef LIB_JOBS_STORE_CONNECTION_H
#define LIB_JOBS_STORE_CONNECTION_H

/*
 * A connection to a database of SQLite, and its statements. Errors are those of error.h; WW_ENOTFOUND: no row. The
 * memory is SQLite's.
 */

#include <sqlite3.h>

#include "lib/jobs/store/store.h"

/* What a result code of SQLite means that this connection has just returned. */
int ww_connection_error(sqlite3 *connection, int code);
/* Open an index. Unless *connection is NULL, close it, even after an error. */
int ww_connection_open(sqlite3 **connection, const char *path, int flags);
/* Copy a database into a hidden one that ends with its connection, *to, which is as above. */
int ww_connection_copy(sqlite3 *from, sqlite3 **to);

int ww_connection_run(sqlite3 *connection, const char *text);
/* The number that a statement returns, or 0. */
uint64_t ww_connection_number(sqlite3 *connection, const char *text);

int ww_connection_prepare(sqlite3 *connection, sqlite3_stmt **statement, const char *text);
int ww_connection_bind(sqlite3_stmt *statement, int place, struct store_bytes bytes);
int ww_connection_bind_number(sqlite3_stmt *statement, int place, uint64_t number);
/* Go on to the next row. */
int ww_connection_step(sqlite3_stmt *statement);
/* Execute a statement that returns no rows. */
int ww_connection_done(sqlite3_stmt *statement);

#endif
