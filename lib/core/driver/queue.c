/* The queue of firings, and its workers. */

#include "lib/core/driver/queue.h"

#include <stddef.h>

#include "lib/base/thread.h"
#include "lib/core/driver/source.h"

static _Thread_local struct running *running_here;

int ww_queue_create(struct queue *queue, uint32_t limit, uint32_t workers, const struct ww_allocator *allocator)
{
	*queue = (struct queue){.limit = limit, .workers = workers, .allocator = allocator};
	queue->firings.next = queue->firings.prev = &queue->firings;
	if (workers) {
		queue->threads = allocator->allocate(allocator->user, workers * sizeof *queue->threads);
		if (!queue->threads)
			return WW_ENOMEM;
	}
	/* With default attributes these neither allocate nor fail on the systems that the driver is for. */
	pthread_mutex_init(&queue->lock, NULL);
	pthread_cond_init(&queue->work, NULL);
	pthread_cond_init(&queue->change, NULL);
	return WW_OK;
}

void ww_queue_destroy(struct queue *queue)
{
	pthread_cond_destroy(&queue->change);
	pthread_cond_destroy(&queue->work);
	pthread_mutex_destroy(&queue->lock);
	ww_queue_free(queue);
}

void ww_queue_free(struct queue *queue)
{
	if (queue->workers)
		queue->allocator->free(queue->allocator->user, queue->threads, queue->workers * sizeof *queue->threads);
}

void ww_queue_changed(struct queue *queue)
{
	queue->changes++;
	if (queue->watchers)
		pthread_cond_broadcast(&queue->change);
}

uint32_t ww_queue_room(const struct queue *queue)
{
	uint32_t length = queue->length;

	return length < queue->limit ? queue->limit - length : 0;
}

static void unlink_firing(struct queue *queue, struct firing *firing)
{
	firing->prev->next = firing->next;
	firing->next->prev = firing->prev;
	firing->next = NULL;
	queue->length--;
}

void ww_queue_push(struct queue *queue, struct firing *first, uint32_t count)
{
	uint32_t wake;

	pthread_mutex_lock(&queue->lock);
	queue->length += count;
	while (first) {
		struct firing *next = first->next;
		first->prev = queue->firings.prev;
		first->next = &queue->firings;
		queue->firings.prev->next = first;
		queue->firings.prev = first;
		first = next;
	}
	wake = count < queue->sleeping ? count : queue->sleeping;
	pthread_mutex_unlock(&queue->lock);
	while (wake--)
		pthread_cond_signal(&queue->work);
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

struct firing *ww_queue_withdraw_all(struct queue *queue, const struct timer_group *group)
{
	struct firing *first = NULL;
	struct firing **link = &first;
	struct firing *next;

	pthread_mutex_lock(&queue->lock);
	for (struct firing *firing = queue->firings.next; firing != &queue->firings; firing = next) {
		next = firing->next;
		if (firing->group != group)
			continue;
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
	for (const struct running *one = queue->taken; one; one = one->next)
		if (one->group == group)
			taken[count++] = one->firing;
	ww_queue_changed(queue);
	return count;
}

/* The lock is held: take the oldest firing. It counts as running from now on. */
static struct firing *begin_firing(struct queue *queue)
{
	struct firing *firing = queue->firings.next;

	if (firing == &queue->firings || queue->closed)
		return NULL;
	unlink_firing(queue, firing);
	queue->running++;
	firing->group->running++;
	return firing;
}

/* The lock is held when this is called and when it returns, and not between. */
static void tell_of_room(struct queue *queue)
{
	queue->starved = 0;
	pthread_mutex_unlock(&queue->lock);
	queue->room_made(queue);
	pthread_mutex_lock(&queue->lock);
}

static void enter_firing(struct queue *queue, struct running *here)
{
	here->next = queue->taken;
	here->link = &queue->taken;
	if (here->next)
		here->next->link = &here->next;
	queue->taken = here;
	running_here = here;
}

static void leave_firing(const struct running *here)
{
	running_here = here->outer;
	*here->link = here->next;
	if (here->next)
		here->next->link = here->link;
}

/* The lock is held when this is called and when it returns, and not between. */
static void run_firing(struct queue *queue, struct firing *firing)
{
	struct timer_group *group = firing->group;
	struct running here = {.queue = queue, .group = group, .firing = firing, .outer = running_here};

	enter_firing(queue, &here);
	if (queue->starved && queue->length <= queue->limit / 2)
		tell_of_room(queue);
	pthread_mutex_unlock(&queue->lock);
	group->ops->run(group->owner, firing);
	pthread_mutex_lock(&queue->lock);
	leave_firing(&here);
	queue->running--;
	group->running--;
	ww_queue_changed(queue);
	if (here.afterwards) {
		pthread_mutex_unlock(&queue->lock);
		here.afterwards(here.argument);
		pthread_mutex_lock(&queue->lock);
	}
}

int ww_queue_run(struct queue *queue)
{
	struct firing *firing;

	pthread_mutex_lock(&queue->lock);
	firing = begin_firing(queue);
	if (firing)
		run_firing(queue, firing);
	pthread_mutex_unlock(&queue->lock);
	return firing != NULL;
}

static void work(struct queue *queue)
{
	pthread_mutex_lock(&queue->lock);
	while (!queue->ended) {
		struct firing *firing = begin_firing(queue);
		if (firing) {
			run_firing(queue, firing);
			continue;
		}
		/* Cancelled firings make room, too, and nobody but a worker tells of it. */
		if (queue->starved) {
			tell_of_room(queue);
			continue;
		}
		queue->sleeping++;
		pthread_cond_wait(&queue->work, &queue->lock);
		queue->sleeping--;
	}
	pthread_mutex_unlock(&queue->lock);
}

static void *be_worker(void *argument)
{
	struct queue *queue = argument;
	struct thread_here here;

	ww_thread_enter(&here, &queue->hooks, queue->numbered++);
	work(queue);
	ww_thread_leave(&here, &queue->hooks);
	return NULL;
}

int ww_queue_start(struct queue *queue)
{
	for (; queue->started < queue->workers; queue->started++)
		if (thread_start(&queue->threads[queue->started], be_worker, queue)) {
			ww_queue_end(queue);
			return WW_ESYSTEM;
		}
	return WW_OK;
}

void ww_queue_end(struct queue *queue)
{
	pthread_mutex_lock(&queue->lock);
	queue->closed = 1;
	queue->ended = 1;
	pthread_cond_broadcast(&queue->work);
	pthread_mutex_unlock(&queue->lock);
	while (queue->started)
		thread_join(queue->threads[--queue->started]);
}

int ww_queue_inside(const struct queue *queue, const struct timer_group *group, const struct firing *firing)
{
	for (const struct running *here = running_here; here; here = here->outer)
		if (here->queue == queue && (!group || here->group == group) && (!firing || here->firing == firing))
			return 1;
	return 0;
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
	for (const struct running *other = queue->taken; other; other = other->next)
		if (other->waits_for && other->serves == timer && would_wait_for_itself(queue, other->waits_for))
			return 1;
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

void ww_queue_wait_group(struct queue *queue, struct timer_group *group)
{
	int state;

	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state);
	pthread_mutex_lock(&queue->lock);
	queue->watchers++;
	while (group->running)
		pthread_cond_wait(&queue->change, &queue->lock);
	queue->watchers--;
	pthread_mutex_unlock(&queue->lock);
	pthread_setcancelstate(state, &state);
}
