/* The link to a single server: order, scripts, rights, errors, restarts, the pool, failing memory. */
/* tier: long, waits, threads */

#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/redis/link/link_internal.h"
#include "tests/lib/redis/fixture.h"
#include "tests/support/redis/redis_server.h"
#include "weekwheel/error.h"

static struct link_rig rig;
static struct redis_server server;

static int open_both(const char *const *options)
{
	char url[64];

	if (!redis_server_is_there())
		return 0;
	redis_server_start(&server, options);
	redis_server_url(&server, url, sizeof url);
	link_rig_open(&rig, url);
	return 1;
}

static void close_both(void)
{
	link_rig_close(&rig);
	redis_server_stop(&server);
}

/* ---- Calls */

START_TEST(answers_come_in_the_order_of_the_calls)
{
	enum { CALLS = 500 };
	struct redis_script echo = script_of("echo", "return ARGV[1]");
	struct redis_call calls[CALLS];
	char words[CALLS][16];
	const char *argv[CALLS][2];
	struct redis_link_stats before, after;

	if (!open_both(NULL))
		return;
	OK(call_script(&rig, &echo, "k", "warm", NULL));
	before = link_rig_stats(&rig);
	for (int i = 0; i < CALLS; i++) {
		(void)snprintf(words[i], sizeof words[i], "%d", i);
		argv[i][0] = i % 2 ? words[i] : "ECHO";
		argv[i][1] = words[i];
		calls[i] = (struct redis_call){.script = i % 2 ? &echo : NULL, .argc = i % 2 ? 1 : 2, .argv = argv[i]};
		calls[i].key = i % 4 == 1 ? "{key}" : NULL;
	}
	OK(ww_redis_link_run(rig.link, calls, CALLS));
	for (int i = 0; i < CALLS; i++)
		ck_assert_str_eq(calls[i].reply->str, words[i]);
	ww_redis_link_free(calls, CALLS);
	after = link_rig_stats(&rig);
	ck_assert_uint_eq(after.round_trips - before.round_trips, 1);
	ck_assert_uint_eq(after.commands - before.commands, CALLS);
	ck_assert_uint_eq(after.connections, 1);
	ck_assert_uint_eq(after.nodes, 1);
	ck_assert_int_eq(after.is_cluster, 0);
	close_both();
}
END_TEST

START_TEST(arguments_are_bytes)
{
	struct redis_script echo = script_of("echo", "return {KEYS[1], ARGV[1], ARGV[2]}");
	static char large[3 << 20];
	const char *argv[2] = {"a\0\r\nb", large};
	const size_t lengths[2] = {5, sizeof large};
	struct redis_call call = {.script = &echo, .key = "k", .argc = 2, .argv = argv, .lengths = lengths};

	if (!open_both(NULL))
		return;
	for (size_t i = 0; i < sizeof large; i++)
		large[i] = (char)(i * 7);
	/* Twice: the first time the script must be loaded. */
	for (int i = 0; i < 2; i++) {
		OK(ww_redis_link_run(rig.link, &call, 1));
		ck_assert_str_eq(call.reply->element[0]->str, "k");
		ck_assert_mem_eq(call.reply->element[1]->str, argv[0], 5);
		ck_assert_uint_eq(call.reply->element[2]->len, sizeof large);
		ck_assert_mem_eq(call.reply->element[2]->str, large, sizeof large);
		ww_redis_link_free(&call, 1);
	}
	close_both();
}
END_TEST

START_TEST(replies_of_all_types_are_read)
{
	struct redis_script all = script_of("all", "return {1, 'two', {3, false}, redis.status_reply('FOUR')}");
	struct redis_call call = {.script = &all, .key = "k"};

	if (!open_both(NULL))
		return;
	OK(ww_redis_link_run(rig.link, &call, 1));
	ck_assert_int_eq(call.reply->type, REDIS_REPLY_ARRAY);
	ck_assert_int_eq(call.reply->element[0]->integer, 1);
	ck_assert_int_eq(call.reply->element[1]->type, REDIS_REPLY_STRING);
	ck_assert_int_eq(call.reply->element[2]->element[1]->type, REDIS_REPLY_NIL);
	ck_assert_int_eq(call.reply->element[3]->type, REDIS_REPLY_STATUS);
	ck_assert_str_eq(call.reply->element[3]->str, "FOUR");
	ww_redis_link_free(&call, 1);
	close_both();
}
END_TEST

START_TEST(calls_that_cannot_be_made_end_alone)
{
	struct redis_script nameless = {.name = "x", .text = "return 1", .length = 8};
	const char *ping = "PING";
	struct redis_call calls[4] = {{.argc = 0}, {.script = &nameless}, {.argc = REDIS_ARGS_MAX + 1, .argv = &ping},
	    {.argc = 1, .argv = &ping}};

	if (!open_both(NULL))
		return;
	ck_assert_int_eq(ww_redis_link_run(rig.link, calls, 4), WW_EINVAL);
	for (int i = 0; i < 3; i++)
		ck_assert_int_eq(calls[i].error, WW_EINVAL);
	OK(calls[3].error);
	ww_redis_link_free(calls, 4);
	OK(ww_redis_link_run(rig.link, NULL, 0));
	close_both();
}
END_TEST

/* ---- Scripts */

START_TEST(names_of_scripts_agree_with_the_server)
{
	char text[300] = "return 1 --";

	if (!open_both(NULL))
		return;
	while (strlen(text) < 290) {
		struct redis_script script = script_of("s", text);
		const char *argv[3] = {"SCRIPT", "LOAD", text};
		struct redis_call load = {.argc = 3, .argv = argv};
		OK(ww_redis_link_run(rig.link, &load, 1));
		ck_assert_str_eq(script.sha, load.reply->str);
		ww_redis_link_free(&load, 1);
		(void)strcat(text, "x");
	}
	close_both();
}
END_TEST

START_TEST(a_forgotten_script_is_loaded_once_for_all)
{
	enum { CALLS = 50 };
	struct redis_script count = script_of("count", "return redis.call('INCR', KEYS[1])");
	struct redis_script other = script_of("other", "return 5");
	struct redis_call calls[CALLS];
	struct redis_link_stats before, after;

	if (!open_both(NULL))
		return;
	for (int flushed = 0; flushed < 3; flushed++) {
		before = link_rig_stats(&rig);
		for (int i = 0; i < CALLS; i++)
			calls[i] = (struct redis_call){.script = i % 5 == 4 ? &other : &count, .key = "k"};
		OK(ww_redis_link_run(rig.link, calls, CALLS));
		ww_redis_link_free(calls, CALLS);
		after = link_rig_stats(&rig);
		ck_assert_uint_eq(after.loads - before.loads, 2);
		ck_assert_uint_eq(after.round_trips - before.round_trips, 2);
		redis_server_tell(&server, "SCRIPT FLUSH");
	}
	/* No call was done twice. */
	ck_assert_int_eq(redis_server_number(&server, "INCR k"), 3 * 40 + 1);
	close_both();
}
END_TEST

/* ---- What the server refuses */

START_TEST(a_full_memory_is_reported)
{
	struct redis_script set = script_of("set", "return redis.call('SET', KEYS[1], ARGV[1])");
	struct redis_script get = script_of("get", "#!lua flags=no-writes\nreturn redis.call('EXISTS', KEYS[1])");
	long long number;

	if (!open_both(NULL))
		return;
	OK(call_script(&rig, &set, "k", "v", NULL));
	OK(call_script(&rig, &get, "k", NULL, &number));
	redis_server_tell(&server, "CONFIG SET maxmemory 1");
	ck_assert_int_eq(call_script(&rig, &set, "k", "v", NULL), WW_EFULL);
	OK(call_script(&rig, &get, "k", NULL, &number));
	ck_assert_int_eq(number, 1);
	redis_server_tell(&server, "CONFIG SET maxmemory 0");
	OK(call_script(&rig, &set, "k", "v", NULL));
	close_both();
}
END_TEST

START_TEST(a_replica_is_noticed)
{
	struct redis_script set = script_of("set", "return redis.call('SET', KEYS[1], 'v')");
	struct redis_server primary;

	if (!redis_server_is_there())
		return;
	redis_server_start(&primary, NULL);
	ck_assert_int_eq(open_both(NULL), 1);
	redis_server_tell(&server, "REPLICAOF 127.0.0.1 %d", primary.port);
	redis_server_wait_info(&server, "replication", "master_link_status:up");
	ck_assert_int_eq(call_script(&rig, &set, "k", NULL, NULL), WW_EDENIED);
	ck_assert_int_eq(link_rig_said(&rig, "is a replica: give the address of the primary"), 1);
	ck_assert_int_eq(call_script(&rig, &set, "k", NULL, NULL), WW_EDENIED);
	ck_assert_int_eq(rig.said, 1);
	/* Once promoted, it takes calls. */
	redis_server_tell(&server, "REPLICAOF NO ONE");
	OK(call_script(&rig, &set, "k", NULL, NULL));
	redis_server_stop(&primary);
	close_both();
}
END_TEST

START_TEST(an_unknown_error_is_reported)
{
	struct redis_script broken = script_of("broken", "return redis.call('LPUSH', KEYS[1], 'x')");

	if (!open_both(NULL))
		return;
	redis_server_tell(&server, "SET k v");
	ck_assert_int_eq(call_script(&rig, &broken, "k", NULL, NULL), WW_ECORRUPT);
	ck_assert_int_eq(link_rig_said(&rig, "answers broken: WRONGTYPE"), 1);
	ck_assert_int_eq(call_words(&rig, "NOSUCHCOMMAND", NULL, NULL, NULL), WW_ECORRUPT);
	ck_assert_int_eq(link_rig_said(&rig, "answers NOSUCHCOMMAND"), 1);
	close_both();
}
END_TEST

START_TEST(a_busy_server_is_asked_again)
{
	struct redis_script quick = script_of("quick", "return 1");
	struct redis_script endless = script_of("endless", "while true do end");
	struct link_rig slow;
	char url[64];
	int error;

	if (!open_both((const char *const[]){"--busy-reply-threshold", "1", NULL}))
		return;
	redis_server_url(&server, url, sizeof url);
	link_rig_make(&slow, url);
	slow.config.timeout = 60 * SECOND;
	OK(ww_redis_link_open(&slow.link, &slow.config));
	slow.link->config.timeout = 1000 * MS;
	ck_assert_int_eq(call_script(&slow, &endless, "k", NULL, NULL), WW_EIO);
	ck_assert_int_eq(link_rig_said(&slow, "does not answer in time"), 1);
	/* Meanwhile it answers that it is busy, once the machine lets it. */
	do {
		link_rig_pass(&slow, 60 * SECOND);
		error = call_script(&slow, &quick, "k", NULL, NULL);
	} while (error == WW_EIO);
	ck_assert_int_eq(error, WW_EAGAIN);
	redis_server_tell(&server, "SCRIPT KILL");
	OK(call_script(&rig, &quick, "k", NULL, NULL));
	link_rig_close(&slow);
	close_both();
}
END_TEST

/* ---- Passwords, rights, databases, sockets */

/* Open and expect this result. The report must contain the words. */
static void expect_open(int expected, const char *says, const char *format, ...) __attribute__((format(printf, 3, 4)));

static void expect_open(int expected, const char *says, const char *format, ...)
{
	char url[256];
	va_list values;
	int error;

	va_start(values, format);
	(void)vsnprintf(url, sizeof url, format, values);
	va_end(values);
	link_rig_make(&rig, url);
	error = ww_redis_link_open(&rig.link, &rig.config);
	ck_assert_msg(error == expected, "%s: %d: %s", url, error, rig.sentences[0]);
	if (!error)
		OK(call_words(&rig, "SET", "key", "value", NULL));
	else
		ck_assert_msg(link_rig_said(&rig, says) == 1, "%s: %s", url, rig.sentences[0]);
	ck_assert_int_eq(link_rig_said(&rig, "secret"), 0);
	link_rig_close(&rig);
}

START_TEST(passwords_and_rights_are_needed)
{
	if (!redis_server_is_there())
		return;
	redis_server_start(&server, NULL);
	expect_open(WW_OK, "", "redis://127.0.0.1:%d", server.port);
	expect_open(WW_EDENIED, "without any password", "redis://:secret@127.0.0.1:%d", server.port);
	redis_server_tell(&server, "ACL SETUSER me on >se@cret:/ +@all ~*");
	redis_server_tell(&server, "ACL SETUSER reader on >secret +get +ping ~*");
	redis_server_tell(&server, "ACL SETUSER free on nopass +@all ~*");
	expect_open(WW_OK, "", "redis://me:se%%40cret%%3A%%2f@127.0.0.1:%d", server.port);
	expect_open(WW_EDENIED, "WRONGPASS", "redis://me:secret@127.0.0.1:%d", server.port);
	expect_open(WW_EDENIED, "NOPERM", "redis://reader:secret@127.0.0.1:%d", server.port);
	expect_open(WW_OK, "", "redis://free@127.0.0.1:%d", server.port);
	redis_server_tell(&server, "CONFIG SET requirepass secret");
	expect_open(WW_OK, "", "redis://:secret@127.0.0.1:%d", server.port);
	expect_open(WW_EDENIED, "WRONGPASS", "redis://:secrex@127.0.0.1:%d", server.port);
	expect_open(WW_EDENIED, "NOAUTH", "redis://127.0.0.1:%d", server.port);
	redis_server_stop(&server);
}
END_TEST

START_TEST(a_right_that_is_taken_away_is_reported)
{
	struct redis_script script = script_of("script", "return redis.call('INCR', KEYS[1])");
	char url[64];

	if (!redis_server_is_there())
		return;
	redis_server_start(&server, NULL);
	redis_server_tell(&server, "ACL SETUSER me on >p +@all ~*");
	(void)snprintf(url, sizeof url, "redis://me:p@127.0.0.1:%d", server.port);
	link_rig_open(&rig, url);
	OK(call_script(&rig, &script, "k", NULL, NULL));
	redis_server_tell(&server, "ACL SETUSER me -evalsha");
	ck_assert_int_eq(call_script(&rig, &script, "k", NULL, NULL), WW_EDENIED);
	ck_assert_int_eq(link_rig_said(&rig, "NOPERM"), 1);
	close_both();
}
END_TEST

START_TEST(databases_and_sockets_can_be_chosen)
{
	if (!redis_server_is_there())
		return;
	redis_server_start(&server, NULL);
	expect_open(WW_OK, "", "redis://127.0.0.1:%d/3", server.port);
	ck_assert_int_eq(redis_server_number(&server, "DBSIZE"), 0);
	expect_open(WW_EINVAL, "out of range", "redis://127.0.0.1:%d/16", server.port);
	expect_open(WW_OK, "", "unix://%s/socket", server.folder);
	ck_assert_int_eq(redis_server_number(&server, "DBSIZE"), 1);
	expect_open(WW_OK, "", "unix://%s/socket?db=2", server.folder);
	expect_open(WW_EIO, "cannot be reached", "unix://%s/none", server.folder);
	expect_open(WW_EIO, "cannot be reached", "redis://127.0.0.1:%d", server.bus);
	expect_open(WW_EINVAL, "not a cluster", "redis://127.0.0.1:%d,127.0.0.1:%d", server.port, server.port + 1);
	expect_open(WW_EIO, "TLS: ", "rediss://127.0.0.1:%d", server.port);
	redis_server_stop(&server);
}
END_TEST

START_TEST(a_config_out_of_range_is_refused)
{
	struct redis_link *link = NULL;

	link_rig_make(&rig, "redis://127.0.0.1");
	for (int i = 0; i < 5; i++) {
		struct redis_link_config config = rig.config;
		if (i == 0)
			config.timeout = 0;
		if (i == 1)
			config.connections = 0;
		if (i == 2)
			config.reply_max = 0;
		if (i == 3)
			config.allocator = NULL;
		if (i == 4)
			config.url = NULL;
		ck_assert_int_eq(ww_redis_link_open(&link, &config), WW_EINVAL);
		ck_assert_ptr_null(link);
	}
	link_rig_close(&rig);
}
END_TEST

/* ---- Losing the server */

START_TEST(a_restart_between_calls_is_not_noticed)
{
	struct redis_script count = script_of("count", "return redis.call('INCR', KEYS[1])");
	long long number;

	if (!open_both((const char *const[]){"--appendonly", "yes", "--appendfsync", "always", NULL}))
		return;
	for (int i = 1; i <= 3; i++) {
		OK(call_script(&rig, &count, "k", NULL, &number));
		ck_assert_int_eq(number, i);
		redis_server_kill(&server);
		redis_server_restart(&server);
	}
	ck_assert_int_eq(rig.said, 0);
	close_both();
}
END_TEST

START_TEST(lost_and_back_are_reported_once)
{
	struct redis_script one = script_of("one", "return 1");

	if (!open_both(NULL))
		return;
	OK(call_script(&rig, &one, "k", NULL, NULL));
	redis_server_kill(&server);
	for (int i = 0; i < 5; i++) {
		ck_assert_int_eq(call_script(&rig, &one, "k", NULL, NULL), WW_EIO);
		link_rig_pass(&rig, SECOND);
	}
	ck_assert_int_eq(rig.said, 1);
	ck_assert_int_eq(link_rig_said(&rig, "cannot be reached"), 1);
	redis_server_restart(&server);
	link_rig_pass(&rig, 60 * SECOND);
	for (int i = 0; i < 3; i++)
		OK(call_script(&rig, &one, "k", NULL, NULL));
	ck_assert_int_eq(rig.said, 2);
	ck_assert_int_eq(link_rig_said(&rig, "is back"), 1);
	close_both();
}
END_TEST

START_TEST(a_frozen_server_is_given_up_and_found_again)
{
	struct redis_script echo = script_of("echo", "return ARGV[1]");
	struct link_rig hasty;
	char url[64];
	long long number;

	if (!open_both(NULL))
		return;
	redis_server_url(&server, url, sizeof url);
	link_rig_make(&hasty, url);
	hasty.config.timeout = 200 * MS;
	OK(ww_redis_link_open(&hasty.link, &hasty.config));
	OK(call_script(&rig, &echo, "k", "x", NULL));
	redis_server_freeze(&server);
	ck_assert_int_eq(call_script(&hasty, &echo, "k", "four", NULL), WW_EIO);
	ck_assert_uint_eq(link_rig_stats(&hasty).open, 0);
	redis_server_thaw(&server);
	link_rig_pass(&hasty, 60 * SECOND);
	/* The late answer was dropped with its connection. */
	OK(call_script(&hasty, &echo, "k", "seventh", &number));
	ck_assert_int_eq(number, 7);
	ck_assert_int_eq(link_rig_said(&hasty, "is back"), 1);
	link_rig_close(&hasty);
	close_both();
}
END_TEST

/* ---- The pool */

enum { THREADS = 8, RUNS = 200 };
static struct redis_script echo_script;
static _Atomic int wrong;

static void *run_many(void *argument)
{
	unsigned number = *(const unsigned *)argument;

	for (unsigned i = 0; i < RUNS; i++) {
		char one[16], two[16];
		const char *argv[2] = {one, two};
		struct redis_call calls[2] = {{.script = &echo_script, .key = "a", .argc = 1, .argv = &argv[0]},
		    {.script = &echo_script, .key = "b", .argc = 1, .argv = &argv[1]}};
		(void)snprintf(one, sizeof one, "%u", number * RUNS + i);
		(void)snprintf(two, sizeof two, "x%u", number * RUNS + i);
		wrong += ww_redis_link_run(rig.link, calls, 2) != WW_OK;
		wrong += !calls[0].reply || strcmp(calls[0].reply->str, one) != 0;
		wrong += !calls[1].reply || strcmp(calls[1].reply->str, two) != 0;
		ww_redis_link_free(calls, 2);
	}
	return NULL;
}

START_TEST(threads_share_a_few_connections)
{
	pthread_t threads[THREADS];
	unsigned numbers[THREADS];
	char url[64];

	if (!redis_server_is_there())
		return;
	redis_server_start(&server, NULL);
	redis_server_url(&server, url, sizeof url);
	for (unsigned most = 1; most < 4; most++) {
		link_rig_make(&rig, url);
		rig.config.connections = most;
		OK(ww_redis_link_open(&rig.link, &rig.config));
		echo_script = script_of("echo", "return ARGV[1]");
		for (unsigned i = 0; i < THREADS; i++) {
			numbers[i] = i;
			ck_assert_int_eq(pthread_create(&threads[i], NULL, run_many, &numbers[i]), 0);
		}
		for (unsigned i = 0; i < THREADS; i++)
			ck_assert_int_eq(pthread_join(threads[i], NULL), 0);
		ck_assert_int_eq(wrong, 0);
		ck_assert_uint_le(link_rig_stats(&rig).open, most);
		ck_assert_uint_le(link_rig_stats(&rig).connections, most);
		link_rig_close(&rig);
	}
	redis_server_stop(&server);
}
END_TEST

/* ---- Memory */

START_TEST(each_allocation_that_fails_does_no_harm)
{
	enum { CALLS = 20 };
	struct redis_script all = script_of("all", "return {1, 'two', {3, false}, ARGV[1]}");
	struct redis_call calls[CALLS];
	const char *argument = "x";
	char url[64];
	size_t fail_at;
	int has_failed = 1;

	if (!redis_server_is_there())
		return;
	redis_server_start(&server, NULL);
	redis_server_url(&server, url, sizeof url);
	for (fail_at = 1; has_failed; fail_at++) {
		int error;
		link_rig_make(&rig, url);
		rig.fail_at = fail_at;
		error = ww_redis_link_open(&rig.link, &rig.config);
		ck_assert(error == WW_OK || error == WW_ENOMEM);
		if (!error) {
			for (int i = 0; i < CALLS; i++)
				calls[i] =
				    (struct redis_call){.script = &all, .key = "k", .argc = 1, .argv = &argument};
			error = ww_redis_link_run(rig.link, calls, CALLS);
			ck_assert(error == WW_OK || error == WW_ENOMEM);
			ww_redis_link_free(calls, CALLS);
			/* Afterwards the link works again. */
			rig.fail_at = 0;
			has_failed = rig.calls >= fail_at;
			OK(call_script(&rig, &all, "k", NULL, NULL));
		}
		link_rig_close(&rig);
	}
	ck_assert_uint_gt(fail_at, 20);
	redis_server_stop(&server);
}
END_TEST

TEST_MAIN("redis/link", answers_come_in_the_order_of_the_calls, arguments_are_bytes, replies_of_all_types_are_read,
    calls_that_cannot_be_made_end_alone, names_of_scripts_agree_with_the_server,
    a_forgotten_script_is_loaded_once_for_all, a_full_memory_is_reported, a_replica_is_noticed,
    an_unknown_error_is_reported, a_busy_server_is_asked_again, passwords_and_rights_are_needed,
    a_right_that_is_taken_away_is_reported, databases_and_sockets_can_be_chosen, a_config_out_of_range_is_refused,
    a_restart_between_calls_is_not_noticed, lost_and_back_are_reported_once,
    a_frozen_server_is_given_up_and_found_again, threads_share_a_few_connections,
    each_allocation_that_fails_does_no_harm)
