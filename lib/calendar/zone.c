/*
 * Zones by GLib. It tells offsets but not when they change, which is searched for by its indexes of intervals.
 *
 * GLib 2.74 misreads one kind of rule for the years after those that a file lists, up to 2037: summer time that is UTC
 * itself, with a standard time ahead of it (Europe/Dublin). There the answers of earlier years hold that have the same
 * days of the week.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/calendar/calendar_internal.h"

/* The first second of 2038, and of 2010, since which each of the fourteen kinds of year was there. */
#define LISTED_END INT64_C(2145916800)
#define LISTED_BEGIN 2010

static int refuse(struct ww_calendar_problem *problem, size_t at, const char *reason)
{
	problem->in_zone = 1;
	problem->at = at;
	snprintf(problem->reason, sizeof problem->reason, "%s", reason);
	return WW_EINVAL;
}

/* No absolute path, no dots, and none of the rules and offsets that GLib would take instead of a name. */
static int check_name(const char *name, struct ww_calendar_problem *problem)
{
	static const char *const form = "expected a zone's name, such as Europe/Berlin or UTC";
	size_t length = strlen(name);
	size_t good = strspn(name, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_+-/");

	if (length == 0 || length > WW_CALENDAR_MAX || !g_ascii_isalpha(*name))
		return refuse(problem, 0, form);
	if (strncmp(name, "right/", 6) == 0)
		return refuse(problem, 0, "zones of right/ count leap seconds, which Unix time does not");
	return good == length ? WW_OK : refuse(problem, good, form);
}

/* Whether there is a file of that zone. GLib would complain on standard error about another. */
static int check_file(const char *name, struct ww_calendar_problem *problem)
{
	const char *folder = getenv("TZDIR");
	char path[4096];
	char magic[4];
	size_t got;
	FILE *file;

	snprintf(path, sizeof path, "%s/%s", folder ? folder : "/usr/share/zoneinfo", name);
	file = fopen(path, "rbe");
	if (!file && (errno == ENOMEM || errno == EMFILE || errno == ENFILE))
		return WW_ENOMEM;
	got = file ? fread(magic, 1, sizeof magic, file) : 0;
	if (file)
		fclose(file);
	if (got == sizeof magic && memcmp(magic, "TZif", sizeof magic) == 0)
		return WW_OK;
	return refuse(problem, 0,
	    "there is no such zone here; expected a name as in /usr/share/zoneinfo, such as Europe/Berlin (package "
	    "tzdata)");
}

static int64_t index_of(const struct zone *zone, int64_t time)
{
	return g_time_zone_find_interval(zone->zone, G_TIME_TYPE_UNIVERSAL, time);
}

static int is_misread(const struct zone *zone)
{
	/* The January and July of 2037, and how much later a year begins with the same day of the week. */
	static const int64_t probes[] = {2115936000, 2131574400};
	const int64_t later = 28 * 365 * CALENDAR_DAY + 7 * CALENDAR_DAY;

	for (size_t i = 0; i < 2; i++) {
		int right = (int)index_of(zone, probes[i]);
		int read = (int)index_of(zone, probes[i] + later);

		if (g_time_zone_is_dst(zone->zone, right) && g_time_zone_is_dst(zone->zone, read) &&
		    g_time_zone_get_offset(zone->zone, right) == 0 && g_time_zone_get_offset(zone->zone, read) != 0)
			return 1;
	}
	return 0;
}

int ww_calendar_zone_open(struct zone *zone, const char *name, struct ww_calendar_problem *problem)
{
	int error = check_name(name, problem);

	if (!error)
		error = check_file(name, problem);
	if (error)
		return error;
	zone->zone = g_time_zone_new_identifier(name);
	if (!zone->zone)
		return WW_ECORRUPT;
	zone->by_years = is_misread(zone);
	return WW_OK;
}

void ww_calendar_zone_close(struct zone *zone)
{
	g_time_zone_unref(zone->zone);
}

static int is_leap(int64_t year)
{
	return year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
}

/* Days from 1970 to the first of January. */
static int64_t days_before(int64_t year)
{
	int64_t past = year - 1;

	return past * 365 + past / 4 - past / 100 + past / 400 - 719162;
}

/* Move a time to a year that is listed and has the same days. Store the year that it was in. */
static int64_t listed_time(int64_t time, int64_t *year)
{
	int64_t days = time / CALENDAR_DAY;
	int64_t like = LISTED_BEGIN;

	*year = 1970 + days / 366;
	while (days_before(*year + 1) <= days)
		(*year)++;
	while (is_leap(like) != is_leap(*year) || (days_before(like) - days_before(*year)) % 7 != 0)
		like++;
	return time + (days_before(like) - days_before(*year)) * CALENDAR_DAY;
}

int64_t ww_calendar_zone_at(const struct zone *zone, int64_t time, int64_t *index)
{
	int64_t year = 0;

	if (zone->by_years && time >= LISTED_END)
		time = listed_time(time, &year);
	*index = index_of(zone, time);
	time = g_time_zone_get_offset(zone->zone, (int)*index);
	*index += year * 1000;
	return time;
}

int64_t ww_calendar_zone_change(const struct zone *zone, int64_t from, int64_t to)
{
	int64_t first;
	int64_t index;

	(void)ww_calendar_zone_at(zone, from, &first);
	(void)ww_calendar_zone_at(zone, to, &index);
	if (index == first)
		return to;
	while (to - from > 1) {
		int64_t middle = from + (to - from) / 2;

		(void)ww_calendar_zone_at(zone, middle, &index);
		if (index == first)
			from = middle;
		else
			to = middle;
	}
	return to;
}

/* Local times are at most 26 hours off, which leaves room for what a change adds. */
int64_t ww_calendar_zone_time(const struct zone *zone, int64_t local)
{
	int64_t from = local - 2 * CALENDAR_DAY;
	int64_t end = local + 2 * CALENDAR_DAY;
	int64_t index;

	for (;;) {
		int64_t offset = ww_calendar_zone_at(zone, from, &index);
		int64_t to = ww_calendar_zone_change(zone, from, end);

		/* Before the end: here it comes first. Before the beginning: it is in the gap that ends there. */
		if (local - offset < to || to == end)
			return local - offset > from ? local - offset : from;
		from = to;
	}
}
