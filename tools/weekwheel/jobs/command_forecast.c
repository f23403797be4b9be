/* The command forecast. */
#include <inttypes.h>
#include <stdio.h>
#include <time.h>

#include "tools/common/duration.h"
#include "tools/common/command.h"
#include "tools/weekwheel/jobs/forecast.h"
#include "tools/weekwheel/jobs/jobs.h"

static const struct option table[] = {
    JOBS_TUBE_OPTION("of this tube only"),
    JOBS_OPTIONS,
};

enum { OPTION_COUNT = sizeof table / sizeof *table };

/* What is asked for, and how many of its spans are a row. */
static const struct outlook {
	const char *title, *form;
	unsigned span;
	size_t count, row;
} outlooks[] = {
    {"The next 60 minutes", "%H:%M", 60, 60, 5},
    {"The next 24 hours", "%a %H:%M", 3600, 24, 1},
    {"The next 7 days", "%a %d %b", 86400, 7, 1},
};

enum { OUTLOOKS = sizeof outlooks / sizeof *outlooks };

static void write_time(const char *form, uint64_t seconds)
{
	time_t time = (time_t)seconds;
	char text[40] = "";
	struct tm tm;

	if (localtime_r(&time, &tm))
		strftime(text, sizeof text, form, &tm);
	printf("  from %-10s", text);
}

static void write_outlook(const struct outlook *outlook, const uint64_t *counts)
{
	uint64_t rows[FORECAST_MAX] = {0};
	size_t n = outlook->count / outlook->row;
	uint64_t now = time_now() / DURATION_SECOND;
	char bar[FORECAST_BAR + 1];
	uint64_t most = 0, sum = 0;
	size_t i;

	for (i = 0; i < outlook->count; i++) {
		rows[i / outlook->row] += counts[i];
		sum += counts[i];
	}
	for (i = 0; i < n; i++)
		most = rows[i] > most ? rows[i] : most;
	printf("%s: %" PRIu64 " %s\n", outlook->title, sum, sum == 1 ? "job" : "jobs");
	for (i = 0; i < n; i++) {
		write_time(outlook->form, now + i * outlook->row * outlook->span);
		forecast_bar(bar, FORECAST_BAR, rows[i], most);
		printf(*bar ? " %10" PRIu64 "  %s\n" : " %10" PRIu64 "%s\n", rows[i], bar);
	}
}

static int run(struct jobs *jobs)
{
	uint64_t counts[FORECAST_MAX];
	struct reply reply;
	size_t i;

	if (client_open(&jobs->client, jobs->server, jobs->timeout_ms))
		return STATUS_FAILED;
	for (i = 0; i < OUTLOOKS; i++) {
		int answer = forecast_read(jobs, outlooks[i].span * DURATION_SECOND, outlooks[i].count, counts, &reply);

		if (answer > 0)
			reply_refused(&jobs->client, &reply, "forecast");
		if (answer)
			return STATUS_FAILED;
		if (jobs->json) {
			fwrite(reply.body, 1, reply.body_size, stdout);
			putchar('\n');
			continue;
		}
		if (i)
			putchar('\n');
		write_outlook(&outlooks[i], counts);
	}
	return STATUS_OK;
}

static int take_option(void *context, const struct options *options, int id)
{
	(void)context;
	(void)id;
	return jobs_no_operand(options);
}

int command_forecast(char **arguments)
{
	struct options options = {"weekwheel forecast", table, OPTION_COUNT, arguments, NULL, 0, NULL};
	struct jobs jobs;
	int status = jobs_parse(&jobs, &options, take_option, NULL, command_forecast_help);

	if (status == JOBS_PARSED)
		status = run(&jobs);
	jobs_close(&jobs);
	return status;
}

void command_forecast_help(FILE *out)
{
	fputs("Usage: weekwheel forecast [OPTION]...\n"
	      "\n"
	      "Count the jobs that become due in each part of the next hour, day and week. Those\n"
	      "that are due already count for the first part.\n"
	      "\n"
	      "Options:\n",
	    out);
	options_help(out, table, OPTION_COUNT);
	fputs("\n"
	      "Example:\n"
	      "  weekwheel forecast --tube mail\n",
	    out);
}
