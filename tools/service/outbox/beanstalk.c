/* Puts jobs at another server: see beanstalk.h. */
#include "tools/service/outbox/beanstalk.h"

#include <errno.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "lib/base/time.h"
#include "tools/common/dial.h"
#include "tools/common/tube.h"

/*
 * The arguments of each put: the usual priority, no delay, and a minute for the worker. A key stays taken for an hour
 * after its job.
 */
#define PUT "1024 0 60"
#define UNIQUE "unique=3600"

/* ---- Addresses */

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
	if (length == 0 || length > 255 || !host[length] || !tube_is_name(host + length + 1, strlen(host + length + 1)))
		return expected;
	has_port = memchr(*host == '[' ? host + strcspn(host, "]/") : host, ':',
	               *host == '[' ? length - strcspn(host, "]/") : length) != NULL;
	(void)snprintf(address->server, sizeof address->server, "%s%.*s%s", is_tls ? "tls:" : "", (int)length, host,
	    has_port ? "" : ":11300");
	(void)snprintf(address->tube, sizeof address->tube, "%s", host + length + 1);
	return dial_is_address(address->server) ? NULL : expected;
}

int beanstalk_line(struct beanstalk *link, char line[BEANSTALK_LINE])
{
	struct buffer *in = &link->channel.in;
	int length = channel_line(&link->channel, BEANSTALK_LINE);

	if (length <= 0)
		return length;
	memcpy(line, in->data, (size_t)length - 2);
	line[length - 2] = 0;
	buffer_drop(in, (size_t)length);
	return 1;
}

/* ---- Beginning */

__attribute__((format(printf, 2, 3))) static int failed(char reason[BEANSTALK_REASON], const char *format, ...)
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
	link->channel.tls = tls_open(tls, host);
	tls_free(tls);
	if (!link->channel.tls)
		return failed(reason, "no memory for TLS");
	done = tls_handshake(link->channel.tls, link->channel.fd, timeout_ms);
	if (done == 1)
		return 0;
	if (done == 0)
		return failed(reason, "TLS failed: %s", errno ? strerror(errno) : "the connection ended");
	tls_reason(link->channel.tls, why);
	return failed(reason, "TLS failed: %s", why);
}

/* Send what is queued, and wait for a line. */
static int ask(struct beanstalk *link, int timeout_ms, char line[BEANSTALK_LINE], char reason[BEANSTALK_REASON])
{
	int64_t deadline = time_ms() + timeout_ms;
	int taken;

	while ((taken = beanstalk_line(link, line)) == 0) {
		struct pollfd one = {link->channel.fd, POLLIN, 0};
		int64_t left = deadline - time_ms();

		if (left <= 0)
			return failed(reason, "it does not answer");
		errno = 0;
		if (channel_push(&link->channel) != 0)
			return failed(reason, "the connection was lost");
		if (channel_is_pending(&link->channel))
			one.events |= POLLOUT;
		if (poll(&one, 1, (int)left) > 0 && one.revents & ~POLLOUT && channel_pull(&link->channel) != 0)
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
	if (buffer_format(&link->channel.out, "auth %s\r\n", token) != 0)
		return failed(reason, "no memory");
	if (ask(link, timeout_ms, line, reason) != 0)
		return -1;
	return strcmp(line, "OK") == 0
	           ? 0
	           : failed(reason, "it does not know the token of --expired-token-file (%s)", line);
}

/* A verb of weekwheeld's without its arguments does nothing: it shows whether the server knows it. */
static int greet(struct beanstalk *link, const char *tube, int timeout_ms, char reason[BEANSTALK_REASON])
{
	char line[BEANSTALK_LINE];

	if (buffer_format(&link->channel.out, "use %s\r\nput-key ?\r\n", tube) != 0)
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

	*link = (struct beanstalk){.channel.fd = dial_connect(address->server, timeout_ms, &why)};
	if (link->channel.fd < 0)
		return failed(reason, "%s", why);
	if ((!dial_is_tls(address->server, host) || shake(link, files, host, timeout_ms, reason) == 0) &&
	    log_in(link, token, timeout_ms, reason) == 0 && greet(link, address->tube, timeout_ms, reason) == 0)
		return 0;
	beanstalk_close(link);
	return -1;
}

void beanstalk_close(struct beanstalk *link)
{
	channel_close(&link->channel);
}

int beanstalk_put(struct beanstalk *link, const char *id, const struct buffer *body)
{
	size_t before = link->channel.out.size;
	int bad = link->is_own
	              ? buffer_format(&link->channel.out, "put-key " PUT " %zu %s " UNIQUE "\r\n", body->size, id)
	              : buffer_format(&link->channel.out, "put " PUT " %zu\r\n", body->size);

	if (bad || buffer_append(&link->channel.out, body->data, body->size) ||
	    buffer_append(&link->channel.out, "\r\n", 2)) {
		link->channel.out.size = before;
		return -1;
	}
	return 0;
}
