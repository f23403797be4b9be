/* What cron refuses in a crontab, and calendars or this program would take. */
#include <ctype.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "tools/weekwheel/calendar/crontab_rules.h"
#include "tools/weekwheel/calendar/crontab_script.h"
#include "weekwheel/calendar.h"

/* A part of a field that calendars take and cron does not: L, L-3, 5L, friL, 5#2, ?, 5/15. */
static int is_beyond_cron(const char *part, size_t length)
{
	size_t word = 0;

	while (word < length && isalnum((unsigned char)part[word]))
		word++;
	if (word && tolower((unsigned char)part[word - 1]) == 'l' &&
	    (word != strlen("jul") || strncasecmp(part, "jul", word) != 0))
		return 1;
	return memchr(part, '#', length) || memchr(part, '?', length) || (word && word < length && part[word] == '/');
}

static const char *refuse_fields(const char *fields)
{
	if (*fields == '@') {
		for (const char *c = fields; *c; c++)
			if (isupper((unsigned char)*c))
				return "cron refuses a name in capitals: write @daily";
		return NULL;
	}
	for (size_t length; *fields; fields += length + (fields[length] != 0)) {
		length = strcspn(fields, ", ");
		if (is_beyond_cron(fields, length))
			return "cron refuses L, #, ? and a / behind one value: write the values out, "
			       "or make the schedule by 'weekwheel schedule add'";
	}
	return NULL;
}

const char *crontab_refusal(const char *fields, const char *command)
{
	size_t length = strlen(command);

	if (*command == '*')
		return "cron refuses a * where the command begins: write five fields, the first of which is the minute";
	if (length && command[length - 1] == '\r')
		return "the line ends with a carriage return, which cron makes a part of the command: "
		       "remove them all, by sed 's/\\r$//'";
	return refuse_fields(fields);
}

const char *crontab_percent_refusal(const char *command)
{
	char *own = strdup(command);
	char *const arguments[] = {"sh", "-n", "-c", own, NULL};
	posix_spawn_file_actions_t actions;
	int status = 0, error = -1;
	pid_t child;

	if (own && crontab_cut(own) && posix_spawn_file_actions_init(&actions) == 0) {
		posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
		posix_spawn_file_actions_addopen(&actions, 2, "/dev/null", O_WRONLY, 0);
		error = posix_spawn(&child, "/bin/sh", &actions, NULL, arguments, NULL);
		posix_spawn_file_actions_destroy(&actions);
	}
	free(own);
	if (error || waitpid(child, &status, 0) != child || status == 0)
		return NULL;
	return "cron ends the command at its first %, and sh refuses what is before it: write \\% for a percent sign";
}

int crontab_has_backslashes(const char *command)
{
	for (; *command && *command != '%'; command++)
		if (*command == '\\' && (*++command == '\\' || !*command))
			return *command != 0;
	return 0;
}

/* The step of a part of a field, or 0. */
static unsigned long step_of(const char *part, size_t length)
{
	const char *slash = memchr(part, '/', length);
	char *end = NULL;
	unsigned long step = slash && isdigit((unsigned char)slash[1]) ? strtoul(slash + 1, &end, 10) : 0;

	return end == part + length ? step : 0;
}

/* Whether calendars take a part of a field with a step that the field allows. */
static int is_sound_part(const char *part, int field, int most)
{
	struct ww_calendar *calendar = NULL;
	char expression[2 * WW_CALENDAR_MAX];
	const struct ww_calendar_spec spec = {.expression = expression};
	char *to = expression;

	for (int i = 0; i < 5; i++)
		to += i == field ? sprintf(to, "%.*s/%d ", (int)strcspn(part, "/"), part, most) : sprintf(to, "* ");
	if (ww_calendar_open(&calendar, &spec, NULL))
		return 0;
	ww_calendar_close(calendar);
	return 1;
}

/*
 * Write the first value of a part, or in the days and months the longest step, which takes that value alone: there it
 * matters that a field begins with a *.
 */
static char *write_first(char *to, const char *part, int field, int most)
{
	if (field > 1)
		return to + sprintf(to, "%.*s/%d", (int)strcspn(part, "/"), part, most);
	if (*part == '*')
		return stpcpy(to, "0");
	return to + sprintf(to, "%.*s", (int)strcspn(part, "-/"), part);
}

int crontab_shorten_steps(char *fields)
{
	static const int most[] = {59, 23, 31, 12, 7};
	char shortened[WW_CALENDAR_MAX + 1];
	char *to = shortened;
	const char *part = fields;
	int field = 0, count = 0;

	if (*fields == '@' || strlen(fields) > WW_CALENDAR_MAX)
		return 0;
	for (size_t length; *part && field < 5; part += length) {
		length = strcspn(part, ", ");
		if (step_of(part, length) > (unsigned long)most[field] && is_sound_part(part, field, most[field])) {
			to = write_first(to, part, field, most[field]);
			count++;
		} else {
			to = mempcpy(to, part, length);
		}
		field += part[length] == ' ';
		if (part[length])
			*to++ = part[length++];
	}
	*to = 0;
	strcpy(fields, shortened);
	return count > 0;
}
