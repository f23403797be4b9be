/* Requests as text: reading and writing them. */
#include <string.h>

#include "lib/callback/text.h"

/* The rest of the head, and the number of the current line. */
struct reader {
	const char *at;
	const char *end;
	size_t line;
	const char *reason;
	int too_big;
};

/* Take the next line, without its line end. Returns 0 if there is none. */
static int next_line(struct reader *reader, struct text_span *line)
{
	size_t size = (size_t)(reader->end - reader->at);
	const char *end;

	if (!size)
		return 0;
	end = memchr(reader->at, '\n', size);
	*line = (struct text_span){reader->at, end ? (size_t)(end - reader->at) : size};
	reader->at = end ? end + 1 : reader->end;
	reader->line++;
	if (line->size && line->data[line->size - 1] == '\r')
		line->size--;
	return 1;
}

static struct text_span trimmed(struct text_span text)
{
	while (text.size && (text.data[0] == ' ' || text.data[0] == '\t')) {
		text.data++;
		text.size--;
	}
	while (text.size && (text.data[text.size - 1] == ' ' || text.data[text.size - 1] == '\t'))
		text.size--;
	return text;
}

/* Take the word up to the next space. */
static struct text_span next_word(struct text_span *line)
{
	const char *space = line->size ? memchr(line->data, ' ', line->size) : NULL;
	struct text_span word = {line->data, space ? (size_t)(space - line->data) : line->size};

	line->data += word.size;
	line->size -= word.size;
	*line = trimmed(*line);
	return word;
}

/* HTTP/1.1 and the like, or nothing. */
static int is_version(struct text_span text)
{
	if (!text.size)
		return 1;
	if (text.size < 6 || memcmp(text.data, "HTTP/", 5) != 0 || !text_is_digit(text.data[5]))
		return 0;
	return text.size == 6 || (text.size == 8 && text.data[6] == '.' && text_is_digit(text.data[7]));
}

/* Methods are case-sensitive, and these are in capitals. Nobody means another one that is called "get". */
static struct text_span in_capitals(struct text_span method)
{
	static const char *const known[] = {"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"};

	for (size_t i = 0; i < sizeof known / sizeof *known; i++)
		if (ww_callback_text_is(method, known[i]))
			return (struct text_span){known[i], method.size};
	return method;
}

static const char *read_first(struct reader *reader, struct text_span line, struct ww_callback_request *request)
{
	struct callback_url parts;
	struct text_span method = {"POST", 4};
	struct text_span url;
	const char *reason;

	line = trimmed(line);
	url = next_word(&line);
	if (url.size && !memchr(url.data, ':', url.size)) {
		method = in_capitals(url);
		url = next_word(&line);
	}
	request->method = method.data;
	request->method_length = method.size;
	request->url = url.data;
	request->url_length = url.size;
	if (url.size > WW_CALLBACK_URL_MAX) {
		reader->too_big = 1;
		return "the URL is too long";
	}
	reason = ww_callback_text_method(method);
	if (!reason)
		reason = url.size ? ww_callback_text_url(url, &parts) : "there is no URL";
	if (!reason && !is_version(line))
		reason = "something follows the URL that is not HTTP/1.1";
	return reason;
}

static const char *read_header(struct reader *reader, struct text_span line, struct ww_callback_request *request)
{
	struct ww_callback_header *header = &request->headers[request->header_count];
	const char *colon = memchr(line.data, ':', line.size);
	struct text_span value;

	if (line.data[0] == ' ' || line.data[0] == '\t')
		return "a header is continued, which is not allowed";
	if (!colon)
		return "a header has no colon";
	if (request->header_count == WW_CALLBACK_HEADERS_MAX) {
		reader->too_big = 1;
		return "there are too many headers";
	}
	header->name = line.data;
	header->name_length = (size_t)(colon - line.data);
	value = trimmed((struct text_span){colon + 1, line.size - header->name_length - 1});
	header->value = value.data;
	header->value_length = value.size;
	request->header_count++;
	return ww_callback_text_header(header);
}

/* Read the lines up to the body. */
static const char *read_head(struct reader *reader, struct ww_callback_request *request)
{
	struct text_span line;
	const char *reason;

	if (!next_line(reader, &line))
		return "there is nothing";
	reason = read_first(reader, line, request);
	while (!reason && next_line(reader, &line)) {
		if (!line.size)
			break;
		reason = read_header(reader, line, request);
	}
	return reason;
}

/* The bytes that may belong to the head. */
static size_t head_of(size_t length)
{
	return length > WW_CALLBACK_HEAD_MAX ? WW_CALLBACK_HEAD_MAX : length;
}

/* Whether the head ended with an empty line, rather than with the bytes that may belong to it. */
static int has_ended(const char *text, const struct reader *reader)
{
	size_t size = (size_t)(reader->at - text);

	return size >= 2 && reader->at[-1] == '\n' &&
	       (reader->at[-2] == '\n' || (reader->at[-2] == '\r' && size >= 3 && reader->at[-3] == '\n'));
}

static int complain(struct ww_callback_problem *problem, size_t line, const char *reason, int error)
{
	if (problem)
		*problem = (struct ww_callback_problem){line, reason};
	return error;
}

int ww_callback_parse(
    const char *text, size_t length, struct ww_callback_request *request, struct ww_callback_problem *problem)
{
	struct ww_callback_request read = {.header_count = 0};
	struct reader reader = {.at = text};
	const char *reason;

	if (!request || (length && !text))
		return complain(problem, 0, "there is nothing", WW_EINVAL);
	if (!length)
		return complain(problem, 1, "there is nothing", WW_EINVAL);
	reader.end = text + head_of(length);
	reason = read_head(&reader, &read);
	if (!reason && reader.at == reader.end && length > head_of(length) && !has_ended(text, &reader)) {
		reason = "the head is too long";
		reader.too_big = 1;
	}
	if (reason)
		return complain(problem, reader.line, reason, reader.too_big ? WW_ETOOBIG : WW_EINVAL);
	read.body = reader.at;
	read.body_length = (size_t)(text + length - reader.at);
	if (read.body_length && ww_callback_text_is((struct text_span){read.method, read.method_length}, "HEAD"))
		return complain(problem, reader.line, "HEAD has no body", WW_EINVAL);
	*request = read;
	return WW_OK;
}

/* ---- Writing */

/* buffer NULL: only count the bytes. */
struct writer {
	char *buffer;
	size_t length;
};

static void add(struct writer *writer, const void *data, size_t size)
{
	if (writer->buffer && size)
		memcpy(writer->buffer + writer->length, data, size);
	writer->length += size;
}

static void write_all(struct writer *writer, const struct ww_callback_request *request)
{
	add(writer, request->method, request->method_length);
	add(writer, " ", 1);
	add(writer, request->url, request->url_length);
	add(writer, "\n", 1);
	for (size_t i = 0; i < request->header_count; i++) {
		const struct ww_callback_header *header = &request->headers[i];
		add(writer, header->name, header->name_length);
		add(writer, ": ", 2);
		add(writer, header->value, header->value_length);
		add(writer, "\n", 1);
	}
	add(writer, "\n", 1);
	add(writer, request->body, request->body_length);
}

static int check(const struct ww_callback_request *request)
{
	struct callback_url parts;

	if ((request->body_length && !request->body) || !request->method || !request->url)
		return WW_EINVAL;
	if (request->url_length > WW_CALLBACK_URL_MAX || request->header_count > WW_CALLBACK_HEADERS_MAX)
		return WW_ETOOBIG;
	if (ww_callback_text_method((struct text_span){request->method, request->method_length}) ||
	    ww_callback_text_url((struct text_span){request->url, request->url_length}, &parts))
		return WW_EINVAL;
	if (request->body_length &&
	    ww_callback_text_is((struct text_span){request->method, request->method_length}, "HEAD"))
		return WW_EINVAL;
	for (size_t i = 0; i < request->header_count; i++) {
		const struct ww_callback_header *header = &request->headers[i];
		if (!header->name || (header->value_length && !header->value) || ww_callback_text_header(header))
			return WW_EINVAL;
	}
	return WW_OK;
}

int ww_callback_write(const struct ww_callback_request *request, char *buffer, size_t size, size_t *length)
{
	struct writer writer = {NULL, 0};
	int error;

	if (!request || !length || (size && !buffer))
		return WW_EINVAL;
	error = check(request);
	if (error)
		return error;
	write_all(&writer, request);
	if (writer.length - request->body_length > WW_CALLBACK_HEAD_MAX)
		return WW_ETOOBIG;
	*length = writer.length;
	if (writer.length > size)
		return WW_ETOOBIG;
	writer = (struct writer){buffer, 0};
	write_all(&writer, request);
	return WW_OK;
}
