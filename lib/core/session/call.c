/* The calls on a session map but ww_session_take. */

#include "lib/core/session/session_internal.h"

/* ---- Setting */

int ww_session_ttl_refused(const struct ww_session *session, uint64_t now, uint64_t *ttl)
{
	if (*ttl > WW_SESSION_TTL_MAX)
		return WW_EINVAL;
	if (*ttl == 0)
		*ttl = session->config.ttl;
	if (now > WW_DRIVER_TIME_MAX || *ttl + ww_session_jitter_most(session, *ttl) > WW_DRIVER_TIME_MAX - now)
		return WW_EOVERFLOW;
	return WW_OK;
}

/* The key has an entry already. */
static void replace(
    const struct session_sought *sought, struct session_entry *entry, void *value, void **former, struct taken_out *out)
{
	struct session_shard *shard = sought->shard;
	int expired = ww_session_entry_deadline(shard, entry) <= sought->now;

	*out = (struct taken_out){
	    .value = entry_value(entry),
	    .why = expired ? WW_GONE_EXPIRED : WW_GONE_REPLACED,
	    .is = expired || !former,
	};
	shard->stats.expired += (uint64_t)expired;
	if (former)
		*former = expired ? NULL : out->value;
	entry_set_value(entry, value);
	ww_session_entry_used(shard, entry);
}

/* If the shard is over its limit, take out the entry unused for longest. Its memory stays, to tell its key. */
static struct session_entry *evict(struct session_shard *shard)
{
	struct session_entry *oldest;

	if (!shard->session->shard_limit || table_count(&shard->table) <= shard->session->shard_limit)
		return NULL;
	oldest = slab_at(&shard->slab, shard->oldest);
	ww_session_entry_remove(shard, oldest, 1);
	shard->stats.evicted++;
	return oldest;
}

/* No lock is held: tell an entry that was taken out, and free it. */
static void tell_and_free(struct session_shard *shard, struct session_entry *entry, enum ww_gone why)
{
	ww_session_tell(shard->session, entry_key(entry), entry->length, entry_value(entry), why);
	ww_source_lock(shard->source);
	ww_session_entry_free(shard, entry);
	ww_source_unlock(shard->source);
}

int ww_session_put(const struct session_sought *sought, void *value, uint64_t ttl, void **former, struct taken_out *out)
{
	struct session_shard *shard = sought->shard;
	struct session_entry *entry = ww_session_entry_find(sought);

	*out = (struct taken_out){0};
	if (entry)
		replace(sought, entry, value, former, out);
	else {
		entry = ww_session_entry_add(sought, value);
		if (!entry)
			return WW_ENOMEM;
		if (former)
			*former = NULL;
		out->evicted = evict(shard);
	}
	ww_session_entry_place(shard, entry, sought->now, ttl);
	return WW_OK;
}

void ww_session_tell_taken(const struct session_sought *sought, const struct taken_out *out)
{
	struct session_shard *shard = sought->shard;

	if (out->is)
		ww_session_tell(shard->session, sought->key, sought->length, out->value, out->why);
	if (out->evicted)
		tell_and_free(shard, out->evicted, WW_GONE_EVICTED);
}

int ww_session_set(struct ww_session *session, const void *key, size_t length, void *value, uint64_t ttl, void **former)
{
	struct session_sought sought;
	struct taken_out out = {0};
	int error = ww_session_enter(session, key, length, &sought);

	if (error)
		return error;
	error = ww_session_ttl_refused(session, sought.now, &ttl);
	if (!error)
		error = ww_session_put(&sought, value, ttl, former, &out);
	ww_source_unlock(sought.shard->source);
	ww_session_tell_taken(&sought, &out);
	return error;
}

/* ---- Looking up */

/* The lock is held: the entry if it has not expired. */
static struct session_entry *find_live(const struct session_sought *sought)
{
	struct session_entry *entry = ww_session_entry_find(sought);

	return entry && ww_session_entry_deadline(sought->shard, entry) > sought->now ? entry : NULL;
}

/* The lock is held: count a hit, which is a use of the entry, or a miss if the entry is NULL. */
static void count_look_up(struct session_shard *shard, struct session_entry *entry)
{
	if (!entry) {
		shard->stats.misses++;
		return;
	}
	shard->stats.hits++;
	ww_session_entry_used(shard, entry);
}

static struct session_entry *look_up(const struct session_sought *sought)
{
	struct session_entry *entry = find_live(sought);

	count_look_up(sought->shard, entry);
	return entry;
}

int ww_session_get(struct ww_session *session, const void *key, size_t length, void **value)
{
	struct session_sought sought;
	const struct session_entry *entry;
	int error = ww_session_enter(session, key, length, &sought);

	if (error)
		return error;
	entry = look_up(&sought);
	if (entry && value)
		*value = entry_value(entry);
	ww_source_unlock(sought.shard->source);
	return entry != NULL;
}

int ww_session_refresh(struct ww_session *session, const void *key, size_t length, uint64_t ttl, void **value)
{
	struct session_sought sought;
	struct session_entry *entry;
	int error = ww_session_enter(session, key, length, &sought);

	if (error)
		return error;
	entry = find_live(&sought);
	if (entry && !ttl)
		ttl = entry->ttl_us * WW_MICROSECOND;
	if (entry || ttl)
		error = ww_session_ttl_refused(session, sought.now, &ttl);
	if (!error)
		count_look_up(sought.shard, entry);
	if (!error && entry) {
		ww_session_entry_place(sought.shard, entry, sought.now, ttl);
		if (value)
			*value = entry_value(entry);
	}
	ww_source_unlock(sought.shard->source);
	return error ? error : entry != NULL;
}

int ww_session_look(struct ww_session *session, const void *key, size_t length, ww_look_fn *look, void *context)
{
	struct session_sought sought;
	const struct session_entry *entry;
	int error = look ? ww_session_enter(session, key, length, &sought) : WW_EINVAL;

	if (error)
		return error;
	entry = look_up(&sought);
	if (entry)
		ww_session_call_look(look, entry_value(entry), context);
	ww_source_unlock(sought.shard->source);
	return entry != NULL;
}

int ww_session_time_left(struct ww_session *session, const void *key, size_t length, uint64_t *ns)
{
	struct session_sought sought;
	const struct session_entry *entry;
	uint64_t deadline = 0;
	int error = ns ? ww_session_enter(session, key, length, &sought) : WW_EINVAL;

	if (error)
		return error;
	entry = ww_session_entry_find(&sought);
	if (entry)
		deadline = ww_session_entry_deadline(sought.shard, entry);
	ww_source_unlock(sought.shard->source);
	if (deadline <= sought.now)
		return 0;
	*ns = deadline - sought.now;
	return 1;
}

/* ---- Taking out */

int ww_session_delete(struct ww_session *session, const void *key, size_t length, void **value)
{
	struct session_sought sought;
	struct session_entry *entry;
	void *taken = NULL;
	int found;
	int error = ww_session_enter(session, key, length, &sought);

	if (error)
		return error;
	entry = find_live(&sought);
	found = entry != NULL;
	if (found) {
		taken = entry_value(entry);
		ww_session_entry_remove(sought.shard, entry, 1);
		ww_session_entry_free(sought.shard, entry);
	}
	ww_source_unlock(sought.shard->source);
	if (found && value)
		*value = taken;
	else if (found)
		ww_session_tell(session, sought.key, length, taken, WW_GONE_DELETED);
	return found;
}

/* Take out all entries of the shard, as a chain of firings. */
static struct firing *take_all(struct session_shard *shard)
{
	struct ww_expiry batch[SOURCE_BATCH];
	struct firing *chain = NULL;
	size_t count;

	ww_source_lock(shard->source);
	while ((count = ww_source_drain(shard->source, batch)) > 0)
		for (size_t i = 0; i < count; i++) {
			struct session_entry *entry = (struct session_entry *)(void *)batch[i].timer;
			ww_session_entry_remove(shard, entry, 0);
			entry->as.firing.next = chain;
			chain = &entry->as.firing;
		}
	ww_source_unlock(shard->source);
	return chain;
}

/* A shard is emptied first and told afterwards. What gone sets meanwhile stays, and cannot make this endless. */
size_t ww_session_take_out(struct ww_session *session)
{
	size_t cleared = 0;

	for (uint32_t i = 0; i < session->shard_count; i++) {
		struct session_shard *shard = &session->shard[i];
		struct firing *next;
		for (struct firing *firing = take_all(shard); firing; firing = next, cleared++) {
			next = firing->next;
			tell_and_free(shard, (struct session_entry *)(void *)firing, WW_GONE_CLEARED);
		}
	}
	return cleared;
}

int ww_session_clear(struct ww_session *session, size_t *count)
{
	size_t cleared;
	int error = ww_session_refuses(session);

	if (!error && session->closing)
		error = WW_ECLOSED;
	if (error)
		return error;
	cleared = ww_session_take_out(session);
	if (count)
		*count = cleared;
	return WW_OK;
}
