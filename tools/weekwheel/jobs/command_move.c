/* The command move: gives a job another time to be due. */
#include <inttypes.h>
#include <stdio.h>

#include "tools/common/duration.h"
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

struct move_command {
	struct jobs jobs;
	uint64_t id, delay, at, version;
	int has_delay, has_at;
};

static int take_option(void *context, struct options *options, int id)
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
		return jobs_version(options, &move->version);
	default:
		return move->id ? options_fail(options, "one job is expected") : jobs_id(options, &move->id);
	}
}

static int check(void *context, const struct options *options)
{
	const struct move_command *move = context;

	if ((move->id != 0) == (*move->jobs.key != 0))
		return options_fail(options, "give the id of a job, or --key");
	if (move->has_delay == move->has_at)
		return options_fail(options, "expected when it becomes due: --in or --at");
	return 0;
}

static int ask(struct move_command *move, struct reply *reply)
{
	char verb[JOBS_KEY_TEXT + 20];
	char when[DURATION_TEXT];
	char options[80] = "";

	if (move->id)
		snprintf(verb, sizeof verb, "move %" PRIu64, move->id);
	else
		snprintf(verb, sizeof verb, "move-key %s", move->jobs.key);
	if (move->version)
		jobs_add_number(options, sizeof options, "version", move->version);
	duration_seconds(when, move->has_at ? move->at : move->delay);
	if (move->has_at)
		jobs_add(options, sizeof options, "at", when);
	return client_expect(
	    &move->jobs.client, reply, "MOVED", "move", "%s %s%s", verb, move->has_at ? "-" : when, options);
}

static void write_json(const struct move_command *move, uint64_t version, uint64_t due)
{
	putchar('{');
	if (move->id)
		printf("\"id\": \"%" PRIu64 "\"", move->id);
	else
		jobs_write_key(stdout, move->jobs.key);
	printf(", \"version\": %" PRIu64 ", ", version);
	jobs_write_time(stdout, "due", due);
	puts("}");
}

static int run(void *context)
{
	struct move_command *move = context;
	char name[JOBS_KEY_TEXT];
	struct reply reply;
	uint64_t version, now, due;

	if (move->has_at)
		jobs_warn_of_past(move->at);
	if (ask(move, &reply) || reply_number(&move->jobs.client, &reply, 1, &version))
		return -1;
	now = wall_now();
	due = move->has_at ? move->at : now + move->delay;
	if (move->jobs.json) {
		write_json(move, version, due);
		return 0;
	}
	if (move->id)
		printf("%" PRIu64, move->id);
	else
		fputs(jobs_key_show(move->jobs.key, name, sizeof name), stdout);
	fputs(" moved, ", stdout);
	jobs_print_due(due, due > now ? due - now : 0);
	return 0;
}

const struct jobs_command command_move = {
    .name = "weekwheel move",
    JOBS_TABLE(table),
    .context = &(struct move_command){.id = 0},
    .server = JOBS_USING_TUBE,
    .needs = {"work", "the job's tube"},
    .take = take_option,
    .check = check,
    .run = run,
    .usage = "Usage: weekwheel move [OPTION]... ID --in TIME | --at WHEN\n"
             "       weekwheel move [OPTION]... --key KEY --in TIME | --at WHEN\n"
             "\n"
             "Give a waiting job another time to be due. A job that a worker runs stays.\n",
    .examples = "Examples:\n"
                "  weekwheel move 17 --in 2h\n"
                "  weekwheel move --tube mail --key ada --at '2026-12-01 09:00'\n",
};
