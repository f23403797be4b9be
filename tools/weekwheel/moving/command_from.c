/* The command import --from: moves the jobs of another server to weekwheeld, batch by batch, while both are in use. */
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/time.h"
#include "tools/common/command.h"
#include "tools/common/duration.h"
#include "tools/common/memory.h"
#include "tools/common/message.h"
#include "tools/common/progress.h"
#include "tools/weekwheel/moving/moving.h"

enum { FROM = 1, UNIT, RUN, ZONE };

/* How long to wait before looking again for jobs, in ms; the largest room of a body that is kept for the next job. */
enum { PAUSE_MS = 100, BODY_KEPT = 1 << 16 };

static const struct option table[] = {
    {FROM, 0, "from", "URL", "the server that has the jobs"},
    JOBS_TUBE_OPTION("of beanstalkd: move only the jobs of this tube; of Redis:\nthe tube to put them into"),
    {JOBS_FLAG(struct moving, wait), 'w', "wait", NULL,
        "go on until its workers have ended the jobs that they\nrun, and nothing is left"},
    {JOBS_FLAG(struct moving, follow), 'f', "follow", NULL,
        "go on, and move what producers put, until Ctrl-C or\nSIGTERM"},
    {JOBS_FLAG(struct moving, dry_run), 0, "dry-run", NULL, "only count what would be moved, and name what\nwould not"},
    {UNIT, 'u', "unit", "UNIT", "of the scores of a sorted set: s or ms (default s)"},
    {RUN, 'r', "run", "TIME", "of Redis: how long a worker may take (default 60s)"},
    {ZONE, 'z', "tz", "ZONE", "of BullMQ: of job schedulers that have no tz, such as\nEurope/Berlin"},
    {JOBS_FLAG(struct moving, dead), 0, "dead", NULL, "of Sidekiq: instead, bury its dead jobs"},
    JOBS_OPTIONS,
};

static const struct moving_source *const sources[] = {&moving_beanstalkd, &moving_redis, &moving_sidekiq,
    &moving_bullmq, &moving_celery, &moving_laravel, &moving_resque};

enum { SOURCES = sizeof sources / sizeof *sources };

static volatile sig_atomic_t is_stopped;

static void note_stop(int number)
{
	(void)number;
	is_stopped = 1;
}

static int take_option(void *context, struct options *options, int id)
{
	struct moving *moving = context;

	switch (id) {
	case FROM:
		moving->from = options->value;
		return 0;
	case UNIT:
		moving->has_unit = 1;
		moving->is_ms = strcmp(options->value, "ms") == 0;
		return moving->is_ms || strcmp(options->value, "s") == 0
		           ? 0
		           : options_bad_value(options, "unit", "s or ms");
	case ZONE:
		moving->zone = options->value;
		return 0;
	case RUN:
		return jobs_duration(options, "run", DURATION_SECOND, DURATION_MAX, &moving->run);
	default:
		return options_fail(options, "'%s': no operand is expected beside --from", options->value);
	}
}

static int check_options(struct moving *moving, const struct options *options)
{
	if (moving->has_unit && moving->source != &moving_redis)
		return options_fail(options, "--unit is for redis://: leave it out");
	if (moving->zone && moving->source != &moving_bullmq)
		return options_fail(options, "--tz is for bullmq://: leave it out");
	if (moving->dead && moving->source != &moving_sidekiq)
		return options_fail(options, "--dead is for sidekiq://: leave it out");
	if (moving->run && moving->source == &moving_beanstalkd)
		return options_fail(options, "--run is for Redis: a job of beanstalkd has its own; leave it out");
	if (!moving->jobs.tube && moving->source == &moving_redis && !moving->dry_run)
		return options_fail(options, "--tube is missing: the tube into which the jobs are put");
	moving->run = moving->run ? moving->run : 60 * DURATION_SECOND;
	return 0;
}

/* After the last option, so that --help helps whatever the URL is. */
static int check(void *context, const struct options *options)
{
	struct moving *moving = context;
	const size_t length = strcspn(moving->from, ":");

	for (int i = 0; i < SOURCES; i++)
		if (strlen(sources[i]->scheme) == length && strncmp(moving->from, sources[i]->scheme, length) == 0 &&
		    strncmp(moving->from + length, "://", 3) == 0)
			moving->source = sources[i];
	if (moving->source)
		return check_options(moving, options);
	return options_fail(options,
	    "--from: expected beanstalkd://HOST:PORT, redis://HOST:PORT/KEY, or sidekiq, bullmq, celery, "
	    "laravel or resque://HOST:PORT");
}

/* ---- Batches */

void moving_body(struct moving_job *job, const void *body, size_t size)
{
	/* An empty body has an address, too: C forbids even copying nothing from NULL. */
	if (size >= job->room) {
		job->body = memory_resize(job->body, size + 1, 1);
		job->room = size + 1;
	}
	if (size)
		memcpy(job->body, body, size);
	job->size = size;
}

struct moving_job *moving_add(struct moving *moving, const void *body, size_t size)
{
	struct moving_job *job = &moving->batch[moving->count++];

	*job = (struct moving_job){.body = job->body, .room = job->room};
	moving_body(job, body, size);
	return job;
}

int moving_is_odd(const struct moving *moving, const struct moving_job *job)
{
	return keys_known(moving->odd, job->key, strlen(job->key));
}

uint64_t moving_odd(const struct moving *moving)
{
	return keys_count(moving->odd);
}

void moving_stays(struct moving *moving, const struct moving_job *job, const char *reason)
{
	char name[MOVING_NAME];

	if (moving_is_odd(moving, job))
		return;
	(void)keys_intern(moving->odd, job->key, strlen(job->key));
	moving->held += job->is_held != 0;
	moving->source->name(moving, job, name);
	message_line("%s: %s; it stays there", name, reason);
}

static void forget(struct moving *moving)
{
	for (size_t i = 0; i < moving->count; i++)
		if (moving->batch[i].room > BODY_KEPT) {
			free(moving->batch[i].body);
			moving->batch[i].body = NULL;
			moving->batch[i].room = 0;
		}
	moving->count = 0;
}

/* Move a batch. It is empty if nothing can be moved now. */
static int move_batch(struct moving *moving, size_t *count)
{
	int failed = moving->source->take(moving);

	*count = moving->count;
	if (!failed && moving->count) {
		moving->read += moving->count;
		failed = target_put(moving);
		/* After a failure, too: what the target has must not be delivered by the source. */
		if (moving->source->drop(moving))
			failed = -1;
	}
	forget(moving);
	return failed;
}

/* Wait before looking again: for a tenth of a second, or longer where a look takes long, so that it costs little. */
static void rest(int64_t began)
{
	const int64_t took = time_ms() - began;

	poll(NULL, 0, took > PAUSE_MS / 10 ? (int)(10 * took) : PAUSE_MS);
}

static int move_all(struct moving *moving, struct moving_left *left)
{
	uint64_t total;
	size_t count;

	if (moving->source->left(moving, left))
		return -1;
	total = left->waiting;
	while (!is_stopped) {
		const int64_t began = time_ms();

		if (move_batch(moving, &count))
			return -1;
		progress_show(moving->read, moving->follow ? 0 : total > moving->read ? total : moving->read);
		if (count)
			continue;
		if (moving->source->left(moving, left))
			return -1;
		if (!moving->follow &&
		    left->waiting + (moving->wait ? left->reserved : moving->held) <= moving_odd(moving))
			return 0;
		rest(began);
	}
	return 0;
}

/* ---- The result */

static void print_json(const struct moving *moving, const struct moving_left *left)
{
	printf("{\"read\": %" PRIu64 ", \"put\": %" PRIu64 ", \"kept\": %" PRIu64 ", \"deleted\": %" PRIu64
	       ", \"returned\": %" PRIu64 ", \"doubled\": %" PRIu64 ", \"schedules\": %" PRIu64,
	    moving->read, moving->put, moving->kept, moving->dropped, moving->back, moving->doubled, moving->scheduled);
	if (left)
		printf(", \"left\": %" PRIu64 ", \"reserved\": %" PRIu64, left->waiting, left->reserved);
	printf(", \"left_out\": %" PRIu64 "}\n", moving_odd(moving));
}

/* `left` is NULL if it is not known. */
static void print_counts(const struct moving *moving, const struct moving_left *left)
{
	if (moving->jobs.json) {
		print_json(moving, left);
		return;
	}
	printf("%" PRIu64 " job%s read, %" PRIu64 " put", moving->read, jobs_plural(moving->read), moving->put);
	if (moving->scheduled)
		printf(", %" PRIu64 " put as schedule%s", moving->scheduled, jobs_plural(moving->scheduled));
	if (moving->kept)
		printf(", %" PRIu64 " put before", moving->kept);
	printf(", %" PRIu64 " deleted at the source", moving->dropped);
	if (moving->back)
		printf(", %" PRIu64 " given back to its workers", moving->back);
	if (left)
		printf("; %" PRIu64 " left there", left->waiting + left->reserved);
	putchar('\n');
}

static void explain(const struct moving *moving, const struct moving_left *left)
{
	const uint64_t odd = moving_odd(moving);
	const uint64_t run = left->reserved > moving->held ? left->reserved - moving->held : 0;

	if (odd)
		message_line("%" PRIu64 " job%s named above; mend or remove %s there, and do it again", odd,
		    odd == 1 ? " could not move and is" : "s could not move and are", odd == 1 ? "it" : "them");
	if (run)
		message_line("%" PRIu64 " job%s left, which workers of the source run: --wait waits for them, or do it "
		             "again later",
		    run, run == 1 ? " is" : "s are");
	if (moving->doubled)
		message_warning("%" PRIu64
		                " job%s may be done twice: a worker of the source took %s at the moment when one "
		                "here did",
		    moving->doubled, jobs_plural(moving->doubled), moving->doubled == 1 ? "it" : "them");
}

/* The target has counted at least what it has acknowledged. */
static int verify(struct moving *moving, uint64_t before)
{
	uint64_t after, grown;

	if (target_total(moving, &after))
		return -1;
	grown = after > before ? after - before : 0;
	if (!after || grown >= moving->put)
		return 0;
	return message_error("%s: the server counts %" PRIu64 " new jobs, but has acknowledged %" PRIu64
	                     "; compare 'weekwheel stats' with what the source had",
	    moving->jobs.server, grown, moving->put);
}

static int finish(struct moving *moving, int failed, uint64_t before)
{
	struct moving_left left = {0, 0};

	progress_clear();
	if (!failed)
		failed = moving->source->left(moving, &left) || verify(moving, before);
	print_counts(moving, failed ? NULL : &left);
	explain(moving, &left);
	if (failed && moving->read > moving->dropped)
		message_line(
		    "Nothing is lost. The last %d jobs at most may be at both servers until you do this again, "
		    "which puts none of them twice.",
		    MOVING_BATCH);
	return failed || left.waiting || left.reserved || moving_odd(moving) ? STATUS_FAILED : STATUS_OK;
}

static int run(void *context)
{
	struct moving *moving = context;
	const struct sigaction stop = {.sa_handler = note_stop, .sa_flags = SA_RESTART};
	struct moving_left left;
	uint64_t before = 0;
	int status;

	moving->batch = memory_zeroed(MOVING_BATCH, sizeof *moving->batch);
	moving->odd = keys_new();
	sigaction(SIGINT, &stop, NULL);
	sigaction(SIGTERM, &stop, NULL);
	progress_begin("moving");
	if (moving->source->open(moving) || target_total(moving, &before))
		status = STATUS_FAILED;
	else if (moving->dry_run)
		status = moving->source->show(moving) || moving_odd(moving) ? STATUS_FAILED : STATUS_OK;
	else
		status = finish(moving, move_all(moving, &left), before);
	moving->source->close(moving);
	for (size_t i = 0; i < MOVING_BATCH; i++)
		free(moving->batch[i].body);
	free(moving->batch);
	keys_free(moving->odd);
	return status;
}

const struct jobs_command command_from = {
    .name = "weekwheel import --from URL",
    JOBS_TABLE(table),
    .context = &(struct moving){.count = 0},
    .server = JOBS_ADDRESS,
    .needs = {"put, and for buried jobs and pauses work,", "each tube"},
    .take = take_option,
    .check = check,
    .run = run,
    .usage = "Usage: weekwheel import --from beanstalkd://HOST[:PORT] [OPTION]...\n"
             "       weekwheel import --from redis://HOST[:PORT][/DB]/KEY --tube TUBE [OPTION]...\n"
             "       weekwheel import --from sidekiq://HOST[:PORT][/DB] [OPTION]...\n"
             "       weekwheel import --from LIBRARY://HOST[:PORT][/DB][/PREFIX] [OPTION]...\n"
             "\n"
             "Move the jobs of a beanstalkd, of a sorted set in Redis whose scores are Unix\n"
             "times, of Sidekiq's sets schedule and retry, or the delayed ones of a LIBRARY,\n"
             "bullmq, celery, laravel or resque, to the server, while producers and workers go\n"
             "on. Each job is put here first, and then deleted there. An import that was\n"
             "stopped can be begun again, and puts nothing twice. A job that cannot move is\n"
             "named and stays where it is. The exit status is 0 if nothing is left.\n"
             "From beanstalkd, tubes, priorities, times to run and due times carry over; buried\n"
             "jobs are buried, and paused tubes paused. Jobs of Sidekiq and the libraries go to\n"
             "the tubes of their queues' names.\n",
    .examples = "The password for Redis is in --from, redis://USER:PASSWORD@HOST, or in\n"
                "REDISCLI_AUTH.\n"
                "\n"
                "Examples, the first to see what there is:\n"
                "  weekwheel import --from beanstalkd://127.0.0.1:11301 --dry-run\n"
                "  weekwheel import --from beanstalkd://127.0.0.1:11301 --wait\n"
                "  weekwheel import --from redis://127.0.0.1:6379/delayed --tube mail --unit ms\n",
};
