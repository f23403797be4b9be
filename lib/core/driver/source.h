#ifndef LIB_CORE_DRIVER_SOURCE_H
#define LIB_CORE_DRIVER_SOURCE_H

/* What the driver drives: sources, each a wheel with its lock, in groups. layer.h says what they are for. */

#include "lib/core/driver/lane.h"

enum source_place { SOURCE_IDLE, SOURCE_FILED, SOURCE_HELD }; /* see agenda.h */

struct timer_source {
	/* Threads that have a source each must not share a cache line. */
	_Alignas(64) pthread_mutex_t lock;
	struct ww_wheel *wheel; /* NULL: no timer was ever scheduled here */
	_Atomic uint64_t next;  /* the tick at which the driver has to look at the wheel */
	struct timer_group *group;

	/* What the agenda has; all but `changed` is under its lock. */
	_Atomic int changed; /* it is on the list of those that have */
	uint16_t place;      /* enum source_place */
	uint16_t rank;       /* in the heap: how many steps to the right end below it */
	struct timer_source *next_changed;
	uint64_t at; /* in the heap: where */
	struct timer_source *left;
	union {
		struct timer_source *right;
		struct timer_source *sibling; /* on a list: the next */
	};
	struct timer_source *parent; /* on a list: the one before */
	uint64_t done;               /* the last pass that let all expire that was due; the driver's alone */
	uint64_t met;                /* see ww_source_met */
	void *shard;                 /* the layer's */
};

struct timer_group {
	struct ww_driver *driver;
	const struct group_ops *ops;
	void *owner;             /* whom ops->run is given */
	size_t bytes;            /* of the group with its sources */
	_Atomic uint32_t wheels; /* that its sources have, each of the driver's wheel_bytes */
	uint32_t count;
	int left;  /* the driver drives it no more */
	int drops; /* what finds no room in the lane is dropped */
	int waits; /* what is due waits for room in the lane */
	/* Each call reads what is above. The rest belongs to the driver's pass with this number: */
	_Alignas(64) uint64_t starved; /* the last one in which something waited for room */
	uint64_t looked;               /* the last one that looked at one of its sources */
	uint32_t share;                /* batches that may expire in that one */
	struct lane lane;              /* of the driver's queue, if the group has firings to run */
	struct timer_source source[];
};

/* The lock is held, or nobody has the source any more. No timer is scheduled here. */
void ww_source_free_wheel(struct timer_source *source);
/* The lock is held: the clock is at a tick before the wheel's time. */
void ww_source_rewind(struct timer_source *source, uint64_t tick);

#endif
