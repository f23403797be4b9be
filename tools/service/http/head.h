#ifndef TOOLS_SERVICE_HTTP_HEAD_H
#define TOOLS_SERVICE_HTTP_HEAD_H

/*
 * The heads of requests among all that a client sends, read before libmicrohttpd sees them. libmicrohttpd takes a line that
 * begins with a colon for the end of the head, and a NUL for the end of a field: it cannot be asked for what it has cut off.
 * Such a head goes no further.
 *
 *              [empty line, no body]
 *                 .-----------.
 *                 v           |     [length]
 *     start -> in the head ---+---------------> in a body --[its last byte]--> in the head
 *                 |           '--[chunks]-----> the rest: the connection ends with this request (reply.c)
 *                 '--[a byte that no head has]--> wrong: nothing goes on
 */

#include <stddef.h>
#include <stdint.h>

enum head_state { HEAD_INSIDE, HEAD_BODY, HEAD_REST, HEAD_WRONG };

/* It begins as zero. */
struct request_head {
	enum head_state state;
	int has_line;  /* that says what is asked */
	int is_return; /* the last byte was a carriage return */
	int is_chunked;
	size_t whole;  /* heads that head_take has not taken off yet */
	uint64_t body; /* how many bytes of the body are still to come */
	size_t length; /* of the line so far */
	char line[64]; /* as much of it */
};

/* Read bytes that have come. Returns how many may be passed on: if not all, the state is HEAD_WRONG and stays so. */
size_t head_read(struct request_head *head, const char *bytes, size_t size);

/* A request begins: return 1 if its head has been read. */
int head_take(struct request_head *head);

/*
 * Passed on in place of a wrong head: a line that is neither a request nor a field. libmicrohttpd answers it with 400
 * and closes the connection.
 */
const char *head_refusal(const struct request_head *head);

#endif
