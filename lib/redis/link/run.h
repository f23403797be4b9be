#ifndef LIB_REDIS_LINK_RUN_H
#define LIB_REDIS_LINK_RUN_H

/* A run under way, for run.c, which tells its steps, exchange.c (steps 2 and 3) and judge.c (4 and 5). */

#include <poll.h>

#include "lib/redis/link/link_internal.h"

/*
 * A round of a run: calls in groups, one group for each node, in the order of the nodes' indices.
 *
 *     groups:  node 0 [wire] -> call 2 -> call 5        by the index of the next call
 *              node 3 [wire] -> call 0 -> call 1 -> call 7
 */

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
	int slot;           /* -1: none */
};

struct node_calls {
	struct redis_node *node;
	struct redis_wire *wire; /* NULL: none could be had */
	size_t head;             /* the first call without a reply; REDIS_NO_CALL: all have one */
	size_t tail;
	size_t first;
	int error;       /* why the calls from head on have no reply */
	int is_silent;   /* because time ran out */
	int is_soon;     /* all its calls are to end soon (REDIS_CALL_SOON) */
	int is_harmless; /* and may happen twice: silence ends them early */
	int is_suspect;  /* because others would wait too long */
	int is_waiting;  /* a WAIT was sent, and its reply is still to come */
	int is_safe;     /* enough replicas have confirmed the calls */
	int is_new;      /* it has just got a connection */
	int is_stale;    /* close the connection: the server turned out to be a replica */
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
	unsigned round;
	int is_later; /* a call waits for a pause */
	int is_soon;  /* silence may end a call before the deadline */
	int is_slow;  /* config.slow was called */
	uint64_t commands, redirections, loads;
};

/* ---- run.c */

/* End a call. */
void ww_redis_run_end(struct link_run *run, size_t i, int error);
void ww_redis_run_forget(struct redis_call *call);
/* Before this thread waits: for a connection, in a pause, or for replies that have not come within a millisecond. */
void ww_redis_run_slow(struct link_run *run);

/* ---- exchange.c */

/* Send the calls of all groups and take their replies; in wave 1 those whose node must be connected first. */
void ww_redis_exchange(struct link_run *run, int wave);

/* ---- judge.c */

/* What the replies of all groups mean for their calls. Gives the connections back. */
void ww_redis_judge(struct link_run *run);

#endif
