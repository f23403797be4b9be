/* An HTTP server on loopback that answers as each request asks, and keeps the requests. */
#include "tests/support/callback/receiver.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <openssl/ssl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "tests/support/suite.h"

enum { REQUESTS = 4096, CONNECTIONS = 1024, BUFFER = 1 << 21, PATIENCE = 60 };

struct connection {
	struct receiver *receiver;
	pthread_t thread;
	int fd;
	SSL *ssl;
	char *bytes; /* the input so far */
	size_t size;
};

struct receiver {
	int fd;
	unsigned port;
	SSL_CTX *tls;
	pthread_t thread;
	pthread_mutex_t lock;
	pthread_cond_t changed;
	int open;
	_Atomic size_t sent;
	int once; /* requests with Answer-Once so far */
	int stopped;
	char *requests[REQUESTS];
	size_t count;
	size_t now;
	size_t most;
	struct connection connections[CONNECTIONS];
	size_t connected;
};

/* ---- Bytes */

static int get(struct connection *connection)
{
	size_t room = BUFFER - 1 - connection->size;
	char *to = connection->bytes + connection->size;
	long got = connection->ssl ? SSL_read(connection->ssl, to, (int)room) : recv(connection->fd, to, room, 0);

	if (got <= 0)
		return 0;
	connection->size += (size_t)got;
	connection->bytes[connection->size] = '\0';
	return 1;
}

/* Returns 0 if the client is gone. */
static int put(struct connection *connection, const char *text, size_t size)
{
	while (size) {
		long done = connection->ssl ? SSL_write(connection->ssl, text, (int)size)
		                            : send(connection->fd, text, size, MSG_NOSIGNAL);
		if (done <= 0)
			return 0;
		connection->receiver->sent += (size_t)done;
		text += done;
		size -= (size_t)done;
	}
	return 1;
}

/* ---- Requests */

/* The value of the header of that name from `from` on; NULL: none. *next: where to look for another. */
static const char *value_of(const char *from, const char *end, const char *name, const char **next, char *value)
{
	size_t size = strlen(name);

	for (const char *line = from; line < end; line = strstr(line, "\r\n") + 2) {
		if (strncasecmp(line, name, size) != 0 || line[size] != ':')
			continue;
		const char *stop = strstr(line, "\r\n");
		(void)snprintf(value, 256, "%.*s", (int)(stop - line - (long)size - 2), line + size + 2);
		if (next)
			*next = stop + 2;
		return value;
	}
	return NULL;
}

/* Wait for a whole request. Returns the end of its head, or NULL; *size: of the whole. */
static const char *read_request(struct connection *connection, size_t *size)
{
	char value[256];
	char *end;
	size_t body = 0;

	while (!(end = connection->size ? strstr(connection->bytes, "\r\n\r\n") : NULL))
		if (!get(connection))
			return NULL;
	end += 4;
	if (value_of(connection->bytes, end - 2, "Content-Length", NULL, value))
		body = strtoul(value, NULL, 10);
	*size = (size_t)(end - connection->bytes) + body;
	while (connection->size < *size)
		if (!get(connection))
			return NULL;
	return end;
}

static void keep(struct receiver *receiver, const char *text, size_t size)
{
	char *copy = calloc(1, size + 1);

	ck_assert_ptr_nonnull(copy);
	memcpy(copy, text, size);
	pthread_mutex_lock(&receiver->lock);
	ck_assert_uint_lt(receiver->count, REQUESTS);
	receiver->requests[receiver->count++] = copy;
	receiver->now++;
	if (receiver->now > receiver->most)
		receiver->most = receiver->now;
	pthread_cond_broadcast(&receiver->changed);
	pthread_mutex_unlock(&receiver->lock);
}

static void done(struct receiver *receiver)
{
	pthread_mutex_lock(&receiver->lock);
	receiver->now--;
	pthread_mutex_unlock(&receiver->lock);
}

static void wait_for_opening(struct receiver *receiver)
{
	pthread_mutex_lock(&receiver->lock);
	while (!receiver->open && !receiver->stopped)
		pthread_cond_wait(&receiver->changed, &receiver->lock);
	pthread_mutex_unlock(&receiver->lock);
}

static int endless(struct connection *connection, const char *piece)
{
	while (put(connection, piece, strlen(piece)))
		;
	return 0;
}

/* Byte after byte without end. */
static int drip(struct connection *connection, const char *answer, size_t length)
{
	const struct timespec moment = {0, 1000000};

	for (size_t i = 0; put(connection, i < length ? &answer[i] : "x", 1); i++)
		(void)nanosleep(&moment, NULL);
	return 0;
}

static int answer_it(struct connection *connection, const char *head, const char *end, const char *wish)
{
	char answer[4096];
	char status[256] = "204 No Content";
	char text[256] = "";
	char value[256];
	const char *next = head;
	size_t length;
	int is_first = 1;

	if (value_of(head, end, "Answer-Once", NULL, value)) {
		pthread_mutex_lock(&connection->receiver->lock);
		is_first = !connection->receiver->once++;
		pthread_mutex_unlock(&connection->receiver->lock);
	}
	if (is_first && (!strstr(head, " /end") || strstr(head, " /end") > strstr(head, "\r\n"))) {
		(void)value_of(head, end, "Answer-Status", NULL, status);
		(void)value_of(head, end, "Answer-Body", NULL, text);
	}
	length = (size_t)snprintf(answer, sizeof answer, "HTTP/1.1 %s\r\n", status);
	while (value_of(next, end, "Answer-Header", &next, value))
		length += (size_t)snprintf(answer + length, sizeof answer - length, "%s\r\n", value);
	if (strcmp(wish, "endless head") == 0)
		return put(connection, answer, length) && endless(connection, "X-More: and more\r\n");
	if (strcmp(wish, "endless line") == 0)
		return put(connection, answer, length) && endless(connection, "X-More");
	if (strcmp(wish, "endless interim") == 0)
		return endless(connection, "HTTP/1.1 103 Early Hints\r\nX-More: and more\r\n\r\n");
	if (strcmp(wish, "endless trailer") == 0) {
		length += (size_t)snprintf(
		    answer + length, sizeof answer - length, "Transfer-Encoding: chunked\r\n\r\n1\r\nx\r\n0\r\n");
		return put(connection, answer, length) && endless(connection, "X-More: and more\r\n");
	}
	if (strcmp(wish, "endless chunk") == 0) {
		length +=
		    (size_t)snprintf(answer + length, sizeof answer - length, "Transfer-Encoding: chunked\r\n\r\n1;");
		return put(connection, answer, length) && endless(connection, "and=more;");
	}
	if (strcmp(wish, "drip") == 0)
		return drip(connection, answer, length);
	if (strcmp(wish, "endless body") == 0) {
		length +=
		    (size_t)snprintf(answer + length, sizeof answer - length, "Content-Length: 999999999\r\n\r\n");
		return put(connection, answer, length) && endless(connection, "and more of it, ");
	}
	if (strcmp(wish, "big body") == 0) {
		length += (size_t)snprintf(answer + length, sizeof answer - length, "Content-Length: 60000\r\n\r\n");
		for (size_t i = 0; i < 60000 / 6; i++)
			if (!put(connection, i ? "a lot " : answer, i ? 6 : length) ||
			    (!i && !put(connection, "a lot ", 6)))
				return 0;
		return 1;
	}
	if (strncmp(status, "204", 3) != 0)
		length += (size_t)snprintf(answer + length, sizeof answer - length, "Content-Length: %zu\r\n",
		    strlen(text) + (strcmp(wish, "cut") == 0));
	length += (size_t)snprintf(answer + length, sizeof answer - length, "\r\n%s", text);
	return put(connection, answer, length) && strcmp(wish, "cut") != 0;
}

static int serve_one(struct connection *connection)
{
	struct receiver *receiver = connection->receiver;
	char wish[256] = "";
	size_t size;
	const char *end = read_request(connection, &size);
	int goes_on = 0;

	if (!end)
		return 0;
	keep(receiver, connection->bytes, size);
	(void)value_of(connection->bytes, end - 2, "Answer-Do", NULL, wish);
	if (strcmp(wish, "wait") == 0)
		wait_for_opening(receiver);
	done(receiver);
	if (strcmp(wish, "hang up") != 0)
		goes_on = answer_it(connection, connection->bytes, end - 2, wish);
	connection->size -= size;
	memmove(connection->bytes, connection->bytes + size, connection->size + 1);
	return goes_on;
}

static void *serve(void *argument)
{
	struct connection *connection = argument;
	sigset_t pipe;

	/* SSL_write would report a client that is gone by a signal. */
	sigemptyset(&pipe);
	sigaddset(&pipe, SIGPIPE);
	pthread_sigmask(SIG_BLOCK, &pipe, NULL);
	connection->bytes = malloc(BUFFER);
	ck_assert_ptr_nonnull(connection->bytes);
	connection->bytes[0] = '\0';
	if (connection->receiver->tls) {
		connection->ssl = SSL_new(connection->receiver->tls);
		SSL_set_fd(connection->ssl, connection->fd);
	}
	if (!connection->ssl || SSL_accept(connection->ssl) == 1)
		while (serve_one(connection))
			;
	SSL_free(connection->ssl);
	(void)shutdown(connection->fd, SHUT_RDWR);
	free(connection->bytes);
	return NULL;
}

/* ---- The server */

static void *listen_for_all(void *argument)
{
	struct receiver *receiver = argument;
	int fd;

	while ((fd = accept(receiver->fd, NULL, NULL)) >= 0) {
		struct connection *connection;
		pthread_mutex_lock(&receiver->lock);
		ck_assert_uint_lt(receiver->connected, CONNECTIONS);
		connection = &receiver->connections[receiver->connected++];
		pthread_mutex_unlock(&receiver->lock);
		connection->receiver = receiver;
		connection->fd = fd;
		ck_assert_int_eq(pthread_create(&connection->thread, NULL, serve, connection), 0);
	}
	return NULL;
}

struct receiver *receiver_start(SSL_CTX *tls)
{
	return receiver_start_at("127.0.0.1", tls);
}

struct receiver *receiver_start_at(const char *where, SSL_CTX *tls)
{
	struct receiver *receiver = calloc(1, sizeof *receiver);
	struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = inet_addr(where)};
	socklen_t size = sizeof address;

	ck_assert_ptr_nonnull(receiver);
	receiver->tls = tls;
	receiver->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	ck_assert_int_eq(bind(receiver->fd, (struct sockaddr *)&address, size), 0);
	ck_assert_int_eq(listen(receiver->fd, 512), 0);
	ck_assert_int_eq(getsockname(receiver->fd, (struct sockaddr *)&address, &size), 0);
	receiver->port = ntohs(address.sin_port);
	pthread_mutex_init(&receiver->lock, NULL);
	pthread_cond_init(&receiver->changed, NULL);
	ck_assert_int_eq(pthread_create(&receiver->thread, NULL, listen_for_all, receiver), 0);
	return receiver;
}

void receiver_stop(struct receiver *receiver)
{
	pthread_mutex_lock(&receiver->lock);
	receiver->stopped = 1;
	pthread_cond_broadcast(&receiver->changed);
	pthread_mutex_unlock(&receiver->lock);
	(void)shutdown(receiver->fd, SHUT_RDWR);
	pthread_join(receiver->thread, NULL);
	for (size_t i = 0; i < receiver->connected; i++) {
		(void)shutdown(receiver->connections[i].fd, SHUT_RDWR);
		pthread_join(receiver->connections[i].thread, NULL);
		(void)close(receiver->connections[i].fd);
	}
	(void)close(receiver->fd);
	for (size_t i = 0; i < receiver->count; i++)
		free(receiver->requests[i]);
	pthread_cond_destroy(&receiver->changed);
	pthread_mutex_destroy(&receiver->lock);
	free(receiver);
}

unsigned receiver_port(const struct receiver *receiver)
{
	return receiver->port;
}

void receiver_open(struct receiver *receiver)
{
	pthread_mutex_lock(&receiver->lock);
	receiver->open = 1;
	pthread_cond_broadcast(&receiver->changed);
	pthread_mutex_unlock(&receiver->lock);
}

void receiver_wait(struct receiver *receiver, size_t count)
{
	struct timespec until;

	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec += PATIENCE;
	pthread_mutex_lock(&receiver->lock);
	while (receiver->count < count)
		ck_assert_msg(pthread_cond_timedwait(&receiver->changed, &receiver->lock, &until) == 0,
		    "%zu requests instead of %zu", receiver->count, count);
	pthread_mutex_unlock(&receiver->lock);
}

const char *receiver_got(struct receiver *receiver, size_t n)
{
	const char *request;

	pthread_mutex_lock(&receiver->lock);
	ck_assert_uint_lt(n, receiver->count);
	request = receiver->requests[n];
	pthread_mutex_unlock(&receiver->lock);
	return request;
}

static size_t read_size(struct receiver *receiver, const size_t *size)
{
	size_t value;

	pthread_mutex_lock(&receiver->lock);
	value = *size;
	pthread_mutex_unlock(&receiver->lock);
	return value;
}

size_t receiver_count(struct receiver *receiver)
{
	return read_size(receiver, &receiver->count);
}

size_t receiver_connections(struct receiver *receiver)
{
	return read_size(receiver, &receiver->connected);
}

size_t receiver_sent(struct receiver *receiver)
{
	return receiver->sent;
}

size_t receiver_most(struct receiver *receiver)
{
	return read_size(receiver, &receiver->most);
}
