/* Tests the readers of the three formats, line by line. */
/* tier: quick */

#include <stdio.h>

#include "tests/tools/weekwheel/fixture.h"

#define JOB(submit, wait, run, requested, status)                                                                      \
	"7 " submit " " wait " " run " 1 -1 -1 1 " requested " -1 " status " 1 1 -1 1 -1 -1 -1"
#define REQUEST(client, date) client " - - [" date "] \"GET / HTTP/1.1\" 200 512"

static void expect_event(const struct event *event, enum event_kind kind, uint64_t time, uint64_t deadline)
{
	ck_assert_int_eq((int)event->kind, (int)kind);
	ck_assert_uint_eq(event->time_seconds, time);
	if (kind != EVENT_CANCEL)
		ck_assert_uint_eq(event_deadline(event), deadline);
}

static void expect_problem(struct reading *reading, const char *line, const char *says)
{
	size_t before = reading->events.count;

	ck_assert_msg(reading_line(reading, line) == LINE_UNREADABLE, "this was read: %s", line);
	ck_assert_msg(
	    strstr(reading->problem.text, says) != NULL, "'%s' does not say '%s'", reading->problem.text, says);
	ck_assert_uint_eq(reading->events.count, before);
}

START_TEST(a_job_sets_its_limit_at_its_start_and_cancels_it_at_its_end)
{
	struct reading reading;

	reading_begin(&reading, &format_swf);
	ck_assert_int_eq(reading_line(&reading, JOB("100", "20", "50", "3600", "1")), LINE_EVENTS);
	ck_assert_uint_eq(reading.events.count, 2);
	expect_event(&reading.events.at[0], EVENT_SET, 120, 3720);
	expect_event(&reading.events.at[1], EVENT_CANCEL, 170, 0);
	ck_assert_str_eq(key_of(&reading.events, reading.events.at[0].id), "7");
	events_free(&reading.events);
}
END_TEST

START_TEST(a_job_with_fractions_has_its_deadline_rounded_up)
{
	struct reading reading;

	reading_begin(&reading, &format_swf);
	reading_line(&reading, JOB("0.5", "0.25", "552.21", "10", "1"));
	expect_event(&reading.events.at[0], EVENT_SET, 0, 11);
	expect_event(&reading.events.at[1], EVENT_CANCEL, 552, 0);
	reading_line(&reading, JOB("1", "0", "2", "10", "1"));
	expect_event(&reading.events.at[2], EVENT_SET, 1, 11);
	events_free(&reading.events);
}
END_TEST

START_TEST(what_a_job_leaves_unknown_is_handled_and_counted)
{
	struct reading reading;

	reading_begin(&reading, &format_swf);
	reading_line(&reading, JOB("100", "-1", "50", "60", "1"));
	expect_event(&reading.events.at[0], EVENT_SET, 100, 160);
	reading_line(&reading, JOB("200", "0", "-1", "60", "1"));
	ck_assert_uint_eq(reading.events.count, 3);
	ck_assert_uint_eq(reading.context.jobs_without_finish, 1);
	ck_assert_int_eq(reading_line(&reading, JOB("300", "0", "5", "-1", "1")), LINE_EVENTS);
	ck_assert_uint_eq(reading.context.jobs_without_limit, 1);
	ck_assert_int_eq(reading_line(&reading, JOB("300", "0", "5", "60", "3")), LINE_EVENTS);
	ck_assert_uint_eq(reading.context.jobs_in_parts, 1);
	ck_assert_uint_eq(reading.events.count, 3);
	events_free(&reading.events);
}
END_TEST

START_TEST(the_limit_of_the_header_serves_jobs_without_one)
{
	struct reading reading;

	reading_begin(&reading, &format_swf);
	ck_assert_int_eq(reading_line(&reading, "; MaxRuntime: 500"), LINE_COMMENT);
	ck_assert_int_eq(reading_line(&reading, ";"), LINE_COMMENT);
	reading_line(&reading, JOB("10", "0", "5", "-1", "1"));
	expect_event(&reading.events.at[0], EVENT_SET, 10, 510);
	ck_assert_uint_eq(reading.context.jobs_without_limit, 0);
	events_free(&reading.events);
}
END_TEST

START_TEST(two_jobs_of_one_number_have_a_timer_each)
{
	struct reading reading;

	reading_begin(&reading, &format_swf);
	reading_line(&reading, JOB("10", "0", "5", "60", "1"));
	reading_line(&reading, JOB("11", "0", "5", "60", "1"));
	reading_line(&reading, JOB("12", "0", "5", "60", "1"));
	ck_assert_uint_eq(keys_count(reading.events.keys), 3);
	ck_assert_uint_ne(reading.events.at[0].id, reading.events.at[2].id);
	ck_assert_uint_ne(reading.events.at[2].id, reading.events.at[4].id);
	events_free(&reading.events);
}
END_TEST

START_TEST(a_job_that_cannot_be_read_says_why)
{
	struct reading reading;

	reading_begin(&reading, &format_swf);
	expect_problem(&reading, "1 2 3", "3 fields; expected the 18 numbers");
	expect_problem(&reading, JOB("100", "20", "50", "3600", "1") " 9", "19 fields");
	expect_problem(&reading, JOB("100", "x", "50", "3600", "1"), "field 3 is 'x'; expected a number");
	expect_problem(&reading, JOB("100", "1e3", "50", "3600", "1"), "field 3");
	expect_problem(&reading, JOB("-1", "0", "50", "3600", "1"), "submit time (field 2) is '-1'");
	expect_problem(&reading, JOB("99999999999999999999", "0", "50", "60", "1"), "at most 9223372036854775807");
	expect_problem(&reading, JOB("9223372036854775807", "1", "50", "60", "1"), "submit + wait");
	expect_problem(&reading, JOB("9223372036854775807", "0", "50", "60", "1"), "the job's end");
	ck_assert_uint_eq(keys_count(reading.events.keys), 0);
	ck_assert_int_eq(reading_line(&reading, "  \t "), LINE_BLANK);
	events_free(&reading.events);
}
END_TEST

START_TEST(a_request_refreshes_the_session_of_its_client)
{
	struct reading reading;

	reading_begin(&reading, &format_log);
	reading_line(&reading, REQUEST("::1", "01/Jan/1970:00:00:00 +0000"));
	expect_event(&reading.events.at[0], EVENT_REFRESH, 0, 1800);
	ck_assert_str_eq(key_of(&reading.events, 0), "::1");
	reading_line(&reading, REQUEST("::1", "17/May/2015:10:05:03 +0000") " \"-\" \"Mozilla [5.0]\"");
	expect_event(&reading.events.at[1], EVENT_REFRESH, 1431857103, 1431858903);
	reading_line(&reading, REQUEST("host", "17/May/2015:12:05:03 +0200"));
	expect_event(&reading.events.at[2], EVENT_REFRESH, 1431857103, 1431858903);
	reading_line(&reading, REQUEST("host", "17/May/2015:04:35:03 -0530"));
	expect_event(&reading.events.at[3], EVENT_REFRESH, 1431857103, 1431858903);
	reading_line(&reading, REQUEST("host", "29/Feb/2000:23:59:60 +0000"));
	expect_event(&reading.events.at[4], EVENT_REFRESH, 951868800, 951870600);
	ck_assert_uint_eq(reading.events.at[2].id, reading.events.at[3].id);
	events_free(&reading.events);
}
END_TEST

START_TEST(a_request_may_hold_quotes_brackets_and_no_size)
{
	static const char *const lines[] = {
	    "h - a user [with] blanks [17/May/2015:10:05:03 +0000] \"GET /\" 304 -",
	    "h - - [17/May/2015:10:05:03 +0000] \"GET /a\\\"b HTTP/1.0\" 200 1",
	    "h - - [17/May/2015:10:05:03 +0000] \"GET /a\" b\" HTTP/1.0\" 200 1",
	    "h - - [17/May/2015:10:05:03 +0000] \"\" 408 0 \"[01/Foo/2000:99:99:99 +0000]\"",
	};
	struct reading reading;
	size_t i;

	reading_begin(&reading, &format_log);
	for (i = 0; i < sizeof lines / sizeof *lines; i++)
		ck_assert_msg(
		    reading_line(&reading, lines[i]) == LINE_EVENTS, "%s: %s", lines[i], reading.problem.text);
	events_free(&reading.events);
}
END_TEST

START_TEST(a_request_that_cannot_be_read_says_why)
{
	static const char *const dates[] = {"32/May/2015:10:05:03 +0000", "29/Feb/2015:10:05:03 +0000",
	    "29/Feb/1900:10:05:03 +0000", "00/May/2015:10:05:03 +0000", "17/Mai/2015:10:05:03 +0000",
	    "17/May/2015:24:05:03 +0000", "17/May/2015:10:60:03 +0000", "17/May/2015:10:05:61 +0000",
	    "17/May/2015:10:05:03 +2500", "17/May/2015:10:05:03 00000", "17/May/1969:10:05:03 +0000",
	    "01/Jan/1970:00:30:00 +0100", "1 /May/2015:10:05:03 +0000"};
	struct reading reading;
	char line[200];
	size_t i;

	reading_begin(&reading, &format_log);
	for (i = 0; i < sizeof dates / sizeof *dates; i++) {
		snprintf(line, sizeof line, REQUEST("h", "%s"), dates[i]);
		expect_problem(&reading, line, "there is no time");
	}
	expect_problem(&reading, "GET / HTTP/1.1", "no client and time");
	expect_problem(&reading, "[17/May/2015:10:05:03 +0000] \"GET /\" 200 1", "no client and time");
	expect_problem(&reading, "h - - [17/May/2015:10:05:03 +00", "no client and time");
	expect_problem(&reading, "h - - [17/May/2015:10:05:03 +0000]", "no request");
	expect_problem(&reading, "h - - [17/May/2015:10:05:03 +0000] \"GET / HTTP/1.1\" 20", "no request");
	events_free(&reading.events);
}
END_TEST

START_TEST(csv_lines_become_events)
{
	struct reading reading;

	reading_begin(&reading, &format_csv);
	ck_assert_int_eq(reading_line(&reading, "time,event,key,timeout"), LINE_COMMENT);
	ck_assert_int_eq(reading_line(&reading, "# a comment"), LINE_COMMENT);
	ck_assert_int_eq(reading_line(&reading, "5,set,a,10"), LINE_EVENTS);
	expect_event(&reading.events.at[0], EVENT_SET, 5, 15);
	ck_assert_int_eq(reading_line(&reading, " 6.5 , Refresh , a , 0.6 "), LINE_EVENTS);
	expect_event(&reading.events.at[1], EVENT_REFRESH, 6, 8);
	ck_assert_int_eq(reading_line(&reading, "7,cancel,a"), LINE_EVENTS);
	ck_assert_int_eq(reading_line(&reading, "7,cancel,a,"), LINE_EVENTS);
	ck_assert_int_eq(reading_line(&reading, "9223372036854775807,set,a,0"), LINE_EVENTS);
	expect_event(&reading.events.at[4], EVENT_SET, INT64_MAX, INT64_MAX);
	ck_assert_uint_eq(keys_count(reading.events.keys), 1);
	events_free(&reading.events);
}
END_TEST

START_TEST(csv_keys_can_be_anything_in_quotes)
{
	struct reading reading;

	reading_begin(&reading, &format_csv);
	reading_line(&reading, "1,set,\"a,b\",1");
	reading_line(&reading, "1,set,\"say \"\"hi\"\"\",1");
	reading_line(&reading, "1,set,\" x \" ,1");
	reading_take(&reading, "1,set,n\0l,1", 11);
	ck_assert_uint_eq(reading.events.count, 4);
	ck_assert_str_eq(key_of(&reading.events, 0), "a,b");
	ck_assert_str_eq(key_of(&reading.events, 1), "say \"hi\"");
	ck_assert_str_eq(key_of(&reading.events, 2), " x ");
	ck_assert_mem_eq(key_of(&reading.events, 3), "n\0l", 4);
	events_free(&reading.events);
}
END_TEST

START_TEST(csv_lines_that_cannot_be_read_say_why)
{
	struct reading reading;

	reading_begin(&reading, &format_csv);
	expect_problem(&reading, "5,set", "2 of 4 fields");
	expect_problem(&reading, "5,set,a", "no timeout");
	expect_problem(&reading, "5,refresh,a,", "no timeout");
	expect_problem(&reading, "5,set,a,1,2", "more than 4 fields");
	expect_problem(&reading, "5,start,a,1", "the event is 'start'; expected set, refresh or cancel");
	expect_problem(&reading, "-5,set,a,1", "the time is '-5'; expected 0 or more");
	expect_problem(&reading, "5,set,a,-1", "the timeout is '-1'");
	expect_problem(&reading, "5,set,a,30m", "the timeout is '30m'; expected a decimal number");
	expect_problem(&reading, "5,set,,1", "the key is empty");
	expect_problem(&reading, "5,set,\"\",1", "the key is empty");
	expect_problem(&reading, "5,set,\"a,1", "has no end");
	expect_problem(&reading, "5,set,\"a\"b,1", "has no end");
	expect_problem(&reading, "\"5\",set,a,1", "only the key");
	expect_problem(&reading, "5,set,a,9223372036854775807", "time + timeout");
	expect_problem(&reading, "9223372036854775807,set,a,0.5", "time + timeout");
	expect_problem(&reading, "9223372036854775808,set,a,0", "at most");
	events_free(&reading.events);
}
END_TEST

START_TEST(a_format_is_known_by_its_lines_and_its_name)
{
	static const struct {
		const char *line;
		const struct format *format;
	} known[] = {{"; Version: 2.2", &format_swf}, {JOB("1", "2", "3", "4", "5"), &format_swf},
	    {REQUEST("h", "17/May/2015:10:05:03 +0000"), &format_log}, {"time,event,key,timeout", &format_csv},
	    {"1,set,a,1", &format_csv}, {"# events", &format_csv}, {"", NULL}, {"hello", NULL}, {"1 2 3", NULL}};
	size_t i;

	for (i = 0; i < sizeof known / sizeof *known; i++) {
		struct input_line line = {known[i].line, strlen(known[i].line)};

		ck_assert_ptr_eq(format_of_line(line, 1), known[i].format);
	}
	ck_assert_ptr_null(format_of_line((struct input_line){"# hello", 7}, 0));
	ck_assert_ptr_eq(format_of_name("a/jobs.swf"), &format_swf);
	ck_assert_ptr_eq(format_of_name("JOBS.SWF.GZ"), &format_swf);
	ck_assert_ptr_eq(format_of_name("access.log.gz"), &format_log);
	ck_assert_ptr_eq(format_of_name("x.csv"), &format_csv);
	ck_assert_ptr_eq(format_of_name("x.txt"), &format_unknown);
	ck_assert_ptr_eq(format_of_name("-"), &format_unknown);
	ck_assert_ptr_eq(format_by_name("log"), &format_log);
	ck_assert_ptr_null(format_by_name("unknown"));
}
END_TEST

TEST_MAIN("weekwheel/formats", a_job_sets_its_limit_at_its_start_and_cancels_it_at_its_end,
    a_job_with_fractions_has_its_deadline_rounded_up, what_a_job_leaves_unknown_is_handled_and_counted,
    the_limit_of_the_header_serves_jobs_without_one, two_jobs_of_one_number_have_a_timer_each,
    a_job_that_cannot_be_read_says_why, a_request_refreshes_the_session_of_its_client,
    a_request_may_hold_quotes_brackets_and_no_size, a_request_that_cannot_be_read_says_why, csv_lines_become_events,
    csv_keys_can_be_anything_in_quotes, csv_lines_that_cannot_be_read_say_why,
    a_format_is_known_by_its_lines_and_its_name)
