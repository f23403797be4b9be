/* The clients. Each acts again and again; what it does next hangs on chance. */
#include "tests/simulate/jobs/client.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/simulate/jobs/book.h"
#include "tests/simulate/system.h"
#include "tests/simulate/wire.h"
#include "tests/simulate/world.h"

enum { EXPECTED = 32, HELD = 16, LINE = 256 };

/* What an answer will be to. */
struct expected {
	enum { OTHER, CHANGE, RESERVE, PAUSE, LATE } kind;
	struct job *job;     /* of the command, if it is on one that is known */
	enum sent_verb verb; /* LATE, and its number in the history */
	uint64_t call;
	unsigned tube;  /* PAUSE */
	uint64_t until; /* PAUSE: at the earliest */
	uint64_t length;
};

struct held {
	struct job *job;
	uint64_t id;
	uint32_t put;   /* which one was delivered */
	uint32_t puts;  /* that were sent by then */
	uint64_t taken; /* the number of the delivery, or 0 */
};

struct client {
	unsigned number;
	struct wire *wire; /* NULL: not connected */
	uint64_t connection;
	uint64_t waits; /* the number of the reserve that it waits for, and does nothing else; or 0 */
	int is_counted; /* as one that waits */
	unsigned tube;  /* it puts into this one */
	struct expected expected[EXPECTED];
	unsigned expects;
	struct held held[HELD];
	unsigned holds;
	char *in;
	size_t in_size, in_room;
	unsigned busy; /* actions until it rests */
	struct lost *lost;
};

/* Commands without an answer, until the server has left the connection. */
struct lost {
	struct lost *next;
	struct wire *wire;
	struct job *job;
};

struct load load;

static struct client clients[CLIENTS];
static struct lost *losts;
static world_fn act;
static unsigned errors;
static uint64_t connections, reserves;
static uint64_t pausing[TUBES]; /* until then a pause may be under way */

unsigned clients_errors(void)
{
	unsigned number = errors;

	errors = 0;
	return number;
}

/* ---- Connections that end */

int client_is_connected(const struct client *client)
{
	return client->wire && !wire_is_over(client->wire);
}

static void settle_lost(void *context, uint64_t number)
{
	struct lost **at = &losts;

	(void)context;
	(void)number;
	while (*at) {
		struct lost *lost = *at;
		if (!wire_is_over(lost->wire)) {
			at = &lost->next;
			continue;
		}
		book_hears_nothing(lost->job);
		*at = lost->next;
		free(lost);
	}
	if (losts)
		world_at(world.now + SIM_S, settle_lost, NULL, 0);
}

static void stop_waiting(struct client *client)
{
	if (client->is_counted)
		book_waits(-1);
	client->is_counted = 0;
	client->waits = 0;
}

void client_left(struct client *client)
{
	stop_waiting(client);
	book_left(client->connection);
}

static void forget_connection(struct client *client)
{
	client_left(client);
	for (unsigned i = 0; i < client->expects; i++) {
		struct lost *lost;
		if (!client->expected[i].job)
			continue;
		if (!losts)
			world_at(world.now + SIM_S, settle_lost, NULL, 0);
		lost = malloc(sizeof *lost);
		*lost = (struct lost){losts, client->wire, client->expected[i].job};
		losts = lost;
	}
	for (unsigned i = 0; i < client->holds; i++)
		if (client->held[i].job->holder == client)
			client->held[i].job->holder = NULL;
	for (unsigned i = 0; i < client->expects; i++)
		if (client->expected[i].kind == PAUSE)
			pausing[client->expected[i].tube] = world.now + 10 * SIM_MINUTE;
		else if (client->expected[i].kind == LATE)
			book_hears_late(client->expected[i].verb, client->expected[i].call, NULL);
	client->expects = client->holds = 0;
	client->in_size = 0;
	client->wire = NULL;
}

void client_lost(struct client *client)
{
	world_trace("lost", client->number, 0);
	forget_connection(client);
}

/* ---- Answers */

static void hears_job(struct client *client, const char *line, const char *body)
{
	uint64_t id = strtoull(line + 9, NULL, 10), size = strtoull(strrchr(line, ' ') + 1, NULL, 10);
	uint64_t taken;
	uint32_t put;
	struct job *job = book_of(body, size, &put);

	if (!job) {
		world_bad("client %u has got a job that nobody put: %.40s", client->number, body);
		return;
	}
	taken = book_heard(job, client, id, client->connection);
	job->heard[client->number] = client->connection;
	client->held[client->holds++] = (struct held){job, id, put, job->taken_puts, taken};
}

/* The end of the server ends pauses. */
static void hears_of_pause(const struct client *client, const struct expected *pause, const char *line)
{
	pausing[pause->tube] = 0;
	if (strcmp(line, "PAUSED") == 0 && client_is_connected(client))
		book_pauses(pause->tube, pause->until, world.now + pause->length);
	else if (strncmp(line, "INTERNAL_ERROR", 14) == 0)
		pausing[pause->tube] = world.now + 10 * SIM_MINUTE;
	else
		book_pauses(pause->tube, 0, world.now + SIM_MINUTE);
}

static void hears(struct client *client, const char *line, const char *body)
{
	struct expected expected = client->expected[0];

	world_trace_bytes("heard", client->number, line, strlen(line));
	errors += strncmp(line, "INTERNAL_ERROR", 14) == 0;
	memmove(client->expected, client->expected + 1, --client->expects * sizeof expected);
	if (expected.kind == RESERVE)
		stop_waiting(client);
	if (expected.job)
		book_hears(expected.job, line);
	if (expected.kind == RESERVE && body)
		hears_job(client, line, body);
	else if (expected.kind == PAUSE)
		hears_of_pause(client, &expected, line);
	else if (expected.kind == LATE)
		book_hears_late(expected.verb, expected.call, line);
	if (load.is_draining && !client->expects)
		world_at(world.now + SIM_MS, act, client, 1);
}

/* Take a whole answer off what came. Returns its size, or 0: it is not whole. */
static size_t take_answer(struct client *client)
{
	char *end = memmem(client->in, client->in_size, "\r\n", 2);
	size_t size, body = 0;
	char line[LINE];

	if (!end)
		return 0;
	size = (size_t)(end - client->in) + 2;
	(void)snprintf(line, sizeof line, "%.*s", (int)(size - 2), client->in);
	if (strncmp(line, "RESERVED ", 9) == 0 && strchr(line + 9, ' ')) {
		body = strtoull(strrchr(line, ' '), NULL, 10) + 2;
		if (client->in_size < size + body)
			return 0;
	}
	if (!client->expects) {
		world_bad("client %u was told what it did not ask for: %s", client->number, line);
		return size + body;
	}
	hears(client, line, body ? client->in + size : NULL);
	return size + body;
}

void client_heard(struct client *client, const char *bytes, size_t size)
{
	size_t taken;

	if (client->in_size + size > client->in_room) {
		client->in_room = 2 * (client->in_size + size);
		client->in = realloc(client->in, client->in_room);
	}
	memcpy(client->in + client->in_size, bytes, size);
	client->in_size += size;
	while (client->in_size && (taken = take_answer(client)) > 0) {
		client->in_size -= taken;
		memmove(client->in, client->in + taken, client->in_size);
	}
}

/* ---- Commands */

static uint64_t say(struct client *client, struct expected expected, const char *line)
{
	client->expected[client->expects++] = expected;
	return wire_send(client->wire, line, strlen(line));
}

/* The job will be due after the delay, or at `due`, unless that is 0. */
static void change(
    struct client *client, struct job *job, enum sent_verb verb, uint64_t due, uint64_t delay, const char *line)
{
	int holds = 0;

	for (unsigned i = 0; i < client->holds; i++)
		holds |= client->held[i].job == job;
	book_sends(job, verb, holds ? client->connection : 0, due ? due : world.now + delay, delay);
	(void)say(client, (struct expected){.kind = CHANGE, .job = job}, line);
}

static uint64_t some_delay(void)
{
	switch (world_below(8)) {
	case 0:
	case 1:
	case 2:
		return 0;
	case 3:
		return world_between(1, 5);
	case 4:
		return world_between(1, 600);
	case 5:
		return world_between(1, 86400);
	case 6:
		return world_between(1, 4 * 86400);
	default:
		return 3600 * world_between(1, 500);
	}
}

/* The words of a put up to the size of its body, and those after it. Returns when it is due, or 0: after the delay. */
static uint64_t put_words(const struct job *job, uint64_t delay, char *before, char *after)
{
	uint64_t wall = system_wall() + delay * SIM_S;
	int is_plain = !job->is_keyed && !job->is_wall && !job->every && !job->attempts && !job->backoff;
	int at = 0;

	*after = 0;
	if (job->is_wall)
		(void)snprintf(before, LINE, "put-at %" PRIu64 " %" PRIu64 ".%09" PRIu64, world_below(2000),
		    wall / SIM_S, wall % SIM_S);
	else
		(void)snprintf(
		    before, LINE, "%s %" PRIu64 " %" PRIu64, is_plain ? "put" : "put-key", world_below(2000), delay);
	if (job->is_keyed)
		at = snprintf(after, LINE, " k%" PRIu32, job->number);
	else if (!is_plain)
		at = snprintf(after, LINE, " -");
	if (job->every)
		at += snprintf(after + at, LINE - (size_t)at, " every=%" PRIu64, job->every / SIM_S);
	if (job->attempts)
		at += snprintf(after + at, LINE - (size_t)at, " attempts=%u", job->attempts);
	if (job->backoff)
		(void)snprintf(after + at, LINE - (size_t)at, " backoff=%" PRIu64, job->backoff / SIM_S);
	return job->is_wall ? world.now + delay * SIM_S : 0;
}

static void put(struct client *client, struct job *job)
{
	char head[64], before[LINE], after[LINE], line[3 * LINE];
	uint64_t delay = some_delay();
	uint64_t pad = world_chance(100) ? world_below(load.body_most) : world_below(100);
	uint64_t due = put_words(job, delay, before, after);
	char *body;
	int length = snprintf(head, sizeof head, "e%" PRIu32 ".%" PRIu32 " ", job->number, job->puts + 1);
	size_t at = (size_t)snprintf(line, sizeof line, "%s %" PRIu64 " %" PRIu64 "%s\r\n%s", before, job->run / SIM_S,
	    (uint64_t)length + pad, after, head);

	body = malloc(at + pad + 3);
	memcpy(body, line, at);
	memset(body + at, 'x', pad);
	memcpy(body + at + pad, "\r\n", 3);
	change(client, job, PUT, due, delay * SIM_S, body);
	free(body);
}

static void put_new(struct client *client)
{
	struct job *job = book_new(client->tube, world_chance(300));

	job->run = (world_chance(500) ? world_between(2, 60) : world_between(60, 7200)) * SIM_S;
	job->is_wall = world_chance(150);
	/* Whoever wants to end a periodic job has to know its key. */
	if (job->is_keyed && world_chance(150))
		job->every = (world_chance(300) ? world_between(1, 600) : world_between(600, 5 * 86400)) * SIM_S;
	if (world_chance(150))
		job->attempts = (unsigned)world_between(1, 4);
	if (world_chance(150))
		job->backoff = world_between(1, 60) * SIM_S;
	put(client, job);
}

static void begin_wait(void *context, uint64_t number)
{
	struct client *client = context;

	if (client->waits != number)
		return;
	client->is_counted = 1;
	book_waits(1);
}

static void reserve(struct client *client)
{
	static const unsigned waits[] = {0, 0, 1, 10, 600, 7200, 86400};
	char line[LINE];
	uint64_t wait = waits[world_below(sizeof waits / sizeof *waits)];
	int is_alone = client->expects == 0 && client->holds == 0;
	uint64_t arrives;

	(void)snprintf(line, sizeof line, "reserve-with-timeout %" PRIu64 "\r\n", load.is_draining ? 600 : wait);
	arrives = say(client, (struct expected){.kind = RESERVE}, line);
	if (!is_alone)
		return;
	client->waits = ++reserves;
	world_at(arrives, begin_wait, client, client->waits);
}

static void reserve_job(struct client *client, struct job *job)
{
	char line[LINE];

	(void)snprintf(line, sizeof line, "reserve-job %" PRIu64 "\r\n", job->id);
	book_sends(job, RESERVE_JOB, 0, 0, 0);
	(void)say(client, (struct expected){.kind = RESERVE, .job = job}, line);
}

static void pause_tube(struct client *client)
{
	char line[LINE];
	unsigned tube = (unsigned)world_below(load.tubes);
	uint64_t length = world_between(1, 60) * SIM_S;

	if (pausing[tube] > world.now)
		return;
	pausing[tube] = SIM_NEVER;
	book_pauses(tube, 0, SIM_NEVER);
	(void)snprintf(line, sizeof line, "pause-tube t%u %" PRIu64 "\r\n", tube, length / SIM_S);
	(void)say(client, (struct expected){.kind = PAUSE, .tube = tube, .until = world.now + length, .length = length},
	    line);
}

/* Whatever it is, whoever has it. */
static void delete_key(struct client *client, struct job *job)
{
	char line[LINE];

	if (client->tube != job->tube) {
		client->tube = job->tube;
		(void)snprintf(line, sizeof line, "use t%u\r\n", client->tube);
		(void)say(client, (struct expected){.kind = OTHER}, line);
	}
	(void)snprintf(line, sizeof line, "delete-key k%" PRIu32 "\r\n", job->number);
	change(client, job, DELETE_KEY, 0, 0, line);
}

static void release(struct client *client, const struct held *held)
{
	char line[LINE];
	uint64_t delay = some_delay();

	if (held->job->backoff && world_chance(700)) {
		(void)snprintf(line, sizeof line, "release-job %" PRIu64 " 100 - failed\r\n", held->id);
		/* It is an hour at most, and shortened by up to a quarter. */
		change(client, held->job, RELEASE, world.now + held->job->backoff * 3 / 4, SIM_HOUR, line);
		return;
	}
	(void)snprintf(line, sizeof line, "release %" PRIu64 " 100 %" PRIu64 "\r\n", held->id, delay);
	change(client, held->job, RELEASE, 0, delay * SIM_S, line);
}

static int has(const struct client *client, const struct job *job)
{
	for (unsigned i = 0; i < client->holds; i++)
		if (client->held[i].job == job)
			return 1;
	return 0;
}

/* A delivery of the same job, of another put. */
static int has_another(const struct client *client, const struct held *held)
{
	for (unsigned i = 0; i < client->holds; i++)
		if (client->held[i].job == held->job && client->held[i].put != held->put)
			return 1;
	return 0;
}

/* What a worker has was put again. It ends what it has; if it has both, only a delete is of the older one. */
static void end_late(struct client *client, const struct held *held)
{
	struct expected expected = {.kind = LATE, .verb = DELETE};
	char line[LINE];

	if (!has_another(client, held))
		expected.verb = (enum sent_verb[]){DELETE, RELEASE, BURY}[world_below(3)];
	(void)snprintf(line, sizeof line,
	    expected.verb == DELETE    ? "delete %" PRIu64 "\r\n"
	    : expected.verb == RELEASE ? "release %" PRIu64 " 100 0\r\n"
	                               : "bury %" PRIu64 " 100\r\n",
	    held->id);
	expected.call = book_sends_late(held->job, expected.verb, client->connection, held->taken);
	(void)say(client, expected, line);
}

static void end_held(struct client *client)
{
	unsigned i = (unsigned)world_below(client->holds);
	struct held held = client->held[i];
	char line[LINE];

	if (held.job->verb != NO_VERB)
		return;
	if (held.id != held.job->id) {
		/* It has ended, and another one has its key. */
		client->held[i] = client->held[--client->holds];
		return;
	}
	if (held.taken && held.job->acknowledged > held.puts) {
		client->held[i] = client->held[--client->holds];
		end_late(client, &held);
		return;
	}
	if (held.put != held.job->sure || has_another(client, &held)) {
		/* Perhaps it was put again. The history does not know which delivery an end is about: the worker leaves. */
		struct wire *wire = client->wire;
		forget_connection(client);
		wire_cut(wire, 0);
		return;
	}
	switch (load.is_draining ? 0 : world_below(8)) {
	default:
		if (held.job->every && load.is_draining) {
			delete_key(client, held.job);
			break;
		}
		(void)snprintf(line, sizeof line, "delete %" PRIu64 "\r\n", held.id);
		change(client, held.job, DELETE, 0, 0, line);
		break;
	case 5:
		release(client, &held);
		break;
	case 6:
		(void)snprintf(line, sizeof line, "bury %" PRIu64 " 100\r\n", held.id);
		change(client, held.job, BURY, 0, 0, line);
		break;
	case 7:
		(void)snprintf(line, sizeof line, "touch %" PRIu64 "\r\n", held.id);
		change(client, held.job, TOUCH, 0, 0, line);
		return;
	}
	client->held[i] = client->held[--client->holds];
}

static void change_to(struct client *client, struct job *job, enum sent_verb verb)
{
	uint64_t delay = verb == MOVE ? some_delay() : 0;
	char line[LINE];

	if (verb == MOVE)
		(void)snprintf(line, sizeof line, "move %" PRIu64 " %" PRIu64 "\r\n", job->id, delay);
	else
		(void)snprintf(
		    line, sizeof line, "%s %" PRIu64 "\r\n", verb == DELETE ? "delete" : "kick-job", job->id);
	/* A kick makes it due at once. */
	change(client, job, verb, verb == KICK_JOB ? 1 : 0, delay * SIM_S, line);
}

/* Something with a job that it may not have. One in a worker's hands is put again. */
static void change_any(struct client *client)
{
	struct job *job = book_any();

	if (!job || job->verb != NO_VERB || has(client, job) || !job->id)
		return;
	if (job->holder) {
		if (job->is_keyed && job->tube == client->tube)
			put(client, job);
		return;
	}
	if (world_chance(100))
		reserve_job(client, job);
	else if (job->is_keyed && world_chance(100))
		delete_key(client, job);
	else if (job->is_keyed && job->tube == client->tube && world_chance(500))
		put(client, job);
	/* A delete by a client that had it means that delivery, and leaves what was put since, also if it is said twice. */
	else if (job->heard[client->number] == client->connection)
		change_to(client, job, world_chance(500) ? MOVE : KICK_JOB);
	else
		change_to(client, job, (enum sent_verb[]){DELETE, MOVE, KICK_JOB}[world_below(3)]);
}

static void look(struct client *client)
{
	(void)say(client, (struct expected){.kind = OTHER}, "list-tube-used\r\n");
}

static void connect_client(struct client *client)
{
	char line[LINE];

	client->wire = wire_connect(client);
	if (!client->wire)
		return;
	client->connection = ++connections;
	client->tube = (unsigned)world_below(load.tubes);
	(void)snprintf(line, sizeof line, "use t%u\r\n", client->tube);
	(void)say(client, (struct expected){.kind = OTHER}, line);
	for (unsigned i = 0; i < load.tubes; i++) {
		(void)snprintf(line, sizeof line, "watch t%u\r\n", i);
		(void)say(client, (struct expected){.kind = OTHER}, line);
	}
}

static void cut(struct client *client)
{
	struct wire *wire = client->wire;

	world_trace("cut", client->number, 0);
	if (world_chance(300)) {
		client_left(client);
		wire_break(wire);
		return;
	}
	forget_connection(client);
	wire_cut(wire, world_chance(200));
}

static int is_waiting(const struct client *client)
{
	for (unsigned i = 0; i < client->expects; i++)
		if (client->expected[i].kind == RESERVE)
			return 1;
	return 0;
}

static void act_connected(struct client *client)
{
	if (!load.is_draining && world_chance(load.cuts))
		cut(client);
	else if (client->expects > EXPECTED - 8 || is_waiting(client))
		return;
	else if (client->holds == HELD || (client->holds && (load.is_draining || world_chance(400))))
		end_held(client);
	else if (load.is_draining) {
		struct job *job = book_buried();
		if (job)
			change_to(client, job, KICK_JOB);
		else
			reserve(client);
	} else if (world_chance(450))
		put_new(client);
	else if (world_chance(600))
		reserve(client);
	else if (world_chance(900))
		change_any(client);
	else if (world_chance(500))
		pause_tube(client);
	else
		look(client);
}

static uint64_t rests(struct client *client)
{
	if (load.is_draining)
		return client->wire ? 10 * SIM_MINUTE : SIM_S;
	if (client->busy) {
		client->busy--;
		return world_chance(500) ? world_below(10 * SIM_MS) : world_below(2 * SIM_S);
	}
	client->busy = (unsigned)world_below(30);
	return world_chance(300) ? world_below(SIM_MINUTE) : world_below(12 * SIM_HOUR);
}

static void act(void *context, uint64_t is_once)
{
	struct client *client = context;

	if (client->wire)
		act_connected(client);
	else
		connect_client(client);
	if (!is_once)
		world_at(world.now + rests(client), act, client, 0);
}

void clients_begin(void)
{
	errors = 0;
	connections = reserves = 0;
	memset(pausing, 0, sizeof pausing);
	for (unsigned i = 0; i < load.clients; i++) {
		clients[i] = (struct client){.number = i};
		world_at(world_below(SIM_MINUTE), act, &clients[i], 0);
	}
}

void clients_end(void)
{
	struct lost *next;

	for (unsigned i = 0; i < CLIENTS; i++) {
		free(clients[i].in);
		clients[i] = (struct client){0};
	}
	for (; losts; losts = next) {
		next = losts->next;
		free(losts);
	}
}
