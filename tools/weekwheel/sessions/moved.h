#ifndef TOOLS_WEEKWHEEL_SESSIONS_MOVED_H
#define TOOLS_WEEKWHEEL_SESSIONS_MOVED_H

/*
 * Sessions that are copied from another server or the masters of a cluster, the source, to weekwheel-sessiond, the
 * target, pass after pass, while both are in use.
 *
 * A pass scans the source. What it has found is remembered, a hash of each value with its deadline, so that the next
 * pass takes only what has changed. A batch of keys is compared with the target under WATCH and set in one
 * transaction: what somebody changes there meanwhile stays.
 */

#include <stdint.h>

#include "lib/redis/link/url.h"
#include "tools/weekwheel/input/keys.h"
#include "tools/weekwheel/jobs/jobs.h"
#include "tools/weekwheel/sessions/peer.h"

enum { MOVED_PAGE = 200 };

#define MOVED_NO_KEY (-2)      /* a deadline of what is not there */
#define MOVED_NO_DEADLINE (-1) /* as PEXPIRETIME says it */

/* What was found of a key at the source, and what was left at the target. */
struct known {
	uint64_t hash; /* of the value */
	int64_t deadline;
	int64_t there; /* the deadline that was seen at the target last; MOVED_NO_KEY: nothing was there yet */
	uint32_t pass; /* that found it last; 0: never, or it is gone */
	int is_other;  /* what was there is not from here */
};

/* A key of a page that is new or has changed. */
struct candidate {
	uint32_t key;
	int64_t deadline;
	redisReply *value;
	uint64_t hash;
	int sets;
};

/* A server of the source. */
struct moved_node {
	struct redis_address address;
	char place[REDIS_PLACE_MAX + 8];
	struct client client;
	struct peer peer;
	int is_open;
	int is_master;    /* it has slots. Of a source that is no cluster: it is the source */
	int is_receiving; /* it has listed a key of a slot that it does not serve yet */
};

struct moved {
	struct jobs jobs; /* the target */
	const char *from, *address, *match;
	int is_given, follow, dry_run;
	uint64_t database; /* at the target */
	struct redis_url url;
	struct moved_node **nodes; /* of the source, those that the URL names first */
	size_t node_count, node_room;
	int is_cluster;   /* the source is one */
	int is_moving;    /* slots are on their way between its servers */
	int is_lost;      /* a server of the source does not answer */
	uint64_t map;     /* a hash of which master has which slots */
	uint64_t on_move; /* keys that a pass could not read, since their slots move */
	struct peer target;
	int has_times; /* the source knows PEXPIRETIME */
	int64_t
	    slack; /* deadlines that differ by at most this many ms are equal, as they are computed from clock and remaining time */
	struct keys *keys;
	struct known *known;
	size_t room;
	uint32_t pass;
	struct candidate candidates[MOVED_PAGE];
	size_t count; /* of candidates */
	uint64_t read, set, same, kept, removed, others;
};

/* The number of an answer, or MOVED_NO_KEY; the hash of one that is a string. */
int64_t moved_number(const redisReply *reply);
uint64_t moved_hash(const redisReply *value);

/* Whether the command is to end: between two pages and two keys. */
int moved_is_stopped(void);

/* Whether two deadlines are the same. */
static inline int moved_is_same(const struct moved *moved, int64_t deadline, int64_t other)
{
	int64_t apart = deadline > other ? deadline - other : other - deadline;

	return deadline < 0 || other < 0 ? deadline == other : apart <= moved->slack;
}

/* ---- moved_source.c. Each returns 0, or -1 after a message. */

/*
 * Find and connect the servers that have the sessions. Before each pass: a cluster may have other masters by then.
 * *is_new is set if their slots are not those of before.
 */
int moved_find(struct moved *moved, int *is_new);
/* How many keys all of them have. */
int moved_count(struct moved *moved, uint64_t *count);
/* The keys of a page of such a server, as peer_scan, and what has changed of some keys: candidates. */
redisReply *moved_scan(struct moved *moved, struct moved_node *node, char cursor[PEER_CURSOR]);
int moved_take(struct moved *moved, struct moved_node *node, redisReply *const *keys, size_t count);
/* Name how many more keys are no strings. */
void moved_name_rest(const struct moved *moved);
/* Forget the candidates. */
void moved_drop(struct moved *moved);
/* Whether the source has the key no more: *gone is 0 if nobody knows. */
int moved_is_gone(struct moved *moved, const char *key, size_t size, int *gone);
void moved_close(struct moved *moved);

/* ---- moved_target.c. Each returns 0, or -1 after a message. */

/* Set those candidates that count, and forget all of them. */
int moved_put(struct moved *moved);
/* Delete what this pass has not found at the source, if it is there as it was set. */
int moved_remove(struct moved *moved);

#endif
