#ifndef WEEKWHEEL_WHEEL_H
#define WEEKWHEEL_WHEEL_H

/*
 * The hierarchical timing wheel: by default four cascading wheels of 60 seconds, 60 minutes, 24 hours and 7 days.
 *
 * A timer waits in the wheel that fits the time that remains to it, and is demoted from wheel to wheel as that time
 * shrinks, until the seconds wheel expires it in the very tick of its deadline. One call, ww_wheel_advance, moves all
 * wheels. (G. Varghese and A. Lauck, "Hashed and Hierarchical Timing Wheels", SOSP 1987, scheme 7.)
 *
 *     delay < 60 s     < 60 min       < 24 h        <= 7 days     longer
 *     +----------+  +------------+  +----------+  +-----------+  +---------+
 *     | 60 x 1 s |<-| 60 x 1 min |<-| 24 x 1 h |<-| 7 x 1 day |<-| outside |
 *     +----------+  +------------+  +----------+  +-----------+  +---------+
 *       expires        demoted        demoted        demoted       enters
 *
 * Purity: the wheel reads no clock, starts no thread and does no I/O. Time is a number that the caller passes in.
 *
 * Time: a uint64_t count of ticks, 0 to WW_TIME_MAX, from an origin of the caller's choice. What a tick is, is the
 * caller's affair: one second by default, and struct ww_wheel_config names another length for the functions that
 * convert nanoseconds. A *deadline* is such a time; a *delay* is a number of ticks from the wheel's time, which is the
 * one last passed to advance (ww_wheel_now).
 *
 * Memory: a timer is a struct ww_timer inside the caller's own object. The wheel allocates nothing for it, so that
 * scheduling cannot fail for want of memory, and a timer that is idle is the caller's alone.
 *
 * Promises: a timer never expires before its deadline, never twice for one deadline, and is never lost. When advance is
 * called for every tick it expires in the tick of its deadline. A timer that was cancelled does not expire, even when
 * another callback of the same tick cancelled it.
 *
 * Errors: 0 or a positive answer, or a negative WW_E* of error.h. On error nothing has changed. Every function refuses
 * NULL where it needs an object, with WW_EINVAL, in every build.
 *
 * Threads: a wheel and its timers belong to one thread at a time; functions on different wheels never meet.
 *
 * Misuse: a timer that is pending in another wheel is refused with WW_ECORRUPT by every function that takes a timer,
 * all but certainly, as wheels are told apart by a mark of 15 bits, and but for a reschedule to a later deadline, which
 * is not looked into. Not detected, because that would cost every call: freeing or overwriting the object of a pending
 * timer; initialising a pending timer; copying a timer that is pending; a timer whose memory was neither zeroed nor
 * initialised. A library configured with --enable-debug finds most of it and answers WW_ECORRUPT, and ww_wheel_check
 * finds it in any build.
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
/* No time at all: what ww_wheel_next stores when nothing is pending. */
#define WW_NEVER UINT64_MAX
/* A budget without a limit. */
#define WW_UNLIMITED SIZE_MAX

#define WW_LEVELS_MAX 6
#define WW_SLOTS_MIN 2
#define WW_SLOTS_MAX 64

struct ww_wheel;
struct ww_timer;

/*
 * Called by ww_wheel_advance when the timer expires. missed is how many further expiries of a periodic timer fell into
 * the same jump of time, 0 for a one-shot. The timer is idle, or, when periodic, already scheduled again.
 * It may schedule, cancel and reschedule any timer of the wheel, this one and others that are due in the same tick
 * included, drain the wheel, and free the object of this timer once the timer is idle (a periodic one: cancelled).
 * ww_wheel_advance, ww_wheel_advance_batch and ww_wheel_destroy on this wheel answer WW_EBUSY in it.
 */
typedef void ww_timer_fn(struct ww_wheel *wheel, struct ww_timer *timer, uint64_t missed);

/*
 * A timer, to be embedded in the caller's object. All members are private: use the functions. All zero bytes are an
 * idle timer without a callback. Its layout and the lists it hangs in are explained in lib/core/wheel/wheel_internal.h.
 */
struct ww_timer {
	struct ww_timer *ww_next;
	struct ww_timer **ww_pprev;
	uint64_t ww_to_end;
	uint64_t ww_where;
	uint64_t ww_period;
	ww_timer_fn *ww_expire;
};

/* An idle timer with a callback, for an initialiser. */
#define WW_TIMER_INIT(callback)                                                                                        \
	{                                                                                                              \
		NULL, NULL, 0, 0, 0, (callback)                                                                        \
	}

/* The object of type `type` whose member `member` is the timer. */
#define WW_TIMER_OWNER(timer, type, member) ((type *)(void *)((char *)(timer)-offsetof(type, member)))

/* Refuse, with WW_ERANGE, what lies beyond the horizon, where otherwise it waits outside the wheels. */
#define WW_WHEEL_BOUNDED 1u

/*
 * How a wheel is made. Fill it with ww_wheel_config_default, then change what should differ.
 *
 * levels is 1 to WW_LEVELS_MAX and slots[0 .. levels-1] are WW_SLOTS_MIN to WW_SLOTS_MAX each, slots[0] being those of
 * the lowest wheel, whose slot is one tick. A slot of each further wheel spans a full turn of the one below; a turn of
 * the highest wheel is the horizon.
 */
struct ww_wheel_config {
	uint64_t start;   /* the wheel's first time, in ticks; 0 to WW_TIME_MAX */
	uint64_t tick_ns; /* length of a tick in ns, at least 1; used for conversion and dump only */
	const struct ww_allocator *allocator; /* NULL: the default */
	uint32_t flags;                       /* 0 or WW_WHEEL_BOUNDED */
	uint32_t levels;
	uint32_t slots[WW_LEVELS_MAX];
};

/* One expiry, as ww_wheel_advance_batch reports it, or one pending timer, as ww_wheel_drain hands it over. */
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
	uint64_t pending;   /* timers in all: the sum over the levels, outside and due */
	uint64_t outside;   /* timers that wait beyond the horizon */
	uint64_t due;       /* timers whose deadline had passed when they were scheduled: the next advance has them */
	uint64_t scheduled; /* since the wheel was made: idle timers that were scheduled */
	uint64_t cancelled; /* timers that ww_wheel_cancel found pending */
	uint64_t drained;   /* timers that ww_wheel_drain handed over */
	uint64_t expired;   /* expiries; those that a periodic timer missed are not counted */
	uint64_t demoted;   /* times that a timer was moved to another slot because its slot came round */
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
 * Store in *bytes the memory that a wheel of this configuration takes; config NULL means the default.
 * Errors: WW_EINVAL: bytes is NULL, or the configuration is invalid. WW_EOVERFLOW: start is beyond WW_TIME_MAX.
 */
WW_API int ww_wheel_size(const struct ww_wheel_config *config, size_t *bytes);

/*
 * Make an empty wheel and store it in *wheel; config NULL means the default. config is copied, its allocator is not.
 * Ownership: the caller's, until ww_wheel_destroy. Allocates ww_wheel_size bytes, once.
 * Errors: WW_EINVAL: wheel is NULL, or the configuration is invalid: levels or slots out of range, tick_ns 0, an
 * unknown flag, an allocator without a function. WW_EOVERFLOW: start is beyond WW_TIME_MAX. WW_ENOMEM: no memory.
 */
WW_API int ww_wheel_create(struct ww_wheel **wheel, const struct ww_wheel_config *config);

/*
 * Make an empty wheel in memory of the caller's and store it in *wheel; otherwise as ww_wheel_create, without
 * allocating.
 * Range: memory is aligned to 64 bytes and size is at least what ww_wheel_size says.
 * Ownership: the memory stays the caller's and must stay in place (a wheel cannot be moved) until ww_wheel_destroy.
 * Errors: as ww_wheel_create without WW_ENOMEM; WW_EINVAL also: memory is NULL, misaligned or too small.
 */
WW_API int ww_wheel_create_at(struct ww_wheel **wheel, void *memory, size_t size, const struct ww_wheel_config *config);

/*
 * Free the wheel. NULL is harmless. No pending timer is touched, so that their objects may be gone already; who wants
 * to use them again drains the wheel first, or initialises them afresh.
 * Errors: WW_EBUSY: called in a callback of this wheel.
 */
WW_API int ww_wheel_destroy(struct ww_wheel *wheel);

/* ---- Timers --------------------------------------------------------------------------------------------------- */

/*
 * Make the timer idle, with this callback; callback NULL is for who takes expiries in batches.
 * The timer must not be pending. Not needed for a timer that WW_TIMER_INIT or zeroing made.
 * Errors: WW_EINVAL: timer is NULL.
 */
WW_API int ww_timer_init(struct ww_timer *timer, ww_timer_fn *callback);

/*
 * Return 1 if the timer is pending, 0 if it is idle. O(1).
 * Errors: WW_EINVAL: timer is NULL.
 */
WW_API int ww_timer_pending(const struct ww_timer *timer);

/*
 * Return 1 and store the absolute deadline in *deadline if the timer is pending; return 0 and leave *deadline if idle.
 * Errors: WW_EINVAL: an argument is NULL.
 */
WW_API int ww_timer_deadline(const struct ww_timer *timer, uint64_t *deadline);

/*
 * Schedule the timer to expire once, `delay` ticks from the wheel's time. A pending timer is rescheduled, and is a
 * one-shot from then on.
 * Range: a delay of 0 to WW_TIME_MAX - ww_wheel_now(). With a delay of 0 it expires in the next call of advance;
 * scheduled in a callback while that call is still behind its time, when it comes to it. A delay beyond the horizon is
 * exact too: the timer waits outside the wheels until it fits.
 * Precision: never before; in the tick of the deadline if advance is called for it. Who reads a clock that stands
 * between two ticks and wants to wait for a whole delay computes the deadline with ww_wheel_deadline_ns.
 * Ownership: the timer must stay in place until it is idle. Complexity: O(1), allocates nothing; a pending timer that
 * is moved to a later deadline costs a write to the timer and nothing else.
 * Errors: WW_EINVAL: an argument is NULL. WW_EOVERFLOW: now + delay is beyond WW_TIME_MAX. WW_ERANGE: the wheel is
 * WW_WHEEL_BOUNDED and delay is over the horizon. WW_ECORRUPT: the timer is pending in another wheel.
 */
WW_API int ww_wheel_schedule(struct ww_wheel *wheel, struct ww_timer *timer, uint64_t delay);

/*
 * Schedule the timer to expire once, at an absolute deadline; otherwise as ww_wheel_schedule.
 * Range: 0 to WW_TIME_MAX. A deadline that the wheel's time has passed already expires in the next call of advance;
 * while a budget holds an advance back, one that its expiries have not reached yet keeps its place among them.
 * Errors: as ww_wheel_schedule.
 */
WW_API int ww_wheel_schedule_at(struct ww_wheel *wheel, struct ww_timer *timer, uint64_t deadline);

/*
 * Schedule the timer to expire first `delay` ticks from the wheel's time and then every `period` ticks.
 * Precision: no drift: the deadlines are first, first + period, first + 2 period and so on. When time jumps over
 * several of them the timer expires once and is told how many it missed. A timer whose next deadline would be beyond
 * WW_TIME_MAX becomes idle.
 * Range: period is 1 to WW_TIME_MAX; with WW_WHEEL_BOUNDED at most the horizon.
 * Errors: as ww_wheel_schedule; WW_EINVAL also: period is 0 or beyond WW_TIME_MAX; WW_ERANGE also: period is over the
 * horizon of a bounded wheel.
 */
WW_API int ww_wheel_schedule_every(struct ww_wheel *wheel, struct ww_timer *timer, uint64_t delay, uint64_t period);

/* The same with the first expiry at an absolute deadline. */
WW_API int ww_wheel_schedule_every_at(
    struct ww_wheel *wheel, struct ww_timer *timer, uint64_t deadline, uint64_t period);

/*
 * Move a pending timer to `delay` ticks from the wheel's time, earlier or later, and return 1; a periodic one keeps its
 * period and counts from there. Leave an idle timer idle and return 0: a heartbeat that comes too late revives nothing.
 * This is the call for a session's heartbeat: moved to a later deadline, the timer's own cache line is written and
 * nothing else; the timer is filed anew when its old place comes round.
 * Complexity: O(1), allocates nothing. Errors: as ww_wheel_schedule.
 */
WW_API int ww_wheel_reschedule(struct ww_wheel *wheel, struct ww_timer *timer, uint64_t delay);

/* The same to an absolute deadline. */
WW_API int ww_wheel_reschedule_at(struct ww_wheel *wheel, struct ww_timer *timer, uint64_t deadline);

/*
 * Make the timer idle, and return 1 if it was pending, 0 if it was idle already. When it returns, the wheel holds no
 * pointer to the timer, and its memory may be freed or used again at once.
 * Complexity: O(1). Errors: WW_EINVAL: an argument is NULL. WW_ECORRUPT: the timer is pending in another wheel.
 */
WW_API int ww_wheel_cancel(struct ww_wheel *wheel, struct ww_timer *timer);

/*
 * Return 1 and store in *ticks how long from the wheel's time to the timer's deadline, 0 if that has passed. Return 0
 * and leave *ticks if the timer is idle.
 * Errors: WW_EINVAL: an argument is NULL.
 */
WW_API int ww_wheel_time_left(const struct ww_wheel *wheel, const struct ww_timer *timer, uint64_t *ticks);

/* ---- Time ----------------------------------------------------------------------------------------------------- */

/* Return the wheel's time: the last one passed to advance, or the configuration's start. WW_NEVER for NULL. */
WW_API uint64_t ww_wheel_now(const struct ww_wheel *wheel);

/* Return the horizon in ticks: a turn of the highest wheel, 604,800 by default. WW_NEVER for NULL. */
WW_API uint64_t ww_wheel_horizon(const struct ww_wheel *wheel);

/*
 * Move the wheel's time to `now` and call the callbacks of at most `budget` timers whose deadline has come, in order of
 * tick; within a tick, and among those that were overdue when they were scheduled, in no particular order. A timer
 * without a callback becomes idle and is counted. Return 0 when all that was due has expired, 1 when the budget ended
 * it with more to come: call again, with the same time or a later one, and the rest expires, nothing lost and nothing
 * out of order by tick. *expired, unless NULL, gets the number of expiries of this call. The budget bounds expiries,
 * not what is demoted or filed anew because it was moved. Timers whose callbacks schedule them again with no delay can
 * use up a small budget while the time stands still; as soon as it moves they take their turn. What callbacks schedule:
 * a deadline at or before the tick that is expiring waits for the next call, so that a callback that schedules itself
 * with no delay does not keep this one from ending. In a callback ww_wheel_now is `now`, also when the tick that is
 * expiring lies before it: delays count from there.
 * Range: now is ww_wheel_now() to WW_TIME_MAX; any step, from no tick to all of them.
 * Complexity: O(expired + demoted + levels x turns that hold a timer); ticks and slots in which nothing waits are not
 * visited. Shortly before a boundary it also moves a share of what will be demoted there, if that is much.
 * Errors: WW_EINVAL: wheel is NULL. WW_EOVERFLOW: now is beyond WW_TIME_MAX. WW_EBACKWARDS: now is before
 * ww_wheel_now(). WW_EBUSY: called in a callback of this wheel. WW_ECORRUPT: a broken timer was met; what expired
 * before is in *expired, and the rest stays where it is.
 */
WW_API int ww_wheel_advance(struct ww_wheel *wheel, uint64_t now, size_t budget, size_t *expired);

/*
 * The same without callbacks: the expiries are written to batch[0 .. *count-1], at most `capacity` of them.
 * A timer in the batch is idle, or, when periodic, already scheduled again; it has expired, and cancelling it
 * afterwards does not take it out of the batch.
 * Errors: as ww_wheel_advance; WW_EINVAL also: batch is NULL while capacity is not 0, or count is NULL.
 */
WW_API int ww_wheel_advance_batch(
    struct ww_wheel *wheel, uint64_t now, struct ww_expiry *batch, size_t capacity, size_t *count);

/*
 * Return 1 and store in *when the time at which the wheel next needs a call of advance; return 0 and store WW_NEVER
 * when nothing is pending. Guarantee: never later than the next expiry, and never before ww_wheel_now(). It may be
 * earlier than the next expiry: a timer in an upper wheel asks for a call when its slot is to be demoted, one that was
 * moved to a later deadline when its old place comes round. A timer left alone is the reason of at most one call a
 * level, and of two more when it is beyond the horizon. What an unfinished advance has left is due at ww_wheel_now().
 * Shortly before the demotion of a full slot every tick is asked for.
 * Complexity: O(levels). Errors: WW_EINVAL: an argument is NULL.
 */
WW_API int ww_wheel_next(const struct ww_wheel *wheel, uint64_t *when);

/*
 * Convert a deadline of the caller's clock, in nanoseconds from the origin of its ticks, to ticks, rounded up: a
 * deadline between two ticks must not be met by the earlier one.
 * Errors: WW_EINVAL: an argument is NULL. WW_EOVERFLOW: that is beyond WW_TIME_MAX ticks.
 */
WW_API int ww_wheel_deadline_ns(const struct ww_wheel *wheel, uint64_t ns, uint64_t *deadline);

/*
 * Convert the caller's clock, in nanoseconds from the origin of its ticks, to the time to pass to advance, rounded
 * down: a tick has come when it is complete.
 * Errors: WW_EINVAL: an argument is NULL. WW_EOVERFLOW: that is beyond WW_TIME_MAX ticks.
 */
WW_API int ww_wheel_now_ns(const struct ww_wheel *wheel, uint64_t ns, uint64_t *now);

/* ---- All timers ----------------------------------------------------------------------------------------------- */

/*
 * Take pending timers out of the wheel, whenever they are due: at most `capacity`, in no particular order, written to
 * batch[0 .. *count-1] and idle from then on. Return 1 when more are pending, 0 when the wheel is empty; an empty wheel
 * goes on working. Allowed in a callback.
 * Complexity: O(*count + slots). Errors: WW_EINVAL: an argument is NULL or capacity is 0. WW_ECORRUPT: a broken timer
 * was met; what was taken before is in the batch.
 */
WW_API int ww_wheel_drain(struct ww_wheel *wheel, struct ww_expiry *batch, size_t capacity, size_t *count);

/*
 * Called for one pending timer; returns 0 to go on, anything else to stop. It may cancel the timer that it is given and
 * then free its object, and must not change anything else of the wheel.
 */
typedef int ww_each_fn(struct ww_timer *timer, uint64_t deadline, void *user);

/*
 * Call `each` for every pending timer, in no particular order, with its absolute deadline. Return 0, or what `each`
 * returned when it stopped the walk. O(pending + slots).
 * Errors: WW_EINVAL: wheel or each is NULL. WW_ECORRUPT: a broken timer was met.
 */
WW_API int ww_wheel_each(struct ww_wheel *wheel, ww_each_fn *each, void *user);

/* ---- Looking inside ------------------------------------------------------------------------------------------- */

/*
 * Fill *stats. A timer counts where it is filed: one that was moved to a later deadline stays counted in its old place
 * until that comes round. O(slots).
 * Errors: WW_EINVAL: an argument is NULL.
 */
WW_API int ww_wheel_stats(const struct ww_wheel *wheel, struct ww_stats *stats);

/*
 * Walk every invariant of the wheel and of its pending timers. Return 0, or WW_ECORRUPT with a sentence that describes
 * the first broken one in text (at most size bytes with the final 0; text may be NULL if size is 0).
 * Complexity: O(pending + slots); touches every timer, and so finds objects that were freed while pending where an
 * access checker watches. Errors: WW_EINVAL: wheel is NULL, or text is NULL while size is not 0.
 */
WW_API int ww_wheel_check(const struct ww_wheel *wheel, char *text, size_t size);

/*
 * Draw the wheels for a person: a line a wheel and one for what is outside, each slot's filling as a character, the
 * hand marked. Writes at most size bytes with the final 0 and returns the length of the whole text without it, as
 * snprintf does (text may be NULL if size is 0).
 * Errors: WW_EINVAL: wheel is NULL, or text is NULL while size is not 0.
 */
WW_API int ww_wheel_dump(const struct ww_wheel *wheel, char *text, size_t size);

/* ---- The two most frequent calls, inline -----------------------------------------------------------------------
 *
 * A heartbeat and a tick in which nothing is due are a few instructions, fewer than a call of a shared library takes;
 * and the fewer instructions a heartbeat takes, the more of its cache misses the processor has under way at once. So
 * ww_wheel_reschedule, ww_wheel_reschedule_at, ww_wheel_advance and ww_wheel_advance_batch are also macros that try the
 * frequent case here and call the function for any other. The function itself remains for pointers and for other
 * languages; WW_NO_INLINE leaves the macros out.
 *
 * struct ww_wheel_head is private: the first members of every wheel. Its layout is part of the binary interface, as is
 * that of struct ww_timer.
 */
struct ww_wheel_head {
	uint64_t event; /* before this time advance has nothing to do; 0 while something is due or a callback runs */
	uint64_t now;   /* the time last passed to advance */
	uint64_t hand;  /* expired up to here; behind now while a budget holds an advance back */
	/* From now to 2^63, the end of time; 0, and no heartbeat is inline, while something is due or held back, and always in
	   a bounded wheel or a debug library. */
	uint64_t to_end;
};

/*
 * A timer counts from its deadline to the end of time, so that one comparison tells the frequent case from three
 * others: an idle timer, whose count is 0; a deadline earlier than the pending one; and one beyond the end of time, for
 * which the difference wraps round, as it does for every delay while the wheel's to_end is 0.
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
#define ww_wheel_reschedule(wheel, timer, delay) ww_wheel_inline_reschedule(wheel, timer, delay)
#define ww_wheel_reschedule_at(wheel, timer, deadline) ww_wheel_inline_reschedule_at(wheel, timer, deadline)
#define ww_wheel_advance(wheel, now, budget, expired) ww_wheel_inline_advance(wheel, now, budget, expired)
#define ww_wheel_advance_batch(wheel, now, batch, capacity, count)                                                     \
	ww_wheel_inline_advance_batch(wheel, now, batch, capacity, count)
#endif

#ifdef __cplusplus
}
#endif

#endif
