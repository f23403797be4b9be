/* This library as an application uses it: through its public header and the shared library, which checks arguments. */
#include <stdlib.h>

#include "tools/bench/structure.h"
#include "tools/common/memory.h"
#include "weekwheel/wheel.h"

_Static_assert(sizeof(struct ww_timer) <= OBJECT_SIZE, "a timer is embedded in the object");

/* A callback is given the wheel and the timer. An application finds the rest in its object, or, as here, there is one. */
static struct sink *weekwheel_sink;

static struct ww_timer *timer_of(struct object *object)
{
	return (struct ww_timer *)(void *)object;
}

static void weekwheel_expired(struct ww_wheel *wheel, struct ww_timer *timer, uint64_t missed)
{
	(void)wheel;
	(void)missed;
	sink_report(weekwheel_sink, (struct object *)(void *)timer);
}

static void *weekwheel_create(struct object *objects, uint64_t n, struct sink *sink)
{
	struct ww_wheel *wheel;

	if (ww_wheel_create(&wheel, NULL))
		memory_exhausted();
	for (uint64_t i = 0; i < n; i++)
		ww_timer_init(timer_of(&objects[i]), weekwheel_expired);
	weekwheel_sink = sink;
	return wheel;
}

static void weekwheel_destroy(void *state)
{
	ww_wheel_destroy(state);
}

static void weekwheel_schedule(void *state, struct object *object, uint64_t delay)
{
	ww_wheel_schedule(state, timer_of(object), delay);
}

static void weekwheel_cancel(void *state, struct object *object)
{
	ww_wheel_cancel(state, timer_of(object));
}

static void weekwheel_touch(void *state, struct object *object, uint64_t delay)
{
	ww_wheel_reschedule(state, timer_of(object), delay);
}

static void weekwheel_advance(void *state, uint64_t now)
{
	ww_wheel_advance(state, now, WW_UNLIMITED, NULL);
}

/* An object begins with its timer: an array of pointers to objects serves as one of pointers to timers. */
static struct ww_timer *const *timers_of(struct object *const *objects)
{
	return (struct ww_timer *const *)(const void *)objects;
}

static void weekwheel_schedule_many(void *state, struct object *const *objects, const uint64_t *delays, uint64_t n)
{
	ww_wheel_schedule_many(state, timers_of(objects), delays, n, NULL);
}

static void weekwheel_cancel_many(void *state, struct object *const *objects, uint64_t n)
{
	ww_wheel_cancel_many(state, timers_of(objects), n, NULL);
}

/* As few levels as reach the horizon, and the highest no larger than it must be. */
static size_t weekwheel_bytes_for(uint64_t horizon)
{
	static const uint32_t slots[WW_LEVELS_MAX] = {60, 60, 24, 64, 64, 64};
	struct ww_wheel_config config;
	uint64_t turn = 1;
	size_t bytes = 0;

	ww_wheel_config_default(&config);
	config.levels = 0;
	while (turn < horizon && config.levels < WW_LEVELS_MAX) {
		uint64_t needed = (horizon + turn - 1) / turn;

		if (needed > slots[config.levels])
			needed = slots[config.levels];
		config.slots[config.levels++] = needed < WW_SLOTS_MIN ? WW_SLOTS_MIN : (uint32_t)needed;
		turn *= needed;
	}
	ww_wheel_size(&config, &bytes);
	return bytes;
}

const struct structure structure_weekwheel = {
    .name = "weekwheel",
    .summary = "this library",
    .create = weekwheel_create,
    .destroy = weekwheel_destroy,
    .schedule = weekwheel_schedule,
    .cancel = weekwheel_cancel,
    .touch = weekwheel_touch,
    .advance = weekwheel_advance,
    .node_bytes = sizeof(struct ww_timer),
    .bytes_for = weekwheel_bytes_for,
};

const struct structure structure_weekwheel_many = {
    .name = "weekwheel-many",
    .summary = "this library, all timers in a call",
    .create = weekwheel_create,
    .destroy = weekwheel_destroy,
    .schedule = weekwheel_schedule,
    .cancel = weekwheel_cancel,
    .touch = weekwheel_touch,
    .schedule_many = weekwheel_schedule_many,
    .cancel_many = weekwheel_cancel_many,
    .advance = weekwheel_advance,
    .node_bytes = sizeof(struct ww_timer),
    .bytes_for = weekwheel_bytes_for,
};
