#ifndef TESTS_TOOLS_WEEKWHEEL_EXPIRER_KEYS_FIXTURE_H
#define TESTS_TOOLS_WEEKWHEEL_EXPIRER_KEYS_FIXTURE_H

/*
 * Shared by the tests of the keeper: a Redis of the test beside it, on virtual time. That Redis expires a key only when it is
 * looked at, so what expires in time was asked for in time.
 */

#include <errno.h>
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

static inline int64_t redis_ns(void)
{
	return (int64_t)world.local + world.offset;
}

static inline int64_t redis_ms(void)
{
	return redis_ns() / MS;
}

/* ---- Redis */

static inline size_t name_of(int number, char name[NAME]);

/* The keeper knew when it would be due, and Redis has given it up for the keeper: it has to tell that. */
static inline void note_end(int number)
{
	struct known_key known;
	char name[NAME];

	world.ended[number] = world.key[number].until;
	if (world.is_asking && deadlines_find(world.keeper.deadlines, name, name_of(number, name), &known) &&
	    (int64_t)known.at - 1 <= world.ended[number])
		world.untold[number] = world.ended[number];
}

static inline void look_at(struct model_key *key)
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
static inline size_t name_of(int number, char name[NAME])
{
	static const char *const before[] = {"key ", "?\xff\r\n", "a key that has a long name "};
	size_t length = (size_t)snprintf(name, NAME, "%s%03d", before[number % 3], number);

	if (number % 3 == 1)
		name[0] = '\0';
	return length;
}

static inline struct model_key *named(const char *name, size_t length)
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
static inline size_t scan(char *text)
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
static inline void hear_end(void *context, const struct ended_key *ended)
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

static inline void hear_kept(void *context, const char *key, size_t length, int64_t deadline)
{
	(void)context;
	world.kept[named(key, length) - world.key] = deadline;
}

static inline int append(void *context, size_t argc, const char *const *argv, const size_t *lengths)
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

static inline void hear(void)
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

static inline void answer(void)
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

static inline void work(void)
{
	uint64_t took = world.work * world.answers;

	world.local += took;
	world.busy += took;
	world.busy_most = took > world.busy_most ? took : world.busy_most;
}

/* Let the keeper act until so many ms have passed. */
static inline void pass(int64_t ms)
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

static inline void begin(int has_times, int only_later)
{
	static const struct keeper_watch watch = {.ended = hear_end, .kept = hear_kept};
	const struct keeper_config config = {
	    .append = append, .only_later = only_later, .watch = &watch, .window_ms = window_of_begin};

	memset(&world, 0, sizeof world);
	world.state = seed_of_run(program_invocation_short_name);
	world.local = 7 * SECOND;
	world.trip = 60000;
	world.offset = 1700000000 * SECOND;
	world.has_times = has_times;
	ck_assert_int_eq(keeper_begin(&world.keeper, &config), 0);
	keeper_connected(&world.keeper, world.local, has_times);
}

static inline void end(void)
{
	keeper_end(&world.keeper);
}

static inline void set(int number, int64_t after_ms)
{
	struct model_key *key = &world.key[number];

	look_at(key);
	key->is_there = 1;
	key->until = after_ms ? redis_ms() + after_ms : 0;
	key->told = redis_ms() + 1 + (int64_t)seed_below(&world.state, 5);
	/* Heard, waiting for a page, and looked up. */
	key->sure = redis_ms() + 15;
}

/* ---- What tests do and look at */

/* What the keeper knows is what is there. */
static inline void check_known(void)
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
		/* Of a key that is gone, the end of which was told, a guess may be left until its deletion is heard. */
		if ((found.is_idle || found.is_guess) != has)
			continue;
		ck_abort_msg("key %d is%s there", i, has ? "" : " not");
	}
	keeper_read_stats(&world.keeper, &stats);
	ck_assert_uint_eq(stats.known, known);
	ck_assert_uint_eq(stats.due, stats.expired + stats.later);
}

/* A client makes a key anew, and that is heard at once. */
static inline void make_anew(int number)
{
	struct model_key *key = &world.key[number];

	look_at(key);
	if (key->is_there)
		return;
	set(number, 60000);
	key->told = redis_ms();
}

/* No end is missing. */
static inline void check_told(uint64_t sure, uint64_t unsure)
{
	for (int i = 0; i < KEYS; i++)
		if (world.untold[i])
			ck_abort_msg("an end of key %d is not told", i);
	ck_assert_uint_eq(world.sure, sure);
	ck_assert_uint_eq(world.unsure, unsure);
}

static inline const char *keeper_kind(size_t i)
{
	return i ? "PEXPIRETIME" : "PTTL";
}

#endif
