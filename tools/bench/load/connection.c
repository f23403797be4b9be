/* A connection of the load generator to its server: sends commands and splits the answers into lines and bodies. */
#include "tools/bench/load/connection.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>

#include "lib/base/time.h"
#include "tools/common/command.h"
#include "tools/common/dial.h"
#include "tools/common/memory.h"
#include "tools/common/message.h"

enum { CONNECT_MS = 10000 };

static _Noreturn void end(const char *address, const char *why)
{
	message_error("%s: %s", address, why);
	exit(STATUS_FAILED);
}

void connection_open(struct load_connection *connection, const char *address)
{
	const char *reason;

	memset(connection, 0, sizeof *connection);
	connection->fd = dial_connect(address, CONNECT_MS, &reason);
	if (connection->fd < 0)
		end(address, reason);
}

static void make_room(struct load_connection *connection, size_t size)
{
	if (connection->sent == connection->out_size)
		connection->sent = connection->out_size = 0;
	if (connection->out_size + size <= connection->out_room)
		return;
	connection->out_room = 2 * (connection->out_size + size);
	connection->out = memory_resize(connection->out, connection->out_room, 1);
}

void connection_send(struct load_connection *connection, const char *format, ...)
{
	va_list arguments;
	int size;

	va_start(arguments, format);
	size = vsnprintf(NULL, 0, format, arguments);
	va_end(arguments);
	make_room(connection, (size_t)size + 1);
	va_start(arguments, format);
	(void)vsnprintf(connection->out + connection->out_size, (size_t)size + 1, format, arguments);
	va_end(arguments);
	connection->out_size += (size_t)size;
	if (connection->waiting == CONNECTION_WAITING)
		end("the load", "too many commands under way");
	connection->waiting_since[(connection->first_waiting + connection->waiting++) % CONNECTION_WAITING] =
	    time_now(CLOCK_MONOTONIC);
}

int connection_flush(struct load_connection *connection)
{
	while (connection->sent < connection->out_size) {
		ssize_t sent = send(connection->fd, connection->out + connection->sent,
		    connection->out_size - connection->sent, MSG_NOSIGNAL);
		if (sent < 0)
			return 1;
		connection->sent += (size_t)sent;
	}
	return 0;
}

/* Bytes of the body that an answer announces as its last word. */
static size_t body_of(const char *line)
{
	const char *last = strrchr(line, ' ');

	if (strncmp(line, "RESERVED ", 9) != 0 && strncmp(line, "FOUND ", 6) != 0 && strncmp(line, "OK ", 3) != 0)
		return 0;
	return (size_t)strtoul(last + 1, NULL, 10) + 2;
}

static void answer(struct load_connection *connection, connection_fn *fn)
{
	uint64_t since = connection->waiting_since[connection->first_waiting];

	connection->first_waiting = (connection->first_waiting + 1) % CONNECTION_WAITING;
	connection->waiting--;
	fn(connection, connection->line, connection->body_start, time_now(CLOCK_MONOTONIC) - since);
}

static size_t take_body(struct load_connection *connection, const char *from, size_t size)
{
	size_t taken = size < connection->body ? size : connection->body;
	size_t room = sizeof connection->body_start - 1 - connection->body_have;
	size_t kept = taken < room ? taken : room;

	memcpy(connection->body_start + connection->body_have, from, kept);
	connection->body_have += kept;
	connection->body_start[connection->body_have] = 0;
	connection->body -= taken;
	return taken;
}

/* A line of the head of an answer over HTTP, which keeps its first line. The length of the body is all we need. */
static void take_field(struct load_connection *connection, const char *from, size_t length)
{
	static const char name[] = "Content-Length:";

	if (length > sizeof name && strncasecmp(from, name, sizeof name - 1) == 0)
		connection->announced = (size_t)strtoul(from + sizeof name - 1, NULL, 10);
	if (length > 1)
		return;
	connection->is_in_head = 0;
	connection->body = connection->announced;
}

static size_t take_line(struct load_connection *connection, const char *from, size_t size)
{
	const char *newline = memchr(from, '\n', size);
	size_t length;

	if (!newline)
		return 0;
	length = (size_t)(newline - from);
	if (connection->is_in_head) {
		take_field(connection, from, length);
		return length + 1;
	}
	size_t kept = length < sizeof connection->line ? length : sizeof connection->line;
	memcpy(connection->line, from, kept);
	connection->line[kept ? kept - 1 : 0] = 0;
	connection->body = body_of(connection->line);
	connection->body_have = 0;
	connection->body_start[0] = 0;
	connection->is_in_head = strncmp(connection->line, "HTTP/", 5) == 0;
	connection->announced = 0;
	return length + 1;
}

static void take_all(struct load_connection *connection, connection_fn *fn)
{
	size_t at = 0;

	while (at < connection->in_size) {
		const char *from = connection->in + at;
		size_t size = connection->in_size - at;
		size_t taken = connection->body ? take_body(connection, from, size) : take_line(connection, from, size);
		if (!taken)
			break;
		at += taken;
		if (!connection->body && !connection->is_in_head)
			answer(connection, fn);
	}
	memmove(connection->in, connection->in + at, connection->in_size - at);
	connection->in_size -= at;
}

void connection_read(struct load_connection *connection, connection_fn *fn)
{
	ssize_t size =
	    recv(connection->fd, connection->in + connection->in_size, CONNECTION_IN - connection->in_size, 0);

	if (size == 0 || (size < 0 && errno != EAGAIN && errno != EINTR))
		end("the server", "has closed the connection");
	if (size > 0) {
		connection->in_size += (size_t)size;
		take_all(connection, fn);
	}
}
