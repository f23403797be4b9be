/* The program's own recv: what a visitor sends is looked at, and a refusal stands for a head that is wrong, in any room. */
/* tier: quick */
#include <errno.h>
#include <netinet/in.h>
#include <pthread.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tests/support/suite.h"
#include "tools/service/http/recv.h"
#include "tools/service/http/visitors.h"

#define GET "GET / HTTP/1.1\r\nHost: a\r\n"
#define REFUSED "\1 /\r\n\r\n"

static struct visitors visitors;
static int pair[2];

static void begin(const char *bytes, size_t size)
{
	struct sockaddr_in from = {.sin_family = AF_INET};

	visitors_begin(&visitors, 8);
	ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, pair), 0);
	ck_assert_int_eq(visitors_enter(&visitors, pair[0], (struct sockaddr *)&from, 0), 0);
	ck_assert_int_eq(send(pair[1], bytes, size, 0), (ssize_t)size);
	recv_look_at(&visitors);
}

static void finish(void)
{
	recv_look_at(NULL);
	visitors_leave(&visitors, pair[0]);
	visitors_end(&visitors);
	close(pair[0]);
	close(pair[1]);
}

/* Receive all that there is, so much at a time. */
static void gets(size_t room, const char *expected, size_t size)
{
	char bytes[1024];
	size_t at = 0;
	ssize_t got;

	while ((got = recv(pair[0], bytes + at, room, 0)) > 0 || (got < 0 && at < size))
		at += got > 0 ? (size_t)got : 0;
	ck_assert_int_eq(got, -1);
	ck_assert_int_eq(errno, EAGAIN);
	ck_assert_uint_eq(at, size);
	ck_assert_mem_eq(bytes, expected, size);
}

START_TEST(a_refusal_comes_in_any_room)
{
	static const char wrong[] = GET ": x\r\n\r\nPOST / HTTP/1.1\r\n\r\n", inside[] = GET "X: \0y\r\n\r\n";

	for (size_t room = 1; room < sizeof wrong + 16; room++) {
		begin(wrong, sizeof wrong - 1);
		gets(room, GET REFUSED, strlen(GET REFUSED));
		finish();
		begin(inside, sizeof inside - 1);
		gets(room, GET "X: \r\n" REFUSED, strlen(GET "X: \r\n" REFUSED));
		finish();
	}
}
END_TEST

START_TEST(heads_are_counted)
{
	char byte;

	begin(GET "\r\n" GET "\r\n" GET, 3 * strlen(GET) + 4);
	ck_assert_int_eq(recv(pair[0], &byte, 1, MSG_PEEK), 1);
	gets(7, GET "\r\n" GET "\r\n" GET, 3 * strlen(GET) + 4);
	ck_assert_int_eq(head_take(&visitors_find(&visitors, pair[0])->head), 1);
	ck_assert_int_eq(head_take(&visitors_find(&visitors, pair[0])->head), 1);
	ck_assert_int_eq(head_take(&visitors_find(&visitors, pair[0])->head), 0);
	finish();
}
END_TEST

/* Return how many edges there are now. */
static int edges(int poll)
{
	struct epoll_event event;

	return epoll_wait(poll, &event, 1, 0);
}

/* As libmicrohttpd waits for it. */
START_TEST(an_end_has_an_edge_of_its_own)
{
	struct epoll_event event = {.events = EPOLLIN | EPOLLOUT | EPOLLET};
	int poll = epoll_create1(EPOLL_CLOEXEC);
	char bytes[64];

	begin(GET "\r\n", strlen(GET) + 2);
	ck_assert_int_eq(epoll_ctl(poll, EPOLL_CTL_ADD, pair[0], &event), 0);
	ck_assert_int_eq(edges(poll), 1);
	ck_assert_int_eq(recv(pair[0], bytes, sizeof bytes, 0), (ssize_t)strlen(GET) + 2);
	ck_assert_int_eq(edges(poll), 0);
	ck_assert_int_eq(send(pair[1], GET, strlen(GET), 0), (ssize_t)strlen(GET));
	ck_assert_int_eq(shutdown(pair[1], SHUT_WR), 0);
	ck_assert_int_eq(edges(poll), 1);
	ck_assert_int_eq(recv(pair[0], bytes, sizeof bytes, 0), (ssize_t)strlen(GET));
	ck_assert_int_eq(edges(poll), 1);
	ck_assert_int_eq(recv(pair[0], bytes, sizeof bytes, 0), 0);
	/* It can still be answered. */
	ck_assert_int_eq(send(pair[0], "a", 1, MSG_NOSIGNAL), 1);
	close(poll);
	finish();
}
END_TEST

static void *receive(void *bytes)
{
	return recv(pair[0], bytes, 64, 0) == strlen(GET ": x") ? bytes : NULL;
}

START_TEST(others_are_not_looked_at)
{
	char bytes[64] = "";
	pthread_t thread;
	void *got;

	begin(GET ": x", strlen(GET ": x"));
	ck_assert_int_eq(pthread_create(&thread, NULL, receive, bytes), 0);
	ck_assert_int_eq(pthread_join(thread, &got), 0);
	ck_assert_str_eq(got, GET ": x");
	ck_assert_int_eq(send(pair[0], ": x", 3, 0), 3);
	ck_assert_int_eq(recv(pair[1], bytes, sizeof bytes, 0), 3);
	recv_look_at(NULL);
	ck_assert_int_eq(send(pair[1], ": x", 3, 0), 3);
	ck_assert_int_eq(recv(pair[0], bytes, sizeof bytes, 0), 3);
	finish();
}
END_TEST

TEST_MAIN("service/recv", a_refusal_comes_in_any_room, heads_are_counted, an_end_has_an_edge_of_its_own,
    others_are_not_looked_at)
