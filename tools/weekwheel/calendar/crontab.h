#ifndef TOOLS_WEEKWHEEL_CALENDAR_CRONTAB_H
#define TOOLS_WEEKWHEEL_CALENDAR_CRONTAB_H

/*
 * The import of crontabs: command_crontab.c reads the lines, and crontab_apply.c makes their schedules. In between, the lines are
 * whole: with --replace nothing is changed unless all of them carry over.
 */

#include "tools/weekwheel/calendar/crontab_there.h"
#include "tools/weekwheel/calendar/schedule.h"

enum { CRONTAB_TUBES = 64, CRONTAB_ENVIRONMENT = 8192 };

/* A line with a time that carries over. Its texts are its own. */
struct crontab_line {
	char *expression, *zone, *script;
	char tube[WW_TUBE_MAX + 1];
	char name[CRONTAB_NAME];
};

struct crontab {
	struct schedule_command schedule; /* begins with the struct jobs */
	const char **files;
	size_t file_count, file_room;
	int is_system, is_dry, is_whole; /* whole: what the crontabs do not have goes */
	/* While a file is read. */
	const char *file;
	unsigned number;                       /* of the line */
	char zone[WW_CALENDAR_MAX + 1];        /* "": that of all lines */
	char environment[CRONTAB_ENVIRONMENT]; /* lines of shell that the jobs begin with */
	int is_other_shell;                    /* than sh, for which commands are written */
	char tube[WW_TUBE_MAX + 1];
	/* What has been read. */
	struct crontab_line *lines;
	size_t line_count, line_room;
	unsigned left_out, refused;                 /* lines; refused: those that cron or this program does not take */
	int is_refused;                             /* the zone for all lines is none */
	char tubes[CRONTAB_TUBES][WW_TUBE_MAX + 1]; /* that get a schedule */
	size_t tube_count;
	/* What is made of it. */
	struct crontab_there there; /* of the server; empty without one */
	unsigned made, changed, removed, kept;
};

/* The tube of lines without a user. */
static inline const char *crontab_base(const struct crontab *crontab)
{
	return crontab->schedule.jobs.tube ? crontab->schedule.jobs.tube : "cron";
}

/* Make the schedules, or only show them, and say what came of it. Returns 0, or -1 after a message. */
int crontab_apply(struct crontab *crontab);

#endif
