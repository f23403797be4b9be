/* Reads values shortly before keys end: see values.h. */
#include "tools/weekwheel-expirer/keys/values.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <hiredis/hiredis.h>

#include "lib/base/seeded.h"

#define MS INT64_C(1000000)

struct read_value {
	UT_hash_handle hh;
	uint32_t index;
	uint32_t size;
	uint64_t at; /* when the key is due: by then its index may be another key's */
	uint32_t early_ms;
	int is_type;
	char bytes[];
};

/* ---- The table */

static struct read_value *find(const struct keeper *keeper, uint32_t index)
{
	struct read_value *value;

	HASH_FIND(hh, keeper->values, &index, sizeof index, value);
	return value;
}

void values_drop(struct keeper *keeper, uint32_t index)
{
	struct read_value *value = find(keeper, index);

	if (!value)
		return;
	HASH_DEL(keeper->values, value);
	keeper->values_bytes -= sizeof *value + value->size;
	free(value);
}

void values_free(struct keeper *keeper)
{
	while (keeper->values)
		values_drop(keeper, keeper->values->index);
}

static void add(struct keeper *keeper, const struct due_key *key, int is_type, const char *bytes, size_t size)
{
	struct read_value *value = malloc(sizeof *value + size);
	int64_t read_ms = estimate_reached(&keeper->estimate, keeper->sent) / MS;
	int64_t early = (int64_t)key->at - 1 - read_ms;

	values_drop(keeper, key->index);
	if (!value)
		return;
	*value = (struct read_value){.index = key->index,
	    .size = (uint32_t)size,
	    .at = key->at,
	    .early_ms = early > 0 ? (uint32_t)early : 1,
	    .is_type = is_type};
	memcpy(value->bytes, bytes, size);
	HASH_ADD(hh, keeper->values, index, sizeof value->index, value);
	if (value->hh.tbl)
		keeper->values_bytes += sizeof *value + size;
	else
		free(value);
}

void values_show(const struct keeper *keeper, uint32_t index, struct ended_key *ended)
{
	const struct read_value *value = find(keeper, index);
	struct known_key known;

	deadlines_look(keeper->deadlines, index, &known);
	if (!value || value->at != known.at)
		return;
	ended->value = value->bytes;
	ended->size = value->size;
	ended->is_type = value->is_type;
	ended->early_ms = value->early_ms;
}

/* ---- Reading */

size_t values_take_early(struct keeper *keeper, struct due_key *due, size_t count, uint64_t reached)
{
	size_t left = 0;

	for (size_t i = 0; i < count; i++)
		if (due[i].at > reached)
			keeper->early[keeper->early_count++] = due[i];
		else
			due[left++] = due[i];
	return left;
}

/* Whether the key still waits for its value. If not, it is due at its deadline, unless it was changed. */
static int is_wanted(struct keeper *keeper, const struct due_key *key)
{
	struct known_key known;

	/* It may have been set again meanwhile, or be gone. */
	if (!deadlines_is_due(keeper->deadlines, key->index))
		return 0;
	deadlines_look(keeper->deadlines, key->index, &known);
	if (known.at != key->at)
		return 0;
	if (known.at > keeper->reached && keeper->values_bytes < keeper->config.values_max)
		return 1;
	deadlines_again(keeper->deadlines, key->index, 0);
	return 0;
}

static int ask(struct keeper *keeper, const struct due_key *key)
{
	char end[24];
	size_t length;
	const char *name = deadlines_key(keeper->deadlines, key->index, &length);
	const char *const type[] = {"TYPE", name};
	const char *const range[] = {"GETRANGE", name, "0", end};
	/* One byte more shows that it is longer. */
	int size = snprintf(end, sizeof end, "%zu", keeper->config.value_max);
	int error = keeper->config.append(keeper->config.context, 2, type, (const size_t[]){4, length});

	return error ? error
	             : keeper->config.append(
	                   keeper->config.context, 4, range, (const size_t[]){8, length, 1, (size_t)size});
}

int values_ask(struct keeper *keeper)
{
	size_t used = 0;
	int error = 0;

	keeper->reading_count = 0;
	for (; used < keeper->early_count && keeper->reading_count < KEEPER_READS && !error; used++) {
		if (!is_wanted(keeper, &keeper->early[used]))
			continue;
		keeper->reading[keeper->reading_count++] = keeper->early[used];
		error = ask(keeper, &keeper->early[used]);
	}
	keeper->early_count -= used;
	memmove(keeper->early, keeper->early + used, keeper->early_count * sizeof *keeper->early);
	return error ? error : (int)keeper->reading_count * 2;
}

/* The key that the next reply is about. */
static size_t next_read(const struct keeper *keeper)
{
	return (keeper->reading_count * 2 - keeper->owed) / 2;
}

/* Those with an answer have gone on: their records may be other keys' by now. */
void values_lose(struct keeper *keeper)
{
	for (size_t i = next_read(keeper); i < keeper->reading_count; i++)
		deadlines_again(keeper->deadlines, keeper->reading[i].index, 0);
}

static void learn_value(struct keeper *keeper, const struct due_key *key, const struct redisReply *reply)
{
	int is_there = *keeper->type && strcmp(keeper->type, "none") != 0;

	if (is_there && reply->type == REDIS_REPLY_STRING && reply->len <= keeper->config.value_max)
		add(keeper, key, 0, reply->str, reply->len);
	else if (is_there)
		add(keeper, key, 1, keeper->type, strlen(keeper->type));
}

int values_learn(struct keeper *keeper, const struct redisReply *reply, uint64_t now)
{
	const struct due_key *key = &keeper->reading[next_read(keeper)];

	(void)now;
	if (keeper->owed % 2 == 0) {
		(void)snprintf(
		    keeper->type, sizeof keeper->type, "%s", reply->type == REDIS_REPLY_STATUS ? reply->str : "");
		return 0;
	}
	learn_value(keeper, key, reply);
	deadlines_again(keeper->deadlines, key->index, 0);
	return 0;
}
