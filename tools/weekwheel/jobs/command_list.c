/* The command list. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "tools/common/duration.h"
#include "tools/common/json.h"
#include "tools/common/message.h"
#include "tools/common/command.h"
#include "tools/weekwheel/jobs/jobs.h"
#include "tools/weekwheel/jobs/table.h"

enum { STATE = 1, FROM, TO, PREFIX, LIMIT, ALL };

static const struct option table[] = {
    JOBS_TUBE_OPTION("of this tube only"),
    {STATE, 'S', "state", "STATES", "delayed, ready, reserved, buried; several with commas"},
    {FROM, 'f', "from", "WHEN", "due then or later: a time as of put --at, or a duration\nfrom now"},
    {TO, 'T', "to", "WHEN", "due before"},
    {PREFIX, 'p', "prefix", "TEXT", "with a key that begins so"},
    {LIMIT, 'n', "limit", "N", "at most so many (default 100)"},
    {ALL, 'a', "all", NULL, "without a limit"},
    JOBS_OPTIONS,
};

enum { OPTION_COUNT = sizeof table / sizeof *table, PAGE_MAX = 1000 };

static const struct table_column columns[] = {{"ID", 1}, {"STATE", 0}, {"TUBE", 0}, {"KEY", 0}, {"DUE", 0}, {"IN", 1},
    {"PRIORITY", 1}, {"ATTEMPTS", 1}, {"BYTES", 1}, {"ERROR", 0}};

struct list_command {
	struct jobs jobs;
	const char *states;
	char prefix[JOBS_KEY_TEXT];
	uint64_t from, to;
	uint64_t limit;
	uint64_t shown;
	uint64_t next; /* where the following page begins; 0: there is none */
	struct table table;
};

static int take_states(struct list_command *list, const struct options *options)
{
	static const char *const names[] = {"delayed", "ready", "reserved", "buried"};
	const char *at = options->value;

	list->states = options->value;
	for (;;) {
		size_t length = strcspn(at, ",");
		size_t i = 0;

		while (i < 4 && (strlen(names[i]) != length || memcmp(names[i], at, length) != 0))
			i++;
		if (i == 4)
			return options_bad_value(
			    options, "state", "delayed, ready, reserved or buried, or several with commas between");
		if (!at[length])
			return 0;
		at += length + 1;
	}
}

static int take_option(void *context, const struct options *options, int id)
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
		return options_whole(options->value, 1, UINT64_MAX, &list->limit)
		           ? options_bad_value(options, "limit", "a whole number from 1")
		           : 0;
	case ALL:
		list->limit = UINT64_MAX;
		return 0;
	default:
		return jobs_complain(
		    options, "'%s': no operand is expected; a job alone is shown by 'weekwheel peek'", options->value);
	}
}

static void ask(struct list_command *list)
{
	uint64_t left = list->from || list->to ? PAGE_MAX : list->limit - list->shown;
	char filter[2 * JOBS_KEY_TEXT] = "";
	size_t length = 0;
	size_t room = sizeof filter;

	if (list->jobs.tube)
		length += (size_t)snprintf(filter, room, " tube=%s", list->jobs.tube);
	if (list->states)
		length += (size_t)snprintf(filter + length, room - length, " state=%s", list->states);
	if (*list->prefix)
		length += (size_t)snprintf(filter + length, room - length, " prefix=%s", list->prefix);
	if (list->next)
		snprintf(filter + length, room - length, " after=%" PRIu64, list->next);
	client_line(
	    &list->jobs.client, "list-delayed%s limit=%" PRIu64, filter, left < PAGE_MAX ? left : (uint64_t)PAGE_MAX);
}

/*
 * When the job is due, as Unix time. One on elapsed time has no date of its own: it is due so long from now. That is
 * why --from and --to are compared here and not by the server, which knows a date only of jobs on wall time.
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
	table_cell(&list->table, "%s", strcmp(state, "delayed") ? "now" : time_format(text, due_of(line, size)));
	table_cell(&list->table, "%s", left ? duration_format(text, left) : "-");
}

static void add_row(struct list_command *list, const char *line, size_t size)
{
	char state[20], text[CLIENT_LINE], shown[300];
	uint64_t attempts = json_whole(line, size, "attempts");

	table_cell(&list->table, "%" PRIu64, json_whole(line, size, "id"));
	table_cell(&list->table, "%s", json_text(line, size, "state", state, sizeof state));
	table_cell(&list->table, "%s", json_text(line, size, "tube", text, sizeof text));
	json_text(line, size, "key", text, sizeof text);
	table_cell(&list->table, "%s", *text ? jobs_key_show(text, shown, sizeof shown) : "-");
	add_due(list, line, size, state);
	table_cell(&list->table, "%" PRIu64, json_whole(line, size, "priority"));
	if (attempts)
		table_cell(&list->table, "%" PRIu64 "/%" PRIu64, json_whole(line, size, "reserves"), attempts);
	else
		table_cell(&list->table, "%" PRIu64, json_whole(line, size, "reserves"));
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

static int write_all(struct list_command *list)
{
	struct reply reply;
	uint64_t before;

	do {
		before = list->next;
		ask(list);
		list->next = 0;
		if (client_flush(&list->jobs.client) || client_read(&list->jobs.client, &reply))
			return STATUS_FAILED;
		if (!reply_is(&reply, "OK")) {
			reply_refused(&list->jobs.client, &reply, "list");
			return STATUS_FAILED;
		}
		take_page(list, &reply);
		if (!list->jobs.json && list->shown)
			table_write(&list->table, stdout);
		/* A page that leads back would never end. */
	} while (list->next > before && list->shown < list->limit);
	if (list->next && !list->jobs.json) {
		fflush(stdout);
		message_line("There may be more; --limit N or --all shows them.");
	}
	return STATUS_OK;
}

static int run(struct list_command *list)
{
	int status;

	if (client_open(&list->jobs.client, list->jobs.server, list->jobs.timeout_ms))
		return STATUS_FAILED;
	table_begin(&list->table, columns, sizeof columns / sizeof *columns);
	status = write_all(list);
	table_free(&list->table);
	return status;
}

int command_list(char **arguments)
{
	struct options options = {"weekwheel list", table, OPTION_COUNT, arguments, NULL, 0, NULL};
	struct list_command list = {.limit = 100};
	int status = jobs_parse(&list.jobs, &options, take_option, &list, command_list_help);

	if (status == JOBS_PARSED)
		status = run(&list);
	jobs_close(&list.jobs);
	return status;
}

void command_list_help(FILE *out)
{
	fputs("Usage: weekwheel list [OPTION]...\n"
	      "\n"
	      "List jobs in the order of their ids. Of one that is being run, IN is how long it\n"
	      "still may.\n"
	      "\n"
	      "Options:\n",
	    out);
	options_help(out, table, OPTION_COUNT);
	fputs("\n"
	      "Examples:\n"
	      "  weekwheel list --tube mail --state buried\n"
	      "  weekwheel list --from 1d --to 2d --all --json | jq -r .key\n",
	    out);
}
