/* Taking out all entries, a few at a time. In between, other threads get the shard's lock. */

#include "lib/core/session/session_internal.h"

/* Records that are looked at under one lock. */
#define PIECE 256u

/* The lock is held: take what was set up to the version out of a piece of the shard, as a chain of firings. */
static struct firing *take_piece(struct session_shard *shard, uint32_t begin, uint64_t version)
{
	struct firing *chain = NULL;

	for (uint32_t i = begin; i < begin + PIECE; i++) {
		struct session_entry *entry = slab_at(&shard->slab, i);
		if (!entry_is_in(entry) || (entry_version(entry) & ~VERSION_LOADED) > version)
			continue;
		ww_session_entry_remove(shard, entry, 1);
		entry->as.firing.next = chain;
		chain = &entry->as.firing;
	}
	return chain;
}

static size_t report(struct ww_session *session, const struct firing *chain)
{
	size_t count = 0;

	for (; chain; chain = chain->next, count++) {
		const struct session_entry *entry = (const struct session_entry *)(const void *)chain;
		ww_session_report(session, entry_key(entry), entry->length, entry_value(entry), WW_GONE_CLEARED, 0);
	}
	return count;
}

/* The lock is held. */
static void free_chain(struct session_shard *shard, struct firing *chain)
{
	struct firing *next;

	for (; chain; chain = next) {
		next = chain->next;
		ww_session_entry_free(shard, (struct session_entry *)(void *)chain);
	}
}

/* What was there when this began has no later version than the shard had then: what gone sets stays. */
static size_t clear_shard(struct session_shard *shard)
{
	size_t count = 0;

	ww_source_lock(shard->source);
	uint32_t end = table_count(&shard->table) ? slab_end(&shard->slab) : 0;
	uint64_t version = shard->version;
	ww_session_take_outdate_all(shard, WW_GONE_CLEARED);
	ww_session_recall_forget_all(shard);
	for (uint32_t i = 0; i < end; i += PIECE) {
		struct firing *chain = take_piece(shard, i, version);
		ww_source_unlock(shard->source);
		count += report(shard->session, chain);
		ww_source_lock(shard->source);
		free_chain(shard, chain);
	}
	/* Of what has expired meanwhile. */
	ww_session_recall_forget_all(shard);
	ww_source_unlock(shard->source);
	return count;
}

size_t ww_session_clear_all(struct ww_session *session)
{
	size_t count = 0;

	for (uint32_t i = 0; i < session->shard_count; i++)
		count += clear_shard(&session->shard[i]);
	return count;
}

int ww_session_clear(struct ww_session *session, size_t *count)
{
	size_t cleared;
	int error = ww_session_refuses(session);

	if (!error && session->closing)
		error = WW_ECLOSED;
	if (error)
		return error;
	cleared = ww_session_clear_all(session);
	if (count)
		*count = cleared;
	return WW_OK;
}
