/* The table that a load fills: against a list that is searched from its beginning, and in a full and an empty state. */
/* tier: quick */
#include <stdlib.h>
#include <string.h>

#include "tests/support/seed.h"
#include "tests/support/suite.h"
#include "tools/weekwheel-sessiond/keep/table.h"

enum { KEYS = 5000, STEPS = 40000, LONG = 65535 };

static struct keep_table table;
static int value_of[KEYS]; /* what the table is to have for a key; 0: nothing */

/* Of 0 to 70 bytes, also with zeros in it. */
static size_t make_key(int number, char *key)
{
	size_t length = 0;

	if (number > 0) {
		memcpy(key, &number, sizeof number);
		length = sizeof number + (size_t)number % 67;
		memset(key + sizeof number, 'k', length - sizeof number);
	}
	return length;
}

static void set(int number, int to)
{
	char key[80];
	struct keep_session *session = keep_table_add(&table, key, make_key(number, key));

	ck_assert_ptr_nonnull(session);
	free(session->value);
	session->value = data_value(&to, sizeof to);
	ck_assert_ptr_nonnull(session->value);
	session->ttl = (uint64_t)to;
	value_of[number] = to;
}

static struct keep_session *get(int number)
{
	char key[80];

	return keep_table_find(&table, key, make_key(number, key));
}

static void expect(int number)
{
	const struct keep_session *session = get(number);

	ck_assert_int_eq(session != NULL, value_of[number] != 0);
	if (session) {
		ck_assert_mem_eq(session->value->bytes, &value_of[number], sizeof(int));
		ck_assert_uint_eq(session->ttl, (uint64_t)value_of[number]);
	}
}

static int count_one(struct keep_session *session, void *context)
{
	int number = 0;

	if (session->length)
		memcpy(&number, session->key, sizeof number);
	ck_assert_mem_eq(session->value->bytes, &value_of[number], sizeof(int));
	++*(int *)context;
	return WW_OK;
}

/* Take the value, as a move to the map does. */
static int take_one(struct keep_session *session, void *context)
{
	(void)count_one(session, context);
	free(session->value);
	session->value = NULL;
	return WW_OK;
}

static int add_one(struct keep_session *session, void *context)
{
	(void)session;
	++*(int *)context;
	return WW_OK;
}

static int expected_count(void)
{
	int count = 0;

	for (int i = 0; i < KEYS; i++)
		count += value_of[i] != 0;
	return count;
}

static void clear(void)
{
	keep_table_clear(&table);
	memset(value_of, 0, sizeof value_of);
}

START_TEST(it_has_what_was_set_last_whatever_came_before)
{
	uint64_t random = seed_of_run("keep/table");
	int count = 0;

	for (int step = 1; step <= STEPS; step++) {
		int number = (int)seed_below(&random, KEYS);
		if (seed_below(&random, 3)) {
			set(number, step);
		} else if (get(number)) {
			free(get(number)->value);
			get(number)->value = NULL;
			value_of[number] = 0;
		}
		expect(number);
		expect((int)seed_below(&random, KEYS));
		if (seed_below(&random, STEPS / 2) == 0)
			clear();
	}
	for (int i = 0; i < KEYS; i++)
		expect(i);
	ck_assert_int_eq(keep_table_walk(&table, count_one, &count), WW_OK);
	ck_assert_int_eq(count, expected_count());
	ck_assert_int_eq(keep_table_drain(&table, take_one, &count), WW_OK);
	ck_assert_int_eq(count, 2 * expected_count());
	memset(value_of, 0, sizeof value_of);
	expect(1);
}
END_TEST

/* Two of them do not fit into a block with others of their size. */
START_TEST(keys_of_all_sizes_fit_and_are_told_apart)
{
	static char key[LONG];

	for (int i = 0; i < 200; i++) {
		struct keep_session *session;
		key[LONG - 1] = (char)i;
		session = keep_table_add(&table, key, LONG);
		ck_assert_ptr_nonnull(session);
		ck_assert_ptr_null(session->value);
		session->value = data_value(&i, sizeof i);
	}
	for (int i = 0; i < 200; i++) {
		key[LONG - 1] = (char)i;
		ck_assert_mem_eq(keep_table_find(&table, key, LONG)->value->bytes, &i, sizeof i);
		ck_assert_ptr_null(keep_table_find(&table, key, LONG - 1));
	}
	clear();
}
END_TEST

START_TEST(small_sessions_fill_some_blocks)
{
	enum { MANY = 200000 };
	int count = 0;

	for (int i = 0; i < MANY; i++) {
		struct keep_session *session = keep_table_add(&table, &i, sizeof i);
		ck_assert_ptr_nonnull(session);
		ck_assert_ptr_null(session->value);
		session->ttl = (uint64_t)i;
		if (i % 1000 == 0)
			session->value = data_value("", 0);
	}
	ck_assert_uint_gt(table.blocks, 3);
	for (int i = 0; i < MANY; i += 1000)
		ck_assert_uint_eq(keep_table_find(&table, &i, sizeof i)->ttl, (uint64_t)i);
	ck_assert_int_eq(keep_table_walk(&table, add_one, &count), WW_OK);
	ck_assert_int_eq(count, MANY / 1000);
	clear();
}
END_TEST

START_TEST(an_empty_table_has_nothing_and_can_be_cleared)
{
	int count = 0;

	keep_table_expect(&table, "a", 1);
	ck_assert_ptr_null(keep_table_find(&table, "a", 1));
	ck_assert_int_eq(keep_table_walk(&table, count_one, &count), WW_OK);
	keep_table_clear(&table);
	ck_assert_int_eq(keep_table_drain(&table, take_one, &count), WW_OK);
	ck_assert_int_eq(count, 0);
	set(7, 1);
	expect(7);
	clear();
	expect(7);
}
END_TEST

static int fail_at_five(struct keep_session *session, void *context)
{
	return *(int *)context == 5 ? WW_ETOOBIG : take_one(session, context);
}

/* LeakSanitizer sees what is not given back. */
START_TEST(an_error_ends_a_walk_and_empties_a_table_that_is_drained)
{
	int count = 0;

	for (int i = 0; i < 10; i++)
		set(i, i + 1);
	ck_assert_int_eq(keep_table_walk(&table, fail_at_five, &count), WW_ETOOBIG);
	ck_assert_int_eq(count, 5);
	for (int i = 0; i < 10; i++)
		ck_assert_int_eq(get(i) != NULL, i >= 5);
	count = 4;
	ck_assert_int_eq(keep_table_drain(&table, fail_at_five, &count), WW_ETOOBIG);
	ck_assert_int_eq(count, 5);
	memset(value_of, 0, sizeof value_of);
	for (int i = 0; i < 10; i++)
		expect(i);
}
END_TEST

TEST_MAIN("weekwheel-sessiond/keep_table", it_has_what_was_set_last_whatever_came_before,
    keys_of_all_sizes_fit_and_are_told_apart, small_sessions_fill_some_blocks,
    an_empty_table_has_nothing_and_can_be_cleared, an_error_ends_a_walk_and_empties_a_table_that_is_drained)
