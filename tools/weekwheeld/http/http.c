/* What requests by HTTP get: numbers for Prometheus, the server's health, and lists of jobs as JSON. */
#include <microhttpd.h>
#include <stdlib.h>
#include <string.h>

#include "tools/common/percent.h"
#include "tools/common/tls/tls.h"
#include "tools/service/http/reply.h"
#include "tools/weekwheeld/engine/server.h"
#include "tools/weekwheeld/http/http.h"
#include "tools/weekwheeld/page/files.h"
#include "tools/weekwheeld/v1/events.h"
#include "tools/weekwheeld/v1/serve.h"
#include "tools/weekwheeld/verbs/list.h"

enum { QUESTIONS_MAX = 4 };

/* ---- /list and /forecast: their arguments become the line of a verb, which the protocol's parser reads */

struct query {
	struct buffer line;
	int bad;
};

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
	struct web_visit visit;
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

	/* It had to leave while it waited. Threads may not ask that. */
	if (!task->server->is_shared && web_is_leaving(task->server->web, question->visit.client))
		return;
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
		web_resume(task->server->web, &question->visit);
}

static struct http_question *question_of(struct web_visit *visit)
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
	web_owe(server->web, question->visit.client, made);
	return reply_made(question->visit.client, question->error, question->type, made);
}

/* It is freed when its request has ended. */
static enum MHD_Result question_start(struct server *server, struct http_question *question)
{
	struct http *http = server->http;

	/* Show only what is certain. */
	turn_commit(server);
	question->error = WW_EAGAIN;
	question->task.run = question_run;
	question->task.done = question_done;
	http->asking[question->of]++;
	LIST_INSERT_HEAD(&http->questions, question, next);
	/* Numbers are short, and wanted most when many ask for lists. */
	if (question->of == OF_METRICS)
		task_start_heavy(server, &question->task);
	else
		task_start_large(server, &question->task, question->command.verb == VERB_FORECAST);
	if (question->is_known)
		return question_answer(question);
	question->is_suspended = 1;
	MHD_suspend_connection(question->visit.client);
	return MHD_YES;
}

static enum MHD_Result question_go_on(struct web_visit *visit, const char *data, size_t *size)
{
	(void)data;
	(void)size;
	return question_answer(question_of(visit));
}

static void question_end(struct web_visit *visit)
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

/* RIGHTS_BY_TUBE is refused, too: the loop cannot wait for a shared store. */
static int may(const struct token *token, const struct command *command)
{
	struct rights_case about = {.token = token, .command = command, .used = ""};
	unsigned rights;

	return !token || rights_of(&about, &rights) == RIGHTS_YES;
}

/* Return a question, or NULL if as many of its kind are under way as may be. The request's visit will have it. */
static struct http_question *question_make(const struct site_request *request, int of)
{
	struct server *server = request->context;
	int is_one_too_many = server->is_shared && server->http->asking[of] >= QUESTIONS_MAX;
	struct http_question *question = is_one_too_many ? NULL : calloc(1, sizeof *question);

	if (question) {
		question->task.server = server;
		question->visit = (struct web_visit){request->client, question_go_on, question_end};
		question->of = of;
		*request->visit = &question->visit;
	}
	return question;
}

/* Reply with what `make` makes of the query, or with the usage if it is no command. The query is freed. */
static enum MHD_Result reply_query(const struct site_request *request, struct query *query,
    int (*make)(struct server *server, const struct command *command, struct buffer *out), const char *type,
    const char *usage)
{
	static struct command command;
	struct server *server = request->context;
	struct span line = {query->line.data, query->line.data + query->line.size};
	int bad = query->bad || query->line.size > PROTOCOL_OWN_LINE_MAX - 2 ||
	          protocol_line_read(&command, line) != LINE_COMMAND || command.refusal != REFUSAL_NONE;
	struct http_question *question;

	buffer_free(&query->line);
	if (bad)
		return reply_text(request->client, MHD_HTTP_BAD_REQUEST, usage);
	if (!may(request->token, &command))
		return site_deny(&server->http->site, request->client);
	question = question_make(request, OF_QUERY);
	if (!question)
		return reply_busy(request->client);
	question->command = command;
	question->make = make;
	question->type = type;
	return question_start(server, question);
}

/* ---- Routes */

static enum MHD_Result serve_list(const struct site_request *request)
{
	struct query query = {{0}, 0};

	query.bad = buffer_format(&query.line, "list-delayed");
	(void)MHD_get_connection_values(request->client, MHD_GET_ARGUMENT_KIND, add_argument, &query);
	return reply_query(
	    request, &query, list_jobs, "application/x-ndjson", "the arguments are those of the verb list-delayed\n");
}

static enum MHD_Result serve_forecast(const struct site_request *request)
{
	const char *span = MHD_lookup_connection_value(request->client, MHD_GET_ARGUMENT_KIND, "span");
	const char *count = MHD_lookup_connection_value(request->client, MHD_GET_ARGUMENT_KIND, "count");
	const char *tube = MHD_lookup_connection_value(request->client, MHD_GET_ARGUMENT_KIND, "tube");
	struct query query = {{0}, 0};

	query.bad = buffer_format(&query.line, "forecast %s %s", span ? span : "3600", count ? count : "24");
	if (tube)
		(void)add_argument(&query, MHD_GET_ARGUMENT_KIND, "tube", tube);
	return reply_query(
	    request, &query, list_forecast, "application/json", "span=SECONDS, count=1 to 10080, tube=NAME\n");
}

static enum MHD_Result serve_metrics(const struct site_request *request)
{
	struct http_question *question = question_make(request, OF_METRICS);

	if (!question)
		return reply_busy(request->client);
	question->type = "text/plain; version=0.0.4; charset=utf-8";
	return question_start(request->context, question);
}

static enum MHD_Result serve_v1(const struct site_request *request)
{
	return v1_begin(request->context, request->client, request->path, request->method, request->visit);
}

static const struct site_route routes[] = {{"/metrics", SITE_ALL, serve_metrics}, {"/list", SITE_TOKEN, serve_list},
    {"/forecast", SITE_TOKEN, serve_forecast}, {"/v1/", SITE_OWN, serve_v1}};

static const struct page_file files[] = {
    {"/", PAGE_HTML, page_html, &page_html_size},
    {"/page.js", PAGE_SCRIPT, page_js, &page_js_size},
    {"/schedules.js", PAGE_SCRIPT, schedules_js, &schedules_js_size},
    {"/live.js", PAGE_SCRIPT, live_js, &live_js_size},
};

/* ---- What the bounds see of it */

static uint64_t going(const struct server *server)
{
	return server->web ? visitors_going(web_visitors(server->web)) : 0;
}

static struct face_client worst(const struct server *server, const void *spared)
{
	(void)spared;
	return (struct face_client){server->web ? visitors_worst(web_visitors(server->web)) : 0, NULL};
}

static void end(struct server *server, void *client)
{
	(void)client;
	visitors_end_worst(web_visitors(server->web));
}

const struct face http_face = {v1_settle, NULL, going, worst, end};

/* ---- Beginning and end */

static struct site_config site_of(struct server *server)
{
	const struct settings *settings = server->settings;

	return (struct site_config){.where = settings->http,
	    .hosts = settings->http_hosts,
	    .host_count = settings->http_host_count,
	    .risk = settings->is_insecure ? "--insecure shows them keys and bodies" : NULL,
	    .access = &server->access,
	    .shakes = &server->shakes,
	    .certificate = &server->certificate,
	    .prefix = METRICS_PREFIX,
	    .things = "jobs",
	    .passing = "tokens and jobs",
	    .denied = "the token does not grant this: its line in the file of --auth-file needs read: and the tube, or "
	              "read:* where no tube is named\n",
	    .routes = routes,
	    .route_count = sizeof routes / sizeof *routes,
	    .files = files,
	    .file_count = sizeof files / sizeof *files,
	    .health = health_fill,
	    .context = server};
}

int http_start(struct server *server, struct http *http)
{
	if (!server->settings->http)
		return 0;
	v1_start(server);
	http->site.config = site_of(server);
	if (events_start(server) != 0 || site_start(&http->site, &server->loop) != 0)
		return -1;
	server->http = http;
	server->web = http->site.web;
	return 0;
}

void http_stop(struct server *server)
{
	struct http *http = server->http;

	if (!http)
		return;
	events_stop(server);
	v1_stop(server);
	site_stop(&http->site);
	server->web = NULL;
	server->http = NULL;
}
