/* Pieces of huge pages. */

#include "lib/base/pool.h"

#include <stdatomic.h>
#include <stdint.h>
#include <sys/mman.h>

#include "lib/base/memory.h"

struct pool_block {
	struct pool_block *next;
	char *memory;
	size_t bytes;
};

static int is_piece(size_t size)
{
	return size > 0 && size <= POOL_PIECE_MAX && size % POOL_PAGE == 0;
}

/* Where a custom allocator does not align blocks, there is no whole huge page in one, and nothing to ask for. */
static void advise(char *memory, size_t bytes)
{
#ifdef MADV_HUGEPAGE
	if (bytes == POOL_BLOCK && (uintptr_t)memory % POOL_BLOCK == 0)
		(void)madvise(memory, bytes, MADV_HUGEPAGE);
#else
	(void)memory;
	(void)bytes;
#endif
}

/* Take a block of the parent, or NULL without memory. */
static struct pool_block *add_block(struct pool *pool, size_t bytes)
{
	struct pool_block *block = memory_take(pool->parent, sizeof *block);
	char *memory = block ? memory_take(pool->parent, bytes) : NULL;

	if (!memory) {
		memory_give(pool->parent, block, sizeof *block);
		return NULL;
	}
	advise(memory, bytes);
	*block = (struct pool_block){pool->blocks, memory, bytes};
	/* A child that is forked meanwhile frees the blocks of this list. */
	atomic_signal_fence(memory_order_release);
	pool->blocks = block;
	pool->taken += bytes;
	pool->spare += bytes + sizeof *block;
	return block;
}

/* Keep a piece for the next one that fits; none of 0 bytes. */
static void keep(struct pool *pool, void *memory, size_t bytes)
{
	void **piece = memory;

	if (!bytes)
		return;
	*piece = pool->unused[bytes / POOL_PAGE];
	pool->unused[bytes / POOL_PAGE] = piece;
}

/* The beginning of an unused piece, the smallest that is large enough, or NULL. */
static void *reuse(struct pool *pool, size_t size)
{
	for (size_t bytes = size; bytes <= POOL_PIECE_MAX; bytes += POOL_PAGE) {
		void **piece = pool->unused[bytes / POOL_PAGE];
		if (!piece)
			continue;
		pool->unused[bytes / POOL_PAGE] = *piece;
		keep(pool, (char *)piece + size, bytes - size);
		return piece;
	}
	return NULL;
}

static void *cut(struct pool *pool, size_t size)
{
	struct pool_block *block = NULL;
	void *piece = reuse(pool, size);

	if (piece)
		return piece;
	if (pool->rest_bytes < size) {
		if (pool->taken >= POOL_SMALL)
			block = add_block(pool, POOL_BLOCK);
		if (!block) {
			block = add_block(pool, size);
			return block ? block->memory : NULL;
		}
		keep(pool, pool->rest, pool->rest_bytes);
		pool->rest = block->memory;
		pool->rest_bytes = block->bytes;
	}
	piece = pool->rest;
	pool->rest += size;
	pool->rest_bytes -= size;
	return piece;
}

static void *allocate(void *user, size_t size)
{
	struct pool *pool = user;
	void *piece;

	if (!is_piece(size))
		return memory_take(pool->parent, size);
	pthread_mutex_lock(&pool->lock);
	piece = cut(pool, size);
	pool->spare -= piece ? size : 0;
	pthread_mutex_unlock(&pool->lock);
	return piece;
}

static void give_back(void *user, void *memory, size_t size)
{
	struct pool *pool = user;

	if (!is_piece(size)) {
		memory_give(pool->parent, memory, size);
		return;
	}
	pthread_mutex_lock(&pool->lock);
	keep(pool, memory, size);
	pool->spare += size;
	pthread_mutex_unlock(&pool->lock);
}

static void forget(void *user, void *memory, size_t size)
{
	struct pool *pool = user;

	if (!is_piece(size))
		memory_give(pool->parent, memory, size);
}

void ww_pool_init(struct pool *pool, const struct ww_allocator *parent)
{
	*pool = (struct pool){.table = {allocate, give_back, pool}, .parent = parent};
	pthread_mutex_init(&pool->lock, NULL);
}

void ww_pool_close(struct pool *pool)
{
	pool->table.free = forget;
}

void ww_pool_end(struct pool *pool)
{
	struct pool_block *next;

	for (struct pool_block *block = pool->blocks; block; block = next) {
		next = block->next;
		memory_give(pool->parent, block->memory, block->bytes);
		memory_give(pool->parent, block, sizeof *block);
	}
	pool->blocks = NULL;
}

size_t ww_pool_spare(struct pool *pool)
{
	size_t spare;

	pthread_mutex_lock(&pool->lock);
	spare = pool->spare;
	pthread_mutex_unlock(&pool->lock);
	return spare;
}
