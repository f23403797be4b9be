/*
 * Servers that lie, break off, stay silent or say too much. Each must end in an error within bounded time and memory,
 * and do no harm to the next server.
 */
/* tier: check, no-valgrind */

#include <arpa/inet.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tests/lib/redis/fixture.h"
#include "tests/support/redis/fake_server.h"
#include "tests/support/seed.h"
#include "weekwheel/error.h"

/* The memory that a link may take besides a reply. */
enum { REPLY_MAX = 1024 * 1024, OWN = 512 * 1024 };

static struct link_rig rig;
static struct fake_server fake;
static struct redis_script script;

static void open_at_fake(const struct fake_rule *rules)
{
	char url[64];
	int error;

	script = script_of("script", "return 1");
	fake_server_start(&fake, rules);
	fake_server_url(&fake, url, sizeof url);
	link_rig_make(&rig, url);
	rig.config.reply_max = REPLY_MAX;
	rig.config.timeout = 60 * SECOND;
	error = ww_redis_link_open(&rig.link, &rig.config);
	ck_assert_msg(error == WW_OK, "%d: %s", error, rig.sentences[0]);
}

static void close_both(void)
{
	link_rig_close(&rig);
	fake_server_stop(&fake);
}

#define BYTES(text) text, sizeof text - 1
#define DEEP "*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n:1\r\n"

static const struct {
	enum fake_action action;
	const char *answer;
	size_t length;
	int error;
} lies[] = {
    {FAKE_ANSWER, BYTES("HTTP/1.1 400 Bad Request\r\n\r\n"), WW_ECORRUPT},
    {FAKE_ANSWER, BYTES("\0\0\0\0"), WW_ECORRUPT},
    {FAKE_ANSWER, BYTES("\xff\xfe"), WW_ECORRUPT},
    {FAKE_ANSWER, BYTES("\r\n"), WW_ECORRUPT},
    {FAKE_ANSWER, BYTES("$-2\r\n"), WW_ECORRUPT},
    {FAKE_ANSWER, BYTES("$abc\r\n"), WW_ECORRUPT},
    {FAKE_ANSWER, BYTES("$99999999999999999999999\r\n"), WW_ECORRUPT},
    {FAKE_ANSWER, BYTES(":12x\r\n"), WW_ECORRUPT},
    {FAKE_ANSWER, BYTES(":\r\n"), WW_ECORRUPT},
    {FAKE_ANSWER, BYTES("*-2\r\n"), WW_ECORRUPT},
    {FAKE_ANSWER, BYTES("*2147483647\r\n"), WW_ECORRUPT},
    {FAKE_ANSWER, BYTES("*2147483648\r\n"), WW_ECORRUPT},
    {FAKE_ANSWER, BYTES("*1048577\r\n"), WW_ECORRUPT},
    {FAKE_ANSWER, BYTES("*9223372036854775807\r\n"), WW_ECORRUPT},
    {FAKE_ANSWER, BYTES("*100000\r\n*100000\r\n*100000\r\n"), WW_ECORRUPT},
    {FAKE_ANSWER, BYTES(DEEP), WW_ECORRUPT},
    {FAKE_ANSWER, BYTES("-\r\n"), WW_ECORRUPT},
    {FAKE_ANSWER, BYTES("-ERR what\r\n"), WW_ECORRUPT},
    {FAKE_ANSWER, BYTES("-MOVED 1 127.0.0.1:1\r\n"), WW_ECORRUPT},
    {FAKE_ANSWER, BYTES("-ASK\r\n"), WW_ECORRUPT},
    {FAKE_ANSWER, BYTES("-WRONGTYPE Operation against a key\r\n"), WW_ECORRUPT},
    {FAKE_CUT, BYTES(""), WW_EIO},
    {FAKE_CUT, BYTES("$"), WW_EIO},
    {FAKE_CUT, BYTES("$10\r\nabc"), WW_EIO},
    {FAKE_CUT, BYTES("$10\r\n0123456789\r"), WW_EIO},
    {FAKE_CUT, BYTES("*3\r\n:1\r\n$2\r\nab\r\n"), WW_EIO},
    {FAKE_CUT, BYTES("$9223372036854775807\r\n"), WW_EIO},
    {FAKE_ENDLESS, BYTES("+aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"), WW_ECORRUPT},
    {FAKE_ENDLESS, BYTES("*1\r\n"), WW_ECORRUPT},
    {FAKE_ENDLESS, BYTES("*1000\r\n$1\r\na\r\n"), WW_ECORRUPT},
    {FAKE_ENDLESS, BYTES("$104857600\r\n"), WW_ECORRUPT},
};

START_TEST(each_lie_is_an_error)
{
	for (size_t i = 0; i < sizeof lies / sizeof *lies; i++) {
		const struct fake_rule rules[] = {{"EVALSHA", 1, lies[i].action, lies[i].answer, lies[i].length},
		    {"EVALSHA", 0, FAKE_ANSWER, ":7\r\n", 0}, {0}};
		long long number = 0;
		open_at_fake(rules);
		ck_assert_msg(call_script(&rig, &script, "k", NULL, NULL) == lies[i].error, "lie %zu", i);
		ck_assert_uint_le(rig.most, REPLY_MAX + OWN);
		/* Nothing of the lie is left over. */
		link_rig_pass(&rig, 60 * SECOND);
		OK(call_script(&rig, &script, "k", NULL, &number));
		ck_assert_int_eq(number, 7);
		ck_assert_int_eq(
		    link_rig_said(&rig, "Redis at"), lies[i].error == WW_EIO ? 0 : link_rig_said(&rig, "Redis at"));
		ck_assert_msg(lies[i].error == WW_EIO || rig.said > 0, "lie %zu is not reported", i);
		close_both();
	}
}
END_TEST

/* The header of an array has a few bytes. It must not make the link allocate what the array might take. */
START_TEST(an_array_is_no_larger_than_the_largest_reply)
{
	const struct fake_rule rules[] = {{"EVALSHA", 0, FAKE_CUT, "*1048577\r\n", 0}, {0}};
	char url[64];

	script = script_of("script", "return 1");
	fake_server_start(&fake, rules);
	fake_server_url(&fake, url, sizeof url);
	link_rig_open(&rig, url);
	ck_assert_int_eq(call_script(&rig, &script, "k", NULL, NULL), WW_ECORRUPT);
	ck_assert_uint_le(rig.most, OWN);
	close_both();
}
END_TEST

/* Answers before the cut are good. The other calls may have happened. */
START_TEST(answers_before_a_cut_are_good)
{
	const struct fake_rule rules[] = {
	    {"EVALSHA", 2, FAKE_ANSWER, ":7\r\n", 0}, {"EVALSHA", 1, FAKE_CUT, ":7", 2}, {0}};
	struct redis_call calls[4] = {{.script = NULL}};

	open_at_fake(rules);
	for (int i = 0; i < 4; i++)
		calls[i] = (struct redis_call){.script = &script, .key = "k"};
	ck_assert_int_eq(ww_redis_link_run(rig.link, calls, 4), WW_EIO);
	OK(calls[0].error);
	OK(calls[1].error);
	ck_assert_int_eq(calls[1].reply->integer, 7);
	ck_assert_int_eq(calls[2].error, WW_EIO);
	ck_assert_int_eq(calls[3].error, WW_EIO);
	ww_redis_link_free(calls, 4);
	ck_assert_int_eq(fake_server_count(&fake, "EVALSHA"), 3);
	close_both();
}
END_TEST

START_TEST(only_harmless_calls_are_repeated)
{
	const struct fake_rule rules[] = {
	    {"EVALSHA", 1, FAKE_CUT, "", 0}, {"EVALSHA", 0, FAKE_ANSWER, ":7\r\n", 0}, {0}};
	const struct fake_rule always[] = {{"EVALSHA", 0, FAKE_CUT, "", 0}, {0}};

	open_at_fake(rules);
	OK(call_again(&rig, &script, "k"));
	ck_assert_int_eq(fake_server_count(&fake, "EVALSHA"), 2);
	fake_server_rules(&fake, rules);
	ck_assert_int_eq(call_script(&rig, &script, "k", NULL, NULL), WW_EIO);
	ck_assert_int_eq(fake_server_count(&fake, "EVALSHA"), 3);
	fake_server_rules(&fake, always);
	ck_assert_int_eq(call_again(&rig, &script, "k"), WW_EIO);
	ck_assert_int_eq(fake_server_count(&fake, "EVALSHA"), 6);
	close_both();
}
END_TEST

/* The call ends with its timeout. The late answer must not pass for that of another call. */
START_TEST(a_silent_server_costs_one_timeout)
{
	const struct fake_rule rules[] = {
	    {"EVALSHA", 1, FAKE_SILENCE, "", 0}, {"EVALSHA", 0, FAKE_ANSWER, ":7\r\n", 0}, {0}};
	char url[64];

	fake_server_start(&fake, rules);
	fake_server_url(&fake, url, sizeof url);
	link_rig_make(&rig, url);
	rig.config.timeout = 50 * MS;
	script = script_of("script", "return 1");
	OK(ww_redis_link_open(&rig.link, &rig.config));
	ck_assert_int_eq(call_again(&rig, &script, "k"), WW_EIO);
	ck_assert_int_eq(link_rig_said(&rig, "does not answer in time"), 1);
	ck_assert_uint_eq(link_rig_stats(&rig).open, 0);
	/* The link does not ask it again too soon. */
	ck_assert_int_eq(call_again(&rig, &script, "k"), WW_EIO);
	ck_assert_int_eq(fake_server_accepts(&fake), 1);
	close_both();
}
END_TEST

START_TEST(greetings_are_checked)
{
	static const struct {
		struct fake_rule rule;
		int error;
	} greetings[] = {
	    {{"PING", 0, FAKE_CUT, "", 0}, WW_EIO},
	    {{"PING", 0, FAKE_SILENCE, "", 0}, WW_EIO},
	    {{"PING", 0, FAKE_ANSWER, "SSH-2.0-OpenSSH_9.2\r\n", 0}, WW_ECORRUPT},
	    {{"PING", 0, FAKE_ANSWER, ":1\r\n", 0}, WW_ECORRUPT},
	    {{"PING", 0, FAKE_ANSWER, "-NOAUTH Authentication required.\r\n", 0}, WW_EDENIED},
	    {{"PING", 0, FAKE_CUT, "-DENIED Redis is running in protected mode\r\n", 0}, WW_EDENIED},
	    {{"PING", 0, FAKE_CUT, "-ERR max number of clients reached\r\n", 0}, WW_EAGAIN},
	    {{"PING", 0, FAKE_ANSWER, "-LOADING Redis is loading the dataset in memory\r\n", 0}, WW_OK},
	    {{"INFO", 0, FAKE_ANSWER, "-NOPERM this user has no permissions\r\n", 0}, WW_EDENIED},
	    {{"INFO", 0, FAKE_ANSWER, ":1\r\n", 0}, WW_ECORRUPT},
	    {{"INFO", 0, FAKE_ANSWER, "$-1\r\n", 0}, WW_ECORRUPT},
	    {{"INFO", 0, FAKE_ANSWER, "*2\r\n:1\r\n:1\r\n", 0}, WW_ECORRUPT},
	};

	for (size_t i = 0; i < sizeof greetings / sizeof *greetings; i++) {
		const struct fake_rule rules[] = {greetings[i].rule, {0}};
		char url[64];
		fake_server_start(&fake, rules);
		fake_server_url(&fake, url, sizeof url);
		link_rig_make(&rig, url);
		if (greetings[i].rule.action == FAKE_SILENCE)
			rig.config.timeout = 50 * MS;
		ck_assert_msg(ww_redis_link_open(&rig.link, &rig.config) == greetings[i].error, "greeting %zu", i);
		ck_assert_int_eq(rig.said > 0, greetings[i].error != WW_OK);
		close_both();
	}
}
END_TEST

#define CLUSTER_INFO "$30\r\n# Cluster\r\ncluster_enabled:1\r\n\r\n"

static const struct {
	const char *map;
	int error;
} maps[] = {
    {":1\r\n", WW_ECORRUPT},
    {"$-1\r\n", WW_ECORRUPT},
    {"*0\r\n", WW_EAGAIN},
    {"*-1\r\n", WW_ECORRUPT},
    {"*1\r\n:1\r\n", WW_ECORRUPT},
    {"*1\r\n*0\r\n", WW_ECORRUPT},
    {"*1\r\n*3\r\n:0\r\n:1\r\n:2\r\n", WW_ECORRUPT},
    {"*1\r\n*3\r\n:0\r\n:1\r\n*0\r\n", WW_ECORRUPT},
    {"*1\r\n*3\r\n:0\r\n:1\r\n*1\r\n$1\r\na\r\n", WW_ECORRUPT},
    {"*1\r\n*3\r\n:0\r\n:16384\r\n*2\r\n$1\r\na\r\n:1\r\n", WW_ECORRUPT},
    {"*1\r\n*3\r\n:-1\r\n:1\r\n*2\r\n$1\r\na\r\n:1\r\n", WW_ECORRUPT},
    {"*1\r\n*3\r\n:0\r\n:1\r\n*2\r\n$1\r\na\r\n:65536\r\n", WW_ECORRUPT},
    {"*1\r\n*3\r\n:0\r\n:1\r\n*2\r\n$1\r\na\r\n$1\r\n1\r\n", WW_ECORRUPT},
    {"*1\r\n*3\r\n$1\r\n0\r\n:1\r\n*2\r\n$1\r\na\r\n:1\r\n", WW_ECORRUPT},
    {"*1\r\n*3\r\n:5\r\n:1\r\n*2\r\n$1\r\n?\r\n:1\r\n", WW_EAGAIN},
    {"*1\r\n*3\r\n:0\r\n:16383\r\n*2\r\n$-1\r\n:1\r\n", WW_OK},
    {"-ERR what\r\n", WW_ECORRUPT},
    {"-NOPERM no\r\n", WW_EDENIED},
};

START_TEST(maps_of_slots_are_checked)
{
	for (size_t i = 0; i < sizeof maps / sizeof *maps; i++) {
		const struct fake_rule rules[] = {
		    {"INFO", 0, FAKE_ANSWER, CLUSTER_INFO, 0}, {"CLUSTER SLOTS", 0, FAKE_ANSWER, maps[i].map, 0}, {0}};
		char url[64];
		fake_server_start(&fake, rules);
		fake_server_url(&fake, url, sizeof url);
		link_rig_make(&rig, url);
		ck_assert_msg(ww_redis_link_open(&rig.link, &rig.config) == maps[i].error, "map %zu", i);
		close_both();
	}
}
END_TEST

/* A cluster of only the fake server. It answers calls with the format, in which its port is filled in. */
static void open_cluster(const char *format, uint64_t timeout)
{
	static char map[128];
	static char answer[128];
	const struct fake_rule rules[] = {{"INFO", 0, FAKE_ANSWER, CLUSTER_INFO, 0},
	    {"CLUSTER SLOTS", 0, FAKE_ANSWER, map, 0}, {"EVALSHA", 0, FAKE_ANSWER, answer, 0}, {0}};
	char url[64];

	script = script_of("script", "return 1");
	fake_server_start(&fake, NULL);
	(void)snprintf(map, sizeof map, "*1\r\n*3\r\n:0\r\n:16383\r\n*2\r\n$0\r\n\r\n:%d\r\n", fake.port);
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
	(void)snprintf(answer, sizeof answer, format, fake.port);
#pragma GCC diagnostic pop
	fake_server_rules(&fake, rules);
	fake_server_url(&fake, url, sizeof url);
	link_rig_make(&rig, url);
	rig.config.timeout = timeout;
	OK(ww_redis_link_open(&rig.link, &rig.config));
}

START_TEST(redirections_in_a_circle_end_with_the_timeout)
{
	static const char *const circles[] = {"-MOVED 1 :%d\r\n", "-ASK 1 127.0.0.1:%d\r\n"};

	for (int i = 0; i < 2; i++) {
		open_cluster(circles[i], 200 * MS);
		ck_assert_int_eq(call_script(&rig, &script, "k", NULL, NULL), WW_EAGAIN);
		ck_assert_uint_gt(link_rig_stats(&rig).redirections, 1);
		ck_assert_int_lt(fake_server_count(&fake, "EVALSHA"), 100);
		ck_assert_int_eq(fake_server_count(&fake, "ASKING") > 0, i == 1);
		close_both();
	}
}
END_TEST

/* A host that takes no connection and refuses none: its queue is full. Returns its port. */
static int black_hole(int fds[6])
{
	struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t size = sizeof address;

	for (int i = 0; i < 6; i++)
		fds[i] = socket(AF_INET, SOCK_STREAM, 0);
	ck_assert_int_eq(bind(fds[0], (struct sockaddr *)&address, size), 0);
	ck_assert_int_eq(getsockname(fds[0], (struct sockaddr *)&address, &size), 0);
	ck_assert_int_eq(listen(fds[0], 0), 0);
	for (int i = 1; i < 6; i++) {
		ck_assert_int_eq(fcntl(fds[i], F_SETFL, O_NONBLOCK), 0);
		(void)connect(fds[i], (struct sockaddr *)&address, size);
	}
	return ntohs(address.sin_port);
}

START_TEST(a_node_in_a_black_hole_delays_no_other)
{
	static char map[256];
	const struct fake_rule rules[] = {{"INFO", 0, FAKE_ANSWER, CLUSTER_INFO, 0},
	    {"CLUSTER SLOTS", 0, FAKE_ANSWER, map, 0}, {"EVALSHA", 0, FAKE_ANSWER, ":7\r\n", 0}, {0}};
	struct redis_call calls[2];
	char url[64];
	int fds[6];
	int hole = black_hole(fds);

	script = script_of("script", "return 1");
	fake_server_start(&fake, NULL);
	(void)snprintf(map, sizeof map,
	    "*2\r\n*3\r\n:0\r\n:8191\r\n*2\r\n$0\r\n\r\n:%d\r\n*3\r\n:8192\r\n:16383\r\n*2\r\n$0\r\n\r\n:%d\r\n",
	    fake.port, hole);
	fake_server_rules(&fake, rules);
	/* The link connects to the black hole first, when it opens and when it runs calls. */
	(void)snprintf(url, sizeof url, "redis://127.0.0.1:%d,127.0.0.1:%d", hole, fake.port);
	link_rig_make(&rig, url);
	rig.config.timeout = 400 * MS;
	OK(ww_redis_link_open(&rig.link, &rig.config));
	ck_assert_int_eq(link_rig_said(&rig, "cannot be reached"), 1);
	link_rig_pass(&rig, 60 * SECOND);
	/* "foo" has slot 12182, "bar" 5061. */
	calls[0] = (struct redis_call){.script = &script, .key = "foo"};
	calls[1] = (struct redis_call){.script = &script, .key = "bar"};
	ck_assert_int_eq(ww_redis_link_run(rig.link, calls, 2), WW_EIO);
	ck_assert_int_eq(calls[0].error, WW_EIO);
	OK(calls[1].error);
	ww_redis_link_free(calls, 2);
	ck_assert_int_eq(link_rig_said(&rig, "cannot be reached"), 1);
	OK(call_script(&rig, &script, "bar", NULL, NULL));
	close_both();
	for (int i = 0; i < 6; i++)
		(void)close(fds[i]);
}
END_TEST

static const char *const redirections[] = {"-MOVED\r\n", "-MOVED \r\n", "-MOVED 1\r\n", "-MOVED 1 \r\n",
    "-MOVED 1 a\r\n", "-MOVED 1 a:\r\n", "-MOVED 1 a:0\r\n", "-MOVED 1 a:65536\r\n", "-MOVED 16384 a:1\r\n",
    "-MOVED -1 a:1\r\n", "-MOVED a:1\r\n", "-MOVED : : :\r\n", "-ASK  :1\r\n", "-MOVED x 127.0.0.1:1\r\n"};

START_TEST(redirections_to_nowhere_are_errors)
{
	for (size_t i = 0; i < sizeof redirections / sizeof *redirections; i++) {
		open_cluster(redirections[i], 60 * SECOND);
		ck_assert_msg(
		    call_script(&rig, &script, "k", NULL, NULL) == WW_ECORRUPT, "redirection %s", redirections[i]);
		close_both();
	}
}
END_TEST

/* A script that the server never knows, and one that it does not load. */
START_TEST(a_script_that_the_server_never_has)
{
	const struct fake_rule never[] = {{"EVALSHA", 0, FAKE_ANSWER, "-NOSCRIPT No matching script.\r\n", 0}, {0}};
	const struct fake_rule denied[] = {{"EVALSHA", 0, FAKE_ANSWER, "-NOSCRIPT No matching script.\r\n", 0},
	    {"SCRIPT LOAD", 0, FAKE_ANSWER, "-NOPERM no permissions\r\n", 0}, {0}};
	char url[64];

	script = script_of("script", "return 1");
	fake_server_start(&fake, never);
	fake_server_url(&fake, url, sizeof url);
	link_rig_make(&rig, url);
	rig.config.timeout = 100 * MS;
	OK(ww_redis_link_open(&rig.link, &rig.config));
	ck_assert_int_eq(call_script(&rig, &script, "k", NULL, NULL), WW_EAGAIN);
	fake_server_rules(&fake, denied);
	ck_assert_int_eq(call_script(&rig, &script, "k", NULL, NULL), WW_EDENIED);
	ck_assert_int_eq(link_rig_said(&rig, "NOPERM"), 1);
	close_both();
}
END_TEST

/* Control characters in an error do not reach a log. */
START_TEST(reports_are_clean_and_made_once)
{
	const struct fake_rule rules[] = {{"EVALSHA", 0, FAKE_ANSWER, "-ERR a\x1b[31m\x07z\r\n", 0}, {0}};

	open_at_fake(rules);
	for (int i = 0; i < 3; i++)
		ck_assert_int_eq(call_script(&rig, &script, "k", NULL, NULL), WW_ECORRUPT);
	ck_assert_int_eq(rig.said, 1);
	ck_assert_int_eq(link_rig_said(&rig, "ERR a?[31m?z"), 1);
	link_rig_pass(&rig, 61 * SECOND);
	ck_assert_int_eq(call_script(&rig, &script, "k", NULL, NULL), WW_ECORRUPT);
	ck_assert_int_eq(rig.said, 2);
	close_both();
}
END_TEST

/* ---- Random answers */

static size_t random_answer(uint64_t *seed, char *to, size_t size)
{
	static const char *const parts[] = {"*", "$", ":", "+", "-", "\r\n", "\r", "\n", "0", "1", "2", "3", "-1",
	    "16383", "MOVED", "ASK", " ", "127.0.0.1:1", "NOSCRIPT ", "READONLY ", "OOM ", "abc", "*2\r\n",
	    "$3\r\nabc\r\n", ":1\r\n", "*-1\r\n", "$-1\r\n", "999999999"};
	size_t length = 0;
	uint64_t count = 1 + seed_below(seed, 20);

	for (uint64_t i = 0; i < count; i++) {
		const char *part = parts[seed_below(seed, sizeof parts / sizeof *parts)];
		if (length + strlen(part) + 1 >= size)
			break;
		memcpy(to + length, part, strlen(part));
		length += strlen(part);
	}
	/* A byte of noise now and then. */
	if (length > 0 && seed_below(seed, 3) == 0)
		to[seed_below(seed, length)] = (char)seed_below(seed, 256);
	return length;
}

START_TEST(random_answers_do_no_harm)
{
	enum { ANSWERS = 2000 };
	/* The server may still be sending an answer when the next call is made. */
	static char answers[ANSWERS][256];
	uint64_t seed = seed_of_run("test_redis_hostile");

	open_at_fake(NULL);
	for (int i = 0; i < ANSWERS; i++) {
		char *answer = answers[i];
		size_t length = random_answer(&seed, answer, sizeof answers[i]);
		const struct fake_rule rules[] = {
		    {"EVALSHA", 1, FAKE_CUT, answer, length}, {"EVALSHA", 0, FAKE_ANSWER, ":7\r\n", 0}, {0}};
		int error;
		fake_server_rules(&fake, rules);
		error = length ? call_script(&rig, &script, "k", NULL, NULL) : WW_EIO;
		ck_assert_msg(error == WW_OK || error == WW_EIO || error == WW_ECORRUPT || error == WW_EFULL ||
		                  error == WW_EDENIED,
		    "answer %d: %d", i, error);
		link_rig_pass(&rig, 60 * SECOND);
	}
	ck_assert_uint_le(rig.most, REPLY_MAX + OWN);
	close_both();
}
END_TEST

TEST_MAIN("redis/hostile", each_lie_is_an_error, an_array_is_no_larger_than_the_largest_reply,
    answers_before_a_cut_are_good, only_harmless_calls_are_repeated, a_silent_server_costs_one_timeout,
    greetings_are_checked, maps_of_slots_are_checked, redirections_in_a_circle_end_with_the_timeout,
    redirections_to_nowhere_are_errors, a_node_in_a_black_hole_delays_no_other, a_script_that_the_server_never_has,
    reports_are_clean_and_made_once, random_answers_do_no_harm)
