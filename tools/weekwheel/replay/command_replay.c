/* The subcommand replay: read the files, drive the wheel, report. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "tools/common/command.h"
#include "tools/common/memory.h"
#include "tools/common/message.h"
#include "tools/weekwheel/input/csv_write.h"
#include "tools/weekwheel/input/load.h"
#include "tools/weekwheel/replay/emit.h"
#include "tools/weekwheel/replay/oracle.h"
#include "tools/weekwheel/replay/replay_options.h"
#include "tools/weekwheel/replay/report.h"
#include "tools/weekwheel/replay/synthetic.h"
#include "tools/weekwheel/replay/verify.h"
#include "weekwheel/version.h"

/* The sources of one replay, and what is made of them. */
struct job {
	struct replay_request request;
	struct events events;
	struct source *sources;
	struct replay_result result;
	struct report report;
};

static int load_all(struct job *job)
{
	const struct replay_request *request = &job->request;
	uint64_t reported = 0;
	size_t i;

	job->sources = memory_zeroed(request->file_count, sizeof *job->sources);
	for (i = 0; i < request->file_count; i++)
		if (load_file(request->files[i], &request->load, &job->events, &job->sources[i], &reported))
			return -1;
	if (reported > LOAD_MESSAGES_MAX)
		message_error("%" PRIu64 " more lines could not be read", reported - LOAD_MESSAGES_MAX);
	return 0;
}

static int prepare(struct job *job)
{
	const struct replay_request *request = &job->request;

	events_init(&job->events);
	if (request->file_count == 0)
		synthetic_generate(&job->events, request->seed, request->sessions);
	else if (load_all(job))
		return -1;
	job->report.out_of_order = events_sort(&job->events);
	return 0;
}

static int write_csv(const struct job *job)
{
	const struct replay_request *request = &job->request;
	char remark[120];

	if (!request->write_csv)
		return 0;
	snprintf(remark, sizeof remark, "synthetic: %" PRIu32 " made-up sessions, seed %" PRIu64 ", by weekwheel %s",
	    request->sessions, request->seed, ww_version());
	return csv_write(&job->events, request->write_csv, request->file_count == 0 ? remark : NULL);
}

static int verify(struct job *job)
{
	struct difference difference;
	struct outcome expected;
	int differs;

	if (!job->request.verify)
		return 0;
	oracle_run(&job->events, job->request.replay.to_end, &expected);
	differs = verify_compare(&job->result.outcome, &expected, job->events.keys, &difference);
	outcome_free(&expected);
	job->report.verified = differs ? REPORT_DIFFERENT : REPORT_VERIFIED;
	if (differs)
		message_error("VERIFY FAILED: %s", difference.text);
	return differs;
}

/* Jobs have no requests; everything else counts as sessions. */
static int has_sessions(const struct job *job)
{
	size_t i;

	for (i = 0; i < job->request.file_count; i++)
		if (job->sources[i].format->has_sessions)
			return 1;
	return job->request.file_count == 0;
}

static void fill_report(struct job *job)
{
	struct report *report = &job->report;

	report->sources = job->sources;
	report->source_count = job->request.file_count;
	report->events = &job->events;
	report->result = &job->result;
	report->every_tick = job->request.replay.every_tick;
	report->to_end = job->request.replay.to_end;
	report->seed = job->request.seed;
	report->sessions = job->request.sessions;
}

/* What is data for another program has standard output to itself. */
static void write_report(const struct job *job)
{
	const struct replay_request *request = &job->request;
	int data = request->emit || (request->write_csv && strcmp(request->write_csv, "-") == 0);
	FILE *out = data ? stderr : stdout;

	if (request->json)
		report_json(out, &job->report);
	else
		report_text(out, &job->report);
}

static int input_status(const struct job *job)
{
	size_t i;

	for (i = 0; i < job->request.file_count; i++)
		if (job->sources[i].unreadable || job->sources[i].damaged)
			return STATUS_FAILED;
	return STATUS_OK;
}

/* Whether the CSV would be written over one of the files that it is made of, whatever each is called. */
static int writes_over_input(const struct job *job)
{
	const struct replay_request *request = &job->request;
	struct stat output;
	struct stat input;
	size_t i;

	if (!request->write_csv || strcmp(request->write_csv, "-") == 0 || stat(request->write_csv, &output))
		return 0;
	for (i = 0; i < request->file_count; i++) {
		if (stat(request->files[i], &input) == 0 && S_ISREG(input.st_mode) && input.st_dev == output.st_dev &&
		    input.st_ino == output.st_ino) {
			message_error("--write-csv %s: that is the input '%s' itself; give another name",
			    request->write_csv, request->files[i]);
			return 1;
		}
	}
	return 0;
}

static int run(struct job *job)
{
	int status;

	if (writes_over_input(job))
		return STATUS_USAGE;
	if (prepare(job))
		return STATUS_FAILED;
	status = input_status(job);
	if (write_csv(job))
		status = STATUS_FAILED;
	if (replay_run(&job->events, &job->request.replay, &job->result))
		return STATUS_DIFFERENT;
	fill_report(job);
	if (verify(job))
		status = STATUS_DIFFERENT;
	if (job->request.emit)
		command_output_failed(
		    emit_expiries(stdout, &job->events, &job->result.outcome.expiries, has_sessions(job)));
	status = command_finish_output(status);
	write_report(job);
	return command_finish_output(status);
}

int command_replay(char **arguments)
{
	struct job *job = memory_zeroed(1, sizeof *job);
	int status;

	switch (replay_request_parse(&job->request, arguments)) {
	case REPLAY_REQUEST_RUN:
		status = run(job);
		break;
	case REPLAY_REQUEST_HELP:
		replay_request_help(stdout);
		status = command_finish_output(STATUS_OK);
		break;
	default:
		status = STATUS_USAGE;
		break;
	}
	replay_result_free(&job->result);
	events_free(&job->events);
	free(job->sources);
	free(job->request.files);
	free(job);
	return status;
}
