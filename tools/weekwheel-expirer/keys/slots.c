/* Keys of a node of a cluster: see slots.h. */
#include "tools/weekwheel-expirer/keys/slots.h"

#include <stdlib.h>
#include <string.h>

#include <hiredis/hiredis.h>

#include "tools/weekwheel-expirer/keys/ends.h"

#define MS UINT64_C(1000000)

/* How long requests use ASKING after a MOVED, and after how long a key is asked for again. */
enum { ASKING_MS = 10000, AGAIN_MS = 100 };

/* ---- Requests */

void slots_begin(struct keeper *keeper, uint64_t now)
{
	keeper->is_asking = now < keeper->asking_until;
}

int slots_append(struct keeper *keeper, size_t argc, const char *const *argv, const size_t *lengths, unsigned *owed)
{
	const struct keeper_config *config = &keeper->config;
	int error = keeper->is_asking ? config->append(config->context, 1, (const char *[]){"ASKING"}, NULL) : 0;

	*owed += 1 + (unsigned)keeper->is_asking;
	return error ? error : config->append(config->context, argc, argv, lengths);
}

/* By slot, the oldest first. */
static int compare(const void *one, const void *other)
{
	const struct due_key *a = one;
	const struct due_key *b = other;

	if (a->slot != b->slot)
		return a->slot < b->slot ? -1 : 1;
	return (a->at > b->at) - (a->at < b->at);
}

static void sort_by_slot(struct keeper *keeper)
{
	if (!keeper->config.slot)
		return;
	for (size_t i = 0; i < keeper->due_count; i++) {
		size_t length;
		const char *key = deadlines_key(keeper->deadlines, keeper->due[i].index, &length);

		keeper->due[i].slot = keeper->config.slot(key, length);
	}
	qsort(keeper->due, keeper->due_count, sizeof *keeper->due, compare);
}

size_t slots_group(const struct keeper *keeper, size_t from)
{
	size_t end = from;

	while (end < keeper->due_count && keeper->due[end].slot == keeper->due[from].slot)
		end++;
	return end;
}

int slots_ask(struct keeper *keeper, uint64_t now, unsigned *owed)
{
	const char *argv[KEEPER_BATCH + 1] = {"EXISTS"};
	size_t lengths[KEEPER_BATCH + 1] = {6};
	int error = 0;

	slots_begin(keeper, now);
	sort_by_slot(keeper);
	keeper->asked = 0;
	for (size_t from = 0, end; from < keeper->due_count && !error; from = end) {
		end = slots_group(keeper, from);
		for (size_t i = from; i < end; i++)
			argv[i - from + 1] =
			    deadlines_key(keeper->deadlines, keeper->due[i].index, &lengths[i - from + 1]);
		error = slots_append(keeper, end - from + 1, argv, lengths, owed);
	}
	return error;
}

/* ---- Keys that are asked for again */

int slots_hold(struct keeper *keeper, size_t from, size_t end, uint64_t at)
{
	size_t count = keeper->held_count + end - from;
	size_t room = keeper->held_room ? keeper->held_room : KEEPER_BATCH;
	struct due_key *held;

	while (room < count)
		room *= 2;
	if (room > keeper->held_room) {
		held = realloc(keeper->held, room * sizeof *held);
		if (!held)
			return -1;
		keeper->held = held;
		keeper->held_room = room;
	}
	if (keeper->held_count == 0 || at < keeper->held_at)
		keeper->held_at = at;
	memcpy(keeper->held + keeper->held_count, keeper->due + from, (end - from) * sizeof *keeper->due);
	keeper->held_count = count;
	return 0;
}

/* The next round begins after a pause, a longer one if many are held. */
static void end_round(struct keeper *keeper, uint64_t now)
{
	uint64_t took = now - keeper->held_began;

	keeper->held_count -= keeper->held_end;
	memmove(keeper->held, keeper->held + keeper->held_end, keeper->held_count * sizeof *keeper->held);
	keeper->held_head = keeper->held_end = 0;
	keeper->held_at = now + (4 * took > AGAIN_MS * MS ? 4 * took : AGAIN_MS * MS);
}

static int compare_index(const void *one, const void *other)
{
	const struct due_key *a = one;
	const struct due_key *b = other;

	return (a->index > b->index) - (a->index < b->index);
}

/* A key that was set meanwhile may be held twice. Dropped twice, its record would become two keys'. */
static size_t leave_each_once(struct due_key *due, size_t count)
{
	size_t left = 0;

	qsort(due, count, sizeof *due, compare_index);
	for (size_t i = 0; i < count; i++)
		if (left == 0 || due[left - 1].index != due[i].index)
			due[left++] = due[i];
	qsort(due, left, sizeof *due, compare);
	return left;
}

size_t slots_take_held(struct keeper *keeper, uint64_t now)
{
	size_t count = 0;

	if (now < keeper->held_at || keeper->held_head == keeper->held_count)
		return 0;
	if (keeper->held_head == keeper->held_end) {
		keeper->held_end = keeper->held_count;
		keeper->held_began = now;
	}
	while (keeper->held_head < keeper->held_end && count < keeper->batch) {
		struct due_key due = keeper->held[keeper->held_head++];
		struct known_key known;

		/* It may have been set again meanwhile, or be gone. */
		if (!deadlines_is_due(keeper->deadlines, due.index))
			continue;
		deadlines_look(keeper->deadlines, due.index, &known);
		due.at = known.at;
		keeper->due[count++] = due;
	}
	if (keeper->held_head == keeper->held_end)
		end_round(keeper, now);
	return leave_each_once(keeper->due, count);
}

/* ---- Replies */

static int begins(const struct redisReply *reply, const char *text)
{
	return reply->type == REDIS_REPLY_ERROR && strncmp(reply->str, text, strlen(text)) == 0;
}

int slots_is_to_asking(const struct keeper *keeper, const struct redisReply *reply)
{
	return keeper->is_asking && reply->type == REDIS_REPLY_STATUS;
}

int slots_is_down(const struct redisReply *reply)
{
	return begins(reply, "CLUSTERDOWN ");
}

int slots_is_elsewhere(const struct keeper *keeper, const struct redisReply *reply)
{
	return keeper->config.slot && (keeper->kind == KEEPER_ASK || keeper->kind == KEEPER_LOOK) &&
	       (begins(reply, "MOVED ") || begins(reply, "ASK ") || begins(reply, "TRYAGAIN ") || slots_is_down(reply));
}

/* Whether to try ASKING once more. */
static int is_to_ask(struct keeper *keeper, const struct redisReply *reply, uint64_t now)
{
	if (keeper->is_asking || !begins(reply, "MOVED "))
		return 0;
	keeper->asking_until = now + ASKING_MS * MS;
	return 1;
}

static int has_slot(const struct keeper *keeper, unsigned slot)
{
	return keeper->serves[slot / 8] >> slot % 8 & 1;
}

int slots_is_served(const struct keeper *keeper, uint32_t index)
{
	size_t length;
	const char *key = deadlines_key(keeper->deadlines, index, &length);

	return !keeper->config.slot || has_slot(keeper, keeper->config.slot(key, length));
}

/* Whether the node should serve the slot, so that it or its replacement soon will. */
static int is_served(struct keeper *keeper, const struct redisReply *reply, unsigned slot)
{
	if (slots_is_down(reply))
		return 1;
	if (!begins(reply, "MOVED ") || !has_slot(keeper, slot))
		return 0;
	keeper->is_misled = 1;
	return 1;
}

int slots_missed(struct keeper *keeper, size_t from, size_t end, const struct redisReply *reply, uint64_t now)
{
	int result = 0;

	if (is_to_ask(keeper, reply, now))
		return slots_hold(keeper, from, end, now);
	if (begins(reply, "ASK ") || is_served(keeper, reply, keeper->due[from].slot))
		return slots_hold(keeper, from, end, now + AGAIN_MS * MS);
	for (size_t i = from; i < end; i++) {
		size_t length;
		const char *key = deadlines_key(keeper->deadlines, keeper->due[i].index, &length);

		/* Some of the keys are here: look them up one by one. */
		if (begins(reply, "TRYAGAIN "))
			result |= waiting_add(&keeper->waiting, key, length);
		else
			ends_leave(keeper, keeper->due[i].index);
	}
	return result;
}

/* The key's state is not known: ask for it soon, and look it up if it is there. */
static int look_again(struct keeper *keeper, const char *key, size_t length)
{
	uint64_t soon = deadlines_now(keeper->deadlines) + AGAIN_MS;
	struct known_key known;

	if (!deadlines_find(keeper->deadlines, key, length, &known) || known.at > soon)
		return deadlines_guess(keeper->deadlines, key, length, soon);
	deadlines_again(keeper->deadlines, known.index, soon);
	return 0;
}

int slots_lost(struct keeper *keeper, const struct redisReply *reply, uint64_t now)
{
	size_t at = keeper->waiting.head;
	size_t length;
	const char *key = waiting_at(&keeper->waiting, &at, &length);
	struct known_key known;
	int result = 0;

	if (is_to_ask(keeper, reply, now)) {
		/* waiting_add may move the bytes. */
		char *copy = malloc(length);

		if (!copy)
			return -1;
		memcpy(copy, key, length);
		result = waiting_add(&keeper->waiting, copy, length);
		free(copy);
		if (keeper->waiting.dropped < keeper->page)
			keeper->page = keeper->waiting.added;
	} else if (!is_served(keeper, reply, keeper->config.slot(key, length))) {
		if (deadlines_find(keeper->deadlines, key, length, &known))
			ends_leave(keeper, known.index);
	} else {
		result = look_again(keeper, key, length);
	}
	waiting_drop(&keeper->waiting);
	return result;
}
