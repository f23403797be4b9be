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
 * The driver is tickless: its thread sleeps until the wheels next need attention. While nothing is pending, it does not
 * wake at all. Threads that schedule use wheels of their own as far as there are enough, so they do not wait for each
 * other. The driver holds no lock while a callback runs. WW_DRIVER_THREADLESS makes a driver without threads: it has a
 * file descriptor for the application's own event loop, and a call to make when the descriptor is readable.
 *
 *     static void hello(struct ww_driver *driver, const struct ww_firing *firing, void *user) { puts(user); }
 *
 *     struct ww_driver *driver;
 *     ww_handle timer;
 *     if (ww_driver_create(&driver, NULL) == WW_OK)
 *             ww_driver_schedule(driver, 1500 * WW_MILLISECOND, hello, "1.5 s later", &timer);
 *
 * Time: nanoseconds of the driver's clock (clock.h), which is CLOCK_BOOTTIME unless configured. A delay counts from the
 * moment of the call. Deadlines are rounded up to the driver's tick. A callback is never early. On an idle machine it
 * is late by at most a tick and the time that it takes to wake a thread. After a stall everything overdue fires. The
 * entries of one map fire in order of tick, and so do the driver's own timers. Callbacks of different timers run in
 * parallel, so only their starts are in order. On the wall clock, a step forwards fires all timers that have become
 * due. A step backwards delays timers, and those that have fired do not fire again.
 *
 * Fairness: each map on the driver (keyed.h, session.h) has places of its own in the queue, and so have the driver's
 * own timers. Each gets turns of the workers in proportion to its `share`, measured in time. A burst of one delays only
 * its own callbacks. To ensure this, the driver keeps one of several workers free as long as there is a map: the last
 * free worker serves only a map, or the timers, of which no callback is running. With two workers each map thus has
 * one. While others have work, one map gets at most W - 1 of W workers. Shares that are far apart need many workers: of
 * two maps with shares of 1 and 8, the second got as much as the first with 2 workers, 2.8 times as much with 4, and
 * 6.7 times with 8. Callbacks that take less than 0.1 ms get no more workers than there are processors, and no more than
 * one for each half microsecond that they take: more would only wait for each other. A callback that has run for 0.2 ms
 * while others wait does not count there, and another worker goes on with these.
 *
 * Handles: the driver owns its timers and names each by a 64-bit handle. Once a timer has fired or was cancelled, its
 * handle is refused with WW_ESTALE for ever. Any number may be passed as a handle without undefined behaviour. 0 is
 * never a handle.
 *
 * Threads: any thread and any callback may call every function that does not say otherwise. Cancellation of a calling
 * thread (pthread_cancel) takes effect only in functions that wait. It is disabled while a callback or another of the
 * application's functions runs in that thread. The driver's threads cannot be cancelled; a callback that enables
 * cancellation for itself must disable it again. They block all signals except those of a thread's own faults (SIGSEGV,
 * SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS, SIGABRT). Those are blocked or not as in the thread that makes the driver.
 *
 * Leaving a callback: a callback must return, and so must every other function of the application that the library
 * calls: drains, hooks, a map's functions, loaders, looks. If one is left by pthread_exit, by longjmp or by an
 * exception of C++, the behaviour is undefined. The call then counts as running for ever, a look keeps its lock, and
 * ww_driver_destroy does not return. In C++ declare such functions noexcept, or catch everything in them.
 *
 * Fork: only the parent has the driver's threads. In the child every call answers WW_ECLOSED, and ww_driver_destroy
 * frees what the driver holds; first destroy all objects made on the driver. A child that was forked in a callback must
 * not return from that callback. A child that needs timers makes its own driver.
 *
 * Errors: every call returns 0 or a positive answer, or a negative WW_E* of error.h. On error nothing has changed,
 * unless the function says otherwise.
 * Every function answers WW_EINVAL to NULL where it needs an object, and WW_ECLOSED after ww_driver_stop. Only
 * ww_driver_now, ww_driver_stats, ww_driver_fd, ww_driver_stop and ww_driver_destroy work after it, too.
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
#define WW_DRIVER_SHARE_MAX 1000

struct ww_driver;

/* Names a timer of a driver. 0 never names a timer. */
typedef uint64_t ww_handle;

/* One call of a callback. */
struct ww_firing {
	ww_handle handle;
	uint64_t deadline; /* on the driver's clock, in ns: as requested, before rounding to a tick */
	uint64_t missed;   /* periods that passed without a call since the last one; 0 for a one-shot */
};

/*
 * A timer's callback. A worker calls it, or ww_driver_dispatch in a driver without threads. It may run for long, block,
 * and call every function except, for its own driver, ww_driver_settle, ww_driver_step, ww_driver_dispatch and a wait
 * for its own end, which answer WW_EBUSY. In a driver with threads, so does ww_driver_destroy.
 */
typedef void ww_driver_fn(struct ww_driver *driver, const struct ww_firing *firing, void *user);

/* No threads: see ww_driver_fd. */
#define WW_DRIVER_THREADLESS 1u
/*
 * If a timer expires while its places in the queue are taken, drop the expiry and count it. Without this flag the
 * expiry waits in its wheel until there is room. With or without it, values that a session map hands to its `gone` wait
 * for room, and values of after.h that threads wait for are delivered.
 */
#define WW_DRIVER_DROP 2u

/* A thread of a driver, as its hooks see it. Valid until the hook returns. */
struct ww_driver_thread {
	const char *name; /* "ww-tick", "ww-worker-0", ...: as top, ps and debuggers show it */
	int worker;       /* the worker's number, 0 to workers - 1; -1 in the thread that moves the wheels */
};

/*
 * Called in each of the driver's threads, before anything else there and at its end. Use it to attach a language's
 * runtime and detach it, or to set a processor, a priority or another name. ww_driver_create may return before the
 * first hooks have returned. Even if it fails, it may have begun threads; they have ended when it returns. A hook calls
 * no function of the driver. It runs as callbacks do: it must return, and it is not cancelled.
 */
typedef void ww_driver_thread_fn(const struct ww_driver_thread *thread, void *user);

/* The configuration of a driver. Fill it with ww_driver_config_default, then change what should differ. */
struct ww_driver_config {
	struct ww_clock *clock;               /* NULL: ww_clock_elapsed(); must outlive the driver */
	const struct ww_allocator *allocator; /* NULL: the default; many threads use it at once */
	uint64_t tick_ns; /* 1,000 to 10^12; 1 ms: precision, and the shortest time between two wakes */
	size_t queue; /* expiries of each map, and of the timers, that may wait for a worker; 1 to 2^31 - 1; 65,536 */
	uint32_t workers;                  /* callbacks that may run at a time, 1 to WW_DRIVER_WORKERS_MAX; 8 */
	uint32_t shards;                   /* 0: from the number of processors; else 1 to WW_DRIVER_SHARDS_MAX */
	uint32_t flags;                    /* WW_DRIVER_* */
	ww_driver_thread_fn *thread_begin; /* NULL: no call */
	ww_driver_thread_fn *thread_end;   /* NULL: no call */
	void *thread_user;                 /* for both */
	uint32_t share; /* of its own timers, relative to those of maps; at most WW_DRIVER_SHARE_MAX; 0: 1 */
};

struct ww_driver_stats {
	uint64_t pending;              /* timers that wait for their deadline */
	uint64_t scheduled;            /* timers scheduled since the driver was made */
	uint64_t fired;                /* callbacks that began */
	uint64_t cancelled;            /* timers cancelled in time, and those that ww_driver_stop took back */
	uint64_t dropped;              /* expiries that found the queue full, with WW_DRIVER_DROP */
	uint64_t queued;               /* expiries that wait for a worker now */
	uint64_t oldest_ns;            /* how long the first of them has been waiting, whichever map it is of */
	uint64_t running;              /* callbacks that run now */
	uint64_t wakeups;              /* times that the tick thread woke, or that dispatch was called */
	uint64_t bytes;                /* memory of the driver and its timers */
	uint32_t levels;               /* of the driver's wheels */
	uint64_t level[WW_LEVELS_MAX]; /* pending timers in each, the soonest first; others are due or beyond */
};

/* ---- Making a driver ------------------------------------------------------------------------------------------ */

/* Fill *config with the defaults that the struct names for each member. Errors: WW_EINVAL: config is NULL. */
WW_API int ww_driver_config_default(struct ww_driver_config *config);

/*
 * Make a driver, start its threads, and store it in *driver. config NULL means the default. The call copies config, but
 * not what it points to.
 * Ownership: the caller's, until ww_driver_destroy.
 * Errors: WW_EINVAL: driver is NULL or the configuration is out of range. WW_ENOMEM: no memory. WW_ESYSTEM: the system
 * has no thread or descriptor left.
 */
WW_API int ww_driver_create(struct ww_driver **driver, const struct ww_driver_config *config);

/*
 * Stop the driver if it still runs, wait for running callbacks to end, and free it. NULL is harmless.
 * In a callback of a driver without threads the call stops the driver, and ww_driver_dispatch frees it when the
 * callback has returned. Until then other calls answer as after a stop. ww_driver_settle then answers WW_ECLOSED, too.
 * Threads: no other thread may use the driver any more.
 * Errors: WW_EBUSY: called in a callback of this driver, which has threads, or in the drain function of its stop; or an
 * object made on the driver (after.h, keyed.h, session.h) is left.
 */
WW_API int ww_driver_destroy(struct ww_driver *driver);

/*
 * Called by ww_driver_stop for a timer that it takes back. fn and user are those that the timer was scheduled with. The
 * handle is stale by now. left is the time in ns that was left to the deadline, or 0 if the timer was due. The driver
 * holds no lock. The function may call every function, which answers as after the stop, except ww_driver_destroy, which
 * answers WW_EBUSY.
 */
typedef void ww_driver_drain_fn(ww_handle handle, ww_driver_fn *fn, void *user, uint64_t left, void *context);

/*
 * Stop the driver. From now on calls answer WW_ECLOSED, except those that the top names. Once a stop has returned, or
 * another call has answered WW_ECLOSED, no callback begins any more. Hand every timer that would still fire, due or
 * not, to `drain`, or drop it if `drain` is NULL. *count, unless NULL, gets the number of these timers. Running
 * callbacks go on; ww_driver_destroy waits for them. A second stop does nothing and counts 0, even while the first one
 * still hands timers over. A callback may call this.
 * A timer that would fire again, because it is periodic or was rescheduled, may be handed over while its callback runs.
 * Before `drain` frees what user points to, it calls ww_driver_cancel_wait to wait for the callback's end, unless that
 * callback has called the stop.
 * Complexity: O(pending). Errors: WW_EINVAL: driver is NULL.
 */
WW_API int ww_driver_stop(struct ww_driver *driver, ww_driver_drain_fn *drain, void *context, size_t *count);

/* ---- Timers --------------------------------------------------------------------------------------------------- */

/*
 * Call fn(driver, firing, user) once, `delay` ns from now. Store the timer's handle in *timer unless that is NULL.
 * Range: 0 to WW_DRIVER_TIME_MAX - now.
 * Precision: never before the deadline; see the top. The callback may run before this call returns.
 * Ownership: user is passed through.
 * Complexity: O(1). Allocates when more timers are pending than ever before; see ww_driver_reserve.
 * Errors: WW_EINVAL: driver or fn is NULL. WW_EOVERFLOW: the deadline is beyond WW_DRIVER_TIME_MAX. WW_ENOMEM: no
 * memory, or 2^26 timers pending in one shard. WW_ECLOSED: stopped.
 */
WW_API int ww_driver_schedule(struct ww_driver *driver, uint64_t delay, ww_driver_fn *fn, void *user, ww_handle *timer);

/*
 * The same at an absolute deadline of the driver's clock. A deadline that has passed fires at once. Errors: the same.
 */
WW_API int ww_driver_schedule_at(
    struct ww_driver *driver, uint64_t deadline, ww_driver_fn *fn, void *user, ww_handle *timer);

/* The calls of a periodic timer may overlap. Without this flag each call waits for the end of the one before. */
#define WW_EVERY_OVERLAP 1u

/*
 * Call fn first `delay` ns from now and then every `period` ns, without drift: deadlines are first + n x period. The
 * driver skips periods that passed while a call was running (unless calls may overlap), while the queue was full, or in
 * a stall. The next call gets their number as `missed`.
 * Range: period is 1 to WW_DRIVER_TIME_MAX. A timer with a period shorter than a tick fires every tick.
 * Errors: as ww_driver_schedule; WW_EINVAL also: period is 0, or a flag is unknown. WW_EOVERFLOW also: period is too
 * long.
 */
WW_API int ww_driver_schedule_every(struct ww_driver *driver, uint64_t delay, uint64_t period, uint32_t flags,
    ww_driver_fn *fn, void *user, ww_handle *timer);

/*
 * Move a timer's deadline to `delay` ns from now. Return 1 if the move was in time: the former deadline will not fire.
 * Return 0 if the callback is running: the timer then fires again, at the new deadline but not before the callback
 * ends. A callback can thus keep its own timer alive. A periodic timer keeps its period and counts from the new
 * deadline.
 * With WW_EVERY_OVERLAP the call always returns 1: the timer moves at once and waits for no callback's end. Calls of
 * former deadlines that already wait for a worker still come, as do those that run; ww_driver_cancel takes the waiting
 * ones back.
 * Complexity: O(1), allocates nothing. Errors: WW_ESTALE: the timer has fired, was cancelled, or never was.
 * WW_EOVERFLOW: as ww_driver_schedule. WW_ECLOSED: stopped.
 */
WW_API int ww_driver_reschedule(struct ww_driver *driver, ww_handle timer, uint64_t delay);

/*
 * Cancel a timer. Return 1 if that was in time: its callback has not run and never will. For a periodic timer, 1 means
 * that the callback is not running and will not run again. Return 0 if the callback is running now; it will not be
 * called again. The next timer can use this timer's memory at once.
 * Complexity: O(1), waits for nothing. Errors: WW_ESTALE: as ww_driver_reschedule. WW_ECLOSED: stopped.
 */
WW_API int ww_driver_cancel(struct ww_driver *driver, ww_handle timer);

/*
 * The same, but where ww_driver_cancel would return 0, wait for the callback's end first. Afterwards no callback uses
 * its user pointer any more. This also holds when the answer is WW_ESTALE because the timer was cancelled before: the
 * call waits for a callback that still runs. It holds for WW_ECLOSED, too, but a stop under way in another thread may
 * still hand the user pointer to its `drain`. Free it only when that stop has returned. A point of thread cancellation.
 * Errors: as ww_driver_cancel: WW_ESTALE also in that very callback, if it was cancelled before. WW_EBUSY: called in
 * that very callback otherwise, which would wait for itself, or in a callback that the timer's callback already waits
 * for in this function, directly or through others; nothing has changed. If two callbacks wait for each other, the
 * second call gets the error. Waits across drivers are not detected.
 */
WW_API int ww_driver_cancel_wait(struct ww_driver *driver, ww_handle timer);

/*
 * Return 1 and store in *ns the time left to the timer's deadline, or 0 if the deadline has passed. Return 0 and leave
 * *ns if the callback is running and the timer will not fire again.
 * Precision: the deadline is the requested one. The timer fires at the tick that the deadline was rounded up to, so *ns
 * may be 0 for up to a tick before.
 * Errors: WW_EINVAL: an argument is NULL. WW_ESTALE, WW_ECLOSED: as ww_driver_cancel.
 */
WW_API int ww_driver_time_left(struct ww_driver *driver, ww_handle timer, uint64_t *ns);

/*
 * Allocate memory now for the given number of timers of the calling thread's shard. While no more than that are pending
 * in the shard, scheduling allocates nothing. A thread keeps its shard as long as it alternates between at most eight
 * drivers. A driver assigns its shards in turn, so threads share one when there are more threads than shards.
 * Errors: WW_ENOMEM: no memory, or more than 2^26 timers; nothing was allocated. WW_ECLOSED: stopped.
 */
WW_API int ww_driver_reserve(struct ww_driver *driver, size_t timers);

/* ---- Without threads ------------------------------------------------------------------------------------------ */

/*
 * Return the descriptor that is readable when ww_driver_dispatch has something to do, for epoll, poll, libuv, libev. It
 * stays the same for the driver's life. The driver owns it: do not read or close it. It may be readable when no expiry
 * is due, for the wheels' own work or for a timer that was cancelled or moved. Dispatch then returns 0.
 * Errors: WW_EINVAL: the driver has threads.
 */
WW_API int ww_driver_fd(const struct ww_driver *driver);

/*
 * Call the callbacks of at most `budget` due expiries in this thread. Return how many were called, 0 if none was due.
 * The descriptor stays readable while expiries are left. One thread at a time.
 * In a callback: if the callback runs a loop on the same descriptor, the loop does not find it readable, whatever comes
 * due, and dispatches nothing (WW_EBUSY). No timer of the driver fires until the callback returns. Expiries that came
 * due meanwhile make the descriptor readable when this call returns. For timers in such a loop, make a second driver.
 * In a loop that takes several events at a time, as from epoll_wait, dispatch behind all others: a callback that frees a
 * connection would leave an event for it in the batch.
 * Errors: WW_EINVAL: the driver has threads, or budget is 0. WW_EBUSY: called in a callback of this driver,
 * or in two threads at once.
 */
WW_API int ww_driver_dispatch(struct ww_driver *driver, uint32_t budget);

/* ---- Looking inside ------------------------------------------------------------------------------------------- */

/* Store the time of the driver's clock in *ns, as the deadlines count it. Errors: WW_EINVAL: an argument is NULL. */
WW_API int ww_driver_now(const struct ww_driver *driver, uint64_t *ns);

/*
 * Wait until every timer whose tick has come, by the driver's clock, has fired and its callback has ended. This is the
 * last line of a test that moves a virtual clock. Without threads the call dispatches until then. Callbacks that keep
 * scheduling without delay keep it waiting. A point of thread cancellation.
 * Precision: a deadline between two ticks fires at the later one, and the call does not wait for it before. If the
 * clock stands at 0.5 ms and the tick is 1 ms, a timer that is scheduled with a delay of 0 does not fire yet. A test
 * therefore starts its clock on a multiple of tick_ns and advances it by multiples, or by a tick more than the delay.
 * Errors: WW_EBUSY: called in a callback of this driver. WW_ECLOSED: stopped.
 */
WW_API int ww_driver_settle(struct ww_driver *driver);

/*
 * Move the driver's virtual clock to the tick of the next deadline, and settle the driver: a test or a simulation runs
 * from event to event, however far apart these are. Return 1 after one of the driver's own timers, or an entry of a map
 * on it, has expired, and store the clock's time in *ns unless that is NULL. Timers that are already due count: the
 * clock then stays. The deadlines of one tick are one step. Return 0 if nothing expires by `until`, and leave *ns. The
 * clock then stands at `until`, or stays where it is if `until` is WW_NEVER or has passed.
 *
 *     while (ww_driver_step(driver, end_of_simulation, &now) > 0)
 *             observe(now);
 *
 * Range: until is 0 to WW_CLOCK_MAX, or WW_NEVER for no bound.
 * Threads: works with and without threads of the driver, as ww_driver_settle does. Nobody else may move the clock
 * meanwhile. If several drivers share the clock, the call settles only this one.
 * Complexity: O(shards) for each look at the wheels. A far deadline needs one look a level.
 * Errors: WW_EINVAL: driver is NULL, or its clock is not virtual. WW_EOVERFLOW: until is out of range. WW_EBUSY: called
 * in a callback of this driver. WW_ECLOSED: stopped.
 */
WW_API int ww_driver_step(struct ww_driver *driver, uint64_t until, uint64_t *ns);

/* Fill *stats. O(shards); the numbers need not all be of the same moment. Errors: WW_EINVAL: an argument is NULL. */
WW_API int ww_driver_stats(struct ww_driver *driver, struct ww_driver_stats *stats);

#ifdef __cplusplus
}
#endif

#endif
