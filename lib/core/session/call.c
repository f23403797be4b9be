/* The calls on a session map, except ww_session_take. */

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

uint64_t ww_session_end(const struct ww_session *session, uint64_t now, uint64_t lifetime)
{
	if (!lifetime)
		lifetime = session->config.lifetime ? session->config.lifetime : END_NONE;
	return lifetime > WW_DRIVER_TIME_MAX - now ? END_NONE : now + lifetime;
}

int ww_session_set(struct ww_session *session, const void *key, size_t length, void *value, uint64_t ttl, void **former)
{
	struct session_sought sought;
	struct session_content content;
	struct taken_out out = {0};
	int error = ww_session_enter(session, key, length, &sought);

	if (error)
		return error;
	error = ww_session_ttl_refused(session, sought.now, &ttl);
	if (!error) {
		content =
		    (struct session_content){.value = value, .ttl = ttl, .end = ww_session_end(session, sought.now, 0)};
		if (!ww_session_store(&sought, ww_session_entry_find(&sought), &content, former, &out))
			error = WW_ENOMEM;
	}
	ww_source_unlock(sought.shard->source);
	ww_session_report_taken(&sought, &out);
	return error;
}

/* ---- Looking up */

/* The lock is held: count a hit, which is a use of the entry, or a miss if the entry is NULL. */
static inline void count_look_up(struct session_shard *shard, struct session_entry *entry)
{
	if (!entry) {
		shard->stats.misses++;
		return;
	}
	shard->stats.hits++;
	ww_session_entry_used(shard, entry);
}

static inline struct session_entry *look_up(const struct session_sought *sought)
{
	struct session_entry *entry = entry_live(sought);
	uint64_t ttl;

	count_look_up(sought->shard, entry);
	if (entry && sought->shard->session->config.flags & WW_SESSION_RENEW) {
		ttl = entry->ttl_us * WW_MICROSECOND;
		/* At the end of all time it stays as it is. */
		if (!ww_session_ttl_refused(sought->shard->session, sought->now, &ttl))
			ww_session_entry_place(sought->shard, entry, sought->now, ttl);
	}
	return entry;
}

struct session_entry *ww_session_look_up(const struct session_sought *sought)
{
	return look_up(sought);
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

int ww_session_find(struct ww_session *session, const void *key, size_t length, struct ww_session_found *found)
{
	struct session_sought sought;
	struct session_entry *entry;
	int error = found ? ww_session_enter(session, key, length, &sought) : WW_EINVAL;

	if (error)
		return error;
	entry = look_up(&sought);
	if (entry)
		ww_session_entry_found(&sought, entry, found);
	ww_source_unlock(sought.shard->source);
	return entry != NULL;
}

static inline int prolong(const struct session_sought *sought, uint64_t ttl, void **value)
{
	struct session_entry *entry = entry_live(sought);
	int error = WW_OK;

	if (entry && !ttl)
		ttl = entry->ttl_us * WW_MICROSECOND;
	if (entry || ttl)
		error = ww_session_ttl_refused(sought->shard->session, sought->now, &ttl);
	if (error)
		return error;
	count_look_up(sought->shard, entry);
	if (!entry)
		return 0;
	ww_session_entry_place(sought->shard, entry, sought->now, ttl);
	if (value)
		*value = entry_value(entry);
	return 1;
}

int ww_session_prolong(const struct session_sought *sought, uint64_t ttl, void **value)
{
	return prolong(sought, ttl, value);
}

int ww_session_refresh(struct ww_session *session, const void *key, size_t length, uint64_t ttl, void **value)
{
	struct session_sought sought;
	int found = ww_session_enter(session, key, length, &sought);

	if (found)
		return found;
	found = prolong(&sought, ttl, value);
	ww_source_unlock(sought.shard->source);
	return found;
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
		deadline = entry_deadline(sought.shard, entry);
	ww_source_unlock(sought.shard->source);
	if (deadline <= sought.now)
		return 0;
	*ns = deadline - sought.now;
	return 1;
}

/* ---- Taking out */

int ww_session_cut(const struct session_sought *sought, uint64_t version, void **value)
{
	struct session_shard *shard = sought->shard;
	struct session_entry *entry = entry_live(sought);

	if (entry && version != WW_SESSION_ANY && version != entry_version(entry)) {
		shard->stats.stale++;
		return WW_ESTALE;
	}
	if (shard->loads || shard->failures)
		ww_session_take_outdate(sought, WW_GONE_DELETED);
	if (!entry)
		return 0;
	*value = entry_value(entry);
	ww_session_entry_remove(shard, entry, 1);
	ww_session_entry_free(shard, entry);
	return 1;
}

int ww_session_delete_if(struct ww_session *session, const void *key, size_t length, uint64_t version, void **value)
{
	struct session_sought sought;
	void *taken = NULL;
	int found = ww_session_enter(session, key, length, &sought);

	if (found)
		return found;
	found = ww_session_cut(&sought, version, &taken);
	ww_source_unlock(sought.shard->source);
	if (found > 0 && value)
		*value = taken;
	else if (found > 0)
		ww_session_report(session, sought.key, length, taken, WW_GONE_DELETED, 0);
	return found;
}

int ww_session_delete(struct ww_session *session, const void *key, size_t length, void **value)
{
	return ww_session_delete_if(session, key, length, WW_SESSION_ANY, value);
}
