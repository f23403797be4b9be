/* The heads of requests, byte by byte: see head.h. */
#include "tools/service/http/head.h"

#include <string.h>
#include <strings.h>

/* ---- Lines */

/* Return what follows the name of this field in the line, or NULL if it is another field. */
static const char *find_value(const struct request_head *head, const char *field)
{
	return strncasecmp(head->line, field, strlen(field)) == 0 ? head->line + strlen(field) : NULL;
}

/* Libmicrohttpd refuses a number that is malformed or too large. */
static uint64_t read_length(const char *value)
{
	uint64_t length = 0;

	for (value += strspn(value, " \t"); *value >= '0' && *value <= '9'; value++)
		if (__builtin_mul_overflow(length, 10, &length) ||
		    __builtin_add_overflow(length, (uint64_t)(*value - '0'), &length))
			return UINT64_MAX;
	return length;
}

static void end_head(struct request_head *head)
{
	int is_chunked = head->is_chunked;

	head->has_line = head->is_chunked = 0;
	head->whole++;
	if (is_chunked)
		head->state = HEAD_REST;
	else if (head->body > 0)
		head->state = HEAD_BODY;
}

static void end_line(struct request_head *head)
{
	size_t held = head->length < sizeof head->line ? head->length : sizeof head->line - 1;
	const char *value;

	head->line[held] = 0;
	if (head->length == 0 && head->has_line)
		end_head(head);
	if (head->length > 0 && head->has_line) {
		head->is_chunked |= find_value(head, "Transfer-Encoding:") != NULL;
		value = find_value(head, "Content-Length:");
		if (value)
			head->body = read_length(value);
		/* Fields may be numbered where nothing was kept. */
		if (value && held < head->length)
			head->state = HEAD_WRONG;
	}
	head->has_line |= head->length > 0 && head->state == HEAD_INSIDE;
	head->length = 0;
}

/* ---- Bytes */

/* A field has a name, and a line that begins with a space would be a part of the field before it. */
static int may_begin(const struct request_head *head, char byte)
{
	return !head->has_line || head->length > 0 || (byte != ':' && byte != ' ' && byte != '\t');
}

/* Returns 0, or -1 if no head has this byte there. */
static int read_byte(struct request_head *head, char byte)
{
	int is_return = head->is_return;

	head->is_return = byte == '\r';
	if (byte == '\n') {
		end_line(head);
		return 0;
	}
	if (is_return || byte == 0 || !may_begin(head, byte))
		return -1;
	if (byte == '\r')
		return 0;
	if (head->length < sizeof head->line)
		head->line[head->length] = byte;
	head->length++;
	return 0;
}

size_t head_read(struct request_head *head, const char *bytes, size_t size)
{
	size_t at = 0;

	while (at < size && head->state != HEAD_WRONG) {
		if (head->state == HEAD_REST)
			return size;
		if (head->state == HEAD_BODY) {
			size_t body = head->body < size - at ? (size_t)head->body : size - at;

			at += body;
			head->body -= body;
			head->state = head->body > 0 ? HEAD_BODY : HEAD_INSIDE;
		} else if (read_byte(head, bytes[at]) == 0) {
			at++;
		} else {
			head->state = HEAD_WRONG;
		}
	}
	return at;
}

int head_take(struct request_head *head)
{
	int is_read = head->whole > 0;

	head->whole -= (size_t)is_read;
	return is_read;
}

const char *head_refusal(const struct request_head *head)
{
	static const char text[] = "\r\n\1 /\r\n\r\n";

	/* At the beginning of a line, an end of a line would end the head. */
	return head->length > 0 ? text : text + 2;
}
