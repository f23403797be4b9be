/* What readers see of entries: values, times, names that stay taken, counts, and cursors. */
/* tier: quick */
#include <string.h>

#include "tests/support/suite.h"
#include "tools/weekwheel-sessiond/data/data.h"

static struct data *data;
static const struct data_key key = {0, "k", 1};
static const struct data_key elsewhere = {1, "k", 1};

static void open_data(uint64_t stays_ended)
{
	const struct data_config config = {
	    .databases = 2, .is_virtual = 1, .has_lifetimes = 1, .stays_ended = stays_ended};

	ck_assert_int_eq(data_open(&data, &config), WW_OK);
	ck_assert_int_eq(data_select(data, 1), WW_OK);
}

static void set(const struct data_key *at, const char *value, uint64_t ttl, uint64_t end)
{
	const struct data_times times = {.ttl = ttl, .end = end};

	ck_assert_int_eq(data_set(data, at, value, strlen(value), &times), WW_OK);
}

static void copy(void *value, void *context)
{
	const struct value *from = value;

	memcpy(context, from->bytes, from->size);
	((char *)context)[from->size] = 0;
}

START_TEST(a_value_is_read_in_its_database)
{
	char seen[16] = "";

	open_data(0);
	set(&key, "one", DATA_NEVER, 0);
	ck_assert_int_eq(data_read(data, &elsewhere, copy, seen), 0);
	set(&elsewhere, "", DATA_NEVER, 0);
	ck_assert_int_eq(data_read(data, &key, copy, seen), 1);
	ck_assert_str_eq(seen, "one");
	ck_assert_int_eq(data_read(data, &elsewhere, copy, seen), 1);
	ck_assert_str_eq(seen, "");
	data_close(data);
}
END_TEST

START_TEST(an_entry_shows_its_times)
{
	struct data_entry entry = {.version = 7};
	char seen[16];

	open_data(0);
	uint64_t now = data_now(data);
	ck_assert_int_eq(data_inspect(data, &key, &entry, copy, seen), 0);
	ck_assert_uint_eq(entry.version, 0);
	set(&key, "three", DATA_NEVER, 0);
	ck_assert_int_eq(data_inspect(data, &key, &entry, copy, seen), 1);
	ck_assert_str_eq(seen, "three");
	ck_assert_uint_eq(entry.size, 5);
	ck_assert_uint_eq(entry.ttl, DATA_NEVER);
	ck_assert_uint_eq(entry.deadline, DATA_NEVER);
	ck_assert_uint_eq(entry.end, DATA_NEVER);
	uint64_t version = entry.version;
	set(&key, "x", 60 * WW_SECOND, now + 40 * WW_SECOND);
	ck_assert_int_eq(data_advance(data, 10 * WW_SECOND), WW_OK);
	ck_assert_int_eq(data_inspect(data, &key, &entry, NULL, NULL), 1);
	ck_assert_uint_gt(entry.version, version);
	ck_assert_uint_eq(entry.ttl, 60 * WW_SECOND);
	ck_assert_uint_eq(entry.deadline, now + 40 * WW_SECOND);
	ck_assert_uint_eq(entry.end, now + 40 * WW_SECOND);
	data_close(data);
}
END_TEST

/* Whether the name is there, or taken. */
static void expect_name(int is_there, int is_taken)
{
	ck_assert_int_eq(data_is_there(data, &key), is_there);
	ck_assert_int_eq(data_is_taken(data, &key), is_taken);
}

START_TEST(a_name_stays_taken_for_a_while_after_the_end_of_its_lifetime)
{
	open_data(30 * WW_SECOND);
	expect_name(0, 0);
	set(&key, "x", 60 * WW_SECOND, data_now(data) + 10 * WW_SECOND);
	expect_name(1, 1);
	ck_assert_int_eq(data_advance(data, 10 * WW_SECOND), WW_OK);
	expect_name(0, 1);
	ck_assert_int_eq(data_advance(data, 31 * WW_SECOND), WW_OK);
	expect_name(0, 0);
	/* What was remembered before a restart, and what merely expired. */
	data_remember(data, &key, data_now(data), data_now(data) + 5 * WW_SECOND);
	expect_name(0, 1);
	ck_assert_int_eq(data_advance(data, 6 * WW_SECOND), WW_OK);
	set(&key, "x", WW_SECOND, DATA_NEVER);
	ck_assert_int_eq(data_advance(data, 2 * WW_SECOND), WW_OK);
	expect_name(0, 0);
	ck_assert_uint_eq(data_stays_ended_ms(data), 30000);
	ck_assert_uint_eq(data_recalls_dropped(data), 0);
	data_close(data);
}
END_TEST

START_TEST(counts_are_of_one_database_or_of_all)
{
	struct ww_session_stats stats;
	char name[8];

	open_data(0);
	for (int i = 0; i < 12; i++) {
		const struct data_key at = {i % 3 == 0, name, (size_t)snprintf(name, sizeof name, "k%d", i)};
		set(&at, "x", i < 6 ? WW_SECOND : DATA_NEVER, 0);
	}
	ck_assert_uint_eq(data_count(data, 0), 8);
	ck_assert_uint_eq(data_count(data, 1), 4);
	ck_assert_int_eq(data_advance(data, 2 * WW_SECOND), WW_OK);
	ck_assert_uint_eq(data_count(data, 0), 4);
	ck_assert_uint_eq(data_count(data, 1), 2);
	ck_assert_int_eq(data_read(data, &key, copy, name), 0);
	data_stats(data, &stats);
	ck_assert_uint_eq(stats.entries, 6);
	ck_assert_uint_eq(stats.expired, 6);
	ck_assert_uint_eq(stats.misses, 1);
	data_close(data);
}
END_TEST

static int find(const void *name, size_t length, const struct ww_session_found *found, void *context)
{
	(void)name;
	(void)length;
	(void)found;
	(*(int *)context)++;
	return 0;
}

/* INFO looks at some keys from such a cursor on. */
START_TEST(a_walk_may_begin_at_a_random_cursor)
{
	int found = 0;

	open_data(0);
	ck_assert_uint_ne(data_random(data), data_random(data));
	set(&key, "x", DATA_NEVER, 0);
	for (int i = 0; i < 1000 && !found; i++) {
		uint64_t cursor = data_cursor(data, 0);
		ck_assert_uint_ne(cursor, 0);
		ck_assert_int_ge(ww_session_scan(data_map(data, 0), &cursor, find, &found), 0);
	}
	ck_assert_int_eq(found, 1);
	data_close(data);
}
END_TEST

TEST_MAIN("weekwheel-sessiond/data_look", a_value_is_read_in_its_database, an_entry_shows_its_times,
    a_name_stays_taken_for_a_while_after_the_end_of_its_lifetime, counts_are_of_one_database_or_of_all,
    a_walk_may_begin_at_a_random_cursor)
