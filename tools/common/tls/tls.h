#ifndef TOOLS_COMMON_TLS_TLS_H
#define TOOLS_COMMON_TLS_TLS_H

/*
 * TLS between a program's own sockets and its own buffers. A link neither reads nor writes a descriptor: the caller
 * moves the bytes of the network. Only tls_handshake does it for a client that waits.
 *
 *     network --> tls_feed --> [ link ] --> tls_read  --> program
 *     network <-- tls_drain <--[ link ] <-- tls_write <-- program
 *
 * After each step there may be something to drain: handshakes and alerts, too. TLS 1.2 and later.
 */

#include <stddef.h>
#include <stdint.h>

struct tls;      /* what links share: certificate, key, whom to trust */
struct tls_link; /* one end of a connection */

/* Files in PEM. */
struct tls_files {
	const char *certificate; /* and those that signed it; a client needs none: NULL */
	const char *key;         /* NULL: the file of the certificate has it */
	const char *trusted; /* certificates that the other side's must come from. NULL: for a server anyone comes in,
	                            a client trusts those of the system */
};

enum { TLS_REASON = 200 };

/* Read the files. Return NULL with a sentence in `reason` if one of them is wrong. */
struct tls *tls_server(const struct tls_files *files, char reason[TLS_REASON]);
struct tls *tls_client(const struct tls_files *files, char reason[TLS_REASON]);
/* Store since when and until when the own certificate and those that signed it in its file are all valid, Unix time. */
void tls_validity(const struct tls *tls, int64_t *from, int64_t *until);

/* Links that are open keep what they need. NULL is harmless. */
void tls_free(struct tls *tls);

/* The certificate of the server must be for `host`, a name or an address; NULL: this is the server. NULL: no memory. */
struct tls_link *tls_open(const struct tls *tls, const char *host);
void tls_close(struct tls_link *link);

/* Count the memory of OpenSSL in this process from now on, which is before anything else uses it. */
void tls_count_memory(void);
/* Return how many bytes it takes, as far as they are counted. */
size_t tls_memory(void);

enum tls_state {
	TLS_OK = 0,
	TLS_ENDED = -1, /* the other side has ended the connection in order */
	TLS_BROKEN = -2 /* what came is no TLS, the certificate is refused, or there is no memory: tls_reason */
};

/* Take bytes that have come. Read until it returns 0 before the next ones. */
enum tls_state tls_feed(struct tls_link *link, const void *bytes, size_t size);

/* Store up to `room` bytes in `bytes`. Return how many, 0 if more must come first, or a tls_state below 0. */
int tls_read(struct tls_link *link, void *bytes, size_t room);

/* Take bytes for the other side. While the handshake is under way, there must be none. */
enum tls_state tls_write(struct tls_link *link, const void *bytes, size_t size);

/* How many bytes wait to be drained, and take up to `room` of them. Return how many. */
size_t tls_pending(const struct tls_link *link);
size_t tls_drain(struct tls_link *link, void *bytes, size_t room);

/* Go on with the handshake. Return 1 when it is done, 0 if bytes must be moved first, or a tls_state below 0. */
int tls_shake(struct tls_link *link);

/*
 * A client's whole handshake over its socket, which does not block (handshake.c). Return 1 when it is done, 0 with errno
 * set if the connection fails or the time is up, or TLS_BROKEN.
 */
int tls_handshake(struct tls_link *link, int fd, int timeout_ms);

/* Return 1 if the handshake is done. */
int tls_is_ready(const struct tls_link *link);

/* Tell the other side that nothing more comes. */
void tls_end(struct tls_link *link);

/* Why a step said TLS_BROKEN, the first one that did. */
void tls_reason(const struct tls_link *link, char reason[TLS_REASON]);

/* Return 1 if that was because the other side's certificate is not valid at this time. */
int tls_is_out_of_time(const struct tls_link *link);

#endif
