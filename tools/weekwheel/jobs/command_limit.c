/* The command limit: sets how many jobs run at once and start in a time, and the turns of a group, or shows that. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/common/duration.h"
#include "tools/common/json.h"
#include "tools/common/memory.h"
#include "tools/common/message.h"
#include "tools/common/number.h"
#include "tools/weekwheel/jobs/listing.h"
#include "tools/weekwheel/jobs/table.h"
#include "tools/weekwheel/jobs/yaml.h"

enum { RUNNING = 1, RATE, BURST, WEIGHT, GROUP, EACH, CLEAR, BURST_MOST = 1000000 };

static const struct option table[] = {
    JOBS_TUBE_OPTION("the same as the operand"),
    {RUNNING, 'r', "running", "N", "at most N jobs run at once"},
    {RATE, 'R', "rate", "N/TIME", "at most N jobs start in each TIME, such as 100/1m"},
    {BURST, 'b', "burst", "N", "with --rate: after a rest, N start at once (default 1)"},
    {WEIGHT, 'w', "weight", "N", "with --group: N turns where others get one, 1 to 1000"},
    {GROUP, 'g', "group", "GROUP", "of the jobs that name this group"},
    {EACH, 'e', "each-group", NULL, "of each group that has no limit of its own"},
    {CLEAR, 'c', "clear", NULL, "take the limit away"},
    JOBS_OPTIONS,
};

static const struct table_column columns[] = {{"TUBE", 0}, {"GROUP", 0}, {"RUNNING", 1}, {"MOST", 1}, {"RATE", 1},
    {"BURST", 1}, {"WEIGHT", 1}, {"HELD", 1}, {"NEXT IN", 1}};

struct limit_command {
	struct jobs jobs;
	const char *tube;
	uint64_t running, starts, per, burst, weight;
	char group[JOBS_KEY_TEXT]; /* percent-encoded; "": none */
	int each, clear;
};

/* "100/1m", or "100/m" for short. */
static int take_rate(struct limit_command *limit, const struct options *options)
{
	const char *slash = strchr(options->value, '/');
	struct duration_problem problem;
	char span[40];
	int written;

	if (!slash || number_whole(options->value, (size_t)(slash - options->value), 1, UINT32_MAX, &limit->starts))
		return options_bad_value(options, "rate", "a number of jobs and a time, such as 100/1m or 5/s");
	written = snprintf(span, sizeof span, "%s%s", slash[1] >= '0' && slash[1] <= '9' ? "" : "1", slash + 1);
	if (written < 0 || (size_t)written >= sizeof span || duration_parse(span, &limit->per, &problem) ||
	    limit->per < DURATION_SECOND / 1000 || limit->per > 7 * 24 * 3600 * DURATION_SECOND)
		return options_bad_value(
		    options, "rate", "a number of jobs and a time from 1ms to 7d, such as 100/1m or 5/s");
	if (limit->starts > limit->per / 1000)
		return options_bad_value(options, "rate", "at most a million jobs a second");
	return 0;
}

static int take_option(void *context, struct options *options, int id)
{
	struct limit_command *limit = context;

	switch (id) {
	case RUNNING:
		return jobs_whole(options, "running", 1, UINT32_MAX, &limit->running, "a whole number from 1");
	case RATE:
		return take_rate(limit, options);
	case BURST:
		return jobs_whole(options, "burst", 1, BURST_MOST, &limit->burst, "a whole number from 1 to 1000000");
	case WEIGHT:
		return jobs_whole(
		    options, "weight", 1, WW_LIMIT_WEIGHT_MAX, &limit->weight, "a whole number from 1 to 1000");
	case GROUP:
		return jobs_key(options, "group", limit->group);
	case EACH:
		limit->each = 1;
		return 0;
	case CLEAR:
		limit->clear = 1;
		return 0;
	default:
		if (limit->tube)
			return options_fail(options, "'%s': one tube at a time", options->value);
		if (!*options->value || strlen(options->value) > WW_TUBE_MAX || strpbrk(options->value, " \t\r\n"))
			return options_fail(options, "'%s': expected the name of a tube", options->value);
		limit->tube = options->value;
		return 0;
	}
}

static void print_limit(const struct limit_command *limit)
{
	char group[300] = "", per[DURATION_TEXT], shown[250];

	if (*limit->group)
		snprintf(group, sizeof group, ", group %s", jobs_key_show(limit->group, shown, sizeof shown));
	printf("%s%s%s:", limit->tube, group, limit->each ? ", each group" : "");
	if (limit->clear)
		fputs(" no limit", stdout);
	if (limit->running)
		printf(" at most %" PRIu64 " run at once", limit->running);
	if (limit->starts)
		printf("%s at most %" PRIu64 " start in %s, after a rest %" PRIu64 " at once",
		    limit->running ? "," : "", limit->starts, duration_format(per, limit->per),
		    limit->burst ? limit->burst : 1);
	if (limit->weight)
		printf("%s %" PRIu64 " turn%s where others get one", limit->running || limit->starts ? "," : "",
		    limit->weight, limit->weight == 1 ? "" : "s");
	putchar('\n');
}

static int sets_limit(const struct limit_command *limit)
{
	return limit->running || limit->starts || limit->weight;
}

static int check(void *context, const struct options *options)
{
	struct limit_command *limit = context;
	int sets = sets_limit(limit);

	if (limit->tube && limit->jobs.tube)
		return options_fail(options, "'%s': the tube is given twice", limit->tube);
	if (limit->jobs.tube)
		limit->tube = limit->jobs.tube;
	if (limit->burst && !limit->starts)
		return options_fail(options, "--burst needs --rate, such as --rate 100/1m");
	if (limit->weight && !*limit->group)
		return options_fail(options, "--weight needs --group");
	if (*limit->group && limit->each)
		return options_fail(options, "give either --group or --each-group");
	if ((*limit->group || limit->each) && !sets && !limit->clear)
		return options_fail(options, "give a limit of the group, such as --running 1, or --clear");
	if (sets && limit->clear)
		return options_fail(options, "give either a limit or --clear");
	return (sets || limit->clear) && !limit->tube ? options_fail(options, "the tube is missing, such as: mail") : 0;
}

static int set(struct limit_command *limit)
{
	char words[JOBS_KEY_TEXT + 200] = "";
	char per[DURATION_TEXT];
	struct reply reply;

	if (limit->running)
		jobs_add_number(words, sizeof words, "running", limit->running);
	if (limit->starts) {
		jobs_add_number(words, sizeof words, "starts", limit->starts);
		jobs_add(words, sizeof words, "per", duration_seconds(per, limit->per));
		jobs_add_number(words, sizeof words, "burst", limit->burst ? limit->burst : 1);
	}
	if (limit->weight)
		jobs_add_number(words, sizeof words, "weight", limit->weight);
	jobs_add(words, sizeof words, "group", limit->group);
	jobs_add(words, sizeof words, "each", limit->each ? "yes" : NULL);
	if (client_expect(&limit->jobs.client, &reply, "LIMITED", limit->tube, "limit-tube %s%s", limit->tube, words))
		return -1;
	if (!limit->jobs.json)
		print_limit(limit);
	return 0;
}

/* ---- Showing */

static uint64_t duration_of(const char *line, size_t size, const char *name)
{
	struct duration_problem problem;
	char text[40];
	uint64_t ns;

	json_text(line, size, name, text, sizeof text);
	return duration_parse(text, &ns, &problem) ? 0 : ns;
}

static void add_most(struct text_table *rows, uint64_t most)
{
	if (most)
		table_cell(rows, "%" PRIu64, most);
	else
		table_cell(rows, "-");
}

static int is_each(const char *line, size_t size)
{
	const struct json_value each = json_member(line, size, "each");

	return each.kind == JSON_OTHER && *each.text == 't';
}

static void add_whose(struct text_table *rows, const char *line, size_t size)
{
	char text[CLIENT_LINE], shown[300];

	json_text(line, size, "group", text, sizeof text);
	if (*text)
		table_cell(rows, "%s", jobs_key_show(text, shown, sizeof shown));
	else
		table_cell(rows, is_each(line, size) ? "each" : "-");
}

/* Return what the limits of the line's tube hold back by their own numbers. */
static uint64_t held_by_others(const char *lines, size_t length, const char *line, size_t size)
{
	const char *group = memmem(line, size, ",\"group\":", 9);
	size_t same = group ? (size_t)(group - line) : size;
	const char *at = lines, *end = lines + length;
	uint64_t sum = 0;

	while ((at = memmem(at, (size_t)(end - at), line, same))) {
		const char *stop = memchr(at, '\n', (size_t)(end - at));

		stop = stop ? stop : end;
		sum += json_whole(at, (size_t)(stop - at), "held");
		at = stop;
	}
	return sum;
}

/*
 * A limit of each group stands for many, and no server sends what they hold back. In a tube it is what the others do
 * not.
 */
static int held_by_each(struct limit_command *limit, const char *tube, uint64_t others, uint64_t *held)
{
	struct reply reply;
	uint64_t all = 0;

	if (client_ask(&limit->jobs.client, &reply, "stats-tube %s", tube))
		return -1;
	if (reply_is(&reply, "OK"))
		all = yaml_whole(reply.body, reply.body_size, "current-jobs-held");
	else if (!reply_is(&reply, "NOT_FOUND")) /* a tube that became empty meanwhile is gone */
		return reply_refused(&limit->jobs.client, &reply, tube);
	*held = all > others ? all - others : 0;
	return 0;
}

static int add_row(struct limit_command *limit, struct text_table *rows, const char *lines, size_t length,
    const char *line, size_t size)
{
	uint64_t starts = json_whole(line, size, "starts");
	uint64_t held = json_whole(line, size, "held");
	uint64_t weight = json_whole(line, size, "weight");
	char text[CLIENT_LINE];
	uint64_t left = duration_of(line, size, "left");

	json_text(line, size, "tube", text, sizeof text);
	if (is_each(line, size) && held_by_each(limit, text, held_by_others(lines, length, line, size), &held))
		return -1;
	table_cell(rows, "%s", text);
	add_whose(rows, line, size);
	if (is_each(line, size))
		table_cell(rows, "-");
	else
		table_cell(rows, "%" PRIu64, json_whole(line, size, "leases"));
	add_most(rows, json_whole(line, size, "running"));
	if (starts)
		table_cell(rows, "%" PRIu64 " in %s", starts, duration_format(text, duration_of(line, size, "per")));
	else
		table_cell(rows, "-");
	add_most(rows, starts ? json_whole(line, size, "burst") : 0);
	add_most(rows, weight > 1 ? weight : 0);
	table_cell(rows, "%" PRIu64, held);
	table_cell(rows, "%s", left ? duration_format(text, left) : "-");
	return 0;
}

static int show_table(struct limit_command *limit, const char *lines, size_t length)
{
	const char *at = lines, *end = lines + length;
	struct text_table rows;
	int failed = 0;

	table_begin(&rows, columns, sizeof columns / sizeof *columns);
	while (!failed && at < end) {
		const char *stop = memchr(at, '\n', (size_t)(end - at));

		stop = stop ? stop : end;
		failed = add_row(limit, &rows, lines, length, at, (size_t)(stop - at));
		at = stop + 1;
	}
	if (!failed)
		table_write(&rows, stdout);
	table_free(&rows);
	return failed;
}

/* As /v1 has it. In the protocol two members have other names. */
static void write_object(const char *line, size_t size)
{
	struct ww_limit_info info = {0};
	struct buffer room = {0};
	uint64_t seen = listing_read(job_limit_fields, &info, line, size, &room);

	info.running = json_whole(line, size, "leases");
	info.held = json_whole(line, size, "held");
	for (size_t i = 0; job_limit_fields[i].name; i++)
		if (strncmp(job_limit_fields[i].name, "now_", 4) == 0)
			seen |= UINT64_C(1) << i;
	listing_write(job_limit_fields, JOB_SHOWN, &info, seen);
	buffer_free(&room);
}

static void write_objects(const char *at, const char *end)
{
	while (at < end) {
		const char *stop = memchr(at, '\n', (size_t)(end - at));

		stop = stop ? stop : end;
		write_object(at, (size_t)(stop - at));
		at = stop + 1;
	}
}

static int show(struct limit_command *limit)
{
	struct reply reply;
	char *lines;
	size_t length;
	int failed = client_expect(&limit->jobs.client, &reply, "OK", "limit", "list-limits%s%s",
	    limit->tube ? " tube=" : "", limit->tube ? limit->tube : "");

	if (failed)
		return -1;
	if (!limit->jobs.json && reply.body_size == 0) {
		message_line(
		    "No limit is set%s%s.", limit->tube ? " in the tube " : "", limit->tube ? limit->tube : "");
		return 0;
	}
	if (limit->jobs.json) {
		write_objects(reply.body, reply.body + reply.body_size);
		return 0;
	}
	/* The answer is there until the next question. */
	length = reply.body_size;
	lines = memory_zeroed(length + 1, 1);
	memcpy(lines, reply.body, length);
	failed = show_table(limit, lines, length);
	free(lines);
	return failed;
}

static int run(void *context)
{
	struct limit_command *limit = context;

	return sets_limit(limit) || limit->clear ? set(limit) : show(limit);
}

const struct jobs_command command_limit = {
    .name = "weekwheel limit",
    JOBS_TABLE(table),
    .context = &(struct limit_command){.running = 0},
    .server = JOBS_CONNECTED,
    .take = take_option,
    .check = check,
    .run = run,
    .usage = "Usage: weekwheel limit [OPTION]... TUBE\n"
             "       weekwheel limit [OPTION]... [TUBE]\n"
             "\n"
             "Limit how many jobs of a tube, or of a group in it, run at once and how many start in a\n"
             "time, or give a group more turns, in place of the former limit; or show the limits. The\n"
             "others wait in their order. All servers of a store keep its limits, also after a restart.\n",
    .examples = "Examples:\n"
                "  weekwheel limit mail --running 5 --rate 100/1m --burst 20\n"
                "  weekwheel limit api --each-group --running 1\n"
                "  weekwheel limit api --group acme --weight 3\n"
                "  weekwheel limit mail --clear\n"
                "  weekwheel limit\n",
};
