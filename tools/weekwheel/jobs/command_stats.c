/* The command stats. */
#include <inttypes.h>
#include <stdio.h>

#include "tools/common/duration.h"
#include "tools/common/command.h"
#include "tools/weekwheel/jobs/fields.h"
#include "tools/weekwheel/jobs/jobs.h"
#include "tools/weekwheel/jobs/table.h"
#include "tools/weekwheel/jobs/tubes.h"

enum { SERVER_ONLY = 1 };

static const struct option table[] = {
    JOBS_TUBE_OPTION("all that the server says of this tube"),
    {SERVER_ONLY, 'S', "all", NULL, "also all that it says of itself"},
    JOBS_OPTIONS,
};

enum { OPTION_COUNT = sizeof table / sizeof *table };

static const struct table_column columns[] = {{"TUBE", 0}, {"READY", 1}, {"URGENT", 1}, {"DELAYED", 1}, {"RESERVED", 1},
    {"BURIED", 1}, {"PUT", 1}, {"DELETED", 1}, {"WAITING", 1}, {"PAUSED", 1}};

struct stats {
	struct jobs jobs;
	int all;
	struct table table;
};

static void add_row(const struct reply *reply, void *context)
{
	struct table *rows = context;
	char pause[DURATION_TEXT];
	struct tube tube;

	tube_fill(&tube, reply);
	table_cell(rows, "%s", tube.name);
	table_cell(rows, "%" PRIu64, tube.ready);
	table_cell(rows, "%" PRIu64, tube.urgent);
	table_cell(rows, "%" PRIu64, tube.delayed);
	table_cell(rows, "%" PRIu64, tube.reserved);
	table_cell(rows, "%" PRIu64, tube.buried);
	table_cell(rows, "%" PRIu64, tube.total);
	table_cell(rows, "%" PRIu64, tube.deleted);
	table_cell(rows, "%" PRIu64, tube.waiting);
	if (tube.pause > DURATION_MAX / DURATION_SECOND)
		tube.pause = DURATION_MAX / DURATION_SECOND;
	table_cell(rows, "%s", tube.pause ? duration_format(pause, tube.pause * DURATION_SECOND) : "-");
}

static void write_object(const struct reply *reply, void *context)
{
	(void)context;
	putchar('{');
	fields_write_json(stdout, reply->body, reply->body_size);
	puts("}");
}

static void write_fields(const struct reply *reply, void *context)
{
	(void)context;
	fields_write_text(stdout, reply->body, reply->body_size);
}

static int server_stats(struct stats *stats)
{
	struct reply reply;

	if (client_ask(&stats->jobs.client, &reply, "stats"))
		return -1;
	if (!reply_is(&reply, "OK"))
		return reply_refused(&stats->jobs.client, &reply, "stats");
	if (stats->jobs.json) {
		write_object(&reply, NULL);
	} else {
		write_fields(&reply, NULL);
		putchar('\n');
	}
	return 0;
}

static int run(struct stats *stats)
{
	struct jobs *jobs = &stats->jobs;
	int failed = 0;

	if (client_open(&jobs->client, jobs->server, jobs->timeout_ms) || (stats->all && server_stats(stats)))
		return STATUS_FAILED;
	if (jobs->json)
		return tubes_each(jobs, write_object, NULL) ? STATUS_FAILED : STATUS_OK;
	if (jobs->tube)
		return tubes_each(jobs, write_fields, NULL) ? STATUS_FAILED : STATUS_OK;
	table_begin(&stats->table, columns, sizeof columns / sizeof *columns);
	failed = tubes_each(jobs, add_row, &stats->table);
	if (!failed)
		table_write(&stats->table, stdout);
	table_free(&stats->table);
	return failed ? STATUS_FAILED : STATUS_OK;
}

static int take_option(void *context, const struct options *options, int id)
{
	struct stats *stats = context;

	if (id == OPTIONS_OPERAND)
		return jobs_no_operand(options);
	stats->all = 1;
	return 0;
}

int command_stats(char **arguments)
{
	struct options options = {"weekwheel stats", table, OPTION_COUNT, arguments, NULL, 0, NULL};
	struct stats stats = {.all = 0};
	int status = jobs_parse(&stats.jobs, &options, take_option, &stats, command_stats_help);

	if (status == JOBS_PARSED)
		status = run(&stats);
	jobs_close(&stats.jobs);
	return status;
}

void command_stats_help(FILE *out)
{
	fputs("Usage: weekwheel stats [OPTION]...\n"
	      "\n"
	      "Count the jobs of each tube. PUT and DELETED are since the server was started,\n"
	      "WAITING are connections that wait for a job.\n"
	      "\n"
	      "Options:\n",
	    out);
	options_help(out, table, OPTION_COUNT);
	fputs("\n"
	      "Examples:\n"
	      "  weekwheel stats\n"
	      "  weekwheel stats --tube mail --json\n",
	    out);
}
