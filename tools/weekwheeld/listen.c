/* Listens for clients on TCP, on a Unix socket, and on the sockets that systemd hands over. */
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "tools/service/address.h"
#include "tools/weekwheeld/run.h"

enum { BACKLOG = 1024, SYSTEMD_FIRST = 3, ACCEPT_AGAIN_MS = 100, WATCHED_MOST = 65536 };

struct listener {
	union stream io;
	SLIST_ENTRY(listener) next;
	int is_tls;
};

static void listen_take(struct server *server, struct listener *listener, int status);

/* Without memory a client waits in its listener, which libuv does not look at any more: we have to. */
static void listen_again(uv_timer_t *timer)
{
	struct server *server = timer->data;
	struct listener *listener;

	for (listener = SLIST_FIRST(&server->run->listeners); listener; listener = SLIST_NEXT(listener, next))
		listen_take(server, listener, 0);
}

/* A client has come, may have come, or could not be accepted. */
static void listen_take(struct server *server, struct listener *listener, int status)
{
	if (status == 0)
		status = connection_accept(server, &listener->io.stream, listener->is_tls);
	if (status == UV_ENOMEM)
		uv_timer_start(&server->run->accept_again, listen_again, ACCEPT_AGAIN_MS, 0);
	if (status < 0 && status != UV_EAGAIN)
		state_seen("accept", "a client could not be accepted: %s", uv_strerror(status));
}

static void listen_came(uv_stream_t *stream, int status)
{
	listen_take(stream->loop->data, (struct listener *)stream, status);
}

static struct listener *listener_make(struct server *server, int is_unix)
{
	struct listener *listener = calloc(1, sizeof *listener);
	int bad = !listener;

	if (!bad && is_unix)
		bad = uv_pipe_init(&server->loop, &listener->io.pipe, 0);
	else if (!bad)
		bad = uv_tcp_init(&server->loop, &listener->io.tcp);
	if (bad) {
		message_error("no memory to listen");
		free(listener);
		return NULL;
	}
	SLIST_INSERT_HEAD(&server->run->listeners, listener, next);
	return listener;
}

/* Say what went wrong and what to do; returns -1. */
static int listen_failed(const char *where, int error)
{
	if (error == UV_EADDRINUSE)
		message_error(
		    "%s is in use: end the server there, or give another --listen (port 0 takes a free one)", where);
	else if (error == UV_EACCES)
		message_error("no permission to listen on %s: ports below 1024 are for root; give another port", where);
	else if (error == UV_EADDRNOTAVAIL)
		message_error(
		    "%s is not an address of this machine: give one of its addresses, or 0.0.0.0 for all", where);
	else
		message_error("cannot listen on %s: %s", where, uv_strerror(error));
	return -1;
}

static void listen_said(const struct server *server, const struct listener *listener)
{
	struct sockaddr_storage address;
	int size = sizeof address;

	if (uv_tcp_getsockname(&listener->io.tcp, (struct sockaddr *)&address, &size) == 0)
		address_announce((struct sockaddr *)&address, listener->is_tls ? "listening on tls:" : "listening on ",
		    "", server->settings->is_insecure ? "--insecure lets them in" : NULL);
}

static int listen_tcp(struct server *server, const char *where)
{
	struct sockaddr_storage address;
	struct listener *listener;
	int is_tls = address_is_tls(where);
	int error;

	if (address_read("--listen", is_tls ? where + ADDRESS_TLS_PREFIX : where, &address) != 0)
		return -1;
	listener = listener_make(server, 0);
	if (!listener)
		return -1;
	listener->is_tls = is_tls;
	error = uv_tcp_bind(&listener->io.tcp, (struct sockaddr *)&address, 0);
	if (error == 0)
		error = uv_listen(&listener->io.stream, BACKLOG, listen_came);
	if (error)
		return listen_failed(where, error);
	listen_said(server, listener);
	return 0;
}

/* Remove a socket that a killed server has left. Nobody listens on it. */
static int unix_remove_stale(const char *path)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	struct stat status;
	int fd;
	int used;

	if (lstat(path, &status) != 0)
		return 0;
	if (!S_ISSOCK(status.st_mode))
		return message_error("%s exists and is not a socket: remove it, or give another --unix", path);
	memcpy(address.sun_path, path, strlen(path));
	fd = socket(AF_UNIX, SOCK_STREAM, 0);
	used = fd >= 0 && connect(fd, (struct sockaddr *)&address, sizeof address) == 0;
	if (fd >= 0)
		close(fd);
	if (used)
		return message_error("%s is in use: end the server there, or give another --unix", path);
	(void)unlink(path);
	return 0;
}

/* Give the socket its group and its mode. Until the server listens, nobody can connect. */
static int unix_open_to(const struct settings *settings)
{
	const struct group *group = settings->socket_group ? getgrnam(settings->socket_group) : NULL;

	if (settings->socket_group && !group)
		return message_error(
		    "--socket-group '%s': there is no such group; groupadd(8) makes one", settings->socket_group);
	if (group && chown(settings->unix_path, (uid_t)-1, group->gr_gid) != 0)
		return message_error("%s cannot get the group %s: %s; the server's user has to be in it",
		    settings->unix_path, group->gr_name, strerror(errno));
	if (chmod(settings->unix_path, settings->socket_mode) != 0)
		return message_error(
		    "%s cannot get the mode %04o: %s", settings->unix_path, settings->socket_mode, strerror(errno));
	return 0;
}

static int listen_unix(struct server *server, const char *path)
{
	struct listener *listener;
	mode_t mask;
	int error;

	if (unix_remove_stale(path) != 0)
		return -1;
	listener = listener_make(server, 1);
	if (!listener)
		return -1;
	/* With the mode changed only afterwards, others could connect in between. */
	mask = umask(0177);
	error = uv_pipe_bind(&listener->io.pipe, path);
	umask(mask);
	if (error == 0 && unix_open_to(server->settings) != 0)
		return -1;
	if (error == 0)
		error = uv_listen(&listener->io.stream, BACKLOG, listen_came);
	if (error)
		return message_error(
		    "cannot make the socket %s: %s; its folder must exist and be writable, and the name must be free",
		    path, uv_strerror(error));
	message_info("listening on %s", path);
	return 0;
}

/* How many sockets systemd has handed to this process. */
static int systemd_count(void)
{
	const char *pid = getenv("LISTEN_PID");
	const char *count = getenv("LISTEN_FDS");

	if (!pid || !count || strtol(pid, NULL, 10) != (long)getpid())
		return 0;
	return (int)strtol(count, NULL, 10);
}

static int listen_systemd(struct server *server, int fd)
{
	struct sockaddr_storage address = {0};
	socklen_t size = sizeof address;
	struct listener *listener;
	int is_unix;
	int error;

	if (getsockname(fd, (struct sockaddr *)&address, &size) != 0)
		return message_error("systemd's descriptor %d is not a socket", fd);
	is_unix = address.ss_family == AF_UNIX;
	if (!is_unix && settings_let_in(server->settings, (struct sockaddr *)&address, 0) != 0)
		return -1;
	listener = listener_make(server, is_unix);
	if (!listener)
		return -1;
	error = is_unix ? uv_pipe_open(&listener->io.pipe, fd) : uv_tcp_open(&listener->io.tcp, fd);
	if (error == 0)
		error = uv_listen(&listener->io.stream, BACKLOG, listen_came);
	if (error)
		return listen_failed("a socket of systemd", error);
	if (is_unix)
		message_info("listening on a socket of systemd");
	else
		listen_said(server, listener);
	return 0;
}

/*
 * When libuv has no memory to watch a descriptor, it ends the process. Let it watch a great one now, so that it has room
 * for those to come.
 */
static void listen_room(struct server *server)
{
	unsigned most = server->clients->most < WATCHED_MOST ? server->clients->most : WATCHED_MOST;
	int fd = fcntl(ww_driver_fd(server->elapsed), F_DUPFD_CLOEXEC, (int)most);

	if (fd < 0)
		return;
	if (uv_poll_init(&server->loop, &server->run->room_poll, fd) == 0) {
		uv_poll_start(&server->run->room_poll, UV_READABLE, NULL);
		uv_poll_stop(&server->run->room_poll);
	}
	close(fd);
}

int listeners_start(struct server *server)
{
	const struct settings *settings = server->settings;
	int sockets = systemd_count();

	if (uv_timer_init(&server->loop, &server->run->accept_again) != 0)
		return loop_not_made();
	server->run->accept_again.data = server;
	listen_room(server);

	for (int fd = SYSTEMD_FIRST; fd < SYSTEMD_FIRST + sockets; fd++)
		if (listen_systemd(server, fd) != 0)
			return -1;
	for (size_t i = 0; i < settings->listen_count; i++)
		if (listen_tcp(server, settings->listen[i]) != 0)
			return -1;
	if (settings->unix_path && listen_unix(server, settings->unix_path) != 0)
		return -1;
	if (SLIST_EMPTY(&server->run->listeners))
		return listen_tcp(server, "127.0.0.1:11300");
	return 0;
}

static void listener_closed(uv_handle_t *handle)
{
	free(handle);
}

void listeners_stop(struct server *server)
{
	struct listener *listener;

	while ((listener = SLIST_FIRST(&server->run->listeners)) != NULL) {
		SLIST_REMOVE_HEAD(&server->run->listeners, next);
		uv_close(&listener->io.handle, listener_closed);
	}
}
