#ifndef WEEKWHEEL_CLOCK_H
#define WEEKWHEEL_CLOCK_H

/*
 * Clocks, and alarms that go off at a time of a clock: three real clocks and as many virtual ones as a test wants.
 *
 * Time: a uint64_t count of nanoseconds, 0 to WW_CLOCK_MAX. A time is absolute on one clock. Times of different clocks
 * cannot be compared.
 *
 *     what happens                ww_clock_elapsed()         ww_clock_wall()             a virtual clock
 *     --------------------------  -------------------------  --------------------------  ---------------------------
 *     origin of its time          the machine's start        1970, UTC                   where it was started
 *     time passes                 counts it                  counts it                   stands still until moved
 *     the wall clock is stepped,  does not notice            jumps, also backwards; set  does not notice;
 *       or gets a leap second                                alarms go off               ww_clock_virtual_set plays it
 *     the machine sleeps          counts the sleep; an       counts the sleep; set       stands still
 *                                 alarm that came due goes   alarms go off when the
 *                                 off when the machine       machine wakes up
 *                                 wakes up
 *     the machine or the process  counts the stall; an       the same                    stands still
 *       stalls                    alarm goes off late
 *     its time goes backwards     never                      when it is stepped          by ww_clock_virtual_set
 *
 * ww_clock_awake() is as ww_clock_elapsed(), but stands still while the machine sleeps.
 *
 * No alarm wakes a sleeping machine. Whether the real clocks count while a whole virtual machine is halted depends on
 * its host. Use the elapsed clock for spans of time, the wall clock for times of day, and a virtual clock for tests,
 * where a week takes as long as its work.
 *
 * An *alarm* is a file descriptor that becomes readable when its clock reaches a time. Wait for it with poll, epoll or
 * any event loop, together with other descriptors, or with ww_alarm_wait. An alarm that became readable has *gone off*;
 * clear it and set it again. It may also go off because the clock was stepped, so never conclude from an alarm what
 * time it is:
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
 * Errors: every call returns 0 or a positive answer, or a negative WW_E* of error.h. On error nothing has changed.
 * Every function answers WW_EINVAL to NULL where it needs an object.
 *
 * Threads: any thread may call any function at any time. Do not use an object during or after its destruction. Only
 * ww_alarm_wait blocks, apart from the short lock of a virtual clock. Only ww_alarm_wait is a cancellation point.
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
 * Lifetime: the life of the process; always the same clock, never NULL. O(1), allocates nothing.
 */
WW_API struct ww_clock *ww_clock_elapsed(void);

/*
 * Return the clock of the time that the machine has been awake since it started (CLOCK_MONOTONIC): for timeouts of work
 * that sleeps with the machine, and for times that are compared with those of pthread_cond_timedwait, epoll_wait or an
 * event loop. If the machine sleeps, its alarms go off later by the length of the sleep.
 * Lifetime: as ww_clock_elapsed. O(1), allocates nothing.
 */
WW_API struct ww_clock *ww_clock_awake(void);

/*
 * Return the wall clock: the time since the beginning of 1970, UTC, without leap seconds (CLOCK_REALTIME).
 * Lifetime: the life of the process; always the same clock, never NULL. O(1), allocates nothing.
 */
WW_API struct ww_clock *ww_clock_wall(void);

/*
 * Store the clock's time in *ns.
 * Precision: that of the kernel's clock, usually 1 ns; a virtual clock is exact.
 * Threads: any. If the thread that moved a virtual clock then notifies another thread, that thread sees the new time.
 * Complexity: O(1), allocates nothing. Reading a real clock takes no system call where the machine allows; reading a
 * virtual one is a load.
 * Errors: WW_EINVAL: an argument is NULL.
 * Time running backwards: see the table.
 */
WW_API int ww_clock_now(struct ww_clock *clock, uint64_t *ns);

/* ---- Virtual clocks ------------------------------------------------------------------------------------------- */

/*
 * Make a clock that stands at start_ns until it is moved, and store it in *clock. allocator NULL means the default.
 * Range: start_ns is 0 to WW_CLOCK_MAX.
 * Ownership: the caller's, until ww_clock_virtual_destroy. The allocator must outlive the clock.
 * Complexity: O(1), one allocation.
 * Errors: WW_EINVAL: clock is NULL. WW_EOVERFLOW: start_ns is beyond WW_CLOCK_MAX. WW_ENOMEM: no memory.
 */
WW_API int ww_clock_virtual_create(struct ww_clock **clock, uint64_t start_ns, const struct ww_allocator *allocator);

/*
 * Free a virtual clock. Destroy its alarms first. NULL is harmless.
 * Threads: no other thread may use the clock during the call or after it.
 * Errors: WW_EINVAL: the clock is not virtual. WW_EBUSY: an alarm of this clock exists.
 */
WW_API int ww_clock_virtual_destroy(struct ww_clock *clock);

/*
 * Step a virtual clock forward by ns nanoseconds. Each of its alarms whose time is reached goes off, and is readable
 * when the call returns.
 * Range: ns is 0 to WW_CLOCK_MAX less the clock's time.
 * Complexity: O(alarms of the clock), and a system call for each that goes off; allocates nothing.
 * Errors: WW_EINVAL: clock is NULL or not virtual. WW_EOVERFLOW: the new time would be beyond WW_CLOCK_MAX.
 */
WW_API int ww_clock_virtual_advance(struct ww_clock *clock, uint64_t ns);

/*
 * Step a virtual clock to the time ns, forward or backwards, like a wall clock that somebody sets. Alarms whose time is
 * reached go off. A step backwards makes all set alarms go off, as on the wall clock.
 * Range: 0 to WW_CLOCK_MAX.
 * Complexity: as ww_clock_virtual_advance.
 * Errors: WW_EINVAL: clock is NULL or not virtual. WW_EOVERFLOW: ns is beyond WW_CLOCK_MAX.
 */
WW_API int ww_clock_virtual_set(struct ww_clock *clock, uint64_t ns);

/* ---- Alarms --------------------------------------------------------------------------------------------------- */

/*
 * Make an alarm of the clock, not set, and store it in *alarm. allocator NULL means the default.
 * Ownership: the caller's, until ww_alarm_destroy. The allocator must outlive the alarm. A virtual clock must outlive
 * it, too; ww_clock_virtual_destroy checks that (WW_EBUSY).
 * Complexity: O(1), one allocation and one file descriptor, which is closed on exec. Errors: WW_EINVAL: alarm or clock
 * is NULL. WW_ENOMEM: no memory. WW_ESYSTEM: no more file descriptors: the process's or the system's limit is reached.
 */
WW_API int ww_alarm_create(struct ww_alarm **alarm, struct ww_clock *clock, const struct ww_allocator *allocator);

/*
 * Close the alarm's descriptor and free the alarm, set or not. NULL is harmless.
 * Threads: no other thread may use the alarm, or wait for its descriptor, during the call or after it. O(1).
 */
WW_API void ww_alarm_destroy(struct ww_alarm *alarm);

/*
 * Return the alarm's file descriptor. It is readable (POLLIN) from when the alarm goes off until it is cleared or set
 * again. Use it for waiting only.
 * Lifetime: the alarm's; always the same number.
 * Errors: WW_EINVAL: alarm is NULL.
 */
WW_API int ww_alarm_fd(const struct ww_alarm *alarm);

/*
 * Set the alarm to go off when its clock reaches the time ns, and forget its former setting. A time that is already
 * reached, such as 0, makes it go off at once. UINT64_MAX (WW_NEVER of the wheel) leaves it not set. If the alarm had
 * gone off and was not cleared, this call takes that back. It does not take back a step of the wall clock: the alarm
 * then goes off at once.
 * Range: 0 to WW_CLOCK_MAX, and UINT64_MAX.
 * Precision: never before the time; the kernel decides how late. On a virtual clock the alarm has gone off when the
 * call that reached the time returns. There "at once" means when this call returns.
 * The alarm goes off once. On the wall clock it also goes off when the clock is stepped while the alarm is set. It then
 * may or may not go off again at its time, so set it again. To learn of every step without waiting for a time, set the
 * alarm to WW_CLOCK_MAX.
 * Threads: any, at any time; the last setting counts. Threads that each compute a time for the same alarm need a lock
 * around computing and setting; otherwise the later time may win. A setting is not lost when the clock moves meanwhile.
 * Complexity: O(1), a system call, allocates nothing.
 * Errors: WW_EINVAL: alarm is NULL. WW_EOVERFLOW: ns is beyond WW_CLOCK_MAX and not UINT64_MAX.
 */
WW_API int ww_alarm_set(struct ww_alarm *alarm, uint64_t ns);

/*
 * Make the alarm's descriptor unreadable again. Return 1 if the alarm had gone off, 0 if not. After a 1 read the clock
 * again: it may have been stepped. An alarm that has not gone off stays set.
 * Threads: any, at any time. If several threads clear one alarm that went off, one of them gets the 1.
 * Complexity: O(1), never blocks, allocates nothing. Errors: WW_EINVAL: alarm is NULL.
 */
WW_API int ww_alarm_clear(struct ww_alarm *alarm);

/*
 * Block until the alarm has gone off, whoever sets it and whenever. Return at once if it has already gone off. The call
 * leaves the alarm as it is: clear it. Signals do not end the wait.
 * Threads: any number at once; all are woken. A cancellation point. On a virtual clock another thread must move the
 * time.
 * Errors: WW_EINVAL: alarm is NULL. WW_ESYSTEM: the kernel has no memory.
 */
WW_API int ww_alarm_wait(struct ww_alarm *alarm);

#ifdef __cplusplus
}
#endif

#endif
