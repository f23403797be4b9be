/* The command recover: saves the jobs of a damaged directory into a new one. */
#include <inttypes.h>
#include <string.h>

#include "tools/common/command.h"
#include "tools/common/json.h"
#include "tools/common/message.h"
#include "tools/weekwheel/jobs/jobs.h"
#include "tools/weekwheel/store/store.h"

struct recover {
	const char *path;
	const char *target;
	uint64_t problems;
	int json;
};

static const struct option table[] = {
    {JOBS_FLAG(struct recover, json), 'j', "json", NULL, "write what was found and saved as a JSON object"},
    JOBS_HELP_OPTION,
};

static int take_operand(void *context, struct options *options, int id)
{
	struct recover *recover = context;

	(void)id;
	if (recover->target)
		return options_fail(options, "'%s': a damaged directory and a new one are expected", options->value);
	*(recover->path ? &recover->target : &recover->path) = options->value;
	return 0;
}

static int check(void *context, const struct options *options)
{
	const struct recover *recover = context;

	if (recover->target)
		return 0;
	return options_fail(
	    options, "a damaged directory and a new one are expected, as in 'weekwheel recover jobs jobs.new'");
}

static void report(const char *problem, void *context)
{
	struct recover *recover = context;

	if (recover->json) {
		fputs(recover->problems ? ", " : "{\"problems\": [", stdout);
		json_write_string(stdout, problem, strlen(problem));
	} else {
		puts(problem);
	}
	recover->problems++;
}

static int refused(const struct recover *recover, int error)
{
	/* The library reports what is wrong with the target. */
	struct store_place place = {.path = error == WW_EDENIED ? recover->path : recover->target};

	if (error == WW_EINVAL)
		return message_error(
		    "%s: has jobs already; name a directory that is empty or is to be made", recover->target);
	if (error == WW_EINUSE)
		return message_error(
		    "%s or %s: a server has it open; end that one first", recover->path, recover->target);
	/* It names the directory. */
	if (store_complaint()[0])
		return message_error("%s", store_complaint());
	return store_refused(&place, error);
}

/* The problems are written already. What was refused has no more. */
static void write_json(const struct recover *recover, int error, uint64_t saved)
{
	fputs(recover->problems ? "]" : "{\"problems\": []", stdout);
	if (!error)
		printf(", \"saved\": %" PRIu64, saved);
	puts("}");
}

static int run(void *context)
{
	struct recover *recover = context;
	uint64_t saved = 0;
	int error = store_recover(recover->path, recover->target, &saved, report, recover);

	if (recover->json && (!error || recover->problems))
		write_json(recover, error, saved);
	if (error) {
		(void)refused(recover, error);
		return STATUS_FAILED;
	}
	if (recover->json)
		return recover->problems ? STATUS_FAILED : STATUS_OK;
	fflush(stdout);
	message_line("%" PRIu64 " job%s saved in %s", saved, jobs_plural(saved), recover->target);
	if (recover->problems)
		message_line(
		    "Not all may be there: %" PRIu64 " problem%s.", recover->problems, jobs_plural(recover->problems));
	return recover->problems ? STATUS_FAILED : STATUS_OK;
}

const struct jobs_command command_recover = {
    .name = "weekwheel recover",
    JOBS_TABLE(table),
    .context = &(struct recover){0},
    .server = JOBS_NO_SERVER,
    .take = take_operand,
    .check = check,
    .run = run,
    .usage = "Usage: weekwheel recover [OPTION]... DIR TARGET\n"
             "\n"
             "Save the jobs that can still be read in the damaged directory DIR into the new\n"
             "directory TARGET, with their ids. What is damaged, missing or lost is printed, a line\n"
             "each. DIR is not changed, and no server may use it. The exit status is 0 if nothing\n"
             "was damaged.\n",
    .examples = "Example, a store that a server refuses:\n"
                "  weekwheel recover jobs jobs.new && weekwheel fsck jobs.new\n"
                "  mv jobs jobs.damaged && mv jobs.new jobs\n",
};
