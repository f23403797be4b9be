/* The next time of a calendar: matching local times are found field by field, and then get their moments in the zone. */
#include "lib/calendar/calendar_internal.h"

/* No combination of a day and a day of the week takes longer, 2100 without its leap day included. */
#define YEARS_MAX 45

struct date {
	int64_t year;
	int month, day; /* from 1 */
};

/* Days from 1970 to a date, and back; years begin in March, so that leap days end them. */
static int64_t date_days(struct date date)
{
	int64_t year = date.year - (date.month <= 2);
	int64_t era = year / 400;
	int64_t of_era = year - era * 400;
	int64_t of_year = (153 * (date.month + (date.month > 2 ? -3 : 9)) + 2) / 5 + date.day - 1;

	return era * 146097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719468;
}

static struct date date_of(int64_t days)
{
	int64_t since = days + 719468;
	int64_t era = since / 146097;
	int64_t day = since - era * 146097;
	int64_t year = (day - day / 1460 + day / 36524 - day / 146096) / 365;
	int64_t of_year = day - (365 * year + year / 4 - year / 100);
	int month = (int)((5 * of_year + 2) / 153);
	struct date date = {year + era * 400 + (month >= 10), month < 10 ? month + 3 : month - 9,
	    (int)(of_year - (153 * month + 2) / 5 + 1)};

	return date;
}

static int month_length(int64_t year, int month)
{
	static const int lengths[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};

	return lengths[month - 1] + (month == 2 && year % 4 == 0 && (year % 100 != 0 || year % 400 == 0));
}

/* Return the days of a month that match, bit n for the nth. */
static uint32_t month_days(const struct expression *expression, int64_t year, int month)
{
	int length = month_length(year, month);
	/* 1970-01-01 was a Thursday, and the zones west of it began in the year before. */
	int weekday = (int)((date_days((struct date){year, month, 1}) % 7 + 7 + 4) % 7);
	uint32_t by_day = expression->days;
	uint32_t by_weekday = 0;

	for (int back = 0; back < length; back++)
		if (expression->lasts >> back & 1)
			by_day |= UINT32_C(1) << (length - back);
	for (int day = 1; day <= length; day++, weekday = (weekday + 1) % 7)
		if ((expression->weekdays | expression->nth[(day - 1) / 7] |
		        (day + 7 > length ? expression->nth_last : 0)) >>
		        weekday &
		    1)
			by_weekday |= UINT32_C(1) << day;
	by_day &= (UINT32_C(2) << length) - 2;
	return expression->is_any_day || expression->is_any_weekday ? by_day & by_weekday : by_day | by_weekday;
}

/* Return the least bit of the set from n on, or -1. */
static int next_bit(uint64_t set, int n)
{
	set = n > 63 ? 0 : set >> n << n;
	return set ? __builtin_ctzll(set) : -1;
}

/* Return the number of the first matching day from `days` on, or CALENDAR_NONE. */
static int64_t match_day(const struct expression *expression, int64_t days)
{
	struct date date = date_of(days);
	int64_t last = date.year + YEARS_MAX;

	while (date.year <= last) {
		int month = next_bit(expression->months, date.month);
		int day;

		if (month < 0) {
			date = (struct date){date.year + 1, 1, 1};
			continue;
		}
		if (month != date.month)
			date = (struct date){date.year, month, 1};
		day = next_bit(month_days(expression, date.year, month), date.day);
		if (day > 0)
			return date_days((struct date){date.year, month, day});
		date = (struct date){date.year, month + 1, 1};
	}
	return CALENDAR_NONE;
}

/* Return the first matching second of a day from `second` on, or -1. */
static int64_t match_second(const struct expression *expression, int64_t second)
{
	int hour = next_bit(expression->hours, (int)(second / 3600));
	int minute, of_minute;

	if (hour < 0)
		return -1;
	if (hour == second / 3600) {
		minute = next_bit(expression->minutes, (int)(second / 60 % 60));
		if (minute >= 0 && minute == second / 60 % 60) {
			of_minute = next_bit(expression->seconds, (int)(second % 60));
			if (of_minute >= 0)
				return hour * 3600 + minute * 60 + of_minute;
			minute = next_bit(expression->minutes, minute + 1);
		}
		if (minute >= 0)
			return hour * 3600 + minute * 60 + next_bit(expression->seconds, 0);
		hour = next_bit(expression->hours, hour + 1);
	}
	return hour < 0 ? -1 : hour * 3600 + next_bit(expression->minutes, 0) * 60 + next_bit(expression->seconds, 0);
}

int64_t ww_calendar_match(const struct expression *expression, int64_t local)
{
	int64_t days = local / CALENDAR_DAY - (local % CALENDAR_DAY < 0);
	int64_t day = match_day(expression, days);
	int64_t second;

	if (day == days) {
		second = match_second(expression, local - days * CALENDAR_DAY);
		if (second >= 0)
			return day * CALENDAR_DAY + second;
		day = match_day(expression, days + 1);
	}
	return day == CALENDAR_NONE ? CALENDAR_NONE : day * CALENDAR_DAY + match_second(expression, 0);
}

/* Each occurrence of a matching local time, from one change of the offset to the next. */
static int64_t next_elapsed(const struct ww_calendar *calendar, int64_t from)
{
	int64_t index;

	for (;;) {
		int64_t offset = ww_calendar_zone_at(&calendar->zone, from, &index);
		int64_t local = ww_calendar_match(&calendar->expression, from + offset);
		int64_t change;

		if (local == CALENDAR_NONE)
			return local;
		change = ww_calendar_zone_change(&calendar->zone, from, local - offset + 1);
		if (change > local - offset)
			return local - offset;
		from = change;
	}
}

/*
 * Each matching local time once. Their moments never decrease. Those before the second pass through an hour that comes
 * twice were in the first.
 */
static int64_t next_local(const struct ww_calendar *calendar, int64_t after)
{
	int64_t index;
	int64_t local = after + ww_calendar_zone_at(&calendar->zone, after, &index) + 1;

	for (;;) {
		int64_t time;

		local = ww_calendar_match(&calendar->expression, local);
		if (local == CALENDAR_NONE)
			return local;
		time = ww_calendar_zone_time(&calendar->zone, local);
		if (time > after)
			return time;
		/* The first pass ends with the next change; what it shows then comes once. */
		local = ww_calendar_zone_change(&calendar->zone, time, after) +
		        ww_calendar_zone_at(&calendar->zone, time, &index);
	}
}

static int next_period(const struct ww_calendar *calendar, uint64_t after, uint64_t *time)
{
	uint64_t period = calendar->period;
	uint64_t phase = calendar->anchor % period;
	uint64_t past = after < phase ? 0 : (after - phase) / period + 1;

	/* Both are at most WW_CALENDAR_LAST, which leaves room for their sum. */
	if (past * period + phase > WW_CALENDAR_LAST)
		return WW_EOVERFLOW;
	*time = past * period + phase;
	return WW_OK;
}

int ww_calendar_next(const struct ww_calendar *calendar, uint64_t after, uint64_t *time)
{
	int64_t seconds;
	int64_t found;

	if (!calendar || !time)
		return WW_EINVAL;
	if (after > WW_CALENDAR_LAST)
		return WW_EOVERFLOW;
	if (calendar->period)
		return next_period(calendar, after, time);
	seconds = (int64_t)(after / CALENDAR_SECOND);
	found = calendar->expression.is_any_hour ? next_elapsed(calendar, seconds + 1) : next_local(calendar, seconds);
	if (found < 0 || (uint64_t)found > WW_CALENDAR_LAST / CALENDAR_SECOND)
		return WW_EOVERFLOW;
	*time = (uint64_t)found * CALENDAR_SECOND;
	return WW_OK;
}
