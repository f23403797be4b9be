/* Lines of words: SET greeting "hello\n". Words may be quoted as in Redis. */
#include "tools/weekwheel-sessiond/protocol/line.h"

#include <ctype.h>
#include <string.h>

/* The rest of a line, and where the current word is written. */
struct line {
	const char *at;
	const char *end;
	char *to;
};

static int is_space(char c)
{
	return isspace((unsigned char)c) != 0;
}

/* As in Redis, the other spaces may stand before a word and behind a quote, and are part of a word otherwise. */
static int ends_word(char c)
{
	return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

static int hex(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	c = (char)(c | 0x20);
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* A backslash between double quotes, and what follows it. */
static void read_escape(struct line *line)
{
	static const char names[] = "nrtba";
	static const char meanings[] = "\n\r\t\b\a";
	const char *found;

	if (line->end - line->at >= 4 && line->at[1] == 'x' && hex(line->at[2]) >= 0 && hex(line->at[3]) >= 0) {
		*line->to++ = (char)(hex(line->at[2]) << 4 | hex(line->at[3]));
		line->at += 4;
		return;
	}
	found = memchr(names, line->at[1], sizeof names - 1);
	*line->to++ = found ? meanings[found - names] : line->at[1];
	line->at += 2;
}

/* After the closing quote. Returns 0, or -1 if the quote has no end, or is followed by more. */
static int read_quoted(struct line *line, char quote)
{
	while (line->at < line->end) {
		char c = *line->at;
		if (c == quote) {
			line->at++;
			return line->at == line->end || is_space(*line->at) ? 0 : -1;
		}
		if (quote == '"' && c == '\\' && line->end - line->at >= 2) {
			read_escape(line);
		} else if (quote == '\'' && line->end - line->at >= 2 && c == '\\' && line->at[1] == '\'') {
			*line->to++ = '\'';
			line->at += 2;
		} else {
			*line->to++ = c;
			line->at++;
		}
	}
	return -1;
}

static int read_word(struct line *line)
{
	while (line->at < line->end && !ends_word(*line->at)) {
		char c = *line->at++;
		if (c == '"' || c == '\'')
			return read_quoted(line, c);
		*line->to++ = c;
	}
	return 0;
}

/* Words are no longer than their line, and each except the last has a space after it. */
static enum resp_result make_room(struct resp_parser *parser, size_t size)
{
	if (buffer_reserve(&parser->words, size) != 0 || resp_reserve(parser, size / 2 + 1) != 0)
		return RESP_NO_MEMORY;
	return RESP_COMMAND;
}

static enum resp_result split(struct resp_parser *parser, struct line *line)
{
	for (;;) {
		char *word = line->to;
		while (line->at < line->end && is_space(*line->at))
			line->at++;
		/* As in Redis, a NUL ends a line. */
		if (line->at == line->end || *line->at == 0)
			return RESP_COMMAND;
		if (read_word(line) != 0) {
			parser->error = "Protocol error: unbalanced quotes in request";
			return RESP_ERROR;
		}
		parser->arg[parser->count++] = (struct resp_arg){word, (size_t)(line->to - word)};
	}
}

enum resp_result line_parse(struct resp_parser *parser, const char *data, size_t size)
{
	const char *end = memchr(data, '\n', size < RESP_LINE_MAX + 1 ? size : RESP_LINE_MAX + 1);
	struct line line = {.at = data, .end = end};
	enum resp_result result;

	if (!end && size > RESP_LINE_MAX) {
		parser->error = "Protocol error: too big inline request";
		return RESP_ERROR;
	}
	parser->needed = size + 1;
	if (!end)
		return RESP_MORE;
	parser->used = (size_t)(end - data) + 1;
	if (line.end > data && line.end[-1] == '\r')
		line.end--;
	result = make_room(parser, parser->used);
	if (result != RESP_COMMAND)
		return result;
	line.to = parser->words.data;
	return split(parser, &line);
}
