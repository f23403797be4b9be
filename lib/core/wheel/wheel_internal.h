#ifndef LIB_CORE_WHEEL_WHEEL_INTERNAL_H
#define LIB_CORE_WHEEL_WHEEL_INTERNAL_H

/*
 * The data structure of the wheel. advance.c explains the algorithm.
 *
 * A *ring* is the storage of a level: an array of slots, one of which comes round every `span` ticks. The two highest
 * levels share a ring if they are small enough. By default the 24 hours and the 7 days are one ring of 168 slots of an
 * hour. Slots that begin within the next 24 hours are the hours; of the others, 24 make a day. Demoting a day to hours
 * then touches no timer: hour by hour, its slots become hours. One more ring holds the timers outside the wheels.
 *
 *     ring 0   60 x 1 s      slot of a deadline: deadline % 60
 *     ring 1   60 x 60 s                         deadline / 60 % 60
 *     ring 2  168 x 3,600 s                      deadline / 3,600 % 168
 *     outside  48 x 604,800 s                    deadline / 604,800 % 48
 *
 * Timers that are too far even for that wait in slots whose span grows with their distance: see slot_farther in
 * place.h.
 *
 * The *hand* is the tick up to which everything has expired. A timer goes to the lowest ring whose turn is longer than
 * the time from the hand to its deadline. The slot that the hand is in was emptied when the hand came to it, and stands
 * for the time one turn ahead from then on. In ring 0 it stays unused until the hand has left it.
 *
 * A slot is LANES lists, filled evenly and walked in turn. A list of millions is a chain of cache misses, each of which
 * must end before the next can begin; with several lists as many misses are under way at once. Each timer also holds a
 * hint to the next but one of its list, which doubles that number.
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
 *                                     1 bit: the timer is periodic; if not, ww_period stays what it was: a session
 *                                         keeps its version there
 *                                     15 bits: the wheel's tag
 *                                     high 32 bits: a hint, the low part of the address of the next but one, in units
 *                                         of HINT_UNIT; only ever prefetched, so that it may be stale
 *
 * A timer's slot begins at or before its deadline, but need not be the deadline's own. A timer that is moved to a later
 * deadline stays where it is, and is filed anew when its slot comes round. That makes a heartbeat one store.
 *
 * There are four special slots, behind those outside. `late` holds timers that were pre-demoted from ring 1 and do not
 * fit ring 0 yet. Three `due` slots hold timers that were scheduled at or before the hand. One collects them, one has
 * those that were collected before the running call, and one has those of an earlier call that a budget left over. The
 * last is emptied first, so that no timer waits behind those that are scheduled again and again.
 *
 * In the code `slot` is an index among all slots, which are numbered ring by ring.
 */

#include <stddef.h>
#include <stdint.h>

/* The library defines the functions that the header also has as macros. */
#define WW_NO_INLINE
#include "weekwheel/wheel.h"

#define LANES 4u
/* The two highest levels share a ring of at most this many slots. */
#define SHARED_SLOTS_MAX 256u
/* Slots outside the wheels, of a horizon each; with the special ones, which follow, they fill a word at most. */
#define OUTSIDE_SLOTS 48u
/* A ring a level at most, the one outside, and what is farther. */
#define RINGS_MAX (WW_LEVELS_MAX + 2u)
/* Horizons that the nearest of the slots farther than those spans; a power of two, and not much less. */
#define FARTHER_SPAN 32u
/* A word of 64 slots a level, four words instead of two for a shared ring, and two words for what is outside. */
#define WORDS_MAX (WW_LEVELS_MAX + 4u)
#define INDEX_MAX (WORDS_MAX * 64u)
/*
 * A slot with more timers than this is pre-demoted: in shares, before its boundary. A smaller one is demoted as a whole
 * at its boundary, which takes some microseconds. A power of two, so that link_timer finds both the empty slot and the
 * one that has just become too large with one test.
 */
#define PRE_DEMOTE_MIN 256u

/* The parts of ww_where: the slot, below WHERE_SLOTS; a flag; the bits at which the tag and the hint begin. */
#define WHERE_SLOTS (UINT32_C(1) << 16)
#define WHERE_PERIODIC WHERE_SLOTS
_Static_assert(INDEX_MAX <= WHERE_SLOTS, "a slot has 16 bits");
#define WHERE_TAG 17
#define WHERE_HINT 32
#define HINT_UNIT _Alignof(struct ww_timer)
#define DUE_SLOTS 3u
/*
 * Later than any `event`: the first time that advance refuses. It is the `event` of a wheel in which nothing waits,
 * except in the default geometry, which needs advance at the end of each turn: see end_of_turn.
 */
#define NO_EVENT (WW_TIME_MAX + 1)
/* The time that no timer reaches, from which their deadlines are counted back. */
#define TIME_END (WW_TIME_MAX + 1)

struct ring {
	uint64_t span;  /* ticks that a slot spans */
	uint64_t limit; /* a timer fits when less than this is left: the ticks of a turn, or one more */
	uint64_t lead;  /* pre-demotion of a slot begins this many ticks before its boundary */
	uint32_t slots;
	uint32_t first; /* slot; a multiple of 64, so that a ring's occupancy begins with a word */
};

struct ww_wheel {
	struct ww_wheel_head head; /* what the inline functions of wheel.h read and write */

	uint64_t pre_demotion; /* the earliest time at which a slot may have to be pre-demoted */
	uint64_t longest;      /* longest delay that is accepted */
	uint64_t quick;        /* delays of 1 to this many ticks are filed without further checks; may be 0 */
	uint64_t turn;         /* default geometry: when the hand's turn of the highest ring began */
	uint64_t filed;        /* how often a timer was linked: schedules, demotions, renewals and moves */
	uint32_t tag;          /* as in ww_where, which marks this wheel's timers with it */
	uint32_t rings;        /* of the wheels; ring[rings] is outside them, ring[rings + 1] is farther */
	uint32_t late;         /* the late slot */
	uint32_t due_first;    /* the first of the three due slots */
	uint32_t due;          /* the one that collects */
	uint32_t due_next;     /* the one that was collected before this call */
	uint32_t due_now;      /* the one that is being delivered */
	uint8_t standard;      /* the default geometry, whose divisions are by constants */
	uint8_t busy;          /* an advance is running */

	/* See slot_farther: the unit of time from which the farther slots are counted, and one that no timer is before. */
	uint64_t farther;
	uint64_t farther_min;

	uint64_t occupied[WORDS_MAX]; /* a bit a slot: count is not 0 */
	/* The same for pre-demotion: count is over PRE_DEMOTE_MIN, or was since the slot was last empty. */
	uint64_t large[WORDS_MAX];
	struct ww_timer nil;
	struct ring ring[RINGS_MAX];

	uint64_t drained;
	uint64_t renewed; /* expiries after which a periodic timer stayed in the wheel */
	uint64_t expired;
	uint64_t demoted;
	uint64_t moved; /* timers that were filed elsewhere while pending, not counting demotion */
	uint64_t tick_ns;
	size_t bytes;
	uint32_t slots; /* of all rings, and special ones */
	uint32_t levels;
	uint8_t level_slots[WW_LEVELS_MAX];
	const struct ww_allocator *allocator; /* NULL: the memory is the caller's */

	uint32_t count[INDEX_MAX]; /* timers in each slot */
	/* LANES for each slot, in one cache line. */
	_Alignas(32) struct ww_timer *lane[];
};

static inline uint32_t slot_count(const struct ww_wheel *wheel, uint64_t slot)
{
	return wheel->count[slot];
}

static inline struct ww_timer **slot_lanes(struct ww_wheel *wheel, uint32_t slot)
{
	return &wheel->lane[slot * LANES];
}

/* The head's to_end while nothing is due. A debug library checks every timer, and takes no inline heartbeats. */
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

static inline uint32_t timer_slot(const struct ww_timer *timer)
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

/* The slot of a one-shot timer of this wheel; WHERE_SLOTS or more for any other timer. */
static inline uint32_t where_without_tag(const struct ww_wheel *wheel, const struct ww_timer *timer)
{
	return (uint32_t)timer->ww_where ^ wheel->tag;
}

static inline int timer_is_tagged(const struct ww_wheel *wheel, const struct ww_timer *timer)
{
	return where_without_tag(wheel, timer) >> WHERE_TAG == 0;
}

/* The time at which the slot that is `steps` after the hand's begins. */
static inline uint64_t ring_boundary(const struct ring *ring, uint64_t hand, uint64_t steps)
{
	return (hand / ring->span + steps) * ring->span;
}

/* Fill in the timers in each slot of a level, whose slots span this many ticks. */
void ww_wheel_level_slots(const struct ww_wheel *wheel, uint32_t level, uint64_t span, uint64_t slots[WW_SLOTS_MAX]);

#endif
