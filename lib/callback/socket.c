/*
 * The connections of a pusher: which addresses they may have, and how many bytes come on them.
 *
 * libcurl counts what it makes of the bytes: an extension of a chunk, or a frame that means nothing, is in none of its
 * numbers. The kernel counts all that arrives. It is let ahead of us by a little only (SO_RCVBUF), so that its count is
 * that of what we take. libcurl does not report which socket a transfer uses before the transfer has ended. It reports both
 * ends' addresses when the connection is there, and these find the socket among those that we have made.
 */
#include <arpa/inet.h>
#include <linux/tcp.h> /* that of the C library ends before the bytes received */
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "lib/callback/callback_internal.h"
#include "weekwheel/driver.h"

/* Bytes that the kernel takes ahead of us; it doubles this. */
enum { AHEAD = 65536 };

/* Between two counts of a connection's bytes, while an answer comes and before. */
#define COUNT_OFTEN WW_MILLISECOND
#define COUNT_SELDOM (50 * WW_MILLISECOND)

struct peer {
	struct peer *next;
	curl_socket_t fd;
	/* Its ends, once it is there. */
	int own_port; /* 0: not yet */
	int port;
	char address[INET6_ADDRSTRLEN];
};

/* ---- Sockets */

static void forget(struct ww_callback *callback, curl_socket_t fd)
{
	struct peer **at = &callback->connections;

	while (*at && (*at)->fd != fd)
		at = &(*at)->next;
	if (!*at)
		return;
	struct peer *closed = *at;
	*at = closed->next;
	/* libcurl repeats a request by itself if a connection that was kept has ended meanwhile. */
	for (struct delivery *user_of = callback->lists[CALLBACK_UNDER_WAY].first; user_of; user_of = user_of->next)
		if (user_of->connection == closed)
			user_of->connection = NULL;
	memory_give(callback->allocator, closed, sizeof *closed);
}

static curl_socket_t make_socket(struct ww_callback *callback, const struct curl_sockaddr *address)
{
	const int ahead = AHEAD;
	struct peer *connection = memory_take(callback->allocator, sizeof *connection);
	int fd = connection ? socket(address->family, address->socktype | SOCK_CLOEXEC, address->protocol) : -1;

	if (fd < 0) {
		memory_give(callback->allocator, connection, sizeof *connection);
		return CURL_SOCKET_BAD;
	}
	(void)setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &ahead, sizeof ahead);
	/* libcurl closes a socket that is not connected yet without reporting. */
	forget(callback, fd);
	*connection = (struct peer){.next = callback->connections, .fd = fd};
	callback->connections = connection;
	return fd;
}

static curl_socket_t open_socket(void *user, curlsocktype purpose, struct curl_sockaddr *address)
{
	struct delivery *delivery = user;
	struct ww_callback *callback = delivery->callback;

	if (purpose != CURLSOCKTYPE_IPCXN || !ww_callback_address_may(&callback->ranges, &address->addr)) {
		delivery->refused_count++;
		callback->counters.refused++;
		ww_callback_address_text(&address->addr, delivery->refused, sizeof delivery->refused);
		delivery->lacks = ww_callback_address_lacks(&callback->ranges, &address->addr);
		return CURL_SOCKET_BAD;
	}
	if (!ww_callback_host_found(delivery, &address->addr, 1)) {
		delivery->is_crowded = 1;
		return CURL_SOCKET_BAD;
	}
	/* Another address of the name has room. */
	delivery->is_crowded = 0;
	delivery->allowed_count++;
	return make_socket(callback, address);
}

static int close_socket(void *user, curl_socket_t fd)
{
	forget(user, fd);
	return close(fd);
}

void ww_callback_socket_free_all(struct ww_callback *callback)
{
	while (callback->connections)
		forget(callback, callback->connections->fd);
}

/* ---- Bytes */

static uint64_t bytes_of(const struct peer *connection)
{
	struct tcp_info info = {0};
	socklen_t size = sizeof info;

	return getsockopt(connection->fd, IPPROTO_TCP, TCP_INFO, &info, &size) ? 0 : info.tcpi_bytes_received;
}

size_t ww_callback_socket_bytes_max(const struct ww_callback_config *config)
{
	const size_t fixed = 4 * AHEAD + 2 * CALLBACK_HEAD_MAX;

	return config->response_max < (SIZE_MAX - fixed) / 2 ? 2 * config->response_max + fixed : SIZE_MAX;
}

static int own_port_of(curl_socket_t fd)
{
	struct sockaddr_storage own = {0};
	socklen_t size = sizeof own;

	if (getsockname(fd, (struct sockaddr *)&own, &size))
		return 0;
	if (own.ss_family == AF_INET6)
		return ntohs(((struct sockaddr_in6 *)&own)->sin6_port);
	return own.ss_family == AF_INET ? ntohs(((struct sockaddr_in *)&own)->sin_port) : 0;
}

/* Two connections may have one port at our end, if the other ends differ. */
static struct peer *find(struct ww_callback *callback, const char *address, int port, int own_port)
{
	struct peer *connection = callback->connections;

	while (connection && (connection->own_port != own_port || connection->port != port ||
	                         strcmp(connection->address, address) != 0))
		connection = connection->next;
	if (connection)
		return connection;
	connection = callback->connections;
	while (connection && (connection->own_port || own_port_of(connection->fd) != own_port))
		connection = connection->next;
	if (connection) {
		connection->own_port = own_port;
		connection->port = port;
		(void)snprintf(connection->address, sizeof connection->address, "%s", address);
	}
	return connection;
}

/* The connection is there, and the request not sent yet. A new connection counts from its first byte. */
static int on_connected(void *user, char *address, char *own_address, int port, int own_port)
{
	struct delivery *delivery = user;

	(void)own_address;
	ww_callback_host_found_text(delivery, address);
	delivery->connection = find(delivery->callback, address, port, own_port);
	if (delivery->connection && !delivery->allowed_count)
		delivery->received = bytes_of(delivery->connection);
	return CURL_PREREQFUNC_OK;
}

static int on_progress(void *user, curl_off_t down_all, curl_off_t down, curl_off_t up_all, curl_off_t up)
{
	struct delivery *delivery = user;
	const struct ww_callback_config *config = &delivery->callback->config;
	size_t most = ww_callback_socket_bytes_max(config);
	uint64_t now;
	long version = 0;

	(void)down_all;
	(void)down;
	(void)up_all;
	(void)up;
	if (!delivery->connection)
		return 0;
	now = time_now(CLOCK_BOOTTIME);
	if (now - delivery->checked < (delivery->head_bytes ? COUNT_OFTEN : COUNT_SELDOM))
		return 0;
	delivery->checked = now;
	(void)curl_easy_getinfo(delivery->easy, CURLINFO_HTTP_VERSION, &version);
	if (version >= CURL_HTTP_VERSION_2_0)
		most = most < SIZE_MAX / config->per_host ? most * config->per_host : SIZE_MAX;
	delivery->is_over = bytes_of(delivery->connection) - delivery->received > most;
	return delivery->is_over;
}

CURLcode ww_callback_socket_options(struct delivery *delivery)
{
	CURL *easy = delivery->easy;
	CURLcode code = curl_easy_setopt(easy, CURLOPT_OPENSOCKETFUNCTION, open_socket);

	code |= curl_easy_setopt(easy, CURLOPT_OPENSOCKETDATA, delivery);
	code |= curl_easy_setopt(easy, CURLOPT_CLOSESOCKETFUNCTION, close_socket);
	code |= curl_easy_setopt(easy, CURLOPT_CLOSESOCKETDATA, delivery->callback);
	code |= curl_easy_setopt(easy, CURLOPT_PREREQFUNCTION, on_connected);
	code |= curl_easy_setopt(easy, CURLOPT_PREREQDATA, delivery);
	code |= curl_easy_setopt(easy, CURLOPT_NOPROGRESS, 0L);
	code |= curl_easy_setopt(easy, CURLOPT_XFERINFOFUNCTION, on_progress);
	code |= curl_easy_setopt(easy, CURLOPT_XFERINFODATA, delivery);
	return code;
}
