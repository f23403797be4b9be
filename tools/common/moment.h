#ifndef TOOLS_COMMON_MOMENT_H
#define TOOLS_COMMON_MOMENT_H

/*
 * Times and lengths of time as files have them: whole seconds and nanoseconds, never negative, exact. A tick of the wheel
 * is one second. The time of an event is rounded down to a tick, and a deadline is rounded up.
 */

#include <stddef.h>
#include <stdint.h>

struct moment {
	uint64_t seconds;
	uint32_t ns; /* below 1,000,000,000 */
};

enum number {
	NUMBER_OK,
	NUMBER_INVALID,  /* not a decimal number */
	NUMBER_NEGATIVE, /* a number below 0 */
	NUMBER_TOO_LARGE /* beyond the last time of a wheel */
};

/*
 * Read all of text[0 .. size-1] as a decimal number of seconds, such as "90", "-1" or "552.21", into *moment.
 * Digits beyond the nanoseconds are rounded up. On anything but NUMBER_OK *moment is unchanged.
 */
enum number moment_parse(const char *text, size_t size, struct moment *moment);

/* Store a + b in *sum and return 0, or return -1 if that is beyond the last time of a wheel. */
int moment_add(struct moment a, struct moment b, struct moment *sum);

/* Return a - b. b is not later than a. */
struct moment moment_subtract(struct moment a, struct moment b);

/* Return a number below 0, 0, or above 0: a is earlier than b, the same, or later. */
int moment_compare(struct moment a, struct moment b);

/* Return 1 if the moment is 0. */
int moment_is_zero(struct moment moment);

enum { MOMENT_TEXT = 40 };

/* Write the moment as a decimal number without needless digits to text[0 .. MOMENT_TEXT-1], and return text. */
const char *moment_format(char *text, struct moment moment);

/* Write a length of time for people, such as "11 d 3 h", to text[0 .. MOMENT_TEXT-1], and return text. */
const char *moment_format_span(char *text, struct moment length);

#endif
