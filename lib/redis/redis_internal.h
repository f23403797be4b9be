#ifndef LIB_REDIS_REDIS_INTERNAL_H
#define LIB_REDIS_REDIS_INTERNAL_H

/*
 * A store of jobs in Redis, from inside. What is stored is in Redis (redis_scripts.h); memory has:
 *
 *     link    connections
 *     hints   for each tube that was asked for, what is known of its first ready job in each shard: so a reserve asks
 *             where something is, and one for which nothing is ready asks nobody
 *     worker  a thread: when each shard that it watches has something due, and messages
 *
 * A hint may say too much: then a reserve finds nothing there, and it is corrected. It may not say too little: what was
 * heard while an answer was under way is newer than the answer.
 */

#include <hiredis/hiredis.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* Without memory it must not end the process. */
#define HASH_NONFATAL_OOM 1
#include <uthash.h>

#include "lib/jobs/backend.h"
#include "lib/redis/link/link.h"
#include "lib/redis/lua/scripts.h"
#include "weekwheel/jobs_redis.h"

/* What a script replies for a store that is not there, beside the errors of error.h. */
#define REDIS_GONE (-100)

/* A tag in braces, a prefix and a number. */
#define REDIS_TAG_SIZE (WW_REDIS_PREFIX_MAX + 24)
#define REDIS_IDENTITY_SIZE 33

/* No time: nothing is due. The greatest number that Lua has exactly. */
#define REDIS_NEVER ((UINT64_C(1) << 53) - 1)

/*
 * The first ready job of a tube in a shard: its priority, or one of these. Perhaps there is one: asked after those that
 * are known.
 */
enum { HINT_UNKNOWN = -2, HINT_NONE = -1 };
#define HINT_PERHAPS (INT64_C(1) << 32)

struct hint {
	int64_t first;
	uint64_t heard; /* which message was the last about it, of all that this process has heard */
};

struct tube_hints {
	UT_hash_handle hh; /* by name */
	char name[WW_TUBE_MAX + 1];
	uint64_t puts; /* of this process */
	uint64_t finished;
	uint64_t pauses;
	struct hint of[]; /* each shard */
};

struct redis_worker; /* redis_worker.c */

struct redis_store {
	struct ww_jobs base;
	const struct ww_allocator *allocator;
	struct ww_jobs_redis_config config;
	pid_t process; /* whose it is; not its children's */
	struct redis_link *link;
	uint32_t shards;
	uint64_t slice; /* us */
	/*
	 * Of each shard, and behind them all the name of a key that each has: with that one a call says that it needs
	 * them all.
	 */
	char (*tags)[REDIS_TAG_SIZE];
	char tag[REDIS_TAG_SIZE]; /* of the whole, and its key */
	char key[REDIS_TAG_SIZE];
	char name[128]; /* of the worker */

	_Atomic int64_t offset; /* Redis's time less the system's elapsed one, ns */
	_Atomic uint32_t turn;  /* of shards, for jobs without a key */
	_Atomic uint64_t random;
	_Atomic uint64_t resets;

	pthread_mutex_t renewing;
	pthread_mutex_t lock; /* of what follows */
	pthread_cond_t heard;
	uint64_t readies; /* grows whenever something may be ready */
	char identity[REDIS_IDENTITY_SIZE];
	struct tube_hints *tubes;
	uint64_t gone_puts; /* of tubes that are not remembered any more */
	uint64_t gone_finished;
	size_t bytes; /* of hints */

	struct redis_worker *worker; /* NULL if it is alone */
};

static inline struct redis_store *store_of(struct ww_jobs *jobs)
{
	return (struct redis_store *)(void *)jobs;
}

/* Whether it has no worker, and so hears nothing. */
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

extern const struct jobs_backend ww_redis_backend;

/* ---- redis_words.c: what a call says */

struct words {
	size_t count;
	size_t room;
	const char **argv;
	size_t *lengths;
	char (*numbers)[24];
	char identity[REDIS_IDENTITY_SIZE];
};

/* Words for most calls. */
enum { FEW_WORDS = 24 };
struct few_words {
	struct words words;
	const char *argv[FEW_WORDS];
	size_t lengths[FEW_WORDS];
	char numbers[FEW_WORDS][24];
};

/* Begin with the store's identity and the time. */
struct words *ww_redis_words_few(struct redis_store *store, struct few_words *few);
/* The same with room for so many; NULL without memory. */
struct words *ww_redis_words_many(struct redis_store *store, size_t room);
void ww_redis_words_free(struct redis_store *store, struct words *words);
void ww_redis_words_bytes(struct words *words, const void *bytes, size_t length);
void ww_redis_words_text(struct words *words, const char *text);
void ww_redis_words_number(struct words *words, uint64_t number);
void ww_redis_words_signed(struct words *words, int64_t number);

/* ---- redis_call.c: calls, and what they reply */

/*
 * Run a script for a shard. On WW_OK *reply is the caller's, to be given to ww_redis_call_free, and is not an error or
 * a negative number; those are returned.
 */
int ww_redis_call(struct redis_store *store, const struct redis_script *script, uint32_t shard, struct words *words,
    unsigned flags, redisReply **reply);
void ww_redis_call_free(redisReply *reply);
/* The same where a number is all that is replied; it is returned. */
int64_t ww_redis_call_number(
    struct redis_store *store, const struct redis_script *script, uint32_t shard, struct words *words, unsigned flags);

/* The call of a script for a shard with these words, which it does not own. */
struct redis_call ww_redis_call_say(const struct redis_store *store, const struct redis_script *script, uint32_t shard,
    const struct words *words, unsigned flags);

/* Calls with words of their own, side by side. */
struct fan {
	struct redis_call *calls;
	struct words **words; /* of each call; NULL: the same for all */
	struct words *all;
	size_t count;
};

/* Run a script with the same words for all shards, or those that mask says. Call i is for shard which[i]. */
int ww_redis_call_all(
    struct redis_store *store, const struct redis_script *script, struct words *words, struct fan *fan);
/* The same, but each call says what became of it; an error is returned only if none was made. */
int ww_redis_call_each(
    struct redis_store *store, const struct redis_script *script, struct words *words, struct fan *fan);
/* Run calls that were made ready; the store made anew if it was gone. */
int ww_redis_call_fan(struct redis_store *store, struct fan *fan);
void ww_redis_call_fan_free(struct redis_store *store, struct fan *fan);
/* Room for so many calls. */
int ww_redis_call_fan_make(struct redis_store *store, struct fan *fan, size_t count);

int64_t ww_redis_call_value(const redisReply *reply);
/* WW_ECORRUPT unless it is an array of at least so many. */
int ww_redis_call_array(struct redis_store *store, const redisReply *reply, size_t least);

/* ---- redis_make.c */

/*
 * The store, and its shards, made if they are not there, unless WW_REDIS_EXISTING says that they must be. Stores how
 * many shards were not, unless NULL. On an error nothing was made, but by way of a connection that broke.
 */
int ww_redis_make(struct redis_store *store, uint32_t *made);
/* The store was gone for a call with that identity: make it anew, unless another thread or process has done so. */
int ww_redis_make_anew(struct redis_store *store, const char *gone);

/* ---- redis_gather.c: items of many shards in as few calls as may be */

/*
 * Each item is of a shard; items of one shard go together, at most `batch` in a call:
 *
 *     items   0:b  1:a  2:b  3:-  4:b      (batch 2)
 *     calls   1:b(0, 2)   2:a(1)   3:b(4)
 *
 * First all are added, which makes the calls; then words are said, and the calls run side by side; then each item has
 * its part of a reply.
 */
struct gather {
	struct redis_store *store;
	struct fan fan; /* a call each, and what it says */
	size_t count;   /* items */
	uint32_t batch;
	uint32_t calls;
	uint32_t *call_of; /* each item, plus 1; 0: none. The block of memory that has all of these */
	uint32_t *place;   /* each item, among those of its call */
	uint32_t *shard;   /* each call */
	uint32_t *items;   /* each call */
	uint32_t *open;    /* each shard: the call that takes more, plus 1 */
};

/* For so many items. Errors: WW_EINVAL: too many. WW_ENOMEM. To be freed all the same. */
int ww_redis_gather_make(struct gather *gather, struct redis_store *store, size_t count, uint32_t batch);
/* Item i is of that shard. One that is not added is in no call. */
void ww_redis_gather_add(struct gather *gather, size_t i, uint32_t shard);
/* All are added, and each has so many words to say. */
int ww_redis_gather_begin(struct gather *gather, size_t words);
/*
 * Where item i says its words, in the order of items; NULL: it is in no call. What they point to is to live until run.
 */
struct words *ww_redis_gather_words(const struct gather *gather, size_t i);
/* Errors: that of the first call that was not answered; ww_redis_gather_reply tells what became of each item. */
int ww_redis_gather_run(struct gather *gather, const struct redis_script *script);
/*
 * Each item is replied so many values: *reply are those of item i, which was added. Errors: of its call; WW_ECORRUPT.
 */
int ww_redis_gather_reply(const struct gather *gather, size_t i, size_t size, redisReply *const **reply);
/* Also what is replied. */
void ww_redis_gather_free(struct gather *gather);

/* ---- jobs_redis.c */

uint64_t ww_redis_now(const struct redis_store *store); /* Redis's time, ns */
uint64_t ww_redis_elapsed(void);                        /* the system's */
uint64_t ww_redis_random(struct redis_store *store);
void ww_redis_report(const struct redis_store *store, const char *sentence);
/* Redis said that it is that time, to a call that began then. */
void ww_redis_clock(struct redis_store *store, uint64_t redis_us, uint64_t began);

/* ---- redis_hint.c */

/* With the lock. NULL without memory. */
struct tube_hints *ww_redis_hint(struct redis_store *store, const char *tube);
/* Forget all if many are remembered beside the `count` tubes that are asked for now. */
void ww_redis_hint_bound(struct redis_store *store, size_t count);
/* Nothing is known any more, and who waits is to ask. */
void ww_redis_hint_forget(struct redis_store *store);
void ww_redis_hint_hear(struct redis_store *store, const char *tube, uint32_t shard, int64_t priority);
/*
 * This process may have made something ready in a shard: of a tube, with that priority, or in any (NULL). Messages of
 * it are under way, but who did it is to find it at once.
 */
void ww_redis_hint_made(struct redis_store *store, const char *tube, uint32_t shard, int64_t priority);
void ww_redis_hint_count(struct redis_store *store, const char *tube, uint64_t puts, uint64_t finished);
/* A job of the tube that is replied was deleted. */
void ww_redis_hint_finished(struct redis_store *store, const redisReply *tube);
void ww_redis_hint_free(struct redis_store *store);

/* ---- redis_worker.c */

int ww_redis_worker_start(struct redis_store *store);
void ww_redis_worker_stop(struct redis_store *store);
void ww_redis_worker_stats(struct redis_store *store, struct ww_jobs_redis_stats *stats);

/* ---- The calls of jobs.h, a file a subject */

int ww_redis_put(struct ww_jobs *jobs, const struct ww_job_spec *spec, uint64_t *id, uint64_t *version);
int ww_redis_put_many(struct ww_jobs *jobs, struct ww_job_put *puts, size_t count);
int ww_redis_put_move(
    struct ww_jobs *jobs, const struct ww_job_ref *job, uint64_t due, uint32_t flags, uint64_t *version);
int ww_redis_put_cancel(struct ww_jobs *jobs, const struct ww_job_ref *job);
/* Say which job is meant. Returns its shard. */
uint32_t ww_redis_put_refer(struct redis_store *store, struct words *words, const struct ww_job_ref *job);

int ww_redis_take(struct ww_jobs *jobs, const char *const *tubes, size_t count, struct ww_lease *lease);
int ww_redis_take_many(
    struct ww_jobs *jobs, const char *const *tubes, size_t count, struct ww_lease *leases, size_t most);
int ww_redis_take_wait(
    struct ww_jobs *jobs, const char *const *tubes, size_t count, uint64_t timeout, struct ww_lease *lease);
int ww_redis_take_job(struct ww_jobs *jobs, uint64_t id, struct ww_lease *lease);
void ww_redis_take_free(struct ww_jobs *jobs, void *body);

int ww_redis_end_finish(struct ww_jobs *jobs, uint64_t id, uint64_t token);
int ww_redis_end_finish_many(struct ww_jobs *jobs, struct ww_job_end *ends, size_t count);
int ww_redis_end_release(
    struct ww_jobs *jobs, uint64_t id, uint64_t token, uint32_t priority, uint64_t delay, const char *error);
int ww_redis_end_return(struct ww_jobs *jobs, uint64_t id, uint64_t token);
int ww_redis_end_bury(struct ww_jobs *jobs, uint64_t id, uint64_t token, uint32_t priority, const char *error);
int ww_redis_end_touch(struct ww_jobs *jobs, uint64_t id, uint64_t token, uint64_t *ends);

int ww_redis_kick(struct ww_jobs *jobs, const char *tube, uint64_t bound, uint64_t *count);
int ww_redis_kick_job(struct ww_jobs *jobs, uint64_t id);
int ww_redis_kick_pause(struct ww_jobs *jobs, const char *tube, uint64_t ns);
/* The soonest delayed job of a tube; WW_ENOTFOUND. */
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
int ww_redis_stats_tubes(struct ww_jobs *jobs, ww_tube_fn *fn, void *context);

int ww_redis_check(struct ww_jobs *jobs, ww_jobs_problem_fn *problem, void *context);

#endif
