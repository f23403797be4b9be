/* A driver's life: making, running, stopping. And the questions of the layers above about it. */

#include <stdatomic.h>
#include <unistd.h>

#include "lib/base/fork.h"
#include "lib/base/thread.h"
#include "lib/core/driver/driver_internal.h"

#define TICK_MIN WW_MICROSECOND
#define TICK_MAX (1000 * WW_SECOND)

/* ---- What the layers above ask */

int ww_driver_forked(const struct ww_driver *driver)
{
	return driver->forks != ww_fork_count();
}

int ww_driver_refuses(const struct ww_driver *driver)
{
	if (!driver)
		return WW_EINVAL;
	return driver->closed || ww_driver_forked(driver) ? WW_ECLOSED : WW_OK;
}

const struct ww_allocator *ww_driver_allocator(const struct ww_driver *driver)
{
	return driver->allocator;
}

uint64_t ww_driver_tick(const struct ww_driver *driver)
{
	return driver->tick_ns;
}

uint32_t ww_driver_shards(const struct ww_driver *driver)
{
	return driver->shard_count;
}

uint64_t ww_driver_time(const struct ww_driver *driver)
{
	uint64_t now = 0;

	(void)ww_clock_now(driver->clock, &now);
	return now;
}

/* ---- Configuration */

int ww_driver_config_default(struct ww_driver_config *config)
{
	if (!config)
		return WW_EINVAL;
	*config = (struct ww_driver_config){.tick_ns = WW_MILLISECOND, .queue = 65536, .workers = 8};
	return WW_OK;
}

static int config_refused(const struct ww_driver_config *config)
{
	if (config->tick_ns < TICK_MIN || config->tick_ns > TICK_MAX)
		return WW_EINVAL;
	if (config->queue < 1 || config->queue > INT32_MAX)
		return WW_EINVAL;
	if (config->workers > WW_DRIVER_WORKERS_MAX || config->shards > WW_DRIVER_SHARDS_MAX)
		return WW_EINVAL;
	if (config->share > WW_DRIVER_SHARE_MAX || config->flags & ~(WW_DRIVER_THREADLESS | WW_DRIVER_DROP))
		return WW_EINVAL;
	if (config->workers == 0 && !(config->flags & WW_DRIVER_THREADLESS))
		return WW_EINVAL;
	if (config->allocator && (!config->allocator->allocate || !config->allocator->free))
		return WW_EINVAL;
	return WW_OK;
}

/*
 * With ticks of a second or more, the default levels of wheel.h. With finer ones, two more levels below them: ticks of
 * a millisecond have levels of 50 ms, a second, a minute, an hour, a day and a week.
 */
void ww_driver_wheel_config(const struct ww_driver *driver, struct ww_wheel_config *config)
{
	static const uint32_t fine[] = {50, 20, 60, 60, 24, 7};

	(void)ww_wheel_config_default(config);
	config->tick_ns = driver->tick_ns;
	config->allocator = driver->allocator;
	if (driver->tick_ns >= WW_SECOND)
		return;
	config->levels = sizeof fine / sizeof fine[0];
	for (uint32_t level = 0; level < config->levels; level++)
		config->slots[level] = fine[level];
}

static size_t wheel_bytes(const struct ww_driver *driver)
{
	struct ww_wheel_config config;
	size_t bytes = 0;

	ww_driver_wheel_config(driver, &config);
	(void)ww_wheel_size(&config, &bytes);
	return bytes;
}

/* Twice as many as processors, so that two threads rarely share one. */
static uint32_t shards_for(const struct ww_driver_config *config)
{
	long processors = sysconf(_SC_NPROCESSORS_ONLN);
	uint32_t shards = 4;

	if (config->shards)
		return config->shards;
	if (config->flags & WW_DRIVER_THREADLESS)
		return 1;
	while (shards < WW_DRIVER_SHARDS_MAX && (long)shards < 2 * processors)
		shards *= 2;
	return shards;
}

/* ---- Making */

static _Atomic uint64_t serials;

static void drive(struct ww_driver *driver)
{
	for (;;) {
		(void)ww_alarm_wait(driver->alarm);
		ww_driver_wake_up(driver);
		if (driver->closed)
			return;
		ww_driver_pass_and_sleep(driver);
	}
}

static void *be_driver(void *argument)
{
	struct ww_driver *driver = argument;
	struct thread_here here;

	ww_thread_enter(&here, &driver->queue.hooks, -1);
	drive(driver);
	ww_thread_leave(&here, &driver->queue.hooks);
	return NULL;
}

static void room_made(struct queue *queue)
{
	ww_driver_wake((struct ww_driver *)(void *)((char *)queue - offsetof(struct ww_driver, queue)));
}

static void *allocate(const struct ww_driver *driver, size_t size)
{
	return driver->allocator->allocate(driver->allocator->user, size);
}

static int create_shards(struct ww_driver *driver, uint32_t count, uint32_t share)
{
	int error;

	driver->shards = allocate(driver, count * sizeof *driver->shards);
	if (!driver->shards)
		return WW_ENOMEM;
	error = ww_group_attach(
	    &driver->timers, driver, &ww_driver_fire_ops, driver, driver->shards, sizeof *driver->shards, count);
	if (error) {
		driver->allocator->free(driver->allocator->user, driver->shards, count * sizeof *driver->shards);
		return error;
	}
	driver->shard_count = count;
	ww_group_share(driver->timers, share);
	for (uint32_t i = 0; i < count; i++) {
		struct shard *shard = &driver->shards[i];
		*shard = (struct shard){.source = ww_group_source(driver->timers, i), .driver = driver};
		ww_slab_init(&shard->slab, sizeof(struct timer_record), driver->allocator);
		pthread_cond_init(&shard->ended, NULL);
	}
	return WW_OK;
}

/* The memory of the shards only. In a child of the process, ww_group_detach frees no more than that either. */
static void free_shards(struct ww_driver *driver)
{
	ww_group_detach(driver->timers);
	for (uint32_t i = 0; i < driver->shard_count; i++)
		ww_slab_destroy(&driver->shards[i].slab);
	driver->allocator->free(driver->allocator->user, driver->shards, driver->shard_count * sizeof *driver->shards);
}

static void destroy_shards(struct ww_driver *driver)
{
	for (uint32_t i = 0; i < driver->shard_count; i++)
		pthread_cond_destroy(&driver->shards[i].ended);
	free_shards(driver);
}

static int start_threads(struct ww_driver *driver)
{
	int error;

	if (driver->flags & WW_DRIVER_THREADLESS)
		return WW_OK;
	error = ww_queue_start(&driver->queue);
	if (error)
		return error;
	if (thread_start(&driver->thread, be_driver, driver) == 0)
		return WW_OK;
	ww_queue_end(&driver->queue);
	return WW_ESYSTEM;
}

/* Set up all but the driver's own memory. A step that fails undoes those before it. */
static int fill_driver(struct ww_driver *driver, const struct ww_driver_config *config)
{
	uint32_t workers = config->flags & WW_DRIVER_THREADLESS ? 0 : config->workers;
	int error = ww_alarm_create(&driver->alarm, driver->clock, driver->allocator);

	if (error)
		return error;
	error = ww_queue_create(&driver->queue, (uint32_t)config->queue, workers, driver->clock, driver->allocator);
	if (error)
		goto no_queue;
	driver->queue.room_made = room_made;
	driver->queue.hooks = (struct thread_hooks){config->thread_begin, config->thread_end, config->thread_user};
	error = create_shards(driver, shards_for(config), config->share);
	if (error)
		goto no_shards;
	error = start_threads(driver);
	if (!error)
		return WW_OK;
	destroy_shards(driver);
no_shards:
	ww_queue_destroy(&driver->queue);
no_queue:
	ww_alarm_destroy(driver->alarm);
	return error;
}

int ww_driver_create(struct ww_driver **driver, const struct ww_driver_config *config)
{
	struct ww_driver_config fallback;
	struct ww_driver *made;
	int error;

	if (!driver)
		return WW_EINVAL;
	if (!config) {
		(void)ww_driver_config_default(&fallback);
		config = &fallback;
	}
	error = config_refused(config);
	if (error)
		return error;
	const struct ww_allocator *allocator = config->allocator ? config->allocator : ww_allocator_default();
	made = allocator->allocate(allocator->user, sizeof *made);
	if (!made)
		return WW_ENOMEM;
	*made = (struct ww_driver){
	    .clock = config->clock ? config->clock : ww_clock_elapsed(),
	    .allocator = allocator,
	    .tick_ns = config->tick_ns,
	    .flags = config->flags,
	    .forks = ww_fork_watch(),
	    .serial = ++serials,
	    .armed = WW_NEVER,
	};
	made->wheel_bytes = wheel_bytes(made);
	ww_agenda_init(&made->agenda);
	pthread_mutex_init(&made->watch_lock, NULL);
	error = fill_driver(made, config);
	if (error) {
		ww_agenda_destroy(&made->agenda);
		pthread_mutex_destroy(&made->watch_lock);
		allocator->free(allocator->user, made, sizeof *made);
		return error;
	}
	*driver = made;
	return WW_OK;
}

/* ---- Stopping */

int ww_driver_stop(struct ww_driver *driver, ww_driver_drain_fn *drain, void *context, size_t *count)
{
	struct firing *firings[WW_DRIVER_WORKERS_MAX];
	uint32_t firing_count = 0;
	struct inside here;
	size_t taken = 0;
	int cancel;
	int first;

	if (!driver)
		return WW_EINVAL;
	if (ww_driver_forked(driver))
		return WW_ECLOSED;
	pthread_mutex_lock(&driver->queue.lock);
	first = !driver->closed;
	if (first)
		firing_count = ww_queue_close(&driver->queue, driver->timers, firings);
	/* A thread that sees this knows that no worker takes a firing any more. */
	driver->closed = 1;
	pthread_mutex_unlock(&driver->queue.lock);
	if (first) {
		ww_driver_wake(driver);
		ww_driver_notify_stop(driver);
		ww_inside_enter(&here, driver);
		/* If the thread were cancelled in drain, the timers that are left would be handed to nobody. */
		(void)pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
		taken = ww_driver_fire_drain(driver, firings, firing_count, drain, context);
		(void)pthread_setcancelstate(cancel, &cancel);
		ww_inside_leave(&here);
	}
	if (count)
		*count = taken;
	return WW_OK;
}

static void free_driver(struct ww_driver *driver)
{
	const struct ww_allocator *allocator = driver->allocator;

	destroy_shards(driver);
	ww_queue_destroy(&driver->queue);
	ww_alarm_destroy(driver->alarm);
	ww_agenda_destroy(&driver->agenda);
	pthread_mutex_destroy(&driver->watch_lock);
	allocator->free(allocator->user, driver, sizeof *driver);
}

/*
 * In a child of the process, locks are as they were at the fork, and the threads that held them are missing. Free the
 * memory and the descriptor only, without the lock of a virtual clock.
 */
static void free_in_child(struct ww_driver *driver)
{
	const struct ww_allocator *allocator = driver->allocator;

	free_shards(driver);
	ww_queue_free(&driver->queue);
	if (driver_is_steady(driver) || driver->clock == ww_clock_wall())
		ww_alarm_destroy(driver->alarm);
	allocator->free(allocator->user, driver, sizeof *driver);
}

int ww_driver_destroy(struct ww_driver *driver)
{
	int inside;

	if (!driver)
		return WW_OK;
	/* One is the driver's own. */
	if (driver->groups > 1)
		return WW_EBUSY;
	/* A child may be forked in a callback and end there. */
	if (ww_driver_forked(driver)) {
		free_in_child(driver);
		return WW_OK;
	}
	inside = ww_queue_inside(&driver->queue, NULL, NULL);
	if (ww_inside_of(driver) || (inside && !(driver->flags & WW_DRIVER_THREADLESS)))
		return WW_EBUSY;
	/* Not asked in a child: it cannot release what other threads held. */
	if (ww_driver_is_held(driver))
		return WW_EBUSY;
	(void)ww_driver_stop(driver, NULL, NULL, NULL);
	driver->doomed = inside;
	if (inside)
		return WW_OK;
	if (!(driver->flags & WW_DRIVER_THREADLESS)) {
		thread_join(driver->thread);
		ww_queue_end(&driver->queue);
	}
	free_driver(driver);
	return WW_OK;
}

/* ---- Without threads */

int ww_driver_fd(const struct ww_driver *driver)
{
	if (!driver || !(driver->flags & WW_DRIVER_THREADLESS))
		return WW_EINVAL;
	return ww_driver_forked(driver) ? WW_ECLOSED : ww_alarm_fd(driver->alarm);
}

/* Look at what is due, and call up to `budget` callbacks; returns how many. */
static uint32_t dispatch(struct ww_driver *driver, uint32_t budget)
{
	uint32_t ran = 0;

	ww_driver_wake_up(driver);
	do {
		ww_driver_pass(driver);
		while (ran < budget && ww_queue_run(&driver->queue))
			ran++;
	} while (ran < budget && driver->queue.starving && !driver->closed);
	ww_driver_sleep(driver);
	if (driver->queue.lanes.length || driver->queue.starving)
		ww_driver_wake(driver);
	return ran;
}

/* Let a callback have destroyed the driver: then the caller frees it. */
static int dispatch_once(struct ww_driver *driver, uint32_t budget)
{
	uint32_t ran;
	int cancel;

	if (!driver || !(driver->flags & WW_DRIVER_THREADLESS) || budget == 0)
		return WW_EINVAL;
	/* The result is an int. */
	if (budget > INT32_MAX)
		budget = INT32_MAX;
	int error = ww_driver_refuses(driver);
	if (error)
		return error;
	if (atomic_exchange(&driver->dispatching, 1))
		return WW_EBUSY;
	/*
	 * If the thread were cancelled in a callback, that would count as running, and the driver as dispatching, for
	 * ever.
	 */
	(void)pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
	ran = dispatch(driver, budget);
	driver->dispatching = 0;
	(void)pthread_setcancelstate(cancel, &cancel);
	return (int)ran;
}

int ww_driver_dispatch(struct ww_driver *driver, uint32_t budget)
{
	int ran = dispatch_once(driver, budget);

	if (ran >= 0 && driver->doomed)
		free_driver(driver);
	return ran;
}

/* ---- Looking inside */

int ww_driver_now(const struct ww_driver *driver, uint64_t *ns)
{
	if (!driver || !ns)
		return WW_EINVAL;
	if (ww_driver_forked(driver))
		return WW_ECLOSED;
	*ns = ww_driver_time(driver);
	return WW_OK;
}

static int settle_by_dispatch(struct ww_driver *driver)
{
	uint64_t time = ww_driver_time(driver);
	int ran;

	do {
		pthread_testcancel();
		ran = dispatch_once(driver, INT32_MAX);
	} while (ran >= 0 && !driver->doomed && (driver->queue.lanes.length || !ww_driver_is_settled(driver, time)));
	if (ran < 0)
		return ran;
	if (!driver->doomed)
		return WW_OK;
	free_driver(driver);
	return WW_ECLOSED;
}

static void unwatch(void *argument)
{
	struct queue *queue = argument;

	queue->watchers--;
	pthread_mutex_unlock(&queue->lock);
}

/* Settled: between two looks at the queue that show no change, no wheel had anything due. */
static void wait_until_settled(struct ww_driver *driver, uint64_t time)
{
	struct queue *queue = &driver->queue;
	int settled = 0;

	pthread_mutex_lock(&queue->lock);
	queue->watchers++;
	pthread_cleanup_push(unwatch, queue);
	while (!driver->closed && !settled) {
		uint64_t seen = queue->changes;
		pthread_mutex_unlock(&queue->lock);
		settled = ww_driver_is_settled(driver, time);
		pthread_mutex_lock(&queue->lock);
		settled = settled && queue->changes == seen &&
		          queue->lanes.length + queue->lanes.running + queue->starving == 0;
		while (!settled && !driver->closed && queue->changes == seen)
			pthread_cond_wait(&queue->change, &queue->lock);
	}
	pthread_cleanup_pop(1);
}

int ww_driver_settle(struct ww_driver *driver)
{
	uint64_t time;
	int error = ww_driver_refuses(driver);

	if (error)
		return error;
	if (ww_queue_inside(&driver->queue, NULL, NULL))
		return WW_EBUSY;
	if (driver->flags & WW_DRIVER_THREADLESS)
		return settle_by_dispatch(driver);
	time = ww_driver_time(driver);
	wait_until_settled(driver, time);
	return driver->closed ? WW_ECLOSED : WW_OK;
}

/* The shard's lock is held. */
static void add_levels(struct ww_driver_stats *stats, const struct ww_wheel *wheel)
{
	struct ww_stats one = {0};

	(void)ww_wheel_stats(wheel, &one);
	for (uint32_t i = 0; i < one.levels; i++)
		stats->level[i] += one.level[i].pending;
}

int ww_driver_stats(struct ww_driver *driver, struct ww_driver_stats *stats)
{
	struct ww_wheel_config config;
	uint64_t now;

	if (!driver || !stats)
		return WW_EINVAL;
	if (ww_driver_forked(driver))
		return WW_ECLOSED;
	now = ww_driver_time(driver);
	ww_driver_wheel_config(driver, &config);
	*stats = (struct ww_driver_stats){.wakeups = driver->wakeups, .levels = config.levels};
	stats->bytes = sizeof *driver + ww_group_bytes(driver->timers);
	for (uint32_t i = 0; i < driver->shard_count; i++) {
		struct shard *shard = &driver->shards[i];
		pthread_mutex_lock(&shard->source->lock);
		stats->pending += shard->pending;
		stats->scheduled += shard->scheduled;
		stats->fired += shard->fired;
		stats->cancelled += shard->cancelled;
		stats->dropped += shard->dropped;
		stats->bytes += sizeof *shard + ww_slab_bytes(&shard->slab);
		add_levels(stats, shard->source->wheel);
		pthread_mutex_unlock(&shard->source->lock);
	}
	stats->fired += ww_queue_calls(&driver->queue);
	ww_queue_stats(&driver->queue, now, stats);
	return WW_OK;
}
