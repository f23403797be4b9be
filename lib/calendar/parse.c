/* Reads expressions of cron and intervals. Each refusal names the place and what to write there. */
#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "lib/calendar/calendar_internal.h"

/* A field's name, its values, and what it may have beside them. */
static const struct field {
	const char *name;
	int least, most;
	const char *const *names; /* of the values from `least` on */
	int is_day, is_weekday;
} fields[] = {
    {"second", 0, 59, NULL, 0, 0},
    {"minute", 0, 59, NULL, 0, 0},
    {"hour", 0, 23, NULL, 0, 0},
    {"day of the month", 1, 31, NULL, 1, 0},
    {"month", 1, 12,
        (const char *const[]){"jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec", NULL},
        0, 0},
    {"day of the week", 0, 7, (const char *const[]){"sun", "mon", "tue", "wed", "thu", "fri", "sat", NULL}, 0, 1},
};

enum { SECOND, MINUTE, HOUR, DAY, MONTH, WEEKDAY, FIELDS };

struct parse {
	const char *text, *at;
	struct expression *expression;
	const struct field *field;
	struct ww_calendar_problem *problem;
};

__attribute__((format(printf, 3, 4))) static int refuse(
    const struct parse *parse, const char *at, const char *format, ...)
{
	va_list arguments;

	parse->problem->at = (size_t)(at - parse->text);
	va_start(arguments, format);
	vsnprintf(parse->problem->reason, sizeof parse->problem->reason, format, arguments);
	va_end(arguments);
	return WW_EINVAL;
}

static int is_blank(char c)
{
	return c == ' ' || c == '\t';
}

static void skip_blanks(struct parse *parse)
{
	while (is_blank(*parse->at))
		parse->at++;
}

/* The word at `at`, without letters and digits behind it. */
static int word_length(const char *at)
{
	int length = 0;

	while (isalnum((unsigned char)at[length]) && length < 20)
		length++;
	return length;
}

static int refuse_value(const struct parse *parse, const char *at)
{
	const struct field *field = parse->field;
	int length = word_length(at);

	if (length == 0 && (*at == 0 || is_blank(*at)))
		return refuse(
		    parse, at, "a %s is missing: expected %d to %d or *", field->name, field->least, field->most);
	return refuse(parse, at, "'%.*s' is not a valid %s: expected %d to %d%s", length ? length : 1, at, field->name,
	    field->least, field->most,
	    field->is_weekday ? " or sun to sat"
	    : field->names    ? " or jan to dec"
	                      : " or *");
}

/* Take digits. Return the number, or -1 without any or for one above 99999. */
static int take_digits(struct parse *parse)
{
	int number = -1;

	while (isdigit((unsigned char)*parse->at)) {
		number = (number < 0 ? 0 : number) * 10 + (*parse->at++ - '0');
		if (number > 99999)
			return -1;
	}
	return number;
}

/* Whether there is an L behind a day of the week, which makes it the last of the month. */
static int is_last(const struct field *field, const char *at)
{
	return field->is_weekday && (*at == 'L' || *at == 'l');
}

static int take_value(struct parse *parse, int *value)
{
	const struct field *field = parse->field;
	const char *at = parse->at;

	for (int i = 0; field->names && field->names[i]; i++)
		if (strncasecmp(at, field->names[i], 3) == 0 &&
		    !isalpha((unsigned char)at[3 + is_last(field, at + 3)])) {
			parse->at += 3;
			*value = field->least + i;
			return WW_OK;
		}
	*value = take_digits(parse);
	if (*value < field->least || *value > field->most)
		return refuse_value(parse, at);
	return WW_OK;
}

/* Take "/n", if it is there. */
static int take_step(struct parse *parse, int *step)
{
	const char *at = parse->at;

	*step = 1;
	if (*at != '/')
		return WW_OK;
	parse->at++;
	*step = take_digits(parse);
	if (*step < 1 || *step > parse->field->most)
		return refuse(parse, at + 1,
		    "a step is missing or out of range: expected 1 to %d behind the /, such as */5",
		    parse->field->most);
	return WW_OK;
}

/* Put the values of a part into the field's set. */
static void add(const struct parse *parse, int first, int last, int step)
{
	struct expression *expression = parse->expression;

	for (int value = first; value <= last; value += step)
		switch (parse->field - fields) {
		case SECOND:
			expression->seconds |= UINT64_C(1) << value;
			break;
		case MINUTE:
			expression->minutes |= UINT64_C(1) << value;
			break;
		case HOUR:
			expression->hours |= UINT64_C(1) << value;
			break;
		case DAY:
			expression->days |= UINT32_C(1) << value;
			break;
		case MONTH:
			expression->months |= UINT32_C(1) << value;
			break;
		default:
			expression->weekdays |= (uint8_t)(1 << value % 7);
			break;
		}
}

/* Take L or L-3, which begin at the end of a month. */
static int take_last(struct parse *parse)
{
	const char *at = parse->at++;
	int back = 0;

	if (*parse->at == '-') {
		parse->at++;
		back = take_digits(parse);
		if (back < 1 || back > 30)
			return refuse(
			    parse, at + 2, "expected 1 to 30 days before the last day of the month, such as L-3");
	}
	if (isalnum((unsigned char)*parse->at))
		return refuse(
		    parse, parse->at, "behind L nothing is expected but -3: the third day before the last one");
	parse->expression->lasts |= UINT32_C(1) << back;
	return WW_OK;
}

/* Take what may follow one day of the week: #2 or L. Return 1, 0 if neither is there, or an error. */
static int take_nth(struct parse *parse, int weekday)
{
	int nth;

	if (is_last(parse->field, parse->at)) {
		parse->at++;
		parse->expression->nth_last |= (uint8_t)(1 << weekday % 7);
		return 1;
	}
	if (*parse->at != '#')
		return 0;
	parse->at++;
	nth = take_digits(parse);
	if (nth < 1 || nth > 5)
		return refuse(parse, parse->at - (nth >= 0),
		    "expected 1 to 5 behind the #, or L for the last, such as fri#2 or friL");
	parse->expression->nth[nth - 1] |= (uint8_t)(1 << weekday % 7);
	return 1;
}

static int take_part(struct parse *parse)
{
	const struct field *field = parse->field;
	const char *at = parse->at;
	int first = field->least, last = field->is_weekday ? 6 : field->most, step, error;

	if (field->is_day && (*at == 'L' || *at == 'l'))
		return take_last(parse);
	if (*at == '*' || (*at == '?' && (field->is_day || field->is_weekday))) {
		parse->at++;
	} else {
		error = take_value(parse, &first);
		if (error)
			return error;
		error = field->is_weekday ? take_nth(parse, first) : 0;
		if (error)
			return error < 0 ? error : WW_OK;
		if (*parse->at == '-') {
			parse->at++;
			error = take_value(parse, &last);
			if (error)
				return error;
			/* Saturday and Sunday are 6-7 and sat-sun. */
			if (field->is_weekday && last == 0 && first > 0)
				last = 7;
			if (last < first)
				return refuse(parse, at,
				    "the range ends before it begins: write it as two, %d-%d,%d-%d", first,
				    field->is_weekday ? 6 : field->most, field->least, last);
		} else if (*parse->at != '/') {
			last = first;
		} else if (first > last) {
			first = 0; /* Sunday as 7 */
		}
	}
	error = take_step(parse, &step);
	if (!error)
		add(parse, first, last, step);
	return error;
}

static int take_field(struct parse *parse, const struct field *field)
{
	struct expression *expression = parse->expression;
	int is_any = *parse->at == '*' || *parse->at == '?';
	int error;

	parse->field = field;
	expression->is_any_hour |= (uint8_t)(is_any && field - fields == HOUR);
	expression->is_any_day |= (uint8_t)(is_any && field->is_day);
	expression->is_any_weekday |= (uint8_t)(is_any && field->is_weekday);
	for (;;) {
		error = take_part(parse);
		if (error)
			return error;
		if (*parse->at != ',')
			break;
		parse->at++;
	}
	if (*parse->at == 0 || is_blank(*parse->at))
		return WW_OK;
	if (*parse->at == 'W' || *parse->at == 'w')
		return refuse(parse, parse->at, "W, the nearest working day, is not known: name the days");
	return refuse(parse, parse->at, "expected a comma, a blank, - or / behind this value of the %s", field->name);
}

static int count_fields(const char *text)
{
	int count = 0;

	for (; *text; text++)
		count += !is_blank(*text) && (text[1] == 0 || is_blank(text[1]));
	return count;
}

static int take_fields(struct parse *parse)
{
	int count = count_fields(parse->at);
	int error;

	if (count != 5 && count != 6)
		return refuse(parse, parse->at,
		    "%d field%s: expected 5 (minute, hour, day of the month, month, day of the week), or 6 with the second "
		    "before them",
		    count, count == 1 ? "" : "s");
	parse->expression->has_seconds = count == 6;
	if (count == 5)
		parse->expression->seconds = 1;
	for (int i = FIELDS - count; i < FIELDS; i++) {
		skip_blanks(parse);
		error = take_field(parse, &fields[i]);
		if (error)
			return error;
	}
	return WW_OK;
}

/* Take "@every 1h30m". */
static int take_period(struct parse *parse, uint64_t *period)
{
	static const struct {
		char name;
		uint64_t seconds;
	} units[] = {{'d', 86400}, {'h', 3600}, {'m', 60}, {'s', 1}};
	static const char *const form =
	    "expected a length of time such as 90m, 1h30m or 1d, at least 1s and at most 3650d";
	uint64_t seconds = 0;
	size_t unit = 0;

	skip_blanks(parse);
	do {
		const char *at = parse->at;
		int number = take_digits(parse);

		while (unit < 4 && units[unit].name != *parse->at)
			unit++;
		if (number < 0 || unit == 4)
			return refuse(parse, at, "%s", form);
		seconds += (uint64_t)number * units[unit++].seconds;
		parse->at++;
	} while (*parse->at && !is_blank(*parse->at));
	skip_blanks(parse);
	if (*parse->at || seconds == 0 || seconds > UINT64_C(3650) * 86400)
		return refuse(parse, parse->at, "%s", form);
	*period = seconds * CALENDAR_SECOND;
	return WW_OK;
}

static int take_name(struct parse *parse, uint64_t *period)
{
	static const char *const names[][2] = {{"@hourly", "0 * * * *"}, {"@daily", "0 0 * * *"},
	    {"@midnight", "0 0 * * *"}, {"@weekly", "0 0 * * 0"}, {"@monthly", "0 0 1 * *"}, {"@yearly", "0 0 1 1 *"},
	    {"@annually", "0 0 1 1 *"}};
	size_t length = strcspn(parse->at, " \t");
	const char *rest = parse->at + length;

	if (length == 6 && strncasecmp(parse->at, "@every", length) == 0) {
		parse->at = rest;
		return take_period(parse, period);
	}
	for (size_t i = 0; i < sizeof names / sizeof *names; i++)
		if (strlen(names[i][0]) == length && strncasecmp(parse->at, names[i][0], length) == 0) {
			struct parse of_name = *parse;

			parse->at = rest;
			skip_blanks(parse);
			if (*parse->at)
				return refuse(parse, parse->at, "nothing is expected behind %s", names[i][0]);
			of_name.at = names[i][1];
			return take_fields(&of_name);
		}
	if (strncasecmp(parse->at, "@reboot", 7) == 0)
		return refuse(parse, parse->at, "@reboot is not a time; use a systemd unit that starts at boot");
	return refuse(parse, parse->at,
	    "expected @hourly, @daily, @midnight, @weekly, @monthly, @yearly, @annually, or @every 90m");
}

static const char *field_at(const char *text, int field)
{
	while (is_blank(*text))
		text++;
	for (; field; field--) {
		text += strcspn(text, " \t");
		text += strspn(text, " \t");
	}
	return text;
}

int ww_calendar_parse(
    const char *text, struct expression *expression, uint64_t *period, struct ww_calendar_problem *problem)
{
	struct parse parse = {text, text, expression, fields, problem};
	int error;

	if (strlen(text) > WW_CALENDAR_MAX)
		return refuse(&parse, text + WW_CALENDAR_MAX, "expected at most %d bytes", WW_CALENDAR_MAX);
	skip_blanks(&parse);
	if (*parse.at == 0)
		return refuse(
		    &parse, parse.at, "the expression is empty: expected one such as '0 3 * * *', or @every 90m");
	error = *parse.at == '@' ? take_name(&parse, period) : take_fields(&parse);
	if (error || *period)
		return error;
	/* From 2000 on each kind of year comes within 28 years. */
	if (ww_calendar_match(expression, INT64_C(946684800)) == CALENDAR_NONE)
		return refuse(&parse, field_at(text, expression->has_seconds ? DAY : DAY - 1),
		    "no month that is chosen has such a day: February ends with 29, April, June, September and November with 30");
	return WW_OK;
}
