#ifndef TOOLS_SERVICE_NET_RELAY_H
#define TOOLS_SERVICE_NET_RELAY_H

/*
 * Bytes that pass between a client and somebody else, in both directions, until both have ended or one is gone. A client
 * that sends no more still gets its answer. While bytes wait on one side, none are read from the other.
 *
 * TLS before HTTP is such a relay. libmicrohttpd gets one end of a socket pair in place of the client's socket, and a relay
 * deciphers and enciphers between the two, so that there is one TLS with one certificate in the server:
 *
 *     client <- TLS -> outer [ relay ] inner <- socket pair -> libmicrohttpd
 *
 * A client that takes none of its bytes for STALLED_MS is gone: libmicrohttpd may have closed its end long ago, which is
 * only seen by reading there. The other kind passes bytes on as they are, to another server that has limits of its own:
 * there the time counts from that server's end on.
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
	unsigned count; /* of them */
	uv_loop_t *loop;
	struct shakes *shakes; /* of the loop; for relay_begin, as the next */
	struct certificate *certificate;
	char input[RELAY_CHUNK]; /* bytes that either side has just sent */
};

/*
 * A client with TLS has come. Return a descriptor for its bytes in clear, or -1; `fd` is taken either way. Closing
 * that descriptor ends the connection.
 */
int relay_begin(struct relays *relays, int fd);

/* Pass bytes on between two sockets, which do not block. Both are taken. Returns 0, or -1 without memory. */
int relay_join(struct relays *relays, int outer, int inner);

/* Close all. The struct has to stay until the loop has let go of them. */
void relay_stop(struct relays *relays);

#endif
