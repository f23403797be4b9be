/* The command advance. */
#include <inttypes.h>
#include <stdio.h>

#include "tools/common/duration.h"
#include "tools/common/message.h"
#include "tools/common/command.h"
#include "tools/weekwheel/jobs/jobs.h"

static const struct option table[] = {JOBS_OPTIONS};

enum { OPTION_COUNT = sizeof table / sizeof *table };

static int take_duration(const struct options *options, uint64_t *ns)
{
	struct duration_problem problem;

	if (duration_parse(options->value, ns, &problem) == 0)
		return 0;
	return jobs_complain(
	    options, "'%s': at byte %zu: expected %s", options->value, problem.at + 1, problem.expected);
}

static int run(struct jobs *jobs, uint64_t ns)
{
	char text[DURATION_TEXT];
	struct reply reply;
	uint64_t now;

	if (client_open(&jobs->client, jobs->server, jobs->timeout_ms) ||
	    client_ask(&jobs->client, &reply, "advance %s", duration_seconds(text, ns)))
		return STATUS_FAILED;
	if (reply_is(&reply, "UNKNOWN_COMMAND")) {
		message_error(
		    "%s: the server's clock is real, and goes by itself; weekwheeld --clock virtual has one to advance",
		    jobs->server);
		return STATUS_FAILED;
	}
	if (!reply_is(&reply, "ADVANCED")) {
		reply_refused(&jobs->client, &reply, "advance");
		return STATUS_FAILED;
	}
	if (reply_number(&jobs->client, &reply, 1, &now))
		return STATUS_FAILED;
	if (jobs->json)
		printf("{\"now\": %" PRIu64 "}\n", now);
	else
		printf("now %s\n", time_format(text, now * DURATION_SECOND));
	return STATUS_OK;
}

int command_advance(char **arguments)
{
	struct options options = {"weekwheel advance", table, OPTION_COUNT, arguments, NULL, 0, NULL};
	uint64_t ns = 0;
	int given = 0;
	struct jobs jobs;
	int status;
	int id;

	jobs_init(&jobs);
	while ((id = jobs_next(&jobs, &options)) != OPTIONS_END) {
		if (id == JOBS_HELP) {
			command_advance_help(stdout);
			return STATUS_OK;
		}
		if (id == OPTIONS_ERROR || take_duration(&options, &ns))
			return STATUS_USAGE;
		given++;
	}
	if (given != 1) {
		jobs_complain(&options, "one duration is expected, such as 90s or 3d12h");
		return STATUS_USAGE;
	}
	status = run(&jobs, ns);
	jobs_close(&jobs);
	return status;
}

void command_advance_help(FILE *out)
{
	fputs("Usage: weekwheel advance [OPTION]... DURATION\n"
	      "\n"
	      "Move the clock of a server that was started with --clock virtual: what becomes\n"
	      "due is then ready. For tests.\n"
	      "\n"
	      "Options:\n",
	    out);
	options_help(out, table, OPTION_COUNT);
	fputs("\n"
	      "Example:\n"
	      "  weekwheel advance 3d12h\n",
	    out);
}
