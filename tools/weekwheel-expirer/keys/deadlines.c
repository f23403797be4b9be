/* The keys with a deadline: see deadlines.h. */
#include "tools/weekwheel-expirer/keys/deadlines.h"

#include <stdlib.h>
#include <string.h>

#include "lib/base/hash.h"
#include "lib/base/memory.h"
#include "lib/base/slab.h"
#include "lib/base/table.h"
#include "weekwheel/wheel.h"

/* Records that a sweep and a walk look at in one go; expiries taken at once. */
enum { SWEEP = 4096, WALK = 1024, TAKE = 64 };

/* Records have room for keys of some lengths, and each length has a slab of its own. */
static const uint16_t room_of[] = {16, 24, 32, 40, 48, 64, 96, 128};
enum { ROOMS = sizeof room_of / sizeof *room_of, NEAR = 128 };

/* An index is the number of the room above the index in its slab. */
enum { ROOM_SHIFT = 26 };
_Static_assert(SLAB_MAX == 1U << ROOM_SHIFT, "all indices of a slab are below the number of the room");

/* A certainty: `at` is no deadline. */
enum { GUESS = UINT8_MAX };

struct kept_key {
	struct ww_timer timer;
	uint64_t at; /* when it is due; its timer may fire later */
	uint32_t index;
	uint16_t length;
	uint8_t seen;      /* the pass that saw it last; 0: the record is unused */
	uint8_t certainty; /* the certainty of `deadlines` when it was set; 0: doubted; GUESS */
	char key[];        /* of one that is longer than NEAR, where it is, in the smallest room */
};

struct deadlines {
	const struct ww_allocator *allocator;
	struct ww_wheel *wheel;
	struct slab slab[ROOMS];
	struct table table;
	struct hash_secret secret;
	size_t far_bytes;
	size_t guesses; /* records with that certainty */
	uint64_t lead;
	uint64_t shift; /* how far the wheel's time, which never runs backwards, is ahead */
	uint32_t swept; /* records below were swept */
	uint8_t pass;
	uint8_t certainty; /* grows when all keys are doubted */
};

/* ---- Making */

static struct ww_wheel *make_wheel(void)
{
	struct ww_wheel_config config;
	struct ww_wheel *wheel = NULL;

	(void)ww_wheel_config_default(&config);
	config.tick_ns = 1000000;
	config.levels = WW_LEVELS_MAX;
	for (int i = 0; i < WW_LEVELS_MAX; i++)
		config.slots[i] = WW_SLOTS_MAX;
	return ww_wheel_create(&wheel, &config) == WW_OK ? wheel : NULL;
}

struct deadlines *deadlines_make(void)
{
	struct deadlines *made = calloc(1, sizeof *made);

	if (!made)
		return NULL;
	made->allocator = ww_allocator_default();
	made->pass = made->certainty = 1;
	for (size_t room = 0; room < ROOMS; room++)
		ww_slab_init(&made->slab[room], sizeof(struct kept_key) + room_of[room], made->allocator);
	made->wheel = make_wheel();
	if (!made->wheel || ww_hash_secret_make(&made->secret) || ww_table_init(&made->table, made->allocator)) {
		deadlines_free(made);
		return NULL;
	}
	return made;
}

void deadlines_set_lead(struct deadlines *deadlines, uint64_t lead)
{
	deadlines->lead = lead;
}

static struct kept_key *record_at(const struct deadlines *deadlines, uint32_t index)
{
	return slab_at(&deadlines->slab[index >> ROOM_SHIFT], index % SLAB_MAX);
}

/* Find the first record, used or not, from that index on, and store its index. Returns NULL beyond the last. */
static struct kept_key *record_from(const struct deadlines *deadlines, uint32_t *index)
{
	uint32_t room = *index >> ROOM_SHIFT;

	while (room < ROOMS && *index % SLAB_MAX >= slab_end(&deadlines->slab[room]))
		*index = ++room << ROOM_SHIFT;
	return room < ROOMS ? record_at(deadlines, *index) : NULL;
}

static const char *key_of(const struct kept_key *record)
{
	const char *far;

	if (record->length <= NEAR)
		return record->key;
	memcpy(&far, record->key, sizeof far);
	return far;
}

static void free_key(struct deadlines *deadlines, const struct kept_key *record)
{
	if (record->length <= NEAR)
		return;
	deadlines->far_bytes -= record->length;
	memory_give(deadlines->allocator, (char *)key_of(record), record->length);
}

void deadlines_free(struct deadlines *deadlines)
{
	const struct kept_key *record;

	if (!deadlines)
		return;
	for (uint32_t i = 0; (record = record_from(deadlines, &i)) != NULL; i++)
		if (record->seen)
			free_key(deadlines, record);
	(void)ww_wheel_destroy(deadlines->wheel);
	ww_table_destroy(&deadlines->table);
	for (size_t room = 0; room < ROOMS; room++)
		ww_slab_destroy(&deadlines->slab[room]);
	free(deadlines);
}

/* ---- Finding */

struct sought_key {
	const struct deadlines *deadlines;
	const char *key;
	size_t length;
};

static int is_same(const void *context, uint32_t index)
{
	const struct sought_key *sought = context;
	const struct kept_key *record = record_at(sought->deadlines, index);

	return record->length == sought->length && memcmp(key_of(record), sought->key, sought->length) == 0;
}

static uint64_t hash_of(const struct deadlines *deadlines, const char *key, size_t length)
{
	return ww_hash_bytes(&deadlines->secret, key, length);
}

static uint32_t find(const struct deadlines *deadlines, uint64_t hash, const char *key, size_t length)
{
	const struct sought_key sought = {deadlines, key, length};

	return table_find(&deadlines->table, hash, is_same, &sought);
}

void deadlines_look(const struct deadlines *deadlines, uint32_t index, struct known_key *known)
{
	const struct kept_key *record = record_at(deadlines, index);

	*known = (struct known_key){.index = index,
	    .at = record->at,
	    .is_idle = ww_timer_pending(&record->timer) == 0,
	    .is_guess = record->certainty == GUESS,
	    .is_sure = record->certainty == deadlines->certainty};
}

int deadlines_find(const struct deadlines *deadlines, const char *key, size_t length, struct known_key *known)
{
	uint32_t index = find(deadlines, hash_of(deadlines, key, length), key, length);

	if (index != TABLE_NONE)
		deadlines_look(deadlines, index, known);
	return index != TABLE_NONE;
}

const char *deadlines_key(const struct deadlines *deadlines, uint32_t index, size_t *length)
{
	const struct kept_key *record = record_at(deadlines, index);

	*length = record->length;
	return key_of(record);
}

int deadlines_is_due(const struct deadlines *deadlines, uint32_t index)
{
	const struct kept_key *record = record_at(deadlines, index);

	return record->seen && ww_timer_pending(&record->timer) == 0;
}

/* ---- Changing */

static int copy_key(struct deadlines *deadlines, struct kept_key *record, const char *key, size_t length)
{
	char *to = length <= NEAR ? record->key : memory_take(deadlines->allocator, length);

	if (!to)
		return -1;
	memcpy(to, key, length);
	if (length > NEAR) {
		memcpy(record->key, &to, sizeof to);
		deadlines->far_bytes += length;
	}
	record->length = (uint16_t)length;
	return 0;
}

static uint32_t take(struct deadlines *deadlines, size_t length)
{
	uint32_t room = 0;
	uint32_t index;

	while (length <= NEAR && length > room_of[room])
		room++;
	index = ww_slab_take(&deadlines->slab[room]);
	return index == SLAB_NONE ? index : room << ROOM_SHIFT | index;
}

static void give(struct deadlines *deadlines, uint32_t index)
{
	ww_slab_give(&deadlines->slab[index >> ROOM_SHIFT], index % SLAB_MAX);
}

static struct kept_key *add(struct deadlines *deadlines, uint64_t hash, const char *key, size_t length)
{
	uint32_t index = take(deadlines, length);
	struct kept_key *record;

	if (index == SLAB_NONE)
		return NULL;
	record = record_at(deadlines, index);
	memset(record, 0, sizeof *record);
	record->index = index;
	if (copy_key(deadlines, record, key, length) != 0) {
		give(deadlines, index);
		return NULL;
	}
	if (ww_table_insert(&deadlines->table, hash, index) != WW_OK) {
		free_key(deadlines, record);
		give(deadlines, index);
		return NULL;
	}
	return record;
}

static int file(struct deadlines *deadlines, struct kept_key *record, uint64_t at)
{
	uint64_t next = ww_wheel_now(deadlines->wheel) + 1;
	uint64_t when = at < WW_TIME_MAX - deadlines->shift ? at + deadlines->shift : WW_TIME_MAX;

	return ww_wheel_schedule_at(deadlines->wheel, &record->timer, when < next ? next : when) == WW_OK ? 0 : -1;
}

/* Let it be due early. */
static int file_early(struct deadlines *deadlines, struct kept_key *record)
{
	return file(deadlines, record, record->at > deadlines->lead ? record->at - deadlines->lead : 0);
}

static void set_certainty(struct deadlines *deadlines, struct kept_key *record, uint8_t certainty)
{
	deadlines->guesses += (size_t)(certainty == GUESS) - (size_t)(record->certainty == GUESS);
	record->certainty = certainty;
}

int deadlines_set(struct deadlines *deadlines, const char *key, size_t length, uint64_t at)
{
	uint64_t hash = hash_of(deadlines, key, length);
	uint32_t index = find(deadlines, hash, key, length);
	struct kept_key *record = index != TABLE_NONE ? record_at(deadlines, index) : add(deadlines, hash, key, length);

	if (!record)
		return -1;
	record->seen = deadlines->pass;
	set_certainty(deadlines, record, deadlines->certainty);
	record->at = at > WW_TIME_MAX ? WW_TIME_MAX : at;
	return file_early(deadlines, record);
}

int deadlines_guess(struct deadlines *deadlines, const char *key, size_t length, uint64_t at)
{
	struct known_key known;

	if (deadlines_set(deadlines, key, length, at) != 0)
		return -1;
	(void)deadlines_find(deadlines, key, length, &known);
	set_certainty(deadlines, record_at(deadlines, known.index), GUESS);
	return 0;
}

void deadlines_again(struct deadlines *deadlines, uint32_t index, uint64_t when)
{
	struct kept_key *record = record_at(deadlines, index);

	(void)file(deadlines, record, record->at > when ? record->at : when);
}

void deadlines_outlive(struct deadlines *deadlines, uint32_t index, uint64_t when)
{
	set_certainty(deadlines, record_at(deadlines, index), GUESS);
	deadlines_again(deadlines, index, when);
}

void deadlines_doubt(struct deadlines *deadlines, uint32_t index)
{
	if (record_at(deadlines, index)->certainty != GUESS)
		record_at(deadlines, index)->certainty = 0;
}

void deadlines_doubt_all(struct deadlines *deadlines)
{
	deadlines->certainty = deadlines->certainty == GUESS - 1 ? 1 : (uint8_t)(deadlines->certainty + 1);
}

void deadlines_drop(struct deadlines *deadlines, uint32_t index)
{
	struct kept_key *record = record_at(deadlines, index);

	(void)ww_wheel_cancel(deadlines->wheel, &record->timer);
	(void)ww_table_remove(&deadlines->table, hash_of(deadlines, key_of(record), record->length), index);
	free_key(deadlines, record);
	set_certainty(deadlines, record, 0);
	record->seen = 0;
	give(deadlines, index);
}

/* ---- Time */

size_t deadlines_due(struct deadlines *deadlines, uint64_t now, struct due_key *due, size_t most)
{
	struct ww_expiry batch[TAKE];
	size_t count = 0;
	size_t got = 0;
	int more = 1;

	while (more == 1 && count < most) {
		size_t room = most - count < TAKE ? most - count : TAKE;

		more = ww_wheel_advance_batch(deadlines->wheel, now + deadlines->shift, batch, room, &got);
		for (size_t i = 0; i < got; i++) {
			struct kept_key *record = WW_TIMER_OWNER(batch[i].timer, struct kept_key, timer);

			/* It was filed before a step back. */
			if (record->at > now + deadlines->lead)
				(void)file_early(deadlines, record);
			else
				due[count++] = (struct due_key){.index = record->index, .at = record->at};
		}
	}
	return count;
}

uint64_t deadlines_next(const struct deadlines *deadlines)
{
	uint64_t when = WW_NEVER;

	(void)ww_wheel_next(deadlines->wheel, &when);
	return when == WW_NEVER ? when : when - deadlines->shift;
}

uint64_t deadlines_now(const struct deadlines *deadlines)
{
	return ww_wheel_now(deadlines->wheel) - deadlines->shift;
}

uint64_t deadlines_step_back(struct deadlines *deadlines, uint64_t now)
{
	uint64_t was = deadlines_now(deadlines);

	if (now >= was)
		return 0;
	deadlines->shift += was - now;
	return was - now;
}

/* ---- Passes */

void deadlines_pass(struct deadlines *deadlines)
{
	deadlines->pass = deadlines->pass == UINT8_MAX ? 1 : (uint8_t)(deadlines->pass + 1);
	deadlines->swept = 0;
}

int deadlines_sweep(struct deadlines *deadlines, uint64_t now, deadlines_fn *fn, void *context)
{
	const struct kept_key *record = NULL;

	for (uint32_t left = SWEEP; left > 0 && (record = record_from(deadlines, &deadlines->swept)) != NULL;
	     left--, deadlines->swept++) {
		/* An idle one is waiting for Redis's answer. */
		if (record->seen && record->seen != deadlines->pass && record->at > now &&
		    ww_timer_pending(&record->timer) == 1)
			fn(context, deadlines->swept);
	}
	return record != NULL;
}

int deadlines_walk(const struct deadlines *deadlines, uint32_t *from, deadlines_fn *fn, void *context)
{
	const struct kept_key *record = NULL;

	for (uint32_t left = WALK; left > 0 && (record = record_from(deadlines, from)) != NULL; left--, (*from)++)
		if (record->seen)
			fn(context, *from);
	return record != NULL;
}

size_t deadlines_count(const struct deadlines *deadlines)
{
	return table_count(&deadlines->table);
}

size_t deadlines_guesses(const struct deadlines *deadlines)
{
	return deadlines->guesses;
}

size_t deadlines_bytes(const struct deadlines *deadlines)
{
	size_t bytes = ww_table_bytes(&deadlines->table) + deadlines->far_bytes;

	for (size_t room = 0; room < ROOMS; room++)
		bytes += ww_slab_bytes(&deadlines->slab[room]);
	return bytes;
}
