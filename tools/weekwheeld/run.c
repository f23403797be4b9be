/* Makes the drivers, the store and the loop, runs the loop, and takes them down again. */
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

#include "tools/service/state/handles.h"
#include "tools/service/state/notify.h"
#include "tools/service/state/reporter.h"
#include "tools/weekwheeld/engine/schedules.h"
#include "tools/weekwheeld/http/http.h"
#include "tools/weekwheeld/run.h"
#include "tools/weekwheeld/v1/events.h"
#include "tools/weekwheeld/verbs/verbs.h"

enum { PATIENCE_MS = 2000, CLIENTS_MOST = 10000000 };

/* ---- The loop */

/* All answers are sent, or the clients had enough time to read them. */
static void loop_end(struct server *server)
{
	if (uv_is_closing((uv_handle_t *)&server->run->prepare))
		return;
	while (!LIST_EMPTY(&server->clients->all))
		connection_close(LIST_FIRST(&server->clients->all));
	tasks_stop(server);
	while (server->clients->resuming > 0) {
		budget_turn(server);
		clients_resume(server);
	}
	turn_commit(server);
	http_stop(server);
	ready_stop(server);
	reporter_stop();
	handles_close(&server->loop);
}

static void loop_stop(struct server *server);

static void loop_prepare(uv_prepare_t *prepare)
{
	struct server *server = prepare->data;

	if (server->is_lost)
		loop_stop(server);
	clients_resume(server);
	round_end(server);
	tasks_prepare(server);
	if (server->is_stopping && LIST_EMPTY(&server->clients->all) && server->clients->resuming == 0 &&
	    server->tasks.under_way == 0)
		loop_end(server);
}

static void loop_check(uv_check_t *check)
{
	round_end(check->data);
}

static void loop_due(uv_poll_t *poll, int status, int events)
{
	struct server *server = poll->data;

	(void)status;
	(void)events;
	server->run->is_due = 1;
}

/* Close the connections that are left. What threads have begun then, or give back, has the same time again. */
static void loop_patience(uv_timer_t *timer)
{
	struct server *server = timer->data;

	if (!server->is_shared || LIST_EMPTY(&server->clients->all)) {
		loop_end(server);
		return;
	}
	while (!LIST_EMPTY(&server->clients->all))
		connection_close(LIST_FIRST(&server->clients->all));
	uv_timer_start(timer, loop_patience, PATIENCE_MS, 0);
}

/* Answers are still sent. A command of which only a part has come is dropped. */
static void loop_stop(struct server *server)
{
	struct connection *connection;
	struct connection *next;

	if (server->is_stopping)
		return;
	turn_commit(server);
	server->is_stopping = 1;
	notify_stop();
	listen_stop(&server->run->listening);
	for (connection = LIST_FIRST(&server->clients->all); connection; connection = next) {
		next = LIST_NEXT(connection, next);
		connection->is_over = 1;
		connection_flush(connection);
	}
	uv_timer_start(&server->run->patience, loop_patience, PATIENCE_MS, 0);
	loop_again(server);
}

/* The tokens' file may be another now. */
static void reload_tokens(struct server *server)
{
	unsigned closed;

	if (access_reload(&server->access) != 1)
		return;
	events_reload(server);
	closed = clients_reload(server);
	message_info("%zu tokens have been read; %u clients whose line has changed or is gone were closed",
	    server->access.tokens->count, closed);
}

static void loop_signal(uv_signal_t *handle, int number)
{
	struct server *server = handle->data;

	if (!server->jobs && (number == SIGTERM || number == SIGINT)) {
		server->is_stopping = 1;
		notify_stop();
	} else if (number == SIGUSR1) {
		server->is_draining = 1;
		state_begin("draining", STATE_STOPS_WRITING, "draining: jobs are no longer accepted");
	} else if (number == SIGHUP) {
		certificate_reload(&server->certificate);
		reload_tokens(server);
	} else {
		loop_stop(server);
	}
}

void run_signals(struct server *server)
{
	static const int numbers[] = {SIGTERM, SIGINT, SIGUSR1, SIGHUP};

	if (server->run->signals[0].data)
		return;
	for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
		uv_signal_init(&server->loop, &server->run->signals[i]);
		server->run->signals[i].data = server;
		uv_signal_start(&server->run->signals[i], loop_signal, numbers[i]);
	}
}

static int loop_start(struct server *server)
{
	uv_loop_t *loop = &server->loop;

	if (uv_poll_init(loop, &server->run->elapsed_poll, ww_driver_fd(server->elapsed)) != 0 ||
	    uv_poll_init(loop, &server->run->wall_poll, ww_driver_fd(server->wall)) != 0 ||
	    reporter_start(&server->run->reporter, loop) != 0)
		return handles_not_made();
	loop->data = server;
	uv_prepare_init(loop, &server->run->prepare);
	uv_check_init(loop, &server->run->check);
	uv_idle_init(loop, &server->idle);
	uv_timer_init(loop, &server->run->patience);
	server->run->prepare.data = server->run->check.data = server->idle.data = server->run->patience.data = server;
	server->run->elapsed_poll.data = server->run->wall_poll.data = server;
	uv_prepare_start(&server->run->prepare, loop_prepare);
	uv_check_start(&server->run->check, loop_check);
	uv_poll_start(&server->run->elapsed_poll, UV_READABLE, loop_due);
	uv_poll_start(&server->run->wall_poll, UV_READABLE, loop_due);
	run_signals(server);
	return 0;
}

static unsigned connections_limit(const struct settings *settings)
{
	uint64_t limit = listen_raise_limit();

	if (settings->max_connections)
		return (unsigned)settings->max_connections;
	return limit < CLIENTS_MOST ? (unsigned)limit : CLIENTS_MOST;
}

static void client_came(void *context, int fd, const struct sockaddr *peer, int is_tls)
{
	struct server *server = context;

	if (server->jobs)
		connection_begin(server, fd, peer, is_tls);
	else
		standby_came(server->standby, STANDBY_JOBS, fd, peer, is_tls);
}

static int listening_start(struct server *server)
{
	const struct settings *settings = server->settings;
	const struct listen_config config = {.where = settings->listen,
	    .count = settings->listen_count,
	    .otherwise = "127.0.0.1:11300",
	    .unix_path = settings->unix_path,
	    .socket_mode = settings->socket_mode,
	    .socket_group = settings->socket_group,
	    .risk = settings->is_insecure ? "--insecure lets them in" : NULL,
	    .has_tokens = access_is_needed(&server->access),
	    .has_trusted = settings->tls.trusted != NULL,
	    .passing = "tokens and jobs",
	    .each = 1,
	    .others = site_files(&server->run->http.site),
	    .most = server->clients->most,
	    .came = client_came,
	    .context = server};

	return listen_start(&server->run->listening, &server->loop, &config);
}

/* HTTP first: the other door keeps files for it. */
static int doors_open(struct server *server)
{
	return http_start(server, &server->run->http) == 0 ? listening_start(server) : -1;
}

/* What a server needs before its store, with the loop as the last of it. */
static int server_prepare(struct server *server)
{
	uint64_t id = 0;

	bounds_start(server);
	STAILQ_INIT(&server->tubes.ready);
	clients_start(server);
	server->clients->most = connections_limit(server->settings);
	certificate_start(&server->certificate, &server->settings->tls, server->settings->certificate);
	(void)uv_random(NULL, NULL, &id, sizeof id, 0, NULL);
	snprintf(server->id, sizeof server->id, "%016" PRIx64, id);
	server->tubes.default_tube = tube_make(server, WW_TUBE_DEFAULT);
	if (!server->tubes.default_tube)
		return message_error("no memory");
	if (listen_check_files() != 0)
		return -1;
	return uv_loop_init(&server->loop) == 0 ? 0 : handles_not_made();
}

/* Returns 0; otherwise as store_start. */
static int server_start(struct server *server)
{
	/* Where it listens is known to other servers as soon as it owns a store in PostgreSQL, or else passes clients on. */
	int is_early = server->settings->postgres != NULL;
	int status = clock_start(server);

	if (status == 0 && is_early)
		status = doors_open(server);
	if (status == 0)
		status = store_start(server);
	if (status != 0)
		return status;
	if (clock_pass_ahead(server) != 0 || loop_start(server) != 0 || push_start(server) != 0 ||
	    schedules_start(server) != 0 || (!is_early && doors_open(server) != 0))
		return -1;
	standby_end(server->standby, 1);
	notify_start(&server->loop, &server->run->watchdog);
	return 0;
}

/* Take down what a start that failed has made and that stands in the loop. Its listener, closed, removes a socket's file. */
static void abandon(struct server *server)
{
	standby_end(server->standby, 0);
	listen_stop(&server->run->listening);
	tasks_stop(server);
	http_stop(server);
	ready_stop(server);
	reporter_stop();
	handles_close(&server->loop);
	(void)uv_run(&server->loop, UV_RUN_DEFAULT);
}

static int run(struct server *server)
{
	int status;
	int error;

	if (server_prepare(server) != 0)
		return 1;
	status = server_start(server);
	if (status == 0)
		tasks_loop(server);
	else
		abandon(server);
	push_stop(server);
	schedules_stop(server);
	error = store_stop(server);
	events_free(server);
	handles_end(&server->loop);
	clock_stop(server);
	/* A signal has ended a server that stood by. */
	if (status != 0 && server->is_stopping)
		return 0;
	if (status != 0)
		return status > 0 ? status : 1;
	if (server->is_lost)
		message_error("the store is lost: this server ends, to begin anew when it is started again");
	else if (error != WW_OK)
		message_error("the last changes could not be written: %s", ww_strerror(error));
	state_finish();
	return error == WW_OK ? 0 : 1;
}

static const struct face *const faces[] = {&clients_face, &http_face, NULL};

int server_run(const struct settings *settings)
{
	struct run *parts = calloc(1, sizeof *parts);
	struct server *server;
	int status;

	if (!parts)
		return message_error("no memory") != 0;
	server = &parts->server;
	server->run = parts;
	server->clients = &parts->clients;
	server->v1 = &parts->v1;
	server->standby = &parts->standby;
	parts->standby = (struct standby){.doors = {&parts->listening, &parts->http.site.listening},
	    .let_in = {connection_begin, http_let_in},
	    .context = server};
	server->settings = settings;
	server->clients->steps = verbs_table;
	server->faces = faces;
	auth_start(server);
	status = run(server);
	tube_drop_all(server);
	v1_held_free(server);
	counts_free(&server->counts);
	access_stop(&server->access);
	certificate_stop(&server->certificate);
	free(parts);
	return status;
}
