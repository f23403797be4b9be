/* What concerns all pending timers: drain, each, statistics. */

#include "lib/core/wheel/link.h"

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

static void count_slot(struct ww_level_stats *stats, uint64_t timers)
{
	stats->pending += timers;
	stats->occupied += timers != 0;
	if (timers > stats->largest)
		stats->largest = timers;
}

/* The highest ring may be two levels': slots that begin within a turn of the lower one are its own. */
static void count_shared(const struct ww_wheel *wheel, const struct ring *ring, struct ww_level_stats *lower)
{
	struct ww_level_stats *upper = lower + 1;
	uint64_t slots[WW_SLOTS_MAX] = {0};

	for (uint32_t step = 1; step <= ring->slots; step++) {
		uint64_t begin = ring_boundary(ring, wheel->head.hand, step);
		uint64_t timers = slot_count(wheel, ring->first + begin / ring->span % ring->slots);
		if (begin - wheel->head.hand < upper->span)
			count_slot(lower, timers);
		else
			slots[begin / upper->span % upper->slots] += timers;
	}
	for (uint32_t slot = 0; slot < upper->slots; slot++)
		count_slot(upper, slots[slot]);
}

static void count_levels(const struct ww_wheel *wheel, struct ww_stats *stats)
{
	uint64_t span = 1;

	for (uint32_t level = 0; level < wheel->levels; level++) {
		stats->level[level].span = span;
		stats->level[level].slots = wheel->level_slots[level];
		span *= wheel->level_slots[level];
	}
	for (uint32_t r = 0; r < wheel->rings; r++) {
		const struct ring *ring = &wheel->ring[r];
		struct ww_level_stats *level = &stats->level[r];
		level->pending = r == 1 ? slot_count(wheel, wheel->late) : 0;
		if (ring->slots != level->slots)
			count_shared(wheel, ring, level);
		else
			for (uint32_t slot = 0; slot < ring->slots; slot++)
				count_slot(level, slot_count(wheel, ring->first + slot));
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
	    .outside = pending_in(wheel, outside->first, outside->first + outside->slots + 2) +
	               (wheel->rings == 1 ? slot_count(wheel, wheel->late) : 0),
	    .due = pending_in(wheel, wheel->due_first, wheel->due_first + DUE_SLOTS),
	    .scheduled = wheel->filed - wheel->demoted - wheel->renewed - wheel->moved,
	    .drained = wheel->drained,
	    .expired = wheel->expired,
	    .demoted = wheel->demoted,
	    .bytes = wheel->bytes,
	    .levels = wheel->levels,
	};
	/* Whoever was scheduled and has not left in another way was cancelled: cancel itself need not count. */
	stats->cancelled = stats->scheduled - (wheel->expired - wheel->renewed) - wheel->drained - stats->pending;
	count_levels(wheel, stats);
	return WW_OK;
}
