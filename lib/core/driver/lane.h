#ifndef LIB_CORE_DRIVER_LANE_H
#define LIB_CORE_DRIVER_LANE_H

/*
 * The places of a driver's groups in its queue. Each group has a lane of its own, with its own room: a burst fills its
 * own lane, and only its own timers wait for room.
 *
 *     queue --> ring of the lanes that have firings:  [handles] <--> [map 1] <--> [map 2]
 *                                                         |             |            |
 *                                                       oldest        oldest       oldest
 *                                                         :             :            :
 *
 * Workers serve the lanes by turns, as start-time fair queueing does (Goyal, Vin and Cheng, SIGCOMM 1996), in turns of
 * LANE_TURN. A lane's `used` is the time that its callbacks have taken, divided by its share. All lanes that have used
 * less than the queue's level are served. When none is left, the level rises above the lane that has used least. A lane
 * that comes back from a pause begins at the level, so it saves up nothing. Within a lane the oldest firing is the
 * next.
 *
 * If there are several lanes, the last free worker is given only to a lane of which no callback runs. A lane whose
 * callbacks take long thus does not get all workers. A lane whose callbacks are short gets no more workers than there
 * are processors, and no more than the queue can keep apart: more would only keep each other, and all other threads,
 * from running. A short callback may for once wait, or its worker's processor be taken away. Therefore a free worker
 * that may not run what is there watches those that run (queue.c). A callback that does not end meanwhile is slow. It
 * is left out of that bound, so another worker goes on in its place.
 *
 * The queue's lock is held in all of these.
 */

#include "lib/core/driver/layer.h"

/* One cache line, which goes from worker to worker. */
struct lane {
	/* The firings. The newest has itself as its next, as a next of NULL tells that a firing is in no lane. */
	_Alignas(64) struct firing *oldest;
	struct firing *newest;
	struct lane *next; /* of the ring; NULL: it is not in the ring, and has no firing */
	struct lane *prev;
	int64_t used; /* ns */
	_Atomic uint32_t length;
	uint32_t running;    /* callbacks */
	uint32_t brisk;      /* those that are not slow */
	_Atomic int starved; /* timers wait in their wheels for room here */
	uint32_t share;
	int32_t cost; /* what a callback takes, in ns: the mean of the last ones */
};
_Static_assert(sizeof(struct lane) == 64, "a lane is one cache line");

/* The lanes of a queue. Those that are written with each firing come first. */
struct lanes {
	struct lane *turn; /* the lane that is served next; NULL: none has a firing */
	int64_t level;     /* ns: what a lane may have used */
	uint32_t running;  /* callbacks of all lanes */
	_Atomic uint32_t length;
	uint32_t count;   /* all there are, with firings or without */
	uint32_t workers; /* that serve them */
	uint32_t processors;
};

/* An empty lane with a share of 1. */
void ww_lane_init(struct lane *lane);
/* Append a chain of firings, linked by next and ended by NULL. */
void ww_lane_push(struct lanes *lanes, struct lane *lane, struct firing *first, uint32_t count);
/* Take a firing out. */
void ww_lane_unlink(struct lanes *lanes, struct lane *lane, struct firing *firing);
/* The lane whose oldest firing a free worker has to run, or NULL. */
struct lane *ww_lane_choose(struct lanes *lanes);
/* Whether there is such a lane, for which a worker is woken; and whether there is one if all callbacks that run are slow. */
int ww_lane_any(const struct lanes *lanes);
int ww_lane_any_later(const struct lanes *lanes);
/* A callback of the lane begins; what it will take is charged in advance, and returned. */
int64_t ww_lane_begin(struct lanes *lanes, struct lane *lane);
/* A callback of the lane that runs is slow. */
void ww_lane_slow(struct lane *lane);
/* One has ended, for which `charged` was charged, and took `ns`. */
void ww_lane_end(struct lanes *lanes, struct lane *lane, int64_t charged, uint64_t ns, int was_slow);

#endif
