/* Serves HTTP in the server's own loop: numbers for Prometheus, the server's health, and lists of jobs as JSON. */
#include "tools/weekwheeld/commands.h"

#ifdef HAVE_MICROHTTPD
#include <errno.h>
#include <microhttpd.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "tools/common/percent.h"
#include "tools/weekwheeld/settings/address.h"

enum { CLIENTS_MAX = 64, CLIENT_SECONDS = 10 };

struct http {
	struct MHD_Daemon *daemon;
	uv_poll_t poll;
	uv_timer_t timer;
	int closed; /* how many of the two handles */
};

static enum MHD_Result reply(struct MHD_Connection *client, unsigned status, const char *type, struct buffer *body)
{
	struct MHD_Response *response =
	    MHD_create_response_from_buffer(body->size, body->size ? body->data : "", MHD_RESPMEM_MUST_COPY);
	enum MHD_Result result = MHD_NO;

	buffer_free(body);
	if (!response)
		return MHD_NO;
	(void)MHD_add_response_header(response, MHD_HTTP_HEADER_CONTENT_TYPE, type);
	(void)MHD_add_response_header(response, MHD_HTTP_HEADER_CACHE_CONTROL, "no-store");
	result = MHD_queue_response(client, status, response);
	MHD_destroy_response(response);
	return result;
}

static enum MHD_Result reply_text(struct MHD_Connection *client, unsigned status, const char *text)
{
	struct buffer body = {0};

	(void)buffer_append(&body, text, strlen(text));
	return reply(client, status, "text/plain; charset=utf-8", &body);
}

/* ---- /list and /forecast: their arguments become the line of a verb, which the protocol's parser reads */

struct query {
	struct buffer line;
	int bad;
};

/* The line has a prefix as the URL had it: percent-encoded. */
static int add_encoded(struct buffer *line, const char *value)
{
	size_t length = strlen(value);
	char encoded[3 * WW_JOB_KEY_MAX + 1];

	if (length > WW_JOB_KEY_MAX)
		return -1;
	return buffer_append(line, encoded, percent_encode(value, length, encoded, sizeof encoded));
}

static enum MHD_Result add_argument(void *context, enum MHD_ValueKind kind, const char *name, const char *value)
{
	struct query *query = context;

	(void)kind;
	query->bad |= !value || buffer_format(&query->line, " %s=", name);
	if (query->bad)
		return MHD_NO;
	if (strcmp(name, "prefix") == 0)
		query->bad = add_encoded(&query->line, value);
	else
		query->bad = strpbrk(value, " \r\n") || buffer_append(&query->line, value, strlen(value));
	return query->bad ? MHD_NO : MHD_YES;
}

static enum MHD_Result reply_made(struct MHD_Connection *client, int error, const char *type, struct buffer *made)
{
	if (error == WW_OK)
		return reply(client, MHD_HTTP_OK, type, made);
	buffer_free(made);
	return reply_text(client, MHD_HTTP_INTERNAL_SERVER_ERROR, ww_strerror(error));
}

/* Reply with what `make` makes of the query, or with the usage if it is no command. The query is freed. */
static enum MHD_Result reply_query(struct server *server, struct MHD_Connection *client, struct query *query,
    int (*make)(struct server *server, const struct command *command, struct buffer *out), const char *type,
    const char *usage)
{
	static struct command command;
	struct span line = {query->line.data, query->line.data + query->line.size};
	struct buffer made = {0};
	int bad = query->bad || query->line.size > PROTOCOL_OWN_LINE_MAX - 2 ||
	          protocol_line_read(&command, line) != LINE_COMMAND || command.refusal != REFUSAL_NONE;
	int error;

	buffer_free(&query->line);
	if (bad)
		return reply_text(client, MHD_HTTP_BAD_REQUEST, usage);
	error = make(server, &command, &made);
	if (error == WW_OK && made.size > 0)
		(void)buffer_append(&made, "\n", 1);
	return reply_made(client, error, type, &made);
}

static enum MHD_Result serve_list(struct server *server, struct MHD_Connection *client)
{
	struct query query = {{0}, 0};

	query.bad = buffer_format(&query.line, "list-delayed");
	(void)MHD_get_connection_values(client, MHD_GET_ARGUMENT_KIND, add_argument, &query);
	return reply_query(server, client, &query, list_jobs, "application/x-ndjson",
	    "the arguments are those of the verb list-delayed\n");
}

static enum MHD_Result serve_forecast(struct server *server, struct MHD_Connection *client)
{
	const char *span = MHD_lookup_connection_value(client, MHD_GET_ARGUMENT_KIND, "span");
	const char *count = MHD_lookup_connection_value(client, MHD_GET_ARGUMENT_KIND, "count");
	const char *tube = MHD_lookup_connection_value(client, MHD_GET_ARGUMENT_KIND, "tube");
	struct query query = {{0}, 0};

	query.bad = buffer_format(&query.line, "forecast %s %s%s%s", span ? span : "3600", count ? count : "24",
	    tube ? " tube=" : "", tube ? tube : "");
	return reply_query(
	    server, client, &query, list_forecast, "application/json", "span=SECONDS, count=1 to 10080, tube=NAME\n");
}

static enum MHD_Result serve_metrics(struct server *server, struct MHD_Connection *client)
{
	struct buffer made = {0};

	return reply_made(client, metrics_write(server, &made), "text/plain; version=0.0.4; charset=utf-8", &made);
}

static enum MHD_Result serve_health(struct server *server, struct MHD_Connection *client)
{
	char text[WW_FAULT_MAX + 1];

	if (store_answers(server) != WW_OK)
		return reply_text(client, MHD_HTTP_SERVICE_UNAVAILABLE, "the store does not answer\n");
	if (store_fault(server, text) != WW_OK)
		return reply_text(client, MHD_HTTP_SERVICE_UNAVAILABLE, strcat(text, "\n"));
	if (server->is_failing)
		return reply_text(client, MHD_HTTP_SERVICE_UNAVAILABLE, "the last write failed\n");
	return reply_text(client, MHD_HTTP_OK, "ok\n");
}

static enum MHD_Result serve(void *context, struct MHD_Connection *client, const char *path, const char *method,
    const char *version, const char *data, size_t *size, void **state)
{
	struct server *server = context;

	(void)version;
	(void)data;
	(void)state;
	if (*size > 0 || (strcmp(method, MHD_HTTP_METHOD_GET) != 0 && strcmp(method, MHD_HTTP_METHOD_HEAD) != 0))
		return reply_text(client, MHD_HTTP_METHOD_NOT_ALLOWED, "only GET: this interface is read-only\n");
	/* Show only what is certain: commit this turn's changes first. */
	turn_commit(server);
	if (strcmp(path, "/metrics") == 0)
		return serve_metrics(server, client);
	if (strcmp(path, "/healthz") == 0)
		return serve_health(server, client);
	if (strcmp(path, "/list") == 0)
		return serve_list(server, client);
	if (strcmp(path, "/forecast") == 0)
		return serve_forecast(server, client);
	return reply_text(client, MHD_HTTP_NOT_FOUND, "there are /metrics, /healthz, /list and /forecast\n");
}

/* ---- In the loop */

static void http_run(struct http *http);

static void http_timer(uv_timer_t *timer)
{
	http_run(timer->data);
}

static void http_readable(uv_poll_t *poll, int status, int events)
{
	(void)status;
	(void)events;
	http_run(poll->data);
}

/* Let it work, and wake it when it has to drop slow clients. */
static void http_run(struct http *http)
{
	MHD_UNSIGNED_LONG_LONG wait;

	(void)MHD_run(http->daemon);
	if (MHD_get_timeout(http->daemon, &wait) == MHD_YES)
		uv_timer_start(&http->timer, http_timer, wait, 0);
	else
		uv_timer_stop(&http->timer);
}

static void http_said(struct MHD_Daemon *daemon)
{
	const union MHD_DaemonInfo *info = MHD_get_daemon_info(daemon, MHD_DAEMON_INFO_LISTEN_FD);
	struct sockaddr_storage address;
	socklen_t size = sizeof address;

	if (info && getsockname(info->listen_fd, (struct sockaddr *)&address, &size) == 0)
		address_announce((struct sockaddr *)&address, "serving http://", "/metrics",
		    "HTTP shows keys and bodies to everybody");
}

static struct MHD_Daemon *daemon_start(struct server *server)
{
	struct sockaddr_storage address;
	unsigned flags = MHD_USE_EPOLL;
	struct MHD_Daemon *daemon;

	errno = 0;
	if (address_read("--http", server->settings->http, &address) != 0)
		return NULL;
	if (address.ss_family == AF_INET6)
		flags |= MHD_USE_IPv6;
	daemon = MHD_start_daemon(flags, 0, NULL, NULL, serve, server, MHD_OPTION_SOCK_ADDR, &address,
	    MHD_OPTION_CONNECTION_LIMIT, (unsigned)CLIENTS_MAX, MHD_OPTION_CONNECTION_TIMEOUT, (unsigned)CLIENT_SECONDS,
	    MHD_OPTION_END);
	if (!daemon)
		message_error("cannot serve HTTP on %s: %s; give another --http (port 0 takes a free one)",
		    server->settings->http, errno ? strerror(errno) : "no memory");
	return daemon;
}

int http_start(struct server *server)
{
	const union MHD_DaemonInfo *info;
	struct http *http;

	if (!server->settings->http)
		return 0;
	http = calloc(1, sizeof *http);
	if (!http)
		return -1;
	http->daemon = daemon_start(server);
	info = http->daemon ? MHD_get_daemon_info(http->daemon, MHD_DAEMON_INFO_EPOLL_FD) : NULL;
	if (!info || uv_poll_init(&server->loop, &http->poll, info->epoll_fd) != 0) {
		if (http->daemon)
			MHD_stop_daemon(http->daemon);
		free(http);
		return -1;
	}
	uv_timer_init(&server->loop, &http->timer);
	http->poll.data = http->timer.data = http;
	uv_poll_start(&http->poll, UV_READABLE, http_readable);
	server->http = http;
	http_said(http->daemon);
	return 0;
}

static void http_closed(uv_handle_t *handle)
{
	struct http *http = handle->data;

	if (++http->closed == 2)
		free(http);
}

void http_stop(struct server *server)
{
	struct http *http = server->http;

	if (!http)
		return;
	server->http = NULL;
	uv_close((uv_handle_t *)&http->poll, http_closed);
	uv_close((uv_handle_t *)&http->timer, http_closed);
	MHD_stop_daemon(http->daemon);
}
#else
int http_start(struct server *server)
{
	if (!server->settings->http)
		return 0;
	return message_error("--http: this build has no libmicrohttpd; install libmicrohttpd-dev and configure again");
}

void http_stop(struct server *server)
{
	(void)server;
}
#endif
