/* Calendars: what expressions mean, the rules of summer time, words, and refusals with their places. */
/* tier: quick */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "tests/support/suite.h"
#include "weekwheel/calendar.h"

#define SECOND UINT64_C(1000000000)

static struct ww_calendar_problem problem;

static struct ww_calendar *open_calendar(const char *expression, const char *zone)
{
	struct ww_calendar_spec spec = {.expression = expression, .zone = zone};
	struct ww_calendar *calendar = NULL;
	int error = ww_calendar_open(&calendar, &spec, &problem);

	ck_assert_msg(error == WW_OK, "'%s' is refused at %zu: %s", expression, problem.at, problem.reason);
	return calendar;
}

/* "2027-03-28T01:00:00Z" */
static uint64_t at(const char *text)
{
	struct tm tm = {0};

	ck_assert_ptr_nonnull(strptime(text, "%Y-%m-%dT%H:%M:%SZ", &tm));
	return (uint64_t)timegm(&tm) * SECOND;
}

static void expect_next(const struct ww_calendar *calendar, uint64_t after, const char *wanted)
{
	uint64_t got = 0;
	char text[40];
	time_t seconds;
	struct tm tm;

	OK(ww_calendar_next(calendar, after, &got));
	seconds = (time_t)(got / SECOND);
	(void)gmtime_r(&seconds, &tm);
	strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &tm);
	ck_assert_str_eq(text, wanted);
	ck_assert_uint_eq(got % SECOND, 0);
}

/* Expressions with times that follow each other. */
static const struct {
	const char *expression, *zone, *times[6];
} rows[] = {
    /* Skipped: once, right after the gap. */
    {"30 2 * * *", "Europe/Berlin", {"2027-03-27T01:30:00Z", "2027-03-28T01:00:00Z", "2027-03-29T00:30:00Z"}},
    {"*/15 2 * * *", "Europe/Berlin", {"2027-03-27T01:45:00Z", "2027-03-28T01:00:00Z", "2027-03-29T00:00:00Z"}},
    {"0 2,3 * * *", "Europe/Berlin", {"2027-03-27T02:00:00Z", "2027-03-28T01:00:00Z", "2027-03-29T00:00:00Z"}},
    /* Twice: the first. */
    {"30 2 * * *", "Europe/Berlin", {"2027-10-30T00:30:00Z", "2027-10-31T00:30:00Z", "2027-11-01T01:30:00Z"}},
    {"*/30 2 * * *", "Europe/Berlin", {"2027-10-31T00:00:00Z", "2027-10-31T00:30:00Z", "2027-11-01T01:00:00Z"}},
    /* By elapsed time. */
    {"30 * * * *", "Europe/Berlin", {"2027-03-28T00:30:00Z", "2027-03-28T01:30:00Z", "2027-03-28T02:30:00Z"}},
    {"30 * * * *", "Europe/Berlin", {"2027-10-30T23:30:00Z", "2027-10-31T00:30:00Z", "2027-10-31T01:30:00Z"}},
    {"0 */2 * * *", "Europe/Berlin",
        {"2027-10-30T22:00:00Z", "2027-10-31T00:00:00Z", "2027-10-31T01:00:00Z", "2027-10-31T03:00:00Z"}},
    /* It is still 1969 there. */
    {"0 14 * * wed", "Pacific/Apia", {"1970-01-01T01:00:00Z", "1970-01-08T01:00:00Z"}},
    /* Half an hour, and a whole day. */
    {"15 2 * * *", "Australia/Lord_Howe", {"2027-10-01T15:45:00Z", "2027-10-02T15:30:00Z", "2027-10-03T15:15:00Z"}},
    {"0 12 * * *", "Pacific/Apia", {"2011-12-29T22:00:00Z", "2011-12-30T10:00:00Z", "2011-12-30T22:00:00Z"}},
    /* Rules that GLib misreads after the listed years. */
    {"0 3 * * *", "Europe/Dublin", {"2060-03-27T03:00:00Z", "2060-03-28T02:00:00Z", "2060-03-29T02:00:00Z"}},
    {"0 3 * * *", "Europe/Dublin", {"2099-10-24T02:00:00Z", "2099-10-25T03:00:00Z", "2099-10-26T03:00:00Z"}},
    /* Either day, or both. */
    {"0 0 13 * fri", "UTC", {"2026-11-06T00:00:00Z", "2026-11-13T00:00:00Z", "2026-11-20T00:00:00Z"}},
    {"0 0 13 * *", "UTC", {"2026-11-13T00:00:00Z", "2026-12-13T00:00:00Z", "2027-01-13T00:00:00Z"}},
    {"0 0 */13 * fri", "UTC", {"2027-01-01T00:00:00Z", "2027-05-14T00:00:00Z", "2027-08-27T00:00:00Z"}},
    {"0 0 L * ?", "UTC", {"2027-12-31T00:00:00Z", "2028-01-31T00:00:00Z", "2028-02-29T00:00:00Z"}},
    {"0 0 L-1 2 *", "UTC", {"2027-02-27T00:00:00Z", "2028-02-28T00:00:00Z", "2029-02-27T00:00:00Z"}},
    {"0 9 * * mon#1,friL", "UTC", {"2026-11-02T09:00:00Z", "2026-11-27T09:00:00Z", "2026-12-07T09:00:00Z"}},
    {"0 0 * * 5#5", "UTC", {"2027-01-29T00:00:00Z", "2027-04-30T00:00:00Z", "2027-07-30T00:00:00Z"}},
    {"0 0 29 2 *", "UTC", {"2096-02-29T00:00:00Z", "2104-02-29T00:00:00Z", "2108-02-29T00:00:00Z"}},
    /* Seconds, steps, and Sunday as 7. */
    {"59 59 23 31 12 *", "UTC", {"2026-12-31T23:59:59Z", "2027-12-31T23:59:59Z"}},
    {"5/25 * * * * *", "UTC",
        {"2026-01-01T00:00:05Z", "2026-01-01T00:00:30Z", "2026-01-01T00:00:55Z", "2026-01-01T00:01:05Z"}},
    {"0 0 * * fri-sun", "UTC",
        {"2026-11-20T00:00:00Z", "2026-11-21T00:00:00Z", "2026-11-22T00:00:00Z", "2026-11-27T00:00:00Z"}},
    {"0 0 * * 7", "UTC", {"2026-11-22T00:00:00Z", "2026-11-29T00:00:00Z"}},
    {"  @Weekly ", "Asia/Kolkata", {"2026-11-21T18:30:00Z", "2026-11-28T18:30:00Z"}},
    {"@yearly", "America/New_York", {"2027-01-01T05:00:00Z", "2028-01-01T05:00:00Z"}},
    {"@every 1h30m", "Europe/Berlin", {"2027-03-28T00:00:00Z", "2027-03-28T01:30:00Z", "2027-03-28T03:00:00Z"}},
    {"@every 1d", NULL, {"1970-01-02T00:00:00Z", "1970-01-03T00:00:00Z"}},
};

START_TEST(times_follow_each_other)
{
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct ww_calendar *calendar = open_calendar(rows[i].expression, rows[i].zone);
		uint64_t before = at(rows[i].times[0]);

		expect_next(calendar, before - 1, rows[i].times[0]);
		for (int k = 1; k < 6 && rows[i].times[k]; k++) {
			/* From each moment up to the next. */
			expect_next(calendar, at(rows[i].times[k - 1]), rows[i].times[k]);
			expect_next(calendar, at(rows[i].times[k]) - 1, rows[i].times[k]);
		}
		ww_calendar_close(calendar);
	}
}
END_TEST

START_TEST(an_interval_counts_from_its_anchor)
{
	struct ww_calendar_spec spec = {.expression = "@every 90s", .anchor = 100 * SECOND + 7};
	struct ww_calendar *calendar;
	uint64_t time;

	OK(ww_calendar_open(&calendar, &spec, &problem));
	OK(ww_calendar_next(calendar, 0, &time));
	ck_assert_uint_eq(time, 10 * SECOND + 7);
	OK(ww_calendar_next(calendar, time, &time));
	ck_assert_uint_eq(time, 100 * SECOND + 7);
	OK(ww_calendar_next(calendar, 1000 * SECOND, &time));
	ck_assert_uint_eq(time, 1000 * SECOND + 7);
	ck_assert_int_eq(ww_calendar_next(calendar, WW_CALENDAR_LAST, &time), WW_EOVERFLOW);
	ck_assert_int_eq(ww_calendar_next(calendar, UINT64_MAX, &time), WW_EOVERFLOW);
	ck_assert_uint_eq(time, 1000 * SECOND + 7);
	ww_calendar_close(calendar);
}
END_TEST

/* A wrong text, its place, and a part of the reason. */
static const struct {
	const char *expression, *zone;
	size_t at;
	const char *reason;
} wrongs[] = {
    {"", "UTC", 0, "is empty"},
    {"0 3 * *", "UTC", 0, "4 fields: expected 5"},
    {"0 0 0 3 * * *", "UTC", 0, "7 fields"},
    {"60 * * * *", "UTC", 0, "'60' is not a valid minute: expected 0 to 59"},
    {"0 24 * * *", "UTC", 2, "'24' is not a valid hour"},
    {"0 0 0 * *", "UTC", 4, "'0' is not a valid day of the month: expected 1 to 31"},
    {"0 0 1 13 *", "UTC", 6, "or jan to dec"},
    {"0 0 1 foo *", "UTC", 6, "'foo' is not a valid month"},
    {"0 0 1 june *", "UTC", 6, "'june' is not a valid month"},
    {"0 0 * * 8", "UTC", 8, "or sun to sat"},
    {"0 22-2 * * *", "UTC", 2, "22-23,0-2"},
    {"*/0 * * * *", "UTC", 2, "expected 1 to 59 behind the /"},
    {"*/ * * * *", "UTC", 2, "a step is missing"},
    {"1, * * * *", "UTC", 2, "a minute is missing"},
    {"1;2 * * * *", "UTC", 1, "expected a comma"},
    {"99999999999999999999 * * * *", "UTC", 0, "is not a valid minute"},
    {"0 0 15W * *", "UTC", 6, "nearest working day"},
    {"0 0 L-31 * *", "UTC", 6, "1 to 30 days"},
    {"0 0 L3 * *", "UTC", 5, "behind L"},
    {"0 0 * * 5#6", "UTC", 10, "1 to 5 behind the #"},
    {"0 0 * * ?/2", "UTC", 0, NULL},
    {"? 0 * * *", "UTC", 0, "'?' is not a valid minute"},
    {"0 0 30 2 *", "UTC", 4, "February ends with 29"},
    {"0 0 0 31 4,6 *", "UTC", 6, "no month that is chosen"},
    {"@reboot", "UTC", 0, "@reboot is not a time"},
    {"@fortnightly", "UTC", 0, "expected @hourly"},
    {"@daily 3", "UTC", 7, "nothing is expected"},
    {"@every", "UTC", 6, "expected a length of time"},
    {"@every 5", "UTC", 7, "expected a length of time"},
    {"@every 1m1h", "UTC", 9, "expected a length of time"},
    {"@every 0s", "UTC", 9, "at least 1s"},
    {"@every 3651d", "UTC", 12, "at most 3650d"},
    {"0 0 * * *", "Europe/Berlyn", 0, "there is no such zone"},
    {"0 0 * * *", "Europe", 0, "there is no such zone"},
    {"0 0 * * *", "", 0, "expected a zone's name"},
    {"0 0 * * *", "/etc/passwd", 0, "expected a zone's name"},
    {"0 0 * * *", "a/../../b", 2, "expected a zone's name"},
    {"0 0 * * *", "EST5EDT,M3.2.0,M11.1.0", 7, "expected a zone's name"},
    {"0 0 * * *", "right/UTC", 0, "leap seconds"},
};

START_TEST(what_is_wrong_is_shown_at_its_place)
{
	for (size_t i = 0; i < sizeof wrongs / sizeof *wrongs; i++) {
		struct ww_calendar_spec spec = {.expression = wrongs[i].expression, .zone = wrongs[i].zone};
		struct ww_calendar *calendar = NULL;
		int error = ww_calendar_open(&calendar, &spec, &problem);

		if (!wrongs[i].reason) {
			OK(error);
			ww_calendar_close(calendar);
			continue;
		}
		ck_assert_msg(error == WW_EINVAL && !calendar, "'%s' is accepted", wrongs[i].expression);
		ck_assert_msg(
		    strstr(problem.reason, wrongs[i].reason), "'%s': %s", wrongs[i].expression, problem.reason);
		ck_assert_msg(
		    problem.at == wrongs[i].at, "'%s': at %zu, %s", wrongs[i].expression, problem.at, problem.reason);
		ck_assert_int_eq(problem.in_zone, strcmp(wrongs[i].zone, "UTC") != 0);
	}
}
END_TEST

static const struct {
	const char *expression, *words;
} words[] = {
    {"0 3 * * *", "at 03:00 every day"},
    {"30 9,18 * * mon-fri", "at 09:30 and 18:30 on Monday to Friday"},
    {"*/15 9-17 * * *", "every 15 minutes, in the hours 9 to 17"},
    {"* * * * *", "every minute"},
    {"0 * * * *", "every hour, on the hour"},
    {"0 */6 * * *", "at 00:00, 06:00, 12:00 and 18:00 every day"},
    {"0 */2 * * *", "every 2 hours, on the hour"},
    {"20 * * * *", "at minute 20 of every hour"},
    {"0 0 1,15 * 5", "at 00:00 on days 1 and 15 of the month, and on Friday"},
    {"0 0 */10 * 5", "at 00:00 on days 1, 11, 21 and 31 of the month, but only on Friday"},
    {"0 12 L,L-2 jan,mar-jun *",
        "at 12:00 on the last day of the month and 2 days before the last of the month, in January and March to June"},
    {"0 8 * * mon#1,friL,sat,sun",
        "at 08:00 on Saturday and Sunday, the first Monday and the last Friday of the month"},
    {"*/10 * * * * *", "every 10 seconds"},
    {"5 4 3 2 1 *", "at 03:04:05 on day 2 of the month, in January"},
};

START_TEST(words_say_what_it_means)
{
	char text[WW_CALENDAR_TEXT];
	char wanted[WW_CALENDAR_TEXT];
	struct ww_calendar *calendar;

	for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
		calendar = open_calendar(words[i].expression, "Europe/Berlin");
		OK(ww_calendar_explain(calendar, text, sizeof text));
		snprintf(wanted, sizeof wanted, "%s, time of Europe/Berlin", words[i].words);
		ck_assert_str_eq(text, wanted);
		OK(ww_calendar_explain(calendar, text, 5));
		ck_assert_uint_eq(strlen(text), 4);
		ww_calendar_close(calendar);
	}
	calendar = open_calendar("@every 1d12h", NULL);
	OK(ww_calendar_explain(calendar, text, sizeof text));
	ck_assert_str_eq(text, "every 1 day 12 hours, by elapsed time");
	ww_calendar_close(calendar);
}
END_TEST

START_TEST(offsets_and_arguments)
{
	struct ww_calendar *calendar = open_calendar("0 */2 * * *", "Europe/Berlin");
	struct ww_calendar_spec spec = {NULL, NULL, 0, NULL};
	int32_t offset = 0;
	uint64_t time;
	char text[8];

	OK(ww_calendar_offset(calendar, at("2027-03-28T00:59:59Z"), &offset));
	ck_assert_int_eq(offset, 3600);
	OK(ww_calendar_offset(calendar, at("2027-03-28T01:00:00Z"), &offset));
	ck_assert_int_eq(offset, 7200);
	ck_assert_int_eq(ww_calendar_offset(calendar, UINT64_MAX, &offset), WW_EOVERFLOW);
	ck_assert_int_eq(ww_calendar_offset(NULL, 0, &offset), WW_EINVAL);
	ck_assert_int_eq(ww_calendar_next(NULL, 0, &time), WW_EINVAL);
	ck_assert_int_eq(ww_calendar_next(calendar, 0, NULL), WW_EINVAL);
	ck_assert_int_eq(ww_calendar_explain(calendar, text, 0), WW_EINVAL);
	ck_assert_int_eq(ww_calendar_open(&calendar, &spec, NULL), WW_EINVAL);
	ck_assert_int_eq(ww_calendar_is_elapsed(calendar), 1);
	ck_assert_int_eq(ww_calendar_is_elapsed(NULL), 0);
	ww_calendar_close(calendar);
	ww_calendar_close(NULL);
}
END_TEST

TEST_MAIN("calendar", times_follow_each_other, an_interval_counts_from_its_anchor, what_is_wrong_is_shown_at_its_place,
    words_say_what_it_means, offsets_and_arguments)
