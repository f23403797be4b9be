/* Points of time: local, with a zone's offset, and Unix time. */
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "tools/weekwheel/input/moment.h"
#include "tools/weekwheel/jobs/duration.h"

/* A text that is being read, and what became of it. */
struct scan {
	const char *text;
	const char *at;
	struct duration_problem *problem;
};

static int refuse(const struct scan *scan, const char *expected)
{
	scan->problem->at = (size_t)(scan->at - scan->text);
	snprintf(scan->problem->expected, sizeof scan->problem->expected, "%s", expected);
	return -1;
}

/* Read exactly `digits` digits, a number from least to most. */
static int take_number(struct scan *scan, int digits, int least, int most, int *number, const char *expected)
{
	int value = 0;
	int i;

	for (i = 0; i < digits; i++) {
		if (scan->at[i] < '0' || scan->at[i] > '9')
			return refuse(scan, expected);
		value = value * 10 + (scan->at[i] - '0');
	}
	if (value < least || value > most)
		return refuse(scan, expected);
	scan->at += digits;
	*number = value;
	return 0;
}

static int take_char(struct scan *scan, char c, const char *expected)
{
	if (*scan->at != c)
		return refuse(scan, expected);
	scan->at++;
	return 0;
}

static int days_of_month(int year, int month)
{
	static const int days[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
	int leap = (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;

	return days[month - 1] + (month == 2 && leap);
}

static int take_date(struct scan *scan, struct tm *tm)
{
	static const char *const form = "a date such as 2026-12-01, or @ and Unix seconds";
	int day;

	/* DURATION_TIME_MAX comes soon after that. */
	if (take_number(
	        scan, 4, 1970, 2115, &tm->tm_year, "a date with a year from 1970 to 2115, such as 2026-12-01") ||
	    take_char(scan, '-', form) || take_number(scan, 2, 1, 12, &tm->tm_mon, "a month from 01 to 12") ||
	    take_char(scan, '-', form))
		return -1;
	day = days_of_month(tm->tm_year, tm->tm_mon);
	if (take_number(scan, 2, 1, day, &tm->tm_mday, "a day that this month has, such as 01"))
		return -1;
	tm->tm_year -= 1900;
	tm->tm_mon -= 1;
	return 0;
}

static int take_fraction(struct scan *scan, uint64_t *ns)
{
	uint64_t unit = DURATION_SECOND / 10;

	if (*scan->at != '.')
		return 0;
	scan->at++;
	if (*scan->at < '0' || *scan->at > '9')
		return refuse(scan, "digits after the point");
	for (; *scan->at >= '0' && *scan->at <= '9'; scan->at++, unit /= 10) {
		if (!unit)
			return refuse(scan, "at most 9 digits after the point");
		*ns += (uint64_t)(*scan->at - '0') * unit;
	}
	return 0;
}

static int take_clock(struct scan *scan, struct tm *tm, uint64_t *ns)
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

/*
 * Days from 1970-01-01 to a date (H. Hinnant, "chrono-compatible low-level date algorithms"); timegm is not in POSIX.
 */
static int64_t days_from_civil(int year, int month, int day)
{
	int64_t y = year - (month <= 2);
	int64_t era = y / 400;
	int64_t of_era = y - era * 400;
	int64_t of_year = (153 * (month + (month > 2 ? -3 : 9)) + 2) / 5 + day - 1;

	return era * 146097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719468;
}

static int64_t seconds_utc(const struct tm *tm)
{
	int64_t days = days_from_civil(tm->tm_year + 1900, tm->tm_mon + 1, tm->tm_mday);

	return days * 86400 + tm->tm_hour * 3600 + tm->tm_min * 60 + tm->tm_sec;
}

/*
 * "Z", "+02:00", "+0200" or "+02": Store how far the zone is ahead of UTC, in seconds, and return 1; 0: there is none.
 */
static int take_offset(struct scan *scan, int *offset)
{
	static const char *const form = "an offset such as +02:00 or Z, or nothing more";
	int hours;
	int minutes = 0;
	int west = *scan->at == '-';

	*offset = 0;
	if (*scan->at == 0)
		return 0;
	if (*scan->at == 'Z') {
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

/* mktime, if what it says is the time that was asked for, and not one that it made of it. */
static int local_try(const struct tm *wanted, int summer, time_t *seconds)
{
	struct tm tm = *wanted;

	tm.tm_isdst = summer;
	*seconds = mktime(&tm);
	return tm.tm_mday == wanted->tm_mday && tm.tm_hour == wanted->tm_hour && tm.tm_min == wanted->tm_min &&
	       tm.tm_sec == wanted->tm_sec;
}

static int local_seconds(const struct scan *scan, const struct tm *tm, int64_t *seconds)
{
	time_t summer, winter;
	int is_summer = local_try(tm, 1, &summer);
	int is_winter = local_try(tm, 0, &winter);

	if (!is_summer && !is_winter)
		return refuse(scan, "a time that is not skipped here when clocks are put forward; or give an offset");
	*seconds = is_summer && (!is_winter || summer < winter) ? summer : winter;
	return 0;
}

static int finish(const struct scan *scan, int64_t seconds, uint64_t ns, uint64_t *time)
{
	if (seconds < 0)
		return refuse(scan, "a time after 1970-01-01 00:00 UTC");
	*time = (uint64_t)seconds * DURATION_SECOND + ns;
	return 0;
}

static int parse_unix(struct scan *scan, uint64_t *ns)
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
	struct scan scan = {text, text, problem};
	struct tm tm = {0};
	uint64_t fraction = 0;
	int64_t seconds = 0;
	int offset;
	int zone;

	if (*text == '@')
		return parse_unix(&scan, ns);
	if (take_date(&scan, &tm))
		return -1;
	if (*scan.at == ' ' || *scan.at == 'T') {
		scan.at++;
		if (take_clock(&scan, &tm, &fraction))
			return -1;
		/* "09:00 +02:00", as date(1) writes it. */
		if (*scan.at == ' ' && scan.at[1])
			scan.at++;
	}
	zone = take_offset(&scan, &offset);
	if (zone < 0)
		return -1;
	if (zone == 0 && local_seconds(&scan, &tm, &seconds))
		return -1;
	if (zone == 1)
		seconds = seconds_utc(&tm) - offset;
	return finish(&scan, seconds, fraction, ns);
}

int time_parse_from(const char *text, uint64_t now, uint64_t *ns, struct duration_problem *problem)
{
	uint64_t delay;

	if (*text == '@' || strpbrk(text, "-:"))
		return time_parse(text, ns, problem);
	if (duration_parse(text, &delay, problem))
		return -1;
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

uint64_t time_now(void)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	return (uint64_t)now.tv_sec * DURATION_SECOND + (uint64_t)now.tv_nsec;
}
