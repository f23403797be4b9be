/* The command import. */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "command.h"
#include "input/input.h"
#include "jobs/jobs.h"
#include "message.h"
#include "progress.h"
#include "store/line.h"
#include "store/store.h"

enum { REPLACE = 1, JSON, HELP };

static const struct option table[] = {
    {REPLACE, 'r', "replace", NULL, "replace jobs of the same tube and key, instead of\nleaving out those of the file"},
    {JSON, 'j', "json", NULL, "write the summary as JSON"},
    {HELP, 'h', "help", NULL, "show this help"},
};

/* Jobs that are written together, or fewer with large bodies. */
enum { OPTION_COUNT = sizeof table / sizeof *table, BATCH_JOBS = 1000, BATCH_BYTES = 16 << 20, MESSAGES_MAX = 20 };

struct import {
	const char *path, *file; /* file "-": standard input */
	const char *place;       /* what to call it */
	int replace, json;
	struct store store;
	struct input input;
	struct line line;
	int64_t shift;
	uint64_t number;            /* of the line */
	uint64_t begun;             /* the number of the first line of the batch */
	uint64_t jobs, bytes;       /* in the batch */
	uint64_t added, substitute; /* written for good: new ones, and those in place of others */
	uint64_t batch_added, batch_substitute;
	uint64_t first, last; /* new ids */
	uint64_t left_out;
};

__attribute__((format(printf, 2, 3))) static int leave_out(struct import *import, const char *format, ...)
{
	char text[LINE_PROBLEM + 300];
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(text, sizeof text, format, arguments);
	va_end(arguments);
	if (import->left_out++ < MESSAGES_MAX)
		message_line("%s:%" PRIu64 ": %s", import->place, import->number, text);
	return 0;
}

/* Nothing more can be done: say what is not in it. */
static int stop(struct import *import, int error)
{
	char text[4200];

	store_reason(text, sizeof text, import->path, error);
	if (import->begun)
		message_error(
		    "%s\nLine %" PRIu64 " of %s and those behind it were not put.", text, import->begun, import->place);
	else
		message_error("%s", text);
	return -1;
}

/* ---- Batches */

static int begin_batch(struct import *import)
{
	int error = WW_OK;

	if (import->jobs)
		return 0;
	import->begun = import->number;
	import->bytes = import->batch_added = import->batch_substitute = 0;
	error = ww_jobs_begin(import->store.jobs);
	return error ? stop(import, error) : 0;
}

static int end_batch(struct import *import)
{
	int error;

	if (!import->jobs)
		return 0;
	import->jobs = 0;
	error = ww_jobs_commit(import->store.jobs);
	if (error)
		return stop(import, error);
	import->added += import->batch_added;
	import->substitute += import->batch_substitute;
	return 0;
}

/* ---- A line */

/* A job that is there with this key, or 0. */
static uint64_t find_same(struct import *import)
{
	const struct ww_job_spec *spec = &import->line.spec;
	const struct ww_job_ref ref = {.tube = spec->tube, .key = spec->key, .key_length = spec->key_length};
	struct ww_job_info info;

	if (!spec->key_length || ww_jobs_peek(import->store.jobs, &ref, &info, NULL))
		return 0;
	return info.id;
}

static int bury(struct import *import, uint64_t id)
{
	const struct line *line = &import->line;
	struct ww_jobs *jobs = import->store.jobs;
	struct ww_lease lease;
	int error = ww_jobs_reserve_job(jobs, id, &lease);

	if (error)
		return error;
	ww_jobs_free(jobs, lease.body);
	return ww_jobs_bury(jobs, id, lease.token, line->spec.priority, line->error[0] ? line->error : NULL);
}

static int put(struct import *import)
{
	struct ww_job_spec spec = import->line.spec;
	uint64_t id = 0;
	int result;

	if (spec.flags & WW_JOB_AT && !(spec.flags & WW_JOB_WALL))
		spec.due =
		    import->shift > 0 && spec.due < (uint64_t)import->shift ? 0 : spec.due - (uint64_t)import->shift;
	result = ww_jobs_put(import->store.jobs, &spec, &id, NULL);
	if (result == WW_EOVERFLOW)
		return leave_out(import, "it is due in more than 146 years; expected an earlier 'due'");
	/* The spec was checked member by member: what is refused now is refused of every job. */
	if (result >= 0 && import->line.is_buried) {
		int error = bury(import, id);

		if (error)
			return error;
	}
	if (result < 0)
		return result;
	import->batch_substitute += result == 1;
	import->batch_added += result == 0;
	if (result == 0) {
		import->first = import->first ? import->first : id;
		import->last = id;
	}
	return 0;
}

static int take_line(struct import *import, const char *text, size_t size)
{
	char excerpt[60];
	uint64_t same;
	int error;

	if (strspn(text, " \t") >= size)
		return 0;
	if (line_read(&import->line, text, size))
		return leave_out(import, "%s", import->line.problem);
	if (begin_batch(import))
		return -1;
	import->jobs++;
	import->bytes += import->line.spec.body_length;
	same = import->replace ? 0 : find_same(import);
	message_excerpt(excerpt, sizeof excerpt, (const char *)import->line.key, import->line.spec.key_length);
	if (same)
		return leave_out(import,
		    "job %" PRIu64 " of tube %s has the key %s already; expected another, or --replace", same,
		    import->line.tube, excerpt);
	error = put(import);
	if (!error)
		return 0;
	(void)ww_jobs_commit(import->store.jobs);
	return stop(import, error);
}

static int step(struct import *import, enum input_result result, const char *text, size_t size)
{
	import->number++;
	if (result == INPUT_LONG)
		return leave_out(import, "the line is too long; expected %zu bytes at most", INPUT_LINE_MAX);
	if (take_line(import, text, size))
		return -1;
	if (import->number % 1000 == 0)
		progress_show(import->input.size ? input_position(&import->input) : import->number, import->input.size);
	return import->jobs >= BATCH_JOBS || import->bytes >= BATCH_BYTES ? end_batch(import) : 0;
}

static int read_all(struct import *import)
{
	enum input_result result;
	const char *text;
	size_t size;

	while ((result = input_line(&import->input, &text, &size)) == INPUT_LINE || result == INPUT_LONG)
		if (step(import, result, text, size))
			return -1;
	if (end_batch(import))
		return -1;
	if (result == INPUT_END)
		return 0;
	message_error("%s: %s, behind line %" PRIu64, import->place, import->input.problem, import->number);
	return -1;
}

/* ---- All of it */

static void say_result(const struct import *import)
{
	const uint64_t jobs = import->added + import->substitute;

	progress_clear();
	if (import->left_out > MESSAGES_MAX)
		message_line(
		    "%s: %" PRIu64 " more lines were left out", import->place, import->left_out - MESSAGES_MAX);
	if (import->json) {
		printf("{\"put\": %" PRIu64 ", \"replaced\": %" PRIu64 ", \"left_out\": %" PRIu64, jobs,
		    import->substitute, import->left_out);
		if (import->added)
			printf(", \"first\": %" PRIu64 ", \"last\": %" PRIu64, import->first, import->last);
		puts("}");
		return;
	}
	printf("%" PRIu64 " job%s put", jobs, jobs == 1 ? "" : "s");
	if (import->added)
		printf(", with new ids from %" PRIu64 " to %" PRIu64, import->first, import->last);
	if (import->substitute)
		printf(", %" PRIu64 " in place of others", import->substitute);
	if (import->left_out)
		printf(", %" PRIu64 " left out", import->left_out);
	putchar('\n');
}

static int run(struct import *import)
{
	int failed;
	int error;

	import->place = strcmp(import->file, "-") == 0 ? "standard input" : import->file;
	if (input_open(&import->input, import->file)) {
		message_error("%s: %s", import->place, import->input.problem);
		return STATUS_FAILED;
	}
	error = store_open(&import->store, import->path, 0);
	if (error) {
		store_refused(import->path, error);
		input_close(&import->input);
		return STATUS_FAILED;
	}
	import->shift = store_shift(&import->store);
	progress_begin("importing");
	failed = read_all(import) != 0;
	error = store_close(&import->store);
	if (error && !failed)
		store_refused(import->path, error);
	say_result(import);
	line_free(&import->line);
	input_close(&import->input);
	return failed || error || import->left_out ? STATUS_FAILED : STATUS_OK;
}

static int take_operand(struct import *import, const struct options *options)
{
	if (!import->path)
		return store_operand(options, &import->path);
	if (import->file)
		return jobs_complain(options, "'%s': a directory and one file are expected", options->value);
	import->file = options->value;
	return 0;
}

int command_import(char **arguments)
{
	struct options options = {"weekwheel import", table, OPTION_COUNT, arguments, NULL, 0, NULL};
	static struct import import;
	int id;

	while ((id = options_next(&options)) != OPTIONS_END) {
		if (id == HELP) {
			command_import_help(stdout);
			return STATUS_OK;
		}
		if (id == OPTIONS_ERROR || (id == OPTIONS_OPERAND && take_operand(&import, &options)))
			return STATUS_USAGE;
		import.replace |= id == REPLACE;
		import.json |= id == JSON;
	}
	if (store_needs_operand(&options, import.path))
		return STATUS_USAGE;
	if (!import.file)
		import.file = "-";
	return run(&import);
}

void command_import_help(FILE *out)
{
	fputs("Usage: weekwheel import [OPTION]... DIR [FILE]\n"
	      "\n"
	      "Put the jobs that 'weekwheel export' wrote to FILE, or standard input, into DIR,\n"
	      "which is made if it is missing. No server may have it meanwhile. Jobs get new ids and\n"
	      "keep their tubes, keys, bodies, due times and what else they were put with; buried\n"
	      "ones are buried again. FILE may be compressed with gzip. A line that is no job is\n"
	      "named and left out, and the exit status is then 1.\n"
	      "\n"
	      "Options:\n",
	    out);
	options_help(out, table, OPTION_COUNT);
	fputs("\n"
	      "Example, a directory again from a backup:\n"
	      "  weekwheel import /var/lib/weekwheeld/jobs jobs.json\n",
	    out);
}
