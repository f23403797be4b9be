/* Serves HTTP in the server's own loop: numbers for Prometheus, the server's health, and lists of jobs as JSON. */
#include <errno.h>
#include <microhttpd.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tools/common/percent.h"
#include "tools/service/address.h"
#include "tools/service/visitors.h"
#include "tools/weekwheeld/commands.h"
#include "tools/weekwheeld/gate.h"
#include "tools/weekwheeld/http.h"
#include "tools/weekwheeld/reply.h"

/*
 * Those who leave keep their connections for a moment. A client that is accepted may send its request before as many
 * others come as would take its place.
 */
enum {
	CONNECTIONS_MAX = 2 * VISITORS_MAX,
	ACCEPTED_MAX = VISITORS_EACH / 2,
	BACKLOG = 1024,
	QUESTIONS_MAX = 4,
	REST_MS = 100
};

struct http {
	struct MHD_Daemon *daemon;
	struct visitors visitors;
	LIST_HEAD(, http_question) questions;
	unsigned asking[2]; /* how many questions the store is asked, by what they are of */
	int listener;
	uv_poll_t coming;
	uv_poll_t poll;
	uv_timer_t timer;
	uv_timer_t again; /* lets clients in again after a rest */
	int closed;       /* how many of the four handles */
};

/* ---- /list and /forecast: their arguments become the line of a verb, which the protocol's parser reads */

struct query {
	struct buffer line;
	int bad;
};

/* A path's segments are told apart before they are decoded, so libmicrohttpd decodes nothing. */
static size_t keep_encoded(void *context, struct MHD_Connection *client, char *text)
{
	(void)context;
	(void)client;
	return strlen(text);
}

/* The line has a prefix percent-encoded, and all else decoded. */
static int add_value(struct buffer *line, const char *value, int is_encoded)
{
	const char *end = value + strlen(value);
	char encoded[3 * WW_JOB_KEY_MAX + 1];
	char decoded[WW_JOB_KEY_MAX];
	size_t length = 0;

	while (value < end && length < sizeof decoded)
		decoded[length++] = percent_take(&value, end);
	if (value < end)
		return -1;
	if (is_encoded)
		return buffer_append(line, encoded, percent_encode(decoded, length, encoded, sizeof encoded));
	if (memchr(decoded, ' ', length) || memchr(decoded, '\r', length) || memchr(decoded, '\n', length))
		return -1;
	return buffer_append(line, decoded, length);
}

static enum MHD_Result add_argument(void *context, enum MHD_ValueKind kind, const char *name, const char *value)
{
	struct query *query = context;

	(void)kind;
	query->bad |= !value || buffer_format(&query->line, " %s=", name) ||
	              add_value(&query->line, value, strcmp(name, "prefix") == 0);
	return query->bad ? MHD_NO : MHD_YES;
}

static enum MHD_Result reply_made(struct MHD_Connection *client, int error, const char *type, struct buffer *made)
{
	if (error == WW_OK)
		return reply_body(client, MHD_HTTP_OK, type, made);
	buffer_free(made);
	return reply_text(client, MHD_HTTP_INTERNAL_SERVER_ERROR, ww_strerror(error));
}

/* ---- Questions to the store: the loop does not wait for one that is shared */

enum { OF_QUERY, OF_METRICS };

struct http_question {
	struct task task;
	struct http_visit visit;
	LIST_ENTRY(http_question) next;
	int of;
	int is_known;
	int is_suspended;
	int error;
	int (*make)(struct server *server, const struct command *command, struct buffer *out);
	const char *type;
	struct buffer made;
	struct command command;
	struct metrics_sample sample;
};

static void question_run(struct task *task)
{
	struct http_question *question = (struct http_question *)task;

	if (question->of == OF_METRICS)
		question->error = metrics_ask(task->server, &question->sample);
	else
		question->error = question->make(task->server, &question->command, &question->made);
}

/* libmicrohttpd calls serve() again. */
static void question_done(struct task *task)
{
	struct http_question *question = (struct http_question *)task;

	task->server->http->asking[question->of]--;
	question->is_known = 1;
	if (question->is_suspended)
		http_resume(task->server, &question->visit);
}

void http_owe(struct server *server, struct MHD_Connection *client, const struct buffer *buffer)
{
	visitors_owe(&server->http->visitors, reply_descriptor(client), buffer->capacity);
}

static struct http_question *question_of(struct http_visit *visit)
{
	return (struct http_question *)(void *)((char *)visit - offsetof(struct http_question, visit));
}

static enum MHD_Result question_answer(struct http_question *question)
{
	struct server *server = question->task.server;
	struct buffer *made = &question->made;

	if (question->of == OF_METRICS)
		question->error = metrics_write(server, &question->sample, question->error, made);
	else if (question->error == WW_OK && made->size > 0 && buffer_append(made, "\n", 1) != 0)
		question->error = WW_ENOMEM;
	http_owe(server, question->visit.client, made);
	return reply_made(question->visit.client, question->error, question->type, made);
}

/* It is freed when its request has ended. */
static enum MHD_Result question_start(struct server *server, struct http_question *question)
{
	struct http *http = server->http;

	question->error = WW_EAGAIN;
	question->task.run = question_run;
	question->task.done = question_done;
	http->asking[question->of]++;
	LIST_INSERT_HEAD(&http->questions, question, next);
	if (question->of == OF_METRICS || question->command.verb == VERB_FORECAST)
		task_start_heavy(server, &question->task);
	else
		task_start(server, &question->task);
	if (question->is_known)
		return question_answer(question);
	question->is_suspended = 1;
	MHD_suspend_connection(question->visit.client);
	return MHD_YES;
}

static enum MHD_Result question_go_on(struct http_visit *visit, const char *data, size_t *size)
{
	(void)data;
	(void)size;
	return question_answer(question_of(visit));
}

static void question_end(struct http_visit *visit)
{
	struct http_question *question = question_of(visit);

	LIST_REMOVE(question, next);
	buffer_free(&question->made);
	metrics_forget(&question->sample);
	free(question);
}

static enum MHD_Result reply_busy(struct MHD_Connection *client)
{
	return reply_text(
	    client, MHD_HTTP_SERVICE_UNAVAILABLE, "too many requests of this kind wait for the store: try again\n");
}

/* Return 0 if the client's token grants what the command shows; otherwise the request has been refused. */
static int is_denied(
    struct server *server, struct MHD_Connection *client, const struct command *command, enum MHD_Result *result)
{
	const char *token = MHD_lookup_connection_value(client, MHD_HEADER_KIND, MHD_HTTP_HEADER_AUTHORIZATION);
	const union MHD_ConnectionInfo *from = MHD_get_connection_info(client, MHD_CONNECTION_INFO_CLIENT_ADDRESS);
	unsigned rest;
	int status = auth_http(server, from->client_addr, token, command, &rest);

	if (status == MHD_HTTP_TOO_MANY_REQUESTS)
		*result = reply_later(client, rest, "a wrong token came from your address: try again later\n");
	else if (status == MHD_HTTP_UNAUTHORIZED)
		*result = reply_text(client, MHD_HTTP_UNAUTHORIZED,
		    token ? "the server does not know this token, or the field is not \"Authorization: Bearer TOKEN\": "
		            "the token's line has to be in the file of --auth-file, which SIGHUP reads again\n"
		          : "this needs a token, in a field \"Authorization: Bearer TOKEN\": \"weekwheel token\" makes "
		            "one and its line for the file of --auth-file\n");
	else if (status)
		*result = reply_text(client, MHD_HTTP_FORBIDDEN,
		    "the token does not grant this: its line in the file of --auth-file needs read: and the tube, or read:* where "
		    "no tube is named\n");
	return status;
}

/* Return a question, or NULL if as many of its kind are under way as may be. *state will have it. */
static struct http_question *question_make(struct server *server, struct MHD_Connection *client, int of, void **state)
{
	struct http_question *question = server->http->asking[of] < QUESTIONS_MAX ? calloc(1, sizeof *question) : NULL;

	if (question) {
		question->task.server = server;
		question->visit = (struct http_visit){client, question_go_on, question_end};
		question->of = of;
		*state = &question->visit;
	}
	return question;
}

/* Reply with what `make` makes of the query, or with the usage if it is no command. The query is freed. */
static enum MHD_Result reply_query(struct server *server, struct MHD_Connection *client, struct query *query,
    int (*make)(struct server *server, const struct command *command, struct buffer *out), const char *type,
    const char *usage, void **state)
{
	static struct command command;
	struct span line = {query->line.data, query->line.data + query->line.size};
	int bad = query->bad || query->line.size > PROTOCOL_OWN_LINE_MAX - 2 ||
	          protocol_line_read(&command, line) != LINE_COMMAND || command.refusal != REFUSAL_NONE;
	struct http_question *question;
	enum MHD_Result result;

	buffer_free(&query->line);
	if (bad)
		return reply_text(client, MHD_HTTP_BAD_REQUEST, usage);
	if (is_denied(server, client, &command, &result))
		return result;
	question = question_make(server, client, OF_QUERY, state);
	if (!question)
		return reply_busy(client);
	question->command = command;
	question->make = make;
	question->type = type;
	return question_start(server, question);
}

static enum MHD_Result serve_list(struct server *server, struct MHD_Connection *client, void **state)
{
	struct query query = {{0}, 0};

	query.bad = buffer_format(&query.line, "list-delayed");
	(void)MHD_get_connection_values(client, MHD_GET_ARGUMENT_KIND, add_argument, &query);
	return reply_query(server, client, &query, list_jobs, "application/x-ndjson",
	    "the arguments are those of the verb list-delayed\n", state);
}

static enum MHD_Result serve_forecast(struct server *server, struct MHD_Connection *client, void **state)
{
	const char *span = MHD_lookup_connection_value(client, MHD_GET_ARGUMENT_KIND, "span");
	const char *count = MHD_lookup_connection_value(client, MHD_GET_ARGUMENT_KIND, "count");
	const char *tube = MHD_lookup_connection_value(client, MHD_GET_ARGUMENT_KIND, "tube");
	struct query query = {{0}, 0};

	query.bad = buffer_format(&query.line, "forecast %s %s", span ? span : "3600", count ? count : "24");
	if (tube)
		(void)add_argument(&query, MHD_GET_ARGUMENT_KIND, "tube", tube);
	return reply_query(server, client, &query, list_forecast, "application/json",
	    "span=SECONDS, count=1 to 10080, tube=NAME\n", state);
}

static enum MHD_Result serve_metrics(struct server *server, struct MHD_Connection *client, void **state)
{
	static const struct command all_tubes = {.verb = VERB_LIST_TUBES};
	struct http_question *question;
	enum MHD_Result result;

	if (is_denied(server, client, &all_tubes, &result))
		return result;
	question = question_make(server, client, OF_METRICS, state);
	if (!question)
		return reply_busy(client);
	question->type = "text/plain; version=0.0.4; charset=utf-8";
	return question_start(server, question);
}

static enum MHD_Result serve_health(struct server *server, struct MHD_Connection *client)
{
	const char *format = MHD_lookup_connection_value(client, MHD_GET_ARGUMENT_KIND, "format");
	int is_json = format && strcmp(format, "json") == 0;
	struct buffer made = {0};
	int ready = health_write(server, is_json, &made);

	if (ready >= 0)
		return reply_body(client, ready ? MHD_HTTP_OK : MHD_HTTP_SERVICE_UNAVAILABLE,
		    is_json ? "application/json" : "text/plain; charset=utf-8", &made);
	buffer_free(&made);
	return reply_text(client, MHD_HTTP_SERVICE_UNAVAILABLE, "there is no memory to tell\n");
}

static enum MHD_Result serve(void *context, struct MHD_Connection *client, const char *path, const char *method,
    const char *version, const char *data, size_t *size, void **state)
{
	struct server *server = context;
	enum MHD_Result result;

	(void)version;
	if (*state) {
		struct http_visit *visit = *state;

		return visit->go_on(visit, data, size);
	}
	visitors_note(&server->http->visitors, reply_descriptor(client), 1, uv_now(&server->loop));
	if (!gate_is_ours(server->settings, MHD_lookup_connection_value(client, MHD_HEADER_KIND, MHD_HTTP_HEADER_HOST)))
		return reply_text(client, MHD_HTTP_MISDIRECTED_REQUEST,
		    "this server does not have this name: use its address, or start it with --http-host NAME\n");
	if (strncmp(path, "/v1/", 4) == 0)
		return v1_begin(server, client, path + 4, method, (struct http_visit **)state);
	if (*size > 0 || (strcmp(method, MHD_HTTP_METHOD_GET) != 0 && strcmp(method, MHD_HTTP_METHOD_HEAD) != 0))
		return reply_text(client, MHD_HTTP_METHOD_NOT_ALLOWED, "only GET: this interface is read-only\n");
	if (strcmp(path, "/livez") == 0)
		return reply_text(client, MHD_HTTP_OK, "ok\n");
	if (strcmp(path, "/readyz") == 0 || strcmp(path, "/healthz") == 0)
		return serve_health(server, client);
	if (page_serves(client, path, &result))
		return result;
	/* Show only what is certain: commit this turn's changes first. */
	turn_commit(server);
	if (strcmp(path, "/metrics") == 0)
		return serve_metrics(server, client, state);
	if (strcmp(path, "/list") == 0)
		return serve_list(server, client, state);
	if (strcmp(path, "/forecast") == 0)
		return serve_forecast(server, client, state);
	return reply_text(client, MHD_HTTP_NOT_FOUND,
	    "there are /, /metrics, /livez, /readyz, /healthz, /list, /forecast and /v1/\n");
}

/* ---- Who visits */

static void http_completed(
    void *context, struct MHD_Connection *client, void **state, enum MHD_RequestTerminationCode how)
{
	struct server *server = context;
	struct http_visit *visit = *state;

	(void)how;
	if (visit)
		visit->end(visit);
	*state = NULL;
	visitors_note(&server->http->visitors, reply_descriptor(client), 0, uv_now(&server->loop));
}

static void http_notified(
    void *context, struct MHD_Connection *client, void **state, enum MHD_ConnectionNotificationCode code)
{
	struct server *server = context;

	(void)state;
	if (code == MHD_CONNECTION_NOTIFY_CLOSED)
		visitors_leave(&server->http->visitors, reply_descriptor(client));
}

static int http_enter(struct server *server, int fd, const struct sockaddr *address, socklen_t size)
{
	struct http *http = server->http;

	if (visitors_enter(&http->visitors, fd, address, uv_now(&server->loop)) != 0) {
		(void)close(fd);
		return -1;
	}
	if (MHD_add_connection(http->daemon, fd, address, size) != MHD_YES)
		visitors_leave(&http->visitors, fd);
	return 0;
}

/* ---- In the loop */

static void http_run(struct server *server);

static void http_timer(uv_timer_t *timer)
{
	http_run(timer->data);
}

/* libmicrohttpd without threads of its own has nothing that would wake the loop. */
void http_resume(struct server *server, struct http_visit *visit)
{
	MHD_resume_connection(visit->client);
	uv_timer_start(&server->http->timer, http_timer, 0, 0);
}

static void http_readable(uv_poll_t *poll, int status, int events)
{
	(void)status;
	(void)events;
	http_run(poll->data);
}

static void http_came(uv_poll_t *poll, int status, int events);

static void http_again(uv_timer_t *timer)
{
	struct server *server = timer->data;

	uv_poll_start(&server->http->coming, UV_READABLE, http_came);
}

/* Whoever waits would wake the loop at once, again and again. */
static void http_rest(struct server *server, int reason)
{
	if (reason != EMFILE && reason != ENFILE && reason != ENOMEM && reason != ENOBUFS)
		return;
	state_seen("accept-http",
	    "nobody is let in by HTTP for now: %s; raise the limit of open files or lower "
	    "--max-connections",
	    strerror(reason));
	uv_poll_stop(&server->http->coming);
	uv_timer_start(&server->http->again, http_again, REST_MS, 0);
}

static void http_came(uv_poll_t *poll, int status, int events)
{
	struct server *server = poll->data;

	(void)status;
	(void)events;
	for (int i = 0; i < ACCEPTED_MAX; i++) {
		struct sockaddr_storage address = {0};
		socklen_t size = sizeof address;
		int fd =
		    accept4(server->http->listener, (struct sockaddr *)&address, &size, SOCK_NONBLOCK | SOCK_CLOEXEC);

		if (fd < 0)
			http_rest(server, errno);
		if (fd >= 0 && settings_is_tls(server->settings->http))
			fd = relay_begin(server, fd);
		if (fd < 0 || http_enter(server, fd, (struct sockaddr *)&address, size) != 0)
			break;
	}
	http_run(server);
}

/* Let it work, and wake it when a slow client has to leave. */
static void http_run(struct server *server)
{
	struct http *http = server->http;
	MHD_UNSIGNED_LONG_LONG wait;
	int64_t slow;

	uv_update_time(&server->loop);
	slow = visitors_sweep(&http->visitors, uv_now(&server->loop));
	(void)MHD_run(http->daemon);
	if (MHD_get_timeout(http->daemon, &wait) != MHD_YES)
		wait = UINT64_MAX;
	if (slow >= 0 && (uint64_t)slow < wait)
		wait = (uint64_t)slow;
	if (wait != UINT64_MAX)
		uv_timer_start(&http->timer, http_timer, wait, 0);
	else
		uv_timer_stop(&http->timer);
}

size_t http_worst(const struct server *server)
{
	return server->http ? visitors_worst(&server->http->visitors) : 0;
}

void http_end_worst(struct server *server)
{
	visitors_end_worst(&server->http->visitors);
}

int http_numbers(struct server *server, struct buffer *out, number_fn *add)
{
	const struct visitors *visitors = &server->http->visitors;

	return add(out, "http-connections", 0, "Connections by HTTP.", visitors->count) ||
	       add(out, "http-connections", 1, "Connections that came by HTTP.", visitors->total) ||
	       add(out, "http-too-slow", 1, "Connections by HTTP closed because of their time.", visitors->slow) ||
	       add(out, "http-replaced", 1, "Connections by HTTP closed for another.", visitors->replaced);
}

/* ---- Beginning and end */

static int listener_make(const char *where)
{
	struct sockaddr_storage address;
	int yes = 1;
	int fd;

	errno = 0;
	if (address_read("--http", where + (settings_is_tls(where) ? SETTINGS_TLS_PREFIX : 0), &address) != 0)
		return -1;
	fd = socket(address.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (fd >= 0 && setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes) == 0 &&
	    bind(fd, (struct sockaddr *)&address, sizeof address) == 0 && listen(fd, BACKLOG) == 0)
		return fd;
	message_error(
	    "cannot serve HTTP on %s: %s; give another --http (port 0 takes a free one)", where, strerror(errno));
	if (fd >= 0)
		(void)close(fd);
	return -1;
}

static void http_said(const struct server *server, int listener)
{
	int is_tls = settings_is_tls(server->settings->http);
	struct sockaddr_storage address;
	socklen_t size = sizeof address;

	if (getsockname(listener, (struct sockaddr *)&address, &size) == 0)
		address_announce((struct sockaddr *)&address, is_tls ? "serving https://" : "serving http://",
		    "/metrics", server->settings->is_insecure ? "--insecure shows them keys and bodies" : NULL);
}

static int daemon_start(struct server *server, struct http *http)
{
	http->daemon = MHD_start_daemon(MHD_USE_EPOLL | MHD_USE_NO_LISTEN_SOCKET | MHD_ALLOW_SUSPEND_RESUME, 0, NULL,
	    NULL, serve, server, MHD_OPTION_CONNECTION_LIMIT, (unsigned)CONNECTIONS_MAX, MHD_OPTION_NOTIFY_COMPLETED,
	    http_completed, server, MHD_OPTION_NOTIFY_CONNECTION, http_notified, server, MHD_OPTION_UNESCAPE_CALLBACK,
	    keep_encoded, NULL, MHD_OPTION_END);
	return http->daemon ? 0 : message_error("cannot serve HTTP: no memory");
}

int http_start(struct server *server)
{
	const union MHD_DaemonInfo *info;
	struct http *http;

	if (!server->settings->http)
		return 0;
	http = calloc(1, sizeof *http);
	if (!http)
		return message_error("no memory");
	visitors_begin(&http->visitors);
	http->listener = listener_make(server->settings->http);
	if (http->listener < 0 || daemon_start(server, http) != 0) {
		free(http);
		return -1;
	}
	info = MHD_get_daemon_info(http->daemon, MHD_DAEMON_INFO_EPOLL_FD);
	if (!info || uv_poll_init(&server->loop, &http->poll, info->epoll_fd) != 0 ||
	    uv_poll_init(&server->loop, &http->coming, http->listener) != 0)
		return server_no_loop();
	uv_timer_init(&server->loop, &http->timer);
	uv_timer_init(&server->loop, &http->again);
	http->poll.data = http->coming.data = http->timer.data = http->again.data = server;
	uv_poll_start(&http->poll, UV_READABLE, http_readable);
	uv_poll_start(&http->coming, UV_READABLE, http_came);
	server->http = http;
	http_said(server, http->listener);
	return 0;
}

static void http_closed(uv_handle_t *handle)
{
	struct server *server = handle->data;
	struct http *http = server->http;

	if (++http->closed < 4)
		return;
	server->http = NULL;
	free(http);
}

void http_stop(struct server *server)
{
	struct http *http = server->http;

	if (!http)
		return;
	v1_stop(server);
	uv_close((uv_handle_t *)&http->poll, http_closed);
	uv_close((uv_handle_t *)&http->coming, http_closed);
	uv_close((uv_handle_t *)&http->timer, http_closed);
	uv_close((uv_handle_t *)&http->again, http_closed);
	MHD_stop_daemon(http->daemon);
	relay_stop(server);
	(void)close(http->listener);
}
