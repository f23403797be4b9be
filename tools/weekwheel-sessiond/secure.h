#ifndef TOOLS_WEEKWHEEL_SESSIOND_SECURE_H
#define TOOLS_WEEKWHEEL_SESSIOND_SECURE_H

/*
 * TLS on the connections of listeners that have it: what has come is deciphered before it is parsed, and what is to be sent
 * is enciphered when it leaves the buffer of answers.
 */

#include <stddef.h>

struct conn;
struct sessiond;

/* Returns 0, or -1 after a message. */
int secure_start(struct sessiond *server);
void secure_stop(struct sessiond *server);
/* Read the certificate again. Any thread. */
void secure_reload(struct sessiond *server);

/* A connection with TLS begins. Returns 0, or -1 without memory. */
int secure_open(struct conn *conn);
void secure_close(struct conn *conn);
/* Bytes have come. */
void secure_input(struct conn *conn, const char *data, size_t size);
/* Encipher its answers. Returns 0, or -1: it is to be closed. */
int secure_seal(struct conn *conn);

#endif
