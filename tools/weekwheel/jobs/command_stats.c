/* The command stats: counts the jobs of each tube, or shows all statistics of a tube or the server. */
#include <inttypes.h>
#include <stdio.h>

#include "tools/common/duration.h"
#include "tools/weekwheel/jobs/table.h"
#include "tools/weekwheel/jobs/tubes.h"
#include "tools/weekwheel/jobs/yaml.h"

struct stats {
	struct jobs jobs;
	int all;
};

static const struct option table[] = {
    JOBS_TUBE_OPTION("all statistics of this tube"),
    {JOBS_FLAG(struct stats, all), 'S', "all", NULL, "also all statistics of the server"},
    JOBS_OPTIONS,
};

static const struct table_column columns[] = {{"TUBE", 0}, {"READY", 1}, {"URGENT", 1}, {"DELAYED", 1}, {"RESERVED", 1},
    {"BURIED", 1}, {"PUT", 1}, {"DELETED", 1}, {"WAITING", 1}, {"PAUSED", 1}, {"HELD", 1}};

static void add_row(const struct reply *reply, void *context)
{
	struct text_table *rows = context;
	char pause[DURATION_TEXT];
	struct tube_row tube;
	const uint64_t *counts[] = {&tube.ready, &tube.urgent, &tube.delayed, &tube.reserved, &tube.buried, &tube.total,
	    &tube.deleted, &tube.waiting};

	tube_fill(&tube, reply);
	table_cell(rows, "%s", tube.name);
	for (size_t i = 0; i < sizeof counts / sizeof *counts; i++)
		table_cell(rows, "%" PRIu64, *counts[i]);
	if (tube.pause > DURATION_MAX / DURATION_SECOND)
		tube.pause = DURATION_MAX / DURATION_SECOND;
	table_cell(rows, "%s", tube.pause ? duration_format(pause, tube.pause * DURATION_SECOND) : "-");
	if (tube.held)
		table_cell(rows, "%" PRIu64, tube.held);
	else
		table_cell(rows, "-");
}

static void write_object(const struct reply *reply, void *context)
{
	(void)context;
	putchar('{');
	yaml_write_json(stdout, reply->body, reply->body_size);
	puts("}");
}

static void write_fields(const struct reply *reply, void *context)
{
	(void)context;
	yaml_write_text(stdout, reply->body, reply->body_size);
}

static int server_stats(struct stats *stats)
{
	struct reply reply;

	if (client_expect(&stats->jobs.client, &reply, "OK", "stats", "stats"))
		return -1;
	if (stats->jobs.json) {
		write_object(&reply, NULL);
		return 0;
	}
	write_fields(&reply, NULL);
	putchar('\n');
	return 0;
}

static int run(void *context)
{
	struct stats *stats = context;
	struct jobs *jobs = &stats->jobs;
	struct text_table rows;
	int failed;

	if (stats->all && server_stats(stats))
		return -1;
	if (jobs->json || jobs->tube)
		return tubes_each(jobs, jobs->json ? write_object : write_fields, NULL);
	table_begin(&rows, columns, sizeof columns / sizeof *columns);
	failed = tubes_each(jobs, add_row, &rows);
	if (!failed)
		table_write(&rows, stdout);
	table_free(&rows);
	return failed;
}

const struct jobs_command command_stats = {
    .name = "weekwheel stats",
    JOBS_TABLE(table),
    .context = &(struct stats){.all = 0},
    .server = JOBS_CONNECTED,
    .needs = {"read", "all tubes"},
    .no_operand = "; a tube is given with --tube",
    .run = run,
    .usage = "Usage: weekwheel stats [OPTION]...\n"
             "\n"
             "Count the jobs of each tube. PUT and DELETED count since the start of the server,\n"
             "WAITING counts connections that wait for a job. HELD are ready jobs that a limit\n"
             "does not let start.\n",
    .examples = "Examples:\n"
                "  weekwheel stats\n"
                "  weekwheel stats --tube mail --json\n",
};
