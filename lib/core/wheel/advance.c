/*
 * The algorithm: how a hierarchical timing wheel (G. Varghese and T. Lauck, 1987) advances.
 *
 * The idea. Most timers are cancelled or moved long before they expire, so keeping them in order, as a heap does, is
 * wasted work. A wheel sorts a timer only as finely as its deadline is near. It files the timer in a slot of the lowest
 * level whose turn covers the time that is left: one division and one link. When the hand of time comes to a slot of an
 * upper level, its timers are *demoted*: filed anew by the time that is left then, at least one level lower. In the
 * lowest level a slot is one tick, and its timers expire. A cancel is an unlink, in whichever slot the timer is.
 *
 *     level    slots   a slot is     a turn is      holds timers with this left (default geometry, ticks of 1 s)
 *     0           60        1 s         1 min       below a minute
 *     1           60      1 min           1 h       below an hour
 *     2           24        1 h           1 d       below a day
 *     3            7        1 d          1 wk       up to a week, the horizon
 *     outside     48       1 wk         48 wk       below 48 weeks
 *     farther     39   32 wk and twice the one before             anything else
 *
 * A call of advance goes from stop to stop; a stop is a tick in which a timer expires or an occupied slot is demoted.
 * Bitmaps of occupied slots find the next stop, and whatever lies between two stops costs nothing. Every boundary of a
 * level is also one of the level below. A stop at the start of a turn of level 0 therefore demotes from the top down:
 *
 *     1. expire what was scheduled at or before the hand      expire_due
 *     2. expire the hand's slot of level 0                    expire_slot
 *     3. find the next stop, and end if it is in the future   next_stop
 *     4. move the hand there; at a boundary, demote           demote_boundary
 *     5. go on with 2
 *
 * A million timers in one slot would make its boundary a long pause. Such a slot is *pre-demoted*: from its lead on,
 * each tick demotes a share of it, and timers that do not fit the level below yet are put aside as late.
 *
 * What was given up:
 * - Order within a tick. Timers of one tick expire in no particular order.
 * - Exact wake-ups. The wheel also asks for a call when a slot is to be demoted, even if its timers were moved since.
 * - Cheap far timers. Linux's wheel (kernel/time/timer.c) never demotes: a timer may expire late by up to an eighth
 *   of its delay. Here a timer expires in its tick, and one that is a day away is filed anew twice.
 */

#include "lib/core/wheel/place.h"

/* ---- The next thing to do */

/* A slot with the boundary at which it is demoted. */
struct spot {
	uint32_t slot;
	uint64_t boundary;
};

#define NO_SPOT ((struct spot){NOWHERE, WW_NEVER})

/* The boundary of the first slot after the hand's whose bit is set in the ring's words, or WW_NEVER. */
static inline uint64_t next_boundary(const uint64_t *words, uint64_t hand, uint64_t span, uint32_t slots)
{
	uint64_t now = hand / span;
	uint32_t from = (uint32_t)((now + 1) % slots);
	uint32_t count = (slots + 63) / 64;
	uint32_t word = from / 64;
	uint64_t bits = words[word] & (~UINT64_C(0) << from % 64);

	/* One round more than there are words: the first word comes again at last, for its bits before `from`. */
	for (uint32_t round = 0; round <= count; round++) {
		/* The special slots share the word of the ring outside. */
		if (slots < 64)
			bits &= (UINT64_C(1) << slots) - 1;
		if (bits) {
			uint32_t found = word * 64 + (uint32_t)__builtin_ctzll(bits);
			return (now + 1 + (found >= from ? found - from : found + slots - from)) * span;
		}
		word = word + 1 == count ? 0 : word + 1;
		bits = words[word];
	}
	return WW_NEVER;
}

/* The slot farther than all rings that is demoted next: the one that is pre-demoted, or the lowest. */
static struct spot next_slot_farther(const struct ww_wheel *wheel)
{
	uint64_t bits = farther_occupied(wheel);

	if (bits & wheel->farther)
		bits &= wheel->farther;
	if (bits == 0)
		return NO_SPOT;
	uint32_t i = (uint32_t)__builtin_ctzll(bits);
	return (struct spot){wheel->ring[wheel->rings + 1].first + i, farther_boundary(wheel, i)};
}

/* The slot of ring r that is pre-demoted next. It may have become small since it was large. */
static struct spot next_large(const struct ww_wheel *wheel, uint32_t r)
{
	const struct ring *ring = &wheel->ring[r];

	if (r > wheel->rings)
		return next_slot_farther(wheel);
	uint64_t boundary = next_boundary(&wheel->large[ring->first / 64], wheel->head.hand, ring->span, ring->slots);
	if (boundary == WW_NEVER)
		return NO_SPOT;
	return (struct spot){ring->first + (uint32_t)(boundary / ring->span % ring->slots), boundary};
}

static inline uint64_t earlier(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

/* The next boundary at which a ring above the lowest demotes timers, or WW_NEVER. */
static uint64_t next_demotion(const struct ww_wheel *wheel)
{
	uint64_t hand = wheel->head.hand;
	uint64_t next = next_slot_farther(wheel).boundary;
	uint32_t r = 1;

	if (slot_count(wheel, wheel->late))
		next = earlier(next, ring_boundary(&wheel->ring[1], hand, 1));
	if (wheel->standard) {
		const uint64_t *bits = wheel->occupied;
		next = earlier(next, next_boundary(&bits[STD_FIRST_1 / 64], hand, STD_MINUTE, STD_MINUTES));
		next = earlier(next, next_boundary(&bits[STD_FIRST_2 / 64], hand, STD_HOUR, STD_DAYS * STD_HOURS));
		r = wheel->rings;
	}
	for (; r <= wheel->rings; r++) {
		const struct ring *ring = &wheel->ring[r];
		next = earlier(next, next_boundary(&wheel->occupied[ring->first / 64], hand, ring->span, ring->slots));
	}
	return next;
}

/* The slot of ring 0 that the hand is in. */
static inline uint32_t hand_slot(const struct ww_wheel *wheel)
{
	return (uint32_t)(wheel->standard ? wheel->head.hand % STD_SECONDS : wheel->head.hand % wheel->ring[0].slots);
}

/* The next tick at which a timer expires or a slot is demoted, or WW_NEVER. */
static uint64_t next_stop(const struct ww_wheel *wheel)
{
	uint32_t slot = hand_slot(wheel);
	uint64_t turn = wheel->head.hand - slot;
	uint64_t ahead = wheel->occupied[0] & (~UINT64_C(0) << slot << 1);

	/* Every boundary is the start of a turn of ring 0. What this turn still holds comes before any of them. */
	if (ahead)
		return turn + (uint64_t)__builtin_ctzll(ahead);
	uint64_t next = next_demotion(wheel);
	if (wheel->occupied[0])
		next = earlier(next, turn + wheel->ring[0].slots + (uint64_t)__builtin_ctzll(wheel->occupied[0]));
	return next;
}

/* Whether a timer is due because a budget held it back, or because it was scheduled too late. */
static int is_due(const struct ww_wheel *wheel)
{
	return slot_count(wheel, hand_slot(wheel)) || slot_count(wheel, wheel->due) ||
	       slot_count(wheel, wheel->due_next) || slot_count(wheel, wheel->due_now);
}

/* ---- Demotion */

/*
 * The slot for a timer whose own slot is the one of ring r that is being walked. There are two reasons. At a boundary,
 * the timer was moved by exactly the horizon, to when that slot comes round again: it waits outside. In pre-demotion,
 * more is left than fits the ring below. But within one slot's span of the boundary, the ring below can take it in the
 * hand's own slot, which was emptied and stands for a turn ahead. Only in ring 0 that slot may be in use, and the timer
 * is late.
 */
static __attribute__((noinline)) uint32_t slot_instead(const struct ww_wheel *wheel, uint32_t r, uint64_t deadline)
{
	if (wheel->head.hand % wheel->ring[r].span == 0)
		return slot_in(&wheel->ring[wheel->rings], deadline);
	if (r == 1)
		return wheel->late;
	return slot_in(&wheel->ring[r - 1], deadline);
}

/* File a timer of a slot of ring r anew. At a boundary its deadline may be the hand itself, which expires next. */
static inline void demote(struct ww_wheel *wheel, int standard, struct ww_timer *timer, uint32_t from, uint32_t r)
{
	uint32_t slot;

	if (timer_deadline(timer) == wheel->head.hand)
		slot = hand_slot(wheel);
	else
		slot = slot_for(wheel, standard, wheel->head.hand, timer_deadline(timer));
	if (slot == from)
		slot = slot_instead(wheel, r, timer_deadline(timer));
	link_again(wheel, timer, slot);
}

/* Demote at most `most` timers of a slot of ring r, taking one from each lane in turn. */
static inline void walk_lanes(struct ww_wheel *wheel, int standard, uint32_t slot, uint32_t r, uint32_t most)
{
	struct lane_walk walk = detach(wheel, slot);
	uint32_t count = slot_count(wheel, slot);
	uint32_t left = most < count ? most : count;

	wheel->demoted += left;
	count -= left;
	while (left) {
		for (uint32_t lane = 0; lane < LANES; lane++) {
			struct ww_timer *timer = walk.at[lane];
			if (timer == &wheel->nil || !left)
				continue;
			__builtin_prefetch(hinted(timer), 1);
			walk.at[lane] = timer->ww_next;
			demote(wheel, standard, timer, slot, r);
			left--;
		}
	}
	attach(wheel, slot, &walk, count);
}

static void demote_slot(struct ww_wheel *wheel, uint32_t slot, uint32_t r, uint32_t most)
{
	if (wheel->standard)
		walk_lanes(wheel, 1, slot, r, most);
	else
		walk_lanes(wheel, 0, slot, r, most);
}

/* The slots of ring r that are demoted at `time`: the one that begins, and the late one. */
static uint32_t slots_at(const struct ww_wheel *wheel, uint32_t r, uint64_t time, uint32_t slots[2])
{
	const struct ring *ring = &wheel->ring[r];
	uint32_t count = 0;

	if (time % ring->span)
		return 0;
	if (r > wheel->rings) {
		struct spot next = next_slot_farther(wheel);
		if (next.boundary == time)
			slots[count++] = next.slot;
		return count;
	}
	slots[count++] = ring->first + (uint32_t)(time / ring->span % ring->slots);
	if (r == 1)
		slots[count++] = wheel->late;
	return count;
}

/* The hand has come to the start of a turn of ring 0: demote all slots that begin now, from the top. */
static void demote_boundary(struct ww_wheel *wheel)
{
	uint32_t slots[2];
	/* Most boundaries of the default geometry are a minute's only. One division by a constant finds that out. */
	uint32_t top = wheel->standard && wheel->head.hand % STD_HOUR ? 1 : wheel->rings + 1;

	for (uint32_t r = top; r > 0; r--) {
		uint32_t count = slots_at(wheel, r, wheel->head.hand, slots);
		if (r > wheel->rings && count)
			farther_begin(wheel, wheel->head.hand);
		for (uint32_t i = 0; i < count; i++)
			if (slot_count(wheel, slots[i]))
				demote_slot(wheel, slots[i], r, UINT32_MAX);
	}
}

/* Whether a list of a slot is broken. Only debug builds check; a walk itself follows whatever it finds. */
static int slot_broken(const struct ww_wheel *wheel, uint32_t slot)
{
#ifdef WW_DEBUG
	for (uint32_t lane = 0; lane < LANES; lane++) {
		const struct ww_timer *timer = wheel->lane[slot * LANES + lane];
		for (; timer != &wheel->nil; timer = timer->ww_next)
			if (timer_broken(wheel, timer))
				return 1;
	}
#else
	(void)wheel;
	(void)slot;
#endif
	return 0;
}

/* The same for all that demote_boundary would walk at `time`. */
static int boundary_broken(const struct ww_wheel *wheel, uint64_t time)
{
#ifdef WW_DEBUG
	uint32_t slots[2];

	for (uint32_t r = wheel->rings + 1; r > 0; r--)
		for (uint32_t count = slots_at(wheel, r, time, slots); count > 0; count--)
			if (slot_broken(wheel, slots[count - 1]))
				return 1;
#else
	(void)wheel;
	(void)time;
#endif
	return 0;
}

/* ---- Pre-demotion */

/* Demote the share of ring r's next slot that has to be demoted by now. Returns when the ring needs the next look. */
static uint64_t pre_demote_ring(struct ww_wheel *wheel, uint32_t r, uint64_t before)
{
	const struct ring *ring = &wheel->ring[r];
	struct spot next = next_large(wheel, r);
	uint64_t hand = wheel->head.hand;

	if (next.slot == NOWHERE)
		return NO_EVENT;
	uint64_t start = next.boundary - ring->lead;
	if (hand < start)
		return start;
	uint32_t count = slot_count(wheel, next.slot);
	/* A broken list is left for the boundary, where advance can report it. */
	if (count <= PRE_DEMOTE_MIN || slot_broken(wheel, next.slot))
		return next.boundary;
	if (r > wheel->rings)
		farther_begin(wheel, next.boundary);
	uint64_t passed = hand - (before < start ? start - 1 : before);
	uint64_t share = count * passed / (passed + next.boundary - hand) + 1;
	if (passed)
		demote_slot(wheel, next.slot, r, share < count ? (uint32_t)share : count);
	return slot_count(wheel, next.slot) > PRE_DEMOTE_MIN ? hand + 1 : next.boundary;
}

/* From the top: what one ring demotes, a lower one may have to pre-demote soon. */
static void pre_demote(struct ww_wheel *wheel, uint64_t before)
{
	wheel->pre_demotion = NO_EVENT;
	for (uint32_t r = wheel->rings + 1; r > 0; r--) {
		uint64_t when = pre_demote_ring(wheel, r, before);
		/* Meanwhile, timers that were moved to later deadlines may have gone to a ring above. */
		if (when < wheel->pre_demotion)
			wheel->pre_demotion = when;
	}
	if (wheel->pre_demotion <= wheel->head.hand)
		wheel->pre_demotion = wheel->head.hand + 1;
}

/* ---- Expiry */

/* Where expiries go: into a batch, or to the timers' callbacks if that is NULL. */
struct expiry_sink {
	struct ww_expiry *batch;
	size_t room;
	size_t count;
};

/* The timer is unlinked. It is scheduled again before its callback runs, and the callback may change that. */
static inline uint64_t renew(struct ww_wheel *wheel, struct ww_timer *timer, uint64_t deadline)
{
	uint64_t missed = (wheel->head.now - deadline) / timer->ww_period;
	uint64_t on_time = deadline + missed * timer->ww_period;

	if (timer->ww_period <= WW_TIME_MAX - on_time) {
		file_timer(wheel, timer, on_time + timer->ww_period, WHERE_PERIODIC);
		wheel->renewed++;
	}
	return missed;
}

static inline void expire(struct ww_wheel *wheel, struct ww_timer *timer, struct expiry_sink *sink)
{
	uint64_t deadline = timer_deadline(timer);
	uint64_t missed = 0;

	timer_set_idle(timer);
	if (timer_periodic(timer))
		missed = renew(wheel, timer, deadline);
	wheel->expired++;
	if (sink->batch)
		sink->batch[sink->count++] = (struct ww_expiry){timer, deadline, missed};
	else {
		sink->count++;
		if (timer->ww_expire)
			timer->ww_expire(wheel, timer, missed);
	}
}

/*
 * Expire what is in the slot. Its timers are due at the hand or before, unless they were moved since. Callbacks may
 * change any list, this slot's too: after a callback only the slot itself can be relied on.
 * Returns 0 when the slot is empty, 1 when there is no more room for expiries, or WW_ECORRUPT.
 */
static int expire_slot(struct ww_wheel *wheel, uint32_t slot, struct expiry_sink *sink)
{
	struct ww_timer **lanes = slot_lanes(wheel, slot);

	for (uint32_t lane = 0; slot_count(wheel, slot); lane = (lane + 1) % LANES) {
		struct ww_timer *timer = lanes[lane];
		if (timer == &wheel->nil)
			continue;
		if (timer_broken(wheel, timer))
			return WW_ECORRUPT;
		int moved = timer_deadline(timer) > wheel->head.hand;
		if (!moved && sink->count == sink->room)
			return 1;
		__builtin_prefetch(hinted(timer), 1);
		unlink_timer(wheel, timer);
		if (moved) {
			wheel->demoted++;
			file_timer(wheel, timer, timer_deadline(timer), timer_periodic(timer));
		} else
			expire(wheel, timer, sink);
	}
	return 0;
}

/* Move what a slot holds to another one. */
static void move_slot(struct ww_wheel *wheel, uint32_t from, uint32_t to)
{
	for (uint32_t lane = 0; lane < LANES; lane++) {
		struct ww_timer *timer;
		while ((timer = wheel->lane[from * LANES + lane]) != &wheel->nil) {
			unlink_timer(wheel, timer);
			link_again(wheel, timer, to);
			wheel->moved++;
		}
	}
}

static void swap_slots(uint32_t *one, uint32_t *other)
{
	uint32_t slot = *one;

	*one = *other;
	*other = slot;
}

/*
 * Expire what was scheduled at or before the hand before this call. What its callbacks schedule there waits for the
 * next call. What a budget left over of an earlier call comes first.
 */
static int expire_due(struct ww_wheel *wheel, struct expiry_sink *sink)
{
	if (slot_broken(wheel, wheel->due))
		return WW_ECORRUPT;
	if (slot_count(wheel, wheel->due_next))
		move_slot(wheel, wheel->due, wheel->due_next);
	else
		swap_slots(&wheel->due, &wheel->due_next);
	for (uint32_t round = 0; round < 2; round++) {
		if (slot_count(wheel, wheel->due_now) == 0)
			swap_slots(&wheel->due_now, &wheel->due_next);
		int result = expire_slot(wheel, wheel->due_now, sink);
		if (result)
			return result;
	}
	return 0;
}

/* ---- A budget that ends between two ticks */

/* Whether a timer of the slot is due by the wheel's time: 1, 0 or WW_ECORRUPT. */
static int slot_holds_due(const struct ww_wheel *wheel, uint32_t slot)
{
	for (uint32_t lane = 0; lane < LANES; lane++) {
		const struct ww_timer *timer = wheel->lane[slot * LANES + lane];
		for (; timer != &wheel->nil; timer = timer->ww_next) {
			if (timer_broken(wheel, timer))
				return WW_ECORRUPT;
			if (timer_deadline(timer) <= wheel->head.now)
				return 1;
			__builtin_prefetch(hinted(timer));
		}
	}
	return 0;
}

/* The same for the slots of a ring that come round by the wheel's time. */
static int ring_holds_due(const struct ww_wheel *wheel, const struct ring *ring)
{
	uint64_t turn = ring_boundary(ring, wheel->head.hand, ring->slots);
	uint64_t last = earlier(turn, wheel->head.now);
	uint64_t at = wheel->head.hand;
	int due = 0;

	while (!due && (at = next_boundary(&wheel->occupied[ring->first / 64], at, ring->span, ring->slots)) <= last)
		due = slot_holds_due(wheel, ring->first + (uint32_t)(at / ring->span % ring->slots));
	return due;
}

/*
 * Whether something after the hand is due by the wheel's time. The hand must stay at the last tick that expired until
 * there is room for the next: what is scheduled between the two takes its place in the order of ticks.
 */
static __attribute__((noinline)) int holds_due(const struct ww_wheel *wheel)
{
	int due = slot_holds_due(wheel, wheel->late);

	for (uint32_t r = 0; !due && r <= wheel->rings; r++)
		due = ring_holds_due(wheel, &wheel->ring[r]);
	const struct ring *farther = &wheel->ring[wheel->rings + 1];
	for (uint32_t i = 0; !due && i < farther->slots; i++)
		if (slot_count(wheel, farther->first + i) && farther_boundary(wheel, i) <= wheel->head.now)
			due = slot_holds_due(wheel, farther->first + i);
	return due;
}

/*
 * Expire and demote, stop by stop, until nothing is left to do by wheel->head.now or there is no more room for
 * expiries. When it returns 0, *stop is the next stop.
 */
static int run(struct ww_wheel *wheel, struct expiry_sink *sink, uint64_t *stop)
{
	uint64_t before = wheel->head.hand;
	int result = is_due(wheel) ? expire_due(wheel, sink) : 0;
	int done = 0; /* nothing more is due */

	while (!result) {
		result = expire_slot(wheel, hand_slot(wheel), sink);
		if (result)
			break;
		*stop = next_stop(wheel);
		if (*stop > wheel->head.now)
			break;
		if (sink->count == sink->room && !done) {
			result = holds_due(wheel);
			done = 1;
			continue;
		}
		if (boundary_broken(wheel, *stop))
			return WW_ECORRUPT;
		move_hand(wheel, *stop);
		if (hand_slot(wheel) == 0)
			demote_boundary(wheel);
	}
	if (result)
		return result;
	move_hand(wheel, wheel->head.now);
	if (wheel->head.hand >= wheel->pre_demotion) {
		pre_demote(wheel, before);
		*stop = next_stop(wheel);
	}
	return 0;
}

static int advance(struct ww_wheel *wheel, uint64_t now, struct expiry_sink *sink)
{
	uint64_t stop = 0;
	int result;

	if (ww_wheel_head_tick(wheel, now))
		return 0;
	if (wheel->busy)
		return WW_EBUSY;
	if (now > WW_TIME_MAX)
		return WW_EOVERFLOW;
	if (now < wheel->head.now)
		return WW_EBACKWARDS;
	wheel->head.now = now;
	wheel->quick = 0;
	wheel->busy = 1;
	wheel->head.event = 0;
	wheel->head.to_end = 0;
	result = run(wheel, sink, &stop);
	wheel->busy = 0;
	if (!result && !is_due(wheel)) {
		wheel->head.event = earlier(earlier(stop, wheel->pre_demotion), end_of_turn(wheel));
		wheel->head.to_end = inline_to_end(wheel);
	}
	return result;
}

int ww_wheel_advance(struct ww_wheel *wheel, uint64_t now, size_t budget, size_t *expired)
{
	struct expiry_sink sink = {.room = budget};
	int more = wheel ? advance(wheel, now, &sink) : WW_EINVAL;

	if (expired && (more >= 0 || more == WW_ECORRUPT))
		*expired = sink.count;
	return more;
}

int ww_wheel_advance_batch(
    struct ww_wheel *wheel, uint64_t now, struct ww_expiry *batch, size_t capacity, size_t *count)
{
	struct ww_expiry none; /* where nothing is written when the capacity is 0 */
	struct expiry_sink sink = {.batch = batch ? batch : &none, .room = capacity};
	int more;

	if (!wheel || !count || (!batch && capacity))
		return WW_EINVAL;
	more = advance(wheel, now, &sink);
	if (more >= 0 || more == WW_ECORRUPT)
		*count = sink.count;
	return more;
}

int ww_wheel_next(const struct ww_wheel *wheel, uint64_t *when)
{
	uint64_t next;

	if (!wheel || !when)
		return WW_EINVAL;
	if (is_due(wheel)) {
		*when = wheel->head.now;
		return 1;
	}
	next = next_stop(wheel);
	for (uint32_t r = 1; r <= wheel->rings + 1; r++) {
		struct spot large = next_large(wheel, r);
		if (large.slot == NOWHERE || slot_count(wheel, large.slot) <= PRE_DEMOTE_MIN)
			continue;
		uint64_t start = large.boundary - wheel->ring[r].lead;
		if (start <= wheel->head.hand)
			start = wheel->head.hand + 1;
		next = earlier(next, start);
	}
	/* While a budget holds an advance back, what comes next may have been due for long. */
	*when = next > wheel->head.now ? next : wheel->head.now;
	return next != WW_NEVER;
}
