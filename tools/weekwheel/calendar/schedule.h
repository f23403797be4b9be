#ifndef TOOLS_WEEKWHEEL_CALENDAR_SCHEDULE_H
#define TOOLS_WEEKWHEEL_CALENDAR_SCHEDULE_H

/* Schedules of a server, as commands ask for them. */

#include "weekwheel/calendar.h"

#include "tools/weekwheel/jobs/jobs.h"
#include "tools/weekwheel/jobs/table.h"
#include "tools/weekwheel/jobs/words.h"

struct schedule_command {
	struct jobs jobs;
	int action; /* -1: none yet */
	const char *name, *expression, *zone, *body, *file;
	const char *overlap; /* NULL: as the server has it */
	uint64_t spread, start, end, run, priority;
	int is_paused, if_absent, shows_body;
	char words[WORDS_ROOM]; /* what other options say of the jobs, as words of the protocol */
};

/* Put the schedule, and wait for the answer. Return 0, or -1 after a message. */
int schedule_add(
    struct schedule_command *command, const char *zone, const char *body, size_t size, struct reply *reply);

/* Show those of the tube, if one was given, or the one of that percent-encoded name. Return 0, or -1 after a message. */
int schedule_list(struct schedule_command *command);
int schedule_show(struct schedule_command *command, const char *name);

/* The answer about a name was not the expected one. Returns -1 after a message. */
int schedule_refuse_name(const struct schedule_command *command, const struct reply *reply);

/* Read what a refusal, BAD_SCHEDULE, says is wrong. */
void schedule_problem(const struct reply *reply, struct ww_calendar_problem *problem);

#endif
