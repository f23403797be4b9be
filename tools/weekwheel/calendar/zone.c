/* The zone of this machine, and what is wrong with an expression. */
#include <ctype.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "tools/common/duration.h"
#include "tools/common/message.h"
#include "tools/weekwheel/calendar/zone.h"

const char *zone_local(char name[WW_CALENDAR_MAX + 1])
{
	const char *said = getenv("TZ");
	char target[PATH_MAX] = "";
	const char *folder;

	if (said && *said)
		said += *said == ':';
	else if (readlink("/etc/localtime", target, sizeof target - 1) > 0 && (folder = strstr(target, "zoneinfo/")))
		said = folder + strlen("zoneinfo/");
	snprintf(name, WW_CALENDAR_MAX + 1, "%s", said && *said ? said : "UTC");
	return name;
}

const char *zone_time(char text[ZONE_TIME_TEXT], uint64_t ns, int32_t offset)
{
	time_t local = (time_t)(ns / DURATION_SECOND) + offset;
	int ahead = abs(offset);
	struct tm tm = {0};
	size_t length;

	(void)gmtime_r(&local, &tm);
	/* In English, as the words around it are. */
	snprintf(text, ZONE_TIME_TEXT, "%s", &"Sun\0Mon\0Tue\0Wed\0Thu\0Fri\0Sat"[4 * tm.tm_wday]);
	length = 3 + strftime(text + 3, ZONE_TIME_TEXT - 3, "  %Y-%m-%d %H:%M:%S ", &tm);
	length += (size_t)snprintf(text + length, ZONE_TIME_TEXT - length, "%c%02d:%02d", offset < 0 ? '-' : '+',
	    ahead / 3600, ahead / 60 % 60);
	if (ahead % 60)
		snprintf(text + length, ZONE_TIME_TEXT - length, ":%02d", ahead % 60);
	return text;
}

const char *zone_exact(char text[ZONE_TIME_TEXT], uint64_t ns, int32_t offset)
{
	char long_text[ZONE_TIME_TEXT];

	(void)zone_time(long_text, ns, offset);
	snprintf(text, ZONE_TIME_TEXT, "%.10sT%.8s%.20s", long_text + 5, long_text + 16, long_text + 25);
	return text;
}

/* The last zone is kept, since the lines of a list often have the same one. */
const char *zone_clock(char text[ZONE_TIME_TEXT], uint64_t ns, const char *zone)
{
	static struct ww_calendar *calendar;
	static char name[WW_CALENDAR_MAX + 1];
	char long_text[ZONE_TIME_TEXT];
	int32_t offset = 0;

	if (!calendar || strcmp(name, zone) != 0) {
		ww_calendar_close(calendar);
		if (ww_calendar_open(
		        &calendar, &(struct ww_calendar_spec){.expression = "@daily", .zone = zone}, NULL) != WW_OK)
			calendar = NULL;
		snprintf(name, sizeof name, "%s", zone);
	}
	/* A zone that only the server knows. */
	if (!calendar || ww_calendar_offset(calendar, ns, &offset) != WW_OK)
		return time_format_zone(text, ns);
	zone_time(long_text, ns, offset);
	snprintf(text, ZONE_TIME_TEXT, "%.19s%s", long_text + 5, long_text + 25);
	return text;
}

static int is_there(const char *name)
{
	char path[PATH_MAX];

	return name[0] && snprintf(path, sizeof path, "/usr/share/zoneinfo/%s", name) < (int)sizeof path &&
	       access(path, R_OK) == 0;
}

/* Write the zone that was meant, but for capitals, or nothing. */
static void find_meant(const char *zone, char meant[WW_CALENDAR_MAX + 1])
{
	int is_first = 1;

	snprintf(meant, WW_CALENDAR_MAX + 1, "%s", zone);
	for (char *at = meant; *at; at++) {
		*at = (char)(is_first ? toupper((unsigned char)*at) : tolower((unsigned char)*at));
		is_first = !isalpha((unsigned char)*at);
	}
	if (is_there(meant))
		return;
	for (char *at = meant; *at; at++)
		*at = (char)toupper((unsigned char)*at);
	if (!is_there(meant))
		meant[0] = 0;
}

/* Others take a zone in the expression, as in "TZ=Europe/Berlin 0 3 * * *". */
static int is_at_zone(const char *expression, size_t at)
{
	char word[WW_CALENDAR_MAX + 1];
	const char *name;

	if (at > strlen(expression))
		return 0;
	snprintf(word, sizeof word, "%.*s", (int)strcspn(expression + at, " \t"), expression + at);
	name = strchr(word, '=');
	return is_there(name ? name + 1 : word);
}

void zone_refuse(
    const char *command, const char *expression, const char *zone, const struct ww_calendar_problem *problem)
{
	const char *text = problem->in_zone ? zone : expression;
	char meant[WW_CALENDAR_MAX + 1] = "";
	const char *hint = "";
	char shown[WW_CALENDAR_MAX + 1];
	size_t length = strnlen(text, sizeof shown - 1);

	for (size_t i = 0; i < length; i++)
		shown[i] = (char)(text[i] >= ' ' && text[i] <= '~' ? text[i] : '?');
	shown[length] = 0;
	if (problem->in_zone)
		find_meant(zone, meant);
	else if (is_at_zone(expression, problem->at))
		hint = "; give the zone by --tz";
	message_error("%s: %s%s%s%s%s\n  %s\n  %*s^", command, problem->reason, hint,
	    meant[0] ? "; did you mean '" : "", meant, meant[0] ? "'?" : "", shown, (int)problem->at, "");
}
