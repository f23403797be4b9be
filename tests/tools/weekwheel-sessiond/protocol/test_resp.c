/* Tests the parser of weekwheel-sessiond: what bytes mean, what is refused, and that it splits at every byte. */
/* tier: quick */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/seed.h"
#include "tests/support/suite.h"
#include "tests/tools/weekwheel-sessiond/protocol/resp_transcript.h"
#include "tools/weekwheel-sessiond/protocol/resp.h"

enum { BULK_MAX = 1000000 };

static void says_of(const char *bytes, size_t size, int is_stranger, const char *expected)
{
	char *text = resp_transcript(bytes, size, BULK_MAX, is_stranger, resp_whole_piece, NULL);

	ck_assert_str_eq(text, expected);
	free(text);
}

#define SAYS(bytes, expected) says_of(bytes, sizeof bytes - 1, 0, expected)

START_TEST(arrays_are_commands)
{
	SAYS("*2\r\n$3\r\nGET\r\n$1\r\na\r\n*1\r\n$4\r\nPING\r\n", "[GET][a]\n[PING]\n+ 0\n");
	SAYS("*2\r\n$0\r\n\r\n$4\r\n\r\n\0\xff\r\n", "[][%0d%0a%00%ff]\n+ 0\n");
	SAYS("*0\r\n*-1\r\n*1\r\n$1\r\nx\r\n", "\n\n[x]\n+ 0\n");
	SAYS("*2\r\n$3\r\nGET\r\n$1\r\n", "+ 17\n");
	/* As in Redis, nobody looks at what ends an argument. */
	SAYS("*1\r\n$1\r\nxyz*1\r\n$1\r\ny\r\n", "[x]\n[y]\n+ 0\n");
}
END_TEST

START_TEST(lines_are_commands)
{
	SAYS("GET a\r\n  SET  a  b \nPING\n", "[GET][a]\n[SET][a][b]\n[PING]\n+ 0\n");
	SAYS("\r\n\nx\n", "\n\n[x]\n+ 0\n");
	SAYS("a\"b c\\x41\\n\\q\" 'd\\'\\n' ''\n", "[ab%20cA%0aq][d%27%5cn][]\n+ 0\n");
	SAYS("GET \fa\vb\f 'c'\vd\r\n", "[GET][a%0bb%0c][c][d]\n+ 0\n");
	SAYS("GET \"a\n", "Protocol error: unbalanced quotes in request\n+ 0\n");
	SAYS("GET \"a\"b\n", "Protocol error: unbalanced quotes in request\n+ 0\n");
	SAYS("GET 'a\n", "Protocol error: unbalanced quotes in request\n+ 0\n");
}
END_TEST

START_TEST(what_is_wrong_is_refused)
{
	SAYS("*x\r\n", "Protocol error: invalid multibulk length\n+ 0\n");
	SAYS("*1048577\r\n", "Protocol error: invalid multibulk length\n+ 0\n");
	SAYS("*1\r\n+PING\r\n", "Protocol error: expected '$', got '+'\n+ 0\n");
	SAYS("*1\r\n$-1\r\n", "Protocol error: invalid bulk length\n+ 0\n");
	SAYS("*1\r\n$1000001\r\n", "Protocol error: invalid bulk length\n+ 0\n");
	SAYS("*1\r\n$99999999999999999999\r\n", "Protocol error: invalid bulk length\n+ 0\n");
	says_of("*11\r\n", 5, 1, "Protocol error: unauthenticated multibulk length\n+ 0\n");
	says_of("*1\r\n$16385\r\n", 12, 1, "Protocol error: unauthenticated bulk length\n+ 0\n");
}
END_TEST

START_TEST(what_never_ends_is_refused)
{
	static const struct {
		const char *begin;
		const char *expected;
	} endless[] = {{"", "Protocol error: too big inline request\n+ 0\n"},
	    {"*", "Protocol error: too big mbulk count string\n+ 0\n"},
	    {"*1\r\n$", "Protocol error: too big bulk count string\n+ 0\n"}};
	static char bytes[70000];

	for (size_t i = 0; i < sizeof endless / sizeof *endless; i++) {
		memset(bytes, '1', sizeof bytes);
		memcpy(bytes, endless[i].begin, strlen(endless[i].begin));
		says_of(bytes, sizeof bytes, 0, endless[i].expected);
		says_of(bytes, 60000, 0, "+ 60000\n");
	}
}
END_TEST

/* Announced arguments and bytes take no memory before they come. */
START_TEST(announcements_cost_nothing)
{
	struct resp_parser parser = {.bulk_max = BULK_MAX};

	ck_assert_int_eq(resp_parse(&parser, "*1048576\r\n$1000000\r\n", 20), RESP_MORE);
	ck_assert_uint_eq(resp_takes(&parser), 0);
	ck_assert_uint_eq(parser.needed, 20 + 1000000 + 2);
	resp_free(&parser);
}
END_TEST

/* What one long command has needed does not stay with each client. */
START_TEST(long_commands_leave_no_memory)
{
	struct resp_parser parser = {.bulk_max = BULK_MAX};
	static char bytes[60000];
	size_t size = (size_t)snprintf(bytes, sizeof bytes, "*5000\r\n");

	for (int i = 0; i < 5000; i++, size += 6)
		memcpy(bytes + size, "$0\r\n\r\n", 6);
	ck_assert_int_eq(resp_parse(&parser, bytes, size), RESP_COMMAND);
	ck_assert_uint_gt(resp_takes(&parser), 5000 * sizeof *parser.arg);
	ck_assert_int_eq(resp_parse(&parser, bytes, 0), RESP_MORE);
	ck_assert_uint_lt(resp_takes(&parser), 5000);
	memset(bytes, 'x', sizeof bytes - 1);
	bytes[sizeof bytes - 1] = '\n';
	ck_assert_int_eq(resp_parse(&parser, bytes, sizeof bytes), RESP_COMMAND);
	ck_assert_uint_gt(resp_takes(&parser), sizeof bytes);
	ck_assert_int_eq(resp_parse(&parser, "PING\n", 5), RESP_COMMAND);
	ck_assert_uint_lt(resp_takes(&parser), 5000);
	resp_free(&parser);
}
END_TEST

static size_t random_piece(size_t at, size_t size, void *context)
{
	size_t wanted = 1 + (size_t)seed_below(context, 9);

	return wanted < size - at ? wanted : size - at;
}

static size_t one_byte(size_t at, size_t size, void *context)
{
	(void)at;
	(void)size;
	(void)context;
	return 1;
}

/* Bytes of which many are commands. */
static size_t fill(char *bytes, size_t room, uint64_t *random)
{
	static const char *const parts[] = {"*1\r\n$4\r\nPING\r\n", "*2\r\n", "$3\r\nGET\r\n", "$0\r\n\r\n",
	    "GET a\r\n", "\n", "SET \"a\\x4", "1\" 'b'\n", "*0\r\n", "*-1\r\n", "$", "\r", "x",
	    "*3\r\n$1\r\na\r\n$2\r\nbc\r\n$1\r\nd\r\n"};
	size_t size = 0;

	for (;;) {
		const char *part = parts[seed_below(random, sizeof parts / sizeof *parts)];
		if (size + strlen(part) > room || seed_below(random, 30) == 0)
			return size;
		memcpy(bytes + size, part, strlen(part));
		size += strlen(part);
	}
}

START_TEST(the_same_commands_come_in_any_pieces)
{
	uint64_t random = seed_of_run("resp");

	for (int i = 0; i < 20000; i++) {
		char bytes[400];
		size_t size = fill(bytes, sizeof bytes, &random);
		char *whole = resp_transcript(bytes, size, BULK_MAX, 0, resp_whole_piece, NULL);
		char *pieces = resp_transcript(bytes, size, BULK_MAX, 0, i % 2 ? random_piece : one_byte, &random);
		ck_assert_msg(
		    strcmp(whole, pieces) == 0, "%.*s\nwhole: %s\nin pieces: %s", (int)size, bytes, whole, pieces);
		free(whole);
		free(pieces);
	}
}
END_TEST

TEST_MAIN("sessiond/resp", arrays_are_commands, lines_are_commands, what_is_wrong_is_refused,
    what_never_ends_is_refused, announcements_cost_nothing, long_commands_leave_no_memory,
    the_same_commands_come_in_any_pieces)
