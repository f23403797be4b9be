/* Reads and writes points of time: local, with a zone's offset, or Unix time. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "lib/base/time.h"
#include "tools/common/duration.h"
#include "tools/common/moment.h"
#include "tools/common/number.h"

/* The progress of reading a text. */
struct calendar_scan {
	const char *text;
	const char *at;
	struct duration_problem *problem;
};

static int refuse(const struct calendar_scan *scan, const char *expected)
{
	scan->problem->at = (size_t)(scan->at - scan->text);
	snprintf(scan->problem->expected, sizeof scan->problem->expected, "%s", expected);
	return -1;
}

/* Read exactly `digits` digits, a number from least to most. */
static int take_number(
    struct calendar_scan *scan, size_t digits, uint64_t least, uint64_t most, int *number, const char *expected)
{
	uint64_t value;

	if (number_whole(scan->at, digits, least, most, &value))
		return refuse(scan, expected);
	scan->at += digits;
	*number = (int)value;
	return 0;
}

static int take_char(struct calendar_scan *scan, char c, const char *expected)
{
	if (*scan->at != c)
		return refuse(scan, expected);
	scan->at++;
	return 0;
}

static int take_date(struct calendar_scan *scan, struct tm *tm)
{
	static const char *const form = "a date such as 2026-12-01, or @ and Unix seconds";
	static const char *const day = "a day that this month has, such as 01";
	struct tm real;

	/* DURATION_TIME_MAX comes soon after 2115. */
	if (take_number(
	        scan, 4, 1970, 2115, &tm->tm_year, "a date with a year from 1970 to 2115, such as 2026-12-01") ||
	    take_char(scan, '-', form) || take_number(scan, 2, 1, 12, &tm->tm_mon, "a month from 01 to 12") ||
	    take_char(scan, '-', form) || take_number(scan, 2, 1, 31, &tm->tm_mday, day))
		return -1;
	tm->tm_year -= 1900;
	tm->tm_mon -= 1;
	real = *tm;
	(void)timegm(&real);
	if (real.tm_mday != tm->tm_mday) {
		scan->at -= 2;
		return refuse(scan, day);
	}
	return 0;
}

static int take_fraction(struct calendar_scan *scan, uint32_t *ns)
{
	size_t digits;

	if (*scan->at != '.')
		return 0;
	digits = strspn(++scan->at, "0123456789");
	if (digits == 0)
		return refuse(scan, "digits after the point");
	if (digits > 9) {
		scan->at += 9;
		return refuse(scan, "at most 9 digits after the point");
	}
	(void)number_fraction(&scan->at, scan->at + digits, ns);
	return 0;
}

static int take_clock(struct calendar_scan *scan, struct tm *tm, uint32_t *ns)
{
	static const char *const form = "a time of day such as 09:00 or 09:00:30";

	if (take_number(scan, 2, 0, 23, &tm->tm_hour, form) || take_char(scan, ':', form) ||
	    take_number(scan, 2, 0, 59, &tm->tm_min, form))
		return -1;
	if (*scan->at != ':')
		return 0;
	scan->at++;
	if (take_number(scan, 2, 0, 59, &tm->tm_sec, form))
		return -1;
	return take_fraction(scan, ns);
}

/* Read "Z", "+02:00", "+0200" or "+02". Store the offset from UTC in seconds. Return 1, 0 if there is none, or -1. */
static int take_offset(struct calendar_scan *scan, int *offset)
{
	static const char *const form = "an offset such as +02:00 or Z, or nothing more";
	int hours;
	int minutes = 0;
	int west = *scan->at == '-';

	*offset = 0;
	if (*scan->at == 0)
		return 0;
	if (*scan->at == 'Z' || *scan->at == 'z') {
		scan->at++;
		return *scan->at ? refuse(scan, form) : 1;
	}
	if (*scan->at != '+' && *scan->at != '-')
		return refuse(scan, form);
	scan->at++;
	if (take_number(scan, 2, 0, 14, &hours, form))
		return -1;
	if (*scan->at == ':')
		scan->at++;
	if (*scan->at && take_number(scan, 2, 0, 59, &minutes, form))
		return -1;
	if (*scan->at)
		return refuse(scan, form);
	*offset = (hours * 60 + minutes) * (west ? -60 : 60);
	return 1;
}

/* Call mktime. Return 1 if it kept the wanted time, and 0 if it changed it to another. */
static int local_try(const struct tm *wanted, int summer, time_t *seconds)
{
	struct tm tm = *wanted;

	tm.tm_isdst = summer;
	*seconds = mktime(&tm);
	return tm.tm_mday == wanted->tm_mday && tm.tm_hour == wanted->tm_hour && tm.tm_min == wanted->tm_min &&
	       tm.tm_sec == wanted->tm_sec;
}

static int local_seconds(const struct calendar_scan *scan, const struct tm *tm, int64_t *seconds)
{
	time_t summer, winter;
	int is_summer = local_try(tm, 1, &summer);
	int is_winter = local_try(tm, 0, &winter);

	if (!is_summer && !is_winter)
		return refuse(scan, "a time that is not skipped here when clocks are put forward; or give an offset");
	*seconds = is_summer && (!is_winter || summer < winter) ? summer : winter;
	return 0;
}

static int finish(const struct calendar_scan *scan, int64_t seconds, uint32_t ns, uint64_t *time)
{
	if (seconds < 0)
		return refuse(scan, "a time after 1970-01-01 00:00 UTC");
	*time = (uint64_t)seconds * DURATION_SECOND + ns;
	return 0;
}

static int parse_unix(struct calendar_scan *scan, uint64_t *ns)
{
	struct moment moment;

	scan->at++;
	if (moment_parse(scan->at, strlen(scan->at), &moment) != NUMBER_OK ||
	    moment.seconds >= DURATION_TIME_MAX / DURATION_SECOND)
		return refuse(scan, "Unix seconds, such as @1796115600");
	*ns = moment.seconds * DURATION_SECOND + moment.ns;
	return 0;
}

int time_parse(const char *text, uint64_t *ns, struct duration_problem *problem)
{
	struct calendar_scan scan = {text, text, problem};
	struct tm tm = {0};
	uint32_t fraction = 0;
	int64_t seconds = 0;
	int offset;
	int zone;

	if (*text == '@')
		return parse_unix(&scan, ns);
	if (take_date(&scan, &tm))
		return -1;
	if (*scan.at == ' ' || *scan.at == 'T' || *scan.at == 't') {
		scan.at++;
		if (take_clock(&scan, &tm, &fraction))
			return -1;
		/* date(1) writes "09:00 +02:00". */
		if (*scan.at == ' ' && scan.at[1])
			scan.at++;
	}
	zone = take_offset(&scan, &offset);
	if (zone < 0)
		return -1;
	if (zone == 0 && local_seconds(&scan, &tm, &seconds))
		return -1;
	if (zone == 1)
		seconds = (int64_t)timegm(&tm) - offset;
	return finish(&scan, seconds, fraction, ns);
}

int time_parse_from(const char *text, uint64_t now, uint64_t *ns, struct duration_problem *problem)
{
	uint64_t delay;

	if (*text == '@' || strpbrk(text, "-:"))
		return time_parse(text, ns, problem);
	if (duration_parse(text, &delay, problem)) {
		if (problem->at == 0)
			snprintf(problem->expected, sizeof problem->expected,
			    "a time such as '2026-12-01 09:00', or one from now such as 90 or 1.5h");
		return -1;
	}
	*ns = now + delay;
	return 0;
}

const char *time_format(char *text, uint64_t ns)
{
	time_t seconds = (time_t)(ns / DURATION_SECOND);
	struct tm tm;

	if (!localtime_r(&seconds, &tm) || !strftime(text, DURATION_TEXT, "%Y-%m-%d %H:%M:%S", &tm))
		snprintf(text, DURATION_TEXT, "@%lld", (long long)seconds);
	return text;
}

const char *time_format_zone(char *text, uint64_t ns)
{
	time_t seconds = (time_t)(ns / DURATION_SECOND);
	struct tm tm;
	size_t length;

	time_format(text, ns);
	length = strlen(text);
	if (localtime_r(&seconds, &tm))
		snprintf(text + length, DURATION_TEXT - length, "%c%02ld:%02ld", tm.tm_gmtoff < 0 ? '-' : '+',
		    labs(tm.tm_gmtoff) / 3600, labs(tm.tm_gmtoff) / 60 % 60);
	return text;
}

uint64_t wall_now(void)
{
	return time_now(CLOCK_REALTIME);
}
