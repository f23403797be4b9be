/* One slot of a worker: a connection, a job, a command. See work.h. */
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tools/common/clock.h"
#include "tools/common/duration.h"
#include "tools/common/json.h"
#include "tools/common/message.h"
#include "tools/common/percent.h"
#include "tools/common/random.h"
#include "tools/weekwheel/jobs/fields.h"
#include "tools/weekwheel/jobs/work.h"

enum { RETRY_FIRST_MS = 1000, RETRY_MAX_MS = 30000, BACKOFF_FIRST_S = 1, BACKOFF_MAX_S = 3600, LAST_WORDS_MS = 2000 };

static void slot_lost(struct work *work, struct slot *slot)
{
	client_close(&slot->client);
	if (slot->state == SLOT_DONE)
		return;
	slot->answer_by = 0;
	if (slot->state == SLOT_ENDING)
		message_error("job %" PRIu64 ": %s could not be told that it is to be %s; it will be delivered again",
		    slot->id, work->jobs.server, slot->told);
	if (slot->pid)
		message_error("job %" PRIu64
		              ": the connection to %s was lost while its command runs; the server gives the job to "
		              "another worker",
		    slot->id, work->jobs.server);
	if (!work->lost_told++)
		message_error("%s: no connection; trying again", work->jobs.server);
	slot->state = SLOT_LOST;
	slot->retry_ms = slot->retry_ms ? slot->retry_ms * 2 : RETRY_FIRST_MS;
	if (slot->retry_ms > RETRY_MAX_MS)
		slot->retry_ms = RETRY_MAX_MS;
	slot->retry_at = clock_ms() + slot->retry_ms;
}

/* Something was queued that the server answers at once. */
static void expect_answer(const struct work *work, struct slot *slot)
{
	slot->answer_by = clock_ms() + work->jobs.timeout_ms;
}

static void slot_done(struct slot *slot)
{
	client_close(&slot->client);
	slot->state = SLOT_DONE;
}

static void ask_for_job(struct work *work, struct slot *slot)
{
	if (work->stopping) {
		slot_done(slot);
		return;
	}
	client_line(&slot->client, work->drain ? "reserve-with-timeout 0" : "reserve");
	if (work->drain)
		expect_answer(work, slot);
	slot->state = SLOT_WAITING;
}

/* Waits for the server; the other slots are on the same one. */
void slot_connect(struct work *work, struct slot *slot)
{
	const char *tube = work->jobs.tube;
	struct reply reply;

	if (client_open(&slot->client, work->jobs.server, work->jobs.timeout_ms) ||
	    (tube && strcmp(tube, "default") &&
	        (client_ask(&slot->client, &reply, "watch %s", tube) ||
	            client_ask(&slot->client, &reply, "ignore default")))) {
		slot_lost(work, slot);
		return;
	}
	slot->retry_ms = 0;
	work->lost_told = 0;
	ask_for_job(work, slot);
}

static void take_job(struct work *work, struct slot *slot, const struct reply *reply)
{
	slot->began = clock_ms();
	slot->touching = slot->lease_lost = 0;
	slot->body = -1;
	if (work->stopping || reply_number(&slot->client, reply, 1, &slot->id)) {
		slot_done(slot);
		return;
	}
	slot->body = work_body_file(reply);
	if (work->own)
		client_line(&slot->client, "list-delayed id=%" PRIu64, slot->id);
	else
		client_line(&slot->client, "stats-job %" PRIu64, slot->id);
	expect_answer(work, slot);
	slot->state = SLOT_LOOKING;
}

static void take_reserve(struct work *work, struct slot *slot, const struct reply *reply)
{
	if (reply_is(reply, "RESERVED")) {
		take_job(work, slot, reply);
	} else if (reply_is(reply, "TIMED_OUT") && work->drain) {
		slot_done(slot);
	} else if (reply_is(reply, "TIMED_OUT") || reply_is(reply, "DEADLINE_SOON")) {
		ask_for_job(work, slot);
	} else {
		reply_refused(&slot->client, reply, "work");
		slot_lost(work, slot);
	}
}

/* Percent-encoded, as the server writes it, but for a key with a 0, which no environment can hold. */
static void take_key(struct slot *slot, const char *encoded)
{
	const char *end = encoded + strlen(encoded);
	size_t at = 0;

	if (strstr(encoded, "%00")) {
		snprintf(slot->key, sizeof slot->key, "%.*s", JOBS_KEY_MAX, encoded);
		return;
	}
	while (encoded < end && at < JOBS_KEY_MAX)
		slot->key[at++] = percent_take(&encoded, end);
	slot->key[at] = 0;
}

/* What beanstalkd knows of a job: no key, no backoff. */
static void take_stats(struct slot *slot, const char *text, size_t size)
{
	slot->priority = field_whole(text, size, "pri");
	slot->run = field_whole(text, size, "ttr");
	slot->attempt = field_whole(text, size, "reserves");
	slot->limit = 0;
	slot->has_backoff = 0;
	slot->key[0] = 0;
	field_text(text, size, "tube", slot->tube, sizeof slot->tube);
}

static void take_listed(struct slot *slot, const char *text, size_t size)
{
	char key[JOBS_KEY_TEXT], backoff[40];

	slot->priority = json_whole(text, size, "priority");
	slot->run = json_whole(text, size, "run");
	slot->attempt = json_whole(text, size, "reserves");
	slot->limit = json_whole(text, size, "attempts");
	json_text(text, size, "backoff", backoff, sizeof backoff);
	slot->has_backoff = strspn(backoff, "0.") != strlen(backoff);
	take_key(slot, json_text(text, size, "key", key, sizeof key));
	json_text(text, size, "tube", slot->tube, sizeof slot->tube);
}

/* What the server says of the job, after which its command can run. */
static void take_looked(struct work *work, struct slot *slot, const struct reply *reply)
{
	const char *text = reply->body;
	size_t size = reply->body_size;
	int known = reply_is(reply, "OK") && (!work->own || json_whole(text, size, "id") == slot->id);

	if (!known || work->stopping || slot->body < 0) {
		if (slot->body >= 0)
			close(slot->body);
		slot->body = -1;
		/* The job goes back to the server with its connection. */
		slot_lost(work, slot);
		return;
	}
	if (work->own)
		take_listed(slot, text, size);
	else
		take_stats(slot, text, size);
	if (slot->run == 0)
		slot->run = 1;
	if (slot->run > UINT32_MAX)
		slot->run = UINT32_MAX;
	slot->touch_at = slot->began + (int64_t)slot->run * 500;
	slot->state = SLOT_RUNNING;
	if (work_start(work, slot))
		slot_lost(work, slot);
	close(slot->body);
	slot->body = -1;
}

static void take_touch(struct slot *slot, const struct reply *reply)
{
	slot->touching = 0;
	if (reply_is(reply, "TOUCHED")) {
		slot->touch_at = clock_ms() + (int64_t)slot->run * 500;
		return;
	}
	slot->lease_lost = 1;
	message_error("job %" PRIu64
	              ": its time to run was over before it could be prolonged; another worker may run it as well",
	    slot->id);
}

static void write_json(const struct slot *slot, const char *told, int good)
{
	printf("{\"id\": %" PRIu64 ", \"tube\": ", slot->id);
	json_write_string(stdout, slot->tube, strlen(slot->tube));
	printf(", \"attempt\": %" PRIu64 ", \"end\": \"%s\", \"milliseconds\": %" PRId64, slot->attempt, told,
	    clock_ms() - slot->began);
	if (!good) {
		fputs(", \"error\": ", stdout);
		json_write_string(stdout, slot->error, strlen(slot->error));
	}
	puts("}");
	fflush(stdout);
}

static void say_end(struct work *work, const struct slot *slot, const char *told, int good)
{
	char shown[WORK_ERROR_MAX + 8], took[DURATION_TEXT];

	work->ended++;
	work->failed += !good;
	duration_format(took, (uint64_t)(clock_ms() - slot->began) * (DURATION_SECOND / 1000));
	if (work->jobs.json)
		write_json(slot, told, good);
	if (good && work->verbose)
		message_error("job %" PRIu64 ": done in %s", slot->id, took);
	if (!good)
		message_error("job %" PRIu64 ", attempt %" PRIu64 ": %s; %s", slot->id, slot->attempt,
		    message_excerpt(shown, sizeof shown, slot->error, strlen(slot->error)),
		    strcmp(told, "released") ? told : slot->again);
}

static void take_end(struct work *work, struct slot *slot, const struct reply *reply)
{
	int good = strcmp(slot->told, "deleted") == 0;

	if (reply_is(reply, "NOT_FOUND")) {
		message_error("job %" PRIu64
		              ": it was %s, but the server has it no more from here: it was cancelled, or its time to "
		              "run was over",
		    slot->id, good ? "done" : "not done");
		say_end(work, slot, "lost", good);
	} else if (reply_is(reply, "DELETED") || reply_is(reply, "RELEASED") || reply_is(reply, "BURIED")) {
		say_end(work, slot, reply_is(reply, "BURIED") ? "buried" : slot->told, good);
	} else {
		reply_refused(&slot->client, reply, slot->told);
	}
	ask_for_job(work, slot);
}

static void take_reply(struct work *work, struct slot *slot, const struct reply *reply)
{
	slot->answer_by = 0;
	switch (slot->state) {
	case SLOT_WAITING:
		take_reserve(work, slot, reply);
		break;
	case SLOT_LOOKING:
		take_looked(work, slot, reply);
		break;
	case SLOT_RUNNING:
		if (slot->touching)
			take_touch(slot, reply);
		break;
	case SLOT_ENDING:
		take_end(work, slot, reply);
		break;
	default:
		break;
	}
}

void slot_receive(struct work *work, struct slot *slot)
{
	struct reply reply;
	int taken = 0;

	if (client_pull(&slot->client)) {
		slot_lost(work, slot);
		return;
	}
	while (slot->client.fd >= 0 && (taken = client_take(&slot->client, &reply)) > 0)
		take_reply(work, slot, &reply);
	if (taken < 0)
		slot_lost(work, slot);
}

/*
 * Doubled with each attempt, and up to a quarter shorter, so that jobs that failed together do not come back together.
 */
static uint64_t backoff_seconds(struct work *work, const struct slot *slot)
{
	uint64_t seconds = BACKOFF_MAX_S;

	if (slot->attempt < 12)
		seconds = (uint64_t)BACKOFF_FIRST_S << (slot->attempt ? slot->attempt - 1 : 0);
	if (seconds > BACKOFF_MAX_S)
		seconds = BACKOFF_MAX_S;
	return seconds - random_below(&work->seed, seconds / 4 + 1);
}

static void queue_release(struct work *work, struct slot *slot, const char *error)
{
	uint64_t ns = backoff_seconds(work, slot) * DURATION_SECOND;
	char delay[DURATION_TEXT], again[DURATION_TEXT];

	if (work->has_release_delay)
		ns = work->release_delay;
	/* beanstalkd has whole seconds, and never earlier is the rule. */
	if (!work->own)
		ns = (ns + DURATION_SECOND - 1) / DURATION_SECOND * DURATION_SECOND;
	duration_seconds(delay, ns);
	snprintf(slot->again, sizeof slot->again, "again in %s", duration_format(again, ns));
	if (work->own && slot->has_backoff && !work->has_release_delay) {
		snprintf(delay, sizeof delay, "-");
		snprintf(slot->again, sizeof slot->again, "again after its backoff");
	}
	if (work->own)
		client_line(
		    &slot->client, "release-job %" PRIu64 " %" PRIu64 " %s %s", slot->id, slot->priority, delay, error);
	else
		client_line(&slot->client, "release %" PRIu64 " %" PRIu64 " %s", slot->id, slot->priority, delay);
	slot->told = "released";
}

static void queue_bury(const struct work *work, struct slot *slot, const char *error)
{
	if (work->own)
		client_line(&slot->client, "bury-job %" PRIu64 " %" PRIu64 " %s", slot->id, slot->priority, error);
	else
		client_line(&slot->client, "bury %" PRIu64 " %" PRIu64, slot->id, slot->priority);
	slot->told = "buried";
}

static void report_end(struct work *work, struct slot *slot)
{
	/* The server counts what a job's own limit is about: a kick begins anew. */
	uint64_t limit = slot->limit ? 0 : work->attempts;
	char error[3 * WORK_ERROR_MAX + 1];

	work_describe(slot);
	(void)percent_encode(slot->error, strlen(slot->error), error, sizeof error);
	if (WIFEXITED(slot->status) && WEXITSTATUS(slot->status) == 0) {
		client_line(&slot->client, "delete %" PRIu64, slot->id);
		slot->told = "deleted";
	} else if (limit && slot->attempt >= limit) {
		queue_bury(work, slot, error);
	} else {
		queue_release(work, slot, error);
	}
	expect_answer(work, slot);
	slot->state = SLOT_ENDING;
}

static void turn_running(struct work *work, struct slot *slot)
{
	/* The answer to a touch comes first. */
	if (slot->touching)
		return;
	if (!slot->pid)
		report_end(work, slot);
	else if (!slot->lease_lost && clock_ms() >= slot->touch_at) {
		client_line(&slot->client, "touch %" PRIu64, slot->id);
		slot->touching = 1;
		expect_answer(work, slot);
	}
}

void slot_turn(struct work *work, struct slot *slot)
{
	work_reap(slot, WNOHANG);
	if (slot->state == SLOT_RUNNING)
		turn_running(work, slot);
	if (work->stopping && (slot->state == SLOT_WAITING || slot->state == SLOT_LOOKING))
		slot_done(slot);
	if (slot->answer_by && clock_ms() >= slot->answer_by)
		slot_lost(work, slot);
	/* A slot takes nothing new before the command of its lost connection has ended. */
	if (slot->state == SLOT_LOST && !slot->pid) {
		if (work->stopping)
			slot_done(slot);
		else if (clock_ms() >= slot->retry_at)
			slot_connect(work, slot);
	}
	if (slot->client.fd >= 0 && client_push(&slot->client))
		slot_lost(work, slot);
}

int64_t slot_next(const struct slot *slot)
{
	if (slot->answer_by)
		return slot->answer_by;
	if (slot->state == SLOT_RUNNING && slot->pid && !slot->touching && !slot->lease_lost)
		return slot->touch_at;
	if (slot->state == SLOT_LOST && !slot->pid)
		return slot->retry_at;
	return INT64_MAX;
}

void slot_abandon(struct work *work, struct slot *slot)
{
	struct reply reply;

	if (slot->pid) {
		kill(-slot->pid, SIGKILL);
		while (!work_reap(slot, 0))
			;
		message_error("job %" PRIu64 ": its command was killed, and the job given back", slot->id);
	}
	slot->client.timeout_ms = LAST_WORDS_MS;
	/* With a touch on its way the answers are two; closing the connection releases the job as well. */
	if (slot->state == SLOT_RUNNING && !slot->touching && slot->client.fd >= 0) {
		if (work->own)
			client_ask(&slot->client, &reply,
			    "release-job %" PRIu64 " %" PRIu64 " 0 the%%20worker%%20was%%20stopped", slot->id,
			    slot->priority);
		else
			client_ask(
			    &slot->client, &reply, "release %" PRIu64 " %" PRIu64 " 0", slot->id, slot->priority);
	}
	slot_done(slot);
}
