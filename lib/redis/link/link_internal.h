#ifndef LIB_REDIS_LINK_LINK_INTERNAL_H
#define LIB_REDIS_LINK_LINK_INTERNAL_H

/*
 * What a link consists of.
 *
 *     link --> node 0 --> idle connections           slots[16384]: which node has it (a cluster alone)
 *          --> node 1 --> idle connections
 *          ...
 *
 * Nodes are the hosts of the url and whatever a cluster has named since; none is removed before the link is closed, so
 * that a pointer to one stays good. A run takes connections of several nodes in the order of their indices, so that two
 * runs never wait for each other.
 *
 * A node that could not be reached is asked again after a pause that doubles with each failure; until then whoever
 * needs it gets the error of the last attempt at once. One alone makes the next attempt. An ear that is cut off soon
 * after it was opened is a failure of the same kind, which connecting does not show: the next is opened at once, those
 * after it likewise after a pause.
 */

#include <pthread.h>
#include <stdint.h>

#include "lib/redis/link/link.h"
#include "lib/redis/link/url.h"
#include "lib/redis/link/wire.h"
#include "weekwheel/error.h"

#define REDIS_SLOTS 16384
#define REDIS_NODES_MAX 1024
#define REDIS_SENTENCE_MAX 1024

struct redis_node {
	struct redis_address address;
	uint32_t index;
	struct redis_wire *idle;
	unsigned open;     /* connections: idle, in use, and being made */
	unsigned failures; /* in a row, to reach it */
	uint64_t retry_at; /* of the link's clock */
	int error;         /* of the last failure */
	int is_lost;       /* and it was reported */
	int has_slots;     /* or is the single server */
	unsigned cuts;     /* ears that it ended soon after they were opened, in a row */
	uint64_t hear_at;  /* of the link's clock: no ear is opened before */
};

struct redis_link {
	const struct ww_allocator *allocator;
	struct redis_link_config config;
	struct redis_url url;
	pthread_mutex_t lock; /* of all below */
	pthread_cond_t freed; /* a connection was given back or closed */
	struct redis_node **nodes;
	uint32_t count;
	uint32_t room;
	struct redis_node **slots; /* NULL: a single server; REDIS_SLOTS of them */
	int is_stale;              /* the map of slots */
	int is_refreshing;
	uint64_t refreshed; /* when, by the link's clock */
	uint32_t next_node; /* that an ear tries */
	uint64_t random;
	uint64_t complained;                /* when */
	char complaint[REDIS_SENTENCE_MAX]; /* the last one */
	struct redis_link_stats stats;
};

/* ---- redis_link.c */

uint64_t ww_redis_link_now(struct redis_link *link);
/* Report. Not with the lock. */
void ww_redis_link_say(struct redis_link *link, const char *format, ...) __attribute__((format(printf, 2, 3)));
void *ww_redis_link_take(struct redis_link *link, size_t size);
void ww_redis_link_give(struct redis_link *link, void *block, size_t size);

/* ---- redis_link_node.c. With the lock where the name says so. */

/* "host:port", for sentences. */
#define REDIS_PLACE_MAX (REDIS_HOST_MAX + 16)
void ww_redis_node_place(const struct redis_node *node, char place[REDIS_PLACE_MAX]);
/* Find it, or make it. NULL: no memory, or too many. */
struct redis_node *ww_redis_node_find_locked(struct redis_link *link, const char *host, size_t length, unsigned port);
/* An idle connection or a new one. Errors: WW_EAGAIN: all are in use until the deadline. Those of connecting. */
int ww_redis_node_take(struct redis_link *link, struct redis_node *node, uint64_t deadline, struct redis_wire **wire);
/* Give it back: the server has answered. */
void ww_redis_node_give(struct redis_link *link, struct redis_wire *wire);
/* Close it, and all that are idle, which will not be better; is_failure: the node is not to be asked for a while. */
void ww_redis_node_drop(struct redis_link *link, struct redis_wire *wire, int is_failure, int error);
/* A connection beside the pool, which the caller closes. */
int ww_redis_node_connect(
    struct redis_link *link, struct redis_node *node, uint64_t deadline, struct redis_wire **wire);
/* How long to wait after so many failures in a row. */
uint64_t ww_redis_node_pause_locked(struct redis_link *link, unsigned failures);
void ww_redis_node_close_all(struct redis_link *link);

/* ---- redis_link_cluster.c */

/* Ask whether it is a cluster, and read its map if it is. */
int ww_redis_cluster_discover(struct redis_link *link, uint64_t deadline);
/* Read the map anew, if it is stale and was not read just now. */
void ww_redis_cluster_refresh(struct redis_link *link, uint64_t deadline);
/* Which node to send a call with that key to; NULL: nobody has the slot. */
struct redis_node *ww_redis_cluster_route(struct redis_link *link, const char *key);
/* The node that a MOVED or ASK names; a MOVED is remembered. from: who said it. NULL: it names none. */
struct redis_node *ww_redis_cluster_follow(struct redis_link *link, const struct redis_node *from, const char *text);

/* ---- redis_link_error.c */

enum redis_meaning {
	REDIS_IS_ANSWER,
	REDIS_IS_LATER,    /* ask again after a pause */
	REDIS_IS_MOVED,    /* another node has the slot */
	REDIS_IS_ASK,      /* another node has it for this time */
	REDIS_IS_UNKNOWN,  /* the script, to the server */
	REDIS_IS_READONLY, /* the server is a replica */
	REDIS_IS_ERROR
};

/* What a reply means, and the error that it ends as if nothing else helps. */
enum redis_meaning ww_redis_error_meaning(const struct redisReply *reply, int *error);
/* Copy a text that came from outside, without control characters and cut to the size. */
void ww_redis_error_copy(char *to, size_t size, const char *text, size_t length);

#endif
