/*
 * Reads access logs of web servers, in the common and the combined format:
 *
 *     client identity user [17/May/2015:10:05:03 +0000] "GET / HTTP/1.1" 200 2326 "referer" "agent"
 *
 * Each request sets or refreshes its client's session to the idle timeout. What follows the size of the answer is not
 * read.
 */
#include <string.h>
#include <time.h>

#include "tools/common/message.h"
#include "tools/common/number.h"
#include "tools/weekwheel/input/format.h"

/* Length of "17/May/2015:10:05:03 +0000". */
enum { DATE_SIZE = 26 };

/* Return the number of `digits` digits, or -1 if there is something else. */
static int read_digits(const char *text, size_t digits)
{
	uint64_t number;

	return number_whole(text, digits, 0, 9999, &number) ? -1 : (int)number;
}

/* Return 0 to 11, or -1. */
static int read_month(const char *text)
{
	static const char names[] = "JanFebMarAprMayJunJulAugSepOctNovDec";

	for (int i = 0; i < 12; i++)
		if (memcmp(text, names + i * 3, 3) == 0)
			return i;
	return -1;
}

/* Store the seconds since 1970 in UTC. The zone can make them negative. Return -1 if there is no such time. */
static int read_date(const char *text, int64_t *seconds)
{
	struct tm date = {.tm_mday = read_digits(text, 2), .tm_mon = read_month(text + 3)};
	const int day = date.tm_mday;
	const int year = read_digits(text + 7, 4);
	const int hour = read_digits(text + 12, 2);
	const int minute = read_digits(text + 15, 2);
	const int second = read_digits(text + 18, 2);
	const int zone_hours = read_digits(text + 22, 2);
	const int zone_minutes = read_digits(text + 24, 2);
	const int zone = zone_hours * 60 + zone_minutes;

	if (text[2] != '/' || text[6] != '/' || text[11] != ':' || text[14] != ':' || text[17] != ':' ||
	    text[20] != ' ' || (text[21] != '+' && text[21] != '-'))
		return -1;
	/* Second 60 is a leap second, and becomes the second after it. */
	if (year < 1970 || date.tm_mon < 0 || day < 1 || hour < 0 || hour > 23 || minute < 0 || minute > 59 ||
	    second < 0 || second > 60 || zone_hours < 0 || zone_hours > 23 || zone_minutes < 0 || zone_minutes > 59)
		return -1;
	date.tm_year = year - 1900;
	*seconds = (int64_t)timegm(&date) + ((hour * 60 + minute) - (text[21] == '-' ? -zone : zone)) * 60 + second;
	return date.tm_mday == day ? 0 : -1;
}

/* Return where the date begins: after the first bracket with something like a date behind it. */
static const char *find_date(struct input_line line)
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
	char excerpt[40];
	int64_t seconds;

	if (read_date(text, &seconds) || seconds < 0) {
		message_excerpt(excerpt, sizeof excerpt, text, DATE_SIZE);
		return line_problem_set(
		    problem, "there is no time %s; expected one like [17/May/2015:10:05:03 +0000]", excerpt);
	}
	*time = (struct moment){(uint64_t)seconds, 0};
	return 0;
}

/* Return 1 at `" 200 2326` or `" 304 -`. */
static int is_answer(const char *at, const char *end)
{
	return end - at >= 7 && at[0] == '"' && at[1] == ' ' && read_digits(at + 2, 3) >= 0 && at[5] == ' ' &&
	       (at[6] == '-' || read_digits(at + 6, 1) >= 0);
}

/* A careless server leaves quotes in a request unescaped. The request ends where the answer's numbers follow. */
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
    struct format_context *context, struct input_line line, struct events *events, struct line_problem *problem)
{
	struct moment time = {0, 0};
	struct moment due;
	const char *date;
	size_t client = 0;

	if (line_trim(line).size == 0)
		return LINE_BLANK;
	while (client < line.size && !is_blank(line.text[client]))
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
