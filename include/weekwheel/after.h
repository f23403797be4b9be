#ifndef WEEKWHEEL_AFTER_H
#define WEEKWHEEL_AFTER_H

/*
 * What the package `time` of Go has: a timer that is waited for, a function that is called later, a ticker, a sleep.
 * With the semantics of Go 1.23 and later, upon a driver (driver.h).
 *
 *     Go                            here
 *     ----------------------------  ----------------------------------------------------------------------------------
 *     time.NewTimer(d)              ww_after_create(&after, driver, d)
 *     time.After(d)                 the same, and ww_after_destroy in the end; there is no garbage collector
 *     <-t.C                         ww_after_receive(after, &time)
 *     select { case <-t.C: ...      ww_after_poll(after, &time)
 *       default: }
 *     time.AfterFunc(d, f)          ww_after_func(&after, driver, d, f, user), and ww_after_destroy in the end; to fire and
 *                                   forget: ww_driver_schedule
 *     t.Stop()                      ww_after_stop(after)
 *     t.Reset(d)                    ww_after_reset(after, d)
 *     time.NewTicker(d)             ww_ticker_create(&ticker, driver, d)
 *     time.Tick(d)                  the same, and ww_ticker_destroy in the end
 *     <-t.C of a Ticker             ww_ticker_receive(ticker, &time), ww_ticker_poll(ticker, &time)
 *     t.Stop(), t.Reset(d)          ww_ticker_stop(ticker), ww_ticker_reset(ticker, d)
 *     time.Sleep(d)                 ww_sleep(driver, d)
 *     d <= 0                        0; a ticker's period of 0, which panics in Go, is WW_EINVAL
 *
 * A channel has room for one value. What expires waits there until it is received, once, by one of the threads that
 * receive; of a ticker whose channel is still full the newer tick is dropped. Stop and reset empty the channel: after
 * they return nothing is received, and no function begins, that belongs to a start before them. As in Go, a timer whose
 * value nobody has received yet still counts as active, because stop and reset take it back.
 *
 * Time: delays and periods are in ns, 0 to WW_DRIVER_TIME_MAX - now, and count from the moment of the call; never
 * early, late by what driver.h says. The time that is received is that of the driver's clock at which the timer was
 * due, before rounding to a tick.
 *
 * Errors: 0 or a positive answer, or a negative WW_E* of error.h. On error nothing has changed. WW_EINVAL is answered
 * for a NULL where an object is needed, and when a timer with a function is to be received from; WW_ECLOSED after
 * ww_driver_stop, by all but ww_after_destroy and ww_ticker_destroy, and also when that comes while a thread waits in
 * receive or ww_sleep: it is told within 50 ms.
 *
 * Threads: every function may be called from any thread and from callbacks, where it does not say otherwise, except
 * that an object must not be used while it is destroyed or after that. receive, ww_sleep and the two destroy are points
 * of thread cancellation (pthread_cancel), which loses nothing: no value, no lock, no timer that goes on; what was
 * being destroyed is stopped, and can be destroyed again.
 *
 * In callbacks: an expiry needs a worker of the driver to arrive. A callback that waits in receive or ww_sleep keeps
 * one, so that fewer callbacks than there are workers may do so at a time; in a driver without threads none may, and
 * whoever waits needs another thread that calls ww_driver_dispatch.
 *
 * A stop of the driver hands these timers to its `drain` like any other, with an fn that is none of the application's.
 * With WW_DRIVER_DROP, a dropped tick is a lost tick, and of a dropped expiry of a function there is nothing to be
 * noticed; but whoever waits in receive or ww_sleep does wake, within 50 ms, and a poll of a timer finds its value.
 *
 * Memory: the default allocator, one block each; a start takes a timer of the driver. Destroy all before the driver:
 * ww_driver_destroy answers WW_EBUSY while one is left. The driver may have been stopped. In a child of fork they
 * answer WW_ECLOSED, and destroy frees what they hold, before or after the driver's.
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
 * Ownership: the caller's, until ww_after_destroy, which has to come before the driver's (WW_EBUSY).
 * Errors: WW_EINVAL: an argument is NULL. WW_EOVERFLOW: the deadline is beyond WW_DRIVER_TIME_MAX. WW_ENOMEM: no
 * memory, or the driver has no timer left. WW_ECLOSED: the driver is stopped.
 */
WW_API int ww_after_create(struct ww_after **after, struct ww_driver *driver, uint64_t delay);

/*
 * A function that is called later, in a worker of the driver; in Go it has a goroutine. It may take its time and call
 * every function but ww_after_destroy of its own timer; it must return.
 */
typedef void ww_after_fn(void *user);

/*
 * Make a timer that calls fn(user) `delay` ns from now, and store it in *after. The call may begin before this returns;
 * *after is stored first.
 * Ownership: as ww_after_create; user is passed through.
 * Errors: as ww_after_create; WW_EINVAL also: fn is NULL.
 */
WW_API int ww_after_func(
    struct ww_after **after, struct ww_driver *driver, uint64_t delay, ww_after_fn *fn, void *user);

/*
 * Wait until the timer expires, and store the time at which it was due in *time unless that is NULL. Waits on when it
 * was received already or is stopped: until a reset.
 * Threads: any number at once; one of them gets the value. A point of thread cancellation.
 * Errors: WW_EINVAL: after is NULL, or has a function. WW_ECLOSED: the driver is stopped, or was while this waited.
 */
WW_API int ww_after_receive(struct ww_after *after, uint64_t *time);

/*
 * The same without waiting: return 1 if there was a value, 0 if not, and leave *time then.
 * Errors: as ww_after_receive.
 */
WW_API int ww_after_poll(struct ww_after *after, uint64_t *time);

/*
 * Stop the timer. Return 1 if that was in time: its value was not received and never will be, its function has not
 * begun and never will. Return 0 if it was received, if the function has begun, which is not waited for, or if the
 * timer was stopped already.
 * Complexity: O(1); waits for nothing but the few instructions of an expiry that is under way in a worker.
 * Errors: WW_EINVAL: after is NULL. WW_ECLOSED: the driver is stopped.
 */
WW_API int ww_after_stop(struct ww_after *after);

/*
 * Stop the timer and start it anew, `delay` ns from now. Return what ww_after_stop would have: 1 if it was active. When
 * the answer is 0 the former call of its function may still run, and the next one may overlap with it.
 * Complexity: as ww_after_stop; an active timer is moved and nothing is allocated, unless it is just expiring.
 * Errors: WW_EINVAL: after is NULL. WW_EOVERFLOW, WW_ENOMEM, WW_ECLOSED: as ww_after_create; it goes on as it was.
 */
WW_API int ww_after_reset(struct ww_after *after, uint64_t delay);

/*
 * Stop the timer, wait until its function has ended if that runs, and free it. NULL is harmless.
 * Threads: no other thread may use the timer any more. A point of thread cancellation.
 * Errors: WW_EBUSY: called in its function, or a thread waits in ww_after_receive.
 */
WW_API int ww_after_destroy(struct ww_after *after);

/* ---- Ticks ---------------------------------------------------------------------------------------------------- */

/*
 * Make a ticker that puts a value into its channel every `period` ns, for the first time after one, and store it in
 * *ticker. Deadlines do not drift. After a stall there is one tick, not one for each period that passed.
 * Ownership: the caller's, until ww_ticker_destroy, which has to come before the driver's (WW_EBUSY).
 * Errors: as ww_after_create; WW_EINVAL also: period is 0.
 */
WW_API int ww_ticker_create(struct ww_ticker **ticker, struct ww_driver *driver, uint64_t period);

/* Wait for a tick, as ww_after_receive does. */
WW_API int ww_ticker_receive(struct ww_ticker *ticker, uint64_t *time);

/* Look for a tick, as ww_after_poll does. */
WW_API int ww_ticker_poll(struct ww_ticker *ticker, uint64_t *time);

/*
 * Stop the ticker. Return 1 if it ran, 0 if not. Whoever waits for a tick waits on, until a reset.
 * Errors: as ww_after_stop.
 */
WW_API int ww_ticker_stop(struct ww_ticker *ticker);

/*
 * Stop the ticker and let it tick every `period` ns, for the first time after one. Return 1 if it ran, 0 if not.
 * Errors: as ww_after_reset; WW_EINVAL also: period is 0.
 */
WW_API int ww_ticker_reset(struct ww_ticker *ticker, uint64_t period);

/* Stop the ticker and free it. NULL is harmless. Errors: WW_EBUSY: a thread waits in ww_ticker_receive. */
WW_API int ww_ticker_destroy(struct ww_ticker *ticker);

/* ---- Sleep ---------------------------------------------------------------------------------------------------- */

/*
 * Let `delay` ns of the driver's clock pass; 0 returns at once. Signals do not end it. A point of thread cancellation.
 * In the only thread of a driver without threads it waits for ever, since nobody calls ww_driver_dispatch meanwhile;
 * and so it does in the only one that moves a virtual clock.
 * Errors: WW_EINVAL: driver is NULL. WW_EOVERFLOW, WW_ENOMEM: as ww_after_create. WW_ECLOSED: the driver is stopped, or
 * was meanwhile.
 */
WW_API int ww_sleep(struct ww_driver *driver, uint64_t delay);

#ifdef __cplusplus
}
#endif

#endif
