/* One runner of a worker: its connection, its job, and the command that runs for the job. See work.h. */
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/base/random.h"
#include "lib/base/time.h"
#include "tools/common/duration.h"
#include "tools/common/json.h"
#include "tools/common/message.h"
#include "tools/common/percent.h"
#include "tools/weekwheel/jobs/listing.h"
#include "tools/weekwheel/jobs/work.h"
#include "tools/weekwheel/jobs/yaml.h"
#include "weekwheel/driver.h"

enum {
	HELD_FIRST_MS = 10,
	HELD_MAX_MS = 500,
	BACKOFF_FIRST_S = 1,
	BACKOFF_MAX_S = 3600,
	LAST_WORDS_MS = 2000,
	REPORT_MAX = 4096
};

static int work_is_ending(const struct work *work)
{
	return work->stopping || work->refused;
}

int64_t work_pause(int64_t before)
{
	int64_t pause = before ? before * 2 : WORK_RETRY_FIRST_MS;

	return pause < WORK_RETRY_MAX_MS ? pause : WORK_RETRY_MAX_MS;
}

static void runner_lost(struct work *work, struct runner *runner)
{
	client_close(&runner->client);
	if (runner->state == RUNNER_DONE)
		return;
	runner->answer_by = 0;
	runner->reported = 0;
	if (runner->state == RUNNER_ENDING)
		message_error("job %" PRIu64
		              ": the connection to %s was lost before it was %s; it will be delivered again",
		    runner->id, work->jobs.server, runner->outcome);
	if (runner->pid)
		message_error("job %" PRIu64
		              ": the connection to %s was lost while its command runs; the server gives the job to "
		              "another worker",
		    runner->id, work->jobs.server);
	if (!work->lost_reported++)
		message_error("%s: no connection; trying again", work->jobs.server);
	runner->state = RUNNER_LOST;
	if (time_ms() < work->retry_at)
		return;
	work->retry_ms = work_pause(work->retry_ms);
	work->retry_at = time_ms() + work->retry_ms;
}

/* A command was queued that the server answers at once. */
static void expect_answer(const struct work *work, struct runner *runner)
{
	runner->answer_by = time_ms() + work->jobs.timeout_ms;
}

static void runner_done(struct runner *runner)
{
	client_close(&runner->client);
	runner->state = RUNNER_DONE;
}

static void expect_reserve(const struct work *work, struct runner *runner)
{
	runner->answer_by = time_ms() + work->jobs.timeout_ms + runner->waits_ms;
}

static void ask_for_job(struct work *work, struct runner *runner)
{
	if (work_is_ending(work)) {
		runner_done(runner);
		return;
	}
	runner->waits_ms = work_ask(work, runner);
	expect_reserve(work, runner);
	runner->state = RUNNER_WAITING;
}

/* Blocks until the server answers. The other runners use the same server, and would wait as well. */
static void runner_connect(struct work *work, struct runner *runner)
{
	if (jobs_open(&work->jobs, &runner->client) || work_watch(work, runner)) {
		work->refused |= runner->client.token == CLIENT_TOKEN_REFUSED;
		if (work->refused)
			runner_done(runner);
		else
			runner_lost(work, runner);
		return;
	}
	work->retry_ms = 0;
	work->lost_reported = 0;
	ask_for_job(work, runner);
}

static void take_job(struct work *work, struct runner *runner, const struct reply *reply)
{
	runner->began = time_ms();
	runner->touching = runner->lease_lost = runner->late = 0;
	runner->tried = 0;
	runner->again_ms = 0;
	runner->body = -1;
	if (work_is_ending(work) || reply_number(&runner->client, reply, 1, &runner->id)) {
		runner_done(runner);
		return;
	}
	runner->body = work_body_file(reply);
	runner->headers_length = reply->headers_size;
	if (reply->headers_size)
		memcpy(runner->headers, reply->headers, reply->headers_size);
	if (work->own)
		client_line(&runner->client, "list-delayed id=%" PRIu64, runner->id);
	else
		client_line(&runner->client, "stats-job %" PRIu64, runner->id);
	expect_answer(work, runner);
	runner->state = RUNNER_LOOKING;
}

/* No job is ready. Those that a limit holds are, as soon as it lets them go; beanstalkd has no limits. */
static void look_for_held(struct work *work, struct runner *runner)
{
	if (!work->own || work_is_ending(work)) {
		runner_done(runner);
		return;
	}
	runner->looks = work_look(work, runner);
	runner->held = 0;
	runner->state = RUNNER_HELD;
	expect_answer(work, runner);
}

/* Those that a limit has just stopped holding count, too, but not those of a tube that pauses, or above --code. */
static uint64_t held_jobs(const struct reply *reply)
{
	uint64_t held = yaml_whole(reply->body, reply->body_size, "current-jobs-held");
	uint64_t ready = yaml_whole(reply->body, reply->body_size, "current-jobs-ready");
	uint64_t above = yaml_whole(reply->body, reply->body_size, "current-jobs-above-code");

	ready = ready > above ? ready - above : 0;
	if (yaml_whole(reply->body, reply->body_size, "pause"))
		return held;
	return held && held < ready ? held : ready;
}

static void take_held(struct work *work, struct runner *runner, const struct reply *reply)
{
	if (reply_is(reply, "OK"))
		runner->held += held_jobs(reply);
	if (--runner->looks)
		expect_answer(work, runner);
	else if (!runner->held)
		runner_done(runner);
	else
		runner->again_ms = runner->again_ms ? 2 * runner->again_ms : HELD_FIRST_MS;
	if (runner->again_ms > HELD_MAX_MS)
		runner->again_ms = HELD_MAX_MS;
	runner->again_at = time_ms() + runner->again_ms;
}

static void take_reserve(struct work *work, struct runner *runner, const struct reply *reply)
{
	if (runner->skips && reply_is(reply, "WATCHING")) {
		runner->skips--;
		expect_reserve(work, runner);
	} else if (reply_is(reply, "RESERVED")) {
		take_job(work, runner, reply);
	} else if (reply_is(reply, "TIMED_OUT") && work->drain && !runner->tried) {
		look_for_held(work, runner);
	} else if (reply_is(reply, "TIMED_OUT") || reply_is(reply, "DEADLINE_SOON")) {
		ask_for_job(work, runner);
	} else if (reply_is(reply, "DENIED")) {
		/* Asking again would not change it. The others find the same. */
		if (!work->refused++)
			reply_refused(&runner->client, reply, "work");
		runner_done(runner);
	} else {
		reply_refused(&runner->client, reply, "work");
		runner_lost(work, runner);
	}
}

/* One with a NUL is percent-encoded, as no environment can hold a NUL. */
static void take_key(struct runner *runner, const struct ww_job_info *job)
{
	if (memchr(job->key, 0, job->key_length))
		(void)percent_encode(job->key, job->key_length, runner->key, sizeof runner->key);
	else
		snprintf(runner->key, sizeof runner->key, "%.*s", (int)job->key_length, (const char *)job->key);
}

/* beanstalkd's answer has no key, no limit and no backoff. */
static void take_answer(const struct work *work, struct runner *runner, const char *text, size_t size)
{
	struct buffer room = {0};
	struct ww_job_info job = {.state = WW_JOB_READY};

	if (work->own)
		(void)listing_job(&job, text, size, &room);
	else
		(void)listing_stats(&job, text, size);
	buffer_free(&room);
	runner->priority = job.priority;
	runner->run = job.run / WW_SECOND;
	runner->attempt = job.reserves;
	runner->limit = job.attempts;
	runner->backoff = job.backoff;
	take_key(runner, &job);
	memcpy(runner->tube, job.tube, sizeof job.tube);
}

/* The server has described the job: run its command. */
static void take_looked(struct work *work, struct runner *runner, const struct reply *reply)
{
	const char *text = reply->body;
	size_t size = reply->body_size;
	int known = reply_is(reply, "OK") && (!work->own || json_whole(text, size, "id") == runner->id);

	if (!known || work_is_ending(work) || runner->body < 0) {
		if (runner->body >= 0)
			close(runner->body);
		runner->body = -1;
		/* The job goes back to the server with its connection. */
		runner_lost(work, runner);
		return;
	}
	take_answer(work, runner, text, size);
	if (runner->run == 0)
		runner->run = 1;
	if (runner->run > UINT32_MAX)
		runner->run = UINT32_MAX;
	runner->touch_at = runner->began + (int64_t)runner->run * 500;
	runner->state = RUNNER_RUNNING;
	runner->kill_at = work->run_timeout ? time_ms() + (int64_t)(work->run_timeout / 1000000) : 0;
	if (work_start(work, runner))
		runner_lost(work, runner);
	close(runner->body);
	runner->body = -1;
}

static void take_touch(struct runner *runner, const struct reply *reply)
{
	runner->touching = 0;
	if (reply_is(reply, "TOUCHED")) {
		runner->touch_at = time_ms() + (int64_t)runner->run * 500;
		return;
	}
	runner->lease_lost = 1;
	message_error(
	    "job %" PRIu64
	    ": its time to run cannot be extended any more: it expired, or the job was cancelled or put again; "
	    "another worker may run it as well",
	    runner->id);
}

static void write_json(const struct runner *runner, const char *outcome, int good)
{
	printf("{\"id\": \"%" PRIu64 "\", \"tube\": ", runner->id);
	json_write_string(stdout, runner->tube, strlen(runner->tube));
	printf(", \"attempt\": %" PRIu64 ", \"end\": \"%s\", \"milliseconds\": %" PRId64, runner->attempt, outcome,
	    time_ms() - runner->began);
	if (!good) {
		fputs(", \"error\": ", stdout);
		json_write_string(stdout, runner->error, strlen(runner->error));
	}
	puts("}");
	fflush(stdout);
}

static void print_end(struct work *work, const struct runner *runner, const char *outcome, int good)
{
	char shown[WORK_ERROR_MAX + 8], took[DURATION_TEXT];

	work->ended++;
	work->failed += !good;
	duration_format(took, (uint64_t)(time_ms() - runner->began) * (DURATION_SECOND / 1000));
	if (work->jobs.json)
		write_json(runner, outcome, good);
	if (good && work->verbose)
		message_error("job %" PRIu64 ": done in %s", runner->id, took);
	if (!good)
		message_error("job %" PRIu64 ", attempt %" PRIu64 ": %s; %s", runner->id, runner->attempt,
		    message_excerpt(shown, sizeof shown, runner->error, strlen(runner->error)),
		    strcmp(outcome, "released") ? outcome : runner->again);
}

static void take_end(struct work *work, struct runner *runner, const struct reply *reply)
{
	int good = strcmp(runner->outcome, "deleted") == 0;

	if (runner->reported) {
		/* Whatever it is, the next answer says more. */
		runner->reported = 0;
		expect_answer(work, runner);
		return;
	}
	if (reply_is(reply, "NOT_FOUND")) {
		message_error("job %" PRIu64
		              ": it was %s, but the server does not have it reserved here any more: it was "
		              "cancelled, or its time to run expired",
		    runner->id, good ? "done" : "not done");
		print_end(work, runner, "lost", good);
	} else if (reply_is(reply, "DELETED") || reply_is(reply, "RELEASED") || reply_is(reply, "BURIED")) {
		print_end(work, runner, reply_is(reply, "BURIED") ? "buried" : runner->outcome, good);
	} else {
		reply_refused(&runner->client, reply, runner->outcome);
	}
	ask_for_job(work, runner);
}

static void take_reply(struct work *work, struct runner *runner, const struct reply *reply)
{
	runner->answer_by = 0;
	switch (runner->state) {
	case RUNNER_WAITING:
		take_reserve(work, runner, reply);
		break;
	case RUNNER_LOOKING:
		take_looked(work, runner, reply);
		break;
	case RUNNER_RUNNING:
		if (runner->touching)
			take_touch(runner, reply);
		break;
	case RUNNER_ENDING:
		take_end(work, runner, reply);
		break;
	case RUNNER_HELD:
		take_held(work, runner, reply);
		break;
	default:
		break;
	}
}

void runner_receive(struct work *work, struct runner *runner)
{
	struct reply reply;
	int taken = 0;

	if (channel_pull(&runner->client.channel)) {
		runner_lost(work, runner);
		return;
	}
	/* A large body may take long on its way. */
	if (runner->answer_by && runner->answer_by < time_ms() + work->jobs.timeout_ms)
		runner->answer_by = time_ms() + work->jobs.timeout_ms;
	while (runner->client.channel.fd >= 0 && (taken = client_take(&runner->client, &reply)) > 0)
		take_reply(work, runner, &reply);
	if (taken < 0)
		runner_lost(work, runner);
}

/* The delay doubles with each attempt. A random cut of up to a quarter keeps jobs that failed together apart. */
static uint64_t backoff_seconds(struct work *work, const struct runner *runner)
{
	uint64_t seconds = BACKOFF_MAX_S;

	if (runner->attempt < 12)
		seconds = (uint64_t)BACKOFF_FIRST_S << (runner->attempt ? runner->attempt - 1 : 0);
	if (seconds > BACKOFF_MAX_S)
		seconds = BACKOFF_MAX_S;
	return seconds - random_below(&work->seed, seconds / 4 + 1);
}

/* Queue a release or a bury. beanstalkd takes no reason; `delay` is "" or begins with a blank. */
static void queue_end(
    const struct work *work, struct runner *runner, const char *verb, const char *delay, const char *error)
{
	client_line(&runner->client, "%s%s %" PRIu64 " %" PRIu64 "%s%s%s", verb, work->own ? "-job" : "", runner->id,
	    runner->priority, delay, work->own ? " " : "", work->own ? error : "");
}

static void queue_release(struct work *work, struct runner *runner, const char *error)
{
	uint64_t ns = work->has_release_delay ? work->release_delay : backoff_seconds(work, runner) * DURATION_SECOND;
	char delay[DURATION_TEXT + 1] = " -", again[DURATION_TEXT];

	/* beanstalkd has whole seconds, and a job must never be early. */
	if (!work->own)
		ns = (ns + DURATION_SECOND - 1) / DURATION_SECOND * DURATION_SECOND;
	if (work->own && runner->backoff && !work->has_release_delay) {
		snprintf(runner->again, sizeof runner->again, "again after its backoff: %s, doubled with each failure",
		    duration_format(again, runner->backoff));
	} else {
		duration_seconds(delay + 1, ns);
		snprintf(runner->again, sizeof runner->again, "again in %s", duration_format(again, ns));
	}
	queue_end(work, runner, "release", delay, error);
	runner->outcome = "released";
}

/* Queue what the history is to have of this run, before the command that ends it. */
static void queue_report(const struct work *work, struct runner *runner)
{
	static char text[JSON_QUOTED(WORK_TAIL) + JSON_QUOTED(sizeof work->name) + 200];
	uint64_t ms = (uint64_t)(time_ms() - runner->began);
	size_t cut = 0;
	size_t size;

	/* What has to be escaped may take too much: then the beginning is left out. */
	do {
		size = (size_t)sprintf(text, "{\"worker\":");
		size += json_quote(text + size, work->name, strlen(work->name));
		size += (size_t)sprintf(text + size, ",\"seconds\":%" PRIu64 ".%03u,\"%s\":%d,\"output\":", ms / 1000,
		    (unsigned)(ms % 1000), WIFSIGNALED(runner->status) ? "signal" : "status",
		    WIFSIGNALED(runner->status) ? WTERMSIG(runner->status) : WEXITSTATUS(runner->status));
		size += json_quote(text + size, runner->tail + cut, runner->tail_size - cut);
		text[size++] = '}';
		cut += 256;
	} while (size > REPORT_MAX && cut <= runner->tail_size);
	client_line(&runner->client, "report %" PRIu64 " %zu", runner->id, size);
	client_body(&runner->client, text, size);
	runner->reported = 1;
}

static void report_end(struct work *work, struct runner *runner)
{
	/* A job's own limit is up to the server, where a kick starts the count again. */
	uint64_t limit = runner->limit ? 0 : work->attempts;
	char error[3 * WORK_ERROR_MAX + 1];

	work_describe(runner);
	if (work->history)
		queue_report(work, runner);
	(void)percent_encode(runner->error, strlen(runner->error), error, sizeof error);
	if (WIFEXITED(runner->status) && WEXITSTATUS(runner->status) == 0) {
		client_line(&runner->client, "delete %" PRIu64, runner->id);
		runner->outcome = "deleted";
	} else if (limit && runner->attempt >= limit) {
		queue_end(work, runner, "bury", "", error);
		runner->outcome = "buried";
	} else {
		queue_release(work, runner, error);
	}
	expect_answer(work, runner);
	runner->state = RUNNER_ENDING;
}

/* The command has run too long: it is asked to end, and after a while made to. */
static void turn_late(const struct work *work, struct runner *runner)
{
	if (!runner->pid || !runner->kill_at || time_ms() < runner->kill_at)
		return;
	kill(-runner->pid, runner->late ? SIGKILL : SIGTERM);
	runner->kill_at = runner->late ? 0 : time_ms() + (int64_t)(work->kill_after / 1000000);
	runner->late = 1;
}

static void turn_running(struct work *work, struct runner *runner)
{
	/* The answer to a touch comes before any other. */
	if (runner->touching)
		return;
	if (!runner->pid)
		report_end(work, runner);
	else if (!runner->lease_lost && time_ms() >= runner->touch_at) {
		client_line(&runner->client, "touch %" PRIu64, runner->id);
		runner->touching = 1;
		expect_answer(work, runner);
	}
}

/* The answer may have come while this process was stopped, or made a connection. */
static int has_input(const struct runner *runner)
{
	struct pollfd input = {runner->client.channel.fd, POLLIN, 0};

	return poll(&input, 1, 0) == 1 && !(input.revents & ~POLLIN);
}

void runner_turn(struct work *work, struct runner *runner)
{
	work_reap(runner, WNOHANG);
	turn_late(work, runner);
	if (runner->state == RUNNER_RUNNING)
		turn_running(work, runner);
	if (work_is_ending(work) &&
	    (runner->state == RUNNER_WAITING || runner->state == RUNNER_LOOKING || runner->state == RUNNER_HELD))
		runner_done(runner);
	if (runner->state == RUNNER_HELD && !runner->looks && time_ms() >= runner->again_at)
		ask_for_job(work, runner);
	if (runner->answer_by && time_ms() >= runner->answer_by && !has_input(runner))
		runner_lost(work, runner);
	/* After a lost connection a runner takes no new job until its command has ended. */
	if (runner->state == RUNNER_LOST && !runner->pid) {
		if (work_is_ending(work))
			runner_done(runner);
		else if (time_ms() >= work->retry_at)
			runner_connect(work, runner);
	}
	if (runner->client.channel.fd >= 0 && channel_push(&runner->client.channel))
		runner_lost(work, runner);
}

static int64_t next_of_connection(const struct work *work, const struct runner *runner)
{
	if (runner->answer_by)
		return runner->answer_by;
	if (runner->state == RUNNER_RUNNING && runner->pid && !runner->touching && !runner->lease_lost)
		return runner->touch_at;
	if (runner->state == RUNNER_LOST && !runner->pid)
		return work->retry_at;
	if (runner->state == RUNNER_HELD)
		return runner->again_at;
	return INT64_MAX;
}

int64_t runner_next(const struct work *work, const struct runner *runner)
{
	int64_t next = next_of_connection(work, runner);

	return runner->pid && runner->kill_at && runner->kill_at < next ? runner->kill_at : next;
}

void runner_abandon(struct work *work, struct runner *runner)
{
	struct reply reply;

	if (runner->pid) {
		kill(-runner->pid, SIGKILL);
		while (!work_reap(runner, 0))
			;
		message_error("job %" PRIu64 ": its command was killed, and the job given back", runner->id);
	}
	runner->client.timeout_ms = LAST_WORDS_MS;
	/* With a touch pending there would be two answers. Closing the connection releases the job as well. */
	if (runner->state == RUNNER_RUNNING && !runner->touching && runner->client.channel.fd >= 0) {
		queue_end(work, runner, "release", " 0", "the%20worker%20was%20stopped");
		(void)(client_flush(&runner->client) || client_read(&runner->client, &reply));
	}
	runner_done(runner);
}
