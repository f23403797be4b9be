/* Hints: what is known of where jobs are ready (redis_internal.h explains how they stay true). */
#include <string.h>

#include "lib/redis/redis_internal.h"

/* So many tubes are remembered, and those that a reserve asks for. */
enum { TUBES_MAX = 8192 };

static size_t size_of(const struct redis_store *store)
{
	return sizeof(struct tube_hints) + store->shards * sizeof(struct hint);
}

/* It is in no table. */
static void let_go(struct redis_store *store, struct tube_hints *tube)
{
	store->gone_puts += tube->puts;
	store->gone_finished += tube->finished;
	store->bytes -= size_of(store);
	memory_give(store->allocator, tube, size_of(store));
}

static void forget(struct redis_store *store, struct tube_hints *tube)
{
	HASH_DEL(store->tubes, tube);
	let_go(store, tube);
}

void ww_redis_hint_free(struct redis_store *store)
{
	while (store->tubes)
		forget(store, store->tubes);
}

/* Make room: forget the first tube that no reserve has asked for since it was first before. */
static void forget_one(struct redis_store *store)
{
	for (;;) {
		struct tube_hints *tube = store->tubes;
		struct tube_hints *next = tube->hh.next;

		if (!tube->was_asked || !next) {
			forget(store, tube);
			return;
		}
		tube->was_asked = 0;
		HASH_DEL(store->tubes, tube);
		HASH_ADD(hh, store->tubes, name, (unsigned)strlen(tube->name), tube);
		if (!tube->hh.tbl)
			let_go(store, tube);
	}
}

void ww_redis_hint_bound(struct redis_store *store, size_t count)
{
	pthread_mutex_lock(&store->lock);
	while (HASH_COUNT(store->tubes) > TUBES_MAX + count)
		forget_one(store);
	pthread_mutex_unlock(&store->lock);
}

static struct tube_hints *find(const struct redis_store *store, const char *name)
{
	struct tube_hints *tube;

	HASH_FIND(hh, store->tubes, name, (unsigned)strlen(name), tube);
	return tube;
}

void ww_redis_hint_set(struct tube_hints *tube, uint32_t shard, int64_t first)
{
	struct hint *hint = &tube->of[shard];

	if (first >= 0 && first != HINT_PERHAPS)
		hint->is_grouped = first >= HINT_GROUPED;
	if (first >= HINT_GROUPED)
		first -= HINT_GROUPED;
	tube->promises += (uint32_t)(first != HINT_NONE) - (uint32_t)(hint->first != HINT_NONE);
	hint->first = first;
}

static void unlearn(const struct redis_store *store, struct tube_hints *tube)
{
	tube->promises = store->shards;
	for (uint32_t i = 0; i < store->shards; i++)
		tube->of[i] = (struct hint){.first = HINT_UNKNOWN, .heard = store->readies};
}

struct tube_hints *ww_redis_hint(struct redis_store *store, const char *name)
{
	struct tube_hints *tube = find(store, name);
	size_t length = strlen(name);

	if (tube) {
		tube->was_asked = 1;
		return tube;
	}
	tube = memory_take_zeroed(store->allocator, size_of(store));
	if (!tube)
		return NULL;
	memcpy(tube->name, name, length + 1);
	store->readies++;
	unlearn(store, tube);
	HASH_ADD(hh, store->tubes, name, (unsigned)length, tube);
	if (!tube->hh.tbl) {
		memory_give(store->allocator, tube, size_of(store));
		return NULL;
	}
	store->bytes += size_of(store);
	return tube;
}

void ww_redis_hint_forget(struct redis_store *store)
{
	struct tube_hints *tube;
	struct tube_hints *next;

	pthread_mutex_lock(&store->lock);
	store->readies++;
	HASH_ITER(hh, store->tubes, tube, next)
		unlearn(store, tube);
	pthread_cond_broadcast(&store->heard);
	pthread_mutex_unlock(&store->lock);
}

void ww_redis_hint_hear(struct redis_store *store, const char *name, uint32_t shard, int64_t priority)
{
	struct tube_hints *tube;

	pthread_mutex_lock(&store->lock);
	/* A tube without hints begins with unknown ones. */
	tube = find(store, name);
	store->readies++;
	if (tube && shard < store->shards) {
		ww_redis_hint_set(tube, shard, priority);
		tube->of[shard].heard = store->readies;
	}
	pthread_cond_broadcast(&store->heard);
	pthread_mutex_unlock(&store->lock);
}

static void perhaps(struct redis_store *store, struct tube_hints *tube, uint32_t shard, int64_t priority)
{
	int64_t first = tube->of[shard].first;

	if (first == HINT_NONE || priority < first)
		ww_redis_hint_set(tube, shard, priority);
	/* Newer than any answer that is under way. */
	tube->of[shard].heard = store->readies;
}

void ww_redis_hint_made(struct redis_store *store, const char *name, uint32_t shard, int64_t priority)
{
	struct tube_hints *tube;
	struct tube_hints *next;

	pthread_mutex_lock(&store->lock);
	store->readies++;
	if (name) {
		tube = find(store, name);
		if (tube)
			perhaps(store, tube, shard, priority);
	} else {
		HASH_ITER(hh, store->tubes, tube, next)
			perhaps(store, tube, shard, priority);
	}
	pthread_cond_broadcast(&store->heard);
	pthread_mutex_unlock(&store->lock);
}

void ww_redis_hint_count(struct redis_store *store, const char *name, uint64_t puts, uint64_t finished, uint64_t pauses)
{
	struct tube_hints *tube;

	pthread_mutex_lock(&store->lock);
	tube = find(store, name);
	/* Tubes that are only counted may not push out those that are asked for. */
	if (!tube && HASH_COUNT(store->tubes) < TUBES_MAX)
		tube = ww_redis_hint(store, name);
	if (tube) {
		tube->puts += puts;
		tube->finished += finished;
		tube->pauses += pauses;
	} else {
		store->gone_puts += puts;
		store->gone_finished += finished;
	}
	pthread_mutex_unlock(&store->lock);
}

void ww_redis_hint_finished(struct redis_store *store, const redisReply *tube)
{
	char name[WW_TUBE_MAX + 1] = "";

	if (tube->type != REDIS_REPLY_STRING || tube->len > WW_TUBE_MAX)
		return;
	memcpy(name, tube->str, tube->len);
	ww_redis_hint_count(store, name, 0, 1, 0);
}
