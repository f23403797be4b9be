/* Reads, adds and writes exact decimal times, without floating point, which would lose nanoseconds. */
#include "tools/common/moment.h"

#include <inttypes.h>
#include <stdio.h>

#include "tools/common/number.h"
#include "weekwheel/wheel.h"

enum { NS_DIGITS = 9 };
static const uint32_t NS_PER_SECOND = 1000000000;

enum number moment_parse(const char *text, size_t size, struct moment *moment)
{
	int negative = size > 0 && *text == '-';
	const char *at = text + negative;
	const char *end = text + size;
	struct moment value = {0, 0};
	int large = number_digits(&at, end, WW_TIME_MAX, &value.seconds);
	ptrdiff_t digits = at - text - negative;

	if (at < end && *at == '.') {
		const char *point = at++;
		int more = number_fraction(&at, end, &value.ns);

		value.ns += (uint32_t)more;
		digits += at - point - 1;
	}
	if (at != end || digits == 0)
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

int moment_add(struct moment a, struct moment b, struct moment *sum)
{
	uint32_t ns = a.ns + b.ns;
	uint64_t seconds = a.seconds + b.seconds + ns / NS_PER_SECOND;

	ns %= NS_PER_SECOND;
	/* The deadline is rounded up to a tick, which must be a time of the wheel, too. */
	if (seconds + (ns > 0) > WW_TIME_MAX)
		return -1;
	sum->seconds = seconds;
	sum->ns = ns;
	return 0;
}

struct moment moment_subtract(struct moment a, struct moment b)
{
	uint32_t borrow = a.ns < b.ns;

	return (struct moment){a.seconds - b.seconds - borrow, a.ns + borrow * NS_PER_SECOND - b.ns};
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
