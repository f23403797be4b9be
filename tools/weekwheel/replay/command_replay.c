/* The subcommand replay: read the files, replay their events on a wheel, report. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "tools/common/command.h"
#include "tools/common/memory.h"
#include "tools/common/message.h"
#include "tools/weekwheel/input/csv_write.h"
#include "tools/weekwheel/replay/report.h"
#include "tools/weekwheel/replay/synthetic.h"
#include "tools/weekwheel/replay/verify.h"
#include "weekwheel/version.h"

static int load_all(struct report *run)
{
	const struct replay_request *request = &run->request;

	run->sources = memory_zeroed(request->file_count, sizeof *run->sources);
	for (size_t i = 0; i < request->file_count; i++)
		if (load_file(request->files[i], &request->load, &run->events, &run->sources[i], &run->unreadable))
			return -1;
	if (run->unreadable > LOAD_MESSAGES_MAX)
		message_error("%" PRIu64 " more lines could not be read", run->unreadable - LOAD_MESSAGES_MAX);
	return 0;
}

static int prepare(struct report *run)
{
	const struct replay_request *request = &run->request;

	events_init(&run->events);
	if (request->file_count == 0)
		synthetic_generate(&run->events, request->seed, request->sessions);
	else if (load_all(run))
		return -1;
	run->out_of_order = events_sort(&run->events);
	return 0;
}

static int write_csv(const struct report *run)
{
	const struct replay_request *request = &run->request;
	char remark[120];

	if (!request->write_csv)
		return 0;
	snprintf(remark, sizeof remark, "synthetic: %" PRIu32 " made-up sessions, seed %" PRIu64 ", by weekwheel %s",
	    request->sessions, request->seed, ww_version());
	return csv_write(&run->events, request->write_csv, request->file_count == 0 ? remark : NULL);
}

static int verify(struct report *run)
{
	struct difference difference;
	struct outcome expected;
	int differs;

	if (!run->request.verify)
		return 0;
	oracle_run(&run->events, run->request.replay.to_end, &expected);
	differs = verify_compare(&run->result.outcome, &expected, run->events.keys, &difference);
	outcome_free(&expected);
	run->verified = differs ? REPORT_DIFFERENT : REPORT_VERIFIED;
	if (differs)
		message_error("VERIFY FAILED: %s", difference.text);
	return differs;
}

/* Lines for another program have standard output to themselves. */
static void write_report(const struct report *run)
{
	const struct replay_request *request = &run->request;
	int data = request->emit || (request->write_csv && strcmp(request->write_csv, "-") == 0);
	FILE *out = data ? stderr : stdout;

	if (request->json)
		report_json(out, run);
	else
		report_text(out, run);
}

static int input_status(const struct report *run)
{
	for (size_t i = 0; i < run->request.file_count; i++)
		if (run->sources[i].damaged)
			return STATUS_FAILED;
	return run->unreadable ? STATUS_FAILED : STATUS_OK;
}

/* Whether the CSV would overwrite one of the inputs, by whatever name. */
static int writes_over_input(const struct replay_request *request)
{
	struct stat output, input;

	if (!request->write_csv || strcmp(request->write_csv, "-") == 0 || stat(request->write_csv, &output))
		return 0;
	for (size_t i = 0; i < request->file_count; i++) {
		if (stat(request->files[i], &input) == 0 && S_ISREG(input.st_mode) && input.st_dev == output.st_dev &&
		    input.st_ino == output.st_ino) {
			message_error("--write-csv %s: that is the input '%s' itself; give another name",
			    request->write_csv, request->files[i]);
			return 1;
		}
	}
	return 0;
}

static int run_replay(struct report *run)
{
	int status;

	if (writes_over_input(&run->request))
		return STATUS_USAGE;
	if (prepare(run))
		return STATUS_FAILED;
	status = input_status(run);
	if (write_csv(run))
		status = STATUS_FAILED;
	if (replay_run(&run->events, &run->request.replay, &run->result))
		return STATUS_DIFFERENT;
	if (verify(run))
		status = STATUS_DIFFERENT;
	if (run->request.emit)
		command_output_failed(report_expiries(stdout, run));
	status = command_finish_output(status);
	write_report(run);
	return command_finish_output(status);
}

int command_replay(char **arguments)
{
	struct report *run = memory_zeroed(1, sizeof *run);
	int status = STATUS_USAGE;

	switch (replay_request_parse(&run->request, arguments)) {
	case REPLAY_REQUEST_RUN:
		status = run_replay(run);
		break;
	case REPLAY_REQUEST_HELP:
		replay_request_help(stdout);
		status = command_finish_output(STATUS_OK);
		break;
	case REPLAY_REQUEST_WRONG:
		break;
	}
	outcome_free(&run->result.outcome);
	events_free(&run->events);
	free(run->sources);
	free(run->request.files);
	free(run);
	return status;
}
