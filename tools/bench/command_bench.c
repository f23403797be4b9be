/* The subcommand bench. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "tools/bench/bench_options.h"
#include "tools/bench/machine.h"
#include "tools/bench/page.h"
#include "tools/bench/report.h"
#include "tools/common/memory.h"
#include "tools/common/message.h"
#include "tools/weekwheel/command.h"

static int pin(const struct bench_request *request)
{
	int reason;

	if (request->cpu < 0)
		return STATUS_OK;
	reason = machine_pin((unsigned)request->cpu);
	if (!reason)
		return STATUS_OK;
	message_error("--cpu %ld: %s; processors are counted from 0, see nproc", request->cpu, strerror(reason));
	return STATUS_USAGE;
}

static int write_page(const char *path, FILE *out, const struct results *results)
{
	int broken = page_write(out, results);

	broken |= fclose(out);
	if (!broken)
		return STATUS_OK;
	message_error("%s: the page could not be written: %s", path, strerror(errno));
	return STATUS_FAILED;
}

static int find_wrong(const struct results *results)
{
	size_t i;

	for (i = 0; i < results->checked_count; i++)
		if (results->checked[i].wrong) {
			message_error(
			    "%s is wrong: %s", results->checked[i].structure->name, results->checked[i].wrong);
			return STATUS_FAILED;
		}
	return STATUS_OK;
}

static int write_plots(const char *folder, const struct results *results)
{
	int count = page_plots(folder, results);

	if (count == 0)
		message_error(
		    "no plot was written to %s: there are plots of C30, C1800, D and G, but no results of those",
		    folder);
	return count > 0 ? STATUS_OK : STATUS_FAILED;
}

/* What can be found out before the minutes that the measuring takes: *page is opened, if there is to be one. */
static int prepare(const struct bench_request *request, FILE **page)
{
	int status = pin(request);

	if (status)
		return status;
	if (plan_is_empty(&request->plan)) {
		message_error(
		    "there is nothing to measure: none of the structures chosen takes part in the workloads chosen (floor has no E "
		    "and no G; bench --help lists which are for which)");
		return STATUS_USAGE;
	}
	if (request->plots && page_plots_possible(request->plots)) {
		message_error("%s: %s; give --plots a folder that can be written to", request->plots, strerror(errno));
		return STATUS_FAILED;
	}
	if (!request->html)
		return STATUS_OK;
	*page = fopen(request->html, "w");
	if (*page)
		return STATUS_OK;
	message_error("%s: %s; give --html a file that can be written", request->html, strerror(errno));
	return STATUS_FAILED;
}

static int run(const struct bench_request *request, struct results *results)
{
	FILE *page = NULL;
	int status = prepare(request, &page);

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
	if (page && write_page(request->html, page, results))
		status = STATUS_FAILED;
	if (request->plots && write_plots(request->plots, results))
		status = STATUS_FAILED;
	return results->interrupted && status == STATUS_OK ? 128 + results->interrupted : status;
}

int command_bench(char **arguments)
{
	struct bench_request request;
	struct results *results;
	int status;

	switch (bench_request_parse(&request, arguments)) {
	case BENCH_REQUEST_RUN:
		results = memory_zeroed(1, sizeof *results);
		status = run(&request, results);
		results_free(results);
		free(results);
		return status;
	case BENCH_REQUEST_HELP:
		command_bench_help(stdout);
		return command_finish_output(STATUS_OK);
	default:
		return STATUS_USAGE;
	}
}

void command_bench_help(FILE *out)
{
	bench_request_help(out);
}
