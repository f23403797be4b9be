#ifndef TOOLS_WEEKWHEEL_SESSIOND_PROTOCOL_RESP_H
#define TOOLS_WEEKWHEEL_SESSIOND_PROTOCOL_RESP_H

/*
 * Parses what clients of Redis send: commands as arrays of strings, or as lines of words. Bytes in, commands out, no
 * I/O. A command may come in any pieces: call again with all of its bytes, at any address. The part that was parsed
 * before is not parsed again.
 */

#include <stddef.h>
#include <stdint.h>

#include "tools/common/buffer.h"

enum { RESP_LINE_MAX = 65536 };

struct resp_arg {
	const char *data;
	size_t size;
};

/* All zeros, except bulk_max, is a parser that has received nothing. */
struct resp_parser {
	size_t bulk_max;      /* the longest argument */
	int is_stranger;      /* the client has not logged in: it may send little */
	const char *error;    /* after RESP_ERROR: what Redis answers, without "ERR " */
	size_t used;          /* after RESP_COMMAND: bytes of the command */
	size_t needed;        /* after RESP_MORE: bytes that the command has at least */
	size_t count;         /* arguments; 0: an empty command, which has no answer */
	struct resp_arg *arg; /* valid until the next call, and as long as the bytes */
	struct buffer args; /* their memory; until the last has come, each has its place in the command for its data */
	size_t at;          /* bytes parsed */
	uint64_t left;      /* arguments yet to come */
	size_t bulk;        /* of the argument that is coming */
	int in_array;
	int in_bulk;
	struct buffer words; /* of a line, without quotes */
	char bad[48];        /* an error with a character in it */
};

enum resp_result { RESP_MORE, RESP_COMMAND, RESP_ERROR, RESP_NO_MEMORY };

/* Parse data[0 .. size-1], which begins with a command. After RESP_COMMAND the next one begins at data + used. */
enum resp_result resp_parse(struct resp_parser *parser, const char *data, size_t size);

/* Return how many bytes of memory the parser has: little, but while a long command comes and is carried out. */
static inline size_t resp_takes(const struct resp_parser *parser)
{
	return buffer_takes(&parser->args) + buffer_takes(&parser->words);
}

void resp_free(struct resp_parser *parser);

/* Make room for this many arguments. Returns 0, or -1 without memory. */
static inline int resp_reserve(struct resp_parser *parser, size_t count)
{
	size_t size = count * sizeof *parser->arg;

	if (size <= parser->args.capacity)
		return 0;
	/* Growing keeps these arguments. */
	parser->args.size = parser->count * sizeof *parser->arg;
	if (buffer_reserve(&parser->args, size - parser->args.size) != 0)
		return -1;
	parser->arg = (struct resp_arg *)(void *)parser->args.data;
	return 0;
}

/* Read these bytes as a whole number, by Redis's rules: no spaces, no plus, no leading zeros. Returns 0 or -1. */
int resp_whole(const char *text, size_t size, int64_t *number);

#endif
