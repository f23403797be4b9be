/*
 * The keeper beside a Redis of the test, on virtual time. That Redis expires a key only when it is looked at, so what
 * expires in time was asked for in time.
 */
/* tier: quick */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <hiredis/hiredis.h>

#include "tests/support/seed.h"
#include "tests/support/suite.h"
#include "tools/weekwheel-expirer/keys/ends.h"
#include "tools/weekwheel-expirer/keys/keeper.h"

#define MS INT64_C(1000000)
#define SECOND (1000 * MS)

enum { KEYS = 300, ANSWERS = 1024, ANSWER = 65536, NAME = 64 };
/* A Redis that gave up keys this many ms after their deadline gave them up in time. */
enum { SOON_MS = 6 };

struct model_key {
	int is_there;
	int64_t until; /* ms; 0: no deadline */
	int64_t told;  /* ms: when a change of it is heard; 0: it was */
	int64_t sure;  /* ms: a deadline after this is met */
};

static struct world {
	uint64_t state;
	uint64_t local;
	int64_t offset; /* of Redis's clock */
	struct model_key key[KEYS];
	struct keeper keeper;
	int has_times;
	const char *events;    /* notify-keyspace-events */
	char *answer[ANSWERS]; /* to what was appended */
	size_t length[ANSWERS];
	size_t answers;
	void (*meanwhile)(void); /* what happens between a request and its answer */
	uint64_t trip;           /* ns that an answer takes, at least */
	uint64_t work;           /* ns that a command takes Redis */
	uint64_t busy;           /* so long all of them took, and the longest request */
	uint64_t busy_most;
	int refused; /* the user may not look at this key; 0: at all */
	int scans;
	int scanned; /* keys before are behind the cursor */
	uint64_t expired, worst_ms, early, asked;
	int is_asking;         /* the keeper looks */
	int64_t ended[KEYS];   /* the deadline of the last end */
	int64_t untold[KEYS];  /* the same, if the keeper made and has not told it; 0: there is none */
	int64_t kept[KEYS];    /* the deadline that the keeper said last */
	uint64_t sure, unsure; /* ends that were told */
} world;

static int64_t redis_ns(void)
{
	return (int64_t)world.local + world.offset;
}

static int64_t redis_ms(void)
{
	return redis_ns() / MS;
}

/* ---- Redis */

static size_t name_of(int number, char name[NAME]);

/* The keeper knew when it would be due, and Redis has given it up for the keeper: it has to tell that. */
static void note_end(int number)
{
	struct known_key known;
	char name[NAME];

	world.ended[number] = world.key[number].until;
	if (world.is_asking && deadlines_find(world.keeper.deadlines, name, name_of(number, name), &known) &&
	    (int64_t)known.at - 1 <= world.ended[number])
		world.untold[number] = world.ended[number];
}

static void look_at(struct model_key *key)
{
	int64_t now = redis_ms();

	if (!key->is_there || key->until == 0 || now <= key->until)
		return;
	world.expired++;
	note_end((int)(key - world.key));
	if (key->until >= key->sure && (uint64_t)(now - key->until) > world.worst_ms)
		world.worst_ms = (uint64_t)(now - key->until);
	*key = (struct model_key){.told = now + 1};
}

/* Near keys, binary ones, and far ones. Returns the length. */
static size_t name_of(int number, char name[NAME])
{
	static const char *const before[] = {"key ", "?\xff\r\n", "a key that has a long name "};
	size_t length = (size_t)snprintf(name, NAME, "%s%03d", before[number % 3], number);

	if (number % 3 == 1)
		name[0] = '\0';
	return length;
}

static struct model_key *named(const char *name, size_t length)
{
	char text[NAME];
	int number;

	ck_assert_uint_gt(length, 3);
	number = (name[length - 3] - '0') * 100 + (name[length - 2] - '0') * 10 + (name[length - 1] - '0');
	ck_assert_int_ge(number, 0);
	ck_assert_int_lt(number, KEYS);
	ck_assert_uint_eq(name_of(number, text), length);
	ck_assert_mem_eq(name, text, length);
	look_at(&world.key[number]);
	return &world.key[number];
}

/* Each page also has a key with an empty name. Returns the length. */
static size_t scan(char *text)
{
	int until = world.scanned + 37 < KEYS ? world.scanned + 37 : KEYS;
	char names[(NAME + 16) * 38] = "$0\r\n\r\n";
	char *name = names + strlen(names);
	char cursor[16];
	size_t length;
	int count = 1;

	for (int i = world.scanned; i < until; i++) {
		char key[NAME];

		look_at(&world.key[i]);
		if (!world.key[i].is_there)
			continue;
		count++;
		length = name_of(i, key);
		name += sprintf(name, "$%zu\r\n", length);
		memcpy(name, key, length);
		memcpy(name + length, "\r\n", 2);
		name += length + 2;
	}
	(void)snprintf(cursor, sizeof cursor, "%d", until < KEYS ? until : 0);
	length = (size_t)sprintf(text, "*2\r\n$%zu\r\n%s\r\n*%d\r\n", strlen(cursor), cursor, count);
	memcpy(text + length, names, (size_t)(name - names));
	world.scanned = until;
	world.scans++;
	return length + (size_t)(name - names);
}

/* An end is told after its deadline, and one that is surely an end is one. */
static void hear_end(void *context, const struct ended_key *ended)
{
	int number = (int)(named(ended->key, ended->length) - world.key);
	/* PTTL counts from a time that is not exactly that of TIME, and a change is heard some ms later. */
	int is_it = llabs(world.ended[number] - ended->deadline) <= 10;
	/* What is not sure may also have been deleted in the last moment: Redis's clock may have passed the deadline. */
	int64_t may_be_ns = estimate_latest(&world.keeper.estimate, world.local);

	(void)context;
	ck_assert_int_gt(ended->is_sure ? redis_ms() : may_be_ns / (int64_t)MS, ended->deadline);
	world.sure += (uint64_t)ended->is_sure;
	world.unsure += !ended->is_sure;
	if (ended->is_sure)
		ck_assert(is_it);
	if (is_it)
		world.untold[number] = 0;
}

static void hear_kept(void *context, const char *key, size_t length, int64_t deadline)
{
	(void)context;
	world.kept[named(key, length) - world.key] = deadline;
}

static int append(void *context, size_t argc, const char *const *argv, const size_t *lengths)
{
	char *text = malloc(ANSWER);
	size_t length = 0;

	(void)context;
	world.is_asking = 1;
	ck_assert_uint_lt(world.answers, ANSWERS);
	world.answer[world.answers++] = text;
	if (strcmp(argv[0], "TIME") == 0) {
		char seconds[24], rest[24];

		(void)snprintf(seconds, sizeof seconds, "%lld", (long long)(redis_ns() / SECOND));
		(void)snprintf(rest, sizeof rest, "%lld", (long long)(redis_ns() % SECOND / 1000));
		(void)sprintf(text, "*2\r\n$%zu\r\n%s\r\n$%zu\r\n%s\r\n", strlen(seconds), seconds, strlen(rest), rest);
	} else if (strcmp(argv[0], "HELLO") == 0) {
		(void)strcpy(text, "*4\r\n$4\r\nmode\r\n$10\r\nstandalone\r\n$4\r\nrole\r\n$6\r\nmaster\r\n");
	} else if (strcmp(argv[0], "CONFIG") == 0) {
		(void)sprintf(text, "*2\r\n$22\r\n%s\r\n$%zu\r\n%s\r\n", argv[2], strlen(world.events), world.events);
	} else if (strcmp(argv[0], "EXISTS") == 0) {
		int there = 0;

		for (size_t i = 1; i < argc; i++)
			there += named(argv[i], lengths[i])->is_there;
		world.asked += argc - 1;
		world.early += (unsigned)there;
		(void)sprintf(text, ":%d\r\n", there);
	} else if (strcmp(argv[0], "SCAN") == 0) {
		world.scanned = atoi(argv[1]);
		length = scan(text);
	} else {
		const struct model_key *key = named(argv[1], lengths[1]);
		int64_t answer = !key->is_there ? -2 : key->until == 0 ? -1 : key->until;

		ck_assert_str_eq(argv[0], world.has_times ? "PEXPIRETIME" : "PTTL");
		if (world.refused && key == &world.key[world.refused])
			(void)strcpy(text, "-NOPERM No permissions to access a key\r\n");
		else
			(void)sprintf(text, ":%lld\r\n",
			    (long long)(world.has_times || answer < 0 ? answer : answer - redis_ms()));
	}
	world.length[world.answers - 1] = length ? length : strlen(text);
	world.is_asking = 0;
	return 0;
}

/* ---- Time */

static void hear(void)
{
	for (int i = 0; i < KEYS; i++) {
		struct model_key *key = &world.key[i];
		char name[NAME];

		if (key->told == 0 || key->told > redis_ms())
			continue;
		key->told = 0;
		ck_assert_int_eq(keeper_heard(&world.keeper, name, name_of(i, name)), 0);
	}
	ck_assert_int_eq(keeper_heard(&world.keeper, "", 0), 0);
}

static void answer(void)
{
	redisReader *reader = redisReaderCreate();

	for (size_t i = 0; i < world.answers; i++) {
		void *reply = NULL;

		redisReaderFeed(reader, world.answer[i], world.length[i]);
		ck_assert_int_eq(redisReaderGetReply(reader, &reply), REDIS_OK);
		ck_assert_ptr_nonnull(reply);
		ck_assert_int_eq(
		    ((struct redisReply *)reply)->type == REDIS_REPLY_ERROR, keeper_takes_error(&world.keeper, reply));
		ck_assert_int_eq(keeper_reply(&world.keeper, reply, world.local), 0);
		freeReplyObject(reply);
		free(world.answer[i]);
	}
	world.answers = 0;
	redisReaderFree(reader);
}

static void work(void)
{
	uint64_t took = world.work * world.answers;

	world.local += took;
	world.busy += took;
	world.busy_most = took > world.busy_most ? took : world.busy_most;
}

/* Let the keeper act until so many ms have passed. */
static void pass(int64_t ms)
{
	uint64_t end = world.local + (uint64_t)(ms * MS);

	while (world.local < end) {
		uint64_t again;

		hear();
		/* The way there: Redis answers at its end. append is called before it, so time is moved by a part of it. */
		ck_assert_int_eq(keeper_next(&world.keeper, world.local, &again), 0);
		if (world.answers > 0) {
			if (world.meanwhile)
				world.meanwhile();
			work();
			world.local += world.trip + seed_below(&world.state, 100000);
			hear();
			answer();
			continue;
		}
		/* Changes are heard in between. */
		if (again > world.local + (uint64_t)MS)
			again = world.local + (uint64_t)MS;
		ck_assert_uint_gt(again, world.local);
		world.local = again < end ? again : end;
	}
}

static uint64_t window_of_begin; /* ms */

static void begin(int has_times, int only_later)
{
	static const struct keeper_watch watch = {.ended = hear_end, .kept = hear_kept};
	const struct keeper_config config = {
	    .append = append, .only_later = only_later, .watch = &watch, .window_ms = window_of_begin};

	memset(&world, 0, sizeof world);
	world.state = seed_of_run("test_keeper");
	world.local = 7 * SECOND;
	world.trip = 60000;
	world.offset = 1700000000 * SECOND;
	world.has_times = has_times;
	ck_assert_int_eq(keeper_begin(&world.keeper, &config), 0);
	keeper_connected(&world.keeper, world.local, has_times);
}

static void end(void)
{
	keeper_end(&world.keeper);
}

static void set(int number, int64_t after_ms)
{
	struct model_key *key = &world.key[number];

	look_at(key);
	key->is_there = 1;
	key->until = after_ms ? redis_ms() + after_ms : 0;
	key->told = redis_ms() + 1 + (int64_t)seed_below(&world.state, 5);
	/* Heard, waiting for a page, and looked up. */
	key->sure = redis_ms() + 15;
}

/* ---- Tests */

START_TEST(all_of_one_deadline_are_told_and_none_early)
{
	struct keeper_stats stats;

	begin(_i, 0);
	for (int i = 0; i < KEYS; i++)
		set(i, 5000);
	pass(4990);
	ck_assert_int_eq(world.keeper.is_exact, 1);
	keeper_read_stats(&world.keeper, &stats);
	ck_assert_uint_eq(stats.known, KEYS);
	ck_assert_uint_eq(world.asked, 0);
	pass(10 + SOON_MS);
	ck_assert_uint_eq(world.expired, KEYS);
	ck_assert_uint_eq(world.early, 0);
	pass(100);
	keeper_read_stats(&world.keeper, &stats);
	ck_assert_uint_eq(stats.told, KEYS);
	ck_assert_uint_eq(stats.known, 0);
	ck_assert_uint_eq(stats.passes, 1);
	end();
}
END_TEST

START_TEST(changes_are_followed)
{
	begin(_i, 0);
	set(0, 1000); /* earlier */
	set(1, 1000); /* later */
	set(2, 1000); /* persists */
	set(3, 1000); /* is deleted */
	set(4, 0);    /* gets a deadline */
	pass(500);
	set(0, 100);
	set(1, 2000);
	set(2, 0);
	world.key[3] = (struct model_key){.told = redis_ms() + 1};
	set(4, 200);
	pass(100 + SOON_MS);
	ck_assert_uint_eq(world.expired, 1);
	pass(100 + SOON_MS);
	ck_assert_uint_eq(world.expired, 2);
	pass(1000);
	ck_assert_uint_eq(world.expired, 2);
	pass(1000);
	ck_assert_uint_eq(world.expired, 3);
	ck_assert_uint_eq(world.early, 0);
	ck_assert_uint_le(world.worst_ms, SOON_MS);
	ck_assert_int_eq(world.key[2].is_there, 1);
	end();
}
END_TEST

START_TEST(with_only_later_a_touch_costs_no_lookup)
{
	struct keeper_stats before, after;

	begin(_i, 1);
	for (int i = 0; i < KEYS; i++)
		set(i, 1000);
	pass(500);
	keeper_read_stats(&world.keeper, &before);
	for (int i = 0; i < KEYS; i++)
		set(i, 2000);
	pass(400);
	keeper_read_stats(&world.keeper, &after);
	ck_assert_uint_eq(after.looks, before.looks);
	/* At the old deadline all are asked for, and found later. */
	pass(200);
	keeper_read_stats(&world.keeper, &after);
	ck_assert_uint_eq(after.later, KEYS);
	ck_assert_uint_eq(world.expired, 0);
	pass(1500);
	ck_assert_uint_eq(world.expired, KEYS);
	ck_assert_uint_le(world.worst_ms, SOON_MS);
	end();
}
END_TEST

START_TEST(a_flush_begins_a_pass_that_forgets)
{
	struct keeper_stats stats;

	begin(_i, 0);
	for (int i = 0; i < KEYS; i++)
		set(i, 100000);
	pass(500);
	memset(world.key, 0, sizeof world.key);
	keeper_pass(&world.keeper);
	ck_assert_int_eq(world.keeper.is_exact, 0);
	set(7, 300);
	pass(200);
	ck_assert_int_eq(world.keeper.is_exact, 1);
	keeper_read_stats(&world.keeper, &stats);
	ck_assert_uint_eq(stats.known, 1);
	ck_assert_uint_eq(stats.passes, 2);
	pass(100 + SOON_MS);
	ck_assert_uint_eq(world.expired, 1);
	end();
}
END_TEST

START_TEST(a_lost_connection_loses_no_key)
{
	begin(_i, 0);
	for (int i = 0; i < KEYS; i++)
		set(i, 1000);
	pass(999);
	for (int round = 0; round < 20; round++) {
		uint64_t again;

		/* A request that is never answered. */
		world.local += 500000;
		(void)keeper_next(&world.keeper, world.local, &again);
		while (world.answers > 0)
			free(world.answer[--world.answers]);
		keeper_connected(&world.keeper, world.local, _i);
	}
	pass(200);
	ck_assert_uint_eq(world.expired, KEYS);
	for (int i = 0; i < KEYS; i++)
		ck_assert_int_eq(world.untold[i], 0);
	ck_assert_uint_eq(world.sure + world.unsure, KEYS);
	ck_assert_uint_eq(deadlines_count(world.keeper.deadlines), 0);
	end();
}
END_TEST

/* What the keeper knows is what is there. */
static void check_known(void)
{
	struct keeper_stats stats;
	char name[NAME];
	unsigned known = 0;

	for (int i = 0; i < KEYS; i++) {
		const struct model_key *key = &world.key[i];
		int has = key->is_there && key->until && redis_ms() <= key->until;
		struct known_key found = {.is_idle = 1};

		known += (unsigned)has;
		(void)deadlines_find(world.keeper.deadlines, name, name_of(i, name), &found);
		if (found.is_idle != has)
			continue;
		ck_abort_msg("key %d is%s there", i, has ? "" : " not");
	}
	keeper_read_stats(&world.keeper, &stats);
	ck_assert_uint_eq(stats.known, known);
	ck_assert_uint_eq(stats.due, stats.told + stats.later);
}

START_TEST(a_pass_drops_no_key_whose_deadline_may_have_passed)
{
	begin(_i, 0);
	for (int i = 0; i < KEYS; i++)
		set(i, i % 2 ? 1000 : 100000);
	pass(990);
	/* Nobody is there while half of them end and others are deleted. It goes through the rest before all are asked for. */
	world.local += 100 * (uint64_t)MS;
	for (int i = 0; i < KEYS; i++) {
		look_at(&world.key[i]);
		world.key[i].is_there &= i % 4 != 0;
		world.key[i].told = 0;
	}
	keeper_connected(&world.keeper, world.local, _i);
	world.keeper.batch = 1;
	pass(200);
	ck_assert_uint_eq(world.sure, 0);
	ck_assert_uint_eq(world.unsure, KEYS / 2);
	check_known();
	end();
}
END_TEST

START_TEST(steps_of_the_clock_are_followed)
{
	begin(_i, 0);
	for (int i = 0; i < KEYS; i++)
		set(i, 10000 + i);
	pass(1000);
	world.offset += 5 * SECOND;
	pass(3500);
	ck_assert_uint_eq(world.expired, 0);
	pass(2000);
	ck_assert_uint_eq(world.expired, KEYS);
	ck_assert_uint_eq(world.early, 0);
	for (int i = 0; i < KEYS; i++)
		set(i, 2000 + i);
	pass(1000);
	world.offset -= 60 * SECOND;
	pass(500);
	/* One that is set after the step need not wait until time is where it was. */
	set(0, 400);
	pass(400 + SOON_MS);
	ck_assert_uint_eq(world.expired, KEYS + 1);
	set(0, 60500);
	pass(60000 - SOON_MS);
	ck_assert_uint_eq(world.expired, KEYS + 1);
	pass(1000);
	ck_assert_uint_eq(world.expired, 2 * KEYS + 1);
	ck_assert_uint_le(world.worst_ms, SOON_MS);
	ck_assert_uint_eq(world.keeper.stats.steps, 2);
	end();
}
END_TEST

START_TEST(a_step_back_of_the_clock_changes_no_deadline)
{
	uint32_t from = 0;

	begin(_i, 0);
	for (int i = 0; i < KEYS; i++)
		set(i, 2000 + i);
	pass(1000);
	world.offset -= 60 * SECOND;
	pass(500);
	/* What a journal is told of keys from before the step, and of one from after it. */
	set(0, 4000);
	pass(20);
	memset(world.kept, 0, sizeof world.kept);
	while (ends_tell_again(&world.keeper, &from))
		;
	for (int i = 0; i < KEYS; i++)
		ck_assert_int_le(llabs(world.kept[i] - world.key[i].until), 10);
	/* One that is deleted long before its deadline has not ended. */
	world.key[1] = (struct model_key){.told = redis_ms()};
	pass(20);
	ck_assert_uint_eq(world.sure + world.unsure, 0);
	/* Nor is any asked for early, as by the clock from before the step. */
	world.asked = 0;
	pass(2000);
	ck_assert_uint_eq(world.asked, 0);
	pass(61000);
	ck_assert_uint_eq(world.expired, KEYS - 1);
	ck_assert_uint_le(world.worst_ms, SOON_MS);
	end();
}
END_TEST

/* A client makes a key anew, and that is heard at once. */
static void make_anew(int number)
{
	struct model_key *key = &world.key[number];

	look_at(key);
	if (key->is_there)
		return;
	set(number, 60000);
	key->told = redis_ms();
}

static void make_all_anew(void)
{
	for (int i = 0; i < KEYS; i++)
		make_anew(i);
}

static void make_last_anew(void)
{
	if (world.keeper.kind == KEEPER_LOOK)
		make_all_anew();
}

START_TEST(a_change_while_an_answer_is_on_its_way_is_no_old_one)
{
	void (*const meanwhile[])(void) = {make_all_anew, make_last_anew};

	for (int k = 0; k < 2; k++) {
		begin(_i, 1);
		for (int i = 0; i < KEYS; i++)
			set(i, 1000);
		pass(500);
		/* One that goes on makes Redis's answer to the others unclear. */
		if (k)
			set(0, 10000);
		pass(400);
		world.meanwhile = meanwhile[k];
		pass(200);
		world.meanwhile = NULL;
		pass(100);
		for (int i = 1; i < KEYS; i++)
			ck_assert_int_eq(world.key[i].is_there, 1);
		check_known();
		end();
	}
}
END_TEST

static void flush_while_scanning(void)
{
	if (world.keeper.kind != KEEPER_SCAN || world.scanned < KEYS / 2)
		return;
	keeper_pass(&world.keeper);
	world.meanwhile = NULL;
}

/* All are deleted between their page and their lookups, and made anew before the answer. */
static void replace_all(void)
{
	if (world.keeper.kind == KEEPER_SCAN)
		for (int i = 0; i < KEYS; i++)
			world.key[i] = (struct model_key){.told = redis_ms()};
	if (world.keeper.kind == KEEPER_LOOK)
		make_all_anew();
}

START_TEST(a_change_while_a_lookup_is_on_its_way_is_no_old_one)
{
	begin(_i, 1);
	for (int i = 0; i < KEYS; i++)
		set(i, 100000);
	pass(500);
	keeper_pass(&world.keeper);
	world.meanwhile = replace_all;
	pass(500);
	world.meanwhile = make_all_anew;
	pass(100);
	world.meanwhile = NULL;
	pass(100);
	check_known();
	end();
}
END_TEST

START_TEST(a_pass_that_begins_while_a_page_is_on_its_way_begins_at_the_beginning)
{
	begin(_i, 0);
	for (int i = 0; i < KEYS; i++)
		set(i, 100000);
	world.meanwhile = flush_while_scanning;
	pass(500);
	ck_assert(world.meanwhile == NULL);
	ck_assert_uint_eq(world.keeper.stats.passes, 2);
	ck_assert_int_eq(world.keeper.is_exact, 1);
	check_known();
	/* A lookup from before a flush does not count as seen either. */
	set(7, 50000);
	world.key[7].told = redis_ms();
	for (uint64_t again; world.keeper.kind != KEEPER_LOOK; world.local += (uint64_t)MS) {
		answer();
		hear();
		ck_assert_int_eq(keeper_next(&world.keeper, world.local, &again), 0);
	}
	memset(world.key, 0, sizeof world.key);
	keeper_pass(&world.keeper);
	answer();
	pass(500);
	check_known();
	end();
}
END_TEST

START_TEST(a_key_that_may_not_be_looked_at_is_left_out)
{
	struct keeper_stats stats;

	begin(_i, 0);
	set(5, 500);
	pass(100);
	world.refused = 5;
	for (int i = 0; i < KEYS; i++)
		set(i, 1000);
	pass(500);
	keeper_read_stats(&world.keeper, &stats);
	ck_assert_uint_eq(stats.refused, 1);
	ck_assert_uint_eq(stats.known, KEYS - 1);
	pass(500 + SOON_MS);
	ck_assert_uint_eq(world.expired, KEYS - 1);
	end();
}
END_TEST

START_TEST(other_errors_are_not_taken)
{
	struct redisReply command = {
	    .type = REDIS_REPLY_ERROR, .str = "NOPERM User key has no permissions to run the 'pttl' command"};
	struct redisReply key = {.type = REDIS_REPLY_ERROR, .str = "NOPERM No permissions to access a key"};
	struct redisReply loading = {.type = REDIS_REPLY_ERROR, .str = "LOADING Redis is unable to access its data"};

	begin(_i, 0);
	ck_assert_int_eq(keeper_takes_error(&world.keeper, &key), 0);
	world.keeper.kind = KEEPER_LOOK;
	ck_assert_int_eq(keeper_takes_error(&world.keeper, &key), 1);
	ck_assert_int_eq(keeper_takes_error(&world.keeper, &command), 0);
	ck_assert_int_eq(keeper_takes_error(&world.keeper, &loading), 0);
	end();
}
END_TEST

START_TEST(a_long_way_makes_batches_and_pauses_no_smaller)
{
	begin(_i, 0);
	world.trip = 5 * (uint64_t)MS;
	for (int round = 0; round < 20; round++) {
		for (int i = 0; i < KEYS; i++)
			set(i, 500);
		pass(600);
	}
	ck_assert_uint_gt(world.keeper.batch, 200);
	/* A page takes two round trips, and its pause none. */
	world.scans = 0;
	keeper_pass(&world.keeper);
	pass(150);
	ck_assert_int_ge(world.scans, 9);
	end();
}
END_TEST

static void wait_for_a_processor(void)
{
	world.work = seed_below(&world.state, 2) ? 10 * (uint64_t)MS : 0;
}

static void expire_slowly(void)
{
	world.work = world.keeper.kind == KEEPER_ASK ? 10 * (uint64_t)MS : 0;
}

/* A few answers show how long Redis itself takes. */
START_TEST(batches_are_fitted_to_redis_and_not_to_a_busy_machine)
{
	void (*const meanwhile[])(void) = {wait_for_a_processor, expire_slowly};

	for (int k = 0; k < 2; k++) {
		begin(_i, 0);
		world.meanwhile = meanwhile[k];
		for (int round = 0; round < 20; round++) {
			for (int i = 0; i < KEYS; i++)
				set(i, 500);
			pass(600);
		}
		if (k == 0)
			ck_assert_uint_gt(world.keeper.batch, 100);
		else
			ck_assert_uint_lt(world.keeper.batch, 50);
		end();
	}
}
END_TEST

START_TEST(a_pass_leaves_others_half_of_the_time)
{
	uint64_t began;

	begin(_i, 0);
	for (int i = 0; i < KEYS; i++)
		set(i, 100000);
	pass(500);
	world.work = 200000;
	keeper_pass(&world.keeper);
	began = world.local;
	world.busy = 0;
	while (!world.keeper.is_exact)
		pass(1);
	/* The rest is the time of Redis's clock, and the last pause that ends no pass. */
	ck_assert_uint_gt(world.local - began, world.busy * 18 / 10);
	ck_assert_uint_lt(world.local - began, world.busy * 24 / 10);
	end();
}
END_TEST

START_TEST(a_page_is_looked_up_in_pieces)
{
	char name[NAME];

	begin(_i, 0);
	pass(500);
	world.work = 1000;
	world.busy_most = 0;
	/* As a page of them. */
	for (int i = 0; i < 250; i++)
		ck_assert_int_eq(waiting_add(&world.keeper.waiting, name, name_of(i, name)), 0);
	world.keeper.page = world.keeper.waiting.added;
	pass(20);
	ck_assert_uint_eq(world.keeper.waiting.dropped, world.keeper.waiting.added);
	ck_assert_uint_le(world.busy_most, 130 * world.work);
	/* Many changes are looked up at once: that costs Redis less. */
	for (int i = 0; i < 250; i++)
		ck_assert_int_eq(keeper_heard(&world.keeper, name, name_of(i, name)), 0);
	pass(20);
	ck_assert_uint_ge(world.busy_most, 250 * world.work);
	end();
}
END_TEST

static void touch_all(void)
{
	for (int i = 0; i < KEYS; i++) {
		world.key[i].until += 10;
		world.key[i].told = redis_ms();
	}
}

START_TEST(a_pass_goes_on_while_changes_never_end)
{
	begin(_i, 0);
	for (int i = 0; i < KEYS; i++)
		set(i, 100000);
	world.trip = (uint64_t)MS;
	world.meanwhile = touch_all;
	pass(500);
	ck_assert_int_gt(world.scans, 8);
	world.meanwhile = NULL;
	pass(2000);
	check_known();
	/* The sweep goes on too. */
	memset(world.key + 1, 0, (KEYS - 1) * sizeof *world.key);
	keeper_pass(&world.keeper);
	for (int turn = 0; turn < 300; turn++) {
		uint64_t again;
		char name[NAME];

		for (int i = 0; i < KEEPER_LOOKS + 1; i++)
			ck_assert_int_eq(keeper_heard(&world.keeper, name, name_of(0, name)), 0);
		ck_assert_int_eq(keeper_next(&world.keeper, world.local, &again), 0);
		world.local += world.trip;
		answer();
	}
	ck_assert_int_eq(world.keeper.waiting.added > world.keeper.waiting.dropped, 1);
	ck_assert_uint_eq(deadlines_count(world.keeper.deadlines), 1);
	end();
}
END_TEST

START_TEST(one_that_a_lookup_finds_ended_is_told_late)
{
	struct keeper_stats stats;
	uint64_t again;
	char name[NAME];

	begin(_i, 0);
	set(3, 1000);
	pass(990);
	/* It ends while Redis is silent, and its lookup is sent first, since the last request was for others. */
	world.keeper.last = KEEPER_ASK;
	ck_assert_int_eq(keeper_heard(&world.keeper, name, name_of(3, name)), 0);
	world.keeper.look_at = world.local;
	world.local += 30 * (uint64_t)MS;
	world.keeper.clock_at = world.local + (uint64_t)MS;
	ck_assert_int_eq(keeper_next(&world.keeper, world.local, &again), 0);
	ck_assert_int_eq(world.keeper.kind, KEEPER_LOOK);
	answer();
	keeper_read_stats(&world.keeper, &stats);
	ck_assert_uint_eq(stats.told, 1);
	ck_assert_uint_eq(stats.due, 1);
	ck_assert_uint_gt(stats.late_ns, 15 * (uint64_t)MS);
	/* One that is deleted before its deadline is not told. */
	set(3, 1000);
	pass(500);
	world.key[3] = (struct model_key){.told = redis_ms() + 1};
	pass(500);
	keeper_read_stats(&world.keeper, &stats);
	ck_assert_uint_eq(stats.told, 1);
	end();
}
END_TEST

/* No end is missing. */
static void check_told(uint64_t sure, uint64_t unsure)
{
	for (int i = 0; i < KEYS; i++)
		if (world.untold[i])
			ck_abort_msg("an end of key %d is not told", i);
	ck_assert_uint_eq(world.sure, sure);
	ck_assert_uint_eq(world.unsure, unsure);
}

/* A client deletes the key. That is heard at once, or with the next request's answer. */
static void delete_key(int number, int64_t after_ms)
{
	look_at(&world.key[number]);
	ck_assert_int_eq(world.key[number].is_there, 1);
	world.key[number] = (struct model_key){.told = redis_ms() + after_ms};
}

START_TEST(what_is_deleted_is_told_from_what_expires)
{
	begin(_i, 0);
	set(0, 1000);
	set(1, 1000);
	set(2, 1000);
	set(3, 1500);
	pass(500);
	/* Long before its deadline: that is no end. */
	delete_key(1, 1);
	/* Its deadline passes before it is looked up. */
	pass(498);
	delete_key(2, 1);
	pass(50);
	check_told(1, 1);
	/* An end that Redis has told before it is asked for is one, but so might a deletion have been. */
	pass(world.key[3].until - redis_ms() - 1);
	world.local += 3 * (uint64_t)MS;
	look_at(&world.key[3]);
	world.key[3].told = redis_ms();
	hear();
	pass(50);
	check_told(1, 2);
	end();
}
END_TEST

START_TEST(what_may_have_been_missed_makes_ends_unsure)
{
	begin(_i, 0);
	for (int i = 0; i < 5; i++)
		set(i == 4 ? KEYS - 1 : i, 1000 * (i + 1));
	pass(500);
	/* This process stands still: what is told meanwhile is heard later. */
	world.local += 1200 * (uint64_t)MS;
	pass(100);
	check_told(0, 1);
	pass(1000);
	check_told(1, 1);
	/* Redis answers late. */
	world.trip = 700 * (uint64_t)MS;
	pass(300);
	world.trip = 60000;
	pass(100);
	check_told(1, 2);
	/* A connection was lost, and a key that the pass has found is sure again. */
	keeper_connected(&world.keeper, world.local, _i);
	pass(1000);
	check_told(2, 2);
	/* It is due before the pass comes to it. */
	pass(world.key[KEYS - 1].until - redis_ms() - 1);
	world.local += 3 * (uint64_t)MS;
	keeper_connected(&world.keeper, world.local, _i);
	pass(100);
	check_told(2, 3);
	end();
}
END_TEST

/* They are asked for while they are what tells of changes. None tells of a flush: no end is sure. */
START_TEST(events_are_watched)
{
	begin(_i, 0);
	world.events = "gxE";
	world.keeper.by_events = 1;
	for (int i = 0; i < KEYS; i++)
		set(i, 3000);
	pass(4000);
	ck_assert_int_eq(world.keeper.is_told, 1);
	check_told(0, KEYS);
	world.events = "AK";
	pass(1100);
	ck_assert_int_eq(world.keeper.is_told, 0);
	keeper_connected(&world.keeper, world.local, _i);
	world.events = "AKE";
	pass(1100);
	ck_assert_int_eq(world.keeper.is_told, 1);
	world.events = "Ex";
	pass(1100);
	ck_assert_int_eq(world.keeper.is_told, 0);
	end();
}
END_TEST

START_TEST(a_window_keeps_what_is_due_within_it)
{
	struct keeper_stats stats;

	window_of_begin = 4000;
	begin(_i, 0);
	window_of_begin = 0;
	for (int i = 0; i < KEYS; i++)
		set(i, 100 * i + 50);
	for (int second = 0; second < 30; second++) {
		pass(1000);
		keeper_read_stats(&world.keeper, &stats);
		ck_assert_uint_le(stats.known, 41);
		ck_assert_int_eq(stats.is_exact, 1);
		ck_assert_uint_le(stats.passes, (unsigned)second / 2 + 2);
		ck_assert_uint_eq(world.expired, 10 * (unsigned)(second + 1) - (second == 29));
		/* One that is known moves behind the window, and back. */
		set(KEYS - 1, second % 2 ? 100000 : 4500);
	}
	ck_assert_uint_le(world.worst_ms, SOON_MS);
	ck_assert_uint_eq(world.early, 0);
	end();
}
END_TEST

START_TEST(a_window_that_is_too_short_is_told)
{
	window_of_begin = 1000;
	begin(_i, 0);
	window_of_begin = 0;
	for (int i = 0; i < KEYS; i++)
		set(i, 100000);
	pass(500);
	ck_assert_int_eq(world.keeper.is_exact, 1);
	/* Nine pages, and as many lookups. */
	world.trip = 80 * (uint64_t)MS;
	pass(3000);
	ck_assert_int_eq(world.keeper.is_exact, 0);
	ck_assert_int_eq(world.keeper.is_outrun, 1);
	world.trip = 60000;
	pass(1500);
	ck_assert_int_eq(world.keeper.is_exact, 1);
	ck_assert_int_eq(world.keeper.is_outrun, 0);
	end();
}
END_TEST

/* Others change keys, and miss something, while an answer is on its way. */
static void anything(void)
{
	if (seed_below(&world.state, 4) == 0)
		make_anew((int)seed_below(&world.state, KEYS));
	if (seed_below(&world.state, 4) == 0)
		set((int)seed_below(&world.state, KEYS), 1 + (int64_t)seed_below(&world.state, 50));
	if (seed_below(&world.state, 200) == 0)
		keeper_pass(&world.keeper);
}

START_TEST(random_changes_end_in_time)
{
	begin(_i, 0);
	world.meanwhile = anything;
	for (int round = 0; round < seed_rounds(5000); round++) {
		int number = (int)seed_below(&world.state, KEYS);

		switch (seed_below(&world.state, 8)) {
		case 0:
			look_at(&world.key[number]);
			if (world.key[number].is_there)
				world.key[number] = (struct model_key){.told = redis_ms() + 1};
			break;
		case 1:
			set(number, 0);
			break;
		default:
			set(number, 1 + (int64_t)seed_below(&world.state, seed_below(&world.state, 2) ? 50 : 100000));
		}
		pass((int64_t)seed_below(&world.state, 30));
	}
	world.meanwhile = NULL;
	pass(1000);
	check_known();
	pass(200000);
	ck_assert_uint_le(world.worst_ms, SOON_MS);
	for (int i = 0; i < KEYS; i++)
		ck_assert_int_eq(world.key[i].is_there && world.key[i].until != 0, 0);
	check_told(world.sure, world.unsure);
	ck_assert_uint_gt(world.sure, 5 * world.unsure);
	ck_assert_uint_eq(deadlines_count(world.keeper.deadlines), 0);
	end();
}
END_TEST

static const char *kind(size_t i)
{
	return i ? "PEXPIRETIME" : "PTTL";
}

int main(void)
{
	const TTest *const tests[] = {all_of_one_deadline_are_told_and_none_early, changes_are_followed,
	    with_only_later_a_touch_costs_no_lookup, a_flush_begins_a_pass_that_forgets, a_lost_connection_loses_no_key,
	    a_pass_drops_no_key_whose_deadline_may_have_passed, steps_of_the_clock_are_followed,
	    a_step_back_of_the_clock_changes_no_deadline, a_change_while_an_answer_is_on_its_way_is_no_old_one,
	    a_change_while_a_lookup_is_on_its_way_is_no_old_one,
	    a_pass_that_begins_while_a_page_is_on_its_way_begins_at_the_beginning,
	    a_key_that_may_not_be_looked_at_is_left_out, other_errors_are_not_taken,
	    a_long_way_makes_batches_and_pauses_no_smaller, batches_are_fitted_to_redis_and_not_to_a_busy_machine,
	    a_pass_leaves_others_half_of_the_time, a_page_is_looked_up_in_pieces,
	    a_pass_goes_on_while_changes_never_end, one_that_a_lookup_finds_ended_is_told_late,
	    what_is_deleted_is_told_from_what_expires, what_may_have_been_missed_makes_ends_unsure, events_are_watched,
	    a_window_keeps_what_is_due_within_it, a_window_that_is_too_short_is_told, random_changes_end_in_time};

	return suite_run_kinds("expirer/keeper", tests, sizeof tests / sizeof *tests, kind, 2, NULL);
}
