#include "lib/core/driver/source.h"

#include "lib/core/driver/driver_internal.h"

/* Threads in the order in which they first asked: neighbours in time get different shards. */
static _Atomic uint32_t homes;
static _Thread_local uint32_t home;

uint32_t ww_driver_home(const struct group *group)
{
	if (home == 0) {
		home = ++homes;
		home += home == 0;
	}
	return home % group->count;
}

static uint64_t event_of(const struct ww_wheel *wheel)
{
	return ((const struct ww_wheel_head *)(const void *)wheel)->event;
}

void ww_source_free(struct source *source)
{
	const struct ww_allocator *allocator = source->group->driver->allocator;

	allocator->free(allocator->user, source->wheel, source->bytes);
	if (source->spare)
		allocator->free(allocator->user, source->spare, source->bytes);
}

static void source_destroy(struct source *source)
{
	ww_source_free(source);
	pthread_mutex_destroy(&source->lock);
}

/* A wheel of the driver's geometry in this memory, which begins at the tick. */
static struct ww_wheel *make_wheel(const struct source *source, void *memory, uint64_t tick)
{
	struct ww_wheel_config config;
	struct ww_wheel *wheel = NULL;

	ww_driver_wheel_config(source->group->driver, &config);
	config.start = tick;
	(void)ww_wheel_create_at(&wheel, memory, source->bytes, &config);
	return wheel;
}

static int source_create(struct source *source, struct group *group)
{
	struct ww_driver *driver = group->driver;
	const struct ww_allocator *allocator = driver->allocator;
	struct ww_wheel_config config;
	void *memory;

	ww_driver_wheel_config(driver, &config);
	source->group = group;
	source->next = WW_NEVER;
	source->done = 0;
	(void)ww_wheel_size(&config, &source->bytes);
	memory = allocator->allocate(allocator->user, source->bytes);
	if (!memory)
		return WW_ENOMEM;
	source->spare = NULL;
	if (driver->clock != ww_clock_elapsed()) {
		source->spare = allocator->allocate(allocator->user, source->bytes);
		if (!source->spare) {
			allocator->free(allocator->user, memory, source->bytes);
			return WW_ENOMEM;
		}
	}
	source->wheel = make_wheel(source, memory, ww_driver_time(driver) / driver->tick_ns);
	pthread_mutex_init(&source->lock, NULL);
	return WW_OK;
}

/*
 * The clock was stepped back behind the wheel's time, and a wheel's time never runs backwards: its timers go to the
 * spare wheel, which begins at the clock's time, and wait until the clock comes to their deadlines again.
 */
void ww_source_rewind(struct source *source, uint64_t tick)
{
	struct ww_expiry batch[SOURCE_BATCH];
	struct ww_wheel *wheel = make_wheel(source, source->spare, tick);
	size_t count;

	while (ww_wheel_drain(source->wheel, batch, SOURCE_BATCH, &count) >= 0 && count)
		for (size_t i = 0; i < count; i++)
			(void)ww_wheel_schedule_at(wheel, batch[i].timer, batch[i].deadline);
	source->spare = source->wheel;
	source->wheel = wheel;
}

int ww_driver_attach(struct group *group, struct ww_driver *driver, const struct group_ops *ops, void *shards,
    size_t stride, uint32_t count)
{
	int error = ww_driver_refuses(driver);

	*group = (struct group){.driver = driver, .ops = ops, .shards = shards, .stride = stride};
	group->waits = ops->queues && !(ops->drops && driver->flags & WW_DRIVER_DROP);
	while (!error && group->count < count) {
		error = source_create(group_source(group, group->count), group);
		group->count += !error;
	}
	if (error) {
		for (uint32_t i = 0; i < group->count; i++)
			source_destroy(group_source(group, i));
		return error;
	}
	pthread_mutex_lock(&driver->groups_lock);
	group->next = driver->groups;
	driver->groups = group;
	pthread_mutex_unlock(&driver->groups_lock);
	return WW_OK;
}

static void forget_group(struct group *group)
{
	struct group **link = &group->driver->groups;

	while (*link && *link != group)
		link = &(*link)->next;
	if (*link)
		*link = group->next;
}

void ww_driver_detach(struct group *group)
{
	struct ww_driver *driver = group->driver;

	/* Any lock may be held by a thread that is not there. */
	if (ww_driver_forked(driver)) {
		forget_group(group);
		for (uint32_t i = 0; i < group->count; i++)
			ww_source_free(group_source(group, i));
		return;
	}
	pthread_mutex_lock(&driver->groups_lock);
	forget_group(group);
	pthread_mutex_unlock(&driver->groups_lock);
	(void)ww_queue_take_back(&driver->queue, group);
	ww_queue_wait_group(&driver->queue, group);
	for (uint32_t i = 0; i < group->count; i++)
		source_destroy(group_source(group, i));
}

void ww_source_lock(struct source *source)
{
	pthread_mutex_lock(&source->lock);
}

void ww_source_unlock(struct source *source)
{
	struct ww_driver *driver = source->group->driver;
	uint64_t next = source->next;

	pthread_mutex_unlock(&source->lock);
	/* What waits for room in the queue is not made to wait less by waking the driver. */
	if (next < driver->armed && !(driver->queue.starved && next <= driver->last && source->group->waits))
		ww_driver_rearm(driver, next);
}

static uint64_t tick_of(const struct source *source, uint64_t deadline)
{
	uint64_t tick_ns = source->group->driver->tick_ns;

	return deadline / tick_ns + (deadline % tick_ns != 0);
}

/*
 * What was filed may ask for attention before its deadline, when its slot is demoted. The wheel's event may also be one
 * that nothing waits for any more, and hide that of what was filed behind it: then it is looked at once too often.
 */
static void note_event(struct source *source)
{
	uint64_t event = event_of(source->wheel);

	if (event < source->next)
		source->next = event;
}

void ww_source_schedule(struct source *source, struct ww_timer *timer, uint64_t deadline)
{
	(void)ww_wheel_schedule_at(source->wheel, timer, tick_of(source, deadline));
	note_event(source);
}

void ww_source_move(struct source *source, struct ww_timer *timer, uint64_t deadline)
{
	(void)ww_wheel_reschedule_at(source->wheel, timer, tick_of(source, deadline));
	note_event(source);
}
