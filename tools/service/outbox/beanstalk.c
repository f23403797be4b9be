/* Puts jobs at another server: see beanstalk.h. */
#include "tools/service/outbox/beanstalk.h"

#include <errno.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tools/common/clock.h"
#include "tools/common/dial.h"

/* What a put says: the usual priority, at once, and a minute for the worker. A key stays taken for an hour after its job. */
#define PUT "1024 0 60"
#define UNIQUE "unique=3600"

enum { CHUNK = 65536 };

/* ---- Addresses */

static int is_tube(const char *name)
{
	static const char *const allowed = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-+/;.$_()";
	size_t length = strlen(name);

	return length > 0 && length <= BEANSTALK_TUBE && *name != '-' && strspn(name, allowed) == length;
}

const char *beanstalk_read(const char *text, struct beanstalk_address *address)
{
	static const char *const expected = "beanstalk://HOST:PORT/TUBE, or beanstalks:// for TLS";
	int is_tls = strncmp(text, "beanstalks://", 13) == 0;
	const char *host = text + (is_tls ? 13 : 12);
	size_t length;
	int has_port;

	if (!is_tls && strncmp(text, "beanstalk://", 12) != 0)
		return expected;
	length = strcspn(host, "/");
	if (length == 0 || length > 255 || !host[length] || !is_tube(host + length + 1))
		return expected;
	has_port = memchr(*host == '[' ? host + strcspn(host, "]/") : host, ':',
	               *host == '[' ? length - strcspn(host, "]/") : length) != NULL;
	(void)snprintf(address->server, sizeof address->server, "%s%.*s%s", is_tls ? "tls:" : "", (int)length, host,
	    has_port ? "" : ":11300");
	(void)snprintf(address->tube, sizeof address->tube, "%s", host + length + 1);
	return dial_is_address(address->server) ? NULL : expected;
}

/* ---- Bytes */

int beanstalk_is_pending(const struct beanstalk *link)
{
	return link->out.size > 0 || link->sealed.size > 0;
}

static int must_wait(void)
{
	return errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR;
}

static int seal(struct beanstalk *link)
{
	size_t size;

	if (tls_write(link->tls, link->out.data, link->out.size) != TLS_OK)
		return -1;
	buffer_drop(&link->out, link->out.size);
	size = tls_pending(link->tls);
	if (buffer_reserve(&link->sealed, size) != 0)
		return -1;
	link->sealed.size += size ? tls_drain(link->tls, link->sealed.data + link->sealed.size, size) : 0;
	return 0;
}

int beanstalk_push(struct beanstalk *link)
{
	struct buffer *out = link->tls ? &link->sealed : &link->out;

	if (link->tls && seal(link) != 0)
		return -1;
	while (link->sent < out->size) {
		ssize_t sent = send(link->fd, out->data + link->sent, out->size - link->sent, MSG_NOSIGNAL);

		if (sent < 0)
			return must_wait() ? 0 : -1;
		link->sent += (size_t)sent;
	}
	buffer_drop(out, out->size);
	link->sent = 0;
	return 0;
}

static int unseal(struct beanstalk *link, const char *bytes, size_t size)
{
	char clear[4096];
	int got;

	if (tls_feed(link->tls, bytes, size) != TLS_OK)
		return -1;
	while ((got = tls_read(link->tls, clear, sizeof clear)) > 0)
		if (buffer_append(&link->in, clear, (size_t)got) != 0)
			return -1;
	return got;
}

int beanstalk_pull(struct beanstalk *link)
{
	char bytes[CHUNK];
	ssize_t got = recv(link->fd, bytes, sizeof bytes, 0);

	if (got < 0)
		return must_wait() ? 0 : -1;
	errno = 0;
	if (got == 0)
		return -1;
	return link->tls ? unseal(link, bytes, (size_t)got) : buffer_append(&link->in, bytes, (size_t)got);
}

int beanstalk_line(struct beanstalk *link, char line[BEANSTALK_LINE])
{
	size_t there = link->in.size < BEANSTALK_LINE ? link->in.size : BEANSTALK_LINE;
	const char *end = there ? memchr(link->in.data, '\n', there) : NULL;
	size_t length = end ? (size_t)(end - link->in.data) : there;

	if (length >= BEANSTALK_LINE)
		return -1;
	if (!end)
		return 0;
	if (length == 0 || end[-1] != '\r' || memchr(link->in.data, 0, length))
		return -1;
	memcpy(line, link->in.data, length - 1);
	line[length - 1] = 0;
	buffer_drop(&link->in, length + 1);
	return 1;
}

/* ---- Beginning */

static int failed(char reason[BEANSTALK_REASON], const char *format, ...) __attribute__((format(printf, 2, 3)));

static int failed(char reason[BEANSTALK_REASON], const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	(void)vsnprintf(reason, BEANSTALK_REASON, format, arguments);
	va_end(arguments);
	return -1;
}

static int shake(struct beanstalk *link, const struct tls_files *files, const char *host, int timeout_ms,
    char reason[BEANSTALK_REASON])
{
	char why[TLS_REASON];
	struct tls *tls = tls_client(files, why);
	int done;

	if (!tls)
		return failed(reason, "TLS: %s", why);
	link->tls = tls_open(tls, host);
	tls_free(tls);
	if (!link->tls)
		return failed(reason, "no memory for TLS");
	done = tls_handshake(link->tls, link->fd, timeout_ms);
	if (done == 1)
		return 0;
	if (done == 0)
		return failed(reason, "TLS failed: %s", errno ? strerror(errno) : "the connection ended");
	tls_reason(link->tls, why);
	return failed(reason, "TLS failed: %s", why);
}

/* Send what is queued, and wait for a line. */
static int ask(struct beanstalk *link, int timeout_ms, char line[BEANSTALK_LINE], char reason[BEANSTALK_REASON])
{
	int64_t deadline = clock_ms() + timeout_ms;
	int taken;

	while ((taken = beanstalk_line(link, line)) == 0) {
		struct pollfd one = {link->fd, POLLIN, 0};
		int64_t left = deadline - clock_ms();

		if (left <= 0)
			return failed(reason, "it does not answer");
		errno = 0;
		if (beanstalk_push(link) != 0)
			return failed(reason, "the connection was lost");
		if (beanstalk_is_pending(link))
			one.events |= POLLOUT;
		if (poll(&one, 1, (int)left) > 0 && one.revents & ~POLLOUT && beanstalk_pull(link) != 0)
			return failed(reason, "the connection was lost: %s",
			    errno ? strerror(errno) : "the other server closed it");
	}
	return taken > 0 ? 0 : failed(reason, "its answer is of another protocol: is this the port of another server?");
}

static int log_in(struct beanstalk *link, const char *token, int timeout_ms, char reason[BEANSTALK_REASON])
{
	char line[BEANSTALK_LINE];

	if (!*token)
		return 0;
	if (buffer_format(&link->out, "auth %s\r\n", token) != 0)
		return failed(reason, "no memory");
	if (ask(link, timeout_ms, line, reason) != 0)
		return -1;
	return strcmp(line, "OK") == 0
	           ? 0
	           : failed(reason, "it does not know the token of --expired-token-file (%s)", line);
}

/* A verb of weekwheeld's without what belongs behind it does nothing: it is only known, or not. */
static int greet(struct beanstalk *link, const char *tube, int timeout_ms, char reason[BEANSTALK_REASON])
{
	char line[BEANSTALK_LINE];

	if (buffer_format(&link->out, "use %s\r\nput-key ?\r\n", tube) != 0)
		return failed(reason, "no memory");
	if (ask(link, timeout_ms, line, reason) != 0)
		return -1;
	if (strcmp(line, "DENIED") == 0)
		return failed(reason, "it wants a token: give --expired-token-file (DENIED)");
	if (strncmp(line, "USING ", 6) != 0)
		return failed(reason, "it answers \"use\" with %.60s: is this the port of another server?", line);
	if (ask(link, timeout_ms, line, reason) != 0)
		return -1;
	link->is_own = strcmp(line, "UNKNOWN_COMMAND") != 0;
	return 0;
}

int beanstalk_open(struct beanstalk *link, const struct beanstalk_address *address, const struct tls_files *files,
    const char *token, int timeout_ms, char reason[BEANSTALK_REASON])
{
	char host[DIAL_HOST_MAX];
	const char *why;

	*link = (struct beanstalk){.fd = dial_connect(address->server, timeout_ms, &why)};
	if (link->fd < 0)
		return failed(reason, "%s", why);
	if ((!dial_is_tls(address->server, host) || shake(link, files, host, timeout_ms, reason) == 0) &&
	    log_in(link, token, timeout_ms, reason) == 0 && greet(link, address->tube, timeout_ms, reason) == 0)
		return 0;
	beanstalk_close(link);
	return -1;
}

void beanstalk_close(struct beanstalk *link)
{
	if (link->fd >= 0)
		(void)close(link->fd);
	tls_close(link->tls);
	buffer_free(&link->in);
	buffer_free(&link->out);
	buffer_free(&link->sealed);
	*link = (struct beanstalk){.fd = -1};
}

int beanstalk_put(struct beanstalk *link, const char *id, const struct buffer *body)
{
	size_t before = link->out.size;
	int bad = link->is_own ? buffer_format(&link->out, "put-key " PUT " %zu %s " UNIQUE "\r\n", body->size, id)
	                       : buffer_format(&link->out, "put " PUT " %zu\r\n", body->size);

	if (bad || buffer_append(&link->out, body->data, body->size) || buffer_append(&link->out, "\r\n", 2)) {
		link->out.size = before;
		return -1;
	}
	return 0;
}
