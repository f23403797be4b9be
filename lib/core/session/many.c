/*
 * Many keys in a call. A lookup waits twice for memory: for a line of the table, and then for the entry. A call here
 * asks for the lines of all keys before it reads any, and then for all entries. The last step does the work. Each of
 * the three steps locks each shard once. The last one reads the time under the lock, as a lookup of one key does: with
 * an earlier time a refresh could shorten what another thread has set since.
 */

#include <string.h>

#include "lib/core/session/session_internal.h"

/* Keys that are under way at a time. A processor has about as many cache misses at once. */
#define BATCH 32u
#define NONE UINT8_MAX

struct lookups {
	struct ww_session *session;
	struct ww_session_item *item;
	uint64_t ttl;
	uint32_t shards;
	uint32_t shard[BATCH]; /* that have keys here */
	uint8_t first[WW_DRIVER_SHARDS_MAX];
	uint8_t next[BATCH]; /* of the same shard, in the caller's order */
	struct session_sought sought[BATCH];
};

typedef void step_fn(struct lookups *lookups, uint32_t i);

_Static_assert(BATCH < NONE, "an item's number fits");

static void collect(struct lookups *lookups, uint32_t count)
{
	struct ww_session *session = lookups->session;

	lookups->shards = 0;
	memset(lookups->first, NONE, sizeof lookups->first);
	for (uint32_t i = count; i-- > 0;) {
		struct ww_session_item *item = &lookups->item[i];
		struct session_sought *sought = &lookups->sought[i];
		uint32_t shard;
		item->result = session_key_refused(item->key, item->length);
		if (item->result)
			continue;
		*sought = session_seek(session, item->key, item->length, 0);
		shard = (uint32_t)(sought->shard - session->shard);
		if (lookups->first[shard] == NONE)
			lookups->shard[lookups->shards++] = shard;
		lookups->next[i] = lookups->first[shard];
		lookups->first[shard] = (uint8_t)i;
	}
}

static void refuse(struct lookups *lookups, uint32_t i)
{
	lookups->item[i].result = WW_ECLOSED;
}

static inline void each(struct lookups *lookups, step_fn *step, int is_last)
{
	struct ww_session *session = lookups->session;

	for (uint32_t k = 0; k < lookups->shards; k++) {
		uint32_t shard = lookups->shard[k];
		struct timer_source *source = session->shard[shard].source;
		ww_source_lock(source);
		step_fn *act = session->closing ? refuse : step;
		uint64_t now = is_last ? ww_driver_time(session->driver) : 0;
		for (uint8_t i = lookups->first[shard]; i != NONE; i = lookups->next[i]) {
			lookups->sought[i].now = now;
			act(lookups, i);
		}
		ww_source_unlock(source);
	}
}

static void ask_for_line(struct lookups *lookups, uint32_t i)
{
	const struct session_sought *sought = &lookups->sought[i];

	table_prefetch(&sought->shard->table, sought->hash);
}

static void ask_for_entry(struct lookups *lookups, uint32_t i)
{
	const struct session_sought *sought = &lookups->sought[i];
	uint32_t index = table_guess(&sought->shard->table, sought->hash);
	const char *entry;

	if (index == TABLE_NONE)
		return;
	entry = slab_at(&sought->shard->slab, index);
	__builtin_prefetch(entry, 1);
	/* Most entries lie in two lines. */
	__builtin_prefetch(entry + sizeof(struct session_entry) - 1, 1);
}

/* ---- What is to be done */

static void get(struct lookups *lookups, uint32_t i)
{
	struct ww_session_item *item = &lookups->item[i];
	const struct session_entry *entry = ww_session_look_up(&lookups->sought[i]);

	item->result = entry != NULL;
	if (entry)
		item->value = entry_value(entry);
}

static void refresh(struct lookups *lookups, uint32_t i)
{
	struct ww_session_item *item = &lookups->item[i];

	item->result = ww_session_prolong(&lookups->sought[i], lookups->ttl, &item->value);
}

static void cut(struct lookups *lookups, uint32_t i)
{
	struct ww_session_item *item = &lookups->item[i];

	item->result = ww_session_cut(&lookups->sought[i], WW_SESSION_ANY, &item->value);
}

static int many(
    struct ww_session *session, struct ww_session_item *items, size_t count, uint64_t ttl, size_t *found, step_fn *what)
{
	struct lookups lookups;
	size_t hits = 0;
	int error = items || !count ? ww_session_refuses(session) : WW_EINVAL;

	if (!error && session->closing)
		error = WW_ECLOSED;
	if (error)
		return error;
	lookups.session = session;
	lookups.ttl = ttl;
	for (size_t done = 0; done < count; done += BATCH) {
		uint32_t size = count - done < BATCH ? (uint32_t)(count - done) : BATCH;
		lookups.item = items + done;
		collect(&lookups, size);
		each(&lookups, ask_for_line, 0);
		each(&lookups, ask_for_entry, 0);
		each(&lookups, what, 1);
		for (uint32_t i = 0; i < size; i++) {
			hits += lookups.item[i].result > 0;
			if (lookups.item[i].result < 0 && !error)
				error = lookups.item[i].result;
		}
	}
	if (found)
		*found = hits;
	return error;
}

int ww_session_get_many(struct ww_session *session, struct ww_session_item *items, size_t count, size_t *found)
{
	return many(session, items, count, 0, found, get);
}

int ww_session_refresh_many(
    struct ww_session *session, struct ww_session_item *items, size_t count, uint64_t ttl, size_t *found)
{
	return many(session, items, count, ttl, found, refresh);
}

int ww_session_delete_many(struct ww_session *session, struct ww_session_item *items, size_t count, size_t *found)
{
	return many(session, items, count, 0, found, cut);
}
