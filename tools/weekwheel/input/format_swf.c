/*
 * Reads the Standard Workload Format of the Parallel Workloads Archive: a line a job, 18 numbers each, -1 for unknown.
 *
 * A job's timer is its time limit. The job's start (submit + wait) sets it to the requested time, and the job's end
 * (start + run time) cancels it unless the limit comes first. Unknown numbers:
 * - wait: the job starts when it is submitted. Grids often record nothing else.
 * - run time: nothing cancels the timer, and it expires.
 * - requested time: the limit of the header (MaxRuntime) applies. Without one the job is counted and has no timer. No job
 *   can run under a limit of 0, which counts as unknown.
 * A checkpointed job has a line for the whole, and lines for its parts (status 2 to 4). The parts are left out, or the
 * job would count twice.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "tools/common/message.h"
#include "tools/weekwheel/input/format.h"

enum { FIELDS = 18 };

/* Numbered from 1, as the definition of the format does. */
enum field { JOB = 1, SUBMIT = 2, WAIT = 3, RUN = 4, REQUESTED = 9, STATUS = 11 };

struct swf_job {
	struct input_line field[FIELDS + 1];
	struct moment start, run, limit;
	int run_known, limit_known;
};

static int split(struct input_line line, struct swf_job *job)
{
	int count = 0;

	for (line = line_trim(line); line.size > 0; line = line_trim(line)) {
		struct input_line field = {line.text, 0};

		while (field.size < line.size && !is_blank(line.text[field.size]))
			field.size++;
		if (++count <= FIELDS)
			job->field[count] = field;
		line.text += field.size;
		line.size -= field.size;
	}
	return count;
}

static int check_numbers(const struct swf_job *job, struct line_problem *problem)
{
	char excerpt[40];
	struct moment ignored;

	for (int i = 1; i <= FIELDS; i++) {
		if (moment_parse(job->field[i].text, job->field[i].size, &ignored) != NUMBER_INVALID)
			continue;
		message_excerpt(excerpt, sizeof excerpt, job->field[i].text, job->field[i].size);
		return line_problem_set(problem, "field %d is %s; expected a number", i, excerpt);
	}
	return 0;
}

/* Read a field, in which a negative number means unknown. Return 1 if it is known, 0 if not, -1 if unreadable. */
static int optional(
    const struct swf_job *job, enum field field, const char *what, struct moment *value, struct line_problem *problem)
{
	struct input_line text = job->field[field];

	if (moment_parse(text.text, text.size, value) == NUMBER_NEGATIVE)
		return 0;
	return line_number(text, what, value, problem) ? -1 : 1;
}

static int read_times(struct swf_job *job, const struct format_context *context, struct line_problem *problem)
{
	struct moment submit = {0, 0};
	struct moment wait = {0, 0};

	if (line_number(job->field[SUBMIT], "submit time (field 2)", &submit, problem) ||
	    optional(job, WAIT, "wait time (field 3)", &wait, problem) < 0)
		return -1;
	job->run_known = optional(job, RUN, "run time (field 4)", &job->run, problem);
	job->limit_known = optional(job, REQUESTED, "requested time (field 9)", &job->limit, problem);
	if (job->run_known < 0 || job->limit_known < 0)
		return -1;
	if (!job->limit_known || moment_is_zero(job->limit)) {
		job->limit = context->limit;
		job->limit_known = !moment_is_zero(context->limit);
	}
	if (moment_add(submit, wait, &job->start))
		return line_problem_set(problem, "submit + wait time is beyond 9223372036854775807 seconds");
	return 0;
}

/* Each job has a timer, also where two jobs have the same number. */
static uint32_t job_key(struct events *events, struct input_line number)
{
	char text[64];
	size_t attempt = keys_count(events->keys);

	if (!keys_known(events->keys, number.text, number.size))
		return keys_intern(events->keys, number.text, number.size);
	do {
		int shown = number.size < 40 ? (int)number.size : 40;

		snprintf(text, sizeof text, "%.*s#%zu", shown, number.text, attempt++);
	} while (keys_known(events->keys, text, strlen(text)));
	return keys_intern(events->keys, text, strlen(text));
}

static enum line_result add_job(const struct swf_job *job, struct events *events, struct line_problem *problem)
{
	struct moment due;
	struct moment end = {0, 0};
	uint32_t id;

	if (moment_add(job->start, job->limit, &due) || (job->run_known && moment_add(job->start, job->run, &end)))
		return line_problem_set(problem, "the job's end is beyond 9223372036854775807 seconds");
	id = job_key(events, job->field[JOB]);
	events_add(events, EVENT_SET, id, job->start, due);
	if (job->run_known)
		events_add_cancel(events, id, end);
	return LINE_EVENTS;
}

static void read_header(struct format_context *context, struct input_line line)
{
	static const char name[] = "MaxRuntime:";
	const size_t length = sizeof name - 1;
	struct moment limit;

	line.text++;
	line.size--;
	line = line_trim(line);
	if (line.size < length || memcmp(line.text, name, length) != 0)
		return;
	line.text += length;
	line.size -= length;
	line = line_trim(line);
	if (moment_parse(line.text, line.size, &limit) == NUMBER_OK)
		context->limit = limit;
}

static enum line_result swf_read(
    struct format_context *context, struct input_line line, struct events *events, struct line_problem *problem)
{
	struct swf_job job = {.run_known = 0};
	int fields;

	line = line_trim(line);
	if (line.size == 0)
		return LINE_BLANK;
	if (line.text[0] == ';') {
		read_header(context, line);
		return LINE_COMMENT;
	}
	fields = split(line, &job);
	if (fields != FIELDS)
		return line_problem_set(problem, "%d fields; expected the %d numbers of a job in SWF", fields, FIELDS);
	if (check_numbers(&job, problem) || read_times(&job, context, problem))
		return LINE_UNREADABLE;
	if (job.field[STATUS].size == 1 && strchr("234", job.field[STATUS].text[0])) {
		context->jobs_in_parts++;
		return LINE_EVENTS;
	}
	if (!job.limit_known) {
		context->jobs_without_limit++;
		return LINE_EVENTS;
	}
	if (!job.run_known)
		context->jobs_without_finish++;
	return add_job(&job, events, problem);
}

const struct format format_swf = {"swf", "Standard Workload Format", ".swf", 0, swf_read};
