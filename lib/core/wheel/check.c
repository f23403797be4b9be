/* Every invariant of the wheel, walked. */

#include "lib/core/wheel/place.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

/* Where the first broken invariant is described. */
struct finding {
	char *text;
	size_t size;
};

__attribute__((format(printf, 2, 3))) static int broken(const struct finding *finding, const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	if (finding->size)
		(void)vsnprintf(finding->text, finding->size, format, arguments);
	va_end(arguments);
	return WW_ECORRUPT;
}

/* The ring that a slot belongs to, NULL for the special slots. */
static const struct ring *ring_of(const struct ww_wheel *wheel, uint32_t slot)
{
	for (uint32_t r = 0; r <= wheel->rings + 1; r++)
		if (slot - wheel->ring[r].first < wheel->ring[r].slots)
			return &wheel->ring[r];
	return NULL;
}

/* The time at which the slot next comes round: no timer in it may have an earlier deadline. */
static uint64_t slot_begins(const struct ww_wheel *wheel, uint32_t slot)
{
	const struct ring *ring = ring_of(wheel, slot);

	if (!ring)
		return slot == wheel->late ? ring_boundary(&wheel->ring[1], wheel->head.hand, 1) : 0;
	if (ring == &wheel->ring[wheel->rings + 1])
		return farther_boundary(wheel, slot - ring->first);
	uint64_t hand = wheel->head.hand / ring->span % ring->slots;
	uint64_t steps = (slot - ring->first + ring->slots - hand) % ring->slots;
	/*
	 * The slot at the hand stands for the time a turn ahead, but ring 0's while a budget holds its expiries back.
	 */
	if (steps == 0 && ring != wheel->ring)
		steps = ring->slots;
	return ring_boundary(ring, wheel->head.hand, steps);
}

static int check_timer(const struct ww_wheel *wheel, uint32_t slot, const struct ww_timer *timer, uint64_t begins,
    const struct finding *finding)
{
	if (!timer_is_tagged(wheel, timer))
		return broken(finding,
		    "timer %p in slot %u carries another wheel's mark: it was overwritten or freed while "
		    "pending, or belongs to another wheel",
		    (const void *)timer, slot);
	if (timer_slot(timer) != slot)
		return broken(finding, "timer %p is in slot %u but says %u: it was overwritten while pending",
		    (const void *)timer, slot, timer_slot(timer));
	if (!timer_is_pending(timer) || timer->ww_to_end > TIME_END)
		return broken(
		    finding, "timer %p has no valid deadline: it was overwritten while pending", (const void *)timer);
	if (timer_deadline(timer) < begins)
		return broken(finding, "timer %p has deadline %" PRIu64 ", before its slot %u comes round at %" PRIu64,
		    (const void *)timer, timer_deadline(timer), slot, begins);
	if (timer_periodic(timer) && timer->ww_period - 1 >= WW_TIME_MAX)
		return broken(
		    finding, "timer %p has no valid period: it was overwritten while pending", (const void *)timer);
	return WW_OK;
}

static int check_slot(const struct ww_wheel *wheel, uint32_t slot, const struct finding *finding)
{
	struct ww_timer *const *lanes = &wheel->lane[slot * LANES];
	uint64_t begins = slot_begins(wheel, slot);
	uint32_t seen = 0;

	for (uint32_t lane = 0; lane < LANES; lane++) {
		struct ww_timer *const *link = &lanes[lane];
		for (; *link != &wheel->nil; link = &(*link)->ww_next) {
			if (!*link)
				return broken(finding,
				    "a list of slot %u ends in NULL: a timer was overwritten while pending", slot);
			if ((*link)->ww_pprev != link)
				return broken(finding,
				    "timer %p in slot %u does not point back to what points to it: it was overwritten "
				    "or freed while pending",
				    (const void *)*link, slot);
			if (seen++ == slot_count(wheel, slot))
				return broken(finding, "slot %u holds more timers than its count, %u", slot,
				    slot_count(wheel, slot));
			int error = check_timer(wheel, slot, *link, begins, finding);
			if (error)
				return error;
		}
	}
	if (seen != slot_count(wheel, slot))
		return broken(finding, "slot %u holds %u timers and counts %u", slot, seen, slot_count(wheel, slot));
	if ((wheel->occupied[slot / 64] >> slot % 64 & 1) != (seen != 0))
		return broken(finding, "the occupancy bit of slot %u is wrong: it holds %u timers", slot, seen);
	if (seen > PRE_DEMOTE_MIN && !(wheel->large[slot / 64] >> slot % 64 & 1))
		return broken(finding, "slot %u holds %u timers and would not be pre-demoted", slot, seen);
	return WW_OK;
}

static int is_slot(const struct ww_wheel *wheel, uint32_t slot)
{
	return ring_of(wheel, slot) || slot >= wheel->late;
}

/* What the default geometry counts deadlines from, and whether it may file near ones without further questions. */
static int check_standard(const struct ww_wheel *wheel, const struct finding *finding)
{
	uint64_t horizon = wheel->ring[wheel->rings].span;

	if (wheel->quick && (!wheel->standard || wheel->head.hand != wheel->head.now))
		return broken(finding,
		    "delays up to %" PRIu64 " are filed without a question, though the hand is at %" PRIu64
		    " and the time %" PRIu64,
		    wheel->quick, wheel->head.hand, wheel->head.now);
	if (!wheel->standard)
		return WW_OK;
	if (wheel->quick > horizon || (wheel->quick && wheel->turn > WW_TIME_MAX - 2 * horizon))
		return broken(finding, "delays up to %" PRIu64 " are filed without a question", wheel->quick);
	if (wheel->turn % horizon || wheel->turn > wheel->head.hand || wheel->head.hand - wheel->turn >= horizon)
		return broken(finding, "the hand is at %" PRIu64 ", not in the turn that began at %" PRIu64,
		    wheel->head.hand, wheel->turn);
	return WW_OK;
}

static int check_times(const struct ww_wheel *wheel, const struct finding *finding)
{
	uint64_t next;

	if (wheel->head.now > WW_TIME_MAX || wheel->head.hand > wheel->head.now)
		return broken(
		    finding, "the hand is at %" PRIu64 " and the time %" PRIu64, wheel->head.hand, wheel->head.now);
	if (wheel->head.hand == wheel->head.now && wheel->head.event > wheel->head.now &&
	    slot_count(wheel, wheel->head.hand % wheel->ring[0].slots))
		return broken(
		    finding, "the slot of the time %" PRIu64 " is not empty, though that has expired", wheel->head.now);
	const struct ring *farther = &wheel->ring[wheel->rings + 1];
	for (uint32_t i = 0; i < farther->slots; i++)
		if (slot_count(wheel, farther->first + i) && farther_boundary(wheel, i) <= wheel->head.hand)
			return broken(
			    finding, "a farther slot was to be demoted at %" PRIu64, farther_boundary(wheel, i));
	if (ww_wheel_next(wheel, &next) && next < wheel->head.event)
		return broken(finding, "the next call is needed at %" PRIu64 " but expected at %" PRIu64 " only", next,
		    wheel->head.event);
	return WW_OK;
}

int ww_wheel_check(const struct ww_wheel *wheel, char *text, size_t size)
{
	struct finding finding = {text, size};
	int error;

	if (!wheel || (!text && size))
		return WW_EINVAL;
	error = check_times(wheel, &finding);
	if (!error)
		error = check_standard(wheel, &finding);
	for (uint32_t slot = 0; !error && slot < wheel->slots; slot++) {
		if (is_slot(wheel, slot))
			error = check_slot(wheel, slot, &finding);
		else if (slot_count(wheel, slot))
			error = broken(&finding, "slot %u is no slot and holds timers", slot);
	}
	return error;
}
