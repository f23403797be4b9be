/* The command move. */
#include <inttypes.h>
#include <stdio.h>

#include "tools/common/duration.h"
#include "tools/common/command.h"
#include "tools/weekwheel/jobs/jobs.h"

enum { IN = 1, AT, VERSION };

static const struct option table[] = {
    JOBS_TUBE_OPTION("the tube of the key (default 'default')"),
    JOBS_KEY_OPTION("the job with this key"),
    {IN, 'i', "in", "TIME", "due after: 90, 90s, 1.5h, 3d12h, 2w"},
    {AT, 'a', "at", "WHEN", "due at: '2026-12-01 09:00' (local), or with a zone's\noffset, or @ and Unix seconds"},
    {VERSION, 0, "if-version", "N", "only if the job has this version"},
    JOBS_OPTIONS,
};

enum { OPTION_COUNT = sizeof table / sizeof *table };

struct move_command {
	struct jobs jobs;
	uint64_t id, delay, at, version;
	int has_delay, has_at;
};

static int take_option(void *context, const struct options *options, int id)
{
	struct move_command *move = context;

	switch (id) {
	case IN:
		move->has_delay = 1;
		return jobs_duration(options, "in", 0, DURATION_MAX, &move->delay);
	case AT:
		move->has_at = 1;
		return jobs_time(options, "at", &move->at);
	case VERSION:
		if (options_whole(options->value, 1, UINT64_MAX, &move->version))
			return options_bad_value(
			    options, "if-version", "a whole number, as 'weekwheel list --json' shows it");
		return 0;
	default:
		if (move->id)
			return jobs_complain(options, "one job is expected");
		return jobs_id(options, &move->id);
	}
}

static int check(const struct move_command *move, const struct options *options)
{
	if ((move->id != 0) == (*move->jobs.key != 0))
		return jobs_complain(options, "give the id of a job, or --key");
	if (move->has_delay == move->has_at)
		return jobs_complain(options, "say when it is to be due: --in or --at");
	return 0;
}

static int ask(struct move_command *move, struct reply *reply)
{
	char verb[JOBS_KEY_TEXT + 20];
	char when[DURATION_TEXT];
	char options[80] = "";
	size_t length = 0;

	if (move->id)
		snprintf(verb, sizeof verb, "move %" PRIu64, move->id);
	else
		snprintf(verb, sizeof verb, "move-key %s", move->jobs.key);
	if (move->version)
		length = (size_t)snprintf(options, sizeof options, " version=%" PRIu64, move->version);
	duration_seconds(when, move->has_at ? move->at : move->delay);
	if (move->has_at)
		snprintf(options + length, sizeof options - length, " at=%s", when);
	return client_ask(&move->jobs.client, reply, "%s %s%s", verb, move->has_at ? "-" : when, options);
}

static void say(const struct move_command *move, uint64_t version)
{
	char when[DURATION_TEXT], left[DURATION_TEXT], name[JOBS_KEY_TEXT];
	uint64_t now = time_now();
	uint64_t due = move->has_at ? move->at : now + move->delay;

	if (move->jobs.json) {
		printf("{");
		if (move->id)
			printf("\"id\": %" PRIu64, move->id);
		else
			printf("\"key\": \"%s\"", move->jobs.key);
		printf(", \"version\": %" PRIu64 ", \"due\": \"%s\"}\n", version, duration_seconds(when, due));
		return;
	}
	if (move->id)
		printf("%" PRIu64, move->id);
	else
		fputs(jobs_key_show(move->jobs.key, name, sizeof name), stdout);
	if (due <= now)
		puts(" moved, due now");
	else
		printf(" moved, due %s, in %s\n", time_format(when, due), duration_format(left, due - now));
}

static int run(struct move_command *move)
{
	struct reply reply;
	uint64_t version;

	if (jobs_open(&move->jobs) || ask(move, &reply))
		return STATUS_FAILED;
	if (!reply_is(&reply, "MOVED")) {
		reply_refused(&move->jobs.client, &reply, "move");
		return STATUS_FAILED;
	}
	if (reply_number(&move->jobs.client, &reply, 1, &version))
		return STATUS_FAILED;
	say(move, version);
	return STATUS_OK;
}

int command_move(char **arguments)
{
	struct options options = {"weekwheel move", table, OPTION_COUNT, arguments, NULL, 0, NULL};
	struct move_command move = {.id = 0};
	int status = jobs_parse(&move.jobs, &options, take_option, &move, command_move_help);

	if (status == JOBS_PARSED)
		status = check(&move, &options) ? STATUS_USAGE : run(&move);
	jobs_close(&move.jobs);
	return status;
}

void command_move_help(FILE *out)
{
	fputs("Usage: weekwheel move [OPTION]... ID --in TIME | --at WHEN\n"
	      "       weekwheel move [OPTION]... --key KEY --in TIME | --at WHEN\n"
	      "\n"
	      "Give a job that waits another time to be due. One that is being run stays.\n"
	      "\n"
	      "Options:\n",
	    out);
	options_help(out, table, OPTION_COUNT);
	fputs("\n"
	      "Examples:\n"
	      "  weekwheel move 17 --in 2h\n"
	      "  weekwheel move --tube mail --key ada --at '2026-12-01 09:00'\n",
	    out);
}
