/* Answers, and what becomes of them when a write fails. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/weekwheeld/server.h"

/* A client whose answer cannot be kept would take the next one for it: it is closed, at the end of the turn. */
static void answer_lost(struct connection *connection)
{
	server_note(connection->server, "no memory for an answer; its connection is closed");
	connection->is_lost = 1;
	connection_to_flush(connection);
}

void answer_bytes(struct connection *connection, const void *data, size_t size)
{
	if (!connection->is_closed && !connection->is_lost && buffer_append(&connection->out, data, size) != 0)
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

void answer_block(struct connection *connection, const struct buffer *block)
{
	answer_format(connection, "OK %zu\r\n", block->size);
	answer_bytes(connection, block->data, block->size);
	answer_text(connection, "\r\n");
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

void answer_error(struct connection *connection, int error)
{
	const char *text = error_text(error);

	if (strcmp(text, "INTERNAL_ERROR\r\n") == 0)
		store_failed(connection->server, error);
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

void answer_end(struct connection *connection, size_t start, int depends)
{
	struct server *server = connection->server;

	if (connection->is_closed || connection->is_lost || connection->out.size == start)
		return;
	connection_to_flush(connection);
	if (!server->is_begun)
		return;
	if (!connection->in_batch) {
		connection->in_batch = 1;
		connection->batch_start = start;
		connection->next_batch = server->batch;
		server->batch = connection;
	}
	if (answer_note(connection, connection->out.size, depends) != 0)
		answer_lost(connection);
}

/* Say again what does not depend on the write that failed, and an error instead of all that does. */
static int answer_retract(struct connection *connection, const char *text)
{
	struct buffer said = {0};
	size_t from = connection->batch_start;
	size_t i;
	int bad = buffer_append(&said, connection->out.data, from);

	for (i = 0; i < connection->answer_count && bad == 0; i++) {
		const struct answer *answer = &connection->answers[i];

		if (answer->depends)
			bad = buffer_append(&said, text, strlen(text));
		else
			bad = buffer_append(&said, connection->out.data + from, answer->end - from);
		from = answer->end;
	}
	if (bad != 0) {
		buffer_free(&said);
		return -1;
	}
	buffer_free(&connection->out);
	connection->out = said;
	return 0;
}

void answer_settle(struct connection *connection, int error)
{
	int lost = 0;

	/* A failed commit is no fault of what was asked, whatever the code is. */
	if (error != 0 && !connection->is_closed && !connection->is_lost)
		lost = answer_retract(
		    connection, error == WW_EFULL || error == WW_ENOMEM ? "OUT_OF_MEMORY\r\n" : "INTERNAL_ERROR\r\n");
	connection->in_batch = 0;
	connection->answer_count = 0;
	if (lost)
		answer_lost(connection);
}
