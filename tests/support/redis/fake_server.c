/* A server that speaks the Redis protocol and answers as a test's rules say. */
#include "tests/support/redis/fake_server.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tests/support/suite.h"

struct connection {
	int fd; /* -1: free */
	int is_silent;
	const char *endless; /* what it sends again and again */
	size_t endless_length;
	size_t length;
	size_t room;
	char *input;
};

static const char info[] = "$30\r\n# Cluster\r\ncluster_enabled:0\r\n\r\n";

/* ---- Commands */

/* The end of a line in the input, or NULL. */
static char *line_end(const struct connection *connection, size_t from)
{
	return from < connection->length ? memchr(connection->input + from, '\n', connection->length - from) : NULL;
}

/* The words of the first whole command, cut to a line. Returns its length, or 0 if it has not come whole yet. */
static size_t read_command(const struct connection *connection, char line[FAKE_LINE])
{
	size_t at = 0;
	size_t written = 0;
	char *end = line_end(connection, 0);
	long words;

	if (!end)
		return 0;
	words = strtol(connection->input + 1, NULL, 10);
	at = (size_t)(end - connection->input) + 1;
	for (long i = 0; i < words; i++) {
		size_t length;
		end = line_end(connection, at);
		if (!end)
			return 0;
		length = strtoul(connection->input + at + 1, NULL, 10);
		at = (size_t)(end - connection->input) + 1;
		if (at + length + 2 > connection->length)
			return 0;
		for (size_t byte = 0; byte < length && written + 2 < FAKE_LINE; byte++)
			line[written++] = connection->input[at + byte];
		if (i + 1 < words && written + 2 < FAKE_LINE)
			line[written++] = ' ';
		at += length + 2;
	}
	line[written] = '\0';
	return at;
}

static int begins(const char *line, const char *words)
{
	return strncmp(line, words, strlen(words)) == 0;
}

static struct fake_rule rule_of(struct fake_server *server, const char *line)
{
	int is_greeting =
	    begins(line, "PING") || begins(line, "AUTH") || begins(line, "SELECT") || begins(line, "INFO");
	struct fake_rule rule = {NULL, 0, FAKE_ANSWER, "+OK\r\n", 0};

	pthread_mutex_lock(&server->lock);
	server->commands += !is_greeting;
	if (server->logged < FAKE_LOG)
		(void)snprintf(server->log[server->logged++], FAKE_LINE, "%s", line);
	if (begins(line, "PING"))
		rule.answer = "+PONG\r\n";
	if (begins(line, "INFO"))
		rule.answer = info;
	for (struct fake_rule *one = server->rules; one->words; one++) {
		if (!begins(line, one->words) || one->times < 0)
			continue;
		rule = *one;
		if (one->times > 0 && --one->times == 0)
			one->times = -1;
		break;
	}
	pthread_mutex_unlock(&server->lock);
	if (rule.length == 0)
		rule.length = strlen(rule.answer ? rule.answer : "");
	return rule;
}

/* ---- Connections */

static void hang_up(struct connection *connection)
{
	(void)close(connection->fd);
	free(connection->input);
	*connection = (struct connection){.fd = -1};
}

static int send_all(int fd, const char *bytes, size_t length)
{
	while (length > 0) {
		ssize_t count = send(fd, bytes, length, MSG_NOSIGNAL);
		struct pollfd wait = {.fd = fd, .events = POLLOUT};
		if (count < 0 && errno == EAGAIN && poll(&wait, 1, 10000) == 1)
			continue;
		if (count < 0)
			return -1;
		bytes += count;
		length -= (size_t)count;
	}
	return 0;
}

static void obey(struct connection *connection, const struct fake_rule *rule)
{
	if (rule->action == FAKE_SILENCE) {
		connection->is_silent = 1;
		return;
	}
	if (rule->action == FAKE_ENDLESS) {
		connection->endless = rule->answer;
		connection->endless_length = rule->length;
		connection->is_silent = 1;
		return;
	}
	if (send_all(connection->fd, rule->answer, rule->length) || rule->action == FAKE_CUT)
		hang_up(connection);
}

static void serve(struct fake_server *server, struct connection *connection)
{
	char line[FAKE_LINE];
	ssize_t count;
	size_t used;

	if (connection->room - connection->length < 65536) {
		connection->room = 2 * connection->room + 65536;
		connection->input = realloc(connection->input, connection->room);
	}
	count = recv(connection->fd, connection->input + connection->length, connection->room - connection->length, 0);
	if (count <= 0) {
		hang_up(connection);
		return;
	}
	connection->length += (size_t)count;
	while (connection->fd >= 0 && !connection->is_silent && (used = read_command(connection, line)) > 0) {
		struct fake_rule rule;
		memmove(connection->input, connection->input + used, connection->length - used);
		connection->length -= used;
		rule = rule_of(server, line);
		obey(connection, &rule);
	}
}

static void go_on(struct connection *connection)
{
	/* A part may go out: nothing promises more. */
	if (send(connection->fd, connection->endless, connection->endless_length, MSG_NOSIGNAL | MSG_DONTWAIT) < 0 &&
	    errno != EAGAIN)
		hang_up(connection);
}

static void welcome(struct fake_server *server, struct connection *connections)
{
	int fd = accept(server->fd, NULL, NULL);
	int i = 0;

	if (fd < 0)
		return;
	while (i < FAKE_CONNECTIONS && connections[i].fd >= 0)
		i++;
	pthread_mutex_lock(&server->lock);
	server->accepts++;
	pthread_mutex_unlock(&server->lock);
	if (i < FAKE_CONNECTIONS) {
		(void)fcntl(fd, F_SETFL, O_NONBLOCK);
		(void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &(int){1}, sizeof(int));
		connections[i] = (struct connection){.fd = fd};
	} else {
		(void)close(fd);
	}
}

static void *run(void *argument)
{
	struct fake_server *server = argument;
	struct connection connections[FAKE_CONNECTIONS];
	struct pollfd polled[FAKE_CONNECTIONS + 2];

	for (int i = 0; i < FAKE_CONNECTIONS; i++)
		connections[i] = (struct connection){.fd = -1};
	for (;;) {
		for (int i = 0; i < FAKE_CONNECTIONS; i++)
			polled[i] = (struct pollfd){.fd = connections[i].fd,
			    .events = (short)(POLLIN | (connections[i].endless ? POLLOUT : 0))};
		polled[FAKE_CONNECTIONS] = (struct pollfd){.fd = server->fd, .events = POLLIN};
		polled[FAKE_CONNECTIONS + 1] = (struct pollfd){.fd = server->stop[0], .events = POLLIN};
		if (poll(polled, FAKE_CONNECTIONS + 2, -1) < 0)
			continue;
		for (int i = 0; i < FAKE_CONNECTIONS; i++) {
			if (polled[i].fd >= 0 && polled[i].revents & ~POLLOUT)
				serve(server, &connections[i]);
			else if (polled[i].fd >= 0 && polled[i].revents & POLLOUT)
				go_on(&connections[i]);
		}
		if (polled[FAKE_CONNECTIONS].revents)
			welcome(server, connections);
		if (polled[FAKE_CONNECTIONS + 1].revents)
			break;
	}
	for (int i = 0; i < FAKE_CONNECTIONS; i++) {
		if (connections[i].fd >= 0)
			hang_up(&connections[i]);
	}
	return NULL;
}

/* ---- Start and stop */

void fake_server_rules(struct fake_server *server, const struct fake_rule *rules)
{
	size_t count = 0;

	pthread_mutex_lock(&server->lock);
	memset(server->rules, 0, sizeof server->rules);
	while (rules && rules[count].words) {
		ck_assert_uint_lt(count, sizeof server->rules / sizeof *server->rules - 1);
		server->rules[count] = rules[count];
		count++;
	}
	pthread_mutex_unlock(&server->lock);
}

void fake_server_start(struct fake_server *server, const struct fake_rule *rules)
{
	struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t size = sizeof address;

	memset(server, 0, sizeof *server);
	ck_assert_int_eq(pthread_mutex_init(&server->lock, NULL), 0);
	fake_server_rules(server, rules);
	server->fd = socket(AF_INET, SOCK_STREAM, 0);
	ck_assert_int_eq(bind(server->fd, (struct sockaddr *)&address, size), 0);
	ck_assert_int_eq(getsockname(server->fd, (struct sockaddr *)&address, &size), 0);
	ck_assert_int_eq(listen(server->fd, 64), 0);
	server->port = ntohs(address.sin_port);
	ck_assert_int_eq(pipe(server->stop), 0);
	ck_assert_int_eq(pthread_create(&server->thread, NULL, run, server), 0);
}

int fake_server_accepts(struct fake_server *server)
{
	int count;

	pthread_mutex_lock(&server->lock);
	count = server->accepts;
	pthread_mutex_unlock(&server->lock);
	return count;
}

int fake_server_count(struct fake_server *server, const char *words)
{
	int count = 0;

	pthread_mutex_lock(&server->lock);
	for (int i = 0; i < server->logged; i++)
		count += begins(server->log[i], words);
	pthread_mutex_unlock(&server->lock);
	return count;
}

void fake_server_stop(struct fake_server *server)
{
	ck_assert_int_eq(write(server->stop[1], "", 1), 1);
	ck_assert_int_eq(pthread_join(server->thread, NULL), 0);
	(void)close(server->stop[0]);
	(void)close(server->stop[1]);
	(void)close(server->fd);
	pthread_mutex_destroy(&server->lock);
}

void fake_server_url(const struct fake_server *server, char *url, size_t size)
{
	(void)snprintf(url, size, "redis://127.0.0.1:%d", server->port);
}
