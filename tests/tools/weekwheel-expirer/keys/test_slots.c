/* What the keeper of a cluster's node asks, word by word, and what it makes of MOVED, ASK and TRYAGAIN, also at random. */
/* tier: quick */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <hiredis/hiredis.h>

#include "tests/support/seed.h"
#include "tests/support/suite.h"
#include "tools/weekwheel-expirer/keys/keeper.h"

#define MS UINT64_C(1000000)

/* ms of Redis's clock when the local one shows 0. */
enum { BEGIN = 1000000 };

static struct cluster_world {
	struct keeper keeper;
	uint64_t local;
	char sent[65536];
	uint64_t state; /* of what is random */
} world;

/* A key's slot is its first character. */
static unsigned slot_of(const char *key, size_t length)
{
	ck_assert_uint_gt(length, 0);
	return (unsigned char)*key;
}

static int note(void *context, size_t argc, const char *const *argv, const size_t *lengths)
{
	(void)context;
	for (size_t i = 0; i < argc; i++) {
		size_t length = lengths ? lengths[i] : strlen(argv[i]);

		sprintf(world.sent + strlen(world.sent), "%.*s%c", (int)length, argv[i], i + 1 < argc ? ' ' : '\n');
	}
	return 0;
}

/* What is sent next. */
static const char *next(void)
{
	uint64_t again;

	*world.sent = '\0';
	ck_assert_int_eq(keeper_next(&world.keeper, world.local, &again), 0);
	return world.sent;
}

static void answer(const char *text)
{
	struct redisReader *reader = redisReaderCreate();
	void *reply;

	ck_assert_int_eq(redisReaderFeed(reader, text, strlen(text)), REDIS_OK);
	while (redisReaderGetReply(reader, &reply) == REDIS_OK && reply) {
		const struct redisReply *made = reply;

		ck_assert(made->type != REDIS_REPLY_ERROR || keeper_takes_error(&world.keeper, reply));
		ck_assert_int_eq(keeper_reply(&world.keeper, reply, world.local), 0);
		freeReplyObject(reply);
	}
	redisReaderFree(reader);
}

static void set_time(void)
{
	uint64_t us = BEGIN * UINT64_C(1000) + world.local / 1000;
	char text[200];

	sprintf(text, "*2\r\n$%d\r\n%llu\r\n$6\r\n%06llu\r\n", (int)snprintf(NULL, 0, "%llu", us / 1000000ULL),
	    us / 1000000ULL, us % 1000000ULL);
	if (strstr(world.sent, "HELLO"))
		strcat(text, "*4\r\n$4\r\nmode\r\n$7\r\ncluster\r\n$4\r\nrole\r\n$6\r\nmaster\r\n");
	answer(text);
}

/* What is sent when this many ms are over, besides requests for the time. */
static const char *after(uint64_t ms)
{
	world.local += ms * MS;
	while (strncmp(next(), "TIME", 4) == 0)
		set_time();
	return world.sent;
}

/* What is sent when keys have waited for others. */
static const char *gathered(void)
{
	ck_assert_str_eq(after(0), "");
	return after(3);
}

static void hear(const char *key)
{
	ck_assert_int_eq(keeper_heard(&world.keeper, key, 2), 0);
}

/* Keys are heard, and are found to end after so many ms, one ms after the other. */
static void keep(const char *keys, int64_t ms)
{
	long long until = BEGIN + (long long)(world.local / MS) + (long long)ms;
	char found[100];

	for (const char *key = keys; *key; key += 2)
		hear(key);
	ck_assert_str_ne(gathered(), "");
	for (const char *key = keys; *key; key += 2) {
		sprintf(found, ":%lld\r\n", until++);
		if (strstr(world.sent, "ASKING"))
			answer("+OK\r\n");
		answer(found);
	}
	ck_assert_int_eq(world.keeper.kind, KEEPER_IDLE);
}

static void begin(uint64_t lead_ms)
{
	const struct keeper_config config = {
	    .slot = slot_of, .lead_ms = lead_ms, .value_max = 8, .values_max = 1000, .append = note};

	memset(&world, 0, sizeof world);
	ck_assert_int_eq(keeper_begin(&world.keeper, &config), 0);
	world.keeper.serves['a' / 8] |= 1 << 'a' % 8;
	world.keeper.serves['b' / 8] |= 1 << 'b' % 8;
	keeper_connected(&world.keeper, world.local, 1);
	ck_assert_str_eq(after(1), "SCAN 0 COUNT 256\n");
	answer("*2\r\n$1\r\n0\r\n*0\r\n");
	ck_assert_int_eq(world.keeper.is_exact, 1);
}

static struct keeper_stats end(void)
{
	struct keeper_stats stats;

	keeper_read_stats(&world.keeper, &stats);
	keeper_end(&world.keeper);
	return stats;
}

START_TEST(keys_are_asked_for_slot_by_slot)
{
	struct keeper_stats stats;

	begin(0);
	keep("a1b1a2", 50);
	ck_assert_str_eq(after(60), "EXISTS a1 a2\nEXISTS b1\n");
	answer(":1\r\n");
	answer(":0\r\n");
	/* One of a slot is left: both are looked up. */
	ck_assert_str_eq(gathered(), "PEXPIRETIME a1\nPEXPIRETIME a2\n");
	answer(":-2\r\n:-1\r\n");
	stats = end();
	ck_assert_uint_eq(stats.expired, 2);
	ck_assert_uint_eq(stats.later, 1);
	ck_assert_uint_eq(stats.known, 0);
}
END_TEST

START_TEST(a_slot_that_is_coming_is_asked_for_with_asking)
{
	struct keeper_stats stats;

	begin(0);
	hear("x1");
	ck_assert_str_eq(gathered(), "PEXPIRETIME x1\n");
	answer("-MOVED 120 127.0.0.1:1\r\n");
	ck_assert_str_eq(gathered(), "ASKING\nPEXPIRETIME x1\n");
	answer("+OK\r\n:1000050\r\n");
	ck_assert_str_eq(after(60), "ASKING\nEXISTS x1\n");
	answer("+OK\r\n:0\r\n");
	hear("x1");
	ck_assert_str_eq(gathered(), "ASKING\nPEXPIRETIME x1\n");
	answer("+OK\r\n:-2\r\n");
	/* The slot is here before ASKING is tried again. */
	keep("x2", 20000);
	ck_assert_str_eq(after(20010), "EXISTS x2\n");
	answer("-MOVED 120 127.0.0.1:1\r\n");
	ck_assert_str_eq(next(), "ASKING\nEXISTS x2\n");
	answer("+OK\r\n:0\r\n");
	stats = end();
	ck_assert_uint_eq(stats.expired, 2);
	ck_assert_uint_eq(stats.due, 2);
	ck_assert_uint_eq(stats.known, 0);
}
END_TEST

START_TEST(a_key_of_a_slot_that_is_served_elsewhere_is_dropped)
{
	begin(0);
	keep("x1x2", 50);
	hear("x2");
	world.keeper.asking_until = KEEPER_NEVER;
	ck_assert_str_eq(gathered(), "ASKING\nPEXPIRETIME x2\n");
	answer("+OK\r\n-MOVED 120 127.0.0.1:1\r\n");
	ck_assert_str_eq(after(60), "ASKING\nEXISTS x1\n");
	answer("+OK\r\n-MOVED 120 127.0.0.1:1\r\n");
	ck_assert_int_eq(world.keeper.is_misled, 0);
	ck_assert_uint_eq(end().known, 0);
}
END_TEST

/* Until the owner knows who serves the slot now: it sets serves, or connects to the new master. */
START_TEST(a_key_of_a_slot_that_should_be_served_is_asked_for_again)
{
	begin(0);
	keep("a1b1", 50);
	world.keeper.asking_until = KEEPER_NEVER;
	ck_assert_str_eq(after(60), "ASKING\nEXISTS a1\nASKING\nEXISTS b1\n");
	answer("+OK\r\n-MOVED 97 127.0.0.1:1\r\n+OK\r\n-MOVED 98 127.0.0.1:1\r\n");
	ck_assert_int_eq(world.keeper.is_misled, 1);
	ck_assert_str_eq(after(90), "");
	world.keeper.serves['b' / 8] = 1 << 'a' % 8;
	ck_assert_str_eq(after(20), "ASKING\nEXISTS a1\nASKING\nEXISTS b1\n");
	answer("+OK\r\n:0\r\n+OK\r\n-MOVED 98 127.0.0.1:1\r\n");
	ck_assert_uint_eq(end().known, 0);
}
END_TEST

START_TEST(a_cluster_that_is_down_is_asked_again)
{
	begin(0);
	keep("a1b1", 50);
	ck_assert_str_eq(after(60), "EXISTS a1\nEXISTS b1\n");
	answer("-CLUSTERDOWN The cluster is down\r\n-CLUSTERDOWN The cluster is down\r\n");
	ck_assert_int_eq(world.keeper.is_down, 1);
	/* A change of a key is not forgotten. */
	hear("a2");
	ck_assert_str_eq(gathered(), "PEXPIRETIME a2\n");
	answer("-CLUSTERDOWN The cluster is down\r\n");
	ck_assert_str_eq(after(98), "EXISTS a1 a2\nEXISTS b1\n");
	answer(":1\r\n-CLUSTERDOWN The cluster is down\r\n");
	ck_assert_int_eq(world.keeper.is_down, 1);
	ck_assert_str_eq(gathered(), "PEXPIRETIME a1\nPEXPIRETIME a2\n");
	answer(":-2\r\n:-2\r\n");
	ck_assert_int_eq(world.keeper.is_down, 0);
	ck_assert_str_eq(after(100), "EXISTS b1\n");
	answer(":0\r\n");
	ck_assert_uint_eq(end().known, 0);
}
END_TEST

/* Its slot has moved meanwhile, and no key is left: no later answer would say that the cluster serves again. */
START_TEST(a_cluster_is_not_down_that_says_where_a_slot_is)
{
	begin(0);
	keep("a1b1", 50);
	world.keeper.asking_until = KEEPER_NEVER;
	ck_assert_str_eq(after(60), "ASKING\nEXISTS a1\nASKING\nEXISTS b1\n");
	answer("+OK\r\n-CLUSTERDOWN The cluster is down\r\n+OK\r\n-CLUSTERDOWN The cluster is down\r\n");
	ck_assert_int_eq(world.keeper.is_down, 1);
	memset(world.keeper.serves, 0, sizeof world.keeper.serves);
	hear("b1");
	ck_assert_str_eq(gathered(), "ASKING\nPEXPIRETIME b1\n");
	answer("+OK\r\n-MOVED 98 127.0.0.1:1\r\n");
	ck_assert_int_eq(world.keeper.is_down, 0);
	world.keeper.is_down = 1;
	ck_assert_str_eq(after(100), "ASKING\nEXISTS a1\n");
	answer("+OK\r\n-MOVED 97 127.0.0.1:1\r\n");
	ck_assert_int_eq(world.keeper.is_down, 0);
	ck_assert_str_eq(after(1000), "");
	ck_assert_uint_eq(end().known, 0);
}
END_TEST

/* More than one request takes. */
START_TEST(all_that_are_held_have_their_turn)
{
	char key[16];
	unsigned asked = 0;

	begin(0);
	for (int i = 0; i < 600; i++) {
		int length = sprintf(key, "a%d", i);

		ck_assert_int_eq(deadlines_set(world.keeper.deadlines, key, (size_t)length, BEGIN + 50), 0);
	}
	after(60);
	while (strncmp(world.sent, "EXISTS", 6) == 0) {
		answer("-CLUSTERDOWN The cluster is down\r\n");
		asked++;
		after(1);
	}
	ck_assert_uint_eq(asked, (600 + 127) / 128);
	/* Another round asks for each once. */
	ck_assert_str_ne(after(300), "");
	while (strncmp(world.sent, "EXISTS", 6) == 0) {
		answer(":0\r\n");
		after(0);
	}
	ck_assert_uint_eq(end().known, 0);
}
END_TEST

START_TEST(what_was_on_its_way_is_asked_for_again)
{
	begin(0);
	keep("a1b1", 50);
	ck_assert_str_eq(after(60), "EXISTS a1\nEXISTS b1\n");
	answer(":0\r\n");
	keeper_connected(&world.keeper, world.local, 1);
	ck_assert_str_eq(after(0), "EXISTS b1\n");
	answer(":0\r\n");
	ck_assert_uint_eq(end().expired, 2);
}
END_TEST

/* Redis does not delete it: it answers as if the key were gone already. */
START_TEST(a_key_that_a_leaving_slot_keeps_is_asked_for_again)
{
	begin(0);
	keep("a1a2b1", 50);
	ck_assert_str_eq(after(60), "EXISTS a1 a2\nEXISTS b1\n");
	answer("-TRYAGAIN Multiple keys request during rehashing of slot\r\n-ASK 98 127.0.0.1:1\r\n");
	ck_assert_str_eq(gathered(), "PEXPIRETIME a1\nPEXPIRETIME a2\n");
	answer("-ASK 97 127.0.0.1:1\r\n:-2\r\n");
	ck_assert_str_eq(after(97), "EXISTS b1\n");
	answer("-ASK 98 127.0.0.1:1\r\n");
	/* It is set again meanwhile: its new deadline counts. */
	keep("b1", 150);
	ck_assert_str_eq(after(100), "");
	ck_assert_str_eq(after(100), "EXISTS b1\n");
	answer(":0\r\n");
	ck_assert_uint_eq(end().known, 0);
}
END_TEST

/* It answers that the key is gone, but writes are paused: no deletion is reported. */
START_TEST(a_key_that_redis_has_not_deleted_is_asked_for_again)
{
	struct keeper_stats stats;
	unsigned asked = 0;

	begin(0);
	keep("a1a2", 50);
	ck_assert_str_eq(after(60), "EXISTS a1 a2\n");
	answer(":0\r\n");
	hear("a1");
	ck_assert_str_eq(gathered(), "PEXPIRETIME a1\n");
	answer(":-2\r\n");
	keeper_read_stats(&world.keeper, &stats);
	ck_assert_uint_eq(stats.expired, 2);
	ck_assert_uint_eq(stats.known, 0);
	/* After 2, 4, 8, 16, 32 and 64 s. By then its deletion was not heard, or its own cycle has to find it. */
	for (unsigned i = 0; i < 2000; i++)
		if (*after(100)) {
			ck_assert_str_eq(world.sent, "EXISTS a2\n");
			answer(":0\r\n");
			asked++;
		}
	ck_assert_uint_eq(asked, 6);
	ck_assert_uint_eq(deadlines_count(world.keeper.deadlines), 0);
	stats = end();
	ck_assert_uint_eq(stats.expired, 2);
	ck_assert_uint_eq(stats.due, 2);
}
END_TEST

/* Its old place among those that are held is still there. Dropped twice, its record would get two owners. */
START_TEST(a_key_that_is_held_twice_is_asked_for_once)
{
	struct keeper_stats stats;

	begin(0);
	keep("b1", 50);
	ck_assert_str_eq(after(60), "EXISTS b1\n");
	answer("-ASK 98 127.0.0.1:1\r\n");
	keep("b1", 30);
	ck_assert_str_eq(after(40), "EXISTS b1\n");
	answer("-ASK 98 127.0.0.1:1\r\n");
	ck_assert_str_eq(after(100), "EXISTS b1\n");
	answer(":0\r\n");
	ck_assert_str_eq(after(1000), "");
	ck_assert_uint_eq(world.keeper.held_count, 0);
	stats = end();
	ck_assert_uint_eq(stats.expired, 1);
	ck_assert_uint_eq(stats.known, 0);
}
END_TEST

/* Those that were answered have gone on: their records may have other keys by now, or none. */
START_TEST(only_reads_on_their_way_are_done_again)
{
	begin(20);
	keep("a1a2", 50);
	ck_assert_str_eq(after(35), "TYPE a1\nGETRANGE a1 0 8\nTYPE a2\nGETRANGE a2 0 8\n");
	answer("+string\r\n$1\r\nv\r\n+string\r\n$1\r\nv\r\n");
	ck_assert_str_eq(after(25), "EXISTS a1 a2\n");
	answer(":0\r\n");
	keeper_connected(&world.keeper, world.local, 1);
	ck_assert_str_eq(after(1), "SCAN 0 COUNT 256\n");
	answer("*2\r\n$1\r\n0\r\n*0\r\n");
	ck_assert_str_eq(after(100), "");

	keep("a3a4", 50);
	ck_assert_str_eq(after(35), "TYPE a3\nGETRANGE a3 0 8\nTYPE a4\nGETRANGE a4 0 8\n");
	answer("+string\r\n$1\r\nv\r\n+string\r\n");
	keeper_connected(&world.keeper, world.local, 1);
	ck_assert_str_eq(after(25), "EXISTS a3 a4\n");
	answer(":0\r\n");
	ck_assert_uint_eq(end().known, 0);
}
END_TEST

/* ---- Anything */

static uint64_t chance(uint64_t of)
{
	return seed_below(&world.state, of);
}

static void say(const char *format, unsigned long long number)
{
	char text[100];

	(void)snprintf(text, sizeof text, format, number);
	answer(text);
}

/* Whether a command with keys is answered with an error, as while slots move and nodes fail. */
static int refuse(void)
{
	static const char *const errors[] = {"-MOVED 97 127.0.0.1:1\r\n", "-ASK 97 127.0.0.1:1\r\n",
	    "-TRYAGAIN Multiple keys request during rehashing of slot\r\n", "-CLUSTERDOWN The cluster is down\r\n"};

	if (chance(2))
		return 0;
	answer(errors[chance(4)]);
	return 1;
}

static void answer_anything(const char *command)
{
	if (strncmp(command, "TIME", 4) == 0)
		set_time();
	else if (strncmp(command, "ASKING", 6) == 0)
		answer("+OK\r\n");
	else if (strncmp(command, "SCAN", 4) == 0)
		answer(chance(2) ? "*2\r\n$1\r\n0\r\n*0\r\n" : "*2\r\n$1\r\n0\r\n*2\r\n$2\r\na1\r\n$2\r\nb2\r\n");
	else if (strncmp(command, "TYPE", 4) == 0)
		answer(chance(4) ? "+string\r\n" : "+none\r\n");
	else if (strncmp(command, "GETRANGE", 8) == 0)
		answer("$1\r\nv\r\n");
	else if (strncmp(command, "EXISTS", 6) == 0 && !refuse())
		say(":%llu\r\n", chance(4) == 0);
	else if (strncmp(command, "PEXPIRETIME", 11) == 0 && !refuse())
		say(chance(4) ? ":%llu\r\n" : ":-2\r\n", BEGIN + world.local / MS + chance(100));
}

/* Answer all that was sent, or lose the connection before some of it. */
static void answer_all(void)
{
	char sent[sizeof world.sent];
	char *rest = strcpy(sent, world.sent);

	for (const char *command; (command = strsep(&rest, "\n")) && *command;) {
		if (chance(100) == 0) {
			keeper_connected(&world.keeper, world.local, 1);
			return;
		}
		answer_anything(command);
	}
}

/* A record has one key, which leads to it. */
static void count_record(void *context, uint32_t index)
{
	size_t *count = context;
	struct known_key known;
	size_t length;
	const char *key = deadlines_key(world.keeper.deadlines, index, &length);

	ck_assert_int_eq(deadlines_find(world.keeper.deadlines, key, length, &known), 1);
	ck_assert_uint_eq(known.index, index);
	(*count)++;
}

START_TEST(whatever_is_answered_a_record_has_one_key)
{
	begin(20 * (uint64_t)_i);
	world.state = seed_of_run("test_slots");
	for (int round = 0; round < seed_rounds(20000); round++) {
		const char key[] = {"abx"[chance(3)], (char)('0' + chance(10)), '\0'};
		uint32_t from = 0;
		size_t count = 0;

		if (chance(3) == 0)
			hear(key);
		if (chance(50) == 0)
			world.keeper.serves['a' / 8] ^= 1 << chance(8);
		if (chance(200) == 0)
			keeper_pass(&world.keeper);
		world.local += chance(10) * MS;
		next();
		answer_all();
		while (deadlines_walk(world.keeper.deadlines, &from, count_record, &count))
			;
		ck_assert_uint_eq(count, deadlines_count(world.keeper.deadlines));
	}
	end();
}
END_TEST

static const char *kind(size_t i)
{
	return i ? "with values" : "without values";
}

int main(void)
{
	const TTest *const tests[] = {keys_are_asked_for_slot_by_slot, a_slot_that_is_coming_is_asked_for_with_asking,
	    a_key_of_a_slot_that_is_served_elsewhere_is_dropped,
	    a_key_of_a_slot_that_should_be_served_is_asked_for_again, a_cluster_that_is_down_is_asked_again,
	    a_cluster_is_not_down_that_says_where_a_slot_is, a_key_that_redis_has_not_deleted_is_asked_for_again,
	    a_key_that_is_held_twice_is_asked_for_once, only_reads_on_their_way_are_done_again,
	    whatever_is_answered_a_record_has_one_key, all_that_are_held_have_their_turn,
	    what_was_on_its_way_is_asked_for_again, a_key_that_a_leaving_slot_keeps_is_asked_for_again};

	return suite_run_kinds("expirer/slots", tests, sizeof tests / sizeof *tests, kind, 2, NULL);
}
