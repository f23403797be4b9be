#ifndef WW_WHEEL_PLACE_H
#define WW_WHEEL_PLACE_H

/*
 * Which slot a deadline belongs to: the lowest ring that fits what remains. The default geometry has a copy of this in
 * constants, because the compiler turns a division by a constant into a multiplication and the general one costs more
 * than all the rest of scheduling; wheel.c builds both from one table and refuses to be compiled where they differ.
 */

#include "wheel_internal.h"

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

struct spot {
	uint32_t place;
	uint64_t event; /* when the slot may first need attention: its tick, or the start of draining it ahead */
};

/* No place: what is filed does not come from a slot that is being walked. */
#define NOWHERE UINT32_MAX

/*
 * Where a timer waits that is too far even for the ring outside the wheels: in one of two slots that are looked through
 * half a turn of that ring before the first of their timers has to be in it. So every look lets in all of the next half
 * turn, and a timer is looked at once in half a turn at most. The slot that is looked through first takes what is to be
 * looked at then or before, the other one the rest; what must wait on goes from the one that is walked to the other.
 */
static __attribute__((noinline)) struct spot spot_farther(struct ww_wheel *wheel, uint64_t deadline, uint32_t from)
{
	const struct ring *ring = &wheel->ring[wheel->rings + 1];
	uint64_t boundary = (deadline / ring->span - OUTSIDE_SLOTS / 2) * ring->span;
	uint32_t slot;

	for (slot = 0; slot < 2; slot++)
		if (slot_count(&wheel->slot[ring->first + slot]) == 0)
			wheel->farther_at[slot] = WW_NEVER;
	if (from == ring->first || from == ring->first + 1)
		slot = from == ring->first;
	else {
		uint32_t first = wheel->farther_at[1] < wheel->farther_at[0];
		slot = boundary <= wheel->farther_at[first] ? first : !first;
	}
	if (boundary < wheel->farther_at[slot])
		wheel->farther_at[slot] = boundary;
	return (struct spot){ring->first + slot, boundary - ring->lead};
}

/* The ring's own slot for a deadline. */
static inline struct spot spot_in(const struct ring *ring, uint64_t deadline)
{
	uint64_t count = deadline / ring->span;

	return (struct spot){ring->first + (uint32_t)(count % ring->slots), count * ring->span - ring->lead};
}

/* Requires deadline > hand, as all of these. */
static inline struct spot spot_standard(struct ww_wheel *wheel, uint64_t hand, uint64_t deadline, uint32_t from)
{
	uint64_t left = deadline - hand;

	if (left < STD_MINUTE)
		return (struct spot){(uint32_t)(deadline % STD_SECONDS), deadline};
	if (left < STD_HOUR) {
		uint64_t minute = deadline / STD_MINUTE;
		return (struct spot){STD_FIRST_1 + (uint32_t)(minute % STD_MINUTES), minute * STD_MINUTE - STD_LEAD_1};
	}
	if (left <= STD_HORIZON) {
		uint64_t hour = deadline / STD_HOUR;
		return (struct spot){
		    STD_FIRST_2 + (uint32_t)(hour % (STD_DAYS * STD_HOURS)), hour * STD_HOUR - STD_LEAD_2};
	}
	if (left < STD_HORIZON * OUTSIDE_SLOTS) {
		uint64_t week = deadline / STD_HORIZON;
		return (struct spot){
		    STD_OUTSIDE + (uint32_t)(week % OUTSIDE_SLOTS), week * STD_HORIZON - STD_LEAD_OUTSIDE};
	}
	return spot_farther(wheel, deadline, from);
}

static inline struct spot spot_general(struct ww_wheel *wheel, uint64_t hand, uint64_t deadline, uint32_t from)
{
	uint64_t left = deadline - hand;

	for (const struct ring *ring = wheel->ring; ring <= &wheel->ring[wheel->rings]; ring++)
		if (left < ring->limit)
			return spot_in(ring, deadline);
	return spot_farther(wheel, deadline, from);
}

static inline struct spot spot_of(struct ww_wheel *wheel, int standard, uint64_t hand, uint64_t deadline, uint32_t from)
{
	return standard ? spot_standard(wheel, hand, deadline, from) : spot_general(wheel, hand, deadline, from);
}

/*
 * Let advance know of something that needs it at `event`. The wheel's event is never after its drain, so that one
 * comparison tells the frequent case, in which neither changes.
 */
static inline void note_event(struct ww_wheel *wheel, uint32_t place, uint64_t event)
{
	if (event >= wheel->drain)
		return;
	if (event < wheel->head.event)
		wheel->head.event = event;
	if (place >= 64)
		wheel->drain = event;
}

static inline void file_at(struct ww_wheel *wheel, struct ww_timer *timer, struct spot spot)
{
	link_timer(wheel, timer, spot.place);
	note_event(wheel, spot.place, spot.event);
}

/* What is not the frequent case of file_timer: a deadline at or before the hand, or a geometry of the user's. */
static __attribute__((noinline)) void file_timer_otherwise(struct ww_wheel *wheel, struct ww_timer *timer)
{
	if (timer->ww_deadline > wheel->head.hand)
		file_at(wheel, timer, spot_of(wheel, wheel->standard, wheel->head.hand, timer->ww_deadline, NOWHERE));
	else {
		link_timer(wheel, timer, wheel->due);
		wheel->head.event = 0;
	}
}

/* File an idle timer by its deadline; what is at or before the hand is collected for the next call of advance. */
static inline void file_timer(struct ww_wheel *wheel, struct ww_timer *timer)
{
	uint64_t hand = wheel->head.hand;

	if (timer->ww_deadline > hand && wheel->standard)
		file_at(wheel, timer, spot_standard(wheel, hand, timer->ww_deadline, NOWHERE));
	else
		file_timer_otherwise(wheel, timer);
}

#endif
