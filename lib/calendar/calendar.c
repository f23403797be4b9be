/* The public calls of calendars, but for those of the other files. */
#include <stdio.h>
#include <string.h>

#include "lib/base/memory.h"
#include "lib/calendar/calendar_internal.h"

int ww_calendar_open(
    struct ww_calendar **calendar, const struct ww_calendar_spec *spec, struct ww_calendar_problem *problem)
{
	struct ww_calendar_problem own = {0};
	struct ww_calendar made = {0};
	struct ww_calendar *room;
	int error;

	if (problem)
		memset(problem, 0, sizeof *problem);
	problem = problem ? problem : &own;
	if (!calendar || !spec || !spec->expression) {
		snprintf(problem->reason, sizeof problem->reason, "an argument is NULL");
		return WW_EINVAL;
	}
	made.allocator = spec->allocator ? spec->allocator : ww_allocator_default();
	made.anchor = spec->anchor;
	error = ww_calendar_parse(spec->expression, &made.expression, &made.period, problem);
	if (error)
		return error;
	error = ww_calendar_zone_open(&made.zone, spec->zone ? spec->zone : "UTC", problem);
	if (error)
		return error;
	snprintf(made.zone_name, sizeof made.zone_name, "%s", spec->zone ? spec->zone : "UTC");
	room = memory_take(made.allocator, sizeof *room);
	if (!room) {
		ww_calendar_zone_close(&made.zone);
		return WW_ENOMEM;
	}
	*room = made;
	*calendar = room;
	return WW_OK;
}

void ww_calendar_close(struct ww_calendar *calendar)
{
	if (!calendar)
		return;
	ww_calendar_zone_close(&calendar->zone);
	memory_give(calendar->allocator, calendar, sizeof *calendar);
}

int ww_calendar_offset(const struct ww_calendar *calendar, uint64_t time, int32_t *seconds)
{
	int64_t index;

	if (!calendar || !seconds)
		return WW_EINVAL;
	if (time > WW_CALENDAR_LAST)
		return WW_EOVERFLOW;
	*seconds = (int32_t)ww_calendar_zone_at(&calendar->zone, (int64_t)(time / CALENDAR_SECOND), &index);
	return WW_OK;
}

int ww_calendar_is_elapsed(const struct ww_calendar *calendar)
{
	return calendar && (calendar->period || calendar->expression.is_any_hour);
}
