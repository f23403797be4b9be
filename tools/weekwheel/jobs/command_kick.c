/* The command kick: makes buried or delayed jobs ready. */
#include <inttypes.h>
#include <stdio.h>

#include "tools/common/message.h"
#include "tools/weekwheel/jobs/tubes.h"
#include "tools/weekwheel/jobs/yaml.h"

enum { ID = 1, MOST };

struct kick_command {
	struct jobs jobs;
	uint64_t id, bound;
	int all;
	int is_operand; /* the id: in 0.1 that was how many */
};

static const struct option table[] = {
    JOBS_TUBE_OPTION("whose jobs (default 'default'; --all: of all tubes)"),
    {JOBS_FLAG(struct kick_command, all), 'a', "all", NULL, "all that are buried, in the tube or everywhere"},
    {MOST, 'm', "most", "N", "up to N of the tube"},
    {ID, 'i', "id", "ID", "the same as ID"},
    JOBS_OPTIONS,
};

static int take_option(void *context, struct options *options, int id)
{
	struct kick_command *kick = context;

	if (id == ID)
		return jobs_whole(options, "id", 1, UINT64_MAX, &kick->id, "the id of a job, a whole number");
	if (id == MOST)
		return jobs_whole(options, "most", 1, UINT32_MAX, &kick->bound, "a whole number from 1 on");
	if (kick->is_operand || options_whole(options->value, 1, UINT64_MAX, &kick->id))
		return options_fail(options, "'%s': expected the id of one job, a whole number", options->value);
	kick->is_operand = 1;
	return 0;
}

static int check(void *context, const struct options *options)
{
	const struct kick_command *kick = context;

	if ((kick->id != 0) + (kick->bound != 0) + kick->all != 1)
		return options_fail(options, "give one of: the id of a job, --most N, --all");
	if (kick->id && kick->jobs.tube)
		return options_fail(options,
		    "an id needs no --tube; for up to %" PRIu64 " jobs of it give --most %" PRIu64, kick->id, kick->id);
	return 0;
}

static int say(const struct kick_command *kick, uint64_t count)
{
	printf(kick->jobs.json ? "{\"kicked\": %" PRIu64 "}\n" : "%" PRIu64 " kicked\n", count);
	return 0;
}

/* Kick jobs of a tube. Return 0, or -1 after a message. */
static int kick_some(struct client *client, const char *tube, uint64_t bound, uint64_t *count)
{
	struct reply reply;

	if (client_expect(client, &reply, "USING", "--tube", "use %s", tube) ||
	    client_expect(client, &reply, "KICKED", "kick", "kick %" PRIu64, bound))
		return -1;
	return reply_number(client, &reply, 1, count);
}

/* Using a tube makes it, so it is left before the question. Who may not read it gets no answer, and needs none. */
static int is_unknown(struct jobs *jobs)
{
	struct reply reply;

	if (client_expect(&jobs->client, &reply, "USING", "kick", "use default") ||
	    client_ask(&jobs->client, &reply, "stats-tube %s", jobs->tube))
		return -1;
	return reply_is(&reply, "NOT_FOUND") ? tubes_known(jobs) : 0;
}

static int kick_bound(struct kick_command *kick)
{
	const char *tube = kick->jobs.tube ? kick->jobs.tube : "default";
	uint64_t count = 0;

	if (kick_some(&kick->jobs.client, tube, kick->bound, &count) ||
	    (count == 0 && kick->jobs.tube && is_unknown(&kick->jobs)))
		return -1;
	return say(kick, count);
}

static int kick_id(struct kick_command *kick)
{
	struct client *client = &kick->jobs.client;
	struct reply reply;

	if (kick->is_operand)
		message_line("This kicks the job %" PRIu64 "; what 0.1 did with this number, --most %" PRIu64 " does",
		    kick->id, kick->id);
	if (client_ask(client, &reply, "kick-job %" PRIu64, kick->id))
		return -1;
	if (reply_is(&reply, "NOT_FOUND"))
		return message_error("kick: no job %" PRIu64
		                     " is buried or delayed; 'weekwheel peek' shows its state (NOT_FOUND)",
		    kick->id);
	return reply_is(&reply, "KICKED") ? say(kick, 1) : reply_refused(client, &reply, "kick");
}

/* Of a tube without buried jobs, the verb would kick delayed ones. */
static int kick_buried(struct kick_command *kick)
{
	struct client *client = &kick->jobs.client;
	struct tube_rows tubes;
	uint64_t sum = 0, count = 0;
	int failed;

	if (!kick->jobs.tube)
		client->needs = (struct client_needs){"read and work", "all tubes"};
	failed = tubes_read(&kick->jobs, &tubes);
	for (size_t i = 0; !failed && i < tubes.count; i++) {
		const struct tube_row *tube = &tubes.at[i];

		if (tube->buried == 0)
			continue;
		failed = kick_some(client, tube->name, tube->buried, &count);
		sum += failed ? 0 : count;
		if (!failed && !kick->jobs.tube)
			printf(kick->jobs.json ? "{\"tube\": \"%s\", \"kicked\": %" PRIu64 "}\n"
			                       : "%s: %" PRIu64 " kicked\n",
			    tube->name, count);
	}
	tubes_free(&tubes);
	if (failed)
		return -1;
	return kick->jobs.tube || !sum ? say(kick, sum) : 0;
}

static int run(void *context)
{
	struct kick_command *kick = context;

	return kick->all ? kick_buried(kick) : kick->id ? kick_id(kick) : kick_bound(kick);
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
    .usage = "Usage: weekwheel kick [OPTION]... ID\n"
             "       weekwheel kick [OPTION]... --most N\n"
             "       weekwheel kick [OPTION]... --all\n"
             "\n"
             "Make a job ready that is buried or delayed, or up to N buried ones of a tube, in\n"
             "the order in which they were buried. If none is buried, --most makes delayed ones\n"
             "ready; --all makes only buried ones ready, in all tubes unless one is given.\n",
    .examples = "Examples:\n"
                "  weekwheel kick --tube mail --most 100\n"
                "  weekwheel kick --tube mail --all\n"
                "  weekwheel kick --all\n",
};
