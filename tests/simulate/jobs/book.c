/* The book of jobs and the history of the simulation. */
#include "tests/simulate/jobs/book.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/simulate/jobs/client.h"
#include "tests/simulate/world.h"
#include "weekwheel/jobs.h"

#define EVER (UINT64_C(1) << 62)

struct book book;

static FILE *out;
static int may_step;
static struct job **jobs;
static unsigned count, room;
static uint64_t calls;
static unsigned cursor;
static uint64_t none_buried; /* until then */
static uint64_t killed; /* when the last server was, which then synced nothing more; 0: another one has opened since */
static int waiting;     /* clients that wait for jobs */
static int said_healthy;
static uint64_t early, late;

/* ---- The history */

__attribute__((format(printf, 2, 3))) static void note(const char *event, const char *format, ...)
{
	va_list arguments;

	if (!out || world.is_ghost)
		return;
	(void)fprintf(out, "{\"event\":\"%s\",\"t\":%" PRIu64, event, world.now);
	va_start(arguments, format);
	(void)vfprintf(out, format, arguments);
	va_end(arguments);
	(void)fputs("}\n", out);
}

static void say_health(void)
{
	int is_healthy = waiting > 0 && book.healthy <= world.now;

	if (is_healthy != said_healthy)
		note(is_healthy ? "healthy" : "ill", "%s", "");
	said_healthy = is_healthy;
}

void book_begin(uint64_t window, int steps, void *file)
{
	book = (struct book){.window = window};
	calls = none_buried = killed = early = late = 0;
	cursor = 0;
	waiting = said_healthy = 0;
	may_step = steps;
	out = file;
	/* While nothing is wrong and a client waits, a job is so late at most. */
	note("begin", ",\"lost\":%" PRIu64 ",\"late\":%" PRIu64 ",\"tokens\":\"store\"", window, 3 * SIM_S);
}

void book_end(void)
{
	for (unsigned i = 0; i < count; i++)
		free(jobs[i]);
	free(jobs);
	jobs = NULL;
	count = room = 0;
	out = NULL;
}

/* ---- The book */

struct job *book_new(unsigned tube, int is_keyed)
{
	struct job *job = calloc(1, sizeof *job);

	if (count == room) {
		room = room ? 2 * room : 64;
		jobs = realloc(jobs, room * sizeof(struct job *));
	}
	*job = (struct job){.number = count, .tube = tube, .is_keyed = is_keyed, .is_gone = 1, .verb = NO_VERB};
	jobs[count++] = job;
	return job;
}

/* Mostly a late one. */
struct job *book_any(void)
{
	unsigned last = count > 40 && world_chance(800) ? 40 : count;

	return count ? jobs[count - 1 - world_below(last)] : NULL;
}

unsigned book_count(void)
{
	return count;
}

struct job *book_buried(void)
{
	/* To look through all of them takes long, thus not too often. */
	if (world.now < none_buried)
		return NULL;
	for (unsigned i = 0; i < count; i++) {
		struct job *job = jobs[cursor++ % count];
		if (job->may_be_buried && job->verb == NO_VERB && job->id)
			return job;
	}
	none_buried = world.now + 10 * SIM_MINUTE;
	return NULL;
}

struct job *book_of(const char *body, size_t size, uint32_t *put)
{
	char text[32] = {0};
	char *end;
	unsigned long number;

	memcpy(text, body, size < sizeof text ? size : sizeof text - 1);
	number = strtoul(text + 1, &end, 10);
	if (*text != 'e' || number >= count || *end != '.')
		return NULL;
	*put = (uint32_t)strtoul(end + 1, &end, 10);
	return *put && *put <= jobs[number]->puts ? jobs[number] : NULL;
}

int book_is_done(void)
{
	for (unsigned i = 0; i < count; i++)
		if (!jobs[i]->is_gone || jobs[i]->verb != NO_VERB)
			return 0;
	return 1;
}

/* ---- Commands */

static const char *const effects[] = {[PUT] = "waiting",
    [DELETE] = "gone",
    [DELETE_KEY] = "gone",
    [RELEASE] = "waiting",
    [BURY] = "buried",
    [KICK_JOB] = "waiting",
    [MOVE] = "waiting",
    [RESERVE_JOB] = "waiting"};

static uint64_t call(const struct job *job, const char *to, uint64_t from, uint32_t put, uint64_t by)
{
	char more[64] = "";

	if (by)
		(void)snprintf(more, sizeof more, ",\"by\":%" PRIu64, by);
	if (put)
		(void)snprintf(more + strlen(more), sizeof more - strlen(more), ",\"body\":\"%" PRIu32 "\"", put);
	note("call",
	    ",\"call\":%" PRIu64 ",\"job\":\"e%" PRIu32 "\",\"tube\":%u,\"to\":\"%s\",\"due\":[%" PRIu64 ",%" PRIu64
	    "]%s",
	    ++calls, job->number, job->tube, to, from, EVER, more);
	return calls;
}

/* What may have happened, or has not. */
static void perhaps(const struct job *job, const char *to)
{
	note("over", ",\"call\":%" PRIu64, call(job, to, 0, job->sure, 0));
}

void book_sends(struct job *job, enum sent_verb verb, uint64_t by, uint64_t due, uint64_t delay)
{
	job->verb = verb;
	job->sent = world.now;
	job->delay = delay;
	job->due = (job->is_wall && may_step) || verb == RESERVE_JOB ? 0 : due;
	job->other = 0;
	if (verb == TOUCH) {
		note("call",
		    ",\"call\":%" PRIu64 ",\"job\":\"e%" PRIu32 "\",\"to\":\"leased\",\"run\":%" PRIu64
		    ",\"by\":%" PRIu64,
		    ++calls, job->number, job->run, by);
		job->call = calls;
		return;
	}
	job->holder = NULL;
	job->puts += verb == PUT;
	if (verb == PUT || verb == DELETE)
		job->is_gone = 0;
	job->may_be_buried |= verb == BURY;
	/* Who has reserved a periodic job ends a delivery, anybody else ends all; which one it was is not sure. */
	if (verb == DELETE && job->every)
		job->due = job->base ? job->base + job->every : 0;
	if ((verb == DELETE && job->every) || (verb == RELEASE && job->attempts))
		by = 0;
	job->call = call(job, effects[verb], job->due, verb == PUT ? job->puts : job->sure, by);
	if (verb == DELETE && job->every)
		job->other = call(job, "waiting", job->due, job->sure, 0);
	else if (verb == RELEASE && job->attempts)
		job->other = call(job, "buried", 0, job->sure, 0);
}

static int begins(const char *answer, const char *word)
{
	return strncmp(answer, word, strlen(word)) == 0;
}

static void answer_yes(const struct job *job, uint64_t number, uint64_t id)
{
	uint64_t most = world.now + job->delay;
	char more[40] = "";

	if (id)
		(void)snprintf(more, sizeof more, ",\"id\":%" PRIu64, id);
	if (job->is_wall)
		most = may_step ? EVER : job->due > most ? job->due : most;
	note("answer", ",\"call\":%" PRIu64 ",\"ok\":true,\"due\":[%" PRIu64 ",%" PRIu64 "]%s", number, job->due, most,
	    more);
}

static void answer_no(uint64_t number, int is_full)
{
	if (number)
		note("answer", ",\"call\":%" PRIu64 ",\"ok\":false%s", number, is_full ? ",\"full\":true" : "");
}

/* It was done. */
static void done(struct job *job, const char *answer)
{
	uint64_t id = job->verb == PUT ? strtoull(strchr(answer, ' ') + 1, NULL, 10) : 0;
	/* Not delivered before the answer came. */
	int is_new = job->verb == PUT && (!job->delivered || job->delivered < job->sent);
	int is_buried = job->verb == RELEASE && begins(answer, "BURIED");

	book.acknowledged++;
	job->changed = world.now;
	if (job->verb == TOUCH) {
		note("answer", ",\"call\":%" PRIu64 ",\"ok\":true", job->call);
		return;
	}
	if (is_buried) {
		answer_yes(job, job->other, 0);
		answer_no(job->call, 0);
		job->may_be_buried = 1;
	} else if (job->verb == RELEASE && job->other) {
		answer_yes(job, job->call, 0);
		answer_no(job->other, 0);
	} else {
		answer_yes(job, job->call, id);
		if (job->other)
			note("answer", ",\"call\":%" PRIu64 ",\"ok\":true", job->other);
	}
	if (job->verb == PUT) {
		job->sure = job->acknowledged = job->puts;
		job->id = id;
		job->may_be_buried &= !is_new;
		job->is_loose &= !is_new;
	}
	job->is_gone = job->verb == DELETE_KEY || (job->verb == DELETE && !job->every);
	job->base = is_new ? job->due : job->verb == DELETE && job->base ? job->base + job->every : 0;
	if ((job->verb == KICK_JOB && job->delivered < job->sent) || job->is_gone)
		job->may_be_buried = 0;
	if (!job->is_gone && world.now + job->delay + job->every > book.last_due)
		book.last_due = world.now + job->delay + job->every;
}

void book_hears_nothing(struct job *job)
{
	book.unanswered++;
	job->changed = world.now;
	note("over", ",\"call\":%" PRIu64, job->call);
	if (job->other)
		note("over", ",\"call\":%" PRIu64, job->other);
	job->may_be_buried |= job->verb == RELEASE && job->attempts;
	job->sure = job->verb == PUT ? 0 : job->sure;
	job->base = 0;
	if (job->verb != TOUCH && world.now + job->delay + job->every > book.last_due)
		book.last_due = world.now + job->delay + job->every;
	job->verb = NO_VERB;
}

static int is_done(enum sent_verb verb, const char *answer)
{
	static const char *const good[][2] = {
	    [PUT] = {"INSERTED ", "REPLACED "},
	    [DELETE] = {"DELETED", "DELETED"},
	    [DELETE_KEY] = {"DELETED", "RUNNING"},
	    [RELEASE] = {"RELEASED", "BURIED"},
	    [BURY] = {"BURIED", "BURIED"},
	    [KICK_JOB] = {"KICKED", "KICKED"},
	    [MOVE] = {"MOVED", "MOVED"},
	    [TOUCH] = {"TOUCHED", "TOUCHED"},
	    [RESERVE_JOB] = {"RESERVED", "RESERVED"},
	};
	return begins(answer, good[verb][0]) || begins(answer, good[verb][1]);
}

uint64_t book_sends_late(const struct job *job, enum sent_verb verb, uint64_t by, uint64_t of)
{
	note("call", ",\"call\":%" PRIu64 ",\"job\":\"e%" PRIu32 "\",\"to\":\"%s\",\"by\":%" PRIu64 ",\"of\":%" PRIu64,
	    ++calls, job->number, effects[verb], by, of);
	return calls;
}

void book_hears_late(enum sent_verb verb, uint64_t call, const char *answer)
{
	book.late_ends++;
	if (!answer || begins(answer, "INTERNAL_ERROR"))
		note("over", ",\"call\":%" PRIu64, call);
	else if (is_done(verb, answer))
		note("answer", ",\"call\":%" PRIu64 ",\"ok\":true", call);
	else if (begins(answer, "NOT_FOUND") || begins(answer, "OUT_OF_MEMORY"))
		answer_no(call, begins(answer, "OUT_OF_MEMORY"));
	else
		world_bad("\"%.40s\" cannot be the answer to a late command %d", answer, verb);
}

void book_hears(struct job *job, const char *answer)
{
	static const char *const refusals[] = {"NOT_FOUND", "RESERVED", "STALE"};
	int is_full = begins(answer, "OUT_OF_MEMORY"), is_known = is_full;

	if (job->verb == RESERVE_JOB && begins(answer, "RESERVED")) {
		/* If nobody ends it, it may be ready again at once, or stay as it was. */
		note("over", ",\"call\":%" PRIu64, job->call);
	} else if (is_done(job->verb, answer)) {
		done(job, answer);
	} else if (begins(answer, "INTERNAL_ERROR")) {
		/* It may be in the journal nevertheless. */
		book_hears_nothing(job);
	} else {
		for (size_t i = 0; i < sizeof refusals / sizeof *refusals; i++)
			is_known |= job->verb != PUT && begins(answer, refusals[i]);
		if (!is_known)
			world_bad("\"%.40s\" cannot be the answer to command %d", answer, job->verb);
		answer_no(job->call, is_full);
		answer_no(job->other, is_full);
		book.refused += (uint64_t)is_full;
		/* Whoever has reserved a buried job may give it back as such. */
		if (job->verb == KICK_JOB && !is_full && load.is_draining &&
		    world.now > job->delivered + job->run + SIM_HOUR)
			job->may_be_buried = 0;
	}
	job->verb = NO_VERB;
}

/* ---- Deliveries, as the store makes them */

static void delivered(const struct ww_lease *lease, uint64_t asked, int is_any)
{
	char more[64] = "";
	uint32_t put = 0;
	struct job *job = book_of(lease->body ? lease->body : "", lease->body_length, &put);
	int is_last;

	book.deliveries++;
	if (!job) {
		world_bad("the job %" PRIu64 " is one that nobody put", lease->id);
		note("answer", ",\"call\":%" PRIu64 ",\"ok\":false", asked);
		return;
	}
	is_last = job->attempts && lease->attempt >= job->attempts;
	if (job->verb == NO_VERB)
		job->sure = put;
	job->changed = world.now;
	job->may_be_buried |= is_last;
	job->is_gone = 0;
	job->is_loose |= is_any;
	if (job->attempts && !job->is_loose)
		(void)snprintf(more, sizeof more, ",\"tries\":%" PRIu32 ",\"most\":%u", lease->attempt, job->attempts);
	if (!is_last && !job->every && !is_any)
		(void)snprintf(more + strlen(more), sizeof more - strlen(more), ",\"again\":%" PRIu64,
		    job->run + (job->backoff ? SIM_HOUR : 0));
	note("deliver",
	    ",\"call\":%" PRIu64 ",\"job\":\"e%" PRIu32 "\",\"id\":%" PRIu64 ",\"token\":%" PRIu64
	    ",\"body\":\"%" PRIu32 "\"%s%s",
	    asked, job->number, lease->id, lease->token, put, more, is_any ? ",\"any\":true" : "");
	if (is_any)
		job->base = 0;
	if (is_last)
		perhaps(job, "buried");
	job->unheard = job->delivered + job->run + 10 * SIM_S < world.now ? 1 : job->unheard + 1;
	job->holder = NULL; /* until the client hears it */
	job->id = lease->id;
	job->delivered = world.now;
	job->taken = asked;
	job->taken_puts = job->puts;
}

static uint64_t ask(void)
{
	note("ask", ",\"call\":%" PRIu64, ++calls);
	return calls;
}

static void asked(int got, const struct ww_lease *lease, uint64_t number, int is_any)
{
	if (world.is_ghost)
		return;
	if (got)
		delivered(lease, number, is_any);
	else
		note("answer", ",\"call\":%" PRIu64 ",\"ok\":false", number);
}

int __real_ww_jobs_reserve_known(
    struct ww_jobs *store, const struct ww_reserve *what, struct ww_lease *leases, size_t most);
int __wrap_ww_jobs_reserve_known(
    struct ww_jobs *store, const struct ww_reserve *what, struct ww_lease *leases, size_t most);
int __wrap_ww_jobs_reserve_known(
    struct ww_jobs *store, const struct ww_reserve *what, struct ww_lease *leases, size_t most)
{
	uint64_t number = ask();
	int got = __real_ww_jobs_reserve_known(store, what, leases, most);

	asked(got > 0, leases, number, 0);
	return got;
}

int __real_ww_jobs_reserve_job(struct ww_jobs *store, uint64_t id, struct ww_lease *lease);
int __wrap_ww_jobs_reserve_job(struct ww_jobs *store, uint64_t id, struct ww_lease *lease);
int __wrap_ww_jobs_reserve_job(struct ww_jobs *store, uint64_t id, struct ww_lease *lease)
{
	uint64_t number = ask();
	int error = __real_ww_jobs_reserve_job(store, id, lease);

	asked(error == 0, lease, number, 1);
	return error;
}

uint64_t book_heard(struct job *job, struct client *client, uint64_t id, uint64_t connection)
{
	uint64_t taken = job->unheard == 1 ? job->taken : 0;

	job->id = id;
	job->holder = client;
	if (job->unheard == 1 && client_is_connected(client))
		note("has", ",\"job\":\"e%" PRIu32 "\",\"by\":%" PRIu64 ",\"until\":%" PRIu64, job->number, connection,
		    job->delivered + job->run);
	job->unheard -= job->unheard > 0;
	return taken;
}

void book_left(uint64_t connection)
{
	note("left", ",\"by\":%" PRIu64, connection);
}

void book_pauses(unsigned tube, uint64_t least, uint64_t most)
{
	note("pause", ",\"tube\":%u,\"least\":%" PRIu64 ",\"most\":%" PRIu64, tube, least,
	    most == SIM_NEVER ? EVER : most);
}

void book_waits(int more)
{
	waiting += more;
	say_health();
}

/* ---- Failures */

void book_ill(void)
{
	book.healthy = SIM_NEVER;
	say_health();
}

void book_well(void)
{
	book.healthy = world.now;
	say_health();
}

void book_stepped(int64_t step)
{
	early += step > 0 ? (uint64_t)step : 0;
	late += step < 0 ? (uint64_t)-step : 0;
	note("clock", ",\"early\":%" PRIu64 ",\"late\":%" PRIu64, early, late);
}

void book_sync_failed(void)
{
	if (book.failed)
		return;
	book.failed = world.now;
	note("failed", "%s", "");
}

/* What was known so long before that moment is certain. */
static uint64_t moment_of_loss(void)
{
	return book.failed ? book.failed : killed && world.now < killed + 36 * SIM_S ? killed : world.now;
}

void book_server_died(int is_power, int is_lost)
{
	uint64_t moment = moment_of_loss();
	int is_loss = is_power || book.failed;

	book.powers += is_power != 0;
	if (is_loss)
		note("power", ",\"stable\":%" PRIu64, moment > book.window ? moment - book.window : 0);
	else
		note("killed", "%s", "");
	said_healthy = 0;
	if (is_lost)
		book_forget_all();
	for (unsigned i = 0; i < count; i++) {
		struct job *job = jobs[i];
		job->holder = NULL;
		if (!is_loss || job->changed + book.window < moment)
			continue;
		job->sure = 0;
		job->base = 0;
		job->is_gone &= !job->puts;
		job->may_be_buried |= job->puts > 0;
		job->is_loose |= job->puts > 0;
	}
	if (!killed)
		killed = book.failed ? book.failed : world.now;
	book.failed = 0;
}

void book_opened(void)
{
	killed = 0;
}

void book_forget_all(void)
{
	note("forgotten", "%s", "");
	for (unsigned i = 0; i < count; i++) {
		jobs[i]->sure = 0;
		jobs[i]->base = 0;
		jobs[i]->is_gone = !jobs[i]->puts;
		jobs[i]->may_be_buried = jobs[i]->is_loose = jobs[i]->puts > 0;
	}
}

void book_final(void)
{
	note("looked", "%s", "");
	note("end", "%s", "");
}
