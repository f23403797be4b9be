/* Connects to servers, and begins TLS with those whose address is tls:HOST:PORT. */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>

#include "tools/common/dial.h"
#include "tools/common/message.h"
#include "tools/weekwheel/jobs/client.h"

/* A server that was started a moment ago, as by the line before in a script, may not listen yet. */
enum { TRIES = 50, PAUSE_MS = 20 };

int client_connect(struct client *client, const char *remedy)
{
	const char *reason;
	int tries = TRIES;

	while ((client->channel.fd = dial_connect(client->server, client->timeout_ms, &reason)) < 0 &&
	       (errno == ECONNREFUSED || errno == ENOENT) && --tries)
		poll(NULL, 0, PAUSE_MS);
	if (client->channel.fd >= 0)
		return 0;
	return message_error("%s: %s; %s", client->server, reason,
	    remedy ? remedy : "start weekwheeld there, or name another with --server or WEEKWHEEL_SERVER");
}

static int complain(const char *server, const char *reason, const char *cure)
{
	return message_error("%s: TLS failed: %s; %s", server, reason, cure);
}

static int shake(const struct client *client)
{
	char reason[TLS_REASON], cure[200];
	int done = tls_handshake(client->channel.tls, client->channel.fd, client->timeout_ms);

	if (done == 1)
		return 0;
	if (done == 0)
		return complain(
		    client->server, strerror(errno), "is this an address where the server listens with tls:?");
	tls_reason(client->channel.tls, reason);
	snprintf(cure, sizeof cure,
	    "give the certificates to trust with %s, and use the name for which the server's was made",
	    client->trust ? client->trust : "--tls-ca");
	return complain(client->server, reason,
	    tls_is_out_of_time(client->channel.tls)
	        ? "the server needs another certificate, unless the clock of this machine is wrong"
	        : cure);
}

int client_secure(struct client *client, const struct tls_files *files)
{
	char host[DIAL_HOST_MAX];
	char reason[TLS_REASON];
	struct tls *tls;

	if (!dial_is_tls(client->server, host))
		return 0;
	tls = tls_client(files, reason);
	client->is_misled = !tls;
	if (!tls)
		return message_error("TLS: %s", reason);
	client->channel.tls = tls_open(tls, host);
	tls_free(tls);
	return client->channel.tls ? shake(client) : message_error("no memory for TLS");
}
