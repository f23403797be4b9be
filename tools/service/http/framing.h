#ifndef TOOLS_SERVICE_HTTP_FRAMING_H
#define TOOLS_SERVICE_HTTP_FRAMING_H

/*
 * Whether the head of a request is what RFC 9112 says. A request that two servers read differently, a proxy and this one,
 * can carry another one past the proxy. libmicrohttpd lets many of them through: it takes the first of two lengths, and
 * the last byte of a body whose coding it does not know for the end of the connection. What is seen of that is refused here,
 * and what is not is in head.h.
 */

#include <microhttpd.h>

/*
 * Return NULL, or what is wrong: refuse the request with 400 and close its connection. Otherwise store the host in
 * *host, or NULL, and let *path begin at its slash, as the target may be a whole URL. `room` has FRAMING_HOST bytes
 * for the host.
 */
enum { FRAMING_HOST = 256 };
const char *framing_read(
    struct MHD_Connection *client, const char *version, const char **path, const char **host, char room[FRAMING_HOST]);

#endif
