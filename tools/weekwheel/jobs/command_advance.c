/* The command advance: moves the clock of a server whose clock is virtual. */
#include <inttypes.h>
#include <stdio.h>

#include "tools/common/duration.h"
#include "tools/common/message.h"
#include "tools/weekwheel/jobs/jobs.h"

static const struct option table[] = {JOBS_OPTIONS};

struct advance {
	struct jobs jobs;
	uint64_t ns;
	int given;
};

static int take_duration(void *context, struct options *options, int id)
{
	struct advance *advance = context;
	struct duration_problem problem;

	(void)id;
	advance->given++;
	if (duration_parse(options->value, &advance->ns, &problem) == 0)
		return 0;
	return options_fail(
	    options, "'%s': at byte %zu: expected %s", options->value, problem.at + 1, problem.expected);
}

static int check(void *context, const struct options *options)
{
	const struct advance *advance = context;

	return advance->given == 1 ? 0 : options_fail(options, "expected one duration, such as 90s or 3d12h");
}

static int run(void *context)
{
	struct advance *advance = context;
	struct jobs *jobs = &advance->jobs;
	char text[DURATION_TEXT];
	struct reply reply;
	uint64_t now;

	if (client_ask(&jobs->client, &reply, "advance %s", duration_seconds(text, advance->ns)))
		return -1;
	if (reply_is(&reply, "UNKNOWN_COMMAND"))
		return message_error(
		    "%s: the server's clock is real, and goes by itself; weekwheeld --clock virtual has one to advance",
		    jobs->server);
	if (!reply_is(&reply, "ADVANCED"))
		return reply_refused(&jobs->client, &reply, "advance");
	if (reply_number(&jobs->client, &reply, 1, &now))
		return -1;
	if (jobs->json)
		printf("{\"now\": %" PRIu64 "}\n", now);
	else
		printf("now %s\n", time_format(text, now * DURATION_SECOND));
	return 0;
}

const struct jobs_command command_advance = {
    .name = "weekwheel advance",
    JOBS_TABLE(table),
    .context = &(struct advance){.given = 0},
    .server = JOBS_CONNECTED,
    .needs = {"admin", "all tubes"},
    .take = take_duration,
    .check = check,
    .run = run,
    .usage = "Usage: weekwheel advance [OPTION]... DURATION\n"
             "\n"
             "Move the clock of a server that was started with --clock virtual. Jobs that\n"
             "become due are then ready. For tests.\n",
    .examples = "Example:\n"
                "  weekwheel advance 3d12h\n",
};
