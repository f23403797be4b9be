#ifndef WEEKWHEEL_WHEEL_H
#define WEEKWHEEL_WHEEL_H

/*
 * The hierarchical timing wheel: by default four cascading wheels of 60 seconds, 60 minutes, 24 hours and 7 days.
 *
 * A timer waits in the wheel that fits its remaining time. As that time shrinks, the timer is demoted from wheel to
 * wheel, until the seconds wheel expires it in the very tick of its deadline. One call, ww_wheel_advance, moves all
 * wheels. (G. Varghese and T. Lauck, "Hashed and Hierarchical Timing Wheels", SOSP 1987, scheme 7.)
 *
 *     delay < 60 s     < 60 min       < 24 h        <= 7 days     longer
 *     +----------+  +------------+  +----------+  +-----------+  +---------+
 *     | 60 x 1 s |<-| 60 x 1 min |<-| 24 x 1 h |<-| 7 x 1 day |<-| outside |
 *     +----------+  +------------+  +----------+  +-----------+  +---------+
 *       expires        demoted        demoted        demoted       enters
 *
 * Purity: the wheel reads no clock, starts no thread and does no I/O. The caller passes the time in as a number.
 *
 * Time: a uint64_t count of ticks, 0 to WW_TIME_MAX, from an origin that the caller chooses. The caller also decides
 * how long a tick is. The default is one second; struct ww_wheel_config sets another length for the functions that
 * convert nanoseconds. A *deadline* is an absolute time. A *delay* is a number of ticks from the wheel's time, which is
 * the time last passed to advance (ww_wheel_now).
 *
 * Memory: a timer is a struct ww_timer embedded in the caller's own object. The wheel allocates nothing for it, so
 * scheduling cannot fail for lack of memory. An idle timer belongs to the caller alone.
 *
 * Promises: a timer never expires before its deadline, never twice for one deadline, and is never lost. If advance is
 * called for every tick, a timer expires in the tick of its deadline. A cancelled timer does not expire, even if
 * another callback of the same tick cancelled it.
 *
 * Errors: every call returns 0 or a positive answer, or a negative WW_E* of error.h. On error nothing has changed,
 * unless the function says otherwise. In every build, every function answers WW_EINVAL to NULL where it needs an
 * object.
 *
 * Threads: one thread at a time may use a wheel and its timers. Different wheels are independent.
 *
 * Misuse: a timer that is pending in another wheel is refused with WW_ECORRUPT by every function that takes a timer.
 * There are two exceptions. A mark of 15 bits distinguishes wheels, and two wheels may, rarely, have the same mark. A
 * reschedule to a later deadline does not check the mark. Some misuse is not detected, because a check would cost time
 * in every call: freeing or overwriting the object of a pending timer, initialising a pending timer, copying a pending
 * timer, and using a timer whose memory was neither zeroed nor initialised. A library configured with --enable-debug
 * finds most of it and answers WW_ECORRUPT. ww_wheel_check finds it in any build.
 */

#include <stddef.h>
#include <stdint.h>

#include "weekwheel/allocator.h"
#include "weekwheel/error.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The last valid time, 2^63 - 1 ticks. */
#define WW_TIME_MAX ((uint64_t)INT64_MAX)
/* Not a time: ww_wheel_next stores it when nothing is pending. */
#define WW_NEVER UINT64_MAX
/* An unlimited budget. */
#define WW_UNLIMITED SIZE_MAX

#define WW_LEVELS_MAX 6
#define WW_SLOTS_MIN 2
#define WW_SLOTS_MAX 64

struct ww_wheel;
struct ww_timer;

/*
 * Called by ww_wheel_advance when the timer expires. missed counts the further expiries of a periodic timer that fell
 * into the same jump of time; for a one-shot it is 0. A one-shot is already idle, a periodic timer already scheduled
 * again.
 * The callback may schedule, cancel and reschedule any timer of the wheel, including this one and others that are due
 * in the same tick. It may drain the wheel. It may free the object of this timer once the timer is idle; a periodic
 * timer must be cancelled first.
 * ww_wheel_advance, ww_wheel_advance_batch and ww_wheel_destroy answer WW_EBUSY if a callback calls them on this wheel.
 */
typedef void ww_timer_fn(struct ww_wheel *wheel, struct ww_timer *timer, uint64_t missed);

/*
 * A timer, embedded in the caller's object. All members are private: use the functions. All zero bytes are an idle
 * timer without a callback. lib/core/wheel/wheel_internal.h explains the layout and the lists that timers hang in.
 */
struct ww_timer {
	struct ww_timer *ww_next;
	struct ww_timer **ww_pprev;
	uint64_t ww_to_end;
	uint64_t ww_where;
	uint64_t ww_period;
	ww_timer_fn *ww_expire;
};

/* Initialiser for an idle timer with a callback. */
#define WW_TIMER_INIT(callback)                                                                                        \
	{                                                                                                              \
		NULL, NULL, 0, 0, 0, (callback)                                                                        \
	}

/* The object of type `type` whose member `member` is the timer. */
#define WW_TIMER_OWNER(timer, type, member) ((type *)(void *)((char *)(timer)-offsetof(type, member)))

/* Refuse deadlines beyond the horizon with WW_ERANGE. Without this flag such timers wait outside the wheels. */
#define WW_WHEEL_BOUNDED 1u

/*
 * The configuration of a wheel. Fill it with ww_wheel_config_default, then change what should differ.
 *
 * levels is 1 to WW_LEVELS_MAX. slots[0 .. levels-1] are WW_SLOTS_MIN to WW_SLOTS_MAX each; slots[0] belongs to the
 * lowest wheel, whose slot spans one tick. A slot of each higher wheel spans a full turn of the wheel below. A turn of
 * the highest wheel is the horizon. A timer whose delay is the whole horizon fits into the highest wheel, unless that
 * is the only wheel. In that case its slot is still in use, and the timer waits outside until the turn ends.
 */
struct ww_wheel_config {
	uint64_t start;   /* the wheel's first time, in ticks; 0 to WW_TIME_MAX */
	uint64_t tick_ns; /* length of a tick in ns, at least 1; used only for conversion and dump */
	const struct ww_allocator *allocator; /* NULL: the default */
	uint32_t flags;                       /* 0 or WW_WHEEL_BOUNDED */
	uint32_t levels;
	uint32_t slots[WW_LEVELS_MAX];
};

/* One expiry that ww_wheel_advance_batch reports, or one pending timer that ww_wheel_drain hands over. */
struct ww_expiry {
	struct ww_timer *timer;
	uint64_t deadline; /* the deadline that was met, or that was pending */
	uint64_t missed;   /* see ww_timer_fn; 0 from ww_wheel_drain */
};

struct ww_level_stats {
	uint64_t span;    /* ticks that one slot spans */
	uint64_t pending; /* timers in this wheel */
	uint64_t largest; /* timers in its fullest slot */
	uint32_t slots;
	uint32_t occupied; /* slots that hold a timer */
};

struct ww_stats {
	uint64_t now;
	uint64_t pending; /* timers in all: the sum over the levels, outside and due */
	uint64_t outside; /* timers that wait beyond the horizon */
	uint64_t due;     /* timers whose deadline had passed when they were scheduled; the next advance expires them */
	uint64_t scheduled; /* idle timers scheduled since the wheel was made */
	uint64_t cancelled; /* timers that ww_wheel_cancel found pending */
	uint64_t drained;   /* timers that ww_wheel_drain handed over */
	uint64_t expired;   /* expiries, without those that a periodic timer missed */
	uint64_t demoted;   /* moves of a timer to another slot because its slot came round */
	size_t bytes;       /* memory of the wheel itself */
	uint32_t levels;
	struct ww_level_stats level[WW_LEVELS_MAX];
};

/* ---- Making a wheel ------------------------------------------------------------------------------------------- */

/*
 * Fill *config with the default: 60, 60, 24 and 7 slots, ticks of one second, start at 0, the default allocator.
 * Errors: WW_EINVAL: config is NULL.
 */
WW_API int ww_wheel_config_default(struct ww_wheel_config *config);

/*
 * Store in *bytes the memory that a wheel of this configuration takes. config NULL means the default.
 * Errors: WW_EINVAL: bytes is NULL, or the configuration is invalid. WW_EOVERFLOW: start is beyond WW_TIME_MAX.
 */
WW_API int ww_wheel_size(const struct ww_wheel_config *config, size_t *bytes);

/*
 * Make an empty wheel and store it in *wheel. config NULL means the default. The call copies config, but not its
 * allocator.
 * Ownership: the caller's, until ww_wheel_destroy. Allocates ww_wheel_size bytes, once.
 * Errors: WW_EINVAL: wheel is NULL, or the configuration is invalid: levels or slots out of range, tick_ns 0, an
 * unknown flag, an allocator without a function. WW_EOVERFLOW: start is beyond WW_TIME_MAX. WW_ENOMEM: no memory.
 */
WW_API int ww_wheel_create(struct ww_wheel **wheel, const struct ww_wheel_config *config);

/*
 * Make an empty wheel in the caller's memory and store it in *wheel. Allocates nothing; otherwise as ww_wheel_create.
 * Range: memory is aligned to 64 bytes, and size is at least what ww_wheel_size stores.
 * Ownership: the memory stays the caller's. It must stay in place until ww_wheel_destroy: a wheel cannot be moved.
 * Errors: as ww_wheel_create without WW_ENOMEM; WW_EINVAL also: memory is NULL, misaligned or too small.
 */
WW_API int ww_wheel_create_at(struct ww_wheel **wheel, void *memory, size_t size, const struct ww_wheel_config *config);

/*
 * Free the wheel. NULL is harmless. The call touches no pending timer, so their objects may be gone already. To use
 * those timers again, drain the wheel first or initialise them again.
 * Errors: WW_EBUSY: called in a callback of this wheel.
 */
WW_API int ww_wheel_destroy(struct ww_wheel *wheel);

/* ---- Timers --------------------------------------------------------------------------------------------------- */

/*
 * Make the timer idle and set its callback. callback NULL suits a caller that takes expiries in batches. The timer must
 * not be pending. A timer made by WW_TIMER_INIT or by zeroing does not need this call.
 * Errors: WW_EINVAL: timer is NULL.
 */
WW_API int ww_timer_init(struct ww_timer *timer, ww_timer_fn *callback);

/* Return 1 if the timer is pending, 0 if it is idle. O(1). Errors: WW_EINVAL: timer is NULL. */
WW_API int ww_timer_pending(const struct ww_timer *timer);

/*
 * Return 1 and store the absolute deadline in *deadline if the timer is pending. Return 0 and leave *deadline if it is
 * idle.
 * Errors: WW_EINVAL: an argument is NULL.
 */
WW_API int ww_timer_deadline(const struct ww_timer *timer, uint64_t *deadline);

/*
 * Schedule the timer to expire once, `delay` ticks from the wheel's time. A pending timer is rescheduled and becomes a
 * one-shot.
 * Range: a delay of 0 to WW_TIME_MAX - ww_wheel_now(). A timer with a delay of 0 expires in the next call of advance.
 * If a callback schedules it while advance is still behind its new time, the timer expires in that same call, when
 * advance reaches that time. A delay beyond the horizon is exact too: the timer waits outside the wheels until it fits.
 * Precision: never before the deadline; in the tick of the deadline if advance is called for it. A caller whose clock
 * stands between two ticks computes the deadline of a whole delay with ww_wheel_deadline_ns.
 * Ownership: the timer must stay in place until it is idle.
 * Complexity: O(1), allocates nothing. Moving a pending timer to a later deadline costs one write to the timer. Until
 * it expires, a timer is moved at most once a level, once more if it waits outside, and, beyond 48 horizons, once for
 * each bit of its distance in units of 32 horizons: 25 times at a thousand million horizons.
 * Errors: WW_EINVAL: an argument is NULL. WW_EOVERFLOW: now + delay is beyond WW_TIME_MAX. WW_ERANGE: the wheel is
 * WW_WHEEL_BOUNDED and delay is over the horizon. WW_ECORRUPT: the timer is pending in another wheel.
 */
WW_API int ww_wheel_schedule(struct ww_wheel *wheel, struct ww_timer *timer, uint64_t delay);

/*
 * Schedule the timer to expire once, at an absolute deadline; otherwise as ww_wheel_schedule.
 * Range: 0 to WW_TIME_MAX. A deadline that the wheel's time has already passed expires in the next call of advance.
 * While a budget holds an advance back, a deadline that its expiries have not reached yet keeps its place among them.
 * Errors: as ww_wheel_schedule.
 */
WW_API int ww_wheel_schedule_at(struct ww_wheel *wheel, struct ww_timer *timer, uint64_t deadline);

/*
 * Schedule the timer to expire first `delay` ticks from the wheel's time and then every `period` ticks.
 * Range: period is 1 to WW_TIME_MAX; with WW_WHEEL_BOUNDED at most the horizon.
 * Precision: no drift: the deadlines are first, first + period, first + 2 period and so on. When time jumps over
 * several deadlines, the timer expires once and its callback gets the number that it missed. A timer whose next
 * deadline would be beyond WW_TIME_MAX becomes idle.
 * Errors: as ww_wheel_schedule; WW_EINVAL also: period is 0 or beyond WW_TIME_MAX; WW_ERANGE also: period is over the
 * horizon of a bounded wheel.
 */
WW_API int ww_wheel_schedule_every(struct ww_wheel *wheel, struct ww_timer *timer, uint64_t delay, uint64_t period);

/* The same with the first expiry at an absolute deadline. */
WW_API int ww_wheel_schedule_every_at(
    struct ww_wheel *wheel, struct ww_timer *timer, uint64_t deadline, uint64_t period);

/*
 * Move a pending timer to `delay` ticks from the wheel's time, earlier or later, and return 1. A periodic timer keeps
 * its period and counts from the new deadline. Leave an idle timer idle and return 0: a heartbeat that comes too late
 * revives nothing. Use this call for a session's heartbeat. A move to a later deadline writes only the timer's own
 * cache line; the wheel files the timer anew when its old slot comes round.
 * Complexity: O(1), allocates nothing. Errors: as ww_wheel_schedule.
 */
WW_API int ww_wheel_reschedule(struct ww_wheel *wheel, struct ww_timer *timer, uint64_t delay);

/* The same to an absolute deadline. */
WW_API int ww_wheel_reschedule_at(struct ww_wheel *wheel, struct ww_timer *timer, uint64_t deadline);

/*
 * Make the timer idle. Return 1 if it was pending, 0 if it was already idle. When the call returns, the wheel holds no
 * pointer to the timer, and its memory may be freed or used again at once.
 * Complexity: O(1). Errors: WW_EINVAL: an argument is NULL. WW_ECORRUPT: the timer is pending in another wheel.
 */
WW_API int ww_wheel_cancel(struct ww_wheel *wheel, struct ww_timer *timer);

/*
 * Schedule timers[0 .. count-1], the i-th to expire once, delays[i] ticks from the wheel's time. The effect is that of
 * `count` calls of ww_wheel_schedule, in that order. The call asks for the memory of the next timer without waiting for
 * that of the one before. If the timers are scattered over many megabytes, each takes much less time. Timers that are
 * adjacent in memory, or few enough to fit into the caches, gain nothing.
 * The call stops at the first error. *scheduled, unless NULL, gets the number of timers scheduled: `count`, or, after
 * an error, the index of the timer that was refused. That timer and those after it are unchanged.
 * Ownership: each timer must stay in place until it is idle. The arrays stay the caller's and are not used after the
 * call.
 * Complexity: O(count), allocates nothing. count may be 0.
 * Errors: as ww_wheel_schedule, for a timer; WW_EINVAL also: an array is NULL while count is not 0.
 */
WW_API int ww_wheel_schedule_many(
    struct ww_wheel *wheel, struct ww_timer *const *timers, const uint64_t *delays, size_t count, size_t *scheduled);

/*
 * Make timers[0 .. count-1] idle. The effect is that of `count` calls of ww_wheel_cancel. The call asks for the memory
 * of the next timer without waiting for that of the one before. It skips idle timers. *cancelled, unless NULL, gets the
 * number of timers that were pending. A timer that is refused stays as it is. All others are still cancelled, and the
 * call answers the first error.
 * Complexity: O(count). count may be 0. When the call returns, the memory of each timer may be freed.
 * Errors: as ww_wheel_cancel, for a timer; WW_EINVAL also: timers is NULL while count is not 0.
 */
WW_API int ww_wheel_cancel_many(
    struct ww_wheel *wheel, struct ww_timer *const *timers, size_t count, size_t *cancelled);

/*
 * If the timer is pending, return 1 and store in *ticks the time from the wheel's time to its deadline, or 0 if the
 * deadline has passed. If the timer is idle, return 0 and leave *ticks.
 * Errors: WW_EINVAL: an argument is NULL. WW_ECORRUPT: the timer is pending in another wheel.
 */
WW_API int ww_wheel_time_left(const struct ww_wheel *wheel, const struct ww_timer *timer, uint64_t *ticks);

/* ---- Time ----------------------------------------------------------------------------------------------------- */

/* Return the wheel's time: the last one passed to advance, or the configuration's start. WW_NEVER for NULL. */
WW_API uint64_t ww_wheel_now(const struct ww_wheel *wheel);

/* Return the horizon in ticks: a turn of the highest wheel, 604,800 by default. WW_NEVER for NULL. */
WW_API uint64_t ww_wheel_horizon(const struct ww_wheel *wheel);

/*
 * Move the wheel's time to `now` and call the callbacks of at most `budget` timers whose deadline has come. Expiries
 * come in order of tick. Within a tick, and among timers that were overdue when they were scheduled, the order is
 * unspecified. A timer without a callback becomes idle and is counted. *expired, unless NULL, gets the number of
 * expiries of this call.
 * Return 0 when everything due has expired. Return 1 when the budget ran out first: call again, with the same time or a
 * later one. The rest then expires; nothing is lost, and the order of ticks holds.
 * The budget bounds expiries only, not timers that are demoted or filed anew because they were moved. Callbacks that
 * reschedule their timers with no delay can use up a small budget while the time stands still. As soon as the time
 * moves, those timers take their turn with the others.
 * Callbacks: an idle timer that a callback schedules at or before the expiring tick waits for the next call. A callback
 * that schedules its own timer with no delay therefore cannot keep this call from ending. A callback may move a timer
 * that is already due to a deadline at or before that tick. If the new deadline is not earlier than the old one, the
 * timer keeps its place and expires in this call; otherwise it waits for the next call. In a callback ww_wheel_now is
 * `now`, even when the expiring tick lies before it. Delays count from `now`.
 * Range: now is ww_wheel_now() to WW_TIME_MAX. Any step is allowed, from no tick to all of them.
 * Complexity: O(expired + demoted + levels x turns that hold a timer). The call does not visit ticks and slots in which
 * nothing waits. Shortly before a boundary where much will be demoted, it moves a share of that ahead of time. If the
 * budget runs out exactly at the end of a tick, the call also looks for the next due timer, past those that were moved
 * since.
 * Errors: WW_EINVAL: wheel is NULL. WW_EOVERFLOW: now is beyond WW_TIME_MAX. WW_EBACKWARDS: now is before
 * ww_wheel_now(). WW_EBUSY: called in a callback of this wheel. WW_ECORRUPT: the call met a broken timer; *expired
 * counts what expired before, and the rest stays where it is.
 */
WW_API int ww_wheel_advance(struct ww_wheel *wheel, uint64_t now, size_t budget, size_t *expired);

/*
 * The same without callbacks: write the expiries to batch[0 .. *count-1], at most `capacity` of them. A one-shot timer
 * in the batch is idle, and a periodic one is already scheduled again. Each has expired: cancelling it afterwards does
 * not take it out of the batch.
 * Errors: as ww_wheel_advance; WW_EINVAL also: batch is NULL while capacity is not 0, or count is NULL.
 */
WW_API int ww_wheel_advance_batch(
    struct ww_wheel *wheel, uint64_t now, struct ww_expiry *batch, size_t capacity, size_t *count);

/*
 * Return 1 and store in *when the time at which the wheel next needs a call of advance. Return 0 and store WW_NEVER
 * when nothing is pending.
 * Precision: the time is never later than the next expiry and never before ww_wheel_now(). It may be earlier than the
 * next expiry: a timer in an upper wheel needs a call when its slot is demoted, and a timer that was moved to a later
 * deadline needs one when its old slot comes round. A timer that is left alone causes at most one call a level, and two
 * more when it waits outside the wheels; if others are also more than 48 horizons away, it shares their calls. Timers
 * that an unfinished advance left over are due at ww_wheel_now(). Shortly before the demotion of a full slot, the wheel
 * asks for every tick.
 * Complexity: O(levels). Errors: WW_EINVAL: an argument is NULL.
 */
WW_API int ww_wheel_next(const struct ww_wheel *wheel, uint64_t *when);

/*
 * Convert a deadline of the caller's clock, in nanoseconds from the origin of its ticks, to ticks, rounded up: a
 * deadline between two ticks must not be met by the earlier one.
 * Errors: WW_EINVAL: an argument is NULL. WW_EOVERFLOW: the result is beyond WW_TIME_MAX ticks.
 */
WW_API int ww_wheel_deadline_ns(const struct ww_wheel *wheel, uint64_t ns, uint64_t *deadline);

/*
 * Convert the time of the caller's clock, in nanoseconds from the origin of its ticks, to the time to pass to advance,
 * rounded down: a tick has come when it is complete.
 * Errors: WW_EINVAL: an argument is NULL. WW_EOVERFLOW: the result is beyond WW_TIME_MAX ticks.
 */
WW_API int ww_wheel_now_ns(const struct ww_wheel *wheel, uint64_t ns, uint64_t *now);

/* ---- All timers ----------------------------------------------------------------------------------------------- */

/*
 * Take pending timers out of the wheel, whatever their deadlines: at most `capacity`, in no particular order. Write
 * them to batch[0 .. *count-1]; they are then idle. Return 1 when more are pending, 0 when the wheel is empty. An empty
 * wheel stays usable. A callback may call this.
 * Complexity: O(*count + slots). Errors: WW_EINVAL: an argument is NULL or capacity is 0. WW_ECORRUPT: the call met a
 * broken timer; the batch has the timers taken before it.
 */
WW_API int ww_wheel_drain(struct ww_wheel *wheel, struct ww_expiry *batch, size_t capacity, size_t *count);

/*
 * Called for one pending timer. Return 0 to go on, anything else to stop. The function may cancel the timer that it
 * gets and then free its object. It must not change anything else of the wheel.
 */
typedef int ww_each_fn(struct ww_timer *timer, uint64_t deadline, void *user);

/*
 * Call `each` for every pending timer, in no particular order, with its absolute deadline. Return 0, or what `each`
 * returned when it stopped the walk. O(pending + slots).
 * Errors: WW_EINVAL: wheel or each is NULL. WW_ECORRUPT: the call met a broken timer.
 */
WW_API int ww_wheel_each(struct ww_wheel *wheel, ww_each_fn *each, void *user);

/* ---- Looking inside ------------------------------------------------------------------------------------------- */

/*
 * Fill *stats. A timer counts where it is filed: a timer that was moved to a later deadline counts in its old slot
 * until that slot comes round. O(slots).
 * Errors: WW_EINVAL: an argument is NULL.
 */
WW_API int ww_wheel_stats(const struct ww_wheel *wheel, struct ww_stats *stats);

/*
 * Check every invariant of the wheel and of its pending timers. Return 0, or WW_ECORRUPT with a sentence in text that
 * describes the first broken one. The text takes at most size bytes with the final 0; text may be NULL if size is 0.
 * Complexity: O(pending + slots). The walk touches every timer, so under an access checker it finds objects that were
 * freed while pending.
 * Errors: WW_EINVAL: wheel is NULL, or text is NULL while size is not 0.
 */
WW_API int ww_wheel_check(const struct ww_wheel *wheel, char *text, size_t size);

/*
 * Draw the wheels for a person: one line for each wheel and one for what is outside, a character for the filling of
 * each slot, and a mark for the hand. Write at most size bytes with the final 0. Return the length of the whole text
 * without the final 0, as snprintf does. text may be NULL if size is 0.
 * Errors: WW_EINVAL: wheel is NULL, or text is NULL while size is not 0.
 */
WW_API int ww_wheel_dump(const struct ww_wheel *wheel, char *text, size_t size);

/* ---- The two most frequent calls, inline -----------------------------------------------------------------------
 *
 * A heartbeat, and a tick in which nothing is due, take a few instructions: fewer than a call into a shared library.
 * The fewer instructions a heartbeat takes, the more of its cache misses the processor overlaps. Therefore
 * ww_wheel_reschedule, ww_wheel_reschedule_at, ww_wheel_advance and ww_wheel_advance_batch are also macros. They handle
 * the frequent case here and call the function for any other. The functions remain for pointers and for other
 * languages. Define WW_NO_INLINE to leave the macros out.
 *
 * struct ww_wheel_head is private: the first members of every wheel. Its layout is part of the binary interface, as is
 * that of struct ww_timer.
 */
struct ww_wheel_head {
	uint64_t event; /* advance has nothing to do before this time; 0 while something is due or a callback runs */
	uint64_t now;   /* the time last passed to advance */
	uint64_t hand;  /* everything up to here has expired; behind now while a budget holds an advance back */
	/*
	 * Ticks from now to 2^63, the end of time. It is 0, which keeps heartbeats out of line, while something is due
	 * or held back, and always in a bounded wheel or a debug library.
	 */
	uint64_t to_end;
};

/*
 * A timer stores the ticks from its deadline to the end of time. One comparison then separates the frequent case from
 * three others: an idle timer, whose count is 0; a deadline earlier than the pending one; and a deadline beyond the end
 * of time. In the last case the difference wraps round. While the wheel's to_end is 0, it wraps round for every delay.
 */
static inline int ww_wheel_head_heartbeat(struct ww_wheel *wheel, struct ww_timer *timer, uint64_t delay)
{
	uint64_t to_end;

	if (!wheel || !timer || delay > WW_TIME_MAX)
		return 0;
	to_end = ((const struct ww_wheel_head *)(const void *)wheel)->to_end - delay;
	if (to_end - 1 >= timer->ww_to_end)
		return 0;
	timer->ww_to_end = to_end;
	return 1;
}

static inline int ww_wheel_head_tick(struct ww_wheel *wheel, uint64_t now)
{
	struct ww_wheel_head *head = (struct ww_wheel_head *)(void *)wheel;

	if (!wheel || now >= head->event || now < head->now)
		return 0;
	if (head->to_end)
		head->to_end = WW_TIME_MAX + 1 - now;
	head->now = now;
	head->hand = now;
	return 1;
}

static inline int ww_wheel_inline_reschedule(struct ww_wheel *wheel, struct ww_timer *timer, uint64_t delay)
{
	return ww_wheel_head_heartbeat(wheel, timer, delay) ? 1 : ww_wheel_reschedule(wheel, timer, delay);
}

static inline int ww_wheel_inline_reschedule_at(struct ww_wheel *wheel, struct ww_timer *timer, uint64_t deadline)
{
	uint64_t now = wheel ? ((const struct ww_wheel_head *)(const void *)wheel)->now : 0;

	if (deadline >= now && ww_wheel_head_heartbeat(wheel, timer, deadline - now))
		return 1;
	return ww_wheel_reschedule_at(wheel, timer, deadline);
}

static inline int ww_wheel_inline_advance(struct ww_wheel *wheel, uint64_t now, size_t budget, size_t *expired)
{
	if (!ww_wheel_head_tick(wheel, now))
		return ww_wheel_advance(wheel, now, budget, expired);
	if (expired)
		*expired = 0;
	return 0;
}

static inline int ww_wheel_inline_advance_batch(
    struct ww_wheel *wheel, uint64_t now, struct ww_expiry *batch, size_t capacity, size_t *count)
{
	if (!count || (!batch && capacity) || !ww_wheel_head_tick(wheel, now))
		return ww_wheel_advance_batch(wheel, now, batch, capacity, count);
	*count = 0;
	return 0;
}

#ifndef WW_NO_INLINE
/* Variadic, because each comma of an initialiser, as in (uint64_t[]){1, 2}[0], begins another argument of a macro. */
#define ww_wheel_reschedule(...) ww_wheel_inline_reschedule(__VA_ARGS__)
#define ww_wheel_reschedule_at(...) ww_wheel_inline_reschedule_at(__VA_ARGS__)
#define ww_wheel_advance(...) ww_wheel_inline_advance(__VA_ARGS__)
#define ww_wheel_advance_batch(...) ww_wheel_inline_advance_batch(__VA_ARGS__)
#endif

#ifdef __cplusplus
}
#endif

#endif
