#ifndef LIB_CORE_WHEEL_PLACE_H
#define LIB_CORE_WHEEL_PLACE_H

/*
 * Which slot a deadline belongs to: the lowest ring that fits what remains. The default geometry has a copy of this in
 * constants, since a division by a constant is a multiplication, and a general one costs more than all the rest of
 * scheduling; wheel.c builds both from one table and refuses to be compiled where they differ.
 */

#include "lib/core/wheel/wheel_internal.h"

#define STD_SECONDS 60u
#define STD_MINUTES 60u
#define STD_HOURS 24u
#define STD_DAYS 7u
#define STD_MINUTE UINT64_C(60)
#define STD_HOUR UINT64_C(3600)
#define STD_HORIZON UINT64_C(604800)
/* Places: a ring begins at a word of the occupancy map; 60 and 60 slots take a word each, 168 take three. */
#define STD_FIRST_1 64u
#define STD_FIRST_2 128u
#define STD_OUTSIDE 320u
/* Leads: see drain_lead. */
#define STD_LEAD_1 10u
#define STD_LEAD_2 60u
#define STD_LEAD_OUTSIDE 1099u

/*
 * The hand has come to `hand`. The inline advance moves it too, within a turn of the default geometry's highest ring:
 * at the end of one, advance wants to be called.
 */
static inline void move_hand(struct ww_wheel *wheel, uint64_t hand)
{
	wheel->head.hand = hand;
	if (!wheel->standard)
		return;
	if (hand - wheel->turn >= STD_HORIZON)
		wheel->turn = hand / STD_HORIZON * STD_HORIZON;
	/* In the last two turns a horizon from now can be beyond the end of time, which would have to be refused. */
	wheel->quick = hand == wheel->head.now && wheel->turn <= WW_TIME_MAX - 2 * STD_HORIZON ? STD_HORIZON : 0;
}

/* When advance has to be called even if nothing else needs it. */
static inline uint64_t end_of_turn(const struct ww_wheel *wheel)
{
	return wheel->standard && wheel->turn + STD_HORIZON < NO_EVENT ? wheel->turn + STD_HORIZON : NO_EVENT;
}

/* No place: what is filed does not come from a slot that is being walked. */
#define NOWHERE UINT32_MAX

/* Let advance know of something that needs it at `event`. */
static inline void note_event(struct ww_wheel *wheel, uint64_t event)
{
	if (event < wheel->head.event)
		wheel->head.event = event;
}

/* The same of a slot that is to be drained ahead. The wheel's event is never after its drain. */
static inline void note_drain(struct ww_wheel *wheel, uint64_t event)
{
	note_event(wheel, event);
	if (event < wheel->drain)
		wheel->drain = event;
}

/*
 * Where a timer waits that is too far even for the ring outside the wheels: in one of two slots that are looked through
 * half a turn of that ring before the first of their timers has to be in it. So every look lets in all of the next half
 * turn, and a timer is looked at once in half a turn at most. The slot that is looked through first takes what is to be
 * looked at then or before, the other one the rest; what must wait on goes from the one that is walked to the other.
 */
static __attribute__((noinline)) uint32_t place_farther(struct ww_wheel *wheel, uint64_t deadline, uint32_t from)
{
	const struct ring *ring = &wheel->ring[wheel->rings + 1];
	uint64_t boundary = (deadline / ring->span - OUTSIDE_SLOTS / 2) * ring->span;
	uint32_t slot;

	for (slot = 0; slot < 2; slot++)
		if (slot_count(wheel, ring->first + slot) == 0)
			wheel->farther_at[slot] = WW_NEVER;
	if (from == ring->first || from == ring->first + 1)
		slot = from == ring->first;
	else {
		uint32_t first = wheel->farther_at[1] < wheel->farther_at[0];
		slot = boundary <= wheel->farther_at[first] ? first : !first;
	}
	if (boundary < wheel->farther_at[slot])
		wheel->farther_at[slot] = boundary;
	note_drain(wheel, boundary - ring->lead);
	return ring->first + slot;
}

/* The ring's own slot for a deadline. */
static inline uint32_t place_in(const struct ring *ring, uint64_t deadline)
{
	return ring->first + (uint32_t)(deadline / ring->span % ring->slots);
}

/*
 * since / divisor with one multiplication by 2^32 / divisor, rounded up to a constant of at most 31 bits, which is
 * short enough to be part of the instruction. It is exact as long as the error, reciprocal * divisor - 2^32, times `since` is
 * below 2^32 (T. Granlund and P. Montgomery, PLDI 1994).
 */
#define RECIPROCAL(divisor) ((UINT64_C(1) << 32) / (divisor) + 1)
#define IS_EXACT(divisor, most) ((RECIPROCAL(divisor) * (divisor) - (UINT64_C(1) << 32)) * (most) < UINT64_C(1) << 32)
_Static_assert(IS_EXACT(STD_MINUTE, 2 * STD_HORIZON) && IS_EXACT(STD_HOUR, 2 * STD_HORIZON), "quotients are exact");

static inline uint32_t quotient(uint32_t since, uint64_t divisor)
{
	return (uint32_t)(since * RECIPROCAL(divisor) >> 32);
}

/*
 * Requires that `left`, from the hand to the deadline, is the horizon at most. Counted from the start of the turn, the
 * deadline is less than two turns, of which quotient is exact.
 */
static inline uint32_t place_near(const struct ww_wheel *wheel, uint64_t left, uint64_t deadline)
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

/* Requires deadline > hand, as all of these. */
static inline uint32_t place_standard(struct ww_wheel *wheel, uint64_t hand, uint64_t deadline, uint32_t from)
{
	uint64_t left = deadline - hand;

	if (left <= STD_HORIZON)
		return place_near(wheel, left, deadline);
	if (left < STD_HORIZON * OUTSIDE_SLOTS)
		return STD_OUTSIDE + (uint32_t)(deadline / STD_HORIZON % OUTSIDE_SLOTS);
	return place_farther(wheel, deadline, from);
}

static inline uint32_t place_general(struct ww_wheel *wheel, uint64_t hand, uint64_t deadline, uint32_t from)
{
	uint64_t left = deadline - hand;

	for (const struct ring *ring = wheel->ring; ring <= &wheel->ring[wheel->rings]; ring++)
		if (left < ring->limit)
			return place_in(ring, deadline);
	return place_farther(wheel, deadline, from);
}

static inline uint32_t place_of(struct ww_wheel *wheel, int standard, uint64_t hand, uint64_t deadline, uint32_t from)
{
	return standard ? place_standard(wheel, hand, deadline, from) : place_general(wheel, hand, deadline, from);
}

/*
 * A slot of a ring holds its first timer, or as many as are drained ahead: let advance know when it is needed for that.
 * The special slots, and those farther than all rings, do so themselves. Returns WW_OK, as do the functions that end
 * with a call of this one: the compiler makes that a jump, and they need no stack.
 */
static __attribute__((noinline)) int slot_grew(struct ww_wheel *wheel, const struct ww_timer *timer)
{
	uint32_t place = timer_place(timer);
	const struct ring *ring = wheel->ring;
	uint64_t bit = UINT64_C(1) << place % 64;
	uint64_t boundary;

	wheel->occupied[place / 64] |= bit;
	if (slot_count(wheel, place) > DRAIN_AHEAD_MIN)
		wheel->large[place / 64] |= bit;
	if (place >= ring[wheel->rings + 1].first)
		return WW_OK;
	while (place >= ring[1].first)
		ring++;
	boundary = timer_deadline(timer) / ring->span * ring->span;
	note_event(wheel, boundary);
	if (ring != wheel->ring && (wheel->large[place / 64] & bit))
		note_drain(wheel, boundary - ring->lead);
	return WW_OK;
}

/*
 * The lane of the next timer that is linked, in whichever slot: not in turn, since a program that schedules timers of
 * several kinds in turn would put all of a kind into one lane, but the top bits of a product of the count of links by
 * 2^32 divided by the golden ratio, which spread every few of them evenly (D. Knuth, The Art of Computer Programming,
 * volume 3, 6.4). One count for all slots, since one of the slot's own would have to be loaded first.
 */
static inline uint32_t next_lane(struct ww_wheel *wheel)
{
	return (uint32_t)wheel->filed++ * UINT32_C(0x9e3779b1) / (UINT32_MAX / LANES + 1);
}

/* Put an idle timer at the head of one of the slot's lanes. `periodic` is WHERE_PERIODIC or 0. */
static inline int link_timer(
    struct ww_wheel *wheel, struct ww_timer *timer, uint64_t deadline, uint32_t periodic, uint32_t place)
{
	struct ww_timer **lane = &wheel->lane[place * LANES + next_lane(wheel)];
	struct ww_timer *first = *lane;
	uint32_t count = wheel->count[place];

	timer_set_links(timer, first, lane);
	timer_set_deadline_and_where(timer, deadline, hint_to(first->ww_next) | wheel->tag | periodic | place);
	first->ww_pprev = &timer->ww_next;
	*lane = timer;
	wheel->count[place] = count + 1;
	return (count & ~DRAIN_AHEAD_MIN) == 0 ? slot_grew(wheel, timer) : WW_OK;
}

/* The same with the deadline and the period that it has. */
static inline int link_again(struct ww_wheel *wheel, struct ww_timer *timer, uint32_t place)
{
	return link_timer(wheel, timer, timer_deadline(timer), timer_periodic(timer), place);
}

/* What is not the frequent case of file_timer. */
static __attribute__((noinline)) int file_timer_otherwise(
    struct ww_wheel *wheel, struct ww_timer *timer, uint64_t deadline, uint32_t periodic)
{
	uint64_t hand = wheel->head.hand;

	if (deadline > hand)
		return link_timer(
		    wheel, timer, deadline, periodic, place_of(wheel, wheel->standard, hand, deadline, NOWHERE));
	wheel->head.event = 0;
	wheel->head.to_end = 0;
	return link_timer(wheel, timer, deadline, periodic, wheel->due);
}

/* File an idle timer by its deadline; what is at or before the hand is collected for the next call of advance. */
static inline int file_timer(struct ww_wheel *wheel, struct ww_timer *timer, uint64_t deadline, uint32_t periodic)
{
	uint64_t left = deadline - wheel->head.hand;

	if (left - 1 < wheel->quick)
		return link_timer(wheel, timer, deadline, periodic, place_near(wheel, left, deadline));
	return file_timer_otherwise(wheel, timer, deadline, periodic);
}

#endif
