/* The program weekwheeld: make the drivers, the store and the loop, and take them down again. */
#include <errno.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "tools/common/message.h"
#include "tools/weekwheeld/server.h"

/* Descriptors that are not clients': the store's, the loop's, the listeners'. */
enum { DESCRIPTORS_KEPT = 64, PATIENCE_MS = 2000 };

void server_say(const char *format, ...)
{
	char text[1024];
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(text, sizeof text, format, arguments);
	va_end(arguments);
	/* Threads of the store and of the pusher speak, too. */
	flockfile(stderr);
	message_line("weekwheeld: %s", text);
	funlockfile(stderr);
}

void server_note(const struct server *server, const char *format, ...)
{
	char text[1024];
	va_list arguments;

	if (!server->settings->is_verbose)
		return;
	va_start(arguments, format);
	vsnprintf(text, sizeof text, format, arguments);
	va_end(arguments);
	message_line("weekwheeld: %s", text);
}

/* ---- Time */

static struct ww_driver *driver_make(struct ww_clock *clock)
{
	struct ww_driver_config config;
	struct ww_driver *driver = NULL;
	int error;

	(void)ww_driver_config_default(&config);
	config.clock = clock;
	config.flags = WW_DRIVER_THREADLESS;
	error = ww_driver_create(&driver, &config);
	if (error != WW_OK)
		server_say("no driver: %s", ww_strerror(error));
	return driver;
}

static int clock_make(struct ww_clock **clock, uint64_t start)
{
	int error = ww_clock_virtual_create(clock, start, NULL);

	if (error != WW_OK)
		server_say("no virtual clock: %s", ww_strerror(error));
	return error;
}

/*
 * Virtual clocks begin at a whole second, so that what is due is due on a driver's tick: wall time now, and elapsed
 * time anywhere, since that of the store goes on from where it was.
 */
static int clocks_make(struct server *server)
{
	uint64_t now = 0;

	(void)ww_clock_now(ww_clock_wall(), &now);
	if (clock_make(&server->elapsed_clock, 0) != WW_OK)
		return -1;
	return clock_make(&server->wall_clock, now - now % WW_SECOND) == WW_OK ? 0 : -1;
}

static int time_start(struct server *server)
{
	const struct settings *settings = server->settings;

	if (settings->is_virtual && clocks_make(server) != 0)
		return -1;
	server->elapsed = driver_make(settings->is_virtual ? server->elapsed_clock : ww_clock_elapsed());
	server->wall = driver_make(settings->is_virtual ? server->wall_clock : ww_clock_wall());
	if (!server->elapsed || !server->wall)
		return -1;
	return 0;
}

static void time_stop(struct server *server)
{
	(void)ww_driver_destroy(server->elapsed);
	(void)ww_driver_destroy(server->wall);
	(void)ww_clock_virtual_destroy(server->elapsed_clock);
	(void)ww_clock_virtual_destroy(server->wall_clock);
}

/* ---- The loop */

static void close_any(uv_handle_t *handle, void *context)
{
	(void)context;
	if (!uv_is_closing(handle))
		uv_close(handle, NULL);
}

/* All has been said, or the clients had time enough to hear it. */
static void loop_end(struct server *server)
{
	if (uv_is_closing((uv_handle_t *)&server->prepare))
		return;
	while (server->connections)
		connection_close(server->connections);
	turn_commit(server);
	http_stop(server);
	store_hush(server);
	uv_walk(&server->loop, close_any, NULL);
}

static void loop_prepare(uv_prepare_t *prepare)
{
	struct server *server = prepare->data;

	turn_end(server);
	if (server->is_stopping && !server->connections)
		loop_end(server);
}

static void loop_check(uv_check_t *check)
{
	turn_end(check->data);
}

static void loop_due(uv_poll_t *poll, int status, int events)
{
	struct server *server = poll->data;

	(void)status;
	(void)events;
	server->is_due = 1;
}

static void loop_patience(uv_timer_t *timer)
{
	loop_end(timer->data);
}

/* What a connection was answered is still sent; one that is in the middle of a command has not been. */
static void loop_stop(struct server *server)
{
	struct connection *connection;
	struct connection *next;

	if (server->is_stopping)
		return;
	turn_commit(server);
	server->is_stopping = 1;
	listen_stop(server);
	for (connection = server->connections; connection; connection = next) {
		next = connection->after;
		connection->is_over = 1;
		connection_flush(connection);
	}
	uv_timer_start(&server->patience, loop_patience, PATIENCE_MS, 0);
	turn_again(server);
}

static void loop_signal(uv_signal_t *handle, int number)
{
	struct server *server = handle->data;

	if (number == SIGUSR1) {
		server->is_draining = 1;
		server_say("draining: no job is accepted any more");
	} else {
		loop_stop(server);
	}
}

static void loop_signals(struct server *server)
{
	static const int numbers[] = {SIGTERM, SIGINT, SIGUSR1};
	unsigned i;

	for (i = 0; i < sizeof numbers / sizeof *numbers; i++) {
		uv_signal_init(&server->loop, &server->signals[i]);
		server->signals[i].data = server;
		uv_signal_start(&server->signals[i], loop_signal, numbers[i]);
	}
}

static int loop_start(struct server *server)
{
	uv_loop_t *loop = &server->loop;

	if (uv_poll_init(loop, &server->elapsed_poll, ww_driver_fd(server->elapsed)) != 0 ||
	    uv_poll_init(loop, &server->wall_poll, ww_driver_fd(server->wall)) != 0) {
		server_say("no event loop: the limit of open files (\"ulimit -n\") may be reached");
		return -1;
	}
	loop->data = server;
	uv_prepare_init(loop, &server->prepare);
	uv_check_init(loop, &server->check);
	uv_idle_init(loop, &server->idle);
	uv_timer_init(loop, &server->patience);
	server->prepare.data = server->check.data = server->idle.data = server->patience.data = server;
	server->elapsed_poll.data = server->wall_poll.data = server;
	uv_prepare_start(&server->prepare, loop_prepare);
	uv_check_start(&server->check, loop_check);
	uv_poll_start(&server->elapsed_poll, UV_READABLE, loop_due);
	uv_poll_start(&server->wall_poll, UV_READABLE, loop_due);
	loop_signals(server);
	return 0;
}

/* As many clients as there can be descriptors, after the limit was raised as far as it goes. */
static unsigned connections_limit(const struct settings *settings)
{
	struct rlimit limit = {1024, 1024};

	if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur < limit.rlim_max) {
		limit.rlim_cur = limit.rlim_max;
		(void)setrlimit(RLIMIT_NOFILE, &limit);
		(void)getrlimit(RLIMIT_NOFILE, &limit);
	}
	if (settings->max_connections)
		return (unsigned)settings->max_connections;
	return limit.rlim_cur > 2 * DESCRIPTORS_KEPT && limit.rlim_cur < 10000000
	           ? (unsigned)limit.rlim_cur - DESCRIPTORS_KEPT
	           : 10000000;
}

/* With a virtual clock: what time has passed while the store was closed. */
static int time_passed(struct server *server)
{
	uint64_t ahead = server->settings->ahead;

	if (ahead == 0 || !server->elapsed_clock)
		return 0;
	if (ww_clock_virtual_advance(server->elapsed_clock, ahead) != WW_OK ||
	    ww_clock_virtual_advance(server->wall_clock, ahead) != WW_OK ||
	    ww_driver_settle(server->elapsed) != WW_OK || ww_driver_settle(server->wall) != WW_OK) {
		server_say("the virtual clock cannot be set ahead so far");
		return -1;
	}
	return 0;
}

static int server_start(struct server *server)
{
	unsigned char bytes[8];
	size_t i;

	server->ready_end = &server->ready;
	server->resume_end = &server->resume;
	server->fresh_end = &server->fresh;
	server->connections_max = connections_limit(server->settings);
	if (uv_random(NULL, NULL, bytes, sizeof bytes, 0, NULL) != 0)
		memset(bytes, 0, sizeof bytes);
	for (i = 0; i < sizeof bytes; i++)
		snprintf(server->id + 2 * i, 3, "%02x", bytes[i]);
	server->default_tube = tube_make(server, WW_TUBE_DEFAULT);
	if (!server->default_tube) {
		server_say("no memory");
		return -1;
	}
	if (uv_loop_init(&server->loop) != 0) {
		server_say("no event loop: the limit of open files (\"ulimit -n\") may be reached");
		return -1;
	}
	if (time_start(server) != 0 || store_start(server) != 0 || time_passed(server) != 0)
		return -1;
	if (loop_start(server) != 0 || push_start(server) != 0 || http_start(server) != 0 || listen_start(server) != 0)
		return -1;
	return 0;
}

int main(int count, char **arguments)
{
	static struct server server;
	static struct settings settings;
	int status;
	int error;

	/* A client that has gone is an error of the write. */
	signal(SIGPIPE, SIG_IGN);
	status = settings_read(&settings, arguments + (count > 0));
	if (status != 0)
		return status - 1;
	server.settings = &settings;
	if (server_start(&server) != 0) {
		/* A socket's file goes with its listener. */
		listen_stop(&server);
		push_stop(&server);
		(void)store_stop(&server);
		return 1;
	}
	uv_run(&server.loop, UV_RUN_DEFAULT);
	push_stop(&server);
	error = store_stop(&server);
	if (error != WW_OK)
		server_say("the last of it could not be written: %s", ww_strerror(error));
	time_stop(&server);
	(void)uv_loop_close(&server.loop);
	return error == WW_OK ? 0 : 1;
}
