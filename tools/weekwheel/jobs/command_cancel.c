/* The command cancel: deletes jobs. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "tools/common/memory.h"
#include "tools/weekwheel/jobs/jobs.h"

enum { VERSION = 1 };

static const struct option table[] = {
    JOBS_TUBE_OPTION("the tube of the key (default 'default')"),
    JOBS_KEY_OPTION("the job with this key"),
    {VERSION, 0, "if-version", "N", "with --key: only if the job has this version"},
    JOBS_OPTIONS,
};

struct cancel {
	struct jobs jobs;
	uint64_t version;
	uint64_t *ids;
	size_t count, capacity;
};

static int take_option(void *context, struct options *options, int id)
{
	struct cancel *cancel = context;

	if (id == VERSION)
		return jobs_version(options, &cancel->version);
	cancel->ids = memory_grow(cancel->ids, &cancel->capacity, cancel->count, sizeof *cancel->ids);
	return jobs_id(options, &cancel->ids[cancel->count++]);
}

static int check(void *context, const struct options *options)
{
	const struct cancel *cancel = context;

	if ((cancel->count != 0) == (*cancel->jobs.key != 0))
		return options_fail(options, "give the ids of jobs, or --key");
	if (cancel->version && cancel->count)
		return options_fail(options, "--if-version is for the job with --key, which is missing");
	return 0;
}

/* Report the answer for one job, named by its id or its key. */
static int report(const struct cancel *cancel, const struct reply *reply, const char *label, const char *name)
{
	const char *quote = cancel->count ? "" : "\"";
	int running = reply_is(reply, "RUNNING");
	char shown[JOBS_KEY_TEXT];
	char what[JOBS_KEY_TEXT + 10];

	jobs_key_show(name, shown, sizeof shown);
	if (!running && !reply_is(reply, "DELETED")) {
		snprintf(what, sizeof what, "%s %s", cancel->count ? "job" : "key", shown);
		return reply_refused(&cancel->jobs.client, reply, what);
	}
	if (cancel->jobs.json)
		printf("{\"%s\": %s%s%s, \"cancelled\": true, \"running\": %s}\n", label, quote, name, quote,
		    running ? "true" : "false");
	else
		printf("%s cancelled%s\n", shown, running ? "; it is being run now, for the last time" : "");
	return 0;
}

static int cancel_key(struct cancel *cancel)
{
	struct reply reply;
	char version[40] = "";

	if (cancel->version)
		jobs_add_number(version, sizeof version, "version", cancel->version);
	if (client_ask(&cancel->jobs.client, &reply, "delete-key %s%s", cancel->jobs.key, version))
		return -1;
	return report(cancel, &reply, "key", cancel->jobs.key);
}

static int cancel_ids(struct cancel *cancel)
{
	struct client *client = &cancel->jobs.client;
	struct reply reply;
	int failed = 0;
	char name[24];

	for (size_t i = 0; i < cancel->count; i++)
		client_line(client, "delete %" PRIu64, cancel->ids[i]);
	if (client_flush(client))
		return -1;
	for (size_t i = 0; i < cancel->count; i++) {
		if (client_read(client, &reply))
			return -1;
		snprintf(name, sizeof name, "%" PRIu64, cancel->ids[i]);
		failed |= report(cancel, &reply, "id", name);
	}
	return failed;
}

static int run(void *context)
{
	struct cancel *cancel = context;

	return cancel->count ? cancel_ids(cancel) : cancel_key(cancel);
}

const struct jobs_command command_cancel = {
    .name = "weekwheel cancel",
    JOBS_TABLE(table),
    .context = &(struct cancel){.count = 0},
    .server = JOBS_USING_TUBE,
    .needs = {"work", "the job's tube"},
    .take = take_option,
    .check = check,
    .run = run,
    .usage = "Usage: weekwheel cancel [OPTION]... ID...\n"
             "       weekwheel cancel [OPTION]... --key KEY\n"
             "\n"
             "Delete jobs, which are then never delivered again.\n",
    .examples = "Examples:\n"
                "  weekwheel cancel 17 18 19\n"
                "  weekwheel cancel --tube mail --key ada\n",
};
