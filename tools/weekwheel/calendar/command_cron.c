/* The command cron: says what an expression of cron means, and when it comes next. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "tools/common/command.h"
#include "tools/common/duration.h"
#include "tools/common/json.h"
#include "tools/common/message.h"
#include "tools/weekwheel/calendar/zone.h"
#include "tools/weekwheel/jobs/jobs.h"
#include "weekwheel/calendar.h"

enum { ZONE = 1, FROM, COUNT, JSON, COUNT_MAX = 100000 };

struct asking {
	char expression[WW_CALENDAR_MAX + 2]; /* the operands with blanks between them */
	const char *zone;                     /* NULL: this machine's */
	uint64_t from;                        /* 0: now */
	uint64_t count;
	int json;
};

static const struct option table[] = {
    {ZONE, 'z', "tz", "ZONE", "of this zone, such as Europe/Berlin (default: this\nmachine's)"},
    {FROM, 0, "from", "TIME",
        "after this time, such as '2027-03-27 12:00', or\na time from now, such as 90d (default: now)"},
    {COUNT, 'n', "count", "N", "this many times (default 10)"},
    {JSON, 'j', "json", NULL, "write one JSON object"},
    JOBS_HELP_OPTION,
};

static int take(void *context, struct options *options, int id)
{
	struct asking *asking = context;
	size_t length = strlen(asking->expression);

	switch (id) {
	case ZONE:
		asking->zone = options->value;
		return 0;
	case FROM:
		return jobs_time_from(options, "--from", &asking->from);
	case COUNT:
		return jobs_whole(options, "--count", 1, COUNT_MAX, &asking->count, "a number from 1 to 100000");
	case JSON:
		asking->json = 1;
		return 0;
	default:
		break;
	}
	/* What is too long stays too long, and is refused with that. */
	snprintf(
	    asking->expression + length, sizeof asking->expression - length, "%s%s", length ? " " : "", options->value);
	return 0;
}

static int check(void *context, const struct options *options)
{
	struct asking *asking = context;

	if (!*asking->expression)
		return options_fail(options, "an expression is missing, such as '0 3 * * *', in quotes");
	asking->from = asking->from ? asking->from : wall_now();
	return 0;
}

static void write_line(const struct asking *asking, uint64_t time, int32_t offset, int32_t before)
{
	char in[DURATION_TEXT];
	char text[ZONE_TIME_TEXT];

	printf("%s", zone_time(text, time, offset));
	printf("  in %s", duration_format(in, time - asking->from));
	puts(offset == before ? "" : offset > before ? "  (clocks went forward)" : "  (clocks went back)");
}

static void write_object(uint64_t time, int32_t offset, int is_first)
{
	char text[ZONE_TIME_TEXT];

	printf("%s{\"time\": \"%s\", \"unix\": %" PRIu64 ", \"offset\": %" PRId32 "}", is_first ? "" : ", ",
	    zone_exact(text, time, offset), time / DURATION_SECOND, offset);
}

static void write_times(const struct asking *asking, const struct ww_calendar *calendar)
{
	uint64_t time = asking->from;
	int32_t before = 0;
	int32_t offset = 0;

	(void)ww_calendar_offset(calendar, time, &before);
	for (uint64_t i = 0; i < asking->count && ww_calendar_next(calendar, time, &time) == WW_OK; i++) {
		(void)ww_calendar_offset(calendar, time, &offset);
		if (asking->json)
			write_object(time, offset, i == 0);
		else
			write_line(asking, time, offset, before);
		before = offset;
	}
}

static void write_all(const struct asking *asking, const char *zone, const struct ww_calendar *calendar)
{
	char words[WW_CALENDAR_TEXT];

	(void)ww_calendar_explain(calendar, words, sizeof words);
	if (!asking->json) {
		printf("%s\n\n", words);
		write_times(asking, calendar);
		return;
	}
	fputs("{\"expression\": ", stdout);
	json_write_string(stdout, asking->expression, strlen(asking->expression));
	fputs(", \"zone\": ", stdout);
	json_write_string(stdout, zone, strlen(zone));
	printf(", \"words\": \"%s\", \"elapsed\": %s, \"times\": [", words,
	    ww_calendar_is_elapsed(calendar) ? "true" : "false");
	write_times(asking, calendar);
	puts("]}");
}

static int run(void *context)
{
	const struct asking *asking = context;
	char own[WW_CALENDAR_MAX + 1];
	const char *zone = asking->zone ? asking->zone : zone_local(own);
	const struct ww_calendar_spec spec = {.expression = asking->expression, .zone = zone, .anchor = asking->from};
	struct ww_calendar *calendar;
	struct ww_calendar_problem problem;
	int error = ww_calendar_open(&calendar, &spec, &problem);

	if (error == WW_EINVAL) {
		zone_refuse("cron", asking->expression, zone, &problem);
		return STATUS_USAGE;
	}
	if (error)
		return message_error("cron: the zone %s cannot be read: %s", zone, ww_strerror(error));
	write_all(asking, zone, calendar);
	ww_calendar_close(calendar);
	return STATUS_OK;
}

const struct jobs_command command_cron = {
    .name = "weekwheel cron",
    JOBS_TABLE(table),
    .context = &(struct asking){.count = 10},
    .server = JOBS_NO_SERVER,
    .take = take,
    .check = check,
    .run = run,
    .usage = "Usage: weekwheel cron [OPTION]... EXPRESSION\n"
             "\n"
             "Say in words what an expression of cron means, and when it comes next. It has\n"
             "five fields, minute, hour, day of the month, month and day of the week, or six\n"
             "with the second before them. @daily and @every 90m are known, too. The manual\n"
             "page, weekwheel(1), has all of it.\n",
    .examples = "Examples:\n"
                "  weekwheel cron '0 3 * * *' --tz Europe/Berlin\n"
                "  weekwheel cron '30 9 * * fri#1' --tz America/New_York --count 3\n",
};
