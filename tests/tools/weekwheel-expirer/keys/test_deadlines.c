/* The index of deadlines beside a plain array: keys of all lengths are set, moved, removed, due, and swept. */
/* tier: quick */
#include <string.h>

#include "tests/support/seed.h"
#include "tests/support/suite.h"
#include "tools/weekwheel-expirer/keys/deadlines.h"

enum { KEYS = 2000, ROUNDS = 100000, TAKE = 50 };

static uint64_t state;
static uint64_t at[KEYS]; /* 0: it is not there */
static uint8_t seen[KEYS];

/* A key of its own for each number, of 4 to 194 bytes. */
static const char *key_of(uint32_t number, size_t *length)
{
	static char text[200];

	memset(text, 'k', sizeof text);
	memcpy(text, &number, sizeof number);
	*length = sizeof number + number % 191;
	return text;
}

static void set(struct deadlines *deadlines, uint32_t number, uint64_t until)
{
	size_t length;
	const char *key = key_of(number, &length);

	ck_assert_int_eq(deadlines_set(deadlines, key, length, until), 0);
	at[number] = until;
	seen[number] = 1;
}

static void forget(struct deadlines *deadlines, uint32_t number)
{
	size_t length;
	const char *key = key_of(number, &length);
	struct known_key known;

	if (deadlines_find(deadlines, key, length, &known))
		deadlines_drop(deadlines, known.index);
	ck_assert_int_eq(deadlines_find(deadlines, key, length, &known), 0);
	at[number] = 0;
}

/* Take what is due by `now`. */
static void take(struct deadlines *deadlines, uint64_t now)
{
	struct due_key due[TAKE];
	size_t count;

	while ((count = deadlines_due(deadlines, now, due, TAKE)) > 0) {
		for (size_t i = 0; i < count; i++) {
			size_t length, same;
			const char *key = deadlines_key(deadlines, due[i].index, &length);
			uint32_t number;

			memcpy(&number, key, sizeof number);
			ck_assert_uint_lt(number, KEYS);
			ck_assert_int_eq(memcmp(key, key_of(number, &same), length), 0);
			ck_assert_uint_eq(length, same);
			ck_assert_uint_eq(due[i].at, at[number]);
			ck_assert_uint_le(at[number], now);
			deadlines_drop(deadlines, due[i].index);
			at[number] = 0;
		}
	}
}

static void compare(struct deadlines *deadlines, uint64_t now)
{
	size_t count = 0;

	for (uint32_t i = 0; i < KEYS; i++) {
		ck_assert(at[i] == 0 || at[i] > now);
		count += at[i] != 0;
	}
	ck_assert_uint_eq(deadlines_count(deadlines), count);
}

START_TEST(it_does_what_an_array_does)
{
	struct deadlines *deadlines = deadlines_make();
	uint64_t now = 1700000000000;

	state = seed_of_run("test_deadlines");
	ck_assert_ptr_nonnull(deadlines);
	take(deadlines, now);
	for (int i = 0; i < seed_rounds(ROUNDS); i++) {
		uint32_t number = (uint32_t)seed_below(&state, KEYS);

		if (seed_below(&state, 4) == 0)
			forget(deadlines, number);
		else
			set(deadlines, number, now + 1 + seed_below(&state, UINT64_C(1) << seed_below(&state, 34)));
		if (seed_below(&state, 16))
			continue;
		ck_assert_uint_ge(deadlines_next(deadlines), now);
		now += seed_below(&state, 1000);
		take(deadlines, now);
		compare(deadlines, now);
	}
	for (uint32_t i = 0; i < KEYS; i++)
		forget(deadlines, i);
	ck_assert_uint_eq(deadlines_next(deadlines), UINT64_MAX);
	deadlines_free(deadlines);
}
END_TEST

static void drop(void *context, uint32_t index)
{
	deadlines_drop(context, index);
}

START_TEST(a_sweep_drops_what_the_pass_has_not_seen)
{
	struct deadlines *deadlines = deadlines_make();
	struct known_key known;
	size_t length;

	/* More passes than their marks can count. */
	for (int round = 0; round < 600; round++) {
		for (uint32_t i = 0; i < KEYS; i++)
			set(deadlines, i, 1000000 + i);
		deadlines_pass(deadlines);
		memset(seen, 0, sizeof seen);
		for (uint32_t i = (uint32_t)round % 7; i < KEYS; i += 7)
			set(deadlines, i, 2000000 + i);
		while (deadlines_sweep(deadlines, 0, drop, deadlines))
			;
		for (uint32_t i = 0; i < KEYS; i++) {
			const char *key = key_of(i, &length);

			ck_assert_int_eq(deadlines_find(deadlines, key, length, &known), seen[i]);
		}
	}
	deadlines_free(deadlines);
}
END_TEST

START_TEST(a_deadline_that_has_passed_is_due_in_the_next_ms)
{
	struct deadlines *deadlines = deadlines_make();
	struct due_key due[2];

	ck_assert_uint_eq(deadlines_due(deadlines, 5000, due, 2), 0);
	ck_assert_int_eq(deadlines_set(deadlines, "a", 1, 4000), 0);
	ck_assert_uint_eq(deadlines_due(deadlines, 5000, due, 2), 0);
	ck_assert_uint_eq(deadlines_next(deadlines), 5001);
	ck_assert_uint_eq(deadlines_due(deadlines, 5001, due, 2), 1);
	/* An idle one can be set again, and is due again. */
	ck_assert_int_eq(deadlines_set(deadlines, "a", 1, 6000), 0);
	ck_assert_uint_eq(deadlines_count(deadlines), 1);
	ck_assert_uint_eq(deadlines_due(deadlines, 6000, due, 2), 1);
	deadlines_free(deadlines);
}
END_TEST

START_TEST(a_key_is_sure_until_it_is_doubted)
{
	struct deadlines *deadlines = deadlines_make();
	struct known_key known;
	struct due_key due[2];

	ck_assert_uint_eq(deadlines_due(deadlines, 5000, due, 2), 0);
	ck_assert_int_eq(deadlines_set(deadlines, "a", 1, 4000), 0);
	ck_assert_int_eq(deadlines_set(deadlines, "b", 1, 6000), 0);
	ck_assert_int_eq(deadlines_find(deadlines, "c", 1, &known), 0);
	for (int round = 0; round < 200; round++) {
		ck_assert_int_eq(deadlines_set(deadlines, "a", 1, 4000), 0);
		ck_assert_int_eq(deadlines_find(deadlines, "a", 1, &known), 1);
		ck_assert(known.is_sure && !known.is_idle && known.at == 4000);
		ck_assert_int_eq(deadlines_find(deadlines, "b", 1, &known), 1);
		ck_assert_int_eq(known.is_sure, round == 0);
		deadlines_doubt_all(deadlines);
		ck_assert_int_eq(deadlines_find(deadlines, "a", 1, &known), 1);
		ck_assert_int_eq(known.is_sure, 0);
	}
	/* Due, and again, it is what it was: its deadline stays, however late. */
	ck_assert_int_eq(deadlines_set(deadlines, "b", 1, 5500), 0);
	ck_assert_uint_eq(deadlines_due(deadlines, 5600, due, 2), 2);
	deadlines_look(deadlines, due[1].index, &known);
	ck_assert(known.is_idle && known.is_sure && known.at == 5500);
	deadlines_again(deadlines, known.index, 0);
	ck_assert_uint_eq(deadlines_due(deadlines, 5601, due, 2), 1);
	ck_assert_uint_eq(due[0].at, 5500);
	deadlines_look(deadlines, due[0].index, &known);
	ck_assert(known.is_idle && known.is_sure && known.at == 5500);
	deadlines_doubt(deadlines, known.index);
	deadlines_look(deadlines, known.index, &known);
	ck_assert_int_eq(known.is_sure, 0);
	deadlines_free(deadlines);
}
END_TEST

/* Of such a length, bytes that a key takes. */
static size_t bytes_of(size_t length, uint32_t count)
{
	struct deadlines *deadlines = deadlines_make();
	char key[64] = "";
	size_t bytes;

	for (uint32_t i = 0; i < count; i++) {
		memcpy(key, &i, sizeof i);
		ck_assert_int_eq(deadlines_set(deadlines, key, length, 1000000 + i), 0);
	}
	bytes = deadlines_bytes(deadlines) / count;
	deadlines_free(deadlines);
	return bytes;
}

START_TEST(a_key_takes_little_more_than_its_length)
{
	/* 13.5 of the table, and an unused part of the last chunk. */
	ck_assert_uint_le(bytes_of(16, 50000), 64 + 16 + 14);
	ck_assert_uint_le(bytes_of(37, 50000), 64 + 40 + 14);
}
END_TEST

TEST_MAIN("expirer/deadlines", a_key_takes_little_more_than_its_length, it_does_what_an_array_does,
    a_sweep_drops_what_the_pass_has_not_seen, a_deadline_that_has_passed_is_due_in_the_next_ms,
    a_key_is_sure_until_it_is_doubted)
