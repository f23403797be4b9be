/* Decides whether a request may be made: its token, its path, and what its headers say. */
#include <string.h>
#include <strings.h>

#include "tools/common/number.h"
#include "tools/weekwheeld/v1/v1.h"

static const char *header(const struct v1_request *request, const char *name)
{
	return MHD_lookup_connection_value(request->visit.client, MHD_HEADER_KIND, name);
}

/* The description of the interface has no secrets, and authors of clients read it first. */
static int take_token(struct v1_request *request, const char *path)
{
	unsigned rest = 0;
	const union MHD_ConnectionInfo *from =
	    MHD_get_connection_info(request->visit.client, MHD_CONNECTION_INFO_CLIENT_ADDRESS);
	int status = access_http(&request->task.server->access, &request->who, from->client_addr,
	    header(request, MHD_HTTP_HEADER_AUTHORIZATION), &rest);

	if (status == MHD_HTTP_TOO_MANY_REQUESTS)
		return v1_problem(request, MHD_HTTP_TOO_MANY_REQUESTS, NULL, "send a right token, which need not wait",
		    "a wrong token came from this address: wait %u seconds", request->rest = rest);
	if (status && strcmp(path, "openapi.json") != 0)
		return v1_problem(request, MHD_HTTP_UNAUTHORIZED, NULL, "send \"Authorization: Bearer TOKEN\"",
		    header(request, MHD_HTTP_HEADER_AUTHORIZATION) ? "the server does not know this token"
		                                                   : "this needs a token that the server knows");
	return 0;
}

/*
 * A web page may make its reader's browser send a request. Without a token, it could change jobs of a server on that
 * machine. With one, it would need to know it.
 */
static int take_right(struct v1_request *request)
{
	const struct v1_operation *operation = request->operation;

	if (!request->who.token && strcmp(operation->method, MHD_HTTP_METHOD_GET) != 0)
		return v1_problem(request, MHD_HTTP_FORBIDDEN, NULL,
		    "start the server with --http-auth-file, or --auth-file for all clients, and make a token by "
		    "\"weekwheel token\"",
		    "changes over HTTP need a token, and this server has none");
	if (request->who.token && operation->right && !token_may(request->who.token, operation->right, ""))
		return v1_problem(request, MHD_HTTP_FORBIDDEN, NULL, "use a token that grants it",
		    "the token does not grant '%s' in any tube", tokens_right_name(operation->right));
	return 0;
}

static int take_headers(struct v1_request *request)
{
	const char *type = header(request, MHD_HTTP_HEADER_CONTENT_TYPE);
	const char *match = header(request, MHD_HTTP_HEADER_IF_MATCH);
	size_t length = match ? strlen(match) : 0;

	if (type && strncasecmp(type, "application/json", sizeof "application/json" - 1) != 0)
		return v1_problem(request, MHD_HTTP_UNSUPPORTED_MEDIA_TYPE, "Content-Type", "send application/json",
		    "the body must be JSON");
	request->is_new_only = header(request, MHD_HTTP_HEADER_IF_NONE_MATCH) != NULL;
	request->idempotency = header(request, "Idempotency-Key");
	request->last_event = header(request, "Last-Event-ID");
	if (!match || strcmp(match, "*") == 0)
		return 0;
	if (length >= 2 && match[0] == '"' && match[length - 1] == '"') {
		match++;
		length -= 2;
	}
	if (number_whole(match, length, 1, UINT64_MAX, &request->version) == 0)
		return 0;
	return v1_problem(request, MHD_HTTP_BAD_REQUEST, "If-Match", NULL, "this must be a version, as ETag gave it");
}

int v1_admit(struct v1_request *request, const char *method, const char *path)
{
	return take_token(request, path) != 0 || v1_route(request, method, path) != 0 || take_right(request) != 0 ||
	               take_headers(request) != 0
	           ? -1
	           : 0;
}
