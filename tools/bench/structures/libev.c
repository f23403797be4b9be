/*
 * libev's timers: a 4-ary heap of entries of 16 bytes, a deadline and a pointer to the timer, which is embedded in the
 * object. A touch is ev_timer_again(), the second of the four ways that libev's manual has for timeouts that move, and
 * the last in which libev moves them. With the others the application keeps the time of a touch, or a list, of its own.
 * Its timers repeat, and the callback therefore stops them.
 *
 * A tick is one turn of the loop, ev_run() without waiting, with a clock that is set by hand. The measurement has the
 * bookkeeping of the turn, the heap, and a callback a timer. It lacks clocks and polling, see event_loop.h.
 */

#include <ev.h>

#include "tools/bench/structure.h"
#include "tools/bench/structures/event_loop.h"
#include "tools/common/memory.h"

_Static_assert(sizeof(ev_timer) <= OBJECT_SIZE, "an ev_timer is embedded in the object");

/* A timer that is due at the very time of the loop waits for a later one. Each is therefore due half a tick before. */
static ev_tstamp libev_after(uint64_t delay)
{
	return (ev_tstamp)delay - 0.5;
}

static ev_timer *libev_timer(struct object *object)
{
	return (ev_timer *)(void *)object;
}

static void libev_expire(struct ev_loop *loop, ev_timer *timer, int events)
{
	struct sink *sink = ev_userdata(loop);

	(void)events;
	ev_timer_stop(loop, timer);
	sink_report(sink, (struct object *)(void *)timer);
}

static void libev_schedule(void *state, struct object *object, uint64_t delay)
{
	ev_timer_set(libev_timer(object), libev_after(delay), 0.);
	ev_timer_start(state, libev_timer(object));
}

static void libev_cancel(void *state, struct object *object)
{
	ev_timer_stop(state, libev_timer(object));
}

static void libev_touch(void *state, struct object *object, uint64_t delay)
{
	libev_timer(object)->repeat = libev_after(delay);
	ev_timer_again(state, libev_timer(object));
}

static void libev_advance(void *state, uint64_t now)
{
	event_loop_enter(now);
	ev_run(state, EVRUN_NOWAIT);
	event_loop_leave();
}

static void *libev_create(struct object *objects, uint64_t n, struct sink *sink)
{
	struct ev_loop *loop;

	event_loop_enter(0);
	loop = ev_loop_new(EVBACKEND_EPOLL | EVFLAG_NOENV);
	if (!loop)
		event_loop_failed(&structure_libev);
	ev_set_userdata(loop, sink);
	for (uint64_t i = 0; i < n; i++)
		ev_init(libev_timer(&objects[i]), libev_expire);
	event_loop_reserve(&structure_libev, loop, objects, n);
	event_loop_leave();
	return loop;
}

static void libev_destroy(void *state)
{
	ev_loop_destroy(state);
}

const struct structure structure_libev = {
    .name = "libev",
    .summary = "libev, a turn of its loop a tick",
    .most = INT32_MAX / 2, /* it counts in int */
    .create = libev_create,
    .destroy = libev_destroy,
    .schedule = libev_schedule,
    .cancel = libev_cancel,
    .touch = libev_touch,
    .advance = libev_advance,
    .node_bytes = sizeof(ev_timer),
    /* The entry of the heap. Left out: the reserve of its array, up to as much again, and the callbacks of a turn. */
    .own_bytes = sizeof(ev_tstamp) + sizeof(void *),
};
