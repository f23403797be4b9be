/* Every invariant of the wheel, walked. */

#include "lib/core/wheel/wheel_internal.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

/* Where the first broken invariant is described. */
struct report {
	char *text;
	size_t size;
};

__attribute__((format(printf, 2, 3))) static int broken(const struct report *report, const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	if (report->size)
		(void)vsnprintf(report->text, report->size, format, arguments);
	va_end(arguments);
	return WW_ECORRUPT;
}

/* The ring that a place belongs to, NULL for the special slots. */
static const struct ring *ring_of(const struct ww_wheel *wheel, uint32_t place)
{
	for (uint32_t r = 0; r <= wheel->rings + 1; r++)
		if (place - wheel->ring[r].first < wheel->ring[r].slots)
			return &wheel->ring[r];
	return NULL;
}

/* The time at which the place next comes round: no timer in it may have an earlier deadline. */
static uint64_t place_begins(const struct ww_wheel *wheel, uint32_t place)
{
	const struct ring *ring = ring_of(wheel, place);

	if (!ring)
		return place == wheel->late ? ring_boundary(&wheel->ring[1], wheel->head.hand, 1) : 0;
	if (ring == &wheel->ring[wheel->rings + 1])
		return wheel->farther_at[place - ring->first];
	uint64_t hand = wheel->head.hand / ring->span % ring->slots;
	uint64_t steps = (place - ring->first + ring->slots - hand) % ring->slots;
	/*
	 * The slot at the hand stands for the time a turn ahead, but ring 0's while a budget holds its expiries back.
	 */
	if (steps == 0 && ring != wheel->ring)
		steps = ring->slots;
	return ring_boundary(ring, wheel->head.hand, steps);
}

static int check_timer(const struct ww_wheel *wheel, uint32_t place, const struct ww_timer *timer, uint64_t begins,
    const struct report *report)
{
	if (!timer_is_tagged(wheel, timer))
		return broken(report,
		    "timer %p in slot %u carries another wheel's mark: it was overwritten or freed while "
		    "pending, or belongs to another wheel",
		    (const void *)timer, place);
	if (timer_place(timer) != place)
		return broken(report, "timer %p is in slot %u but says %u: it was overwritten while pending",
		    (const void *)timer, place, timer_place(timer));
	if (!timer_is_pending(timer) || timer->ww_to_end > TIME_END)
		return broken(
		    report, "timer %p has no valid deadline: it was overwritten while pending", (const void *)timer);
	if (timer_deadline(timer) < begins)
		return broken(report, "timer %p has deadline %" PRIu64 ", before its slot %u comes round at %" PRIu64,
		    (const void *)timer, timer_deadline(timer), place, begins);
	if (timer_periodic(timer) && timer->ww_period - 1 >= WW_TIME_MAX)
		return broken(
		    report, "timer %p has no valid period: it was overwritten while pending", (const void *)timer);
	return WW_OK;
}

static int check_slot(const struct ww_wheel *wheel, uint32_t place, const struct report *report)
{
	struct ww_timer *const *lanes = &wheel->lane[place * LANES];
	uint64_t begins = place_begins(wheel, place);
	uint32_t seen = 0;

	for (uint32_t lane = 0; lane < LANES; lane++) {
		struct ww_timer *const *link = &lanes[lane];
		for (; *link != &wheel->nil; link = &(*link)->ww_next) {
			if (!*link)
				return broken(report,
				    "a list of slot %u ends in NULL: a timer was overwritten while pending", place);
			if ((*link)->ww_pprev != link)
				return broken(report,
				    "timer %p in slot %u does not point back to what points to it: it was overwritten "
				    "or freed while pending",
				    (const void *)*link, place);
			if (seen++ == slot_count(wheel, place))
				return broken(report, "slot %u holds more timers than its count, %u", place,
				    slot_count(wheel, place));
			int error = check_timer(wheel, place, *link, begins, report);
			if (error)
				return error;
		}
	}
	if (seen != slot_count(wheel, place))
		return broken(report, "slot %u holds %u timers and counts %u", place, seen, slot_count(wheel, place));
	if ((wheel->occupied[place / 64] >> place % 64 & 1) != (seen != 0))
		return broken(report, "the occupancy bit of slot %u is wrong: it holds %u timers", place, seen);
	if (seen > DRAIN_AHEAD_MIN && !(wheel->large[place / 64] >> place % 64 & 1))
		return broken(report, "slot %u holds %u timers and would not be drained ahead", place, seen);
	return WW_OK;
}

static int is_place(const struct ww_wheel *wheel, uint32_t place)
{
	return ring_of(wheel, place) || place >= wheel->late;
}

/* What the default geometry counts deadlines from, and whether it may file near ones without further questions. */
static int check_standard(const struct ww_wheel *wheel, const struct report *report)
{
	uint64_t horizon = wheel->ring[wheel->rings].span;

	if (wheel->quick && (!wheel->standard || wheel->head.hand != wheel->head.now))
		return broken(report,
		    "delays up to %" PRIu64 " are filed without a question, though the hand is at %" PRIu64
		    " and the time %" PRIu64,
		    wheel->quick, wheel->head.hand, wheel->head.now);
	if (!wheel->standard)
		return WW_OK;
	if (wheel->quick > horizon || (wheel->quick && wheel->turn > WW_TIME_MAX - 2 * horizon))
		return broken(report, "delays up to %" PRIu64 " are filed without a question", wheel->quick);
	if (wheel->turn % horizon || wheel->turn > wheel->head.hand || wheel->head.hand - wheel->turn >= horizon)
		return broken(report, "the hand is at %" PRIu64 ", not in the turn that began at %" PRIu64,
		    wheel->head.hand, wheel->turn);
	return WW_OK;
}

static int check_times(const struct ww_wheel *wheel, const struct report *report)
{
	uint64_t next;

	if (wheel->head.now > WW_TIME_MAX || wheel->head.hand > wheel->head.now)
		return broken(
		    report, "the hand is at %" PRIu64 " and the time %" PRIu64, wheel->head.hand, wheel->head.now);
	if (wheel->head.hand == wheel->head.now && wheel->head.event > wheel->head.now &&
	    slot_count(wheel, wheel->head.hand % wheel->ring[0].slots))
		return broken(
		    report, "the slot of the time %" PRIu64 " is not empty, though that has expired", wheel->head.now);
	for (uint32_t slot = 0; slot < 2; slot++)
		if (slot_count(wheel, wheel->ring[wheel->rings + 1].first + slot) &&
		    wheel->farther_at[slot] <= wheel->head.hand)
			return broken(
			    report, "what is farther was to be looked through at %" PRIu64, wheel->farther_at[slot]);
	if (ww_wheel_next(wheel, &next) && next < wheel->head.event)
		return broken(report, "the next call is needed at %" PRIu64 " but expected at %" PRIu64 " only", next,
		    wheel->head.event);
	return WW_OK;
}

int ww_wheel_check(const struct ww_wheel *wheel, char *text, size_t size)
{
	struct report report = {text, size};
	int error;

	if (!wheel || (!text && size))
		return WW_EINVAL;
	error = check_times(wheel, &report);
	if (!error)
		error = check_standard(wheel, &report);
	for (uint32_t place = 0; !error && place < wheel->places; place++) {
		if (is_place(wheel, place))
			error = check_slot(wheel, place, &report);
		else if (slot_count(wheel, place))
			error = broken(&report, "place %u is no slot and holds timers", place);
	}
	return error;
}
