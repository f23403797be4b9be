/* The command bury: takes jobs out of delivery, and keeps them. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "tools/common/memory.h"
#include "tools/common/percent.h"
#include "tools/weekwheel/jobs/jobs.h"
#include "tools/weekwheel/jobs/yaml.h"

enum { REASON = 1, REASON_MAX = 255 };

static const struct option table[] = {
    {REASON, 'r', "reason", "TEXT", "what the job keeps as its error (default 'buried by\nhand')"},
    JOBS_OPTIONS,
};

struct bury {
	struct jobs jobs;
	char reason[3 * REASON_MAX + 1];
	uint64_t *ids;
	size_t count, capacity;
};

static int take_option(void *context, struct options *options, int id)
{
	struct bury *bury = context;

	if (id == REASON) {
		if (!*options->value || strlen(options->value) > REASON_MAX)
			return options_bad_value(options, "reason", "1 to 255 bytes");
		(void)percent_encode(options->value, strlen(options->value), bury->reason, sizeof bury->reason);
		return 0;
	}
	bury->ids = memory_grow(bury->ids, &bury->capacity, bury->count, sizeof *bury->ids);
	return jobs_id(options, &bury->ids[bury->count++]);
}

static int check(void *context, const struct options *options)
{
	const struct bury *bury = context;

	return bury->count ? 0 : options_fail(options, "give the ids of jobs, as 'weekwheel list' shows them");
}

/* Who may not look at a job gets no answer, and buries it. */
static int is_buried(struct client *client, uint64_t id)
{
	char state[20];
	struct reply reply;

	return client_ask(client, &reply, "stats-job %" PRIu64, id) == 0 && reply_is(&reply, "OK") &&
	       strcmp(yaml_text(reply.body, reply.body_size, "state", state, sizeof state), "buried") == 0;
}

/* Only the client that has a job reserved may bury it. What is buried already keeps its reason unless there is a new one. */
static int bury_one(struct bury *bury, int own, uint64_t id)
{
	struct client *client = &bury->jobs.client;
	struct reply reply;
	uint64_t priority;
	char what[40];

	snprintf(what, sizeof what, "job %" PRIu64, id);
	if (!*bury->reason && is_buried(client, id)) {
		printf(bury->jobs.json ? "{\"id\": \"%" PRIu64 "\", \"buried\": true}\n"
		                       : "%" PRIu64 " is buried already\n",
		    id);
		return 0;
	}
	if (client_expect(client, &reply, "RESERVED", what, "reserve-job %" PRIu64, id) ||
	    client_expect(client, &reply, "OK", what, "stats-job %" PRIu64, id))
		return -1;
	priority = yaml_whole(reply.body, reply.body_size, "pri");
	if (client_expect(client, &reply, "BURIED", what,
	        own ? "bury-job %" PRIu64 " %" PRIu64 " %s" : "bury %" PRIu64 " %" PRIu64, id, priority,
	        *bury->reason ? bury->reason : "buried%20by%20hand"))
		return -1;
	printf(bury->jobs.json ? "{\"id\": \"%" PRIu64 "\", \"buried\": true}\n" : "%" PRIu64 " buried\n", id);
	return 0;
}

static int run(void *context)
{
	struct bury *bury = context;
	int own = jobs_has_own_verbs(&bury->jobs);
	int failed = own < 0;

	for (size_t i = 0; i < bury->count && own >= 0; i++)
		failed |= bury_one(bury, own, bury->ids[i]) != 0;
	return failed ? -1 : 0;
}

const struct jobs_command command_bury = {
    .name = "weekwheel bury",
    JOBS_TABLE(table),
    .context = &(struct bury){.count = 0},
    .server = JOBS_CONNECTED,
    .needs = {"work", "the job's tube"},
    .take = take_option,
    .check = check,
    .run = run,
    .usage = "Usage: weekwheel bury [OPTION]... ID...\n"
             "\n"
             "Keep jobs, and deliver them only when they are kicked. A job that a worker runs\n"
             "cannot be buried from here.\n",
    .examples = "Example:\n"
                "  weekwheel bury 17 --reason 'wrong address'\n",
};
