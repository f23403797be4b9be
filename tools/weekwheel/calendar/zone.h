#ifndef TOOLS_WEEKWHEEL_CALENDAR_ZONE_H
#define TOOLS_WEEKWHEEL_CALENDAR_ZONE_H

/* What commands that read expressions of cron share: the zone of this machine, and refusals. */

#include "weekwheel/calendar.h"

/* Store the zone's name that TZ or /etc/localtime says, or UTC, and return it. */
const char *zone_local(char name[WW_CALENDAR_MAX + 1]);

enum { ZONE_TIME_TEXT = 60 };

/* Write "Tue  2026-11-24 03:00:00 +01:00", a time where clocks are this many seconds ahead of UTC, and return it. */
const char *zone_time(char text[ZONE_TIME_TEXT], uint64_t ns, int32_t offset);

/* The same as "2026-11-24T03:00:00+01:00", for programs. */
const char *zone_exact(char text[ZONE_TIME_TEXT], uint64_t ns, int32_t offset);

/* Write "2026-11-24 03:00:00+01:00", a time as the clocks of a zone show it, and return it. */
const char *zone_clock(char text[ZONE_TIME_TEXT], uint64_t ns, const char *zone);

/* Say what is wrong with an expression or a zone, and show where. */
void zone_refuse(
    const char *command, const char *expression, const char *zone, const struct ww_calendar_problem *problem);

#endif
