#ifndef LIB_POSTGRES_LINK_H
#define LIB_POSTGRES_LINK_H

/*
 * Connections to PostgreSQL, opened with the settings that the store needs. They execute one statement at a time,
 * with arguments and answers in binary form. What goes wrong is an error of error.h and a sentence. A server that is
 * silent for long counts as lost: an owner that is cut off must not hang.
 *
 * Threads: a connection is used by one thread at a time.
 */

#include <stddef.h>
#include <stdint.h>

#include <libpq-fe.h>

#define LINK_WHY_MAX 500
/* Not an error: there are no more rows. */
#define LINK_END 1

struct link {
	PGconn *connection;
	int is_silent;          /* it did not answer in time */
	int patience;           /* ms to wait for an answer; -1: for ever */
	const char *prepared;   /* a statement that PostgreSQL has planned */
	char why[LINK_WHY_MAX]; /* the last error, in a sentence */
};

/* The type of an argument, as PostgreSQL numbers them. */
enum link_type {
	LINK_INT2 = 21,
	LINK_INT8 = 20,
	LINK_TEXT = 25,
	LINK_BYTEA = 17,
	LINK_INT2S = 1005,
	LINK_INT8S = 1016,
	LINK_BYTEAS = 1001,
	LINK_XID8 = 5069,
	LINK_XID8S = 271
};

/* An argument. `bytes` stay the caller's. */
struct link_argument {
	enum link_type type;
	const void *bytes;
	size_t size;
};

/*
 * Connect. `synchronous` is the value for synchronous_commit. Errors: WW_EINVAL: the url is malformed, or leads to a
 * pool. WW_EIO: no server answers. WW_EDENIED, WW_ENOTFOUND: there is no such database. WW_ENOMEM. `why` says more.
 */
int ww_postgres_link_open(struct link *link, const char *url, const char *synchronous);
void ww_postgres_link_close(struct link *link);
/* Have this statement planned once. The text must stay where it is: link_execute recognizes it by its address. */
int ww_postgres_link_prepare(struct link *link, const char *statement, const enum link_type *types, size_t count);
/* Execute one statement. *result, unless NULL, is for PQclear; on error it is NULL. */
int ww_postgres_link_ask(
    struct link *link, const char *statement, const struct link_argument *arguments, size_t count, PGresult **result);
/* The same without arguments and answer. */
int ww_postgres_link_execute(struct link *link, const char *statement);
/*
 * Begin to execute a statement whose rows come one at a time. Then call the next function until it returns LINK_END,
 * after the last row:
 */
int ww_postgres_link_stream(
    struct link *link, const char *statement, const struct link_argument *arguments, size_t count);
int ww_postgres_link_row(struct link *link, PGresult **row);
/* Whether the connection is lost, as far as known. */
int ww_postgres_link_is_lost(const struct link *link);
/* The same, after reading what has arrived, without waiting: a server that ends a connection announces it. */
int ww_postgres_link_has_ended(struct link *link);

/* ---- Fields of an answer. NULL has size 0 and is 0. */

int64_t ww_postgres_link_number(const PGresult *result, int row, int column);
const void *ww_postgres_link_bytes(const PGresult *result, int row, int column, size_t *size);

#endif
