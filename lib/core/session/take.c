/* ww_session_take and ww_session_take_by: loading a missing or ageing value, once for all threads that ask for it. */

#include <string.h>

#include "lib/core/session/session_internal.h"

/* ---- Loads that are under way */

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

static void remove_load(struct session_shard *shard, const struct session_load *load)
{
	struct session_load **link = &shard->loads;

	while (*link != load)
		link = &(*link)->next;
	*link = load->next;
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
	ww_session_failure_forget(sought);
	for (struct session_load *load = sought->shard->loads; load; load = load->next)
		if (loads_key(load, sought))
			outdate(load, why);
}

void ww_session_take_outdate_all(struct session_shard *shard, enum ww_gone why)
{
	ww_session_failure_forget_all(shard);
	for (struct session_load *load = shard->loads; load; load = load->next)
		outdate(load, why);
}

/* ---- Waiting for another thread's load */

int ww_session_take_expires(struct session_shard *shard, struct ww_timer *timer)
{
	struct session_waiter *waiter = (struct session_waiter *)(void *)timer;

	if (timer->ww_period)
		return 0;
	waiter->late = 1;
	pthread_cond_broadcast(&shard->loaded);
	return 1;
}

/* The lock is held: hand the value to a call that asked for it, while it cannot leave the map. */
static void show(const struct ww_session_loading *how, void *value)
{
	if (how->look)
		ww_session_call_look(how->look, value, how->look_context);
}

/* The lock is held: let the waiter become late at its time. */
static int set_limit(struct session_shard *shard, struct session_waiter *waiter, uint64_t now)
{
	uint64_t wait = waiter->how->wait;

	if (!wait || now > WW_DRIVER_TIME_MAX || wait > WW_DRIVER_TIME_MAX - now)
		return WW_OK;
	if (ww_source_prepare(shard->source))
		return WW_ENOMEM;
	ww_source_schedule(shard->source, &waiter->timer, now + wait);
	return WW_OK;
}

/* The lock is held: the load lies on the stack of its thread, which waits until no thread needs it. */
static void leave(struct session_shard *shard, struct session_load *load, const struct session_waiter *waiter)
{
	struct session_waiter **link = &load->waiters;

	while (*link != waiter)
		link = &(*link)->next;
	*link = waiter->next;
	if (load->done)
		pthread_cond_broadcast(&shard->loaded);
}

/* The lock is held, and is not when this returns. */
static int share_load(
    struct session_sought *sought, struct session_load *load, const struct ww_session_loading *how, void **value)
{
	struct session_shard *shard = sought->shard;
	struct session_waiter waiter = {.how = how, .next = load->waiters};
	const struct session_entry *entry;
	int result = WW_EBUSY;

	if (!pthread_equal(load->thread, pthread_self()))
		result = set_limit(shard, &waiter, sought->now);
	if (result) {
		ww_source_unlock(shard->source);
		return result;
	}
	load->waiters = &waiter;
	shard->stats.loads_shared++;
	if (how->wait) {
		/* An unlock, unlike a wait, lets the driver know of the timer. */
		ww_source_unlock(shard->source);
		ww_source_lock(shard->source);
	}
	while (!load->done && !waiter.late)
		ww_source_wait(shard->source, &shard->loaded);
	result = load->done ? load->result : WW_ETIMEOUT;
	if (result >= 0)
		*value = load->value;
	shard->stats.loads_late += !load->done;
	leave(shard, load, &waiter);
	if (ww_timer_pending(&waiter.timer))
		ww_source_cancel(shard->source, &waiter.timer);
	sought->now = ww_driver_time(shard->session->driver);
	/* What somebody has set meanwhile is a better answer than an error. */
	entry = result < 0 ? entry_live(sought) : NULL;
	if (entry) {
		*value = entry_value(entry);
		show(how, *value);
		result = 1;
	}
	ww_source_unlock(shard->source);
	return result;
}

/* ---- Loading */

/* The lock is held: what was loaded is of no use, or of no use any more. */
static int discard(void *loaded, struct taken_out *out, enum ww_gone why, int error)
{
	*out = (struct taken_out){.value = loaded, .why = why, .is = 1};
	return error;
}

/*
 * The lock is held: what was loaded is not stored. What lives there, unless NULL, is the result: another call has set
 * it (0), or it was to be replaced and serves on, as after a loader that failed (1).
 */
static int serve(const struct session_entry *live, struct session_load *load, struct taken_out *out, int error)
{
	void *loaded = load->value;
	int answer;

	if (!live)
		return discard(loaded, out, WW_GONE_REPLACED, error);
	load->value = entry_value(live);
	answer = entry_version(live) == load->replaces;
	/* This very value stays in the map: gone is not called. */
	return load->value == loaded ? answer : discard(loaded, out, WW_GONE_REPLACED, answer);
}

/* Why what was loaded cannot be stored as the loader wants it. */
static int load_refused(const struct session_sought *sought, struct ww_session_order *order)
{
	const struct ww_session *session = sought->shard->session;
	int error = ww_session_order_refused(session, order, WW_SESSION_PINNED);

	if (!error && order->version != WW_SESSION_ANY)
		error = WW_EINVAL;
	if (!error)
		error = ww_session_ttl_refused(session, sought->now, &order->ttl);
	return !error && session->closing ? WW_ECLOSED : error;
}

/*
 * The lock is held: store what was loaded, unless it is outdated. If the key was set meanwhile, that value is the
 * result.
 */
static int store(
    struct session_sought *sought, struct session_load *load, struct ww_session_order *order, struct taken_out *out)
{
	struct session_shard *shard = sought->shard;
	struct session_entry *entry = ww_session_entry_find(sought);
	struct session_content content;
	void *loaded = load->value;
	void *former = NULL;
	int error = load_refused(sought, order);
	struct session_entry *live = entry && entry_deadline(shard, entry) > sought->now ? entry : NULL;
	int same = live && entry_value(live) == loaded;

	/* A value that was loaded ahead replaces the one that was there, and no other. */
	if (error || (live && (load->outdated || entry_version(live) != load->replaces)))
		return serve(live, load, out, error);
	if (load->outdated)
		return discard(loaded, out, load->outdated_why, WW_OK);
	content = (struct session_content){.value = loaded,
	    .ttl = order->ttl,
	    .end = ww_session_ordered_end(sought, order),
	    .weight = order->weight,
	    .pinned = order->flags & WW_SESSION_PINNED};
	if (!ww_session_store(sought, entry, &content, same ? &former : NULL, out))
		return serve(live, load, out, WW_ENOMEM);
	return WW_OK;
}

/* The lock is held: the loader failed. What it was to replace serves on. */
static int fail(struct session_sought *sought, struct session_load *load)
{
	struct session_shard *shard = sought->shard;
	const struct session_entry *entry = load->replaces ? entry_live(sought) : NULL;

	shard->stats.loads_failed++;
	if (load->how->keep_failure && !load->outdated)
		ww_session_failure_keep(sought, load->result, load->how->keep_failure);
	if (!entry)
		return load->result;
	load->value = entry_value(entry);
	return 1;
}

/* The lock is held: the load has its result, for this thread and for those that wait. */
static void end_load(struct session_shard *shard, struct session_load *load, uint64_t took)
{
	shard->stats.load_time += took;
	if (took > shard->stats.load_time_max)
		shard->stats.load_time_max = took;
	remove_load(shard, load);
	load->done = 1;
	if (load->result >= 0) {
		show(load->how, load->value);
		for (const struct session_waiter *waiter = load->waiters; waiter; waiter = waiter->next)
			show(waiter->how, load->value);
	}
	pthread_cond_broadcast(&shard->loaded);
	while (load->waiters)
		ww_source_wait(shard->source, &shard->loaded);
}

/* The lock is held, and is not when this returns. `replaces`: the version of what is there still, or 0. */
static int run_load(
    struct session_sought *sought, const struct ww_session_loading *how, uint64_t replaces, void **value)
{
	struct session_shard *shard = sought->shard;
	struct session_load load = {.key = sought->key,
	    .length = sought->length,
	    .how = how,
	    .thread = pthread_self(),
	    .replaces = replaces,
	    .next = shard->loads};
	struct ww_session_order order = {0};
	struct taken_out out = {0};
	struct inside here;
	uint64_t began = sought->now;

	shard->loads = &load;
	shard->stats.loads++;
	shard->stats.loads_ahead += replaces != 0;
	ww_source_unlock(shard->source);
	ww_inside_enter(&here, shard->session);
	load.result = how->load(sought->key, sought->length, &load.value, &order, how->context);
	ww_inside_leave(&here);
	ww_source_lock(shard->source);
	sought->now = ww_driver_time(shard->session->driver);
	load.result = load.result < 0 ? fail(sought, &load) : store(sought, &load, &order, &out);
	shard->stats.loads_outdated += (uint64_t)load.outdated;
	end_load(shard, &load, sought->now > began ? sought->now - began : 0);
	ww_source_unlock(shard->source);
	/* Last: gone may free what was not kept. */
	ww_session_report_taken(sought, &out);
	if (load.result >= 0)
		*value = load.value;
	return load.result;
}

/* ---- Taking */

/* Whether enough of the TTL has passed for the value to be loaded anew. */
static int is_ageing(
    const struct session_sought *sought, struct session_entry *entry, const struct ww_session_loading *how)
{
	const struct session_shard *shard = sought->shard;
	uint64_t ttl = entry->ttl_us * WW_MICROSECOND;
	uint64_t deadline = entry_deadline(shard, entry);

	/* The end of a lifetime does not show when the TTL began. */
	if (!how->ahead || (shard->session->at_end && *entry_end(shard->session, entry) <= deadline))
		return 0;
	return deadline - sought->now <= ttl / 1000 * (1000 - how->ahead);
}

/* The lock is held, and is not when this returns. */
static int take(struct session_sought *sought, const struct ww_session_loading *how, void **value)
{
	struct session_entry *entry = ww_session_look_up(sought);
	struct session_load *running = NULL;
	int failure = 0;
	int cancel;

	if (!entry || is_ageing(sought, entry, how)) {
		running = find_load(sought);
		failure = running ? 0 : ww_session_failure_find(sought);
	}
	if (entry && (running || failure || !is_ageing(sought, entry, how))) {
		*value = entry_value(entry);
		show(how, *value);
		ww_source_unlock(sought->shard->source);
		return 1;
	}
	if (failure) {
		sought->shard->stats.failures_kept++;
		ww_source_unlock(sought->shard->source);
		return failure;
	}
	/* If the thread were cancelled here, others would wait for ever, and the list would point into its stack. */
	(void)pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
	failure = running ? share_load(sought, running, how, value)
	                  : run_load(sought, how, entry ? entry_version(entry) : 0, value);
	(void)pthread_setcancelstate(cancel, &cancel);
	return failure;
}

int ww_session_take_by(
    struct ww_session *session, const void *key, size_t length, const struct ww_session_loading *how, void **value)
{
	struct session_sought sought;
	int error = how && how->load && value && how->ahead < 1000 ? ww_session_enter(session, key, length, &sought)
	                                                           : WW_EINVAL;

	return error ? error : take(&sought, how, value);
}

/* A loader that can set only the TTL. */
struct plain {
	ww_load_fn *load;
	void *context;
};

static int load_plain(const void *key, size_t length, void **value, struct ww_session_order *order, void *context)
{
	const struct plain *plain = context;

	return plain->load(key, length, value, &order->ttl, plain->context);
}

int ww_session_take(
    struct ww_session *session, const void *key, size_t length, ww_load_fn *load, void *context, void **value)
{
	struct plain plain = {load, context};
	struct ww_session_loading how = {.load = load_plain, .context = &plain};

	return load ? ww_session_take_by(session, key, length, &how, value) : WW_EINVAL;
}
