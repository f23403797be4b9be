/* A line: replies come in order without a wait, and what is wrong with a url or a server is said. */
/* tier: check, waits */
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "lib/base/time.h"
#include "lib/redis/link/line.h"
#include "lib/redis/link/url.h"
#include "tests/support/redis/fake_server.h"
#include "tests/support/redis/redis_server.h"
#include "weekwheel/error.h"

enum { COMMANDS = 20000 };

static char why[REDIS_LINE_WHY];

static int open_line(struct redis_line **line, const char *url, const char *user, const char *password)
{
	const struct redis_line_config config = {
	    .url = url, .user = user, .password = password, .reply_max = 1 << 20, .allocator = ww_allocator_default()};

	*line = NULL;
	return ww_redis_line_open(line, &config, time_now(CLOCK_MONOTONIC) + 60 * TIME_SECOND, why);
}

/* Wait until the next reply is there. */
static struct redisReply *next_reply(struct redis_line *line)
{
	struct redisReply *reply;
	int result;

	while ((result = ww_redis_line_reply(line, &reply)) == 0) {
		struct pollfd polled = {.fd = ww_redis_line_fd(line), .events = ww_redis_line_events(line)};

		ck_assert_int_gt(poll(&polled, 1, -1), 0);
		ck_assert_int_eq(ww_redis_line_move(line), WW_OK);
	}
	ck_assert_int_eq(result, 1);
	return reply;
}

START_TEST(replies_come_in_the_order_of_the_commands)
{
	static struct redis_server server;
	struct redis_line *line;
	char url[64], text[24];

	if (!redis_server_begin(&server, url, sizeof url))
		return;
	ck_assert_int_eq(open_line(&line, url, NULL, NULL), WW_OK);
	for (int i = 0; i < COMMANDS; i++) {
		(void)snprintf(text, sizeof text, "%d", i);
		ck_assert_int_eq(ww_redis_line_append(line, 2, (const char *[]){"ECHO", text}, NULL), WW_OK);
	}
	for (int i = 0; i < COMMANDS; i++) {
		struct redisReply *reply = next_reply(line);

		ck_assert_int_eq(ww_redis_line_judge(reply, NULL, 0), WW_OK);
		ck_assert_int_eq(atoi(reply->str), i);
		ww_redis_line_free(reply);
	}
	/* The server ends: the line tells. */
	redis_server_kill(&server);
	while (ww_redis_line_move(line) == WW_OK)
		(void)poll(&(struct pollfd){.fd = ww_redis_line_fd(line), .events = POLLIN}, 1, -1);
	ck_assert_uint_gt(strlen(ww_redis_line_why(line)), 0);
	ww_redis_line_close(line);
	redis_server_stop(&server);
}
END_TEST

START_TEST(user_and_password_may_come_from_elsewhere)
{
	static struct redis_server server;
	struct redis_line *line;
	struct redisReply *reply;
	char url[64], text[200];

	if (!redis_server_begin(&server, url, sizeof url))
		return;
	redis_server_tell(&server, "ACL SETUSER watcher on >secret +@connection");
	ck_assert_int_eq(open_line(&line, url, "watcher", "wrong"), WW_EDENIED);
	ck_assert_ptr_nonnull(strstr(why, "WRONGPASS"));
	ck_assert_int_eq(open_line(&line, url, "watcher", "secret"), WW_OK);
	ck_assert_int_eq(ww_redis_line_call(line, 2, (const char *[]){"EXISTS", "k"},
	                     time_now(CLOCK_MONOTONIC) + 60 * TIME_SECOND, &reply),
	    WW_OK);
	ck_assert_int_eq(ww_redis_line_judge(reply, text, sizeof text), WW_EDENIED);
	ck_assert_ptr_nonnull(strstr(text, "NOPERM"));
	ww_redis_line_free(reply);
	ww_redis_line_close(line);
	redis_server_stop(&server);
}
END_TEST

/* With a password, which a Sentinel of the same url does not get. */
START_TEST(another_server_than_the_first_can_be_meant)
{
	static struct redis_server server;
	struct redis_address address = {.host = "127.0.0.1"};
	struct redis_line_config config = {.url = "redis://u:p@127.0.0.1:1/99",
	    .address = &address,
	    .is_sentinel = 1,
	    .reply_max = 1 << 20,
	    .allocator = ww_allocator_default()};
	struct redis_line *line = NULL;
	char url[64];

	if (!redis_server_begin(&server, url, sizeof url))
		return;
	address.port = (unsigned)server.port;
	ck_assert_int_eq(ww_redis_line_open(&line, &config, time_now(CLOCK_MONOTONIC) + 60 * TIME_SECOND, why), WW_OK);
	ww_redis_line_close(line);
	config.is_sentinel = 0;
	ck_assert_int_eq(
	    ww_redis_line_open(&line, &config, time_now(CLOCK_MONOTONIC) + 60 * TIME_SECOND, why), WW_EDENIED);
	redis_server_stop(&server);
}
END_TEST

START_TEST(what_is_wrong_is_said)
{
	static struct redis_server server;
	struct redis_line *line;
	char url[64], wrong[80];

	if (!redis_server_begin(&server, url, sizeof url))
		return;
	(void)snprintf(wrong, sizeof wrong, "redis://127.0.0.1:%d/99", server.port);
	ck_assert_int_eq(open_line(&line, wrong, NULL, NULL), WW_EINVAL);
	ck_assert_ptr_nonnull(strstr(why, "DB index"));
	redis_server_kill(&server);
	ck_assert_int_eq(open_line(&line, url, NULL, NULL), WW_EIO);
	redis_server_stop(&server);
}
END_TEST

START_TEST(another_server_is_no_redis)
{
	static struct fake_server fake;
	const struct fake_rule rules[] = {{"", 0, FAKE_ANSWER, "HTTP/1.1 400 Bad Request\r\n\r\n", 0}, {0}};
	struct redis_line *line;
	char url[64];

	fake_server_start(&fake, rules);
	fake_server_url(&fake, url, sizeof url);
	ck_assert_int_eq(open_line(&line, url, NULL, NULL), WW_ECORRUPT);
	fake_server_stop(&fake);
}
END_TEST

/* Ask, and wait until there is a reply behind which nothing, or a part of another, has come. */
static void ask(struct redis_line *line, const char *word, const char *answer)
{
	struct redisReply *reply;

	ck_assert_int_eq(ww_redis_line_append(line, 1, &word, NULL), WW_OK);
	reply = next_reply(line);
	ck_assert_str_eq(reply->str, answer);
	ww_redis_line_free(reply);
	ck_assert_int_eq(ww_redis_line_reply(line, &reply), 0);
}

START_TEST(a_part_of_a_reply_is_told_from_none)
{
	static struct fake_server fake;
	const struct fake_rule rules[] = {{"WHOLE", 0, FAKE_ANSWER, "+whole\r\n", 0},
	    {"BEGINS", 0, FAKE_ANSWER, "+begins\r\n*2\r\n$1\r\na\r\n", 0}, {"ENDS", 0, FAKE_ANSWER, "$1\r\nb\r\n", 0},
	    {0}};
	struct redis_line *line;
	struct redisReply *reply;
	char url[64];

	fake_server_start(&fake, rules);
	fake_server_url(&fake, url, sizeof url);
	ck_assert_int_eq(open_line(&line, url, NULL, NULL), WW_OK);
	for (int round = 0; round < 100; round++) {
		ask(line, "WHOLE", "whole");
		ck_assert_int_eq(ww_redis_line_is_amid(line), 0);
		ask(line, "BEGINS", "begins");
		ck_assert_int_eq(ww_redis_line_is_amid(line), 1);
		ck_assert_int_eq(ww_redis_line_append(line, 1, (const char *[]){"ENDS"}, NULL), WW_OK);
		ww_redis_line_free(next_reply(line));
		ck_assert_int_eq(ww_redis_line_reply(line, &reply), 0);
		ck_assert_int_eq(ww_redis_line_is_amid(line), 0);
	}
	ww_redis_line_close(line);
	fake_server_stop(&fake);
}
END_TEST

/* Others have a turn after 256 KB, and all that was received were whole replies: more may be there. */
START_TEST(what_was_not_received_counts_as_a_part)
{
	static struct fake_server fake;
	static char answers[1 << 16];
	const struct fake_rule rules[] = {{"MUCH", 0, FAKE_ENDLESS, answers, sizeof answers}, {0}};
	const int room = 1 << 20;
	struct redis_line *line;
	struct redisReply *reply;
	char url[64];

	for (size_t i = 0; i < sizeof answers; i += 4)
		memcpy(answers + i, ":1\r\n", 4);
	fake_server_start(&fake, rules);
	fake_server_url(&fake, url, sizeof url);
	ck_assert_int_eq(open_line(&line, url, NULL, NULL), WW_OK);
	ck_assert_int_eq(setsockopt(ww_redis_line_fd(line), SOL_SOCKET, SO_RCVBUF, &room, sizeof room), 0);
	ck_assert_int_eq(ww_redis_line_append(line, 1, (const char *[]){"MUCH"}, NULL), WW_OK);
	for (int looks = 0; !ww_redis_line_is_amid(line); looks++) {
		ck_assert_int_lt(looks, 20000);
		(void)usleep(1000);
		ck_assert_int_eq(ww_redis_line_move(line), WW_OK);
		while (ww_redis_line_reply(line, &reply) == 1)
			ww_redis_line_free(reply);
	}
	ww_redis_line_close(line);
	fake_server_stop(&fake);
}
END_TEST

TEST_MAIN("redis/line", replies_come_in_the_order_of_the_commands, user_and_password_may_come_from_elsewhere,
    another_server_than_the_first_can_be_meant, what_is_wrong_is_said, another_server_is_no_redis,
    a_part_of_a_reply_is_told_from_none, what_was_not_received_counts_as_a_part)
