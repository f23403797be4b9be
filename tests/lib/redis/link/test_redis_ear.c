/* Ears: they hear published messages in order. A lost ear reports it, and the next one hears on. */
/* tier: check, waits, threads, no-valgrind */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/lib/redis/fixture.h"
#include "tests/support/redis/fake_server.h"
#include "tests/support/redis/redis_server.h"
#include "weekwheel/error.h"

static struct link_rig rig;
static struct redis_server server;
static struct redis_ear *ear;

enum { HEARD_MAX = 64, FOREVER = 60 };

struct heard {
	int count;
	char messages[HEARD_MAX][32];
};

static void hear(const char *message, size_t length, void *context)
{
	struct heard *heard = context;

	ck_assert_uint_eq(strlen(message), length);
	if (heard->count < HEARD_MAX)
		(void)snprintf(heard->messages[heard->count], sizeof heard->messages[0], "%s", message);
	heard->count++;
}

static int open_both(void)
{
	char url[64];

	if (!redis_server_is_there())
		return 0;
	redis_server_start(&server, NULL);
	redis_server_url(&server, url, sizeof url);
	link_rig_open(&rig, url);
	OK(ww_redis_ear_open(&ear, rig.link, "channel"));
	return 1;
}

static void close_both(void)
{
	ww_redis_ear_close(ear);
	link_rig_close(&rig);
	redis_server_stop(&server);
}

/* Hear so many messages. */
static void hear_all(struct heard *heard, int count)
{
	*heard = (struct heard){.count = 0};
	while (heard->count < count) {
		int before = heard->count;
		int result = ww_redis_ear_wait(ear, -1, FOREVER * SECOND, hear, heard);
		ck_assert_int_gt(result, 0);
		ck_assert_int_eq(result, heard->count - before);
	}
}

START_TEST(messages_are_heard_in_order)
{
	struct heard heard;
	char message[32];

	if (!open_both())
		return;
	for (int i = 0; i < 50; i++) {
		(void)snprintf(message, sizeof message, "%d", i);
		OK(call_words(&rig, "PUBLISH", "channel", message, NULL));
		OK(call_words(&rig, "PUBLISH", "another", message, NULL));
	}
	hear_all(&heard, 50);
	for (int i = 0; i < 50; i++) {
		(void)snprintf(message, sizeof message, "%d", i);
		ck_assert_str_eq(heard.messages[i], message);
	}
	ck_assert_int_eq(ww_redis_ear_wait(ear, -1, 0, hear, &heard), 0);
	close_both();
}
END_TEST

START_TEST(a_wait_ends_by_a_descriptor_and_by_time)
{
	struct heard heard = {.count = 0};
	int fds[2];

	if (!open_both())
		return;
	ck_assert_int_eq(pipe(fds), 0);
	ck_assert_int_eq(ww_redis_ear_wait(ear, fds[0], 5 * MS, hear, &heard), 0);
	ck_assert_int_eq(write(fds[1], "x", 1), 1);
	ck_assert_int_eq(ww_redis_ear_wait(ear, fds[0], UINT64_MAX, hear, &heard), 0);
	/* The caller reads the descriptor. */
	ck_assert_int_eq(ww_redis_ear_wait(ear, fds[0], UINT64_MAX, hear, &heard), 0);
	OK(call_words(&rig, "PUBLISH", "channel", "both", NULL));
	ck_assert_int_eq(heard.count, 0);
	hear_all(&heard, 1);
	(void)close(fds[0]);
	(void)close(fds[1]);
	close_both();
}
END_TEST

START_TEST(a_restart_ends_an_ear_and_the_next_hears)
{
	struct heard heard;

	if (!open_both())
		return;
	redis_server_kill(&server);
	ck_assert_int_eq(ww_redis_ear_wait(ear, -1, FOREVER * SECOND, hear, &heard), WW_EIO);
	ck_assert_int_eq(ww_redis_ear_wait(ear, -1, FOREVER * SECOND, hear, &heard), WW_EIO);
	ww_redis_ear_close(ear);
	ear = NULL;
	ck_assert_int_eq(ww_redis_ear_open(&ear, rig.link, "channel"), WW_EIO);
	redis_server_restart(&server);
	/* It is too soon to open another. */
	ck_assert_int_eq(ww_redis_ear_open(&ear, rig.link, "channel"), WW_EIO);
	ck_assert_int_eq(rig.said, 1);
	link_rig_pass(&rig, FOREVER * SECOND);
	OK(ww_redis_ear_open(&ear, rig.link, "channel"));
	ck_assert_int_eq(rig.said, 2);
	OK(call_words(&rig, "PUBLISH", "channel", "new", NULL));
	hear_all(&heard, 1);
	ck_assert_str_eq(heard.messages[0], "new");
	close_both();
}
END_TEST

/* Its host is gone without closing the connection. */
START_TEST(a_server_that_falls_silent_is_noticed)
{
	struct heard heard = {.count = 0};
	struct redis_ear *hasty_ear;
	struct link_rig hasty;
	char url[64];

	if (!open_both())
		return;
	redis_server_url(&server, url, sizeof url);
	link_rig_make(&hasty, url);
	hasty.config.timeout = 100 * MS;
	OK(ww_redis_link_open(&hasty.link, &hasty.config));
	OK(ww_redis_ear_open(&hasty_ear, hasty.link, "channel"));
	/* A quiet server still answers pings. */
	ck_assert_int_eq(ww_redis_ear_wait(hasty_ear, -1, 500 * MS, hear, &heard), 0);
	redis_server_freeze(&server);
	ck_assert_int_eq(ww_redis_ear_wait(hasty_ear, -1, FOREVER * SECOND, hear, &heard), WW_EIO);
	redis_server_thaw(&server);
	ww_redis_ear_close(hasty_ear);
	link_rig_close(&hasty);
	close_both();
}
END_TEST

START_TEST(a_cluster_is_heard_through_any_node)
{
	static struct redis_cluster cluster;
	struct heard heard;
	char url[64];

	if (!redis_server_is_there())
		return;
	redis_cluster_start(&cluster, 3, 0, (const char *const[]){"--cluster-require-full-coverage", "no", NULL});
	redis_server_url(&cluster.servers[0], url, sizeof url);
	link_rig_open(&rig, url);
	/* Publish on each of the three nodes in turn: the ear hears all. */
	for (int turn = 0; turn < 3; turn++) {
		OK(ww_redis_ear_open(&ear, rig.link, "channel"));
		for (int i = 0; i < 3; i++) {
			redis_server_tell(&cluster.servers[i], "PUBLISH channel from%d", i);
			hear_all(&heard, 1);
			ck_assert_int_eq(heard.messages[0][4], '0' + i);
		}
		ww_redis_ear_close(ear);
	}
	redis_cluster_stop(&cluster);
	link_rig_close(&rig);
}
END_TEST

/* Which node has the ear: the one with a subscriber. */
static int seat(struct redis_cluster *cluster)
{
	for (int i = 0; i < cluster->count; i++) {
		redisReply *reply;
		int has = 0;
		if (cluster->servers[i].pid == 0)
			continue;
		reply = redis_server_ask(&cluster->servers[i], "PUBSUB NUMSUB channel");
		has = reply->element[1]->integer > 0;
		freeReplyObject(reply);
		if (has)
			return i;
	}
	return -1;
}

START_TEST(an_ear_goes_to_another_node)
{
	static struct redis_cluster cluster;
	struct heard heard;
	char url[64];
	int first, second;

	if (!redis_server_is_there())
		return;
	redis_cluster_start(&cluster, 3, 0, (const char *const[]){"--cluster-require-full-coverage", "no", NULL});
	redis_server_url(&cluster.servers[0], url, sizeof url);
	link_rig_open(&rig, url);
	OK(ww_redis_ear_open(&ear, rig.link, "channel"));
	first = seat(&cluster);
	ck_assert_int_ge(first, 0);
	redis_server_kill(&cluster.servers[first]);
	ck_assert_int_eq(ww_redis_ear_wait(ear, -1, FOREVER * SECOND, hear, &heard), WW_EIO);
	ww_redis_ear_close(ear);
	OK(ww_redis_ear_open(&ear, rig.link, "channel"));
	second = seat(&cluster);
	ck_assert_int_ge(second, 0);
	ck_assert_int_ne(first, second);
	for (int i = 0; i < 3; i++) {
		if (i == first)
			continue;
		redis_server_tell(&cluster.servers[i], "PUBLISH channel more");
		hear_all(&heard, 1);
	}
	ww_redis_ear_close(ear);
	redis_cluster_stop(&cluster);
	link_rig_close(&rig);
}
END_TEST

/* ---- Servers that lie */

static const struct {
	struct fake_rule rule;
	int error;
} lies[] = {
    {{"SUBSCRIBE", 0, FAKE_CUT, "", 0}, WW_EIO},
    {{"SUBSCRIBE", 0, FAKE_ANSWER, ":1\r\n", 0}, WW_ECORRUPT},
    {{"SUBSCRIBE", 0, FAKE_ANSWER, "*3\r\n$1\r\nx\r\n$1\r\nx\r\n:1\r\n", 0}, WW_ECORRUPT},
    {{"SUBSCRIBE", 0, FAKE_ANSWER, "*3\r\n:1\r\n$1\r\nx\r\n:1\r\n", 0}, WW_ECORRUPT},
    {{"SUBSCRIBE", 0, FAKE_ANSWER, "*-1\r\n", 0}, WW_ECORRUPT},
    {{"SUBSCRIBE", 0, FAKE_ANSWER, "garbage\r\n", 0}, WW_ECORRUPT},
    {{"SUBSCRIBE", 0, FAKE_ANSWER, "-NOPERM no\r\n", 0}, WW_EDENIED},
};

#define CONFIRMED "*3\r\n$9\r\nsubscribe\r\n$7\r\nchannel\r\n:1\r\n"

/* Sent after the confirmation. The first message of each is good. */
static const char *const tails[] = {
    "garbage", "*3\r\n$7\r\nmessage\r\n", "$999999999\r\n", "-ERR no\r\n", "*99999999\r\n"};
static const int tail_errors[] = {WW_ECORRUPT, WW_EIO, WW_EIO, WW_EIO, WW_ECORRUPT};

START_TEST(lies_are_errors)
{
	static struct fake_server fake;
	char url[64];
	char answer[256];
	struct heard heard = {.count = 0};

	for (size_t i = 0; i < sizeof lies / sizeof *lies; i++) {
		fake_server_start(&fake, (const struct fake_rule[]){lies[i].rule, {0}});
		fake_server_url(&fake, url, sizeof url);
		link_rig_open(&rig, url);
		ck_assert_msg(ww_redis_ear_open(&ear, rig.link, "channel") == lies[i].error, "lie %zu", i);
		link_rig_close(&rig);
		fake_server_stop(&fake);
	}
	for (size_t i = 0; i < sizeof tails / sizeof *tails; i++) {
		(void)snprintf(answer, sizeof answer,
		    CONFIRMED "*3\r\n$7\r\nmessage\r\n$7\r\nchannel\r\n$1\r\na\r\n"
		              "*2\r\n:1\r\n:2\r\n:3\r\n*3\r\n$7\r\nmessage\r\n$7\r\nchannel\r\n:1\r\n%s",
		    tails[i]);
		fake_server_start(&fake, (const struct fake_rule[]){{"SUBSCRIBE", 0, FAKE_CUT, answer, 0}, {0}});
		fake_server_url(&fake, url, sizeof url);
		link_rig_open(&rig, url);
		OK(ww_redis_ear_open(&ear, rig.link, "channel"));
		ck_assert_int_eq(ww_redis_ear_wait(ear, -1, FOREVER * SECOND, hear, &heard), 1);
		ck_assert_msg(
		    ww_redis_ear_wait(ear, -1, FOREVER * SECOND, hear, &heard) == tail_errors[i], "tail %zu", i);
		ww_redis_ear_close(ear);
		link_rig_close(&rig);
		fake_server_stop(&fake);
	}
	ck_assert_int_eq(heard.count, sizeof tails / sizeof *tails);
}
END_TEST

/* ---- Servers that confirm and then cut the connection */

/* For so long by the link's clock, open an ear whenever that is allowed, and let it be cut off. Returns how often. */
static int opened_within(uint64_t span, uint64_t lived)
{
	uint64_t end = link_rig_now(&rig) + span;
	struct heard heard;
	int count = 0;

	while (link_rig_now(&rig) < end) {
		int result = ww_redis_ear_open(&ear, rig.link, "channel");
		if (result == WW_OK) {
			link_rig_pass(&rig, lived);
			ck_assert_int_eq(ww_redis_ear_wait(ear, -1, FOREVER * SECOND, hear, &heard), WW_EIO);
			/* This is one cut. */
			ck_assert_int_eq(ww_redis_ear_wait(ear, -1, FOREVER * SECOND, hear, &heard), WW_EIO);
			ww_redis_ear_close(ear);
			count++;
		} else {
			ck_assert_int_eq(result, WW_EIO);
		}
		link_rig_pass(&rig, MS);
	}
	return count;
}

static void open_cutting(struct fake_server *fake)
{
	char url[64];

	fake_server_start(fake, (const struct fake_rule[]){{"SUBSCRIBE", 0, FAKE_CUT, CONFIRMED, 0}, {0}});
	fake_server_url(fake, url, sizeof url);
	link_rig_make(&rig, url);
	rig.config.backoff_max = 400 * MS;
	OK(ww_redis_link_open(&rig.link, &rig.config));
}

START_TEST(ears_that_are_cut_off_are_opened_ever_later)
{
	static struct fake_server fake;
	int count;

	open_cutting(&fake);
	/*
	 * The first two at once, three after 50, 100 and 200 ms or half of that, then one after each 200 to 400, and
	 * what a step takes.
	 */
	count = opened_within(10 * SECOND, 0);
	ck_assert_int_ge(count, 2 + 3 + (10000 - 360) / 402);
	ck_assert_int_le(count, 2 + 3 + (10000 - 175) / 200 + 1);
	ck_assert_int_eq(fake_server_count(&fake, "SUBSCRIBE"), count);
	/* A person gets a report, but not each time. */
	ck_assert_int_eq(link_rig_said(&rig, "cuts off who subscribes"), 1);
	/* Other calls still work. */
	OK(call_words(&rig, "GET", "x", NULL, NULL));
	link_rig_close(&rig);
	fake_server_stop(&fake);
}
END_TEST

START_TEST(the_next_ear_is_opened_at_once_after_one_that_lasted)
{
	static struct fake_server fake;

	open_cutting(&fake);
	(void)opened_within(10 * SECOND, 0);
	link_rig_pass(&rig, 400 * MS);
	/* Each ear lasts as long as the longest pause: all are opened again at once. */
	ck_assert_int_eq(opened_within(10 * 401 * MS, 400 * MS), 10);
	/* Ears that last less have pauses again. */
	ck_assert_int_le(opened_within(10 * SECOND, 399 * MS), 10000 / 599 + 6);
	link_rig_close(&rig);
	fake_server_stop(&fake);
}
END_TEST

TEST_MAIN("redis/ear", messages_are_heard_in_order, a_wait_ends_by_a_descriptor_and_by_time,
    a_restart_ends_an_ear_and_the_next_hears, a_server_that_falls_silent_is_noticed,
    a_cluster_is_heard_through_any_node, an_ear_goes_to_another_node, lies_are_errors,
    ears_that_are_cut_off_are_opened_ever_later, the_next_ear_is_opened_at_once_after_one_that_lasted)
