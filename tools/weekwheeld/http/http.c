/* What requests by HTTP get: numbers for Prometheus, the server's health, and /v1. */
#include <microhttpd.h>
#include <stdlib.h>

#include "tools/common/tls/tls.h"
#include "tools/service/http/reply.h"
#include "tools/weekwheeld/engine/server.h"
#include "tools/weekwheeld/http/http.h"
#include "tools/weekwheeld/page/files.h"
#include "tools/weekwheeld/standby/standby.h"
#include "tools/weekwheeld/v1/events.h"
#include "tools/weekwheeld/v1/serve.h"

enum { QUESTIONS_MAX = 4 };
#define METRICS_TYPE "text/plain; version=0.0.4; charset=utf-8"

/* ---- The numbers of the store: the loop does not wait for one that is shared */

struct http_question {
	struct task task;
	struct web_visit visit;
	LIST_ENTRY(http_question) next;
	int is_known;
	int is_suspended;
	int error;
	struct buffer made;
	struct metrics_sample sample;
};

static void question_run(struct task *task)
{
	struct http_question *question = (struct http_question *)task;

	/* It had to leave while it waited. Threads may not ask that. */
	if (!task->server->is_shared && web_is_leaving(task->server->web, question->visit.client))
		return;
	question->error = metrics_ask(task->server, &question->sample);
}

/* libmicrohttpd calls serve() again. */
static void question_done(struct task *task)
{
	struct http_question *question = (struct http_question *)task;

	task->server->http->asking--;
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
	struct MHD_Connection *client = question->visit.client;
	struct buffer *made = &question->made;
	int error = metrics_write(server, &question->sample, question->error, made);

	web_owe(server->web, client, made);
	if (error == WW_OK)
		return reply_body(client, MHD_HTTP_OK, METRICS_TYPE, made);
	buffer_free(made);
	return reply_text(client, MHD_HTTP_INTERNAL_SERVER_ERROR, ww_strerror(error));
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
	http->asking++;
	LIST_INSERT_HEAD(&http->questions, question, next);
	task_start_timed(server, &question->task);
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

/* ---- While another server owns the store, requests for it are passed on before they come here */

static enum MHD_Result standby_refuse(const struct site_request *request)
{
	return reply_text(request->client, MHD_HTTP_SERVICE_UNAVAILABLE,
	    "this server stands by, and passes on only what comes first on a connection: make another one\n");
}

static enum MHD_Result standby_metrics(const struct site_request *request)
{
	struct buffer made = {0};

	if (metrics_of_standby(request->context, &made) == WW_OK)
		return reply_body(request->client, MHD_HTTP_OK, METRICS_TYPE, &made);
	buffer_free(&made);
	return reply_text(request->client, MHD_HTTP_INTERNAL_SERVER_ERROR, ww_strerror(WW_ENOMEM));
}

static int divert(void *context, int fd, const struct sockaddr *peer, int is_tls)
{
	struct server *server = context;

	if (server->jobs)
		return 0;
	standby_came(server->standby, STANDBY_HTTP, fd, peer, is_tls);
	return 1;
}

void http_let_in(void *context, int fd, const struct sockaddr *peer, int is_tls)
{
	web_admit(((struct server *)context)->web, fd, peer, is_tls);
}

/* ---- Routes */

static enum MHD_Result serve_metrics(const struct site_request *request)
{
	struct server *server = request->context;
	struct http_question *question = NULL;

	if (!server->jobs)
		return standby_metrics(request);
	if (!server->is_shared || server->http->asking < QUESTIONS_MAX)
		question = calloc(1, sizeof *question);
	if (!question)
		return reply_text(request->client, MHD_HTTP_SERVICE_UNAVAILABLE,
		    "too many requests of this kind wait for the store: try again\n");
	question->task.server = server;
	question->visit = (struct web_visit){request->client, question_go_on, question_end};
	*request->visit = &question->visit;
	return question_start(server, question);
}

static enum MHD_Result begin_v1(const struct site_request *request, const char *path, const char *method)
{
	const struct server *server = request->context;

	return server->jobs ? v1_begin(request->context, request->client, path, method, request->visit)
	                    : standby_refuse(request);
}

/* What these had of their own in 0.1 is part of /v1. */
static enum MHD_Result serve_list(const struct site_request *request)
{
	return begin_v1(request, "jobs", MHD_HTTP_METHOD_GET);
}

static enum MHD_Result serve_forecast(const struct site_request *request)
{
	return begin_v1(request, "forecast", MHD_HTTP_METHOD_GET);
}

static enum MHD_Result serve_v1(const struct site_request *request)
{
	return begin_v1(request, request->path, request->method);
}

static const struct site_route routes[] = {{"/metrics", SITE_ALL, serve_metrics}, {"/list", SITE_TOKEN, serve_list},
    {"/forecast", SITE_TOKEN, serve_forecast}, {"/v1/", SITE_OWN, serve_v1}};

static const struct page_file files[] = {
    {"/", PAGE_HTML, page_html, &page_html_size},
    {"/tubes.js", PAGE_SCRIPT, tubes_js, &tubes_js_size},
    {"/jobs.js", PAGE_SCRIPT, jobs_js, &jobs_js_size},
    {"/schedules.js", PAGE_SCRIPT, schedules_js, &schedules_js_size},
    {"/page.js", PAGE_SCRIPT, page_js, &page_js_size},
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
	    .denied =
	        "the token does not grant this: its line in the server's file of tokens needs read: and the tube, or "
	        "read:* where no tube is named\n",
	    .routes = routes,
	    .route_count = sizeof routes / sizeof *routes,
	    .files = files,
	    .file_count = sizeof files / sizeof *files,
	    .health = health_fill,
	    .divert = divert,
	    .context = server};
}

int http_start(struct server *server, struct http *http)
{
	if (!server->settings->http)
		return 0;
	v1_start(server);
	http->site.config = site_of(server);
	if (events_start(server) != 0)
		return -1;
	server->http = http;
	if (site_start(&http->site, &server->loop) != 0)
		return -1;
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
