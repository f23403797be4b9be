#ifndef LIB_REDIS_LINK_TLS_H
#define LIB_REDIS_LINK_TLS_H

/*
 * TLS under a connection to Redis, by OpenSSL. hiredis of Debian 12 has none, but wire.c sends and receives by itself,
 * and hiredis only connects. The certificate must be for the host or address that is connected to.
 */

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "lib/redis/link/url.h"

struct redis_tls;      /* what all connections of a link share */
struct redis_tls_wire; /* one connection's */

/* Read the files that the url names. Errors: WW_ENOMEM. WW_EINVAL: a file cannot be read or used, why says which. */
int ww_redis_tls_make(struct redis_tls **tls, const struct redis_url *url, char *why, size_t size);
void ww_redis_tls_free(struct redis_tls *tls);

/* Shake hands on a non-blocking socket. Errors: WW_EIO, with the reason in why. WW_ENOMEM. */
int ww_redis_tls_begin(struct redis_tls_wire **wire, struct redis_tls *tls, int fd, const char *host, uint64_t deadline,
    char *why, size_t size);
/* Does not close the socket. NULL is harmless. */
void ww_redis_tls_end(struct redis_tls_wire *wire);

/* As send and recv do: a count, 0 at the end, or -1 with errno. */
ssize_t ww_redis_tls_send(struct redis_tls_wire *wire, const void *bytes, size_t count);
ssize_t ww_redis_tls_receive(struct redis_tls_wire *wire, void *bytes, size_t count);

#endif
