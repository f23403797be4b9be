/* Giving an entry another key, which may be in another shard. */

#include <string.h>

#include "lib/core/session/session_internal.h"

/*
 * Both locks are held: move the entry `old` to the key `to`, whose entry is `there`, or NULL. Only the first step can
 * fail. The entry leaves its former key before the shard's limit is looked at: in one shard that is no entry more.
 */
static int move(const struct session_sought *from, struct session_entry *old, const struct session_sought *to,
    struct session_entry *there, const struct ww_session_order *order, struct ww_session_found *found, void **former,
    struct taken_out *out)
{
	struct ww_session *session = to->shard->session;
	int keeps_end = !order->lifetime && !order->end;
	struct session_content content = {.value = entry_value(old), .ttl = order->ttl, .end = END_NONE};
	struct session_entry *moved;

	content.moves = 1;
	if (session->at_weight)
		content.weight = *entry_weight(session, old);
	content.pinned = session->at_use && entry_use(session, old)->list == LIST_PINNED;
	if (!content.ttl)
		content.ttl = old->ttl_us * WW_MICROSECOND;
	if (session->at_end)
		content.end = keeps_end ? *entry_end(session, old) : ww_session_ordered_end(to, order);
	if (keeps_end && !order->ttl)
		content.deadline = entry_deadline(from->shard, old);
	moved = ww_session_overfill(to, there, &content, former, out);
	if (!moved)
		return WW_ENOMEM;
	if (from->shard->loads || from->shard->failures)
		ww_session_take_outdate(from, WW_GONE_DELETED);
	ww_session_entry_remove(from->shard, old, 1);
	ww_session_entry_free(from->shard, old);
	if (found)
		ww_session_entry_found(to, moved, found);
	ww_session_evict(to, out);
	return WW_OK;
}

/* Both locks are held. */
static int change_key(const struct session_sought *from, const struct session_sought *to,
    const struct ww_session_order *order, struct ww_session_found *found, void **former, struct taken_out *out)
{
	const struct ww_session *session = to->shard->session;
	struct session_entry *old = entry_live(from);
	struct session_entry *there;
	int is_live;
	int error = WW_OK;

	if (session->closing)
		return WW_ECLOSED;
	if (!old || (order->version != WW_SESSION_ANY && order->version != entry_version(old))) {
		from->shard->stats.stale++;
		return WW_ESTALE;
	}
	there = ww_session_entry_find(to);
	is_live = there && entry_deadline(to->shard, there) > to->now;
	if (is_live && !(order->flags & WW_SESSION_REPLACE))
		return WW_EINUSE;
	if (!is_live && order->flags & WW_SESSION_STAY_ENDED && ww_session_recall_end(to, there) <= to->now)
		return WW_EBACKWARDS;
	/* The deadline that it has needs no check. */
	if (order->ttl || order->lifetime || order->end) {
		uint64_t ttl = order->ttl ? order->ttl : old->ttl_us * WW_MICROSECOND;
		error = ww_session_ttl_refused(session, to->now, &ttl);
	}
	if (error)
		return error;
	return move(from, old, to, there, order, found, former, out);
}

int ww_session_rename(struct ww_session *session, const void *key, size_t length, const void *to, size_t to_length,
    const struct ww_session_order *order, struct ww_session_found *found, void **former)
{
	static const struct ww_session_order none;
	struct session_sought source;
	struct session_sought target;
	struct taken_out out = {0};
	int error;

	if (!order)
		order = &none;
	error = ww_session_order_refused(session, order, WW_SESSION_REPLACE | WW_SESSION_STAY_ENDED);
	if (!error)
		error = ww_session_seek(session, key, length, &source);
	if (!error)
		error = ww_session_seek(session, to, to_length, &target);
	if (!error && length == to_length && memcmp(source.key, target.key, length) == 0)
		error = WW_EINVAL;
	if (error)
		return error;
	ww_source_lock_two(source.shard->source, target.shard->source);
	/* Under the locks: an earlier time could shorten what another thread has refreshed since. */
	source.now = target.now = ww_driver_time(session->driver);
	error = change_key(&source, &target, order, found, former, &out);
	ww_source_unlock_two(source.shard->source, target.shard->source);
	ww_session_report_taken(&target, &out);
	return error;
}
