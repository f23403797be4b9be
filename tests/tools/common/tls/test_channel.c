/* Tests a client's connection: a socket that takes little, an end, and lines that come in pieces. */
/* tier: quick */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tests/support/suite.h"
#include "tools/common/tls/channel.h"

enum { SIZE = 3000000, LINE = 8 };

/* Make a connection, and return the server's end of it. */
static int open_pair(struct tls_channel *channel)
{
	int ends[2];

	ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
	ck_assert_int_eq(fcntl(ends[0], F_SETFL, O_NONBLOCK), 0);
	*channel = (struct tls_channel){.fd = ends[0]};
	return ends[1];
}

START_TEST(all_is_sent_and_read_in_order)
{
	struct tls_channel channel;
	int server = open_pair(&channel);
	char *sent = malloc(SIZE), *back = malloc(SIZE);
	size_t have = 0;

	for (size_t i = 0; i < SIZE; i++)
		sent[i] = (char)(i % 251);
	ck_assert_int_eq(buffer_append(&channel.out, sent, SIZE), 0);
	do {
		ck_assert_int_eq(channel_push(&channel), 0);
		ssize_t got = recv(server, back + have, SIZE - have, MSG_DONTWAIT);
		ck_assert_int_gt(got, 0);
		ck_assert_int_eq(write(server, back + have, (size_t)got), got);
		have += (size_t)got;
		while (channel.in.size < have)
			ck_assert_int_eq(channel_pull(&channel), 0);
	} while (have < SIZE);
	ck_assert(!channel_is_pending(&channel));
	ck_assert_mem_eq(back, sent, SIZE);
	ck_assert_mem_eq(channel.in.data, sent, SIZE);
	ck_assert_int_eq(channel_pull(&channel), 0);
	close(server);
	ck_assert_int_eq(channel_pull(&channel), -1);
	ck_assert_int_eq(errno, 0);
	channel_close(&channel);
	channel_close(&channel);
	free(sent);
	free(back);
}
END_TEST

START_TEST(lines_are_found)
{
	static const struct {
		const char *text;
		int length;
	} lines[] = {{"", 0}, {"A", 0}, {"A\r", 0}, {"A\r\n", 3}, {"\r\n", 2}, {"A\r\nBCDEFGHI", 3}, {"ABCDEF\r\n", 8},
	    {"ABCDEFG", 0}, {"ABCDEFGH", -1}, {"ABCDEFG\r\n", -1}, {"\n", -1}, {"A\n", -1}};

	for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
		struct tls_channel channel = {.fd = -1};

		ck_assert_int_eq(buffer_append(&channel.in, lines[i].text, strlen(lines[i].text)), 0);
		ck_assert_msg(channel_line(&channel, LINE) == lines[i].length, "%s", lines[i].text);
		channel_close(&channel);
	}
}
END_TEST

TEST_MAIN("common/channel", all_is_sent_and_read_in_order, lines_are_found)
