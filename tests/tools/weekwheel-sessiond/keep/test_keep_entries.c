/* What a start makes of the entries on disk: which sessions are back until when, and what is told. */
/* tier: quick */
#include <stdlib.h>
#include <string.h>

#include "tests/support/suite.h"
#include "tools/weekwheel-sessiond/keep/load.h"

/* Deadlines of these tests are s from now on, of the wall clock; before it they are negative. */
#define NEVER INT64_MAX
/* The time of a record; in an image there is none. */
#define IMAGE INT64_MIN

static struct keep keep;
static struct load load;
static int64_t now; /* ms */

static void begin(int tells, uint64_t lifetime, int has_lifetimes)
{
	const struct data_config config = {
	    .databases = 2, .is_virtual = 1, .lifetime = lifetime * WW_SECOND, .has_lifetimes = has_lifetimes};

	keep = (struct keep){.path = "the test", .config = {.reports = tells, .outbox = outbox_open(1 << 20)}};
	ck_assert_int_eq(data_open(&keep.data, &config), WW_OK);
	now = data_wall_ms(keep.data);
	load =
	    (struct load){.keep = &keep, .now = (uint64_t)now, .has_clock = 1, .clock = {.steady = now, .wall = now}};
}

static void end(void)
{
	keep_entries_free(&load);
	data_close(keep.data);
	outbox_close(keep.config.outbox);
}

static uint64_t wall(int64_t seconds)
{
	return seconds == NEVER ? DATA_NEVER : (uint64_t)(now + seconds * 1000);
}

/* Read an entry, in a record of that time. */
static int read_entry(int64_t time, const struct keep_entry *entry)
{
	struct buffer bytes = {0};
	int error;

	load.time = time == IMAGE ? 0 : wall(time);
	ck_assert_int_eq(keep_format_add(&bytes, entry), 0);
	error = keep_entries_load(&load, (unsigned char *)bytes.data, bytes.size);
	buffer_free(&bytes);
	return error;
}

static void read_set(int64_t time, const char *key, uint64_t ttl, int64_t deadline, int64_t over, int is_new)
{
	struct keep_entry entry = {.kind = KEEP_SET,
	    .key = key,
	    .length = strlen(key),
	    .value = "value",
	    .size = 5,
	    .ttl = deadline == NEVER ? DATA_NEVER : ttl * WW_SECOND,
	    .deadline = wall(deadline),
	    .end = wall(over),
	    .is_new = is_new};

	ck_assert_int_eq(read_entry(time, &entry), WW_OK);
}

static void read_other(int64_t time, enum keep_kind kind, const char *key, uint64_t ttl, int64_t deadline)
{
	struct keep_entry entry = {.kind = kind,
	    .key = key,
	    .length = strlen(key),
	    .value = "",
	    .ttl = ttl,
	    .deadline = wall(deadline),
	    .expiry = (uint64_t)WW_GONE_EXPIRED << 48};

	ck_assert_int_eq(read_entry(time, &entry), WW_OK);
}

/* From here on a server tells what expires, or not. */
static void read_told(int64_t time, uint64_t id)
{
	read_other(time, KEEP_DELIVERED, "", id, 0);
}

static void judge(void)
{
	ck_assert_int_eq(keep_entries_judge(&load), WW_OK);
}

/* It is there until then, in ms from now on; NEVER: for ever. */
static void expect_back(const char *name, int64_t ms)
{
	const struct data_key key = {0, name, strlen(name)};
	struct data_entry entry;

	ck_assert_int_eq(data_inspect(keep.data, &key, &entry, NULL, NULL), 1);
	if (ms == NEVER)
		ck_assert_uint_eq(entry.deadline, DATA_NEVER);
	else
		ck_assert_int_eq(data_to_wall_ms(keep.data, entry.deadline) - now, ms);
}

static void expect(uint64_t sessions, uint64_t expired, uint64_t told)
{
	struct outbox_stats stats;

	outbox_stats(keep.config.outbox, &stats);
	ck_assert_uint_eq(data_count(keep.data, 0), sessions);
	ck_assert_uint_eq(load.expired, expired);
	ck_assert_uint_eq(stats.waiting, told);
}

/* The item that is told next: its deadline, in ms from now on. */
static int64_t told_next(void)
{
	struct outbox_item item;

	ck_assert_int_eq(outbox_take(keep.config.outbox, &item), 1);
	ck_assert_int_eq(item.why, WW_GONE_EXPIRED);
	return item.deadline_ms - now;
}

/* ---- One session */

/* A sixteenth of the TTL is added, but never beyond the end of the lifetime. */
START_TEST(a_session_is_judged_by_its_deadline_and_a_sixteenth)
{
	static const struct {
		int64_t deadline;
		int64_t over;
		int64_t back; /* ms; 0: it has expired */
	} cases[] = {{100, NEVER, 110000}, {NEVER, NEVER, NEVER}, {-9, NEVER, 1000}, {-10, NEVER, 0}, {-11, NEVER, 0},
	    {100, 105, 105000}, {100, 50, 50000}, {-9, 0, 0}, {-9, -1, 0}, {-100000000, NEVER, 0}, {NEVER, 50, NEVER}};

	for (int tells = 0; tells < 2; tells++)
		for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
			int is_back = cases[i].back != 0;
			begin(tells, 0, 1);
			read_told(IMAGE, 1);
			read_set(-1000, "a", 160, cases[i].deadline, cases[i].over, 0);
			judge();
			expect((uint64_t)is_back, (uint64_t)!is_back, (uint64_t)(!is_back && tells));
			/* Only an end: the session has no TTL, and its end is none of its deadline's. */
			if (is_back && cases[i].deadline != NEVER)
				expect_back("a", cases[i].back);
			end();
		}
}
END_TEST

START_TEST(what_a_later_entry_says_counts_though_it_had_expired)
{
	begin(1, 0, 1);
	read_told(IMAGE, 1);
	for (const char *key = "abcd"; *key; key++)
		read_set(IMAGE, (char[]){*key, 0}, 160, -100, NEVER, 0);
	read_other(-200, KEEP_TOUCH, "a", 160 * WW_SECOND, 50);
	read_other(-200, KEEP_ERASE, "b", 0, 0);
	read_set(-200, "c", 160, 70, NEVER, 0);
	/* What is not there is neither touched nor deleted. */
	read_other(-200, KEEP_TOUCH, "none", 160 * WW_SECOND, 50);
	read_other(-200, KEEP_ERASE, "none", 0, 0);
	judge();
	expect(2, 1, 1);
	expect_back("a", 60000);
	expect_back("c", 80000);
	ck_assert_int_eq(told_next(), -90000);
	end();
}
END_TEST

/* Its moment is not before the machine's start, nor after now. */
START_TEST(what_is_told_has_the_deadline_of_the_session)
{
	begin(1, 0, 1);
	read_told(IMAGE, 1);
	read_set(-1000000000, "long ago", 160, -900000000, NEVER, 0);
	judge();
	ck_assert_int_eq(told_next(), -899999990000);
	end();
}
END_TEST

START_TEST(a_clear_takes_its_database_and_no_other)
{
	begin(0, 0, 1);
	read_set(-9, "a", 160, 100, NEVER, 0);
	ck_assert_int_eq(
	    read_entry(-9, &(struct keep_entry){.kind = KEEP_CLEAR, .database = 1, .key = "", .value = ""}), WW_OK);
	read_set(-9, "b", 160, 100, NEVER, 0);
	judge();
	expect(2, 0, 0);
	end();
	begin(0, 0, 1);
	read_set(-9, "a", 160, 100, NEVER, 0);
	read_other(-9, KEEP_CLEAR, "", 0, 0);
	read_set(-9, "b", 160, 100, NEVER, 0);
	judge();
	expect(1, 0, 0);
	expect_back("b", 110000);
	end();
}
END_TEST

START_TEST(a_database_beyond_the_last_is_refused)
{
	begin(0, 0, 1);
	ck_assert_int_eq(
	    read_entry(-9, &(struct keep_entry){.kind = KEEP_ERASE, .database = 2, .key = "", .value = ""}), WW_ERANGE);
	ck_assert_int_eq(load.is_reported, 1);
	end();
}
END_TEST

START_TEST(an_entry_that_is_cut_off_is_damage_and_those_before_count)
{
	struct buffer bytes = {0};
	struct keep_entry entry = {.kind = KEEP_SET,
	    .key = "a",
	    .length = 1,
	    .value = "v",
	    .size = 1,
	    .ttl = DATA_NEVER,
	    .deadline = DATA_NEVER,
	    .end = DATA_NEVER};

	begin(0, 0, 1);
	ck_assert_int_eq(keep_format_add(&bytes, &entry), 0);
	ck_assert_int_eq(keep_format_add(&bytes, &entry), 0);
	ck_assert_int_eq(keep_entries_load(&load, (unsigned char *)bytes.data, bytes.size - 1), WW_ECORRUPT);
	buffer_free(&bytes);
	judge();
	expect_back("a", NEVER);
	end();
}
END_TEST

/* ---- An exact image */

START_TEST(an_exact_image_adds_nothing_and_keeps_the_deadline_on_disk)
{
	begin(1, 0, 1);
	load.is_exact = 1;
	for (const char *key = "ab"; *key; key++) {
		struct keep_entry entry = {.kind = KEEP_LAST,
		    .key = (char[]){*key, 0},
		    .length = 1,
		    .value = "value",
		    .size = 5,
		    .ttl = 160 * WW_SECOND,
		    .deadline = wall(-5),
		    .end = DATA_NEVER,
		    .expiry = wall(*key == 'a' ? 100 : -3)};
		ck_assert_int_eq(read_entry(IMAGE, &entry), WW_OK);
	}
	read_told(IMAGE, 1);
	judge();
	expect(1, 1, 1);
	expect_back("a", 100000);
	struct data_entry entry;
	ck_assert_int_eq(data_inspect(keep.data, &(struct data_key){0, "a", 1}, &entry, NULL, NULL), 1);
	ck_assert_uint_eq(keep_ms_of(&keep, entry.disk), wall(-5));
	ck_assert_int_eq(told_next(), -3000);
	end();
}
END_TEST

/* ---- Who was reporting */

/* What had expired when a server started that tells nobody, or after one that told nobody, is told no more. */
START_TEST(what_expired_without_being_told_is_told_no_more)
{
	static const struct {
		uint64_t before; /* whether the servers tell: the one that wrote the image, and the next */
		uint64_t then;
		uint64_t told;
	} cases[] = {{1, 1, 3}, {0, 1, 2}, {1, 0, 1}, {0, 0, 1}};

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		begin(1, 0, 1);
		read_told(IMAGE, cases[i].before);
		read_set(IMAGE, "early", 16, -100, NEVER, 0);
		read_set(IMAGE, "late", 16, -30, NEVER, 0);
		/* When nobody wrote any more. */
		read_set(IMAGE, "down", 16, -10, NEVER, 0);
		read_told(-50, cases[i].then);
		read_other(-20, KEEP_ERASE, "none", 0, 0);
		judge();
		expect(0, 3, cases[i].told);
		end();
	}
}
END_TEST

/* In 0.1.0. A clock that was ahead when a server started has ended nothing that lives by now's. */
START_TEST(a_record_from_the_future_ends_no_session)
{
	begin(1, 0, 1);
	load.has_clock = 0;
	keep.config.downtime_max = 60000;
	read_told(IMAGE, 0);
	read_set(IMAGE, "a", 160, 100, NEVER, 0);
	read_told(100000, 0);
	read_set(100000, "b", 160, 100, NEVER, 0);
	judge();
	expect(2, 0, 0);
	end();
}
END_TEST

/* Then a session has what it had when it was used last, one millisecond more at most. */
START_TEST(a_wall_clock_that_was_years_off_is_noticed)
{
	static const struct {
		int64_t deadline;
		int64_t back;
	} cases[] = {{155, 165000}, {110, 120000}, {300000000, 170001}, {-300000000, 170001}};

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		begin(0, 0, 0);
		load.has_clock = 0;
		keep.config.downtime_max = 60000;
		read_set(IMAGE, "a", 160, cases[i].deadline, NEVER, 0);
		judge();
		expect_back("a", cases[i].back);
		end();
	}
}
END_TEST

/* ---- What waits */

static void read_wait(enum ww_gone why, int64_t ms)
{
	struct keep_entry entry = {.kind = KEEP_WAIT,
	    .key = "a",
	    .length = 1,
	    .value = "",
	    .ttl = 7,
	    .deadline = (uint64_t)(now + ms),
	    .expiry = (uint64_t)why << 48};

	ck_assert_int_eq(read_entry(-5, &entry), WW_OK);
}

START_TEST(what_waits_is_no_session_unless_it_was_set_again)
{
	static const struct {
		enum ww_gone why;
		int64_t waits; /* ms: its deadline, where that on disk is -10 s, or the end of the lifetime */
		uint64_t back;
		int64_t deadline;
		int64_t over;
	} cases[] = {{WW_GONE_EXPIRED, -10000, 0, -10, NEVER}, {WW_GONE_EXPIRED, -9000, 0, -10, NEVER},
	    {WW_GONE_EXPIRED, -10001, 0, -10, NEVER}, {WW_GONE_EXPIRED, -10002, 1, -10, NEVER},
	    {WW_GONE_EVICTED, -10000, 1, -10, NEVER}, {WW_GONE_EXPIRED, -10000, 0, 1000, -10},
	    {WW_GONE_EXPIRED, -10002, 1, 1000, 5}};

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		begin(1, 0, 1);
		read_told(IMAGE, 1);
		read_set(-500, "a", 1600, cases[i].deadline, cases[i].over, 0);
		read_wait(cases[i].why, cases[i].waits);
		judge();
		expect(cases[i].back, 0, 1);
		end();
	}
}
END_TEST

/* ---- Clocks */

/* A virtual clock is that of another boot: the wall clock says how long nobody served. In ms. */
START_TEST(steady_time_goes_on_after_a_boot)
{
	static const struct {
		int64_t steady; /* before the wall clock of now: then, */
		int64_t wall;   /* and what that showed then */
		int64_t last;   /* a record that came later; 0: none */
		int64_t goes_on;
	} cases[] = {{5000, 5000, 0, 0}, {5000, 3000, 0, 2000}, {5000, 5000, 1000, 0}, {50000, 5000, 49000, 45000},
	    /* Less than nothing, or more than can be. */
	    {5000, -1000, 0, 5000}, {5000, 11000, 0, 5000}, {50000, 11000, 49500, 39000}, {50000, 11000, 48000, 39000},
	    {90000, 80000, 0, 90000}};

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		begin(0, 0, 0);
		keep.config.downtime_max = 10500;
		ck_assert_int_eq(read_entry(IMAGE, &(struct keep_entry){.kind = KEEP_CLOCK,
		                                       .key = "",
		                                       .value = "",
		                                       .ttl = 1,
		                                       .deadline = (uint64_t)(now - cases[i].steady),
		                                       .end = (uint64_t)(now - cases[i].wall),
		                                       .expiry = 77}),
		    WW_OK);
		load.time = cases[i].last ? (uint64_t)(now - cases[i].last) : 0;
		judge();
		ck_assert_msg(data_steady_ms(keep.data) == now - cases[i].goes_on, "case %zu: %lld", i,
		    (long long)(now - data_steady_ms(keep.data)));
		ck_assert_int_eq(data_wall_ms(keep.data), now);
		end();
	}
}
END_TEST

START_TEST(a_clock_that_no_clock_shows_is_damage)
{
	struct keep_entry entry = {.kind = KEEP_CLOCK, .key = "", .value = "", .deadline = UINT64_MAX};

	begin(0, 0, 0);
	ck_assert_int_eq(read_entry(IMAGE, &entry), WW_ECORRUPT);
	entry.deadline = 0;
	entry.expiry = UINT64_MAX / 2;
	ck_assert_int_eq(read_entry(IMAGE, &entry), WW_ECORRUPT);
	end();
}
END_TEST

START_TEST(an_item_whose_value_is_longer_than_its_entry_is_damage)
{
	struct keep_entry entry = {.kind = KEEP_WAIT,
	    .key = "a",
	    .length = 1,
	    .value = "v",
	    .size = 1,
	    .ttl = 7,
	    .deadline = wall(-5),
	    .expiry = (uint64_t)WW_GONE_EXPIRED << 48 | 1000000};

	begin(1, 0, 1);
	ck_assert_int_eq(read_entry(-5, &entry), WW_ECORRUPT);
	entry.expiry = (uint64_t)WW_GONE_EXPIRED << 48 | 1;
	ck_assert_int_eq(read_entry(-5, &entry), WW_OK);
	/* It was left out. */
	entry.ttl++;
	entry.size = 0;
	entry.expiry = (uint64_t)WW_GONE_EXPIRED << 48 | UINT64_C(1) << 32 | 1000000;
	ck_assert_int_eq(read_entry(-5, &entry), WW_OK);
	judge();
	expect(0, 0, 2);
	end();
}
END_TEST

/* A set finds nothing where the table has a session: that had expired, and is told unless the journal says it waits. */
START_TEST(a_set_of_a_new_key_tells_what_it_found)
{
	/* The session that is there has its deadline on disk at -50 s, and the record of the set is of -40 s. */
	static const struct {
		int is_new;
		uint64_t was_reporting;
		int64_t since; /* s: when the set was made */
		int64_t waits; /* ms; 0: nothing */
		uint64_t told;
	} cases[] = {{1, 1, -40, 0, 1}, {0, 1, -40, 0, 0}, {1, 0, -40, 0, 0},
	    /* The image has what was set, or a later one. */
	    {1, 1, -49, 0, 1}, {1, 1, -50, 0, 0}, {1, 1, -60, 0, 0},
	    /* It waits, and is told once. */
	    {1, 1, -40, -50000, 1}, {1, 1, -40, -50001, 1}, {1, 1, -40, -40000, 1}, {0, 1, -40, -50000, 1},
	    /* That is another one. */
	    {1, 1, -40, -50002, 2}, {1, 1, -40, -39999, 2}};

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		begin(1, 0, 1);
		read_told(IMAGE, cases[i].was_reporting);
		read_set(IMAGE, "a", 16, -50, NEVER, 0);
		read_set(-40, "a", 1600, cases[i].since + 1600, NEVER, cases[i].is_new);
		if (cases[i].waits)
			read_wait(WW_GONE_EXPIRED, cases[i].waits);
		judge();
		expect(1, 0, cases[i].told);
		end();
	}
}
END_TEST

/* Otherwise the next start would not take it for what this one has told. */
START_TEST(what_a_set_found_is_told_as_no_later_than_its_record)
{
	begin(1, 0, 1);
	read_told(IMAGE, 1);
	read_set(IMAGE, "a", 1600, -50, NEVER, 0);
	read_set(-40, "a", 1600, 1560, NEVER, 1);
	ck_assert_int_eq(told_next(), -40000);
	end();
}
END_TEST

/* It has a lifetime that began at a start, so its deadline on disk is no part of that. */
START_TEST(a_set_finds_a_session_whose_lifetime_was_over)
{
	begin(1, 0, 1);
	read_told(IMAGE, 1);
	read_set(IMAGE, "a", 100000, 50000, -50, 0);
	read_set(-40, "a", 1600, 1560, NEVER, 1);
	judge();
	expect(1, 0, 1);
	ck_assert_int_eq(told_next(), -50000);
	end();
}
END_TEST

START_TEST(a_part_of_a_millisecond_is_added_as_a_whole_one)
{
	struct keep_entry entry = {.kind = KEEP_SET,
	    .key = "a",
	    .length = 1,
	    .value = "v",
	    .size = 1,
	    .ttl = 17,
	    .deadline = 0,
	    .end = DATA_NEVER};

	begin(0, 0, 1);
	entry.deadline = wall(100);
	ck_assert_int_eq(read_entry(IMAGE, &entry), WW_OK);
	judge();
	expect_back("a", 100001);
	end();
}
END_TEST

/* ---- Lifetimes */

START_TEST(lifetimes_begin_or_are_lost_with_the_setting)
{
	/* This server's lifetime, whether it has any, and the session's end: what it is told, and until when it can live. */
	static const struct {
		uint64_t lifetime;
		int has;
		int64_t deadline;
		int64_t over;
		int begins;
		int loses;
		int64_t back;
	} cases[] = {{50, 1, 100, NEVER, 1, 0, 50000}, {500, 1, 100, NEVER, 1, 0, 110000},
	    {50, 1, NEVER, NEVER, 0, 0, NEVER}, {50, 1, 100, 70, 0, 0, 70000}, {0, 0, 100, 70, 0, 1, 70000},
	    {0, 0, 100, NEVER, 0, 0, 110000}, {0, 1, 100, 70, 0, 0, 70000}};

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		begin(0, cases[i].lifetime, cases[i].has);
		read_set(-60, "a", 160, cases[i].deadline, cases[i].over, 0);
		judge();
		ck_assert_int_eq(load.begins_lifetimes, cases[i].begins);
		ck_assert_int_eq(load.loses_ends, cases[i].loses);
		expect_back("a", cases[i].back);
		end();
	}
}
END_TEST

TEST_MAIN("weekwheel-sessiond/keep_entries", a_session_is_judged_by_its_deadline_and_a_sixteenth,
    what_a_later_entry_says_counts_though_it_had_expired, what_is_told_has_the_deadline_of_the_session,
    a_clear_takes_its_database_and_no_other, a_database_beyond_the_last_is_refused,
    an_entry_that_is_cut_off_is_damage_and_those_before_count,
    an_exact_image_adds_nothing_and_keeps_the_deadline_on_disk, what_expired_without_being_told_is_told_no_more,
    a_record_from_the_future_ends_no_session, a_wall_clock_that_was_years_off_is_noticed,
    what_waits_is_no_session_unless_it_was_set_again, steady_time_goes_on_after_a_boot,
    a_clock_that_no_clock_shows_is_damage, an_item_whose_value_is_longer_than_its_entry_is_damage,
    a_set_of_a_new_key_tells_what_it_found, what_a_set_found_is_told_as_no_later_than_its_record,
    a_set_finds_a_session_whose_lifetime_was_over, a_part_of_a_millisecond_is_added_as_a_whole_one,
    lifetimes_begin_or_are_lost_with_the_setting)
