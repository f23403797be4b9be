/* Jobs that are HTTP requests, as a server with --push delivers them: what stands before each body. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "jobs/put.h"
#include "memory.h"

/* Of parts that are looked at alone. */
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
	/* There is no room for it: then all else is as it should be. */
	return error == WW_ETOOBIG && strlen(url) <= WW_CALLBACK_URL_MAX;
}

/* Which part is wrong, for a message. */
static int complain(const struct put *put, const struct options *options)
{
	const struct ww_callback_request *request = &put->request;
	size_t i;

	if (!is_good(put->method, some_url, NULL))
		return jobs_complain(options, "--method %s: that is no method that can be sent", put->method);
	if (!is_good("POST", put->url, NULL))
		return jobs_complain(options,
		    "--url %s: it has to be http:// or https://, a host, and a path, in ASCII, without a user and '#'",
		    put->url);
	for (i = 0; i < request->header_count; i++)
		if (!is_good("POST", some_url, &request->headers[i]))
			return jobs_complain(options,
			    "--header '%s': it is malformed, or one that the server sets itself",
			    request->headers[i].name);
	return jobs_complain(options, "the headers are too long");
}

int put_request_check(struct put *put, const struct options *options)
{
	struct ww_callback_request *request = &put->request;
	int error;

	if (!put->url)
		return put->method || request->header_count
		           ? jobs_complain(options, "--method and --header are of a request: --url is missing")
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
		return jobs_complain(options, "a request with HEAD has no body");
	put->head = memory_zeroed(put->head_length, 1);
	return ww_callback_write(request, put->head, put->head_length, &put->head_length) == WW_OK
	           ? 0
	           : complain(put, options);
}
