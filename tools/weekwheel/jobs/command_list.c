/* The command list: shows jobs as a table or as lines of JSON. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/common/duration.h"
#include "tools/common/json.h"
#include "tools/common/memory.h"
#include "tools/common/message.h"
#include "tools/common/utf8.h"
#include "tools/weekwheel/jobs/jobs.h"
#include "tools/weekwheel/jobs/listing.h"
#include "tools/weekwheel/jobs/table.h"
#include "tools/weekwheel/jobs/tubes.h"

enum { STATE = 1, FROM, TO, PREFIX, SORT, LIMIT, ALL, ENDED_PAGES = 20 };

static const struct option table[] = {
    JOBS_TUBE_OPTION("of this tube only"),
    {STATE, 'S', "state", "STATES",
        "delayed, ready, reserved, buried; several with commas;\nonly asked for: ended, with a key that is still taken"},
    {FROM, 'f', "from", "WHEN", "due then or later: a time as of put --at, or a duration\nfrom now"},
    {TO, 'T', "to", "WHEN", "due before"},
    {PREFIX, 'p', "prefix", "TEXT", "with a key that begins with TEXT"},
    {SORT, 'o', "sort", "BY", "id (the default), due, priority, tube, key, state,\nattempts, bytes or error"},
    {LIMIT, 'n', "limit", "N", "at most N (default 100)"},
    {ALL, 'a', "all", NULL, "without a limit"},
    JOBS_OPTIONS,
};

/* What --sort can name. */
static const struct order {
	const char *name, *member;
	enum { BY_DUE, BY_KEY, BY_NUMBER, BY_TEXT } by;
} orders[] = {{"due", NULL, BY_DUE}, {"priority", "priority", BY_NUMBER}, {"tube", "tube", BY_TEXT},
    {"key", NULL, BY_KEY}, {"state", "state", BY_TEXT}, {"attempts", "tries", BY_NUMBER},
    {"bytes", "length", BY_NUMBER}, {"error", "error", BY_TEXT}};

/* Few jobs have a group. */
enum { GROUP_COLUMN = 4 };

static const struct table_column columns[] = {{"ID", 1}, {"STATE", 0}, {"TUBE", 0}, {"KEY", 0}, {"GROUP", 0},
    {"DUE", 0}, {"IN", 1}, {"EVERY", 1}, {"PRIORITY", 1}, {"ATTEMPTS", 1}, {"BYTES", 1}, {"ERROR", 0}};

struct list_command {
	struct jobs jobs;
	struct listing listing;
	uint64_t from, to;
	uint64_t limit;
	uint64_t shown;
	const struct order *order; /* NULL: by id, as they come */
	struct sortable *kept;
	size_t count, capacity;
	struct text_table table;
	struct buffer room;
};

static int take_sort(struct list_command *list, const struct options *options)
{
	for (size_t i = 0; i < sizeof orders / sizeof *orders; i++)
		if (strcmp(options->value, orders[i].name) == 0)
			list->order = &orders[i];
	if (!list->order && strcmp(options->value, "id") != 0)
		return options_bad_value(
		    options, "sort", "id, due, priority, tube, key, state, attempts, bytes or error");
	return 0;
}

static int take_option(void *context, struct options *options, int id)
{
	struct list_command *list = context;

	switch (id) {
	case STATE:
		return listing_states(&list->listing, options);
	case FROM:
		return jobs_time_from(options, "from", &list->from);
	case TO:
		return jobs_time_from(options, "to", &list->to);
	case PREFIX:
		return jobs_key(options, "prefix", list->listing.prefix);
	case SORT:
		return take_sort(list, options);
	case LIMIT:
		return jobs_whole(options, "limit", 1, UINT64_MAX, &list->limit, "a whole number from 1");
	default:
		list->limit = UINT64_MAX;
		return 0;
	}
}

static int is_wanted(const struct list_command *list, const struct ww_job_info *job)
{
	if (!list->from && !list->to)
		return 1;
	return job->state != WW_JOB_BURIED && job->due >= list->from && (!list->to || job->due < list->to);
}

static void add_bytes(struct list_command *list, const void *bytes, size_t length)
{
	char shown[300];

	table_cell(&list->table, "%s", length ? utf8_show(bytes, length, shown, sizeof shown) : "-");
}

static void add_due(struct list_command *list, const struct ww_job_info *job)
{
	char text[DURATION_TEXT];
	int is_dated = job->state == WW_JOB_DELAYED;
	int is_none = job->state == WW_JOB_BURIED || job->state == WW_JOB_ENDED;

	table_cell(&list->table, "%s", is_none ? "-" : is_dated ? time_format_zone(text, job->due) : "now");
	table_cell(
	    &list->table, "%s", job->left && job->state != WW_JOB_BURIED ? duration_format(text, job->left) : "-");
}

static void add_row(struct list_command *list, const struct ww_job_info *job)
{
	char text[DURATION_TEXT];
	uint32_t made = listing_attempts(job);

	table_cell(&list->table, "%" PRIu64, job->id);
	table_cell(&list->table, "%s", job_states[job->state]);
	table_cell(&list->table, "%s", job->tube);
	add_bytes(list, job->key, job->key_length);
	add_bytes(list, job->group, job->group_length);
	add_due(list, job);
	table_cell(&list->table, "%s", job->period ? duration_format(text, job->period) : "-");
	table_cell(&list->table, "%" PRIu32, job->priority);
	if (job->attempts)
		table_cell(&list->table, "%" PRIu32 "/%" PRIu32, made, job->attempts);
	else
		table_cell(&list->table, "%" PRIu32, made);
	table_cell(&list->table, "%zu", job->body_length);
	table_cell(&list->table, "%s", *job->error ? job->error : "-");
}

static void show(struct list_command *list, const struct ww_job_info *job, uint64_t seen)
{
	if (list->jobs.json)
		listing_write(job_fields, JOB_SHOWN, job, seen);
	else
		add_row(list, job);
	list->shown++;
}

/* ---- In another order: all jobs are kept, and then sorted */

struct sortable {
	char *line;
	size_t size;
	uint64_t number;
	char text[JOBS_KEY_TEXT];
};

static void keep(struct list_command *list, const char *line, size_t size, const struct ww_job_info *job)
{
	struct sortable *kept;

	list->kept = memory_grow(list->kept, &list->capacity, list->count, sizeof *list->kept);
	kept = &list->kept[list->count++];
	*kept = (struct sortable){.line = memory_zeroed(size, 1), .size = size};
	memcpy(kept->line, line, size);
	switch (list->order->by) {
	case BY_DUE:
		/* A buried job is not due at all. */
		kept->number = job->state == WW_JOB_BURIED ? UINT64_MAX : job->due;
		break;
	case BY_KEY:
		utf8_show((const char *)job->key, job->key_length, kept->text, sizeof kept->text);
		break;
	case BY_NUMBER:
		kept->number = json_whole(line, size, list->order->member);
		break;
	default:
		json_text(line, size, list->order->member, kept->text, sizeof kept->text);
	}
}

static int compare(const void *a, const void *b)
{
	const struct sortable *one = a, *other = b;
	int text = strcmp(one->text, other->text);

	return text ? text : one->number < other->number ? -1 : one->number > other->number;
}

static void show_sorted(struct list_command *list)
{
	if (list->count)
		qsort(list->kept, list->count, sizeof *list->kept, compare);
	for (size_t i = 0; i < list->count; i++) {
		if (list->shown < list->limit) {
			struct ww_job_info job = {.state = WW_JOB_READY};
			uint64_t seen = listing_job(&job, list->kept[i].line, list->kept[i].size, &list->room);

			show(list, &job, seen);
		}
		free(list->kept[i].line);
	}
	if (!list->jobs.json && list->shown)
		table_write(&list->table, stdout);
	free(list->kept);
}

static void take_line(void *context, const char *line, size_t size)
{
	struct list_command *list = context;
	struct ww_job_info job = {.state = WW_JOB_READY};
	uint64_t seen = listing_job(&job, line, size, &list->room);

	if (!is_wanted(list, &job))
		return;
	if (list->order)
		keep(list, line, size, &job);
	else if (list->shown < list->limit)
		show(list, &job, seen);
}

static int write_pages(struct list_command *list)
{
	int is_all = list->order || list->from || list->to;
	size_t found;

	do {
		if (listing_page(&list->listing, &list->jobs.client, is_all ? LISTING_PAGE : list->limit - list->shown,
		        take_line, list))
			return -1;
		if (!list->jobs.json && list->shown)
			table_write(&list->table, stdout);
	} while (list->listing.next && list->shown < list->limit && !ferror(stdout));
	found = list->count;
	if (list->order)
		show_sorted(list);
	if ((list->listing.next || list->shown < found) && !list->jobs.json && !ferror(stdout)) {
		fflush(stdout);
		message_line("There may be more; --limit N or --all shows them.");
	}
	return 0;
}

static void note_ended(void *context, const char *line, size_t size)
{
	(void)line;
	(void)size;
	*(int *)context = 1;
}

/*
 * Return 1 if nothing is known of the tube but keys of jobs that have ended; 0 if more is; -1 after a message. They are
 * not sought in all of a long list.
 */
static int has_only_ended(struct jobs *jobs)
{
	struct listing ended = {.tube = jobs->tube, .states = "ended"};
	char hint[TUBE_HINT];
	int found = 0;
	int is_new = tube_is_new(jobs, jobs->tube, hint);

	if (is_new <= 0)
		return is_new;
	for (int i = 0; i < ENDED_PAGES && !found && (i == 0 || ended.next); i++)
		if (listing_page(&ended, &jobs->client, LISTING_PAGE, note_ended, &found))
			return -1;
	return found ? 1 : tubes_known(jobs);
}

static int run(void *context)
{
	struct list_command *list = context;
	int failed;

	/* Jobs that have ended outlast their tube. */
	if (!(list->listing.states && strstr(list->listing.states, "ended")) && list->jobs.tube) {
		failed = has_only_ended(&list->jobs);
		if (failed > 0)
			message_line("No job is in the tube %s, only ended ones with keys that are still taken: "
			             "--state ended shows them.",
			    list->jobs.tube);
		if (failed)
			return failed > 0 ? 0 : -1;
	}
	list->listing.tube = list->jobs.tube;
	table_begin(&list->table, columns, sizeof columns / sizeof *columns);
	list->table.optional = GROUP_COLUMN;
	failed = write_pages(list);
	table_free(&list->table);
	buffer_free(&list->room);
	return failed;
}

const struct jobs_command command_list = {
    .name = "weekwheel list",
    JOBS_TABLE(table),
    .context = &(struct list_command){.limit = 100},
    .server = JOBS_CONNECTED,
    .needs = {"read", "all tubes"},
    .no_operand = "; a job alone is shown by 'weekwheel peek'",
    .take = take_option,
    .run = run,
    .usage = "Usage: weekwheel list [OPTION]...\n"
             "\n"
             "List jobs in the order of their ids, or sorted. DUE has the offset of the zone,\n"
             "which TZ names. For a job that a worker runs, IN is the time that the worker has\n"
             "left. ATTEMPTS are those that count for the limit, which follows them.\n",
    .examples = "Examples:\n"
                "  weekwheel list --tube mail --state buried\n"
                "  weekwheel list --sort due --limit 10\n"
                "  weekwheel list --from 1d --to 2d --all --json | jq -r .key\n",
};
