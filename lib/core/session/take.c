/* ww_session_take: loading a missing value, once for all threads that ask for it. */

#include <string.h>

#include "lib/core/session/session_internal.h"

static int loads_key(const struct session_load *load, const struct session_sought *sought)
{
	return load->length == sought->length && memcmp(load->key, sought->key, sought->length) == 0;
}

/* A load whose result this call may share, or one that this thread is in. */
static struct session_load *find_load(const struct session_sought *sought)
{
	struct session_load *load = sought->shard->loads;

	while (load && !(loads_key(load, sought) && (!load->outdated || pthread_equal(load->thread, pthread_self()))))
		load = load->next;
	return load;
}

static void outdate(struct session_load *load, enum ww_gone why)
{
	if (load->outdated)
		return;
	load->outdated = 1;
	load->outdated_why = why;
}

void ww_session_take_outdate(const struct session_sought *sought, enum ww_gone why)
{
	for (struct session_load *load = sought->shard->loads; load; load = load->next)
		if (loads_key(load, sought))
			outdate(load, why);
}

void ww_session_take_outdate_all(struct session_shard *shard, enum ww_gone why)
{
	for (struct session_load *load = shard->loads; load; load = load->next)
		outdate(load, why);
}

static void remove_load(struct session_shard *shard, const struct session_load *load)
{
	struct session_load **link = &shard->loads;

	while (*link != load)
		link = &(*link)->next;
	*link = load->next;
}

/* The lock is held, and is not when this returns: wait for another thread's loader. */
static int share_load(struct session_sought *sought, struct session_load *load, void **value)
{
	struct session_shard *shard = sought->shard;
	const struct session_entry *entry;
	int result;

	if (pthread_equal(load->thread, pthread_self())) {
		ww_source_unlock(shard->source);
		return WW_EBUSY;
	}
	shard->stats.loads_shared++;
	load->waiting++;
	while (!load->done)
		ww_source_wait(shard->source, &shard->loaded);
	result = load->result;
	if (result == WW_OK)
		*value = load->value;
	load->waiting--;
	/* The load lies on the stack of its thread, which waits until no thread needs it. */
	pthread_cond_broadcast(&shard->loaded);
	sought->now = ww_driver_time(shard->session->driver);
	/* What somebody has set meanwhile is a better answer than an error. */
	entry = result < 0 ? entry_live(sought) : NULL;
	if (entry) {
		*value = entry_value(entry);
		result = 1;
	}
	ww_source_unlock(shard->source);
	return result;
}

/* The lock is held: the load has its result, for this thread and for those that wait. */
static void end_load(struct session_shard *shard, struct session_load *load)
{
	remove_load(shard, load);
	load->done = 1;
	pthread_cond_broadcast(&shard->loaded);
}

/* The lock is held: wait until no thread needs the load any more. */
static void leave_load(struct session_shard *shard, const struct session_load *load)
{
	while (load->waiting)
		ww_source_wait(shard->source, &shard->loaded);
}

/*
 * The lock is held: store what was loaded, unless it is outdated. If the key was set meanwhile, that value is the
 * result.
 */
static int store(struct session_sought *sought, struct session_load *load, uint64_t ttl, struct taken_out *out)
{
	struct session_shard *shard = sought->shard;
	struct session_entry *entry = ww_session_entry_find(sought);
	struct session_content content;
	void *loaded = load->value;
	int error;

	sought->now = ww_driver_time(shard->session->driver);
	error = ww_session_ttl_refused(shard->session, sought->now, &ttl);
	if (!error && shard->session->closing)
		error = WW_ECLOSED;
	*out = (struct taken_out){0};
	if (entry && entry_deadline(shard, entry) > sought->now) {
		load->value = entry_value(entry);
		error = WW_OK;
		/* The loader has set this value itself: it stays, and is not told as gone. */
		if (load->value == loaded)
			return WW_OK;
	} else if (!error && load->outdated) {
		*out = (struct taken_out){.value = loaded, .why = load->outdated_why, .is = 1};
		return WW_OK;
	} else if (!error) {
		content = (struct session_content){
		    .value = loaded, .ttl = ttl, .end = ww_session_end(shard->session, sought->now, 0)};
		if (ww_session_store(sought, entry, &content, NULL, out))
			return WW_OK;
		error = WW_ENOMEM;
	}
	*out = (struct taken_out){.value = loaded, .why = WW_GONE_REPLACED, .is = 1};
	return error;
}

/* The lock is held, and is not when this returns. */
static int run_load(struct session_sought *sought, ww_load_fn *fn, void *context, void **value)
{
	struct session_shard *shard = sought->shard;
	struct session_load load = {
	    .key = sought->key, .length = sought->length, .thread = pthread_self(), .next = shard->loads};
	struct taken_out out = {0};
	struct inside here;
	uint64_t ttl = 0;

	shard->loads = &load;
	shard->stats.loads++;
	ww_source_unlock(shard->source);
	ww_inside_enter(&here, shard->session);
	load.result = fn(sought->key, sought->length, &load.value, &ttl, context);
	ww_inside_leave(&here);
	ww_source_lock(shard->source);
	if (load.result < 0)
		shard->stats.loads_failed++;
	else
		load.result = store(sought, &load, ttl, &out);
	end_load(shard, &load);
	leave_load(shard, &load);
	ww_source_unlock(shard->source);
	/* Last: gone may free what was not kept. */
	ww_session_tell_taken(sought, &out);
	if (load.result == WW_OK)
		*value = load.value;
	return load.result;
}

int ww_session_take(
    struct ww_session *session, const void *key, size_t length, ww_load_fn *load, void *context, void **value)
{
	struct session_sought sought;
	const struct session_entry *entry;
	struct session_load *running;
	int cancel;
	int error = load && value ? ww_session_enter(session, key, length, &sought) : WW_EINVAL;

	if (error)
		return error;
	entry = ww_session_look_up(&sought);
	if (entry) {
		*value = entry_value(entry);
		ww_source_unlock(sought.shard->source);
		return 1;
	}
	running = find_load(&sought);
	/* If the thread were cancelled here, others would wait for ever, and the list would point into its stack. */
	(void)pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
	error = running ? share_load(&sought, running, value) : run_load(&sought, load, context, value);
	(void)pthread_setcancelstate(cancel, &cancel);
	return error;
}
