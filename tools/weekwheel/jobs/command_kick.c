/* The command kick: makes buried or delayed jobs ready. */
#include <inttypes.h>
#include <stdio.h>

#include "tools/weekwheel/jobs/jobs.h"

enum { ID = 1 };

static const struct option table[] = {
    JOBS_TUBE_OPTION("whose jobs (default 'default')"),
    {ID, 'i', "id", "ID", "this job, buried or delayed, in any tube"},
    JOBS_OPTIONS,
};

struct kick_command {
	struct jobs jobs;
	uint64_t id, bound;
};

static int take_option(void *context, struct options *options, int id)
{
	struct kick_command *kick = context;

	if (id == ID)
		return jobs_whole(options, "id", 1, UINT64_MAX, &kick->id, "the id of a job, a whole number");
	if (options_whole(options->value, 1, UINT32_MAX, &kick->bound))
		return options_fail(
		    options, "'%s': expected how many jobs at most, a whole number; or --id ID", options->value);
	return 0;
}

static int check(void *context, const struct options *options)
{
	const struct kick_command *kick = context;

	if ((kick->id != 0) == (kick->bound != 0))
		return options_fail(options, "give either how many jobs at most, or --id of one");
	return 0;
}

static int run(void *context)
{
	struct kick_command *kick = context;
	struct client *client = &kick->jobs.client;
	uint64_t count = 1;
	struct reply reply;

	if (client_expect(client, &reply, "KICKED", "kick", "%s %" PRIu64, kick->id ? "kick-job" : "kick",
	        kick->id ? kick->id : kick->bound))
		return -1;
	if (!kick->id && reply_number(client, &reply, 1, &count))
		return -1;
	printf(kick->jobs.json ? "{\"kicked\": %" PRIu64 "}\n" : "%" PRIu64 " kicked\n", count);
	return 0;
}

const struct jobs_command command_kick = {
    .name = "weekwheel kick",
    JOBS_TABLE(table),
    .context = &(struct kick_command){.id = 0},
    .server = JOBS_USING_TUBE,
    .needs = {"work", "the tube default"},
    .take = take_option,
    .check = check,
    .run = run,
    .usage = "Usage: weekwheel kick [OPTION]... N\n"
             "       weekwheel kick [OPTION]... --id ID\n"
             "\n"
             "Make up to N buried jobs of a tube ready, in the order in which they were buried.\n"
             "If none is buried, make delayed ones ready.\n",
    .examples = "Example:\n"
                "  weekwheel kick --tube mail 100\n",
};
