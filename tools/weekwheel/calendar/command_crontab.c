/*
 * The command import crontab: makes schedules of a crontab. The body of their jobs is a script for sh, which a worker
 * runs: weekwheel work --tube cron -- sh. What does not carry over is said, with its line.
 */
#include <ctype.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/common/command.h"
#include "tools/common/duration.h"
#include "tools/common/memory.h"
#include "tools/common/message.h"
#include "tools/common/tube.h"
#include "tools/weekwheel/calendar/crontab.h"
#include "tools/weekwheel/calendar/crontab_rules.h"
#include "tools/weekwheel/calendar/crontab_script.h"
#include "tools/weekwheel/calendar/zone.h"
#include "tools/weekwheel/jobs/put.h"

enum { ZONE = 1, RUN };

enum { DEBIAN_COMMAND_MAX = 998 };

static const struct option table[] = {
    JOBS_TUBE_OPTION("of the jobs (default \"cron\")"),
    {ZONE, 'z', "tz", "ZONE", "where the crontab has no CRON_TZ (default: this\nmachine's)"},
    {RUN, 'r', "run", "TIME", "how long a job stays with a worker that is gone\n(default 60s)"},
    {JOBS_FLAG(struct crontab, is_system), 0, "system", NULL,
        "as /etc/crontab and /etc/cron.d, with a user in each\nline; root's jobs go to the tube cron.root"},
    {JOBS_FLAG(struct crontab, is_whole), 0, "replace", NULL,
        "make the tube's schedules what the crontab says:\nremove those that it does not have, and show the\ndifference alone"},
    {JOBS_FLAG(struct crontab, is_dry), 0, "dry-run", NULL,
        "only show the schedules; with --replace, ask the server\nand show the difference"},
    JOBS_SERVER_OPTIONS,
    JOBS_HELP_OPTION,
};

static int take(void *context, struct options *options, int id)
{
	struct crontab *crontab = context;

	switch (id) {
	case ZONE:
		crontab->schedule.zone = options->value;
		return 0;
	case RUN:
		return jobs_duration(options, "run", DURATION_SECOND, DURATION_MAX, &crontab->schedule.run);
	default:
		crontab->files =
		    memory_grow(crontab->files, &crontab->file_room, crontab->file_count, sizeof *crontab->files);
		crontab->files[crontab->file_count++] = options->value;
		return 0;
	}
}

static int check(void *context, const struct options *options)
{
	const struct crontab *crontab = context;

	return crontab->file_count
	           ? 0
	           : options_fail(
	                 options, "the file is missing; - is standard input: crontab -l | weekwheel import crontab -");
}

static void leave_out(struct crontab *crontab, const char *why)
{
	message_warning("%s:%u: %s", crontab->file, crontab->number, why);
	crontab->left_out++;
	crontab->refused++;
}

static void note(const struct crontab *crontab, const char *format, const char *name)
{
	char text[400];

	snprintf(text, sizeof text, format, name);
	message_warning("%s:%u: %s", crontab->file, crontab->number, text);
}

/* ---- Variables */

/*
 * NAME = VALUE, each with or without quotes. Return the value, and the name in *name, both ended; or return NULL. Cron
 * takes any name.
 */
static char *split_variable(char *line, char **name)
{
	int is_quoted = *line == '"' || *line == '\'';
	char *end = is_quoted ? strchr(line + 1, *line) : line + strcspn(line, " \t=");
	char *at = end ? end + is_quoted : line;

	at += strspn(at, " \t");
	*name = line + is_quoted;
	if (!end || end == *name || *at != '=')
		return NULL;
	at += 1 + strspn(at + 1, " \t");
	*end = 0;
	end = at + strlen(at);
	while (end > at && isspace((unsigned char)end[-1]))
		*--end = 0;
	if (end > at + 1 && (*at == '"' || *at == '\'') && end[-1] == *at) {
		end[-1] = 0;
		at++;
	}
	return at;
}

/* Whether sh can have a variable of this name. */
static int is_name(const char *name)
{
	return !isdigit((unsigned char)*name) &&
	       !name[strspn(name, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_")];
}

static int is_one_of(const char *name, const char *const *names)
{
	while (*names && strcmp(*names, name) != 0)
		names++;
	return *names != NULL;
}

/* A line of shell that sets a variable. Returns -1 if there is no room. */
static int add_export(struct crontab *crontab, const char *name, const char *value)
{
	size_t length = strlen(crontab->environment);
	size_t room = sizeof crontab->environment - length;
	char *to = crontab->environment + length;

	if (4 * strlen(value) + strlen(name) + 20 > room)
		return -1;
	to += sprintf(to, "export %s=", name);
	strcpy(crontab_quote(to, value), "\n");
	return 0;
}

static void take_variable(struct crontab *crontab, const char *name, const char *value)
{
	static const char *const ours[] = {"HOME", "LOGNAME", "USER", NULL};
	/* Shells take none of these from the environment, and end a script that sets one or obey it. */
	static const char *const shells[] = {
	    "BASHOPTS", "BASH_VERSINFO", "EUID", "IFS", "OPTIND", "PPID", "SHELLOPTS", "UID", NULL};

	if (!is_name(name)) {
		note(crontab, "the variable '%s' is not carried over: sh can have none of this name", name);
		return;
	}
	if (strcmp(name, "CRON_TZ") == 0) {
		snprintf(crontab->zone, sizeof crontab->zone, "%s", value);
		return;
	}
	if (strncmp(name, "MAIL", 4) == 0 || strcmp(name, "CONTENT_TYPE") == 0) {
		note(crontab, "%s is not carried over: no output is mailed, it goes to the worker's log", name);
		return;
	}
	if (strcmp(name, "SHELL") == 0) {
		crontab->is_other_shell = strcmp(value, "/bin/sh") != 0;
		if (crontab->is_other_shell)
			note(crontab, "SHELL is not carried over: let the worker run '-- %s'", value);
		return;
	}
	if (strcmp(name, "RANDOM_DELAY") == 0) {
		note(crontab, "%s is not carried over: --spread of 'weekwheel schedule add' is like it", name);
		return;
	}
	if (is_one_of(name, ours))
		note(crontab, "%s is not carried over: it is the worker's", name);
	else if (is_one_of(name, shells))
		note(crontab, "%s is not carried over: the shell sets it itself, also under cron", name);
	else if (add_export(crontab, name, value))
		note(crontab, "%s is not carried over: there are too many variables", name);
}

/* ---- Lines with times */

/* Cut off the expression: five fields, or one that begins with @. Return what follows, or NULL. */
static char *cut_fields(char *line, int count)
{
	char *at = line;

	for (int i = 0; i < count; i++) {
		at += strcspn(at, " \t");
		if (i < count - 1)
			at += strspn(at, " \t");
	}
	if (!*at)
		return NULL;
	*at++ = 0;
	return at + strspn(at, " \t");
}

/* One blank between two fields, as expressions are shown. */
static void join_fields(char *line)
{
	char *to = line;

	for (const char *from = line; *from; from++)
		if (*from != ' ' && *from != '\t')
			*to++ = *from;
		else if (to > line && to[-1] != ' ')
			*to++ = ' ';
	*to = 0;
}

/* Of a crontab of the system without --system, the users would become commands. */
static void warn_of_user(const struct crontab *crontab, const char *command)
{
	char user[64];
	size_t length = strcspn(command, " \t");

	if (crontab->is_system || length == 0 || length >= sizeof user || !command[length])
		return;
	memcpy(user, command, length);
	user[length] = 0;
	if (getpwnam(user))
		note(crontab, "the command begins with '%s', a user: what names users needs --system", user);
}

static void note_tube(struct crontab *crontab)
{
	for (size_t i = 0; i < crontab->tube_count; i++)
		if (strcmp(crontab->tubes[i], crontab->tube) == 0)
			return;
	if (crontab->tube_count < CRONTAB_TUBES)
		strcpy(crontab->tubes[crontab->tube_count++], crontab->tube);
}

/* A zone that the crontab does not name is wrong for all lines. Return 0, or -1 if nothing can be carried over. */
static int refuse_line(
    struct crontab *crontab, const char *expression, const char *zone, const struct ww_calendar_problem *problem)
{
	char place[400];

	if (problem->in_zone && !*crontab->zone) {
		crontab->is_refused = 1;
		zone_refuse(
		    crontab->schedule.zone ? "import crontab: --tz" : "import crontab: the zone of this machine",
		    expression, zone, problem);
		return -1;
	}
	snprintf(place, sizeof place, "%s:%u: this line is not carried over", crontab->file, crontab->number);
	zone_refuse(place, expression, zone, problem);
	crontab->left_out++;
	crontab->refused++;
	return 0;
}

/* Return 1 if a server would take it, and 0 or -1 after a message. */
static int is_sound(struct crontab *crontab, const char *expression, const char *zone)
{
	const struct ww_calendar_spec spec = {.expression = expression, .zone = zone};
	struct ww_calendar_problem problem = {0};
	struct ww_calendar *calendar = NULL;
	int error = ww_calendar_open(&calendar, &spec, &problem);

	ww_calendar_close(calendar);
	if (error != WW_EINVAL)
		return 1;
	return refuse_line(crontab, expression, zone, &problem);
}

static int is_taken(const struct crontab *crontab, const struct crontab_line *line)
{
	for (size_t i = 0; i < crontab->line_count; i++)
		if (strcmp(crontab->lines[i].name, line->name) == 0 && strcmp(crontab->lines[i].tube, line->tube) == 0)
			return 1;
	return 0;
}

static char *copy_text(const char *text)
{
	size_t size = strlen(text) + 1;

	return memcpy(memory_zeroed(size, 1), text, size);
}

/* Only lines that are the same to the last byte need a number. */
static void add_line(
    struct crontab *crontab, const char *expression, const char *zone, const char *command, char *script)
{
	struct crontab_line *line;
	unsigned number = 1;

	crontab->lines = memory_grow(crontab->lines, &crontab->line_room, crontab->line_count, sizeof *crontab->lines);
	line = &crontab->lines[crontab->line_count];
	*line = (struct crontab_line){.expression = copy_text(expression), .zone = copy_text(zone), .script = script};
	strcpy(line->tube, crontab->tube);
	do
		crontab_there_name(crontab->zone, expression, command, number++, line->name);
	while (is_taken(crontab, line));
	crontab->line_count++;
	note_tube(crontab);
}

static int put_line(struct crontab *crontab, const char *expression, const char *command)
{
	char own[WW_CALENDAR_MAX + 1];
	const char *zone = *crontab->zone           ? crontab->zone
	                   : crontab->schedule.zone ? crontab->schedule.zone
	                                            : zone_local(own);
	char *script;
	int sound;

	warn_of_user(crontab, command);
	sound = is_sound(crontab, expression, zone);
	if (sound <= 0)
		return sound;
	script = crontab_script(crontab->environment, command);
	if (!script)
		return message_error("no memory");
	add_line(crontab, expression, zone, command, script);
	return 0;
}

/* Return why no tube can be named after a user, or NULL. */
static const char *set_tube(struct crontab *crontab, const char *user)
{
	int size = snprintf(crontab->tube, sizeof crontab->tube, "%s.%s", crontab_base(crontab), user);

	return size < (int)sizeof crontab->tube && tube_is_name(crontab->tube, strlen(crontab->tube))
	           ? NULL
	           : "no tube can be named after the user: expected letters, digits and + / ; . $ _ ( ) -";
}

static int take_times(struct crontab *crontab, char *line)
{
	char *command = cut_fields(line, *line == '@' ? 1 : 5);
	const char *refusal = NULL;

	join_fields(line);
	if (strncmp(line, "@reboot", 7) == 0) {
		/* It has no time, so that no schedule of it can be lost. */
		note(crontab, "%s is not carried over: let a unit of systemd start it", "@reboot");
		crontab->left_out++;
		return 0;
	}
	if (command && crontab->is_system) {
		char *user = command;

		command = cut_fields(command, 1);
		refusal = set_tube(crontab, user);
	}
	if (!command || !*command) {
		leave_out(crontab, crontab->is_system ? "expected five fields or @daily, a user and a command"
		                                      : "expected five fields or @daily, and a command");
		return 0;
	}
	if (!refusal)
		refusal = crontab_refusal(line, command);
	if (!refusal && !crontab->is_other_shell)
		refusal = crontab_percent_refusal(command);
	if (refusal) {
		leave_out(crontab, refusal);
		return 0;
	}
	if (crontab_shorten_steps(line))
		note(crontab, "a step is longer than its field, and cron takes the first value alone: '%s'", line);
	/* It may have run, as cronie takes it. */
	if (strlen(command) > DEBIAN_COMMAND_MAX)
		note(crontab, "Debian's cron refuses a command of more than 998 bytes, and never ran '%.20s...'",
		    command);
	if (crontab_has_backslashes(command))
		note(crontab, "Debian's cron makes one backslash of two; here both reach the shell: '%.60s'", command);
	return put_line(crontab, line, command);
}

static int take_line(struct crontab *crontab, char *line, int is_ended)
{
	static const char mark[] = "\xef\xbb\xbf";
	int is_marked = crontab->number == 1 && strncmp(line, mark, strlen(mark)) == 0;
	char *value, *name = line;

	line += is_marked ? strlen(mark) : 0;
	line += strspn(line, " \t");
	if (!*line || *line == '#')
		return 0;
	if (strcmp(line, "\r") == 0) {
		leave_out(
		    crontab, "cron refuses a line of a carriage return alone: remove them all, by sed 's/\\r$//'");
		return 0;
	}
	if (is_marked || !is_ended) {
		leave_out(crontab,
		    is_marked ? "cron refuses the byte order mark before this line: save the file as UTF-8 without it"
		              : "cron ignores a last line without a newline: end it with one");
		return 0;
	}
	/* A dash was hardly meant to begin a name. */
	value = *line == '-' ? NULL : split_variable(line, &name);
	if (value) {
		take_variable(crontab, name, value);
		return 0;
	}
	if (*line == '-' && !crontab->is_system) {
		leave_out(crontab, "cron refuses a - before the minute: remove it");
		return 0;
	}
	/* cronie takes a dash of root and of the system's crontabs: it keeps the job out of the log. */
	line += *line == '-';
	return take_times(crontab, line);
}

/* The caller frees it. Returns NULL after a message. */
static char *read_text(const char *file)
{
	char *bytes, *text;
	size_t size;

	if (put_read_file(file, &bytes, &size))
		return NULL;
	text = bytes ? strndup(bytes, size) : strdup("");
	free(bytes);
	if (text && strlen(text) == size)
		return text;
	if (text)
		message_error("%s: it is no crontab, as there is a byte 0 in it: save it as UTF-8", file);
	else
		message_error("no memory");
	free(text);
	return NULL;
}

static int read_file(struct crontab *crontab, const char *file)
{
	char *text = read_text(file);
	char *at = text;
	int failed = 0;

	if (!text)
		return -1;
	crontab->file = file;
	crontab->number = 0;
	crontab->is_other_shell = 0;
	crontab->zone[0] = crontab->environment[0] = 0;
	snprintf(crontab->tube, sizeof crontab->tube, "%s", crontab_base(crontab));
	while (at && !failed) {
		char *line = strsep(&at, "\n");

		crontab->number++;
		failed = take_line(crontab, line, at != NULL);
	}
	free(text);
	return failed;
}

/* As crontab(1) installs no crontab with a line that it refuses. And a "crontab -l" that failed must not end all schedules. */
static int check_whole(const struct crontab *crontab)
{
	if (crontab->refused)
		return message_error(
		    "nothing was changed: with --replace, no line may be refused, as its former schedule would be "
		    "removed; correct the lines above, or make comments of them");
	if (!crontab->line_count)
		return message_error(
		    "nothing was changed: %s has no line with a time, and --replace would remove every schedule; "
		    "'weekwheel schedule remove' removes one",
		    crontab->files[0]);
	return 0;
}

static void free_lines(struct crontab *crontab)
{
	for (size_t i = 0; i < crontab->line_count; i++) {
		free(crontab->lines[i].expression);
		free(crontab->lines[i].zone);
		free(crontab->lines[i].script);
	}
	free(crontab->lines);
	free(crontab->files);
	crontab_there_free(&crontab->there);
}

static int run(void *context)
{
	struct crontab *crontab = context;
	int failed = 0;

	for (size_t i = 0; i < crontab->file_count && !failed; i++)
		failed = read_file(crontab, crontab->files[i]);
	failed = failed || (crontab->is_whole && check_whole(crontab)) || crontab_apply(crontab);
	free_lines(crontab);
	if (failed)
		return crontab->is_refused && crontab->schedule.zone ? STATUS_USAGE : -1;
	return crontab->left_out ? STATUS_FAILED : STATUS_OK;
}

const struct jobs_command command_crontab = {
    .name = "weekwheel import crontab",
    JOBS_TABLE(table),
    .context =
        &(struct crontab){
            .schedule = {.action = -1, .priority = 1024, .run = 60 * DURATION_SECOND, .words = " attempts=1"}},
    .server = JOBS_ADDRESS,
    .take = take,
    .check = check,
    .run = run,
    .usage = "Usage: weekwheel import crontab [OPTION]... FILE...\n"
             "\n"
             "Make a schedule of each line of a crontab. A job's body is a script for sh, with\n"
             "the crontab's variables; its command is tried once, and buried if it fails. What\n"
             "does not carry over is said. After a change import it again with --replace: without it,\n"
             "schedules of lines that are gone go on, and are named.\n",
    .examples = "Examples:\n"
                "  crontab -l | weekwheel import crontab -\n"
                "  weekwheel work --jobs 20 --tube cron -- sh\n"
                "  weekwheel import crontab --replace --dry-run mine\n"
                "  weekwheel import crontab --system --dry-run /etc/crontab\n",
};
