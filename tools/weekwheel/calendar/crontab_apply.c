/* Makes the schedules of the lines of crontabs, and shows how they differ from those that are there: see crontab.h. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/common/base64.h"
#include "tools/common/memory.h"
#include "tools/common/message.h"
#include "tools/weekwheel/calendar/crontab.h"
#include "tools/weekwheel/calendar/crontab_script.h"
#include "tools/weekwheel/calendar/zone.h"

enum { LEFT_MAX = 10 };

/* With --replace the difference is shown: + what is new, ~ what changes, - what goes. */
static void show(const struct crontab *crontab, char sign, const char *tube, const char *name, const char *expression,
    const char *zone)
{
	char shown[WW_JOB_KEY_MAX + 4];

	if (crontab->is_whole)
		printf("%c\t", sign);
	printf("%s\t%s\t%s\t%s\n", tube, jobs_key_show(name, shown, sizeof shown), expression, zone);
}

/* Whether a schedule is what would be put. */
static int is_same(
    const struct crontab *crontab, const struct crontab_schedule *former, const struct crontab_line *line)
{
	size_t size = strlen(line->script);
	char *body = memory_zeroed(BASE64_SIZE(size) + 1, 1);
	int same;

	base64_encode(body, line->script, size);
	same = strcmp(former->expression, line->expression) == 0 && strcmp(former->zone, line->zone) == 0 &&
	       former->run == crontab->schedule.run && strcmp(former->body, body) == 0;
	free(body);
	return same;
}

/* One that is paused stays so. */
static int put(struct crontab *crontab, const struct crontab_schedule *former, const struct crontab_line *line)
{
	struct schedule_command *schedule = &crontab->schedule;
	struct client *client = &schedule->jobs.client;
	struct reply reply;

	schedule->name = line->name;
	schedule->expression = line->expression;
	schedule->is_paused = former && former->is_paused;
	if (client_expect(client, &reply, "USING", line->tube, "use %s", line->tube) ||
	    schedule_add(schedule, line->zone, line->script, strlen(line->script), &reply))
		return -1;
	if (reply_is(&reply, "BAD_SCHEDULE")) {
		struct ww_calendar_problem problem;

		/* This program's calendar takes it. */
		schedule_problem(&reply, &problem);
		zone_refuse(line->name, line->expression, line->zone, &problem);
		return -1;
	}
	return reply_is(&reply, "SCHEDULED") ? 0 : reply_refused(client, &reply, line->name);
}

static int apply_line(struct crontab *crontab, const struct crontab_line *line)
{
	const struct crontab_schedule *former = crontab_there_find(&crontab->there, line->tube, line->name);
	int same = former && is_same(crontab, former, line);

	if (!same && !crontab->is_dry && put(crontab, former, line))
		return -1;
	if (!same || !crontab->is_whole)
		show(crontab, former ? '~' : '+', line->tube, line->name, line->expression, line->zone);
	crontab->kept += (unsigned)same;
	crontab->changed += former && !same;
	crontab->made += !former;
	return 0;
}

/* ---- What is there, and is not in the crontabs: of a former one, perhaps */

/* Whether jobs of the crontabs go to this tube, or would if there was a line of that user. */
static int is_ours(const struct crontab *crontab, const char *tube)
{
	const char *base = crontab_base(crontab);
	size_t length = strlen(base);

	return crontab->is_system ? strncmp(tube, base, length) == 0 && tube[length] == '.' : strcmp(tube, base) == 0;
}

/* A tube's name for a line of shell. No quote can be in it. Return the end. */
static char *quote_tube(char *to, const char *tube)
{
	return strpbrk(tube, ";$()") ? crontab_quote(to, tube) : stpcpy(to, tube);
}

static void print_left(const struct crontab_schedule *schedule)
{
	char name[WW_JOB_KEY_MAX + 4], quoted[4 * sizeof name], tube[WW_TUBE_MAX + 4];

	(void)crontab_quote(quoted, jobs_key_show(schedule->name, name, sizeof name));
	(void)quote_tube(tube, schedule->tube);
	message_warning("the schedule '%s' is in no line, and goes on; to end it: weekwheel schedule remove %s --tube "
	                "%s, or import with --replace",
	    name, quoted, tube);
}

static int end_left(struct crontab *crontab)
{
	struct client *client = &crontab->schedule.jobs.client;
	unsigned left = 0;

	for (size_t i = 0; i < crontab->there.count; i++) {
		const struct crontab_schedule *schedule = &crontab->there.schedules[i];

		if (schedule->is_found || !is_ours(crontab, schedule->tube))
			continue;
		if (!crontab->is_whole) {
			if (++left <= LEFT_MAX)
				print_left(schedule);
			continue;
		}
		if (!crontab->is_dry && crontab_there_remove(client, schedule))
			return -1;
		show(crontab, '-', schedule->tube, schedule->name, schedule->expression, schedule->zone);
		crontab->removed++;
	}
	if (left > LEFT_MAX)
		message_warning("and %u more are in no line; 'weekwheel schedule list' shows all", left - LEFT_MAX);
	return 0;
}

/* cron runs all jobs at once, a worker as many as its options say. */
static void write_hint(const struct crontab *crontab)
{
	char tubes[1000] = "", difference[100] = "";
	size_t length = 0;
	char *to = tubes;

	for (size_t i = 0; i < crontab->tube_count && tubes + sizeof tubes - to > WW_TUBE_MAX + 12; i++)
		to = quote_tube(stpcpy(to, " --tube "), crontab->tubes[i]);
	if (crontab->changed)
		length += (size_t)snprintf(difference, sizeof difference, ", %u changed", crontab->changed);
	if (crontab->kept)
		length +=
		    (size_t)snprintf(difference + length, sizeof difference - length, ", %u as before", crontab->kept);
	if (crontab->removed)
		(void)snprintf(difference + length, sizeof difference - length, ", %u removed", crontab->removed);
	message_line(
	    "%s%u new schedule%s%s, %u line%s left out. A worker runs their jobs: weekwheel work --jobs 20%s -- sh",
	    crontab->is_dry ? "Would be: " : "", crontab->made, jobs_plural(crontab->made), difference,
	    crontab->left_out, jobs_plural(crontab->left_out), *tubes ? tubes : " --tube cron");
}

/* Without --replace it is enough to put. A token may do that and not list. */
static int read_there(struct crontab *crontab)
{
	struct client *client = &crontab->schedule.jobs.client;
	int read;

	if (jobs_connect(&crontab->schedule.jobs))
		return -1;
	read = crontab_there_read(
	    &crontab->there, client, crontab->is_system ? NULL : crontab_base(crontab), !crontab->is_whole);
	if (read > 0)
		message_warning("the token may not list schedules: whether former ones go on is not known");
	return read < 0 ? -1 : 0;
}

int crontab_apply(struct crontab *crontab)
{
	if ((!crontab->is_dry || crontab->is_whole) && read_there(crontab))
		return -1;
	for (size_t i = 0; i < crontab->line_count; i++)
		if (apply_line(crontab, &crontab->lines[i]))
			return -1;
	if (end_left(crontab))
		return -1;
	write_hint(crontab);
	return 0;
}
