/*
 * The command of a crontab's line as a script for sh. The shell of the worker reads the script and evaluates the
 * command, which stands in quotes: no byte of it can end the quotes, and nothing of the script is its input.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/weekwheel/calendar/crontab_script.h"

char *crontab_quote(char *to, const char *text)
{
	*to++ = '\'';
	for (; *text; text++)
		if (*text == '\'')
			to = stpcpy(to, "'\\''");
		else
			*to++ = *text;
	return stpcpy(to, "'");
}

/*
 * A \ keeps the next character from ending the command, whatever it is: \\% ends the command, which goes on after \\\%.
 * Only before a % is the \ dropped, as cronie does. Debian's cron drops the first of \\, too.
 */
char *crontab_cut(char *command)
{
	char *to = command;
	const char *from = command;
	int is_cut;

	for (; *from && *from != '%'; from++) {
		if (*from == '\\' && from[1]) {
			if (from[1] != '%')
				*to++ = *from;
			from++;
		}
		*to++ = *from;
	}
	is_cut = *from == '%';
	*to = 0;
	return is_cut ? command + (from - command) + 1 : NULL;
}

/* Each % becomes the end of a line, and each \% a %. The last line gets an end, too: `text` has room for it. */
static void make_input(char *text)
{
	char *to = text;
	char *begin = text;

	for (; *text; text++)
		if (*text == '\\' && text[1] == '%')
			*to++ = *++text;
		else
			*to++ = *text == '%' ? '\n' : *text;
	if (to > begin && to[-1] != '\n')
		*to++ = '\n';
	*to = 0;
}

static int begins_a_line(char c, const char *input)
{
	for (const char *line = input; *line == c || (line = strchr(line, '\n')); line++)
		if (*line == c)
			return 1;
	return 0;
}

/*
 * A here-document whose end is nowhere in the input, and begins with a letter that no line begins with: where a line begins
 * as the end does, dash 0.5.12 loses a byte above 127 that follows. Where lines begin with all letters, it still does.
 */
static void add_input(char *to, const char *input)
{
	char end[40];
	char first = 'A';
	unsigned number = 0;

	while (first < 'Z' && begins_a_line(first, input))
		first++;
	do
		snprintf(end, sizeof end, "%cINPUT-%u", first, ++number);
	while (strstr(input, end));
	(void)sprintf(to, " <<'%s'\n%s%s\n", end, input, end);
}

char *crontab_script(const char *environment, const char *command)
{
	size_t length = strlen(command);
	char *own = malloc(length + 3);
	char *script = malloc(strlen(environment) + 5 * length + 200);
	char *input, *to;

	if (own && script) {
		/* The blank keeps a command that begins with a dash from being an option of eval. */
		*own = ' ';
		strcpy(own + 1, command);
		input = crontab_cut(own);
		to = stpcpy(stpcpy(script, environment), "eval ");
		to = crontab_quote(to, own);
		if (input) {
			make_input(input);
			add_input(to, input);
		} else {
			strcpy(to, " </dev/null\n");
		}
	} else {
		free(script);
		script = NULL;
	}
	free(own);
	return script;
}
