#ifndef TOOLS_COMMON_TLS_CHANNEL_H
#define TOOLS_COMMON_TLS_CHANNEL_H

/*
 * A client's connection to a server, with TLS or without: what is queued in `out` is sent, and what comes is in `in`. Its
 * descriptor does not block, and no call waits. The user appends and drops, and sets fd and tls.
 */

#include "tools/common/buffer.h"
#include "tools/common/tls/tls.h"

struct tls_channel {
	int fd;               /* -1: closed */
	struct tls_link *tls; /* NULL: bytes go as they are */
	struct buffer in, out;
	struct buffer sealed; /* with TLS: what the other side gets of `out` */
};

/* Return whether there is something to send. */
int channel_is_pending(const struct tls_channel *channel);

/*
 * Send or read what can be without waiting. Return 0, or a number below 0 if the connection is lost or there is no memory: errno
 * tells why, 0 that the other side has closed it.
 */
int channel_push(struct tls_channel *channel);
int channel_pull(struct tls_channel *channel);

/*
 * Find the line of at most `room` bytes with which what has come begins. Return its length with its end, 0 if it is not all
 * there, or -1 if it is too long, has a NUL or another end than CR LF.
 */
int channel_line(const struct tls_channel *channel, size_t room);

void channel_close(struct tls_channel *channel);

#endif
