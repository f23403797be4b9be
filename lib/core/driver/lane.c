/* Which lane is served next. */

#include "lib/core/driver/lane.h"

/* How long a lane's turn is, a little more than waking a worker takes. */
#define LANE_TURN ((int64_t)(100 * WW_MICROSECOND))
/* Callbacks that take less are short. */
#define LANE_SHORT ((int64_t)(100 * WW_MICROSECOND))
/* What a callback takes at least, also where the clock stands still. */
#define LANE_LEAST ((int64_t)WW_MICROSECOND)
_Static_assert(WW_MICROSECOND >= WW_DRIVER_SHARE_MAX, "whatever its share, each callback counts");
/* A longer callback counts as one of this. */
#define LANE_MOST ((int64_t)WW_SECOND)
/* A lane that comes back from a pause owes no more than this. */
#define LANE_DEBT ((int64_t)(100 * WW_MILLISECOND))

void ww_lane_init(struct lane *lane)
{
	*lane = (struct lane){.share = 1};
	lane->firings.next = lane->firings.prev = &lane->firings;
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
		first->prev = lane->firings.prev;
		first->next = &lane->firings;
		lane->firings.prev->next = first;
		lane->firings.prev = first;
		first = next;
	}
}

void ww_lane_unlink(struct lanes *lanes, struct lane *lane, struct firing *firing)
{
	firing->prev->next = firing->next;
	firing->next->prev = firing->prev;
	firing->next = NULL;
	lanes->length--;
	if (--lane->length == 0)
		leave_ring(lanes, lane);
}

/* ---- Turns */

/* Whether a free worker may run a callback of the lane. */
static int is_allowed(const struct lanes *lanes, const struct lane *lane, int is_patient)
{
	if (lane->running == 0 || lanes->workers < 2)
		return 1;
	if (lanes->count > 1 && lanes->running + 1 >= lanes->workers)
		return 0;
	return is_patient || lane->cost > LANE_SHORT || lane->running < lanes->processors;
}

struct lane *ww_lane_choose(struct lanes *lanes, int is_patient)
{
	struct lane *lane = lanes->turn;
	struct lane *least = NULL;

	if (!lane)
		return NULL;
	do {
		if (is_allowed(lanes, lane, is_patient) && (!least || lane->used < least->used))
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
int ww_lane_any(const struct lanes *lanes, int is_patient)
{
	const struct lane *lane = lanes->turn;

	if (!lane)
		return 0;
	while (!is_allowed(lanes, lane, is_patient)) {
		lane = lane->next;
		if (lane == lanes->turn)
			return 0;
	}
	return 1;
}

int64_t ww_lane_begin(struct lanes *lanes, struct lane *lane)
{
	lanes->running++;
	lane->running++;
	lane->used += lane->cost / lane->share;
	return lane->cost;
}

void ww_lane_end(struct lanes *lanes, struct lane *lane, int64_t charged, uint64_t ns)
{
	int64_t took = ns < (uint64_t)LANE_MOST ? (int64_t)ns : LANE_MOST;

	took = took < LANE_LEAST ? LANE_LEAST : took;
	lanes->running--;
	lane->running--;
	lane->used += took / lane->share - charged / lane->share;
	lane->cost += (took - lane->cost) / 8;
}
