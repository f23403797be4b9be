/* Storing values: what every call that stores does, and the call with all options. */

#include "lib/core/session/session_internal.h"

/* The key has an entry already. */
static void replace(
    const struct session_sought *sought, struct session_entry *entry, void **former, struct taken_out *out)
{
	struct session_shard *shard = sought->shard;
	int expired = entry_deadline(shard, entry) <= sought->now;

	*out = (struct taken_out){
	    .value = entry_value(entry),
	    .why = expired ? WW_GONE_EXPIRED : WW_GONE_REPLACED,
	    .deadline = expired ? entry_deadline(shard, entry) : 0,
	    .is = expired || !former,
	};
	shard->stats.expired += (uint64_t)expired;
	if (former)
		*former = expired ? NULL : out->value;
}

/* It has this value from now on, and a version that no other entry of this map had. */
static void fill(struct session_shard *shard, struct session_entry *entry, void *value)
{
	shard->version += shard->session->shard_count;
	entry_set_value(entry, value);
	entry->as.timer.ww_period = shard->version;
}

static inline struct session_entry *overfill(const struct session_sought *sought, struct session_entry *entry,
    const struct session_content *content, void **former, struct taken_out *out)
{
	struct session_shard *shard = sought->shard;
	int is_new = !entry;

	*out = (struct taken_out){0};
	if (shard->session->at_use && ww_session_limit_refuses(shard, entry, content))
		return NULL;
	if (entry)
		replace(sought, entry, former, out);
	else {
		entry = ww_session_entry_add(sought);
		if (!entry)
			return NULL;
		if (former)
			*former = NULL;
		if (shard->recalls)
			ww_session_recall_forget(sought);
	}
	/* Also one of a load that was to replace the entry. */
	if (shard->failures)
		ww_session_failure_forget(sought);
	fill(shard, entry, content->value);
	if (shard->session->at_use)
		ww_session_limit_file(shard, entry, content, is_new);
	if (shard->session->at_end)
		*entry_end(shard->session, entry) = content->end;
	if (content->deadline)
		ww_session_entry_place_at(shard, entry, content->deadline, content->ttl);
	else
		ww_session_entry_place(shard, entry, sought->now, content->ttl);
	return entry;
}

struct session_entry *ww_session_overfill(const struct session_sought *sought, struct session_entry *entry,
    const struct session_content *content, void **former, struct taken_out *out)
{
	return overfill(sought, entry, content, former, out);
}

struct session_entry *ww_session_store(const struct session_sought *sought, struct session_entry *entry,
    const struct session_content *content, void **former, struct taken_out *out)
{
	entry = overfill(sought, entry, content, former, out);
	if (entry && sought->shard->session->at_use)
		ww_session_evict(sought, out);
	return entry;
}

void ww_session_report_taken(const struct session_sought *sought, const struct taken_out *out)
{
	struct session_shard *shard = sought->shard;
	struct firing *next;

	if (out->is)
		ww_session_report(shard->session, sought->key, sought->length, out->value, out->why, out->deadline);
	for (struct firing *firing = out->evicted; firing; firing = next) {
		struct session_entry *entry = (struct session_entry *)(void *)firing;
		next = firing->next;
		ww_session_report(shard->session, entry_key(entry), entry->length, entry_value(entry),
		    (enum ww_gone)firing->since, *entry_gone_deadline(entry));
		ww_source_lock(shard->source);
		ww_session_entry_free(shard, entry);
		ww_source_unlock(shard->source);
	}
}

/* ---- With options */

int ww_session_order_refused(const struct ww_session *session, const struct ww_session_order *order, uint32_t flags)
{
	if (!session || order->flags & ~flags)
		return WW_EINVAL;
	if ((order->lifetime || order->end) && !session->at_end)
		return WW_EINVAL;
	if (order->flags & WW_SESSION_PINNED && !session->at_use)
		return WW_EINVAL;
	return session->at_weight && order->weight > session->shard_weight_limit ? WW_ETOOBIG : WW_OK;
}

/* Whether what is there is what the order wants there. NULL: nothing. */
static int as_ordered(const struct ww_session_order *order, const struct session_entry *live)
{
	if (order->version == WW_SESSION_ANY)
		return 1;
	return live ? entry_version(live) == order->version : order->version == WW_SESSION_ABSENT;
}

uint64_t ww_session_ordered_end(const struct session_sought *sought, const struct ww_session_order *order)
{
	uint64_t end = ww_session_end(sought->shard->session, sought->now, order->lifetime);

	if (order->end && order->end < end)
		end = order->end;
	return end > WW_DRIVER_TIME_MAX ? END_NONE : end;
}

/* The lock is held. */
static int put(const struct session_sought *sought, void *value, const struct ww_session_order *order,
    struct ww_session_found *found, void **former, struct taken_out *out)
{
	struct session_entry *entry = ww_session_entry_find(sought);
	struct session_entry *live = entry && entry_deadline(sought->shard, entry) > sought->now ? entry : NULL;
	struct session_content content = {.value = value,
	    .ttl = order->ttl,
	    .deadline = order->deadline,
	    .weight = order->weight,
	    .pinned = order->flags & WW_SESSION_PINNED,
	    .moves = (order->flags & WW_SESSION_BEYOND) != 0};
	uint64_t end = END_NONE;
	int error = ww_session_ttl_refused(sought->shard->session, sought->now, &content.ttl);

	if (!error && order->deadline > WW_DRIVER_TIME_MAX)
		error = WW_EOVERFLOW;
	if (error)
		return error;
	if (!as_ordered(order, live)) {
		sought->shard->stats.stale++;
		if (found && live)
			ww_session_entry_found(sought, live, found);
		else if (found)
			*found = (struct ww_session_found){0};
		return WW_ESTALE;
	}
	if (live && sought->shard->session->at_end)
		end = *entry_end(sought->shard->session, live);
	else if (!live && order->flags & (WW_SESSION_KEEP_END | WW_SESSION_STAY_ENDED))
		end = ww_session_recall_end(sought, entry);
	if (!live && order->flags & WW_SESSION_STAY_ENDED && end <= sought->now)
		return WW_EBACKWARDS;
	content.end = (live || end != END_NONE) && order->flags & WW_SESSION_KEEP_END
	                  ? end
	                  : ww_session_ordered_end(sought, order);
	entry = ww_session_overfill(sought, entry, &content, former, out);
	if (!entry)
		return WW_ENOMEM;
	/* First: if its end has passed, the entry itself may be put out of a full map. */
	if (found)
		ww_session_entry_found(sought, entry, found);
	if (order->flags & WW_SESSION_BEYOND)
		ww_session_limit_settle(sought->shard);
	else
		ww_session_evict(sought, out);
	return WW_OK;
}

int ww_session_put(struct ww_session *session, const void *key, size_t length, void *value,
    const struct ww_session_order *order, struct ww_session_found *found, void **former)
{
	static const struct ww_session_order none;
	struct session_sought sought;
	struct taken_out out = {0};
	int error;

	if (!order)
		order = &none;
	error = ww_session_order_refused(
	    session, order, WW_SESSION_KEEP_END | WW_SESSION_PINNED | WW_SESSION_BEYOND | WW_SESSION_STAY_ENDED);
	if (!error)
		error = ww_session_enter(session, key, length, &sought);
	if (error)
		return error;
	error = put(&sought, value, order, found, former, &out);
	ww_source_unlock(sought.shard->source);
	ww_session_report_taken(&sought, &out);
	return error;
}
