/*
 * libuv's timers: a binary heap of linked nodes, which lie in the timers. A timer does not fit the object, which holds
 * a pointer to it. A touch is uv_timer_start() of a running timer. libuv's time is in milliseconds.
 *
 * A tick is one turn of the loop, uv_run() without waiting, with a clock that is set by hand. The measurement has the
 * bookkeeping of the turn, the heap, and a callback a timer. It lacks clocks and polling, see event_loop.h.
 */

#include <stdlib.h>
#include <uv.h>

#include "tools/bench/structure.h"
#include "tools/bench/structures/event_loop.h"
#include "tools/common/memory.h"

enum { MILLISECONDS = 1000 };

struct uv_node {
	uv_timer_t *timer;
};

struct libuv {
	uv_loop_t loop; /* its data is the sink */
	uv_timer_t *timers;
	uint64_t n;
};

static uv_timer_t *libuv_timer(struct object *object)
{
	return ((struct uv_node *)(void *)object)->timer;
}

static void libuv_expire(uv_timer_t *timer)
{
	struct sink *sink = timer->loop->data;

	sink_report(sink, timer->data);
}

/* For touch as well. */
static void libuv_schedule(void *state, struct object *object, uint64_t delay)
{
	(void)state;
	uv_timer_start(libuv_timer(object), libuv_expire, delay * MILLISECONDS, 0);
}

static void libuv_cancel(void *state, struct object *object)
{
	(void)state;
	uv_timer_stop(libuv_timer(object));
}

static void libuv_advance(void *state, uint64_t now)
{
	struct libuv *libuv = state;

	event_loop_enter(now);
	uv_run(&libuv->loop, UV_RUN_NOWAIT);
	event_loop_leave();
}

/*
 * The first turn with something to wait for registers the loop's own descriptors in the kernel. Do it before the
 * timing.
 */
static void libuv_first_turn(struct libuv *libuv, struct object *object)
{
	libuv_schedule(libuv, object, 1);
	libuv_advance(libuv, 0);
	libuv_cancel(libuv, object);
}

static void *libuv_create(struct object *objects, uint64_t n, struct sink *sink)
{
	struct libuv *libuv = memory_zeroed(1, sizeof *libuv);

	event_loop_enter(0);
	if (uv_loop_init(&libuv->loop))
		event_loop_failed(&structure_libuv);
	event_loop_leave();
	libuv->loop.data = sink;
	libuv->n = n;
	libuv->timers = memory_aligned((size_t)n, sizeof *libuv->timers);
	for (uint64_t i = 0; i < n; i++) {
		struct uv_node *node = (struct uv_node *)(void *)&objects[i];

		node->timer = &libuv->timers[i];
		uv_timer_init(&libuv->loop, node->timer);
		node->timer->data = &objects[i];
	}
	if (n)
		libuv_first_turn(libuv, objects);
	return libuv;
}

static void libuv_destroy(void *state)
{
	struct libuv *libuv = state;

	for (uint64_t i = 0; i < libuv->n; i++)
		uv_close((uv_handle_t *)&libuv->timers[i], NULL);
	uv_run(&libuv->loop, UV_RUN_DEFAULT);
	uv_loop_close(&libuv->loop);
	free(libuv->timers);
	free(libuv);
}

const struct structure structure_libuv = {
    .name = "libuv",
    .summary = "libuv, a turn of its loop a tick",
    .most = UINT32_MAX, /* it counts in unsigned */
    .create = libuv_create,
    .destroy = libuv_destroy,
    .schedule = libuv_schedule,
    .cancel = libuv_cancel,
    .touch = libuv_schedule,
    .advance = libuv_advance,
    .node_bytes = sizeof(struct uv_node),
    .own_bytes = sizeof(uv_timer_t),
    .empty_bytes = sizeof(struct libuv),
};
