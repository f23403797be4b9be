/* Jobs that are delivered over HTTP: a pusher takes those of some tubes, beside the clients. */
#include "tools/weekwheeld/metrics.h"
#include "tools/weekwheeld/server.h"

#ifdef HAVE_CALLBACK
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "weekwheel/callback.h"

#define LLU unsigned long long

struct push {
	struct ww_callback *callback;
	uint64_t refused; /* bodies that are no request */
};

static int is_pushed(const struct server *server, const char *tube)
{
	const struct settings_push *settings = &server->settings->push;
	size_t i;

	for (i = 0; i < settings->tube_count; i++)
		if (strcmp(settings->tubes[i], tube) == 0)
			return 1;
	return 0;
}

static void push_reports(const char *sentence, void *context)
{
	(void)context;
	server_say("push: %s", sentence);
}

static void push_config(struct server *server, struct ww_callback_config *config)
{
	const struct settings_push *settings = &server->settings->push;

	(void)ww_callback_config_default(config);
	config->jobs = server->jobs;
	config->tubes = settings->tubes;
	config->tube_count = settings->tube_count;
	config->in_flight = (size_t)settings->in_flight;
	config->per_host = (size_t)settings->per_host;
	config->timeout = settings->timeout;
	config->connect_timeout = settings->connect_timeout;
	config->success = settings->success;
	config->success_count = settings->success_count;
	config->secret = settings->secret;
	config->secret_length = settings->secret ? strlen(settings->secret) : 0;
	config->schemes = settings->schemes;
	config->networks = settings->networks;
	config->allow = settings->allow;
	config->allow_count = settings->allow_count;
	config->deny = settings->deny;
	config->deny_count = settings->deny_count;
	config->ca_file = settings->ca_file;
	/* Whatever the server takes may be sent. */
	if (config->body_max < server->settings->max_job_size)
		config->body_max = (size_t)server->settings->max_job_size;
	config->report = push_reports;
	config->context = server;
}

/* Other threads look at server->push, with what they tell the loop locked. */
int push_start(struct server *server)
{
	const struct settings_push *settings = &server->settings->push;
	struct ww_callback_config config;
	struct push *push;
	int error;

	if (settings->tube_count == 0)
		return 0;
	push = calloc(1, sizeof *push);
	push_config(server, &config);
	error = push ? ww_callback_open(&push->callback, &config) : WW_ENOMEM;
	if (error != WW_OK) {
		server_say("cannot deliver over HTTP: %s", ww_strerror(error));
		free(push);
		return -1;
	}
	pthread_mutex_lock(&server->told.lock);
	server->push = push;
	pthread_mutex_unlock(&server->told.lock);
	return 0;
}

void push_stop(struct server *server)
{
	struct push *push = server->push;
	int untold;

	if (!push)
		return;
	pthread_mutex_lock(&server->told.lock);
	server->push = NULL;
	pthread_mutex_unlock(&server->told.lock);
	untold = ww_callback_close(push->callback, server->settings->push.grace);
	if (untold > 0)
		server_say("what came of %d requests could not be written: their jobs are delivered again", untold);
	free(push);
}

void push_ready(struct server *server, const char *tube)
{
	if (!is_pushed(server, tube))
		return;
	pthread_mutex_lock(&server->told.lock);
	if (server->push)
		(void)ww_callback_wake(server->push->callback);
	pthread_mutex_unlock(&server->told.lock);
}

int push_takes(struct server *server, const char *tube, const void *body, size_t length)
{
	struct ww_callback_request request;
	struct ww_callback_problem problem = {0, ""};

	if (!server->push || !is_pushed(server, tube) ||
	    ww_callback_parse(length ? body : "", length, &request, &problem) == WW_OK)
		return 1;
	server->push->refused++;
	server_note(server, "a job for %s is no request: line %zu: %s", tube, problem.line, problem.reason);
	return 0;
}

/* ---- What it counts */

typedef int add_fn(struct buffer *out, const char *name, int is_counter, const char *help, uint64_t value);

static int each_number(const struct push *push, struct buffer *out, add_fn *add)
{
	struct ww_callback_stats stats;

	if (!push)
		return 0;
	memset(&stats, 0, sizeof stats);
	(void)ww_callback_stats(push->callback, &stats);
	return add(out, "reserved", 1, "Jobs taken to be delivered.", stats.reserved) ||
	       add(out, "requests", 1, "Requests sent, or tried to.", stats.requests) ||
	       add(out, "redirects", 1, "Redirections followed.", stats.redirects) ||
	       add(out, "connections", 1, "Connections opened.", stats.connections) ||
	       add(out, "finished", 1, "Jobs that were delivered.", stats.finished) ||
	       add(out, "retried", 1, "Deliveries that are tried again.", stats.retried) ||
	       add(out, "buried", 1, "Jobs that were buried.", stats.buried) ||
	       add(out, "given-back", 1, "Jobs given back untried.", stats.given_back) ||
	       add(out, "addresses-refused", 1, "Addresses that may not be called.", stats.refused) ||
	       add(out, "bodies-refused", 1, "Jobs not taken, being no request.", push->refused) ||
	       add(out, "stale", 1, "Results that came after their lease.", stats.stale) ||
	       add(out, "lost", 1, "Results that could not be told.", stats.lost) ||
	       add(out, "store-errors", 1, "Calls of the store that failed.", stats.store_errors) ||
	       add(out, "in-flight", 0, "Requests under way.", stats.in_flight) ||
	       add(out, "waiting", 0, "Jobs that wait for their host.", stats.waiting) ||
	       add(out, "untold", 0, "Results that wait for the store.", stats.untold);
}

static int add_stat(struct buffer *out, const char *name, int is_counter, const char *help, uint64_t value)
{
	(void)is_counter;
	(void)help;
	return buffer_format(out, "push-%s: %llu\n", name, (LLU)value);
}

static int add_metric(struct buffer *out, const char *name, int is_counter, const char *help, uint64_t value)
{
	char whole[64];
	char *dash;

	snprintf(whole, sizeof whole, "push_%s%s", name, is_counter ? "_total" : "");
	while ((dash = strchr(whole, '-')) != NULL)
		*dash = '_';
	return metrics_number(out, whole, is_counter ? "counter" : "gauge", help, value);
}

int push_stats(struct server *server, struct buffer *out)
{
	return each_number(server->push, out, add_stat);
}

int push_metrics(struct server *server, struct buffer *out)
{
	return each_number(server->push, out, add_metric);
}
#else
int push_start(struct server *server)
{
	if (server->settings->push.tube_count == 0)
		return 0;
	server_say("--push: this build has no libcurl or libcrypto; \"make deps\" installs them, then configure again");
	return -1;
}

void push_stop(struct server *server)
{
	(void)server;
}

void push_ready(struct server *server, const char *tube)
{
	(void)server;
	(void)tube;
}

int push_takes(struct server *server, const char *tube, const void *body, size_t length)
{
	(void)server;
	(void)tube;
	(void)body;
	(void)length;
	return 1;
}

int push_stats(struct server *server, struct buffer *out)
{
	(void)server;
	(void)out;
	return 0;
}

int push_metrics(struct server *server, struct buffer *out)
{
	(void)server;
	(void)out;
	return 0;
}
#endif
