/* Arrays of strings: "*2\r\n$3\r\nGET\r\n$1\r\na\r\n". Lines of words are in line.c. */
#include "tools/weekwheel-sessiond/protocol/resp.h"

#include <string.h>

#include "tools/weekwheel-sessiond/protocol/line.h"

/* The bounds of a command from a client that has not authenticated. */
enum { STRANGER_ARGS = 10, STRANGER_BULK = 16384, ARGS_MAX = 1024 * 1024 };
/* More memory than this is freed after a command. */
enum { KEPT = 2048 };

int resp_whole(const char *text, size_t size, int64_t *number)
{
	uint64_t value = 0;
	int is_negative = size > 1 && *text == '-';
	uint64_t most = (uint64_t)INT64_MAX + (uint64_t)is_negative;
	size_t i = (size_t)is_negative;

	if (size == 0 || size > 20 || (text[i] == '0' && size > 1))
		return -1;
	for (; i < size; i++) {
		unsigned digit = (unsigned)(unsigned char)text[i] - '0';
		if (digit > 9 || value > (most - digit) / 10)
			return -1;
		value = value * 10 + digit;
	}
	*number = is_negative ? (int64_t)(0 - value) : (int64_t)value;
	return 0;
}

void resp_free(struct resp_parser *parser)
{
	buffer_free(&parser->args);
	buffer_free(&parser->words);
	parser->arg = NULL;
}

static enum resp_result fail(struct resp_parser *parser, const char *error)
{
	parser->error = error;
	return RESP_ERROR;
}

/*
 * The number behind the first character of a line. RESP_COMMAND: it is in *number, and the next line begins at
 * parser->at.
 */
static enum resp_result read_number(struct resp_parser *parser, const char *data, size_t size, int64_t *number,
    const char *too_long, const char *invalid)
{
	const char *line = data + parser->at;
	size_t room = size - parser->at;
	const char *end = memchr(line, '\r', room < RESP_LINE_MAX + 1 ? room : RESP_LINE_MAX + 1);

	if (!end && room > RESP_LINE_MAX)
		return fail(parser, too_long);
	if (!end || (size_t)(end - line) + 2 > room) {
		parser->needed = size + 1;
		return RESP_MORE;
	}
	if (resp_whole(line + 1, (size_t)(end - line) - 1, number) != 0)
		return fail(parser, invalid);
	parser->at += (size_t)(end - line) + 2;
	return RESP_COMMAND;
}

static enum resp_result begin_array(struct resp_parser *parser, const char *data, size_t size)
{
	static const char invalid[] = "Protocol error: invalid multibulk length";
	int64_t number = 0;
	enum resp_result result =
	    read_number(parser, data, size, &number, "Protocol error: too big mbulk count string", invalid);

	if (result != RESP_COMMAND)
		return result;
	if (number > ARGS_MAX)
		return fail(parser, invalid);
	if (number > STRANGER_ARGS && parser->is_stranger)
		return fail(parser, "Protocol error: unauthenticated multibulk length");
	parser->left = number > 0 ? (uint64_t)number : 0;
	parser->in_array = 1;
	return RESP_COMMAND;
}

static enum resp_result begin_bulk(struct resp_parser *parser, const char *data, size_t size)
{
	static const char invalid[] = "Protocol error: invalid bulk length";
	int64_t number = 0;
	enum resp_result result;

	if (parser->at < size && data[parser->at] != '$' && memchr(data + parser->at, '\r', size - parser->at)) {
		static const char text[] = "Protocol error: expected '$', got '?'";
		memcpy(parser->bad, text, sizeof text);
		parser->bad[sizeof text - 3] = data[parser->at];
		return fail(parser, parser->bad);
	}
	result = read_number(parser, data, size, &number, "Protocol error: too big bulk count string", invalid);
	if (result != RESP_COMMAND)
		return result;
	if (number < 0 || (uint64_t)number > parser->bulk_max)
		return fail(parser, invalid);
	if (number > STRANGER_BULK && parser->is_stranger)
		return fail(parser, "Protocol error: unauthenticated bulk length");
	parser->bulk = (size_t)number;
	parser->in_bulk = 1;
	return RESP_COMMAND;
}

/* Announced arguments get no memory before they arrive. */
static int add_place(struct resp_parser *parser)
{
	if (parser->args.capacity < (parser->count + 1) * sizeof *parser->arg &&
	    resp_reserve(parser, parser->count + 1) != 0)
		return -1;
	parser->arg[parser->count++] = (struct resp_arg){(const char *)(uintptr_t)parser->at, parser->bulk};
	return 0;
}

static enum resp_result finish(struct resp_parser *parser, const char *data)
{
	for (size_t i = 0; i < parser->count; i++)
		parser->arg[i].data = data + (uintptr_t)parser->arg[i].data;
	parser->used = parser->at;
	parser->at = 0;
	parser->in_array = 0;
	return RESP_COMMAND;
}

static enum resp_result parse_array(struct resp_parser *parser, const char *data, size_t size)
{
	enum resp_result result;

	while (parser->left > 0) {
		if (!parser->in_bulk) {
			result = begin_bulk(parser, data, size);
			if (result != RESP_COMMAND)
				return result;
		}
		if (size - parser->at < parser->bulk + 2) {
			parser->needed = parser->at + parser->bulk + 2;
			return RESP_MORE;
		}
		if (add_place(parser) != 0)
			return RESP_NO_MEMORY;
		parser->at += parser->bulk + 2;
		parser->in_bulk = 0;
		parser->left--;
	}
	return finish(parser, data);
}

enum resp_result resp_parse(struct resp_parser *parser, const char *data, size_t size)
{
	enum resp_result result;

	parser->needed = 1;
	if (!parser->in_array && resp_takes(parser) > KEPT)
		resp_free(parser);
	if (size == 0)
		return RESP_MORE;
	if (parser->in_array)
		return parse_array(parser, data, size);
	parser->count = 0;
	if (*data != '*')
		return line_parse(parser, data, size);
	result = begin_array(parser, data, size);
	return result == RESP_COMMAND ? parse_array(parser, data, size) : result;
}
