/* The clients. Each acts again and again; what it does next hangs on chance. */
#include "tests/simulate/client.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/simulate/judge.h"
#include "tests/simulate/wire.h"
#include "tests/simulate/world.h"

enum { EXPECTED = 32, HELD = 16, LINE = 256 };

/* What an answer will be to. */
struct expected {
	enum { OTHER, CHANGE, RESERVE } kind;
	struct entity *entity; /* CHANGE */
	uint64_t since;        /* RESERVE: when it arrives, or 0: it waits behind others */
};

struct held {
	struct entity *entity;
	uint64_t id;
};

struct client {
	unsigned number;
	struct wire *wire; /* NULL: not connected */
	unsigned tube;     /* it puts into this one */
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
	struct entity *entity;
};

struct load load;

static struct client clients[CLIENTS];
static struct lost *losts;
static world_fn act;
static unsigned errors;

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
		judge_hears_nothing(lost->entity);
		*at = lost->next;
		free(lost);
	}
	if (losts)
		world_at(world.now + SIM_S, settle_lost, NULL, 0);
}

static void forget_connection(struct client *client)
{
	for (unsigned i = 0; i < client->expects; i++) {
		struct lost *lost;
		if (client->expected[i].kind != CHANGE)
			continue;
		if (!losts)
			world_at(world.now + SIM_S, settle_lost, NULL, 0);
		lost = malloc(sizeof *lost);
		*lost = (struct lost){losts, client->wire, client->expected[i].entity};
		losts = lost;
	}
	for (unsigned i = 0; i < client->holds; i++)
		if (client->held[i].entity->holder == client)
			client->held[i].entity->holder = NULL;
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

static void hears_job(struct client *client, const struct expected *expected, const char *line, const char *body)
{
	uint64_t id = strtoull(line + 9, NULL, 10), size = strtoull(strrchr(line, ' ') + 1, NULL, 10);
	uint32_t put;
	struct entity *entity = judge_of(body, size, &put);

	if (!entity) {
		world_bad("client %u has got a job that nobody put: %.40s", client->number, body);
		return;
	}
	judge_client_heard(entity, client, id, expected->since);
	if (client->holds == HELD)
		client->holds--;
	client->held[client->holds++] = (struct held){entity, id};
}

static void hears(struct client *client, const char *line, const char *body)
{
	struct expected expected = client->expected[0];

	world_trace_bytes("heard", client->number, line, strlen(line));
	errors += strncmp(line, "INTERNAL_ERROR", 14) == 0;
	memmove(client->expected, client->expected + 1, --client->expects * sizeof expected);
	if (expected.kind == CHANGE)
		judge_hears(expected.entity, line);
	else if (expected.kind == RESERVE && body)
		hears_job(client, &expected, line, body);
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

static void change(
    struct client *client, struct entity *entity, enum verb_kind verb, uint64_t id, uint64_t delay, const char *line)
{
	judge_sends(entity, verb, id, delay);
	(void)say(client, (struct expected){.kind = CHANGE, .entity = entity}, line);
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

static void put(struct client *client, struct entity *entity)
{
	char head[64], line[LINE];
	uint64_t delay = some_delay();
	uint64_t pad = world_chance(100) ? world_below(load.body_most) : world_below(100);
	char *body;
	int length = snprintf(head, sizeof head, "e%" PRIu32 ".%" PRIu32 " ", entity->number, entity->puts + 1);
	size_t at;

	if (entity->is_keyed)
		at = (size_t)snprintf(line, sizeof line,
		    "put-key %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 " k%u\r\n%s", world_below(2000), delay,
		    entity->run / SIM_S, (uint64_t)length + pad, entity->number, head);
	else
		at = (size_t)snprintf(line, sizeof line, "put %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 "\r\n%s",
		    world_below(2000), delay, entity->run / SIM_S, (uint64_t)length + pad, head);
	body = malloc(at + pad + 3);
	memcpy(body, line, at);
	memset(body + at, 'x', pad);
	memcpy(body + at + pad, "\r\n", 3);
	change(client, entity, entity->is_keyed ? PUT_KEY : PUT, 0, delay * SIM_S, body);
	free(body);
}

static void put_new(struct client *client)
{
	struct entity *entity = judge_new((int)client->tube, world_chance(300));

	entity->run = (world_chance(500) ? world_between(2, 60) : world_between(60, 7200)) * SIM_S;
	put(client, entity);
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
	client->expected[client->expects - 1].since = is_alone ? arrives : 0;
}

static void end_held(struct client *client)
{
	unsigned i = (unsigned)world_below(client->holds);
	struct held held = client->held[i];
	uint64_t delay = some_delay();
	char line[LINE];

	if (held.entity->command.verb != NO_VERB)
		return;
	switch (load.is_draining ? 0 : world_below(8)) {
	default:
		(void)snprintf(line, sizeof line, "delete %" PRIu64 "\r\n", held.id);
		change(client, held.entity, DELETE, held.id, 0, line);
		break;
	case 5:
		(void)snprintf(line, sizeof line, "release %" PRIu64 " 100 %" PRIu64 "\r\n", held.id, delay);
		change(client, held.entity, RELEASE, held.id, delay * SIM_S, line);
		break;
	case 6:
		(void)snprintf(line, sizeof line, "bury %" PRIu64 " 100\r\n", held.id);
		change(client, held.entity, BURY, held.id, 0, line);
		break;
	case 7:
		(void)snprintf(line, sizeof line, "touch %" PRIu64 "\r\n", held.id);
		change(client, held.entity, TOUCH, held.id, 0, line);
		return;
	}
	client->held[i] = client->held[--client->holds];
}

static void change_to(struct client *client, struct entity *entity, enum verb_kind verb, uint64_t id)
{
	uint64_t delay = verb == MOVE ? some_delay() : 0;
	char line[LINE];

	if (verb == MOVE)
		(void)snprintf(line, sizeof line, "move %" PRIu64 " %" PRIu64 "\r\n", id, delay);
	else
		(void)snprintf(line, sizeof line, "%s %" PRIu64 "\r\n", verb == DELETE ? "delete" : "kick-job", id);
	change(client, entity, verb, id, delay * SIM_S, line);
}

/* Something with a job that it may not have. */
static void change_any(struct client *client)
{
	struct entity *entity = judge_any();

	if (!entity || entity->command.verb != NO_VERB || entity->holder || !entity->id)
		return;
	if (entity->is_keyed && (unsigned)entity->tube == client->tube && world_chance(500)) {
		put(client, entity);
		return;
	}
	change_to(client, entity, (enum verb_kind[]){DELETE, MOVE, KICK_JOB}[world_below(3)], entity->id);
}

static void look(struct client *client)
{
	static const char *const looks[] = {"peek-ready\r\n", "peek-delayed\r\n", "peek-buried\r\n"};

	/* What they answer is not judged, and may have a body: only that of an empty tube has one line. */
	(void)looks;
	(void)say(client, (struct expected){.kind = OTHER}, "list-tube-used\r\n");
}

static void connect_client(struct client *client)
{
	char line[LINE];

	client->wire = wire_connect(client);
	if (!client->wire)
		return;
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
	else if (client->holds && (load.is_draining || world_chance(400)))
		end_held(client);
	else if (load.is_draining) {
		uint64_t id;
		struct entity *entity = judge_buried(&id);
		if (entity)
			change_to(client, entity, KICK_JOB, id);
		else
			reserve(client);
	} else if (world_chance(450))
		put_new(client);
	else if (world_chance(600))
		reserve(client);
	else if (world_chance(900))
		change_any(client);
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
