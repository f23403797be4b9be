/* The commands pause and resume: let a tube deliver no jobs for a time. */
#include <inttypes.h>
#include <stdio.h>

#include "tools/common/duration.h"
#include "tools/weekwheel/jobs/tubes.h"

static const struct option table[] = {JOBS_OPTIONS};

struct pause_command {
	struct jobs jobs;
	uint64_t time;
	int has_time, resumes;
};

static int take_pause(void *context, struct options *options, int id)
{
	struct pause_command *pause = context;
	struct duration_problem problem;

	(void)id;
	if (!pause->jobs.tube)
		return jobs_tube(&pause->jobs, options);
	if (pause->has_time || pause->resumes)
		return options_fail(
		    options, "'%s': one tube%s is expected", options->value, pause->resumes ? "" : ", and one time,");
	pause->has_time = 1;
	if (duration_parse(options->value, &pause->time, &problem) == 0 && pause->time &&
	    pause->time <= UINT32_MAX * DURATION_SECOND)
		return 0;
	return options_fail(options, "'%s': expected a time such as 90s or 1h", options->value);
}

static int take_resume(void *context, struct options *options, int id)
{
	((struct pause_command *)context)->resumes = 1;
	return take_pause(context, options, id);
}

static int check_tube(void *context, const struct options *options)
{
	const struct pause_command *pause = context;

	return pause->jobs.tube ? 0 : options_fail(options, "a tube is missing, such as: mail");
}

static int check_pause(void *context, const struct options *options)
{
	const struct pause_command *pause = context;

	if (check_tube(context, options))
		return OPTIONS_ERROR;
	return pause->has_time ? 0 : options_fail(options, "a time is missing, such as: %s 1h", pause->jobs.tube);
}

static int run(void *context)
{
	struct pause_command *pause = context;
	/* The protocol has whole seconds, and a pause must not be shorter than asked for. */
	uint64_t seconds = (pause->time + DURATION_SECOND - 1) / DURATION_SECOND;
	char span[DURATION_TEXT], until[DURATION_TEXT];
	struct reply reply;

	if (tubes_known(&pause->jobs) || client_expect(&pause->jobs.client, &reply, "PAUSED", pause->jobs.tube,
	                                     "pause-tube %s %" PRIu64, pause->jobs.tube, seconds))
		return -1;
	if (pause->jobs.json)
		printf("{\"tube\": \"%s\", \"paused\": %" PRIu64 "}\n", pause->jobs.tube, seconds);
	else if (pause->resumes)
		printf("%s goes on\n", pause->jobs.tube);
	else
		printf("%s delivers no jobs for %s, until %s\n", pause->jobs.tube,
		    duration_format(span, seconds * DURATION_SECOND),
		    time_format(until, wall_now() + seconds * DURATION_SECOND));
	return 0;
}

const struct jobs_command command_pause = {
    .name = "weekwheel pause",
    JOBS_TABLE(table),
    .context = &(struct pause_command){.time = 0},
    .server = JOBS_CONNECTED,
    .needs = {"admin", "the tube"},
    .take = take_pause,
    .check = check_pause,
    .run = run,
    .usage = "Usage: weekwheel pause [OPTION]... TUBE TIME\n"
             "\n"
             "Let a tube deliver no jobs for a time. Jobs can be put, and those that run go on.\n",
    .examples = "Example:\n"
                "  weekwheel pause mail 1h\n",
};

const struct jobs_command command_resume = {
    .name = "weekwheel resume",
    JOBS_TABLE(table),
    .context = &(struct pause_command){.time = 0},
    .server = JOBS_CONNECTED,
    .needs = {"admin", "the tube"},
    .take = take_resume,
    .check = check_tube,
    .run = run,
    .usage = "Usage: weekwheel resume [OPTION]... TUBE\n"
             "\n"
             "End the pause of a tube.\n",
    .examples = "Example:\n"
                "  weekwheel resume mail\n",
};
