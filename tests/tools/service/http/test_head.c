/* The heads of requests among what a client sends: where they begin and end, and what no head has, however it is cut. */
/* tier: quick */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/suite.h"
#include "tools/service/http/head.h"

#define GET "GET / HTTP/1.1\r\nHost: a\r\n"
#define POST "POST / HTTP/1.1\r\nHost: a\r\n"

/* How many bytes may go on, if they come in pieces of this size. */
static size_t read_in(const char *bytes, size_t size, size_t piece, struct request_head *head)
{
	size_t passed = 0;

	*head = (struct request_head){0};
	for (size_t at = 0; at < size; at += piece) {
		/* A copy of its own, so that reading beyond it is found. */
		size_t part = size - at < piece ? size - at : piece;
		char *copy = malloc(part);
		ck_assert_ptr_nonnull(copy);
		memcpy(copy, bytes + at, part);
		passed += head_read(head, copy, part);
		free(copy);
	}
	return passed;
}

static void stops(const char *bytes, size_t size, size_t where)
{
	struct request_head head;

	for (size_t piece = 1; piece <= size; piece++) {
		ck_assert_uint_eq(read_in(bytes, size, piece, &head), where);
		ck_assert_int_eq(head.state, where < size ? HEAD_WRONG : head.state);
	}
}

static void ends(const char *text, enum head_state state)
{
	struct request_head head;

	for (size_t piece = 1; piece <= strlen(text); piece++) {
		ck_assert_uint_eq(read_in(text, strlen(text), piece, &head), strlen(text));
		ck_assert_int_eq(head.state, state);
	}
}

#define STOPS(before, after) stops(before after, sizeof before after - 1, sizeof before - 1)

START_TEST(what_no_head_has_goes_no_further)
{
	STOPS(GET, ": x\r\n\r\n");
	STOPS(GET, ":\r\nContent-Length: 3\r\n\r\nabc");
	STOPS(GET, " folded: x\r\n\r\n");
	STOPS(GET "X: a\r\n", "\tb\r\n\r\n");
	STOPS(GET "X: a\n", ": b\n\n");
	STOPS(GET "X: a", "\0b\r\n\r\n");
	STOPS(GET "X", "\0: b\r\n\r\n");
	STOPS("GET /", "\0 HTTP/1.1\r\n\r\n");
	STOPS("", "\0GET / HTTP/1.1\r\n\r\n");
	STOPS(GET "X: a\r", "b\r\n\r\n");
	STOPS(GET "X: a\r", "\r\n\r\n");
	STOPS(GET "\r", ": b\r\n\r\n");
}
END_TEST

START_TEST(what_goes_on_in_its_place_ends_no_head)
{
	struct request_head head;

	(void)read_in(GET ": x\r\n", strlen(GET ": x\r\n"), 7, &head);
	ck_assert_str_eq(head_refusal(&head), "\1 /\r\n\r\n");
	(void)read_in(GET "X: a\0", sizeof(GET "X: a\0") - 1, 7, &head);
	ck_assert_str_eq(head_refusal(&head), "\r\n\1 /\r\n\r\n");
}
END_TEST

START_TEST(a_head_follows_another_or_a_body)
{
	STOPS(GET "\r\n" GET, ": x\r\n\r\n");
	STOPS(GET "\n\r\n\n" GET, ": x\r\n\r\n");
	STOPS(POST "Content-Length: 5\r\n\r\n\n: \0\r" GET, ": x\r\n\r\n");
	STOPS(POST "content-length:\t 05 \r\n\r\n\0\0\0\0\0" GET, "\0\r\n\r\n");
	STOPS(POST "Content-Length: 0\r\n\r\n" GET, ":\r\n");
	STOPS(POST "Content-Length: 2\n\n::" POST "Content-Length: 3\r\n\r\n:::" GET, ":\r\n");
	/* This is no length. */
	STOPS(POST "X-Content-Length: 5\r\n\r\n", "\0....");
	/* The last one counts: libmicrohttpd is asked for several, and refuses the request. */
	ends(POST "Content-Length: 1\r\nContent-Length: 7\r\n\r\n:::::::", HEAD_INSIDE);
}
END_TEST

START_TEST(a_length_may_be_too_large)
{
	ends(POST "Content-Length: 18446744073709551615\r\n\r\n\n:", HEAD_BODY);
	ends(POST "Content-Length: 18446744073709551616\r\n\r\n\n:", HEAD_BODY);
}
END_TEST

/* libmicrohttpd would read a number that is not kept here. */
#define BLANKS "                                                "

START_TEST(a_length_stands_where_it_is_kept)
{
	ends(POST "Content-Length:" BLANKS "\r\n\r\n", HEAD_INSIDE);
	STOPS(POST "Content-Length:" BLANKS "    3\r\n", "\r\nabc");
	STOPS(POST "Content-Length: 99999999999999999999999999999999999999999999999999999999\r\n", "\r\n\n:");
}
END_TEST

START_TEST(nothing_is_looked_for_behind_chunks)
{
	ends(POST "Transfer-Encoding: chunked\r\n\r\n1\r\n:\r\n0\r\n\r\n", HEAD_REST);
	ends(POST "Content-Length: 3\r\ntransfer-encoding: x\r\n\r\n\n: x", HEAD_REST);
}
END_TEST

START_TEST(lines_may_be_long)
{
	enum { LONG = 100000 };
	char *text = malloc(LONG + 200);
	int length;

	ck_assert_ptr_nonnull(text);
	length = snprintf(
	    text, LONG + 200, "GET /%0*d HTTP/1.1\r\nX: %0*d\r\nContent-Length: 1\r\n\r\n::", LONG / 2, 0, LONG / 2, 0);
	for (size_t piece = 1; piece < 200; piece += 33) {
		struct request_head head;
		/* What follows is a line that says what is asked. */
		ck_assert_uint_eq(read_in(text, (size_t)length, piece, &head), (size_t)length);
		ck_assert_int_eq(head.state, HEAD_INSIDE);
	}
	free(text);
}
END_TEST

TEST_MAIN("service/head", what_no_head_has_goes_no_further, what_goes_on_in_its_place_ends_no_head,
    a_head_follows_another_or_a_body, a_length_may_be_too_large, a_length_stands_where_it_is_kept,
    nothing_is_looked_for_behind_chunks, lines_may_be_long)
