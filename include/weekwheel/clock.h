#ifndef WEEKWHEEL_CLOCK_H
#define WEEKWHEEL_CLOCK_H

/*
 * Clocks, and alarms that wake at a time of a clock: two real ones and as many virtual ones as a test wants.
 *
 * Time: a uint64_t count of nanoseconds, 0 to WW_CLOCK_MAX. A time is absolute, of the clock that it was read from or
 * is meant for; times of different clocks have nothing to do with each other.
 *
 *     what happens                ww_clock_elapsed()         ww_clock_wall()             a virtual clock
 *     --------------------------  -------------------------  --------------------------  ---------------------------
 *     it counts                   from the machine's start   from 1970, UTC              from where it was started
 *     time passes                 it counts it               it counts it                it stands still until told
 *     the wall clock is stepped,  it does not notice         it jumps, also backwards;   it does not notice;
 *       or gets a leap second                                set alarms go off           ww_clock_virtual_set plays it
 *     the machine sleeps          it counts the sleep; an    it counts the sleep; set    it stands still
 *                                 alarm that came due goes   alarms go off when the
 *                                 off when it wakes up       machine wakes up
 *     the machine or the process  it counts the stall; an    the same                    it stands still
 *       stalls                    alarm goes off late
 *     its time goes backwards     never                      when it is stepped          ww_clock_virtual_set
 *
 * No alarm wakes a sleeping machine. Whether the real clocks count while a whole virtual machine is halted is up to who
 * halts it. What is to happen after a span of time goes by the elapsed clock, what is to happen at a time of day by the
 * wall clock, and what is to be tested by a virtual one, where a week takes as long as its work.
 *
 * An *alarm* is one file descriptor that becomes readable when its clock reaches a time: to be waited for with poll,
 * epoll or whatever loop there is, beside other descriptors, or with ww_alarm_wait. It is said to *go off*, and is then
 * to be cleared and set again. It may also go off because the clock was stepped, so that who waits never concludes from
 * an alarm what time it is:
 *
 *     int wait_until(struct ww_clock *clock, uint64_t ns)
 *     {
 *             struct ww_alarm *alarm;
 *             uint64_t now;
 *             int error = ww_alarm_create(&alarm, clock, NULL);
 *
 *             if (error != WW_OK)
 *                     return error;
 *             for (;;) {
 *                     ww_clock_now(clock, &now);
 *                     if (now >= ns || (error = ww_alarm_set(alarm, ns)) != WW_OK)
 *                             break;
 *                     if ((error = ww_alarm_wait(alarm)) != WW_OK)
 *                             break;
 *                     ww_alarm_clear(alarm);
 *             }
 *             ww_alarm_destroy(alarm);
 *             return error;
 *     }
 *
 * Errors: 0 or a positive answer, or a negative WW_E* of error.h. On error nothing has changed. Every function refuses
 * NULL where it needs an object, with WW_EINVAL.
 *
 * Threads: any thread may call any function at any time, except that an object must not be used while it is destroyed
 * or after that. Nothing but ww_alarm_wait blocks, beyond the short lock of a virtual clock, and nothing else is a
 * cancellation point.
 *
 * Misuse that is not detected: reading, writing or closing the descriptor of an alarm, or changing its flags.
 *
 * Needs Linux 3.15 or later.
 */

#include <stdint.h>

#include "weekwheel/allocator.h"
#include "weekwheel/error.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The last valid time, 2^63 - 1 ns: 292 years. */
#define WW_CLOCK_MAX ((uint64_t)INT64_MAX)

struct ww_clock;
struct ww_alarm;

/* ---- Clocks --------------------------------------------------------------------------------------------------- */

/*
 * Return the clock of the time elapsed since the machine started, sleep included (CLOCK_BOOTTIME).
 * Lifetime: the life of the process; always the same one, never NULL. O(1), allocates nothing.
 */
WW_API struct ww_clock *ww_clock_elapsed(void);

/*
 * Return the clock on the wall: the time since the beginning of 1970, UTC, without leap seconds (CLOCK_REALTIME).
 * Lifetime: the life of the process; always the same one, never NULL. O(1), allocates nothing.
 */
WW_API struct ww_clock *ww_clock_wall(void);

/*
 * Store the clock's time in *ns.
 * Precision: that of the kernel's clock, usually 1 ns; a virtual clock's is exact.
 * Threads: any; a thread that was told of an advance by the thread that made it sees the new time.
 * Complexity: O(1), allocates nothing; a real clock is read without a system call where the machine can, and a virtual
 * one is a load.
 * Errors: WW_EINVAL: an argument is NULL.
 * Time running backwards: see the table.
 */
WW_API int ww_clock_now(struct ww_clock *clock, uint64_t *ns);

/* ---- Virtual clocks ------------------------------------------------------------------------------------------- */

/*
 * Make a clock that stands at start_ns until it is told otherwise, and store it in *clock.
 * Range: start_ns is 0 to WW_CLOCK_MAX. allocator: NULL for the default.
 * Ownership: the caller's, until ww_clock_virtual_destroy. The allocator must outlive the clock.
 * Complexity: O(1), one allocation.
 * Errors: WW_EINVAL: clock is NULL. WW_EOVERFLOW: start_ns is beyond WW_CLOCK_MAX. WW_ENOMEM: no memory.
 */
WW_API int ww_clock_virtual_create(struct ww_clock **clock, uint64_t start_ns, const struct ww_allocator *allocator);

/*
 * Free a virtual clock, whose alarms have been destroyed before. NULL is harmless.
 * Threads: no other thread may use the clock during the call or after it.
 * Errors: WW_EINVAL: the clock is not virtual. WW_EBUSY: an alarm of this clock exists.
 */
WW_API int ww_clock_virtual_destroy(struct ww_clock *clock);

/*
 * Let ns nanoseconds pass: step a virtual clock forward, and make each of its alarms go off whose time is reached.
 * When it returns they are readable.
 * Range: ns is 0 to WW_CLOCK_MAX less the clock's time.
 * Complexity: O(alarms of the clock), and a system call for each that goes off; allocates nothing.
 * Errors: WW_EINVAL: clock is NULL or not virtual. WW_EOVERFLOW: that would be beyond WW_CLOCK_MAX.
 */
WW_API int ww_clock_virtual_advance(struct ww_clock *clock, uint64_t ns);

/*
 * Step a virtual clock to the time ns, forward or backwards, as somebody steps the clock on the wall. Alarms whose time
 * is reached go off; a step backwards makes all that are set go off, as they do on the wall clock.
 * Range: 0 to WW_CLOCK_MAX. Complexity: as ww_clock_virtual_advance.
 * Errors: WW_EINVAL: clock is NULL or not virtual. WW_EOVERFLOW: ns is beyond WW_CLOCK_MAX.
 */
WW_API int ww_clock_virtual_set(struct ww_clock *clock, uint64_t ns);

/* ---- Alarms --------------------------------------------------------------------------------------------------- */

/*
 * Make an alarm of the clock, not set, and store it in *alarm. allocator: NULL for the default.
 * Ownership: the caller's, until ww_alarm_destroy. The allocator must outlive the alarm, and so must a virtual clock,
 * which sees to it (WW_EBUSY).
 * Complexity: O(1), one allocation and one file descriptor, which is closed on exec.
 * Errors: WW_EINVAL: alarm or clock is NULL. WW_ENOMEM: no memory. WW_ESYSTEM: no more file descriptors: the process's
 * or the system's limit is reached.
 */
WW_API int ww_alarm_create(struct ww_alarm **alarm, struct ww_clock *clock, const struct ww_allocator *allocator);

/*
 * Close the alarm's descriptor and free it, set or not. NULL is harmless.
 * Threads: no other thread may use the alarm, or wait for its descriptor, during the call or after it. O(1).
 */
WW_API void ww_alarm_destroy(struct ww_alarm *alarm);

/*
 * Return the alarm's file descriptor, which is readable (POLLIN) from when the alarm goes off until it is cleared or
 * set again. It is for waiting alone. Lifetime: the alarm's, always the same number. Errors: WW_EINVAL: alarm is NULL.
 */
WW_API int ww_alarm_fd(const struct ww_alarm *alarm);

/*
 * Set the alarm to go off when its clock reaches the time ns, instead of whatever it was set to. A time that is reached
 * already, and so 0 always, makes it go off at once; UINT64_MAX (WW_NEVER of the wheel) leaves it not set. If it had
 * gone off and was not cleared, that is taken back; but not that the wall clock was stepped: then it goes off at once.
 * Range: 0 to WW_CLOCK_MAX, and UINT64_MAX.
 * Precision: never before; how late is up to the kernel. On a virtual clock: when the call returns that reached the
 * time, and "at once" is when this one returns.
 * It goes off once. On the wall clock it also goes off when the clock is stepped while it is set, and then may or may
 * not go off again at the time it was set to: set it again. Who wants to know of every step and has no time to wait for
 * sets it to WW_CLOCK_MAX.
 * Threads: any, at any time; the last setting counts. Threads that each compute a time of their own for the same alarm
 * need a lock around computing and setting, lest the later time win. A setting is not lost to a clock that moves
 * meanwhile.
 * Complexity: O(1), a system call, allocates nothing.
 * Errors: WW_EINVAL: alarm is NULL. WW_EOVERFLOW: ns is beyond WW_CLOCK_MAX and not UINT64_MAX.
 */
WW_API int ww_alarm_set(struct ww_alarm *alarm, uint64_t ns);

/*
 * Take the readability back, and return 1 if the alarm had gone off, 0 if not. 1 also says that the clock may have been
 * stepped: look at it again. What the alarm is set to remains, if it has not gone off.
 * Threads: any, at any time; of several that clear one alarm that went off, one gets the 1.
 * Complexity: O(1), never blocks, allocates nothing. Errors: WW_EINVAL: alarm is NULL.
 */
WW_API int ww_alarm_clear(struct ww_alarm *alarm);

/*
 * Block until the alarm has gone off, whoever sets it and whenever; an alarm that has gone off already is not waited
 * for. It is left as it is: clear it. Signals do not end the wait.
 * Threads: any number at once; all are woken. A cancellation point. On a virtual clock another thread must move the
 * time.
 * Errors: WW_EINVAL: alarm is NULL. WW_ESYSTEM: the kernel has no memory.
 */
WW_API int ww_alarm_wait(struct ww_alarm *alarm);

#ifdef __cplusplus
}
#endif

#endif
