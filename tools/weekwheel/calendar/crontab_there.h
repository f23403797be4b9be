#ifndef TOOLS_WEEKWHEEL_CALENDAR_CRONTAB_THERE_H
#define TOOLS_WEEKWHEEL_CALENDAR_CRONTAB_THERE_H

/* The names of a crontab's schedules, and those that a server has, so that an import can show and make the difference. */

#include "tools/weekwheel/jobs/jobs.h"

/*
 * The name of a line's schedule: what its command is called, and a hash of the line. If it were made different from its
 * neighbours', as by a number, a line that goes would give its name to another one. So the zone counts if
 * the crontab names it, but no variable: whoever changes PATH at the top would give all lines new names. The number is for lines
 * that are the same.
 */
enum { CRONTAB_NAME = 60 };
void crontab_there_name(
    const char *zone, const char *fields, const char *command, unsigned number, char name[CRONTAB_NAME]);

struct crontab_schedule {
	char *tube, *name, *expression, *zone, *body;
	uint64_t run; /* ns */
	int is_paused;
	int is_found; /* a line of the crontab has this name */
};

struct crontab_there {
	struct crontab_schedule *schedules;
	size_t count, room;
};

/*
 * Read all schedules of a tube, or with NULL of the server. Returns 0, -1 after a message, or, if `is_optional`, 1 if the
 * client's token may not list them.
 */
int crontab_there_read(struct crontab_there *there, struct client *client, const char *tube, int is_optional);
void crontab_there_free(struct crontab_there *there);

/* Find one and mark it as found, or return NULL. */
struct crontab_schedule *crontab_there_find(struct crontab_there *there, const char *tube, const char *name);

/* Remove it from the server. Returns 0, or -1 after a message. */
int crontab_there_remove(struct client *client, const struct crontab_schedule *schedule);

#endif
