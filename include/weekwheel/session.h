#ifndef WEEKWHEEL_SESSION_H
#define WEEKWHEEL_SESSION_H

/*
 * An expiring map: keys to values that go when they have not been used for their time to live (TTL), for caches and for
 * week-scale sessions.
 *
 *     set ------> entry: key, value, TTL
 *                   ^     |
 *     refresh ------+     +-- TTL passes ----> gone(EXPIRED)
 *     (starts its         +-- limit reached -> gone(EVICTED), the least
 *     TTL anew)           |                    recently used one
 *                         +-- delete --------> gone(DELETED)
 *                         +-- replace -------> gone(REPLACED)
 *                         +-- clear ---------> gone(CLEARED)
 *
 * Upon a driver (driver.h), whose threads expire what nobody asks for any more; of a driver without threads,
 * ww_driver_dispatch does. A lookup compares the time itself and never finds an expired value, whatever the driver's
 * tick is and however late its thread. A heartbeat, ww_session_refresh, is a lookup and one store.
 *
 *     static void gone(struct ww_session *map, const void *key, size_t length, void *value, enum ww_gone why, void
 *     *user) {
 *             free(value);
 *     }
 *
 *     ww_session_config_default(&config);
 *     config.gone = gone;
 *     if (ww_session_create(&map, driver, &config) == WW_OK)
 *             ww_session_set(map, "alice", 5, strdup("cart"), 30 * 60 * WW_SECOND, NULL);
 *
 * Keys: 0 to WW_SESSION_KEY_MAX bytes, copied; who can choose keys cannot make lookups slow, short of reading the
 * process. Values: pointers that the map passes around and never looks into. A value that leaves the map is handed to
 * somebody exactly once: to the call that took it out, if that asks for it, and otherwise to the map's `gone`. What a
 * lookup returns may leave the map in the next moment and be freed by its owner: who shares values between threads
 * counts references, and takes one in ww_session_look.
 *
 * Time: ns of the driver's clock. TTLs are kept in microseconds, rounded up.
 * Queue: what has expired and is to be handed to gone waits in the map while the driver's queue is full, with
 * WW_DRIVER_DROP, too: no value is dropped. No lookup finds it meanwhile. Memory: 88 bytes an entry with a key of up to
 * 16 bytes, and 9 to 13 for finding it; a longer key is a block beside. With few entries a shard, what its last chunk
 * of 512 has to spare is more.
 * Threads: any, at once; keys are spread over shards with a lock each, that is held for none of the callbacks but
 * ww_session_look's.
 * Fork: only the parent has the driver's threads. In the child every call answers WW_ECLOSED, but ww_session_destroy,
 * which frees the map; one that was forked in a callback must not return from it then.
 * Errors: 0 or a positive answer, or a negative WW_E* of error.h. On error nothing has changed. WW_EINVAL is answered
 * for a NULL where an object is needed and for a key that is too long or NULL with a length; WW_ECLOSED when the driver
 * was stopped; WW_EBUSY in a ww_look_fn.
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
/* The driver's tick is at most this for a session map: 2^32 - 1 ns, 4.29 s. */
#define WW_SESSION_TICK_MAX ((uint64_t)UINT32_MAX)

struct ww_session;

/* Why a value has left the map. */
enum ww_gone {
	WW_GONE_EXPIRED,  /* its TTL has passed */
	WW_GONE_EVICTED,  /* the map was full, and it was the least recently used of its shard */
	WW_GONE_REPLACED, /* another one was set */
	WW_GONE_DELETED,  /* ww_session_delete */
	WW_GONE_CLEARED   /* ww_session_clear or ww_session_destroy */
};

/*
 * Told of a value that has left the map; the key's bytes are valid during the call. It may call every function on the
 * map but ww_session_destroy, which answers WW_EBUSY, and may set the same key again; while the map is being destroyed
 * the others answer WW_ECLOSED. EXPIRED comes from one of the driver's workers or, without threads, from
 * ww_driver_dispatch, or from a call that replaces what has expired; the others come from the call that is their
 * reason. No lock is held.
 */
typedef void ww_gone_fn(
    struct ww_session *session, const void *key, size_t length, void *value, enum ww_gone why, void *user);

/* How a map is made. Fill it with ww_session_config_default, then change what should differ. */
struct ww_session_config {
	uint64_t ttl;        /* in ns, for who names none: 1 to WW_SESSION_TTL_MAX; a week */
	uint64_t jitter_max; /* in ns: the most that is added by jitter; a minute */
	uint32_t jitter;     /* in thousandths of the TTL, 0 to 1,000; 0: none */
	uint32_t shards;     /* 0: by the processors and the limit; otherwise 1 to WW_DRIVER_SHARDS_MAX */
	size_t limit;        /* the most entries, 0: no limit; divided among the shards, rounded up */
	ww_gone_fn *gone;    /* NULL: nobody is told */
	void *user;          /* for gone */
};

struct ww_session_stats {
	uint64_t entries; /* in the map now; one that has expired counts until its tick */
	uint64_t hits;    /* lookups that found a value */
	uint64_t misses;  /* and that did not */
	uint64_t expired;
	uint64_t evicted;
	uint64_t loads;        /* times that ww_session_take called a loader */
	uint64_t loads_failed; /* of those: with an error */
	uint64_t loads_shared; /* calls of ww_session_take that waited for another one's loader */
	uint64_t bytes;        /* memory of the map, its entries and long keys */
};

/* Fill *config with the default, as the struct says for each member. Errors: WW_EINVAL: config is NULL. */
WW_API int ww_session_config_default(struct ww_session_config *config);

/*
 * Make an empty map upon the driver and store it in *session; config NULL means the default. config is copied.
 * Ownership: the caller's, until ww_session_destroy, which comes before the driver's end.
 * Jitter: a TTL gets a random part of jitter thousandths of it added, jitter_max at most, so that what was set in one
 * moment does not expire in one. It is never shortened.
 * Errors: WW_EINVAL: session or driver is NULL, the configuration is out of range, or the driver's tick is over
 * WW_SESSION_TICK_MAX. WW_ENOMEM: no memory. WW_ESYSTEM: the system has no random numbers. WW_ECLOSED.
 */
WW_API int ww_session_create(
    struct ww_session **session, struct ww_driver *driver, const struct ww_session_config *config);

/*
 * Clear the map, wait for calls of gone that run in workers, and free it. NULL is harmless. No other thread may use it
 * any more. Works after the driver's stop, too; what had expired and waited for a worker is told here, as EXPIRED. In a
 * child of the process it frees the map and tells of nothing: the values stay as they are.
 * Errors: WW_EBUSY: called in gone, whichever thread that runs in, or in a loader of this map (ww_session_take).
 */
WW_API int ww_session_destroy(struct ww_session *session);

/*
 * Map the key to the value for `ttl` ns, 0 for the map's own TTL. What the key had is replaced, and stored in *former
 * unless that is NULL, NULL if it had nothing; what had expired already goes to gone as EXPIRED. To prolong what is
 * there, use ww_session_refresh: storing the same pointer again is a replacement, too, and gone is called for it.
 * Complexity: O(1). Errors: WW_EINVAL also: ttl is over WW_SESSION_TTL_MAX. WW_EOVERFLOW: with the most jitter it would
 * expire beyond WW_DRIVER_TIME_MAX. WW_ENOMEM: no memory, or 2^26 entries in one shard.
 */
WW_API int ww_session_set(
    struct ww_session *session, const void *key, size_t length, void *value, uint64_t ttl, void **former);

/*
 * Look up: return 1 and store the value in *value (unless NULL), or return 0 and leave it. Makes the entry the most
 * recently used one of a limited map; does not change when it expires. O(1).
 */
WW_API int ww_session_get(struct ww_session *session, const void *key, size_t length, void **value);

/*
 * The same, and start the entry's TTL anew: `ttl`, or if that is 0 the one it was last set or refreshed with. O(1).
 * Errors: as ww_session_set, without WW_ENOMEM.
 */
WW_API int ww_session_refresh(struct ww_session *session, const void *key, size_t length, uint64_t ttl, void **value);

/*
 * What to do with a value while it cannot leave the map: short, since others wait for the lock that is held. In it
 * every call on a session map, this one or another, answers WW_EBUSY, and so does ww_session_create.
 */
typedef void ww_look_fn(void *value, void *context);

/* Look up as ww_session_get, and call look(value, context) before anybody can take the value out of the map. */
WW_API int ww_session_look(struct ww_session *session, const void *key, size_t length, ww_look_fn *look, void *context);

/* Return 1 and store in *ns how long the entry has still to live, or return 0 and leave it. */
WW_API int ww_session_time_left(struct ww_session *session, const void *key, size_t length, uint64_t *ns);

/*
 * Take the entry out: return 1 and store its value in *value, or, if value is NULL, hand it to gone; return 0 if there
 * was none.
 */
WW_API int ww_session_delete(struct ww_session *session, const void *key, size_t length, void **value);

/*
 * Loads what is missing: stores the value in *value, and in *ttl, which is 0, another TTL than the map's if it likes.
 * Returns WW_OK, or any negative number, which ww_session_take returns; then nothing is stored. No lock is held. It may
 * call every function on the map but ww_session_destroy and ww_session_take for the same key, which answer WW_EBUSY.
 */
typedef int ww_load_fn(const void *key, size_t length, void **value, uint64_t *ttl, void *context);

/*
 * Look up as ww_session_get, and load what is missing: however many threads ask for one key at a time, one of them
 * calls load, and the others wait and get the same. Return 1 for what was there, 0 for what was loaded; the value is in
 * *value. When somebody sets the key meanwhile, that value stays and is returned, and the loaded one goes to gone as
 * REPLACED; but where both are the same pointer, gone is not told of what stays. A thread that is cancelled meanwhile
 * ends after the call. Loaders that, in different threads, take each other's keys wait for ever.
 * Errors: what load returned, also to those that waited. WW_EINVAL also: load or value is NULL; load gave a ttl that is
 * too long. WW_EBUSY: called in load for the same key. WW_ENOMEM: no memory to store it. What was loaded and cannot be
 * stored goes to gone as REPLACED.
 */
WW_API int ww_session_take(
    struct ww_session *session, const void *key, size_t length, ww_load_fn *load, void *context, void **value);

/*
 * Take all entries out, as CLEARED; what gone sets meanwhile stays. *count, unless NULL, gets their number. O(entries);
 * a shard is locked while its entries are taken out, before they are told.
 */
WW_API int ww_session_clear(struct ww_session *session, size_t *count);

/*
 * Fill *stats, also after the driver's stop. O(shards); the numbers are not all of one moment.
 * Errors: WW_EINVAL: an argument is NULL. WW_ECLOSED: in a child of the process that made the map.
 */
WW_API int ww_session_stats(struct ww_session *session, struct ww_session_stats *stats);

#ifdef __cplusplus
}
#endif

#endif
