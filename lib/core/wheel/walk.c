/* Operations on all pending timers: drain, each, statistics. */

#include "lib/core/wheel/link.h"

#include <string.h>

static uint64_t pending_in(const struct ww_wheel *wheel, uint32_t from, uint32_t to)
{
	uint64_t pending = 0;

	for (uint32_t slot = from; slot < to; slot++)
		pending += slot_count(wheel, slot);
	return pending;
}

/* Take timers out of a slot until it is empty, 0, or *count is the capacity, 1. */
static int drain_slot(struct ww_wheel *wheel, uint32_t slot, struct ww_expiry *batch, size_t capacity, size_t *count)
{
	struct ww_timer **lanes = slot_lanes(wheel, slot);

	for (uint32_t lane = 0; slot_count(wheel, slot); lane = (lane + 1) % LANES) {
		struct ww_timer *timer = lanes[lane];
		if (timer == &wheel->nil)
			continue;
		if (timer_broken(wheel, timer))
			return WW_ECORRUPT;
		if (*count == capacity)
			return 1;
		__builtin_prefetch(hinted(timer), 1);
		unlink_timer(wheel, timer);
		batch[(*count)++] = (struct ww_expiry){timer, timer_deadline(timer), 0};
		timer_set_idle(timer);
	}
	return 0;
}

int ww_wheel_drain(struct ww_wheel *wheel, struct ww_expiry *batch, size_t capacity, size_t *count)
{
	size_t taken = 0;
	int more = 0;

	if (!wheel || !batch || !count || capacity == 0)
		return WW_EINVAL;
	for (uint32_t slot = 0; !more && slot < wheel->slots; slot++)
		more = drain_slot(wheel, slot, batch, capacity, &taken);
	wheel->drained += taken;
	*count = taken;
	return more;
}

int ww_wheel_each(struct ww_wheel *wheel, ww_each_fn *each, void *user)
{
	if (!wheel || !each)
		return WW_EINVAL;
	for (uint32_t slot = 0; slot < wheel->slots; slot++) {
		for (uint32_t lane = 0; lane < LANES; lane++) {
			struct ww_timer *timer = wheel->lane[slot * LANES + lane];
			while (timer != &wheel->nil) {
				if (timer_broken(wheel, timer))
					return WW_ECORRUPT;
				struct ww_timer *next = timer->ww_next;
				int stop = each(timer, timer_deadline(timer), user);
				if (stop)
					return stop;
				timer = next;
			}
		}
	}
	return 0;
}

/* The highest ring may be two levels': slots that begin within a turn of the lower one are its own. */
void ww_wheel_level_slots(const struct ww_wheel *wheel, uint32_t level, uint64_t span, uint64_t slots[WW_SLOTS_MAX])
{
	const struct ring *ring = &wheel->ring[level < wheel->rings ? level : wheel->rings - 1];
	uint32_t count = wheel->level_slots[level];
	int shared = ring->slots != wheel->level_slots[level < wheel->rings ? level : level - 1];
	uint64_t lower_turn = level < wheel->rings ? span * count : span;

	memset(slots, 0, count * sizeof *slots);
	for (uint64_t step = 1; step <= ring->slots; step++) {
		uint64_t begin = ring_boundary(ring, wheel->head.hand, step);
		int is_lower = begin - wheel->head.hand < lower_turn;
		if (!shared || is_lower == (level < wheel->rings))
			slots[begin / span % count] +=
			    slot_count(wheel, ring->first + begin / ring->span % ring->slots);
	}
}

static void count_levels(const struct ww_wheel *wheel, struct ww_stats *stats)
{
	uint64_t slots[WW_SLOTS_MAX];
	uint64_t span = 1;

	for (uint32_t l = 0; l < wheel->levels; l++) {
		struct ww_level_stats *level = &stats->level[l];
		*level = (struct ww_level_stats){.span = span, .slots = wheel->level_slots[l]};
		if (l == 1 && wheel->rings > 1)
			level->pending = slot_count(wheel, wheel->late);
		ww_wheel_level_slots(wheel, l, span, slots);
		for (uint32_t slot = 0; slot < level->slots; slot++) {
			level->pending += slots[slot];
			level->occupied += slots[slot] != 0;
			if (slots[slot] > level->largest)
				level->largest = slots[slot];
		}
		span *= level->slots;
	}
}

int ww_wheel_stats(const struct ww_wheel *wheel, struct ww_stats *stats)
{
	if (!wheel || !stats)
		return WW_EINVAL;
	const struct ring *outside = &wheel->ring[wheel->rings];
	*stats = (struct ww_stats){
	    .now = wheel->head.now,
	    .pending = pending_in(wheel, 0, wheel->slots),
	    .outside = pending_in(wheel, outside->first, outside->first + outside->slots) +
	               pending_in(wheel, outside[1].first, outside[1].first + outside[1].slots) +
	               (wheel->rings == 1 ? slot_count(wheel, wheel->late) : 0),
	    .due = pending_in(wheel, wheel->due_first, wheel->due_first + DUE_SLOTS),
	    .scheduled = wheel->filed - wheel->demoted - wheel->renewed - wheel->moved,
	    .drained = wheel->drained,
	    .expired = wheel->expired,
	    .demoted = wheel->demoted,
	    .bytes = wheel->bytes,
	    .levels = wheel->levels,
	};
	/* A timer that was scheduled and has not left in another way was cancelled: cancel itself need not count. */
	stats->cancelled = stats->scheduled - (wheel->expired - wheel->renewed) - wheel->drained - stats->pending;
	count_levels(wheel, stats);
	return WW_OK;
}
