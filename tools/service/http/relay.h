#ifndef TOOLS_SERVICE_HTTP_RELAY_H
#define TOOLS_SERVICE_HTTP_RELAY_H

/*
 * TLS before HTTP. libmicrohttpd gets one end of a socket pair in place of the client's socket, and a relay deciphers and
 * enciphers between the two, so that there is one TLS with one certificate in the server:
 *
 *     client <- TLS -> outer [ relay ] inner <- socket pair -> libmicrohttpd
 *
 * While bytes wait on one side, none are read from the other. A client that takes none of them for STALLED_MS is gone:
 * libmicrohttpd may have closed its end long ago, which is only seen by reading there.
 *
 * All calls are made in the loop's thread.
 */

#include <sys/queue.h>
#include <uv.h>

#include "tools/service/net/shake.h"

struct certificate;

enum { RELAY_CHUNK = 16384, RELAY_FILES = 3 /* that a connection takes */ };

struct relays {
	LIST_HEAD(, relay) all;
	uv_loop_t *loop;
	struct shakes *shakes; /* of the loop */
	struct certificate *certificate;
	char input[RELAY_CHUNK]; /* bytes that either side has just sent */
};

/*
 * A client with TLS has come. Return a descriptor for its bytes in clear, or -1; `fd` is taken either way. Closing
 * that descriptor ends the connection.
 */
int relay_begin(struct relays *relays, int fd);

/* Close all; the loop goes on until it has let go of them, and the struct is not used any more. */
void relay_stop(struct relays *relays);

#endif
