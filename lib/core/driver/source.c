/* A source: a wheel under its lock. It informs the driver when the driver must look at it. */

#include "lib/core/driver/driver_internal.h"
#include "lib/core/wheel/event.h"

/* Make a wheel of the driver's geometry in this memory, which begins at the tick. */
static struct ww_wheel *make_wheel(const struct ww_driver *driver, void *memory, uint64_t tick)
{
	struct ww_wheel_config config;
	struct ww_wheel *wheel = NULL;

	ww_driver_wheel_config(driver, &config);
	config.start = tick;
	(void)ww_wheel_create_at(&wheel, memory, driver->wheel_bytes, &config);
	return wheel;
}

int ww_source_prepare(struct timer_source *source)
{
	const struct ww_driver *driver = source->group->driver;
	void *memory;

	if (source->wheel)
		return WW_OK;
	memory = driver->allocator->allocate(driver->allocator->user, driver->wheel_bytes);
	if (!memory)
		return WW_ENOMEM;
	source->wheel = make_wheel(driver, memory, ww_driver_time(driver) / driver->tick_ns);
	source->group->wheels++;
	return WW_OK;
}

void ww_source_free_wheel(struct timer_source *source)
{
	const struct ww_driver *driver = source->group->driver;
	struct ww_wheel *wheel = source->wheel;

	if (!wheel)
		return;
	/* In this order a child of the process frees it at most once. */
	source->wheel = NULL;
	source->group->wheels--;
	driver->allocator->free(driver->allocator->user, wheel, driver->wheel_bytes);
}

/*
 * The clock was stepped back, and a wheel's time cannot run backwards. The wheel is made anew in its place and begins
 * at the clock's time. Its timers go there, and wait until the clock comes to their deadlines again. Meanwhile they are
 * chained by their own members: an idle timer needs neither its link nor its place, which has the deadline. Nothing is
 * allocated, because nothing may fail here.
 */
void ww_source_rewind(struct timer_source *source, uint64_t tick)
{
	struct ww_expiry batch[SOURCE_BATCH];
	struct ww_timer *first = NULL;
	size_t count;

	while ((count = ww_source_drain(source, batch)) > 0)
		for (size_t i = 0; i < count; i++) {
			batch[i].timer->ww_next = first;
			batch[i].timer->ww_where = batch[i].deadline;
			first = batch[i].timer;
		}
	(void)make_wheel(source->group->driver, source->wheel, tick);
	while (first) {
		struct ww_timer *timer = first;
		first = timer->ww_next;
		(void)ww_wheel_schedule_at(source->wheel, timer, timer->ww_where);
	}
}

void ww_source_lock(struct timer_source *source)
{
	pthread_mutex_lock(&source->lock);
}

void ww_source_lock_two(struct timer_source *one, struct timer_source *other)
{
	ww_source_lock(one < other ? one : other);
	if (one != other)
		ww_source_lock(one < other ? other : one);
}

/* The lock is not held any more, under which the source's next tick was read. */
static inline void wake_for(const struct timer_source *source, uint64_t next)
{
	struct ww_driver *driver = source->group->driver;

	if (next < driver->armed && !awaits_room(source, next))
		ww_driver_rearm(driver, next);
}

void ww_source_unlock(struct timer_source *source)
{
	uint64_t next = source->next;

	pthread_mutex_unlock(&source->lock);
	wake_for(source, next);
}

void ww_source_unlock_two(struct timer_source *one, struct timer_source *other)
{
	uint64_t next = one->next;
	uint64_t other_next = other->next;

	pthread_mutex_unlock(&one->lock);
	if (one != other)
		pthread_mutex_unlock(&other->lock);
	/* No source's lock is held while the alarm is armed. */
	wake_for(one, next);
	wake_for(other, other_next);
}

void ww_source_wait(struct timer_source *source, pthread_cond_t *condition)
{
	pthread_cond_wait(condition, &source->lock);
}

static uint64_t tick_of(const struct timer_source *source, uint64_t deadline)
{
	uint64_t tick_ns = source->group->driver->tick_ns;

	return deadline / tick_ns + (deadline % tick_ns != 0);
}

/*
 * The wheel may need advance before the timer's deadline, to demote its slot. If the wheel's event is one that nothing
 * waits for any more, the driver looks once too often.
 */
static void note_event(struct timer_source *source)
{
	uint64_t event = wheel_event(source->wheel);

	if (event >= source->next)
		return;
	source->next = event;
	ww_agenda_note(&source->group->driver->agenda, source);
}

void ww_source_schedule(struct timer_source *source, struct ww_timer *timer, uint64_t deadline)
{
	(void)ww_wheel_schedule_at(source->wheel, timer, tick_of(source, deadline));
	note_event(source);
}

void ww_source_move(struct timer_source *source, struct ww_timer *timer, uint64_t deadline)
{
	(void)ww_wheel_reschedule_at(source->wheel, timer, tick_of(source, deadline));
	note_event(source);
}

void ww_source_cancel(struct timer_source *source, struct ww_timer *timer)
{
	(void)ww_wheel_cancel(source->wheel, timer);
}

struct ww_timer *ww_source_take_due(struct timer_source *source, uint64_t now)
{
	struct ww_driver *driver = source->group->driver;
	struct ww_expiry due;
	size_t count = 0;

	if (wheel_event(source->wheel) > now / driver->tick_ns)
		return NULL;
	/* Before the wheel's time, after a step back, this refuses. */
	(void)ww_wheel_advance_batch(source->wheel, ww_driver_time(driver) / driver->tick_ns, &due, 1, &count);
	note_event(source);
	if (!count)
		return NULL;
	source->met = due.deadline;
	return due.timer;
}

uint64_t ww_source_met(const struct timer_source *source)
{
	return source->met;
}

size_t ww_source_drain(struct timer_source *source, struct ww_expiry *batch)
{
	size_t count = 0;

	return ww_wheel_drain(source->wheel, batch, SOURCE_BATCH, &count) < 0 ? 0 : count;
}
