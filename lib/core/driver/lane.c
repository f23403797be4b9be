/* Which lane is served next. */

#include "lib/core/driver/lane.h"

/* How long a lane's turn is, a little more than waking a worker takes. */
#define LANE_TURN ((int64_t)(100 * WW_MICROSECOND))
/* Callbacks that take less are short. */
#define LANE_SHORT ((int64_t)(100 * WW_MICROSECOND))
/*
 * So far apart must the beginnings of a lane's callbacks be that another worker gains time. Workers that take from the
 * queue more often wait for its lock and for each other's cache lines.
 */
#define LANE_APART ((int64_t)500)
/* A little more, or a worker would be woken again and again to find that it is one too many. */
#define LANE_APART_TO_WAKE ((int64_t)600)
/* What a callback is charged at least, also where the clock stands still. */
#define LANE_LEAST ((int64_t)WW_MICROSECOND)
_Static_assert(WW_MICROSECOND >= WW_DRIVER_SHARE_MAX, "whatever its share, each callback counts");
/* A longer callback counts as one of this. */
#define LANE_MOST ((int64_t)WW_SECOND)
_Static_assert(WW_SECOND <= INT32_MAX, "a cost has 32 bits");
/* One callback raises the cost as one of so many times that: its worker may only have lost its processor. */
#define LANE_RISE 4
/* A lane that comes back from a pause owes no more than this. */
#define LANE_DEBT ((int64_t)(100 * WW_MILLISECOND))

void ww_lane_init(struct lane *lane)
{
	*lane = (struct lane){.share = 1};
}

/* What the lane may use in its turn. It does not make the turn longer: what counts is how shares compare. */
static int64_t turn_of(const struct lane *lane)
{
	return LANE_TURN / lane->share;
}

/* ---- The ring */

static void enter_ring(struct lanes *lanes, struct lane *lane)
{
	struct lane *turn = lanes->turn;

	if (lane->used < lanes->level - turn_of(lane))
		lane->used = lanes->level - turn_of(lane);
	if (lane->used > lanes->level + LANE_DEBT)
		lane->used = lanes->level + LANE_DEBT;
	if (!turn) {
		lane->next = lane->prev = lane;
		lanes->turn = lane;
		return;
	}
	/* The last of this round. */
	lane->next = turn;
	lane->prev = turn->prev;
	turn->prev->next = lane;
	turn->prev = lane;
}

static void leave_ring(struct lanes *lanes, struct lane *lane)
{
	if (lanes->turn == lane)
		lanes->turn = lane->next == lane ? NULL : lane->next;
	lane->prev->next = lane->next;
	lane->next->prev = lane->prev;
	lane->next = lane->prev = NULL;
}

void ww_lane_push(struct lanes *lanes, struct lane *lane, struct firing *first, uint32_t count)
{
	if (!lane->next)
		enter_ring(lanes, lane);
	lanes->length += count;
	lane->length += count;
	while (first) {
		struct firing *next = first->next;
		first->prev = lane->newest;
		first->next = first;
		if (lane->newest)
			lane->newest->next = first;
		else
			lane->oldest = first;
		lane->newest = first;
		first = next;
	}
}

void ww_lane_unlink(struct lanes *lanes, struct lane *lane, struct firing *firing)
{
	struct firing *next = firing == lane->newest ? NULL : firing->next;

	if (firing->prev)
		firing->prev->next = next ? next : firing->prev;
	else
		lane->oldest = next;
	/* This fetches the line of the next one for the worker, which is likely to take that, too. */
	if (next)
		next->prev = firing->prev;
	else
		lane->newest = firing->prev;
	firing->next = NULL;
	lanes->length--;
	if (--lane->length == 0)
		leave_ring(lanes, lane);
}

/* ---- Turns */

/* Whether a free worker may be given to the lane. */
static int is_open(const struct lanes *lanes, const struct lane *lane)
{
	return lane->running == 0 || lanes->workers < 2 || lanes->count == 1 || lanes->running + 1 < lanes->workers;
}

/* Whether it may run a callback of the lane at once, `apart` from the others' callbacks. */
static int is_allowed(const struct lanes *lanes, const struct lane *lane, int64_t apart)
{
	if (lane->brisk == 0 || lane->cost > LANE_SHORT || lanes->workers < 2)
		return is_open(lanes, lane);
	return is_open(lanes, lane) && lane->brisk < lanes->processors && lane->brisk < lane->cost / apart;
}

struct lane *ww_lane_choose(struct lanes *lanes)
{
	struct lane *lane = lanes->turn;
	struct lane *least = NULL;

	if (!lane)
		return NULL;
	do {
		if (is_allowed(lanes, lane, LANE_APART) && (!least || lane->used < least->used))
			least = lane;
		if (least && least->used < lanes->level)
			break;
		lane = lane->next;
	} while (lane != lanes->turn);
	if (!least)
		return NULL;
	if (least->used >= lanes->level)
		lanes->level = least->used + turn_of(least);
	lanes->turn = least;
	return least;
}

/* At most as many lanes are refused as have a callback that runs. */
int ww_lane_any(const struct lanes *lanes)
{
	const struct lane *lane = lanes->turn;

	if (!lane)
		return 0;
	while (!is_allowed(lanes, lane, LANE_APART_TO_WAKE)) {
		lane = lane->next;
		if (lane == lanes->turn)
			return 0;
	}
	return 1;
}

int ww_lane_any_later(const struct lanes *lanes)
{
	const struct lane *lane = lanes->turn;

	if (!lane)
		return 0;
	while (!is_open(lanes, lane)) {
		lane = lane->next;
		if (lane == lanes->turn)
			return 0;
	}
	return 1;
}

int64_t ww_lane_begin(struct lanes *lanes, struct lane *lane)
{
	int64_t charged = lane->cost < LANE_LEAST ? LANE_LEAST : lane->cost;

	lanes->running++;
	lane->running++;
	lane->brisk++;
	lane->used += charged / lane->share;
	return charged;
}

void ww_lane_slow(struct lane *lane)
{
	lane->brisk--;
}

static void learn_cost(struct lane *lane, int64_t took)
{
	/* On a clock that stands still nothing is learned, and all counts the same. */
	int64_t seen = took ? took : LANE_LEAST;
	int64_t most = (int64_t)LANE_RISE * lane->cost + LANE_LEAST;

	lane->cost += (int32_t)(((seen < most ? seen : most) - lane->cost) / 8);
}

void ww_lane_end(struct lanes *lanes, struct lane *lane, int64_t charged, uint64_t ns, int was_slow)
{
	int64_t took = ns < (uint64_t)LANE_MOST ? (int64_t)ns : LANE_MOST;

	lanes->running--;
	lane->running--;
	lane->brisk -= !was_slow;
	learn_cost(lane, took);
	took = took < LANE_LEAST ? LANE_LEAST : took;
	lane->used += took / lane->share - charged / lane->share;
}
