/* The options of work, and its help. */
#include <stdio.h>
#include <string.h>

#include "tools/common/duration.h"
#include "tools/weekwheel/jobs/work.h"

enum { SLOTS = 1, ATTEMPTS, RELEASE_DELAY, DRAIN, VERBOSE };

static const struct option table[] = {
    JOBS_TUBE_OPTION("whose jobs (default 'default')"),
    {SLOTS, 'n', "jobs", "N", "run up to N commands at a time, 1 to 256 (default 1)"},
    {ATTEMPTS, 'a', "attempts", "N",
        "bury a job that has failed so often and has no such\nlimit of its own; 0: never (default 10)"},
    {RELEASE_DELAY, 'd', "release-delay", "TIME",
        "a failed job is due again after that, rather than\nafter its own backoff; without one, after 1s,\n"
        "doubled with each failure up to 1h"},
    {DRAIN, 'D', "drain", NULL, "end when no job is ready, rather than wait for more"},
    {VERBOSE, 'v', "verbose", NULL, "also say which jobs went well"},
    JOBS_OPTIONS,
};

enum { OPTION_COUNT = sizeof table / sizeof *table };

static int take_option(struct work *work, const struct options *options, int id)
{
	switch (id) {
	case SLOTS:
		return options_whole(options->value, 1, WORK_SLOTS_MAX, &work->slots)
		           ? options_bad_value(options, "jobs", "a number from 1 to 256")
		           : 0;
	case ATTEMPTS:
		return options_whole(options->value, 0, UINT32_MAX, &work->attempts)
		           ? options_bad_value(options, "attempts", "a number from 0")
		           : 0;
	case RELEASE_DELAY:
		work->has_release_delay = 1;
		return jobs_duration(options, "release-delay", 0, UINT32_MAX * DURATION_SECOND, &work->release_delay);
	case DRAIN:
		return work->drain = 1, 0;
	default:
		return work->verbose = 1, 0;
	}
}

int work_parse(struct work *work, char **arguments)
{
	struct options options = {"weekwheel work", table, OPTION_COUNT, arguments, NULL, 0, NULL};
	int id;

	memset(work, 0, sizeof *work);
	jobs_init(&work->jobs);
	work->slots = 1;
	work->attempts = 10;
	while ((id = jobs_next(&work->jobs, &options)) != OPTIONS_END) {
		if (id == JOBS_HELP) {
			work_help(stdout);
			return 1;
		}
		/* What follows the command is the command's, whatever it looks like. */
		if (id == OPTIONS_OPERAND) {
			work->command = options.arguments - 1;
			return jobs_check_server(&work->jobs, &options) ? -1 : 0;
		}
		if (id == OPTIONS_ERROR || take_option(work, &options, id))
			return -1;
	}
	jobs_complain(&options, "a command is missing, such as: weekwheel work --tube mail -- ./send");
	return -1;
}

void work_help(FILE *out)
{
	fputs("Usage: weekwheel work [OPTION]... -- COMMAND [ARGUMENT]...\n"
	      "\n"
	      "Take jobs as they become ready, and run COMMAND for each, with the body on\n"
	      "standard input and WEEKWHEEL_JOB_ID, WEEKWHEEL_JOB_KEY, WEEKWHEEL_JOB_ATTEMPT\n"
	      "(from 1) and WEEKWHEEL_TUBE in its environment. If it ends with status 0 the job\n"
	      "is done, and deleted; otherwise it is delivered again later. While it runs it\n"
	      "keeps the job, however long that takes.\n"
	      "\n"
	      "SIGTERM, SIGINT and SIGHUP: takes no more jobs, waits for the commands that run,\n"
	      "and ends. A second one: kills them, gives their jobs back, and ends.\n"
	      "\n"
	      "Options:\n",
	    out);
	options_help(out, table, OPTION_COUNT);
	fputs("\n"
	      "Examples:\n"
	      "  weekwheel work --tube mail -n 4 -- ./send --quiet\n"
	      "  weekwheel work --drain -- sh -c 'echo \"$WEEKWHEEL_JOB_ID: $(cat)\"'\n",
	    out);
}
