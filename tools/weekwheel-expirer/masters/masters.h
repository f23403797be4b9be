#ifndef TOOLS_WEEKWHEEL_EXPIRER_MASTERS_MASTERS_H
#define TOOLS_WEEKWHEEL_EXPIRER_MASTERS_MASTERS_H

/*
 * The masters that the url names, with a node for each: a Redis alone, the masters of a cluster, or the one that
 * Sentinels name. A thread looks them up: every second, and several times a second while a node is lost or in
 * doubt.
 *
 *     a master is new         a node begins
 *     a replica took over     the node of the old master moves to it, with all that it knows
 *     slots moved             both nodes are informed, and the new owner goes through its keys
 *     a master has no slots   its node ends
 *
 * The state "start" reports that none was found yet, "masters" that no server answers the question, and "uncovered"
 * that slots have none.
 */

#include "tools/weekwheel-expirer/node/node.h"

struct expirer_masters;

/*
 * How to reach them; kind, doubt and context are set here. The caller keeps the strings until the end. What is known
 * before belongs to the only master: a cluster is refused with it.
 */
struct masters_config {
	struct node_config node;
	const char *sentinel_user;     /* NULL: none */
	const char *sentinel_password; /* NULL: none */
};

/*
 * Find the masters, and begin. Without an answer, the thread tries again and again. What no later try can repair is
 * reported: see node_start. NULL after a message.
 */
struct expirer_masters *masters_start(const struct masters_config *config);

/* NULL is harmless. */
void masters_stop(struct expirer_masters *masters);

/* Copy the numbers of the node at that place of the list. Returns 0 beyond its end, otherwise 1. Any thread. */
int masters_read_numbers(struct expirer_masters *masters, size_t place, struct node_numbers *numbers);

/*
 * Call fn with some of the keys of all nodes, as node_walk does, and move *walk on, which begins as zero. Returns 1 while
 * there may be more. Keys of a node that comes or goes meanwhile may be left out, or come twice. Any thread.
 */
struct masters_walk {
	size_t place; /* of the node in the list */
	uint32_t from;
};
int masters_walk(struct expirer_masters *masters, struct masters_walk *walk, node_fn *fn, void *context);

/*
 * Find what is known of a key. While its slot moves, two nodes may keep it: what is sure goes first. Returns 0 if no node
 * keeps it, otherwise 1. Any thread.
 */
int masters_find(struct expirer_masters *masters, const char *key, size_t length, struct node_key *found);

#endif
