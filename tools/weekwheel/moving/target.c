/* Puts batches of jobs from another server into weekwheeld. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "lib/base/time.h"
#include "tools/common/duration.h"
#include "tools/common/message.h"
#include "tools/common/percent.h"
#include "tools/weekwheel/jobs/yaml.h"
#include "tools/weekwheel/moving/moving.h"

/*
 * How long the key of a job stays taken after its end. A buried job is put with this delay, and buried at once:
 * workers must not get it between the two, nor while a killed import waits to be begun again.
 */
enum { DAY = 86400 };

int target_open(struct moving *moving, char *id, size_t room)
{
	struct client *client = &moving->jobs.client;
	struct reply reply;
	int own;

	*id = 0;
	if (jobs_connect(&moving->jobs))
		return -1;
	own = jobs_has_own_verbs(&moving->jobs);
	if (own == 0)
		message_error("%s: this server has no keys, by which an import that is begun again knows what it has "
		              "put; it may be beanstalkd: name a weekwheeld with --server",
		    client->server);
	if (own <= 0 || client_ask(client, &reply, "stats"))
		return -1;
	moving->largest = 0;
	if (reply_is(&reply, "OK")) {
		yaml_text(reply.body, reply.body_size, "id", id, room);
		moving->largest = yaml_whole(reply.body, reply.body_size, "max-job-size");
	}
	moving->largest = moving->largest ? moving->largest : UINT64_MAX;
	return 0;
}

int target_total(struct moving *moving, uint64_t *total)
{
	struct reply reply;

	*total = 0;
	if (client_ask(&moving->jobs.client, &reply, "stats"))
		return -1;
	if (reply_is(&reply, "OK"))
		*total = yaml_whole(reply.body, reply.body_size, "total-jobs");
	return 0;
}

/* ---- A batch */

static void send_put(struct moving *moving, const struct moving_job *job)
{
	struct client *client = &moving->jobs.client;
	const uint64_t now = time_now(CLOCK_MONOTONIC);
	const char *verb = job->is_wall && !job->is_buried ? "put-at" : "put-key";
	char due[DURATION_TEXT], run[DURATION_TEXT];
	uint64_t when = job->due;

	if (*job->schedule) {
		client_line(client, "put-schedule %" PRIu64 " 0 %s %zu %s %s", job->priority,
		    duration_seconds(run, job->run), job->size, job->key, job->schedule);
		client_body(client, job->body, job->size);
		return;
	}
	if (job->is_buried)
		when = DAY * DURATION_SECOND;
	else if (!job->is_wall)
		when = job->due > now ? job->due - now : 0;
	client_line(client, "%s %" PRIu64 " %s %s %zu %s unique=%d%s", verb, job->priority, duration_seconds(due, when),
	    duration_seconds(run, job->run), job->size, job->key, DAY, job->words);
	client_body(client, job->body, job->size);
}

static enum moving_result find_result(const struct reply *reply)
{
	static const char *const words[] = {
	    [MOVING_PUT] = "INSERTED", [MOVING_KEPT] = "KEPT", [MOVING_ENDED] = "ENDED"};

	for (int i = MOVING_PUT; i <= MOVING_ENDED; i++)
		if (reply_is(reply, words[i]))
			return (enum moving_result)i;
	return MOVING_REFUSED;
}

/* Whether the refusal is of this job alone. */
static int is_odd(const struct reply *reply)
{
	return reply_is(reply, "JOB_TOO_BIG") || reply_is(reply, "BAD_FORMAT") || reply_is(reply, "BAD_SCHEDULE");
}

/* "BAD_SCHEDULE cron 2 what%20is%20wrong" has its own. */
static const char *reason(const struct reply *reply)
{
	static char text[300];
	const char *at = reply->word[3];
	const char *end = at + (reply->words > 3 ? strlen(at) : 0);
	size_t length = 0;

	if (!reply_is(reply, "BAD_SCHEDULE"))
		return reply_meaning(reply);
	while (at < end && length < sizeof text - 1)
		text[length++] = percent_take(&at, end);
	text[length] = 0;
	return text;
}

/*
 * Returns 0, 1 if the server takes no jobs now, after a message about the first of a batch, or -1 after one if the
 * connection is lost.
 */
static int read_put(struct moving *moving, struct moving_job *job, int is_reported)
{
	struct client *client = &moving->jobs.client;
	struct reply reply;
	char what[WW_TUBE_MAX + 60];
	enum moving_result result;

	if (client_read(client, &reply))
		return -1;
	result = find_result(&reply);
	if (*job->schedule && reply_is(&reply, "SCHEDULED")) {
		job->result = MOVING_PUT;
		moving->scheduled++;
		return 0;
	}
	if (result == MOVING_REFUSED && is_odd(&reply)) {
		moving_stays(moving, job, reason(&reply));
		return 0;
	}
	if (result == MOVING_REFUSED) {
		snprintf(what, sizeof what, "a job of %zu bytes for tube %s", job->size, job->tube);
		if (!is_reported)
			reply_refused(client, &reply, what);
		return 1;
	}
	if (reply_number(client, &reply, 1, &job->target))
		return -1;
	job->result = result;
	moving->put += result == MOVING_PUT;
	moving->kept += result != MOVING_PUT;
	return 0;
}

/* Put the jobs of the batch that have the tube of its job `first`, in their order. Returns as read_put. */
static int put_tube(struct moving *moving, size_t first)
{
	struct client *client = &moving->jobs.client;
	const char *tube = moving->batch[first].tube;
	struct reply reply;
	int refused = 0;

	/* The answer comes before the first put, which must not go into another tube. */
	if (client_expect(client, &reply, "USING", tube, "use %s", tube))
		return -1;
	for (size_t i = first; i < moving->count; i++)
		if (strcmp(moving->batch[i].tube, tube) == 0)
			send_put(moving, &moving->batch[i]);
	if (client_flush(client))
		return -1;
	/* Goes on after a refusal: the source must lose what was acknowledged. */
	for (size_t i = first; i < moving->count && refused >= 0; i++)
		if (strcmp(moving->batch[i].tube, tube) == 0) {
			int result = read_put(moving, &moving->batch[i], refused);

			refused = result ? result : refused;
		}
	return refused;
}

/* ---- Buried jobs */

/* Until they are buried, the source must not lose them. Notes in former[] what was known of them. */
static void hold(struct moving *moving, enum moving_result *former)
{
	for (size_t i = 0; i < moving->count; i++) {
		struct moving_job *job = &moving->batch[i];

		former[i] = MOVING_REFUSED;
		if (!job->is_buried || (job->result != MOVING_PUT && job->result != MOVING_KEPT))
			continue;
		former[i] = job->result;
		job->result = MOVING_REFUSED;
	}
}

/*
 * Only the client that reserved a job may bury it. Both commands go together: a connection that ends between them
 * would make the job ready. A kept job may be buried already, which changes nothing; one that a worker or a person has
 * taken meanwhile is theirs.
 */
static int bury(struct moving *moving, const enum moving_result *former)
{
	struct client *client = &moving->jobs.client;
	struct reply reply;
	int failed = 0;

	for (size_t i = 0; i < moving->count; i++)
		if (former[i])
			client_line(client,
			    "reserve-job %" PRIu64 "\r\nbury-job %" PRIu64 " %" PRIu64 " buried%%20at%%20the%%20source",
			    moving->batch[i].target, moving->batch[i].target, moving->batch[i].priority);
	if (client_flush(client))
		return -1;
	for (size_t i = 0; i < moving->count; i++) {
		if (!former[i])
			continue;
		if (client_read(client, &reply) || client_read(client, &reply))
			return -1;
		if (reply_is(&reply, "BURIED") || reply_is(&reply, "NOT_FOUND"))
			moving->batch[i].result = former[i];
		else
			failed = failed ? -1 : reply_refused(client, &reply, "bury");
	}
	return failed;
}

int target_put(struct moving *moving)
{
	enum moving_result former[MOVING_BATCH];
	int failed = 0;

	for (size_t i = 0; i < moving->count && failed >= 0; i++) {
		size_t before = 0;

		while (strcmp(moving->batch[before].tube, moving->batch[i].tube) != 0)
			before++;
		if (before == i) {
			int refused = put_tube(moving, i);

			failed = refused ? refused : failed;
		}
	}
	hold(moving, former);
	if (failed >= 0 && bury(moving, former))
		failed = -1;
	return failed ? -1 : 0;
}

int target_take_back(struct moving *moving, const struct moving_job *job)
{
	struct client *client = &moving->jobs.client;
	struct reply reply;

	if (*job->schedule ? client_ask(client, &reply, "delete-schedule %s", job->key)
	                   : client_ask(client, &reply, "delete %" PRIu64, job->target))
		return -1;
	if (!reply_is(&reply, "DELETED") && !reply_is(&reply, "NOT_FOUND"))
		return reply_refused(client, &reply, "delete");
	moving->back += reply_is(&reply, "DELETED") ? 1 : 0;
	moving->doubled += reply_is(&reply, "DELETED") ? 0 : 1;
	return 0;
}

int target_pause(struct moving *moving, const char *tube, uint64_t seconds)
{
	struct client *client = &moving->jobs.client;
	struct reply reply;

	/* An empty tube without watchers would be forgotten with its pause. */
	return client_expect(client, &reply, "WATCHING", tube, "watch %s", tube) ||
	               client_expect(client, &reply, "PAUSED", tube, "pause-tube %s %" PRIu64, tube, seconds)
	           ? -1
	           : 0;
}
