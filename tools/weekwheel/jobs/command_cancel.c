/* The command cancel. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "tools/common/memory.h"
#include "tools/common/message.h"
#include "tools/common/command.h"
#include "tools/weekwheel/jobs/jobs.h"

enum { VERSION = 1 };

static const struct option table[] = {
    JOBS_TUBE_OPTION("the tube of the key (default 'default')"),
    JOBS_KEY_OPTION("the job with this key"),
    {VERSION, 0, "if-version", "N", "with --key: only if the job has this version"},
    JOBS_OPTIONS,
};

enum { OPTION_COUNT = sizeof table / sizeof *table };

struct cancel {
	struct jobs jobs;
	uint64_t version;
	uint64_t *ids;
	size_t count, capacity;
};

static int take_option(void *context, const struct options *options, int id)
{
	struct cancel *cancel = context;

	if (id == VERSION) {
		if (options_whole(options->value, 1, UINT64_MAX, &cancel->version))
			return options_bad_value(
			    options, "if-version", "a whole number, as 'weekwheel list --json' shows it");
		return 0;
	}
	cancel->ids = memory_grow(cancel->ids, &cancel->capacity, cancel->count, sizeof *cancel->ids);
	return jobs_id(options, &cancel->ids[cancel->count++]);
}

static int check(const struct cancel *cancel, const struct options *options)
{
	if ((cancel->count != 0) == (*cancel->jobs.key != 0))
		return jobs_complain(options, "give the ids of jobs, or --key");
	if (cancel->version && cancel->count)
		return jobs_complain(options, "--if-version is of the job with --key, which is missing");
	return 0;
}

/* The answer for one job, called by its id or its key. Returns the exit status. */
static int report(const struct cancel *cancel, const struct reply *reply, const char *label, const char *name)
{
	int running = reply_is(reply, "RUNNING");
	char shown[JOBS_KEY_TEXT];
	char what[JOBS_KEY_TEXT + 10];

	jobs_key_show(name, shown, sizeof shown);
	if (!running && !reply_is(reply, "DELETED")) {
		snprintf(what, sizeof what, "%s %s", label, shown);
		reply_refused(&cancel->jobs.client, reply, what);
		return STATUS_FAILED;
	}
	if (cancel->jobs.json && cancel->count)
		printf("{\"id\": %s, \"cancelled\": true, \"running\": %s}\n", name, running ? "true" : "false");
	else if (cancel->jobs.json)
		printf("{\"key\": \"%s\", \"cancelled\": true, \"running\": %s}\n", name, running ? "true" : "false");
	else
		printf("%s cancelled%s\n", shown, running ? "; it is being run now, for the last time" : "");
	return STATUS_OK;
}

static int cancel_key(struct cancel *cancel)
{
	struct reply reply;
	char version[40] = "";

	if (cancel->version)
		snprintf(version, sizeof version, " version=%" PRIu64, cancel->version);
	if (client_ask(&cancel->jobs.client, &reply, "delete-key %s%s", cancel->jobs.key, version))
		return STATUS_FAILED;
	return report(cancel, &reply, "key", cancel->jobs.key);
}

static int cancel_ids(struct cancel *cancel)
{
	struct client *client = &cancel->jobs.client;
	int status = STATUS_OK;
	struct reply reply;
	char name[24];
	size_t i;

	for (i = 0; i < cancel->count; i++)
		client_line(client, "delete %" PRIu64, cancel->ids[i]);
	if (client_flush(client))
		return STATUS_FAILED;
	for (i = 0; i < cancel->count; i++) {
		if (client_read(client, &reply))
			return STATUS_FAILED;
		snprintf(name, sizeof name, "%" PRIu64, cancel->ids[i]);
		if (report(cancel, &reply, "job", name))
			status = STATUS_FAILED;
	}
	return status;
}

static int run(struct cancel *cancel)
{
	if (jobs_open(&cancel->jobs))
		return STATUS_FAILED;
	return cancel->count ? cancel_ids(cancel) : cancel_key(cancel);
}

int command_cancel(char **arguments)
{
	struct options options = {"weekwheel cancel", table, OPTION_COUNT, arguments, NULL, 0, NULL};
	struct cancel cancel = {.count = 0};
	int status = jobs_parse(&cancel.jobs, &options, take_option, &cancel, command_cancel_help);

	if (status == JOBS_PARSED)
		status = check(&cancel, &options) ? STATUS_USAGE : run(&cancel);
	jobs_close(&cancel.jobs);
	free(cancel.ids);
	return status;
}

void command_cancel_help(FILE *out)
{
	fputs("Usage: weekwheel cancel [OPTION]... ID...\n"
	      "       weekwheel cancel [OPTION]... --key KEY\n"
	      "\n"
	      "Delete jobs, so that they are never delivered again.\n"
	      "\n"
	      "Options:\n",
	    out);
	options_help(out, table, OPTION_COUNT);
	fputs("\n"
	      "Examples:\n"
	      "  weekwheel cancel 17 18 19\n"
	      "  weekwheel cancel --tube mail --key ada\n",
	    out);
}
