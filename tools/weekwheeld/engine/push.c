/* Delivers the jobs of some tubes over HTTP: a pusher of lib/callback reserves them next to the clients. */
#include "tools/weekwheeld/engine/server.h"

#ifdef HAVE_CALLBACK
#include <stdlib.h>
#include <string.h>

#include "weekwheel/callback.h"

/* Other threads read server->push under it. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

struct push {
	struct ww_callback *callback;
	uint64_t refused; /* bodies that are not requests */
};

int push_takes(const struct server *server, const char *tube)
{
	const struct ww_callback_config *config = &server->settings->push.config;

	for (size_t i = 0; i < config->tube_count; i++)
		if (strcmp(config->tubes[i], tube) == 0)
			return 1;
	return 0;
}

static void push_reports(const char *sentence, void *context)
{
	(void)context;
	message_error("push: %s", sentence);
}

static void push_result(const struct ww_callback_result *result, void *context)
{
	static const enum count counts[] = {
	    [WW_CALLBACK_DONE] = COUNT_DONE, [WW_CALLBACK_RETRIED] = COUNT_FAILED, [WW_CALLBACK_BURIED] = COUNT_BURIED};
	struct server *server = context;
	struct counts_tube *tube = counts_of(&server->counts, result->tube);

	counts_deliver(&server->counts, tube, result->attempt, result->kicks, result->late);
	counts_add(tube, counts[result->what]);
	counts_end(&server->counts, store_now(server));
	if (result->what == WW_CALLBACK_BURIED)
		burial_log(server->jobs, result->id);
}

int push_start(struct server *server)
{
	struct ww_callback_config config = server->settings->push.config;
	struct push *push;
	int error;

	if (config.tube_count == 0)
		return 0;
	config.jobs = server->jobs;
	config.secret_length = config.secret ? strlen(config.secret) : 0;
	/* Every body that the server takes may be sent. */
	if (config.body_max < server->settings->max_job_size)
		config.body_max = (size_t)server->settings->max_job_size;
	config.report = push_reports;
	config.result = push_result;
	config.context = server;
	push = calloc(1, sizeof *push);
	error = push ? ww_callback_open(&push->callback, &config) : WW_ENOMEM;
	if (error != WW_OK) {
		message_error("cannot deliver over HTTP: %s", ww_strerror(error));
		free(push);
		return -1;
	}
	pthread_mutex_lock(&lock);
	server->push = push;
	pthread_mutex_unlock(&lock);
	return 0;
}

void push_stop(struct server *server)
{
	struct push *push = server->push;
	int untold;

	if (!push)
		return;
	pthread_mutex_lock(&lock);
	server->push = NULL;
	pthread_mutex_unlock(&lock);
	untold = ww_callback_close(push->callback, server->settings->push.grace);
	if (untold > 0)
		message_error(
		    "the results of %d requests could not be written: their jobs are delivered again", untold);
	free(push);
}

void push_ready(struct server *server, const char *tube)
{
	if (!push_takes(server, tube))
		return;
	pthread_mutex_lock(&lock);
	if (server->push)
		(void)ww_callback_wake(server->push->callback);
	pthread_mutex_unlock(&lock);
}

/* Whether a request may have the job's headers. */
static int are_sendable(const struct ww_job_spec *spec, struct ww_callback_request *request)
{
	struct ww_job_header header;
	size_t length;
	size_t at = 0;

	while (ww_job_headers_next(spec->headers, spec->headers_length, &at, &header)) {
		request->header_count = 1;
		request->headers[0] =
		    (struct ww_callback_header){header.name, header.name_length, header.value, header.value_length};
		if (ww_callback_write(request, NULL, 0, &length) == WW_EINVAL)
			return 0;
	}
	return 1;
}

const char *push_refuses(struct server *server, const char *tube, const struct ww_job_spec *spec)
{
	const char *body = spec->body_length ? spec->body : "";
	struct ww_callback_request request;
	struct ww_callback_problem problem = {0, "a header is not the job's to set"};
	const char *at = "body";

	if (!server->push || !push_takes(server, tube))
		return NULL;
	if (ww_callback_parse(body, spec->body_length, &request, &problem) == WW_OK) {
		if (are_sendable(spec, &request))
			return NULL;
		at = "headers";
	}
	server->push->refused++;
	server_note(server, "a job for %s is not a request: line %zu: %s", tube, problem.line, problem.reason);
	return at;
}

int push_numbers(struct server *server, struct buffer *out, number_fn *add)
{
	struct ww_callback_stats stats = {0};

	if (!server->push)
		return 0;
	(void)ww_callback_stats(server->push->callback, &stats);
	return add(out, "push-reserved", 1, "Jobs reserved for delivery.", stats.reserved) ||
	       add(out, "push-requests", 1, "Requests sent or attempted.", stats.requests) ||
	       add(out, "push-redirects", 1, "Redirections followed.", stats.redirects) ||
	       add(out, "push-connections", 1, "Connections opened.", stats.connections) ||
	       add(out, "push-finished", 1, "Jobs delivered.", stats.finished) ||
	       add(out, "push-retried", 1, "Deliveries to be tried again.", stats.retried) ||
	       add(out, "push-buried", 1, "Jobs buried.", stats.buried) ||
	       add(out, "push-given-back", 1, "Jobs given back untried.", stats.given_back) ||
	       add(out, "push-rested", 1, "Jobs put off because their host rested.", stats.rested) ||
	       add(out, "push-crowded", 1, "Jobs put off because too many waited.", stats.crowded) ||
	       add(out, "push-rests", 1, "Times that a host began to rest.", stats.rests) ||
	       add(out, "push-hosts-resting", 0, "Hosts that rest, as they do not answer.", stats.resting) ||
	       add(out, "push-addresses-refused", 1, "Addresses that must not be called.", stats.refused) ||
	       add(out, "push-bodies-refused", 1, "Jobs refused because they are not requests.",
	           server->push->refused) ||
	       add(out, "push-timed-out", 1, "Requests whose time was up.", stats.timed_out) ||
	       add(out, "push-over", 1, "Answers cut off for their size, framing included.", stats.over) ||
	       add(out, "push-stale", 1, "Results that came after the lease had ended.", stats.stale) ||
	       add(out, "push-lost", 1, "Results that the store never got.", stats.lost) ||
	       add(out, "push-store-errors", 1, "Calls of the store that failed.", stats.store_errors) ||
	       add(out, "push-in-flight", 0, "Requests under way.", stats.in_flight) ||
	       add(out, "push-waiting", 0, "Jobs that wait for their host.", stats.waiting) ||
	       add(out, "push-untold", 0, "Results that wait for the store.", stats.untold);
}
#else
int push_start(struct server *server)
{
	if (server->settings->push.config.tube_count == 0)
		return 0;
	return message_error(
	    "--push: this build has no libcurl or libcrypto; \"make deps\" installs them, then configure again");
}

void push_stop(struct server *server)
{
	(void)server;
}

int push_takes(const struct server *server, const char *tube)
{
	(void)server;
	(void)tube;
	return 0;
}

void push_ready(struct server *server, const char *tube)
{
	(void)server;
	(void)tube;
}

const char *push_refuses(struct server *server, const char *tube, const struct ww_job_spec *spec)
{
	(void)server;
	(void)tube;
	(void)spec;
	return NULL;
}

int push_numbers(struct server *server, struct buffer *out, number_fn *add)
{
	(void)server;
	(void)out;
	(void)add;
	return 0;
}
#endif
