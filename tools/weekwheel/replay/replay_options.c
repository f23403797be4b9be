/* Reads the options of replay, and writes its help. */
#include "tools/weekwheel/replay/replay_options.h"

#include <string.h>

#include "tools/common/duration.h"
#include "tools/common/memory.h"
#include "tools/common/options.h"
#include "tools/weekwheel/replay/synthetic.h"

enum { TIMEOUT = 1, FORMAT, EMIT, JSON, VERIFY, STRICT, WRITE_CSV, TO_END, EVERY_TICK, SESSIONS, SEED, HELP };

static const struct option table[] = {
    {TIMEOUT, 't', "timeout", "TIME",
        "idle timeout of the sessions in access logs: 90s, 30m,\n12h, 1h30m, 7d, 2w or seconds (default 30m)"},
    {FORMAT, 'f', "format", "FORMAT", "swf, log or csv, instead of recognising it"},
    {EMIT, 'e', "emit", NULL,
        "write each expiry as a line: time, key, and for a session\n"
        "its length and number of requests, with tabs between;\n"
        "the summary goes to standard error"},
    {JSON, 'j', "json", NULL, "write the summary as one JSON object"},
    {VERIFY, 'V', "verify", NULL, "compare with an ordered oracle; status 3 if they differ"},
    {STRICT, 's', "strict", NULL, "stop at the first line that cannot be read"},
    {WRITE_CSV, 'w', "write-csv", "FILE",
        "also write the events as CSV; - is standard output,\nand FILE.gz is compressed"},
    {TO_END, 'E', "to-end", NULL, "go on after the last event until every timer has expired"},
    {EVERY_TICK, 'T', "every-tick", NULL, "advance by every second, not only where something is due"},
    {SESSIONS, 'n', "sessions", "N", "how many synthetic sessions (default 100000)"},
    {SEED, 'S', "seed", "N", "what to make them from (default 1)"},
    {HELP, 'h', "help", NULL, "show this help"},
};

enum { OPTION_COUNT = sizeof table / sizeof *table };

static int take_timeout(struct replay_request *request, const struct options *options)
{
	struct duration_problem problem;
	uint64_t ns;

	if (duration_parse(options->value, &ns, &problem) || ns == 0)
		return options_bad_value(options, "timeout", "a time such as 30m, 90s, 12h or 7d");
	request->load.timeout = (struct moment){ns / DURATION_SECOND, (uint32_t)(ns % DURATION_SECOND)};
	return 0;
}

static int take_option(struct replay_request *request, const struct options *options, int id)
{
	uint64_t number;

	switch (id) {
	case TIMEOUT:
		return take_timeout(request, options);
	case FORMAT:
		request->load.format = format_by_name(options->value);
		return request->load.format ? 0 : options_bad_value(options, "format", "swf, log or csv");
	case SESSIONS:
		if (options_whole(options->value, 1, SYNTHETIC_SESSIONS_MAX, &number))
			return options_bad_value(options, "sessions", "a number from 1 to 50000000");
		return request->sessions = (uint32_t)number, 0;
	case SEED:
		if (options_whole(options->value, 0, UINT64_MAX, &request->seed))
			return options_bad_value(options, "seed", "a number from 0 to 18446744073709551615");
		return 0;
	case WRITE_CSV:
		return request->write_csv = options->value, 0;
	case EMIT:
		return request->emit = 1, 0;
	case JSON:
		return request->json = 1, 0;
	case VERIFY:
		return request->verify = 1, 0;
	case STRICT:
		return request->load.strict = 1, 0;
	case TO_END:
		return request->replay.to_end = 1, 0;
	case EVERY_TICK:
		return request->replay.every_tick = 1, 0;
	default:
		return request->files[request->file_count++] = options->value, 0;
	}
}

static int check_combination(const struct replay_request *request, const struct options *options, int synthetic)
{
	size_t standard_inputs = 0;

	for (size_t i = 0; i < request->file_count; i++)
		standard_inputs += strcmp(request->files[i], "-") == 0;
	if (standard_inputs > 1)
		return options_fail(options, "standard input ('-') can be read only once");
	if (synthetic && request->file_count > 0)
		return options_fail(
		    options, "--sessions and --seed are for synthetic sessions; leave them or the files out");
	if (request->emit && request->write_csv && strcmp(request->write_csv, "-") == 0)
		return options_fail(
		    options, "--emit and --write-csv - both want standard output; give --write-csv a file");
	return 0;
}

static void set_defaults(struct replay_request *request, char **arguments)
{
	size_t count = 0;

	while (arguments[count])
		count++;
	request->files = memory_zeroed(count, sizeof *request->files);
	request->load.timeout.seconds = 30 * 60;
	request->seed = SYNTHETIC_SEED;
	request->sessions = SYNTHETIC_SESSIONS;
}

enum replay_request_kind replay_request_parse(struct replay_request *request, char **arguments)
{
	struct options options = {"weekwheel replay", table, OPTION_COUNT, arguments, NULL, 0, NULL};
	int synthetic = 0;
	int id;

	memset(request, 0, sizeof *request);
	set_defaults(request, arguments);
	while ((id = options_next(&options)) != OPTIONS_END) {
		if (id == HELP)
			return REPLAY_REQUEST_HELP;
		if (id == OPTIONS_ERROR || take_option(request, &options, id))
			return REPLAY_REQUEST_WRONG;
		synthetic |= id == SESSIONS || id == SEED;
	}
	if (check_combination(request, &options, synthetic))
		return REPLAY_REQUEST_WRONG;
	request->replay.check = request->verify;
	request->replay.keep_expiries = request->verify || request->emit;
	request->replay.keep_sessions = request->emit;
	return REPLAY_REQUEST_RUN;
}

void replay_request_help(FILE *out)
{
	fputs("Usage: weekwheel replay [OPTION]... [FILE]...\n"
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
	      "       seconds, and lines that begin with # are comments\n"
	      "\n"
	      "Options:\n",
	    out);
	options_help(out, table, OPTION_COUNT);
	fputs("\n"
	      "Status: 0 done; 1 a file, a line or the output had a problem; 2 the command line\n"
	      "had one; 3 the wheel and the oracle differ.\n"
	      "\n"
	      "Examples:\n"
	      "  weekwheel replay --verify jobs.swf.gz\n"
	      "  weekwheel replay --timeout 15m --emit access.log | cut -f2 | sort | uniq -c\n"
	      "  weekwheel replay --sessions 1000000 --json\n",
	    out);
}
