/* A client's socket in a loop, with TLS or without: see stream.h. */
#include "tools/service/net/stream.h"

#include <errno.h>
#include <unistd.h>

/* The size of a TLS record. */
enum { SEAL_PIECE = 16384 };

static void on_event(uv_poll_t *poll, int status, int events)
{
	struct stream *stream = poll->data;

	if (status < 0) {
		/* libuv has stopped watching without a reason. Bytes that came earlier can still be read. */
		events = stream->events;
		uv_poll_start(poll, events, on_event);
	}
	stream->came(stream, events);
}

int stream_open(
    struct stream *stream, uv_loop_t *loop, int fd, void (*came)(struct stream *stream, int events), void *owner)
{
	*stream = (struct stream){.fd = fd, .came = came, .owner = owner};
	stream->poll.data = stream;
	if (uv_poll_init(loop, &stream->poll, fd) == 0)
		return 0;
	stream->fd = -1;
	return -1;
}

void stream_wait(struct stream *stream, int events)
{
	if (stream->shake.is_waiting)
		events &= ~UV_READABLE;
	if (stream->events == events || stream->fd < 0)
		return;
	stream->events = events;
	if (events)
		uv_poll_start(&stream->poll, events, on_event);
	else
		uv_poll_stop(&stream->poll);
}

/* ---- TLS */

static void on_turn(struct shake *shake)
{
	struct stream *stream = (struct stream *)(void *)((char *)shake - offsetof(struct stream, shake));

	stream->is_fed = 1;
	stream->came(stream, UV_READABLE);
}

int stream_secure(struct stream *stream, struct certificate *certificate, struct shakes *shakes)
{
	stream->shakes = shakes;
	stream->shake.go_on = on_turn;
	stream->tls = certificate_open(certificate);
	return stream->tls ? 0 : -1;
}

static ssize_t decipher(struct stream *stream, char *bytes, size_t room)
{
	int got = tls_read(stream->tls, bytes, room);

	stream->is_fed = got > 0;
	return got;
}

static ssize_t feed(struct stream *stream, char *bytes, size_t size, size_t room)
{
	if (tls_feed(stream->tls, bytes, size) != TLS_OK)
		return STREAM_BROKEN;
	if (tls_is_ready(stream->tls))
		return decipher(stream, bytes, room);
	shake_wait(stream->shakes, &stream->shake);
	stream_wait(stream, stream->events);
	return 0;
}

static int drain(struct stream *stream)
{
	struct buffer *sealed = &stream->sealed;
	size_t pending = tls_pending(stream->tls);

	if (pending == 0)
		return 0;
	if (buffer_reserve(sealed, pending) != 0)
		return -1;
	sealed->size += tls_drain(stream->tls, sealed->data + sealed->size, pending);
	return 0;
}

static int seal(struct stream *stream)
{
	size_t size = tls_is_ready(stream->tls) ? stream->out.size : 0;
	size_t piece;

	/* In pieces: OpenSSL's own buffer, which is not counted, keeps the size of the largest. */
	for (size_t at = 0; at < size; at += piece) {
		piece = size - at < SEAL_PIECE ? size - at : SEAL_PIECE;
		if (tls_write(stream->tls, stream->out.data + at, piece) != TLS_OK || drain(stream) != 0)
			return -1;
	}
	buffer_drop(&stream->out, size);
	return drain(stream);
}

/* Send the end of TLS, unless bytes that come before it wait. */
static void end(struct stream *stream)
{
	char alert[256];
	size_t size;

	shake_leave(stream->shakes, &stream->shake);
	tls_end(stream->tls);
	size = stream_unsent(stream) == 0 ? tls_drain(stream->tls, alert, sizeof alert) : 0;
	if (size > 0)
		(void)!write(stream->fd, alert, size);
	tls_close(stream->tls);
	stream->tls = NULL;
}

/* ---- Bytes */

ssize_t stream_read(struct stream *stream, char *bytes, size_t room)
{
	ssize_t got;

	stream->taken = 0;
	if (stream->is_fed)
		return decipher(stream, bytes, room);
	got = read(stream->fd, bytes, room);
	stream->is_full = got == (ssize_t)room;
	if (got < 0)
		return errno == EAGAIN || errno == EINTR ? 0 : STREAM_LOST;
	if (got == 0)
		return STREAM_SHUT;
	stream->taken = (size_t)got;
	return stream->tls ? feed(stream, bytes, (size_t)got, room) : got;
}

ssize_t stream_send(struct stream *stream)
{
	struct buffer *out = stream->tls ? &stream->sealed : &stream->out;
	ssize_t sent;

	if (stream->tls && seal(stream) != 0)
		return -1;
	if (out->size == 0)
		return 0;
	sent = write(stream->fd, out->data, out->size < STREAM_SEND_MOST ? out->size : STREAM_SEND_MOST);
	if (sent < 0)
		return errno == EAGAIN || errno == EINTR ? 0 : -1;
	buffer_drop(out, (size_t)sent);
	return sent;
}

static void on_closed(uv_handle_t *handle)
{
	struct stream *stream = handle->data;

	stream->gone(stream);
}

void stream_close(struct stream *stream, void (*gone)(struct stream *stream))
{
	if (stream->tls)
		end(stream);
	buffer_free(&stream->out);
	buffer_free(&stream->sealed);
	stream->gone = gone;
	stream->events = 0;
	uv_close((uv_handle_t *)&stream->poll, on_closed);
	(void)close(stream->fd);
	stream->fd = -1;
}
