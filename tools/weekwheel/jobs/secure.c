/* Begins TLS with servers whose address is tls:HOST:PORT. */
#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>

#include "tools/common/clock.h"
#include "tools/common/message.h"
#include "tools/weekwheel/jobs/client.h"

enum { CHUNK = 16384 };

/* Send what the handshake has to say, and wait until there is something to read. Return 0, or -1 with errno set. */
static int exchange(const struct client *client, int64_t deadline)
{
	struct pollfd one = {client->fd, POLLIN, 0};
	char bytes[CHUNK];
	size_t size;
	ssize_t got;

	/* A handshake is shorter than the system's buffers. */
	while ((size = tls_drain(client->tls, bytes, sizeof bytes)) > 0)
		if (send(client->fd, bytes, size, MSG_NOSIGNAL) != (ssize_t)size)
			return -1;
	do {
		int64_t left = deadline - clock_ms();

		errno = ETIMEDOUT;
		if (left <= 0 || poll(&one, 1, (int)left) == 0)
			return -1;
		got = recv(client->fd, bytes, sizeof bytes, 0);
	} while (got < 0 && (errno == EAGAIN || errno == EINTR));
	if (got == 0)
		errno = ECONNRESET;
	return got > 0 && tls_feed(client->tls, bytes, (size_t)got) == TLS_OK ? 0 : -1;
}

static int complain(const char *server, const char *reason, const char *cure)
{
	return message_error("%s: TLS failed: %s; %s", server, reason, cure);
}

static int shake(struct client *client)
{
	int64_t deadline = clock_ms() + client->timeout_ms;
	char reason[TLS_REASON];
	int done;

	while ((done = tls_shake(client->tls)) == 0)
		if (exchange(client, deadline))
			return complain(
			    client->server, strerror(errno), "is this an address where weekwheeld listens with tls:?");
	if (done == 1)
		return 0;
	tls_reason(client->tls, reason);
	return complain(client->server, reason,
	    tls_is_out_of_time(client->tls)
	        ? "the server needs another certificate, unless the clock of this machine is wrong"
	        : "give the certificates to trust with --tls-ca, and use the name for which the server's was made");
}

int client_secure(struct client *client, const struct tls_files *files)
{
	char host[CLIENT_HOST_MAX];
	char reason[TLS_REASON];
	struct tls *tls;

	if (!client_is_tls(client->server, host))
		return 0;
	tls = tls_client(files, reason);
	if (!tls)
		return message_error("TLS: %s", reason);
	client->tls = tls_open(tls, host);
	tls_free(tls);
	return client->tls ? shake(client) : message_error("no memory for TLS");
}
