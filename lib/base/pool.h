#ifndef LIB_BASE_POOL_H
#define LIB_BASE_POOL_H

/*
 * Memory in huge pages for the pieces that slabs and tables are made of. In a structure of a hundred megabytes every
 * access to a random place also waits for the address of its page; a huge page needs one address for 2 MiB.
 *
 * A pool is an allocator between its owners and theirs. A *piece*, which is a whole number of pages, is cut from a
 * block of 2 MiB that the system is asked to back with a huge page. All other sizes pass through. Owners that are small
 * alone share the blocks. The first megabytes come piece by piece: there the unused part of a block would weigh more
 * than it saves.
 *
 * Pieces that are given back are kept for the next ones that fit, and blocks until the pool ends.
 *
 * Threads: any number at once, but for ww_pool_close and ww_pool_end.
 * Fork: the child may close and end the pool, whatever other threads did at the fork. It may do nothing else.
 */

#include <pthread.h>
#include <stddef.h>

#include "weekwheel/allocator.h"

#define POOL_PAGE ((size_t)4096)
#define POOL_PIECE_MAX (16 * POOL_PAGE)
#define POOL_BLOCK ((size_t)2 << 20)
/* Up to here pieces have a block each. */
#define POOL_SMALL (6 * POOL_BLOCK)

struct pool_block;

struct pool {
	struct ww_allocator table; /* what the owners use */
	const struct ww_allocator *parent;
	pthread_mutex_t lock;
	struct pool_block *blocks;
	void *unused[POOL_PIECE_MAX / POOL_PAGE + 1]; /* by pages: lists, linked by what a piece begins with */
	char *rest;                                   /* of the last block */
	size_t rest_bytes;
	size_t taken; /* bytes of all blocks */
	size_t spare; /* bytes of the pool that no owner has, with what it needs itself */
};

void ww_pool_init(struct pool *pool, const struct ww_allocator *parent);

/* The owners are about to give all back: pieces wait for ww_pool_end, without a lock. */
void ww_pool_close(struct pool *pool);

/* After ww_pool_close, and when the owners are gone: give all blocks back. */
void ww_pool_end(struct pool *pool);

/* Bytes that the pool has asked for and no owner counts. */
size_t ww_pool_spare(struct pool *pool);

#endif
