/* Times as people write them. */
/* tier: quick */

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "tests/support/suite.h"
#include "tools/common/duration.h"

static const uint64_t second = DURATION_SECOND;

static void zone(const char *name)
{
	setenv("TZ", name, 1);
	tzset();
}

START_TEST(durations_are_read_exactly)
{
	static const struct {
		const char *text;
		uint64_t ns;
	} good[] = {{"0", 0}, {"90", 90 * DURATION_SECOND}, {"90s", 90 * DURATION_SECOND},
	    {"1.5h", 5400 * DURATION_SECOND}, {"3d12h", 302400 * DURATION_SECOND}, {"2w", 1209600 * DURATION_SECOND},
	    {"1w1d1h1m1s1ms", 694861001000000}, {"250ms", 250000000}, {"0.25", 250000000}, {"1m", 60 * DURATION_SECOND},
	    {".5s", 500000000}, {"0.000000001", 1}, {"0.0000000001", 1}, {"0.000001ms", 1},
	    {"10min", 600 * DURATION_SECOND}, {"1 h", 3600 * DURATION_SECOND},
	    {"3 d 12 hours", 302400 * DURATION_SECOND}, {"1 week 2days", 777600 * DURATION_SECOND},
	    {"90 seconds ", 90 * DURATION_SECOND}, {"7 ns", 7}, {"1.0000001w", 604800060480000},
	    {"4294967295", DURATION_MAX}, {"49710.25d", 4294965600 * DURATION_SECOND}};
	struct duration_problem problem;
	uint64_t ns;

	for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
		ck_assert_msg(duration_parse(good[i].text, &ns, &problem) == 0, "%s", good[i].text);
		ck_assert_msg(ns == good[i].ns, "%s is %llu", good[i].text, (unsigned long long)ns);
	}
}
END_TEST

START_TEST(nonsense_is_refused_with_its_place)
{
	static const struct {
		const char *text;
		size_t at;
		const char *expected;
	} bad[] = {{"", 0, "a number"}, {"h", 0, "a number"}, {"-1", 0, "a number"}, {"+1s", 0, "a number"},
	    {" 1s", 0, "a number"}, {"1 2h", 2, "a unit"}, {"1 mo", 2, "a unit"}, {"1h30", 4, "a unit"},
	    {"1y", 1, "a unit"}, {"1mins", 1, "a unit"}, {"1H", 1, "a unit"}, {"3d12x", 4, "a unit"},
	    {"1.2.3s", 0, "a number"}, {"1h.", 2, "a number"}, {"1h1h", 3, "a smaller unit"},
	    {"1s1m", 3, "a smaller unit"}, {"1hh", 1, "a unit"}, {"1e3", 1, "a unit"},
	    {"4294967296", 0, "at most 136 years"}, {"7102w", 0, "at most 136 years"},
	    {"99999999999999999999999s", 0, "at most 136 years"}, {"4294967295s1ms", 11, "at most 136 years"},
	    {"9223372036854775807w", 0, "at most 136 years"}};
	struct duration_problem problem;
	uint64_t ns = 77;

	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		ck_assert_msg(duration_parse(bad[i].text, &ns, &problem) == -1, "%s", bad[i].text);
		ck_assert_msg(problem.at == bad[i].at, "'%s' at %zu", bad[i].text, problem.at);
		ck_assert_msg(strncmp(problem.expected, bad[i].expected, strlen(bad[i].expected)) == 0, "'%s': %s",
		    bad[i].text, problem.expected);
	}
	ck_assert_uint_eq(ns, 77);
}
END_TEST

START_TEST(times_are_local_or_have_an_offset)
{
	static const struct {
		const char *text;
		uint64_t seconds;
	} good[] = {{"2026-12-01", 1796079600}, {"2026-12-01 09:00", 1796112000}, {"2026-12-01T09:00", 1796112000},
	    {"2026-12-01 09:00:30", 1796112030}, {"2026-12-01T09:00:00Z", 1796115600},
	    {"2026-12-01t09:00:00z", 1796115600}, {"2026-12-01T09:00:00+02:00", 1796108400},
	    {"2026-12-01 09:00 -0330", 1796128200}, {"2026-12-01 09:00+14", 1796065200},
	    {"2026-07-01 12:00", 1782900000}, {"@1796115600", 1796115600}, {"1970-01-01T00:00Z", 0},
	    {"2000-02-29T00:00Z", 951782400}, {"2115-12-31T23:59:59Z", 4607279999}};
	struct duration_problem problem;
	uint64_t ns;

	zone("Europe/Berlin");
	for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
		ck_assert_msg(time_parse(good[i].text, &ns, &problem) == 0, "%s", good[i].text);
		ck_assert_msg(ns == good[i].seconds * second, "%s is %llu", good[i].text, (unsigned long long)ns);
	}
	ck_assert_int_eq(time_parse("2026-12-01T09:00:30.25Z", &ns, &problem), 0);
	ck_assert_uint_eq(ns, 1796115630 * second + 250000000);
	ck_assert_int_eq(time_parse("@1.5", &ns, &problem), 0);
	ck_assert_uint_eq(ns, 1500000000);
}
END_TEST

START_TEST(what_clocks_skip_is_refused_and_what_they_repeat_is_the_earlier)
{
	struct duration_problem problem;
	uint64_t ns;

	zone("Europe/Berlin");
	ck_assert_int_eq(time_parse("2026-03-29 02:30", &ns, &problem), -1);
	ck_assert_ptr_nonnull(strstr(problem.expected, "skipped"));
	ck_assert_int_eq(time_parse("2026-03-29 03:00", &ns, &problem), 0);
	ck_assert_uint_eq(ns, 1774746000 * second);
	ck_assert_int_eq(time_parse("2026-10-25 02:30", &ns, &problem), 0);
	ck_assert_uint_eq(ns, 1792888200 * second);
	zone("UTC");
	ck_assert_int_eq(time_parse("2026-03-29 02:30", &ns, &problem), 0);
	ck_assert_uint_eq(ns, 1774751400 * second);
}
END_TEST

START_TEST(what_is_no_time_is_refused_with_its_place)
{
	static const struct {
		const char *text;
		size_t at;
	} bad[] = {{"", 0}, {"tomorrow", 0}, {"2026", 4}, {"2026-13-01", 5}, {"2026-00-01", 5}, {"2026-02-29", 8},
	    {"2026-1-1", 5}, {"2026-12-01 ", 11}, {"2026-12-01 24:00", 11}, {"2026-12-01 09", 13},
	    {"2026-12-01 09:60", 14}, {"2026-12-01 09:00:60", 17}, {"2026-12-01 09:00x", 16}, {"2026-12-01 09:00 ", 16},
	    {"2026-12-01 09:00:00.", 20}, {"2026-12-01 09:00:00.0123456789", 29}, {"2026-12-01 09:00+2", 17},
	    {"2026-12-01 09:00Zulu", 17}, {"2026-12-01 09:00+02:0", 20}, {"2026-12-01 09:00+15:00", 17},
	    {"1969-12-31", 0}, {"2116-01-01", 0}, {"9999-01-01", 0}, {"@", 1}, {"@-1", 1}, {"@x", 1},
	    {"@99999999999", 1}, {"1970-01-01T00:00+02:00", 22}};
	struct duration_problem problem;
	uint64_t ns = 77;

	zone("UTC");
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		ck_assert_msg(time_parse(bad[i].text, &ns, &problem) == -1, "%s", bad[i].text);
		ck_assert_msg(problem.at == bad[i].at, "'%s' at %zu", bad[i].text, problem.at);
	}
	ck_assert_uint_eq(ns, 77);
}
END_TEST

START_TEST(a_span_can_begin_at_a_time_or_so_long_from_now)
{
	struct duration_problem problem;
	uint64_t ns;

	zone("UTC");
	ck_assert_int_eq(time_parse_from("1d", 1000 * second, &ns, &problem), 0);
	ck_assert_uint_eq(ns, 87400 * second);
	ck_assert_int_eq(time_parse_from("1970-01-02", 1000 * second, &ns, &problem), 0);
	ck_assert_uint_eq(ns, 86400 * second);
	ck_assert_int_eq(time_parse_from("@5", 1000 * second, &ns, &problem), 0);
	ck_assert_uint_eq(ns, 5 * second);
	ck_assert_int_eq(time_parse_from("1x", 1000 * second, &ns, &problem), -1);
}
END_TEST

START_TEST(lengths_and_times_are_written_for_readers)
{
	char text[DURATION_TEXT];

	zone("Europe/Berlin");
	ck_assert_str_eq(duration_format(text, 302400 * second), "3 d 12 h");
	ck_assert_str_eq(duration_format(text, 60 * second), "1 min");
	ck_assert_str_eq(duration_format(text, 1500000000), "1.5 s");
	ck_assert_str_eq(duration_format(text, 59999999999), "60 s");
	ck_assert_str_eq(duration_format(text, 20000000), "20 ms");
	ck_assert_str_eq(duration_format(text, 1), "1 ns");
	ck_assert_str_eq(duration_format(text, 0), "0 s");
	ck_assert_str_eq(duration_seconds(text, 250000000), "0.25");
	ck_assert_str_eq(duration_seconds(text, 3 * second), "3");
	ck_assert_str_eq(time_format(text, 1796115600 * second), "2026-12-01 10:00:00");
}
END_TEST

START_TEST(what_is_written_for_readers_is_read)
{
	struct duration_problem problem;
	char text[DURATION_TEXT], again[DURATION_TEXT];
	uint64_t ns;

	for (uint64_t length = 1; length < DURATION_MAX / 3; length = length * 3 + length / 7) {
		ck_assert_msg(duration_parse(duration_format(text, length), &ns, &problem) == 0, "%s", text);
		ck_assert_str_eq(duration_format(again, ns), text);
	}
}
END_TEST

TEST_MAIN("common/duration", durations_are_read_exactly, nonsense_is_refused_with_its_place,
    times_are_local_or_have_an_offset, what_clocks_skip_is_refused_and_what_they_repeat_is_the_earlier,
    what_is_no_time_is_refused_with_its_place, a_span_can_begin_at_a_time_or_so_long_from_now,
    lengths_and_times_are_written_for_readers, what_is_written_for_readers_is_read)
