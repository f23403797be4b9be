#ifndef LIB_CORE_KEYED_KEYED_INTERNAL_H
#define LIB_CORE_KEYED_KEYED_INTERNAL_H

/*
 * A map is some shards, each with a source of the driver's (driver/layer.h), the records of its entries and a table
 * from their keys' hashes to them. The low half of a hash tells the shard, the high half is the table's.
 *
 * A record is in one of these states, under its shard's lock:
 *
 *                  set               its tick               a worker              the callback ends
 *       unused ----------> pending ----------> queued -------------------> gone ----------> unused
 *                            ^  ^                | |                        ^
 *                            |  +----------------+ | set, move: but a       | remove, drain, from any
 *                            |  set, move          v worker has its firing     | state in the map
 *                            +------------------ loose ---------------------+
 *                              the worker is here
 *
 *       in the map:      pending, queued, loose
 *       out of the map:  gone, unused
 *
 * A firing that a worker has taken from the queue is still "queued" until the worker has the shard's lock. Whoever comes
 * before it cannot take the firing back, and so leaves the record with the mark KEYED_WORKER: the worker is sure to come,
 * and nobody else may use the links in `as`, or give the record to another entry, until it has. A worker that finds its
 * record loose files it, and one that finds it gone gives it back. So a set or move needs no other record, and cannot
 * fail, and a remove was in time in all states.
 *
 * Whoever shows a record's key to the application without a lock, a callback's worker or a drain, has the record as
 * gone and with a mark, and gives it back afterwards.
 *
 * Loose without a mark, an entry waits for nothing: its expiry was dropped, or its worker came when all was stopped.
 */

#include "lib/base/hash.h"
#include "lib/base/slab.h"
#include "lib/base/table.h"
#include "lib/core/driver/layer.h"
#include "weekwheel/keyed.h"

/* A new record is zero. */
enum keyed_state { KEYED_UNUSED, KEYED_PENDING, KEYED_QUEUED, KEYED_LOOSE, KEYED_GONE };

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
	uint32_t index; /* its own */
	uint16_t length;
	uint8_t shard; /* also read without the lock, by who has the record */
	uint8_t state : 4;
	uint8_t marks : 4;
};

struct keyed_shard {
	/* Threads that have a shard each must not share a cache line. */
	_Alignas(64) struct timer_source *source;
	struct ww_keyed *keyed;
	struct slab slab;
	struct table table;
	uint64_t version; /* the last one given: grows by the number of shards, so that no two shards give the same */
	size_t key_bytes; /* of keys outside their records */
	uint64_t set;
	uint64_t fired;
	uint64_t replaced;
	uint64_t moved;
	uint64_t removed;
	uint64_t drained;
	uint64_t dropped;
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
	struct hash_secret secret;
};

/* ---- keyed_entry.c. In all these the shard's lock is held. */

extern const struct group_ops ww_keyed_ops;

static inline const void *keyed_key(const struct keyed_entry *entry)
{
	return entry->length > KEYED_INLINE ? entry->key.block : entry->key.bytes;
}

static inline int keyed_in_map(const struct keyed_entry *entry)
{
	return entry->state == KEYED_PENDING || entry->state == KEYED_QUEUED || entry->state == KEYED_LOOSE;
}

static inline uint64_t keyed_hash(const struct ww_keyed *keyed, const struct keyed_entry *entry)
{
	return ww_hash_bytes(&keyed->secret, keyed_key(entry), entry->length);
}

/* Make an entry without value, version and deadline, and put it into the map, loose; NULL: no memory. */
struct keyed_entry *ww_keyed_entry_make(
    struct ww_keyed *keyed, struct keyed_shard *shard, uint64_t hash, const void *key, size_t length);
/* Let an entry of the map fire at this deadline instead of whatever it waits for. */
void ww_keyed_entry_file(struct keyed_shard *shard, struct keyed_entry *entry, uint64_t deadline);
/* Take an entry, whose key has this hash, out of the map. Who has set no mark releases it with 0. */
void ww_keyed_entry_take_out(struct keyed_shard *shard, struct keyed_entry *entry, uint64_t hash);
/* Take the mark from an entry that is gone. The last one gives its record back. */
void ww_keyed_entry_release(struct keyed_shard *shard, struct keyed_entry *entry, unsigned mark);
/* Give back a key that lies outside its record. */
void ww_keyed_entry_free_key(struct keyed_shard *shard, const struct keyed_entry *entry);
/* What the application sees of it. */
struct ww_keyed_entry ww_keyed_entry_view(const struct keyed_entry *entry);

/* ---- keyed_drain.c */

/* Hand over every entry that is in the map now, and return their number. No lock is held. */
size_t ww_keyed_drain_all(struct ww_keyed *keyed, ww_keyed_fn *fn, void *context);
/* Whether this thread is in a function that entries of this map are handed to. */
int ww_keyed_drain_inside(const struct ww_keyed *keyed);

#endif
