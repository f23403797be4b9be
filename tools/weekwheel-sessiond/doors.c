/* Listens for clients on TCP and on a Unix socket, and hands them to the loops in turn. */
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "tools/common/message.h"
#include "tools/service/address.h"
#include "tools/weekwheel-sessiond/serve.h"
#include "tools/weekwheel-sessiond/server/mail.h"

enum { BACKLOG = 1024, ACCEPT_AGAIN_MS = 100 };

static const char too_many[] = "-ERR max number of clients reached\r\n";

static void came(uv_poll_t *poll, int status, int events);

/* Without descriptors a client waits in its listener: look again later instead of all the time. */
static void again(uv_timer_t *timer)
{
	struct sessiond *server = timer->data;

	for (unsigned i = 0; i < server->listener_count; i++)
		uv_poll_start(&server->listener_poll[i], UV_READABLE, came);
}

static void rest(struct sessiond *server)
{
	message_warning("a client could not be accepted: %s", strerror(errno));
	for (unsigned i = 0; i < server->listener_count; i++)
		uv_poll_stop(&server->listener_poll[i]);
	uv_timer_start(&server->accept_again, again, ACCEPT_AGAIN_MS, 0);
}

/* Returns 0, or -1 if there are too many clients, or too many of its address. */
static int let_in(struct sessiond *server, const struct sockaddr *peer, struct crowd_address **place)
{
	if (server->clients >= server->settings->clients_max || crowd_enter(&server->crowd, peer, place) != 0)
		return -1;
	server->clients++;
	server->clients_total++;
	message_debug("a client has connected, %u in all", (unsigned)server->clients);
	return 0;
}

void doors_let_out(struct sessiond *server, struct crowd_address *place)
{
	crowd_leave(&server->crowd, place);
	server->clients--;
	message_debug("a client has left, %u remain", (unsigned)server->clients);
}

static void hand_on(struct sessiond *server, int fd, const struct sockaddr *peer, int is_tls)
{
	struct arrival arrival = {.fd = fd, .is_tls = is_tls};
	int on = 1;

	(void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
	(void)setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
	if (let_in(server, peer, &arrival.place) == 0) {
		if (mail_arrival(&server->loop[server->next_loop++ % server->loop_count], &arrival) == 0)
			return;
		doors_let_out(server, arrival.place);
		(void)close(fd);
		return;
	}
	server->refused++;
	if (!is_tls)
		(void)!write(fd, too_many, sizeof too_many - 1);
	(void)close(fd);
}

static void came(uv_poll_t *poll, int status, int events)
{
	struct sessiond *server = poll->data;
	size_t number = (size_t)(poll - server->listener_poll);
	int listener = server->listener[number];

	(void)events;
	for (int i = 0; status == 0 && i < BACKLOG; i++) {
		struct sockaddr_storage peer = {0};
		socklen_t size = sizeof peer;
		int fd = accept4(listener, (struct sockaddr *)&peer, &size, SOCK_NONBLOCK | SOCK_CLOEXEC);
		if (fd >= 0)
			hand_on(server, fd, (struct sockaddr *)&peer, server->listener_is_tls[number]);
		else if (errno == EAGAIN || errno == EINTR || errno == ECONNABORTED)
			return;
		else {
			rest(server);
			return;
		}
	}
}

/* Say what went wrong and what to do; returns -1. */
static int failed(const char *where, int fd)
{
	int error = errno;

	if (fd >= 0)
		(void)close(fd);
	if (error == EADDRINUSE)
		return message_error("%s is in use: end the server there, or give another --listen", where);
	if (error == EADDRNOTAVAIL)
		return message_error(
		    "%s is not an address of this machine: give one of its addresses, or 0.0.0.0 for all", where);
	if (error == EACCES)
		return message_error("no permission to listen on %s: give another address", where);
	return message_error("cannot listen on %s: %s", where, strerror(error));
}

static int watch(struct sessiond *server, int fd, int is_tls)
{
	unsigned number = server->listener_count;

	if (uv_poll_init(&server->loop[0].uv, &server->listener_poll[number], fd) != 0) {
		(void)close(fd);
		return message_error("no memory to listen");
	}
	server->listener[number] = fd;
	server->listener_is_tls[number] = is_tls;
	server->listener_poll[number].data = server;
	server->listener_count++;
	uv_poll_start(&server->listener_poll[number], UV_READABLE, came);
	return 0;
}

static socklen_t size_of(const struct sockaddr_storage *address)
{
	return address->ss_family == AF_INET ? sizeof(struct sockaddr_in) : sizeof(struct sockaddr_in6);
}

static int listen_tcp(struct sessiond *server, const char *where)
{
	int is_tls = address_is_tls(where);
	struct sockaddr_storage address;
	socklen_t size = sizeof address;
	int on = 1;
	int fd;

	if (address_read("--listen", where + (is_tls ? ADDRESS_TLS_PREFIX : 0), &address) != 0 ||
	    (!server->settings->is_insecure &&
	        address_let_in((struct sockaddr *)&address, is_tls, access_is_needed(&server->access),
	            server->settings->tls.trusted != NULL, "tokens and sessions") != 0))
		return -1;
	fd = socket(address.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return failed(where, fd);
	(void)setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
	if (bind(fd, (struct sockaddr *)&address, size_of(&address)) != 0 || listen(fd, BACKLOG) != 0)
		return failed(where, fd);
	(void)getsockname(fd, (struct sockaddr *)&address, &size);
	if (!server->port)
		server->port = ntohs(((struct sockaddr_in *)(void *)&address)->sin_port);
	address_announce((struct sockaddr *)&address, is_tls ? "listening on tls:" : "listening on ", "",
	    server->settings->is_insecure ? "--insecure lets them in" : NULL);
	return watch(server, fd, is_tls);
}

/* Remove a socket that a killed server has left. Nobody listens on it. */
static void remove_stale(const struct sockaddr_un *address)
{
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	struct stat about;

	if (fd < 0)
		return;
	if (connect(fd, (const struct sockaddr *)address, sizeof *address) != 0 && errno == ECONNREFUSED &&
	    stat(address->sun_path, &about) == 0 && S_ISSOCK(about.st_mode))
		(void)unlink(address->sun_path);
	(void)close(fd);
}

static int listen_unix(struct sessiond *server, const char *path)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	mode_t mask;
	int bad;

	strncpy(address.sun_path, path, sizeof address.sun_path - 1);
	remove_stale(&address);
	mask = umask(0177);
	bad = fd < 0 || bind(fd, (struct sockaddr *)&address, sizeof address) != 0;
	(void)umask(mask);
	if (bad || listen(fd, BACKLOG) != 0)
		return failed(path, fd);
	message_info("listening on %s", path);
	return watch(server, fd, 0);
}

int doors_start(struct sessiond *server)
{
	const struct sessiond_settings *settings = server->settings;

	server->listener = calloc(SETTINGS_LISTEN_MAX + 1, sizeof *server->listener);
	server->listener_poll = calloc(SETTINGS_LISTEN_MAX + 1, sizeof *server->listener_poll);
	server->listener_is_tls = calloc(SETTINGS_LISTEN_MAX + 1, sizeof *server->listener_is_tls);
	if (!server->listener || !server->listener_poll || !server->listener_is_tls)
		return message_error("no memory to listen");
	uv_timer_init(&server->loop[0].uv, &server->accept_again);
	server->accept_again.data = server;
	for (size_t i = 0; i < settings->listen_count; i++)
		if (listen_tcp(server, settings->listen[i]) != 0)
			return -1;
	return settings->unix_path ? listen_unix(server, settings->unix_path) : 0;
}

/* The loop closes the polls. */
void doors_stop(struct sessiond *server)
{
	for (unsigned i = 0; i < server->listener_count; i++) {
		uv_poll_stop(&server->listener_poll[i]);
		(void)close(server->listener[i]);
	}
	server->listener_count = 0;
	if (server->settings->unix_path)
		(void)unlink(server->settings->unix_path);
}
