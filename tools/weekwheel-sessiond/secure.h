#ifndef TOOLS_WEEKWHEEL_SESSIOND_SECURE_H
#define TOOLS_WEEKWHEEL_SESSIOND_SECURE_H

/*
 * TLS on the connections of listeners that have it: received bytes are decrypted before they are parsed, and answers
 * are encrypted when they leave their buffer.
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
