/* Writes the head of a job that is an HTTP request, which a server with --push delivers, and explains bad ones. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/common/memory.h"
#include "tools/common/message.h"
#include "tools/weekwheel/jobs/put.h"

/* Completes a request of which only the method or a header is checked. */
static const char some_url[] = "http://localhost/";

int put_request_header(struct put *put, const struct options *options)
{
	struct ww_callback_header *header = &put->request.headers[put->request.header_count];
	const char *colon = strchr(options->value, ':');
	const char *value;

	if (put->request.header_count == WW_CALLBACK_HEADERS_MAX)
		return jobs_complain(options, "more than %d --header are too many", WW_CALLBACK_HEADERS_MAX);
	if (!colon || colon == options->value)
		return options_bad_value(options, "header", "'Name: value'");
	value = colon + 1 + strspn(colon + 1, " \t");
	header->name = options->value;
	header->name_length = (size_t)(colon - options->value);
	header->value = value;
	header->value_length = strlen(value);
	while (header->value_length && strchr(" \t", value[header->value_length - 1]))
		header->value_length--;
	put->request.header_count++;
	return 0;
}

static int is_good(const char *method, const char *url, const struct ww_callback_header *header)
{
	struct ww_callback_request *request = memory_zeroed(1, sizeof *request);
	size_t length;
	int error;

	request->method = method;
	request->method_length = strlen(method);
	request->url = url;
	request->url_length = strlen(url);
	request->header_count = header != NULL;
	if (header)
		request->headers[0] = *header;
	error = ww_callback_write(request, NULL, 0, &length);
	free(request);
	/* Everything but the missing room was right. */
	return error == WW_ETOOBIG && strlen(url) <= WW_CALLBACK_URL_MAX;
}

/* Ask the parser for the reason. Only characters that end a word or a line must be checked before. */
static const char *reason_of(const char *url, const char *header)
{
	static const char form[] = "POST %s\n%s";
	struct ww_callback_request *request = memory_zeroed(1, sizeof *request);
	struct ww_callback_problem problem = {0, "it has a character that cannot be sent"};
	size_t length = strlen("POST ") + strlen(url) + strlen("\n") + strlen(header);
	char *text = memory_zeroed(length + 1, 1);

	snprintf(text, length + 1, form, url, header);
	if (strcspn(url, " \t\r\n") != strlen(url))
		problem.reason = "the URL has a character that must be written as %XX";
	else
		(void)ww_callback_parse(text, length, request, &problem);
	free(text);
	free(request);
	return problem.reason;
}

/* Say which part is wrong, and why. */
static int complain(const struct put *put, const struct options *options)
{
	const struct ww_callback_request *request = &put->request;
	char excerpt[120];
	size_t i;

	if (!is_good(put->method, some_url, NULL))
		return jobs_complain(options, "--method %s: expected a word such as PUT, and not CONNECT or TRACE",
		    message_excerpt(excerpt, sizeof excerpt, put->method, strlen(put->method)));
	if (!is_good("POST", put->url, NULL))
		return jobs_complain(options, "--url %s: expected one such as https://example.org/hook: %s",
		    message_excerpt(excerpt, sizeof excerpt, put->url, strlen(put->url)), reason_of(put->url, ""));
	for (i = 0; i < request->header_count; i++)
		if (!is_good("POST", some_url, &request->headers[i]))
			return jobs_complain(options, "--header %s: expected 'Name: value': %s",
			    message_excerpt(
			        excerpt, sizeof excerpt, request->headers[i].name, strlen(request->headers[i].name)),
			    reason_of(some_url, request->headers[i].name));
	return jobs_complain(options,
	    "--url and all --header have more than %d bytes together: leave headers out, or shorten them",
	    WW_CALLBACK_HEAD_MAX);
}

int put_request_check(struct put *put, const struct options *options)
{
	struct ww_callback_request *request = &put->request;
	int error;

	if (!put->url)
		return put->method || request->header_count
		           ? jobs_complain(options, "%s is for a request: --url is missing; give it, or leave %s out",
		                 put->method ? "--method" : "--header", put->method ? "--method" : "--header")
		           : 0;
	if (!put->method)
		put->method = "POST";
	request->method = put->method;
	request->method_length = strlen(put->method);
	request->url = put->url;
	request->url_length = strlen(put->url);
	error = ww_callback_write(request, NULL, 0, &put->head_length);
	if (error != WW_ETOOBIG || !put->head_length)
		return complain(put, options);
	if (!put->body && !put->file && !put->lines)
		put->body = "";
	if (strcmp(put->method, "HEAD") == 0 && (put->file || put->lines || *put->body))
		return jobs_complain(
		    options, "--method 'HEAD': such a request has no body: leave the body or the method out");
	put->head = memory_zeroed(put->head_length, 1);
	return ww_callback_write(request, put->head, put->head_length, &put->head_length) == WW_OK
	           ? 0
	           : complain(put, options);
}
