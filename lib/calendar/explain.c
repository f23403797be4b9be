/* Calendars in words. */
#include <stdarg.h>
#include <stdio.h>

#include "lib/calendar/calendar_internal.h"

/* Beyond this many times of day their fields are described one by one. */
#define TIMES_MAX 6

struct text {
	char *to;
	size_t room, length;
};

__attribute__((format(printf, 2, 3))) static void add(struct text *text, const char *format, ...)
{
	va_list arguments;
	int length;

	va_start(arguments, format);
	length = vsnprintf(text->to + text->length, text->room - text->length, format, arguments);
	va_end(arguments);
	text->length += length > 0 ? (size_t)length : 0;
	if (text->length >= text->room)
		text->length = text->room - 1;
}

typedef void show_fn(struct text *text, int value);

static void show_number(struct text *text, int value)
{
	add(text, "%d", value);
}

static void show_month(struct text *text, int value)
{
	static const char *const names[] = {"January", "February", "March", "April", "May", "June", "July", "August",
	    "September", "October", "November", "December"};

	add(text, "%s", names[value - 1]);
}

static void show_weekday(struct text *text, int value)
{
	static const char *const names[] = {
	    "Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"};

	add(text, "%s", names[value]);
}

static int count(uint64_t set)
{
	return __builtin_popcountll(set);
}

static int has(uint64_t set, int value)
{
	return value < 64 && set >> value & 1;
}

/* What stands before the next of several things: nothing, a comma or "and". */
static void join(struct text *text, int *joined, int is_last)
{
	if ((*joined)++)
		add(text, is_last ? " and " : ", ");
}

/* "1, 5 and 9 to 12": three neighbours or more become a range. */
static void add_set(struct text *text, uint64_t set, show_fn *show)
{
	int joined = 0;

	for (int value = 0; value < 64; value++) {
		int last = value;

		if (!has(set, value))
			continue;
		while (has(set, last + 1))
			last++;
		if (last < value + 2)
			last = value;
		join(text, &joined, last == 63 || set >> (last + 1) == 0);
		show(text, value);
		if (last > value) {
			add(text, " to ");
			show(text, last);
		}
		value = last;
	}
}

/* Return n if the set is every nth value from 0 on below `most`, and comes out even or has three of them; or 0. */
static int step_of(uint64_t set, int most)
{
	for (int step = 1; step <= most / 2; step++) {
		uint64_t wanted = 0;

		for (int value = 0; value < most; value += step)
			wanted |= UINT64_C(1) << value;
		if (set == wanted)
			return step;
	}
	return 0;
}

/* "every minute", "every 15 minutes", "at minute 5 and 20". A step that does not divide is written as it is. */
static void add_field(struct text *text, uint64_t set, int most, const char *unit)
{
	int step = step_of(set, most);

	if (step == 1) {
		add(text, "every %s", unit);
	} else if (step && most % step == 0) {
		add(text, "every %d %ss", step, unit);
	} else {
		add(text, "at %s%s ", unit, count(set) > 1 ? "s" : "");
		add_set(text, set, show_number);
	}
}

static void add_times(struct text *text, const struct expression *expression)
{
	int left = count(expression->hours) * count(expression->minutes) * count(expression->seconds);
	int joined = 0;

	add(text, "at ");
	for (int time = 0; time < 86400; time++) {
		if (!has(expression->hours, time / 3600) || !has(expression->minutes, time / 60 % 60) ||
		    !has(expression->seconds, time % 60))
			continue;
		join(text, &joined, --left == 0);
		add(text, "%02d:%02d", time / 3600, time / 60 % 60);
		if (expression->seconds != 1)
			add(text, ":%02d", time % 60);
	}
}

/* Seconds, minutes and hours, as far as they say something: "every 5 minutes, in the hours 9 to 17". */
static void add_clock(struct text *text, const struct expression *expression)
{
	int joined = 0;

	if (expression->seconds != 1) {
		add_field(text, expression->seconds, 60, "second");
		joined = 1;
	}
	if (!joined || step_of(expression->minutes, 60) != 1) {
		if (!joined && expression->minutes == 1 && step_of(expression->hours, 24)) {
			int step = step_of(expression->hours, 24);

			if (step == 1)
				add(text, "every hour, on the hour");
			else if (24 % step == 0)
				add(text, "every %d hours, on the hour", step);
			else
				add_times(text, expression);
			return;
		}
		add(text, joined ? ", " : "");
		if (joined && step_of(expression->minutes, 60) > 1)
			add(text, "in ");
		add_field(text, expression->minutes, 60, "minute");
		if (step_of(expression->minutes, 60) == 0 && step_of(expression->hours, 24) == 1)
			add(text, " of every hour");
	}
	if (step_of(expression->hours, 24) == 1)
		return;
	add(text, ", in the hour%s ", count(expression->hours) > 1 ? "s" : "");
	add_set(text, expression->hours, show_number);
}

static void add_days(struct text *text, const struct expression *expression)
{
	int joined = 0;
	int parts = (expression->days != 0) + count(expression->lasts);

	if (expression->days) {
		join(text, &joined, --parts == 0);
		add(text, "on day%s ", count(expression->days) > 1 ? "s" : "");
		add_set(text, expression->days, show_number);
		add(text, " of the month");
	}
	for (int back = 0; back < 31; back++) {
		if (!has(expression->lasts, back))
			continue;
		join(text, &joined, --parts == 0);
		if (back == 0)
			add(text, "on the last day of the month");
		else
			add(text, "%d day%s before the last of the month", back, back > 1 ? "s" : "");
	}
}

static void add_weekdays(struct text *text, const struct expression *expression)
{
	static const char *const names[] = {"first", "second", "third", "fourth", "fifth", "last"};
	uint8_t sets[6];
	int parts = expression->weekdays != 0;
	int joined = 0;

	for (int i = 0; i < 6; i++) {
		sets[i] = i < 5 ? expression->nth[i] : expression->nth_last;
		parts += sets[i] != 0;
	}
	add(text, "on ");
	if (expression->weekdays) {
		join(text, &joined, --parts == 0);
		/* Saturday and Sunday, not Sunday and Saturday. */
		if (expression->weekdays == 0x41)
			add(text, "Saturday and Sunday");
		else
			add_set(text, expression->weekdays, show_weekday);
	}
	for (int i = 0; i < 6; i++) {
		if (!sets[i])
			continue;
		join(text, &joined, --parts == 0);
		add(text, "the %s ", names[i]);
		add_set(text, sets[i], show_weekday);
	}
	if (joined > (expression->weekdays != 0))
		add(text, " of the month");
}

static int is_every_weekday(const struct expression *expression)
{
	return expression->weekdays == 0x7f;
}

static int is_every_day(const struct expression *expression)
{
	return expression->days == 0xfffffffe;
}

/* Both fields of days, each for itself or as they limit each other. */
static void add_date(struct text *text, const struct expression *expression, int has_times)
{
	int day = !is_every_day(expression);
	int weekday = !is_every_weekday(expression);
	int is_both = expression->is_any_day || expression->is_any_weekday;

	/* Where either counts, one that has all values leaves nothing to the other. */
	if (!is_both && !(day && weekday))
		day = weekday = 0;
	if (!day && !weekday && has_times)
		add(text, " every day");
	if (day) {
		add(text, has_times ? " " : ", ");
		add_days(text, expression);
	}
	if (weekday) {
		add(text, !day ? has_times ? " " : ", " : is_both ? ", but only " : ", and ");
		add_weekdays(text, expression);
	}
	if (expression->months != 0x1ffe) {
		add(text, ", in ");
		add_set(text, expression->months, show_month);
	}
}

static void add_period(struct text *text, uint64_t period)
{
	static const struct {
		uint64_t seconds;
		const char *name;
	} units[] = {{86400, "day"}, {3600, "hour"}, {60, "minute"}, {1, "second"}};
	uint64_t left = period / CALENDAR_SECOND;

	add(text, "every");
	for (int i = 0; i < 4; i++) {
		uint64_t n = left / units[i].seconds;

		left %= units[i].seconds;
		if (n == 1 && units[i].seconds * CALENDAR_SECOND == period)
			add(text, " %s", units[i].name);
		else if (n)
			add(text, " %llu %s%s", (unsigned long long)n, units[i].name, n > 1 ? "s" : "");
	}
	add(text, ", by elapsed time");
}

int ww_calendar_explain(const struct ww_calendar *calendar, char *to, size_t size)
{
	const struct expression *expression;
	struct text text = {to, size, 0};
	int has_times;

	if (!calendar || !to || size == 0)
		return WW_EINVAL;
	expression = &calendar->expression;
	*to = 0;
	if (calendar->period) {
		add_period(&text, calendar->period);
		return WW_OK;
	}
	has_times = count(expression->hours) * count(expression->minutes) * count(expression->seconds) <= TIMES_MAX;
	if (has_times)
		add_times(&text, expression);
	else
		add_clock(&text, expression);
	add_date(&text, expression, has_times);
	add(&text, ", time of %s", calendar->zone_name);
	return WW_OK;
}
