/* All entries of a map, a few at a time: walking and draining. And inspecting one entry, as a walk does. */

#include "lib/core/session/session_internal.h"

/* After this many entries, or records without one, others get the lock. */
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

/* ---- One at random */

/* So many entries behind a place in the table are passed over at most: each of a small table can be taken. */
#define PASSED 64u

static uint32_t count_of(struct session_shard *shard)
{
	uint32_t count;

	ww_source_lock(shard->source);
	count = (uint32_t)table_count(&shard->table);
	ww_source_unlock(shard->source);
	return count;
}

/* The lock is held. From that line on, the entry behind so many others, or the last if there are fewer. */
static struct session_entry *pick(struct session_shard *shard, uint32_t from, uint64_t passes, uint64_t now)
{
	const struct table *table = &shard->table;
	struct session_entry *found = NULL;

	for (uint32_t i = 0; i < table->lines; i++) {
		const struct table_line *line = table_line(table, (from + i) % table->lines);
		for (uint32_t k = 0; k < TABLE_LINE && line->entry[k] != TABLE_EMPTY; k++) {
			struct session_entry *entry = slab_at(&shard->slab, (uint32_t)line->entry[k]);
			if (entry_deadline(shard, entry) <= now)
				continue;
			found = entry;
			if (passes-- == 0)
				return found;
		}
	}
	return found;
}

/* The entry of this number, if the shard has few; otherwise one behind a line taken at random. 0: there is none. */
static int tell_one(struct session_shard *shard, uint64_t number, uint64_t random, struct walking *walking)
{
	struct session_sought here = {.shard = shard};
	struct session_entry *entry;
	int is_small, answer = 0;

	ww_source_lock(shard->source);
	here.now = ww_driver_time(shard->session->driver);
	is_small = table_count(&shard->table) <= PASSED;
	entry = pick(shard, is_small ? 0 : (uint32_t)(random % shard->table.lines),
	    is_small ? number : (random >> 32) % PASSED, here.now);
	if (entry)
		answer = tell(&here, entry, walking);
	ww_source_unlock(shard->source);
	return answer;
}

int ww_session_random(struct ww_session *session, uint64_t random, ww_walk_fn *fn, void *context)
{
	struct walking walking = {fn, context, 0};
	uint64_t count = 0, number;
	uint32_t at = 0, before;
	int cancel;
	int answer = fn ? ww_session_walk_refuses(session) : WW_EINVAL;

	if (answer)
		return answer;
	for (uint32_t i = 0; i < session->shard_count; i++)
		count += count_of(&session->shard[i]);
	if (!count)
		return 0;
	number = random % count;
	while (at < session->shard_count - 1 && number >= (before = count_of(&session->shard[at]))) {
		number -= before;
		at++;
	}
	(void)pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
	/* Entries may have gone or expired: then the next shard has one. */
	for (uint32_t i = 0; i < session->shard_count && !walking.count; i++)
		answer =
		    tell_one(&session->shard[(at + i) % session->shard_count], i ? 0 : number, random >> 16, &walking);
	(void)pthread_setcancelstate(cancel, &cancel);
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
