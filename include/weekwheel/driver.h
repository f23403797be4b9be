#ifndef WEEKWHEEL_DRIVER_H
#define WEEKWHEEL_DRIVER_H

/*
 * Timers that run by themselves: one thread moves all wheels, and a pool of workers calls the callbacks.
 *
 *     any thread: schedule,         tick thread: sleeps           workers
 *     cancel, reschedule            until something is due
 *               |                          |
 *               v                          v
 *     +-------------------+  expiries  +-----------+  callbacks  +---------+
 *     | wheels, one lock  |----------->| queue     |------------>| 1 ... 8 |
 *     | each (shards)     |            | (bounded) |             +---------+
 *     +-------------------+            +-----------+
 *
 * The driver is tickless: its thread sleeps until the wheels next need attention, and not at all for a driver in which
 * nothing is pending. Threads that schedule do so in wheels of their own as far as there are enough, so that they do
 * not wait for each other; no lock is held while a callback runs. Or no thread at all: WW_DRIVER_THREADLESS gives a
 * file descriptor for the application's own event loop and a call to make when it is readable.
 *
 *     static void hello(struct ww_driver *driver, const struct ww_firing *firing, void *user) { puts(user); }
 *
 *     struct ww_driver *driver;
 *     ww_handle timer;
 *     if (ww_driver_create(&driver, NULL) == WW_OK)
 *             ww_driver_schedule(driver, 1500 * WW_MILLISECOND, hello, "1.5 s later", &timer);
 *
 * Time: nanoseconds of the driver's clock (clock.h), CLOCK_BOOTTIME unless configured. A delay counts from the moment
 * of the call. Deadlines are rounded up to the driver's tick, so that a callback is never early and, on an idle
 * machine, late by a tick and the time that it takes to wake a thread. Across a stall everything overdue fires, in
 * order of tick (callbacks of different timers run side by side, so that only their starts are in order). On the wall
 * clock a step forwards fires what has become due; a step backwards delays, and what has fired does not fire again.
 *
 * Handles: the driver's timers are its own, named by a 64-bit handle. Once a timer has fired or was cancelled, its
 * handle is refused with WW_ESTALE for ever after; no number passed as a handle is undefined behaviour, and 0 never is
 * one.
 *
 * Threads: every function may be called from any thread, and from callbacks, where it does not say otherwise.
 * Cancellation of a calling thread (pthread_cancel) is acted on only in those that wait; it is disabled while a
 * callback or any other of the application's functions runs in that thread. Signals are blocked in the driver's
 * threads, but for those of a thread's own faults (SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS, SIGABRT), which
 * are as in the thread that makes the driver.
 *
 * Fork: only the parent has the driver's threads. In the child every call answers WW_ECLOSED, and ww_driver_destroy
 * frees what the driver holds, after what was made upon it; a child that was forked in a callback must not return from
 * it then. One that wants timers makes a driver of its own.
 *
 * Errors: 0 or a positive answer, or a negative WW_E* of error.h. On error nothing has changed. WW_EINVAL is answered
 * for a NULL where an object is needed, WW_ECLOSED after ww_driver_stop.
 */

#include <stddef.h>
#include <stdint.h>

#include "weekwheel/allocator.h"
#include "weekwheel/clock.h"
#include "weekwheel/error.h"
#include "weekwheel/wheel.h"

#ifdef __cplusplus
extern "C" {
#endif

#define WW_MICROSECOND UINT64_C(1000)
#define WW_MILLISECOND UINT64_C(1000000)
#define WW_SECOND UINT64_C(1000000000)

/* The longest delay and the last deadline: 2^62 ns, 146 years. */
#define WW_DRIVER_TIME_MAX (UINT64_C(1) << 62)
#define WW_DRIVER_WORKERS_MAX 256
#define WW_DRIVER_SHARDS_MAX 64

struct ww_driver;

/* Names a timer of a driver. 0 is never a timer's. */
typedef uint64_t ww_handle;

/* One call of a callback. */
struct ww_firing {
	ww_handle handle;
	uint64_t deadline; /* of the driver's clock, in ns: what was asked for, before rounding to a tick */
	uint64_t missed;   /* periods that passed without a call since the last one; 0 for a one-shot */
};

/*
 * A timer's callback, in a worker or, without threads, in ww_driver_dispatch. It may take its time, block, and call
 * every function but ww_driver_destroy, ww_driver_settle, ww_driver_dispatch and a wait for its own end, which answer
 * WW_EBUSY.
 */
typedef void ww_driver_fn(struct ww_driver *driver, const struct ww_firing *firing, void *user);

/* No threads: see ww_driver_fd. */
#define WW_DRIVER_THREADLESS 1u
/*
 * When the queue is full, drop the expiry and count it; otherwise it waits in its wheel until there is room, and so do
 * in either case the values of a session map that are to be handed to its gone.
 */
#define WW_DRIVER_DROP 2u

/* How a driver is made. Fill it with ww_driver_config_default, then change what should differ. */
struct ww_driver_config {
	struct ww_clock *clock;               /* NULL: ww_clock_elapsed(); must outlive the driver */
	const struct ww_allocator *allocator; /* NULL: the default; used by many threads at once */
	uint64_t tick_ns;                     /* 1,000 to 10^12; 1 ms: precision, and how often it wakes at most */
	size_t queue;                         /* expiries that wait for a worker, at least 1; 65,536 */
	uint32_t workers;                     /* callbacks that run at a time, 1 to WW_DRIVER_WORKERS_MAX; 8 */
	uint32_t shards;                      /* 0: by the processors; otherwise 1 to WW_DRIVER_SHARDS_MAX */
	uint32_t flags;                       /* WW_DRIVER_* */
};

struct ww_driver_stats {
	uint64_t pending;              /* timers that wait for their deadline */
	uint64_t scheduled;            /* since the driver was made: timers that were scheduled */
	uint64_t fired;                /* callbacks that began */
	uint64_t cancelled;            /* timers whose cancel was in time, and those that ww_driver_stop took back */
	uint64_t dropped;              /* expiries that found the queue full, with WW_DRIVER_DROP */
	uint64_t queued;               /* expiries that wait for a worker now */
	uint64_t oldest_ns;            /* how long the first of them has been waiting */
	uint64_t running;              /* callbacks that run now */
	uint64_t wakeups;              /* times that the tick thread woke, or dispatch was called */
	uint64_t bytes;                /* memory of the driver and its timers */
	uint32_t levels;               /* of its wheels */
	uint64_t level[WW_LEVELS_MAX]; /* pending timers in each, the soonest first; others are due or farther away */
};

/* ---- Making a driver ------------------------------------------------------------------------------------------ */

/*
 * Fill *config with the default, as the struct says for each member.
 * Errors: WW_EINVAL: config is NULL.
 */
WW_API int ww_driver_config_default(struct ww_driver_config *config);

/*
 * Make a driver, start its threads, and store it in *driver; config NULL means the default. config is copied, what it
 * points to is not.
 * Ownership: the caller's, until ww_driver_destroy.
 * Errors: WW_EINVAL: driver is NULL or the configuration is out of range. WW_ENOMEM: no memory. WW_ESYSTEM: the system
 * has no thread or descriptor left.
 */
WW_API int ww_driver_create(struct ww_driver **driver, const struct ww_driver_config *config);

/*
 * Stop the driver if it was not, wait for running callbacks to end, and free it. NULL is harmless. No other thread may
 * use the driver any more.
 * Errors: WW_EBUSY: called in a callback of this driver or in the drain function of its stop, or something that was
 * made upon it (after.h, keyed.h, session.h) is left.
 */
WW_API int ww_driver_destroy(struct ww_driver *driver);

/*
 * Called by ww_driver_stop for a timer that it takes back: what was passed when it was scheduled, its handle, which is
 * stale now, and the ns that were left to its deadline, 0 when it was due. No lock is held. It may call every function,
 * which answers as after the stop, but ww_driver_destroy, which answers WW_EBUSY.
 */
typedef void ww_driver_drain_fn(ww_handle handle, ww_driver_fn *fn, void *user, uint64_t left, void *context);

/*
 * Stop: when a stop has returned, or any other call has answered WW_ECLOSED, which they do from now on, no callback
 * begins any more. Every timer that would still fire, due or not, is handed to `drain` or, if that is NULL, dropped;
 * *count, unless NULL, gets their number. Callbacks that run go on; ww_driver_destroy waits for them. Of a timer that
 * would fire again, because it is periodic or was rescheduled, the callback may run while it is handed over: before
 * `drain` frees what user points to, ww_driver_cancel_wait waits for the callback's end, unless that is what has called
 * the stop. A second stop does nothing and counts 0, also while the first one hands over. Allowed in a callback.
 * Complexity: O(pending). Errors: WW_EINVAL: driver is NULL.
 */
WW_API int ww_driver_stop(struct ww_driver *driver, ww_driver_drain_fn *drain, void *context, size_t *count);

/* ---- Timers --------------------------------------------------------------------------------------------------- */

/*
 * Call fn(driver, firing, user) once, `delay` ns from now, and store the timer's handle in *timer unless that is NULL.
 * Range: 0 to WW_DRIVER_TIME_MAX - now. Precision: never before; see the top. The callback may run before this returns.
 * Ownership: user is passed through.
 * Complexity: O(1); takes memory when more timers are pending than ever before, see ww_driver_reserve.
 * Errors: WW_EINVAL: driver or fn is NULL. WW_EOVERFLOW: the deadline is beyond WW_DRIVER_TIME_MAX. WW_ENOMEM: no
 * memory, or 2^26 timers pending in one shard. WW_ECLOSED: stopped.
 */
WW_API int ww_driver_schedule(struct ww_driver *driver, uint64_t delay, ww_driver_fn *fn, void *user, ww_handle *timer);

/* The same at an absolute deadline of the driver's clock; one that has passed fires at once. Errors: the same. */
WW_API int ww_driver_schedule_at(
    struct ww_driver *driver, uint64_t deadline, ww_driver_fn *fn, void *user, ww_handle *timer);

/* Of a periodic timer: its calls may overlap; otherwise the next one waits for the end of the one before. */
#define WW_EVERY_OVERLAP 1u

/*
 * Call fn first `delay` ns from now and then every `period` ns, without drift: deadlines are first + n x period.
 * Periods that passed while a call was running (unless they may overlap), while the queue was full, or in a stall, are
 * skipped and told to the next call as `missed`.
 * Range: period is 1 to WW_DRIVER_TIME_MAX; one shorter than a tick fires every tick.
 * Errors: as ww_driver_schedule; WW_EINVAL also: period is 0, an unknown flag. WW_EOVERFLOW also: period is too long.
 */
WW_API int ww_driver_schedule_every(struct ww_driver *driver, uint64_t delay, uint64_t period, uint32_t flags,
    ww_driver_fn *fn, void *user, ww_handle *timer);

/*
 * Move a timer's deadline to `delay` ns from now. Return 1 if it was moved in time: its former deadline will not fire
 * any more. Return 0 if its callback is running: then it fires again, at the new deadline but not before the callback's
 * end; so a callback keeps its own timer alive. A periodic timer keeps its period and counts from the new deadline.
 * With WW_EVERY_OVERLAP, 1 is returned always: the timer is moved at once, and waits for no callback's end. But calls
 * of former deadlines that wait for a worker by then still come, as do those that run; ww_driver_cancel takes them
 * back.
 * Complexity: O(1), allocates nothing.
 * Errors: WW_ESTALE: the timer has fired, was cancelled, or never was. WW_EOVERFLOW: as ww_driver_schedule. WW_ECLOSED.
 */
WW_API int ww_driver_reschedule(struct ww_driver *driver, ww_handle timer, uint64_t delay);

/*
 * Cancel a timer. Return 1 if that was in time: its callback has not run and never will (of a periodic one: will not
 * run again and is not running). Return 0 if the callback is running now; it will not be called again. What the timer
 * held is free for the next one at once.
 * Complexity: O(1), waits for nothing. Errors: WW_ESTALE: as ww_driver_reschedule. WW_ECLOSED: stopped.
 */
WW_API int ww_driver_cancel(struct ww_driver *driver, ww_handle timer);

/*
 * The same, and where ww_driver_cancel would return 0, wait for the callback's end first: afterwards nobody uses the
 * callback's user pointer any more. That holds as well when it answers WW_ESTALE, because the timer was cancelled
 * before: it waits for a callback that still runs. It does so, too, when it answers WW_ECLOSED, and no callback uses
 * the user pointer afterwards; but a stop that is under way in another thread may still hand it to its `drain`, and who
 * frees it waits until that stop has returned. A point of thread cancellation.
 * Errors: as ww_driver_cancel. WW_EBUSY: called in that very callback, which would wait for itself; nothing has
 * changed.
 */
WW_API int ww_driver_cancel_wait(struct ww_driver *driver, ww_handle timer);

/*
 * Return 1 and store in *ns how long it is to the timer's deadline, 0 if that has passed; return 0 and leave *ns if its
 * callback is running and it is not to fire again.
 * Precision: the deadline is what was asked for. The timer fires at the tick that it was rounded up to, so that 0 may
 * be answered for up to a tick before.
 * Errors: WW_EINVAL: an argument is NULL. WW_ESTALE, WW_ECLOSED: as ww_driver_cancel.
 */
WW_API int ww_driver_time_left(struct ww_driver *driver, ww_handle timer, uint64_t *ns);

/*
 * Take memory now for as many timers that the calling thread will schedule: while no more than that are pending in its
 * shard, scheduling allocates nothing. A thread keeps its shard; threads share one when there are more of them.
 * Errors: WW_ENOMEM: no memory, or more than 2^26 timers; nothing was taken. WW_ECLOSED: stopped.
 */
WW_API int ww_driver_reserve(struct ww_driver *driver, size_t timers);

/* ---- Without threads ------------------------------------------------------------------------------------------ */

/*
 * Return the descriptor that is readable when ww_driver_dispatch has something to do, for epoll, poll, libuv, libev. It
 * stays the same for the driver's life and is the driver's: neither read nor closed by others. It may be readable when
 * no expiry is due, for the wheels' own work or a timer that was cancelled or moved: dispatch then returns 0.
 * Errors: WW_EINVAL: the driver has threads.
 */
WW_API int ww_driver_fd(const struct ww_driver *driver);

/*
 * Call the callbacks of at most `budget` expiries that are due, in this thread, and return how many that were, 0 if
 * none was. What is left keeps the descriptor readable. One thread at a time.
 * Errors: WW_EINVAL: the driver has threads, or budget is 0. WW_EBUSY: called in a callback, or in two threads at once.
 */
WW_API int ww_driver_dispatch(struct ww_driver *driver, uint32_t budget);

/* ---- Looking inside ------------------------------------------------------------------------------------------- */

/*
 * Return the time of the driver's clock, in ns, as the deadlines count it.
 * Errors: WW_EINVAL: an argument is NULL.
 */
WW_API int ww_driver_now(const struct ww_driver *driver, uint64_t *ns);

/*
 * Wait until everything whose tick has come, by the driver's clock, has fired and its callback has ended: the last line
 * of a test that moves a virtual clock. Without threads it dispatches until then. Callbacks that keep scheduling
 * without delay keep it waiting. A point of thread cancellation.
 * Precision: a deadline between two ticks fires at the later one, and is not waited for before: at 0.5 ms of a clock,
 * with a tick of 1 ms, nothing that is scheduled with a delay of 0 fires. A test starts its clock on a multiple of
 * tick_ns and advances it by multiples, or by a tick more than the delay.
 * Errors: WW_EBUSY: called in a callback. WW_ECLOSED: stopped.
 */
WW_API int ww_driver_settle(struct ww_driver *driver);

/* Fill *stats. O(shards); the numbers are not all of one moment. Errors: WW_EINVAL: an argument is NULL. */
WW_API int ww_driver_stats(struct ww_driver *driver, struct ww_driver_stats *stats);

#ifdef __cplusplus
}
#endif

#endif
