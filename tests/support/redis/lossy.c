/* A connection to Redis that loses what a test wants. */
#include "tests/support/redis/lossy.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tests/support/suite.h"

struct pair {
	int client;
	int server;
};

static int connect_to(int port)
{
	struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
	int fd = socket(AF_INET, SOCK_STREAM, 0);

	to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(connect(fd, (struct sockaddr *)&to, sizeof to), 0);
	return fd;
}

static int send_all(int fd, const char *bytes, size_t size)
{
	while (size) {
		ssize_t sent = send(fd, bytes, size, MSG_NOSIGNAL);
		if (sent <= 0)
			return -1;
		bytes += sent;
		size -= (size_t)sent;
	}
	return 0;
}

/* Whether these bytes have the word, which is then forgotten. */
static int is_hit(struct lossy *lossy, const char *bytes, size_t size, enum lossy_part *part)
{
	pthread_mutex_lock(&lossy->lock);
	int is = lossy->word[0] && memmem(bytes, size, lossy->word, strlen(lossy->word)) != NULL;
	*part = lossy->part;
	if (is) {
		lossy->word[0] = 0;
		lossy->lost++;
	}
	pthread_mutex_unlock(&lossy->lock);
	return is;
}

/* Pass on what one side says. Returns -1 when the pair has ended. */
static int pass(struct lossy *lossy, const struct pair *pair, int is_client)
{
	static char bytes[1 << 16];
	enum lossy_part part;
	ssize_t size = recv(is_client ? pair->client : pair->server, bytes, sizeof bytes, 0);

	if (size <= 0)
		return -1;
	int hit = is_client && is_hit(lossy, bytes, (size_t)size, &part);
	if (hit && part == LOSSY_REQUEST)
		return -1;
	if (send_all(is_client ? pair->server : pair->client, bytes, (size_t)size))
		return -1;
	/* Redis answers once it has done what was asked. */
	if (hit)
		(void)recv(pair->server, bytes, sizeof bytes, 0);
	return hit ? -1 : 0;
}

static void end(struct pair *pair)
{
	close(pair->client);
	close(pair->server);
	*pair = (struct pair){-1, -1};
}

static void *serve(void *context)
{
	struct lossy *lossy = context;
	struct pair pairs[LOSSY_PAIRS];
	struct pollfd fds[2 + 2 * LOSSY_PAIRS];

	for (int i = 0; i < LOSSY_PAIRS; i++)
		pairs[i] = (struct pair){-1, -1};
	for (;;) {
		fds[0] = (struct pollfd){.fd = lossy->stop[0], .events = POLLIN};
		fds[1] = (struct pollfd){.fd = lossy->listener, .events = POLLIN};
		for (int i = 0; i < LOSSY_PAIRS; i++) {
			fds[2 + 2 * i] = (struct pollfd){.fd = pairs[i].client, .events = POLLIN};
			fds[3 + 2 * i] = (struct pollfd){.fd = pairs[i].server, .events = POLLIN};
		}
		(void)poll(fds, sizeof fds / sizeof *fds, -1);
		if (fds[0].revents)
			break;
		for (int i = 0; i < LOSSY_PAIRS; i++)
			if ((fds[2 + 2 * i].revents && pass(lossy, &pairs[i], 1)) ||
			    (fds[3 + 2 * i].revents && pass(lossy, &pairs[i], 0)))
				end(&pairs[i]);
		int i = 0;
		while (i < LOSSY_PAIRS && pairs[i].client >= 0)
			i++;
		if (fds[1].revents && i < LOSSY_PAIRS)
			pairs[i] = (struct pair){accept(lossy->listener, NULL, NULL), connect_to(lossy->server)};
	}
	for (int i = 0; i < LOSSY_PAIRS; i++)
		if (pairs[i].client >= 0)
			end(&pairs[i]);
	return NULL;
}

void lossy_start(struct lossy *lossy, int server_port)
{
	struct sockaddr_in at = {.sin_family = AF_INET};
	socklen_t size = sizeof at;

	*lossy = (struct lossy){.server = server_port, .listener = socket(AF_INET, SOCK_STREAM, 0)};
	at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	ck_assert_int_eq(bind(lossy->listener, (struct sockaddr *)&at, sizeof at), 0);
	ck_assert_int_eq(listen(lossy->listener, LOSSY_PAIRS), 0);
	ck_assert_int_eq(getsockname(lossy->listener, (struct sockaddr *)&at, &size), 0);
	lossy->port = ntohs(at.sin_port);
	ck_assert_int_eq(pipe(lossy->stop), 0);
	ck_assert_int_eq(pthread_mutex_init(&lossy->lock, NULL), 0);
	ck_assert_int_eq(pthread_create(&lossy->thread, NULL, serve, lossy), 0);
}

void lossy_lose(struct lossy *lossy, const char *word, enum lossy_part part)
{
	pthread_mutex_lock(&lossy->lock);
	(void)snprintf(lossy->word, sizeof lossy->word, "%s", word);
	lossy->part = part;
	pthread_mutex_unlock(&lossy->lock);
}

unsigned lossy_lost(struct lossy *lossy)
{
	pthread_mutex_lock(&lossy->lock);
	unsigned lost = lossy->lost;
	pthread_mutex_unlock(&lossy->lock);
	return lost;
}

void lossy_stop(struct lossy *lossy)
{
	ck_assert_int_eq(write(lossy->stop[1], "x", 1), 1);
	pthread_join(lossy->thread, NULL);
	close(lossy->stop[0]);
	close(lossy->stop[1]);
	close(lossy->listener);
	pthread_mutex_destroy(&lossy->lock);
}
