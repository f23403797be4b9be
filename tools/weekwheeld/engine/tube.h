#ifndef TOOLS_WEEKWHEELD_ENGINE_TUBE_H
#define TOOLS_WEEKWHEELD_ENGINE_TUBE_H

/* Tubes that clients use, watch or wait at. */

#include <stdint.h>
#include <sys/queue.h>

#include "lib/base/seeded.h"
#include "weekwheel/jobs.h"

struct server;

/* A tube that a client uses or watches. The store knows the tubes that have jobs or are paused. */
struct server_tube {
	UT_hash_handle hh;
	unsigned users;
	unsigned watchers;
	unsigned waiters;
	unsigned pollers;            /* requests over HTTP that wait for its jobs */
	int calls_pollers;           /* it may have jobs for them */
	unsigned wanted;             /* of a shared store: how many of those that wait are to ask it in this turn */
	uint64_t events;             /* how often it may have become ready */
	TAILQ_HEAD(, watch) waiting; /* in order of arrival */
	STAILQ_ENTRY(server_tube) next_ready;
	int is_ready; /* it is in `ready` */
	char name[WW_TUBE_MAX + 1];
};

/* The greatest code that requests over HTTP have lately said for a tube. */
struct asked_tube;

struct tubes {
	struct server_tube *all; /* hashed by name, in the order in which they were made */
	struct server_tube *default_tube;
	STAILQ_HEAD(, server_tube) ready; /* they may have jobs for clients that wait */
	unsigned waiting;                 /* clients that wait for a job, of the protocol and of HTTP */
	struct asked_tube *asked;         /* hashed by name, in the order in which they were asked for */
	/* Return the greatest code of all connections that take jobs of a tube; -1: there is none. */
	int64_t (*known)(struct server *server, struct server_tube *tube);
};

/* Find a tube that is used or watched; NULL if there is none. */
struct server_tube *tube_find(struct server *server, const char *name);

/* Find a tube or make it; NULL without memory. */
struct server_tube *tube_make(struct server *server, const char *name);

/* Forget a tube that nobody uses or watches. */
void tube_drop(struct server *server, struct server_tube *tube);
/* At the end of the server. */
void tube_drop_all(struct server *server);

/* Jobs of a tube may be ready: clients that wait for them are served at the end of the turn. */
void tube_ready(struct server *server, struct server_tube *tube);
void tube_ready_all(struct server *server);

/* ---- Codes of jobs */

/* A request over HTTP takes jobs of a tube, up to this code. */
void tube_asked(struct server *server, const char *name, uint32_t code);

/*
 * In the loop, or for a shared store, whose jobs have no code, any thread: return how many ready jobs of a tube have a code above that of every worker: of the connections that have reserved and
 * watch the tube now, and of the requests over HTTP within the last minute. Store the lowest such code, or 0.
 */
uint64_t tube_unknown(struct server *server, const struct ww_tube_stats *stats, uint32_t *lowest);

#endif
