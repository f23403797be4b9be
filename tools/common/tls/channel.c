/* A client's connection, with TLS or without. */
#include "tools/common/tls/channel.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { CHUNK = 65536, CLEAR = 16384 };

int channel_is_pending(const struct tls_channel *channel)
{
	return channel->out.size > 0 || channel->sealed.size > 0;
}

static int must_wait(void)
{
	return errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR;
}

/* Encipher all that is queued. */
static int seal(struct tls_channel *channel)
{
	size_t size;

	if (tls_write(channel->tls, channel->out.data, channel->out.size) != TLS_OK)
		return -1;
	buffer_drop(&channel->out, channel->out.size);
	size = tls_pending(channel->tls);
	if (buffer_reserve(&channel->sealed, size) != 0)
		return -1;
	channel->sealed.size += size ? tls_drain(channel->tls, channel->sealed.data + channel->sealed.size, size) : 0;
	return 0;
}

int channel_push(struct tls_channel *channel)
{
	struct buffer *out = channel->tls ? &channel->sealed : &channel->out;

	if (channel->tls && seal(channel) != 0)
		return -1;
	while (out->size > 0) {
		ssize_t sent = send(channel->fd, out->data, out->size, MSG_NOSIGNAL);

		if (sent < 0)
			return must_wait() ? 0 : -1;
		buffer_drop(out, (size_t)sent);
	}
	return 0;
}

/* Decipher all that has come. */
static int unseal(struct tls_channel *channel, const char *bytes, size_t size)
{
	char clear[CLEAR];
	int got;

	if (tls_feed(channel->tls, bytes, size) != TLS_OK)
		return -1;
	while ((got = tls_read(channel->tls, clear, sizeof clear)) > 0)
		if (buffer_append(&channel->in, clear, (size_t)got) != 0)
			return -1;
	return got;
}

int channel_pull(struct tls_channel *channel)
{
	char bytes[CHUNK];
	ssize_t got = recv(channel->fd, bytes, sizeof bytes, 0);

	if (got < 0)
		return must_wait() ? 0 : -1;
	errno = 0;
	if (got == 0)
		return -1;
	return channel->tls ? unseal(channel, bytes, (size_t)got) : buffer_append(&channel->in, bytes, (size_t)got);
}

int channel_line(const struct tls_channel *channel, size_t room)
{
	/* Before the first byte there is no buffer. */
	size_t there = channel->in.size < room ? channel->in.size : room;
	const char *start = there ? channel->in.data : "";
	const char *end = there ? memchr(start, '\n', there) : NULL;
	size_t length = end ? (size_t)(end - start) : there;

	if (length >= room)
		return -1;
	if (!end)
		return 0;
	return length == 0 || end[-1] != '\r' || memchr(start, 0, length) ? -1 : (int)length + 1;
}

void channel_close(struct tls_channel *channel)
{
	if (channel->fd >= 0)
		(void)close(channel->fd);
	tls_close(channel->tls);
	buffer_free(&channel->in);
	buffer_free(&channel->out);
	buffer_free(&channel->sealed);
	*channel = (struct tls_channel){.fd = -1};
}
