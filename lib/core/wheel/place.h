#ifndef LIB_CORE_WHEEL_PLACE_H
#define LIB_CORE_WHEEL_PLACE_H

/*
 * Filing: which slot a deadline belongs to. The slot is in the lowest ring that covers the time that is left. The
 * default geometry has a copy of this code with constants: a division by a constant is a multiplication, and a general
 * one costs more than the rest of scheduling. wheel.c builds both from one table, and does not compile if they differ.
 */

#include "lib/core/wheel/link.h"

#define STD_SECONDS 60u
#define STD_MINUTES 60u
#define STD_HOURS 24u
#define STD_DAYS 7u
#define STD_MINUTE UINT64_C(60)
#define STD_HOUR UINT64_C(3600)
#define STD_HORIZON UINT64_C(604800)
/* A ring begins at a word of the occupancy map: 60 and 60 slots take a word each, 168 take three. */
#define STD_FIRST_1 64u
#define STD_FIRST_2 128u
#define STD_OUTSIDE 320u
/* Leads: see pre_demotion_lead. */
#define STD_LEAD_1 10u
#define STD_LEAD_2 60u
#define STD_LEAD_OUTSIDE 1099u

/*
 * The hand has come to `hand`. The inline advance moves it too, but only within a turn of the default geometry's
 * highest ring. At the end of that turn advance itself is called.
 */
static inline void move_hand(struct ww_wheel *wheel, uint64_t hand)
{
	wheel->head.hand = hand;
	if (!wheel->standard)
		return;
	if (hand - wheel->turn >= STD_HORIZON)
		wheel->turn = hand / STD_HORIZON * STD_HORIZON;
	/* In the last two turns, the end of time can be less than a horizon away: deadlines need a check. */
	wheel->quick = hand == wheel->head.now && wheel->turn <= WW_TIME_MAX - 2 * STD_HORIZON ? STD_HORIZON : 0;
}

/* When advance has to be called though nothing else needs it. */
static inline uint64_t end_of_turn(const struct ww_wheel *wheel)
{
	return wheel->standard && wheel->turn + STD_HORIZON < NO_EVENT ? wheel->turn + STD_HORIZON : NO_EVENT;
}

#define NOWHERE UINT32_MAX

/* A bit for each farther slot that holds a timer. They follow those outside and the special ones, in two words. */
static inline uint64_t farther_occupied(const struct ww_wheel *wheel)
{
	const uint64_t *words = &wheel->occupied[wheel->ring[wheel->rings].first / 64];
	const uint32_t before = OUTSIDE_SLOTS + 1 + DUE_SLOTS;

	return words[0] >> before | words[1] << (64 - before);
}

/* No timer of the i-th farther slot is due before this. */
static inline uint64_t farther_boundary(const struct ww_wheel *wheel, uint32_t i)
{
	uint64_t unit = wheel->farther;

	/* Its bit is set only while it is pre-demoted. */
	if (!(unit >> i & 1))
		unit = ((unit >> i) + 1) << i;
	if (unit < wheel->farther_min)
		unit = wheel->farther_min;
	return unit * wheel->ring[wheel->rings + 1].span;
}

/* The farther slots are counted from `time` on, where one of them is demoted. */
static inline void farther_begin(struct ww_wheel *wheel, uint64_t time)
{
	wheel->farther = wheel->farther_min = time / wheel->ring[wheel->rings + 1].span;
}

/*
 * The slot of a timer that is too far even for the ring outside the wheels. Time is cut into units of FARTHER_SPAN
 * horizons, and a timer goes to the slot of the highest bit in which its unit differs from `farther`, as in a radix heap
 * (R. Ahuja, K. Mehlhorn, J. Orlin and R. Tarjan, 1990). If that is 0100:
 *
 *     slot 0    0101            demoted when unit 0101 begins
 *     slot 1    0110 to 0111                      0110
 *     slot 3    1000 to 1111                      1000; slot 2 would begin at 0100, and is empty
 *
 * When the lowest of them that holds timers is demoted, its unit is the new `farther`. Every timer goes to a lower slot,
 * or into the ring: it is demoted at most once for each bit. One that is alone waits for its own unit, farther_min.
 * Pre-demotion sets `farther` ahead of time. The slot's bit in it is 1 then, and the rest of the slot waits for it.
 */
static __attribute__((noinline)) uint32_t slot_farther(struct ww_wheel *wheel, uint64_t deadline)
{
	const struct ring *ring = &wheel->ring[wheel->rings + 1];
	uint64_t unit = deadline / ring->span;
	uint64_t hand = wheel->head.hand / ring->span;
	uint32_t i;

	if (!farther_occupied(wheel)) {
		if (wheel->farther < hand)
			wheel->farther = hand;
		wheel->farther_min = unit;
	}
	/* The first one may have been cancelled, and its unit passed. */
	if (wheel->farther_min <= hand)
		wheel->farther_min = hand + 1;
	if (wheel->farther_min > unit)
		wheel->farther_min = unit;
	i = 63 - (uint32_t)__builtin_clzll(unit ^ wheel->farther);
	note_pre_demotion(wheel, farther_boundary(wheel, i) - ring->lead);
	return ring->first + i;
}

/* The ring's slot for a deadline. */
static inline uint32_t slot_in(const struct ring *ring, uint64_t deadline)
{
	return ring->first + (uint32_t)(deadline / ring->span % ring->slots);
}

/*
 * since / divisor with one multiplication by 2^32 / divisor, rounded up to a constant of at most 31 bits, which is
 * short enough to be part of the instruction. It is exact while the error, reciprocal * divisor - 2^32, times `since`
 * is below 2^32 (T. Granlund and P. Montgomery, PLDI 1994).
 */
#define RECIPROCAL(divisor) ((UINT64_C(1) << 32) / (divisor) + 1)
#define IS_EXACT(divisor, most) ((RECIPROCAL(divisor) * (divisor) - (UINT64_C(1) << 32)) * (most) < UINT64_C(1) << 32)
_Static_assert(IS_EXACT(STD_MINUTE, 2 * STD_HORIZON) && IS_EXACT(STD_HOUR, 2 * STD_HORIZON), "quotients are exact");

static inline uint32_t quotient(uint32_t since, uint64_t divisor)
{
	return (uint32_t)(since * RECIPROCAL(divisor) >> 32);
}

/*
 * Requires that `left`, from the hand to the deadline, is at most the horizon. The deadline is then less than two turns
 * from the start of the turn, and quotient is exact.
 */
static inline uint32_t slot_near(const struct ww_wheel *wheel, uint64_t left, uint64_t deadline)
{
	uint32_t since = (uint32_t)(deadline - wheel->turn);
	uint32_t hour;

	if (left < STD_MINUTE)
		return since - quotient(since, STD_MINUTE) * STD_SECONDS;
	hour = quotient(since, STD_HOUR);
	if (left < STD_HOUR)
		return STD_FIRST_1 + quotient(since, STD_MINUTE) - hour * STD_MINUTES;
	return STD_FIRST_2 + (hour < STD_DAYS * STD_HOURS ? hour : hour - STD_DAYS * STD_HOURS);
}

/* Requires deadline > hand, as do the next two. */
static inline uint32_t slot_standard(struct ww_wheel *wheel, uint64_t hand, uint64_t deadline)
{
	uint64_t left = deadline - hand;

	if (left <= STD_HORIZON)
		return slot_near(wheel, left, deadline);
	if (left < STD_HORIZON * OUTSIDE_SLOTS)
		return STD_OUTSIDE + (uint32_t)(deadline / STD_HORIZON % OUTSIDE_SLOTS);
	return slot_farther(wheel, deadline);
}

static inline uint32_t slot_general(struct ww_wheel *wheel, uint64_t hand, uint64_t deadline)
{
	uint64_t left = deadline - hand;

	for (const struct ring *ring = wheel->ring; ring <= &wheel->ring[wheel->rings]; ring++)
		if (left < ring->limit)
			return slot_in(ring, deadline);
	return slot_farther(wheel, deadline);
}

static inline uint32_t slot_for(struct ww_wheel *wheel, int standard, uint64_t hand, uint64_t deadline)
{
	return standard ? slot_standard(wheel, hand, deadline) : slot_general(wheel, hand, deadline);
}

/* The less frequent cases of file_timer. */
static __attribute__((noinline)) int file_timer_otherwise(
    struct ww_wheel *wheel, struct ww_timer *timer, uint64_t deadline, uint32_t periodic)
{
	uint64_t hand = wheel->head.hand;

	if (deadline > hand)
		return link_timer(wheel, timer, deadline, periodic, slot_for(wheel, wheel->standard, hand, deadline));
	wheel->head.event = 0;
	wheel->head.to_end = 0;
	return link_timer(wheel, timer, deadline, periodic, wheel->due);
}

/* File an idle timer by its deadline. One at or before the hand is collected for the next call of advance. */
static inline int file_timer(struct ww_wheel *wheel, struct ww_timer *timer, uint64_t deadline, uint32_t periodic)
{
	uint64_t left = deadline - wheel->head.hand;

	if (left - 1 < wheel->quick)
		return link_timer(wheel, timer, deadline, periodic, slot_near(wheel, left, deadline));
	return file_timer_otherwise(wheel, timer, deadline, periodic);
}

#endif
