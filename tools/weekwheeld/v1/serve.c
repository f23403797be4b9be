/*
 * The life of a request. Its body is collected, then its operation runs as a task. A change of a store in this
 * process is answered when the turn's write has been committed, so that all changes of a turn are one write, whoever
 * asked for them. A reserve without a job waits for one of its tubes, or for its time to be up.
 */
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>

#include "tools/common/number.h"
#include "tools/service/http/reply.h"
#include "tools/weekwheeld/v1/v1.h"

/* A body from which on a request counts as a long one; and what long ones take of a turn. */
enum { LONG = 16384, TURN_NS = 2000000 };

static struct v1_request *request_of(struct web_visit *visit)
{
	return (struct v1_request *)(void *)((char *)visit - offsetof(struct v1_request, visit));
}

/* ---- Answering */

/* There was no memory for the answer, or for the problem. */
static void lost(struct v1_request *request)
{
	static const char none[] = "{\"type\":\"about:blank\",\"title\":\"Service Unavailable\",\"status\":503,"
	                           "\"detail\":\"there is no memory for the answer\"}";

	request->status = MHD_HTTP_SERVICE_UNAVAILABLE;
	request->type = "application/problem+json";
	(void)buffer_append(&request->out, none, sizeof none - 1);
}

static enum MHD_Result reply(struct v1_request *request)
{
	const char *name = NULL;
	char value[32];

	if (request->stream)
		return v1_stream_reply(request);
	if (!request->status)
		lost(request);
	if (request->etag) {
		name = MHD_HTTP_HEADER_ETAG;
		snprintf(value, sizeof value, "\"%llu\"", (unsigned long long)request->etag);
	} else if (request->rest) {
		name = MHD_HTTP_HEADER_RETRY_AFTER;
		snprintf(value, sizeof value, "%u", request->rest);
	}
	web_owe(request->task.server->web, request->visit.client, &request->out);
	return reply_with(request->visit.client, request->status,
	    request->status == MHD_HTTP_NO_CONTENT ? NULL
	    : request->type                        ? request->type
	                                           : "application/json",
	    &request->out, name, value);
}

/* Free what it asked for. A thousand jobs take more as fields than as text, and a client may leave its answer unread. */
static void forget(struct v1_request *request)
{
	buffer_free(&request->in);
	buffer_free(&request->decoded);
	free(request->fields);
	free(request->puts);
	free(request->leases);
	request->fields = NULL;
	request->puts = NULL;
	request->leases = NULL;
}

/* The answer is known. If libmicrohttpd waits for it, it calls go_on again. */
static void known(struct v1_request *request)
{
	if (request->ended && request->status < 300)
		v1_held_end(request->task.server, request->id, request->fields->token, request->ended);
	request->state = V1_KNOWN;
	/* A stream still needs its tubes. */
	if (!request->stream) {
		forget(request);
		web_owe(request->task.server->web, request->visit.client, &request->out);
	}
	if (request->is_suspended)
		web_resume(request->task.server->web, &request->visit);
	request->is_suspended = 0;
}

static enum MHD_Result reply_or_wait(struct v1_request *request)
{
	if (request->state == V1_KNOWN)
		return reply(request);
	request->is_suspended = 1;
	MHD_suspend_connection(request->visit.client);
	return MHD_YES;
}

/* ---- Waiting for jobs */

static void waiting_leave(struct v1_request *request)
{
	struct server *server = request->task.server;

	for (size_t i = 0; i < request->tube_count && request->watched[i]; i++) {
		request->watched[i]->pollers--;
		tube_drop(server, request->watched[i]);
	}
	if (request->timer)
		(void)ww_driver_cancel(server->elapsed, request->timer);
	request->timer = 0;
	TAILQ_REMOVE(&server->v1->waiting, request, next);
	server->tubes.waiting--;
}

static void waiting_over(struct ww_driver *driver, const struct ww_firing *firing, void *user)
{
	struct v1_request *request = user;

	(void)driver;
	(void)firing;
	request->timer = 0;
	/* While the store is asked, it may find a job. */
	if (request->state != V1_WAITING)
		return;
	waiting_leave(request);
	known(request);
}

/* Returns 1 if it waits, or 0 if it is answered with what it has. */
static int waiting_join(struct v1_request *request)
{
	struct server *server = request->task.server;
	uint64_t now = store_now(server);

	if (request->got != 0 || request->fields->span == 0 || server->is_stopping)
		return 0;
	request->give_up = now + request->fields->span;
	TAILQ_INSERT_TAIL(&server->v1->waiting, request, next);
	server->tubes.waiting++;
	request->state = V1_WAITING;
	for (size_t i = 0; i < request->tube_count; i++) {
		request->watched[i] = tube_make(server, request->tubes[i]);
		if (request->watched[i])
			request->watched[i]->pollers++;
		else
			break;
	}
	if (request->watched[request->tube_count - 1] &&
	    ww_driver_schedule(server->elapsed, request->fields->span, waiting_over, request, &request->timer) == WW_OK)
		return 1;
	waiting_leave(request);
	(void)v1_failed(request, WW_ENOMEM);
	return 0;
}

/* A client that has gone, or has to leave, would not get the answer. */
static int is_gone(const struct v1_request *request)
{
	struct MHD_Connection *client = request->visit.client;
	char byte;

	return web_is_leaving(request->task.server->web, client) ||
	       recv(reply_descriptor(client), &byte, 1, MSG_PEEK | MSG_DONTWAIT) == 0;
}

static void ask(struct v1_request *request);

/* Whether a long request may still begin in this turn. Many that come at once would hold up everybody. */
static int has_time(struct server *server)
{
	struct v1 *v1 = server->v1;

	if (v1->turn != server->turn.number)
		v1->spent = 0;
	v1->turn = server->turn.number;
	return v1->spent < TURN_NS;
}

/* Its answer is there by now, unless the store is shared. */
static void spend(struct server *server, uint64_t since)
{
	server->v1->spent += uv_hrtime() - since;
	bounds_hold_input(server);
}

/* Let those ask whose tubes may have jobs, as far as the turn has time. */
static void call_some(struct server *server)
{
	struct v1_request *request;
	struct v1_request *next;

	for (request = TAILQ_FIRST(&server->v1->waiting); request && has_time(server); request = next) {
		uint64_t since = uv_hrtime();

		next = TAILQ_NEXT(request, next);
		if (!request->is_called || request->state != V1_WAITING)
			continue;
		ask(request);
		spend(server, since);
	}
	server->v1->is_calling = request != NULL;
	if (request)
		loop_again(server);
}

void v1_wake(struct server *server)
{
	struct v1_request *request;

	TAILQ_FOREACH(request, &server->v1->waiting, next)
	for (size_t i = 0; i < request->tube_count; i++)
		request->is_called |= request->watched[i]->calls_pollers;
	TAILQ_FOREACH(request, &server->v1->waiting, next)
	for (size_t i = 0; i < request->tube_count; i++)
		request->watched[i]->calls_pollers = 0;
	call_some(server);
}

/* ---- Asking the store */

static void task_run(struct task *task)
{
	struct v1_request *request = (struct v1_request *)task;
	int error;

	/* It waited for room, and its client may not have. Threads may not ask that. */
	if (task->is_large && request->is_suspended && !task->server->is_shared && is_gone(request))
		return;
	error = request->operation->run(request);
	if (error < 0)
		(void)v1_failed(request, error);
	request->is_run = 1;
}

static void count_puts(struct v1_request *request)
{
	for (size_t i = 0; i < request->count; i++)
		if (request->puts[i].result == WW_PUT_NEW || request->puts[i].result == WW_PUT_REPLACED)
			counts_add(counts_of(&request->task.server->counts, request->puts[i].spec->tube), COUNT_PUT);
}

static void return_leases(struct task *task)
{
	struct v1_request *request = (struct v1_request *)task;

	for (int i = 0; i < request->got; i++)
		(void)ww_jobs_return(v1_jobs(request), request->leases[i].id, request->leases[i].token);
	v1_no_leases(request);
}

/*
 * What a reserve got long ago, as the server was stopped since, another worker may have by now, and may have ended
 * it. So all of the answer goes back, and if the request waits, it asks again. Return 1 if the task has begun.
 */
static int give_back(struct v1_request *request)
{
	struct server *server = request->task.server;
	int is_over = 0;

	for (int i = 0; request->status && i < request->got; i++)
		is_over |= task_outlasted(&request->task, &request->leases[i]);
	if (!is_over)
		return 0;
	if (server->tasks.is_stopping) {
		v1_no_leases(request);
		return 0;
	}
	request->is_called = 1;
	request->task.run = return_leases;
	task_start(server, &request->task);
	return 1;
}

/* A reserve. Return 1 if it goes on waiting. */
static int goes_on(struct v1_request *request)
{
	struct server *server = request->task.server;
	int was_waiting = request->watched[0] != NULL;

	if (give_back(request))
		return 1;
	/* While Redis is away, waiting goes on: all who wait would ask again at once. */
	if (server->is_shared && request->is_run && (request->got == WW_EIO || request->got == WW_EAGAIN) &&
	    request->fields->span > 0) {
		store_failed(server, request->got);
		v1_no_leases(request);
	}
	if (was_waiting && request->got == 0 && request->timer) {
		request->state = V1_WAITING;
		/* One of its tubes got a job while the store was asked. */
		if (request->is_called)
			ask(request);
		return 1;
	}
	if (!was_waiting && waiting_join(request)) {
		if (request->is_called)
			ask(request);
		return 1;
	}
	if (was_waiting)
		waiting_leave(request);
	for (int i = 0; request->status && i < request->got; i++)
		v1_held_add(server, &request->leases[i]);
	return 0;
}

/*
 * A list looks at a bounded part of the store, so that others do not wait for it. One that found nothing there looks at
 * another part in a later turn, in the order of all that do. Returns 1 if it goes on.
 */
static int looks_on(struct v1_request *request)
{
	struct server *server = request->task.server;

	if (!request->is_partial || request->status != 200 || server->is_stopping ||
	    uv_now(&server->loop) - request->begun >= V1_LOOK_MS)
		return 0;
	TAILQ_INSERT_TAIL(&server->v1->looking, request, next);
	loop_again(server);
	return 1;
}

static void task_done(struct task *task)
{
	struct v1_request *request = (struct v1_request *)task;
	struct server *server = task->server;

	/* It was dropped, since the server ends or its client has gone. */
	if (!request->is_run) {
		request->got = WW_ECLOSED;
		(void)v1_failed(request, WW_ECLOSED);
	}
	if (request->puts && request->status < 300)
		count_puts(request);
	if (request->operation->members & V1_OF_RESERVE && goes_on(request))
		return;
	if (looks_on(request))
		return;
	if (request->operation->is_change && server->turn.is_begun) {
		request->state = V1_IN_BATCH;
		TAILQ_INSERT_TAIL(&server->v1->batch, request, next);
		return;
	}
	known(request);
}

static void ask(struct v1_request *request)
{
	struct server *server = request->task.server;
	int error = WW_OK;

	if (request->state == V1_WAITING && is_gone(request)) {
		waiting_leave(request);
		known(request);
		return;
	}
	if (request->operation->is_change && !server->is_shared)
		error = turn_begin(server);
	else
		turn_commit(server);
	if (error < 0) {
		(void)v1_failed(request, error);
		known(request);
		return;
	}
	buffer_drop(&request->out, request->out.size);
	request->status = 200;
	request->type = NULL;
	request->state = V1_ASKING;
	request->is_run = 0;
	request->is_called = 0;
	request->is_partial = 0;
	request->got = 0;
	request->task.run = task_run;
	request->task.done = task_done;
	/*
	 * The answer of a change is short, and its write waits for the end of the turn. A reserve does not wait for
	 * room: it takes an attempt of each job that it gets, so its client has to be there, and workers are who
	 * makes room.
	 */
	if (request->operation->is_change || request->operation->members & V1_OF_RESERVE)
		task_start(server, &request->task);
	else
		task_start_large(server, &request->task, 0);
}

void v1_settle(struct server *server, int error)
{
	struct v1_request *request;

	while ((request = TAILQ_FIRST(&server->v1->batch)) != NULL) {
		TAILQ_REMOVE(&server->v1->batch, request, next);
		if (error != WW_OK)
			(void)v1_failed(request, error);
		known(request);
	}
}

/* ---- Carrying it out */

/* An operation without members reads no object: refuse any but an empty one. */
static int refuse_body(struct v1_request *request)
{
	if (request->in.size == 0 || request->operation->members & V1_OF_OBJECT)
		return 0;
	if (strcmp(request->operation->method, MHD_HTTP_METHOD_GET) == 0)
		return v1_problem(request, 400, NULL, "leave it out", "a GET has no body");
	return v1_read(request, 0);
}

/* Reading its object and carrying it out may take milliseconds: these are many jobs, or one that is large. */
static int is_long(const struct v1_request *request)
{
	return !request->is_refused && (request->in.size > LONG || v1_is_list(&request->in) ||
	                                   request->operation->members & (V1_OF_RESERVE | V1_OF_KICK));
}

static void carry_out(struct v1_request *request)
{
	struct server *server = request->task.server;
	uint64_t since = uv_hrtime();

	request->begun = uv_now(&server->loop);
	if (request->is_refused || refuse_body(request) != 0 ||
	    (request->operation->prepare && request->operation->prepare(request) != 0))
		known(request);
	/* What it says stays in `decoded`. */
	if (request->state == V1_NEW) {
		buffer_free(&request->in);
		web_owe(server->web, request->visit.client, &request->decoded);
		ask(request);
	}
	spend(server, since);
}

/* A client that has to leave waits no longer: libmicrohttpd closes no connection whose request is suspended. */
static void let_go(struct server *server)
{
	struct v1_request *request;
	struct v1_request *next;

	for (request = TAILQ_FIRST(&server->v1->waiting); request; request = next) {
		next = TAILQ_NEXT(request, next);
		if (request->state != V1_WAITING || !web_is_leaving(server->web, request->visit.client))
			continue;
		waiting_leave(request);
		known(request);
	}
	for (request = TAILQ_FIRST(&server->v1->arrived); request; request = next) {
		next = TAILQ_NEXT(request, next);
		if (!web_is_leaving(server->web, request->visit.client))
			continue;
		TAILQ_REMOVE(&server->v1->arrived, request, next);
		known(request);
	}
}

static void carry_out_some(struct server *server)
{
	struct v1_request *request;

	while ((request = TAILQ_FIRST(&server->v1->arrived)) != NULL && has_time(server)) {
		TAILQ_REMOVE(&server->v1->arrived, request, next);
		carry_out(request);
	}
	if (request)
		loop_again(server);
}

void v1_turn(struct server *server)
{
	struct v1_request *request;

	if (!server->web)
		return;
	request = TAILQ_FIRST(&server->v1->looking);
	if (visitors_going(web_visitors(server->web)) > 0)
		let_go(server);
	if (server->v1->is_calling)
		call_some(server);
	carry_out_some(server);
	if (!request)
		return;
	TAILQ_REMOVE(&server->v1->looking, request, next);
	if (is_gone(request))
		known(request);
	else
		ask(request);
	if (!TAILQ_EMPTY(&server->v1->looking))
		loop_again(server);
}

void v1_start(struct server *server)
{
	TAILQ_INIT(&server->v1->batch);
	TAILQ_INIT(&server->v1->waiting);
	TAILQ_INIT(&server->v1->looking);
	TAILQ_INIT(&server->v1->arrived);
}

void v1_stop(struct server *server)
{
	struct v1_request *request;

	while ((request = TAILQ_FIRST(&server->v1->looking)) != NULL) {
		TAILQ_REMOVE(&server->v1->looking, request, next);
		known(request);
	}
	while ((request = TAILQ_FIRST(&server->v1->arrived)) != NULL) {
		TAILQ_REMOVE(&server->v1->arrived, request, next);
		(void)v1_failed(request, WW_ECLOSED);
		known(request);
	}
	while ((request = TAILQ_FIRST(&server->v1->waiting)) != NULL) {
		waiting_leave(request);
		known(request);
	}
}

/* ---- What comes */

static int more(struct v1_request *request, const char *data, size_t size)
{
	struct server *server = request->task.server;
	size_t most = (size_t)server->settings->max_job_size;

	/* Base64 takes four bytes for three, and members take some. */
	most = most / 3 * 4 + V1_OBJECT_MAX;
	if (request->in.size + size > most)
		return v1_problem(
		    request, 413, NULL, "send several requests", "the object is longer than %zu bytes", most);
	if (buffer_append(&request->in, data, size) != 0)
		return v1_failed(request, WW_ENOMEM);
	/* At the bound of buffers, the client with the largest body leaves. */
	web_owe(server->web, request->visit.client, &request->in);
	bounds_hold_input(server);
	return 0;
}

static enum MHD_Result take_argument(void *context, enum MHD_ValueKind kind, const char *name, const char *value)
{
	(void)kind;
	return v1_argument(context, name, value) == 0 ? MHD_YES : MHD_NO;
}

/* All of it has come. */
static enum MHD_Result complete(struct v1_request *request)
{
	struct v1 *v1 = request->task.server->v1;

	if (!is_long(request) || (has_time(request->task.server) && TAILQ_EMPTY(&v1->arrived))) {
		carry_out(request);
	} else {
		TAILQ_INSERT_TAIL(&v1->arrived, request, next);
		loop_again(request->task.server);
	}
	return reply_or_wait(request);
}

static enum MHD_Result go_on(struct web_visit *visit, const char *data, size_t *size)
{
	struct v1_request *request = request_of(visit);

	if (*size > 0) {
		if (!request->is_refused && more(request, data, *size) != 0)
			request->is_refused = 1;
		*size = 0;
		/* One that has to leave is closed at once: the system may still have much of what it has sent. */
		return web_is_leaving(request->task.server->web, visit->client) ? MHD_NO : MHD_YES;
	}
	return request->state == V1_NEW ? complete(request) : reply_or_wait(request);
}

static void request_free(struct v1_request *request)
{
	v1_stream_end(request);
	access_leave(&request->task.server->access, &request->who);
	forget(request);
	buffer_free(&request->out);
	free(request);
}

static void end(struct web_visit *visit)
{
	request_free(request_of(visit));
}

enum MHD_Result v1_begin(struct server *server, struct MHD_Connection *client, const char *path, const char *method,
    struct web_visit **visit)
{
	struct v1_request *request = calloc(1, sizeof *request);

	if (!request)
		return MHD_NO;
	request->task.server = server;
	request->visit = (struct web_visit){client, go_on, end};
	request->status = 200;
	*visit = &request->visit;
	if (v1_admit(request, method, path) == 0)
		(void)MHD_get_connection_values(client, MHD_GET_ARGUMENT_KIND, take_argument, request);
	request->is_refused = request->status >= 300;
	return MHD_YES;
}
