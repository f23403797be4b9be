/* The command history: how the last runs of jobs ended, and what their workers said. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tools/common/duration.h"
#include "tools/common/json.h"
#include "tools/common/memory.h"
#include "tools/common/message.h"
#include "tools/common/percent.h"
#include "tools/common/utf8.h"
#include "tools/weekwheel/jobs/listing.h"

enum { SCHEDULE = 1, LIMIT, REPORT_MAX = 4096 };

struct history_command {
	struct jobs jobs;
	struct listing listing;
	uint64_t id;
	uint64_t limit;
	uint64_t shown;
	int output;
	struct buffer room;
};

static const struct option table[] = {
    JOBS_TUBE_OPTION("of this tube only"),
    JOBS_KEY_OPTION("of jobs with this key, or one that begins so"),
    {SCHEDULE, 0, "schedule", "NAME", "of the jobs of this schedule"},
    {LIMIT, 'n', "limit", "N", "the last N (default 20)"},
    {JOBS_FLAG(struct history_command, output), 'o', "output", NULL, "show all that is kept of their output"},
    JOBS_OPTIONS,
};

/* The jobs of a schedule have its name and '@' before their keys. */
static int take_schedule(struct history_command *history, const struct options *options)
{
	char text[WW_JOB_KEY_MAX + 2];
	size_t length = strlen(options->value);

	if (length == 0 || length > WW_JOB_KEY_MAX - 1)
		return options_bad_value(options, "schedule", "the name of a schedule");
	memcpy(text, options->value, length);
	text[length] = '@';
	(void)percent_encode(text, length + 1, history->listing.prefix, sizeof history->listing.prefix);
	return 0;
}

static int take_option(void *context, struct options *options, int id)
{
	struct history_command *history = context;

	if (id == SCHEDULE)
		return take_schedule(history, options);
	if (id == LIMIT)
		return jobs_whole(options, "limit", 1, UINT32_MAX, &history->limit, "a whole number from 1");
	return jobs_id(options, &history->id);
}

/* ---- A run */

/* What weekwheel work reports is JSON; others may report anything. */
struct worked {
	char bytes[REPORT_MAX + 1];
	size_t size;
	int is_object;
	char worker[100];
	char seconds[DURATION_TEXT];
	char output[REPORT_MAX + 1];
};

static void read_report(struct worked *worked, const struct ww_job_run *run)
{
	struct json_value output;
	struct duration_problem problem;
	uint64_t ns;

	worked->size = run->report_length < REPORT_MAX ? run->report_length : REPORT_MAX;
	memcpy(worked->bytes, run->report, worked->size);
	worked->bytes[worked->size] = 0;
	output = json_member(worked->bytes, worked->size, "output");
	worked->is_object = output.kind == JSON_STRING;
	*worked->worker = *worked->seconds = *worked->output = 0;
	if (!worked->is_object)
		return;
	(void)json_decode(output, worked->output, sizeof worked->output);
	(void)json_text(worked->bytes, worked->size, "worker", worked->worker, sizeof worked->worker);
	(void)json_text(worked->bytes, worked->size, "seconds", worked->seconds, sizeof worked->seconds);
	if (duration_parse(worked->seconds, &ns, &problem) == 0)
		(void)duration_format(worked->seconds, ns);
}

/* What a terminal would obey is not shown there. */
static void write_lines(const char *text)
{
	size_t size = strlen(text);
	char *shown = memcpy(memory_zeroed(size + 1, 1), text, size);

	if (isatty(STDOUT_FILENO))
		(void)utf8_show_lines(shown, size);
	for (const char *at = shown; *at; at += strcspn(at, "\n"), at += *at == '\n')
		printf("    %.*s\n", (int)strcspn(at, "\n"), at);
	free(shown);
}

static void write_run(const struct history_command *history, const struct ww_job_run *run, const struct worked *worked)
{
	char when[DURATION_TEXT], shown[WW_JOB_KEY_MAX + 4];

	printf("%s  %-9s  attempt %" PRIu32 "  %s", time_format(when, run->ended), job_events[run->outcome],
	    run->attempt, run->tube);
	if (run->key_length)
		printf(" %s", utf8_show(run->key, run->key_length, shown, sizeof shown));
	printf("  job %" PRIu64, run->job);
	if (*worked->seconds)
		printf("  %s", worked->seconds);
	if (*worked->worker)
		printf("  by %s", utf8_show(worked->worker, strlen(worked->worker), shown, sizeof shown));
	putchar('\n');
	if (*run->error)
		write_lines(run->error);
	if (history->output)
		write_lines(worked->is_object ? worked->output : worked->bytes);
}

static void take_run(void *context, const char *line, size_t size)
{
	struct history_command *history = context;
	struct ww_job_run run = {.tube = "", .key = "", .error = ""};
	struct worked worked;
	uint64_t seen;

	if (history->shown >= history->limit)
		return;
	history->shown++;
	seen = listing_read(job_run_fields, &run, line, size, &history->room);
	if (!run.report) {
		run.report = "";
		run.report_length = 0;
	}
	if (history->jobs.json) {
		listing_write(job_run_fields, JOB_BODY, &run, seen);
		return;
	}
	read_report(&worked, &run);
	write_run(history, &run, &worked);
}

/* Where only some were asked for, others may be kept. */
static void print_none(const struct history_command *history)
{
	int is_part = history->id || *history->listing.prefix || history->jobs.tube;

	message_line("No run is kept%s. Jobs ask for it with --keep TIME, and 'weekwheel work --history' says more of "
	             "each.",
	    is_part ? " of these jobs; 'weekwheel history' alone shows those of all" : "");
}

static int run(void *context)
{
	struct history_command *history = context;
	struct jobs *jobs = &history->jobs;
	int own = jobs_has_own_verbs(jobs);

	if (own <= 0)
		return own < 0 ? -1 : message_error("%s keeps no history: it is not weekwheeld", jobs->server);
	history->listing.verb = "history body=yes";
	history->listing.tube = jobs->tube;
	history->listing.id = history->id;
	if (*jobs->key)
		snprintf(history->listing.prefix, sizeof history->listing.prefix, "%s", jobs->key);
	do
		if (listing_page(&history->listing, &jobs->client, history->limit - history->shown, take_run, history))
			return -1;
	while (history->listing.next && history->shown < history->limit && !ferror(stdout));
	if (history->shown == 0 && !jobs->json)
		print_none(history);
	return 0;
}

const struct jobs_command command_history = {
    .name = "weekwheel history",
    JOBS_TABLE(table),
    .context = &(struct history_command){.limit = 20},
    .server = JOBS_CONNECTED,
    .needs = {"read", "all tubes"},
    .take = take_option,
    .run = run,
    .usage = "Usage: weekwheel history [OPTION]... [ID]\n"
             "\n"
             "Show how the last runs of jobs ended, the last one first: of those that were put, or\n"
             "scheduled, with --keep. A run is one attempt.\n",
    .examples = "Example:\n"
                "  weekwheel history --schedule backup --output\n",
};
