/* The program weekwheel-bench: runs the chosen measurements and writes the results. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "tools/bench/machine.h"
#include "tools/bench/options.h"
#include "tools/bench/result.h"
#include "tools/common/command.h"
#include "tools/common/memory.h"
#include "tools/common/message.h"
#include "tools/common/program.h"

static int save(const char *path, FILE *out, const struct results *results)
{
	int broken;

	bench_report_json(out, results);
	broken = fflush(out) != 0 || ferror(out);
	broken |= fclose(out) != 0;
	if (!broken)
		return STATUS_OK;
	message_error("%s: the results could not be written: %s", path, strerror(errno));
	return STATUS_FAILED;
}

/* What a layer measures is known to the layer alone: that nothing was for it shows at the end, which comes at once. */
static int find_nothing(const struct results *results)
{
	if (results->count || results->left_out_count || results->interrupted)
		return STATUS_OK;
	message_error(
	    "nothing was measured: none of the structures chosen is for the workloads chosen; --help lists which "
	    "are for which");
	return STATUS_USAGE;
}

static int find_wrong(const struct results *results)
{
	for (size_t i = 0; i < results->checked_count; i++)
		if (results->checked[i].wrong) {
			message_error(
			    "%s is wrong: %s", results->checked[i].structure->name, results->checked[i].wrong);
			return STATUS_FAILED;
		}
	return find_nothing(results);
}

/* Find out what is wrong before the minutes that measuring takes, and open *saved if results go to a file. */
static int prepare(const struct bench_request *request, FILE **saved)
{
	int reason = request->cpu == BENCH_ANY_CPU ? 0 : machine_pin((unsigned)request->cpu);

	if (reason) {
		message_error(
		    "--cpu %" PRIu64 ": %s; processors are counted from 0, see nproc", request->cpu, strerror(reason));
		return STATUS_USAGE;
	}
	if (plan_is_empty(&request->plan)) {
		message_error(
		    "there is nothing to measure: none of the structures chosen takes part in the workloads chosen (floor has no E "
		    "and no G; --help lists which are for which)");
		return STATUS_USAGE;
	}
	if (!request->save)
		return STATUS_OK;
	*saved = fopen(request->save, "w");
	if (*saved)
		return STATUS_OK;
	message_error("%s: %s; give --save a file that can be written", request->save, strerror(errno));
	return STATUS_FAILED;
}

static int run(const struct bench_request *request, struct results *results)
{
	FILE *saved = NULL;
	int status = prepare(request, &saved);

	if (status)
		return status;
	snprintf(results->command, sizeof results->command, "%s", request->command);
	machine_describe(results->machine, sizeof results->machine);
	run_plan(&request->plan, results);
	if (request->json)
		bench_report_json(stdout, results);
	else
		bench_report_table(stdout, results);
	status = command_finish_output(find_wrong(results));
	if (saved && save(request->save, saved, results))
		status = STATUS_FAILED;
	return results->interrupted && status == STATUS_OK ? 128 + results->interrupted : status;
}

int main(int count, char **arguments)
{
	struct bench_request request;
	struct results *results;
	int status;

	program_begin("weekwheel-bench", PROGRAM_PARENT);
	switch (bench_request_parse(&request, arguments + (count > 0))) {
	case BENCH_REQUEST_RUN:
		results = memory_zeroed(1, sizeof *results);
		status = run(&request, results);
		results_free(results);
		free(results);
		return status;
	case BENCH_REQUEST_HELP:
		bench_request_help(stdout);
		return command_finish_output(STATUS_OK);
	default:
		return STATUS_USAGE;
	}
}
