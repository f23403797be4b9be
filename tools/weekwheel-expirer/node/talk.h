#ifndef TOOLS_WEEKWHEEL_EXPIRER_NODE_TALK_H
#define TOOLS_WEEKWHEEL_EXPIRER_NODE_TALK_H

/* The two connections to a Redis: see node.h. */

#include "lib/redis/link/line.h"
#include "tools/weekwheel-expirer/node/node.h"

struct talk {
	struct redis_line *line;
	struct redis_line *ear;
	int wake; /* see talk_open */
	enum node_kind kind;
	int has_times;    /* PEXPIRETIME */
	int by_events;    /* changes come as keyspace events, not by tracking */
	char prefix[256]; /* of the keys that count */
	char why[REDIS_LINE_WHY + 300];
};

enum talk_result {
	TALK_WORKS,
	TALK_AGAIN, /* it may work later */
	TALK_WRONG  /* only a change of the settings there or here repairs it */
};

/*
 * Ask whether the server at `address` is a node of a cluster, before talk_open. Returns as it does: `why` gets the
 * reason.
 */
enum talk_result talk_find_cluster(struct talk *talk, const struct node_config *config,
    const struct redis_address *address, int wake, int *is_cluster);

/*
 * Open both, find out what the server can do, and subscribe to changes. `why` gets what is wrong, and the remedy. Each
 * command waits for some seconds at most; none is sent any more once `wake`, an eventfd, is readable: TALK_AGAIN.
 */
enum talk_result talk_open(
    struct talk *talk, const struct node_config *config, const struct redis_address *address, int wake);
int talk_is_ended(int wake);
void talk_close(struct talk *talk);

/*
 * Take the names of changed keys out of a reply at the ear. Returns 0, -1 without memory, or 1 if any key may have
 * changed.
 */
int talk_hear(const struct redisReply *reply, struct keeper *keeper);

#endif
