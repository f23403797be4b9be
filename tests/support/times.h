#ifndef TESTS_SUPPORT_TIMES_H
#define TESTS_SUPPORT_TIMES_H

/*
 * The adversarial times that all tests share: the ends of the range, each boundary of the default geometry and its
 * neighbours, the powers of two where a narrower type would break, and times outside the range.
 */

#include <stddef.h>
#include <stdint.h>

#include "weekwheel/wheel.h"

#define SECOND UINT64_C(1)
#define MINUTE UINT64_C(60)
#define HOUR UINT64_C(3600)
#define DAY UINT64_C(86400)
#define WEEK UINT64_C(604800)

struct named_time {
	const char *name;
	uint64_t time;
};

/* Times and delays that are valid. */
static const struct named_time valid_times[] = {
    {"zero", 0},
    {"one", 1},
    {"two", 2},
    {"a turn of seconds - 1", MINUTE - 1},
    {"a turn of seconds", MINUTE},
    {"a turn of seconds + 1", MINUTE + 1},
    {"two turns of seconds - 1", 2 * MINUTE - 1},
    {"a turn of minutes - 1", HOUR - 1},
    {"a turn of minutes", HOUR},
    {"a turn of minutes + 1", HOUR + 1},
    {"a turn of minutes and of seconds - 1", HOUR + MINUTE - 1},
    {"the example, 7100", 7100},
    {"a turn of hours - 1", DAY - 1},
    {"a turn of hours", DAY},
    {"a turn of hours + 1", DAY + 1},
    {"a turn of hours and of minutes - 1", DAY + HOUR - 1},
    {"a week - 1 hour - 1", WEEK - HOUR - 1},
    {"a week - 1", WEEK - 1},
    {"a week", WEEK},
    {"a week + 1", WEEK + 1},
    {"a week and a day", WEEK + DAY},
    {"30 days", 30 * DAY},
    {"92.6 days", 926 * DAY / 10},
    {"400 days", 400 * DAY},
    {"2^31 - 1", (UINT64_C(1) << 31) - 1},
    {"2^31", UINT64_C(1) << 31},
    {"2^31 + 1", (UINT64_C(1) << 31) + 1},
    {"2^32 - 1", (UINT64_C(1) << 32) - 1},
    {"2^32", UINT64_C(1) << 32},
    {"2^32 + 1", (UINT64_C(1) << 32) + 1},
    {"2^53 - 1", (UINT64_C(1) << 53) - 1},
    {"2^53", UINT64_C(1) << 53},
    {"2^53 + 1", (UINT64_C(1) << 53) + 1},
    {"2^62", UINT64_C(1) << 62},
    {"the last time - a week - 1", WW_TIME_MAX - WEEK - 1},
    {"the last time - a week", WW_TIME_MAX - WEEK},
    {"the last time - a minute", WW_TIME_MAX - MINUTE},
    {"the last time - 1", WW_TIME_MAX - 1},
    {"the last time", WW_TIME_MAX},
};
#define VALID_TIMES (sizeof valid_times / sizeof valid_times[0])

/* Times beyond the range of every function. */
static const struct named_time invalid_times[] = {
    {"the last time + 1", WW_TIME_MAX + 1},
    {"the last time + 2", WW_TIME_MAX + 2},
    {"2^64 - a week", UINT64_MAX - WEEK + 1},
    {"2^64 - 60", UINT64_MAX - 59},
    {"2^64 - 2", UINT64_MAX - 1},
    {"2^64 - 1", UINT64_MAX},
};
#define INVALID_TIMES (sizeof invalid_times / sizeof invalid_times[0])

#endif
