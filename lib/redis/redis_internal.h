#ifndef LIB_REDIS_REDIS_INTERNAL_H
#define LIB_REDIS_REDIS_INTERNAL_H

/*
 * The inside of a store of jobs in Redis. Jobs are in Redis (lua/scripts.h); this process has:
 *
 *     link    connections
 *     hints   what is known of the first ready job of each tube in each shard: a reserve asks where a job is, and asks
 *             nobody when none is ready
 *     worker  a thread that hears messages, and knows when each shard that it watches has something due
 *
 * How hints stay true. A hint may say too much: a reserve then finds nothing, and corrects it. It may not say too
 * little, or a ready job would wait unseen:
 *   1. A reserve notes how many messages were heard (`readies`), and asks Redis without the lock.
 *   2. Meanwhile messages and this process's own puts count `readies` up, and leave that number in the hints that they
 *      change (`heard`).
 *   3. The answer changes a hint only if its `heard` is not above the noted number: otherwise the hint is newer.
 *   4. When messages may have been missed (a lost ear, a store made anew), all hints become unknown.
 */

#include <hiredis/hiredis.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/base/fork.h"
#include "lib/base/memory.h"
#include "lib/base/random.h"
#include "lib/base/seeded.h"
#include "lib/base/time.h"
#include "lib/jobs/backend.h"
#include "lib/redis/link/link.h"
#include "lib/redis/lua/scripts.h"
#include "weekwheel/jobs_redis.h"

/* A script's reply when the store is not there; its other negative replies are errors of error.h. */
#define REDIS_GONE (-100)

/* "{prefix:number}:m" */
#define REDIS_TAG_SIZE (WW_REDIS_PREFIX_MAX + 24)
#define REDIS_IDENTITY_SIZE 33

/* Flag of a call: any shard will do. If nothing was sent to its own, another one that serves gets it. */
#define REDIS_CALL_ANY_SHARD (1U << 16)

/* A time in us at which nothing is due: the greatest number that Lua represents exactly. */
#define REDIS_NEVER ((UINT64_C(1) << 53) - 1)

/*
 * The priority of the first ready job of a tube in a shard, or one of these. HINT_PERHAPS: there may be one; ask this
 * shard after those that surely have one.
 */
enum { HINT_UNKNOWN = -2, HINT_NONE = -1 };
#define HINT_PERHAPS (INT64_C(1) << 32)
/* What is added to a priority if the tube has groups there (GROUPED of part_shard.lua). */
#define HINT_GROUPED (INT64_C(1) << 40)

struct hint {
	int64_t first;
	uint64_t heard; /* the number of the last message about it */
	int is_grouped; /* it was the first of a tube with groups */
};

/* What a reserve needs permits for (limit.c). */
enum { LIMITED_NOT, LIMITED_TUBE, LIMITED_GROUPS };

struct tube_hints {
	UT_hash_handle hh; /* by name */
	char name[WW_TUBE_MAX + 1];
	uint64_t puts; /* by this process, and so on */
	uint64_t finished;
	uint64_t pauses;
	int was_asked;       /* for, lately, by a reserve */
	int is_limited;      /* LIMITED_* */
	uint32_t turn;       /* with groups: the shard whose turn it is */
	uint64_t held_until; /* elapsed ns; until then its limit lets nothing start */
	uint64_t let;        /* the number of the last message that something may */
	uint32_t promises;   /* hints that are not HINT_NONE */
	struct hint of[];    /* by shard */
};

struct redis_worker; /* worker.c */

struct redis_store {
	struct ww_jobs base;
	const struct ww_allocator *allocator;
	struct ww_jobs_redis_config config;
	char prefix[WW_REDIS_PREFIX_MAX + 1];
	uint32_t forks; /* when it was opened; children may not use it */
	struct redis_link *link;
	uint32_t shards;
	uint64_t slice; /* us */
	/* The tag of each shard, then a key of each, as redis_call.also needs it. */
	char (*tags)[REDIS_TAG_SIZE];
	char tag[REDIS_TAG_SIZE]; /* of the whole store, and its key */
	char key[REDIS_TAG_SIZE];
	char name[128]; /* of the worker */

	_Atomic int64_t offset; /* Redis's time minus the system's elapsed time, ns */
	_Atomic uint32_t turn;  /* the shard of the next job without a key */
	_Atomic uint64_t random;
	_Atomic uint64_t resets;

	pthread_mutex_t renewing; /* held while the store is made anew */
	pthread_mutex_t looking;  /* held while many tubes are looked at */
	pthread_mutex_t lock;     /* of what follows */
	pthread_cond_t heard;
	uint64_t readies; /* messages received; grows whenever something may be ready */
	char identity[REDIS_IDENTITY_SIZE];
	struct tube_hints *tubes;
	uint64_t gone_puts; /* of forgotten tubes */
	uint64_t gone_finished;
	size_t bytes; /* of hints */

	struct redis_worker *worker; /* NULL: is_alone */
	int wake_fd;                 /* wakes the worker; -1: is_alone */
};

static inline struct redis_store *store_of(struct ww_jobs *jobs)
{
	return (struct redis_store *)(void *)jobs;
}

/* Whether the store has no worker, and so gets no messages about ready jobs. */
static inline int is_alone(const struct redis_store *store)
{
	return store->config.now != NULL || store->config.flags & WW_REDIS_PASSIVE;
}

static inline uint64_t us_up(uint64_t ns)
{
	return ns / 1000 + (ns % 1000 != 0);
}

static inline uint32_t shard_of(const struct redis_store *store, uint64_t id)
{
	return (uint32_t)(id % store->shards);
}

/* The identity changes when the store is made anew. */
static inline void copy_identity(struct redis_store *store, char identity[REDIS_IDENTITY_SIZE])
{
	pthread_mutex_lock(&store->lock);
	memcpy(identity, store->identity, REDIS_IDENTITY_SIZE);
	pthread_mutex_unlock(&store->lock);
}

extern const struct jobs_backend ww_redis_backend;

/* ---- call.c: the words of a call, then calls and their replies */

struct words {
	size_t count;
	size_t room;
	const char **argv;
	size_t *lengths;
	char (*numbers)[24];
	char identity[REDIS_IDENTITY_SIZE];
};

/* Room that is enough for most calls. */
enum { FEW_WORDS = 24 };
struct few_words {
	struct words words;
	const char *argv[FEW_WORDS];
	size_t lengths[FEW_WORDS];
	char numbers[FEW_WORDS][24];
};

/* Begin with the store's identity and the time, as all shard scripts expect. */
struct words *ww_redis_words_few(struct redis_store *store, struct few_words *few);
/* The same with room for that many words; NULL: no memory. */
struct words *ww_redis_words_many(struct redis_store *store, size_t room);
void ww_redis_words_free(struct redis_store *store, struct words *words);
void ww_redis_words_bytes(struct words *words, const void *bytes, size_t length);
void ww_redis_words_text(struct words *words, const char *text);
void ww_redis_words_number(struct words *words, uint64_t number);
/* One word: a short text, then the number. */
void ww_redis_words_joined(struct words *words, const char *text, uint64_t number);
void ww_redis_words_signed(struct words *words, int64_t number);

/*
 * Run a script for a shard. If Redis has lost the store, make it anew and run the script again. On WW_OK the caller
 * gives *reply to ww_redis_call_free. A reply that is an error or a negative number is returned instead.
 */
int ww_redis_call(struct redis_store *store, const struct redis_script *script, uint32_t shard, struct words *words,
    unsigned flags, redisReply **reply);
void ww_redis_call_free(redisReply *reply);
/* The same for a script that replies an array of at least that many. Errors: also WW_ECORRUPT. */
int ww_redis_call_list(struct redis_store *store, const struct redis_script *script, uint32_t shard,
    struct words *words, unsigned flags, size_t least, redisReply **reply);
/* The same for a script that replies a number, which is returned. */
int64_t ww_redis_call_number(
    struct redis_store *store, const struct redis_script *script, uint32_t shard, struct words *words, unsigned flags);

/* A call of a script for a shard with these words, which it does not own. */
struct redis_call ww_redis_call_make(const struct redis_store *store, const struct redis_script *script, uint32_t shard,
    const struct words *words, unsigned flags);

/* Calls side by side. */
struct fan {
	struct redis_call *calls;
	struct words **words; /* of each call, owned; unused with `all` */
	struct words *all;    /* the same for all calls, not owned */
	size_t count;
};

/*
 * Run a script with the same words for all shards: call i is for shard i. least: each reply must be an array of at
 * least that many; 0: anything.
 */
int ww_redis_call_all(
    struct redis_store *store, const struct redis_script *script, struct words *words, size_t least, struct fan *fan);
/*
 * The same for some shards, or all with NULL, with those flags. Each call has its own error; fan->calls NULL: there was
 * no memory.
 */
int ww_redis_call_each(struct redis_store *store, const struct redis_script *script, struct words *words,
    const uint32_t *shards, size_t count, unsigned flags, struct fan *fan);
/* Run prepared calls. If Redis has lost the store, make it anew and run those calls again. */
int ww_redis_call_fan(struct redis_store *store, struct fan *fan);
void ww_redis_call_fan_free(struct redis_store *store, struct fan *fan);
/* Make room for that many calls. */
int ww_redis_call_fan_make(struct redis_store *store, struct fan *fan, size_t count);

/* The number in a reply, or in its text; 0 if there is none. */
int64_t ww_redis_call_value(const redisReply *reply);
/* WW_ECORRUPT unless the reply is an array of at least that many. */
int ww_redis_call_array(struct redis_store *store, const redisReply *reply, size_t least);

/* Redis's time, ns. */
uint64_t ww_redis_clock_now(const struct redis_store *store);
/* A call that took longer says little about Redis's time, and what it brings may be old. ns of elapsed time. */
#define REDIS_CALL_LONG (100 * WW_MILLISECOND)
/*
 * Redis replied its time in us to a call that began at that elapsed time. It is taken for the time now: an alarm comes
 * a round trip late rather than early.
 */
void ww_redis_clock_learn(struct redis_store *store, uint64_t redis_us, uint64_t began);

/* ---- make.c */

/*
 * Find the store and its shards, and make what is missing, unless WW_REDIS_EXISTING forbids that. Stores how many
 * shards it made, unless NULL. On an error nothing was made, except when a connection broke in the midst.
 */
int ww_redis_make(struct redis_store *store, uint32_t *made);
/* A call with that identity found the store gone: make it anew, unless another thread or process has done so. */
int ww_redis_make_anew(struct redis_store *store, const char *gone);

/* ---- gather.c: items of many shards in as few calls as possible */

/*
 * Each item belongs to a shard. Items of one shard go together, at most `batch` in a call:
 *
 *     items   0:b  1:a  2:b  3:-  4:b      (batch 2)
 *     calls   1:b(0, 2)   2:a(1)   3:b(4)
 *
 * Add all items; begin; add the words of each item; run the calls side by side; read each item's part of a reply.
 */
struct gather {
	struct redis_store *store;
	struct fan fan; /* a call each, and what it says */
	size_t count;   /* items */
	uint32_t batch;
	uint32_t calls;
	uint32_t *call_of; /* by item: its call plus 1; 0: none. The block of memory that has these five */
	uint32_t *place;   /* by item: its place in that call */
	uint32_t *shard;   /* by call */
	uint32_t *items;   /* by call: how many */
	uint32_t *open;    /* by shard, then by shard for items of any: the call that takes more, plus 1 */
};

/* For that many items. Errors: WW_EINVAL: too many. WW_ENOMEM. Free it in either case. */
int ww_redis_gather_make(struct gather *gather, struct redis_store *store, size_t count, uint32_t batch);
/* Add item i to a call for that shard; is_free: any other will do as well. An item that is not added is in no call. */
void ww_redis_gather_add(struct gather *gather, size_t i, uint32_t shard, int is_free);
/* All items are added, and each needs that many words. */
int ww_redis_gather_begin(struct gather *gather, size_t words);
/* Where item i adds its words, in the order of items; NULL: it is in no call. Their bytes must live until run. */
struct words *ww_redis_gather_words(const struct gather *gather, size_t i);
/* Errors: that of the first call without an answer; ww_redis_gather_reply gives each item's own. */
int ww_redis_gather_run(struct gather *gather, const struct redis_script *script, unsigned flags);
/* *reply becomes the `size` values for item i, which was added. Errors: that of its call; WW_ECORRUPT. */
int ww_redis_gather_reply(const struct gather *gather, size_t i, size_t size, redisReply *const **reply);
/* Also frees the replies. */
void ww_redis_gather_free(struct gather *gather);

/* ---- hint.c */

/* The hints of a tube, made if need be; call it with the lock. NULL: no memory. */
struct tube_hints *ww_redis_hint(struct redis_store *store, const char *tube);
/* Set a hint; `heard` stays. With the lock. */
void ww_redis_hint_set(struct tube_hints *tube, uint32_t shard, int64_t first);
/* Forget tubes that were not asked for lately while there are too many next to the `count` that are about to be asked for. */
void ww_redis_hint_bound(struct redis_store *store, size_t count);
/* All hints become unknown, and waiting threads ask Redis. */
void ww_redis_hint_forget(struct redis_store *store);
/* A message: the first ready job of the tube in a shard has that priority. */
void ww_redis_hint_hear(struct redis_store *store, const char *tube, uint32_t shard, int64_t priority);
/*
 * This process may have made a job ready in a shard, of a tube with that priority, or of any tube (NULL). A message is
 * on its way, but this process must find the job at once.
 */
void ww_redis_hint_made(struct redis_store *store, const char *tube, uint32_t shard, int64_t priority);
/* Count puts, finished jobs and pauses of this process. */
void ww_redis_hint_count(
    struct redis_store *store, const char *tube, uint64_t puts, uint64_t finished, uint64_t pauses);
/* The same for a job that was deleted, by its tube as a script replied it. */
void ww_redis_hint_finished(struct redis_store *store, const redisReply *tube);
/* Forget all tubes; with the lock, unless the store ends. */
void ww_redis_hint_free(struct redis_store *store);

/* ---- permit.c */

/* Permits for jobs of a tube that are ready in a shard, numbered one after the other. */
struct redis_permits {
	const char *tube;
	int kind; /* LIMITED_* */
	uint32_t number;
	uint64_t first;        /* 0: they need not be settled */
	int is_rate;           /* those that are left over count as starts until they are given back */
	const redisReply *row; /* of LIMITED_GROUPS: groups, and how many jobs of each are ready */
	redisReply *given;     /* what the home replied: how many for each of those */
};

/* The home of a tube, which counts. */
uint32_t ww_redis_permit_home(const struct redis_store *store, const char *tube);
/*
 * Take up to `most` permits for each of these tubes, whose tube and kind are filled in. A tube that gets none is held
 * until there are some, unless more messages came than `seen`; its `kind` becomes -1. Free them in either case.
 */
int ww_redis_permit_take(struct redis_store *store, uint32_t shard, size_t most, uint64_t seen,
    struct redis_permits *permits, size_t count, redisReply **row);
void ww_redis_permit_free(struct redis_permits *permits, size_t count, redisReply *row);
/* How many words ww_redis_permit_fill adds, which are those that shard_reserve.lua reads after the tubes. */
size_t ww_redis_permit_words(const struct redis_permits *permits);
void ww_redis_permit_fill(struct words *words, const struct redis_permits *permits);
/* These leases, as shard_reserve.lua returns them, got its permits. Give the others back. */
void ww_redis_permit_settle(struct redis_store *store, const struct redis_permits *permits, const redisReply *used);
/* A job of a tube with a limit was leased without a permit. */
void ww_redis_permit_add(struct redis_store *store, const struct ww_lease *lease, const redisReply *group);
/*
 * A lease has ended ("free"), or was none ("return"); or it ends then. Its tube and group are as a script replied them;
 * anything else than texts is ignored. NULL instead of the group: it was none, of a tube with a mere rate.
 */
void ww_redis_permit_end(
    struct redis_store *store, const redisReply *of, const redisReply *group, uint64_t id, const char *what);
void ww_redis_permit_touch(
    struct redis_store *store, const redisReply *of, const redisReply *group, uint64_t id, uint64_t end_us);
/* A message: jobs of the tube may start. */
void ww_redis_permit_let(struct redis_store *store, const char *tube);

/* ---- limit.c */

/* How many of the ready jobs of a tube with a limit may not start: these, or as many as its groups hold. */
int ww_redis_limit_held(struct redis_store *store, const char *tube, uint64_t ready, uint64_t *held);
int ww_redis_limit_set(struct ww_jobs *jobs, const struct ww_limit_ref *ref, const struct ww_limit *limit);
int ww_redis_limit_get(struct ww_jobs *jobs, const struct ww_limit_ref *ref, struct ww_limit_info *info);
int ww_redis_limit_list(struct ww_jobs *jobs, const char *tube, ww_limit_fn *fn, void *context);

/* ---- history.c */

int ww_redis_history_report(struct ww_jobs *jobs, uint64_t id, uint64_t token, const void *report, size_t length);
int ww_redis_history_list(struct ww_jobs *jobs, const struct ww_run_filter *filter, size_t limit, ww_run_fn *fn,
    void *context, uint64_t *next);

/* ---- worker.c */

int ww_redis_worker_start(struct redis_store *store);
void ww_redis_worker_stop(struct redis_store *store);
/* Any thread: the worker looks around, if there is one. The context is the store. */
void ww_redis_worker_wake(void *context);
void ww_redis_worker_stats(struct redis_store *store, struct ww_jobs_redis_stats *stats);

/* ---- The calls of jobs.h, a file a subject */

int ww_redis_put(struct ww_jobs *jobs, const struct ww_job_spec *spec, uint64_t *id, uint64_t *version);
int ww_redis_put_many(
    struct ww_jobs *jobs, struct ww_job_put *puts, const struct ww_job_info *const *was, size_t count);
int ww_redis_put_move(
    struct ww_jobs *jobs, const struct ww_job_ref *job, uint64_t due, uint32_t flags, uint64_t *version);
int ww_redis_put_cancel(struct ww_jobs *jobs, const struct ww_job_ref *job);
/* Add the words that part_refer.lua reads. Returns the job's shard. */
uint32_t ww_redis_put_refer(struct redis_store *store, struct words *words, const struct ww_job_ref *job);

int ww_redis_reserve(struct ww_jobs *jobs, const struct ww_reserve *what, struct ww_lease *lease);
int ww_redis_reserve_many(struct ww_jobs *jobs, const struct ww_reserve *what, struct ww_lease *leases, size_t most);
int ww_redis_wait_reserve(
    struct ww_jobs *jobs, const struct ww_reserve *what, uint64_t timeout, struct ww_lease *lease);
int ww_redis_reserve_job(struct ww_jobs *jobs, uint64_t id, struct ww_lease *lease);

/* The number of words of a lease in a reply. */
enum { LEASE_WORDS = 16 };
int ww_redis_lease_read(struct redis_store *store, redisReply *const *of, struct ww_lease *lease);
void ww_redis_lease_free(struct ww_jobs *jobs, void *body);
/*
 * Whether a lease from a call that began then may be over: another worker may then have got the job, and ended it.
 * That takes a very long call, as when the process was stopped. The estimate of Redis's time may be wrong, so this
 * looks the job up. *asked: the answer to that so far, WW_OK at first. After a failure the estimate decides.
 */
int ww_redis_lease_is_over(struct redis_store *store, const struct ww_lease *lease, uint64_t began, int *asked);

int ww_redis_end_finish(struct ww_jobs *jobs, uint64_t id, uint64_t token);
int ww_redis_end_finish_many(struct ww_jobs *jobs, struct ww_job_end *ends, size_t count);
int ww_redis_end_release(
    struct ww_jobs *jobs, uint64_t id, uint64_t token, uint32_t priority, uint64_t delay, const char *error);
int ww_redis_end_return(struct ww_jobs *jobs, uint64_t id, uint64_t token, uint64_t delay);
int ww_redis_end_bury(struct ww_jobs *jobs, uint64_t id, uint64_t token, uint32_t priority, const char *error);
int ww_redis_end_touch(struct ww_jobs *jobs, uint64_t id, uint64_t token, uint64_t *ends);

int ww_redis_kick(struct ww_jobs *jobs, const char *tube, uint64_t bound, uint64_t *count);
int ww_redis_kick_job(struct ww_jobs *jobs, uint64_t id);
int ww_redis_kick_pause(struct ww_jobs *jobs, const char *tube, uint64_t ns);
/* The delayed job of a tube that is due first. Errors: also WW_ENOTFOUND. */
int ww_redis_kick_soonest(struct redis_store *store, const char *tube, uint64_t *id);

int ww_redis_look_peek(struct ww_jobs *jobs, const struct ww_job_ref *job, struct ww_job_info *info, void **body);
int ww_redis_look_next(
    struct ww_jobs *jobs, const char *tube, enum ww_job_state state, struct ww_job_info *info, void **body);
int ww_redis_look_state(struct ww_jobs *jobs, uint64_t id, enum ww_job_state *state);
int ww_redis_look_list(struct ww_jobs *jobs, const struct ww_job_filter *filter, size_t limit, ww_job_fn *fn,
    void *context, uint64_t *next);
int ww_redis_look_forecast(struct ww_jobs *jobs, const char *tube, uint64_t span, uint64_t *counts, size_t count);

int ww_redis_stats(struct ww_jobs *jobs, struct ww_jobs_stats *stats);
int ww_redis_stats_tube(struct ww_jobs *jobs, const char *tube, struct ww_tube_stats *stats);
/* How many jobs of a tube are ready, and reserved. */
int ww_redis_stats_counts(struct redis_store *store, const char *tube, uint64_t *ready, uint64_t *reserved);
int ww_redis_stats_tubes(struct ww_jobs *jobs, ww_tube_fn *fn, void *context);

int ww_redis_check(struct ww_jobs *jobs, ww_jobs_problem_fn *problem, void *context);

#endif
