#ifndef WEEKWHEEL_KEYED_H
#define WEEKWHEEL_KEYED_H

/*
 * Timers named by keys: a map from keys, which are bytes, to values that a callback gets after a delay.
 *
 *     set(key, value, delay) ---> | key | value, version, deadline |
 *                                 +-----+--------------------------+
 *     move, remove, get, drain -------^               |
 *                                                     v
 *                               its callback begins: out of the map
 *
 * Setting a key again replaces value and deadline. An entry that was replaced, moved or removed in time never fires at
 * its former deadline. Such maps suit expiring sessions, deadlines of requests by number, and retries by host name. Any
 * number of maps can share one driver, whose threads move their wheels and call their callbacks.
 *
 *     static void fired(struct ww_keyed *keyed, const struct ww_keyed_entry *entry, void *user)
 *     {
 *             printf("%.*s: %s\n", (int)entry->length, (const char *)entry->key, (char *)entry->value);
 *     }
 *
 *     struct ww_keyed *keyed;
 *     if (ww_keyed_create(&keyed, driver, &(struct ww_keyed_config){.fn = fired}) == WW_OK)
 *             ww_keyed_set(keyed, "user 7", 6, "logged out", 30 * WW_SECOND, NULL, NULL);
 *
 * Entries: an *entry* is a key with its value, version and deadline. It stays in the map until its callback begins.
 * While it is due and waits for a worker, a set, move or remove still comes first. When its callback begins, the entry
 * has left the map: a set of the same key in the callback begins a new entry, and later calls for the key do not affect
 * the running callback.
 *
 * Versions: every set gives the entry a number that no other set of this map gives. A move or remove with that number
 * applies to that very entry. Once the entry has fired or was replaced, removed or drained, the call answers WW_ESTALE
 * and changes nothing, whatever the key maps to now. A move keeps the version.
 *
 * Time: nanoseconds, ticks and precision as driver.h says: never before the deadline, rounded up to the driver's tick.
 * Entries that a stall held up fire after it, each once. Entries of different keys fire in parallel.
 *
 * Keys: 0 to WW_KEYED_LENGTH_MAX bytes of any kind, compared as bytes. The map copies them. It hashes them with a
 * secret, so chosen keys do not slow it down. lib/base/hash.h says what that resists and what it does not.
 *
 * Values: passed through. The map owns a value from a successful set until it hands the value out: to the callback, or
 * to the caller that replaces, removes or drains it. Each value is handed out exactly once.
 *
 * Memory: some 110 bytes an entry with a key of up to 16 bytes; each longer key is a block of its own. Once an entry is
 * removed, the next one can use its memory at once, whatever its deadline was. The map gives back long keys and the
 * excess of its table. It keeps the records of its largest number of entries.
 *
 * Queue: an entry that is due while the map's places in the driver's queue are taken waits for room. With
 * WW_DRIVER_DROP its expiry is dropped: the entry stays in the map, with no time left, until it is set, moved, removed
 * or drained.
 *
 * Threads: any thread and any callback may call every function that does not say otherwise. The map holds no lock while
 * a callback runs.
 *
 * Fork: only the parent has the driver's threads. In the child every call answers WW_ECLOSED, except ww_keyed_destroy,
 * which frees the map. A child that was forked in a callback must not return from that callback.
 *
 * Errors: every call returns 0 or a positive answer, or a negative WW_E* of error.h. On error nothing has changed,
 * unless the function says otherwise.
 * WW_EINVAL: NULL where an object is needed, a key that is NULL with a length above 0, or a key that is too long.
 * WW_ECLOSED: after ww_keyed_stop or ww_driver_stop.
 */

#include <stddef.h>
#include <stdint.h>

#include "weekwheel/driver.h"
#include "weekwheel/error.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The longest key, in bytes. */
#define WW_KEYED_LENGTH_MAX 65535u
/* Instead of a version: any version. No entry has this number. */
#define WW_KEYED_ANY UINT64_C(0)

struct ww_keyed;

/* An entry that is handed out. The key is valid until the function that got the entry returns. */
struct ww_keyed_entry {
	const void *key; /* never NULL */
	size_t length;
	void *value;
	uint64_t version;
	uint64_t deadline; /* on the driver's clock, in ns: as requested, before rounding to a tick */
};

/*
 * Called with an entry that has left the map. user is the configuration's; ww_keyed_drain and ww_keyed_stop pass their
 * context instead. A map's callback runs in a worker or, without threads, in ww_driver_dispatch; see ww_driver_fn for
 * what it may do. It may call every function of this map. A function that ww_keyed_drain or ww_keyed_stop calls may not
 * call ww_keyed_destroy, which answers WW_EBUSY.
 */
typedef void ww_keyed_fn(struct ww_keyed *keyed, const struct ww_keyed_entry *entry, void *user);

/* The configuration of a map. Members that the comments do not require may be 0. */
struct ww_keyed_config {
	ww_keyed_fn *fn; /* called for each entry that is due; not NULL */
	void *user;      /* passed to it */
	uint32_t shards; /* parts, each with a lock and wheels, up to WW_DRIVER_SHARDS_MAX; 0: as the driver has */
	uint32_t share;  /* of the workers: see Fairness in driver.h; at most WW_DRIVER_SHARE_MAX; 0: 1 */
};

struct ww_keyed_stats {
	uint64_t entries;  /* in the map */
	uint64_t set;      /* entries set since the map was made, replacing others or not */
	uint64_t fired;    /* callbacks that began */
	uint64_t replaced; /* entries that another set of their key replaced */
	uint64_t moved;    /* successful moves */
	uint64_t removed;  /* entries that were removed */
	uint64_t drained;  /* entries that ww_keyed_drain and ww_keyed_stop took out */
	uint64_t dropped;  /* expiries that found the queue full, with WW_DRIVER_DROP */
	uint64_t bytes;    /* memory of the map: its wheels, its table, its records and its keys */
};

/* ---- Making a map --------------------------------------------------------------------------------------------- */

/*
 * Make an empty map on the driver, and store it in *keyed. The call copies config.
 * Ownership: the caller's, until ww_keyed_destroy, which must come before ww_driver_destroy (WW_EBUSY). The memory
 * comes from the driver's allocator.
 * Complexity: O(shards). Errors: WW_EINVAL: an argument or config->fn is NULL, too many shards, or too large a share.
 * WW_ENOMEM: no memory. WW_ECLOSED: the driver was stopped. WW_ESYSTEM: the system has no random numbers.
 */
WW_API int ww_keyed_create(struct ww_keyed **keyed, struct ww_driver *driver, const struct ww_keyed_config *config);

/*
 * Wait for running callbacks of this map, and free it. NULL is harmless. The call forgets the entries that are left; to
 * get their values, call ww_keyed_stop first.
 * In a callback of this map the call does not wait. Other callbacks of the map may run on, and none begins. The map is
 * freed when all have ended. Until then its functions answer WW_ECLOSED in this callback, but ww_keyed_stop, which counts
 * 0, and ww_keyed_stats work, and another destroy does nothing. The driver can be destroyed.
 * Threads: no other thread may use the map any more. The ww_keyed_set whose entry the callback got may not have returned.
 * Errors: WW_EBUSY: called in a function that ww_keyed_drain or ww_keyed_stop of this map hands entries to.
 */
WW_API int ww_keyed_destroy(struct ww_keyed *keyed);

/*
 * Stop the map: from now on no callback of this map begins, and other calls answer WW_ECLOSED. Hand every entry, due or
 * not, to fn(keyed, entry, context), or forget it if fn is NULL. *count, unless NULL, gets the number of these entries.
 * Running callbacks go on; ww_keyed_destroy waits for them. A second stop does nothing and counts 0. A callback may
 * call this. It also works after ww_driver_stop, which leaves the entries in the map.
 * Complexity: O(the largest number of entries that the map had).
 * Errors: WW_EINVAL: keyed is NULL. WW_ECLOSED: in a child of the process.
 */
WW_API int ww_keyed_stop(struct ww_keyed *keyed, ww_keyed_fn *fn, void *context, size_t *count);

/* ---- One key -------------------------------------------------------------------------------------------------- */

/*
 * Let the key fire with this value `delay` ns from now. Return 0 if the key is new. Return 1 if it was in the map: its
 * former entry is replaced and will not fire. Store the former value in *former, NULL if the key was new, and the
 * entry's version in *version. Both pointers may be NULL.
 * Range: 0 to WW_DRIVER_TIME_MAX - now.
 * Precision: never before the deadline; see driver.h. The callback may run before this call returns, but not before
 * *version is stored.
 * Ownership: the map copies the key and passes the value through. A former value belongs to the caller again.
 * Complexity: O(1). A new key may allocate; a replacement never does. Errors: WW_EINVAL: see the top. WW_EOVERFLOW: the
 * deadline is beyond WW_DRIVER_TIME_MAX. WW_ENOMEM: no memory, or 2^26 entries in one shard. WW_ECLOSED: stopped.
 */
WW_API int ww_keyed_set(struct ww_keyed *keyed, const void *key, size_t length, void *value, uint64_t delay,
    uint64_t *version, void **former);

/*
 * The same at an absolute deadline of the driver's clock. A deadline that has passed fires at once. Errors: the same.
 */
WW_API int ww_keyed_set_at(struct ww_keyed *keyed, const void *key, size_t length, void *value, uint64_t deadline,
    uint64_t *version, void **former);

/*
 * Move the key's deadline, earlier or later, to `delay` ns from now. The former deadline will not fire. version selects
 * the entry: its own version, or WW_KEYED_ANY. Return WW_OK.
 * Complexity: O(1), allocates nothing. Errors: WW_ESTALE: the key is not in the map, or not with this version.
 * WW_EOVERFLOW: as ww_keyed_set. WW_EINVAL, WW_ECLOSED: see the top.
 */
WW_API int ww_keyed_move(struct ww_keyed *keyed, const void *key, size_t length, uint64_t version, uint64_t delay);

/*
 * Take the key out of the map, and store its value in *value unless that is NULL. Its callback has not begun and never
 * will. version selects the entry: its own version, or WW_KEYED_ANY. Return WW_OK.
 * Ownership: the value belongs to the caller again.
 * Complexity: O(1). Errors: WW_ESTALE: the key is not in the map, or not with this version; its callback may be
 * running. WW_EINVAL, WW_ECLOSED: see the top.
 */
WW_API int ww_keyed_remove(struct ww_keyed *keyed, const void *key, size_t length, uint64_t version, void **value);

/*
 * Return 1 if the key is in the map. Store its value, the ns left to its deadline (0 if it is due) and its version,
 * each unless its pointer is NULL. If the key is not in the map, return 0 and store nothing.
 * Ownership: the value stays the map's. Another thread may have been handed it before this call returns.
 * Complexity: O(1), allocates nothing. Errors: WW_EINVAL, WW_ECLOSED: see the top.
 */
WW_API int ww_keyed_get(
    struct ww_keyed *keyed, const void *key, size_t length, void **value, uint64_t *time_left, uint64_t *version);

/* ---- All keys ------------------------------------------------------------------------------------------------- */

/*
 * Take every entry that was set before the call out of the map. Hand each to fn(keyed, entry, context), or forget it if
 * fn is NULL. *count, unless NULL, gets their number. An entry fires or is drained, never both. Its key has left the
 * map before fn is called. Entries that other threads or fn set meanwhile stay. fn may call every function of this map
 * except ww_keyed_destroy. The order is unspecified.
 * Complexity: O(the largest number of entries that the map had), allocates nothing. A lock is held for some hundred
 * entries at a time.
 * Errors: WW_EINVAL: keyed is NULL. WW_ECLOSED: stopped.
 */
WW_API int ww_keyed_drain(struct ww_keyed *keyed, ww_keyed_fn *fn, void *context, size_t *count);

/*
 * Fill *stats; works after a stop, too. O(shards); the numbers need not all be of the same moment.
 * Errors: WW_EINVAL: an argument is NULL. WW_ECLOSED: in a child of the process.
 */
WW_API int ww_keyed_stats(struct ww_keyed *keyed, struct ww_keyed_stats *stats);

#ifdef __cplusplus
}
#endif

#endif
