/* Parses addresses of servers, and connects to them within a time limit. */
#include "tools/common/dial.h"

#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "tools/common/options.h"

/* Wait until the connection is made. Return 0 or an errno. */
static int finish_connect(int fd, int timeout_ms)
{
	struct pollfd one = {fd, POLLOUT, 0};
	socklen_t size = sizeof(int);
	int error = 0;
	int ready;

	do
		ready = poll(&one, 1, timeout_ms);
	while (ready < 0 && errno == EINTR);
	if (ready == 0)
		return ETIMEDOUT;
	if (ready < 0 || getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size))
		return errno;
	return error;
}

/* Return a connected descriptor, or -1 with errno set. */
static int connect_to(int family, const struct sockaddr *address, socklen_t size, int timeout_ms)
{
	int fd = socket(family, SOCK_STREAM, 0);
	int error = 0;

	if (fd < 0)
		return -1;
	/* Programs that this one runs must not inherit it. */
	if (fcntl(fd, F_SETFD, FD_CLOEXEC) || fcntl(fd, F_SETFL, O_NONBLOCK))
		error = errno;
	else if (connect(fd, address, size))
		error = errno == EINPROGRESS ? finish_connect(fd, timeout_ms) : errno;
	if (!error)
		return fd;
	close(fd);
	errno = error;
	return -1;
}

/* Split HOST:PORT. Return the text of the port, or NULL if it is not such an address. */
static const char *split_address(const char *server, char host[DIAL_HOST_MAX])
{
	const char *colon = strrchr(server, ':');
	size_t length = colon ? (size_t)(colon - server) : 0;
	uint64_t port;

	if (!colon || length == 0 || length >= DIAL_HOST_MAX || options_whole(colon + 1, 1, 65535, &port))
		return NULL;
	if (server[0] == '[' && colon[-1] == ']') {
		server++;
		length -= 2;
	} else if (memchr(server, ':', length)) {
		return NULL;
	}
	memcpy(host, server, length);
	host[length] = 0;
	return colon + 1;
}

/* Skip "tls:". A host of that name would have a dot or brackets, or no second colon. */
static const char *without_tls(const char *server)
{
	return strncmp(server, "tls:", 4) == 0 && strrchr(server, ':') != server + 3 ? server + 4 : server;
}

static int connect_tcp(const char *server, int timeout_ms, const char **reason)
{
	struct addrinfo hints = {.ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM};
	struct addrinfo *found = NULL, *one;
	char host[DIAL_HOST_MAX];
	const char *port = split_address(without_tls(server), host);
	int on = 1;
	int fd = -1;
	int error;

	error = getaddrinfo(host, port, &hints, &found);
	if (error) {
		*reason = gai_strerror(error);
		errno = 0;
		return -1;
	}
	for (one = found; one && fd < 0; one = one->ai_next)
		fd = connect_to(one->ai_family, one->ai_addr, one->ai_addrlen, timeout_ms);
	error = errno;
	freeaddrinfo(found);
	if (fd < 0) {
		*reason = strerror(error);
		errno = error;
		return -1;
	}
	/* A command and its body may be two segments. The second must not wait for the acknowledgement of the first. */
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
	/* A client that waits for days should notice that the server's machine has gone. */
	setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
	return fd;
}

static int is_path(const char *path)
{
	return *path && strlen(path) < sizeof((struct sockaddr_un *)0)->sun_path;
}

int dial_is_address(const char *server)
{
	char host[DIAL_HOST_MAX];

	if (strncmp(server, "unix:", 5) == 0)
		return is_path(server + 5);
	return split_address(without_tls(server), host) != NULL;
}

int dial_is_tls(const char *server, char host[DIAL_HOST_MAX])
{
	return without_tls(server) != server && split_address(without_tls(server), host) != NULL;
}

int dial_connect(const char *server, int timeout_ms, const char **reason)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	int fd;

	errno = 0;
	*reason = "is not an address";
	if (!dial_is_address(server))
		return -1;
	if (strncmp(server, "unix:", 5) != 0)
		return connect_tcp(server, timeout_ms, reason);
	strcpy(address.sun_path, server + 5);
	fd = connect_to(AF_UNIX, (struct sockaddr *)&address, sizeof address, timeout_ms);
	if (fd < 0)
		*reason = strerror(errno);
	return fd;
}
