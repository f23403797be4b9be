/* Writes answers: each kind of RESP2 and RESP3 once. */
#include "tools/weekwheel-sessiond/server/reply.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "tools/common/message.h"
#include "tools/weekwheel-sessiond/server/bounds.h"
#include "tools/weekwheel-sessiond/server/server.h"

/* The digits of a number, right-aligned. Returns where they begin. */
static char *digits(char *end, uint64_t number)
{
	do
		*--end = (char)('0' + number % 10);
	while (number /= 10);
	return end;
}

int reply_add_header(struct buffer *out, char kind, uint64_t number)
{
	char text[24];
	char *end = text + sizeof text;
	char *at;

	*--end = '\n';
	*--end = '\r';
	at = digits(end, number);
	*--at = kind;
	return buffer_append(out, at, (size_t)(text + sizeof text - at));
}

int reply_add_bulk(struct buffer *out, const void *bytes, size_t size)
{
	if (buffer_reserve(out, size + 24) != 0)
		return -1;
	(void)reply_add_header(out, '$', size);
	(void)buffer_append(out, bytes, size);
	return buffer_append(out, "\r\n", 2);
}

static void check(struct conn *conn, int failed)
{
	if (failed)
		conn_fail(conn);
}

int reply_is_silent(const struct conn *conn)
{
	return conn->silence.is_off || conn->silence.is_skipped;
}

static void add_header(struct conn *conn, char kind, uint64_t number)
{
	if (!reply_is_silent(conn))
		check(conn, reply_add_header(&conn->stream.out, kind, number));
}

/* One command may ask for a large value a thousand times: close its client before others suffer. */
static int has_no_room(struct conn *conn, size_t size)
{
	size_t unsent = conn->stream.out.size;

	if (unsent > OUTPUT_HIGH &&
	    (bounds_are_passed(conn->loop->server, size) || !bounds_have_share(conn->loop->server, unsent + size)))
		conn_fail(conn);
	return conn->life >= CONN_DEAD;
}

void reply_bytes(struct conn *conn, const void *bytes, size_t size)
{
	if (!reply_is_silent(conn) && !has_no_room(conn, size))
		check(conn, buffer_append(&conn->stream.out, bytes, size));
}

void reply_error(struct conn *conn, const char *format, ...)
{
	char text[8192];
	va_list arguments;
	int length;

	va_start(arguments, format);
	length = vsnprintf(text, sizeof text, format, arguments);
	va_end(arguments);
	if (length < 0) {
		conn_fail(conn);
		return;
	}
	/* A client's words may have as many bytes as a value: they are cut off. */
	if ((size_t)length >= sizeof text)
		length = sizeof text - 1;
	/* Nor may they end the line. As in Redis, trailing ends of line are left out. */
	while (length > 0 && (text[length - 1] == '\r' || text[length - 1] == '\n'))
		length--;
	for (int i = 0; i < length; i++)
		if (text[i] == '\r' || text[i] == '\n')
			text[i] = ' ';
	reply_bytes(conn, "-", 1);
	reply_bytes(conn, text, (size_t)length);
	reply_bytes(conn, "\r\n", 2);
}

void reply_integer(struct conn *conn, int64_t number)
{
	if (number >= 0) {
		add_header(conn, ':', (uint64_t)number);
		return;
	}
	reply_bytes(conn, ":", 1);
	add_header(conn, '-', 0 - (uint64_t)number);
}

void reply_bulk(struct conn *conn, const void *bytes, size_t size)
{
	if (!reply_is_silent(conn) && !has_no_room(conn, size))
		check(conn, reply_add_bulk(&conn->stream.out, bytes, size));
}

void reply_string(struct conn *conn, const char *text)
{
	reply_bulk(conn, text, strlen(text));
}

void reply_format(struct conn *conn, const char *format, ...)
{
	char text[256];
	va_list arguments;
	int length;

	va_start(arguments, format);
	length = vsnprintf(text, sizeof text, format, arguments);
	va_end(arguments);
	reply_bulk(conn, text, length < 0 ? 0 : (size_t)length < sizeof text ? (size_t)length : sizeof text - 1);
}

void reply_verbatim(struct conn *conn, const char *text, size_t size)
{
	if (conn->protocol == 2) {
		reply_bulk(conn, text, size);
		return;
	}
	add_header(conn, '=', size + 4);
	reply_bytes(conn, "txt:", 4);
	reply_bytes(conn, text, size);
	reply_bytes(conn, "\r\n", 2);
}

void reply_null(struct conn *conn)
{
	if (conn->protocol == 2)
		reply_text(conn, "$-1\r\n");
	else
		reply_text(conn, "_\r\n");
}

void reply_null_array(struct conn *conn)
{
	if (conn->protocol == 2)
		reply_text(conn, "*-1\r\n");
	else
		reply_text(conn, "_\r\n");
}

void reply_array(struct conn *conn, size_t count)
{
	add_header(conn, '*', count);
}

void reply_map(struct conn *conn, size_t count)
{
	int is_old = conn->protocol == 2;

	add_header(conn, is_old ? '*' : '%', is_old ? 2 * count : count);
}

void reply_set(struct conn *conn, size_t count)
{
	add_header(conn, conn->protocol == 2 ? '*' : '~', count);
}

void reply_push(struct conn *conn, size_t count)
{
	add_header(conn, conn->protocol == 2 ? '*' : '>', count);
}

void reply_flush(struct conn *conn)
{
	if (conn->is_in_flush)
		return;
	conn->is_in_flush = 1;
	SLIST_INSERT_HEAD(&conn->loop->flush, conn, flush);
}
