#ifndef WEEKWHEEL_SESSION_H
#define WEEKWHEEL_SESSION_H

/*
 * An expiring map, for caches and week-scale sessions: it removes a value that has not been used for its time to live
 * (TTL).
 *
 *     set ------> entry: key, value, TTL
 *                   ^     |
 *     refresh ------+     +-- TTL passes ----> gone(EXPIRED)
 *     (starts its         +-- limit reached -> gone(EVICTED), the least
 *     TTL anew)           |                    recently used one, if none has
 *                         |                    expired
 *                         +-- delete --------> gone(DELETED)
 *                         +-- replace -------> gone(REPLACED)
 *                         +-- clear ---------> gone(CLEARED)
 *
 * The map runs on a driver (driver.h), whose threads expire entries that nobody looks up any more. In a driver
 * without threads, ww_driver_dispatch does that. A lookup compares the time itself and never finds an expired value,
 * whatever the driver's tick is and however late its thread runs. A heartbeat, ww_session_refresh, is a lookup and one
 * store.
 *
 *     static void gone(
 *         struct ww_session *map, const void *key, size_t length, void *value, enum ww_gone why, void *user)
 *     {
 *             free(value);
 *     }
 *
 *     ww_session_config_default(&config);
 *     config.gone = gone;
 *     if (ww_session_create(&map, driver, &config) == WW_OK)
 *             ww_session_set(map, "alice", 5, strdup("cart"), 30 * 60 * WW_SECOND, NULL);
 *
 * Keys: 0 to WW_SESSION_KEY_MAX bytes, which the map copies. An attacker who can choose keys cannot make lookups slow,
 * unless he can read the process's memory.
 * Values: pointers that the map passes around and never dereferences. Each value that leaves the map is handed over
 * exactly once: to the call that took it out, if that call asks for it, and otherwise to the map's `gone`. A value that
 * a lookup returned may leave the map at the next moment, and its owner may free it. Threads that share values count
 * references, and take one in ww_session_look or ww_session_inspect.
 *
 * Time: ns of the driver's clock. A deadline is exact to the nanosecond where a call gives the TTL. The map keeps the
 * TTL in microseconds, rounded up: so long is what a refresh without one starts.
 * Queue: while the map's places in the driver's queue are taken, expired values wait in the map for `gone`, even with
 * WW_DRIVER_DROP: no value is dropped. No lookup finds them meanwhile.
 * Lifetimes: in addition to the TTL, which a refresh starts anew, an entry may have a lifetime, which nothing prolongs:
 * for example 30 minutes idle and 12 hours in all. The entry expires at the end of its TTL or of its lifetime,
 * whichever comes first. Jitter does not reach beyond the end of a lifetime. The end is a time of the driver's clock:
 * if the clock is stepped back, the entry lives until the clock reaches the end again.
 * Versions: each set, load or rename gives the entry a number that no other set, load or rename of this map gives. A
 * refresh keeps it. ww_session_put can store only if the version is the expected one, or only if the key is absent.
 * Limits: a map can limit the number of its entries and their weight, in units that the caller chooses, such as bytes.
 * Each shard has an equal share of a limit. An entry that weighs more than a share, weight_limit / shards, is refused
 * (WW_ETOOBIG). If `shards` is 0, a share is at least 4,096 of each limit, or all of it. If weights are bytes, choose
 * so few `shards` that a share is some ten times the largest weight; a single shard takes all that fits. The map
 * removes the entries over a limit: expired ones first, then the least recently used. A call removes at most 256
 * entries, and the next calls remove the rest. With WW_SESSION_ADMIT a new entry first stays in a window of a hundredth
 * of the limit. It then takes the place of the least recently used entry only if it was used more often (TinyLFU;
 * lib/core/session/limit.c cites it). A scan of eight times the limit, whose keys are used once, puts out about a
 * tenth of what was used often. As uses count less with time, one of thirty times puts out all of it. Most of what
 * is new and not used again leaves a full map soon. That takes 4 to 8 bytes an entry of the limit. Pinned entries count
 * and are not removed. If they alone fill a shard, a set answers WW_ENOMEM, unless it replaces one of them by an entry
 * that weighs no more. A save keeps weights and pins.
 * Memory: 80 bytes an entry with a key of up to 16 bytes, 8 more in a map with lifetimes, 8 more in a limited one, 8
 * more with a weight_limit, and 9 to 13 for its place in the table. A longer key is a separate block. Records are
 * allocated in chunks of 512: with few entries a shard, the unused part of its last chunk takes more. A map of more
 * than 12 MiB grows by 2 MiB at a time, in huge pages where the system gives them on request
 * (transparent_hugepage/enabled: madvise).
 * Threads: any number at once. Keys are spread over shards, each with a lock. The map holds no lock during callbacks,
 * except in a ww_look_fn, a ww_encode_fn, and a ww_walk_fn of ww_session_walk or ww_session_inspect.
 * Fork: only the parent has the driver's threads. In the child every call answers WW_ECLOSED, except
 * ww_session_destroy, which frees the map. A child that was forked in a callback must not return from that callback.
 * Errors: every call returns 0 or a positive answer, or a negative WW_E* of error.h. On error nothing has changed,
 * unless the function says otherwise: ww_session_put, take, walk, drain, load and the calls with many keys do.
 * WW_EINVAL: NULL where an object is needed, a key that is too long, or a NULL key with a length. WW_ECLOSED: the
 * driver was stopped. WW_EBUSY: called in one of the functions that run under a lock.
 */

#include <stddef.h>
#include <stdint.h>

#include "weekwheel/driver.h"
#include "weekwheel/error.h"

#ifdef __cplusplus
extern "C" {
#endif

#define WW_SESSION_KEY_MAX 65535
/* The longest TTL: 2^48 - 1 microseconds, 8.9 years. */
#define WW_SESSION_TTL_MAX (((UINT64_C(1) << 48) - 1) * WW_MICROSECOND)
/* Instead of a lifetime, or of the time left of it: there is no end. */
#define WW_SESSION_NO_END UINT64_MAX
/* The driver's tick may be at most this for a session map: 2^32 - 1 ns, 4.29 s. */
#define WW_SESSION_TICK_MAX ((uint64_t)UINT32_MAX)

struct ww_session;

/* Why a value has left the map. */
enum ww_gone {
	WW_GONE_EXPIRED,  /* its TTL has passed, or its lifetime */
	WW_GONE_EVICTED,  /* the map was full, and it was the least recently used of its shard */
	WW_GONE_REPLACED, /* another value was set for its key, or an entry renamed to it */
	WW_GONE_DELETED,  /* ww_session_delete(_if), also of a key whose value was being loaded */
	WW_GONE_CLEARED   /* ww_session_clear or ww_session_destroy */
};

/*
 * Called with a value that has left the map. The key's bytes are valid during the call. No lock is held. The function
 * may set the same key again and call every function on the map. It may destroy the map if a worker of the driver or
 * ww_driver_dispatch called it with an expired value. If another function on the map called it, ww_session_destroy
 * answers WW_EBUSY. While the map is being destroyed, the other functions answer WW_ECLOSED, except ww_session_stats.
 * EXPIRED comes from a worker of the driver, from ww_driver_dispatch in a driver without threads, or from a call that
 * replaces an expired value or removes it from a full map. The other reasons come from the call that caused them; a
 * value whose loading was outdated comes from the call that loaded it (ww_session_take).
 */
typedef void ww_gone_fn(
    struct ww_session *session, const void *key, size_t length, void *value, enum ww_gone why, void *user);

/*
 * Store in *ns when the value that gone was called with expired or would have expired, on the driver's clock: the end
 * of its TTL or of its lifetime, before rounding to a tick. Call this in gone, for a value that has expired or was
 * evicted.
 * Complexity: O(1). Errors: WW_EINVAL: ns is NULL. WW_ENOTFOUND: gone is not running in this thread, or the value has
 * left the map for another reason.
 */
WW_API int ww_session_gone_deadline(uint64_t *ns);

/* Flags of a configuration. */
#define WW_SESSION_RENEW 1u     /* get, find, look and take start an entry's TTL anew, as refresh does */
#define WW_SESSION_LIFETIMES 2u /* entries may have lifetimes of their own, even if `lifetime` is 0 */
#define WW_SESSION_ADMIT 4u     /* a full map keeps entries used often: see Limits. Needs a `limit` */

/* The configuration of a map. Fill it with ww_session_config_default, then change what should differ. */
struct ww_session_config {
	uint64_t ttl;        /* default TTL in ns: 1 to WW_SESSION_TTL_MAX; a week */
	uint64_t jitter_max; /* in ns: the most that jitter adds, 0 to WW_SESSION_TTL_MAX; a minute */
	uint32_t jitter;     /* in thousandths of the TTL, 0 to 1,000; 0: none */
	uint32_t shards;     /* 0: from the processors and the limits; otherwise 1 to WW_DRIVER_SHARDS_MAX */
	/*
	 * The most entries, 0: no limit; divided among the shards, rounded up. Entries that have expired and wait for
	 * the driver are removed first, as expired.
	 */
	size_t limit;
	ww_gone_fn *gone;      /* NULL: no calls */
	void *user;            /* for gone */
	uint64_t lifetime;     /* of an entry, in ns, from when it is set; 0, or an end beyond the last time: none */
	uint32_t flags;        /* WW_SESSION_*; 0 */
	uint64_t weight_limit; /* the most that all entries weigh, 0: no limit; at most 2^62; divided as `limit` is */
	uint32_t share;        /* of the workers, for gone: see Fairness in driver.h; to WW_DRIVER_SHARE_MAX; 0: 1 */
};

struct ww_session_stats {
	uint64_t entries; /* in the map now; what is due by then has expired first, unless the queue is full */
	uint64_t hits;    /* lookups that found a value */
	uint64_t misses;  /* lookups that did not */
	uint64_t expired;
	uint64_t evicted;
	uint64_t stale;          /* puts, renames and deletes that did not find the expected version */
	uint64_t loads;          /* times that ww_session_take called a loader */
	uint64_t loads_failed;   /* loads that returned an error */
	uint64_t loads_shared;   /* calls of ww_session_take that waited for another call's loader */
	uint64_t loads_ahead;    /* loads meant to replace a value that still lived */
	uint64_t loads_outdated; /* loads that a delete, a rename or a clear outdated */
	uint64_t loads_late;     /* calls that stopped waiting for another call's loader */
	uint64_t failures_kept;  /* calls that were answered with the kept error of a loader */
	uint64_t load_time;      /* of all loads together, on the driver's clock in ns */
	uint64_t weight;         /* of the entries in the map now */
	uint64_t pinned;         /* entries in the map now that are never evicted */
	uint64_t not_admitted;   /* evicted entries that were used less than those that they would have replaced */
	uint64_t load_time_max;  /* of the longest load */
	uint64_t bytes;          /* memory of the map, its entries and long keys */
};

/* Fill *config with the defaults that the struct names for each member. Errors: WW_EINVAL: config is NULL. */
WW_API int ww_session_config_default(struct ww_session_config *config);

/*
 * Make an empty map on the driver and store it in *session. config NULL means the default. The call copies config.
 * Jitter: the map adds a random part of jitter thousandths to each TTL, at most jitter_max, so that entries set at one
 * moment do not all expire at one moment. Jitter never shortens a TTL.
 * Ownership: the caller's, until ww_session_destroy, which must come before ww_driver_destroy (WW_EBUSY).
 * Errors: WW_EINVAL: session or driver is NULL, the configuration is out of range, or the driver's tick is over
 * WW_SESSION_TICK_MAX. WW_ENOMEM: no memory. WW_ESYSTEM: the system has no random numbers. WW_ECLOSED: the driver was
 * stopped.
 */
WW_API int ww_session_create(
    struct ww_session **session, struct ww_driver *driver, const struct ww_session_config *config);

/*
 * Clear the map, wait for calls of gone that run in workers, and free the map. NULL is harmless. It works after the
 * driver's stop, too: values that the driver had taken out as expired, and that waited for a worker, go to gone now, as
 * EXPIRED. In a child of the process the call frees the map without calling gone; the values stay as they are.
 * Threads: no other thread may use the map any more.
 * In gone, called by a worker or ww_driver_dispatch, the call does not wait. The map is freed when that call of gone
 * and the others that run have ended. The driver can be destroyed before.
 * Errors: WW_EBUSY: called in a function that another function on this map calls: gone, a loader, a walk, a look.
 */
WW_API int ww_session_destroy(struct ww_session *session);

/*
 * Map the key to the value for `ttl` ns; 0 means the map's own TTL. The map's own lifetime, if it has one, begins. The
 * key's former value is replaced. It is stored in *former unless that is NULL; *former is NULL if there was none. A
 * value that had already expired goes to gone as EXPIRED. To prolong an entry use ww_session_refresh: setting the same
 * pointer again is a replacement, too, and gone is called for it.
 * Complexity: O(1). Errors: WW_EINVAL also: ttl is over WW_SESSION_TTL_MAX. WW_EOVERFLOW: with the most jitter the
 * entry would expire beyond WW_DRIVER_TIME_MAX. WW_ENOMEM: no memory, 2^26 entries in one shard, or pinned entries
 * leave no room.
 */
WW_API int ww_session_set(
    struct ww_session *session, const void *key, size_t length, void *value, uint64_t ttl, void **former);

/* Versions of an order, in addition to those that entries have. */
#define WW_SESSION_ANY UINT64_C(0)   /* any entry, or none */
#define WW_SESSION_ABSENT UINT64_MAX /* the key has no entry, or an expired one */

/* Flags of an order. */
#define WW_SESSION_KEEP_END 1u    /* put: keep the end of the lifetime of the entry that is replaced, or recalled */
#define WW_SESSION_REPLACE 2u     /* rename: replace the entry of the new key, if there is one */
#define WW_SESSION_PINNED 4u      /* put, loader: the entry is never evicted, until it is set again without this */
#define WW_SESSION_BEYOND 8u      /* put: limits refuse and remove nothing now, as for entries from before a restart */
#define WW_SESSION_STAY_ENDED 16u /* put, rename: refuse a key whose recalled lifetime is over (ww_session_recall) */

/* How ww_session_put stores. All zero: the same as ww_session_set with a ttl of 0. */
struct ww_session_order {
	uint64_t ttl;      /* in ns; 0: the map's own */
	uint64_t lifetime; /* in ns; 0: the map's own; WW_SESSION_NO_END: none */
	/*
	 * Of the lifetime, on the driver's clock in ns; 0: by `lifetime`. Of both, the earlier counts: an end that is
	 * to stay although it is later than the map's own lifetime, as of an entry from before a restart, needs a
	 * `lifetime` of WW_SESSION_NO_END.
	 */
	uint64_t end;
	uint64_t
	    deadline; /* put: when the TTL first ends, on the driver's clock in ns; 0: `ttl` and jitter from now on */
	uint64_t version; /* that the entry must have; or WW_SESSION_ANY or WW_SESSION_ABSENT */
	uint32_t flags;   /* those above that the call knows */
	uint64_t weight;  /* in a map with a weight_limit; 0: 1 */
};

/* What the map has for a key. */
struct ww_session_found {
	void *value;
	uint64_t version;  /* never 0 nor UINT64_MAX */
	uint64_t ttl;      /* that a refresh with 0 starts anew, in ns */
	uint64_t left;     /* until it expires, in ns; 0: it has expired */
	uint64_t deadline; /* when it expires, on the driver's clock in ns */
	uint64_t end_left; /* until its lifetime ends, in ns; or WW_SESSION_NO_END */
	uint64_t weight;   /* 0 in a map without a weight_limit */
	uint32_t flags;    /* WW_SESSION_PINNED or 0 */
};

/*
 * Set as ww_session_set does, with all options. order NULL means all zero. *found, unless NULL, gets the new entry.
 * Compare and set: find the entry, and put with its version. If another thread was faster, the call answers WW_ESTALE,
 * and *found gets the present entry, or all zero if the key is absent. A loop over values that nobody frees, such as
 * numbers, thus needs no second lookup. The value in *found may leave the map at the next moment (see Values). A loop
 * that dereferences it takes a reference and the version in ww_session_inspect, in each round (tools/examples/cache.c).
 * Such a put is a set: the TTL begins anew, and so does the lifetime, unless flags has WW_SESSION_KEEP_END. The new
 * entry inherits nothing else from the one that it replaces. Unless order gives them, the TTL is the map's own again,
 * the weight is 1, and the pin is gone. If the end or the deadline has passed, the new entry has already expired: no
 * lookup finds it, and gone gets its value.
 * With WW_SESSION_BEYOND a full map takes the entry and removes nothing. This is for the entries of a map from before a
 * restart. They come in another order, together with entries that were removed or have expired since. Only WW_ETOOBIG
 * is still answered. Later calls remove the entries over the limits.
 * Complexity: O(1). Errors: as ww_session_set. WW_EOVERFLOW also: the deadline is beyond WW_DRIVER_TIME_MAX. WW_ESTALE:
 * the present entry, or its absence, does not match the order's version; only *found has changed. WW_EBACKWARDS: with
 * WW_SESSION_STAY_ENDED, the key's lifetime is over, and the map recalls it. WW_EINVAL also: unknown flags, a lifetime
 * or end in a map without lifetimes, or a pin in a map without limits. WW_ETOOBIG: the weight is more than a shard's
 * share of the weight_limit.
 */
WW_API int ww_session_put(struct ww_session *session, const void *key, size_t length, void *value,
    const struct ww_session_order *order, struct ww_session_found *found, void **former);

/*
 * Look up the key. Return 1 and store the value in *value (unless NULL), or return 0 and leave *value. In a limited map
 * the entry becomes the most recently used one. The call does not change when the entry expires, except in a map with
 * WW_SESSION_RENEW. O(1).
 */
WW_API int ww_session_get(struct ww_session *session, const void *key, size_t length, void **value);

/*
 * The same, and store in *found all that the map has for the key, as of one moment. Return 1, or return 0 and leave
 * *found. O(1). Errors: WW_EINVAL also: found is NULL.
 */
WW_API int ww_session_find(struct ww_session *session, const void *key, size_t length, struct ww_session_found *found);

/*
 * Look up as ww_session_get does, and start the entry's TTL anew with `ttl`. If ttl is 0, use the TTL that the entry
 * was last set or refreshed with. Its lifetime goes on. O(1).
 * Errors: as ww_session_set, without WW_ENOMEM.
 */
WW_API int ww_session_refresh(struct ww_session *session, const void *key, size_t length, uint64_t ttl, void **value);

/* One key of a call with many. */
struct ww_session_item {
	const void *key;
	size_t length;
	void *value; /* gets the value if there is one, and is left alone otherwise */
	int result;  /* gets what the call for this key alone would return: 1, 0 or an error */
};

/*
 * Look up items[0 .. count-1] as `count` calls of ww_session_get do, and store each value and answer in its item.
 * Single lookups in a map of a million entries mostly wait for memory. This call asks for the memory of up to 32 keys
 * at a time. From some four keys on, a key takes half the time or less. In a map that fits into the processor's caches,
 * of some thousand entries or fewer, the gain is small.
 * The call looks up the keys of a shard in the order of the items. A key may occur twice. *found, unless NULL, gets the
 * number of items whose result is 1. Returns 0, or the result of the first item that has an error; the other items are
 * still looked up.
 * Complexity: O(count), with each shard locked three times for every 32 items. Allocates nothing. count may be 0.
 * Errors: WW_EINVAL also: items is NULL while count is not 0. On an error of the call as a whole, *found and the items
 * stay as they are.
 */
WW_API int ww_session_get_many(struct ww_session *session, struct ww_session_item *items, size_t count, size_t *found);

/* The same for ww_session_refresh, with one ttl for all; 0: each entry's own. */
WW_API int ww_session_refresh_many(
    struct ww_session *session, struct ww_session_item *items, size_t count, uint64_t ttl, size_t *found);

/* The same for ww_session_delete: the item of each key gets the value that is taken out. */
WW_API int ww_session_delete_many(
    struct ww_session *session, struct ww_session_item *items, size_t count, size_t *found);

/*
 * Called with a value while it cannot leave the map. Be short: other threads wait for the lock. Meanwhile every call on
 * any session map answers WW_EBUSY, and so does ww_session_create.
 */
typedef void ww_look_fn(void *value, void *context);

/*
 * Look up as ww_session_get does, and call look(value, context) before any other call can take the value out of the
 * map.
 */
WW_API int ww_session_look(struct ww_session *session, const void *key, size_t length, ww_look_fn *look, void *context);

/*
 * Called by a walk or ww_session_inspect for an entry. Return 0 to go on. Any other number ends the walk, and the call
 * returns it.
 */
typedef int ww_walk_fn(const void *key, size_t length, const struct ww_session_found *found, void *context);

/*
 * ww_session_find and ww_session_look in one: look up as ww_session_get does, and call fn with all that the map has for
 * the key, before any other call can take the value out of the map. fn can take a reference and keep the version. It
 * runs as a ww_look_fn does; the key and *found are valid during the call.
 * Return what fn returned if that is not 0; otherwise 1, or 0 if the key has no entry. O(1).
 * Errors: WW_EINVAL also: fn is NULL.
 */
WW_API int ww_session_inspect(
    struct ww_session *session, const void *key, size_t length, ww_walk_fn *fn, void *context);

/* Return 1 and store in *ns the time that the entry has left to live, or return 0 and leave *ns. */
WW_API int ww_session_time_left(struct ww_session *session, const void *key, size_t length, uint64_t *ns);

/*
 * Take the entry out of the map. Return 1 and store its value in *value, or hand the value to gone if value is NULL.
 * Return 0 if there was no entry. In either case a value that is being loaded for the key is outdated
 * (ww_session_take).
 */
WW_API int ww_session_delete(struct ww_session *session, const void *key, size_t length, void **value);

/*
 * The same if the entry has this version, or the version is WW_SESSION_ANY. Errors: WW_ESTALE: it has another version.
 */
WW_API int ww_session_delete_if(
    struct ww_session *session, const void *key, size_t length, uint64_t version, void **value);

/*
 * Give the key's entry the key `to`, as a site gives a session a new id at login. The entry never has both keys, or
 * neither. It keeps its value, its TTL and both deadlines, to the nanosecond. It gets a new version and becomes the
 * most recently used. *found, unless NULL, gets the entry.
 * order NULL means all zero. Its version is the one that the entry must have. Its ttl, unless 0, starts the TTL anew.
 * Its lifetime and end, unless both are 0, set another lifetime and start the TTL anew, too. With WW_SESSION_REPLACE an
 * entry of the new key is replaced as ww_session_set does. *former, unless NULL, gets its value, or NULL.
 * Complexity: O(1), with the locks of two shards held. Errors: WW_ESTALE: the key has no entry, or one of another
 * version. WW_EINUSE: the new key has an entry, and WW_SESSION_REPLACE is not set. WW_EBACKWARDS: with
 * WW_SESSION_STAY_ENDED, the lifetime of the new key's last entry is over, and the map recalls it. WW_EINVAL also: both
 * keys are the same, unknown flags, or a lifetime or end in a map without lifetimes. WW_EOVERFLOW, WW_ENOMEM: as
 * ww_session_set. The entry keeps its weight and pin.
 */
WW_API int ww_session_rename(struct ww_session *session, const void *key, size_t length, const void *to,
    size_t to_length, const struct ww_session_order *order, struct ww_session_found *found, void **former);

/*
 * Let the map recall the end of an entry's lifetime for `ns` after the entry has expired; 0, as at first: not at all.
 * A request that read a session before its end may set it again behind that. Without this, such a late set begins
 * another whole lifetime. With it, WW_SESSION_KEEP_END goes on with the recalled end, and WW_SESSION_STAY_ENDED refuses
 * a set or a rename to the key if that end has passed. A set or rename that stores begins anew, and so the end is
 * forgotten. A deleted or evicted entry is not recalled, nor is one without a lifetime.
 * `ns` is at most WW_SESSION_TTL_MAX, and holds for what expires from now on. ww_session_clear forgets all ends, also
 * of what expires during the call.
 * Memory: 40 bytes and a copy of the key for each. A key of more than 512 bytes is recalled only as long as its expired
 * entry waits for the driver. A shard recalls at most 8,192, in buckets of 8. A bucket may be full before: with
 * 2,048 in a shard nearly none is dropped, with 4,096 about 1 of 100, and with 8,192 about 1 of 7. What is dropped
 * then, or without memory, is first one whose lifetime would still go on, and of several the one that would be
 * forgotten first.
 * ww_session_save does not save what is recalled: see ww_session_recalled. O(1).
 * Errors: WW_EINVAL also: `ns` is too long, or the map does not keep lifetimes.
 */
WW_API int ww_session_recall(struct ww_session *session, uint64_t ns);

/*
 * Return 1 and store in *end, on the driver's clock in ns, when the lifetime of the key's last entry ends or has ended,
 * if the map recalls it. Return 0 and leave *end if it does not, or if the key has an entry. It is no use of the key.
 * O(1). Errors: WW_EINVAL also: end is NULL.
 */
WW_API int ww_session_ended(struct ww_session *session, const void *key, size_t length, uint64_t *end);

/* Called for a key that is recalled, as a ww_walk_fn is. `end` and `until` are those of ww_session_remember. */
typedef int ww_recalled_fn(const void *key, size_t length, uint64_t end, uint64_t until, void *context);

/*
 * Visit a few of the keys that are recalled, as ww_session_scan does entries: *cursor is 0 at first, and again when
 * all have been visited. The call calls fn for at most 8 keys, perhaps for none. A key that is recalled throughout all
 * calls is visited, perhaps twice. An entry that has expired and waits for the driver is not recalled yet. fn runs
 * under the shard's lock as that of ww_session_walk does. If it returns a number other than 0, the call returns that,
 * and the next call visits the key again.
 * Works after the driver's stop, too. O(shards). Errors: as ww_session_scan.
 */
WW_API int ww_session_recalled(struct ww_session *session, uint64_t *cursor, ww_recalled_fn *fn, void *context);

/*
 * Recall, as from before a restart, that the key's lifetime ends or has ended at `end`, until the time `until`; both
 * are on the driver's clock in ns. The call does nothing if `until` has passed, or if the key has an entry, even one that
 * has expired and waits for the driver: that entry's own end counts.
 * O(1). Errors: WW_EINVAL also: end is 0 or over WW_DRIVER_TIME_MAX, or the map does not keep lifetimes.
 */
WW_API int ww_session_remember(
    struct ww_session *session, const void *key, size_t length, uint64_t end, uint64_t until);

/*
 * Store in *count how many ends that had passed were dropped since the map was made: those keys no longer stay ended.
 * One whose lifetime still went on when it was dropped does not count. O(shards). Errors: as ww_session_walk.
 */
WW_API int ww_session_recalls_dropped(struct ww_session *session, uint64_t *count);

/*
 * Loads a missing value. Store the value in *value. *ttl is 0; store another TTL there to replace the map's own. Return
 * WW_OK, or any negative number, which ww_session_take then returns without storing anything. No lock is held. The
 * function may call every function on the map except ww_session_destroy and ww_session_take for the same key, which
 * answer WW_EBUSY.
 */
typedef int ww_load_fn(const void *key, size_t length, void **value, uint64_t *ttl, void *context);

/*
 * Look up as ww_session_get does, and load a missing value. Return 1 if the value was there, 0 if it was loaded; the
 * value is in *value. However many threads ask for one key at the same time, one of them calls load. The others wait
 * and get the same result.
 * If another call sets the key during the load, its value stays and is returned, and the loaded value goes to gone as
 * REPLACED. If both are the same pointer, gone is not called, since that value stays.
 * If another call deletes or renames the key or clears the map during the load, the loaded value is outdated: the
 * load's callers get it, and the map does not keep it. It is as if it had been stored, returned and then taken out: it
 * goes to gone as DELETED or CLEARED, once, after all its callers got it and before the call that loaded it returns. A
 * caller that keeps the value takes a reference in a look (ww_session_take_by). A call that comes after the delete does
 * not wait for that load but begins another.
 * Threads: a thread that is cancelled meanwhile ends after the call. Loaders in different threads that take each
 * other's keys wait for ever.
 * Errors: what load returned, also for the callers that waited. But those get 1 and the value if another call has set
 * the key meanwhile. WW_EINVAL also: load or value is NULL, or load stored a ttl that is too long. WW_EBUSY: called in
 * load for the same key. WW_ENOMEM: no memory to store the value. A loaded value that cannot be stored goes to gone as
 * REPLACED.
 */
WW_API int ww_session_take(
    struct ww_session *session, const void *key, size_t length, ww_load_fn *load, void *context, void **value);

/*
 * Loads a missing value with all options. As ww_load_fn; instead of the TTL it gets an order, all zero, and may set its
 * ttl, lifetime, end, weight and pin. If the order is refused, the call answers as ww_session_put does: WW_ETOOBIG to a
 * weight that no shard can take, otherwise WW_EINVAL.
 */
typedef int ww_load_order_fn(
    const void *key, size_t length, void **value, struct ww_session_order *order, void *context);

/* How ww_session_take_by loads. All zero but `load`: as ww_session_take. */
struct ww_session_loading {
	ww_load_order_fn *load;
	void *context;         /* for load */
	ww_look_fn *look;      /* called with the value that the call answers, before it can leave the map; or NULL */
	void *look_context;    /* for look */
	uint64_t wait;         /* the longest time to wait for another call's loader, in ns; 0: as long as it takes */
	uint64_t keep_failure; /* how long the error of this call's loader is kept, in ns; 0: it is not */
	uint32_t ahead; /* in thousandths of its TTL, 0 to 999: a value older than that is loaded anew; 0: never */
};

/*
 * Take as ww_session_take does, with options.
 * look: called as in ww_session_look, whether the value was in the map, was loaded, or was loaded by another call. In
 * the last case it is called in the thread of that call. A reference that it takes is safe, even if the load was
 * outdated.
 * ahead: the first call that finds the value at that age loads it anew, before it expires. Meanwhile the old value
 * serves all other calls. The new value replaces it (gone gets REPLACED, unless both are the same pointer). The loading
 * call returns 0 and the new value. If the loader fails, or its value cannot be stored, the call returns 1 and the old
 * value. If another call sets the key meanwhile, its value stays, as in ww_session_take. A refresh makes the value young
 * again, and so does a lookup in a map with WW_SESSION_RENEW. A value whose lifetime ends before its TTL is not loaded
 * ahead.
 * keep_failure: while an error is kept, calls for the key call no loader. They answer that error, or the value if the
 * key has one. A set, a delete, a rename or a clear forgets it. A shard keeps 1,024 errors in 24 KiB, and a newer one
 * may take the place of an older one.
 * wait: a call that has waited this long answers WW_ETIMEOUT; the load goes on. The time is the driver's, rounded up to
 * its tick. It runs out later while the driver's queue is full. A call cannot abandon its own loader.
 * Errors: as ww_session_take. WW_EINVAL also: ahead is over 999. WW_ETIMEOUT. WW_ENOMEM also: no memory to wait with a
 * limit.
 */
WW_API int ww_session_take_by(
    struct ww_session *session, const void *key, size_t length, const struct ww_session_loading *how, void **value);

/*
 * Take all entries out, as CLEARED, also what has expired and was not yet taken out by the driver. An entry that is set
 * after the call has begun with its shard stays. *count, unless NULL, gets the number of entries taken out. Values that
 * are being loaded are outdated (ww_session_take).
 * Complexity: O(the largest number of entries that the map had). A shard is locked for some hundred entries at a time,
 * and not while gone is called for them.
 */
WW_API int ww_session_clear(struct ww_session *session, size_t *count);

/* ---- All entries ---------------------------------------------------------------------------------------------- */

/*
 * Call fn for each entry that has not expired. An entry that is in the map throughout is visited exactly once. An entry
 * that is set, removed or renamed meanwhile may or may not be visited; a renamed one may be visited under both keys. A
 * walk does not count as a use of an entry. *count, unless NULL, gets the number of calls, even if fn ended the walk.
 * fn runs under the shard's lock as a ww_look_fn does: it must be short, and every call on any session map answers
 * WW_EBUSY. The key and *found are valid during the call. The walk releases the lock after at most 64 entries, so that
 * other threads wait only briefly, however large the map is.
 * Works after the driver's stop, too. O(entries, and records that are not in use).
 * Errors: what fn returned. WW_EINVAL: session or fn is NULL. WW_ECLOSED: the map is being destroyed, or in a child of
 * the process.
 */
WW_API int ww_session_walk(struct ww_session *session, ww_walk_fn *fn, void *context, size_t *count);

/*
 * Continue a walk by a few entries, for a caller that answers others in between. *cursor is 0 at first. The call stores
 * there where the next one goes on, and 0 when all entries have been visited. It calls fn for at most 64 entries,
 * perhaps for none. An entry that was in the map throughout all calls is visited exactly once, as by ww_session_walk.
 * fn runs as it does there. If it returns a number other than 0 for an entry, the next call visits that entry again.
 * A cursor belongs to this map only, is never invalid, and needs no release.
 * Works after the driver's stop, too. O(1). Errors: as ww_session_walk. WW_EINVAL also: cursor is NULL.
 */
WW_API int ww_session_scan(struct ww_session *session, uint64_t *cursor, ww_walk_fn *fn, void *context);

/*
 * Call fn for one entry that has not expired, which `random`, 64 random bits, chooses. Of up to 64 entries a shard each is
 * as probable as the others; of more, those behind a gap of the table are a little more so. It takes as long in a map that
 * had many entries once. Return what fn returned, or 0: there is no entry. fn runs as that of ww_session_scan does.
 * Works after the driver's stop, too. O(shards, and entries that have expired and that the driver has not removed yet).
 * Errors: as ww_session_walk.
 */
WW_API int ww_session_random(struct ww_session *session, uint64_t random, ww_walk_fn *fn, void *context);

/*
 * Take out each entry that has not expired, and hand it over to fn with its times left. found->value then belongs to
 * fn, and gone is not called for it. If fn returns a number other than 0, that value is handed over and the others
 * stay. *count, unless NULL, gets the number of values handed over, in that case, too.
 * No lock is held while fn runs. It may call every function on the map except ww_session_destroy (WW_EBUSY). Entries
 * that are set meanwhile may stay. Expired entries go to gone, as always.
 * Works after the driver's stop, too. Complexity and errors: as ww_session_walk.
 */
WW_API int ww_session_drain(struct ww_session *session, ww_walk_fn *fn, void *context, size_t *count);

/* ---- Over a restart ------------------------------------------------------------------------------------------- */

/*
 * ww_session_save writes all entries that have not expired as bytes, and ww_session_load makes them again, in the same
 * map or in that of another process, on any machine.
 *
 *     map --encode--> bytes --write--> a file
 *     a file --read--> bytes --decode--> map
 *
 * Kept: keys, values as the caller encodes them, TTLs, the times when each entry and its lifetime end, weights and
 * pins.
 * Versions start anew, and so does the order of use in a limited map: loaded entries count as used in an order of their
 * own. A weight is reduced to what a shard of the map may weigh.
 * Time that passes between save and load counts, by the wall clock: an entry that would have expired by then is not
 * loaded. A wall clock that is stepped back meanwhile shortens this time, at most to nothing; one that is stepped
 * forward lengthens it. A restart alone makes no entry expire early.
 * If the map that loads keeps lifetimes and the saved map did not, an entry gets the loading map's own lifetime,
 * counted from the load. A map that does not keep lifetimes forgets those that it loads: such an entry at first expires
 * when it would have, but a refresh may prolong it.
 * The bytes have a version and checksums, which detect accidental damage. They do not prove who wrote them: load only
 * what nobody but this program can write. An entry takes 24 bytes, 8 more with a lifetime, and its key and its value.
 * A file that replaces the old one must be written under another name, synced, and renamed: tools/examples/sessions.c.
 */

/* Write all these bytes. Return 0, or a negative number, which ends the save. No lock is held. */
typedef int ww_write_fn(const void *bytes, size_t size, void *context);

/*
 * Encode a value. *size is the room at `bytes`; store the size of the encoded value there. If that is more than the
 * room, write nothing: the function is called again with enough. It may also be called again otherwise. Return 0, 1 to
 * leave the entry out, or a negative number, which ends the save. It runs under the shard's lock as a ww_look_fn does.
 */
typedef int ww_encode_fn(void *value, void *bytes, size_t *size, void *context);

/* What ww_session_save needs from its caller. */
struct ww_session_writer {
	ww_write_fn *write;
	ww_encode_fn *encode;  /* NULL: values are saved as 0 bytes */
	void *context;         /* for both */
	struct ww_clock *wall; /* NULL: ww_clock_wall() */
};

/*
 * Save all entries that have not expired. *count, unless NULL, gets the number of entries written.
 * Each entry is saved as it is at one moment. Other threads may use the map: the walk is that of ww_session_walk. A
 * program that stops should save when nobody writes any more, so that the last changes are in it, too.
 * Works after the driver's stop, too. O(entries); allocates 64 KiB, or as much as the longest value takes.
 * Errors: what write or encode returned; a load detects that what was written until then is cut off. WW_EINVAL:
 * session, writer or its write is NULL, or an encoded value is over 2^31 - 1 bytes. WW_ENOMEM: no memory. WW_ECLOSED:
 * as ww_session_walk.
 */
WW_API int ww_session_save(struct ww_session *session, const struct ww_session_writer *writer, size_t *count);

/* Read up to `size` bytes. Return their number, 0 at the end, or a negative number, which ends the load. */
typedef int ww_read_fn(void *bytes, size_t size, void *context);

/*
 * Make the value of these bytes, which are valid during the call, at any address. Return 0, 1 to leave the entry out,
 * or a negative number, which ends the load.
 */
typedef int ww_decode_fn(const void *bytes, size_t size, void **value, void *context);

/* Called for an entry that expired between save and load, with its key and its encoded value. */
typedef void ww_lapse_fn(const void *key, size_t length, const void *bytes, size_t size, void *context);

/* What ww_session_load needs from its caller. No lock is held while these functions run. */
struct ww_session_reader {
	ww_read_fn *read;
	ww_decode_fn *decode;  /* NULL: values are NULL */
	ww_lapse_fn *lapsed;   /* NULL: entries that expired meanwhile are only counted */
	void *context;         /* for all three */
	struct ww_clock *wall; /* NULL: ww_clock_wall() */
};

/* What ww_session_load has done. */
struct ww_session_loaded {
	uint64_t entries;  /* made */
	uint64_t expired;  /* between save and load */
	uint64_t present;  /* whose key was in the map */
	uint64_t left_out; /* by decode, or because pinned entries leave no room: these went to gone as EVICTED */
	uint64_t bytes;    /* that were read and good: after WW_ECORRUPT, the damage comes after them */
	uint64_t downtime; /* that passed between save and load, in ns of the wall clock */
};

/*
 * Make the entries that were saved. *loaded, unless NULL, gets what was done, also if an error ended the load. A call
 * that is refused at once (WW_EINVAL for an argument, WW_EBUSY, WW_ECLOSED) leaves it.
 * Load before others use the map. If a key is already in the map, its entry is newer and stays; the loaded value goes
 * to gone as REPLACED. An entry that an earlier load made, and nobody has set since, gives way. In a limited map a
 * loaded entry is set like any other: one over the limit goes to gone as EVICTED. An entry that had expired is not
 * decoded: `lapsed` is called for it. One that expires while it is being loaded goes to gone as EXPIRED. No jitter is
 * added.
 * Damage: entries come in blocks of about 64 KiB, and each block is checked before it is loaded. Entries before the
 * damage stay: after a crash a site would rather log out some users than all. For all or nothing, clear the map after
 * an error.
 * O(entries); allocates as ww_session_save.
 * Errors: what read or decode returned, and those below; entries loaded until then stay. WW_EINVAL: session, reader or
 * its read is NULL, or read returned more than size. WW_ECORRUPT: damaged, cut off, or written by something else.
 * WW_EVERSION: written by a later version; nothing was loaded. WW_EOVERFLOW: an entry would expire beyond
 * WW_DRIVER_TIME_MAX. WW_ENOMEM: no memory; the value at hand went to gone as REPLACED.
 */
WW_API int ww_session_load(
    struct ww_session *session, const struct ww_session_reader *reader, struct ww_session_loaded *loaded);

/*
 * Expire what is due, and fill *stats; works after the driver's stop, too. O(shards) and what is due; the numbers need
 * not all be of the same moment.
 * Errors: WW_EINVAL: an argument is NULL. WW_ECLOSED: in a child of the process that made the map.
 */
WW_API int ww_session_stats(struct ww_session *session, struct ww_session_stats *stats);

#ifdef __cplusplus
}
#endif

#endif
