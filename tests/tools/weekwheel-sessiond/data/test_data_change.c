/* What the journal hears of each change: the record of a set must say what the map has, whichever way it was made. */
/* tier: quick */
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "tests/support/suite.h"
#include "tools/weekwheel-sessiond/data/data.h"

static struct data *data;
static const struct data_key key = {0, "k", 1};
static const struct data_key other = {0, "other", 5};

/* ---- A journal that keeps the last record */

static char heard[64]; /* a letter for each call: s, t, e, r, c */
static struct data_record last;
static char last_bytes[16];
static int leaves_out;
static size_t most = SIZE_MAX; /* bytes that it takes */
static _Atomic int is_leaving; /* gone_late was called */

static void hear(const char *letter, const struct data_record *record)
{
	strncat(heard, letter, sizeof heard - strlen(heard) - 1);
	if (!record)
		return;
	last = *record;
	memcpy(last_bytes, record->bytes, record->size);
}

static void set(void *context, const struct data_record *record)
{
	(void)context;
	hear("s", record);
}

static int touch(void *context, const struct data_record *record, uint64_t disk)
{
	(void)context;
	(void)disk;
	if (leaves_out)
		return 0;
	hear("t", record);
	return 1;
}

static void erase(void *context, unsigned database, const void *name, size_t length)
{
	(void)context;
	(void)database;
	(void)name;
	(void)length;
	hear("e", NULL);
}

static void rename_key(void *context, const struct data_record *record, const void *from, size_t length)
{
	(void)context;
	ck_assert_mem_eq(from, key.bytes, key.length);
	ck_assert_uint_eq(length, key.length);
	hear("r", record);
}

static void clear(void *context, unsigned database)
{
	(void)context;
	(void)database;
	hear("c", NULL);
}

static int takes(void *context, size_t count, size_t bytes)
{
	(void)context;
	(void)count;
	return bytes <= most;
}

static struct data_keep keep = {
    .takes = takes, .set = set, .touch = touch, .erase = erase, .rename = rename_key, .clear = clear};

static void open_data(uint64_t lifetime, int keeps_lifetimes)
{
	const struct data_config config = {.databases = 3,
	    .is_virtual = 1,
	    .has_lifetimes = 1,
	    .lifetime = lifetime,
	    .keeps_lifetimes = keeps_lifetimes};

	ck_assert_int_eq(data_open(&data, &config), WW_OK);
	data_set_keep(data, &keep);
	heard[0] = 0;
	leaves_out = 0;
}

static struct data_entry look(const struct data_key *at)
{
	struct data_entry entry;

	ck_assert_int_eq(data_inspect(data, at, &entry, NULL, NULL), 1);
	return entry;
}

/* The last record is that of the entry, with this deadline for the disk, and the entry knows it. */
static void expect_record(const char *calls, const char *value, uint64_t deadline)
{
	struct data_entry entry = look(&key);

	ck_assert_str_eq(heard, calls);
	ck_assert_uint_eq(last.length, key.length);
	ck_assert_uint_eq(last.size, strlen(value));
	ck_assert_mem_eq(last_bytes, value, last.size);
	ck_assert_uint_eq(last.ttl, entry.ttl);
	ck_assert_uint_eq(last.end, entry.end);
	ck_assert_uint_eq(last.deadline, deadline);
	ck_assert_uint_eq(entry.disk, deadline);
}

static void set_key(const char *value, const struct data_times *times)
{
	ck_assert_int_eq(data_set(data, &key, value, strlen(value), times), WW_OK);
}

/* ---- Sets */

START_TEST(a_set_is_journaled_as_the_map_has_it)
{
	/* The first three are told from the request, the others from the map. In s from now on; 0: none. */
	static const struct {
		uint64_t lifetime; /* the server's */
		uint64_t ttl;
		uint64_t end;
		uint64_t expiry;
	} cases[] = {{0, 100, 0, 100}, {0, 0, 0, 0}, {3600, 100, 0, 100}, {0, 5, 0, 5}, {0, 100, 50, 50},
	    {50, 100, 0, 50}, {0, 0, 50, 50}, {50, 5, 20, 5}};

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		open_data(cases[i].lifetime * WW_SECOND, 0);
		uint64_t now = data_now(data);
		struct data_times times = {.ttl = cases[i].ttl ? cases[i].ttl * WW_SECOND : DATA_NEVER,
		    .end = cases[i].end ? now + cases[i].end * WW_SECOND : 0};
		uint64_t expiry = cases[i].expiry ? now + cases[i].expiry * WW_SECOND : DATA_NEVER;
		set_key("one", &times);
		expect_record("s", "one", expiry);
		ck_assert_int_eq(last.is_new, 1);
		ck_assert_uint_eq(look(&key).deadline, expiry);
		set_key("second", &times);
		expect_record("ss", "second", expiry);
		ck_assert_int_eq(last.is_new, 0);
		data_close(data);
	}
}
END_TEST

START_TEST(a_set_that_keeps_the_times_keeps_the_deadline_on_disk)
{
	/* Long and short: told from the request, and from the map. */
	for (uint64_t ttl = 5; ttl <= 500; ttl *= 100) {
		open_data(0, 0);
		set_key("one", &(struct data_times){.ttl = ttl * WW_SECOND});
		uint64_t disk = look(&key).deadline;
		struct data_entry entry = look(&key);
		leaves_out = 1;
		ck_assert_int_eq(data_touch(data, &key, &entry, ttl * WW_SECOND, disk + WW_MILLISECOND), 1);
		entry = look(&key);
		ck_assert_uint_eq(entry.disk, disk);
		ck_assert_uint_eq(entry.deadline, disk + WW_MILLISECOND);
		set_key("two", &(struct data_times){.ttl = entry.ttl,
		                   .deadline = entry.deadline,
		                   .end = entry.end,
		                   .version = entry.version,
		                   .disk = entry.disk});
		expect_record("ss", "two", disk);
		ck_assert_uint_eq(look(&key).deadline, disk + WW_MILLISECOND);
		data_close(data);
	}
}
END_TEST

/* The lifetime of before goes on; if there was none, as that had no deadline, the server's begins. */
START_TEST(a_set_goes_on_with_a_lifetime)
{
	open_data(3600 * WW_SECOND, 1);
	uint64_t end = data_now(data) + 3600 * WW_SECOND;
	set_key("one", &(struct data_times){.ttl = 100 * WW_SECOND});
	ck_assert_int_eq(data_advance(data, 50 * WW_SECOND), WW_OK);
	set_key("two", &(struct data_times){.ttl = 100 * WW_SECOND});
	ck_assert_uint_eq(last.end, end);
	expect_record("ss", "two", data_now(data) + 100 * WW_SECOND);
	set_key("ever", &(struct data_times){.ttl = DATA_NEVER});
	ck_assert_uint_eq(last.end, end);
	ck_assert_uint_eq(last.ttl, DATA_NEVER);
	expect_record("sss", "ever", end);
	set_key("ever", &(struct data_times){.ttl = DATA_NEVER, .end = DATA_NEVER});
	expect_record("ssss", "ever", DATA_NEVER);
	set_key("three", &(struct data_times){.ttl = 100 * WW_SECOND});
	ck_assert_uint_eq(last.end, data_now(data) + 3600 * WW_SECOND);
	expect_record("sssss", "three", data_now(data) + 100 * WW_SECOND);
	data_close(data);
}
END_TEST

/* What is over when it comes replaces what was there, and is none itself. */
START_TEST(a_set_that_is_over_erases_what_was_there)
{
	struct ww_session_stats stats;
	struct data_entry entry;

	open_data(0, 0);
	struct data_times over = {.ttl = DATA_TTL_OVER, .deadline = 1};
	set_key("never", &over);
	ck_assert_str_eq(heard, "");
	set_key("one", &(struct data_times){.ttl = 100 * WW_SECOND});
	set_key("never", &over);
	ck_assert_str_eq(heard, "se");
	ck_assert_int_eq(data_inspect(data, &key, &entry, NULL, NULL), 0);
	data_close(data);
	/* Also where a lifetime would begin now, as what was there had no deadline. */
	open_data(3600 * WW_SECOND, 1);
	set_key("ever", &(struct data_times){.ttl = DATA_NEVER, .end = DATA_NEVER});
	set_key("never", &over);
	ck_assert_str_eq(heard, "se");
	ck_assert_int_eq(data_inspect(data, &key, &entry, NULL, NULL), 0);
	/* Its value went with it, and was not put again. */
	data_stats(data, &stats);
	ck_assert_uint_eq(stats.expired, 1);
	data_close(data);
}
END_TEST

START_TEST(a_set_that_fails_is_not_journaled)
{
	struct value *former = (struct value *)&key;

	open_data(0, 0);
	ck_assert_int_eq(data_swap(data, &key, "v", 1,
	                     &(struct data_times){.ttl = WW_SECOND, .deadline = WW_DRIVER_TIME_MAX + 1}, &former),
	    WW_EOVERFLOW);
	ck_assert_ptr_null(former);
	ck_assert_int_eq(data_set(data, &key, "v", 1, &(struct data_times){.ttl = WW_SECOND, .version = 7}), WW_ESTALE);
	ck_assert_str_eq(heard, "");
	data_close(data);
}
END_TEST

/* ---- Other changes */

START_TEST(a_touch_is_on_disk_when_it_was_written)
{
	open_data(0, 0);
	set_key("one", &(struct data_times){.ttl = 100 * WW_SECOND});
	uint64_t disk = look(&key).deadline;
	struct data_entry entry = look(&key);
	leaves_out = 1;
	ck_assert_int_eq(data_touch(data, &key, &entry, 100 * WW_SECOND, disk + WW_SECOND), 1);
	ck_assert_uint_eq(look(&key).disk, disk);
	leaves_out = 0;
	/* One that somebody has changed meanwhile is not there any more. */
	ck_assert_int_eq(data_touch(data, &key, &entry, 100 * WW_SECOND, disk + 2 * WW_SECOND), 0);
	entry = look(&key);
	ck_assert_int_eq(data_touch(data, &key, &entry, 100 * WW_SECOND, disk + 2 * WW_SECOND), 1);
	expect_record("st", "one", disk + 2 * WW_SECOND);
	/* Without a deadline. */
	entry = look(&key);
	ck_assert_int_eq(data_touch(data, &key, &entry, DATA_NEVER, 0), 1);
	expect_record("stt", "one", DATA_NEVER);
	data_close(data);
}
END_TEST

START_TEST(the_first_deadline_begins_the_lifetime_and_is_set)
{
	open_data(50 * WW_SECOND, 0);
	set_key("one", &(struct data_times){.ttl = DATA_NEVER});
	struct data_entry entry = look(&key);
	ck_assert_int_eq(data_touch(data, &key, &entry, 100 * WW_SECOND, 0), 1);
	ck_assert_uint_eq(last.end, data_now(data) + 50 * WW_SECOND);
	expect_record("ss", "one", data_now(data) + 50 * WW_SECOND);
	data_close(data);
}
END_TEST

START_TEST(a_rename_keeps_the_deadline_on_disk)
{
	open_data(0, 0);
	set_key("one", &(struct data_times){.ttl = 100 * WW_SECOND});
	uint64_t disk = look(&key).deadline;
	struct data_entry entry = look(&key);
	leaves_out = 1;
	ck_assert_int_eq(data_touch(data, &key, &entry, 100 * WW_SECOND, disk + WW_SECOND), 1);
	ck_assert_int_eq(data_rename(data, &key, &other), 1);
	ck_assert_str_eq(heard, "sr");
	ck_assert_mem_eq(last.key, other.bytes, other.length);
	ck_assert_uint_eq(last.deadline, disk);
	ck_assert_uint_eq(look(&other).disk, disk);
	ck_assert_uint_eq(look(&other).deadline, disk + WW_SECOND);
	ck_assert_int_eq(last.is_new, 1);
	ck_assert_int_eq(data_rename(data, &key, &other), 0);
	/* Other errors are told, and not that it is gone. */
	ck_assert_int_eq(data_rename(data, &other, &other), WW_EINVAL);
	data_close(data);
}
END_TEST

START_TEST(a_name_that_stays_ended_leaves_the_entry_as_it_is)
{
	const struct data_config config = {.databases = 1,
	    .is_virtual = 1,
	    .has_lifetimes = 1,
	    .lifetime = 50 * WW_SECOND,
	    .stays_ended = 50 * WW_SECOND,
	    .keeps_lifetimes = 1};

	ck_assert_int_eq(data_open(&data, &config), WW_OK);
	ck_assert_int_eq(data_set(data, &other, "two", 3, &(struct data_times){.ttl = 100 * WW_SECOND}), WW_OK);
	ck_assert_int_eq(data_advance(data, 51 * WW_SECOND), WW_OK);
	set_key("one", &(struct data_times){.ttl = 100 * WW_SECOND});
	ck_assert_int_eq(data_rename(data, &key, &other), WW_EBACKWARDS);
	ck_assert_int_eq(data_is_there(data, &key), 1);
	ck_assert_int_eq(data_is_taken(data, &other), 1);
	data_close(data);
}
END_TEST

/* ---- A report that comes late */

static void *advance(void *context)
{
	ck_assert_int_eq(data_advance(data, *(uint64_t *)context), WW_OK);
	return NULL;
}

/* The driver's worker does not get on until the rename is heard of, or surely waits for it. */
static void gone_late(
    void *context, unsigned database, const void *name, size_t length, const struct value *value, enum ww_gone why)
{
	const struct timespec pause = {0, 5 * WW_MILLISECOND};

	(void)context;
	(void)database;
	(void)value;
	ck_assert_int_eq(why, WW_GONE_EXPIRED);
	ck_assert_mem_eq(name, other.bytes, length);
	atomic_store(&is_leaving, 1);
	for (int i = 0; i < 20 && !strchr(heard, 'r'); i++)
		(void)nanosleep(&pause, NULL);
	hear("g", NULL);
}

/* As the deadline on disk is over, a load would otherwise take the report for one of what was renamed. */
START_TEST(what_is_renamed_beyond_its_deadline_on_disk_is_journaled_behind_the_report_of_its_name)
{
	const struct data_config config = {.databases = 1, .is_virtual = 1, .gone = gone_late};
	uint64_t step = 100 * WW_SECOND;
	pthread_t thread;

	ck_assert_int_eq(data_open(&data, &config), WW_OK);
	data_set_keep(data, &keep);
	heard[0] = 0;
	set_key("one", &(struct data_times){.ttl = 100 * WW_SECOND});
	ck_assert_int_eq(data_set(data, &other, "two", 3, &(struct data_times){.ttl = 100 * WW_SECOND}), WW_OK);
	struct data_entry entry = look(&key);
	leaves_out = 1;
	ck_assert_int_eq(data_touch(data, &key, &entry, 100 * WW_SECOND, entry.disk + WW_SECOND), 1);
	ck_assert_int_eq(pthread_create(&thread, NULL, advance, &step), 0);
	while (!atomic_load(&is_leaving))
		(void)sched_yield();
	ck_assert_int_eq(data_rename(data, &key, &other), 1);
	ck_assert_int_eq(pthread_join(thread, NULL), 0);
	ck_assert_str_eq(heard, "ssgr");
	data_close(data);
}
END_TEST

/* Nothing of it is done. */
START_TEST(what_is_too_much_for_the_journal_is_refused)
{
	struct value *former;

	open_data(50 * WW_SECOND, 0);
	set_key("123456789", &(struct data_times){.ttl = DATA_NEVER});
	struct data_entry entry = look(&key);
	most = 9;
	ck_assert_int_eq(
	    data_swap(data, &key, "abcdefghi", 9, &(struct data_times){.ttl = WW_SECOND}, &former), WW_EFULL);
	ck_assert_ptr_null(former);
	/* With its first deadline the journal gets the value again. */
	ck_assert_int_eq(data_touch(data, &key, &entry, WW_SECOND, 0), WW_EFULL);
	ck_assert_int_eq(data_rename(data, &key, &other), WW_EFULL);
	ck_assert_str_eq(heard, "s");
	ck_assert_uint_eq(look(&key).version, entry.version);
	most = 10;
	ck_assert_int_eq(data_touch(data, &key, &entry, WW_SECOND, 0), 1);
	most = 1;
	entry = look(&key);
	ck_assert_int_eq(data_touch(data, &key, &entry, WW_SECOND / 2, 0), 1);
	most = 15;
	ck_assert_int_eq(data_rename(data, &key, &other), 1);
	ck_assert_str_eq(heard, "sstr");
	most = SIZE_MAX;
	data_close(data);
}
END_TEST

START_TEST(a_delete_is_journaled_whatever_it_finds_and_so_is_a_flush)
{
	open_data(0, 0);
	set_key("one", &(struct data_times){.ttl = DATA_NEVER});
	ck_assert_int_eq(data_delete(data, &key), 1);
	ck_assert_int_eq(data_delete(data, &key), 0);
	ck_assert_int_eq(data_clear(data, 0, 2), WW_OK);
	ck_assert_str_eq(heard, "seeccc");
	/* What is reported must not be erased before its report is noted, which erases it, too. */
	keep.is_reporting = 1;
	ck_assert_int_eq(data_delete(data, &key), 0);
	ck_assert_str_eq(heard, "seeccc");
	keep.is_reporting = 0;
	data_close(data);
}
END_TEST

/* ---- Databases and starts */

START_TEST(a_database_that_nobody_has_selected_has_nothing)
{
	const struct data_key far = {2, "k", 1};
	struct ww_session_stats stats;
	struct data_entry entry;

	open_data(0, 0);
	ck_assert_ptr_null(data_map(data, 2));
	ck_assert_int_eq(data_is_there(data, &far), 0);
	ck_assert_int_ne(data_inspect(data, &far, &entry, NULL, NULL), 1);
	ck_assert_int_eq(data_delete(data, &far), 0);
	ck_assert_uint_eq(data_count(data, 2), 0);
	ck_assert_int_eq(data_clear(data, 0, 2), WW_OK);
	data_stats(data, &stats);
	ck_assert_uint_eq(stats.entries, 0);
	ck_assert_int_eq(data_select(data, 2), WW_OK);
	struct ww_session *made = data_map(data, 2);
	ck_assert_ptr_nonnull(made);
	ck_assert_int_eq(data_select(data, 2), WW_OK);
	ck_assert_ptr_eq(data_map(data, 2), made);
	ck_assert_int_eq(data_set(data, &far, "v", 1, &(struct data_times){.ttl = DATA_NEVER}), WW_OK);
	ck_assert_uint_eq(data_count(data, 2), 1);
	ck_assert_uint_eq(data_count(data, 0), 0);
	data_close(data);
}
END_TEST

START_TEST(what_is_restored_is_as_it_was_and_nobody_hears_of_it)
{
	open_data(0, 0);
	uint64_t now = data_now(data);
	struct data_record record = {.key = key.bytes,
	    .length = key.length,
	    .ttl = 100 * WW_SECOND,
	    .deadline = now + 70 * WW_SECOND,
	    .end = now + 90 * WW_SECOND};
	struct value *value = data_value("old", 3);
	value_set_disk(value, now + 60 * WW_SECOND);
	ck_assert_int_eq(data_restore(data, &record, value), WW_OK);
	struct data_entry entry = look(&key);
	ck_assert_uint_eq(entry.ttl, record.ttl);
	ck_assert_uint_eq(entry.deadline, record.deadline);
	ck_assert_uint_eq(entry.end, record.end);
	ck_assert_uint_eq(entry.disk, now + 60 * WW_SECOND);
	ck_assert_str_eq(heard, "");
	/* The value is taken over on error, too. */
	record.deadline = WW_DRIVER_TIME_MAX + 1;
	ck_assert_int_eq(data_restore(data, &record, data_value("new", 3)), WW_EOVERFLOW);
	data_close(data);
}
END_TEST

TEST_MAIN("weekwheel-sessiond/data_change", a_set_is_journaled_as_the_map_has_it,
    a_set_that_keeps_the_times_keeps_the_deadline_on_disk, a_set_goes_on_with_a_lifetime,
    a_set_that_is_over_erases_what_was_there, a_set_that_fails_is_not_journaled, a_touch_is_on_disk_when_it_was_written,
    the_first_deadline_begins_the_lifetime_and_is_set, a_rename_keeps_the_deadline_on_disk,
    a_name_that_stays_ended_leaves_the_entry_as_it_is,
    what_is_renamed_beyond_its_deadline_on_disk_is_journaled_behind_the_report_of_its_name,
    what_is_too_much_for_the_journal_is_refused, a_delete_is_journaled_whatever_it_finds_and_so_is_a_flush,
    a_database_that_nobody_has_selected_has_nothing, what_is_restored_is_as_it_was_and_nobody_hears_of_it)
