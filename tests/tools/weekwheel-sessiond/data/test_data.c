/* The time of sessions, on three clocks, and their journal: what is asked of it, and what holds without one. */
/* tier: quick */
#include <string.h>

#include "tests/support/suite.h"
#include "tools/weekwheel-sessiond/data/data.h"

static struct data *data;
static const struct data_key key = {0, "k", 1};

static void open_data(uint64_t lifetime)
{
	const struct data_config config = {.databases = 3, .is_virtual = 1, .lifetime = lifetime, .has_lifetimes = 1};

	ck_assert_int_eq(data_open(&data, &config), WW_OK);
}

/* ---- Time */

START_TEST(times_go_to_each_clock_and_back)
{
	open_data(0);
	const int64_t wall = data_wall_ms(data), steady = data_steady_ms(data);
	const uint64_t now = data_now(data);

	ck_assert_int_eq(data_is_virtual(data), 1);
	/* It begins at the present: on no machine that runs this is that before 2020. */
	ck_assert_int_gt(wall, INT64_C(1577836800000));
	ck_assert_uint_eq(data_from_wall_ms(data, wall + 5000), now + 5 * WW_SECOND);
	ck_assert_int_eq(data_to_wall_ms(data, now + 5 * WW_SECOND), wall + 5000);
	ck_assert_uint_eq(data_from_steady_ms(data, steady + 7), now + 7 * WW_MILLISECOND);
	ck_assert_int_eq(data_to_steady_ms(data, now + 7 * WW_MILLISECOND), steady + 7);
	ck_assert_int_eq(data_steady_to_wall_ms(data, steady + 9), wall + 9);
	ck_assert_int_eq(data_advance(data, 90 * WW_SECOND), WW_OK);
	ck_assert_int_eq(data_wall_ms(data), wall + 90000);
	ck_assert_int_eq(data_steady_ms(data), steady + 90000);
	ck_assert_uint_eq(data_now(data), now + 90 * WW_SECOND);
	/* Steady time goes on where it was before a restart, whatever the wall clock says. */
	data_set_steady_offset(data, data_steady_offset(data) + 1000);
	ck_assert_int_eq(data_steady_ms(data), steady + 91000);
	ck_assert_int_eq(data_wall_ms(data), wall + 90000);
	ck_assert_int_eq(data_steady_to_wall_ms(data, steady + 91000), wall + 90000);
	data_close(data);
}
END_TEST

START_TEST(times_out_of_range_are_the_first_or_the_last)
{
	open_data(0);
	const int64_t last = data_to_steady_ms(data, DATA_LAST);

	ck_assert_uint_eq(data_from_steady_ms(data, 0), 1);
	ck_assert_uint_eq(data_from_steady_ms(data, INT64_MIN), 1);
	ck_assert_uint_eq(data_from_steady_ms(data, data_steady_offset(data)), 1);
	ck_assert_uint_eq(data_from_steady_ms(data, data_steady_offset(data) + 1), WW_MILLISECOND);
	ck_assert_uint_eq(data_from_steady_ms(data, last), DATA_LAST / WW_MILLISECOND * WW_MILLISECOND);
	ck_assert_uint_eq(data_from_steady_ms(data, last + 1), DATA_LAST);
	ck_assert_uint_eq(data_from_steady_ms(data, INT64_MAX), DATA_LAST);
	/* A difference that does not fit. */
	data_set_steady_offset(data, -5);
	ck_assert_uint_eq(data_from_steady_ms(data, INT64_MAX), DATA_LAST);
	ck_assert_uint_eq(data_from_steady_ms(data, -5), 1);
	ck_assert_uint_eq(data_from_steady_ms(data, -4), WW_MILLISECOND);
	data_close(data);
}
END_TEST

START_TEST(the_servers_lifetime_ends_after_now)
{
	open_data(0);
	ck_assert_uint_eq(data_lifetime_end(data), DATA_NEVER);
	data_close(data);
	open_data(60 * WW_SECOND);
	ck_assert_uint_eq(data_lifetime_end(data), data_now(data) + 60 * WW_SECOND);
	data_close(data);
	open_data(DATA_LAST);
	ck_assert_uint_eq(data_lifetime_end(data), DATA_LAST);
	data_close(data);
}
END_TEST

START_TEST(real_time_is_not_advanced)
{
	ck_assert_int_eq(data_open(&data, &(struct data_config){.databases = 1}), WW_OK);
	ck_assert_int_eq(data_is_virtual(data), 0);
	ck_assert_int_eq(data_advance(data, WW_SECOND), WW_EINVAL);
	data_close(data);
	data_close(NULL);
}
END_TEST

/* ---- Databases */

START_TEST(a_database_has_a_map_once_it_is_selected)
{
	open_data(0);
	ck_assert_uint_eq(data_databases(data), 3);
	ck_assert_ptr_nonnull(data_map(data, 0));
	ck_assert_ptr_null(data_map(data, 2));
	ck_assert_int_eq(data_select(data, 2), WW_OK);
	const struct ww_session *made = data_map(data, 2);
	ck_assert_ptr_nonnull(made);
	ck_assert_int_eq(data_select(data, 2), WW_OK);
	ck_assert_ptr_eq(data_map(data, 2), made);
	data_close(data);
}
END_TEST

/* ---- The end of keys */

static int gone, gone_why;
static int64_t gone_deadline;

static void on_gone(
    void *context, unsigned database, const void *name, size_t length, const struct value *value, enum ww_gone why)
{
	(void)context;
	ck_assert_uint_eq(database, 0);
	ck_assert_mem_eq(name, key.bytes, length);
	ck_assert_uint_eq(value->size, 1);
	gone++;
	gone_why = (int)why;
	gone_deadline = data_gone_ms(data);
}

START_TEST(an_end_is_told_once_with_its_deadline)
{
	const struct data_config config = {.databases = 1, .is_virtual = 1, .gone = on_gone};

	ck_assert_int_eq(data_open(&data, &config), WW_OK);
	int64_t deadline = data_steady_ms(data) + 5000;
	ck_assert_int_eq(data_set(data, &key, "x", 1, &(struct data_times){.ttl = 5 * WW_SECOND}), WW_OK);
	ck_assert_int_eq(data_advance(data, 5 * WW_SECOND - 1), WW_OK);
	data_settle_gone(data);
	ck_assert_int_eq(gone, 0);
	ck_assert_int_eq(data_advance(data, WW_SECOND), WW_OK);
	ck_assert_int_eq(gone, 1);
	ck_assert_int_eq(gone_why, WW_GONE_EXPIRED);
	ck_assert_int_eq(gone_deadline, deadline);
	/* What is deleted, or closed, is no end. */
	ck_assert_int_eq(data_set(data, &key, "x", 1, &(struct data_times){.ttl = WW_SECOND}), WW_OK);
	ck_assert_int_eq(data_delete(data, &key), 1);
	ck_assert_int_eq(data_set(data, &key, "x", 1, &(struct data_times){.ttl = WW_SECOND}), WW_OK);
	data_close(data);
	ck_assert_int_eq(gone, 1);
}
END_TEST

/* ---- The journal */

static char asked[64];

static void ask(const char *letter)
{
	strncat(asked, letter, sizeof asked - strlen(asked) - 1);
}

static const char *refuses(void *context, int deletes)
{
	(void)context;
	return deletes ? NULL : "MISCONF";
}

static void begin(void *context)
{
	(void)context;
	ask("b");
}

static void commit(void *context)
{
	(void)context;
	ask("c");
}

static int settle(void *context)
{
	(void)context;
	return WW_EIO;
}

static void leave(void *context)
{
	(void)context;
	ask("l");
}

static int save(void *context, int wait)
{
	(void)context;
	ask(wait ? "w" : "s");
	return WW_EBUSY;
}

static int saving(void *context, int64_t *last)
{
	(void)context;
	*last = 7;
	return 1;
}

static void info(void *context, struct buffer *out)
{
	(void)context;
	(void)out;
	ask("i");
}

START_TEST(the_journal_is_asked_if_there_is_one)
{
	const struct data_keep keep = {.refuses = refuses,
	    .begin = begin,
	    .commit = commit,
	    .settle = settle,
	    .leave = leave,
	    .save = save,
	    .saving = saving,
	    .info = info};
	int64_t last = 0;

	open_data(0);
	ck_assert_ptr_null(data_refuses(data, 0));
	data_begin(data);
	data_commit(data);
	data_leave(data);
	ck_assert_int_eq(data_settle(data), WW_OK);
	ck_assert_int_eq(data_save(data, 1), WW_ENOTFOUND);
	ck_assert_int_eq(data_saving(data, &last), 0);
	data_keep_info(data, NULL);
	data_set_keep(data, &keep);
	ck_assert_str_eq(data_refuses(data, 0), "MISCONF");
	ck_assert_ptr_null(data_refuses(data, 1));
	data_begin(data);
	data_commit(data);
	data_leave(data);
	ck_assert_int_eq(data_settle(data), WW_EIO);
	ck_assert_int_eq(data_save(data, 1), WW_EBUSY);
	ck_assert_int_eq(data_save(data, 0), WW_EBUSY);
	ck_assert_int_eq(data_saving(data, &last), 1);
	ck_assert_int_eq(last, 7);
	data_keep_info(data, NULL);
	ck_assert_str_eq(asked, "bclwsi");
	data_close(data);
}
END_TEST

TEST_MAIN("weekwheel-sessiond/data", times_go_to_each_clock_and_back, times_out_of_range_are_the_first_or_the_last,
    the_servers_lifetime_ends_after_now, real_time_is_not_advanced, a_database_has_a_map_once_it_is_selected,
    an_end_is_told_once_with_its_deadline, the_journal_is_asked_if_there_is_one)
