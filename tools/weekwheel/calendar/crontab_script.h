#ifndef TOOLS_WEEKWHEEL_CALENDAR_CRONTAB_SCRIPT_H
#define TOOLS_WEEKWHEEL_CALENDAR_CRONTAB_SCRIPT_H

/* The command of a crontab's line as a script for sh. */

/* Write `text` in single quotes of sh to `to`, which has room for 4 bytes for each byte and 3 more. Return its end. */
char *crontab_quote(char *to, const char *text);

/* Cut a command at its first % without a backslash, and make each \% before it a %. Return what follows, or NULL. */
char *crontab_cut(char *command);

/*
 * The script: `environment`, lines of shell, and the command, which ends at its first % without a backslash. What
 * follows is the command's standard input, where % ends lines. The caller frees it. NULL: no memory.
 */
char *crontab_script(const char *environment, const char *command);

#endif
