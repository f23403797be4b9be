/*
 * A beanstalkd as a source. Ready jobs are reserved, so that no worker gets them meanwhile; if the import is killed,
 * they are ready again. Delayed and buried jobs must not be reserved, as they would then be ready, too: they are
 * read, and deleted when the target has them.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/time.h"
#include "tools/common/dial.h"
#include "tools/common/duration.h"
#include "tools/common/memory.h"
#include "tools/common/message.h"
#include "tools/weekwheel/jobs/tubes.h"
#include "tools/weekwheel/jobs/yaml.h"
#include "tools/weekwheel/moving/moving.h"

/* So many bytes may the bodies of a batch have together. */
enum { BATCH_BYTES = 8 << 20 };

/* The tube that an import watches at the source. */
static const char sign[] = "weekwheel-import";

struct beanstalkd {
	struct jobs jobs; /* a connection like that to weekwheeld */
	char address[DIAL_HOST_MAX + 10];
	char run[80]; /* names the process of the server: another one numbers its jobs anew */
	struct tube_rows tubes, paused;
	size_t at;          /* the tube whose jobs come next */
	size_t most;        /* jobs in a batch */
	size_t ready, near; /* how many to ask for at once */
	int turn;
	int is_hidden;       /* a job that stays is the only one that peek shows of its tube and state */
	uint64_t walk, last; /* ids: the next to look at, and the last one; 0: no walk */
};

/* ---- Connecting */

static int read_address(struct moving *moving, struct beanstalkd *own)
{
	const char *host = strstr(moving->from, "://") + 3;
	size_t length = strcspn(host, "/");
	const char *bracket = memchr(host, ']', length);
	const char *colon = memchr(bracket ? bracket : host, ':', length - (size_t)((bracket ? bracket : host) - host));

	snprintf(own->address, sizeof own->address, "%.*s%s", (int)length, host, colon ? "" : ":11300");
	if (host[length] && host[length + 1])
		return message_error("%s: expected beanstalkd://HOST:PORT; --tube chooses a tube", moving->from);
	if (!dial_is_address(own->address))
		return message_error("%s: expected beanstalkd://HOST:PORT", moving->from);
	return 0;
}

/*
 * What one import takes back, another must not have seen and deleted at the source. Imports recognize each other by
 * what they watch, which ends with the connection, however that ends.
 */
static int be_alone(struct beanstalkd *own)
{
	struct client *client = &own->jobs.client;
	struct reply reply;

	if (client_expect(client, &reply, "WATCHING", sign, "watch %s", sign) ||
	    client_expect(client, &reply, "OK", sign, "stats-tube %s", sign))
		return -1;
	if (yaml_whole(reply.body, reply.body_size, "current-watching") == 1)
		return 0;
	return message_error("%s: another import takes its jobs now: end that one, or wait for it", own->address);
}

static int check_kind(struct beanstalkd *own)
{
	int is_weekwheeld = jobs_has_own_verbs(&own->jobs);

	if (is_weekwheeld > 0)
		message_warning(
		    "%s is a weekwheeld: keys, periods, attempts and backoffs do not come along; 'weekwheel "
		    "export' and 'weekwheel import' carry them over",
		    own->address);
	return is_weekwheeld < 0;
}

static int open_source(struct moving *moving)
{
	struct beanstalkd *own = moving->state = memory_zeroed(1, sizeof *own);
	struct client *client = &own->jobs.client;
	struct reply reply;
	char target[80];
	uint64_t size;

	own->jobs = (struct jobs){.server = own->address,
	    .tube = moving->jobs.tube,
	    .timeout_ms = moving->jobs.timeout_ms,
	    .remedy = "is beanstalkd running there?",
	    .client = {.channel = {.fd = -1}}};
	if (target_open(moving, target, sizeof target) || read_address(moving, own) || jobs_connect(&own->jobs) ||
	    client_expect(client, &reply, "OK", own->address, "stats"))
		return -1;
	yaml_text(reply.body, reply.body_size, "id", own->run, sizeof own->run);
	size = yaml_whole(reply.body, reply.body_size, "max-job-size");
	own->most = size > BATCH_BYTES / MOVING_BATCH ? BATCH_BYTES / size : MOVING_BATCH;
	own->most = own->most ? own->most : 1;
	own->ready = own->near = own->most < 8 ? own->most : 8;
	if (!*own->run || strspn(own->run, "0123456789abcdef") != strlen(own->run))
		return message_error(
		    "%s: its stats have no id, by which its jobs are named; it may be a very old beanstalkd: run a newer one "
		    "on its files (-b)",
		    own->address);
	if (strcmp(own->run, target) == 0)
		return message_error("%s is %s: jobs cannot move to where they are; name the target with --server",
		    own->address, moving->jobs.server);
	return tubes_known(&own->jobs) || check_kind(own) || (!moving->dry_run && be_alone(own)) ? -1 : 0;
}

static void close_source(struct moving *moving)
{
	struct beanstalkd *own = moving->state;

	if (!own)
		return;
	client_close(&own->jobs.client);
	tubes_free(&own->tubes);
	tubes_free(&own->paused);
	free(own);
}

/* ---- Tubes */

/* A paused tube delivers nothing at the target either. */
static int pass_pause(struct moving *moving, const struct tube_row *tube)
{
	struct beanstalkd *own = moving->state;
	struct tube_rows *paused = &own->paused;

	for (size_t i = 0; i < paused->count; i++)
		if (strcmp(paused->at[i].name, tube->name) == 0)
			return 0;
	if (target_pause(moving, tube->name, tube->pause))
		return -1;
	message_line("tube %s is paused for another %" PRIu64 " s, and now here, too", tube->name, tube->pause);
	paused->at = memory_grow(paused->at, &paused->capacity, paused->count, sizeof *paused->at);
	paused->at[paused->count++] = *tube;
	return 0;
}

/* Read the tubes anew, and watch them: reserve then takes jobs of them. */
static int list_tubes(struct moving *moving)
{
	struct beanstalkd *own = moving->state;
	struct client *client = &own->jobs.client;
	struct reply reply;

	tubes_free(&own->tubes);
	own->at = 0;
	if (tubes_read(&own->jobs, &own->tubes))
		return -1;
	for (size_t i = 0; i < own->tubes.count; i++)
		client_line(client, "watch %s", own->tubes.at[i].name);
	if (client_flush(client))
		return -1;
	for (size_t i = 0; i < own->tubes.count; i++)
		if (client_read(client, &reply))
			return -1;
	if (own->jobs.tube && strcmp(own->jobs.tube, "default") != 0 && client_ask(client, &reply, "ignore default"))
		return -1;
	for (size_t i = 0; i < own->tubes.count; i++)
		if (own->tubes.at[i].pause && pass_pause(moving, &own->tubes.at[i]))
			return -1;
	return 0;
}

/* ---- Taking */

/* Twice as many next time if most of those that were asked for came, and half as many if few did. */
static size_t adapt(const struct beanstalkd *own, size_t asked, size_t came)
{
	size_t next = came > asked / 2 ? 2 * asked : came < asked / 4 ? asked / 2 : asked;

	return next < 1 ? 1 : next > own->most ? own->most : next;
}

/* Fill in what stats-job says. */
static void describe(const struct beanstalkd *own, struct moving_job *job, const struct reply *reply)
{
	char state[20];

	yaml_text(reply->body, reply->body_size, "state", state, sizeof state);
	yaml_text(reply->body, reply->body_size, "tube", job->tube, sizeof job->tube);
	snprintf(job->key, sizeof job->key, "beanstalkd-%s-%" PRIu64, own->run, job->id);
	job->priority = yaml_whole(reply->body, reply->body_size, "pri");
	job->run = yaml_whole(reply->body, reply->body_size, "ttr") * DURATION_SECOND;
	job->is_buried = strcmp(state, "buried") == 0;
	/* The seconds left were rounded down, and a job must not be early. */
	if (strcmp(state, "delayed") == 0)
		job->due = time_now(CLOCK_MONOTONIC) +
		           (yaml_whole(reply->body, reply->body_size, "time-left") + 1) * DURATION_SECOND;
}

/* Keep the marked jobs of the batch, in their order. */
static void keep(struct moving *moving, const int *is_kept)
{
	size_t kept = 0;

	for (size_t i = 0; i < moving->count; i++)
		if (is_kept[i]) {
			struct moving_job job = moving->batch[kept];

			moving->batch[kept++] = moving->batch[i];
			moving->batch[i] = job;
		}
	moving->count = kept;
}

static void leave_odd(struct moving *moving)
{
	int is_kept[MOVING_BATCH];

	for (size_t i = 0; i < moving->count; i++)
		is_kept[i] = !moving_is_odd(moving, &moving->batch[i]);
	keep(moving, is_kept);
}

/* Send a command for each job of the batch, and leave out those that have been deleted. */
static int ask_all(struct moving *moving, const char *verb, const char *word,
    void (*fn)(const struct beanstalkd *own, struct moving_job *job, const struct reply *reply))
{
	struct beanstalkd *own = moving->state;
	struct client *client = &own->jobs.client;
	int is_kept[MOVING_BATCH] = {0};
	struct reply reply;

	for (size_t i = 0; i < moving->count; i++)
		client_line(client, "%s %" PRIu64, verb, moving->batch[i].id);
	if (client_flush(client))
		return -1;
	for (size_t i = 0; i < moving->count; i++) {
		if (client_read(client, &reply))
			return -1;
		is_kept[i] = reply_is(&reply, word);
		if (is_kept[i])
			fn(own, &moving->batch[i], &reply);
	}
	keep(moving, is_kept);
	return 0;
}

static int take_ready(struct moving *moving)
{
	struct beanstalkd *own = moving->state;
	struct client *client = &own->jobs.client;
	const size_t asked = own->ready;
	struct moving_job *job;
	struct reply reply;

	for (size_t i = 0; i < asked; i++)
		client_line(client, "reserve-with-timeout 0");
	if (client_flush(client))
		return -1;
	for (size_t i = 0; i < asked; i++) {
		uint64_t id;

		if (client_read(client, &reply))
			return -1;
		/* DEADLINE_SOON: one that came before it has little time left. */
		if (reply_is(&reply, "TIMED_OUT") || reply_is(&reply, "DEADLINE_SOON"))
			continue;
		if (!reply_is(&reply, "RESERVED"))
			return reply_refused(client, &reply, "reserve");
		if (reply_number(client, &reply, 1, &id))
			return -1;
		job = moving_add(moving, reply.body, reply.body_size);
		job->id = id;
		job->is_held = 1;
	}
	own->ready = adapt(own, asked, moving->count);
	if (moving->count && ask_all(moving, "stats-job", "OK", describe))
		return -1;
	/* Those remain reserved, and come again after their time to run. */
	leave_odd(moving);
	return 0;
}

/*
 * Add the jobs in this state, or any that waits, and the chosen tubes whose ids are among `count` from `first` on,
 * without their bodies.
 * Producers often put jobs of one kind one after the other, so near ids save asking for the head of the tube each time.
 */
static int add_near(struct moving *moving, uint64_t first, size_t count, const char *state)
{
	struct beanstalkd *own = moving->state;
	struct client *client = &own->jobs.client;
	char text[WW_TUBE_MAX + 1];
	struct moving_job *job;
	struct reply reply;

	for (size_t i = 0; i < count; i++)
		client_line(client, "stats-job %" PRIu64, first + i);
	if (client_flush(client))
		return -1;
	for (size_t i = 0; i < count; i++) {
		if (client_read(client, &reply))
			return -1;
		if (!reply_is(&reply, "OK"))
			continue;
		yaml_text(reply.body, reply.body_size, "state", text, sizeof text);
		if (state ? strcmp(text, state) != 0 : strcmp(text, "reserved") == 0)
			continue;
		yaml_text(reply.body, reply.body_size, "tube", text, sizeof text);
		if (own->jobs.tube && strcmp(text, own->jobs.tube) != 0)
			continue;
		job = moving_add(moving, NULL, 0);
		job->id = first + i;
		describe(own, job, &reply);
	}
	leave_odd(moving);
	return 0;
}

static void take_body(const struct beanstalkd *own, struct moving_job *job, const struct reply *reply)
{
	(void)own;
	moving_body(job, reply->body, reply->body_size);
}

/* Take the first jobs of a tube in this state. */
static int take_state(struct moving *moving, const char *tube, const char *state)
{
	struct beanstalkd *own = moving->state;
	struct client *client = &own->jobs.client;
	/* Ready and buried jobs keep their order. That of delayed ones is in their times. */
	const size_t asked = strcmp(state, "delayed") == 0 ? own->near : 1;
	struct reply reply;
	uint64_t first;

	if (client_expect(client, &reply, "USING", tube, "use %s", tube) ||
	    client_ask(client, &reply, "peek-%s", state))
		return -1;
	if (!reply_is(&reply, "FOUND"))
		return reply_is(&reply, "NOT_FOUND") ? 0 : reply_refused(client, &reply, "peek");
	if (reply_number(client, &reply, 1, &first) || add_near(moving, first, asked, state))
		return -1;
	if (asked == own->near)
		own->near = adapt(own, asked, moving->count);
	own->is_hidden |= !moving->count;
	return ask_all(moving, "peek", "FOUND", take_body);
}

/*
 * Ids grow: the last one is that of a job which is put now, late enough that no worker gets it. A server that takes no
 * jobs any more (SIGUSR1) tells no id.
 */
static int find_last(struct beanstalkd *own)
{
	struct client *client = &own->jobs.client;
	struct reply reply;

	if (client_expect(client, &reply, "USING", sign, "use %s", sign) ||
	    client_ask(client, &reply, "put 0 4000000000 1 0\r\n"))
		return -1;
	if (reply_is(&reply, "DRAINING"))
		return message_error(
		    "%s: it is draining, so what is behind the jobs named above cannot be found: mend or remove those "
		    "there, or start it again with its files (-b), and do this again",
		    own->address);
	if (!reply_is(&reply, "INSERTED"))
		return reply_refused(client, &reply, sign);
	if (reply_number(client, &reply, 1, &own->last))
		return -1;
	return client_expect(client, &reply, "DELETED", sign, "delete %" PRIu64, own->last);
}

/* Take jobs behind one that stays, which peek cannot show. Only a look at all ids finds them. */
static int take_hidden(struct moving *moving)
{
	struct beanstalkd *own = moving->state;

	if (!own->walk && find_last(own))
		return -1;
	while (!moving->count && own->walk < own->last) {
		if (add_near(moving, own->walk + 1, own->most, NULL))
			return -1;
		own->walk += own->most;
	}
	if (moving->count)
		return ask_all(moving, "peek", "FOUND", take_body);
	own->is_hidden = 0;
	own->walk = 0;
	return 0;
}

/* Take jobs that cannot be reserved, of the first tube that has some. */
static int take_others(struct moving *moving)
{
	struct beanstalkd *own = moving->state;

	for (int listed = 0;;) {
		const struct tube_row *tube;
		int failed = 0;

		if (own->at == own->tubes.count) {
			if (listed++)
				return own->is_hidden ? take_hidden(moving) : 0;
			if (list_tubes(moving))
				return -1;
			continue;
		}
		tube = &own->tubes.at[own->at];
		if (tube->delayed)
			failed = take_state(moving, tube->name, "delayed");
		if (!failed && !moving->count && tube->buried)
			failed = take_state(moving, tube->name, "buried");
		if (!failed && !moving->count && tube->pause && tube->ready)
			failed = take_state(moving, tube->name, "ready");
		if (failed || moving->count)
			return failed;
		own->at++;
	}
}

/* They take turns, so that neither waits while producers keep the other busy. */
static int take(struct moving *moving)
{
	struct beanstalkd *own = moving->state;
	int failed = own->tubes.count ? 0 : list_tubes(moving);

	for (int i = 0; i < 2 && !failed && !moving->count; i++) {
		own->turn = !own->turn;
		failed = own->turn ? take_ready(moving) : take_others(moving);
	}
	return failed;
}

/* ---- Dropping */

/*
 * A job could not be deleted: a worker of the source has it or has done it, or it was deleted. It belongs to the
 * source, and its copy at the target is taken back.
 */
static int settle(struct moving *moving, const struct moving_job *job)
{
	struct beanstalkd *own = moving->state;
	struct reply reply;
	char state[20];

	if (client_ask(&own->jobs.client, &reply, "stats-job %" PRIu64, job->id))
		return -1;
	yaml_text(reply.body, reply.body_size, "state", state, sizeof state);
	/* Whatever waits again is moved next time, when its key is known. */
	if (reply_is(&reply, "OK") && strcmp(state, "reserved") != 0)
		return 0;
	return target_take_back(moving, job);
}

static int drop(struct moving *moving)
{
	struct beanstalkd *own = moving->state;
	struct client *client = &own->jobs.client;
	int is_gone[MOVING_BATCH] = {0};
	struct reply reply;
	int failed = 0;

	for (size_t i = 0; i < moving->count; i++)
		if (moving->batch[i].result)
			client_line(client, "delete %" PRIu64, moving->batch[i].id);
	if (client_flush(client))
		return -1;
	for (size_t i = 0; i < moving->count; i++) {
		if (!moving->batch[i].result)
			continue;
		if (client_read(client, &reply))
			return -1;
		is_gone[i] = reply_is(&reply, "NOT_FOUND");
		moving->dropped += reply_is(&reply, "DELETED") ? 1 : 0;
		if (!is_gone[i] && !reply_is(&reply, "DELETED"))
			failed = reply_refused(client, &reply, "delete");
	}
	for (size_t i = 0; i < moving->count && !failed; i++)
		if (is_gone[i])
			failed = settle(moving, &moving->batch[i]);
	return failed;
}

/* ---- What is left */

static int left(struct moving *moving, struct moving_left *left)
{
	struct beanstalkd *own = moving->state;
	struct tube_rows tubes;

	if (tubes_read(&own->jobs, &tubes))
		return -1;
	*left = (struct moving_left){0, 0};
	for (size_t i = 0; i < tubes.count; i++) {
		left->waiting += tubes.at[i].ready + tubes.at[i].delayed + tubes.at[i].buried;
		left->reserved += tubes.at[i].reserved;
	}
	tubes_free(&tubes);
	return 0;
}

static int show(struct moving *moving)
{
	struct beanstalkd *own = moving->state;
	struct tube_rows tubes;

	if (tubes_read(&own->jobs, &tubes))
		return -1;
	for (size_t i = 0; i < tubes.count; i++) {
		const struct tube_row *tube = &tubes.at[i];

		printf(moving->jobs.json ? "{\"tube\": \"%s\", \"ready\": %" PRIu64 ", \"delayed\": %" PRIu64
		                           ", \"buried\": %" PRIu64 ", \"reserved\": %" PRIu64 ", \"paused\": %" PRIu64
		                           "}\n"
		                         : "%s: %" PRIu64 " ready, %" PRIu64 " delayed, %" PRIu64 " buried, %" PRIu64
		                           " run by workers; paused for %" PRIu64 " s\n",
		    tube->name, tube->ready, tube->delayed, tube->buried, tube->reserved, tube->pause);
	}
	tubes_free(&tubes);
	return 0;
}

static void name(const struct moving *moving, const struct moving_job *job, char text[MOVING_NAME])
{
	const struct beanstalkd *own = moving->state;

	snprintf(text, MOVING_NAME, "%s: job %" PRIu64 " of %zu bytes in tube %s", own->address, job->id, job->size,
	    job->tube);
}

const struct moving_source moving_beanstalkd = {
    .scheme = "beanstalkd",
    .open = open_source,
    .take = take,
    .drop = drop,
    .left = left,
    .show = show,
    .name = name,
    .close = close_source,
};
