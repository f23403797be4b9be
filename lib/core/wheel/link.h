#ifndef LIB_CORE_WHEEL_LINK_H
#define LIB_CORE_WHEEL_LINK_H

/*
 * Linking and unlinking: all that changes a slot's lists, its count and its bits. wheel_internal.h shows the lists;
 * place.h finds the slot.
 */

#include "lib/core/wheel/wheel_internal.h"

/* ---- The members of a timer that say where it is */

/*
 * Two neighbouring members are written with one store where the machine has such stores. A store that misses the caches
 * delays those behind it, and the number of stores that can wait limits schedules and cancels among millions of timers.
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

/* The hint that points to `other`: its address in units of HINT_UNIT, without the high bits. */
static inline uint64_t hint_to(const struct ww_timer *other)
{
	return (uint64_t)((uintptr_t)other / HINT_UNIT) << WHERE_HINT;
}

/* The address nearest to the timer whose low bits are those of its hint. */
static inline void *hinted(const struct ww_timer *timer)
{
	uint32_t distance = (uint32_t)(timer->ww_where >> WHERE_HINT) - (uint32_t)((uintptr_t)timer / HINT_UNIT);

	return (void *)((uintptr_t)timer + (uintptr_t)(intptr_t)(int32_t)distance * HINT_UNIT);
}

/* ---- What advance has to know of a slot */

/* Something needs advance at `event`. */
static inline void note_event(struct ww_wheel *wheel, uint64_t event)
{
	if (event < wheel->head.event)
		wheel->head.event = event;
}

/* A slot needs pre-demotion from `event` on. The wheel's event is never later than its pre-demotion. */
static inline void note_pre_demotion(struct ww_wheel *wheel, uint64_t event)
{
	note_event(wheel, event);
	if (event < wheel->pre_demotion)
		wheel->pre_demotion = event;
}

/*
 * A slot has got its first timer, or so many that it is pre-demoted: note when advance has to come for it. The special
 * slots and those farther than all rings have other means. Returns WW_OK so that a function can end with a call of this
 * one: the compiler turns that into a jump, and the function needs no stack.
 */
static __attribute__((noinline)) int slot_grew(struct ww_wheel *wheel, const struct ww_timer *timer)
{
	uint32_t slot = timer_slot(timer);
	const struct ring *ring = wheel->ring;
	uint64_t bit = UINT64_C(1) << slot % 64;
	uint64_t boundary;

	wheel->occupied[slot / 64] |= bit;
	if (slot_count(wheel, slot) > PRE_DEMOTE_MIN)
		wheel->large[slot / 64] |= bit;
	if (slot >= wheel->late)
		return WW_OK;
	while (slot >= ring[1].first)
		ring++;
	boundary = timer_deadline(timer) / ring->span * ring->span;
	note_event(wheel, boundary);
	if (ring != wheel->ring && (wheel->large[slot / 64] & bit))
		note_pre_demotion(wheel, boundary - ring->lead);
	return WW_OK;
}

/* ---- One timer */

/*
 * The lane of the next timer to be linked, in whichever slot. Lanes do not take turns: a program that schedules several
 * kinds of timers in turn would fill one lane with one kind. The top bits of the count of links, multiplied by 2^32
 * divided by the golden ratio, spread any few links evenly (D. Knuth, The Art of Computer Programming, volume 3, 6.4).
 * All slots share one count, because a slot's own would have to be loaded first.
 */
static inline uint32_t next_lane(struct ww_wheel *wheel)
{
	return (uint32_t)wheel->filed++ * UINT32_C(0x9e3779b1) / (UINT32_MAX / LANES + 1);
}

/* Put an idle timer at the head of one of the slot's lanes. `periodic` is WHERE_PERIODIC or 0. */
static inline int link_timer(
    struct ww_wheel *wheel, struct ww_timer *timer, uint64_t deadline, uint32_t periodic, uint32_t slot)
{
	struct ww_timer **lane = &wheel->lane[slot * LANES + next_lane(wheel)];
	struct ww_timer *first = *lane;
	uint32_t count = wheel->count[slot];

	timer_set_links(timer, first, lane);
	timer_set_deadline_and_where(timer, deadline, hint_to(first->ww_next) | wheel->tag | periodic | slot);
	first->ww_pprev = &timer->ww_next;
	*lane = timer;
	wheel->count[slot] = count + 1;
	return (count & ~PRE_DEMOTE_MIN) == 0 ? slot_grew(wheel, timer) : WW_OK;
}

/* Link it with the deadline and the period that it has. */
static inline int link_again(struct ww_wheel *wheel, struct ww_timer *timer, uint32_t slot)
{
	return link_timer(wheel, timer, timer_deadline(timer), timer_periodic(timer), slot);
}

static inline void slot_vacated(struct ww_wheel *wheel, uint32_t slot)
{
	wheel->occupied[slot / 64] &= ~(UINT64_C(1) << slot % 64);
	wheel->large[slot / 64] &= ~(UINT64_C(1) << slot % 64);
}

/* Leaves the deadline set; the caller marks the timer idle. `slot` is the timer's own. */
static inline void unlink_from(struct ww_wheel *wheel, struct ww_timer *timer, uint32_t slot)
{
	struct ww_timer *next = timer->ww_next;
	struct ww_timer **pprev = timer->ww_pprev;

	*pprev = next;
	next->ww_pprev = pprev;
	if (--wheel->count[slot] == 0)
		slot_vacated(wheel, slot);
}

static inline void unlink_timer(struct ww_wheel *wheel, struct ww_timer *timer)
{
	unlink_from(wheel, timer, timer_slot(timer));
}

/*
 * Whether a pending timer is another wheel's, or was overwritten. The tag is always checked: to unlink another wheel's
 * timer would leave that wheel with a wrong count, and walks of it without end. Other checks load the neighbours' cache
 * lines, and only debug builds make them.
 */
static inline int timer_broken(const struct ww_wheel *wheel, const struct ww_timer *timer)
{
	if (!timer_is_tagged(wheel, timer))
		return 1;
#ifdef WW_DEBUG
	return (timer_periodic(timer) && timer->ww_period == 0) || !timer->ww_pprev || timer->ww_to_end > TIME_END ||
	       timer_slot(timer) >= wheel->slots || *timer->ww_pprev != timer ||
	       (timer->ww_next != &wheel->nil && timer->ww_next->ww_pprev != &timer->ww_next);
#else
	return 0;
#endif
}

/* ---- All timers of a slot */

/* A walk through the lanes of a slot: the next timer of each. */
struct lane_walk {
	struct ww_timer *at[LANES];
};

/* Empty the slot for a walk that nothing interrupts. The count stays. */
static inline struct lane_walk detach(struct ww_wheel *wheel, uint32_t slot)
{
	struct ww_timer **lanes = slot_lanes(wheel, slot);
	struct lane_walk walk;

	for (uint32_t lane = 0; lane < LANES; lane++) {
		walk.at[lane] = lanes[lane];
		__builtin_prefetch(walk.at[lane], 1);
		lanes[lane] = &wheel->nil;
	}
	return walk;
}

/* Put back what the walk has not come to: `left` timers. The slot is empty, as demoted timers go to other slots. */
static inline void attach(struct ww_wheel *wheel, uint32_t slot, const struct lane_walk *walk, uint32_t left)
{
	struct ww_timer **lanes = slot_lanes(wheel, slot);

	for (uint32_t lane = 0; lane < LANES; lane++) {
		lanes[lane] = walk->at[lane];
		walk->at[lane]->ww_pprev = &lanes[lane];
	}
	wheel->count[slot] = left;
	if (left == 0)
		slot_vacated(wheel, slot);
}

#endif
