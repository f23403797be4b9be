/* The calls on what a map recalls: see recall.c. */

#include "lib/core/session/session_internal.h"

int ww_session_recall(struct ww_session *session, uint64_t ns)
{
	int error = ns > WW_SESSION_TTL_MAX ? WW_EINVAL : ww_session_refuses(session);

	if (!error && session->closing)
		error = WW_ECLOSED;
	if (!error && !session->at_end)
		error = WW_EINVAL;
	if (!error)
		session->recall = ns;
	return error;
}

int ww_session_remember(struct ww_session *session, const void *key, size_t length, uint64_t end, uint64_t until)
{
	struct session_sought sought;
	int error = end && end <= WW_DRIVER_TIME_MAX ? ww_session_enter(session, key, length, &sought) : WW_EINVAL;

	if (error)
		return error;
	if (!session->at_end)
		error = WW_EINVAL;
	else if (until > sought.now && !ww_session_entry_find(&sought))
		ww_session_recall_keep(&sought, end, until);
	ww_source_unlock(sought.shard->source);
	return error;
}

int ww_session_ended(struct ww_session *session, const void *key, size_t length, uint64_t *end)
{
	struct session_sought sought;
	struct session_entry *entry;
	uint64_t recalled = END_NONE;
	int error = end ? ww_session_enter(session, key, length, &sought) : WW_EINVAL;

	if (error)
		return error;
	entry = ww_session_entry_find(&sought);
	if (!entry || entry_deadline(sought.shard, entry) <= sought.now)
		recalled = ww_session_recall_end(&sought, entry);
	ww_source_unlock(sought.shard->source);
	if (recalled == END_NONE)
		return 0;
	*end = recalled;
	return 1;
}

/* Returns 0 if the shard has no more. */
static int visit(struct session_shard *shard, size_t *next, ww_recalled_fn *fn, void *context, int *answer)
{
	int is_more;

	ww_source_lock(shard->source);
	ww_session_set_looking(1);
	is_more = ww_session_recall_visit(shard, next, fn, context, answer);
	ww_session_set_looking(0);
	ww_source_unlock(shard->source);
	return is_more;
}

int ww_session_recalled(struct ww_session *session, uint64_t *cursor, ww_recalled_fn *fn, void *context)
{
	uint64_t shard;
	size_t next;
	int cancel;
	int answer = fn && cursor ? ww_session_walk_refuses(session) : WW_EINVAL;

	if (answer)
		return answer;
	shard = *cursor ? (*cursor - 1) >> 32 : 0;
	next = *cursor ? (uint32_t)(*cursor - 1) : 0;
	/* If the thread were cancelled in fn, the shard would stay locked. */
	(void)pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
	while (shard < session->shard_count && !visit(&session->shard[shard], &next, fn, context, &answer)) {
		shard++;
		next = 0;
	}
	(void)pthread_setcancelstate(cancel, &cancel);
	*cursor = shard < session->shard_count ? (shard << 32 | next) + 1 : 0;
	return answer;
}

int ww_session_recalls_dropped(struct ww_session *session, uint64_t *count)
{
	int error = count ? ww_session_walk_refuses(session) : WW_EINVAL;

	if (error)
		return error;
	*count = 0;
	for (uint32_t i = 0; i < session->shard_count; i++) {
		ww_source_lock(session->shard[i].source);
		*count += session->shard[i].recalls_dropped;
		ww_source_unlock(session->shard[i].source);
	}
	return WW_OK;
}
