#ifndef TOOLS_WEEKWHEEL_CALENDAR_ZONE_H
#define TOOLS_WEEKWHEEL_CALENDAR_ZONE_H

/* What commands that read expressions of cron share: the zone of this machine, and refusals. */

#include "weekwheel/calendar.h"

/* Store the zone's name that TZ or /etc/localtime says, or UTC, and return it. */
const char *zone_local(char name[WW_CALENDAR_MAX + 1]);

/* Say what is wrong with an expression or a zone, and show where. */
void zone_refuse(
    const char *command, const char *expression, const char *zone, const struct ww_calendar_problem *problem);

#endif
