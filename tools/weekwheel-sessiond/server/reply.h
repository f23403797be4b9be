#ifndef TOOLS_WEEKWHEEL_SESSIOND_SERVER_REPLY_H
#define TOOLS_WEEKWHEEL_SESSIOND_SERVER_REPLY_H

/* Answers, in the client's protocol. Without memory for one, the client is closed. */

#include "tools/weekwheel-sessiond/server/conn.h"

/* Whether the client wants no answer to the present command. */
int reply_is_silent(const struct conn *conn);
void reply_bytes(struct conn *conn, const void *bytes, size_t size);
/* A complete answer: "+OK\r\n". */
#define reply_text(conn, text) reply_bytes(conn, text, sizeof text - 1)
#define reply_ok(conn) reply_text(conn, "+OK\r\n")
void reply_error(struct conn *conn, const char *format, ...) __attribute__((format(printf, 2, 3)));
void reply_integer(struct conn *conn, int64_t number);
void reply_bulk(struct conn *conn, const void *bytes, size_t size);
void reply_string(struct conn *conn, const char *text);
void reply_format(struct conn *conn, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* A text for people: a verbatim string in RESP3. */
void reply_verbatim(struct conn *conn, const char *text, size_t size);
void reply_null(struct conn *conn);
void reply_null_array(struct conn *conn);
/* Begin a collection: in RESP2 a map is an array of keys and values, and a set or a push an array. */
void reply_array(struct conn *conn, size_t count);
void reply_map(struct conn *conn, size_t count);
void reply_set(struct conn *conn, size_t count);
void reply_push(struct conn *conn, size_t count);

/* Send its answers at the end of this turn. */
void reply_flush(struct conn *conn);

/* The same to a buffer. Return 0, or -1 without memory. */
int reply_add_header(struct buffer *out, char kind, uint64_t number);
int reply_add_bulk(struct buffer *out, const void *bytes, size_t size);

#endif
