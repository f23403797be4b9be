/* Writes the head of a job that is an HTTP request, which a server with --push delivers, and explains bad parts. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/common/memory.h"
#include "tools/common/message.h"
#include "tools/weekwheel/jobs/put.h"

int put_request_header(struct put_options *put, const struct options *options)
{
	const char *behind = strpbrk(options->value, ":=");

	if (put->header_count == WW_CALLBACK_HEADERS_MAX)
		return options_fail(options, "more than %d --header are too many", WW_CALLBACK_HEADERS_MAX);
	if (!behind || behind == options->value)
		return options_bad_value(options, "header", "NAME=VALUE, or 'Name: value'");
	put->headers[put->header_count++] = options->value;
	return 0;
}

static const char url_form[] = "one such as https://example.org/hook: ";
static const char header_form[] = "'Name: value': ";

static int refuse(
    const struct options *options, const char *name, const char *value, const char *form, const char *reason)
{
	char excerpt[120];

	return options_fail(options, "--%s %s: expected %s%s", name,
	    message_excerpt(excerpt, sizeof excerpt, value, strlen(value)), form, reason);
}

static int refuse_length(const struct options *options)
{
	return options_fail(options,
	    "--url and all --header have more than %d bytes together: leave headers out, or shorten them",
	    WW_CALLBACK_HEAD_MAX);
}

static int is_method(const char *method)
{
	struct ww_callback_request request;
	char line[80];
	int length = snprintf(line, sizeof line, "%s http://localhost/\n", method);

	return *method && !method[strcspn(method, " \t\r\n")] && length < (int)sizeof line &&
	       ww_callback_parse(line, (size_t)length, &request, NULL) == WW_OK;
}

/* Refuse a part that would spill over in the text of the request: the parser could not notice. */
static int check_parts(const struct put_options *put, const struct options *options)
{
	if (!is_method(put->method))
		return refuse(options, "method", put->method, "a word such as PUT, and not CONNECT or TRACE", "");
	if (put->url[strcspn(put->url, " \t\r\n")])
		return refuse(
		    options, "url", put->url, url_form, "the URL has a character that must be written as %XX");
	for (size_t i = 0; i < put->header_count; i++)
		if (put->headers[i][strcspn(put->headers[i], "\r\n")])
			return refuse(
			    options, "header", put->headers[i], header_form, "it has a character that cannot be sent");
	return 0;
}

/* Parse the text of the request, and write the head from it. */
static int write_head(struct put_options *put, const struct options *options, const char *text, size_t length)
{
	struct ww_callback_request request;
	struct ww_callback_problem problem;
	int error = ww_callback_parse(text, length, &request, &problem);

	if (error && length > WW_CALLBACK_HEAD_MAX && strlen(put->url) <= WW_CALLBACK_URL_MAX)
		return refuse_length(options);
	if (error && problem.line < 2)
		return refuse(options, "url", put->url, url_form, problem.reason);
	if (error)
		return refuse(options, "header", put->headers[problem.line - 2], header_form, problem.reason);
	(void)ww_callback_write(&request, NULL, 0, &put->head_length);
	/* Normal blanks after the colons may make it too long. */
	if (!put->head_length)
		return refuse_length(options);
	put->head = memory_zeroed(put->head_length, 1);
	return ww_callback_write(&request, put->head, put->head_length, &put->head_length);
}

/* Without a request they are the job's own: its first bytes, as a word of the protocol says. */
static int add_headers(struct put_options *put, const struct options *options)
{
	put->head = memory_zeroed(WW_JOB_HEADERS_MAX, 1);
	for (size_t i = 0; i < put->header_count; i++) {
		const char *name = put->headers[i];
		const char *value = strpbrk(name, ":=") + 1;
		struct ww_job_header header = {name, (size_t)(value - 1 - name), value, 0};

		if (value[-1] == ':')
			header.value += strspn(value, " ");
		header.value_length = strlen(header.value);
		switch (ww_job_headers_add(put->head, &put->head_length, &header)) {
		case WW_OK:
			break;
		case WW_ETOOBIG:
			return options_fail(options,
			    "at most %d --header of %d bytes in all, with ': ' and a line's end", WW_JOB_HEADERS,
			    WW_JOB_HEADERS_MAX);
		default:
			return refuse(options, "header", name, "NAME=VALUE, each name once: ",
			    "the name is a word such as tenant, the value is visible ASCII");
		}
	}
	if (put->head_length)
		jobs_add_number(put->words, sizeof put->words, "headers", put->head_length);
	return 0;
}

int put_request_check(struct put_options *put, const struct options *options)
{
	char *text = NULL;
	size_t length;
	FILE *out;
	int wrong;

	if (!put->url)
		return put->method ? options_fail(options,
		                         "--method is for a request: --url is missing; give it, or leave --method out")
		                   : add_headers(put, options);
	if (!put->method)
		put->method = "POST";
	if (check_parts(put, options))
		return OPTIONS_ERROR;
	out = open_memstream(&text, &length);
	if (!out)
		memory_exhausted();
	fprintf(out, "%s %s\n", put->method, put->url);
	for (size_t i = 0; i < put->header_count; i++) {
		const char *name = put->headers[i];
		int size = (int)strcspn(name, ":=");
		fprintf(out, "%.*s:%s%s\n", size, name, name[size] == '=' ? " " : "", name + size + 1);
	}
	fputc('\n', out);
	if (fclose(out))
		memory_exhausted();
	wrong = write_head(put, options, text, length);
	free(text);
	if (!put->body && !put->file && !put->lines)
		put->body = "";
	if (!wrong && strcmp(put->method, "HEAD") == 0 && (put->file || put->lines || *put->body))
		return options_fail(
		    options, "--method 'HEAD': such a request has no body: leave the body or the method out");
	return wrong;
}
