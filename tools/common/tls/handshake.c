/* The handshake of a client over its socket. */
#include <errno.h>
#include <poll.h>
#include <sys/socket.h>

#include "lib/base/time.h"
#include "tools/common/tls/tls.h"

enum { CHUNK = 16384 };

/* Send what the handshake has to say, and wait until there is something to read. Return 0, or -1 with errno set. */
static int exchange(struct tls_link *link, int fd, int64_t deadline)
{
	struct pollfd one = {fd, POLLIN, 0};
	char bytes[CHUNK];
	size_t size;
	ssize_t got;

	/* A handshake is shorter than the system's buffers. */
	while ((size = tls_drain(link, bytes, sizeof bytes)) > 0)
		if (send(fd, bytes, size, MSG_NOSIGNAL) != (ssize_t)size)
			return -1;
	do {
		int64_t left = deadline - time_ms();

		errno = ETIMEDOUT;
		if (left <= 0 || poll(&one, 1, (int)left) == 0)
			return -1;
		got = recv(fd, bytes, sizeof bytes, 0);
	} while (got < 0 && (errno == EAGAIN || errno == EINTR));
	if (got == 0)
		errno = ECONNRESET;
	return got > 0 && tls_feed(link, bytes, (size_t)got) == TLS_OK ? 0 : -1;
}

int tls_handshake(struct tls_link *link, int fd, int timeout_ms)
{
	int64_t deadline = time_ms() + timeout_ms;
	int done;

	while ((done = tls_shake(link)) == 0)
		if (exchange(link, fd, deadline))
			return 0;
	return done == 1 ? 1 : TLS_BROKEN;
}
