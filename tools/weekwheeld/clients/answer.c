/* Adds answers to a connection's buffer, and turns them into errors when the write that they depend on fails. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/weekwheeld/clients/clients.h"

/* Without this answer the client would take the next one for it. It is closed at the end of the turn. */
static void answer_lost(struct connection *connection)
{
	server_note(connection->server, "no memory for an answer: its connection is closed");
	connection->is_lost = 1;
	connection_to_flush(connection);
}

static void answer_bytes(struct connection *connection, const void *data, size_t size)
{
	if (!connection->is_closed && !connection->is_lost && buffer_append(&connection->stream.out, data, size) != 0)
		answer_lost(connection);
}

void answer_text(struct connection *connection, const char *text)
{
	answer_bytes(connection, text, strlen(text));
}

void answer_format(struct connection *connection, const char *format, ...)
{
	char line[512];
	va_list arguments;
	int length;

	va_start(arguments, format);
	length = vsnprintf(line, sizeof line, format, arguments);
	va_end(arguments);
	if (length > 0)
		answer_bytes(connection, line, (size_t)length < sizeof line ? (size_t)length : sizeof line - 1);
}

/* Append a blank and a number. The most frequent answers are written so: printf takes ten times as long. */
static char *add_number(char *to, uint64_t number)
{
	char digits[20];
	int count = 0;

	do
		digits[count++] = (char)('0' + number % 10);
	while (number /= 10);
	*to++ = ' ';
	while (count)
		*to++ = digits[--count];
	return to;
}

void answer_number(struct connection *connection, const char *word, uint64_t number)
{
	char line[64];
	char *end = stpncpy(line, word, 32);

	end = stpcpy(add_number(end, number), "\r\n");
	answer_bytes(connection, line, (size_t)(end - line));
}

void answer_numbers(struct connection *connection, const char *word, uint64_t number, uint64_t other)
{
	char line[80];
	char *end = stpncpy(line, word, 32);

	end = stpcpy(add_number(add_number(end, number), other), "\r\n");
	answer_bytes(connection, line, (size_t)(end - line));
}

void answer_job(struct connection *connection, const char *word, const struct ww_lease *job)
{
	size_t headers = connection->takes_headers ? job->headers_length : 0;
	char line[100];
	char *end = stpncpy(line, word, 32);

	end = add_number(add_number(end, job->id), headers + job->body_length);
	if (headers)
		end = add_number(end, headers);
	end = stpcpy(end, "\r\n");
	answer_bytes(connection, line, (size_t)(end - line));
	answer_bytes(connection, job->headers, headers);
	answer_bytes(connection, job->body, job->body_length);
	answer_text(connection, "\r\n");
}

void answer_block(struct connection *connection, int error, struct buffer *block)
{
	if (error < 0) {
		answer_result(connection, error, NULL);
	} else {
		answer_format(connection, "OK %zu\r\n", block->size);
		answer_bytes(connection, block->data, block->size);
		answer_text(connection, "\r\n");
	}
	buffer_free(block);
}

static const char *error_text(int error)
{
	switch (error) {
	case WW_ENOMEM:
	case WW_EFULL:
		return "OUT_OF_MEMORY\r\n";
	case WW_EINVAL:
	case WW_EOVERFLOW:
		return "BAD_FORMAT\r\n";
	case WW_ETOOBIG:
		return "JOB_TOO_BIG\r\n";
	case WW_ENOTFOUND:
		return "NOT_FOUND\r\n";
	case WW_ESTALE:
		return "STALE\r\n";
	case WW_EINUSE:
		return "RESERVED\r\n";
	default:
		return "INTERNAL_ERROR\r\n";
	}
}

void answer_result(struct connection *connection, int error, const char *text)
{
	if (error < 0) {
		text = error_text(error);
		if (error == WW_EFULL && connection->server->reported_fault == WW_OK)
			(void)store_fault(connection->server, NULL);
		if (strcmp(text, "INTERNAL_ERROR\r\n") == 0)
			store_failed(connection->server, error);
	}
	answer_text(connection, text);
}

static int answer_note(struct connection *connection, size_t end, int depends)
{
	if (connection->answer_count == connection->answer_room) {
		size_t room = connection->answer_room ? connection->answer_room * 2 : 8;
		struct answer *answers = realloc(connection->answers, room * sizeof *answers);

		if (!answers)
			return -1;
		connection->answers = answers;
		connection->answer_room = room;
	}
	connection->answers[connection->answer_count++] = (struct answer){end, depends};
	return 0;
}

/* It gets whether the present write succeeds. */
static void answer_join(struct connection *connection, size_t start)
{
	struct server *server = connection->server;

	if (!server->turn.is_begun || connection->in_batch)
		return;
	connection->in_batch = 1;
	connection->batch_start = start;
	SLIST_INSERT_HEAD(&server->clients->batch, connection, next_batch);
}

void answer_expected(struct connection *connection)
{
	answer_join(connection, connection->stream.out.size);
}

void answer_end(struct connection *connection, size_t start, int depends)
{
	struct server *server = connection->server;

	if (connection->is_closed || connection->is_lost || connection->stream.out.size == start)
		return;
	connection_to_flush(connection);
	if (!server->turn.is_begun)
		return;
	answer_join(connection, start);
	if (answer_note(connection, connection->stream.out.size, depends) != 0)
		answer_lost(connection);
}

/* Keep the answers that do not depend on the write that failed, and replace the others by an error. */
static int answer_retract(struct connection *connection, const char *text)
{
	struct buffer said = {0};
	size_t from = connection->batch_start;
	int bad = buffer_append(&said, connection->stream.out.data, from);

	for (size_t i = 0; i < connection->answer_count && bad == 0; i++) {
		const struct answer *answer = &connection->answers[i];

		if (answer->depends)
			bad = buffer_append(&said, text, strlen(text));
		else
			bad = buffer_append(&said, connection->stream.out.data + from, answer->end - from);
		from = answer->end;
	}
	if (bad != 0) {
		buffer_free(&said);
		return -1;
	}
	buffer_free(&connection->stream.out);
	connection->stream.out = said;
	return 0;
}

void answer_settle(struct connection *connection, int error)
{
	int lost = 0;

	/* The client is not at fault for a failed commit, whatever the error is. */
	if (error != 0 && !connection->is_closed && !connection->is_lost)
		lost = answer_retract(
		    connection, error == WW_EFULL || error == WW_ENOMEM ? "OUT_OF_MEMORY\r\n" : "INTERNAL_ERROR\r\n");
	if (error != 0 && connection->kick.go_on)
		connection->kick.error = error == WW_EFULL || error == WW_ENOMEM ? error : WW_EIO;
	connection->in_batch = 0;
	connection->answer_count = 0;
	if (lost)
		answer_lost(connection);
}
