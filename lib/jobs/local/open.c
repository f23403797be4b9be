/* Opens and closes the embedded store of jobs. */
#include "weekwheel/jobs.h"

#include <string.h>
#include <unistd.h>

#include "lib/base/fork.h"
#include "lib/base/memory.h"
#include "lib/base/time.h"
#include "lib/jobs/body.h"
#include "lib/jobs/local/batch.h"
#include "lib/jobs/local/check.h"
#include "lib/jobs/local/clock.h"
#include "lib/jobs/local/counts.h"
#include "lib/jobs/local/end.h"
#include "lib/jobs/local/ended.h"
#include "lib/jobs/local/expire.h"
#include "lib/jobs/local/forecast.h"
#include "lib/jobs/local/group.h"
#include "lib/jobs/local/history.h"
#include "lib/jobs/local/kick.h"
#include "lib/jobs/local/load.h"
#include "lib/jobs/local/local.h"
#include "lib/jobs/local/look.h"
#include "lib/jobs/local/memory.h"
#include "lib/jobs/local/meta.h"
#include "lib/jobs/local/port.h"
#include "lib/jobs/local/put.h"
#include "lib/jobs/local/queue.h"
#include "lib/jobs/local/records.h"
#include "lib/jobs/local/reserve.h"
#include "lib/jobs/local/rule.h"
#include "lib/jobs/local/timeline.h"
#include "lib/jobs/local/tube.h"
#include "lib/jobs/local/wait.h"
#include "lib/jobs/local/writing.h"
#include "lib/jobs/store/changes.h"
#include "lib/jobs/store/copy.h"

int ww_jobs_config_default(struct ww_jobs_config *config)
{
	if (!config)
		return WW_EINVAL;
	*config = (struct ww_jobs_config){.sync = WW_SYNC_ALWAYS,
	    .sync_ns = 50 * WW_MILLISECOND,
	    .window = 60 * WW_SECOND,
	    .window_jobs = 100000,
	    .body_max = 65535,
	    .downtime_max = 30 * 24 * 3600 * WW_SECOND,
	    .ended_max = 1000000,
	    .history_max = 10000};
	return WW_OK;
}

static int is_sound(const struct ww_jobs_config *config)
{
	if (!config->driver || (!config->path && !(config->flags & WW_JOBS_MEMORY)))
		return 0;
	if (config->flags & ~(WW_JOBS_MEMORY | WW_JOBS_READONLY) || config->sync > WW_SYNC_SYSTEM)
		return 0;
	if (config->window == 0 || config->window > WW_DRIVER_TIME_MAX || config->window_jobs == 0 ||
	    config->window_jobs > SLAB_MAX / 4)
		return 0;
	if (config->downtime_max > INT64_MAX)
		return 0;
	if (config->max_disk && config->max_disk < WW_JOBS_DISK_LEAST)
		return 0;
	return config->sync_ns >= WW_MILLISECOND && config->body_max <= WW_JOB_BODY_MAX;
}

static int make_locks(struct jobs_local *jobs)
{
	if (pthread_mutex_init(&jobs->lock, NULL))
		return WW_ESYSTEM;
	if (pthread_cond_init(&jobs->idle, NULL)) {
		pthread_mutex_destroy(&jobs->lock);
		return WW_ESYSTEM;
	}
	if (time_cond_init(&jobs->ready_cond)) {
		pthread_cond_destroy(&jobs->idle);
		pthread_mutex_destroy(&jobs->lock);
		return WW_ESYSTEM;
	}
	return WW_OK;
}

static void free_all(struct jobs_local *jobs)
{
	ww_jobs_tubes_close(jobs);
	ww_jobs_history_close(jobs);
	ww_jobs_give(jobs, jobs->undo, jobs->undo_room * sizeof *jobs->undo);
	ww_jobs_give(jobs, jobs->events, jobs->events_room);
	ww_jobs_give(jobs, jobs->buffer, jobs->buffer_size);
	ww_jobs_counts_close(jobs);
	ww_table_destroy(&jobs->ids);
	ww_slab_destroy(&jobs->entries);
	pthread_cond_destroy(&jobs->ready_cond);
	pthread_cond_destroy(&jobs->idle);
	pthread_mutex_destroy(&jobs->lock);
	jobs->allocator->free(jobs->allocator->user, jobs, sizeof *jobs);
}

static int mark_closed(struct jobs_local *jobs, void *arguments)
{
	(void)arguments;
	jobs->closed = 1;
	return WW_OK;
}

static void cancel_timer(struct ww_driver *driver, ww_handle *timer)
{
	if (driver && *timer)
		(void)ww_driver_cancel_wait(driver, *timer);
	*timer = 0;
}

/* Callbacks find the store closed and touch nothing. Once its timer is cancelled, a callback does not run any more. */
static void cancel_timers(struct jobs_local *jobs)
{
	cancel_timer(jobs->elapsed.driver, &jobs->elapsed.timer);
	cancel_timer(jobs->wall.driver, &jobs->wall.timer);
	for (struct tube *tube = jobs->tubes; tube; tube = tube->hh.next) {
		cancel_timer(jobs->elapsed.driver, &tube->pause_timer);
		if (!tube->limits)
			continue;
		cancel_timer(jobs->elapsed.driver, &tube->limits->whole.timer);
		for (struct group *group = tube->limits->named; group; group = group->hh.next)
			cancel_timer(jobs->elapsed.driver, &group->limiter.timer);
	}
	cancel_timer(jobs->elapsed.driver, &jobs->clock_timer);
	cancel_timer(jobs->elapsed.driver, &jobs->forget_timer);
	for (uint32_t i = 0; i < slab_end(&jobs->entries); i++) {
		struct entry *entry = slab_at(&jobs->entries, i);
		if (entry->is.state)
			cancel_timer(ww_jobs_timeline(jobs, image_is_on_wall(&entry->is))->driver, &entry->timer);
	}
}

/* A callback whose timer was cancelled too late goes through ww_jobs_submit and finds the store closed. */
static void wait_for_callbacks(struct jobs_local *jobs)
{
	pthread_mutex_lock(&jobs->lock);
	while (jobs->late || jobs->busy || jobs->inside)
		pthread_cond_wait(&jobs->idle, &jobs->lock);
	pthread_mutex_unlock(&jobs->lock);
}

static void end_timers(struct jobs_local *jobs)
{
	(void)ww_jobs_submit(jobs, mark_closed, NULL);
	cancel_timers(jobs);
	wait_for_callbacks(jobs);
}

/* Each opening has a number. It makes the tokens of this opening greater than all tokens before. */
static int open_epoch(struct jobs_local *jobs, void *arguments)
{
	const struct store *store = &jobs->store;
	int error;

	(void)arguments;
	if (jobs->config.flags & WW_JOBS_READONLY)
		return WW_OK;
	error = ww_jobs_writing(jobs);
	jobs->meta.epoch++;
	if (store->ops->epoch)
		jobs->meta.epoch = store->ops->epoch(store->self, jobs->meta.epoch);
	return error;
}

/* Load one batch of each clock, until the window is full. */
static int read_on(struct jobs_local *jobs, void *arguments)
{
	(void)arguments;
	jobs->elapsed.wants = jobs->elapsed.planned == 0;
	jobs->wall.wants = jobs->wall.planned == 0;
	return WW_OK;
}

static int read_all(struct jobs_local *jobs)
{
	int is_new;
	int error = ww_jobs_meta_read(jobs, &is_new);

	if (!error)
		error = ww_jobs_tubes_open(jobs);
	if (!error)
		ww_jobs_clock_open(jobs, is_new);
	if (!error)
		error = ww_jobs_rules_open(jobs);
	if (!error)
		error = ww_jobs_history_open(jobs);
	jobs->meta_before = jobs->meta;
	jobs->store.ops->rest(jobs->store.self);
	if (!error)
		error = ww_jobs_submit(jobs, open_epoch, NULL);
	/* In every mode of syncing: no token may come twice. */
	if (!error && !(jobs->config.flags & WW_JOBS_READONLY))
		error = jobs->store.ops->sync(jobs->store.self);
	if (!error)
		error = ww_jobs_submit(jobs, ww_jobs_ended_open, NULL);
	for (size_t i = 0; !error && i < jobs->config.window_jobs / LOAD_BATCH; i++)
		error = ww_jobs_submit(jobs, read_on, NULL);
	return error;
}

/* Store what only memory knows of leases. A store that is closed in order loses nothing of it. */
static int store_leases(struct jobs_local *jobs, void *arguments)
{
	int error;

	(void)arguments;
	if (jobs->config.flags & WW_JOBS_READONLY)
		return WW_OK;
	/* Even if no lease has anything to store, store the time of the clocks. What was read before a
	 * write begins is gone. */
	error = ww_jobs_writing(jobs);
	if (!error)
		error = ww_jobs_rules_store(jobs);
	for (uint32_t i = 0; i < slab_end(&jobs->entries) && !error; i++) {
		struct entry *entry = slab_at(&jobs->entries, i);
		struct job_record old;
		struct job_record record;
		if (!entry->is.state || !(entry->is.reserves | entry->is.timeouts | entry->is.tries))
			continue;
		if (ww_jobs_read(jobs, entry->id, &old))
			continue;
		record = old;
		ww_jobs_merge(&record, entry);
		error = ww_jobs_write(jobs, entry->id, &old, &record);
	}
	jobs->ending = 1;
	return error;
}

static int close_store(struct ww_jobs *handle)
{
	struct jobs_local *jobs = local_of(handle);
	int error;
	int ended;

	if (ww_fork_count() != jobs->forks)
		return WW_ECLOSED;
	if (ww_jobs_is_mine(jobs))
		return WW_EBUSY;
	error = ww_jobs_submit(jobs, store_leases, NULL);
	end_timers(jobs);
	ended = jobs->store.ops->close(jobs->store.self);
	free_all(jobs);
	return error ? error : ended;
}

static int now(struct ww_jobs *jobs, uint32_t flags, uint64_t *ns)
{
	const struct timeline *line = ww_jobs_timeline(local_of(jobs), (flags & WW_JOB_WALL) != 0);

	if (ww_fork_count() != local_of(jobs)->forks)
		return WW_ECLOSED;
	if (!line->driver)
		return WW_ESYSTEM;
	*ns = ww_jobs_time(line);
	return WW_OK;
}

static void free_body(struct ww_jobs *jobs, void *body)
{
	job_body_free(local_of(jobs)->allocator, body);
}

static const struct jobs_backend backend = {
    .close = close_store,
    .free = free_body,
    .begin = ww_jobs_local_begin,
    .commit = ww_jobs_local_commit,
    .now = now,
    .put = ww_jobs_local_put,
    .put_many = ww_jobs_local_put_many,
    .move = ww_jobs_local_move,
    .cancel = ww_jobs_local_cancel,
    .reserve = ww_jobs_local_reserve,
    .reserve_many = ww_jobs_local_reserve_many,
    .wait = ww_jobs_local_wait,
    .reserve_job = ww_jobs_local_reserve_job,
    .finish = ww_jobs_local_finish,
    .finish_many = ww_jobs_local_finish_many,
    .release = ww_jobs_local_release,
    .return_after = ww_jobs_local_return,
    .bury = ww_jobs_local_bury,
    .touch = ww_jobs_local_touch,
    .report = ww_jobs_local_report,
    .history = ww_jobs_local_history,
    .kick = ww_jobs_local_kick,
    .kick_job = ww_jobs_local_kick_job,
    .pause = ww_jobs_local_pause,
    .limit_set = ww_jobs_local_limit_set,
    .limit_get = ww_jobs_local_limit_get,
    .limit_list = ww_jobs_local_limit_list,
    .peek = ww_jobs_local_peek,
    .peek_next = ww_jobs_local_peek_next,
    .state = ww_jobs_local_state,
    .list = ww_jobs_local_list,
    .forecast = ww_jobs_local_forecast,
    .stats = ww_jobs_local_stats,
    .tube = ww_jobs_local_tube,
    .tubes = ww_jobs_local_tubes,
    .above = ww_jobs_local_above,
    .check = ww_jobs_local_check,
    .publishes = 1,
};

int ww_jobs_backup(const char *path, const char *target)
{
	return path && target ? ww_store_copy(path, target) : WW_EINVAL;
}

/* It cannot be opened on this store, unless that is NULL. */
static int refuse(const struct store *store, int error)
{
	if (store)
		(void)store->ops->close(store->self);
	return error;
}

static int open_on(struct ww_jobs **result, const struct ww_jobs_config *config, const struct store *store)
{
	const struct ww_allocator *allocator = config->allocator ? config->allocator : ww_allocator_default();
	struct jobs_local *jobs = memory_take_zeroed(allocator, sizeof *jobs);
	int error;

	if (!jobs)
		return refuse(store, WW_ENOMEM);
	jobs->base.backend = &backend;
	jobs->allocator = allocator;
	jobs->config = *config;
	jobs->config.allocator = allocator;
	jobs->last = &jobs->first;
	jobs->commit = ww_jobs_commit_batch;
	jobs->come_due = ww_jobs_come_due;
	jobs->time_out = ww_jobs_time_out;
	jobs->expire = ww_jobs_expire;
	jobs->forget_at = UINT64_MAX;
	STAILQ_INIT(&jobs->idle_groups);
	TAILQ_INIT(&jobs->idle_coded);
	jobs->forks = ww_fork_watch();
	jobs->random = time_now(CLOCK_REALTIME) ^ (uint64_t)getpid() << 32;
	jobs->elapsed.jobs = jobs->wall.jobs = jobs;
	ww_slab_init(&jobs->entries, sizeof(struct entry), allocator);
	error = make_locks(jobs);
	if (error) {
		allocator->free(allocator->user, jobs, sizeof *jobs);
		return refuse(store, error);
	}
	error = ww_table_init(&jobs->ids, allocator);
	if (!error)
		error = ww_jobs_counts_open(jobs);
	if (!error && store)
		jobs->store = *store;
	else if (!error)
		error = config->flags & WW_JOBS_MEMORY ? ww_store_memory_open(&jobs->store, &jobs->config)
		                                       : ww_store_disk_open(&jobs->store, &jobs->config);
	jobs->config.path = NULL;
	if (error) {
		free_all(jobs);
		return refuse(store, error);
	}
	error = read_all(jobs);
	if (error) {
		/* Write nothing to a store that could not be read. */
		end_timers(jobs);
		(void)jobs->store.ops->close(jobs->store.self);
		free_all(jobs);
		return error;
	}
	*result = &jobs->base;
	return WW_OK;
}

int ww_jobs_open(struct ww_jobs **result, const struct ww_jobs_config *config)
{
	return result && config && is_sound(config) ? open_on(result, config, NULL) : WW_EINVAL;
}

/* ---- For stores outside this library (port.h) */

int ww_jobs_port_open(struct ww_jobs **result, const struct ww_jobs_config *config, const struct store *store)
{
	struct ww_jobs_config sound = *config;
	struct ww_jobs *jobs = NULL;
	int error;

	sound.flags = WW_JOBS_MEMORY;
	if (!is_sound(&sound))
		return refuse(store, WW_EINVAL);
	sound.flags = 0;
	error = open_on(&jobs, &sound, store);
	*result = jobs;
	return error;
}

void *ww_jobs_port_store(struct ww_jobs *jobs)
{
	return local_of(jobs)->store.self;
}

int ww_jobs_port_memory(struct store *store, const struct ww_jobs_config *config)
{
	return ww_store_memory_open(store, config);
}

int ww_jobs_port_each(const struct store *memory, enum store_table table, store_pair_fn *pair, void *context)
{
	return ww_store_memory_each(memory, table, pair, context);
}

int ww_jobs_port_secret(const struct store *store, uint64_t *secret)
{
	struct meta meta = {0};
	struct store_bytes value;
	static const struct store_bytes key = {"meta", 4};
	int error = store->ops->get(store->self, STORE_META, key, &value);

	if (!error)
		error = ww_jobs_meta_take(&meta, key, value);
	*secret = meta.secret;
	return error;
}

int ww_jobs_port_change(struct changes *changes, const struct ww_allocator *allocator, enum store_table table,
    struct store_bytes key, int there, struct store_bytes value, struct store_bytes *kept)
{
	return ww_changes_add(changes, allocator, table, key, there, value, kept);
}

int ww_jobs_port_changes(const unsigned char *bytes, size_t size, changes_fn *fn, void *context)
{
	return ww_changes_each(bytes, size, fn, context);
}
