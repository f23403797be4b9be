#ifndef LIB_CORE_WHEEL_WHEEL_INTERNAL_H
#define LIB_CORE_WHEEL_WHEEL_INTERNAL_H

/*
 * The data structure of the wheel, explained here once.
 *
 * A *ring* is the storage of a wheel: an array of slots, one of which comes round every `span` ticks. Every level has a
 * ring of its own but for the two highest, which share one where they are small enough: by default the 24 hours and the
 * 7 days are one ring of 168 slots of an hour, of which those that begin within the next 24 hours are the hours wheel
 * and the others, 24 of them to a day, the days wheel. A day is then demoted to hours without a timer being touched:
 * hour by hour, its slots begin to belong to the hours wheel. One more ring holds what is outside the wheels.
 *
 *     ring 0   60 x 1 s      slot of a deadline: deadline % 60
 *     ring 1   60 x 60 s                         deadline / 60 % 60
 *     ring 2  168 x 3,600 s                      deadline / 3,600 % 168
 *     outside  48 x 604,800 s                    deadline / 604,800 % 48
 *
 * What is too far for that too waits in two slots of its own; see place_farther in wheel_place.h.
 *
 * The *hand* is the tick up to which everything has expired. A timer goes to the lowest ring whose turn is longer than
 * the time from the hand to its deadline. The slot that the hand is in was emptied when the hand came to it, and stands
 * for the time one turn ahead from then on; in ring 0 it is not used before the hand has left it.
 *
 * A slot is not one list but LANES lists, filled evenly and walked in turn. A list of millions is a chain of cache
 * misses of which each must end before the next can begin; several lists are as many misses under way at once. And each
 * timer holds a hint of where the next but one of its list lies, which doubles that again.
 *
 *     lane[4 * slot + 0] --> timer --> timer --> nil        count[slot]: timers in all lanes
 *                     + 1] --> timer --> nil
 *                     + 2] --> timer --> nil
 *                     + 3] --> nil
 *                           ww_next   the next of the lane; the last one points to the wheel's nil, never to NULL,
 *                                     so that linking and unlinking need no branch
 *                           ww_pprev  the pointer that points here: a lane or another timer's ww_next
 *                           ww_to_end from its deadline to the end of time, which is TIME_END; 0: idle
 *                           ww_where  four in one, since a store more or less is what scheduling costs:
 *                                     low 16 bits: index of the slot
 *                                     1 bit: the timer is periodic; if not, ww_period is what it was
 *                                     15 bits: the wheel's tag
 *                                     high 32 bits: a hint, the low part of the address of the next but one, in units
 *                                         of HINT_UNIT; only ever prefetched, so that it may be stale
 *
 * A timer's slot begins at or before its deadline, but need not be the deadline's own: a timer that is moved to a later
 * deadline stays where it is, and is filed anew when its slot comes round. That makes a heartbeat one store.
 *
 * Beside the rings' slots there are a few special ones: `late` holds what was looked at while ring 1's next slot was
 * drained ahead of its time and did not fit ring 0 yet. Three `due` ones hold what was scheduled at or before the hand:
 * one collects it, one has what was collected before the call that is running, and one what a budget has left of that,
 * which comes first, so that nobody waits behind those who come again and again.
 *
 * A *place* is the index of any slot.
 */

#include <stddef.h>
#include <stdint.h>

/* The library defines the functions that the header also has as macros. */
#define WW_NO_INLINE
#include "weekwheel/wheel.h"

#define LANES 4u
/* The two highest levels share a ring of at most this many slots. */
#define SHARED_SLOTS_MAX 256u
/* Slots outside the wheels, of a horizon each; with the special ones they fill a word at most. */
#define OUTSIDE_SLOTS 48u
/* A ring a level at most, the one outside, and what is farther. */
#define RINGS_MAX (WW_LEVELS_MAX + 2u)
/* 64 slots for each level, four words for a shared ring in the place of two, and one word outside. */
#define WORDS_MAX (WW_LEVELS_MAX + 4u)
#define PLACES_MAX (WORDS_MAX * 64u)
/*
 * A slot with no more timers than this is demoted at its boundary as a whole; it takes some microseconds. A power of
 * two, so that one test tells a slot that has become too large from all others but the empty one.
 */
#define DRAIN_AHEAD_MIN 256u

/* The parts of ww_where: places are below WHERE_PLACES, then a flag, then the bits where the tag and the hint begin. */
#define WHERE_PLACES (UINT32_C(1) << 16)
#define WHERE_PERIODIC WHERE_PLACES
_Static_assert(PLACES_MAX <= WHERE_PLACES, "a place has 16 bits");
#define WHERE_TAG 17
#define WHERE_HINT 32
#define HINT_UNIT _Alignof(struct ww_timer)
#define DUE_SLOTS 3u
/*
 * Later than any `event`: the first time that advance refuses, so that it looks then. It is the `event` of a wheel in
 * which nothing waits, but for the default geometry, which needs advance at the end of each turn: see end_of_turn.
 */
#define NO_EVENT (WW_TIME_MAX + 1)
/* The time that no timer reaches, from which their deadlines are counted back. */
#define TIME_END (WW_TIME_MAX + 1)

struct ring {
	uint64_t span;  /* ticks that a slot spans */
	uint64_t limit; /* a timer fits when less than this remains to it: the ticks of a turn, or one more */
	uint64_t lead;  /* ticks before a boundary at which draining the next slot ahead begins */
	uint32_t slots;
	uint32_t first; /* place of the first slot; a multiple of 64, so that a ring's occupancy begins with a word */
};

struct ww_wheel {
	struct ww_wheel_head head; /* what the inline functions of wheel.h read and write */

	uint64_t drain;     /* the earliest time at which a slot may have to be drained ahead */
	uint64_t longest;   /* longest delay that is accepted */
	uint64_t quick;     /* delays of 1 to this many ticks are filed without further questions; may be 0 */
	uint64_t turn;      /* default geometry: when the turn of the highest ring began that the hand is in */
	uint64_t filed;     /* how often a timer was linked: schedules, demotions, renewals and moves */
	uint32_t tag;       /* as in ww_where, which marks this wheel's timers with it */
	uint32_t rings;     /* of the wheels; ring[rings] is outside them, ring[rings + 1] the two slots farther */
	uint32_t late;      /* place of the late slot */
	uint32_t due_first; /* place of the first of the three due slots */
	uint32_t due;       /* place of the one that collects */
	uint32_t due_next;  /* of the one that was collected before this call */
	uint32_t due_now;   /* of the one that is being delivered */
	uint8_t standard;   /* the default geometry, whose divisions are by constants */
	uint8_t busy;       /* an advance is running */

	uint64_t farther_at[2]; /* while that farther slot is not empty: the boundary at which to look through it */

	uint64_t occupied[WORDS_MAX]; /* a bit a slot: count is not 0 */
	/* The same for what is drained ahead: count is over DRAIN_AHEAD_MIN, or was since the slot was last empty. */
	uint64_t large[WORDS_MAX];
	struct ww_timer nil;
	struct ring ring[RINGS_MAX];

	uint64_t drained;
	uint64_t renewed; /* expiries after which a periodic timer stayed in the wheel */
	uint64_t expired;
	uint64_t demoted;
	uint64_t moved; /* timers that were filed elsewhere while pending, but for demotion */
	uint64_t tick_ns;
	size_t bytes;
	uint32_t places;
	uint32_t levels;
	uint32_t level_slots[WW_LEVELS_MAX];
	const struct ww_allocator *allocator; /* NULL: in memory of the caller's */

	uint32_t count[PLACES_MAX]; /* timers in each slot */
	/* LANES for each slot, which so lie in one cache line. */
	_Alignas(32) struct ww_timer *lane[];
};

static inline uint32_t slot_count(const struct ww_wheel *wheel, uint64_t place)
{
	return wheel->count[place];
}

static inline struct ww_timer **slot_lanes(struct ww_wheel *wheel, uint32_t place)
{
	return &wheel->lane[place * LANES];
}

/* The head's to_end while nothing is due. A debug library looks at every timer before it believes it. */
static inline uint64_t inline_to_end(const struct ww_wheel *wheel)
{
#ifdef WW_DEBUG
	(void)wheel;
	return 0;
#else
	return wheel->longest == WW_TIME_MAX ? TIME_END - wheel->head.now : 0;
#endif
}

static inline int timer_is_pending(const struct ww_timer *timer)
{
	return timer->ww_to_end != 0;
}

static inline uint64_t timer_deadline(const struct ww_timer *timer)
{
	return TIME_END - timer->ww_to_end;
}

static inline void timer_set_deadline(struct ww_timer *timer, uint64_t deadline)
{
	timer->ww_to_end = TIME_END - deadline;
}

static inline void timer_set_idle(struct ww_timer *timer)
{
	timer->ww_to_end = 0;
}

static inline uint32_t timer_place(const struct ww_timer *timer)
{
	return (uint16_t)timer->ww_where;
}

/* WHERE_PERIODIC or 0. */
static inline uint32_t timer_periodic(const struct ww_timer *timer)
{
	return (uint32_t)timer->ww_where & WHERE_PERIODIC;
}

static inline void timer_set_periodic(struct ww_timer *timer, uint32_t periodic)
{
	timer->ww_where ^= timer_periodic(timer) ^ periodic;
}

/* The place of a one-shot timer of this wheel; of any other, WHERE_PLACES or more. */
static inline uint32_t where_without_tag(const struct ww_wheel *wheel, const struct ww_timer *timer)
{
	return (uint32_t)timer->ww_where ^ wheel->tag;
}

static inline int timer_is_tagged(const struct ww_wheel *wheel, const struct ww_timer *timer)
{
	return where_without_tag(wheel, timer) >> WHERE_TAG == 0;
}

/*
 * Two neighbouring members are written with one store, where the machine has such: a store that misses the caches is in
 * the way of those behind it, and how many wait there is what bounds schedules and cancels among millions of timers.
 */
_Static_assert(offsetof(struct ww_timer, ww_pprev) == offsetof(struct ww_timer, ww_next) + sizeof(uintptr_t) &&
                   offsetof(struct ww_timer, ww_where) == offsetof(struct ww_timer, ww_to_end) + sizeof(uint64_t),
    "members are stored in pairs");

static inline void timer_set_links(struct ww_timer *timer, struct ww_timer *next, struct ww_timer **pprev)
{
	typedef uintptr_t pair
	    __attribute__((vector_size(2 * sizeof(uintptr_t)), aligned(_Alignof(struct ww_timer)), may_alias));

	*(pair *)(void *)&timer->ww_next = (pair){(uintptr_t)next, (uintptr_t)pprev};
}

static inline void timer_set_deadline_and_where(struct ww_timer *timer, uint64_t deadline, uint64_t where)
{
	typedef uint64_t pair
	    __attribute__((vector_size(2 * sizeof(uint64_t)), aligned(_Alignof(struct ww_timer)), may_alias));

	*(pair *)(void *)&timer->ww_to_end = (pair){TIME_END - deadline, where};
}

/* The time at which ring r's slot that is `steps` after the hand's begins. */
static inline uint64_t ring_boundary(const struct ring *ring, uint64_t hand, uint64_t steps)
{
	return (hand / ring->span + steps) * ring->span;
}

/* The hint that points to `other`: its address in units of HINT_UNIT, without the high bits. */
static inline uint64_t hint_to(const struct ww_timer *other)
{
	return (uint64_t)((uintptr_t)other / HINT_UNIT) << WHERE_HINT;
}

/* The address nearest to the timer that has those low bits. */
static inline void *hinted(const struct ww_timer *timer)
{
	uint32_t distance = (uint32_t)(timer->ww_where >> WHERE_HINT) - (uint32_t)((uintptr_t)timer / HINT_UNIT);

	return (void *)((uintptr_t)timer + (uintptr_t)(intptr_t)(int32_t)distance * HINT_UNIT);
}

static inline void slot_vacated(struct ww_wheel *wheel, uint32_t place)
{
	wheel->occupied[place / 64] &= ~(UINT64_C(1) << place % 64);
	wheel->large[place / 64] &= ~(UINT64_C(1) << place % 64);
}

/* The timer keeps its deadline: who makes it idle says so. `place` is its own. */
static inline void unlink_from(struct ww_wheel *wheel, struct ww_timer *timer, uint32_t place)
{
	struct ww_timer *next = timer->ww_next;
	struct ww_timer **pprev = timer->ww_pprev;

	*pprev = next;
	next->ww_pprev = pprev;
	if (--wheel->count[place] == 0)
		slot_vacated(wheel, place);
}

static inline void unlink_timer(struct ww_wheel *wheel, struct ww_timer *timer)
{
	unlink_from(wheel, timer, timer_place(timer));
}

/*
 * Whether a pending timer is not what this wheel once linked: of another wheel, or overwritten. Its tag is looked at
 * always: unlinking another wheel's timer would leave that one with a count that no walk ever comes to the end of. The
 * rest costs each call the neighbours' cache lines, and is for debug builds.
 */
static inline int timer_broken(const struct ww_wheel *wheel, const struct ww_timer *timer)
{
	if (!timer_is_tagged(wheel, timer))
		return 1;
#ifdef WW_DEBUG
	return (timer_periodic(timer) && timer->ww_period == 0) || !timer->ww_pprev || timer->ww_to_end > TIME_END ||
	       timer_place(timer) >= wheel->places || *timer->ww_pprev != timer ||
	       (timer->ww_next != &wheel->nil && timer->ww_next->ww_pprev != &timer->ww_next);
#else
	return 0;
#endif
}

#endif
