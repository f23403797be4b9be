#ifndef LIB_REDIS_LINK_RUN_H
#define LIB_REDIS_LINK_RUN_H

/*
 * A round of a run: calls in groups, one group for each node, in the order of the nodes' indices.
 *
 *     groups:  node 0 [wire] -> call 2 -> call 5        by the index of the next call
 *              node 3 [wire] -> call 0 -> call 1 -> call 7
 */

#include "lib/redis/link/link_internal.h"

#define REDIS_NO_CALL SIZE_MAX

/* A call on its way. */
struct errand {
	struct redis_node *node; /* where it goes next; NULL: by its key */
	size_t next;             /* of the group */
	uint8_t is_done;
	uint8_t is_asking;  /* send an ASKING before it */
	uint8_t is_loading; /* send a SCRIPT LOAD before it */
	uint8_t before;     /* replies still to come before its own */
	uint8_t readonly;   /* how often a replica got it */
	uint8_t breaks;     /* how often the connection broke */
};

struct node_calls {
	struct redis_node *node;
	struct redis_wire *wire; /* NULL: none could be had */
	size_t head;             /* the first call without a reply; REDIS_NO_CALL: all have one */
	size_t tail;
	int error;     /* why the calls from head on have no reply */
	int is_silent; /* because time ran out */
	int is_stale;  /* close the connection: the server turned out to be a replica */
};

struct link_run {
	struct redis_link *link;
	struct redis_call *calls;
	size_t count;
	size_t left;
	uint64_t deadline;
	struct errand *errands;
	struct node_calls *groups;
	struct pollfd *polled;
	size_t group_room;
	size_t group_count;
	const char **argv; /* room for the longest call */
	size_t *lengths;
	size_t words;
	unsigned round;
	int is_later; /* a call waits for a pause */
	uint64_t commands, redirections, loads;
};

/* Send the rest and take all replies, from all groups side by side, until each has its replies or an error. */
void ww_redis_exchange(struct link_run *run);

#endif
