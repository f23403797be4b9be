/*
 * When the link asks a server again that is missing or not ready. The test sets the clock for backing off.
 */
/* tier: check, waits, threads, no-valgrind */

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "lib/redis/link/link_internal.h"
#include "tests/lib/redis/fixture.h"
#include "tests/support/redis/fake_server.h"
#include "weekwheel/error.h"

static struct link_rig rig;
static struct fake_server fake;
static struct redis_script script;

static const struct fake_rule gone[] = {{"", 0, FAKE_CUT, "", 0}, {0}};

static void open_both(uint64_t timeout)
{
	char url[64];

	script = script_of("script", "return 1");
	fake_server_start(&fake, NULL);
	fake_server_url(&fake, url, sizeof url);
	link_rig_make(&rig, url);
	rig.config.timeout = timeout;
	rig.config.backoff_max = 400 * MS;
	OK(ww_redis_link_open(&rig.link, &rig.config));
}

static void close_both(void)
{
	link_rig_close(&rig);
	fake_server_stop(&fake);
}

static int call(void)
{
	return call_script(&rig, &script, "k", NULL, NULL);
}

/* A server that takes connections and drops them: each attempt is an accept. */
START_TEST(a_lost_server_is_asked_after_a_pause_that_doubles)
{
	static const uint64_t pauses[] = {50, 100, 200, 400, 400, 400};
	int accepts;

	open_both(60 * SECOND);
	fake_server_rules(&fake, gone);
	/* The connection breaks, and the link makes another one at once. */
	ck_assert_int_eq(call(), WW_EIO);
	ck_assert_int_eq(fake_server_accepts(&fake), 1);
	ck_assert_int_eq(rig.said, 0);
	ck_assert_int_eq(call(), WW_EIO);
	accepts = 2;
	for (size_t i = 0; i < sizeof pauses / sizeof *pauses; i++) {
		ck_assert_int_eq(fake_server_accepts(&fake), accepts);
		link_rig_pass(&rig, pauses[i] * MS / 2 - 1);
		for (int again = 0; again < 5; again++)
			ck_assert_int_eq(call(), WW_EIO);
		ck_assert_int_eq(fake_server_accepts(&fake), accepts);
		link_rig_pass(&rig, pauses[i] * MS / 2 + 1);
		ck_assert_int_eq(call(), WW_EIO);
		accepts++;
	}
	ck_assert_int_eq(fake_server_accepts(&fake), accepts);
	ck_assert_int_eq(rig.said, 1);
	fake_server_rules(&fake, NULL);
	link_rig_pass(&rig, 400 * MS);
	OK(call());
	ck_assert_int_eq(link_rig_said(&rig, "is back"), 1);
	/* The next loss begins with the shortest pause. */
	fake_server_rules(&fake, gone);
	ck_assert_int_eq(call(), WW_EIO);
	ck_assert_int_eq(call(), WW_EIO);
	fake_server_rules(&fake, NULL);
	link_rig_pass(&rig, 50 * MS);
	OK(call());
	close_both();
}
END_TEST

enum { THREADS = 8 };
static _Atomic int errors;

static void *call_once(void *argument)
{
	(void)argument;
	errors += call() == WW_EIO;
	return NULL;
}

/* Of many threads that ask, only one makes the attempt. */
START_TEST(one_thread_makes_the_attempt)
{
	pthread_t threads[THREADS];

	open_both(60 * SECOND);
	fake_server_rules(&fake, gone);
	(void)call();
	(void)call();
	ck_assert_int_eq(fake_server_accepts(&fake), 2);
	link_rig_pass(&rig, 50 * MS);
	for (int i = 0; i < THREADS; i++)
		ck_assert_int_eq(pthread_create(&threads[i], NULL, call_once, NULL), 0);
	for (int i = 0; i < THREADS; i++)
		ck_assert_int_eq(pthread_join(threads[i], NULL), 0);
	ck_assert_int_eq(errors, THREADS);
	ck_assert_int_eq(fake_server_accepts(&fake), 3);
	close_both();
}
END_TEST

/* The link repeats a refusal without asking again. */
START_TEST(a_refusal_is_not_asked_for_again_at_once)
{
	const struct fake_rule denies[] = {
	    {"PING", 0, FAKE_ANSWER, "-NOAUTH Authentication required.\r\n", 0}, {"", 0, FAKE_CUT, "", 0}, {0}};

	open_both(60 * SECOND);
	fake_server_rules(&fake, denies);
	ck_assert_int_eq(call(), WW_EIO);
	for (int i = 0; i < 5; i++)
		ck_assert_int_eq(call(), WW_EDENIED);
	ck_assert_int_eq(fake_server_accepts(&fake), 2);
	ck_assert_int_eq(link_rig_said(&rig, "refuses: NOAUTH"), 1);
	close_both();
}
END_TEST

static const char *const not_ready[] = {"-LOADING Redis is loading the dataset in memory\r\n",
    "-TRYAGAIN Multiple keys request during rehashing of slot\r\n", "-CLUSTERDOWN The cluster is down\r\n",
    "-MASTERDOWN Link with MASTER is down\r\n", "-BUSY Redis is busy running a script.\r\n",
    "-NOREPLICAS Not enough good replicas to write.\r\n"};

START_TEST(a_server_that_is_not_ready_is_asked_again)
{
	for (size_t i = 0; i < sizeof not_ready / sizeof *not_ready; i++) {
		const struct fake_rule rules[] = {
		    {"EVALSHA", 4, FAKE_ANSWER, not_ready[i], 0}, {"EVALSHA", 0, FAKE_ANSWER, ":7\r\n", 0}, {0}};
		open_both(60 * SECOND);
		fake_server_rules(&fake, rules);
		OK(call());
		ck_assert_int_eq(fake_server_count(&fake, "EVALSHA"), 5);
		ck_assert_int_eq(rig.said, 0);
		close_both();
	}
}
END_TEST

/* Returns 0 if the machine was too slow for that timeout: the server was asked once, or took longer to answer. */
static int is_given_up(const struct fake_rule *rules, uint64_t timeout)
{
	int error, asked;

	open_both(60 * SECOND);
	rig.link->config.timeout = timeout;
	fake_server_rules(&fake, rules);
	error = call();
	asked = fake_server_count(&fake, "EVALSHA");
	ck_assert(error == WW_EAGAIN || error == WW_EIO);
	/* The server answered: it does not count as lost. */
	if (error == WW_EAGAIN)
		ck_assert_int_eq(link_rig_said(&rig, "cannot be reached"), 0);
	/* Each pause is longer than the one before. */
	ck_assert_int_lt(asked, 50);
	close_both();
	return error == WW_EAGAIN && asked > 1;
}

START_TEST(a_server_that_is_never_ready_is_given_up_in_time)
{
	for (size_t i = 0; i < sizeof not_ready / sizeof *not_ready; i++) {
		const struct fake_rule rules[] = {{"EVALSHA", 0, FAKE_ANSWER, not_ready[i], 0}, {0}};
		uint64_t timeout = 50 * MS;
		while (!is_given_up(rules, timeout))
			timeout *= 2;
	}
}
END_TEST

/* Calls of a batch that were answered are not sent again. */
START_TEST(only_calls_that_were_not_done_are_repeated)
{
	const struct fake_rule rules[] = {{"EVALSHA", 2, FAKE_ANSWER, ":7\r\n", 0},
	    {"EVALSHA", 1, FAKE_ANSWER, not_ready[0], 0}, {"EVALSHA", 0, FAKE_ANSWER, ":8\r\n", 0}, {0}};
	static const long long expected[] = {7, 7, 8, 8};
	struct redis_call calls[4];

	open_both(60 * SECOND);
	fake_server_rules(&fake, rules);
	for (int i = 0; i < 4; i++)
		calls[i] = (struct redis_call){.script = &script, .key = "k"};
	OK(ww_redis_link_run(rig.link, calls, 4));
	for (int i = 0; i < 4; i++)
		ck_assert_int_eq(calls[i].reply->integer, expected[i]);
	ww_redis_link_free(calls, 4);
	ck_assert_int_eq(fake_server_count(&fake, "EVALSHA"), 5);
	close_both();
}
END_TEST

/* ---- A cluster of two fakes: the upper half of the slots is the second one's */

static struct fake_server other;
static char map[200];
static struct redis_call on_first, on_other;

static void open_two(uint64_t timeout)
{
	struct fake_rule rules[] = {{"INFO", 0, FAKE_ANSWER, "$17\r\ncluster_enabled:1\r\n", 0},
	    {"CLUSTER SLOTS", 0, FAKE_ANSWER, map, 0}, {"EVALSHA", 0, FAKE_ANSWER, ":1\r\n", 0}, {0}};
	char url[64];

	script = script_of("script", "return 1");
	fake_server_start(&other, &rules[2]);
	fake_server_start(&fake, NULL);
	(void)snprintf(map, sizeof map,
	    "*2\r\n*3\r\n:0\r\n:8191\r\n*2\r\n$9\r\n127.0.0.1\r\n:%d\r\n"
	    "*3\r\n:8192\r\n:16383\r\n*2\r\n$9\r\n127.0.0.1\r\n:%d\r\n",
	    fake.port, other.port);
	fake_server_rules(&fake, rules);
	fake_server_url(&fake, url, sizeof url);
	link_rig_make(&rig, url);
	rig.config.timeout = timeout;
	OK(ww_redis_link_open(&rig.link, &rig.config));
	/* "b" is in slot 3300, "a" in slot 15495. */
	on_first = (struct redis_call){.script = &script, .key = "b"};
	on_other = (struct redis_call){.script = &script, .key = "a"};
	OK(ww_redis_link_run(rig.link, &on_first, 1));
	OK(ww_redis_link_run(rig.link, &on_other, 1));
	ww_redis_link_free(&on_first, 1);
	ww_redis_link_free(&on_other, 1);
}

static void close_two(void)
{
	link_rig_close(&rig);
	fake_server_stop(&fake);
	fake_server_stop(&other);
}

static int run_other(unsigned flags)
{
	int error;

	on_other.flags = flags;
	error = ww_redis_link_run(rig.link, &on_other, 1);
	ww_redis_link_free(&on_other, 1);
	return error;
}

static struct redis_node_report report_of(size_t i)
{
	struct redis_node_report nodes[2];

	ck_assert_uint_eq(ww_redis_link_nodes(rig.link, nodes, 2, NULL, 0, NULL), 2);
	return nodes[i];
}

static const char *const of_a_node[] = {"-LOADING Redis is loading the dataset in memory\r\n",
    "-CLUSTERDOWN The cluster is down\r\n", "-BUSY Redis is busy running a script.\r\n",
    "-NOREPLICAS Not enough good replicas to write.\r\n"};

/* A node that says "later" is asked by probes alone; a second call to the other one needs no pause. */
START_TEST(a_node_that_says_later_is_set_aside_alone)
{
	for (size_t i = 0; i < sizeof of_a_node / sizeof *of_a_node; i++) {
		const struct fake_rule rules[] = {{"EVALSHA", 0, FAKE_ANSWER, of_a_node[i], 0}, {0}};
		const struct fake_rule good[] = {{"EVALSHA", 0, FAKE_ANSWER, ":1\r\n", 0}, {0}};
		int asked;
		open_two(60 * SECOND);
		fake_server_rules(&other, rules);
		ck_assert_int_eq(run_other(REDIS_CALL_SOON), WW_EAGAIN);
		ck_assert_int_eq(link_rig_said(&rig, "is set aside"), 1);
		ck_assert_int_eq(report_of(1).state, REDIS_NODE_ASIDE);
		ck_assert_int_eq(report_of(0).state, REDIS_NODE_SERVES);
		ck_assert(!ww_redis_link_serves(rig.link, "a") && ww_redis_link_serves(rig.link, "b"));
		asked = fake_server_count(&other, "EVALSHA");
		/* Past the first moments each call ends at once, whatever its flags. */
		link_rig_pass(&rig, 60 * SECOND / 8);
		ck_assert_int_eq(run_other(0), WW_EAGAIN);
		ck_assert_int_eq(fake_server_count(&other, "EVALSHA"), asked + 1);
		for (int again = 0; again < 20; again++)
			ck_assert_int_eq(run_other(0), WW_EAGAIN);
		ck_assert_int_eq(fake_server_count(&other, "EVALSHA"), asked + 1);
		OK(ww_redis_link_run(rig.link, &on_first, 1));
		ww_redis_link_free(&on_first, 1);
		/* The probe decides. */
		fake_server_rules(&other, good);
		ck_assert_int_eq(run_other(0), WW_EAGAIN);
		link_rig_pass(&rig, SECOND);
		OK(run_other(0));
		OK(run_other(0));
		ck_assert_int_eq(report_of(1).state, REDIS_NODE_SERVES);
		ck_assert_int_eq(link_rig_said(&rig, "is set aside"), 1);
		ck_assert_int_eq(link_rig_said(&rig, "in which 23 calls were refused"), 1);
		close_two();
	}
}
END_TEST

/* A server that was restarted has no scripts. The probe that finds it ready brings the script along. */
START_TEST(a_node_that_is_back_without_scripts_serves)
{
	for (size_t i = 0; i < sizeof of_a_node / sizeof *of_a_node; i++) {
		const struct fake_rule rules[] = {{"EVALSHA", 1, FAKE_ANSWER, of_a_node[i], 0},
		    {"EVALSHA", 1, FAKE_ANSWER, "-NOSCRIPT No matching script. Please use EVAL.\r\n", 0},
		    {"EVALSHA", 0, FAKE_ANSWER, ":1\r\n", 0}, {0}};
		open_two(60 * SECOND);
		fake_server_rules(&other, rules);
		ck_assert_int_eq(run_other(REDIS_CALL_SOON), WW_EAGAIN);
		ck_assert_int_eq(report_of(1).state, REDIS_NODE_ASIDE);
		link_rig_pass(&rig, SECOND);
		OK(run_other(REDIS_CALL_SOON));
		ck_assert_int_eq(fake_server_count(&other, "SCRIPT LOAD"), 1);
		ck_assert_int_eq(report_of(1).state, REDIS_NODE_SERVES);
		close_two();
	}
}
END_TEST

/* One slot of a node moves: calls to its other slots go on. */
START_TEST(a_slot_that_moves_is_set_aside_alone)
{
	const struct fake_rule rules[] = {
	    {"EVALSHA", 1, FAKE_ANSWER, "-TRYAGAIN Multiple keys request during rehashing of slot\r\n", 0},
	    {"EVALSHA", 0, FAKE_ANSWER, ":1\r\n", 0}, {0}};
	/* Slot 11694, of the same node. */
	struct redis_call third = {.script = &script, .key = "somekey0"};

	open_two(60 * SECOND);
	while (ww_redis_link_slot(third.key, strlen(third.key)) < 8192)
		third.key++;
	fake_server_rules(&other, rules);
	ck_assert_int_eq(run_other(REDIS_CALL_SOON), WW_EAGAIN);
	ck_assert_int_eq(link_rig_said(&rig, "A slot of Redis is set aside while it moves: TRYAGAIN"), 1);
	ck_assert_int_eq(report_of(1).state, REDIS_NODE_SERVES);
	OK(ww_redis_link_run(rig.link, &third, 1));
	ww_redis_link_free(&third, 1);
	ck_assert(!ww_redis_link_serves(rig.link, "a") && ww_redis_link_serves(rig.link, third.key));
	link_rig_pass(&rig, SECOND);
	OK(run_other(REDIS_CALL_SOON));
	ck_assert_int_eq(link_rig_said(&rig, "The slots of Redis that moved are back"), 1);
	ck_assert(ww_redis_link_serves(rig.link, "a"));
	close_two();
}
END_TEST

/* All keys of the slot have moved, but not the slot itself: the old node sends each call on. */
START_TEST(a_probe_of_a_slot_goes_where_it_is_sent)
{
	static const char *const on[] = {"ASK", "MOVED"};
	char answer[64];
	const struct fake_rule rules[] = {
	    {"EVALSHA", 1, FAKE_ANSWER, "-TRYAGAIN Multiple keys request during rehashing of slot\r\n", 0},
	    {"EVALSHA", 0, FAKE_ANSWER, answer, 0}, {0}};

	for (size_t i = 0; i < sizeof on / sizeof *on; i++) {
		open_two(60 * SECOND);
		(void)snprintf(answer, sizeof answer, "-%s 15495 127.0.0.1:%d\r\n", on[i], fake.port);
		fake_server_rules(&other, rules);
		ck_assert_int_eq(run_other(REDIS_CALL_SOON), WW_EAGAIN);
		link_rig_pass(&rig, SECOND);
		OK(run_other(REDIS_CALL_SOON));
		ck_assert_int_eq(link_rig_said(&rig, "The slots of Redis that moved are back"), 1);
		close_two();
	}
}
END_TEST

/* Of two connections one outlives the loss of its node: nobody makes a third while it answers. */
START_TEST(a_node_that_answers_over_an_old_connection_is_back)
{
	struct redis_wire *old;
	int accepts;

	open_both(60 * SECOND);
	OK(ww_redis_node_take(rig.link, rig.link->nodes[0], time_now(CLOCK_MONOTONIC) + 60 * SECOND, 0, &old));
	fake_server_rules(&fake, gone);
	link_rig_pass(&rig, MS);
	ck_assert_int_eq(call(), WW_EIO);
	ck_assert(!ww_redis_link_serves(rig.link, "k"));
	accepts = fake_server_accepts(&fake);
	fake_server_rules(&fake, NULL);
	/* What it answered may be older than the loss. */
	ww_redis_node_give(rig.link, old);
	ck_assert(!ww_redis_link_serves(rig.link, "k"));
	OK(call());
	ck_assert(ww_redis_link_serves(rig.link, "k"));
	ck_assert_int_eq(link_rig_said(&rig, "is back"), 1);
	ck_assert_int_eq(fake_server_accepts(&fake), accepts);
	close_both();
}
END_TEST

static void *call_other(void *argument)
{
	*(int *)argument = run_other(0);
	return NULL;
}

/* A node holds one call; the calls that come after it end at once, and a run to both nodes has the other's reply. */
START_TEST(a_silent_node_is_set_aside_alone)
{
	const struct fake_rule rules[] = {{"EVALSHA", 0, FAKE_SILENCE, "", 0}, {0}};
	struct redis_call both[2];
	pthread_t thread;
	int error;

	open_two(2 * SECOND);
	struct redis_call late = on_other;
	both[0] = on_first;
	both[1] = on_other;
	on_other.flags = 0;
	both[0].flags = both[1].flags = REDIS_CALL_AGAIN | REDIS_CALL_SOON;
	fake_server_rules(&other, rules);
	ck_assert_int_eq(pthread_create(&thread, NULL, call_other, &error), 0);
	while (fake_server_count(&other, "EVALSHA") < 2)
		(void)nanosleep(&(struct timespec){.tv_nsec = (long)MS}, NULL);
	ck_assert_int_ne(ww_redis_link_run(rig.link, both, 2), WW_OK);
	OK(both[0].error);
	ww_redis_link_free(both, 2);
	ck_assert(!ww_redis_link_serves(rig.link, "a"));
	ck_assert_int_eq(report_of(1).state, REDIS_NODE_ASIDE);
	/* The first call still waits its own time. */
	ck_assert_int_eq(ww_redis_link_run(rig.link, &late, 1), WW_EAGAIN);
	ck_assert_int_eq(late.is_sent, 0);
	ck_assert_int_eq(pthread_join(thread, NULL), 0);
	ck_assert_int_eq(error, WW_EIO);
	close_two();
}
END_TEST

TEST_MAIN("redis/backoff", a_node_that_says_later_is_set_aside_alone, a_node_that_is_back_without_scripts_serves,
    a_slot_that_moves_is_set_aside_alone, a_probe_of_a_slot_goes_where_it_is_sent, a_silent_node_is_set_aside_alone,
    a_node_that_answers_over_an_old_connection_is_back, a_lost_server_is_asked_after_a_pause_that_doubles,
    one_thread_makes_the_attempt, a_refusal_is_not_asked_for_again_at_once, a_server_that_is_not_ready_is_asked_again,
    a_server_that_is_never_ready_is_given_up_in_time, only_calls_that_were_not_done_are_repeated)
