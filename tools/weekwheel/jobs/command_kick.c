/* The command kick. */
#include <inttypes.h>
#include <stdio.h>

#include "tools/common/command.h"
#include "tools/weekwheel/jobs/jobs.h"

enum { ID = 1 };

static const struct option table[] = {
    JOBS_TUBE_OPTION("whose jobs (default 'default')"),
    {ID, 'i', "id", "ID", "this job, buried or delayed, of whatever tube"},
    JOBS_OPTIONS,
};

enum { OPTION_COUNT = sizeof table / sizeof *table };

struct kick_command {
	struct jobs jobs;
	uint64_t id, bound;
};

static int take_option(void *context, const struct options *options, int id)
{
	struct kick_command *kick = context;

	if (id == ID)
		return options_whole(options->value, 1, UINT64_MAX, &kick->id)
		           ? options_bad_value(options, "id", "the id of a job, a whole number")
		           : 0;
	if (options_whole(options->value, 1, UINT32_MAX, &kick->bound))
		return jobs_complain(
		    options, "'%s': expected how many jobs at most, a whole number; or --id ID", options->value);
	return 0;
}

static int check(const struct kick_command *kick, const struct options *options)
{
	if ((kick->id != 0) == (kick->bound != 0))
		return jobs_complain(options, "give either how many jobs at most, or --id of one");
	return 0;
}

static int run(struct kick_command *kick)
{
	struct client *client = &kick->jobs.client;
	uint64_t count = 1;
	struct reply reply;

	if (jobs_open(&kick->jobs) || (kick->id ? client_ask(client, &reply, "kick-job %" PRIu64, kick->id)
	                                        : client_ask(client, &reply, "kick %" PRIu64, kick->bound)))
		return STATUS_FAILED;
	if (!reply_is(&reply, "KICKED")) {
		reply_refused(client, &reply, "kick");
		return STATUS_FAILED;
	}
	if (!kick->id && reply_number(client, &reply, 1, &count))
		return STATUS_FAILED;
	if (kick->jobs.json)
		printf("{\"kicked\": %" PRIu64 "}\n", count);
	else
		printf("%" PRIu64 " kicked\n", count);
	return STATUS_OK;
}

int command_kick(char **arguments)
{
	struct options options = {"weekwheel kick", table, OPTION_COUNT, arguments, NULL, 0, NULL};
	struct kick_command kick = {.id = 0};
	int status = jobs_parse(&kick.jobs, &options, take_option, &kick, command_kick_help);

	if (status == JOBS_PARSED)
		status = check(&kick, &options) ? STATUS_USAGE : run(&kick);
	jobs_close(&kick.jobs);
	return status;
}

void command_kick_help(FILE *out)
{
	fputs("Usage: weekwheel kick [OPTION]... N\n"
	      "       weekwheel kick [OPTION]... --id ID\n"
	      "\n"
	      "Make up to N buried jobs of a tube ready, those first that were buried first; if\n"
	      "none is buried, delayed ones.\n"
	      "\n"
	      "Options:\n",
	    out);
	options_help(out, table, OPTION_COUNT);
	fputs("\n"
	      "Example:\n"
	      "  weekwheel kick --tube mail 100\n",
	    out);
}
