#ifndef WEEKWHEEL_KEYED_H
#define WEEKWHEEL_KEYED_H

/*
 * Timers named by keys: a map from a key, some bytes, to a value that is handed to a callback after a delay.
 *
 *     set(key, value, delay) ---> | key | value, version, deadline |
 *                                 +-----+--------------------------+
 *     move, remove, get, drain -------^               |
 *                                                     v
 *                               its callback begins: out of the map
 *
 * Setting a key again replaces value and deadline; what was replaced, moved or removed in time never fires. Expiring
 * sessions, deadlines of requests by their number and retries by the name of a host are such maps. Any number of maps
 * can be made upon one driver, whose threads move their wheels and call their callbacks.
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
 * Entries: an *entry* is a key with its value, version and deadline. It stays in the map until its callback begins,
 * also while it is due and waits for a worker, so that a set, move or remove in that time still comes first. It has
 * left the map when its callback begins: a set of the same key in the callback begins a new entry, and nothing that is
 * done to the key afterwards concerns the call that runs.
 *
 * Versions: every set gives the entry a number that no other set of this map gives. Who passes it to move or remove
 * means that very entry: once it has fired or was replaced, removed or drained, the call answers WW_ESTALE and changes
 * nothing, whatever is under the key now. A move keeps the version.
 *
 * Time: nanoseconds, ticks and precision as driver.h says: never before the deadline, rounded up to the driver's tick.
 * What a stall kept from firing fires after it, each entry once. Entries of different keys fire side by side.
 *
 * Keys: 0 to WW_KEYED_LENGTH_MAX bytes of any kind, compared as bytes. They are copied. Their hashes are secret, so
 * that chosen keys do not slow the map down; lib/base/hash.h says what that resists and what it does not.
 *
 * Values: passed through. A value belongs to the map from a successful set until the map hands it out: to the callback,
 * to who replaces, removes or drains it. Each is handed out exactly once.
 *
 * Memory: some 110 bytes an entry with a key of up to 16 bytes; longer keys are allocated each by itself. What an entry
 * held can be used by the next one as soon as it is removed, whenever it would have been due; a map gives back long
 * keys and what its table has too much, but keeps the records of its largest number of entries.
 *
 * Queue: an entry that is due while the driver's queue is full waits for room. With WW_DRIVER_DROP its expiry is
 * dropped: it stays in the map, with no time left, until it is set, moved, removed or drained.
 *
 * Threads: every function may be called from any thread, and from callbacks, where it does not say otherwise; no lock
 * is held while a callback runs.
 *
 * Fork: only the parent has the driver's threads. In the child every call answers WW_ECLOSED, but ww_keyed_destroy,
 * which frees the map; one that was forked in a callback must not return from it then.
 *
 * Errors: 0 or a positive answer, or a negative WW_E* of error.h. On error nothing has changed. WW_EINVAL is answered
 * for a NULL where an object is needed, a key that is NULL and not of length 0, and one that is too long; WW_ECLOSED
 * after ww_keyed_stop, and after ww_driver_stop.
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
/* Instead of a version: whichever the entry has. No entry has it. */
#define WW_KEYED_ANY UINT64_C(0)

struct ww_keyed;

/* An entry, as it is handed out. The key can be read until the function that got it returns. */
struct ww_keyed_entry {
	const void *key; /* never NULL */
	size_t length;
	void *value;
	uint64_t version;
	uint64_t deadline; /* of the driver's clock, in ns: what was asked for, before rounding to a tick */
};

/*
 * Called with an entry that has left the map. user is that of the configuration; from ww_keyed_drain and ww_keyed_stop,
 * it is what they were passed as context. The callback of a map runs in a worker or, without threads, in
 * ww_driver_dispatch; see ww_driver_fn for what it may do. It may call every function of this map but ww_keyed_destroy,
 * which answers WW_EBUSY.
 */
typedef void ww_keyed_fn(struct ww_keyed *keyed, const struct ww_keyed_entry *entry, void *user);

/* How a map is made. What is not named below may be 0. */
struct ww_keyed_config {
	ww_keyed_fn *fn; /* called for each entry that is due; not NULL */
	void *user;      /* passed to it */
	uint32_t
	    shards; /* parts with a lock and wheels each; 0: as many as the driver has; up to WW_DRIVER_SHARDS_MAX */
};

struct ww_keyed_stats {
	uint64_t entries;  /* in the map */
	uint64_t set;      /* since the map was made: entries that were set, replacing others or not */
	uint64_t fired;    /* callbacks that began */
	uint64_t replaced; /* entries that another set of their key put out */
	uint64_t moved;    /* successful moves */
	uint64_t removed;  /* entries that were removed */
	uint64_t drained;  /* entries that ww_keyed_drain and ww_keyed_stop took out */
	uint64_t dropped;  /* expiries that found the queue full, with WW_DRIVER_DROP */
	uint64_t bytes;    /* memory of the map: its wheels, its table, its records and its keys */
};

/* ---- Making a map --------------------------------------------------------------------------------------------- */

/*
 * Make an empty map that the driver drives, and store it in *keyed. config is copied.
 * Ownership: the caller's, until ww_keyed_destroy, which has to come before the driver's (WW_EBUSY). Memory is the
 * driver's allocator's.
 * Complexity: O(shards). Errors: WW_EINVAL: an argument or config->fn is NULL, or too many shards. WW_ENOMEM: no
 * memory. WW_ECLOSED: the driver was stopped. WW_ESYSTEM: the system has no random numbers.
 */
WW_API int ww_keyed_create(struct ww_keyed **keyed, struct ww_driver *driver, const struct ww_keyed_config *config);

/*
 * Wait for callbacks of this map that run, and free it. Entries that are left are forgotten: who needs their values
 * calls ww_keyed_stop first. NULL is harmless. No other thread may use the map any more.
 * Errors: WW_EBUSY: called in a callback of this map, or in a function that it hands entries to.
 */
WW_API int ww_keyed_destroy(struct ww_keyed *keyed);

/*
 * Stop: from now on no callback of this map begins, and other calls answer WW_ECLOSED. Every entry, due or not, is
 * handed to fn(keyed, entry, context) or, if fn is NULL, forgotten; *count, unless NULL, gets their number. Callbacks
 * that run go on; ww_keyed_destroy waits for them. A second stop does nothing and counts 0. Allowed in a callback, and
 * after ww_driver_stop, which leaves the entries in the map.
 * Complexity: O(the largest number of entries that there was). Errors: WW_EINVAL: keyed is NULL. WW_ECLOSED: in a child
 * of the process.
 */
WW_API int ww_keyed_stop(struct ww_keyed *keyed, ww_keyed_fn *fn, void *context, size_t *count);

/* ---- One key -------------------------------------------------------------------------------------------------- */

/*
 * Let the key fire with this value `delay` ns from now. Return 0 if it is new, and 1 if it was in the map: its former
 * entry is replaced, will not fire, and its value is stored in *former, NULL if the key was new. The entry's version is
 * stored in *version. Both pointers may be NULL.
 * Range: 0 to WW_DRIVER_TIME_MAX - now. Precision: never before; see driver.h. The callback may run before this
 * returns, but not before *version is stored.
 * Ownership: the key is copied, the value passed through; a former value is the caller's again.
 * Complexity: O(1); a new key may take memory, a replacement never does.
 * Errors: WW_EINVAL: see the top. WW_EOVERFLOW: the deadline is beyond WW_DRIVER_TIME_MAX. WW_ENOMEM: no memory, or
 * 2^26 entries in one shard. WW_ECLOSED: stopped.
 */
WW_API int ww_keyed_set(struct ww_keyed *keyed, const void *key, size_t length, void *value, uint64_t delay,
    uint64_t *version, void **former);

/* The same at an absolute deadline of the driver's clock; one that has passed fires at once. Errors: the same. */
WW_API int ww_keyed_set_at(struct ww_keyed *keyed, const void *key, size_t length, void *value, uint64_t deadline,
    uint64_t *version, void **former);

/*
 * Move the key's deadline, earlier or later, to `delay` ns from now; its former deadline will not fire. version is that
 * of the entry that is meant, or WW_KEYED_ANY. Returns WW_OK.
 * Complexity: O(1), allocates nothing.
 * Errors: WW_ESTALE: the key is not in the map, or not with this version. WW_EOVERFLOW: as ww_keyed_set. WW_EINVAL,
 * WW_ECLOSED: see the top.
 */
WW_API int ww_keyed_move(struct ww_keyed *keyed, const void *key, size_t length, uint64_t version, uint64_t delay);

/*
 * Take the key out of the map, and store its value in *value unless that is NULL. Its callback has not begun and never
 * will. version is that of the entry that is meant, or WW_KEYED_ANY. Returns WW_OK.
 * Ownership: the value is the caller's again.
 * Complexity: O(1). Errors: WW_ESTALE: the key is not in the map, or not with this version; its callback may be
 * running. WW_EINVAL, WW_ECLOSED: see the top.
 */
WW_API int ww_keyed_remove(struct ww_keyed *keyed, const void *key, size_t length, uint64_t version, void **value);

/*
 * Return 1 if the key is in the map, and store its value, how many ns it is to its deadline, 0 if it is due, and its
 * version, where the pointers are not NULL. Return 0 and store nothing if it is not.
 * The value is still the map's: another thread may have been handed it before this returns.
 * Complexity: O(1), allocates nothing. Errors: WW_EINVAL, WW_ECLOSED: see the top.
 */
WW_API int ww_keyed_get(
    struct ww_keyed *keyed, const void *key, size_t length, void **value, uint64_t *time_left, uint64_t *version);

/* ---- All keys ------------------------------------------------------------------------------------------------- */

/*
 * Take every entry out of the map that was set before the call, and hand each to fn(keyed, entry, context) or, if fn is
 * NULL, forget it; *count, unless NULL, gets their number. An entry fires or is drained, never both; its key is gone
 * before fn is called. What is set meanwhile, by other threads or in fn, stays. fn may call every function of this map
 * but ww_keyed_destroy. No order is promised.
 * Complexity: O(the largest number of entries that there was), allocates nothing; locks are held for some hundred
 * entries at a time. Errors: WW_EINVAL: keyed is NULL. WW_ECLOSED: stopped.
 */
WW_API int ww_keyed_drain(struct ww_keyed *keyed, ww_keyed_fn *fn, void *context, size_t *count);

/*
 * Fill *stats, also after a stop. O(shards); the numbers are not all of one moment.
 * Errors: WW_EINVAL: an argument is NULL. WW_ECLOSED: in a child of the process.
 */
WW_API int ww_keyed_stats(struct ww_keyed *keyed, struct ww_keyed_stats *stats);

#ifdef __cplusplus
}
#endif

#endif
