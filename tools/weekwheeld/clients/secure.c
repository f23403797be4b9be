/*
 * TLS on the connections of listeners that have it: the certificate, and the end. Answers are enciphered when they leave
 * the connection's buffer. input.c deciphers what comes before it is parsed, so the rest of the server sees plain bytes.
 */
#include "tools/common/tls/tls.h"

#include "tools/service/certificate.h"
#include "tools/weekwheeld/clients/clients.h"

/* What one record of TLS holds. */
enum { SEAL_PIECE = 16384 };

int secure_start(struct server *server)
{
	if (!server->settings->tls.certificate)
		return 0;
	server->tls = certificate_read(&server->settings->tls);
	return server->tls ? 0 : -1;
}

void secure_reload(struct server *server)
{
	struct tls *made = server->tls ? certificate_again(&server->settings->tls) : NULL;

	if (!made)
		return;
	/* Connections that are open have what they need. */
	tls_free(server->tls);
	server->tls = made;
}

void secure_stop(struct server *server)
{
	tls_free(server->tls);
	server->tls = NULL;
}

/* Append what TLS has to send. Returns -1 without memory. */
static int seal_drain(struct tls_link *link, struct buffer *sealed)
{
	size_t pending = tls_pending(link);

	if (pending == 0)
		return 0;
	if (buffer_reserve(sealed, pending) != 0)
		return -1;
	sealed->size += tls_drain(link, sealed->data + sealed->size, pending);
	return 0;
}

int secure_seal(struct connection *connection)
{
	struct buffer sealed = {0};
	size_t size = connection->out.size;
	size_t piece;
	int bad = 0;

	/* In pieces: OpenSSL's own buffer, which nobody counts, keeps the size of the largest. */
	for (size_t at = 0; at < size && !bad; at += piece) {
		piece = size - at < SEAL_PIECE ? size - at : SEAL_PIECE;
		bad = tls_write(connection->tls, connection->out.data + at, piece) != TLS_OK ||
		      seal_drain(connection->tls, &sealed) != 0;
	}
	if (bad || seal_drain(connection->tls, &sealed) != 0) {
		buffer_free(&sealed);
		return -1;
	}
	if (sealed.size == 0)
		return 0;
	buffer_free(&connection->out);
	connection->out = sealed;
	return 0;
}

void secure_close(struct connection *connection)
{
	char alert[256];
	uv_buf_t bytes;

	shake_leave(&connection->server->shakes, &connection->shake);
	tls_end(connection->tls);
	if (connection->sending.size == 0 && connection->out.size == 0) {
		bytes = uv_buf_init(alert, (unsigned)tls_drain(connection->tls, alert, sizeof alert));
		if (bytes.len > 0)
			(void)uv_try_write(&connection->io.stream, &bytes, 1);
	}
	tls_close(connection->tls);
	connection->tls = NULL;
}
