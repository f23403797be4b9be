/* The driver of the wheels: advance, demotion, and when it is next needed. */

#include "lib/core/wheel/place.h"
#include "lib/core/wheel/wheel_internal.h"

/* ---- The next thing to do ---- */

/* A place with the boundary at which its slot is demoted. */
struct spot {
	uint32_t place;
	uint64_t boundary;
};

#define NO_SLOT ((struct spot){NOWHERE, WW_NEVER})

/*
 * Of a ring whose bits begin at words: the boundary at which the first slot after the hand's is, or WW_NEVER if none.
 */
static inline uint64_t next_boundary(const uint64_t *words, uint64_t hand, uint64_t span, uint32_t slots)
{
	uint64_t now = hand / span;
	uint32_t from = (uint32_t)((now + 1) % slots);
	uint32_t count = (slots + 63) / 64;
	uint32_t word = from / 64;
	uint64_t bits = words[word] & (~UINT64_C(0) << from % 64);

	/* One round more than there are words: the first is looked at from `from` on, and at last from its start. */
	for (uint32_t round = 0; round <= count; round++) {
		/* The special slots share the word of the ring outside. */
		if (slots < 64)
			bits &= (UINT64_C(1) << slots) - 1;
		if (bits) {
			uint32_t slot = word * 64 + (uint32_t)__builtin_ctzll(bits);
			return (now + 1 + (slot >= from ? slot - from : slot + slots - from)) * span;
		}
		word = word + 1 == count ? 0 : word + 1;
		bits = words[word];
	}
	return WW_NEVER;
}

/* Of the two slots farther than all rings, the one that is looked through next, and when. */
static struct spot next_slot_farther(const struct ww_wheel *wheel)
{
	struct spot next = NO_SLOT;

	for (uint32_t slot = 0; slot < 2; slot++) {
		uint32_t place = wheel->ring[wheel->rings + 1].first + slot;
		if (slot_count(wheel, place) && wheel->farther_at[slot] < next.boundary)
			next = (struct spot){place, wheel->farther_at[slot]};
	}
	return next;
}

/* The slot of ring r that is drained ahead next: it may have become small since it was large. */
static struct spot next_large(const struct ww_wheel *wheel, uint32_t r)
{
	const struct ring *ring = &wheel->ring[r];

	if (r > wheel->rings)
		return next_slot_farther(wheel);
	uint64_t boundary = next_boundary(&wheel->large[ring->first / 64], wheel->head.hand, ring->span, ring->slots);
	if (boundary == WW_NEVER)
		return NO_SLOT;
	return (struct spot){ring->first + (uint32_t)(boundary / ring->span % ring->slots), boundary};
}

static inline uint64_t earlier(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

/* The boundary at which something of a ring above the lowest is next demoted, or WW_NEVER. */
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

/* The place of the slot of ring 0 that the hand is in. */
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

	/* Every boundary is the start of a turn of ring 0, so that nothing comes before what this turn still holds. */
	if (ahead)
		return turn + (uint64_t)__builtin_ctzll(ahead);
	uint64_t next = next_demotion(wheel);
	if (wheel->occupied[0])
		next = earlier(next, turn + wheel->ring[0].slots + (uint64_t)__builtin_ctzll(wheel->occupied[0]));
	return next;
}

/* Whether a timer is due that a budget has held back or that was scheduled too late. */
static int is_due(const struct ww_wheel *wheel)
{
	return slot_count(wheel, hand_slot(wheel)) || slot_count(wheel, wheel->due) ||
	       slot_count(wheel, wheel->due_next) || slot_count(wheel, wheel->due_now);
}

/* ---- Demotion ---- */

struct walk {
	struct ww_timer *at[LANES];
};

/* Take what is in the slot out of it, for a walk that nothing interrupts. */
static inline struct walk detach(struct ww_wheel *wheel, uint32_t place)
{
	struct ww_timer **lanes = slot_lanes(wheel, place);
	struct walk walk;

	for (uint32_t lane = 0; lane < LANES; lane++) {
		walk.at[lane] = lanes[lane];
		__builtin_prefetch(walk.at[lane], 1);
		lanes[lane] = &wheel->nil;
	}
	return walk;
}

/* Put back what a walk has not come to. The slot is empty; what was demoted went elsewhere. */
static inline void attach(struct ww_wheel *wheel, uint32_t place, const struct walk *walk, uint32_t left)
{
	struct ww_timer **lanes = slot_lanes(wheel, place);

	for (uint32_t lane = 0; lane < LANES; lane++) {
		lanes[lane] = walk->at[lane];
		walk->at[lane]->ww_pprev = &lanes[lane];
	}
	wheel->count[place] = left;
	if (left == 0)
		slot_vacated(wheel, place);
}

/*
 * Where a timer goes whose own slot is the one of ring r that is being walked. At a boundary it was moved by exactly
 * the horizon, to where that slot comes round again, and waits outside. Drained ahead, it does not fit below by the
 * time that remains. But a ring takes what is as many slots away as it has, since the hand's own slot was emptied: that
 * will do within one slot's span of the boundary. Only ring 0's slot at the hand may not be empty, and what it cannot
 * take is late.
 */
static __attribute__((noinline)) uint32_t place_beside(const struct ww_wheel *wheel, uint32_t r, uint64_t deadline)
{
	if (wheel->head.hand % wheel->ring[r].span == 0)
		return place_in(&wheel->ring[wheel->rings], deadline);
	if (r == 1)
		return wheel->late;
	return place_in(&wheel->ring[r - 1], deadline);
}

/*
 * File one timer of a slot of ring r anew. At a boundary its deadline may be the hand itself, which is about to expire.
 */
static inline void demote(struct ww_wheel *wheel, int standard, struct ww_timer *timer, uint32_t from, uint32_t r)
{
	uint32_t place;

	if (timer_deadline(timer) == wheel->head.hand)
		place = hand_slot(wheel);
	else
		place = place_of(wheel, standard, wheel->head.hand, timer_deadline(timer), from);
	if (place == from)
		place = place_beside(wheel, r, timer_deadline(timer));
	link_again(wheel, timer, place);
}

/* Demote at most `most` timers of a slot of ring r, a lane's one after another lane's. */
static inline void walk_lanes(struct ww_wheel *wheel, int standard, uint32_t place, uint32_t r, uint32_t most)
{
	struct walk walk = detach(wheel, place);
	uint32_t count = slot_count(wheel, place);
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
			demote(wheel, standard, timer, place, r);
			left--;
		}
	}
	attach(wheel, place, &walk, count);
}

static void demote_slot(struct ww_wheel *wheel, uint32_t place, uint32_t r, uint32_t most)
{
	if (wheel->standard)
		walk_lanes(wheel, 1, place, r, most);
	else
		walk_lanes(wheel, 0, place, r, most);
}

/*
 * The places of ring r that are demoted at `time`: the slot that begins, or is to be looked through, and what is late.
 */
static uint32_t places_at(const struct ww_wheel *wheel, uint32_t r, uint64_t time, uint32_t places[2])
{
	const struct ring *ring = &wheel->ring[r];
	uint32_t count = 0;

	if (time % ring->span)
		return 0;
	if (r > wheel->rings) {
		for (uint32_t slot = 0; slot < 2; slot++)
			if (wheel->farther_at[slot] == time)
				places[count++] = ring->first + slot;
		return count;
	}
	places[count++] = ring->first + (uint32_t)(time / ring->span % ring->slots);
	if (r == 1)
		places[count++] = wheel->late;
	return count;
}

/* The hand has come to the start of a turn of ring 0: demote, from the top, all whose time has come. */
static void demote_boundary(struct ww_wheel *wheel)
{
	uint32_t places[2];
	/* Most of the default geometry's boundaries are a minute's only, which one division by a constant tells. */
	uint32_t top = wheel->standard && wheel->head.hand % STD_HOUR ? 1 : wheel->rings + 1;

	for (uint32_t r = top; r > 0; r--) {
		uint32_t count = places_at(wheel, r, wheel->head.hand, places);
		for (uint32_t i = 0; i < count; i++)
			if (slot_count(wheel, places[i]))
				demote_slot(wheel, places[i], r, UINT32_MAX);
	}
}

/* Whether a list of a slot is broken, looked at in debug builds only; a walk itself follows whatever it finds. */
static int slot_broken(const struct ww_wheel *wheel, uint32_t place)
{
#ifdef WW_DEBUG
	for (uint32_t lane = 0; lane < LANES; lane++) {
		const struct ww_timer *timer = wheel->lane[place * LANES + lane];
		for (; timer != &wheel->nil; timer = timer->ww_next)
			if (timer_broken(wheel, timer))
				return 1;
	}
#else
	(void)wheel;
	(void)place;
#endif
	return 0;
}

/* The same for all that demote_boundary would walk at `time`. */
static int boundary_broken(const struct ww_wheel *wheel, uint64_t time)
{
#ifdef WW_DEBUG
	uint32_t places[2];

	for (uint32_t r = wheel->rings + 1; r > 0; r--)
		for (uint32_t count = places_at(wheel, r, time, places); count > 0; count--)
			if (slot_broken(wheel, places[count - 1]))
				return 1;
#else
	(void)wheel;
	(void)time;
#endif
	return 0;
}

/* ---- Draining ahead ---- */

/* Demote the share of ring r's next slot that is due by now; return when the ring next needs to be looked at. */
static uint64_t drain_ring(struct ww_wheel *wheel, uint32_t r, uint64_t before)
{
	const struct ring *ring = &wheel->ring[r];
	struct spot next = next_large(wheel, r);
	uint64_t hand = wheel->head.hand;

	if (next.place == NOWHERE)
		return NO_EVENT;
	uint64_t start = next.boundary - ring->lead;
	if (hand < start)
		return start;
	uint32_t count = slot_count(wheel, next.place);
	/* What is broken is left for the boundary, where advance can say so. */
	if (count <= DRAIN_AHEAD_MIN || slot_broken(wheel, next.place))
		return next.boundary;
	uint64_t passed = hand - (before < start ? start - 1 : before);
	uint64_t share = count * passed / (passed + next.boundary - hand) + 1;
	if (passed)
		demote_slot(wheel, next.place, r, share < count ? (uint32_t)share : count);
	return slot_count(wheel, next.place) > DRAIN_AHEAD_MIN ? hand + 1 : next.boundary;
}

/* From the top, as what is drained of a ring may be drained of a lower one soon. */
static void drain_ahead(struct ww_wheel *wheel, uint64_t before)
{
	wheel->drain = NO_EVENT;
	for (uint32_t r = wheel->rings + 1; r > 0; r--) {
		uint64_t when = drain_ring(wheel, r, before);
		/* Meanwhile, timers that were moved to later deadlines may have gone to a ring above. */
		if (when < wheel->drain)
			wheel->drain = when;
	}
	if (wheel->drain <= wheel->head.hand)
		wheel->drain = wheel->head.hand + 1;
}

/* ---- Expiry ---- */

/* Where expiries go: into a batch, or, where that is NULL, to the timers' callbacks. */
struct sink {
	struct ww_expiry *batch;
	size_t room;
	size_t count;
};

/*
 * The timer is unlinked. A periodic one is scheduled again before anybody sees it, so that the callback may change
 * that.
 */
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

static inline void expire(struct ww_wheel *wheel, struct ww_timer *timer, struct sink *sink)
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
 * Expire what is in the slot, whose timers are due at the hand or before unless they were moved since. Callbacks may
 * change any list, this slot's too, so that nothing is held over one but the slot itself.
 * Return 0 when the slot is empty, 1 when the sink is full, or WW_ECORRUPT.
 */
static int expire_slot(struct ww_wheel *wheel, uint32_t place, struct sink *sink)
{
	struct ww_timer **lanes = slot_lanes(wheel, place);

	for (uint32_t lane = 0; slot_count(wheel, place); lane = (lane + 1) % LANES) {
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

static void swap_places(uint32_t *one, uint32_t *other)
{
	uint32_t place = *one;

	*one = *other;
	*other = place;
}

/*
 * Expire what was scheduled at or before the hand, before this call: what callbacks schedule so waits for the next one.
 * What a budget has left of an earlier call comes first.
 */
static int expire_due(struct ww_wheel *wheel, struct sink *sink)
{
	if (slot_broken(wheel, wheel->due))
		return WW_ECORRUPT;
	if (slot_count(wheel, wheel->due_next))
		move_slot(wheel, wheel->due, wheel->due_next);
	else
		swap_places(&wheel->due, &wheel->due_next);
	for (uint32_t round = 0; round < 2; round++) {
		if (slot_count(wheel, wheel->due_now) == 0)
			swap_places(&wheel->due_now, &wheel->due_next);
		int result = expire_slot(wheel, wheel->due_now, sink);
		if (result)
			return result;
	}
	return 0;
}

/*
 * Expire and demote, stop by stop, until nothing is left to do by wheel->head.now, or the sink is full. When it returns
 * 0, *stop is what next_stop says.
 */
static int run(struct ww_wheel *wheel, struct sink *sink, uint64_t *stop)
{
	uint64_t before = wheel->head.hand;
	int result = is_due(wheel) ? expire_due(wheel, sink) : 0;

	while (!result) {
		result = expire_slot(wheel, hand_slot(wheel), sink);
		if (result)
			break;
		*stop = next_stop(wheel);
		if (*stop > wheel->head.now)
			break;
		if (boundary_broken(wheel, *stop))
			return WW_ECORRUPT;
		move_hand(wheel, *stop);
		if (hand_slot(wheel) == 0)
			demote_boundary(wheel);
	}
	if (result)
		return result;
	move_hand(wheel, wheel->head.now);
	if (wheel->head.hand >= wheel->drain) {
		drain_ahead(wheel, before);
		*stop = next_stop(wheel);
	}
	return 0;
}

static int advance(struct ww_wheel *wheel, uint64_t now, struct sink *sink)
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
		wheel->head.event = earlier(earlier(stop, wheel->drain), end_of_turn(wheel));
		wheel->head.to_end = inline_to_end(wheel);
	}
	return result;
}

int ww_wheel_advance(struct ww_wheel *wheel, uint64_t now, size_t budget, size_t *expired)
{
	struct sink sink = {.room = budget};
	int more = wheel ? advance(wheel, now, &sink) : WW_EINVAL;

	if (expired && (more >= 0 || more == WW_ECORRUPT))
		*expired = sink.count;
	return more;
}

int ww_wheel_advance_batch(
    struct ww_wheel *wheel, uint64_t now, struct ww_expiry *batch, size_t capacity, size_t *count)
{
	struct ww_expiry none; /* where nothing is written when the capacity is 0 */
	struct sink sink = {.batch = batch ? batch : &none, .room = capacity};
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
		struct spot slot = next_large(wheel, r);
		if (slot.place == NOWHERE || slot_count(wheel, slot.place) <= DRAIN_AHEAD_MIN)
			continue;
		uint64_t drain = slot.boundary - wheel->ring[r].lead;
		if (drain <= wheel->head.hand)
			drain = wheel->head.hand + 1;
		next = earlier(next, drain);
	}
	/* While a budget holds an advance back, what comes next may have been due for long. */
	*when = next > wheel->head.now ? next : wheel->head.now;
	return next != WW_NEVER;
}
