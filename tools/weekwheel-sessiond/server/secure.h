#ifndef TOOLS_WEEKWHEEL_SESSIOND_SERVER_SECURE_H
#define TOOLS_WEEKWHEEL_SESSIOND_SERVER_SECURE_H

/*
 * TLS on the connections of listeners that have it: received bytes are decrypted before they are parsed, and answers
 * are encrypted when they leave their buffer.
 */

#include <pthread.h>
#include <stddef.h>

#include "tools/common/tls/tls.h"
#include "tools/service/buffer.h"
#include "tools/service/shake.h"

struct conn;
struct sessiond;

/* A server's: what new connections get. */
struct secure_server {
	pthread_mutex_t lock; /* of the next */
	struct tls *now;      /* NULL: none */
};

/* A client's. */
struct secure {
	struct tls_link *tls; /* NULL: it has none */
	struct shake shake;
	struct buffer sealed; /* answers that are enciphered */
};

/* Returns 0, or -1 after a message. */
int secure_start(struct sessiond *server);
void secure_stop(struct sessiond *server);
/* Read the certificate again. Any thread. */
void secure_reload(struct sessiond *server);

/* The bytes that one record of TLS holds. */
enum { SECURE_PIECE = 16384 };

/*
 * A connection with TLS begins. `shaken` is called in the turn of its handshake: what it has sent is to be read.
 * Returns 0, or -1 without memory.
 */
int secure_open(struct conn *conn, void (*shaken)(struct shake *shake));
void secure_close(struct conn *conn);
/* Bytes have come. Returns 1 if they can be read, or 0: the handshake waits for its turn, or the connection is ending. */
int secure_feed(struct conn *conn, const char *data, size_t size);
/* Decipher some of them, all in several calls: more bytes come only then. Returns how many, or 0: there are no more. */
int secure_read(struct conn *conn, char *clear, size_t size);
/* Encipher its answers. Returns 0, or -1: it is to be closed. */
int secure_seal(struct conn *conn);

#endif
