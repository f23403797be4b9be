/* One connection to Redis: connecting, sending, receiving. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <hiredis/sds.h>

#include "lib/redis/link/link_internal.h"

/* Bytes that are read at once; how often, before others have a turn; bytes of the send buffer that are kept. */
enum { CHUNK = 16384, CHUNKS = 16, KEEP = 65536 };

/* ---- Connecting */

static int prepare(struct redisContext *context)
{
	int flags = fcntl(context->fd, F_GETFL);

	/* From here on only poll waits. */
	if (flags < 0 || fcntl(context->fd, F_SETFL, flags | O_NONBLOCK) < 0)
		return WW_EIO;
	(void)fcntl(context->fd, F_SETFD, FD_CLOEXEC);
	context->flags &= ~REDIS_BLOCK;
	if (context->connection_type == REDIS_CONN_TCP)
		(void)redisEnableKeepAlive(context);
	return WW_OK;
}

static struct redisContext *connect_to(const struct redis_address *address, uint64_t deadline)
{
	int left = time_left_ms(deadline);
	struct timeval time = {left / 1000, left % 1000 * 1000};

	/* To hiredis, 0 means to wait for ever. */
	if (left == 0)
		time.tv_usec = 1000;
	if (address->port == 0)
		return redisConnectUnixWithTimeout(address->host, time);
	return redisConnectWithTimeout(address->host, (int)address->port, time);
}

int ww_redis_wire_connect(struct redis_wire **wire, const struct redis_address *address,
    const struct redis_budget *budget, struct redis_tls *tls, uint64_t deadline, char *why, size_t size)
{
	struct redisContext *context = connect_to(address, deadline);
	struct redis_wire *made;

	if (!context) {
		(void)snprintf(why, size, "no memory");
		return WW_ENOMEM;
	}
	if (context->err || prepare(context)) {
		(void)snprintf(why, size, "%s", context->err ? context->errstr : strerror(errno));
		redisFree(context);
		return WW_EIO;
	}
	made = memory_take(budget->allocator, sizeof *made);
	if (!made) {
		(void)snprintf(why, size, "no memory");
		redisFree(context);
		return WW_ENOMEM;
	}
	*made = (struct redis_wire){.context = context, .budget = *budget};
	context->reader->fn = &ww_redis_reply_functions;
	context->reader->privdata = &made->budget;
	int error = tls ? ww_redis_tls_begin(&made->tls, tls, context->fd, address->host, deadline, why, size) : WW_OK;
	if (error)
		ww_redis_wire_close(made);
	else
		*wire = made;
	return error;
}

void ww_redis_wire_close(struct redis_wire *wire)
{
	ww_redis_tls_end(wire->tls);
	redisFree(wire->context);
	memory_give(wire->budget.allocator, wire, sizeof *wire);
}

/* ---- Sending */

static int broke(struct redis_wire *wire, int error, const char *why)
{
	(void)snprintf(wire->why, sizeof wire->why, "%s", why);
	return error;
}

int ww_redis_wire_append(struct redis_wire *wire, size_t argc, const char *const *argv, const size_t *lengths)
{
	/* hiredis's declaration lacks a const. */
	const char **arguments = (const char **)(uintptr_t)argv;

	if (redisAppendCommandArgv(wire->context, (int)argc, arguments, lengths) != REDIS_OK)
		return broke(wire, WW_ENOMEM, "no memory");
	return WW_OK;
}

static void forget_sent(struct redis_wire *wire)
{
	sds *buffer = &wire->context->obuf;
	sds small = sdslen(*buffer) > KEEP ? sdsempty() : NULL;

	if (small) {
		sdsfree(*buffer);
		*buffer = small;
	} else {
		sdsclear(*buffer);
	}
	wire->sent = 0;
}

int ww_redis_wire_is_sent(const struct redis_wire *wire)
{
	return sdslen(wire->context->obuf) == wire->sent;
}

int ww_redis_wire_send(struct redis_wire *wire)
{
	while (!ww_redis_wire_is_sent(wire)) {
		const char *buffer = wire->context->obuf;
		size_t left = sdslen(wire->context->obuf) - wire->sent;
		ssize_t count = wire->tls ? ww_redis_tls_send(wire->tls, buffer + wire->sent, left)
		                          : send(wire->context->fd, buffer + wire->sent, left, MSG_NOSIGNAL);
		if (count < 0 && errno == EINTR)
			continue;
		if (count < 0)
			return errno == EAGAIN ? WW_OK : broke(wire, WW_EIO, strerror(errno));
		wire->sent += (size_t)count;
		wire->has_sent = 1;
	}
	forget_sent(wire);
	return WW_OK;
}

/* ---- Receiving */

int ww_redis_wire_receive(struct redis_wire *wire)
{
	struct redisReader *reader = wire->context->reader;
	char chunk[CHUNK];

	wire->has_more = 0;
	/* What TLS has decoded, poll does not see: take all. */
	for (int i = 0; wire->tls || i < CHUNKS; i++) {
		ssize_t count = wire->tls ? ww_redis_tls_receive(wire->tls, chunk, sizeof chunk)
		                          : recv(wire->context->fd, chunk, sizeof chunk, 0);
		if (count < 0 && errno == EINTR)
			continue;
		if (count < 0)
			return errno == EAGAIN ? WW_OK : broke(wire, WW_EIO, strerror(errno));
		if (count == 0)
			return broke(wire, WW_EIO, "the server closed the connection");
		if (redisReaderFeed(reader, chunk, (size_t)count) != REDIS_OK)
			return broke(wire, WW_ENOMEM, "no memory");
		if (count < CHUNK && !wire->tls)
			return WW_OK;
		if (reader->len - reader->pos > wire->budget.max)
			break;
	}
	wire->has_more = 1;
	return WW_OK;
}

int ww_redis_wire_reply(struct redis_wire *wire, struct redisReply **reply)
{
	struct redisReader *reader = wire->context->reader;
	void *read = NULL;

	if (redisReaderGetReply(reader, &read) == REDIS_OK) {
		*reply = read;
		if (read)
			return 1;
		if (reader->len - reader->pos > wire->budget.max)
			return broke(wire, WW_ECORRUPT, "a reply is longer than the link allows");
		return 0;
	}
	if (wire->budget.exceeded)
		return broke(wire, WW_ECORRUPT, "a reply is larger than the link allows");
	if (reader->err == REDIS_ERR_OOM)
		return broke(wire, WW_ENOMEM, "no memory");
	return broke(wire, WW_ECORRUPT, reader->errstr);
}

int ww_redis_wire_is_quiet(const struct redis_wire *wire)
{
	struct pollfd waited = {.fd = wire->context->fd, .events = POLLIN};

	return poll(&waited, 1, 0) == 0;
}

int ww_redis_wire_wait(struct redis_wire *wire, uint64_t deadline, struct redisReply **reply)
{
	int result = ww_redis_wire_send(wire);

	while (!result) {
		struct pollfd waited = {.fd = wire->context->fd, .events = POLLIN};
		int left = time_left_ms(deadline);
		result = ww_redis_wire_reply(wire, reply);
		if (result)
			return result < 0 ? result : WW_OK;
		if (left == 0)
			return broke(wire, WW_EIO, "the server does not answer in time");
		if (!ww_redis_wire_is_sent(wire))
			waited.events |= POLLOUT;
		if (poll(&waited, 1, left) < 0 && errno != EINTR)
			return broke(wire, WW_EIO, strerror(errno));
		if (waited.revents & POLLOUT)
			result = ww_redis_wire_send(wire);
		if (!result && waited.revents & ~POLLOUT)
			result = ww_redis_wire_receive(wire);
	}
	return result;
}
