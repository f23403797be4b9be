#ifndef TOOLS_WEEKWHEEL_EXPIRER_NODE_NODE_H
#define TOOLS_WEEKWHEEL_EXPIRER_NODE_NODE_H

/*
 * One Redis, and the thread that keeps its deadlines. It has two connections:
 *
 *     line    requests of the keeper, and what they are answered
 *     ear     subscribed to __redis__:invalidate, to which the line's CLIENT TRACKING sends the names of changed keys
 *
 * The ear is there before the tracking, and the tracking before the first page of a pass: no change is missed while
 * both connections live. If one is lost, or its Redis is no master any more, both are made anew, and a pass begins. The
 * states "redis" and "silent" report that (state.h), and the log says from when on a pass has made it exact again. The
 * state "behind" reports that changes wait for too long, and "flush" that a pass begins for that reason.
 */

#include "tools/weekwheel-expirer/keys/keeper.h"

struct expirer_node;

struct node_config {
	const char *url;
	const char *user;     /* NULL: the url's */
	const char *password; /* NULL: the url's */
	const char *match;    /* NULL: all keys */
	int only_later;
};

/*
 * Make a node and its thread. If Redis cannot be reached, the thread tries again and again. What no later try repairs
 * is reported: a server that is no Redis, or too old, a replica, wrong password, missing rights, no such database. NULL
 * after a message.
 */
struct expirer_node *node_start(const struct node_config *config);

/* End the thread and free the node. NULL is harmless. */
void node_stop(struct expirer_node *node);

struct node_numbers {
	struct keeper_stats keeper; /* not exact while a change has waited for over a second */
	uint64_t waiting;           /* keys to be looked up */
	uint64_t waiting_bytes;
};

/* Copy its numbers. Any thread. */
void node_read_numbers(struct expirer_node *node, struct node_numbers *numbers);

#endif
