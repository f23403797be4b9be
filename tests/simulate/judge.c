/* The judge of the simulation. */
#include "tests/simulate/judge.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/simulate/disk.h"
#include "tests/simulate/world.h"

/* How late a job is delivered at most while nothing is wrong and a client waits. */
#define LATE (3 * SIM_S)

struct judge judge;

static struct entity **entities;
static unsigned count, room;
static uint64_t last_token;
static uint64_t highest_id;
static uint64_t none_buried; /* until then */
static unsigned cursor;
static uint64_t killed; /* when the last server was, which then synced nothing more; 0: another one has opened since */

void judge_begin(uint64_t window)
{
	judge = (struct judge){.window = window};
	last_token = highest_id = none_buried = cursor = 0;
	killed = 0;
}

void judge_end(void)
{
	for (unsigned i = 0; i < count; i++)
		free(entities[i]);
	free(entities);
	entities = NULL;
	count = room = 0;
}

struct entity *judge_new(int tube, int is_keyed)
{
	struct entity *entity = calloc(1, sizeof *entity);

	if (count == room) {
		room = room ? 2 * room : 64;
		entities = realloc(entities, room * sizeof(struct entity *));
	}
	*entity = (struct entity){.number = count, .tube = tube, .is_keyed = is_keyed};
	entity->now = (struct states){1, {{.kind = ABSENT}}};
	entity->command.verb = NO_VERB;
	entities[count++] = entity;
	return entity;
}

/* Mostly a late one. */
struct entity *judge_any(void)
{
	unsigned last = count > 40 && world_chance(800) ? 40 : count;

	return count ? entities[count - 1 - world_below(last)] : NULL;
}

unsigned judge_count(void)
{
	return count;
}

struct entity *judge_of(const char *body, uint64_t size, uint32_t *put)
{
	char text[32];
	char *end;
	unsigned long number;

	if (size < 4 || *body != 'e')
		return NULL;
	memcpy(text, body, size < sizeof text ? size : sizeof text - 1);
	text[size < sizeof text ? size : sizeof text - 1] = 0;
	number = strtoul(text + 1, &end, 10);
	if (number >= count || *end != '.')
		return NULL;
	*put = (uint32_t)strtoul(end + 1, &end, 10);
	return *put && *put <= entities[number]->puts ? entities[number] : NULL;
}

/* ---- Sets of states */

static int is_same(const struct state *a, const struct state *b)
{
	return a->kind == b->kind && a->put == b->put && a->id == b->id && a->due_least == b->due_least &&
	       a->due_most == b->due_most;
}

static void add(struct states *states, const struct state *state)
{
	for (unsigned i = 0; i < states->count; i++)
		if (is_same(&states->state[i], state))
			return;
	if (states->count < STATES) {
		states->state[states->count++] = *state;
		return;
	}
	/* Too many to tell apart: a time between the two. */
	for (unsigned i = 0; i < states->count; i++) {
		struct state *one = &states->state[i];
		if (one->kind != state->kind || one->put != state->put || one->id != state->id)
			continue;
		one->due_least = state->due_least < one->due_least ? state->due_least : one->due_least;
		one->due_most = state->due_most > one->due_most ? state->due_most : one->due_most;
		return;
	}
}

static int has(const struct states *states, int kind)
{
	for (unsigned i = 0; i < states->count; i++)
		if ((int)states->state[i].kind == kind)
			return 1;
	return 0;
}

/* What the command makes of a state, if it can be carried out in it. */
static int carried_out(const struct command_sent *command, const struct state *before, struct state *after)
{
	int is_there = before->kind != ABSENT;
	struct state waits = {
	    WAITING, before->put, before->id, command->sent + command->delay, world.now + command->delay};

	/* It is another job of the same key. */
	if (command->id && before->id && command->id != before->id)
		return 0;
	switch (command->verb) {
	case PUT:
	case PUT_KEY:
		waits.put = command->put;
		*after = waits;
		return 1;
	case DELETE:
		*after = (struct state){.kind = ABSENT};
		return is_there;
	case RELEASE:
	case MOVE:
		*after = waits;
		return before->kind == WAITING;
	case KICK_JOB:
		*after = waits;
		after->due_least = 0;
		return is_there;
	case BURY:
		*after = (struct state){BURIED, before->put, before->id, 0, 0};
		return before->kind == WAITING;
	default:
		*after = *before;
		return 1;
	}
}

/* The states after the command; `kind` says which ones before it are possible: -1: all, 0: absent, 1: there. */
static struct states after(const struct states *before, const struct command_sent *command, int kind)
{
	struct states states = {0};
	struct state one;

	for (unsigned i = 0; i < before->count; i++) {
		int is_there = before->state[i].kind != ABSENT;
		if ((kind < 0 || kind == is_there) && carried_out(command, &before->state[i], &one))
			add(&states, &one);
	}
	return states;
}

static void unite(struct states *states, const struct states *others)
{
	for (unsigned i = 0; i < others->count; i++)
		add(states, &others->state[i]);
}

/* What was known so long before that moment is certain. */
static uint64_t moment_of_loss(void)
{
	return judge.failed ? judge.failed : killed && world.now < killed + 36 * SIM_S ? killed : world.now;
}

/* Keep what it was, as long as a power failure may bring it back. */
static void change(struct entity *entity, const struct states *states)
{
	unsigned gone = 0;

	while (gone < entity->past_count && entity->past[gone].until + judge.window < moment_of_loss())
		gone++;
	entity->past_count -= gone;
	memmove(entity->past, entity->past + gone, entity->past_count * sizeof entity->past[0]);
	if (judge.window && entity->past_count == PASTS) {
		entity->past[PASTS - 1].until = world.now;
		unite(&entity->past[PASTS - 1].states, &entity->now);
	} else if (judge.window) {
		entity->past[entity->past_count].until = world.now;
		entity->past[entity->past_count++].states = entity->now;
	}
	entity->now = *states;
	for (unsigned i = 0; i < states->count; i++)
		if (states->state[i].kind == WAITING && states->state[i].due_most > judge.last_due)
			judge.last_due = states->state[i].due_most;
}

struct entity *judge_buried(uint64_t *id)
{
	/* To look through all of them takes long, thus not too often. */
	if (world.now < none_buried)
		return NULL;
	for (unsigned i = 0; i < count; i++) {
		struct entity *entity = entities[cursor++ % count];
		if (entity->command.verb != NO_VERB || entity->is_wild)
			continue;
		for (unsigned k = 0; k < entity->now.count; k++) {
			*id = entity->now.state[k].id ? entity->now.state[k].id : entity->id;
			if (entity->now.state[k].kind == BURIED && *id)
				return entity;
		}
	}
	none_buried = world.now + 10 * SIM_MINUTE;
	return NULL;
}

static const char *told(const struct entity *entity, char *text, size_t size)
{
	static const char *const names[] = {"absent", "waiting", "buried"};
	size_t at =
	    (size_t)snprintf(text, size, "job %" PRIu32 " (id %" PRIu64 "), which may be", entity->number, entity->id);

	for (unsigned i = 0; i < entity->now.count && at + 120 < size; i++) {
		const struct state *state = &entity->now.state[i];
		at += (size_t)snprintf(text + at, size - at, "%s %s", i ? "," : "", names[state->kind]);
		if (state->kind == WAITING)
			at += (size_t)snprintf(text + at, size - at, " (put %" PRIu32 ", due %.6f..%.6f s)", state->put,
			    (double)state->due_least / 1e9, (double)state->due_most / 1e9);
	}
	return text;
}

#define TOLD(entity) told(entity, (char[400]){0}, 400)

/* ---- Commands */

void judge_sends(struct entity *entity, enum verb_kind verb, uint64_t id, uint64_t delay)
{
	if (verb != TOUCH)
		entity->holder = NULL;
	if (verb == PUT || verb == PUT_KEY)
		entity->puts++;
	if (verb == TOUCH)
		entity->lease_most = world.now + entity->run + SIM_MINUTE;
	entity->command = (struct command_sent){verb, world.now, delay, id, entity->puts};
}

static void hears_id(struct entity *entity, struct states *states, const char *answer, int is_new)
{
	uint64_t id = strtoull(strchr(answer, ' ') + 1, NULL, 10);

	for (unsigned i = 0; i < count && is_new && id <= highest_id; i++)
		if (entities[i]->id == id && !entities[i]->is_wild)
			world_bad("%s has got the id %" PRIu64 ", as had job %u", TOLD(entity), id, i);
	for (unsigned i = 0; i < states->count; i++) {
		if (!is_new && !entity->is_wild && states->state[i].id && states->state[i].id != id)
			world_bad("%s was replaced under the id %" PRIu64, TOLD(entity), id);
		states->state[i].id = id;
	}
	entity->id = id;
	highest_id = id > highest_id ? id : highest_id;
}

static int begins(const char *answer, const char *word)
{
	return strncmp(answer, word, strlen(word)) == 0;
}

/* The server did what the command says. */
static void done(struct entity *entity, const char *answer)
{
	struct command_sent *command = &entity->command;
	int kind = begins(answer, "INSERTED") ? 0 : command->verb == PUT_KEY ? 1 : -1;
	struct states states = after(&entity->now, command, entity->is_wild ? -1 : kind);

	judge.acknowledged++;
	if (command->verb == TOUCH) {
		entity->lease_least = command->sent + entity->run;
		return;
	}
	if (judge.failed && command->sent > judge.failed)
		world_bad("%s: \"%.20s\" was answered after a sync had failed", TOLD(entity), answer);
	if (!states.count && !entity->is_wild) {
		world_bad("%s: \"%.20s\" cannot be the answer to command %d", TOLD(entity), answer, command->verb);
		states = after(&entity->now, command, -1);
	}
	if (command->verb == PUT || command->verb == PUT_KEY) {
		entity->is_wild = 0;
		if (!states.count)
			states = after(&(struct states){1, {{.kind = ABSENT}}}, command, 0);
		hears_id(entity, &states, answer, begins(answer, "INSERTED"));
	}
	change(entity, &states);
}

/* The server said that the job is not there, or not so. */
static void refused(struct entity *entity, const char *answer)
{
	const struct command_sent *command = &entity->command;

	struct states left = {0};

	/* A job that has not been reserved is found, unless it is not there, or is ready already, or is buried. */
	if (entity->is_wild || !begins(answer, "NOT_FOUND") || command->sent < entity->lease_most + SIM_S ||
	    (command->verb != DELETE && command->verb != KICK_JOB && command->verb != MOVE))
		return;
	for (unsigned i = 0; i < entity->now.count; i++) {
		const struct state *state = &entity->now.state[i];
		int is_ready = state->kind == WAITING && state->due_least <= world.now + judge.early;
		if (state->kind == ABSENT || state->id != command->id ||
		    (state->kind == BURIED && command->verb == MOVE) || (is_ready && command->verb == KICK_JOB))
			add(&left, state);
	}
	if (!left.count) {
		world_bad("%s: \"%.20s\" to command %d", TOLD(entity), answer, command->verb);
		add(&left, &(struct state){.kind = ABSENT});
	}
	change(entity, &left);
}

void judge_hears_nothing(struct entity *entity)
{
	struct states states = entity->now, others = after(&entity->now, &entity->command, -1);

	judge.unanswered++;
	unite(&states, &others);
	change(entity, &states);
	entity->command.verb = NO_VERB;
}

void judge_hears(struct entity *entity, const char *answer)
{
	static const char *const good[] = {
	    [PUT] = "INSERTED",
	    [PUT_KEY] = "INSERTED",
	    [DELETE] = "DELETED",
	    [RELEASE] = "RELEASED",
	    [BURY] = "BURIED",
	    [KICK_JOB] = "KICKED",
	    [MOVE] = "MOVED",
	    [TOUCH] = "TOUCHED",
	};
	enum verb_kind verb = entity->command.verb;

	if (begins(answer, good[verb]) || (verb == PUT_KEY && begins(answer, "REPLACED"))) {
		done(entity, answer);
	} else if (begins(answer, "INTERNAL_ERROR")) {
		/* It may be in the journal nevertheless. */
		judge_hears_nothing(entity);
	} else if (begins(answer, "OUT_OF_MEMORY")) {
		judge.refused++;
	} else {
		refused(entity, answer);
	}
	entity->command.verb = NO_VERB;
}

/* ---- Deliveries, as the store makes them */

/* Of these states those in which the job may be delivered now. */
static struct states deliverable(const struct states *states, uint32_t put, uint64_t id, uint64_t now)
{
	struct states fits = {0};

	for (unsigned i = 0; i < states->count; i++) {
		struct state state = states->state[i];
		if (state.kind != WAITING || state.put != put || state.due_least > now || (state.id && state.id != id))
			continue;
		state.id = id;
		add(&fits, &state);
	}
	return fits;
}

static void delivered(const struct ww_lease *lease)
{
	uint32_t put;
	struct entity *entity = judge_of(lease->body, lease->body_length, &put);
	struct states fits, possible;

	judge.deliveries++;
	if (lease->token <= last_token)
		world_bad("the token %" PRIu64 " of id %" PRIu64 " is not greater than %" PRIu64, lease->token,
		    lease->id, last_token);
	last_token = lease->token;
	if (!entity) {
		world_bad("the job %" PRIu64 " is one that nobody put: %.20s", lease->id, (const char *)lease->body);
		return;
	}
	fits = deliverable(&entity->now, put, lease->id, world.now + judge.early);
	if (entity->command.verb == NO_VERB && fits.count)
		change(entity, &fits);
	if (entity->command.verb != NO_VERB) {
		possible = after(&entity->now, &entity->command, -1);
		possible = deliverable(&possible, put, lease->id, world.now + judge.early);
		unite(&fits, &possible);
	}
	if (!fits.count && !entity->is_wild)
		world_bad("put %" PRIu32 " of %s was delivered as %" PRIu64, put, TOLD(entity), lease->id);
	if (entity->holder && client_is_connected(entity->holder) && world.now < entity->lease_least)
		world_bad("%s was delivered twice at a time", TOLD(entity));
	entity->holder = NULL; /* until the client hears it */
	entity->delivered = world.now;
	entity->free = entity->lease_most;
	entity->lease_least = world.now + entity->run;
	entity->lease_most = entity->lease_least + 2 * SIM_MS;
}

int __real_ww_jobs_reserve(struct ww_jobs *jobs, const char *const *tubes, size_t tube_count, struct ww_lease *lease);
int __wrap_ww_jobs_reserve(struct ww_jobs *jobs, const char *const *tubes, size_t tube_count, struct ww_lease *lease);
int __wrap_ww_jobs_reserve(struct ww_jobs *jobs, const char *const *tubes, size_t tube_count, struct ww_lease *lease)
{
	int got = __real_ww_jobs_reserve(jobs, tubes, tube_count, lease);

	if (got > 0 && !world.is_ghost)
		delivered(lease);
	return got;
}

void judge_client_heard(struct entity *entity, struct client *client, uint64_t id, uint64_t since)
{
	uint64_t ready = entity->free > since ? entity->free : since;

	entity->id = id;
	entity->holder = client;
	for (unsigned i = 0; i < entity->now.count; i++)
		if (entity->now.state[i].due_most > ready)
			ready = entity->now.state[i].due_most;
	if (since && !entity->is_wild && has(&entity->now, WAITING) && judge.healthy <= entity->delivered &&
	    judge.healthy + LATE < entity->delivered && entity->delivered > ready + judge.late + LATE)
		world_bad("%s was delivered %.3f s late", TOLD(entity), (double)(entity->delivered - ready) / 1e9);
}

/* ---- Deaths */

void judge_sync_failed(void)
{
	if (!judge.failed)
		judge.failed = world.now;
}

void judge_server_died(int is_power, int is_lost)
{
	int is_loss = is_power || judge.failed;

	judge.powers += is_power != 0;
	if (is_lost)
		judge_forget_all();
	for (unsigned i = 0; i < count; i++) {
		struct entity *entity = entities[i];
		struct states states = entity->now;
		entity->holder = NULL;
		entity->lease_most = entity->lease_most < world.now ? entity->lease_most : world.now;
		for (unsigned k = 0; is_loss && k < entity->past_count; k++)
			if (entity->past[k].until + judge.window >= moment_of_loss())
				unite(&states, &entity->past[k].states);
		entity->now = states;
		entity->past_count = is_loss ? 0 : entity->past_count;
	}
	if (!killed)
		killed = judge.failed ? judge.failed : world.now;
	judge.failed = 0;
}

void judge_opened(void)
{
	killed = 0;
}

void judge_forget_all(void)
{
	last_token = highest_id = 0;
	for (unsigned i = 0; i < count; i++)
		entities[i]->is_wild = 1;
}

int judge_is_done(void)
{
	for (unsigned i = 0; i < count; i++)
		if (!entities[i]->is_wild && (entities[i]->command.verb != NO_VERB || !has(&entities[i]->now, ABSENT)))
			return 0;
	return 1;
}

void judge_final(void)
{
	for (unsigned i = 0; i < count; i++)
		if (!entities[i]->is_wild && !has(&entities[i]->now, ABSENT))
			world_bad("%s was never delivered", TOLD(entities[i]));
}
