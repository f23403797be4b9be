/* The command kick: makes buried or delayed jobs ready. */
#include <inttypes.h>
#include <stdio.h>

#include "tools/common/message.h"
#include "tools/weekwheel/jobs/fields.h"
#include "tools/weekwheel/jobs/tubes.h"

enum { ID = 1 };

struct kick_command {
	struct jobs jobs;
	uint64_t id, bound;
	int all;
};

static const struct option table[] = {
    JOBS_TUBE_OPTION("whose jobs (default 'default')"),
    {JOBS_FLAG(struct kick_command, all), 'a', "all", NULL, "all that are buried"},
    {ID, 'i', "id", "ID", "this job, buried or delayed, in any tube"},
    JOBS_OPTIONS,
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

	if ((kick->id != 0) + (kick->bound != 0) + kick->all != 1)
		return options_fail(options, "give one of: how many jobs at most, --all, --id of one");
	return 0;
}

/* Of a tube without buried jobs, the verb would kick delayed ones. Return 0, or -1 after a message. */
static int count_buried(struct kick_command *kick)
{
	struct reply reply;

	if (!kick->jobs.tube)
		kick->jobs.tube = "default";
	if (tubes_known(&kick->jobs) ||
	    client_expect(&kick->jobs.client, &reply, "OK", "kick", "stats-tube %s", kick->jobs.tube))
		return -1;
	kick->bound = field_whole(reply.body, reply.body_size, "current-jobs-buried");
	return 0;
}

static int run(void *context)
{
	struct kick_command *kick = context;
	struct client *client = &kick->jobs.client;
	uint64_t count = 1;
	struct reply reply;

	if (kick->all && count_buried(kick))
		return -1;
	if (kick->jobs.tube && client_expect(client, &reply, "USING", "--tube", "use %s", kick->jobs.tube))
		return -1;
	if (kick->all && kick->bound == 0)
		count = 0;
	else if (client_ask(
	             client, &reply, "%s %" PRIu64, kick->id ? "kick-job" : "kick", kick->id ? kick->id : kick->bound))
		return -1;
	else if (reply_is(&reply, "NOT_FOUND"))
		return message_error("kick: no job %" PRIu64
		                     " is buried or delayed; 'weekwheel peek' tells its state (NOT_FOUND)",
		    kick->id);
	else if (!reply_is(&reply, "KICKED"))
		return reply_refused(client, &reply, "kick");
	if (!kick->id && count && reply_number(client, &reply, 1, &count))
		return -1;
	printf(kick->jobs.json ? "{\"kicked\": %" PRIu64 "}\n" : "%" PRIu64 " kicked\n", count);
	return 0;
}

const struct jobs_command command_kick = {
    .name = "weekwheel kick",
    JOBS_TABLE(table),
    .context = &(struct kick_command){.id = 0},
    .server = JOBS_CONNECTED,
    .needs = {"work", "the tube default"},
    .take = take_option,
    .check = check,
    .run = run,
    .usage = "Usage: weekwheel kick [OPTION]... N\n"
             "       weekwheel kick [OPTION]... --all\n"
             "       weekwheel kick [OPTION]... --id ID\n"
             "\n"
             "Make up to N buried jobs of a tube ready, in the order in which they were buried.\n"
             "If none is buried, make delayed ones ready; --all makes only buried ones ready.\n",
    .examples = "Examples:\n"
                "  weekwheel kick --tube mail 100\n"
                "  weekwheel kick --tube mail --all\n",
};
