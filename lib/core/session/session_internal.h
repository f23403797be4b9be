#ifndef LIB_CORE_SESSION_SESSION_INTERNAL_H
#define LIB_CORE_SESSION_SESSION_INTERNAL_H

/*
 * A session map is a number of shards. Each has a source of the driver (driver/layer.h), which is a lock and a wheel; a
 * table from key to entry; and the entries.
 *
 *     hash of the key --> shard --> table --> entry: | timer, value | key | TTL ... |
 *                                               ^
 *             wheel ----------------------------+  what expires is taken out under the same lock
 *
 * An entry is either in the map or a firing for the map's `gone`. A firing has left table and wheel, and nothing that
 * happens to its key concerns it.
 *
 * Ten million entries must fit into a gigabyte, so an entry is packed. The driver advances wheels in batches, which use
 * no timer's callback: that member holds the value. The wheel does not touch the period of a one-shot: that member
 * holds the version. An entry expires `early` ns before its timer's tick.
 *
 * Parts that only some maps need lie behind the entry. The map has the places of these parts, 0 if it does not need
 * them:
 *
 *     | struct session_entry | end: the end of its lifetime, in ns | struct session_use | weight |
 *                            ^ at_end                              ^ at_use             ^ at_weight
 *
 * An entry's deadline, and its timer's, is the end of its TTL or of its lifetime, whichever comes first.
 */

#include "lib/base/hash.h"
#include "lib/base/pool.h"
#include "lib/base/slab.h"
#include "lib/base/table.h"
#include "lib/core/driver/layer.h"
#include "lib/core/wheel/event.h"
#include "weekwheel/session.h"

#define KEY_INLINE 16u

struct session_entry {
	union {
		struct ww_timer timer;
		struct firing firing;
		struct slab_unused unused;
	} as;
	union {
		unsigned char inline_bytes[KEY_INLINE];
		unsigned char *block; /* of a longer key */
	} key;
	uint64_t ttl_us : 48;
	uint64_t length : 16;
	uint32_t early; /* by how much the entry expires before its tick, in ns */
	uint32_t index; /* its own */
};

/* Instead of a neighbour in order of use. Greater than any index. */
#define USE_NONE ((UINT32_C(1) << 27) - 1)
enum { LIST_WINDOW, LIST_MAIN, LIST_PINNED, LISTS };

/* The neighbours in order of use, in a limited map. */
struct session_use {
	uint32_t newer : 27;
	uint32_t list : 2; /* LIST_* */
	uint32_t older : 27;
};

_Static_assert(SLAB_MAX <= USE_NONE && sizeof(struct session_use) == 8, "goals name the size");

/* Entries in order of use. */
struct use_list {
	uint32_t newest;
	uint32_t oldest;
	size_t count;
	uint64_t weight;
};

/* How often keys were used, in a map with WW_SESSION_ADMIT (limit.c). */
struct sketch {
	uint64_t *word;
	uint32_t mask;
	uint32_t next;        /* word to halve */
	uint32_t uses;        /* since the last was halved */
	uint32_t uses_a_word; /* after which the next one is */
};

/* Instead of the end of a lifetime: there is none. */
#define END_NONE UINT64_MAX

_Static_assert(sizeof(struct session_entry) == 80, "header and goals name the size of an entry");
_Static_assert(sizeof(struct firing) <= offsetof(struct ww_timer, ww_period), "a firing leaves value and version");
_Static_assert(sizeof(ww_timer_fn *) == sizeof(void *), "the value fits where a callback would be");

/* A call that waits for another call's load, on its thread's stack. */
struct session_waiter {
	struct ww_timer timer; /* of its time limit; its period is 0, which is no version: it is no entry's */
	const struct ww_session_loading *how;
	int late;
	struct session_waiter *next;
};

/* A call of ww_session_take that loads, on its thread's stack. */
struct session_load {
	const void *key;
	size_t length;
	const struct ww_session_loading *how;
	void *value;
	pthread_t thread;
	struct session_waiter *waiters;
	uint64_t replaces; /* the version of the entry that serves meanwhile, or 0 */
	int done;
	int outdated;              /* what is loaded goes to its callers, and is not kept */
	enum ww_gone outdated_why; /* by what */
	int result;
	struct session_load *next;
};

struct session_shard {
	/* Threads that have a shard each must not share a cache line. */
	_Alignas(64) struct timer_source *source;
	struct table table;
	struct slab slab;
	struct ww_session *session;
	struct use_list list[LISTS]; /* in a limited map */
	struct sketch sketch;
	uint64_t version; /* the last that an entry got: grows by the number of shards, from the shard's number on */
	uint64_t random;
	struct session_load *loads;
	struct session_failure *failures; /* NULL until one is kept (failure.c) */
	struct session_recalls *recalls;  /* NULL until an end is recalled (recall.c) */
	size_t recall_bytes;              /* of all that */
	uint64_t recalls_dropped;
	pthread_cond_t loaded;
	struct ww_session_stats stats; /* without entries and bytes */
	size_t key_bytes;              /* of long keys */
	/* Entries for which gone was called, on their way back. Written per fire, without the lock. */
	_Alignas(64) struct slab_returns told;
};

struct ww_session {
	struct timer_group *group;
	struct ww_driver *driver;
	const struct ww_allocator *allocator;
	struct pool pool; /* of all tables and slabs */
	struct ww_session_config config;
	uint64_t tick_ns;
	uint32_t shard_count;
	uint32_t at_end; /* where an entry's optional parts lie; 0: not in this map */
	uint32_t at_use;
	uint32_t at_weight;
	uint32_t entry_size;         /* with them */
	size_t shard_limit;          /* entries, or 0 */
	uint64_t shard_weight_limit; /* or 0 */
	_Atomic uint64_t recall;     /* how long ends of lifetimes are recalled, in ns */
	_Atomic int doomed;  /* destroyed in gone by the worker that called it, which frees it when gone has ended */
	_Atomic int closing; /* being destroyed: nothing is set any more; set before the shards' locks are taken */
	struct hash_secret secret;
	struct session_shard shard[];
};

/* The key of a call, its shard, and the time. */
struct session_sought {
	struct session_shard *shard;
	const void *key;
	size_t length;
	uint64_t hash;
	uint64_t now; /* of the driver's clock, read under the lock */
};

static inline void *entry_value(const struct session_entry *entry)
{
	void *value;

	__builtin_memcpy(&value, &entry->as.timer.ww_expire, sizeof value);
	return value;
}

static inline void entry_set_value(struct session_entry *entry, void *value)
{
	__builtin_memcpy(&entry->as.timer.ww_expire, &value, sizeof value);
}

static inline const void *entry_key(const struct session_entry *entry)
{
	return entry->length > KEY_INLINE ? entry->key.block : entry->key.inline_bytes;
}

/* This bit of a version says that ww_session_load made the entry, and that nobody has set it since. */
#define VERSION_LOADED (UINT64_C(1) << 63)

static inline uint64_t entry_version(const struct session_entry *entry)
{
	return entry->as.timer.ww_period;
}

/* Whether a record of the slab is an entry that can be found. A TTL is at least 1 us. */
static inline int entry_is_in(const struct session_entry *entry)
{
	return entry->ttl_us != 0;
}

/* In a map with lifetimes. */
static inline uint64_t *entry_end(const struct ww_session *session, struct session_entry *entry)
{
	return (uint64_t *)(void *)((char *)entry + session->at_end);
}

/* In a limited map. */
static inline struct session_use *entry_use(const struct ww_session *session, struct session_entry *entry)
{
	return (struct session_use *)(void *)((char *)entry + session->at_use);
}

/* In a map that is limited by weight. */
static inline uint64_t *entry_weight(const struct ww_session *session, struct session_entry *entry)
{
	return (uint64_t *)(void *)((char *)entry + session->at_weight);
}

/* ---- entry.c: the shard's lock is held */

/* The entry of a key, expired or not, or NULL. */
struct session_entry *ww_session_entry_find(const struct session_sought *sought);
/* When an entry in the map expires, in ns. */
static inline uint64_t entry_deadline(const struct session_shard *shard, const struct session_entry *entry)
{
	return pending_deadline(&entry->as.timer) * shard->session->tick_ns - entry->early;
}
/* When one expired that was just taken out of the wheel. */
static inline uint64_t entry_met(const struct session_shard *shard, const struct session_entry *entry)
{
	return ww_source_met(shard->source) * shard->session->tick_ns - entry->early;
}
/* When one that is a firing expired, or would have: what has left the map has no version any more. */
static inline uint64_t *entry_gone_deadline(struct session_entry *entry)
{
	return &entry->as.timer.ww_period;
}
/* The entry of a key if it has not expired, or NULL. */
static inline struct session_entry *entry_live(const struct session_sought *sought)
{
	struct session_entry *entry = ww_session_entry_find(sought);

	return entry && entry_deadline(sought->shard, entry) > sought->now ? entry : NULL;
}
/* A new entry in table and order of use, with no end, version or deadline yet; NULL: no memory. */
struct session_entry *ww_session_entry_add(const struct session_sought *sought);
/* The most that jitter adds to a TTL. */
uint64_t ww_session_jitter_most(const struct ww_session *session, uint64_t ttl);
/* Let it expire `ttl` ns and jitter after now, or when its lifetime ends. The sum was checked. */
void ww_session_entry_place(struct session_shard *shard, struct session_entry *entry, uint64_t now, uint64_t ttl);
/* Let it expire at the deadline, or when its lifetime ends; a refresh will repeat the TTL. */
void ww_session_entry_place_at(
    struct session_shard *shard, struct session_entry *entry, uint64_t deadline, uint64_t ttl);
/* Describe it. */
void ww_session_entry_found(
    const struct session_sought *sought, struct session_entry *entry, struct ww_session_found *found);
/* It was used now. */
void ww_session_entry_used(struct session_shard *shard, struct session_entry *entry);
/* Take it out of table and order of use; from_wheel: also out of the wheel, where it has not expired. */
void ww_session_entry_remove(struct session_shard *shard, struct session_entry *entry, int from_wheel);
/* Needs no lock, in the worker that has the entry: free its key's block, if it has one, which counts until it is collected. */
void ww_session_entry_free_block(const struct ww_session *session, struct session_entry *entry);
/* Free its key, if that is a block. */
void ww_session_entry_free_key(struct session_shard *shard, struct session_entry *entry);
/* Give its memory back. */
void ww_session_entry_free(struct session_shard *shard, struct session_entry *entry);
/* Do so for up to `most` entries for which gone was called. */
void ww_session_entry_collect(struct session_shard *shard, size_t most);

/* ---- enter.c */

/* What a call answers to a key before anything else. */
static inline int session_key_refused(const void *key, size_t length)
{
	return length > WW_SESSION_KEY_MAX || (!key && length) ? WW_EINVAL : WW_OK;
}
/* A key, its shard, and this time. */
static inline struct session_sought session_seek(
    struct ww_session *session, const void *key, size_t length, uint64_t now)
{
	/* The table uses the high half of the hash, and the low half picks the shard. */
	uint64_t hash = ww_hash_bytes(&session->secret, key, length);

	return (struct session_sought){
	    &session->shard[(uint32_t)hash % session->shard_count], length ? key : "", length, hash, now};
}
/* Find the shard of a key. The time is to be read when that is locked. */
int ww_session_seek(struct ww_session *session, const void *key, size_t length, struct session_sought *sought);
/* The same, lock the shard, and read the time. On error nothing is locked. */
int ww_session_enter(struct ww_session *session, const void *key, size_t length, struct session_sought *sought);
/* What a call answers before it locks a shard: WW_OK, WW_EINVAL, WW_EBUSY in a look, or WW_ECLOSED. */
int ww_session_refuses(const struct ww_session *session);
/*
 * This thread is, or is no more, in a function of the caller's that runs under a shard's lock: calls in it are refused.
 * The thread must not be cancelled meanwhile.
 */
void ww_session_set_looking(int is);
int ww_session_is_looking(void);
/* Call the look. The lock is held. */
void ww_session_call_look(ww_look_fn *look, void *value, void *context);
/* Hand a value that has left the map to gone, with when it expired or would have; 0: gone cannot ask. No lock is held. */
void ww_session_report(
    struct ww_session *session, const void *key, size_t length, void *value, enum ww_gone why, uint64_t deadline);

/* ---- call.c: the shard's lock is held */

/*
 * The entry of a key that is looked up, if it has not expired, or NULL. Counts a hit, which is a use and, in a map that
 * says so, a renewal; or a miss.
 */
struct session_entry *ww_session_look_up(const struct session_sought *sought);
/* What ww_session_refresh does under the lock. */
int ww_session_prolong(const struct session_sought *sought, uint64_t ttl, void **value);
/* What ww_session_delete_if does under the lock; *value is what was taken out. */
int ww_session_cut(const struct session_sought *sought, uint64_t version, void **value);
/* Why this TTL is refused. 0 means the map's own TTL, which is then stored in *ttl. */
int ww_session_ttl_refused(const struct ww_session *session, uint64_t now, uint64_t *ttl);
/* When a lifetime that begins now ends, or END_NONE. 0 means the map's own lifetime. */
uint64_t ww_session_end(const struct ww_session *session, uint64_t now, uint64_t lifetime);

/* ---- put.c */

/* The members of an entry that a call sets. */
struct session_content {
	void *value;
	uint64_t ttl;      /* checked */
	uint64_t end;      /* ignored in a map without lifetimes */
	uint64_t deadline; /* 0: the TTL and jitter from now on; otherwise as ww_session_entry_place_at has it */
	uint64_t weight;   /* checked; 0: 1; ignored in a map without such a limit */
	uint32_t pinned;   /* ignored in a map without limits */
	int moves;         /* it was in the map before, or is put beyond the limit: it must not be refused for that */
};

/* What a set has taken out of the map, to be handed to gone when the lock is released. */
struct taken_out {
	void *value; /* of the same key */
	enum ww_gone why;
	uint64_t deadline;      /* its own */
	int is;                 /* whether there is one that the caller was not handed */
	struct firing *evicted; /* a chain of entries; the reason for gone is in its `since` */
};

/* Why the order is refused, whatever is in the map. `flags`: those that the call knows. */
int ww_session_order_refused(const struct ww_session *session, const struct ww_session_order *order, uint32_t flags);
/* The end of the lifetime that the order asks for. */
uint64_t ww_session_ordered_end(const struct session_sought *sought, const struct ww_session_order *order);
/*
 * The lock is held: make this the content of the key, whose entry, expired or not, is `entry`, or NULL. Returns the
 * entry, or NULL if there is no memory. *former, unless NULL, gets the value that was replaced. The shard may now be
 * over its limit.
 */
struct session_entry *ww_session_overfill(const struct session_sought *sought, struct session_entry *entry,
    const struct session_content *content, void **former, struct taken_out *out);
/* Both. */
struct session_entry *ww_session_store(const struct session_sought *sought, struct session_entry *entry,
    const struct session_content *content, void **former, struct taken_out *out);
/* No lock is held. */
void ww_session_report_taken(const struct session_sought *sought, const struct taken_out *out);

/* ---- limit.c: the shard's lock is held, and the map is limited */

int ww_session_limit_init(struct session_shard *shard);
void ww_session_limit_free(struct session_shard *shard);
size_t ww_session_limit_bytes(const struct session_shard *shard);
void ww_session_limit_used(struct session_shard *shard, struct session_entry *entry);
void ww_session_limit_remove(struct session_shard *shard, struct session_entry *entry);
/* The entry has this content from now on, and was used. */
void ww_session_limit_file(
    struct session_shard *shard, struct session_entry *entry, const struct session_content *content, int is_new);
/* Whether pinned entries leave no room for it. `entry`: that it replaces, or NULL. */
int ww_session_limit_refuses(
    const struct session_shard *shard, struct session_entry *entry, const struct session_content *content);
/* Let what is new and has been there long enough be one of the others, as after each change of a map that admits. */
void ww_session_limit_settle(struct session_shard *shard);
/* Take out what is over the shard's limit, also in a map without one. */
void ww_session_evict(const struct session_sought *sought, struct taken_out *out);

/* ---- take.c: the shard's lock is held */

/*
 * The key was taken out: what is being loaded for it is outdated, and will be reported as such; a failure that was
 * kept is forgotten.
 */
void ww_session_take_outdate(const struct session_sought *sought, enum ww_gone why);
/* The same for all keys of the shard. */
void ww_session_take_outdate_all(struct session_shard *shard, enum ww_gone why);
/* A timer of the wheel has expired. Returns 1 if it was no entry's, and is done with. */
int ww_session_take_expires(struct session_shard *shard, struct ww_timer *timer);

/* ---- recall.c: the shard's lock is held, but for ww_session_recall_free */

/* An entry that has expired at the deadline leaves the map: recall the end of its lifetime. */
void ww_session_recall_expired(struct session_shard *shard, struct session_entry *entry, uint64_t deadline);
/* The end of the lifetime of the key's last entry, if it is recalled, or END_NONE. `expired`: it, if it is still there. */
uint64_t ww_session_recall_end(const struct session_sought *sought, struct session_entry *expired);
/* Recall the end of the key's lifetime until then. It has no live entry. */
void ww_session_recall_keep(const struct session_sought *sought, uint64_t end, uint64_t until);
void ww_session_recall_forget(const struct session_sought *sought);
/*
 * Visit a few of those that are recalled, and count on. Returns 0 if there are no more. *answer gets what fn returned.
 * When there is more room meanwhile, they go to places that come later.
 */
int ww_session_recall_visit(struct session_shard *shard, size_t *next, ww_recalled_fn *fn, void *context, int *answer);
void ww_session_recall_forget_all(struct session_shard *shard);
void ww_session_recall_free(struct session_shard *shard);

/* ---- failure.c: the shard's lock is held */

/* The error that is kept for the key, or 0. */
int ww_session_failure_find(const struct session_sought *sought);
void ww_session_failure_keep(const struct session_sought *sought, int error, uint64_t time);
void ww_session_failure_forget(const struct session_sought *sought);
void ww_session_failure_forget_all(struct session_shard *shard);
size_t ww_session_failure_bytes(const struct session_shard *shard);
/* No lock is needed. */
void ww_session_failure_free(struct session_shard *shard);

/* ---- clear.c */

/*
 * No lock is held: take out all entries, report them as CLEARED, and return their number. What is set meanwhile stays.
 */
size_t ww_session_clear_all(struct ww_session *session);

/* ---- walk.c */

/* The progress of a walk. Zero: it begins. */
struct session_walk {
	uint32_t shard;
	uint32_t next; /* record of the shard */
	int ended;     /* the shard's records were all visited */
};

/* Visit an entry that has not expired. The lock is held. Not 0: interrupt the walk, which has yet to visit it. */
typedef int session_visit_fn(const struct session_sought *here, struct session_entry *entry, void *context);
/*
 * No lock is held: visit all entries that are there throughout exactly once, or until a visit answers other than 0.
 * Returns that; the same call then goes on. Others get the lock between some dozen entries.
 */
int ww_session_visit(struct ww_session *session, struct session_walk *walk, session_visit_fn *visit, void *context);
/* What a call that walks answers before: as ww_session_refuses, but a driver that was stopped does not matter. */
int ww_session_walk_refuses(const struct ww_session *session);

#endif
