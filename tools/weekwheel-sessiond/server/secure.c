/* TLS of clients: see secure.h. */
#include "tools/weekwheel-sessiond/server/secure.h"

#include <unistd.h>

#include "tools/common/message.h"
#include "tools/service/certificate.h"
#include "tools/service/state.h"
#include "tools/weekwheel-sessiond/server/server.h"

int secure_start(struct sessiond *server)
{
	pthread_mutex_init(&server->tls.lock, NULL);
	if (!server->settings->tls.certificate)
		return 0;
	server->tls.now = certificate_read(&server->settings->tls);
	return server->tls.now ? 0 : -1;
}

void secure_stop(struct sessiond *server)
{
	tls_free(server->tls.now);
	pthread_mutex_destroy(&server->tls.lock);
}

void secure_reload(struct sessiond *server)
{
	struct tls *made = server->tls.now ? certificate_again(&server->settings->tls) : NULL;
	struct tls *former;

	if (!made)
		return;
	/* Connections that are open have what they need. */
	pthread_mutex_lock(&server->tls.lock);
	former = server->tls.now;
	server->tls.now = made;
	pthread_mutex_unlock(&server->tls.lock);
	tls_free(former);
}

static void broken(struct conn *conn, int state)
{
	char reason[TLS_REASON];

	if (state == TLS_BROKEN) {
		tls_reason(conn->secure.tls, reason);
		state_seen("handshakes", "clients are turned away: TLS: %s", reason);
	}
	/* What TLS still has to say is sent. */
	conn_end(conn);
}

int secure_read(struct conn *conn, char *clear, size_t size)
{
	int got = tls_read(conn->secure.tls, clear, size);

	if (got < 0)
		broken(conn, got);
	return got < 0 ? 0 : got;
}

int secure_open(struct conn *conn, void (*shaken)(struct shake *shake))
{
	struct sessiond *server = conn->loop->server;

	conn->secure.shake.go_on = shaken;
	pthread_mutex_lock(&server->tls.lock);
	conn->secure.tls = tls_open(server->tls.now, NULL);
	pthread_mutex_unlock(&server->tls.lock);
	return conn->secure.tls ? 0 : -1;
}

void secure_close(struct conn *conn)
{
	char alert[256];
	size_t size;

	shake_leave(&conn->loop->shakes, &conn->secure.shake);
	tls_end(conn->secure.tls);
	size = conn->secure.sealed.size == 0 ? tls_drain(conn->secure.tls, alert, sizeof alert) : 0;
	if (size > 0)
		(void)!write(conn->fd, alert, size);
	tls_close(conn->secure.tls);
	conn->secure.tls = NULL;
	buffer_free(&conn->secure.sealed);
}

int secure_feed(struct conn *conn, const char *data, size_t size)
{
	if (tls_feed(conn->secure.tls, data, size) != TLS_OK)
		broken(conn, TLS_BROKEN);
	else if (tls_is_ready(conn->secure.tls))
		return 1;
	else
		shake_wait(&conn->loop->shakes, &conn->secure.shake);
	return 0;
}

static int drain(struct conn *conn)
{
	size_t pending = tls_pending(conn->secure.tls);

	if (pending == 0)
		return 0;
	if (buffer_reserve(&conn->secure.sealed, pending) != 0)
		return -1;
	conn->secure.sealed.size +=
	    tls_drain(conn->secure.tls, conn->secure.sealed.data + conn->secure.sealed.size, pending);
	return 0;
}

int secure_seal(struct conn *conn)
{
	size_t size = tls_is_ready(conn->secure.tls) ? conn->out.size : 0;
	size_t piece;

	/* In pieces: OpenSSL's own buffer, which nobody counts, keeps the size of the largest. */
	for (size_t at = 0; at < size; at += piece) {
		piece = size - at < SECURE_PIECE ? size - at : SECURE_PIECE;
		if (tls_write(conn->secure.tls, conn->out.data + at, piece) != TLS_OK || drain(conn) != 0)
			return -1;
	}
	buffer_drop(&conn->out, size);
	return drain(conn);
}
