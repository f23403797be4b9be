/* The command schedule: adds and changes schedules of a server, and shows them. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "tools/common/command.h"
#include "tools/common/duration.h"
#include "tools/common/message.h"
#include "tools/common/percent.h"
#include "tools/common/utf8.h"
#include "tools/job/job.h"
#include "tools/weekwheel/calendar/schedule.h"
#include "tools/weekwheel/calendar/zone.h"
#include "tools/weekwheel/jobs/put.h"

enum {
	ZONE = 1,
	BODY_FILE,
	MISSED,
	SKIP,
	OVERLAP,
	SPREAD,
	START,
	END,
	RUN,
	PRIORITY,
	ATTEMPTS,
	BACKOFF,
	KEEP,
	EXPIRE,
	EXPIRED,
	CODE,
	GROUP
};

static const struct option table[] = {
    JOBS_TUBE_OPTION("of the schedule's jobs (default \"default\"; list: all)"),
    {ZONE, 'z', "tz", "ZONE", "of the expression, such as Europe/Berlin (default:\nthis machine's)"},
    {BODY_FILE, 'f', "file", "FILE", "the jobs' body is what the file has; - is standard\ninput"},
    {MISSED, 0, "missed", "HOW",
        "times that pass while no server runs: once (one job\nfor all, the default), all, or skip"},
    {SKIP, 0, "skip", "TIME", "with --missed skip: times that are older have no job"},
    {OVERLAP, 0, "overlap", "HOW", "while the former job has not ended: allow (the\ndefault), skip this time, or wait"},
    {SPREAD, 0, "spread", "TIME", "each schedule's jobs come a part of TIME later,\nalways the same"},
    {START, 0, "start", "TIME", "no job before TIME"},
    {END, 0, "end", "TIME", "no job after TIME"},
    {RUN, 'r', "run", "TIME", "how long a worker may take (default 60s)"},
    {PRIORITY, 'p', "priority", "N", "lower is delivered first (default 1024)"},
    {ATTEMPTS, 0, "attempts", "N", "bury a job after N failed attempts"},
    {GROUP, 'g', "group", "GROUP", "of the jobs; it may have limits (see weekwheel limit)"},
    {KEEP, 0, "keep", "TIME", "keep how each run ended for TIME; 'weekwheel history'\nshows it"},
    {EXPIRE, 0, "expire", "TIME", "a job expires if no worker has it this long after\nit is due"},
    {EXPIRED, 0, "expired", "WHICH", "with --expire: then drop it, or bury it (default drop)"},
    {CODE, 0, "code", "N", "for workers with --code N or more, or with none"},
    {BACKOFF, 0, "backoff", "TIME", "the delay after a failed attempt; doubles with each"},
    {JOBS_FLAG(struct schedule_command, is_paused), 0, "paused", NULL, "add it paused"},
    {JOBS_FLAG(struct schedule_command, shows_body), 'b', "body", NULL,
        "with show: write only the body of the jobs,\nunchanged"},
    {JOBS_FLAG(struct schedule_command, if_absent), 0, "if-absent", NULL, "keep a schedule of that name as it is"},
    JOBS_OPTIONS,
};

static const struct action {
	const char *name, *verb, *word, *said;
} actions[] = {
    {"add", NULL, NULL, NULL},
    {"list", NULL, NULL, NULL},
    {"show", NULL, NULL, NULL},
    {"pause", "pause-schedule", "PAUSED", "paused"},
    {"resume", "resume-schedule", "RESUMED", "resumed"},
    {"run", "run-schedule", "INSERTED", "put"},
    {"remove", "delete-schedule", "DELETED", "removed"},
};

enum { ADD, LIST, SHOW, PAUSE, RESUME, RUN_NOW, REMOVE, ACTIONS };

/* ---- The command line */

static int take_overlap(struct schedule_command *command, const struct options *options)
{
	for (int i = 0; job_overlaps[i]; i++)
		if (strcmp(options->value, job_overlaps[i]) == 0)
			command->overlap = job_overlaps[i];
	return command->overlap ? 0 : options_bad_value(options, "overlap", "allow, skip or wait");
}

static int take_operand(struct schedule_command *command, const struct options *options)
{
	if (command->action < 0) {
		for (int i = 0; i < ACTIONS; i++)
			if (strcmp(options->value, actions[i].name) == 0)
				command->action = i;
		if (command->action < 0)
			return options_fail(
			    options, "'%s': expected add, list, show, pause, resume, run or remove", options->value);
		return 0;
	}
	if (command->action == LIST)
		return options_fail(
		    options, "'%s': no operand is expected; --tube TUBE lists those of one tube", options->value);
	if (!command->name) {
		command->name = options->value;
		return 0;
	}
	if (command->action != ADD)
		return options_fail(options, "'%s': one name is expected", options->value);
	if (!command->expression)
		command->expression = options->value;
	else if (!command->body)
		command->body = options->value;
	else
		return options_fail(options,
		    "'%s': expected NAME 'EXPRESSION' BODY; an expression with blanks needs quotes", options->value);
	return 0;
}

static int take_word(struct schedule_command *command, const struct options *options, int id)
{
	const uint64_t least = id == KEEP ? DURATION_SECOND : id == ATTEMPTS ? 1 : 0;
	char *word = command->words + strlen(command->words);
	int wrong = words_take(command->words, options, id, least);

	/* It says nothing, and needs no --missed. */
	if (!wrong && strcmp(word, " skip=0") == 0)
		*word = 0;
	return wrong;
}

static int take(void *context, struct options *options, int id)
{
	struct schedule_command *command = context;

	switch (id) {
	case ZONE:
		command->zone = options->value;
		return 0;
	case BODY_FILE:
		command->file = options->value;
		return 0;
	case OVERLAP:
		return take_overlap(command, options);
	case SPREAD:
		return jobs_duration(options, "spread", DURATION_SECOND, DURATION_MAX, &command->spread);
	case START:
		return jobs_time_from(options, "start", &command->start);
	case END:
		return jobs_time_from(options, "end", &command->end);
	case RUN:
		return jobs_duration(options, "run", DURATION_SECOND, DURATION_MAX, &command->run);
	case PRIORITY:
		return jobs_whole(
		    options, "priority", 0, UINT32_MAX, &command->priority, "a whole number up to 4294967295");
	case MISSED:
	case SKIP:
	case ATTEMPTS:
	case GROUP:
	case KEEP:
	case EXPIRE:
	case EXPIRED:
	case CODE:
	case BACKOFF:
		return take_word(command, options, id);
	default:
		return take_operand(command, options);
	}
}

static int check(void *context, const struct options *options)
{
	const struct schedule_command *command = context;

	if (command->action < 0)
		return options_fail(options, "expected add, list, show, pause, resume, run or remove");
	if (command->action != LIST && (!command->name || !*command->name))
		return options_fail(
		    options, "the schedule's name is missing, such as: %s backup", actions[command->action].name);
	if (command->action == ADD && !command->expression)
		return options_fail(options, "the expression is missing, such as: add %s '0 3 * * *'", command->name);
	if (command->shows_body && (command->action != SHOW || command->jobs.json))
		return options_fail(options, "--body is for show, without --json: it writes the bytes unchanged");
	if (strstr(command->words, " skip=") && !strstr(command->words, " missed=skip"))
		return options_fail(options, "--skip needs --missed skip");
	if (strstr(command->words, " expired=") && !strstr(command->words, " expire="))
		return options_fail(
		    options, "--expired says what becomes of a job after --expire TIME, which is missing");
	if (command->start && command->end && command->start > command->end)
		return options_fail(options, "--start is after --end: the schedule would have no time");
	return command->body && command->file ? options_fail(options, "give either BODY or --file") : 0;
}

/* ---- Adding */

static void add_time(char *text, size_t room, const char *name, uint64_t ns)
{
	char seconds[DURATION_TEXT];

	if (ns)
		jobs_add(text, room, name, duration_seconds(seconds, ns));
}

static void add_encoded(char *text, size_t room, const char *name, const char *value)
{
	char encoded[3 * WW_CALENDAR_MAX + 1];

	(void)percent_encode(value, strlen(value), encoded, sizeof encoded);
	jobs_add(text, room, name, encoded);
}

/* Queue the schedule. Its texts are not too long. */
static void send_schedule(struct schedule_command *command, const char *zone, const char *body, size_t size)
{
	char words[2000] = "";
	char name[3 * WW_CALENDAR_MAX + 1];
	char run[DURATION_TEXT], spread[DURATION_TEXT];

	(void)percent_encode(command->name, strlen(command->name), name, sizeof name);
	add_encoded(words, sizeof words, "cron", command->expression);
	add_encoded(words, sizeof words, "zone", zone);
	jobs_add(words, sizeof words, "overlap", command->overlap);
	add_time(words, sizeof words, "start", command->start);
	add_time(words, sizeof words, "end", command->end);
	jobs_add(words, sizeof words, "paused", command->is_paused ? "yes" : NULL);
	jobs_add(words, sizeof words, "mode", command->if_absent ? "if-absent" : NULL);
	client_line(&command->jobs.client, "put-schedule %" PRIu64 " %s %s %zu %s%s%s", command->priority,
	    duration_seconds(spread, command->spread), duration_seconds(run, command->run), size, name, words,
	    command->words);
	client_body(&command->jobs.client, body, size);
}

/* "BAD_SCHEDULE cron 2 what%20is%20wrong" */
void schedule_problem(const struct reply *reply, struct ww_calendar_problem *problem)
{
	const char *at = reply->word[3];
	const char *end = at + strlen(at);

	*problem = (struct ww_calendar_problem){.in_zone = strcmp(reply->word[1], "zone") == 0};
	problem->at = (size_t)strtoul(reply->word[2], NULL, 10);
	for (size_t i = 0; at < end && i < sizeof problem->reason - 1; i++)
		problem->reason[i] = percent_take(&at, end);
}

static const char *shown_name(const struct schedule_command *command)
{
	static char shown[WW_JOB_KEY_MAX + 4];

	return utf8_show(command->name, strlen(command->name), shown, sizeof shown);
}

static int refuse(const struct schedule_command *command, const char *zone, const struct reply *reply)
{
	struct ww_calendar_problem problem;

	schedule_problem(reply, &problem);
	if (strcmp(reply->word[1], "name") == 0) {
		message_error("%s: %s", shown_name(command), problem.reason);
		return STATUS_USAGE;
	}
	zone_refuse("schedule", command->expression, zone, &problem);
	return STATUS_USAGE;
}

/* What the server's clock says, if it is one that is moved by hand and the client may see it; otherwise ours. */
static uint64_t server_now(struct client *client)
{
	struct duration_problem problem;
	struct reply reply;
	uint64_t now;

	if (client_ask(client, &reply, "advance 0") == 0 && reply_is(&reply, "ADVANCED") &&
	    duration_parse(reply.word[1], &now, &problem) == 0)
		return now;
	return wall_now();
}

static int answer_add(struct schedule_command *command, const char *zone, const struct reply *reply)
{
	struct duration_problem problem;
	uint64_t next = 0;
	char time[ZONE_TIME_TEXT], in[DURATION_TEXT];
	const char *was = "";
	uint64_t now;

	if (reply_is(reply, "BAD_SCHEDULE"))
		return refuse(command, zone, reply);
	if (!reply_is(reply, "SCHEDULED") && !reply_is(reply, "KEPT"))
		return reply_refused(&command->jobs.client, reply, "schedule");
	(void)duration_parse(reply->word[1], &next, &problem);
	if (command->jobs.json) {
		printf("{\"result\": \"%s\", ", reply_is(reply, "KEPT") ? "kept"
		                                : reply->words > 2      ? "replaced"
		                                                        : "new");
		jobs_write_time(stdout, "next", next);
		puts("}");
		return STATUS_OK;
	}
	if (reply_is(reply, "KEPT")) {
		printf("%s: there is such a schedule already; it is kept\n", shown_name(command));
		return STATUS_OK;
	}
	if (reply->words > 2)
		was = strcmp(reply->word[2], "resumed") == 0 ? "replaced, no longer paused, " : "replaced, ";
	now = server_now(&command->jobs.client);
	if (next)
		printf("%s: %snext at %s, in %s\n", shown_name(command), was, zone_clock(time, next, zone),
		    duration_format(in, next > now ? next - now : 0));
	else
		printf("%s: %s%s\n", shown_name(command), was, command->is_paused ? "paused" : "no next time");
	if (!command->body && !command->file)
		message_warning("schedule: the jobs of '%s' have an empty body; give one behind the expression, or "
		                "with --file",
		    command->name);
	return STATUS_OK;
}

int schedule_add(struct schedule_command *command, const char *zone, const char *body, size_t size, struct reply *reply)
{
	if (strlen(command->name) > WW_CALENDAR_MAX || strlen(command->expression) > WW_CALENDAR_MAX ||
	    strlen(zone) > WW_CALENDAR_MAX)
		return message_error(
		    "schedule: a name, an expression and a zone have at most %d bytes", WW_CALENDAR_MAX);
	send_schedule(command, zone, body, size);
	return client_flush(&command->jobs.client) || client_read(&command->jobs.client, reply) ? -1 : 0;
}

/* A schedule that is over already would replace one that runs. */
static int check_end(struct schedule_command *command)
{
	char text[DURATION_TEXT];

	if (!command->end || command->end > server_now(&command->jobs.client))
		return 0;
	message_error(
	    "schedule: --end %s is in the past: the schedule would have no time", time_format_zone(text, command->end));
	return STATUS_USAGE;
}

static int add(struct schedule_command *command)
{
	char own[WW_CALENDAR_MAX + 1];
	const char *zone = command->zone ? command->zone : zone_local(own);
	char *content = NULL;
	size_t size = command->body ? strlen(command->body) : 0;
	struct reply reply;
	int status = check_end(command);

	if (status)
		return status;
	if (command->file && put_read_file(command->file, &content, &size))
		return -1;
	status = schedule_add(command, zone, content ? content : command->body ? command->body : "", size, &reply);
	free(content);
	return status ? status : answer_add(command, zone, &reply);
}

static int run(void *context)
{
	struct schedule_command *command = context;
	const struct action *action = &actions[command->action];
	char name[3 * WW_CALENDAR_MAX + 1];
	struct reply reply;

	if (command->action == ADD)
		return add(command);
	if (command->action == LIST)
		return schedule_list(command);
	(void)percent_encode(command->name, strnlen(command->name, WW_CALENDAR_MAX), name, sizeof name);
	if (command->action == SHOW)
		return schedule_show(command, name);
	if (client_ask(&command->jobs.client, &reply, "%s %s", action->verb, name))
		return -1;
	if (!reply_is(&reply, action->word))
		return schedule_refuse_name(command, &reply);
	if (command->action == RUN_NOW)
		printf("%s: job %s is put\n", shown_name(command), reply.word[1]);
	else
		printf("%s: %s\n", shown_name(command), action->said);
	return 0;
}

const struct jobs_command command_schedule = {
    .name = "weekwheel schedule",
    JOBS_TABLE(table),
    .context = &(struct schedule_command){.action = -1, .priority = 1024, .run = 60 * DURATION_SECOND},
    .server = JOBS_USING_TUBE,
    .take = take,
    .check = check,
    .run = run,
    .usage = "Usage: weekwheel schedule add [OPTION]... NAME EXPRESSION [BODY]\n"
             "       weekwheel schedule list [OPTION]...\n"
             "       weekwheel schedule show|pause|resume|run|remove [OPTION]... NAME\n"
             "\n"
             "Put a job at each time of an expression of cron, in a zone, also when its clocks\n"
             "change. A job's key is NAME@TIME, and each time has one job, however many servers\n"
             "share a store. 'weekwheel cron' explains expressions.\n",
    .examples = "Examples:\n"
                "  weekwheel schedule add backup '0 3 * * *' ./backup --tz Europe/Berlin\n"
                "  weekwheel schedule add mail '*/5 9-17 * * mon-fri' report --overlap skip\n"
                "  weekwheel schedule list\n"
                "  weekwheel schedule show mail --body\n"
                "  weekwheel schedule pause backup\n",
};
