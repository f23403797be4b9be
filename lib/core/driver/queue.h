#ifndef LIB_CORE_DRIVER_QUEUE_H
#define LIB_CORE_DRIVER_QUEUE_H

/*
 * The queue of firings that wait for a worker, and the workers. Each group has a lane of its own in it (lane.h). A lane
 * has limited room, and its owner asks for that before it lets timers expire (ww_queue_room).
 *
 * Waking: each push wakes one worker. A worker that takes a firing, and leaves another that a free worker may take,
 * wakes the next worker. If a worker that was woken has not come yet, that one will do so instead. The worker that went
 * to sleep last, whose memory is warm, is woken first. No wake-up is lost, because what a free worker may take changes
 * only under the lock, and whoever changes it wakes a worker or is a worker, which looks again before it sleeps.
 *
 * Locks: the queue's own, below those of sources. A firing runs without any.
 */

#include "lib/core/driver/lane.h"

struct queue;

/*
 * A firing that a thread is running. The list of a thread's own firings, innermost first, shows whether a call comes
 * from a callback.
 */
struct running {
	const struct queue *queue;
	struct timer_group *group;
	struct firing *firing;
	struct running *outer;
	struct seat *seat;
	/* Under the queue's lock: it ran when a worker began to watch, and it still ran when the worker had watched. */
	int seen, slow;
	ww_handle serves;                   /* the driver's timer whose callback this is; 0: none */
	ww_handle waits_for;                /* the timer whose callbacks the thread waits for; under the queue's lock */
	void (*afterwards)(void *argument); /* called in the thread when the firing has ended; NULL: nothing */
	void *argument;
};

/* A thread that runs firings of a queue has one. No other thread writes its cache line. */
struct seat {
	_Alignas(
	    64) struct running *taken; /* which it has taken out and not ended; NULL: none; under the queue's lock */
	_Atomic uint64_t calls;        /* that it has counted (ww_queue_count_call) */
};

/* The application's functions that each thread of the driver calls, NULL: none. */
struct thread_hooks {
	ww_driver_thread_fn *begin;
	ww_driver_thread_fn *end;
	void *user;
};

struct worker {
	struct seat seat;
	struct queue *queue;
	pthread_t thread;
	pthread_cond_t woken; /* its turn has come, or the end */
	int is_woken;
	struct worker *below; /* of those that sleep */
};

/* Each firing writes the first cache line. The others are only read unless a worker waits or is woken. */
struct queue {
	_Alignas(64) pthread_mutex_t lock;
	struct lanes lanes;
	uint32_t limit;        /* of each lane */
	struct worker *asleep; /* the one that went to sleep last */
	uint32_t waking;       /* workers that were woken and have not come yet */
	uint32_t napping;      /* workers of those asleep that watch the others: see lane.h */
	_Atomic uint32_t watchers;
	_Atomic uint32_t starving; /* lanes for which something waits in its wheel for room */
	_Atomic int room;          /* there is room again, of which room_made has not been notified yet */
	int closed;                /* no firing is taken any more */
	int ended;                 /* workers end */
	uint32_t workers;
	uint32_t started; /* workers that have to be joined */
	struct worker *worker;
	struct ww_clock *clock;
	struct seat alone;        /* of a thread that is no worker, in a driver without threads */
	_Atomic uint64_t changes; /* how often there was a change while there were watchers */
	pthread_cond_t change;    /* for threads that wait until something ends; sent only while there are watchers */
	struct thread_hooks hooks;
	const struct ww_allocator *allocator;
	void (*room_made)(struct queue *queue); /* called when there is room again, without lock */
};

/* `clock` measures callbacks. */
int ww_queue_create(struct queue *queue, uint32_t limit, uint32_t workers, struct ww_clock *clock,
    const struct ww_allocator *allocator);
/* Start the workers. On error, none is left running. */
int ww_queue_start(struct queue *queue);
/* End the workers after the firings that run, and wait for them. */
void ww_queue_end(struct queue *queue);
void ww_queue_destroy(struct queue *queue);
/* Free the memory only: in a child of the process, locks and conditions are as they were at the fork. */
void ww_queue_free(struct queue *queue);

/* Let a new lane take part; and, when it is empty, wait until nothing of it runs and let it take part no more. */
void ww_queue_join(struct queue *queue, struct lane *lane);
void ww_queue_leave(struct queue *queue, struct lane *lane);

/* The lock is held: wake waiting threads, as something has ended. */
void ww_queue_changed(struct queue *queue);
/*
 * The same without the lock, after a look at the wheels. A watcher counts itself before it looks at the wheels, which
 * takes the agenda's lock as the look before this does: if this sees no watcher, the watcher's look comes after that one.
 */
void ww_queue_looked(struct queue *queue);

/* How many firings may be pushed. */
uint32_t ww_queue_room(const struct queue *queue, const struct lane *lane);
/* Ask for a call of room_made when the lane has room. Returns 0 if it has some already. */
int ww_queue_starve(struct queue *queue, struct lane *lane);
/* The lane's timers wait for room no more. */
void ww_queue_feed(struct queue *queue, struct lane *lane);
/* Append a chain of firings of one group, linked by next and ended by NULL. */
void ww_queue_push(struct queue *queue, struct firing *first, uint32_t count);
/* What ww_group_withdraw and ww_group_withdraw_all do: see layer.h. */
int ww_queue_withdraw(struct queue *queue, struct firing *firing);
struct firing *ww_queue_withdraw_all(struct queue *queue, struct timer_group *group);
/* Run the next firing in this thread. Returns 0 when there is none. */
int ww_queue_run(struct queue *queue);
/*
 * The lock is held: from now on no firing is taken. Stores those of the group that were taken and have not ended, which
 * may be about to begin, in taken[] and returns how many: at most as many as workers, and one without.
 */
uint32_t ww_queue_close(struct queue *queue, const struct timer_group *group, struct firing **taken);

/*
 * Whether this thread runs a firing of the queue, of the group and this firing itself; NULL: of any group, any firing.
 */
int ww_queue_inside(const struct queue *queue, const struct timer_group *group, const struct firing *firing);
/* This thread, in a firing, has begun a callback that no shard counts; and the sum of all these. */
void ww_queue_count_call(void);
uint64_t ww_queue_calls(const struct queue *queue);
/* This thread, in a firing, begins the callback of one of the driver's own timers. */
void ww_queue_serves(ww_handle timer);
/* Whether this thread is in a callback of the timer. */
int ww_queue_serving(const struct queue *queue, ww_handle timer);
/*
 * This thread is about to wait for the end of the timer's callbacks, and has ceased to. Begin returns 0, and nothing
 * has changed, if one of those waits for this thread, itself or through others. It counts only in callbacks of the
 * queue.
 */
int ww_queue_begin_wait(struct queue *queue, ww_handle timer);
void ww_queue_end_wait(struct queue *queue);
/* This thread runs a firing of the group: call this when the firing has ended. Of several calls one counts. */
void ww_queue_afterwards(const struct timer_group *group, void (*afterwards)(void *argument), void *argument);
/* The statistics: `now` is the clock's time. */
void ww_queue_stats(struct queue *queue, uint64_t now, struct ww_driver_stats *stats);

/* ---- thread.c: what a thread of the driver does first and last */

/* Lies on the thread's stack. */
struct thread_here {
	char name[16];
	struct ww_driver_thread shown;
};

/* `worker` is the worker's number; -1: the tick thread. */
void ww_thread_enter(struct thread_here *here, const struct thread_hooks *hooks, int worker);
void ww_thread_leave(const struct thread_here *here, const struct thread_hooks *hooks);

#endif
