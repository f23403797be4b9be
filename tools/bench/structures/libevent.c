/*
 * libevent's timers: a binary heap of pointers to events, whose deadlines a comparison reads there. An event does not
 * fit the object, which holds a pointer to it. A touch is event_add() of a pending event.
 *
 * A tick is one turn of the loop, event_base_loop() without waiting, with a clock that is set by hand. Measured are
 * the bookkeeping of the turn, the heap, and a callback an event; left out are clocks and polling, see event_loop.h.
 * The clock is read in event_add() too, except in a callback, and that is left out as well.
 */

#include <event2/event.h>
#include <event2/event_struct.h>
#include <stdlib.h>

#include "tools/bench/structure.h"
#include "tools/bench/structures/event_loop.h"
#include "tools/common/memory.h"
#include "tools/common/message.h"

struct event_node {
	struct event *event;
};

struct libevent {
	struct event_base *base;
	struct event *events;
	uint64_t now;
	struct sink *sink;
};

/* Of the loop that is being turned. A callback is given one pointer, and that is to its object. */
static struct sink *libevent_sink;

static struct event *libevent_event(struct object *object)
{
	return ((struct event_node *)(void *)object)->event;
}

static void libevent_expire(evutil_socket_t none, short what, void *object)
{
	(void)none;
	(void)what;
	sink_report(libevent_sink, object);
}

/* For touch as well. */
static void libevent_schedule(void *state, struct object *object, uint64_t delay)
{
	struct libevent *libevent = state;
	struct timeval after = {.tv_sec = (time_t)delay};

	event_loop_enter(libevent->now);
	event_add(libevent_event(object), &after);
	event_loop_leave();
}

static void libevent_cancel(void *state, struct object *object)
{
	(void)state;
	event_del(libevent_event(object));
}

static void libevent_advance(void *state, uint64_t now)
{
	struct libevent *libevent = state;

	libevent->now = now;
	libevent_sink = libevent->sink;
	event_loop_enter(now);
	event_base_loop(libevent->base, EVLOOP_NONBLOCK);
	event_loop_leave();
}

static struct event_base *libevent_base(void)
{
	struct event_config *config = event_config_new();
	struct event_base *base = NULL;

	if (config && !event_config_set_flag(config, EVENT_BASE_FLAG_NOLOCK | EVENT_BASE_FLAG_IGNORE_ENV))
		base = event_base_new_with_config(config);
	/* The size of an event is a matter of the library that is there now, not of its header. */
	if (!base || event_get_struct_event_size() > sizeof(struct event)) {
		message_error("libevent cannot make a loop, or is another version than this was compiled with");
		exit(EXIT_FAILURE);
	}
	event_config_free(config);
	return base;
}

/* Have the heap grow to its size now. */
static void libevent_reserve(struct libevent *libevent, struct object *objects, uint64_t n)
{
	for (uint64_t i = 0; i < n; i++)
		libevent_schedule(libevent, &objects[i], 1);
	while (n--)
		libevent_cancel(libevent, &objects[n]);
}

static void *libevent_create(struct object *objects, uint64_t n, struct sink *sink)
{
	struct libevent *libevent = memory_zeroed(1, sizeof *libevent);

	event_loop_enter(0);
	libevent->base = libevent_base();
	event_loop_leave();
	libevent->events = memory_aligned((size_t)n, sizeof *libevent->events);
	libevent->sink = sink;
	for (uint64_t i = 0; i < n; i++) {
		struct event_node *node = (struct event_node *)(void *)&objects[i];

		node->event = &libevent->events[i];
		event_assign(node->event, libevent->base, -1, 0, libevent_expire, &objects[i]);
	}
	libevent_reserve(libevent, objects, n);
	return libevent;
}

static void libevent_destroy(void *state)
{
	struct libevent *libevent = state;

	event_base_free(libevent->base);
	free(libevent->events);
	free(libevent);
}

const struct structure structure_libevent = {
    .name = "libevent",
    .summary = "libevent, a turn of its loop a tick",
    .most = INT32_MAX / 2, /* it counts in int */
    .create = libevent_create,
    .destroy = libevent_destroy,
    .schedule = libevent_schedule,
    .cancel = libevent_cancel,
    .touch = libevent_schedule,
    .advance = libevent_advance,
    .node_bytes = sizeof(struct event_node),
    /* The event and the heap's pointer to it; not that the heap's array may be twice as large. */
    .own_bytes = sizeof(struct event) + sizeof(void *),
};
