#ifndef TOOLS_WEEKWHEEL_EXPIRER_NODE_NODE_INTERNAL_H
#define TOOLS_WEEKWHEEL_EXPIRER_NODE_NODE_INTERNAL_H

/* A node, for the files of this folder. */

#include <pthread.h>

#include "lib/base/time.h"
#include "tools/weekwheel-expirer/node/node.h"
#include "tools/weekwheel-expirer/node/talk.h"

#define MS UINT64_C(1000000)

struct expirer_node {
	struct node_config config;
	struct redis_address address;
	char place[REDIS_PLACE_MAX];
	struct talk talk;
	char error[200]; /* the last answer at the line */
	struct keeper keeper;
	int is_awaited;                           /* log when it becomes exact */
	int is_appended;                          /* something has to be sent at once */
	int is_flushed;                           /* a pass is to begin */
	int is_down;                              /* and that was reported */
	int is_behind;                            /* the oldest change has waited too long */
	uint64_t marked;                          /* how many keys have begun to wait so far */
	uint64_t marked_at;                       /* at that time */
	uint64_t began;                           /* the pass */
	uint64_t heard[2];                        /* when bytes last came at the line, and at the ear */
	char lost[sizeof((struct talk *)0)->why]; /* why Redis is away; "": it is there */
	uint64_t pinged;                          /* when the ear was pinged; 0: it owes no answer */
	uint64_t gained;                          /* when the first and the last slot came; 0: none has */
	uint64_t gained_last;
	int is_ending;
	int is_moved; /* to another address */
	pthread_t thread;
	pthread_mutex_t busy; /* of the thread, unless it waits: of the keeper */
	int wake;             /* an eventfd: there are orders */
	pthread_mutex_t lock;
	struct node_numbers shown; /* under the lock, as all below */
	struct {
		struct redis_address address;
		uint8_t serves[KEEPER_SLOTS / 8];
		int is_moved;
		int is_ending;
		int is_over; /* the thread has ended */
	} orders;
};

static inline uint64_t now_ns(void)
{
	return time_now(CLOCK_MONOTONIC);
}

/* ---- report.c: states, the log and numbers */

/* A state's name, of this node. */
const char *node_state(const struct expirer_node *node, const char *state);
void node_log_lost(struct expirer_node *node, const char *why);
/* End the states of the server, since it is lost or no longer the master. */
void node_end_states(const struct expirer_node *node, int is_left);
/* Report when it has become exact, whether the window is too short, and how far Redis's clock was stepped. */
void node_log_exact(struct expirer_node *node);
void node_log_outrun(const struct expirer_node *node);
void node_log_step(struct expirer_node *node);
/* Report when the cluster is down there, or serves again. */
void node_log_down(struct expirer_node *node);
/* Let its numbers be seen. */
void node_show(struct expirer_node *node);

#endif
