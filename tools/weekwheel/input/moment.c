/* Exact decimal times: reading, adding and writing them without floating point, which would lose nanoseconds. */
#include "tools/weekwheel/input/moment.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "weekwheel/wheel.h"

enum { NS_DIGITS = 9 };
static const uint32_t NS_PER_SECOND = 1000000000;

static int is_digit(char c)
{
	return c >= '0' && c <= '9';
}

/* The digits before the point. Returns how many there are; *large is set where they name a time beyond the last. */
static size_t parse_whole(const char *text, size_t size, uint64_t *seconds, int *large)
{
	size_t i;

	*seconds = 0;
	*large = 0;
	for (i = 0; i < size && is_digit(text[i]); i++) {
		uint64_t digit = (uint64_t)(text[i] - '0');

		if (*seconds > (WW_TIME_MAX - digit) / 10)
			*large = 1;
		else
			*seconds = *seconds * 10 + digit;
	}
	return i;
}

/* The digits after the point. *ns can be a whole second after rounding. */
static size_t parse_fraction(const char *text, size_t size, uint32_t *ns)
{
	uint32_t unit = NS_PER_SECOND;
	uint32_t rounding = 0;
	size_t i;

	*ns = 0;
	for (i = 0; i < size && is_digit(text[i]); i++) {
		unit /= 10;
		if (unit)
			*ns += (uint32_t)(text[i] - '0') * unit;
		else if (text[i] != '0')
			rounding = 1;
	}
	*ns += rounding;
	return i;
}

enum number moment_parse(const char *text, size_t size, struct moment *moment)
{
	int negative = size > 0 && text[0] == '-';
	size_t at = (size_t)negative;
	size_t whole;
	size_t fraction = 0;
	struct moment value = {0, 0};
	int large;

	whole = parse_whole(text + at, size - at, &value.seconds, &large);
	at += whole;
	if (at < size && text[at] == '.') {
		at++;
		fraction = parse_fraction(text + at, size - at, &value.ns);
		at += fraction;
	}
	if (at != size || whole + fraction == 0)
		return NUMBER_INVALID;
	if (negative && (large || value.seconds > 0 || value.ns > 0))
		return NUMBER_NEGATIVE;
	if (value.ns == NS_PER_SECOND) {
		value.ns = 0;
		value.seconds++;
	}
	if (large || value.seconds > WW_TIME_MAX)
		return NUMBER_TOO_LARGE;
	*moment = value;
	return NUMBER_OK;
}

static uint64_t unit_seconds(char unit)
{
	switch (unit) {
	case 's':
		return 1;
	case 'm':
		return 60;
	case 'h':
		return 60 * 60;
	case 'd':
		return 24 * 60 * 60;
	case 'w':
		return 7 * 24 * 60 * 60;
	default:
		return 0;
	}
}

/* A product by repeated addition of moments would be slow; this one is exact and notices an overflow. */
static int moment_times(struct moment moment, uint64_t factor, struct moment *product)
{
	uint64_t ns = moment.ns * factor;
	struct moment rest = {ns / NS_PER_SECOND, (uint32_t)(ns % NS_PER_SECOND)};
	struct moment whole = {0, 0};

	if (moment.seconds > WW_TIME_MAX / factor)
		return -1;
	whole.seconds = moment.seconds * factor;
	return moment_add(whole, rest, product);
}

enum number moment_parse_duration(const char *text, struct moment *length)
{
	struct moment sum = {0, 0};
	enum number result;

	if (!*text)
		return NUMBER_INVALID;
	while (*text) {
		size_t digits = strspn(text, "-.0123456789");
		uint64_t factor = text[digits] ? unit_seconds(text[digits]) : 1;
		struct moment part = {0, 0};

		result = moment_parse(text, digits, &part);
		if (result != NUMBER_OK)
			return result;
		if (factor == 0)
			return NUMBER_INVALID;
		if (moment_times(part, factor, &part) || moment_add(sum, part, &sum))
			return NUMBER_TOO_LARGE;
		text += digits + (text[digits] != 0);
	}
	*length = sum;
	return NUMBER_OK;
}

int moment_add(struct moment a, struct moment b, struct moment *sum)
{
	uint32_t ns = a.ns + b.ns;
	uint64_t seconds = a.seconds + b.seconds + ns / NS_PER_SECOND;

	ns %= NS_PER_SECOND;
	/* The deadline is rounded up, and must still be a time then. */
	if (seconds + (ns > 0) > WW_TIME_MAX)
		return -1;
	sum->seconds = seconds;
	sum->ns = ns;
	return 0;
}

struct moment moment_subtract(struct moment a, struct moment b)
{
	struct moment difference;
	uint32_t borrow = a.ns < b.ns;

	difference.ns = a.ns + borrow * NS_PER_SECOND - b.ns;
	difference.seconds = a.seconds - b.seconds - borrow;
	return difference;
}

int moment_compare(struct moment a, struct moment b)
{
	if (a.seconds != b.seconds)
		return a.seconds < b.seconds ? -1 : 1;
	return (a.ns > b.ns) - (a.ns < b.ns);
}

int moment_is_zero(struct moment moment)
{
	return moment.seconds == 0 && moment.ns == 0;
}

const char *moment_format(char *text, struct moment moment)
{
	int length = snprintf(text, MOMENT_TEXT, "%" PRIu64 ".%0*" PRIu32, moment.seconds, NS_DIGITS, moment.ns);

	while (text[length - 1] == '0')
		length--;
	if (text[length - 1] == '.')
		length--;
	text[length] = 0;
	return text;
}

const char *moment_format_span(char *text, struct moment length)
{
	static const struct {
		uint64_t seconds;
		const char *name;
	} units[] = {{86400, "d"}, {3600, "h"}, {60, "min"}, {1, "s"}};
	const size_t last = sizeof units / sizeof *units - 1;
	uint64_t rest;
	size_t i = 0;

	while (i < last && length.seconds < units[i].seconds)
		i++;
	rest = i < last ? length.seconds % units[i].seconds / units[i + 1].seconds : 0;
	if (rest)
		snprintf(text, MOMENT_TEXT, "%" PRIu64 " %s %" PRIu64 " %s", length.seconds / units[i].seconds,
		    units[i].name, rest, units[i + 1].name);
	else
		snprintf(text, MOMENT_TEXT, "%" PRIu64 " %s", length.seconds / units[i].seconds, units[i].name);
	return text;
}
