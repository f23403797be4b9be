/* A child of fork can free a table and a slab, whatever the parent was just exchanging. */
/* tier: check, no-valgrind (a child for each allocation, and others reach each line) */

#include "lib/base/slab.h"
#include "tests/lib/base/table_fixture.h"
#include "tests/support/forking.h"

/* More than eight segments, so that the directory grows and shrinks, too. */
#define KEYS 9000u

static struct forking_memory memory;

static void destroy_table(void *table)
{
	ww_table_destroy(table);
}

START_TEST(a_child_frees_a_table_that_grows_or_shrinks)
{
	struct table table;

	/* The new block, or the former one, and a directory that is exchanged before a segment is added. */
	forking_init(&memory, 2);
	OK(ww_table_init(&table, &memory.table));
	memory.free_all = destroy_table;
	memory.context = &table;
	insert_keys(&table, 0, KEYS);
	ck_assert_uint_gt(table.capacity, 8);
	remove_keys(&table, 0, KEYS);
	ck_assert_uint_eq(table.capacity, 8);
	ck_assert_uint_gt(memory.forks, 200);
	memory.free_all = NULL;
	ww_table_destroy(&table);
	ck_assert_uint_eq(memory.count, 0);
}
END_TEST

static void destroy_slab(void *slab)
{
	ww_slab_destroy(slab);
}

START_TEST(a_child_frees_a_slab_that_grows)
{
	struct slab slab;

	forking_init(&memory, 2);
	ww_slab_init(&slab, 64, &memory.table);
	memory.free_all = destroy_slab;
	memory.context = &slab;
	for (uint32_t i = 0; i < 20 * SLAB_CHUNK; i++)
		ck_assert_uint_eq(ww_slab_take(&slab), i);
	ck_assert_uint_gt(memory.forks, 40);
	memory.free_all = NULL;
	ww_slab_destroy(&slab);
	ck_assert_uint_eq(memory.count, 0);
}
END_TEST

TEST_MAIN("base/fork", a_child_frees_a_table_that_grows_or_shrinks, a_child_frees_a_slab_that_grows)
