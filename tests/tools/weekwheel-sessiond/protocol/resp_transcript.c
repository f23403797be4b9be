/* Writes down what the parser of weekwheel-sessiond says. */
#include "tests/tools/weekwheel-sessiond/protocol/resp_transcript.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/weekwheel-sessiond/protocol/resp.h"

size_t resp_whole_piece(size_t at, size_t size, void *context)
{
	(void)context;
	return size - at;
}

static void write_command(FILE *out, const struct resp_parser *parser)
{
	for (size_t i = 0; i < parser->count; i++) {
		(void)fputc('[', out);
		for (size_t n = 0; n < parser->arg[i].size; n++) {
			unsigned char c = (unsigned char)parser->arg[i].data[n];
			(void)fprintf(out, isalnum(c) ? "%c" : "%%%02x", c);
		}
		(void)fputc(']', out);
	}
	(void)fputc('\n', out);
}

/* Parse what is there. Returns the bytes that were used, or -1 after an error. */
static long parse_all(FILE *out, struct resp_parser *parser, const char *data, size_t size)
{
	size_t used = 0;

	for (;;) {
		size_t left = size - used;
		char *copy = malloc(left ? left : 1);
		enum resp_result result = RESP_NO_MEMORY;
		if (copy) {
			memcpy(copy, data + used, left);
			result = resp_parse(parser, copy, left);
		}
		if (result == RESP_COMMAND) {
			write_command(out, parser);
			used += parser->used;
		}
		free(copy);
		if (result == RESP_MORE && parser->needed <= left)
			(void)fprintf(out, "it waits for what it has\n");
		if (result == RESP_MORE)
			return (long)used;
		if (result != RESP_COMMAND) {
			(void)fprintf(out, "%s\n", result == RESP_ERROR ? parser->error : "no memory");
			return -1;
		}
	}
}

char *resp_transcript(
    const char *data, size_t size, size_t bulk_max, int is_stranger, resp_piece_fn *piece, void *context)
{
	struct resp_parser parser = {.bulk_max = bulk_max, .is_stranger = is_stranger};
	char *text = NULL;
	size_t length = 0;
	size_t used = 0;
	FILE *out = open_memstream(&text, &length);

	if (!out)
		return NULL;
	for (size_t at = 0; at < size;) {
		long more;
		at += piece(at, size, context);
		more = parse_all(out, &parser, data + used, at - used);
		if (more < 0) {
			used = size;
			break;
		}
		used += (size_t)more;
	}
	(void)fprintf(out, "+ %zu\n", size - used);
	(void)fclose(out);
	resp_free(&parser);
	return text;
}
