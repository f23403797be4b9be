/* The pool: pieces of blocks, what is given back is used again, and all is freed, also without memory and in a child. */
/* tier: check, threads */

#include <stdatomic.h>
#include <stdint.h>
#include <string.h>

#include "lib/base/pool.h"
#include "tests/support/forking.h"
#include "tests/support/memory.h"
#include "tests/support/seed.h"
#include "tests/support/suite.h"

#define PIECE (10 * POOL_PAGE)
#define PIECES 1500u

static char *take(struct pool *pool, size_t size)
{
	return pool->table.allocate(pool->table.user, size);
}

static void give(struct pool *pool, void *piece, size_t size)
{
	pool->table.free(pool->table.user, piece, size);
}

static void end(struct pool *pool, const struct test_memory *memory)
{
	ww_pool_close(pool);
	ww_pool_end(pool);
	ck_assert_uint_eq(memory->blocks, 0);
	ck_assert_uint_eq(memory->bytes, 0);
}

START_TEST(pieces_are_each_owner_s_own_and_their_bytes_are_counted)
{
	static char *piece[PIECES];
	struct test_memory memory;
	struct pool pool;

	test_memory_init(&memory, 0);
	ww_pool_init(&pool, &memory.table);
	ck_assert_uint_eq(memory.calls, 0);
	for (uint32_t i = 0; i < PIECES; i++) {
		piece[i] = take(&pool, PIECE);
		memset(piece[i], (int)(i % 251), PIECE);
		ck_assert_uint_eq(ww_pool_spare(&pool) + (i + 1) * PIECE, memory.bytes);
		/* The unused part of a block. */
		ck_assert_uint_le(
		    ww_pool_spare(&pool), memory.bytes < POOL_SMALL ? memory.bytes / 100 : memory.bytes / 5);
	}
	for (uint32_t i = 0; i < PIECES; i++) {
		for (size_t k = 0; k < PIECE; k += 64)
			ck_assert(piece[i][k] == (char)(i % 251));
		ck_assert_uint_eq((uintptr_t)piece[i] % 64, 0);
	}
	/* Far fewer blocks than pieces. */
	ck_assert_uint_lt(memory.blocks, PIECES);
	end(&pool, &memory);
}
END_TEST

START_TEST(what_is_given_back_is_used_again)
{
	static char *piece[PIECES];
	struct test_memory memory;
	struct pool pool;
	size_t bytes;

	test_memory_init(&memory, 0);
	ww_pool_init(&pool, &memory.table);
	for (uint32_t i = 0; i < PIECES; i++)
		piece[i] = take(&pool, PIECE);
	bytes = memory.bytes;
	for (uint32_t i = 0; i < PIECES; i++)
		give(&pool, piece[i], PIECE);
	ck_assert_uint_eq(memory.bytes, bytes);
	ck_assert_uint_eq(ww_pool_spare(&pool), bytes);
	/* A larger piece serves smaller ones. */
	for (uint32_t i = 0; i < 5 * PIECES; i++)
		ck_assert_ptr_nonnull(take(&pool, PIECE / 5));
	ck_assert_uint_eq(memory.bytes, bytes);
	end(&pool, &memory);
}
END_TEST

START_TEST(sizes_that_are_no_pieces_pass_through)
{
	static const size_t sizes[] = {1, 64, POOL_PAGE - 1, POOL_PAGE + 64, POOL_PIECE_MAX + POOL_PAGE, POOL_BLOCK};
	struct test_memory memory;
	struct pool pool;

	test_memory_init(&memory, 0);
	ww_pool_init(&pool, &memory.table);
	for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
		void *block = take(&pool, sizes[i]);
		ck_assert_uint_eq(memory.bytes, sizes[i]);
		ck_assert_uint_eq(ww_pool_spare(&pool), 0);
		if (i % 2)
			ww_pool_close(&pool);
		give(&pool, block, sizes[i]);
		ck_assert_uint_eq(memory.bytes, 0);
	}
	end(&pool, &memory);
}
END_TEST

/* Random pieces, of which none may overlap another; every fourth block is refused. */
START_TEST(random_pieces_without_memory_at_times)
{
	static struct held {
		char *piece;
		size_t size;
	} held[2000];
	enum { HELD = sizeof held / sizeof held[0] };
	struct test_memory memory;
	struct pool pool;
	uint64_t state = seed_of_run("base/pool");
	size_t out = 0, refused = 0;

	test_memory_init(&memory, 0);
	ww_pool_init(&pool, &memory.table);
	for (uint32_t step = 0; step < (uint32_t)seed_rounds(40000); step++) {
		struct held *one = &held[seed_below(&state, HELD)];
		if (one->piece) {
			ck_assert(
			    one->piece[0] == (char)(one - held) && one->piece[one->size - 1] == (char)(one - held));
			give(&pool, one->piece, one->size);
			out -= one->size;
			one->piece = NULL;
			continue;
		}
		one->size = (1 + seed_below(&state, POOL_PIECE_MAX / POOL_PAGE)) * POOL_PAGE;
		memory.exhausted = seed_below(&state, 4) == 0;
		one->piece = take(&pool, one->size);
		if (one->piece) {
			memset(one->piece, (char)(one - held), one->size);
			out += one->size;
		} else
			refused++;
		ck_assert_uint_eq(ww_pool_spare(&pool) + out, memory.bytes);
	}
	ck_assert_uint_gt(refused, 0);
	end(&pool, &memory);
}
END_TEST

static void end_in_child(void *pool)
{
	ww_pool_close(pool);
	ww_pool_end(pool);
}

/* It is forked in calls of the parent's allocator, where the pool's lock is held. */
START_TEST(a_child_frees_a_pool_that_grows)
{
	static struct forking_memory memory;
	struct pool pool;

	forking_init(&memory, 2);
	ww_pool_init(&pool, &memory.table);
	memory.free_all = end_in_child;
	memory.context = &pool;
	for (int i = 0; i < seed_rounds(100); i++)
		ck_assert_ptr_nonnull(take(&pool, POOL_PIECE_MAX));
	ck_assert_uint_gt(memory.forks, (unsigned)seed_rounds(100));
	memory.free_all = NULL;
	end_in_child(&pool);
	ck_assert_uint_eq(memory.count, 0);
}
END_TEST

#define THREADS 4

static void *use(void *context)
{
	struct pool *pool = context;
	static _Atomic uint32_t number;
	int mine = (int)++number;
	char *piece[64] = {0};
	uint64_t state = (uint64_t)mine;

	for (uint32_t step = 0; step < (uint32_t)seed_rounds(20000); step++) {
		char **one = &piece[seed_below(&state, 64)];
		if (*one) {
			ck_assert(**one == (char)mine);
			give(pool, *one, PIECE);
			*one = NULL;
		} else {
			*one = take(pool, PIECE);
			**one = (char)mine;
		}
	}
	return NULL;
}

START_TEST(threads_share_a_pool)
{
	struct test_memory memory;
	struct pool pool;
	pthread_t thread[THREADS];

	test_memory_init(&memory, 0);
	ww_pool_init(&pool, &memory.table);
	for (int i = 0; i < THREADS; i++)
		pthread_create(&thread[i], NULL, use, &pool);
	for (int i = 0; i < THREADS; i++)
		pthread_join(thread[i], NULL);
	ck_assert_uint_le(memory.bytes, THREADS * 64 * (PIECE + 64) + POOL_BLOCK);
	end(&pool, &memory);
}
END_TEST

TEST_MAIN("base/pool", pieces_are_each_owner_s_own_and_their_bytes_are_counted, what_is_given_back_is_used_again,
    sizes_that_are_no_pieces_pass_through, random_pieces_without_memory_at_times, a_child_frees_a_pool_that_grows,
    threads_share_a_pool)
