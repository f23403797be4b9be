#ifndef WEEKWHEEL_JOBS_REDIS_H
#define WEEKWHEEL_JOBS_REDIS_H

/*
 * Jobs in Redis 7, on one server or in a Redis Cluster, shared by any number of processes on any number of machines.
 *
 * This header opens a struct ww_jobs. Every call of jobs.h works on it as jobs.h says. Each step is one script, which
 * Redis executes whole or not at all.
 *
 *     process A                  Redis                process B
 *     +--------------+     +--------------------+     +--------------+
 *     | put      ----|---> | shard 0: delayed,  | <---|---- reserve  |
 *     |              |     |  ready, in flight  |     |              |
 *     | worker: when | <---|-- messages         |---> | worker: when |
 *     | shards 0, 2  |     | shard 1: ...       |     | shards 1, 3  |
 *     | are due next |     |   ...              |     | are due next |
 *     +--------------+     +--------------------+     +--------------+
 *
 * A job lives in one of `shards` shards: chosen by the hash of its tube and key or, without a key, in turn. A shard is
 * on one node. Each open store has a thread, its *worker*. The worker watches some shards: it keeps the time of each
 * one's next event in a timing wheel, and messages notify it of earlier events. It makes due jobs ready and treats
 * expired leases as jobs.h says. Workers divide the shards among themselves, and take over the shards of a worker that
 * has been silent for `lease`. Every script first does the same work for its shard. The answer of a call therefore
 * never depends on a worker, except for where a reserve looks (see below).
 *
 * Time is that of Redis, in us, rounded up. A job is never early by the clock of its node, whatever the workers' clocks
 * show. Elapsed and wall time are the same here: WW_JOB_WALL is kept and changes nothing. Keep the clocks of a
 * cluster's nodes in step: they decide the order of jobs of different shards.
 *
 * What differs from an embedded store:
 * - Leases are written. A lease survives the end of its process and a restart of Redis, until it expires.
 * - ww_jobs_begin and ww_jobs_commit do nothing. Each call takes effect by itself, before it returns. ww_jobs_put_many,
 *   reserve_many and finish_many save round trips.
 * - ww_jobs_reserve asks Redis only where this process knows of ready jobs. It finds jobs that this process made ready
 *   at once, jobs that another process made ready once its message has arrived, and jobs that come due once the shard's
 *   worker has made them ready. If that worker died, this takes up to `lease` longer. Shards that do not answer do not
 *   hold back jobs of other shards: the call fails only if there are no others, or the timeout is over. ww_jobs_wait
 *   learns of jobs in the same way.
 * - While a node of a cluster refuses calls or is silent, or a slot moves, its shards are set aside. Calls to them wait
 *   until an eighth of the timeout has passed since that began, and later calls answer WW_EAGAIN at once. One call
 *   after each of a series of growing pauses is a probe. All other shards go on, and a put without a key goes to one of
 *   them. While no node serves, calls wait until the whole timeout has passed since that began.
 * - Among ready jobs of different shards, the least priority comes first as far as this process knows. Jobs of equal
 *   priority come in order within a shard.
 * - ww_jobs_reserve_many takes from one shard all jobs that come before the best of the other shards, then goes on with
 *   the next shard. It waits for Redis whenever the order of priorities passes from one shard to another: once a shard
 *   if all priorities are the same, up to once a job if they all differ. When the timeout is over it returns the jobs
 *   that it has. Each time the complexity is O(shards * count), and in Redis O((count + jobs taken) * log ready).
 * - Tokens grow with every delivery of a job, and of jobs of the same shard. Across shards they follow the time, in us.
 * - ww_jobs_list gives jobs in no order. `after` is not an id but a former `next`. A job may be listed twice if many
 *   jobs come or go between pages, or went just before. A list that a failover interrupts may leave jobs out: list
 *   again. The list skips records that cannot be read: it stores `next`, and answers WW_ECORRUPT. ww_jobs_kick takes
 *   delayed jobs in order of their due times within a shard. ww_jobs_forecast of one tube reads all jobs.
 * - A pause belongs to Redis, holds for all processes, and does not end with the store. Statistics "since the store was
 *   opened" count since it was made; puts and finished of a tube count this process alone.
 * - Limits of tubes hold over all processes. For each such tube one shard counts. A reserve asks that shard for permits
 *   first and settles with it afterwards, so it takes two round trips more, and the end of a lease takes one more. If the
 *   tube has only a rate, and no limits of groups, a reserve takes one round trip more, and the end of a lease none. If a
 *   process dies in between, its permits stay with jobs that do not run, for twice the timeout. If the answer to an end
 *   is lost, or a job is replaced by its key while it runs, its place is free again once a caller is refused: then,
 *   every 5 s at most, up to 128 places of that limit are compared with the shards. If the limit of a tube was reached,
 *   a message notifies the process when jobs may start; if that is lost, the process asks again after 5 s. If a start
 *   is late by up to 50 ms, up to 10 ms of that is made up. While more jobs wait than a rate lets start, that message
 *   comes for several starts together: for those of up to 3 ms, and of 1 % of `per`. With limits of groups a reserve takes one round trip more,
 *   which finds whose turn it is.
 * - Groups take turns in each shard, and each process takes from the shards of such a tube in turn. A group whose jobs
 *   wait therefore gets one turn while the others together get at most groups * shards turns for each process that
 *   reserves. Between the shards of such a tube, priorities have no order.
 * - Jobs do not expire, and have no code and no follow-up: a put whose spec.expire, spec.code or spec.then is given answers
 *   WW_EINVAL. Use an embedded store or PostgreSQL for them.
 * - loaded, commits, syncs and disk of the statistics are 0.
 *
 * Acknowledged changes are as durable as Redis is configured to be; weekwheeld(1) says what to configure. A failover or
 * a restart that loses the last puts also gives their ids to new jobs. A caller that keeps ids should name jobs by key
 * instead.
 *
 * Errors, of every call: WW_EIO: Redis cannot be reached, or the connection broke before the answer came; in the latter
 * case the call may or may not have taken effect. finish, release and bury may be called again; WW_ESTALE may then mean
 * that the first call succeeded. WW_EAGAIN: Redis is loading, the cluster is electing, or a node or slot is set aside;
 * nothing has changed, so call again later. WW_EFULL: Redis has no memory left (maxmemory) or cannot write. WW_EDENIED:
 * the user has no rights, or the server is a replica.
 * WW_ETIMEOUT, of a put or move: it is stored, but fewer than `replicas` replicas have confirmed that. It is lost if
 * its node is lost before they have it; put it again with its key.
 * WW_ECORRUPT: the store was emptied or replaced in Redis (and the worker could not make it anew), or an answer makes
 * no sense. `report` says more.
 *
 * Threads: any, as jobs.h says. Fork: in a child every call answers WW_ECLOSED.
 */

#include <stddef.h>
#include <stdint.h>

#include "weekwheel/jobs.h"

#ifdef __cplusplus
extern "C" {
#endif

#define WW_REDIS_PREFIX_MAX 64
#define WW_REDIS_SHARDS_MAX 4096
#define WW_REDIS_NODES_MAX 1024
#define WW_REDIS_REPLICAS_MAX 16

/*
 * Never make any part of a store. If there is no store, or it is lost while it is open, the answer is WW_ENOTFOUND. If
 * a part of it is lost, either the key of the whole store or a shard, ww_jobs_redis_open and the calls that notice
 * answer WW_ECORRUPT, and `report` says which part.
 * Without this flag, a lost part is made anew. A lost key of the whole store is made from the first shard that is left,
 * with as many shards as the config names, and all jobs are kept. A lost shard is made empty. With or without the flag,
 * nothing is made if parts belong to different stores: the answer is WW_ECORRUPT.
 */
#define WW_REDIS_EXISTING 1u
/*
 * For programs that look at a store or put into it, and end. No worker is started, and no shard is taken from other
 * workers. `ready` is not called, and ww_jobs_wait answers 0 or a job at once.
 */
#define WW_REDIS_PASSIVE 2u

struct ww_jobs_redis_config {
	/*
	 * redis://[[user]:password@]host[:port][/db], for several hosts of one cluster redis://host:port,host:port, or
	 * unix:///path. With TLS rediss://...[/][?ca=FILE&cert=FILE&key=FILE]: the authorities to trust instead of the
	 * system's, and this client's certificate and key (PEM), which are read when the store is opened. In user,
	 * password and files, percent-encode all but letters and digits.
	 */
	const char *url;
	const char *prefix; /* begins every key; 1 to WW_REDIS_PREFIX_MAX letters, digits, '.', '_', '-'; "weekwheel" */
	const char *name;   /* this worker's name; NULL: made of the host's name, the process and a random number */
	uint32_t shards;    /* of a store that is made, 1 to WW_REDIS_SHARDS_MAX; 16 */
	uint64_t slice;     /* of a store that is made: ns of due times that share a set, 1 s to 1 day; 10 min */
	uint64_t lease;     /* silence after which a worker's shards are taken over; 1 s to 1 h; 6 s */
	uint64_t timeout;   /* of a call; 10 ms to 1 h; 2 s */
	uint64_t backoff_max; /* the longest pause between attempts to reach Redis again; 10 ms to 1 h; 5 s */
	uint32_t connections; /* the most to each node; 1 to 1,000; 16 */
	/*
	 * How many replicas must have a job before ww_jobs_put, put_many and move answer, 0 to WW_REDIS_REPLICAS_MAX;
	 * 0. They answer WW_ETIMEOUT otherwise, after half of `timeout`.
	 */
	uint32_t replicas;
	size_t body_max;                      /* bytes of a body; 65,535 */
	uint32_t flags;                       /* WW_REDIS_* */
	const struct ww_allocator *allocator; /* NULL: the default */
	/*
	 * Called when jobs of a tube may have become ready, as in struct ww_jobs_config. The worker calls it and holds
	 * no lock.
	 */
	void (*ready)(const char *tube, void *context);
	/*
	 * Called by any thread with a sentence that a person should read: for example that Redis is lost or back,
	 * empty, or configured to lose jobs. NULL: no calls.
	 */
	void (*report)(const char *sentence, void *context);
	/*
	 * Called at least once in a call that waits for Redis for more than 1 ms, or may do so. The thread that made
	 * the call calls this before it goes on waiting, and holds no lock. A thread that others depend on lets them go
	 * on here. NULL: no calls.
	 */
	void (*slow)(void *context);
	void *context; /* of all three */
	/*
	 * For tests: returns the time in ns in place of Redis's. There is then no worker: `ready` is not called, and
	 * ww_jobs_wait answers 0 or a job at once. Every process of the store must use the same clock.
	 */
	uint64_t (*now)(void *context);
};

struct ww_jobs_redis_stats {
	uint64_t commands;     /* sent to Redis */
	uint64_t round_trips;  /* times that a thread waited for answers */
	uint64_t reconnects;   /* connections that were lost or refused */
	uint64_t redirections; /* MOVED and ASK */
	uint64_t wakes;        /* messages received */
	uint64_t resets;       /* times that Redis was found empty and the store made anew */
	uint32_t nodes;
	uint32_t shards;
	uint32_t watched; /* shards that this worker watches */
	uint32_t workers; /* live workers */
	int64_t skew;     /* ns by which the system's clock is ahead of Redis's, exact to less than a round trip */
	uint64_t bytes;   /* of memory, without that of hiredis */
};

/* Fill *config with the defaults that the struct names; url has none. Errors: WW_EINVAL: config is NULL. */
WW_API int ww_jobs_redis_config_default(struct ww_jobs_redis_config *config);

/*
 * Check whether ww_jobs_redis_open would take this url. The call reads the text alone and contacts no server.
 * O(length).
 * Threads: any.
 * Errors: WW_EINVAL: the url is wrong; *why, unless NULL, is then a constant sentence that says what is wrong, without
 * showing any of the url.
 */
WW_API int ww_jobs_redis_check_url(const char *url, const char **why);

/*
 * Open a store in Redis, start its worker, and store it in *jobs. Make the store if there is none. The call copies
 * config and what it points to, except the allocator and the context, which must outlive the store. An existing store
 * keeps its `shards` and `slice`. ww_jobs_close ends it: the worker gives up its place, and leases go on.
 * Errors: WW_EINVAL: a member is out of range, Redis has no database of the url's number, the url's hosts are not a
 * cluster, or one of its files cannot be used; `report` then says so. WW_EVERSION: made by a later version. WW_EIO: no server answers. WW_EDENIED,
 * WW_EAGAIN, WW_ECORRUPT, WW_EFULL: as above. WW_ENOTFOUND: WW_REDIS_EXISTING, and there is no store. WW_ENOMEM.
 * WW_ESYSTEM: no thread or descriptor.
 */
WW_API int ww_jobs_redis_open(struct ww_jobs **jobs, const struct ww_jobs_redis_config *config);

/* Fill *stats. Threads: any. O(1). Errors: WW_EINVAL: jobs is not a store in Redis. */
WW_API int ww_jobs_redis_stats(struct ww_jobs *jobs, struct ww_jobs_redis_stats *stats);

enum ww_redis_node_state {
	WW_REDIS_NODE_SERVES,
	WW_REDIS_NODE_ASIDE, /* it answers "later" or is silent: calls are refused until it answers a probe */
	WW_REDIS_NODE_LOST   /* it cannot be reached */
};

/* A node of Redis that has slots, or the single server. */
struct ww_jobs_redis_node {
	char address[300]; /* host:port, or the path of a socket */
	enum ww_redis_node_state state;
	char why[96];     /* its reason; "": it serves */
	uint64_t since;   /* ns since it was set aside or lost */
	uint64_t probe;   /* ns until a call asks it again; 0: the next call does */
	uint64_t refused; /* calls that have ended because of it */
	uint32_t shards;  /* of the store, on this node */
};

/*
 * Store the number of nodes in *count, and fill in up to `room` of them, in an order that stays the same. nodes may be
 * NULL if room is 0. The call contacts no node: the states are what the last calls found. `report` gets a sentence when
 * the first call is refused because of a node, and one when the node serves again.
 * Range: room up to WW_REDIS_NODES_MAX.
 * Threads: any. O(nodes * nodes + shards).
 * Errors: WW_EINVAL: out of range, or jobs is not a store in Redis. WW_ENOMEM.
 */
WW_API int ww_jobs_redis_nodes(struct ww_jobs *jobs, struct ww_jobs_redis_node *nodes, size_t room, size_t *count);

#ifdef __cplusplus
}
#endif

#endif
