/*
 * The default table and the arenas, whichever allocator stands behind them. test_allocator_malloc.c runs the same tests
 * without jemalloc, whatever was configured.
 *
 * The linker replaces the library's calls for memory (ld's --wrap, see the Makefile), so that each call can be made to
 * fail and live blocks are counted.
 */
/* tier: check, threads */

#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/support/seed.h"
#include "tests/support/suite.h"
#include "weekwheel/allocator.h"

#ifndef ALLOCATOR
#define ALLOCATOR getenv("ALLOCATOR")
#endif

/* ---- The functions that the library calls ----------------------------------------------------------------------- */

static atomic_size_t calls;   /* calls that could fail */
static atomic_size_t fail_at; /* the call that fails, counted from 1; 0: none */
static atomic_size_t live;    /* live blocks, and jemalloc's arenas */
/* Check frees memory itself. Only calls made while this is set count. */
static _Thread_local int in_library;

static size_t alive(void)
{
	return atomic_load(&live);
}

static int fails(void)
{
	return atomic_fetch_add(&calls, 1) + 1 == atomic_load(&fail_at);
}

static void fail_call(size_t number)
{
	atomic_store(&calls, 0);
	atomic_store(&fail_at, number);
}

/* The allocator decides which of these exist. The linker gives the names. */
extern void *__real_aligned_alloc(size_t alignment, size_t size);
extern void __real_free(void *block);
extern int __real_pthread_mutex_init(pthread_mutex_t *mutex, const pthread_mutexattr_t *attributes);
extern void *__real_mallocx(size_t size, int flags) __attribute__((weak));
extern void __real_sdallocx(void *block, size_t size, int flags) __attribute__((weak));
extern int __real_mallctl(const char *name, void *old, size_t *old_size, void *new, size_t new_size)
    __attribute__((weak));

void *__wrap_aligned_alloc(size_t alignment, size_t size);
void __wrap_free(void *block);
int __wrap_pthread_mutex_init(pthread_mutex_t *mutex, const pthread_mutexattr_t *attributes);
void *__wrap_mallocx(size_t size, int flags);
void __wrap_sdallocx(void *block, size_t size, int flags);
int __wrap_mallctl(const char *name, void *old, size_t *old_size, void *new, size_t new_size);

static void *counted(void *block)
{
	if (block != NULL)
		atomic_fetch_add(&live, 1);
	return block;
}

void *__wrap_aligned_alloc(size_t alignment, size_t size)
{
	return fails() ? NULL : counted(__real_aligned_alloc(alignment, size));
}

void __wrap_free(void *block)
{
	if (in_library)
		atomic_fetch_sub(&live, 1);
	__real_free(block);
}

int __wrap_pthread_mutex_init(pthread_mutex_t *mutex, const pthread_mutexattr_t *attributes)
{
	return in_library && fails() ? 12 : __real_pthread_mutex_init(mutex, attributes);
}

void *__wrap_mallocx(size_t size, int flags)
{
	return fails() ? NULL : counted(__real_mallocx(size, flags));
}

void __wrap_sdallocx(void *block, size_t size, int flags)
{
	atomic_fetch_sub(&live, 1);
	__real_sdallocx(block, size, flags);
}

int __wrap_mallctl(const char *name, void *old, size_t *old_size, void *new, size_t new_size)
{
	int answer;

	if (fails())
		return 12;
	answer = __real_mallctl(name, old, old_size, new, new_size);
	/* No Check assertion here: it would allocate. */
	if (answer != 0 && strcmp(name, "arenas.create") != 0) {
		(void)fprintf(stderr, "mallctl(\"%s\") answers %d\n", name, answer);
		abort();
	}
	if (answer == 0 && strcmp(name, "arenas.create") == 0)
		atomic_fetch_add(&live, 1);
	if (answer == 0 && strstr(name, ".destroy") != NULL)
		atomic_fetch_sub(&live, 1);
	return answer;
}

/* AddressSanitizer ends the program for an impossible size, unless told to answer NULL as malloc does. */
const char *__asan_default_options(void);
const char *__tsan_default_options(void);

const char *__asan_default_options(void)
{
	return "allocator_may_return_null=1";
}

const char *__tsan_default_options(void)
{
	return "allocator_may_return_null=1";
}

/* ---- Helpers ---------------------------------------------------------------------------------------------------- */

static const size_t sizes[] = {1, 2, 48, 63, 64, 65, 100, 128, 129, 1000, 4095, 4096, 4097, 8160, 14336, 14337, 65536,
    100000, (1u << 21) - 1, 1u << 21, (1u << 21) + 1, 5000000};
#define SIZES (sizeof sizes / sizeof sizes[0])

static const size_t impossible_sizes[] = {0, SIZE_MAX / 4, (size_t)PTRDIFF_MAX - 64, PTRDIFF_MAX,
    (size_t)PTRDIFF_MAX + 1, SIZE_MAX - 64, SIZE_MAX - 63, SIZE_MAX};
#define IMPOSSIBLE_SIZES (sizeof impossible_sizes / sizeof impossible_sizes[0])

static int is_jemalloc(void)
{
	return strcmp(ww_allocator_name(), "jemalloc") == 0;
}

static int try_create(struct ww_arena **arena)
{
	int error;

	in_library = 1;
	error = ww_arena_create(arena);
	in_library = 0;
	return error;
}

static struct ww_arena *create(void)
{
	struct ww_arena *arena = NULL;

	OK(try_create(&arena));
	ck_assert_ptr_nonnull(arena);
	return arena;
}

static void destroy(struct ww_arena *arena)
{
	in_library = 1;
	ww_arena_destroy(arena);
	in_library = 0;
}

static size_t used(const struct ww_arena *arena)
{
	size_t bytes = SIZE_MAX;

	OK(ww_arena_used(arena, &bytes));
	return bytes;
}

static void *allocate(const struct ww_allocator *table, size_t size)
{
	void *block;

	in_library = 1;
	block = table->allocate(table->user, size);
	in_library = 0;
	return block;
}

static void give_back(const struct ww_allocator *table, void *block, size_t size)
{
	in_library = 1;
	table->free(table->user, block, size);
	in_library = 0;
}

static int all_are(const void *block, size_t size, int value)
{
	const unsigned char *bytes = block;

	return bytes[0] == value && memcmp(bytes, bytes + 1, size - 1) == 0;
}

static size_t resident_bytes(void)
{
	FILE *file = fopen("/proc/self/statm", "r");
	size_t size, pages;

	ck_assert_ptr_nonnull(file);
	ck_assert_int_eq(fscanf(file, "%zu %zu", &size, &pages), 2);
	(void)fclose(file);
	return pages * (size_t)sysconf(_SC_PAGESIZE);
}

/* ---- Any table -------------------------------------------------------------------------------------------------- */

static void check_blocks(const struct ww_allocator *table)
{
	unsigned char *blocks[SIZES];

	for (size_t i = 0; i < SIZES; i++) {
		blocks[i] = allocate(table, sizes[i]);
		ck_assert_ptr_nonnull(blocks[i]);
		ck_assert_uint_eq((uintptr_t)blocks[i] % 64, 0);
		memset(blocks[i], (int)i + 1, sizes[i]);
	}
	for (size_t i = 0; i < SIZES; i++) {
		ck_assert_msg(
		    all_are(blocks[i], sizes[i], (int)i + 1), "a block of %zu bytes was overwritten", sizes[i]);
		give_back(table, blocks[i], sizes[i]);
	}
}

static void check_impossible(const struct ww_allocator *table)
{
	for (size_t i = 0; i < IMPOSSIBLE_SIZES; i++) {
		void *block = allocate(table, impossible_sizes[i]);

		ck_assert_msg(block == NULL, "%zu bytes were given", impossible_sizes[i]);
	}
}

START_TEST(there_is_one_default_table_and_it_has_a_name)
{
	const struct ww_allocator *table = ww_allocator_default();

	ck_assert_ptr_nonnull(table);
	ck_assert(table->allocate != NULL);
	ck_assert(table->free != NULL);
	ck_assert_ptr_eq(table, ww_allocator_default());
	ck_assert_msg(is_jemalloc() || strcmp(ww_allocator_name(), "malloc") == 0, "%s", ww_allocator_name());
	/* The linked allocator decides, and the build tells which one it meant to link. */
	ck_assert_int_eq(is_jemalloc(), __real_sdallocx != NULL);
	if (ALLOCATOR != NULL)
		ck_assert_str_eq(ww_allocator_name(), ALLOCATOR);
}
END_TEST

START_TEST(blocks_of_the_default_table_are_aligned_and_whole)
{
	size_t before = alive();

	check_blocks(ww_allocator_default());
	ck_assert_uint_eq(alive(), before);
}
END_TEST

START_TEST(blocks_of_an_arena_are_aligned_and_whole)
{
	size_t before = alive();
	struct ww_arena *arena = create();

	check_blocks(ww_arena_allocator(arena));
	ck_assert_uint_eq(used(arena), 0);
	destroy(arena);
	ck_assert_uint_eq(alive(), before);
}
END_TEST

static void check_huge(const struct ww_allocator *table)
{
	const size_t huge = (size_t)2 << 20;
	unsigned char *blocks[8];

	for (size_t i = 0; i < 8; i++) {
		blocks[i] = allocate(table, huge);
		ck_assert_uint_eq((uintptr_t)blocks[i] % huge, 0);
		memset(blocks[i], (int)i, huge);
	}
	for (size_t i = 0; i < 8; i++) {
		ck_assert(all_are(blocks[i], huge, (int)i));
		give_back(table, blocks[i], huge);
	}
}

START_TEST(a_block_of_2_mib_can_be_a_huge_page)
{
	size_t before = alive();

	check_huge(ww_allocator_default());
	if (is_jemalloc()) {
		struct ww_arena *arena = create();
		check_huge(ww_arena_allocator(arena));
		ck_assert_uint_eq(used(arena), 0);
		destroy(arena);
	}
	ck_assert_uint_eq(alive(), before);
}
END_TEST

START_TEST(impossible_sizes_are_refused)
{
	struct ww_arena *arena = create();

	check_impossible(ww_allocator_default());
	check_impossible(ww_arena_allocator(arena));
	ck_assert_uint_eq(used(arena), 0);
	destroy(arena);
}
END_TEST

/* ---- Arenas ----------------------------------------------------------------------------------------------------- */

START_TEST(null_is_refused_or_harmless)
{
	struct ww_arena *arena = create();
	size_t bytes = 17;

	ck_assert_int_eq(ww_arena_create(NULL), WW_EINVAL);
	ck_assert_int_eq(ww_arena_used(NULL, &bytes), WW_EINVAL);
	ck_assert_int_eq(ww_arena_used(arena, NULL), WW_EINVAL);
	ck_assert_int_eq(ww_arena_used(NULL, NULL), WW_EINVAL);
	ck_assert_uint_eq(bytes, 17);
	ck_assert_ptr_null(ww_arena_allocator(NULL));
	destroy(NULL);
	ck_assert_ptr_eq(ww_arena_allocator(arena), ww_arena_allocator(arena));
	destroy(arena);
}
END_TEST

/* The end of a block takes away exactly what the block added, in whatever order, and never less than was asked for. */
START_TEST(used_bytes_are_counted_exactly)
{
	enum { BLOCKS = 500, STEPS = 20000 };
	static struct {
		void *block;
		size_t asked, took;
	} held[BLOCKS];
	uint64_t state = seed_of_run("used_bytes_are_counted_exactly");
	struct ww_arena *arena = create();
	const struct ww_allocator *table = ww_arena_allocator(arena);
	size_t asked = 0, took = 0;

	ck_assert_uint_eq(used(arena), 0);
	for (int step = 0; step < STEPS; step++) {
		size_t i = (size_t)seed_below(&state, BLOCKS);

		if (held[i].block == NULL) {
			held[i].asked = 1 + (size_t)seed_below(&state, 1 + (1u << seed_below(&state, 17)));
			held[i].block = allocate(table, held[i].asked);
			ck_assert_ptr_nonnull(held[i].block);
			held[i].took = used(arena) - took;
			ck_assert_uint_ge(held[i].took, held[i].asked);
			asked += held[i].asked;
			took += held[i].took;
		} else {
			give_back(table, held[i].block, held[i].asked);
			held[i].block = NULL;
			asked -= held[i].asked;
			took -= held[i].took;
		}
		ck_assert_uint_eq(used(arena), took);
		ck_assert_uint_ge(took, asked);
	}
	for (size_t i = 0; i < BLOCKS; i++) {
		if (held[i].block != NULL)
			give_back(table, held[i].block, held[i].asked);
	}
	ck_assert_uint_eq(used(arena), 0);
	destroy(arena);
}
END_TEST

START_TEST(each_arena_is_counted_alone)
{
	struct ww_arena *one = create(), *two = create();
	void *in_one = allocate(ww_arena_allocator(one), 1000), *outside = allocate(ww_allocator_default(), 1000);
	void *in_two;

	ck_assert_ptr_nonnull(in_one);
	ck_assert_ptr_nonnull(outside);
	ck_assert_uint_ge(used(one), 1000);
	ck_assert_uint_lt(used(one), 2000);
	ck_assert_uint_eq(used(two), 0);
	in_two = allocate(ww_arena_allocator(two), 5000);
	ck_assert_ptr_nonnull(in_two);
	memset(in_two, 2, 5000);
	destroy(one);
	ck_assert_uint_ge(used(two), 5000);
	ck_assert(all_are(in_two, 5000, 2));
	give_back(ww_arena_allocator(two), in_two, 5000);
	ck_assert_uint_eq(used(two), 0);
	destroy(two);
	give_back(ww_allocator_default(), outside, 1000);
}
END_TEST

/* jemalloc gives an arena back without a call for each block. The memory of the process shows it. */
START_TEST(destroy_gives_back_blocks_that_were_not_freed)
{
	size_t before = alive(), resident = 0, full;

	for (int round = 0; round < 4; round++) {
		struct ww_arena *arena = create();
		const struct ww_allocator *table = ww_arena_allocator(arena);
		size_t asked = 0, blocks = 0;

		for (size_t i = 0; asked < 64u << 20; i++) {
			size_t size = sizes[i % SIZES];
			void *block = allocate(table, size);

			ck_assert_ptr_nonnull(block);
			memset(block, 1, size);
			if (i % 3 == 0) {
				give_back(table, block, size);
			} else {
				asked += size;
				blocks++;
			}
		}
		ck_assert_uint_ge(used(arena), asked);
		full = resident_bytes();
		destroy(arena);
		if (is_jemalloc()) {
			atomic_fetch_sub(&live, blocks);
			ck_assert_uint_lt(resident_bytes() + (48u << 20), full);
			/* The first round also takes memory that the process keeps for ever. */
			if (round == 0)
				resident = resident_bytes();
			ck_assert_uint_lt(resident_bytes(), resident + (8u << 20));
		}
		ck_assert_uint_eq(alive(), before);
	}
}
END_TEST

START_TEST(arenas_can_be_created_again_and_again)
{
	size_t before = alive();

	for (int i = 0; i < 10000; i++) {
		struct ww_arena *arena = create();
		void *block = allocate(ww_arena_allocator(arena), 100);

		ck_assert_ptr_nonnull(block);
		give_back(ww_arena_allocator(arena), block, 100);
		destroy(arena);
	}
	ck_assert_uint_eq(alive(), before);
}
END_TEST

/* jemalloc has a little over 4,000 arenas. One too many is an error, and the others still work. */
START_TEST(one_arena_too_many_is_refused)
{
	enum { ARENAS = 5000 };
	static struct ww_arena *arenas[ARENAS];
	size_t before = alive(), count = 0;
	int error = WW_OK;

	while (count < ARENAS && (error = try_create(&arenas[count])) == WW_OK)
		count++;
	if (is_jemalloc()) {
		ck_assert_int_eq(error, WW_ENOMEM);
		ck_assert_uint_gt(count, 4000);
		ck_assert_ptr_null(arenas[count]);
	}
	for (size_t i = 0; i < count; i++)
		destroy(arenas[i]);
	ck_assert_uint_eq(alive(), before);
	destroy(create());
}
END_TEST

/* ---- Failure ---------------------------------------------------------------------------------------------------- */

START_TEST(create_fails_at_each_step_and_changes_nothing)
{
	size_t before = alive(), step;
	struct ww_arena *marker = (struct ww_arena *)&before;

	for (step = 1;; step++) {
		struct ww_arena *arena = marker;
		int error;

		fail_call(step);
		error = try_create(&arena);
		fail_call(0);
		if (error == WW_OK) {
			destroy(arena);
			break;
		}
		ck_assert_int_eq(error, WW_ENOMEM);
		ck_assert_ptr_eq(arena, marker);
		ck_assert_uint_eq(alive(), before);
	}
	/* Its own memory, and the arena or the lock. */
	ck_assert_uint_eq(step, 3);
	ck_assert_uint_eq(alive(), before);
}
END_TEST

START_TEST(a_failed_block_is_not_counted)
{
	struct ww_arena *arena = create();
	const struct ww_allocator *tables[] = {ww_allocator_default(), ww_arena_allocator(arena)};
	void *kept = allocate(tables[1], 300);
	size_t bytes = used(arena), before = alive();

	ck_assert_ptr_nonnull(kept);
	for (size_t i = 0; i < 2; i++) {
		fail_call(1);
		ck_assert_ptr_null(allocate(tables[i], 300));
		fail_call(0);
		ck_assert_uint_eq(used(arena), bytes);
		ck_assert_uint_eq(alive(), before);
	}
	give_back(tables[1], kept, 300);
	ck_assert_uint_eq(used(arena), 0);
	destroy(arena);
}
END_TEST

/* ---- Threads ---------------------------------------------------------------------------------------------------- */

enum { THREADS = 4, SHARED_SLOTS = 64, THREAD_STEPS = 20000 };

struct shared_block {
	size_t size;
	uint64_t mark; /* also the last 8 bytes of the block */
};

struct hammer {
	struct ww_arena *arena;
	_Atomic(struct shared_block *) *slots;
	uint64_t state;
	size_t broken;
};

static uint64_t *last_mark(struct shared_block *block)
{
	return (uint64_t *)(void *)((char *)block + (block->size & ~(size_t)7)) - 1;
}

/* Threads swap blocks through the slots: most blocks are freed by another thread than the one that got them. */
static void *hammer(void *argument)
{
	struct hammer *mine = argument;
	const struct ww_allocator *table = ww_arena_allocator(mine->arena);

	for (int step = 0; step < THREAD_STEPS; step++) {
		size_t size = 32 + (size_t)seed_below(&mine->state, 1u << seed_below(&mine->state, 14));
		struct shared_block *block = allocate(table, size);
		size_t bytes;

		if (block == NULL || (uintptr_t)block % 64 != 0) {
			mine->broken++;
			break;
		}
		block->size = size;
		block->mark = seed_next(&mine->state);
		*last_mark(block) = block->mark;
		block = atomic_exchange(&mine->slots[seed_below(&mine->state, SHARED_SLOTS)], block);
		if (block != NULL) {
			mine->broken += *last_mark(block) != block->mark;
			give_back(table, block, block->size);
		}
		if (ww_arena_used(mine->arena, &bytes) != WW_OK)
			mine->broken++;
	}
	return NULL;
}

START_TEST(threads_share_an_arena)
{
	static _Atomic(struct shared_block *) slots[SHARED_SLOTS];
	struct hammer hammers[THREADS];
	pthread_t threads[THREADS];
	uint64_t seed = seed_of_run("threads_share_an_arena");
	size_t before = alive();
	struct ww_arena *arena = create();

	for (size_t i = 0; i < THREADS; i++) {
		hammers[i] = (struct hammer){arena, slots, seed + i, 0};
		ck_assert_int_eq(pthread_create(&threads[i], NULL, hammer, &hammers[i]), 0);
	}
	for (size_t i = 0; i < THREADS; i++) {
		ck_assert_int_eq(pthread_join(threads[i], NULL), 0);
		ck_assert_uint_eq(hammers[i].broken, 0);
	}
	ck_assert_uint_gt(used(arena), 0);
	for (size_t i = 0; i < SHARED_SLOTS; i++) {
		struct shared_block *block = atomic_load(&slots[i]);

		if (block != NULL)
			give_back(ww_arena_allocator(arena), block, block->size);
	}
	ck_assert_uint_eq(used(arena), 0);
	destroy(arena);
	ck_assert_uint_eq(alive(), before);
}
END_TEST

START_TEST(threads_create_arenas)
{
	pthread_t threads[THREADS];
	struct hammer hammers[THREADS];
	static _Atomic(struct shared_block *) slots[THREADS][SHARED_SLOTS];
	uint64_t seed = seed_of_run("threads_create_arenas");

	for (size_t i = 0; i < THREADS; i++) {
		hammers[i] = (struct hammer){create(), slots[i], seed + i, 0};
		ck_assert_int_eq(pthread_create(&threads[i], NULL, hammer, &hammers[i]), 0);
	}
	for (size_t i = 0; i < THREADS; i++) {
		ck_assert_int_eq(pthread_join(threads[i], NULL), 0);
		ck_assert_uint_eq(hammers[i].broken, 0);
		/* The thread is gone, and its blocks still belong to the arena. */
		ck_assert_uint_gt(used(hammers[i].arena), 0);
		destroy(hammers[i].arena);
	}
}
END_TEST

TEST_MAIN("allocator", there_is_one_default_table_and_it_has_a_name, blocks_of_the_default_table_are_aligned_and_whole,
    blocks_of_an_arena_are_aligned_and_whole, a_block_of_2_mib_can_be_a_huge_page, impossible_sizes_are_refused,
    null_is_refused_or_harmless, used_bytes_are_counted_exactly, each_arena_is_counted_alone,
    destroy_gives_back_blocks_that_were_not_freed, arenas_can_be_created_again_and_again, one_arena_too_many_is_refused,
    create_fails_at_each_step_and_changes_nothing, a_failed_block_is_not_counted, threads_share_an_arena,
    threads_create_arenas)
