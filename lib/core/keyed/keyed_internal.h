#ifndef LIB_CORE_KEYED_KEYED_INTERNAL_H
#define LIB_CORE_KEYED_KEYED_INTERNAL_H

/*
 * A map is a number of shards. Each has a source of the driver's (driver/layer.h), the records of its entries, and a
 * table from the hashes of their keys to the records. The low half of a hash picks the shard, and the table uses the
 * high half.
 *
 * A record is in one of these states, under its shard's lock:
 *
 *                  set               its tick               a worker              the callback ends
 *       unused ----------> pending ----------> queued -------------------> gone ----------> unused
 *                            ^  ^                | |                        ^
 *                            |  +----------------+ | set, move: but a       | remove, drain, from any
 *                            |  set, move          v worker has it          | state in the map
 *                            +------------------ loose ---------------------+
 *                              the worker is here
 *
 *       in the map:      pending, queued, loose
 *       out of the map:  gone, unused
 *
 * If no call concerns an entry after its tick, its worker needs no lock. The entry is then "quick" instead of queued,
 * and the worker makes it "begun" by a compare-and-exchange. From then on it is out of the map, but still in the table,
 * because taking it out needs the lock. A call that finds it there takes it out, or the thread that collects the
 * records of ended callbacks does. A call that finds a quick entry first makes it queued, also by a
 * compare-and-exchange. The worker's exchange then fails, and it goes on with the lock.
 *
 * A firing that a worker has taken from the queue stays "queued" until the worker has the lock. A call that comes
 * before the worker cannot take the firing back. It leaves the record with the mark KEYED_WORKER: the worker will come,
 * and until then the links in `as` must not be used, nor the record given to another entry. A worker that finds its
 * record loose files it. A worker that finds its record gone gives it back. A set or move therefore needs no other
 * record and cannot fail, and a remove is in time in all states.
 *
 * A callback's worker or a drain shows a record's key to the application without a lock. Meanwhile the record is begun,
 * or gone with a mark; afterwards it is given back.
 *
 * A loose entry without a mark waits for nothing: its expiry was dropped, or its worker came after the stop.
 */

#include <stdatomic.h>

#include "lib/base/hash.h"
#include "lib/base/slab.h"
#include "lib/base/table.h"
#include "lib/core/driver/layer.h"
#include "weekwheel/keyed.h"

/* A new record is zero. */
enum keyed_state { KEYED_UNUSED, KEYED_PENDING, KEYED_QUEUED, KEYED_LOOSE, KEYED_GONE, KEYED_QUICK, KEYED_BEGUN };

#define KEYED_WORKER 1u /* a worker has the record's firing or is in its callback */
#define KEYED_DRAIN 2u  /* a drain has taken it out */

/* Longer keys lie outside the record. */
#define KEYED_INLINE 16u

struct keyed_entry {
	union {
		struct ww_timer timer;     /* pending */
		struct firing firing;      /* queued */
		struct slab_unused unused; /* unused */
	} as;
	void *value;
	uint64_t version;
	uint64_t deadline;
	union {
		unsigned char bytes[KEYED_INLINE];
		unsigned char *block;
	} key;
	uint32_t index : 26; /* its own */
	uint32_t shard : 6;  /* also read without the lock, by the worker that has the record */
	uint16_t length;
	_Atomic uint8_t state;
	uint8_t marks;
};
_Static_assert(SLAB_MAX <= 1u << 26 && WW_DRIVER_SHARDS_MAX <= 1u << 6, "index and shard fit");

struct keyed_shard {
	/* Threads that have a shard each must not share a cache line. */
	_Alignas(64) struct timer_source *source;
	struct ww_keyed *keyed;
	struct slab slab;
	struct table table;
	uint64_t version; /* the last one given; it grows by the number of shards, so that shards never give the same */
	size_t key_bytes; /* of keys outside their records */
	uint64_t set;
	uint64_t replaced;
	uint64_t moved;
	uint64_t removed;
	uint64_t drained;
	uint64_t dropped;
	uint64_t left; /* of those that fired, which have left the table, too */
	/* Written per fire, without the lock. */
	_Alignas(64) struct slab_returns ended;
	_Atomic uint64_t fired;
};

struct ww_keyed {
	struct ww_driver *driver;
	struct timer_group *group;
	struct keyed_shard *shards;
	uint32_t shard_count;
	const struct ww_allocator *allocator;
	ww_keyed_fn *fn;
	void *user;
	_Atomic int closed;
	_Atomic int doomed; /* destroyed by its own callback, which frees it when it has ended */
	struct hash_secret secret;
};

/* ---- entry.c. In all these the shard's lock is held. */

extern const struct group_ops ww_keyed_ops;

static inline const void *keyed_key(const struct keyed_entry *entry)
{
	return entry->length > KEYED_INLINE ? entry->key.block : entry->key.bytes;
}

/* The lock orders all other changes of a state than the two that are exchanges. */
static inline void keyed_become(struct keyed_entry *entry, enum keyed_state state)
{
	atomic_store_explicit(&entry->state, (uint8_t)state, memory_order_relaxed);
}

/* From here on, the worker that has the entry needs the lock. Returns 0 if it has begun. */
static inline int keyed_hold(struct keyed_entry *entry)
{
	uint8_t state = entry->state;

	return state != KEYED_BEGUN &&
	       (state != KEYED_QUICK || atomic_compare_exchange_strong(&entry->state, &state, KEYED_QUEUED));
}

/* Of an entry that is held. */
static inline int keyed_in_map(const struct keyed_entry *entry)
{
	return entry->state == KEYED_PENDING || entry->state == KEYED_QUEUED || entry->state == KEYED_LOOSE;
}

static inline uint64_t keyed_hash(const struct ww_keyed *keyed, const struct keyed_entry *entry)
{
	return ww_hash_bytes(&keyed->secret, keyed_key(entry), entry->length);
}

/* Put a new entry into the map: loose, without value, version and deadline. NULL: no memory. */
struct keyed_entry *ww_keyed_entry_make(
    struct ww_keyed *keyed, struct keyed_shard *shard, uint64_t hash, const void *key, size_t length);
/* Let an entry of the map fire at this deadline, and not when it would have. */
void ww_keyed_entry_file(struct keyed_shard *shard, struct keyed_entry *entry, uint64_t deadline);
/* Take an entry, whose key has this hash, out of the map. Then release it, with 0 if no mark was set. */
void ww_keyed_entry_take_out(struct keyed_shard *shard, struct keyed_entry *entry, uint64_t hash);
/* The callback of an entry, whose key has this hash, has begun without the lock: take it out of the table. */
void ww_keyed_entry_leave(struct keyed_shard *shard, struct keyed_entry *entry, uint64_t hash);
/* Give back up to `most` records of entries whose callbacks have ended. */
void ww_keyed_entry_collect(struct keyed_shard *shard, size_t most);
/* Remove the mark from an entry that is gone. When no mark is left, the record is given back. */
void ww_keyed_entry_release(struct keyed_shard *shard, struct keyed_entry *entry, unsigned mark);
/* Give back a key that lies outside its record. */
void ww_keyed_entry_free_key(struct keyed_shard *shard, const struct keyed_entry *entry);
/* The entry as the application sees it. */
struct ww_keyed_entry ww_keyed_entry_view(const struct keyed_entry *entry);

#endif
