/* Entries of a shard: finding, adding, ageing. */

#include <stdatomic.h>
#include <string.h>

#include "lib/base/random.h"
#include "lib/core/session/session_internal.h"

static struct session_entry *entry_at(const struct session_shard *shard, uint32_t index)
{
	return slab_at(&shard->slab, index);
}

static int same_key(const void *context, uint32_t index)
{
	const struct session_sought *sought = context;
	const struct session_entry *entry = entry_at(sought->shard, index);

	return entry->length == sought->length && memcmp(entry_key(entry), sought->key, sought->length) == 0;
}

struct session_entry *ww_session_entry_find(const struct session_sought *sought)
{
	uint32_t index = table_find(&sought->shard->table, sought->hash, same_key, sought);

	return index == TABLE_NONE ? NULL : entry_at(sought->shard, index);
}

void ww_session_entry_found(
    const struct session_sought *sought, struct session_entry *entry, struct ww_session_found *found)
{
	const struct ww_session *session = sought->shard->session;
	uint64_t deadline = entry_deadline(sought->shard, entry);
	uint64_t end = session->at_end ? *entry_end(session, entry) : END_NONE;

	*found = (struct ww_session_found){
	    .value = entry_value(entry),
	    .version = entry_version(entry),
	    .ttl = entry->ttl_us * WW_MICROSECOND,
	    .deadline = deadline,
	    .left = deadline > sought->now ? deadline - sought->now : 0,
	    .end_left = end == END_NONE     ? WW_SESSION_NO_END
	                : end > sought->now ? end - sought->now
	                                    : 0,
	    .weight = session->at_weight ? *entry_weight(session, entry) : 0,
	    .flags = session->at_use && entry_use(session, entry)->list == LIST_PINNED ? WW_SESSION_PINNED : 0,
	};
}

void ww_session_entry_used(struct session_shard *shard, struct session_entry *entry)
{
	if (shard->session->at_use)
		ww_session_limit_used(shard, entry);
}

/* ---- Adding and removing */

/* Copy the key into the entry. Returns 0 when there is no memory. */
static int set_key(struct session_entry *entry, const struct session_sought *sought)
{
	struct session_shard *shard = sought->shard;
	const struct ww_allocator *allocator = shard->session->allocator;
	void *to = entry->key.inline_bytes;

	if (sought->length > KEY_INLINE) {
		to = allocator->allocate(allocator->user, sought->length);
		if (!to)
			return 0;
		entry->key.block = to;
		shard->key_bytes += sought->length;
	}
	if (sought->length)
		memcpy(to, sought->key, sought->length);
	/* Last: a child that is forked meanwhile frees blocks by length. */
	atomic_signal_fence(memory_order_release);
	entry->length = (uint16_t)sought->length;
	return 1;
}

void ww_session_entry_free_block(const struct ww_session *session, struct session_entry *entry)
{
	void *block = entry->length > KEY_INLINE ? entry->key.block : NULL;

	if (!block)
		return;
	/* First: a child that is forked meanwhile frees the blocks that it finds. */
	entry->key.block = NULL;
	atomic_signal_fence(memory_order_release);
	session->allocator->free(session->allocator->user, block, entry->length);
}

void ww_session_entry_free_key(struct session_shard *shard, struct session_entry *entry)
{
	if (entry->length > KEY_INLINE)
		shard->key_bytes -= entry->length;
	ww_session_entry_free_block(shard->session, entry);
	entry->length = 0;
}

void ww_session_entry_free(struct session_shard *shard, struct session_entry *entry)
{
	ww_session_entry_free_key(shard, entry);
	ww_slab_give(&shard->slab, entry->index);
}

void ww_session_entry_collect(struct session_shard *shard, size_t most)
{
	struct session_entry *entry;

	for (; most && (entry = slab_returned(&shard->told)); most--)
		ww_session_entry_free(shard, entry);
}

struct session_entry *ww_session_entry_add(const struct session_sought *sought)
{
	struct session_shard *shard = sought->shard;
	struct session_entry *entry;
	uint32_t index;

	if (ww_source_prepare(shard->source))
		return NULL;
	/* More than one, so that there are fewer and fewer. */
	ww_session_entry_collect(shard, 2);
	index = ww_slab_take(&shard->slab);
	if (index == SLAB_NONE)
		return NULL;
	entry = entry_at(shard, index);
	entry->index = index;
	entry->length = 0;
	if (!set_key(entry, sought) || ww_table_insert(&shard->table, sought->hash, index)) {
		ww_session_entry_free(shard, entry);
		return NULL;
	}
	entry->as.timer = (struct ww_timer){0};
	return entry;
}

void ww_session_entry_remove(struct session_shard *shard, struct session_entry *entry, int from_wheel)
{
	uint64_t hash = ww_hash_bytes(&shard->session->secret, entry_key(entry), entry->length);

	(void)ww_table_remove(&shard->table, hash, entry->index);
	entry->ttl_us = 0; /* a walk through the records passes it over from now on */
	if (shard->session->at_use)
		ww_session_limit_remove(shard, entry);
	if (from_wheel)
		ww_source_cancel(shard->source, &entry->as.timer);
}

/* ---- Ageing */

uint64_t ww_session_jitter_most(const struct ww_session *session, uint64_t ttl)
{
	uint64_t most = ttl / 1000 * session->config.jitter;

	return most < session->config.jitter_max ? most : session->config.jitter_max;
}

/* What is added to a TTL: evenly distributed over what the configuration allows. */
static uint64_t jitter(struct session_shard *shard, uint64_t ttl)
{
	uint64_t most = ww_session_jitter_most(shard->session, ttl);

	return most ? random_below(&shard->random, most + 1) : 0;
}

static inline void place_at(struct session_shard *shard, struct session_entry *entry, uint64_t deadline, uint64_t ttl)
{
	uint64_t tick_ns = shard->session->tick_ns;
	uint64_t beyond;

	if (shard->session->at_end && *entry_end(shard->session, entry) < deadline)
		deadline = *entry_end(shard->session, entry);
	beyond = deadline % tick_ns;
	entry->ttl_us = (ttl + WW_MICROSECOND - 1) / WW_MICROSECOND & ((UINT64_C(1) << 48) - 1);
	entry->early = (uint32_t)(beyond ? tick_ns - beyond : 0);
	if (ww_timer_pending(&entry->as.timer))
		ww_source_move(shard->source, &entry->as.timer, deadline);
	else
		ww_source_schedule(shard->source, &entry->as.timer, deadline);
}

void ww_session_entry_place(struct session_shard *shard, struct session_entry *entry, uint64_t now, uint64_t ttl)
{
	place_at(shard, entry, now + ttl + jitter(shard, ttl), ttl);
}

void ww_session_entry_place_at(
    struct session_shard *shard, struct session_entry *entry, uint64_t deadline, uint64_t ttl)
{
	place_at(shard, entry, deadline, ttl);
}
