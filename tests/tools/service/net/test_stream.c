/* A client's socket in a loop: what it sends, what it leaves unread, how it goes, and the same with TLS. */
/* tier: quick, forks */
#include "tools/service/net/stream.h"

#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tests/support/suite.h"
#include "tests/tools/common/tls/credentials.h"

enum { MUCH = 3 << 20 };

static uv_loop_t loop;
static struct stream stream;
static int client = -1;
static int came; /* events since the last look */
static int is_gone;
static struct shakes shakes;
static int turns; /* that handshakes asked for */

static void on_event(struct stream *of, int events)
{
	ck_assert_ptr_eq(of, &stream);
	ck_assert_ptr_eq(of->owner, &loop);
	came |= events;
}

static void on_gone(struct stream *of)
{
	ck_assert_ptr_eq(of, &stream);
	is_gone = 1;
}

static void want_turn(void *context)
{
	(void)context;
	turns++;
}

static void begin(int ours, int theirs)
{
	client = theirs;
	signal(SIGPIPE, SIG_IGN);
	ck_assert_int_eq(uv_loop_init(&loop), 0);
	ck_assert_int_eq(stream_open(&stream, &loop, ours, on_event, &loop), 0);
	stream_wait(&stream, UV_READABLE);
}

static void begin_pair(void)
{
	int ends[2];

	ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
	begin(ends[0], ends[1]);
}

static void finish(void)
{
	if (stream.fd >= 0)
		stream_close(&stream, on_gone);
	(void)uv_run(&loop, UV_RUN_DEFAULT);
	ck_assert(is_gone);
	ck_assert_int_eq(uv_loop_close(&loop), 0);
	ck_assert_uint_eq(buffer_all(), 0);
	if (client >= 0)
		close(client);
}

static int next_event(void)
{
	came = 0;
	(void)uv_run(&loop, UV_RUN_ONCE);
	return came;
}

/* Nothing that it waits for has happened. */
static int is_quiet(void)
{
	came = 0;
	(void)uv_run(&loop, UV_RUN_NOWAIT);
	return came == 0;
}

static void client_says(const char *text)
{
	ck_assert_int_eq(write(client, text, strlen(text)), (ssize_t)strlen(text));
}

static void stream_says(const char *bytes, size_t size)
{
	ck_assert_int_eq(buffer_append(&stream.out, bytes, size), 0);
}

START_TEST(it_reads_what_comes_and_sees_the_end)
{
	char bytes[8];

	begin_pair();
	ck_assert(is_quiet());
	ck_assert_int_eq(stream_read(&stream, bytes, sizeof bytes), 0);
	client_says("0123456789");
	ck_assert_int_eq(next_event(), UV_READABLE);
	ck_assert_int_eq(stream_read(&stream, bytes, sizeof bytes), 8);
	ck_assert_uint_eq(stream.taken, 8);
	ck_assert(stream.is_full);
	ck_assert_int_eq(stream_read(&stream, bytes, sizeof bytes), 2);
	ck_assert(!stream.is_full);
	ck_assert_int_eq(memcmp(bytes, "89", 2), 0);
	ck_assert_int_eq(shutdown(client, SHUT_WR), 0);
	ck_assert_int_eq(next_event(), UV_READABLE);
	ck_assert_int_eq(stream_read(&stream, bytes, sizeof bytes), STREAM_SHUT);
	/* It still gets its answer. */
	stream_wait(&stream, 0);
	ck_assert(is_quiet());
	stream_says("yes", 3);
	ck_assert_int_eq(stream_send(&stream), 3);
	ck_assert_int_eq(read(client, bytes, sizeof bytes), 3);
	finish();
}
END_TEST

START_TEST(it_sends_in_pieces_what_the_client_takes)
{
	static char expected[MUCH], got[MUCH];
	const int room = 1 << 20;
	size_t sent = 0, read_of_it = 0;

	begin_pair();
	(void)setsockopt(stream.fd, SOL_SOCKET, SO_SNDBUF, &room, sizeof room);
	for (size_t i = 0; i < sizeof expected; i++)
		expected[i] = (char)(i * 7 + i / 251);
	stream_says(expected, sizeof expected);
	while (stream_is_unsent(&stream)) {
		ssize_t size = stream_send(&stream);
		ck_assert_int_ge(size, 0);
		ck_assert_int_le(size, STREAM_SEND_MOST);
		sent += (size_t)size;
		ck_assert_uint_eq(stream_unsent(&stream), sizeof expected - sent);
		if (size > 0)
			continue;
		/* Its client has to read first. */
		stream_wait(&stream, UV_WRITABLE);
		ck_assert(is_quiet());
		while (read_of_it < sent)
			read_of_it += (size_t)read(client, got + read_of_it, sizeof got - read_of_it);
		ck_assert_int_eq(next_event(), UV_WRITABLE);
	}
	ck_assert_uint_eq(sent, sizeof expected);
	while (read_of_it < sent)
		read_of_it += (size_t)read(client, got + read_of_it, sizeof got - read_of_it);
	ck_assert_int_eq(memcmp(got, expected, sizeof got), 0);
	stream_says(expected, 1);
	close(client);
	client = -1;
	ck_assert_int_eq(stream_send(&stream), -1);
	finish();
}
END_TEST

/* A client that leaves answers unread resets its connection; what it said before is still carried out. */
START_TEST(what_came_before_a_reset_is_read)
{
	struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	const struct linger at_once = {.l_onoff = 1};
	socklen_t size = sizeof address;
	int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	char bytes[8];

	ck_assert_int_eq(bind(listener, (struct sockaddr *)&address, sizeof address), 0);
	ck_assert_int_eq(listen(listener, 1), 0);
	ck_assert_int_eq(getsockname(listener, (struct sockaddr *)&address, &size), 0);
	ck_assert_int_eq(connect(fd, (struct sockaddr *)&address, sizeof address), 0);
	begin(accept(listener, NULL, NULL), fd);
	client_says("last");
	ck_assert_int_eq(next_event(), UV_READABLE);
	ck_assert_int_eq(setsockopt(client, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once), 0);
	close(client);
	client = -1;
	ck_assert_int_eq(next_event(), UV_READABLE);
	ck_assert_int_eq(stream_read(&stream, bytes, sizeof bytes), 4);
	ck_assert_int_eq(next_event(), UV_READABLE);
	ck_assert_int_eq(stream_read(&stream, bytes, sizeof bytes), STREAM_LOST);
	close(listener);
	finish();
}
END_TEST

/* ---- TLS */

static struct credential own = {.name = "own", .for_hosts = "DNS:here.example", .from = -1, .until = 1};
static struct certificate certificate;
static struct tls_files files;
static struct tls *trusting;
static struct tls_link *far_end;
static char folder[] = "/tmp/weekwheel-stream-XXXXXX";

static void begin_tls(void)
{
	char reason[TLS_REASON];

	ck_assert_ptr_nonnull(mkdtemp(folder));
	credential_make(&own, folder);
	files = (struct tls_files){.certificate = own.path, .key = own.key};
	certificate_start(&certificate, &files, certificate_read(&files));
	ck_assert_ptr_nonnull(certificate.now);
	trusting = tls_client(&(struct tls_files){.trusted = own.path}, reason);
	far_end = tls_open(trusting, "here.example");
	begin_pair();
	shakes_begin(&shakes, want_turn, NULL);
	ck_assert_int_eq(stream_secure(&stream, &certificate, &shakes), 0);
}

static void finish_tls(void)
{
	finish();
	tls_close(far_end);
	tls_free(trusting);
	certificate_stop(&certificate);
	credential_free(&own);
	ck_assert_int_eq(rmdir(folder), 0);
}

/* What the far end has to say goes to the stream's socket. */
static void far_end_sends(void)
{
	char bytes[4096];
	size_t size;

	while ((size = tls_drain(far_end, bytes, sizeof bytes)) > 0)
		ck_assert_int_eq(write(client, bytes, size), (ssize_t)size);
}

/* What is there for the far end. */
static void far_end_takes(void)
{
	struct pollfd one = {client, POLLIN, 0};
	char bytes[4096];

	while (poll(&one, 1, 0) == 1) {
		ssize_t got = read(client, bytes, sizeof bytes);
		if (got <= 0)
			return;
		ck_assert_int_eq(tls_feed(far_end, bytes, (size_t)got), TLS_OK);
	}
}

static void shake_hands(void)
{
	char bytes[8];

	while (!tls_is_ready(stream.tls)) {
		(void)tls_shake(far_end);
		far_end_sends();
		ck_assert_int_eq(next_event(), UV_READABLE);
		ck_assert_int_eq(stream_read(&stream, bytes, sizeof bytes), 0);
		/* Until its turn, it is not read, though it wants to be. */
		ck_assert_int_eq(stream.events, UV_READABLE * !stream.shake.is_waiting);
		if (stream.shake.is_waiting) {
			stream_wait(&stream, UV_READABLE);
			ck_assert_int_eq(stream.events, 0);
			came = 0;
			shake_turn(&shakes);
			ck_assert_int_eq(came, UV_READABLE);
			ck_assert_int_eq(stream_read(&stream, bytes, sizeof bytes), 0);
			stream_wait(&stream, UV_READABLE);
		}
		ck_assert_int_ge(stream_send(&stream), 0);
		far_end_takes();
	}
}

START_TEST(with_tls_it_is_the_same_in_clear)
{
	static char clear[100000], got[100000];
	size_t size = 0, all = 0;

	begin_tls();
	/* What is said before the end of the handshake waits for it. */
	stream_says("early", 5);
	ck_assert(!stream_is_unsent(&stream));
	shake_hands();
	ck_assert_int_gt(turns, 0);

	for (size_t i = 0; i < sizeof clear; i++)
		clear[i] = (char)(i * 5 + i / 255);
	ck_assert_int_eq(tls_write(far_end, clear, sizeof clear), TLS_OK);
	far_end_sends();
	while (size < sizeof clear) {
		char piece[30000];
		ssize_t one;
		ck_assert_int_eq(next_event(), UV_READABLE);
		do {
			one = stream_read(&stream, piece, sizeof piece);
			ck_assert_int_ge(one, 0);
			all += stream.taken;
			memcpy(got + size, piece, (size_t)one);
			size += (size_t)one;
		} while (stream.is_fed);
		ck_assert_int_eq(stream.shake.is_waiting, 0);
	}
	ck_assert_uint_gt(all, size);
	ck_assert_int_eq(memcmp(got, clear, sizeof clear), 0);

	stream_says(clear, 50000);
	while (stream_is_unsent(&stream))
		ck_assert_int_ge(stream_send(&stream), 0);
	far_end_takes();
	for (size = 0; size < 50005;) {
		int one = tls_read(far_end, got + size, sizeof got - size);
		ck_assert_int_gt(one, 0);
		size += (size_t)one;
	}
	ck_assert_int_eq(memcmp(got, "early", 5), 0);
	ck_assert_int_eq(memcmp(got + 5, clear, 50000), 0);

	tls_end(far_end);
	far_end_sends();
	ck_assert_int_eq(next_event(), UV_READABLE);
	ck_assert_int_eq(stream_read(&stream, got, sizeof got), STREAM_ENDED);
	stream_close(&stream, on_gone);
	far_end_takes();
	ck_assert_int_eq(tls_read(far_end, got, sizeof got), TLS_ENDED);
	finish_tls();
}
END_TEST

START_TEST(what_is_no_tls_gets_an_alert)
{
	char bytes[64];

	begin_tls();
	/* A record of a handshake, by its head. */
	ck_assert_int_eq(write(client, "\x16\x03\x01\x00\x05hello", 10), 10);
	ck_assert_int_eq(next_event(), UV_READABLE);
	ck_assert_int_eq(stream_read(&stream, bytes, sizeof bytes), 0);
	shake_turn(&shakes);
	ck_assert_int_eq(stream_read(&stream, bytes, sizeof bytes), STREAM_BROKEN);
	ck_assert_int_gt(stream_send(&stream), 0);
	ck_assert_int_gt(read(client, bytes, sizeof bytes), 0);
	ck_assert_int_eq(bytes[0], 21);
	finish_tls();
}
END_TEST

/* A turn is not taken by a client that has gone. */
START_TEST(a_client_may_go_before_its_turn)
{
	char bytes[8];

	begin_tls();
	(void)tls_shake(far_end);
	far_end_sends();
	ck_assert_int_eq(next_event(), UV_READABLE);
	ck_assert_int_eq(stream_read(&stream, bytes, sizeof bytes), 0);
	ck_assert(stream.shake.is_waiting);
	stream_close(&stream, on_gone);
	came = 0;
	shake_turn(&shakes);
	ck_assert_int_eq(came, 0);
	finish_tls();
}
END_TEST

TEST_MAIN("service/stream", it_reads_what_comes_and_sees_the_end, it_sends_in_pieces_what_the_client_takes,
    what_came_before_a_reset_is_read, with_tls_it_is_the_same_in_clear, what_is_no_tls_gets_an_alert,
    a_client_may_go_before_its_turn)
