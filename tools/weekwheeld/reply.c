/* Answers by HTTP: see reply.h. */
#ifdef HAVE_MICROHTTPD
#include "tools/weekwheeld/reply.h"

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
	(void)MHD_add_response_header(response, MHD_HTTP_HEADER_CONTENT_TYPE, type);
	(void)MHD_add_response_header(response, MHD_HTTP_HEADER_CACHE_CONTROL, "no-store");
	return response;
}

static enum MHD_Result response_send(struct MHD_Connection *client, unsigned status, struct MHD_Response *response)
{
	enum MHD_Result result;

	if (!response)
		return MHD_NO;
	if (status == MHD_HTTP_UNAUTHORIZED)
		(void)MHD_add_response_header(response, MHD_HTTP_HEADER_WWW_AUTHENTICATE, "Bearer");
	result = MHD_queue_response(client, status, response);
	MHD_destroy_response(response);
	return result;
}

enum MHD_Result reply_body(struct MHD_Connection *client, unsigned status, const char *type, struct buffer *body)
{
	return response_send(client, status, response_make(body, type));
}

static struct MHD_Response *text_make(const char *text)
{
	struct buffer body = {0};

	(void)buffer_append(&body, text, strlen(text));
	return response_make(&body, "text/plain; charset=utf-8");
}

enum MHD_Result reply_text(struct MHD_Connection *client, unsigned status, const char *text)
{
	return response_send(client, status, text_make(text));
}

enum MHD_Result reply_later(struct MHD_Connection *client, unsigned seconds, const char *text)
{
	struct MHD_Response *response = text_make(text);
	char number[16];

	snprintf(number, sizeof number, "%u", seconds);
	if (response)
		(void)MHD_add_response_header(response, MHD_HTTP_HEADER_RETRY_AFTER, number);
	return response_send(client, MHD_HTTP_TOO_MANY_REQUESTS, response);
}

int reply_descriptor(struct MHD_Connection *client)
{
	return MHD_get_connection_info(client, MHD_CONNECTION_INFO_CONNECTION_FD)->connect_fd;
}
#else
/* A file of C is not empty. */
typedef int reply_needs_microhttpd;
#endif
