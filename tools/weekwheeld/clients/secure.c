/*
 * TLS on the connections of listeners that have it: how it ends. Answers are enciphered when they leave
 * the connection's buffer. input.c deciphers what comes before it is parsed, so the rest of the server sees plain bytes.
 */
#include "tools/common/tls/tls.h"

#include "tools/weekwheeld/clients/clients.h"

/* What one record of TLS holds. */
enum { SEAL_PIECE = 16384 };

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
