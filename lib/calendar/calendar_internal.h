#ifndef LIB_CALENDAR_CALENDAR_INTERNAL_H
#define LIB_CALENDAR_CALENDAR_INTERNAL_H

/* A calendar as its files share it. Times are Unix time in seconds, and local times are counted in the same way. */

#include <glib.h>
#include <stdint.h>

#include "weekwheel/calendar.h"

#define CALENDAR_SECOND UINT64_C(1000000000)
#define CALENDAR_DAY INT64_C(86400)
#define CALENDAR_NONE INT64_MIN /* no time */

struct zone {
	GTimeZone *zone;
	int by_years; /* the times after 2037 are looked up in earlier years; see zone.c */
};

/* Each set is a word of bits, in which bit n stands for the value n. */
struct expression {
	uint64_t seconds, minutes, hours;
	uint32_t days;    /* of the month */
	uint32_t lasts;   /* bit n: n days before the last of the month */
	uint32_t months;  /* 1 to 12 */
	uint8_t weekdays; /* 0 is Sunday */
	uint8_t nth[5];   /* weekdays: the first of the month, the second */
	uint8_t nth_last; /* weekdays: the last of the month */
	/* Whether the field begins with * or ?. */
	uint8_t is_any_hour, is_any_day, is_any_weekday;
	uint8_t has_seconds;
};

struct ww_calendar {
	const struct ww_allocator *allocator;
	uint64_t period; /* of an interval in ns; 0: none */
	uint64_t anchor;
	struct expression expression;
	struct zone zone;
	char zone_name[WW_CALENDAR_MAX + 1];
};

/* ---- parse.c: read text into *expression, or *period. Return 0, or WW_EINVAL with *problem filled. */

int ww_calendar_parse(
    const char *text, struct expression *expression, uint64_t *period, struct ww_calendar_problem *problem);

/* ---- next.c: the next local time from `local` on that matches, or CALENDAR_NONE if none does in 45 years. */

int64_t ww_calendar_match(const struct expression *expression, int64_t local);

/* ---- zone.c. Indexes grow with time, and times of one index have one offset. */

int ww_calendar_zone_open(struct zone *zone, const char *name, struct ww_calendar_problem *problem);
void ww_calendar_zone_close(struct zone *zone);
int64_t ww_calendar_zone_at(const struct zone *zone, int64_t time, int64_t *index);
/* Return the first time after `from`, up to `to`, that has another index than `from`, or `to`. */
int64_t ww_calendar_zone_change(const struct zone *zone, int64_t from, int64_t to);
/* Return the time of a local time by the rules of summer time. */
int64_t ww_calendar_zone_time(const struct zone *zone, int64_t local);

#endif
