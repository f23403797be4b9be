/* The command forecast: counts the jobs that become due in the next hour, day and week. */
#include <inttypes.h>
#include <stdio.h>
#include <time.h>

#include "tools/common/duration.h"
#include "tools/weekwheel/jobs/tubes.h"

static const struct option table[] = {JOBS_TUBE_OPTION("of this tube only"), JOBS_OPTIONS};

/* The spans that the server returns, and how many of them make a row. */
static const struct outlook {
	const char *title, *form;
	unsigned span;
	size_t count, row;
} outlooks[] = {
    {"The next 60 minutes", "%H:%M", 60, 60, 5},
    {"The next 24 hours", "%a %H:%M", 3600, 24, 1},
    {"The next 7 days", "%a %H:%M", 86400, 7, 1},
};

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
	uint64_t now = wall_now() / DURATION_SECOND;
	char bar[FORECAST_BAR + 1];
	uint64_t most = 0, sum = 0;

	for (size_t i = 0; i < outlook->count; i++) {
		rows[i / outlook->row] += counts[i];
		sum += counts[i];
	}
	for (size_t i = 0; i < n; i++)
		most = rows[i] > most ? rows[i] : most;
	printf("%s: %" PRIu64 " job%s\n", outlook->title, sum, jobs_plural(sum));
	for (size_t i = 0; i < n; i++) {
		write_time(outlook->form, now + i * outlook->row * outlook->span);
		forecast_bar(bar, FORECAST_BAR, rows[i], most);
		printf(*bar ? " %10" PRIu64 "  %s\n" : " %10" PRIu64 "%s\n", rows[i], bar);
	}
}

static int run(void *context)
{
	struct jobs *jobs = context;
	uint64_t counts[FORECAST_MAX];
	struct reply reply;

	if (tubes_known(jobs))
		return -1;
	for (size_t i = 0; i < sizeof outlooks / sizeof *outlooks; i++) {
		int answer = forecast_read(jobs, outlooks[i].span * DURATION_SECOND, outlooks[i].count, counts, &reply);

		if (answer > 0)
			reply_refused(&jobs->client, &reply, "forecast");
		if (answer)
			return -1;
		if (jobs->json) {
			fwrite(reply.body, 1, reply.body_size, stdout);
			putchar('\n');
			continue;
		}
		if (i)
			putchar('\n');
		write_outlook(&outlooks[i], counts);
	}
	return 0;
}

const struct jobs_command command_forecast = {
    .name = "weekwheel forecast",
    JOBS_TABLE(table),
    .context = &(struct jobs){.json = 0},
    .server = JOBS_CONNECTED,
    .needs = {"read", "all tubes"},
    .no_operand = "; a tube is given with --tube",
    .run = run,
    .usage = "Usage: weekwheel forecast [OPTION]...\n"
             "\n"
             "Count the jobs that become due in each part of the next hour, day and week. Jobs\n"
             "that are due already count for the first part.\n",
    .examples = "Example:\n"
                "  weekwheel forecast --tube mail\n",
};
