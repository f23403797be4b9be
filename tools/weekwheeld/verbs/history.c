/* The verbs of history: what a worker reports of a run, and the list of runs. */
#include <inttypes.h>

#include "tools/job/job.h"
#include "tools/weekwheeld/verbs/list.h"
#include "tools/weekwheeld/verbs/verbs.h"

/* ---- report */

static void history_report_run(struct call *call)
{
	const struct command *command = call->command;

	call->result = WW_ESTALE;
	if (call->token && command->body_length <= WW_JOB_REPORT_MAX)
		call->result =
		    ww_jobs_report(call_jobs(call), command->id, call->token, command->body, command->body_length);
}

static void history_report_answer(struct call *call)
{
	if (call->command->body_length > WW_JOB_REPORT_MAX)
		answer_text(call->connection, "JOB_TOO_BIG\r\n");
	else
		answer_result(
		    call->connection, call->result == WW_ESTALE ? WW_ENOTFOUND : call->result, "REPORTED\r\n");
}

/* ---- history */

struct history {
	struct buffer *out;
	int with_report;
	int bad;
};

static int add_run(const struct ww_job_run *run, void *context)
{
	struct history *history = context;
	struct buffer *out = history->out;

	history->bad |=
	    buffer_format(out, out->size ? "\n{" : "{") ||
	    field_write(out, job_run_fields, history->with_report ? JOB_BODY : JOB_SHOWN, run, FIELD_LINE, NULL) ||
	    buffer_append(out, "}", 1);
	return history->bad;
}

/* Write runs as lines of JSON, as list_jobs does with jobs. Returns 0 or a WW_E*. */
static int history_list(struct server *server, const struct command *command, struct buffer *out)
{
	const struct command_own *own = &command->own;
	struct history history = {.out = out, .with_report = own->with_body};
	const struct ww_run_filter filter = {.tube = own->has_tube ? command->tube : NULL,
	    .job = command->id,
	    .prefix = own->key,
	    .prefix_length = own->key_length,
	    .before = own->after};
	uint64_t next = 0;
	int error = ww_jobs_history(server->jobs, &filter, (size_t)command->bound, add_run, &history, &next);

	if (history.bad || (next && buffer_format(out, "%s{\"next\":%" PRIu64 "}", out->size ? "\n" : "", next) != 0))
		return WW_ENOMEM;
	return error;
}

static void history_list_run(struct call *call)
{
	call->result = history_list(call->connection->server, call->command, &call->made);
}

static void history_list_answer(struct call *call)
{
	answer_block(call->connection, call->result, &call->made);
}

const struct steps verb_report = {end_prepare, history_report_run, history_report_answer, NULL};
const struct steps verb_history = {NULL, history_list_run, history_list_answer, NULL};
