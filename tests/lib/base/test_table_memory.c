/* The memory of a table: bytes per key at every load, what it gives back, and allocations that fail. */
/* tier: check, no-valgrind */

#include "tests/lib/base/table_fixture.h"

#define KEYS 200000u

static struct test_memory memory;

static struct table make_counted(void)
{
	struct table table;

	test_memory_init(&memory, 0);
	OK(ww_table_init(&table, &memory.table));
	return table;
}

static double bytes_a_key(const struct table *table)
{
	return (double)ww_table_bytes(table) / (double)table_count(table);
}

static void destroy_counted(struct table *table)
{
	ck_assert_uint_eq(ww_table_bytes(table), memory.bytes);
	ww_table_destroy(table);
	ck_assert_uint_eq(memory.blocks, 0);
	ck_assert_uint_eq(memory.bytes, 0);
}

START_TEST(bytes_per_key_stay_low_while_it_grows)
{
	struct table table = make_counted();
	double sum = 0, most = 0;

	for (uint32_t i = 0; i < KEYS; i++) {
		insert_keys(&table, i, i + 1);
		if (i < 10000)
			continue;
		sum += bytes_a_key(&table);
		if (most < bytes_a_key(&table))
			most = bytes_a_key(&table);
	}
	ck_assert_double_le(most, 11.5);
	ck_assert_double_le(sum / (KEYS - 10000), 10.5);
	destroy_counted(&table);
}
END_TEST

START_TEST(bytes_per_key_stay_low_while_it_shrinks)
{
	struct table table = make_counted();
	double most = 0;

	insert_keys(&table, 0, KEYS);
	for (uint32_t i = 0; i < KEYS; i++) {
		remove_keys(&table, i, i + 1);
		if (table_count(&table) >= 10000 && most < bytes_a_key(&table))
			most = bytes_a_key(&table);
	}
	ck_assert_double_le(most, 14);
	ck_assert_uint_le(memory.bytes, 2048);
	destroy_counted(&table);
}
END_TEST

/* The largest block bounds what one operation copies. The directory is the only one that grows. */
START_TEST(no_operation_asks_for_a_large_block)
{
	struct table table = make_counted();

	for (uint32_t i = 0; i < KEYS; i++) {
		size_t before = memory.calls;

		memory.last_size = 0;
		OK(ww_table_insert(&table, scattered(i), i));
		ck_assert_uint_le(memory.calls - before, 3);
		ck_assert_uint_le(memory.last_size, 8192);
	}
	destroy_counted(&table);
}
END_TEST

/* ---- Allocations that fail -------------------------------------------------------------------------------------- */

START_TEST(init_fails_at_each_step_and_leaves_nothing)
{
	struct table table, marker;
	size_t step;

	memset(&marker, 0xa5, sizeof marker);
	for (step = 1;; step++) {
		table = marker;
		test_memory_init(&memory, step);
		if (ww_table_init(&table, &memory.table) == WW_OK)
			break;
		ck_assert_mem_eq(&table, &marker, sizeof table);
		ck_assert_uint_eq(memory.blocks, 0);
	}
	ck_assert_uint_eq(step, 3);
	destroy_counted(&table);
}
END_TEST

static void all_there(const struct table *table, uint64_t (*hash)(uint32_t), uint32_t count)
{
	size_t found = 0;

	ck_assert_uint_eq(table_count(table), count);
	checked(table);
	for (uint32_t i = 0; i < count; i++)
		found += find(table, hash(i), i) == i;
	ck_assert_uint_eq(found, count);
	ck_assert_uint_eq(find(table, hash(count), count), TABLE_NONE);
}

static uint64_t random_hash(uint32_t index)
{
	return scattered(index);
}

static uint64_t at_the_end(uint32_t index)
{
	return UINT64_MAX - scattered(index) % 1000;
}

/*
 * Each allocation during the filling of a table fails, alone and with all later ones. The same insertion succeeds
 * afterwards.
 */
static void fill_with_failures(uint64_t (*hash)(uint32_t), uint32_t count)
{
	struct table table = make_counted();
	size_t failures = 0;

	for (uint32_t i = 0; i < count; i++) {
		for (size_t step = 0;; step++) {
			int error;

			memory.exhausted = step == 0;
			memory.fail_at = memory.calls + step;
			error = ww_table_insert(&table, hash(i), i);
			memory.exhausted = 0;
			if (error == WW_OK)
				break;
			ck_assert_int_eq(error, WW_ENOMEM);
			ck_assert_uint_eq(ww_table_bytes(&table), memory.bytes);
			if (i < 3000 || failures % 100 == 0)
				all_there(&table, hash, i);
			failures++;
		}
	}
	memory.fail_at = 0;
	ck_assert_uint_gt(failures, 10);
	all_there(&table, hash, count);
	destroy_counted(&table);
}

START_TEST(insert_fails_at_each_allocation_and_changes_nothing)
{
	fill_with_failures(random_hash, 20000);
	fill_with_failures(at_the_end, 4000);
}
END_TEST

START_TEST(remove_needs_no_memory)
{
	struct table table = make_counted();

	insert_keys(&table, 0, 20000);
	for (uint32_t i = 0; i < 20000; i++) {
		memory.fail_at = memory.calls + 1;
		OK(ww_table_remove(&table, scattered(i), i));
		if (i % 100 == 0)
			checked(&table);
	}
	/* Whole segments go back all the same. */
	ck_assert_uint_le(memory.bytes, 16384);
	destroy_counted(&table);
}
END_TEST

TEST_MAIN("base/table_memory", bytes_per_key_stay_low_while_it_grows, bytes_per_key_stay_low_while_it_shrinks,
    no_operation_asks_for_a_large_block, init_fails_at_each_step_and_leaves_nothing,
    insert_fails_at_each_allocation_and_changes_nothing, remove_needs_no_memory)
