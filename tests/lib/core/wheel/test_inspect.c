/* Looking inside a wheel: statistics, the check of its invariants, and the drawing. */
/* tier: quick, every-build */

#include "tests/lib/core/wheel/fixture.h"

/* ---- Statistics ------------------------------------------------------------------------------------------------- */

START_TEST(each_level_counts_its_timers_its_slots_and_its_fullest_one)
{
	static const uint64_t delays[] = {5, 5, 5, 7, /* seconds */
	    300, 301, 302, 303, 304, 600,             /* minutes */
	    10800, 10801, 18000,                      /* hours */
	    172800, 172801, 432000, 432001, 432002,   /* days */
	    WEEK + 1, 2 * WEEK, 400 * DAY,            /* outside */
	    0, 0};                                    /* due */
	static const struct {
		uint64_t pending;
		uint64_t largest;
		uint32_t occupied;
	} expected[] = {{4, 3, 2}, {6, 5, 2}, {3, 2, 2}, {5, 3, 2}};
	static struct ww_timer timers[sizeof delays / sizeof delays[0]];
	struct ww_wheel *wheel = make(NULL);
	struct ww_stats stats;

	for (size_t i = 0; i < sizeof delays / sizeof delays[0]; i++) {
		OK(ww_timer_init(&timers[i], note));
		OK(ww_wheel_schedule(wheel, &timers[i], delays[i]));
	}
	stats = stats_of(wheel);
	for (size_t i = 0; i < 4; i++) {
		ck_assert_uint_eq(stats.level[i].pending, expected[i].pending);
		ck_assert_uint_eq(stats.level[i].largest, expected[i].largest);
		ck_assert_uint_eq(stats.level[i].occupied, expected[i].occupied);
	}
	ck_assert_uint_eq(stats.outside, 3);
	ck_assert_uint_eq(stats.due, 2);
	ck_assert_uint_eq(stats.pending, 23);
	ck_assert_uint_eq(stats.now, 0);
	unmake(wheel);
}
END_TEST

START_TEST(the_counters_add_up)
{
	static struct ww_timer timers[60];
	struct ww_wheel *wheel = make(NULL);
	struct ww_expiry batch[7];
	struct ww_stats stats;
	size_t count = 0;

	for (size_t i = 0; i < 60; i++) {
		OK(ww_timer_init(&timers[i], note));
		if (i < 10) {
			OK(ww_wheel_schedule_every(wheel, &timers[i], 50, 50));
		} else {
			OK(ww_wheel_schedule(wheel, &timers[i], i * 10));
		}
	}
	for (size_t i = 50; i < 60; i++) {
		ck_assert_int_eq(ww_wheel_cancel(wheel, &timers[i]), 1);
		ck_assert_int_eq(ww_wheel_cancel(wheel, &timers[i]), 0);
	}
	ck_assert_int_eq(ww_wheel_reschedule(wheel, &timers[49], 491), 1);
	OK(ww_wheel_schedule(wheel, &timers[48], 481));
	ck_assert_uint_eq(go(wheel, 100), 11); /* ten periodic ones, once, and that of 100 */
	ck_assert_uint_eq(go(wheel, 200), 20); /* again ten, and those of 110 to 200 */
	ck_assert_int_eq(ww_wheel_drain(wheel, batch, 7, &count), 1);
	stats = stats_of(wheel);
	ck_assert_uint_eq(stats.scheduled, 60);
	ck_assert_uint_eq(stats.cancelled, 10);
	ck_assert_uint_eq(stats.drained, 7);
	ck_assert_uint_eq(stats.expired, 31);
	/* 11 expiries made a timer idle. The others were of periodic timers. */
	ck_assert_uint_eq(stats.pending, 60 - 10 - 7 - 11);
	unmake(wheel);
}
END_TEST

START_TEST(a_timer_moved_later_counts_in_its_old_slot_until_that_comes_round)
{
	struct ww_wheel *wheel = make(NULL);
	struct ww_timer timer = WW_TIMER_INIT(note);

	OK(ww_wheel_schedule(wheel, &timer, 5));
	ck_assert_int_eq(ww_wheel_reschedule(wheel, &timer, 7100), 1);
	ck_assert_uint_eq(level_of_only_timer(wheel), 0);
	go(wheel, 4);
	ck_assert_uint_eq(level_of_only_timer(wheel), 0);
	ck_assert_uint_eq(stats_of(wheel).demoted, 0);
	go(wheel, 5);
	ck_assert_uint_eq(level_of_only_timer(wheel), 2);
	ck_assert_uint_eq(stats_of(wheel).demoted, 1);
	unmake(wheel);
}
END_TEST

START_TEST(the_statistics_of_an_emptied_wheel_are_0)
{
	struct ww_wheel *wheel = make(NULL);
	static struct ww_timer timers[100];
	struct ww_stats stats;

	for (size_t i = 0; i < 100; i++) {
		OK(ww_timer_init(&timers[i], note));
		OK(ww_wheel_schedule(wheel, &timers[i], i * i * i));
	}
	ck_assert_uint_eq(go(wheel, 2000000), 100);
	stats = stats_of(wheel);
	ck_assert_uint_eq(stats.pending + stats.outside + stats.due, 0);
	for (uint32_t i = 0; i < stats.levels; i++) {
		ck_assert_uint_eq(stats.level[i].pending, 0);
		ck_assert_uint_eq(stats.level[i].largest, 0);
		ck_assert_uint_eq(stats.level[i].occupied, 0);
	}
	unmake(wheel);
}
END_TEST

/* ---- Check ------------------------------------------------------------------------------------------------------ */

static void assert_corrupt(const struct ww_wheel *wheel, const char *what)
{
	char text[512] = "";
	char little[8];

	ck_assert_msg(ww_wheel_check(wheel, text, sizeof text) == WW_ECORRUPT, "not found: %s", what);
	ck_assert_msg(strlen(text) >= 10, "no description of %s: \"%s\"", what, text);
	ck_assert_int_eq(ww_wheel_check(wheel, NULL, 0), WW_ECORRUPT);
	memset(little, 'x', sizeof little);
	ck_assert_int_eq(ww_wheel_check(wheel, little, 5), WW_ECORRUPT);
	ck_assert_mem_eq(little, text, 4);
	ck_assert_int_eq(little[4], '\0');
	ck_assert_int_eq(little[5], 'x');
}

START_TEST(check_describes_a_timer_overwritten_while_pending)
{
	static const uint64_t delays[] = {0, 5, 59, 100, 3000, 7100, 80000, 100000, 604799, 2 * WEEK};

	for (size_t d = 0; d < sizeof delays / sizeof delays[0]; d++) {
		for (size_t victim = 0; victim < 9; victim++) {
			struct ww_wheel *wheel = make_from(1000);
			struct ww_timer timers[9];
			struct ww_timer *nowhere = NULL;
			struct ww_timer good;

			for (size_t i = 0; i < 9; i++) {
				OK(ww_timer_init(&timers[i], note));
				OK(ww_wheel_schedule(wheel, &timers[i], delays[d]));
			}
			assert_sound(wheel);
			good = timers[victim];
			memset(&timers[victim], 0xA5, sizeof good);
			assert_corrupt(wheel, "an object of 0xA5");
			memset(&timers[victim], 0, sizeof good);
			assert_corrupt(wheel, "an object of zeros");
			OK(ww_timer_init(&timers[victim], note));
			assert_corrupt(wheel, "a timer initialised while pending");
			timers[victim] = good;
			timers[victim].ww_where ^= 1;
			assert_corrupt(wheel, "another place");
			timers[victim] = good;
			timers[victim].ww_where ^= UINT64_C(1) << 16;
			assert_corrupt(wheel, "a period of nothing");
			timers[victim].ww_period = WW_TIME_MAX + 1;
			assert_corrupt(wheel, "a period beyond the last time");
			timers[victim] = good;
			timers[victim].ww_where = UINT64_MAX;
			assert_corrupt(wheel, "no place");
			timers[victim] = good;
			timers[victim].ww_pprev = &nowhere;
			assert_corrupt(wheel, "a wrong link back");
			timers[victim] = good;
			timers[victim].ww_to_end = WW_TIME_MAX + 2;
			assert_corrupt(wheel, "a deadline beyond the last time");
			if (delays[d] > 0) {
				/* A deadline before the timer's slot comes round. */
				timers[victim] = good;
				timers[victim].ww_to_end = WW_TIME_MAX + 1 - 1000;
				assert_corrupt(wheel, "a deadline before its place");
			}
			timers[victim] = good;
			assert_sound(wheel);
			ck_assert_uint_eq(go(wheel, 1000 + delays[d]), 9);
			unmake(wheel);
		}
	}
}
END_TEST

START_TEST(check_finds_a_timer_that_another_wheel_took)
{
	struct ww_wheel *one = make(NULL);
	struct ww_wheel *two = make(NULL);
	struct ww_timer timer = WW_TIMER_INIT(note);
	struct ww_timer good;

	OK(ww_wheel_schedule(one, &timer, 50));
	good = timer;
	/* As if its object had been freed, allocated again and scheduled elsewhere. */
	OK(ww_timer_init(&timer, note));
	OK(ww_wheel_schedule(two, &timer, 50));
	assert_sound(two);
	assert_corrupt(one, "a timer of another wheel");
	ck_assert_int_eq(ww_wheel_cancel(two, &timer), 1);
	timer = good;
	unmake(one);
	unmake(two);
}
END_TEST

START_TEST(check_changes_nothing)
{
	struct placed placed = place(NULL);
	struct ww_timer timers[20];
	struct ww_timer copies[20];
	char text[64];

	for (size_t i = 0; i < 20; i++) {
		OK(ww_timer_init(&timers[i], note));
		OK(ww_wheel_schedule(placed.wheel, &timers[i], i * i * i * i * i));
	}
	freeze(&placed);
	memcpy(copies, timers, sizeof timers);
	OK(ww_wheel_check(placed.wheel, text, sizeof text));
	OK(ww_wheel_check(placed.wheel, NULL, 0));
	ck_assert_int_gt(ww_wheel_dump(placed.wheel, text, sizeof text), 0);
	(void)stats_of(placed.wheel);
	ck_assert(is_frozen(&placed));
	ck_assert_mem_eq(copies, timers, sizeof timers);
	unplace(&placed);
}
END_TEST

/* ---- Dump ------------------------------------------------------------------------------------------------------- */

static char *dumped(const struct ww_wheel *wheel)
{
	int length = ww_wheel_dump(wheel, NULL, 0);
	char *text;

	ck_assert_int_gt(length, 0);
	text = malloc((size_t)length + 1);
	ck_assert_ptr_nonnull(text);
	ck_assert_int_eq(ww_wheel_dump(wheel, text, (size_t)length + 1), length);
	ck_assert_uint_eq(strlen(text), (size_t)length);
	return text;
}

static size_t lines_of(const char *text)
{
	size_t lines = 0;

	for (; *text != '\0'; text++) {
		lines += *text == '\n';
	}
	return lines;
}

START_TEST(dump_returns_its_length_and_respects_the_size_like_snprintf)
{
	struct ww_wheel *wheel = make(NULL);
	struct ww_timer timer = WW_TIMER_INIT(note);
	char *whole;
	char *part;
	size_t length;

	OK(ww_wheel_schedule(wheel, &timer, 7100));
	whole = dumped(wheel);
	length = strlen(whole);
	part = malloc(length + 2);
	ck_assert_ptr_nonnull(part);
	for (size_t size = 0; size <= length + 1; size++) {
		memset(part, '#', length + 2);
		ck_assert_int_eq(ww_wheel_dump(wheel, part, size), (int)length);
		ck_assert_int_eq(part[size], '#');
		if (size > 0) {
			ck_assert_int_eq(part[size - 1], '\0');
			ck_assert_mem_eq(part, whole, size - 1);
		}
	}
	free(part);
	free(whole);
	unmake(wheel);
}
END_TEST

START_TEST(dump_shows_a_line_for_each_level_and_one_for_outside)
{
	static const uint32_t slots[] = {10, 20, 30, 40, 50, 64};
	struct ww_wheel *four = make(NULL);
	char *text = dumped(four);

	ck_assert_uint_ge(lines_of(text), 5);
	ck_assert_ptr_nonnull(strstr(text, "60"));
	ck_assert_ptr_nonnull(strstr(text, "24"));
	ck_assert_ptr_nonnull(strstr(text, "7"));
	ck_assert_ptr_nonnull(strstr(text, "outside"));
	unmake(four);
	for (uint32_t levels = 1; levels <= WW_LEVELS_MAX; levels++) {
		struct ww_wheel_config config = config_of(levels, slots);
		struct ww_wheel *wheel = make(&config);
		char *other = dumped(wheel);

		/* Each further level adds a line. */
		ck_assert_uint_eq(lines_of(other) + 4, lines_of(text) + levels);
		free(other);
		unmake(wheel);
	}
	free(text);
}
END_TEST

START_TEST(dump_shows_where_timers_are_and_where_the_hand_is)
{
	static const uint64_t delays[] = {5, 100, 7100, 200000, WEEK + 5};
	struct ww_wheel *wheel = make(NULL);
	char *empty = dumped(wheel);
	char *moved;

	for (size_t i = 0; i < 5; i++) {
		struct ww_timer timer = WW_TIMER_INIT(note);
		char *full;

		OK(ww_wheel_schedule(wheel, &timer, delays[i]));
		full = dumped(wheel);
		ck_assert_str_ne(full, empty);
		free(full);
		ck_assert_int_eq(ww_wheel_cancel(wheel, &timer), 1);
	}
	go(wheel, 30);
	moved = dumped(wheel);
	ck_assert_str_ne(moved, empty);
	free(moved);
	free(empty);
	unmake(wheel);
}
END_TEST

TEST_MAIN("wheel/inspect", each_level_counts_its_timers_its_slots_and_its_fullest_one, the_counters_add_up,
    a_timer_moved_later_counts_in_its_old_slot_until_that_comes_round, the_statistics_of_an_emptied_wheel_are_0,
    check_describes_a_timer_overwritten_while_pending, check_finds_a_timer_that_another_wheel_took,
    check_changes_nothing, dump_returns_its_length_and_respects_the_size_like_snprintf,
    dump_shows_a_line_for_each_level_and_one_for_outside, dump_shows_where_timers_are_and_where_the_hand_is)
