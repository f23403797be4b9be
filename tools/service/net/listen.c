/* Listens for clients: see listen.h. */
#include "tools/service/net/listen.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <inttypes.h>
#include <limits.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "tools/common/message.h"
#include "tools/service/net/address.h"
#include "tools/service/state/state.h"

/* Serve those that are connected before accepting many more. */
enum { BACKLOG = 1024, ACCEPTED_MAX = 16, REST_MS = 100, SYSTEMD_FIRST = 3, ROOM_MOST = 65536, FILES_LEAST = 16 };
/* The descriptors kept from clients: at most, as a part of all; and how many one client may take. */
enum { KEPT_MOST = 64, KEPT_PART = 4, EACH_MOST = 4 };

/* How long a client may be silent before the system probes its machine. */
enum { KEEPALIVE_SECONDS = 60 };

/* The words for clients of the server's own protocol, and for those by HTTP. */
static const struct wording {
	const char *option;
	const char *clear, *tls; /* before an address */
	const char *after;
	const char *state;
	const char *nobody;
} wordings[] = {{"--listen", "listening on ", "listening on tls:", "", "accept", "no client is let in"},
    {"--http", "serving http://", "serving https://", "/", "accept-http", "nobody is let in by HTTP"}};

struct listener {
	uv_poll_t poll;
	SLIST_ENTRY(listener) next;
	struct listening *of;
	int fd;
	int is_tls;
};

static const struct wording *words_of(const struct listening *listening)
{
	return &wordings[listening->config.is_http];
}

/* ---- Clients */

static void on_client(uv_poll_t *poll, int status, int events);

static void look_again(uv_timer_t *timer)
{
	struct listening *listening = timer->data;
	struct listener *listener;

	SLIST_FOREACH(listener, &listening->listeners, next)
	uv_poll_start(&listener->poll, UV_READABLE, on_client);
}

/* Waiting clients would wake the loop at once, again and again. */
static void rest(struct listening *listening, int reason)
{
	struct listener *listener;

	state_seen(words_of(listening)->state, "%s for now: %s; raise the limit of open files, or let in fewer clients",
	    words_of(listening)->nobody, strerror(reason));
	SLIST_FOREACH(listener, &listening->listeners, next)
	uv_poll_stop(&listener->poll);
	uv_timer_start(&listening->again, look_again, REST_MS, 0);
}

/* Send answers at once. A client whose machine died must not keep its resources for ever. */
static void set_options(int fd)
{
	static const int on = 1;
	static const int seconds = KEEPALIVE_SECONDS;

	(void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
	(void)setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
	(void)setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &seconds, sizeof seconds);
}

/* ---- Descriptors */

static uint64_t limit_of_files(void)
{
	struct rlimit limit = {1024, 1024};

	(void)getrlimit(RLIMIT_NOFILE, &limit);
	return limit.rlim_cur;
}

static int find_kept(const struct listen_config *config)
{
	uint64_t limit = limit_of_files();
	uint64_t kept = limit / KEPT_PART < KEPT_MOST ? limit / KEPT_PART : KEPT_MOST;

	kept += config->others;
	return limit > INT_MAX ? INT_MAX : limit > kept ? (int)(limit - kept) : 0;
}

/* Whether a client's descriptors are all below those that are kept. A new descriptor has the lowest free number. */
static int has_descriptors(const struct listening *listening)
{
	unsigned each = listening->config.each > 0 ? listening->config.each : 1;
	int taken[EACH_MOST];
	unsigned count = 0;
	int good = 1;

	while (good && count < each && count < EACH_MOST) {
		taken[count] = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 0);
		good = taken[count] >= 0 && taken[count] < listening->kept;
		count += taken[count] >= 0;
	}
	while (count > 0)
		(void)close(taken[--count]);
	return good;
}

/* Returns 0 if there is none. */
static int take_client(const struct listener *listener)
{
	struct sockaddr_storage peer = {.ss_family = AF_UNSPEC};
	socklen_t size = sizeof peer;
	const struct listen_config *config = &listener->of->config;
	int fd;

	if (!has_descriptors(listener->of)) {
		rest(listener->of, EMFILE);
		return 0;
	}
	fd = accept4(listener->fd, (struct sockaddr *)&peer, &size, SOCK_NONBLOCK | SOCK_CLOEXEC);
	if (fd < 0 && errno != EAGAIN && errno != EINTR && errno != ECONNABORTED)
		rest(listener->of, errno);
	if (fd < 0)
		return 0;
	if (peer.ss_family != AF_UNIX)
		set_options(fd);
	config->came(config->context, fd, (struct sockaddr *)&peer, listener->is_tls);
	return 1;
}

static void on_client(uv_poll_t *poll, int status, int events)
{
	const struct listener *listener = poll->data;

	(void)events;
	if (status < 0)
		rest(listener->of, -status);
	for (int i = 0; status == 0 && i < ACCEPTED_MAX && listener->fd >= 0 && take_client(listener); i++)
		;
}

/* ---- Listeners */

/* Report what went wrong and what to do; returns -1. */
static int failed(const struct wording *words, const char *where, int fd)
{
	int error = errno;

	if (fd >= 0)
		(void)close(fd);
	if (error == EADDRINUSE)
		return message_error("%s is in use: end the server there, or give another %s (port 0 takes a free one)",
		    where, words->option);
	if (error == EACCES)
		return message_error(
		    "no permission to listen on %s: ports below 1024 are for root; give another port", where);
	if (error == EADDRNOTAVAIL)
		return message_error(
		    "%s is not an address of this machine: give one of its addresses, or 0.0.0.0 for all", where);
	return message_error("cannot listen on %s: %s", where, strerror(error));
}

/*
 * Libuv ends the process if it has no memory to watch a descriptor. Watch a high one now, so that it has room for all
 * to come.
 */
static void make_room(struct listening *listening, int fd)
{
	unsigned most = listening->config.most < ROOM_MOST ? listening->config.most : ROOM_MOST;

	/* No client has a higher one. */
	if (listening->kept > 0 && most >= (unsigned)listening->kept)
		most = (unsigned)listening->kept - 1;

	fd = fcntl(fd, F_DUPFD_CLOEXEC, (int)most);
	if (fd < 0)
		return;
	if (uv_poll_init(listening->loop, &listening->room, fd) == 0) {
		uv_poll_start(&listening->room, UV_READABLE, on_client);
		uv_poll_stop(&listening->room);
	}
	(void)close(fd);
}

/* A client that reads the announcement may take all memory at once: so announce after this. */
static int watch(struct listening *listening, int fd, int is_tls)
{
	struct listener *listener = calloc(1, sizeof *listener);

	if (!listener || uv_poll_init(listening->loop, &listener->poll, fd) != 0) {
		(void)close(fd);
		free(listener);
		return message_error("no memory to listen");
	}
	listener->of = listening;
	listener->fd = fd;
	listener->is_tls = is_tls;
	listener->poll.data = listener;
	if (listening->config.most && SLIST_EMPTY(&listening->listeners))
		make_room(listening, fd);
	SLIST_INSERT_HEAD(&listening->listeners, listener, next);
	uv_poll_start(&listener->poll, UV_READABLE, on_client);
	return 0;
}

static int may_listen(const struct listen_config *config, const struct sockaddr *address, int is_tls)
{
	return config->risk ? 0
	                    : address_let_in(address, is_tls, config->has_tokens, config->has_trusted, config->passing);
}

/* Report where a socket of TCP listens; returns 0. */
static int announce(struct listening *listening, int fd, int is_tls)
{
	const struct wording *words = words_of(listening);
	struct sockaddr_storage address = {.ss_family = AF_UNSPEC};
	socklen_t size = sizeof address;

	(void)getsockname(fd, (struct sockaddr *)&address, &size);
	if (!listening->port)
		listening->port = ntohs(((struct sockaddr_in *)(void *)&address)->sin_port);
	address_announce(
	    (struct sockaddr *)&address, is_tls ? words->tls : words->clear, words->after, listening->config.risk);
	return 0;
}

static int listen_tcp(struct listening *listening, const char *where)
{
	int is_tls = address_is_tls(where);
	struct sockaddr_storage address;
	int on = 1, off = 0;
	int fd;

	if (address_read(words_of(listening)->option, where + (is_tls ? ADDRESS_TLS_PREFIX : 0), &address) != 0 ||
	    may_listen(&listening->config, (struct sockaddr *)&address, is_tls) != 0)
		return -1;
	fd = socket(address.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	/* [::] accepts IPv4, too, whatever the system's default is. */
	if (fd >= 0 && address.ss_family == AF_INET6)
		(void)setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off);
	if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) != 0 ||
	    bind(fd, (struct sockaddr *)&address, sizeof address) != 0 || listen(fd, BACKLOG) != 0)
		return failed(words_of(listening), where, fd);
	return watch(listening, fd, is_tls) == 0 ? announce(listening, fd, is_tls) : -1;
}

/* ---- A Unix socket */

/* Whether this is still the file of that name. */
static int has_name(int fd, const char *name)
{
	struct stat one, other;

	return fstat(fd, &one) == 0 && lstat(name, &other) == 0 && one.st_dev == other.st_dev &&
	       one.st_ino == other.st_ino;
}

/*
 * Of several servers that start here, one at a time may look who listens, remove what is stale, and listen: otherwise one
 * could remove the socket that another has just made. Returns the lock's descriptor, or -1 after a message.
 */
static int lock_start(const char *path, char *name, size_t size)
{
	int is_other = 0;
	int fd;

	(void)snprintf(name, size, "%s.starting", path);
	while ((fd = open(name, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600)) >= 0) {
		is_other = flock(fd, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK;
		if (has_name(fd, name))
			break;
		/* Whoever had it has removed it meanwhile. */
		(void)close(fd);
	}
	if (fd < 0)
		return message_error(
		    "cannot make %s: %s; its folder must exist and be writable, and the name must be free", name,
		    strerror(errno));
	if (!is_other)
		return fd;
	(void)close(fd);
	return message_error("%s is in use: another server starts there; give another --unix", path);
}

static void unlock_start(int fd, const char *name)
{
	(void)unlink(name);
	(void)close(fd);
}

/* Remove a socket that a killed server has left, on which nobody listens. */
static int remove_stale(const struct sockaddr_un *address)
{
	const char *path = address->sun_path;
	struct stat about;
	int error;
	int fd;

	if (lstat(path, &about) != 0)
		return 0;
	if (!S_ISSOCK(about.st_mode))
		return message_error("%s exists and is not a socket: remove it, or give another --unix", path);
	/* If a server's backlog is full, connecting would wait, too. */
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	error = fd >= 0 && connect(fd, (const struct sockaddr *)address, sizeof *address) == 0 ? 0 : errno;
	if (fd >= 0)
		(void)close(fd);
	if (error == 0 || error == EAGAIN)
		return message_error("%s is in use: end the server there, or give another --unix", path);
	if (error != ECONNREFUSED)
		return message_error("%s may be in use: %s; remove it if no server is there, or give another --unix",
		    path, strerror(error));
	(void)unlink(path);
	return 0;
}

/* Give the socket its group and its mode. Until the server listens, nobody can connect. */
static int open_to(const struct listen_config *config)
{
	const struct group *group = config->socket_group ? getgrnam(config->socket_group) : NULL;
	const char *path = config->unix_path;

	if (config->socket_group && !group)
		return message_error(
		    "--socket-group '%s': there is no such group; groupadd(8) makes one", config->socket_group);
	if (group && chown(path, (uid_t)-1, group->gr_gid) != 0)
		return message_error("%s cannot get the group %s: %s; the server's user has to be in it", path,
		    group->gr_name, strerror(errno));
	if (chmod(path, config->socket_mode) != 0)
		return message_error("%s cannot get the mode %04o: %s", path, config->socket_mode, strerror(errno));
	return 0;
}

/* Returns 0, -1 with errno set, or -2 after a message. */
static int bind_unix(struct listening *listening, int fd, const struct sockaddr_un *address)
{
	/* If the mode were changed only afterwards, others could connect in between. */
	mode_t mask = umask(0177);
	int bad = bind(fd, (const struct sockaddr *)address, sizeof *address);

	(void)umask(mask);
	if (bad)
		return -1;
	if (lstat(listening->config.unix_path, &listening->bound_as) == 0)
		listening->bound = listening->config.unix_path;
	return open_to(&listening->config) != 0 ? -2 : listen(fd, BACKLOG);
}

/* Returns a socket that listens, or -1 after a message. */
static int make_unix(struct listening *listening, const char *path)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	int fd, bad;

	(void)strncpy(address.sun_path, path, sizeof address.sun_path - 1);
	if (remove_stale(&address) != 0)
		return -1;
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	bad = fd < 0 ? -1 : bind_unix(listening, fd, &address);
	if (bad == -1)
		message_error(
		    "cannot make the socket %s: %s; its folder must exist and be writable, and the name must be free",
		    path, strerror(errno));
	if (bad && fd >= 0)
		(void)close(fd);
	return bad ? -1 : fd;
}

static int listen_unix(struct listening *listening, const char *path)
{
	char name[sizeof((struct sockaddr_un *)0)->sun_path + 20];
	int lock = lock_start(path, name, sizeof name);
	int fd = lock < 0 ? -1 : make_unix(listening, path);

	if (lock >= 0)
		unlock_start(lock, name);
	if (fd < 0 || watch(listening, fd, 0) != 0)
		return -1;
	message_info("listening on %s", path);
	return 0;
}

/* ---- Sockets of systemd */

/* How many sockets systemd has passed to this process. */
static int systemd_count(void)
{
	const char *pid = getenv("LISTEN_PID");
	const char *count = getenv("LISTEN_FDS");

	if (!pid || !count || strtol(pid, NULL, 10) != (long)getpid())
		return 0;
	return (int)strtol(count, NULL, 10);
}

static int listen_systemd(struct listening *listening, int fd)
{
	struct sockaddr_storage address = {.ss_family = AF_UNSPEC};
	socklen_t size = sizeof address;

	if (getsockname(fd, (struct sockaddr *)&address, &size) != 0)
		return message_error("systemd's descriptor %d is not a socket", fd);
	if (address.ss_family != AF_UNIX && may_listen(&listening->config, (struct sockaddr *)&address, 0) != 0)
		return -1;
	if (fcntl(fd, F_SETFD, FD_CLOEXEC) != 0 || listen(fd, BACKLOG) != 0)
		return failed(words_of(listening), "a socket of systemd", fd);
	if (watch(listening, fd, 0) != 0)
		return -1;
	if (address.ss_family != AF_UNIX)
		return announce(listening, fd, 0);
	message_info("listening on a socket of systemd");
	return 0;
}

/* ---- All */

int listen_start(struct listening *listening, uv_loop_t *loop, const struct listen_config *config)
{
	int sockets = config->is_http ? 0 : systemd_count();

	*listening = (struct listening){.config = *config, .loop = loop, .kept = find_kept(config)};
	(void)uv_timer_init(loop, &listening->again);
	listening->again.data = listening;
	for (int fd = SYSTEMD_FIRST; fd < SYSTEMD_FIRST + sockets; fd++)
		if (listen_systemd(listening, fd) != 0)
			return -1;
	for (size_t i = 0; i < config->count; i++)
		if (listen_tcp(listening, config->where[i]) != 0)
			return -1;
	if (config->unix_path && listen_unix(listening, config->unix_path) != 0)
		return -1;
	if (SLIST_EMPTY(&listening->listeners) && listen_tcp(listening, config->otherwise) != 0)
		return -1;
	if (!has_descriptors(listening))
		return message_error(
		    "a limit of %" PRIu64 " open files (\"ulimit -n\") lets no client in: raise it", limit_of_files());
	return 0;
}

int listen_find(const struct listening *listening, int is_tls, struct sockaddr_storage *address)
{
	const struct listener *listener;
	char text[ADDRESS_TEXT];
	int found = LISTEN_NOWHERE;

	SLIST_FOREACH(listener, &listening->listeners, next)
	{
		struct sockaddr_storage bound = {.ss_family = AF_UNSPEC};
		socklen_t size = sizeof bound;
		int reach;

		if ((is_tls >= 0 && listener->is_tls != is_tls) ||
		    getsockname(listener->fd, (struct sockaddr *)&bound, &size) != 0 || bound.ss_family == AF_UNIX)
			continue;
		reach = address_show((struct sockaddr *)&bound, text) ? LISTEN_HERE : LISTEN_BEYOND;
		if (reach < found)
			continue;
		found = reach;
		*address = bound;
	}
	return found;
}

uint64_t listen_raise_limit(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur < limit.rlim_max) {
		limit.rlim_cur = limit.rlim_max;
		(void)setrlimit(RLIMIT_NOFILE, &limit);
	}
	return limit_of_files();
}

int listen_check_files(void)
{
	int files[FILES_LEAST];
	int count = 0;

	while (count < FILES_LEAST && (files[count] = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 0)) >= 0)
		count++;
	for (int i = 0; i < count; i++)
		(void)close(files[i]);
	return count == FILES_LEAST
	           ? 0
	           : message_error("only %d more files can be opened, and %d are needed: raise the limit of open files "
	                           "(\"ulimit -n\")",
	                 count, FILES_LEAST);
}

static void on_closed(uv_handle_t *handle)
{
	free(handle->data);
}

/*
 * The socket may have been removed, and replaced by another server's. While this one is open, no other file has its
 * inode.
 */
static void remove_bound(struct listening *listening)
{
	const struct stat *mine = &listening->bound_as;
	struct stat about;

	if (listening->bound && lstat(listening->bound, &about) == 0 && about.st_dev == mine->st_dev &&
	    about.st_ino == mine->st_ino)
		(void)unlink(listening->bound);
	listening->bound = NULL;
}

void listen_stop(struct listening *listening)
{
	struct listener *listener;

	remove_bound(listening);
	while ((listener = SLIST_FIRST(&listening->listeners)) != NULL) {
		SLIST_REMOVE_HEAD(&listening->listeners, next);
		uv_close((uv_handle_t *)&listener->poll, on_closed);
		(void)close(listener->fd);
		listener->fd = -1;
	}
}
