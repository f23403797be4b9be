#ifndef WEEKWHEEL_CALENDAR_H
#define WEEKWHEEL_CALENDAR_H

/*
 * Times as people plan them: "every day at three in the morning in Berlin". A calendar is read from a text once. It
 * then finds, for any time, the next one after it. It starts no timer: see jobs.h for what acts at a time.
 *
 * A text is a cron *expression* with five fields, or with six, of which the first is the second:
 *
 *     field          values               also
 *     -------------  -------------------  --------------------------------------------------
 *     second         0-59                 only in expressions of six fields; otherwise 0
 *     minute         0-59
 *     hour           0-23
 *     day of month   1-31                 L: the last day; L-3: three days before it; ?
 *     month          1-12, jan-dec
 *     day of week    0-7, sun-sat         5#2, fri#2: the second Friday; 5L, friL: the last; ?
 *
 * A field is a list of parts with commas between them. A part is a value, a range 9-17, or "*" for all values. "/n"
 * after it takes every nth value: "*" "/15", 9-17/2; 5/15 begins at 5 and goes on to the field's end. 0 and 7 are both
 * Sunday. Names may be in any case. @hourly, @daily, @midnight, @weekly, @monthly, @yearly and @annually stand for
 * expressions. Or the text is an *interval*, "@every 90m", "@every 1h30m", with the units d, h, m and s.
 *
 * If both day fields are restricted, a day that matches either of them counts, as in every cron. A field that begins
 * with "*" or "?" does not restrict in this sense; a day must then match both fields.
 *
 * Summer time. Expressions are about local times of a zone. A local time that is skipped when clocks are put forward
 * means the moment right after the gap; all times of one gap are that one moment. A local time that comes twice when
 * clocks are put back means the first. If its field of hours begins with "*", an expression goes by elapsed time
 * instead: each occurrence of a matching local time counts, and skipped times do not. Intervals have no zone; their
 * times are whole numbers of periods after the anchor.
 *
 * Zones are those of the system's IANA database (TZDIR, or /usr/share/zoneinfo). Neither TZ nor any state of the
 * process matters or is changed. All times are Unix time in ns, and those that a calendar returns are whole seconds.
 *
 * Errors: every call returns 0 or a negative WW_E* of error.h. On error nothing has changed.
 *
 * Threads: any. A calendar never changes, so any number of threads may use one.
 */

#include <stddef.h>
#include <stdint.h>

#include "weekwheel/allocator.h"
#include "weekwheel/error.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Bytes of an expression and of a zone's name. */
#define WW_CALENDAR_MAX 255
/* Bytes of the longest explanation, with its NUL. */
#define WW_CALENDAR_TEXT 2048
/* The last time that a calendar returns: the end of the year 2199. */
#define WW_CALENDAR_LAST UINT64_C(7258118399000000000)

struct ww_calendar;

/* Fill it with zeros, then set what differs. */
struct ww_calendar_spec {
	const char
	    *expression;  /* an expression or an interval; blanks around it and between its fields do not matter */
	const char *zone; /* "Europe/Berlin"; NULL: "UTC" */
	uint64_t anchor;  /* of an interval: a time from which its periods are counted, before or after it; 0 */
	const struct ww_allocator *allocator; /* NULL: the default */
};

/* What is wrong with a text, and where. */
struct ww_calendar_problem {
	int in_zone;      /* 1: the text is the zone; 0: the expression */
	size_t at;        /* the byte of that text where the problem shows */
	char reason[160]; /* a clause with what is wrong and what to write: "60 is no minute: minutes are 0 to 59" */
};

/*
 * Read a text and store the calendar in *calendar. The texts are copied. *problem, which may be NULL, is filled if the
 * call returns WW_EINVAL; problem->at is 0 if spec or its expression is NULL.
 * Errors: WW_EINVAL: an argument is NULL, the text is wrong or too long, no day ever matches it, or there is no such
 * zone. WW_ECORRUPT: the zone's file has no zone, or is damaged. WW_ENOMEM.
 */
WW_API int ww_calendar_open(
    struct ww_calendar **calendar, const struct ww_calendar_spec *spec, struct ww_calendar_problem *problem);

/* Free a calendar. NULL is harmless. */
WW_API void ww_calendar_close(struct ww_calendar *calendar);

/*
 * Store the next time after `after` in *time, never `after` itself.
 * Complexity: some microseconds; some ten of them where clocks are put forward or back.
 * Errors: WW_EINVAL: an argument is NULL. WW_EOVERFLOW: there is none up to WW_CALENDAR_LAST.
 */
WW_API int ww_calendar_next(const struct ww_calendar *calendar, uint64_t after, uint64_t *time);

/*
 * Store how many seconds the zone's clocks are ahead of UTC at a time.
 * Errors: WW_EINVAL: an argument is NULL. WW_EOVERFLOW: the time is beyond WW_CALENDAR_LAST.
 */
WW_API int ww_calendar_offset(const struct ww_calendar *calendar, uint64_t time, int32_t *seconds);

/*
 * Return 1 if the calendar goes by elapsed time: an interval, or an expression whose field of hours begins with "*".
 * Otherwise, or for NULL, return 0.
 */
WW_API int ww_calendar_is_elapsed(const struct ww_calendar *calendar);

/*
 * Write the calendar in words to text[0 .. size-1]: "at 03:00 every day, time of Europe/Berlin". A text that does not
 * fit is cut; WW_CALENDAR_TEXT bytes are always enough.
 * Errors: WW_EINVAL: an argument is NULL, or size is 0.
 */
WW_API int ww_calendar_explain(const struct ww_calendar *calendar, char *text, size_t size);

#ifdef __cplusplus
}
#endif

#endif
