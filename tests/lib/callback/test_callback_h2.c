/*
 * HTTP/2: requests share a connection. The server answers none before all have come, which proves that they are under
 * way at the same time. It knows just enough: it counts streams that have ended and answers 204 to each, without
 * reading their headers.
 */
/* tier: check, threads */

#include <arpa/inet.h>
#include <netinet/in.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tests/support/callback/certificate.h"
#include "tests/support/callback/pushing.h"

enum { STREAMS = 6, FRAME_MAX = 16384 };
enum { DATA = 0, HEADERS = 1, SETTINGS = 4, PING = 6 };
enum { ACK = 1, END_STREAM = 1, END_HEADERS = 4 };

static struct pushing pushing;
static int listening;
static _Atomic int connections;
static SSL_CTX *context;

struct frame {
	size_t size;
	unsigned type;
	unsigned flags;
	unsigned char stream[4];
	unsigned char payload[FRAME_MAX];
};

static int get(SSL *ssl, void *to, size_t size)
{
	for (size_t at = 0; at < size;) {
		int got = SSL_read(ssl, (char *)to + at, (int)(size - at));
		if (got <= 0)
			return 0;
		at += (size_t)got;
	}
	return 1;
}

static int get_frame(SSL *ssl, struct frame *frame)
{
	unsigned char head[9];

	if (!get(ssl, head, sizeof head))
		return 0;
	frame->size = (size_t)head[0] << 16 | (size_t)head[1] << 8 | head[2];
	frame->type = head[3];
	frame->flags = head[4];
	memcpy(frame->stream, head + 5, 4);
	ck_assert_uint_le(frame->size, FRAME_MAX);
	return !frame->size || get(ssl, frame->payload, frame->size);
}

static void put_frame(
    SSL *ssl, unsigned type, unsigned flags, const unsigned char *stream, const void *payload, size_t size)
{
	unsigned char bytes[9 + 64] = {0, 0, (unsigned char)size, (unsigned char)type, (unsigned char)flags};

	memcpy(bytes + 5, stream, 4);
	if (size)
		memcpy(bytes + 9, payload, size);
	(void)SSL_write(ssl, bytes, (int)(9 + size));
}

static void speak(SSL *ssl)
{
	static const unsigned char connection[4] = {0};
	/* Entry 9 of HPACK's static table is ":status: 204". */
	static const unsigned char no_content = 0x89;
	static struct frame frame;
	unsigned char ended[STREAMS][4];
	size_t count = 0;
	char preface[24];

	if (!get(ssl, preface, sizeof preface))
		return;
	put_frame(ssl, SETTINGS, 0, connection, NULL, 0);
	while (get_frame(ssl, &frame)) {
		if (frame.type == SETTINGS && !(frame.flags & ACK))
			put_frame(ssl, SETTINGS, ACK, connection, NULL, 0);
		if (frame.type == PING && !(frame.flags & ACK))
			put_frame(ssl, PING, ACK, connection, frame.payload, frame.size);
		if ((frame.type != DATA && frame.type != HEADERS) || !(frame.flags & END_STREAM))
			continue;
		memcpy(ended[count++], frame.stream, 4);
		for (size_t i = 0; count == STREAMS && i < STREAMS; i++)
			put_frame(ssl, HEADERS, END_STREAM | END_HEADERS, ended[i], &no_content, 1);
		count %= STREAMS;
	}
}

static int choose_h2(SSL *ssl, const unsigned char **chosen, unsigned char *size, const unsigned char *offered,
    unsigned offered_size, void *user)
{
	static const unsigned char wanted[] = {2, 'h', '2'};

	(void)ssl;
	(void)user;
	return SSL_select_next_proto((unsigned char **)(uintptr_t)chosen, size, wanted, sizeof wanted, offered,
	           offered_size) == OPENSSL_NPN_NEGOTIATED
	           ? SSL_TLSEXT_ERR_OK
	           : SSL_TLSEXT_ERR_ALERT_FATAL;
}

/* The first connection is served; others are counted. */
static void *serve(void *argument)
{
	sigset_t pipe;

	(void)argument;
	sigemptyset(&pipe);
	sigaddset(&pipe, SIGPIPE);
	pthread_sigmask(SIG_BLOCK, &pipe, NULL);
	for (;;) {
		int fd = accept(listening, NULL, NULL);
		if (fd < 0)
			return NULL;
		if (connections++ == 0) {
			SSL *ssl = SSL_new(context);
			SSL_set_fd(ssl, fd);
			if (SSL_accept(ssl) == 1)
				speak(ssl);
			SSL_free(ssl);
		}
		(void)close(fd);
	}
}

START_TEST(requests_share_a_connection_where_the_server_has_http_2)
{
	struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t size = sizeof address;
	struct certificate certificate = certificate_make();
	uint64_t ids[STREAMS];
	pthread_t thread;

	context = certificate.context;
	SSL_CTX_set_alpn_select_cb(context, choose_h2, NULL);
	listening = socket(AF_INET, SOCK_STREAM, 0);
	ck_assert_int_eq(bind(listening, (struct sockaddr *)&address, size), 0);
	ck_assert_int_eq(listen(listening, 16), 0);
	ck_assert_int_eq(getsockname(listening, (struct sockaddr *)&address, &size), 0);
	ck_assert_int_eq(pthread_create(&thread, NULL, serve, NULL), 0);
	pushing_make(&pushing);
	pushing.config.ca_file = certificate.file;
	for (size_t i = 0; i < STREAMS; i++)
		ids[i] = pushing_put(
		    &pushing, NULL, "https://127.0.0.1:%u/\nX-Header: y\n\nhello", (unsigned)ntohs(address.sin_port));
	pushing_open(&pushing);
	for (size_t i = 0; i < STREAMS; i++)
		expect_finished(&pushing, ids[i]);
	ck_assert_int_eq(connections, 1);
	ck_assert_uint_eq(pushing_stats(&pushing).connections, 1);
	ck_assert_uint_eq(pushing_stats(&pushing).requests, STREAMS);
	pushing_end(&pushing);
	(void)shutdown(listening, SHUT_RDWR);
	ck_assert_int_eq(pthread_join(thread, NULL), 0);
	(void)close(listening);
	certificate_free(&certificate);
}
END_TEST

TEST_MAIN("callback/h2", requests_share_a_connection_where_the_server_has_http_2)
