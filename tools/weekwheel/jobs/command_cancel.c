/* The command cancel: deletes jobs. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tools/common/json.h"
#include "tools/common/memory.h"
#include "tools/common/message.h"
#include "tools/weekwheel/jobs/listing.h"
#include "tools/weekwheel/jobs/tubes.h"

enum { VERSION = 1, PREFIX, STATE };

struct cancel {
	struct jobs jobs;
	uint64_t version;
	struct listing listing; /* what to cancel if it is a selection */
	int selects, all, yes;
	uint64_t *ids;
	size_t count, capacity;
};

static const struct option table[] = {
    JOBS_TUBE_OPTION("the tube of the key (default 'default'), or of what is\nselected"),
    JOBS_KEY_OPTION("the job with this key"),
    {VERSION, 0, "if-version", "N", "with --key: only if the job has this version"},
    {PREFIX, 'p', "prefix", "TEXT", "jobs with a key that begins with TEXT"},
    {STATE, 'S', "state", "STATES", "jobs in these: delayed, ready, buried; several with\ncommas"},
    {JOBS_FLAG(struct cancel, all), 'a', "all", NULL, "all jobs, or all of --tube"},
    {JOBS_FLAG(struct cancel, yes), 'y', "yes", NULL, "do not ask before cancelling several"},
    JOBS_OPTIONS,
};

static int take_option(void *context, struct options *options, int id)
{
	struct cancel *cancel = context;

	if (id == VERSION)
		return jobs_version(options, &cancel->version);
	cancel->selects |= id == PREFIX || id == STATE;
	if (id == PREFIX)
		return jobs_key(options, "prefix", cancel->listing.prefix);
	if (id == STATE)
		return listing_states(&cancel->listing, options);
	cancel->ids = memory_grow(cancel->ids, &cancel->capacity, cancel->count, sizeof *cancel->ids);
	return jobs_id(options, &cancel->ids[cancel->count++]);
}

static int check(void *context, const struct options *options)
{
	struct cancel *cancel = context;

	cancel->selects |= cancel->all;
	if ((cancel->count != 0) + (*cancel->jobs.key != 0) + cancel->selects != 1)
		return options_fail(
		    options, "give the ids of jobs, or --key, or which jobs by --prefix, --state or --all");
	if (cancel->listing.states && strstr(cancel->listing.states, "reserved"))
		return options_fail(options, "--state '%s': a job that a worker runs is cancelled by its --key",
		    cancel->listing.states);
	if (cancel->version && cancel->count)
		return options_fail(options, "--if-version is for the job with --key, which is missing");
	return 0;
}

static void write_json(const struct cancel *cancel, const char *name, int running)
{
	putchar('{');
	if (cancel->count)
		printf("\"id\": \"%s\"", name);
	else
		jobs_write_key(stdout, name);
	printf(", \"cancelled\": true, \"running\": %s}\n", running ? "true" : "false");
}

/* Report the answer for one job, named by its id or its key. */
static int report(const struct cancel *cancel, const struct reply *reply, const char *name)
{
	int running = reply_is(reply, "RUNNING");
	char shown[JOBS_KEY_TEXT];
	char what[JOBS_KEY_TEXT + 10];

	jobs_key_show(name, shown, sizeof shown);
	if (!running && !reply_is(reply, "DELETED")) {
		snprintf(what, sizeof what, "%s %s", cancel->count ? "job" : "key", shown);
		return reply_refused(&cancel->jobs.client, reply, what);
	}
	if (cancel->jobs.json)
		write_json(cancel, name, running);
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
	return report(cancel, &reply, cancel->jobs.key);
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
		failed |= report(cancel, &reply, name);
	}
	return failed;
}

/* ---- A selection of jobs: those that match */

struct cancel_job {
	uint64_t id, version;
};

struct cancel_found {
	struct cancel_job *jobs;
	size_t count, capacity;
};

static void take_found(void *context, const char *line, size_t size)
{
	struct cancel_found *found = context;

	found->jobs = memory_grow(found->jobs, &found->capacity, found->count, sizeof *found->jobs);
	found->jobs[found->count++] =
	    (struct cancel_job){json_whole(line, size, "id"), json_whole(line, size, "version")};
}

/* Return 1 if the user agrees, 0 if not, or -1 after a message if there is no terminal to ask. */
static int may_cancel(const struct cancel *cancel, size_t count)
{
	char answer[8] = "";

	if (cancel->yes)
		return 1;
	if (!isatty(STDIN_FILENO))
		return message_error("%zu job%s would be cancelled: --yes does it", count, jobs_plural(count));
	fprintf(stderr, "cancel %zu job%s? [y/N] ", count, jobs_plural(count));
	fflush(stderr);
	return fgets(answer, sizeof answer, stdin) && (*answer == 'y' || *answer == 'Y');
}

/* A part at a time, so that what is sent and answered has bounds. */
static int delete_part(struct cancel *cancel, const struct cancel_job *jobs, size_t count, uint64_t *deleted)
{
	struct client *client = &cancel->jobs.client;
	struct reply reply;

	for (size_t i = 0; i < count; i++)
		client_line(client, "delete-job %" PRIu64 " version=%" PRIu64, jobs[i].id, jobs[i].version);
	if (client_flush(client))
		return -1;
	for (size_t i = 0; i < count; i++) {
		if (client_read(client, &reply))
			return -1;
		*deleted += reply_is(&reply, "DELETED") ? 1 : 0;
		if (!reply_is(&reply, "DELETED") && !reply_is(&reply, "NOT_FOUND") && !reply_is(&reply, "STALE"))
			return reply_refused(client, &reply, "cancel");
	}
	return 0;
}

static int delete_found(struct cancel *cancel, const struct cancel_found *found)
{
	uint64_t deleted = 0;
	int failed = 0;

	for (size_t at = 0; at < found->count && !failed; at += LISTING_PAGE)
		failed = delete_part(cancel, found->jobs + at,
		    found->count - at < LISTING_PAGE ? found->count - at : LISTING_PAGE, &deleted);
	if (cancel->jobs.json)
		printf("{\"cancelled\": %" PRIu64 ", \"left\": %" PRIu64 "}\n", deleted, found->count - deleted);
	else
		printf("%" PRIu64 " cancelled\n", deleted);
	if (deleted < found->count && !failed)
		message_line("%" PRIu64 " were gone by then, or changed, or a worker had begun to run them",
		    found->count - deleted);
	return failed;
}

static int cancel_matching(struct cancel *cancel)
{
	struct listing *listing = &cancel->listing;
	struct cancel_found found = {NULL, 0, 0};
	int failed = tubes_known(&cancel->jobs);
	int agreed;

	listing->tube = cancel->jobs.tube;
	if (!listing->states)
		listing->states = "delayed,ready,buried";
	do
		failed = failed || listing_page(listing, &cancel->jobs.client, LISTING_PAGE, take_found, &found);
	while (!failed && listing->next);
	agreed = failed ? -1 : found.count ? may_cancel(cancel, found.count) : 1;
	if (agreed > 0)
		failed = delete_found(cancel, &found);
	free(found.jobs);
	return agreed < 0 || failed ? -1 : 0;
}

static int run(void *context)
{
	struct cancel *cancel = context;

	if (cancel->selects)
		return cancel_matching(cancel);
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
             "       weekwheel cancel [OPTION]... [--prefix TEXT] [--state STATES] [--all]\n"
             "\n"
             "Delete jobs, which are then never delivered again. Of several that are selected\n"
             "the number is shown first, and --yes or an answer cancels them. Those that a\n"
             "worker runs stay.\n",
    .examples = "Examples:\n"
                "  weekwheel cancel 17 18 19\n"
                "  weekwheel cancel --tube mail --key ada\n"
                "  weekwheel cancel --prefix cart- --state delayed --yes\n",
};

/* ---- The command purge, which selects all jobs of a tube */

static const struct option purge_table[] = {
    {JOBS_FLAG(struct cancel, yes), 'y', "yes", NULL, "do not ask"},
    JOBS_OPTIONS,
};

static int take_purge(void *context, struct options *options, int id)
{
	struct cancel *cancel = context;

	(void)id;
	return cancel->jobs.tube ? options_fail(options, "'%s': one tube at a time", options->value)
	                         : jobs_tube(&cancel->jobs, options);
}

static int check_purge(void *context, const struct options *options)
{
	struct cancel *cancel = context;

	cancel->selects = 1;
	return cancel->jobs.tube ? 0 : options_fail(options, "a tube is missing, such as: mail");
}

const struct jobs_command command_purge = {
    .name = "weekwheel purge",
    JOBS_TABLE(purge_table),
    .context = &(struct cancel){.count = 0},
    .server = JOBS_CONNECTED,
    .needs = {"read and work", "the tube"},
    .take = take_purge,
    .check = check_purge,
    .run = run,
    .usage = "Usage: weekwheel purge [OPTION]... TUBE\n"
             "\n"
             "Delete all jobs of a tube that no worker runs. Shows their number first, and\n"
             "deletes them with --yes or when that is answered.\n",
    .examples = "Example:\n"
                "  weekwheel purge --yes mail\n",
};
