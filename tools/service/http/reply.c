/* Answers by HTTP: see reply.h. */
#include "tools/service/http/reply.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void reply_sent(void *context)
{
	struct buffer *body = context;

	buffer_free(body);
	free(body);
}

/* Give the body to a response. NULL without memory: the body is empty then, too. */
static struct MHD_Response *response_make(struct buffer *body, const char *type)
{
	struct buffer *kept = malloc(sizeof *kept);
	struct MHD_Response *response = NULL;

	if (kept) {
		*kept = *body;
		*body = (struct buffer){0};
		response = MHD_create_response_from_buffer_with_free_callback_cls(
		    kept->size, kept->size ? kept->data : "", reply_sent, kept);
	}
	if (!response) {
		buffer_free(kept ? kept : body);
		free(kept);
		return NULL;
	}
	if (type)
		(void)MHD_add_response_header(response, MHD_HTTP_HEADER_CONTENT_TYPE, type);
	(void)MHD_add_response_header(response, MHD_HTTP_HEADER_CACHE_CONTROL, "no-store");
	return response;
}

static enum MHD_Result response_send(struct MHD_Connection *client, unsigned status, struct MHD_Response *response)
{
	enum MHD_Result result;

	if (!response)
		return MHD_NO;
	/*
	 * libmicrohttpd may place the end of the request elsewhere than a proxy: close, so that the rest is not taken
	 * for another request.
	 */
	if (MHD_lookup_connection_value(client, MHD_HEADER_KIND, MHD_HTTP_HEADER_TRANSFER_ENCODING))
		(void)MHD_add_response_header(response, MHD_HTTP_HEADER_CONNECTION, "close");
	if (status == MHD_HTTP_UNAUTHORIZED)
		(void)MHD_add_response_header(response, MHD_HTTP_HEADER_WWW_AUTHENTICATE, "Bearer");
	result = MHD_queue_response(client, status, response);
	MHD_destroy_response(response);
	return result;
}

enum MHD_Result reply_with(struct MHD_Connection *client, unsigned status, const char *type, struct buffer *body,
    const char *name, const char *value)
{
	struct MHD_Response *response = response_make(body, type);

	if (response && name)
		(void)MHD_add_response_header(response, name, value);
	return response_send(client, status, response);
}

enum MHD_Result reply_body(struct MHD_Connection *client, unsigned status, const char *type, struct buffer *body)
{
	return reply_with(client, status, type, body, NULL, NULL);
}

enum MHD_Result reply_text(struct MHD_Connection *client, unsigned status, const char *text)
{
	struct buffer body = {0};

	(void)buffer_append(&body, text, strlen(text));
	return reply_body(client, status, REPLY_TEXT, &body);
}

enum MHD_Result reply_last(struct MHD_Connection *client, unsigned status, const char *text)
{
	struct buffer body = {0};

	(void)buffer_append(&body, text, strlen(text));
	return reply_with(client, status, REPLY_TEXT, &body, MHD_HTTP_HEADER_CONNECTION, "close");
}

enum MHD_Result reply_file(
    struct MHD_Connection *client, const char *type, const char *data, size_t size, const char *policy)
{
	struct MHD_Response *response =
	    MHD_create_response_from_buffer(size, (void *)(uintptr_t)data, MHD_RESPMEM_PERSISTENT);

	if (!response)
		return MHD_NO;
	(void)MHD_add_response_header(response, MHD_HTTP_HEADER_CONTENT_TYPE, type);
	(void)MHD_add_response_header(response, MHD_HTTP_HEADER_CACHE_CONTROL, "no-cache");
	(void)MHD_add_response_header(response, "Content-Security-Policy", policy);
	(void)MHD_add_response_header(response, "X-Content-Type-Options", "nosniff");
	(void)MHD_add_response_header(response, "Referrer-Policy", "no-referrer");
	return response_send(client, MHD_HTTP_OK, response);
}

enum MHD_Result reply_later(struct MHD_Connection *client, unsigned seconds, const char *text)
{
	struct buffer body = {0};
	char number[16];

	(void)buffer_append(&body, text, strlen(text));
	snprintf(number, sizeof number, "%u", seconds);
	return reply_with(client, MHD_HTTP_TOO_MANY_REQUESTS, REPLY_TEXT, &body, MHD_HTTP_HEADER_RETRY_AFTER, number);
}

int reply_descriptor(struct MHD_Connection *client)
{
	return MHD_get_connection_info(client, MHD_CONNECTION_INFO_CONNECTION_FD)->connect_fd;
}
