/*
 * Access logs of web servers, in the common and the combined format:
 *
 *     client identity user [17/May/2015:10:05:03 +0000] "GET / HTTP/1.1" 200 2326 "referer" "agent"
 *
 * Each request sets the client's session, or refreshes it, to the idle timeout; what follows the size of the answer
 * makes no difference and is not looked at.
 */
#include <string.h>

#include "tools/common/message.h"
#include "tools/weekwheel/input/format.h"

/* Length of "17/May/2015:10:05:03 +0000". */
enum { DATE_SIZE = 26 };

struct date {
	int year, month, day, hour, minute, second;
	int zone; /* minutes east of UTC */
};

/* Read `digits` digits; -1 where there is something else. */
static int read_digits(const char *text, int digits)
{
	int value = 0;
	int i;

	for (i = 0; i < digits; i++) {
		if (text[i] < '0' || text[i] > '9')
			return -1;
		value = value * 10 + (text[i] - '0');
	}
	return value;
}

/* 1 to 12, or 0. */
static int read_month(const char *text)
{
	static const char names[] = "JanFebMarAprMayJunJulAugSepOctNovDec";
	int i;

	for (i = 0; i < 12; i++)
		if (memcmp(text, names + i * 3, 3) == 0)
			return i + 1;
	return 0;
}

static int read_date_text(const char *text, struct date *date)
{
	int zone_hours = read_digits(text + 22, 2);
	int zone_minutes = read_digits(text + 24, 2);

	if (text[2] != '/' || text[6] != '/' || text[11] != ':' || text[14] != ':' || text[17] != ':' ||
	    text[20] != ' ' || (text[21] != '+' && text[21] != '-'))
		return -1;
	date->day = read_digits(text, 2);
	date->month = read_month(text + 3);
	date->year = read_digits(text + 7, 4);
	date->hour = read_digits(text + 12, 2);
	date->minute = read_digits(text + 15, 2);
	date->second = read_digits(text + 18, 2);
	if (zone_hours < 0 || zone_hours > 23 || zone_minutes < 0 || zone_minutes > 59)
		return -1;
	date->zone = (zone_hours * 60 + zone_minutes) * (text[21] == '-' ? -1 : 1);
	return 0;
}

static int days_in_month(int year, int month)
{
	static const int days[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
	int leap = (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;

	return days[month - 1] + (month == 2 && leap);
}

/* Second 60 is a leap second, which falls together with the second after it. */
static int date_exists(const struct date *date)
{
	return date->year >= 1970 && date->month >= 1 && date->day >= 1 &&
	       date->day <= days_in_month(date->year, date->month) && date->hour >= 0 && date->hour <= 23 &&
	       date->minute >= 0 && date->minute <= 59 && date->second >= 0 && date->second <= 60;
}

/* Seconds since 1970 in UTC, which the zone can make negative. */
static int64_t date_seconds(const struct date *date)
{
	int64_t years = date->year - 1;
	int64_t days = years * 365 + years / 4 - years / 100 + years / 400 - 719162;
	int month;

	for (month = 1; month < date->month; month++)
		days += days_in_month(date->year, month);
	days += date->day - 1;
	return ((days * 24 + date->hour) * 60 + date->minute - date->zone) * 60 + date->second;
}

/* Return where the date's text begins: after the first bracket that is followed by something like a date. */
static const char *find_date(struct line line)
{
	const char *end = line.text + line.size;
	const char *at = line.text;

	while ((at = memchr(at, '[', (size_t)(end - at))) != NULL) {
		at++;
		if (end - at > DATE_SIZE && at[DATE_SIZE] == ']' && at[2] == '/')
			return at;
	}
	return NULL;
}

static int read_time(const char *text, struct moment *time, struct line_problem *problem)
{
	struct date date;
	char excerpt[40];
	int64_t seconds;

	if (read_date_text(text, &date) || !date_exists(&date) || (seconds = date_seconds(&date)) < 0) {
		message_excerpt(excerpt, sizeof excerpt, text, DATE_SIZE);
		line_problem_set(
		    problem, "there is no time %s; expected one like [17/May/2015:10:05:03 +0000]", excerpt);
		return -1;
	}
	time->seconds = (uint64_t)seconds;
	time->ns = 0;
	return 0;
}

/* Return 1 at `" 200 2326` or `" 304 -`. */
static int is_answer(const char *at, const char *end)
{
	return end - at >= 7 && at[0] == '"' && at[1] == ' ' && read_digits(at + 2, 3) >= 0 && at[5] == ' ' &&
	       (at[6] == '-' || read_digits(at + 6, 1) >= 0);
}

/* A request can hold quotes that a careless server did not escape, so its end is where the answer's numbers follow. */
static int has_request(const char *at, const char *end)
{
	if (end - at < 2 || at[0] != ' ' || at[1] != '"')
		return 0;
	at += 2;
	while (at < end && (at = memchr(at, '"', (size_t)(end - at))) != NULL) {
		if (is_answer(at, end))
			return 1;
		at++;
	}
	return 0;
}

static enum line_result log_read(
    struct format_context *context, struct line line, struct events *events, struct line_problem *problem)
{
	struct moment time = {0, 0};
	struct moment due;
	const char *date;
	size_t client = 0;

	if (line_trim(line).size == 0)
		return LINE_BLANK;
	while (client < line.size && line.text[client] != ' ' && line.text[client] != '\t')
		client++;
	date = find_date(line);
	if (client == 0 || !date || date < line.text + client)
		return line_problem_set(
		    problem, "no client and time; expected: client - - [17/May/2015:10:05:03 +0000] ...");
	if (read_time(date, &time, problem))
		return LINE_UNREADABLE;
	if (!has_request(date + DATE_SIZE + 1, line.text + line.size))
		return line_problem_set(
		    problem, "no request, status and size after the time; expected: \"GET / HTTP/1.1\" 200 512");
	if (moment_add(time, context->timeout, &due))
		return line_problem_set(problem, "time + timeout is beyond 9223372036854775807 seconds");
	events_add(events, EVENT_REFRESH, keys_intern(events->keys, line.text, client), time, due);
	return LINE_EVENTS;
}

const struct format format_log = {"log", "access log", ".log", 1, log_read};
