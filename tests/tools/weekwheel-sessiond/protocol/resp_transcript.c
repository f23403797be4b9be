/* Writes down what the parser of weekwheel-sessiond says. Fuzzed, so it is fast: a block or two, and no stdio. */
#include "tests/tools/weekwheel-sessiond/protocol/resp_transcript.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/common/buffer.h"
#include "tools/weekwheel-sessiond/protocol/resp.h"

size_t resp_whole_piece(size_t at, size_t size, void *context)
{
	(void)context;
	return size - at;
}

static int write_text(struct buffer *out, const char *text)
{
	return buffer_append(out, text, strlen(text));
}

static int write_argument(struct buffer *out, const struct resp_arg *arg)
{
	static const char digits[] = "0123456789abcdef";
	char *to;

	if (buffer_reserve(out, 3 * arg->size + 2) != 0)
		return -1;
	to = out->data + out->size;
	*to++ = '[';
	for (size_t n = 0; n < arg->size; n++) {
		unsigned char c = (unsigned char)arg->data[n];
		if (isalnum(c)) {
			*to++ = (char)c;
		} else {
			*to++ = '%';
			*to++ = digits[c >> 4];
			*to++ = digits[c & 15];
		}
	}
	*to++ = ']';
	out->size = (size_t)(to - out->data);
	return 0;
}

static int write_command(struct buffer *out, const struct resp_parser *parser)
{
	int failed = 0;

	for (size_t i = 0; i < parser->count; i++)
		failed |= write_argument(out, &parser->arg[i]);
	return failed | write_text(out, "\n");
}

/* Parse what is there. Returns the bytes that were used, or -1 after an error. */
static long parse_all(struct buffer *out, struct resp_parser *parser, const char *data, size_t size)
{
	enum resp_result result;
	size_t used = 0;
	int failed = 0;

	while ((result = resp_parse(parser, data + used, size - used)) == RESP_COMMAND) {
		failed |= write_command(out, parser);
		used += parser->used;
	}
	if (result == RESP_MORE && parser->needed <= size - used)
		failed |= write_text(out, "it waits for what it has\n");
	if (result == RESP_ERROR)
		failed |= write_text(out, parser->error) | write_text(out, "\n");
	else if (result == RESP_NO_MEMORY || failed)
		(void)write_text(out, "no memory\n");
	return result == RESP_MORE && !failed ? (long)used : -1;
}

/*
 * As the server does, the bytes of a command move when more of it comes: here to the end of the other of two blocks, so that
 * a sanitizer sees a look beyond them. The former ones are overwritten: who still looks there is told something else.
 */
static size_t parse_pieces(struct buffer *out, struct resp_parser *parser, const char *data, size_t size,
    char *block[2], resp_piece_fn *piece, void *context)
{
	size_t used = 0;

	for (size_t at = 0, turn = 0; at < size; turn ^= 1) {
		size_t before = at - used;
		char *copy;
		long more;

		at += piece(at, size, context);
		copy = block[turn] + size - (at - used);
		memcpy(copy, data + used, at - used);
		memset(block[!turn] + size - before, '#', before);
		more = parse_all(out, parser, copy, at - used);
		if (more < 0)
			return size;
		used += (size_t)more;
	}
	return used;
}

char *resp_transcript(
    const char *data, size_t size, size_t bulk_max, int is_stranger, resp_piece_fn *piece, void *context)
{
	struct resp_parser parser = {.bulk_max = bulk_max, .is_stranger = is_stranger};
	char *block[2] = {malloc(size + !size), malloc(size + !size)};
	struct buffer out = {0};
	char *text = NULL;

	if (block[0] && block[1]) {
		size_t used = parse_pieces(&out, &parser, data, size, block, piece, context);
		if (buffer_format(&out, "+ %zu\n", size - used) == 0 && buffer_append(&out, "", 1) == 0)
			text = strdup(out.data);
	}
	buffer_free(&out);
	resp_free(&parser);
	free(block[0]);
	free(block[1]);
	return text;
}
