/* All entries of a map, a few at a time: walking and draining. And inspecting one entry, as a walk does. */

#include "lib/core/session/session_internal.h"

/* Between so many entries, or records without one, others get the lock. */
#define VISITS 64u
#define RECORDS 512u

int ww_session_walk_refuses(const struct ww_session *session)
{
	int error = ww_session_refuses(session);

	/* After the driver's stop, too: that is when a program keeps what it has. */
	if (error == WW_ECLOSED && !ww_driver_forked(session->driver))
		error = WW_OK;
	return error == WW_OK && session->closing ? WW_ECLOSED : error;
}

/* The lock is held. Visit entries from walk->next on. */
static int visit_some(struct session_shard *shard, struct session_walk *walk, session_visit_fn *visit, void *context)
{
	struct session_sought here = {.shard = shard, .now = ww_driver_time(shard->session->driver)};
	uint32_t end = slab_end(&shard->slab);
	uint32_t most = walk->next >= end || end - walk->next < RECORDS ? end : walk->next + RECORDS;
	int answer = 0;

	for (uint32_t visits = 0; walk->next < most && visits < VISITS; walk->next++) {
		struct session_entry *entry = slab_at(&shard->slab, walk->next);
		if (!entry_is_in(entry) || entry_deadline(shard, entry) <= here.now)
			continue;
		answer = visit(&here, entry, context);
		if (answer)
			break;
		visits++;
	}
	walk->ended = !answer && walk->next >= end;
	return answer;
}

/* Visit a few in one go, and count the walk on to the next shard after the last. */
static int visit_on(struct ww_session *session, struct session_walk *walk, session_visit_fn *visit, void *context)
{
	struct session_shard *shard = &session->shard[walk->shard];
	int answer;

	ww_source_lock(shard->source);
	answer = visit_some(shard, walk, visit, context);
	ww_source_unlock(shard->source);
	if (walk->ended)
		*walk = (struct session_walk){.shard = walk->shard + 1};
	return answer;
}

int ww_session_visit(struct ww_session *session, struct session_walk *walk, session_visit_fn *visit, void *context)
{
	int answer = 0;

	while (!answer && walk->shard < session->shard_count)
		answer = visit_on(session, walk, visit, context);
	return answer;
}

/* ---- Walking */

struct walking {
	ww_walk_fn *fn;
	void *context;
	size_t count;
};

static int tell(const struct session_sought *here, struct session_entry *entry, void *context)
{
	struct walking *walking = context;
	struct ww_session_found found;
	int answer;

	ww_session_entry_found(here, entry, &found);
	walking->count++;
	ww_session_set_looking(1);
	answer = walking->fn(entry_key(entry), entry->length, &found, walking->context);
	ww_session_set_looking(0);
	return answer;
}

int ww_session_walk(struct ww_session *session, ww_walk_fn *fn, void *context, size_t *count)
{
	struct walking walking = {fn, context, 0};
	struct session_walk walk = {0};
	int cancel;
	int answer = fn ? ww_session_walk_refuses(session) : WW_EINVAL;

	if (answer)
		return answer;
	/* If the thread were cancelled in fn, the shard would stay locked. */
	(void)pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
	answer = ww_session_visit(session, &walk, tell, &walking);
	(void)pthread_setcancelstate(cancel, &cancel);
	if (count)
		*count = walking.count;
	return answer;
}

int ww_session_scan(struct ww_session *session, uint64_t *cursor, ww_walk_fn *fn, void *context)
{
	struct walking walking = {fn, context, 0};
	struct session_walk walk = {0};
	int cancel;
	int answer = fn && cursor ? ww_session_walk_refuses(session) : WW_EINVAL;

	if (answer)
		return answer;
	if (*cursor)
		walk = (struct session_walk){.shard = (uint32_t)((*cursor - 1) >> 32), .next = (uint32_t)(*cursor - 1)};
	(void)pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
	if (walk.shard < session->shard_count)
		answer = visit_on(session, &walk, tell, &walking);
	(void)pthread_setcancelstate(cancel, &cancel);
	*cursor = walk.shard < session->shard_count ? ((uint64_t)walk.shard << 32 | walk.next) + 1 : 0;
	return answer;
}

int ww_session_inspect(struct ww_session *session, const void *key, size_t length, ww_walk_fn *fn, void *context)
{
	struct walking walking = {fn, context, 0};
	struct session_sought sought;
	struct session_entry *entry;
	int cancel;
	int answer = fn ? ww_session_enter(session, key, length, &sought) : WW_EINVAL;

	if (answer)
		return answer;
	(void)pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
	entry = ww_session_look_up(&sought);
	if (entry)
		answer = tell(&sought, entry, &walking);
	ww_source_unlock(sought.shard->source);
	(void)pthread_setcancelstate(cancel, &cancel);
	return answer ? answer : entry != NULL;
}

/* ---- Draining: an entry at a time, so that fn may stop and call the map */

struct draining {
	struct session_entry *entry;
	struct session_shard *shard;
	struct ww_session_found found;
};

static int take_one(const struct session_sought *here, struct session_entry *entry, void *context)
{
	struct draining *draining = context;

	draining->entry = entry;
	draining->shard = here->shard;
	ww_session_entry_found(here, entry, &draining->found);
	ww_session_entry_remove(here->shard, entry, 1);
	return 1;
}

static int hand_over(const struct draining *taken, ww_walk_fn *fn, void *context)
{
	int answer = fn(entry_key(taken->entry), taken->entry->length, &taken->found, context);

	ww_source_lock(taken->shard->source);
	ww_session_entry_free(taken->shard, taken->entry);
	ww_source_unlock(taken->shard->source);
	return answer;
}

int ww_session_drain(struct ww_session *session, ww_walk_fn *fn, void *context, size_t *count)
{
	struct session_walk walk = {0};
	struct draining taken;
	struct inside here;
	size_t drained = 0;
	int cancel;
	int answer = fn ? ww_session_walk_refuses(session) : WW_EINVAL;

	if (answer)
		return answer;
	ww_inside_enter(&here, session);
	(void)pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
	for (; !answer && ww_session_visit(session, &walk, take_one, &taken); drained++)
		answer = hand_over(&taken, fn, context);
	(void)pthread_setcancelstate(cancel, &cancel);
	ww_inside_leave(&here);
	if (count)
		*count = drained;
	return answer;
}
