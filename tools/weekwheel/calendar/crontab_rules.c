/* What cron refuses in a crontab, and calendars or this program would take. */
#include <ctype.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "tools/weekwheel/calendar/crontab_rules.h"
#include "tools/weekwheel/calendar/crontab_script.h"

/* A part of a field that calendars take and cron does not: L, L-3, 5L, friL, 5#2, ?, 5/15. */
static int is_beyond_cron(const char *part, size_t length)
{
	size_t word = 0;

	while (word < length && isalnum((unsigned char)part[word]))
		word++;
	if (word && tolower((unsigned char)part[word - 1]) == 'l' && word != strlen("jul"))
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
