#ifndef LIB_BASE_SLAB_H
#define LIB_BASE_SLAB_H

/*
 * Records of one size, named by indices. A record never moves, and its memory stays a record of this slab until the
 * slab is destroyed. A stale index therefore still leads to a record, whose generation tells that it is another one.
 *
 *     chunk[0] --> | 0 | 1 | ... | 511 |
 *     chunk[1] --> | 512 | ... | 1023 |
 *
 * Unused records are listed in blocks of indices, which lie in the first bytes of some of them and take no memory of
 * their own. A plain list would go from record to record. In a process that has run long, the next one lies anywhere,
 * and taking it waits for its cache line only to learn which comes after it. A block names the next ones in advance,
 * and they are prefetched.
 *
 *     top --> | next | count | 9 4 700 3 ... | --> | next | count | ... |
 *
 * Threads: none of its own; the owner locks. Only slab_return and slab_returns_due need none.
 */

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#include "weekwheel/allocator.h"

#define SLAB_CHUNK 512u
/* Indices are below this. */
#define SLAB_MAX (UINT32_C(1) << 26)
#define SLAB_NONE UINT32_MAX
#define SLAB_BLOCK 10u

/* The beginning of an unused record, where its owner keeps nothing. */
struct slab_unused {
	uint32_t next;
	uint32_t count;
	uint32_t index[SLAB_BLOCK];
};

struct slab {
	const struct ww_allocator *allocator;
	char **chunk;
	size_t size;     /* of a record: a multiple of 8, at least sizeof(struct slab_unused) */
	uint32_t chunks; /* that exist */
	uint32_t room;   /* chunks that the array has room for */
	uint32_t unused; /* number of unused records */
	uint32_t top;    /* the first block, or SLAB_NONE */
};

/* Make an empty slab. Takes no memory. */
void ww_slab_init(struct slab *slab, size_t size, const struct ww_allocator *allocator);

/* Give all memory back. */
void ww_slab_destroy(struct slab *slab);

/* Make sure that `records` more can be taken. WW_ENOMEM: no memory, or over SLAB_MAX; nothing has changed. */
int ww_slab_reserve(struct slab *slab, size_t records);

/* Take a record, or SLAB_NONE without memory. A record that was never taken is all zero after struct slab_unused. */
uint32_t ww_slab_take(struct slab *slab);

/* Give a record back. */
void ww_slab_give(struct slab *slab, uint32_t index);

/* Bytes that the slab has allocated. */
size_t ww_slab_bytes(const struct slab *slab);

/* Indices below this name records, taken or not. */
static inline uint32_t slab_end(const struct slab *slab)
{
	return slab->chunks * SLAB_CHUNK;
}

static inline void *slab_at(const struct slab *slab, uint32_t index)
{
	return slab->chunk[index / SLAB_CHUNK] + index % SLAB_CHUNK * slab->size;
}

static inline uint32_t slab_taken(const struct slab *slab)
{
	return slab_end(slab) - slab->unused;
}

/* ---- Records on their way back */

/* The beginning of such a record. */
struct slab_back {
	struct slab_back *next;
};

/* Zero: there are none. */
struct slab_returns {
	struct slab_back *_Atomic fresh; /* written without the owner's lock */
	struct slab_back *rest;          /* what was taken from there */
	_Atomic uint32_t count;          /* of slab_returns_due */
};

/* Records that may wait to be given back, and the most bytes that each keeps beside itself. */
#define SLAB_BACK 64u
#define SLAB_BACK_BYTES 1024u

/* Needs no lock. From now on the record is the owner's, who gets it from slab_returned and gives it back. */
static inline void slab_return(struct slab_returns *returns, void *record)
{
	struct slab_back *back = record;
	struct slab_back *head = returns->fresh;

	/* The list is only ever taken whole: no care is needed for a record that leaves and comes back. */
	do
		back->next = head;
	while (!atomic_compare_exchange_weak(&returns->fresh, &head, back));
}

/*
 * Needs no lock. Whether the thread that is about to return a record that keeps this many bytes should then give all
 * back: it takes the owner's lock once for a batch of them.
 */
static inline int slab_returns_due(struct slab_returns *returns, size_t bytes)
{
	return atomic_fetch_add_explicit(&returns->count, 1, memory_order_relaxed) % SLAB_BACK == SLAB_BACK - 1 ||
	       bytes > SLAB_BACK_BYTES;
}

/* A record that was returned, or NULL. The owner's lock is held. */
static inline void *slab_returned(struct slab_returns *returns)
{
	struct slab_back *back = returns->rest;

	if (!back && returns->fresh)
		back = atomic_exchange(&returns->fresh, NULL);
	if (back)
		returns->rest = back->next;
	return back;
}

#endif
