/* The queue of firings, and its workers. */

#include "lib/core/driver/queue.h"

#include <stdatomic.h>
#include <stddef.h>
#include <unistd.h>

#include "lib/base/thread.h"
#include "lib/base/time.h"
#include "lib/core/driver/source.h"

/* A callback that runs for so long is slow. */
#define NAP_NS 200000

static _Thread_local struct running *running_here;

static uint32_t processors(void)
{
	long count = sysconf(_SC_NPROCESSORS_ONLN);

	return count > 1 ? (uint32_t)count : 1;
}

/* The conditions of workers use the monotonic clock. */
static void init_workers(struct queue *queue)
{
	for (uint32_t i = 0; i < queue->workers; i++) {
		queue->worker[i] = (struct worker){.queue = queue};
		(void)time_cond_init(&queue->worker[i].woken);
	}
}

int ww_queue_create(
    struct queue *queue, uint32_t limit, uint32_t workers, struct ww_clock *clock, const struct ww_allocator *allocator)
{
	*queue = (struct queue){.limit = limit, .workers = workers, .clock = clock, .allocator = allocator};
	queue->lanes.workers = workers;
	queue->lanes.processors = processors();
	if (workers) {
		queue->worker = allocator->allocate(allocator->user, workers * sizeof *queue->worker);
		if (!queue->worker)
			return WW_ENOMEM;
	}
	/* With default attributes these neither allocate nor fail on the systems that the driver is for. */
	pthread_mutex_init(&queue->lock, NULL);
	pthread_cond_init(&queue->change, NULL);
	init_workers(queue);
	return WW_OK;
}

void ww_queue_destroy(struct queue *queue)
{
	for (uint32_t i = 0; i < queue->workers; i++)
		pthread_cond_destroy(&queue->worker[i].woken);
	pthread_cond_destroy(&queue->change);
	pthread_mutex_destroy(&queue->lock);
	ww_queue_free(queue);
}

void ww_queue_free(struct queue *queue)
{
	if (queue->workers)
		queue->allocator->free(queue->allocator->user, queue->worker, queue->workers * sizeof *queue->worker);
}

void ww_queue_changed(struct queue *queue)
{
	if (!queue->watchers)
		return;
	queue->changes++;
	pthread_cond_broadcast(&queue->change);
}

void ww_queue_looked(struct queue *queue)
{
	if (!queue->watchers)
		return;
	pthread_mutex_lock(&queue->lock);
	ww_queue_changed(queue);
	pthread_mutex_unlock(&queue->lock);
}

/* ---- Firings that were taken out and have not ended. The lock is held. */

/* The i-th thread's, of the workers and one more; NULL: it has none. */
static struct running *taken_by(const struct queue *queue, uint32_t i)
{
	return i < queue->workers ? queue->worker[i].seat.taken : queue->alone.taken;
}

/* ---- Waking workers */

/* Whether there is something for a worker to run, at once or when those that run have proved to be slow. */
static int wants_worker(const struct queue *queue)
{
	return ww_lane_any(&queue->lanes) || (!queue->napping && ww_lane_any_later(&queue->lanes));
}

/* The lock is held: the worker to be woken by wake, when the lock is released, or NULL. */
static struct worker *next_worker(struct queue *queue)
{
	struct worker *worker = queue->asleep;

	if (!worker || queue->waking || queue->closed || !wants_worker(queue))
		return NULL;
	queue->asleep = worker->below;
	queue->waking++;
	worker->is_woken = 1;
	return worker;
}

static void wake(struct worker *worker)
{
	if (worker)
		pthread_cond_signal(&worker->woken);
}

static void leave_asleep(struct queue *queue, const struct worker *worker)
{
	struct worker **link = &queue->asleep;

	while (*link != worker)
		link = &(*link)->below;
	*link = worker->below;
}

/* Remember those that run. */
static void mark_seen(const struct queue *queue)
{
	for (uint32_t i = 0; i <= queue->workers; i++) {
		struct running *one = taken_by(queue, i);
		if (one)
			one->seen = 1;
	}
}

/* Those that have run ever since mark_seen are slow. */
static void mark_slow(const struct queue *queue)
{
	for (uint32_t i = 0; i <= queue->workers; i++) {
		struct running *one = taken_by(queue, i);
		if (one && one->seen && !one->slow) {
			one->slow = 1;
			ww_lane_slow(&one->group->lane);
		}
	}
}

/* Watch for NAP_NS those that run, if nobody wakes the worker. */
static void nap(struct queue *queue, struct worker *worker)
{
	uint64_t until = time_now(CLOCK_MONOTONIC) + NAP_NS;
	int error = 0;

	queue->napping++;
	mark_seen(queue);
	while (!worker->is_woken && !queue->ended && !error)
		error = time_wait(&worker->woken, &queue->lock, until);
	queue->napping--;
	if (error)
		mark_slow(queue);
}

/* The lock is held when this is called and when it returns. */
static void sleep_until_woken(struct queue *queue, struct worker *worker)
{
	worker->is_woken = 0;
	worker->below = queue->asleep;
	queue->asleep = worker;
	if (!queue->closed && !queue->napping && ww_lane_any_later(&queue->lanes))
		nap(queue, worker);
	else
		while (!worker->is_woken && !queue->ended)
			pthread_cond_wait(&worker->woken, &queue->lock);
	if (worker->is_woken)
		queue->waking--;
	else
		leave_asleep(queue, worker);
}

/* ---- Lanes */

void ww_queue_join(struct queue *queue, struct lane *lane)
{
	ww_lane_init(lane);
	pthread_mutex_lock(&queue->lock);
	queue->lanes.count++;
	pthread_mutex_unlock(&queue->lock);
}

uint32_t ww_queue_room(const struct queue *queue, const struct lane *lane)
{
	uint32_t length = lane->length;

	return length < queue->limit ? queue->limit - length : 0;
}

int ww_queue_starve(struct queue *queue, struct lane *lane)
{
	int full;

	pthread_mutex_lock(&queue->lock);
	full = ww_queue_room(queue, lane) == 0;
	queue->starving += (uint32_t)(full && !lane->starved);
	lane->starved |= full;
	pthread_mutex_unlock(&queue->lock);
	return full;
}

/* The lock is held. */
static void feed(struct queue *queue, struct lane *lane)
{
	queue->starving -= (uint32_t)lane->starved;
	lane->starved = 0;
}

void ww_queue_feed(struct queue *queue, struct lane *lane)
{
	pthread_mutex_lock(&queue->lock);
	feed(queue, lane);
	pthread_mutex_unlock(&queue->lock);
}

static void unlink_firing(struct queue *queue, struct firing *firing)
{
	struct lane *lane = &firing->group->lane;

	ww_lane_unlink(&queue->lanes, lane, firing);
	if (lane->starved && lane->length <= queue->limit / 2) {
		feed(queue, lane);
		queue->room = 1;
	}
}

void ww_queue_push(struct queue *queue, struct firing *first, uint32_t count)
{
	struct worker *woken;

	pthread_mutex_lock(&queue->lock);
	ww_lane_push(&queue->lanes, &first->group->lane, first, count);
	woken = next_worker(queue);
	pthread_mutex_unlock(&queue->lock);
	wake(woken);
}

int ww_queue_withdraw(struct queue *queue, struct firing *firing)
{
	int waiting;

	pthread_mutex_lock(&queue->lock);
	waiting = firing->next != NULL;
	if (waiting) {
		unlink_firing(queue, firing);
		ww_queue_changed(queue);
	}
	pthread_mutex_unlock(&queue->lock);
	return waiting;
}

struct firing *ww_queue_withdraw_all(struct queue *queue, struct timer_group *group)
{
	const struct lane *lane = &group->lane;
	struct firing *first = NULL;
	struct firing **link = &first;

	pthread_mutex_lock(&queue->lock);
	while (lane->length) {
		struct firing *firing = lane->oldest;
		unlink_firing(queue, firing);
		*link = firing;
		link = &firing->prev;
	}
	*link = NULL;
	if (first)
		ww_queue_changed(queue);
	pthread_mutex_unlock(&queue->lock);
	return first;
}

uint32_t ww_queue_close(struct queue *queue, const struct timer_group *group, struct firing **taken)
{
	uint32_t count = 0;

	queue->closed = 1;
	for (uint32_t i = 0; i <= queue->workers; i++) {
		const struct running *one = taken_by(queue, i);
		if (one && one->group == group)
			taken[count++] = one->firing;
	}
	ww_queue_changed(queue);
	return count;
}

/* ---- Running */

static uint64_t time_of(const struct queue *queue)
{
	uint64_t now = 0;

	(void)ww_clock_now(queue->clock, &now);
	return now;
}

/* The lock is held when this is called and when it returns, and not between. */
static void notify_of_room(struct queue *queue)
{
	queue->room = 0;
	pthread_mutex_unlock(&queue->lock);
	queue->room_made(queue);
	pthread_mutex_lock(&queue->lock);
}

static void enter_firing(struct running *here)
{
	here->seat->taken = here;
	running_here = here;
}

static void leave_firing(const struct running *here)
{
	running_here = here->outer;
	here->seat->taken = NULL;
}

/* Lock after a callback, with the time in *now. That others held the lock must not count as time of the next callback. */
static void lock_again(struct queue *queue, uint64_t *now)
{
	if (pthread_mutex_trylock(&queue->lock) == 0)
		return;
	pthread_mutex_lock(&queue->lock);
	*now = time_of(queue);
}

/*
 * The lock is held when this is called and when it returns, and not between. *now is the time, before and after.
 * Returns 0 when there is nothing to run.
 */
static int run_firing(struct queue *queue, struct seat *seat, uint64_t *now)
{
	struct lane *lane = queue->closed ? NULL : ww_lane_choose(&queue->lanes);
	struct worker *woken;
	uint64_t began = *now;
	uint64_t ended;

	if (!lane)
		return 0;
	struct firing *firing = lane->oldest;
	struct timer_group *group = firing->group;
	struct running here = {.queue = queue, .group = group, .firing = firing, .outer = running_here, .seat = seat};
	unlink_firing(queue, firing);
	int64_t charged = ww_lane_begin(&queue->lanes, lane);
	enter_firing(&here);
	if (queue->room)
		notify_of_room(queue);
	woken = next_worker(queue);
	pthread_mutex_unlock(&queue->lock);
	wake(woken);
	group->ops->run(group->owner, firing);
	*now = ended = time_of(queue);
	lock_again(queue, now);
	leave_firing(&here);
	ww_lane_end(&queue->lanes, lane, charged, ended > began ? ended - began : 0, here.slow);
	ww_queue_changed(queue);
	if (here.afterwards) {
		pthread_mutex_unlock(&queue->lock);
		here.afterwards(here.argument);
		pthread_mutex_lock(&queue->lock);
	}
	return 1;
}

int ww_queue_run(struct queue *queue)
{
	uint64_t now = time_of(queue);
	int ran;

	pthread_mutex_lock(&queue->lock);
	ran = run_firing(queue, &queue->alone, &now);
	if (queue->room)
		notify_of_room(queue);
	pthread_mutex_unlock(&queue->lock);
	return ran;
}

static void work(struct queue *queue, struct worker *worker)
{
	uint64_t now = time_of(queue);

	pthread_mutex_lock(&queue->lock);
	while (!queue->ended) {
		if (run_firing(queue, &worker->seat, &now))
			continue;
		/* Cancelled firings make room, too, and only a worker reports it. */
		if (queue->room) {
			notify_of_room(queue);
			continue;
		}
		sleep_until_woken(queue, worker);
		now = time_of(queue);
	}
	pthread_mutex_unlock(&queue->lock);
}

static void *be_worker(void *argument)
{
	struct worker *worker = argument;
	struct queue *queue = worker->queue;
	struct thread_here here;

	ww_thread_enter(&here, &queue->hooks, (int)(worker - queue->worker));
	work(queue, worker);
	ww_thread_leave(&here, &queue->hooks);
	return NULL;
}

int ww_queue_start(struct queue *queue)
{
	for (; queue->started < queue->workers; queue->started++) {
		struct worker *worker = &queue->worker[queue->started];
		if (thread_start(&worker->thread, be_worker, worker)) {
			ww_queue_end(queue);
			return WW_ESYSTEM;
		}
	}
	return WW_OK;
}

void ww_queue_end(struct queue *queue)
{
	pthread_mutex_lock(&queue->lock);
	queue->closed = 1;
	queue->ended = 1;
	for (uint32_t i = 0; i < queue->workers; i++)
		pthread_cond_signal(&queue->worker[i].woken);
	pthread_mutex_unlock(&queue->lock);
	while (queue->started)
		thread_join(queue->worker[--queue->started].thread);
}

/* ---- Looking inside */

void ww_queue_stats(struct queue *queue, uint64_t now, struct ww_driver_stats *stats)
{
	pthread_mutex_lock(&queue->lock);
	const struct lane *lane = queue->lanes.turn;
	stats->queued = queue->lanes.length;
	stats->running = queue->lanes.running;
	stats->oldest_ns = 0;
	while (lane) {
		uint64_t since = lane->oldest->since;
		if (now > since && now - since > stats->oldest_ns)
			stats->oldest_ns = now - since;
		lane = lane->next == queue->lanes.turn ? NULL : lane->next;
	}
	pthread_mutex_unlock(&queue->lock);
}

int ww_queue_inside(const struct queue *queue, const struct timer_group *group, const struct firing *firing)
{
	for (const struct running *here = running_here; here; here = here->outer)
		if (here->queue == queue && (!group || here->group == group) && (!firing || here->firing == firing))
			return 1;
	return 0;
}

void ww_queue_count_call(void)
{
	struct seat *seat = running_here->seat;

	/* No other thread writes it. */
	atomic_store_explicit(
	    &seat->calls, atomic_load_explicit(&seat->calls, memory_order_relaxed) + 1, memory_order_relaxed);
}

uint64_t ww_queue_calls(const struct queue *queue)
{
	uint64_t calls = queue->alone.calls;

	for (uint32_t i = 0; i < queue->workers; i++)
		calls += queue->worker[i].seat.calls;
	return calls;
}

void ww_queue_serves(ww_handle timer)
{
	running_here->serves = timer;
}

int ww_queue_serving(const struct queue *queue, ww_handle timer)
{
	const struct running *here = running_here;

	while (here && (here->queue != queue || here->serves != timer))
		here = here->outer;
	return here != NULL;
}

/* The lock is held. A thread that waits has marked all its firings: whichever is asked about leads on. */
static int would_wait_for_itself(const struct queue *queue, ww_handle timer)
{
	if (ww_queue_serving(queue, timer))
		return 1;
	for (uint32_t i = 0; i <= queue->workers; i++) {
		const struct running *other = taken_by(queue, i);
		if (other && other->waits_for && other->serves == timer &&
		    would_wait_for_itself(queue, other->waits_for))
			return 1;
	}
	return 0;
}

/* The lock is held. */
static void mark_wait(const struct queue *queue, ww_handle timer)
{
	for (struct running *here = running_here; here; here = here->outer)
		if (here->queue == queue)
			here->waits_for = timer;
}

int ww_queue_begin_wait(struct queue *queue, ww_handle timer)
{
	int endless;

	if (!running_here)
		return 1;
	pthread_mutex_lock(&queue->lock);
	endless = would_wait_for_itself(queue, timer);
	if (!endless)
		mark_wait(queue, timer);
	pthread_mutex_unlock(&queue->lock);
	return !endless;
}

void ww_queue_end_wait(struct queue *queue)
{
	if (!running_here)
		return;
	pthread_mutex_lock(&queue->lock);
	mark_wait(queue, 0);
	pthread_mutex_unlock(&queue->lock);
}

void ww_queue_afterwards(const struct timer_group *group, void (*afterwards)(void *argument), void *argument)
{
	struct running *here = running_here;

	while (here && here->group != group)
		here = here->outer;
	if (!here)
		return;
	here->afterwards = afterwards;
	here->argument = argument;
}

void ww_queue_leave(struct queue *queue, struct lane *lane)
{
	struct worker *woken;
	int state;

	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state);
	pthread_mutex_lock(&queue->lock);
	queue->watchers++;
	while (lane->running)
		pthread_cond_wait(&queue->change, &queue->lock);
	queue->watchers--;
	feed(queue, lane);
	queue->lanes.count--;
	/* The last lane has all workers. */
	woken = next_worker(queue);
	pthread_mutex_unlock(&queue->lock);
	wake(woken);
	pthread_setcancelstate(state, &state);
}
