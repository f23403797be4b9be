#ifndef WEEKWHEEL_AFTER_H
#define WEEKWHEEL_AFTER_H

/*
 * Timers as in Go's package `time`: a timer to wait for, a function that is called later, a ticker, and a sleep. The
 * semantics are those of Go 1.23 and later. All of them run on a driver (driver.h).
 *
 *     Go                            here
 *     ----------------------------  ----------------------------------------------------------------------------------
 *     time.NewTimer(d)              ww_after_create(&after, driver, d)
 *     time.After(d)                 the same, and ww_after_destroy in the end; there is no garbage collector
 *     <-t.C                         ww_after_receive(after, &time)
 *     select { case <-t.C: ...      ww_after_poll(after, &time)
 *       default: }
 *     time.AfterFunc(d, f)          ww_after_func(&after, driver, d, f, user), and ww_after_destroy in the end; to fire
 *                                   and forget: ww_driver_schedule
 *     t.Stop()                      ww_after_stop(after)
 *     t.Reset(d)                    ww_after_reset(after, d)
 *     time.NewTicker(d)             ww_ticker_create(&ticker, driver, d)
 *     time.Tick(d)                  the same, and ww_ticker_destroy in the end
 *     <-t.C of a Ticker             ww_ticker_receive(ticker, &time), ww_ticker_poll(ticker, &time)
 *     t.Stop(), t.Reset(d)          ww_ticker_stop(ticker), ww_ticker_reset(ticker, d)
 *     time.Sleep(d)                 ww_sleep(driver, d)
 *     d <= 0                        0; a ticker's period of 0, which panics in Go, is WW_EINVAL
 *
 * A channel has room for one value. An expiry puts its value there, and one of the receiving threads gets it, once. If
 * a ticker's channel is still full, the newer tick is dropped. Stop and reset empty the channel. After they return, no
 * value of an earlier start is received and no function of an earlier start begins. As in Go, a timer whose value
 * nobody has received yet still counts as active, because stop and reset take the value back.
 *
 * Time: delays and periods are in ns, 0 to WW_DRIVER_TIME_MAX - now, and count from the moment of the call. A timer is
 * never early; driver.h says how late it may be. The received time is the time of the driver's clock at which the timer
 * was due, before rounding to a tick.
 *
 * Errors: every call returns 0 or a positive answer, or a negative WW_E* of error.h. On error nothing has changed.
 * Every function answers WW_EINVAL to NULL where it needs an object; receive and poll also answer it for a timer with a
 * function. After ww_driver_stop, all but ww_after_destroy and ww_ticker_destroy answer WW_ECLOSED. A thread that waits
 * in receive or ww_sleep at the stop gets that answer at once. Nobody polls: a thread that waits sleeps until then.
 *
 * Threads: any thread and any callback may call every function that does not say otherwise. Do not use an object during
 * or after its destruction. Only a call of its own function that still runs may do so: it cannot start the timer again,
 * and must not call ww_after_destroy while another thread destroys it. receive, ww_sleep and the two destroy functions
 * are points of thread cancellation (pthread_cancel). Cancellation loses nothing: no value, no lock, no timer that keeps
 * running. An object whose destruction was cancelled is stopped for good, and can be destroyed again.
 *
 * In callbacks: an expiry needs a worker of the driver to arrive. A callback that waits in receive or ww_sleep occupies
 * a worker, so fewer callbacks than there are workers may wait at a time. In a driver without threads no callback may
 * wait, and a thread that waits needs another thread that calls ww_driver_dispatch.
 *
 * A stop of the driver hands these timers to its `drain` like any other, with an fn that is not the application's. With
 * WW_DRIVER_DROP, a dropped call of a function leaves no trace. Values are never dropped: those of timers, tickers and
 * sleeps enter even a full queue, beyond its limit, at most one for each.
 *
 * Memory: the default allocator, one block for each object; a start takes a timer of the driver. Destroy all objects
 * before the driver: ww_driver_destroy answers WW_EBUSY while one is left. They may be destroyed after the driver's
 * stop. In a child of fork they answer WW_ECLOSED, and destroy frees what they hold, before or after the driver is
 * destroyed.
 */

#include <stdint.h>

#include "weekwheel/driver.h"
#include "weekwheel/error.h"

#ifdef __cplusplus
extern "C" {
#endif

struct ww_after;
struct ww_ticker;

/* ---- One expiry ----------------------------------------------------------------------------------------------- */

/*
 * Make a timer that puts a value into its channel `delay` ns from now, and store it in *after.
 * Ownership: the caller's, until ww_after_destroy, which must come before ww_driver_destroy (WW_EBUSY).
 * Errors: WW_EINVAL: an argument is NULL. WW_EOVERFLOW: the deadline is beyond WW_DRIVER_TIME_MAX. WW_ENOMEM: no
 * memory, or the driver has no timer left. WW_ECLOSED: the driver is stopped.
 */
WW_API int ww_after_create(struct ww_after **after, struct ww_driver *driver, uint64_t delay);

/*
 * A function to call later, in a worker of the driver; Go gives it a goroutine. It may run for long, call every
 * function and destroy its own timer. It must return.
 */
typedef void ww_after_fn(void *user);

/*
 * Make a timer that calls fn(user) `delay` ns from now, and store it in *after. fn may begin before this call returns,
 * but not before *after is stored.
 * Ownership: as ww_after_create; user is passed through.
 * Errors: as ww_after_create; WW_EINVAL also: fn is NULL.
 */
WW_API int ww_after_func(
    struct ww_after **after, struct ww_driver *driver, uint64_t delay, ww_after_fn *fn, void *user);

/*
 * Wait until the timer expires. Store the time at which it was due in *time unless time is NULL. If the value was
 * already received or the timer is stopped, the call keeps waiting, until a reset makes the timer expire again.
 * Threads: any number at once; one of them gets the value. A point of thread cancellation.
 * Errors: WW_EINVAL: after is NULL, or has a function. WW_ECLOSED: the driver is stopped, or was stopped during the
 * wait.
 */
WW_API int ww_after_receive(struct ww_after *after, uint64_t *time);

/*
 * The same without waiting: return 1 if there was a value. Otherwise return 0 and leave *time.
 * Errors: as ww_after_receive.
 */
WW_API int ww_after_poll(struct ww_after *after, uint64_t *time);

/*
 * Stop the timer. Return 1 if that was in time: its value was not received and never will be, its function has not
 * begun and never will. Return 0 if the value was received, the function has begun, or the timer was already stopped.
 * The call does not wait for a running function.
 * Complexity: O(1). The call waits only for the few instructions of an expiry that is under way in a worker.
 * Errors: WW_EINVAL: after is NULL. WW_ECLOSED: the driver is stopped.
 */
WW_API int ww_after_stop(struct ww_after *after);

/*
 * Stop the timer and start it anew, `delay` ns from now. Return what ww_after_stop would have returned: 1 if it was
 * active. After a 0 the former call of its function may still run, and the next one may overlap with it.
 * Complexity: as ww_after_stop. An active timer is moved and nothing is allocated, unless the timer is just expiring.
 * Errors: WW_EINVAL: after is NULL. WW_EOVERFLOW, WW_ENOMEM, WW_ECLOSED: as ww_after_create; the timer goes on as it
 * was. WW_ECLOSED also: in its own function, once its destruction has begun.
 */
WW_API int ww_after_reset(struct ww_after *after, uint64_t delay);

/*
 * Stop the timer, wait until its function has ended if it runs, and free the timer. NULL is harmless. From then on its
 * function is not called again: in a call that still runs, ww_after_reset answers WW_ECLOSED.
 * In its own function the call does not wait, and the timer is freed when the last call of the function has ended. The
 * driver can be destroyed before. Functions in two threads that destroy each other's timers wait for ever.
 * Threads: no other thread may use the timer any more. A point of thread cancellation.
 * Errors: WW_EBUSY: a thread waits in ww_after_receive.
 */
WW_API int ww_after_destroy(struct ww_after *after);

/* ---- Ticks ---------------------------------------------------------------------------------------------------- */

/*
 * Make a ticker that puts a value into its channel every `period` ns, and store it in *ticker. The first tick comes
 * after one period. Deadlines do not drift. After a stall there is one tick, not one for each period that passed.
 * Ownership: the caller's, until ww_ticker_destroy, which must come before ww_driver_destroy (WW_EBUSY).
 * Errors: as ww_after_create; WW_EINVAL also: period is 0.
 */
WW_API int ww_ticker_create(struct ww_ticker **ticker, struct ww_driver *driver, uint64_t period);

/* Wait for a tick, as ww_after_receive does. */
WW_API int ww_ticker_receive(struct ww_ticker *ticker, uint64_t *time);

/* Take a tick without waiting, as ww_after_poll does. */
WW_API int ww_ticker_poll(struct ww_ticker *ticker, uint64_t *time);

/*
 * Stop the ticker. Return 1 if it ran, 0 if not. A thread that waits for a tick keeps waiting, until a reset.
 * Errors: as ww_after_stop.
 */
WW_API int ww_ticker_stop(struct ww_ticker *ticker);

/*
 * Stop the ticker and let it tick every `period` ns, first after one period. Return 1 if it ran, 0 if not.
 * Errors: as ww_after_reset; WW_EINVAL also: period is 0.
 */
WW_API int ww_ticker_reset(struct ww_ticker *ticker, uint64_t period);

/* Stop the ticker and free it. NULL is harmless. Errors: WW_EBUSY: a thread waits in ww_ticker_receive. */
WW_API int ww_ticker_destroy(struct ww_ticker *ticker);

/* ---- Sleep ---------------------------------------------------------------------------------------------------- */

/*
 * Wait until `delay` ns of the driver's clock have passed; 0 returns at once. Signals do not end the wait. A point of
 * thread cancellation.
 * In the only thread of a driver without threads the call waits for ever, since nobody calls ww_driver_dispatch
 * meanwhile. The same holds in the only thread that moves a virtual clock.
 * Errors: WW_EINVAL: driver is NULL. WW_EOVERFLOW, WW_ENOMEM: as ww_after_create. WW_ECLOSED: the driver is stopped, or
 * was stopped during the wait.
 */
WW_API int ww_sleep(struct ww_driver *driver, uint64_t delay);

#ifdef __cplusplus
}
#endif

#endif
