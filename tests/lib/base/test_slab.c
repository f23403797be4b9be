/* The slab: records never move, indices all differ, memory is taken in chunks and given back at the end. */
/* tier: quick */

#include <pthread.h>
#include <string.h>

#include "lib/base/slab.h"
#include "tests/support/memory.h"
#include "tests/support/seed.h"
#include "tests/support/suite.h"

#define SIZE 64u
#define RECORDS 5000u

/* A word behind the bytes that an unused record uses itself. */
#define MARK (sizeof(struct slab_unused) / sizeof(uint32_t))

static uint32_t *mark_of(const struct slab *slab, uint32_t index)
{
	return (uint32_t *)slab_at(slab, index) + MARK;
}

START_TEST(an_empty_slab_takes_no_memory)
{
	struct test_memory memory;
	struct slab slab;

	test_memory_init(&memory, 0);
	ww_slab_init(&slab, SIZE, &memory.table);
	ck_assert_uint_eq(memory.calls, 0);
	ck_assert_uint_eq(ww_slab_bytes(&slab), 0);
	ck_assert_uint_eq(slab_taken(&slab), 0);
	ck_assert_uint_eq(slab_end(&slab), 0);
	OK(ww_slab_reserve(&slab, 0));
	ck_assert_uint_eq(memory.calls, 0);
	ww_slab_destroy(&slab);
	ck_assert_uint_eq(memory.blocks, 0);
}
END_TEST

START_TEST(indices_differ_and_records_begin_zero_and_do_not_move)
{
	static char seen[RECORDS + SLAB_CHUNK];
	static char *place[RECORDS];
	struct test_memory memory;
	struct slab slab;

	test_memory_init(&memory, 0);
	ww_slab_init(&slab, SIZE, &memory.table);
	for (uint32_t i = 0; i < RECORDS; i++) {
		uint32_t index = ww_slab_take(&slab);
		ck_assert(index < slab_end(&slab));
		ck_assert(seen[index]++ == 0);
		ck_assert(*mark_of(&slab, index) == 0);
		*mark_of(&slab, index) = index + 1;
		place[i] = slab_at(&slab, index);
		ck_assert(slab_taken(&slab) == i + 1);
		ck_assert(ww_slab_bytes(&slab) == memory.bytes);
	}
	for (uint32_t index = 0; index < slab_end(&slab); index++)
		ck_assert(*mark_of(&slab, index) == (seen[index] ? index + 1 : 0));
	/* The first time, records are taken in the order of indices: neighbours in time are neighbours in memory. */
	for (uint32_t i = 1; i < SLAB_CHUNK; i++)
		ck_assert(place[i] == place[i - 1] + SIZE);
	ww_slab_destroy(&slab);
	ck_assert(memory.blocks == 0);
	ck_assert(memory.bytes == 0);
}
END_TEST

START_TEST(a_record_given_back_is_taken_again_before_memory_is)
{
	struct test_memory memory;
	struct slab slab;
	uint32_t index[SLAB_CHUNK];

	test_memory_init(&memory, 0);
	ww_slab_init(&slab, SIZE, &memory.table);
	for (uint32_t i = 0; i < SLAB_CHUNK; i++)
		index[i] = ww_slab_take(&slab);
	size_t calls = memory.calls;
	for (uint32_t round = 0; round < 20; round++) {
		for (uint32_t i = 0; i < SLAB_CHUNK; i++)
			ww_slab_give(&slab, index[i]);
		ck_assert_uint_eq(slab_taken(&slab), 0);
		for (uint32_t i = 0; i < SLAB_CHUNK; i++)
			index[i] = ww_slab_take(&slab);
		ck_assert_uint_eq(slab_taken(&slab), SLAB_CHUNK);
	}
	ck_assert_uint_eq(memory.calls, calls);
	ww_slab_destroy(&slab);
}
END_TEST

START_TEST(no_record_is_handed_out_twice_under_random_use)
{
	static uint32_t held[RECORDS];
	static char taken[2 * RECORDS];
	uint64_t seed = seed_of_run("test_slab");
	struct test_memory memory;
	uint32_t count = 0;
	struct slab slab;

	test_memory_init(&memory, 0);
	ww_slab_init(&slab, SIZE, &memory.table);
	for (uint32_t step = 0; step < 400000; step++) {
		/* Waves: now mostly taking, now mostly giving back. */
		int take = seed_below(&seed, 10) < (step / 20000 % 2 ? 3 : 7);
		if (take && count < RECORDS) {
			uint32_t index = ww_slab_take(&slab);
			ck_assert(index != SLAB_NONE);
			ck_assert(taken[index]++ == 0);
			*mark_of(&slab, index) = index;
			held[count++] = index;
		} else if (count) {
			uint32_t at = (uint32_t)seed_below(&seed, count);
			uint32_t index = held[at];
			ck_assert(*mark_of(&slab, index) == index);
			held[at] = held[--count];
			taken[index] = 0;
			ww_slab_give(&slab, index);
		}
		ck_assert(slab_taken(&slab) == count);
	}
	ww_slab_destroy(&slab);
	ck_assert_uint_eq(memory.blocks, 0);
}
END_TEST

START_TEST(after_reserve_taking_allocates_nothing)
{
	static const size_t sizes[] = {1, SLAB_CHUNK - 1, SLAB_CHUNK, SLAB_CHUNK + 1, 3 * SLAB_CHUNK, 10000};

	for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++)
		for (uint32_t before = 0; before < 3; before++) {
			struct test_memory memory;
			struct slab slab;
			test_memory_init(&memory, 0);
			ww_slab_init(&slab, SIZE, &memory.table);
			for (uint32_t n = 0; n < before; n++)
				(void)ww_slab_take(&slab);
			OK(ww_slab_reserve(&slab, sizes[i]));
			size_t calls = memory.calls;
			OK(ww_slab_reserve(&slab, sizes[i]));
			for (size_t n = 0; n < sizes[i]; n++)
				ck_assert(ww_slab_take(&slab) != SLAB_NONE);
			ck_assert_uint_eq(memory.calls, calls);
			/* No more than one chunk was taken beyond that. */
			ck_assert_uint_lt(slab_end(&slab), before + sizes[i] + SLAB_CHUNK);
			ww_slab_destroy(&slab);
			ck_assert_uint_eq(memory.blocks, 0);
		}
}
END_TEST

START_TEST(each_failed_allocation_of_a_reserve_changes_nothing)
{
	size_t failures = 0;
	int error = WW_ENOMEM;

	for (size_t fail_at = 1; error; fail_at++) {
		struct test_memory memory;
		struct slab slab;
		test_memory_init(&memory, 0);
		ww_slab_init(&slab, SIZE, &memory.table);
		ck_assert(ww_slab_take(&slab) != SLAB_NONE);
		size_t bytes = memory.bytes;
		memory.fail_at = memory.calls + fail_at;
		error = ww_slab_reserve(&slab, 10 * SLAB_CHUNK);
		if (error) {
			failures++;
			ck_assert_int_eq(error, WW_ENOMEM);
			ck_assert_uint_eq(memory.bytes, bytes);
			ck_assert_uint_eq(ww_slab_bytes(&slab), bytes);
			ck_assert_uint_eq(slab_end(&slab), SLAB_CHUNK);
		}
		memory.fail_at = 0;
		for (uint32_t i = 1; i < 2 * SLAB_CHUNK; i++)
			ck_assert(ww_slab_take(&slab) != SLAB_NONE);
		ww_slab_destroy(&slab);
		ck_assert_uint_eq(memory.blocks, 0);
	}
	/* The array, and each chunk. */
	ck_assert_uint_eq(failures, 11);
}
END_TEST

START_TEST(a_take_without_memory_answers_none_and_works_again_with_memory)
{
	for (size_t fail = 1; fail <= 2; fail++) {
		struct test_memory memory;
		struct slab slab;
		test_memory_init(&memory, fail);
		ww_slab_init(&slab, SIZE, &memory.table);
		ck_assert_uint_eq(ww_slab_take(&slab), SLAB_NONE);
		ck_assert_uint_eq(slab_taken(&slab), 0);
		ck_assert_uint_eq(ww_slab_take(&slab), 0);
		ww_slab_destroy(&slab);
		ck_assert_uint_eq(memory.blocks, 0);
	}
}
END_TEST

START_TEST(more_records_than_indices_are_refused)
{
	struct test_memory memory;
	struct slab slab;

	test_memory_init(&memory, 0);
	ww_slab_init(&slab, SIZE, &memory.table);
	ck_assert_int_eq(ww_slab_reserve(&slab, (size_t)SLAB_MAX + 1), WW_ENOMEM);
	ck_assert_int_eq(ww_slab_reserve(&slab, SIZE_MAX), WW_ENOMEM);
	ck_assert_uint_eq(memory.calls, 0);
	ck_assert_uint_eq(ww_slab_take(&slab), 0);
	ck_assert_int_eq(ww_slab_reserve(&slab, SLAB_MAX), WW_ENOMEM);
	/* The slab is full: only the existing chunks count. */
	uint32_t chunks = slab.chunks;
	uint32_t unused = slab.unused;
	slab.chunks = SLAB_MAX / SLAB_CHUNK;
	slab.unused = 0;
	ck_assert_uint_eq(ww_slab_take(&slab), SLAB_NONE);
	ck_assert_int_eq(ww_slab_reserve(&slab, 1), WW_ENOMEM);
	slab.chunks = chunks;
	slab.unused = unused;
	ww_slab_destroy(&slab);
	ck_assert_uint_eq(memory.blocks, 0);
}
END_TEST

/* Each thread returns its own records, while the owner takes out what it finds. */
struct returner {
	struct slab *slab;
	struct slab_returns *returns;
	uint32_t first;
};

static void *return_all(void *argument)
{
	const struct returner *returner = argument;

	for (uint32_t i = 0; i < RECORDS; i++)
		slab_return(returner->returns, slab_at(returner->slab, returner->first + i));
	return NULL;
}

START_TEST(what_threads_return_comes_out_once)
{
	static char seen[2 * RECORDS];
	struct slab_returns returns = {.fresh = NULL};
	struct test_memory memory;
	struct slab slab;
	pthread_t thread[2];
	uint32_t due = 0;

	test_memory_init(&memory, 0);
	ww_slab_init(&slab, SIZE, &memory.table);
	ck_assert_ptr_null(slab_returned(&returns));
	for (uint32_t i = 0; i < 2 * RECORDS; i++) {
		uint32_t index = ww_slab_take(&slab);
		*mark_of(&slab, index) = index;
	}
	struct returner returner[2] = {{&slab, &returns, 0}, {&slab, &returns, RECORDS}};
	for (int i = 0; i < 2; i++)
		ck_assert_int_eq(pthread_create(&thread[i], NULL, return_all, &returner[i]), 0);
	for (uint32_t got = 0; got < 2 * RECORDS;) {
		const uint32_t *record = slab_returned(&returns);
		if (!record)
			continue;
		ck_assert(seen[record[MARK]]++ == 0);
		got++;
	}
	for (int i = 0; i < 2; i++)
		pthread_join(thread[i], NULL);
	ck_assert_ptr_null(slab_returned(&returns));
	/* A batch, and each that keeps much. */
	for (uint32_t i = 0; i < 10 * SLAB_BACK; i++)
		due += (uint32_t)slab_returns_due(&returns, SLAB_BACK_BYTES);
	ck_assert_uint_eq(due, 10);
	ck_assert_int_eq(slab_returns_due(&returns, SLAB_BACK_BYTES + 1), 1);
	ww_slab_destroy(&slab);
	ck_assert_uint_eq(memory.blocks, 0);
}
END_TEST

TEST_MAIN("base/slab", an_empty_slab_takes_no_memory, indices_differ_and_records_begin_zero_and_do_not_move,
    a_record_given_back_is_taken_again_before_memory_is, no_record_is_handed_out_twice_under_random_use,
    after_reserve_taking_allocates_nothing, each_failed_allocation_of_a_reserve_changes_nothing,
    a_take_without_memory_answers_none_and_works_again_with_memory, more_records_than_indices_are_refused,
    what_threads_return_comes_out_once)
