#ifndef WEEKWHEEL_JOBS_REDIS_H
#define WEEKWHEEL_JOBS_REDIS_H

/*
 * Jobs in Redis 7, of one server or of a Redis Cluster, shared by any number of processes on any number of machines.
 *
 * What is opened here is a struct ww_jobs, and every call of jobs.h does with it what jobs.h says. Each step is one
 * script, which Redis executes whole or not at all.
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
 * A job lives in one of `shards` shards: by the hash of its tube and key or, without a key, in turn. A shard is on one
 * node. Each store that is open has a thread, its *worker*, which keeps the time of the next event of each shard that
 * it watches in a timing wheel, and hears of earlier ones by messages. It makes ready what is due, and it does for
 * leases that ran out what jobs.h says. Workers share the shards, and take over those of one that has not been heard of
 * for `lease`. Every script does the same for its shard before it does anything else, so that what a call says never
 * depends on a worker, but for where a reserve looks (see below).
 *
 * Time is that of Redis, in us, rounded up: a job is never early by the clock of its node, whatever the clocks of the
 * workers say. Elapsed and wall time are the same here; WW_JOB_WALL is kept and changes nothing. Nodes of a cluster are
 * to have the same time, as far as jobs of different shards are compared.
 *
 * What differs from an embedded store:
 * - Leases are written: a lease lives on when its process, or Redis, ends and comes back, until it runs out.
 * - ww_jobs_begin and ww_jobs_commit do nothing: each call stands for itself, and is done when it returns.
 *   ww_jobs_put_many, reserve_many and finish_many save round trips.
 * - ww_jobs_reserve asks Redis only where something is ready as far as this process has heard: what it made ready
 *   itself it finds at once, what another one did when the message of it is here, and what comes due when the worker
 *   that watches the shard has seen to it. Shards that do not answer keep no jobs of others from it: it fails if there
 *   are none, or the timeout is over. Of shards whose worker died that is up to `lease` later. ww_jobs_wait hears of it
 *   likewise.
 * - While a slot of a cluster moves, calls to its shards wait until it has moved, up to the timeout: then WW_EAGAIN.
 * - Of jobs of different shards that are ready, the least priority is taken first as far as this process has heard;
 *   those of equal priority are taken in order within a shard.
 * - ww_jobs_reserve_many takes from one shard as many as come before the best of all others, and goes on with the next
 *   one. So it waits for Redis as often as the order of priorities passes from one shard to another: once a shard where
 *   all are the same, up to once a job where they all differ. Once the timeout is over it gives what it has.
 *   Complexity: each time O(shards * count), and in Redis O((count + jobs taken) * log ready).
 * - Tokens grow with every delivery of a job, and of jobs of the same shard; over all shards they follow the time, in
 *   us.
 * - ww_jobs_list gives jobs in no order, `after` is not an id but what `next` was, and a job may come twice if many
 *   come or go between pages. It passes over records that cannot be read: `next` is stored, and the answer is
 *   WW_ECORRUPT. ww_jobs_kick takes delayed jobs in order of their due times within a shard. ww_jobs_forecast of one
 *   tube looks at all jobs.
 * - A pause is Redis's, holds for all processes, and does not end with the store. Statistics "since the store was
 *   opened" are since it was made; puts and finished of a tube are those of this process.
 * - loaded, commits, syncs and disk of the statistics are 0.
 *
 * What is acknowledged is as durable as Redis is configured to be; weekwheeld(1) says what to configure. After a
 * failover or a restart that loses the last puts, the ids of lost jobs are given again: whoever kept one of them had
 * better name jobs by key.
 *
 * Errors, of every call: WW_EIO: Redis cannot be reached, or the connection broke before the answer came: then the call
 * may have happened or not. finish, release and bury may be called again: WW_ESTALE then may mean that the first one
 * did. WW_EAGAIN: Redis is loading, or the cluster is electing: again later; nothing happened. WW_EFULL: Redis has no
 * memory left (maxmemory) or cannot write. WW_EDENIED: no rights, or a replica. WW_ECORRUPT: the store was emptied or
 * replaced in Redis (and the worker could not make it anew), or an answer makes no sense. The report says more.
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

/*
 * No part of a store is ever made: where there is none, or it is lost while it is open, the answer is WW_ENOTFOUND. If
 * a part of it is lost, the key of the whole or a shard, opening it, and calls that find it so, answer WW_ECORRUPT, and
 * the report says which it is. Without this flag, what is lost is made anew: the key of the whole as the first shard
 * that is there says, of as many as the config names, with all jobs; a shard empty. With or without it, nothing is made
 * where parts are of different stores: the answer is WW_ECORRUPT.
 */
#define WW_REDIS_EXISTING 1u
/*
 * For who looks at a store, or puts into it, and goes: no worker is started, and no shard is taken from those of
 * others. Nothing is told, and ww_jobs_wait answers 0 or a job at once.
 */
#define WW_REDIS_PASSIVE 2u

struct ww_jobs_redis_config {
	/*
	 * redis://[[user]:password@]host[:port][/db], of several hosts of one cluster redis://host:port,host:port, or
	 * unix:///path. What is not a letter or digit of user and password is percent-encoded.
	 */
	const char *url;
	const char *
	    prefix; /* what every key begins with; 1 to WW_REDIS_PREFIX_MAX letters, digits, '.', '_', '-'; "weekwheel" */
	const char *
	    name; /* of this worker, to tell it from others; NULL: made of the host's name, the process and a random number */
	uint32_t shards;      /* when the store is made, 1 to WW_REDIS_SHARDS_MAX; 16 */
	uint64_t slice;       /* when the store is made: ns of due times that share a set, 1 s to 1 day; 10 min */
	uint64_t lease;       /* after which a silent worker's shards are taken over; 1 s to 1 h; 6 s */
	uint64_t timeout;     /* of a call; 10 ms to 1 h; 2 s */
	uint64_t backoff_max; /* between attempts to reach Redis again; 10 ms to 1 h; 5 s */
	uint32_t connections; /* at most, to each node; 1 to 1,000; 16 */
	size_t body_max;      /* bytes of a body; 65,535 */
	uint32_t flags;       /* WW_REDIS_* */
	const struct ww_allocator *allocator; /* NULL: the default */
	/*
	 * Jobs of a tube may have become ready: as in struct ww_jobs_config, but called by the worker, which holds
	 * nothing.
	 */
	void (*ready)(const char *tube, void *context);
	/*
	 * What a person should know, in a sentence: Redis lost and back, emptied, or configured to lose jobs. Any
	 * thread. NULL: nobody.
	 */
	void (*report)(const char *sentence, void *context);
	void *context; /* of both */
	/*
	 * For tests: the time in ns in place of Redis's. There is then no worker: nothing is told, and ww_jobs_wait
	 * answers 0 or a job at once. Every process of the store must have the same.
	 */
	uint64_t (*now)(void *context);
};

struct ww_jobs_redis_stats {
	uint64_t commands;     /* sent to Redis */
	uint64_t round_trips;  /* times that a thread waited for answers */
	uint64_t reconnects;   /* connections that were lost or refused */
	uint64_t redirections; /* MOVED and ASK */
	uint64_t wakes;        /* messages heard */
	uint64_t resets;       /* times that Redis was found empty and the store made anew */
	uint32_t nodes;
	uint32_t shards;
	uint32_t watched; /* of them, by this worker */
	uint32_t workers; /* that live */
	int64_t skew;     /* ns that the system's clock is ahead of Redis's, less than a round trip exact */
	uint64_t bytes;   /* of memory, without what hiredis has */
};

/* Fill *config with the defaults that the struct names; there is none for the url. Errors: WW_EINVAL. */
WW_API int ww_jobs_redis_config_default(struct ww_jobs_redis_config *config);

/*
 * Whether ww_jobs_redis_open would take this url, by what is written in it: nobody is asked. Errors: WW_EINVAL: *why,
 * unless NULL, is then a constant sentence that says what is wrong, and shows nothing of the url. Threads: any.
 * O(length).
 */
WW_API int ww_jobs_redis_check_url(const char *url, const char **why);

/*
 * Open a store in Redis, make it if it is not there, start its worker, and store it in *jobs. config is copied, and
 * what it points to but for the allocator and the context, which must outlive the store. `shards` and `slice` of a
 * store that is there are kept. ww_jobs_close ends it: the worker's place is given up, leases go on.
 * Errors: WW_EINVAL: a member is out of range, or Redis has no database of the url's number, or the url's hosts are no
 * cluster: then the report says so. WW_EVERSION: made by a later version. WW_EIO: nobody answers there. WW_EDENIED,
 * WW_EAGAIN, WW_ECORRUPT, WW_EFULL as above. WW_ENOTFOUND: WW_REDIS_EXISTING, and there is none. WW_ENOMEM. WW_ESYSTEM:
 * no thread or descriptor.
 */
WW_API int ww_jobs_redis_open(struct ww_jobs **jobs, const struct ww_jobs_redis_config *config);

/* Errors: WW_EINVAL: it is not a store in Redis. Threads: any. O(1). */
WW_API int ww_jobs_redis_stats(struct ww_jobs *jobs, struct ww_jobs_redis_stats *stats);

#ifdef __cplusplus
}
#endif

#endif
