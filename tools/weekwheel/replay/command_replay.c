/* The command replay: reads its options and the files, replays their events on a wheel, and reports. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "tools/common/command.h"
#include "tools/common/duration.h"
#include "tools/common/memory.h"
#include "tools/common/message.h"
#include "tools/weekwheel/input/csv_write.h"
#include "tools/weekwheel/jobs/jobs.h"
#include "tools/weekwheel/replay/report.h"
#include "tools/weekwheel/replay/synthetic.h"
#include "tools/weekwheel/replay/verify.h"
#include "weekwheel/version.h"

enum { TIMEOUT = 1, FORMAT, WRITE_CSV, SESSIONS, SEED };

static const struct option table[] = {
    {TIMEOUT, 't', "timeout", "TIME",
        "idle timeout of the sessions in access logs: 90s, 30m,\n12h, 1h30m, 7d, 2w or seconds (default 30m)"},
    {FORMAT, 'f', "format", "FORMAT", "swf, log or csv, instead of recognising it"},
    {JOBS_FLAG(struct report, request.emit), 'e', "emit", NULL,
        "write each expiry as a line: time, key, and for a session\n"
        "its length and number of requests, with tabs between;\n"
        "the summary goes to standard error"},
    {JOBS_FLAG(struct report, request.json), 'j', "json", NULL, "write the summary as one JSON object"},
    {JOBS_FLAG(struct report, request.verify), 'V', "verify", NULL,
        "compare with an ordered oracle; status 3 if they differ"},
    {JOBS_FLAG(struct report, request.load.strict), 's', "strict", NULL, "stop at the first line that cannot be read"},
    {WRITE_CSV, 'w', "write-csv", "FILE",
        "also write the events as CSV; - is standard output,\nand FILE.gz is compressed"},
    {JOBS_FLAG(struct report, request.replay.to_end), 'E', "to-end", NULL,
        "go on after the last event until every timer has expired"},
    {JOBS_FLAG(struct report, request.replay.every_tick), 'T', "every-tick", NULL,
        "advance by every second, not only where something is due"},
    {SESSIONS, 'n', "sessions", "N", "how many synthetic sessions (default 100000)"},
    {SEED, 'S', "seed", "N", "what to make them from (default 1)"},
    JOBS_HELP_OPTION,
};

static int take_timeout(struct replay_request *request, const struct options *options)
{
	struct duration_problem problem;
	uint64_t ns;

	if (duration_parse(options->value, &ns, &problem) || ns == 0)
		return options_bad_value(options, "timeout", "a time such as 30m, 90s, 12h or 7d");
	request->load.timeout = (struct moment){ns / DURATION_SECOND, (uint32_t)(ns % DURATION_SECOND)};
	return 0;
}

static int take_option(void *context, struct options *options, int id)
{
	struct replay_request *request = &((struct report *)context)->request;
	uint64_t sessions = 0;
	int wrong;

	switch (id) {
	case TIMEOUT:
		return take_timeout(request, options);
	case FORMAT:
		request->load.format = format_by_name(options->value);
		return request->load.format ? 0 : options_bad_value(options, "format", "swf, log or csv");
	case SESSIONS:
		request->synthetic = 1;
		wrong = jobs_whole(
		    options, "sessions", 1, SYNTHETIC_SESSIONS_MAX, &sessions, "a number from 1 to 50000000");
		request->sessions = (uint32_t)sessions;
		return wrong;
	case SEED:
		request->synthetic = 1;
		return jobs_whole(
		    options, "seed", 0, UINT64_MAX, &request->seed, "a number from 0 to 18446744073709551615");
	case WRITE_CSV:
		request->write_csv = options->value;
		return 0;
	default:
		request->files =
		    memory_grow(request->files, &request->file_capacity, request->file_count, sizeof *request->files);
		request->files[request->file_count++] = options->value;
		return 0;
	}
}

static int check(void *context, const struct options *options)
{
	struct replay_request *request = &((struct report *)context)->request;
	size_t standard_inputs = 0;

	for (size_t i = 0; i < request->file_count; i++)
		standard_inputs += strcmp(request->files[i], "-") == 0;
	if (standard_inputs > 1)
		return options_fail(options, "standard input ('-') can be read only once");
	if (request->synthetic && request->file_count > 0)
		return options_fail(
		    options, "--sessions and --seed are for synthetic sessions; leave them or the files out");
	if (request->emit && request->write_csv && strcmp(request->write_csv, "-") == 0)
		return options_fail(
		    options, "--emit and --write-csv - both want standard output; give --write-csv a file");
	request->replay.check = request->verify;
	request->replay.keep_expiries = request->verify || request->emit;
	request->replay.keep_sessions = request->emit;
	return 0;
}

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

static int run(void *context)
{
	struct report *report = context;
	int status = run_replay(report);

	outcome_free(&report->result.outcome);
	events_free(&report->events);
	free(report->sources);
	free(report->request.files);
	return status;
}

const struct jobs_command command_replay = {
    .name = "weekwheel replay",
    JOBS_TABLE(table),
    .context =
        &(struct report){
            .request = {.load = {.timeout = {30 * 60, 0}}, .seed = SYNTHETIC_SEED, .sessions = SYNTHETIC_SESSIONS}},
    .server = JOBS_NO_SERVER,
    .take = take_option,
    .check = check,
    .run = run,
    .usage = "Usage: weekwheel replay [OPTION]... [FILE]...\n"
             "\n"
             "Drive a timing wheel in virtual time with the timeouts of FILEs, and report what\n"
             "happened. Several FILEs are replayed together, as one stream in order of time.\n"
             "Without a FILE, a week of synthetic sessions is made up; '-' is standard input.\n"
             "\n"
             "A FILE, plain or compressed with gzip, is one of\n"
             "  swf  a workload of batch jobs in the Standard Workload Format: each job's time\n"
             "       limit is a timer, which the job's end cancels\n"
             "  log  a web server's access log, common or combined: each request sets or\n"
             "       refreshes the session of its client\n"
             "  csv  events, a line each: time,event,key,timeout\n"
             "       event is set, refresh or cancel (which needs no timeout), times are in\n"
             "       seconds, and lines that begin with # are comments\n",
    .examples = "Status: 0 done; 1 a file, a line or the output had a problem; 2 the command line\n"
                "had one; 3 the wheel and the oracle differ.\n"
                "\n"
                "Examples:\n"
                "  weekwheel replay --verify jobs.swf.gz\n"
                "  weekwheel replay --timeout 15m --emit access.log | cut -f2 | sort | uniq -c\n"
                "  weekwheel replay --sessions 1000000 --json\n",
};
