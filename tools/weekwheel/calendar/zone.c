/* The zone of this machine, and what is wrong with an expression. */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

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

void zone_refuse(
    const char *command, const char *expression, const char *zone, const struct ww_calendar_problem *problem)
{
	const char *text = problem->in_zone ? zone : expression;
	char shown[WW_CALENDAR_MAX + 1];
	size_t length = strnlen(text, sizeof shown - 1);

	for (size_t i = 0; i < length; i++)
		shown[i] = (char)(text[i] >= ' ' && text[i] <= '~' ? text[i] : '?');
	shown[length] = 0;
	message_error("%s: %s\n  %s\n  %*s^", command, problem->reason, shown, (int)problem->at, "");
}
