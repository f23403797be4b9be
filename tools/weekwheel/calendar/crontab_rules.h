#ifndef TOOLS_WEEKWHEEL_CALENDAR_CRONTAB_RULES_H
#define TOOLS_WEEKWHEEL_CALENDAR_CRONTAB_RULES_H

/*
 * What cron refuses in a crontab, and calendars or this program would take. Such a line has never run, so nobody knows
 * what it does. The rules are those of cronie and of Debian's cron.
 */

/* Return why cron refuses a line with these fields and this command, with a remedy, or NULL if it takes it. */
const char *crontab_refusal(const char *fields, const char *command);

/* Return why sh cannot run a command that ends at a %, with a remedy, or NULL. Nothing is run. */
const char *crontab_percent_refusal(const char *command);

/* Return whether crons differ in a command: of two backslashes, Debian's cron passes on one, and cronie both. */
int crontab_has_backslashes(const char *command);

/*
 * Where a step is longer than its field, cron takes the first value alone; calendars refuse it. Write that value instead,
 * or the longest step that takes it alone. Return whether there was such a step.
 */
int crontab_shorten_steps(char *fields);

#endif
