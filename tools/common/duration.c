/* Reads and writes lengths of time. */
#include "tools/common/duration.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "tools/common/moment.h"

static const struct unit {
	const char *names; /* with a blank between two */
	uint64_t ns;
} units[] = {
    {"w week weeks", 7 * 86400 * DURATION_SECOND},
    {"d day days", 86400 * DURATION_SECOND},
    {"h hour hours", 3600 * DURATION_SECOND},
    {"m min minute minutes", 60 * DURATION_SECOND},
    {"s sec second seconds", DURATION_SECOND},
    {"ms", DURATION_SECOND / 1000},
    {"ns", 1},
};

enum { UNITS = sizeof units / sizeof *units };

static int refuse(struct duration_problem *problem, const char *from, const char *at, const char *expected)
{
	problem->at = (size_t)(at - from);
	snprintf(problem->expected, sizeof problem->expected, "%s", expected);
	return -1;
}

static int is_name_of(const struct unit *unit, const char *text, size_t length)
{
	for (const char *name = unit->names; *name; name += strspn(name, " ")) {
		size_t size = strcspn(name, " ");

		if (size == length && memcmp(name, text, length) == 0)
			return 1;
		name += size;
	}
	return 0;
}

/* Return the unit at the text, or UNITS. All letters count: "ms" is not minutes and an s. */
static size_t unit_at(const char *text, size_t *length)
{
	size_t i = 0;

	*length = strspn(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ");
	while (i < UNITS && !is_name_of(&units[i], text, *length))
		i++;
	return i;
}

/* Add number * unit to *sum, rounded up to ns. Return -1 beyond DURATION_MAX. */
static int add_product(struct moment number, uint64_t unit, uint64_t *sum)
{
	uint64_t fraction;
	uint64_t whole;

	if (number.seconds > DURATION_MAX / unit)
		return -1;
	whole = number.seconds * unit;
	/* The product of a week in ns and a fraction in ns does not fit into 64 bits. */
	fraction = unit / DURATION_SECOND * number.ns;
	fraction += (unit % DURATION_SECOND * number.ns + DURATION_SECOND - 1) / DURATION_SECOND;
	if (fraction > DURATION_MAX - whole || whole + fraction > DURATION_MAX - *sum)
		return -1;
	*sum += whole + fraction;
	return 0;
}

static int parse_number(
    const char *text, const char *at, size_t digits, struct moment *number, struct duration_problem *problem)
{
	switch (moment_parse(at, digits, number)) {
	case NUMBER_OK:
		return 0;
	case NUMBER_TOO_LARGE:
		return refuse(problem, text, at, "at most 136 years");
	default:
		return refuse(problem, text, at, "a number, such as 90 or 1.5");
	}
}

/* Read one number and its unit. Units before *next are used up. */
static int parse_part(const char *text, const char **at, size_t *next, uint64_t *sum, struct duration_problem *problem)
{
	size_t digits = strspn(*at, ".0123456789");
	const char *name = *at + digits + strspn(*at + digits, " ");
	struct moment number;
	size_t unit = 4, length = 0;

	if (parse_number(text, *at, digits, &number, problem))
		return -1;
	if (*name || *at != text) {
		unit = unit_at(name, &length);
		if (unit == UNITS)
			return refuse(problem, text, name, "a unit: w, d, h, m, s or ms");
		if (unit < *next)
			return refuse(
			    problem, text, name, "a smaller unit than the one before; they go w, d, h, m, s, ms");
	}
	if (add_product(number, units[unit].ns, sum))
		return refuse(problem, text, *at, "at most 136 years");
	*next = unit + 1;
	*at = name + length;
	*at += strspn(*at, " ");
	return 0;
}

int duration_parse(const char *text, uint64_t *ns, struct duration_problem *problem)
{
	const char *at = text;
	size_t next = 0;
	uint64_t sum = 0;

	do {
		if (parse_part(text, &at, &next, &sum, problem))
			return -1;
	} while (*at);
	*ns = sum;
	return 0;
}

const char *duration_seconds(char *text, uint64_t ns)
{
	return moment_format(text, (struct moment){ns / DURATION_SECOND, (uint32_t)(ns % DURATION_SECOND)});
}

const char *duration_format(char *text, uint64_t ns)
{
	if (ns >= 60 * DURATION_SECOND || ns == 0)
		return moment_format_span(text, (struct moment){ns / DURATION_SECOND, 0});
	if (ns >= DURATION_SECOND)
		snprintf(text, DURATION_TEXT, "%.3g s", (double)ns / (double)DURATION_SECOND);
	else if (ns >= 1000000)
		snprintf(text, DURATION_TEXT, "%" PRIu64 " ms", ns / 1000000);
	else
		snprintf(text, DURATION_TEXT, "%" PRIu64 " ns", ns);
	return text;
}
