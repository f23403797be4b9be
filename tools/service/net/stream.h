#ifndef TOOLS_SERVICE_NET_STREAM_H
#define TOOLS_SERVICE_NET_STREAM_H

/*
 * A client's socket in a loop, and the bytes that wait to be sent. The owner sees them in clear; with TLS a stream deciphers
 * and enciphers them:
 *
 *     socket --> stream_read --> [ TLS ] --> the owner's space
 *     socket <-- stream_send <-- sealed <-- [ TLS ] <-- out <-- the owner
 *
 * All calls are made in the loop's thread.
 */

#include <stddef.h>
#include <sys/types.h>
#include <uv.h>

#include "tools/common/buffer.h"
#include "tools/service/net/certificate.h"
#include "tools/service/net/shake.h"

struct stream {
	uv_poll_t poll;
	int fd;     /* -1: it is closed */
	int events; /* the events that it waits for, UV_READABLE | UV_WRITABLE */
	void (*came)(struct stream *stream, int events);
	void (*gone)(struct stream *stream);
	void *owner;
	size_t taken;      /* bytes that the last stream_read took from the socket */
	struct buffer out; /* to be sent: the owner appends */

	struct tls_link *tls; /* NULL: bytes go as they are */
	struct buffer sealed; /* enciphered, to be sent */
	struct shakes *shakes;
	struct shake shake;

	unsigned is_fed : 1;  /* TLS may have decrypted bytes that the socket's events do not show */
	unsigned is_full : 1; /* the last stream_read of the socket had no room for more */
};

/*
 * Begin, and wait for nothing yet. `came` is called when something waited for has happened; a socket that is broken says so
 * in the read or the write that follows. Returns 0, or -1: the descriptor stays the caller's.
 */
int stream_open(
    struct stream *stream, uv_loop_t *loop, int fd, void (*came)(struct stream *stream, int events), void *owner);

/*
 * It has TLS. What comes for its handshake waits in `shakes` for a turn, in which `came` is called with UV_READABLE. Returns
 * 0, or -1 without memory.
 */
int stream_secure(struct stream *stream, struct certificate *certificate, struct shakes *shakes);

/*
 * Wait for these events from now on. During its handshake's wait for a turn it is not read: bytes would pile up
 * without a bound.
 */
void stream_wait(struct stream *stream, int events);

enum stream_end {
	STREAM_ENDED = TLS_ENDED,   /* the client sends no more, by TLS */
	STREAM_BROKEN = TLS_BROKEN, /* the bytes were no TLS: tls_reason. The next stream_send sends TLS's alert */
	STREAM_SHUT = -3,           /* the client sends no more, by its socket */
	STREAM_LOST = -4            /* the connection is broken */
};

/*
 * Read some bytes. Returns how many, 0 if there are none now, or an enum stream_end. While is_fed is set, more have
 * arrived: read again. If is_full is set, more may have.
 */
ssize_t stream_read(struct stream *stream, char *bytes, size_t room);

/*
 * Send some of what waits, at most STREAM_SEND_MOST: other clients come before a long rest. Returns how many bytes, or
 * -1 if it has to be closed.
 */
enum { STREAM_SEND_MOST = 256 * 1024 };
ssize_t stream_send(struct stream *stream);

/* Return 1 if something can be sent. During the handshake answers wait for the other side. */
static inline int stream_is_unsent(const struct stream *stream)
{
	return stream->sealed.size > 0 || (stream->out.size > 0 && (!stream->tls || tls_is_ready(stream->tls)));
}

/* Return how many bytes wait, and the memory of its buffers. */
static inline size_t stream_unsent(const struct stream *stream)
{
	return stream->out.size + stream->sealed.size;
}

static inline size_t stream_takes(const struct stream *stream)
{
	return buffer_takes(&stream->out) + buffer_takes(&stream->sealed);
}

/*
 * Close it: what waits is dropped, and TLS's end is sent if that can be done at once. `gone` is called when the loop
 * has released it.
 */
void stream_close(struct stream *stream, void (*gone)(struct stream *stream));

#endif
