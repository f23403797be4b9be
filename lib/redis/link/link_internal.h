#ifndef LIB_REDIS_LINK_LINK_INTERNAL_H
#define LIB_REDIS_LINK_LINK_INTERNAL_H

/*
 * The parts of a link.
 *
 *     link --> node 0 --> idle connections           slots[16384]: the node of each (in a cluster only)
 *          --> node 1 --> idle connections
 *          ...
 *
 * Nodes are the hosts of the url and those that a cluster has named since. None is removed before the link is closed: a
 * pointer to a node stays valid. A run takes connections of several nodes in the order of their indices, so two runs
 * never wait for each other.
 *
 * Backing off. When a node cannot be reached:
 *   1. its failures count up, and retry_at moves ahead by a pause that doubles with each failure;
 *   2. until retry_at every caller gets the error of the last attempt at once;
 *   3. then one caller makes the next attempt, and moves retry_at ahead so that nobody joins it;
 *   4. success clears the failures, and so does an answer to calls that took a connection after the node was lost: one
 *      that others had in use then lives on, and while it serves, nobody makes an attempt.
 * Connecting does not show that a node cuts off its subscribers. An ear lost soon after it was opened therefore counts
 * as a cut of its node: the first may be a restart, and the next ear opens at once; further ones wait for such pauses.
 */

#include <hiredis/hiredis.h>
#include <poll.h>
#include <pthread.h>
#include <stdint.h>

#include "lib/base/memory.h"
#include "lib/base/time.h"
#include "lib/redis/link/link.h"
#include "lib/redis/link/tls.h"
#include "lib/redis/link/url.h"
#include "weekwheel/error.h"

#include <stdatomic.h>
#include <sys/queue.h>

#define REDIS_MOVING_MAX 64
#define REDIS_OWES_NOTHING UINT64_MAX
#define REDIS_SENTENCE_MAX 1024

/*
 * Setting aside. A node that answers "later" (LOADING, NOREPLICAS, ...), or is silent while others are not, is set
 * aside alone, and so is a slot that moves:
 *   1. `until` moves ahead by a pause that grows with each such answer;
 *   2. in the first moments calls wait and try again; after that they end with WW_EAGAIN at once;
 *   3. after `until` one call is a probe, and moves `until` ahead so that nobody joins it;
 *   4. an answer ends it.
 */
struct redis_pause {
	unsigned count;   /* such answers; 0: it is not set aside */
	uint64_t since;   /* by the link's clock, as are all */
	uint64_t until;   /* no call before, unless it waits */
	uint64_t refused; /* calls that ended because of it; with the first it is reported */
	int is_writing;   /* it refuses writes alone */
	char why[96];
};

struct redis_moving {
	unsigned slot;
	struct redis_pause pause;
};

struct redis_node {
	struct redis_address address;
	char place[REDIS_PLACE_MAX];
	uint32_t index;
	struct redis_wire *idle;
	TAILQ_HEAD(, redis_wire) busy; /* in use, the oldest first */
	unsigned busy_count;
	_Atomic uint64_t heard; /* when any of them received something, monotonic */
	uint64_t reach;         /* ns that the last connection took to make; 0: none was made */
	struct redis_pause pause;
	uint64_t lost;       /* when it was, by the link's clock */
	uint64_t lost_calls; /* that have ended because of it */
	char why[96];        /* it is lost */
	unsigned open;       /* connections: idle, in use, and being made */
	unsigned failures;   /* in a row, to reach it */
	uint64_t retry_at;   /* by the link's clock */
	int error;           /* of the last failure */
	int is_lost;         /* and that was reported */
	int has_slots;       /* or is the single server */
	int is_doubted;      /* its map is read last */
	unsigned cuts;       /* ears lost soon after they were opened, in a row */
	uint64_t hear_at;    /* by the link's clock: no ear opens before */
};

struct redis_link {
	const struct ww_allocator *allocator;
	struct redis_link_config config;
	struct redis_url url;
	struct redis_tls *tls; /* NULL: none */
	pthread_mutex_t lock;  /* of all below */
	pthread_cond_t freed;  /* a connection came back or was closed */
	struct redis_node **nodes;
	uint32_t count;
	uint32_t room;
	struct redis_node **slots; /* NULL: a single server; REDIS_SLOTS of them */
	int is_stale;              /* the map of slots */
	int is_refreshing;
	uint64_t refreshed; /* when, by the link's clock */
	uint32_t next_node; /* for the next ear */
	uint64_t random;
	struct redis_moving moving[REDIS_MOVING_MAX];
	unsigned moving_count;
	struct redis_pause moves; /* of all moving slots, since one refused a call */
	_Atomic unsigned asides;  /* nodes and slots that are set aside */
	uint64_t complained;      /* when */
	char complaint[REDIS_SENTENCE_MAX];
	struct redis_link_stats stats;
};

/* ---- link.c */

uint64_t ww_redis_link_now(struct redis_link *link);
/* Complain that a node answers a command with this error. */
void ww_redis_link_report(
    struct redis_link *link, const struct redis_node *node, const char *command, const struct redisReply *reply);

/* ---- node.c. Call those named _locked with the lock, the others without. */

/* Find a node, or make it. NULL: no memory, or too many. */
struct redis_node *ww_redis_node_find_locked(struct redis_link *link, const char *host, size_t length, unsigned port);
/* How to take a connection. */
#define REDIS_TAKE_IDLE 1U /* without making one: WW_OK and NULL where one has to be made */
#define REDIS_TAKE_SOON 2U /* without waiting for a silent node */
/*
 * Take an idle connection or a new one. Errors: those of connecting; WW_EAGAIN: all were in use until the deadline, or
 * the node is silent while others are not.
 */
int ww_redis_node_take(
    struct redis_link *link, struct redis_node *node, uint64_t deadline, unsigned how, struct redis_wire **wire);
/* Give back a connection whose calls were all answered. */
void ww_redis_node_give(struct redis_link *link, struct redis_wire *wire);
/* Close one that owes replies, and nothing else. */
void ww_redis_node_close(struct redis_link *link, struct redis_wire *wire);
/* Close a broken connection, and the idle ones, which are no better. is_failure: leave the node alone for a while. */
void ww_redis_node_drop(struct redis_link *link, struct redis_wire *wire, int is_failure, int error);
/* Open a connection outside the pool; the caller closes it. */
int ww_redis_node_connect(
    struct redis_link *link, struct redis_node *node, uint64_t deadline, struct redis_wire **wire);
/* The pause after that many failures in a row. */
uint64_t ww_redis_node_pause_locked(struct redis_link *link, unsigned failures);
void ww_redis_node_close_all(struct redis_link *link);

/* ---- aside.c: nodes and slots that say "later" (see struct redis_pause). slot -1: the call has none */

/* Silence after which a node is set aside if others serve, ns. */
static inline uint64_t redis_silence(const struct redis_link *link)
{
	return link->config.timeout / 8;
}

/* Whether a call may go to that node now. WW_EAGAIN: it ends. */
int ww_redis_aside_gate(struct redis_link *link, struct redis_node *node, int slot, unsigned flags);
/* The node answered "later", or there is none for the slot (NULL). Returns 1: the call waits; 0: it ends. */
int ww_redis_aside_later(struct redis_link *link, struct redis_node *node, int slot, unsigned flags, const char *why);
/* A call was answered. */
void ww_redis_aside_serves(struct redis_link *link, struct redis_node *node, int slot, unsigned flags);
/* The node is silent. */
void ww_redis_aside_silent(struct redis_link *link, struct redis_node *node);
/* How long nothing came from a node that owes replies, ns. */
uint64_t ww_redis_aside_silence_locked(const struct redis_node *node);
int ww_redis_aside_others_serve_locked(const struct redis_link *link, const struct redis_node *node);
/* The pause after that many failures, from `first` to `most`. */
uint64_t ww_redis_aside_pause_locked(struct redis_link *link, uint64_t first, uint64_t most, unsigned count);

/* ---- cluster.c */

/* Ask whether this is a cluster, and read its map of slots if so. */
int ww_redis_cluster_discover(struct redis_link *link, uint64_t deadline);
/* Read the map again if it is stale, but not twice within 100 ms. */
void ww_redis_cluster_refresh(struct redis_link *link, uint64_t deadline);
/* The node for a call with that key; NULL: no node has the slot. *slot becomes -1 if there are none. */
struct redis_node *ww_redis_cluster_route(struct redis_link *link, const char *key, int *slot);
/* The node that a MOVED or ASK from `from` names; a MOVED also changes the map. NULL: it names none. */
struct redis_node *ww_redis_cluster_follow(struct redis_link *link, const struct redis_node *from, const char *text);

/* ---- reply.c: what a reply means */

enum redis_meaning {
	REDIS_IS_ANSWER,
	REDIS_IS_LATER,    /* ask again after a pause */
	REDIS_IS_MOVED,    /* another node has the slot now */
	REDIS_IS_ASK,      /* the slot is moving: ask another node this once */
	REDIS_IS_UNKNOWN,  /* the server does not have the script */
	REDIS_IS_READONLY, /* the server is a replica */
	REDIS_IS_ERROR
};

/* What a reply means, and the error to end with if nothing else helps. */
enum redis_meaning ww_redis_error_meaning(const struct redisReply *reply, int *error);
/* Copy an error's text without control characters, cut to the size. */
void ww_redis_error_copy(char *to, size_t size, const struct redisReply *reply);

/*
 * ---- wire.c and reply.c
 *
 * One connection: append commands, send as much as the system takes, and take replies in order. Only connect and wait
 * block, both until a deadline.
 *
 * hiredis connects, formats commands and reads the protocol. It does not send, since that raises SIGPIPE, and it does
 * not make replies, since that ends the process when memory runs out: reply.c makes them, within a limit.
 *
 * One thread at a time. Errors: WW_EIO: the connection broke; WW_ECORRUPT: no reply, or one too large; WW_ENOMEM. After
 * an error the connection can only be closed; why says what was wrong.
 */

/* The memory for replies of one connection. */
struct redis_budget {
	const struct ww_allocator *allocator;
	size_t max;   /* bytes of one reply */
	size_t left;  /* for the one being read */
	int exceeded; /* it needed more */
};

struct redis_wire {
	struct redisContext *context;
	struct redis_tls_wire *tls; /* NULL: none */
	struct redis_wire *next;    /* in the node's idle list */
	TAILQ_ENTRY(redis_wire) busy;
	uint64_t taken;          /* when it was, from the pool, by the link's clock */
	struct redis_node *node; /* whose pool it is of; NULL: none */
	_Atomic uint64_t asked;  /* since when it owes replies, monotonic, or REDIS_OWES_NOTHING */
	struct redis_budget budget;
	size_t sent;  /* bytes of those appended */
	int has_sent; /* anything since it was taken */
	int has_more; /* not all that was there was received */
	char why[160];
};

/* On an error the reason is written to why of that size. */
int ww_redis_wire_connect(struct redis_wire **wire, const struct redis_address *address,
    const struct redis_budget *budget, struct redis_tls *tls, uint64_t deadline, char *why, size_t size);
void ww_redis_wire_close(struct redis_wire *wire);

/* Errors: WW_ENOMEM: nothing was appended. */
int ww_redis_wire_append(struct redis_wire *wire, size_t argc, const char *const *argv, const size_t *lengths);
/* Send what the system takes now; poll for POLLOUT while it is not all sent. */
int ww_redis_wire_send(struct redis_wire *wire);
int ww_redis_wire_is_sent(const struct redis_wire *wire);
/* Read what is there. */
int ww_redis_wire_receive(struct redis_wire *wire);
/* The next reply that was received: 1 and *reply, or 0. */
int ww_redis_wire_reply(struct redis_wire *wire, struct redisReply **reply);
/* Nothing waits to be read, and the server has not closed: the connection can be used again. */
int ww_redis_wire_is_quiet(const struct redis_wire *wire);
/* Send what was appended, and wait for one reply until the deadline, which is WW_EIO. */
int ww_redis_wire_wait(struct redis_wire *wire, uint64_t deadline, struct redisReply **reply);

/*
 * Log in, choose the database, and find out whether this is Redis. Errors: also WW_EDENIED: wrong password or missing
 * rights; WW_EINVAL: there is no such database.
 */
int ww_redis_greet(const struct redis_url *url, struct redis_wire *wire, uint64_t deadline);

extern struct redisReplyObjectFunctions ww_redis_reply_functions;
void ww_redis_reply_free(struct redisReply *reply);

#endif
