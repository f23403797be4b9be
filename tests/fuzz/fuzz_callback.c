/*
 * Any bytes as a job's request. An accepted head has no stray line ends, and is the same after it is written and read
 * again.
 */
/* tier: quick */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "weekwheel/callback.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int is_clean(const char *text, size_t length)
{
	for (size_t i = 0; i < length; i++)
		if (text[i] == '\r' || text[i] == '\n' || text[i] == '\0')
			return 0;
	return 1;
}

static int is_same(const char *a, size_t a_length, const char *b, size_t b_length)
{
	return a_length == b_length && (!a_length || memcmp(a, b, a_length) == 0);
}

static void write_again(const struct ww_callback_request *request)
{
	struct ww_callback_request again;
	size_t length = 0;
	char *text;

	/* Names and blanks left out by the job may make the written head longer than allowed. */
	if (ww_callback_write(request, NULL, 0, &length) != WW_ETOOBIG || length == 0)
		return;
	text = malloc(length);
	if (!text)
		return;
	if (ww_callback_write(request, text, length, &length) || ww_callback_parse(text, length, &again, NULL))
		abort();
	if (!is_same(again.method, again.method_length, request->method, request->method_length) ||
	    !is_same(again.url, again.url_length, request->url, request->url_length) ||
	    !is_same(again.body, again.body_length, request->body, request->body_length) ||
	    again.header_count != request->header_count)
		abort();
	for (size_t i = 0; i < again.header_count; i++)
		if (!is_same(again.headers[i].name, again.headers[i].name_length, request->headers[i].name,
		        request->headers[i].name_length) ||
		    !is_same(again.headers[i].value, again.headers[i].value_length, request->headers[i].value,
		        request->headers[i].value_length))
			abort();
	free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct ww_callback_request request;
	struct ww_callback_problem problem = {0, NULL};

	if (ww_callback_parse((const char *)data, size, &request, &problem)) {
		if (!problem.reason)
			abort();
		return 0;
	}
	if (!is_clean(request.method, request.method_length) || !is_clean(request.url, request.url_length))
		abort();
	for (size_t i = 0; i < request.header_count; i++)
		if (!is_clean(request.headers[i].name, request.headers[i].name_length) ||
		    !is_clean(request.headers[i].value, request.headers[i].value_length))
			abort();
	write_again(&request);
	return 0;
}
