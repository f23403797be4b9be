#ifndef TOOLS_WEEKWHEEL_EXPIRER_NODE_NODE_H
#define TOOLS_WEEKWHEEL_EXPIRER_NODE_NODE_H

/*
 * A master, and the thread that keeps its deadlines. It has two connections:
 *
 *     line    requests of the keeper, and what they are answered
 *     ear     subscribed to __redis__:invalidate, to which the line's CLIENT TRACKING sends the names of changed keys
 *
 * Where client tracking is refused, the ear is subscribed to keyspace events of deadlines instead.
 *
 * The ear is there before the tracking, and the tracking before the first page of a pass: no change is missed while
 * both connections live. If one is lost, or its Redis is no master any more, both are made anew, and a pass begins.
 * The same happens when another server takes the master's place: the known keys stay, and are asked for meanwhile.
 *
 * The states "redis PLACE" and "silent PLACE" report that (state.h), and the log says from when on a pass has made it
 * exact again. "behind PLACE" reports that changes wait for too long, "flush PLACE" and "slots PLACE" that a pass
 * begins for that reason.
 */

#include "lib/redis/link/url.h"
#include "tools/weekwheel-expirer/keys/keeper.h"

struct expirer_node;

/* How it hears of changes. */
enum node_changes { CHANGES_AUTO, CHANGES_TRACKING, CHANGES_EVENTS };

enum node_kind { NODE_ALONE, NODE_OF_CLUSTER, NODE_OF_SENTINEL };

struct node_config {
	const char *url;
	const char *user;     /* NULL: the url's */
	const char *password; /* NULL: the url's */
	unsigned db;
	const char *match; /* NULL: all keys */
	int only_later;
	int changes;        /* enum node_changes */
	uint64_t window_ms; /* 0: keep all keys */
	uint64_t lead_ms;   /* these three are of values: see keeper.h */
	uint64_t value_max;
	uint64_t values_max;
	const struct keeper_watch *watch; /* NULL: ends are not reported */
	struct deadlines *deadlines;      /* what is known before; the node takes it over, even if it cannot start */
	enum node_kind kind;
	/*
	 * Another server may have the master's place, or some of its slots. Called in the node's thread. NULL: not
	 * reported
	 */
	void (*doubt)(void *context);
	void *context;
};

/*
 * Make a node and its thread, with the slots that it serves in a cluster. If Redis cannot be reached, the thread tries
 * again and again. is_first: what no later try can repair is reported, and NULL returned: a server that is too old, a
 * replica, a wrong password, missing rights, a missing database. Otherwise the thread tries that again, too. Also
 * returns NULL without memory. The caller keeps the strings of config until the end.
 */
struct expirer_node *node_start(const struct node_config *config, const struct redis_address *address,
    const uint8_t slots[KEEPER_SLOTS / 8], int is_first);

/* Another server is the master now. */
void node_move(struct expirer_node *node, const struct redis_address *address);

/* Set its slots. If some are new, a pass follows. */
void node_serve(struct expirer_node *node, const uint8_t slots[KEEPER_SLOTS / 8]);

/* Ask the thread to end; returns 1 when it has. */
int node_end(struct expirer_node *node);

/* End the thread and free the node. NULL is harmless. */
void node_stop(struct expirer_node *node);

struct node_numbers {
	char place[REDIS_PLACE_MAX];
	struct keeper_stats keeper; /* not exact while a change has waited for over a second */
	uint64_t waiting;           /* keys to be looked up */
	uint64_t waiting_bytes;
	int is_connected;
	int has_reason; /* a state says why it is not exact */
};

/* Copy its numbers. Any thread. */
void node_read_numbers(struct expirer_node *node, struct node_numbers *numbers);

/*
 * Call fn with some of its keys and in how many ms each ends, and move *from on, which begins at 0. Returns 1 while there
 * may be more. The node waits meanwhile: fn has to be short, and pauses between calls let it go on. Any thread.
 */
typedef void node_fn(void *context, const char *key, size_t length, uint64_t left_ms);
int node_walk(struct expirer_node *node, uint32_t *from, node_fn *fn, void *context);

/* What a node knows of a key. */
struct node_key {
	char place[REDIS_PLACE_MAX];
	int64_t deadline; /* ms of Redis's clock */
	uint64_t left_ms;
	int is_sure;  /* Redis said so, is there, and would have reported a change since */
	int is_asked; /* the deadline has passed, and Redis is being asked */
	int is_guess; /* no deadline is known: it is asked for again until a node has it */
};

/* Returns 0 if it does not keep the key, otherwise 1. It waits meanwhile, as above. Any thread. */
int node_find(struct expirer_node *node, const char *key, size_t length, struct node_key *found);

#endif
