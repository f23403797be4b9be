/* The command list: shows jobs as a table or as lines of JSON. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "tools/common/duration.h"
#include "tools/common/json.h"
#include "tools/common/message.h"
#include "tools/weekwheel/jobs/jobs.h"
#include "tools/weekwheel/jobs/table.h"
#include "tools/weekwheel/jobs/tubes.h"

enum { STATE = 1, FROM, TO, PREFIX, LIMIT, ALL };

static const struct option table[] = {
    JOBS_TUBE_OPTION("of this tube only"),
    {STATE, 'S', "state", "STATES",
        "delayed, ready, reserved, buried; several with commas;\nonly asked for: ended, with a key that is still taken"},
    {FROM, 'f', "from", "WHEN", "due then or later: a time as of put --at, or a duration\nfrom now"},
    {TO, 'T', "to", "WHEN", "due before"},
    {PREFIX, 'p', "prefix", "TEXT", "with a key that begins with TEXT"},
    {LIMIT, 'n', "limit", "N", "at most N (default 100)"},
    {ALL, 'a', "all", NULL, "without a limit"},
    JOBS_OPTIONS,
};

enum { PAGE_MAX = 1000, STATES = 5 };

static const struct table_column columns[] = {{"ID", 1}, {"STATE", 0}, {"TUBE", 0}, {"KEY", 0}, {"DUE", 0}, {"IN", 1},
    {"PRIORITY", 1}, {"ATTEMPTS", 1}, {"BYTES", 1}, {"ERROR", 0}};

struct list_command {
	struct jobs jobs;
	const char *states;
	char prefix[JOBS_KEY_TEXT];
	uint64_t from, to;
	uint64_t limit;
	uint64_t shown;
	uint64_t next; /* where the next page begins; 0: there is none */
	struct text_table table;
};

static int take_states(struct list_command *list, const struct options *options)
{
	static const char *const names[STATES] = {"delayed", "ready", "reserved", "buried", "ended"};
	const char *at = options->value;

	list->states = options->value;
	for (;;) {
		size_t length = strcspn(at, ",");
		size_t i = 0;

		while (i < STATES && (strlen(names[i]) != length || memcmp(names[i], at, length) != 0))
			i++;
		if (i == STATES)
			return options_bad_value(options, "state",
			    "delayed, ready, reserved, buried or ended, or several with commas between");
		if (!at[length])
			return 0;
		at += length + 1;
	}
}

static int take_option(void *context, struct options *options, int id)
{
	struct list_command *list = context;

	switch (id) {
	case STATE:
		return take_states(list, options);
	case FROM:
		return jobs_time_from(options, "from", &list->from);
	case TO:
		return jobs_time_from(options, "to", &list->to);
	case PREFIX:
		return jobs_key(options, "prefix", list->prefix);
	case LIMIT:
		return jobs_whole(options, "limit", 1, UINT64_MAX, &list->limit, "a whole number from 1");
	default:
		list->limit = UINT64_MAX;
		return 0;
	}
}

static int ask(struct list_command *list, struct reply *reply)
{
	uint64_t left = list->from || list->to ? PAGE_MAX : list->limit - list->shown;
	char filter[2 * JOBS_KEY_TEXT] = "";

	jobs_add(filter, sizeof filter, "tube", list->jobs.tube);
	jobs_add(filter, sizeof filter, "state", list->states);
	jobs_add(filter, sizeof filter, "prefix", list->prefix);
	if (list->next)
		jobs_add_number(filter, sizeof filter, "after", list->next);
	jobs_add_number(filter, sizeof filter, "limit", left < PAGE_MAX ? left : PAGE_MAX);
	return client_expect(&list->jobs.client, reply, "OK", "list", "list-delayed%s", filter);
}

/*
 * Return when the job is due, as Unix time. A job on elapsed time has no date, only the time left. The server knows no
 * date for such a job, which is why --from and --to are compared here.
 */
static uint64_t due_of(const char *line, size_t size)
{
	char text[40];
	struct duration_problem problem;
	uint64_t ns;
	int is_wall = strcmp(json_text(line, size, "clock", text, sizeof text), "wall") == 0;

	json_text(line, size, is_wall ? "due" : "left", text, sizeof text);
	if (duration_parse(text, &ns, &problem))
		ns = 0;
	return is_wall ? ns : time_now() + ns;
}

static int is_wanted(const struct list_command *list, const char *line, size_t size)
{
	char state[20];
	uint64_t due;

	if (!list->from && !list->to)
		return 1;
	due = due_of(line, size);
	return strcmp(json_text(line, size, "state", state, sizeof state), "buried") != 0 && due >= list->from &&
	       (!list->to || due < list->to);
}

static void add_due(struct list_command *list, const char *line, size_t size, const char *state)
{
	char left_text[40], text[DURATION_TEXT];
	struct duration_problem problem;
	uint64_t left = 0;

	json_text(line, size, "left", left_text, sizeof left_text);
	if (strcmp(state, "buried") == 0 || duration_parse(left_text, &left, &problem)) {
		table_cell(&list->table, "-");
		table_cell(&list->table, "-");
		return;
	}
	table_cell(&list->table, "%s",
	    strcmp(state, "ended") == 0     ? "-"
	    : strcmp(state, "delayed") == 0 ? time_format(text, due_of(line, size))
	                                    : "now");
	table_cell(&list->table, "%s", left ? duration_format(text, left) : "-");
}

static void add_row(struct list_command *list, const char *line, size_t size)
{
	char state[20], text[CLIENT_LINE], shown[300];
	uint64_t attempts = json_whole(line, size, "attempts");
	/* As many as the limit counts, which a kick or a periodic job's finish starts anew. */
	uint64_t made = json_whole(line, size, "tries");

	table_cell(&list->table, "%" PRIu64, json_whole(line, size, "id"));
	table_cell(&list->table, "%s", json_text(line, size, "state", state, sizeof state));
	table_cell(&list->table, "%s", json_text(line, size, "tube", text, sizeof text));
	json_text(line, size, "key", text, sizeof text);
	table_cell(&list->table, "%s", *text ? jobs_key_show(text, shown, sizeof shown) : "-");
	add_due(list, line, size, state);
	table_cell(&list->table, "%" PRIu64, json_whole(line, size, "priority"));
	made += strcmp(state, "reserved") == 0;
	if (attempts)
		table_cell(&list->table, "%" PRIu64 "/%" PRIu64, made, attempts);
	else
		table_cell(&list->table, "%" PRIu64, made);
	table_cell(&list->table, "%" PRIu64, json_whole(line, size, "length"));
	json_text(line, size, "error", text, sizeof text);
	table_cell(&list->table, "%s", *text ? text : "-");
}

static void take_line(struct list_command *list, const char *line, size_t size)
{
	if (json_member(line, size, "id").kind != JSON_NUMBER) {
		list->next = json_whole(line, size, "next");
		return;
	}
	if (!is_wanted(list, line, size) || list->shown == list->limit)
		return;
	list->shown++;
	if (list->jobs.json) {
		fwrite(line, 1, size, stdout);
		putchar('\n');
	} else {
		add_row(list, line, size);
	}
}

static void take_page(struct list_command *list, const struct reply *reply)
{
	size_t at = 0;

	while (at < reply->body_size) {
		const char *line = reply->body + at;
		const char *end = memchr(line, '\n', reply->body_size - at);
		size_t size = end ? (size_t)(end - line) : reply->body_size - at;

		at += size + (end != NULL);
		if (size && line[size - 1] == '\r')
			size--;
		if (size)
			take_line(list, line, size);
	}
}

static int write_pages(struct list_command *list)
{
	struct reply reply;
	uint64_t previous;

	do {
		previous = list->next;
		if (ask(list, &reply))
			return -1;
		list->next = 0;
		take_page(list, &reply);
		if (!list->jobs.json && list->shown)
			table_write(&list->table, stdout);
		/* A page that led back would never end. */
	} while (list->next > previous && list->shown < list->limit && !ferror(stdout));
	if (list->next && !list->jobs.json && !ferror(stdout)) {
		fflush(stdout);
		message_line("There may be more; --limit N or --all shows them.");
	}
	return 0;
}

static int run(void *context)
{
	struct list_command *list = context;
	int failed;

	if (tubes_known(&list->jobs))
		return -1;
	table_begin(&list->table, columns, sizeof columns / sizeof *columns);
	failed = write_pages(list);
	table_free(&list->table);
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
             "List jobs in the order of their ids. For a job that a worker runs, IN is the\n"
             "time that the worker has left.\n",
    .examples = "Examples:\n"
                "  weekwheel list --tube mail --state buried\n"
                "  weekwheel list --from 1d --to 2d --all --json | jq -r .key\n",
};
