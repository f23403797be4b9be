/*
 * The table against an oracle, and in the cases that could go wrong: growing, shrinking, churn, equal hashes, limits.
 */
/* tier: check, no-valgrind */

#include "tests/lib/base/table_fixture.h"

static struct table make(void)
{
	struct table table;

	OK(ww_table_init(&table, ww_allocator_default()));
	return table;
}

START_TEST(an_empty_table_finds_nothing_and_removes_nothing)
{
	struct table table = make(), zeros;

	ck_assert_uint_eq(table_count(&table), 0);
	ck_assert_uint_le(ww_table_bytes(&table), 1024);
	for (uint32_t i = 0; i < 1000; i++) {
		ck_assert_uint_eq(find(&table, scattered(i), i), TABLE_NONE);
		ck_assert_int_eq(ww_table_remove(&table, scattered(i), i), WW_EINVAL);
	}
	ck_assert_uint_eq(find(&table, 0, 0), TABLE_NONE);
	ck_assert_uint_eq(find(&table, UINT64_MAX, TABLE_NONE), TABLE_NONE);
	checked(&table);
	ww_table_destroy(&table);
	memset(&zeros, 0, sizeof zeros);
	ww_table_destroy(&zeros);
}
END_TEST

START_TEST(every_index_but_one_can_be_stored_under_every_hash)
{
	static const uint64_t hashes[] = {0, 1, UINT32_MAX, UINT64_C(1) << 32, UINT64_C(1) << 63,
	    UINT64_MAX - UINT32_MAX - 1, UINT64_MAX - UINT32_MAX, UINT64_MAX};
	static const uint32_t indices[] = {0, 1, INT32_MAX, UINT32_MAX - 1};
	struct table table = make();

	for (size_t h = 0; h < sizeof hashes / sizeof hashes[0]; h++) {
		ck_assert_int_eq(ww_table_insert(&table, hashes[h], TABLE_NONE), WW_EINVAL);
		for (size_t i = 0; i < sizeof indices / sizeof indices[0]; i++) {
			ck_assert_uint_eq(find(&table, hashes[h], indices[i]), TABLE_NONE);
			OK(ww_table_insert(&table, hashes[h], indices[i]));
			ck_assert_uint_eq(find(&table, hashes[h], indices[i]), indices[i]);
			ck_assert_uint_eq(find(&table, hashes[h], 7), TABLE_NONE);
			checked(&table);
			OK(ww_table_remove(&table, hashes[h], indices[i]));
			ck_assert_int_eq(ww_table_remove(&table, hashes[h], indices[i]), WW_EINVAL);
			ck_assert_int_eq(ww_table_remove(&table, hashes[h], TABLE_NONE), WW_EINVAL);
		}
	}
	ck_assert_uint_eq(table_count(&table), 0);
	ww_table_destroy(&table);
}
END_TEST

/* ---- Random operations ------------------------------------------------------------------------------------------ */

/* Kinds of hashes. Their shape decides which walks are long. */
static uint64_t random_hash(uint32_t index)
{
	return scattered(index);
}

static uint64_t one_of_few(uint32_t index)
{
	return scattered(index % 50);
}

static uint64_t crowded_at_the_end(uint32_t index)
{
	return UINT64_MAX - (scattered(index) & UINT64_C(0x1ffffffffff));
}

static uint64_t crowded_at_the_beginning(uint32_t index)
{
	return (uint64_t)(index / 3) << 32;
}

struct oracle {
	struct table table;
	uint64_t (*hash)(uint32_t index);
	uint32_t keys;  /* indices below this are in use */
	uint8_t *there; /* the oracle: one flag for each index */
	size_t count;
	uint64_t state;
};

/* One operation on a random key, an insertion in `fill` of 16 cases. Returns whether table and oracle agree. */
static int operate(struct oracle *oracle, uint32_t fill)
{
	uint32_t index = (uint32_t)seed_below(&oracle->state, oracle->keys);
	uint64_t hash = oracle->hash(index);
	int there = oracle->there[index];
	int inserts = seed_below(&oracle->state, 16) < fill;

	if (find(&oracle->table, hash, index) != (there ? index : TABLE_NONE))
		return 0;
	if (inserts && there)
		return 1;
	if (inserts ? ww_table_insert(&oracle->table, hash, index) != WW_OK
	            : ww_table_remove(&oracle->table, hash, index) != (there ? WW_OK : WW_EINVAL))
		return 0;
	oracle->there[index] = (uint8_t)inserts;
	oracle->count = oracle->count + (size_t)inserts - (size_t)(!inserts && there);
	return table_count(&oracle->table) == oracle->count;
}

/* The life of a table, in phases in which it grows, shrinks or keeps its size. */
static void live(uint64_t (*hash)(uint32_t index), uint32_t keys, size_t operations, uint64_t seed)
{
	struct oracle oracle = {.table = make(), .hash = hash, .keys = keys, .state = seed};
	uint32_t fill = 12;

	oracle.there = calloc(keys, 1);
	ck_assert_ptr_nonnull(oracle.there);
	for (size_t i = 0; i < operations; i++) {
		if (i % (keys / 2) == 0) {
			checked(&oracle.table);
			fill = (uint32_t)seed_below(&oracle.state, 17);
		}
		ck_assert_msg(operate(&oracle, fill), "operation %zu of %zu on %u keys disagrees", i, operations, keys);
	}
	checked(&oracle.table);
	for (uint32_t i = 0; i < keys; i++)
		ck_assert_uint_eq(find(&oracle.table, hash(i), i), oracle.there[i] ? i : TABLE_NONE);
	ww_table_destroy(&oracle.table);
	free(oracle.there);
}

START_TEST(random_operations_agree_with_the_oracle)
{
	uint64_t seed = seed_of_run("random_operations_agree_with_the_oracle");

	live(random_hash, 100, 200000, seed);
	live(random_hash, 5000, 500000, seed + 1);
	live(random_hash, 200000, 1000000, seed + 2);
	live(one_of_few, 2000, 100000, seed + 3);
	live(crowded_at_the_end, 5000, 200000, seed + 4);
	live(crowded_at_the_beginning, 5000, 200000, seed + 5);
}
END_TEST

START_TEST(every_invariant_holds_after_every_operation)
{
	static uint64_t (*const hashes[])(uint32_t) = {
	    random_hash, one_of_few, crowded_at_the_end, crowded_at_the_beginning};
	uint64_t seed = seed_of_run("every_invariant_holds_after_every_operation");

	for (size_t h = 0; h < sizeof hashes / sizeof hashes[0]; h++) {
		struct oracle oracle = {.table = make(), .hash = hashes[h], .keys = 1500, .state = seed + h};

		oracle.there = calloc(oracle.keys, 1);
		ck_assert_ptr_nonnull(oracle.there);
		for (uint32_t i = 0; i < 12000; i++) {
			ck_assert_msg(operate(&oracle, i / 3000 % 2 == 0 ? 14 : 2),
			    "operation %u on hashes of kind %zu disagrees", i, h);
			checked(&oracle.table);
		}
		ww_table_destroy(&oracle.table);
		free(oracle.there);
	}
}
END_TEST

/* ---- Shapes ----------------------------------------------------------------------------------------------------- */

/* Two tables of the same keys have the same layout, however they got there, once no entry is being moved. */
START_TEST(the_layout_depends_only_on_the_keys)
{
	enum { KEYS = 20000, OTHERS = 1000 };
	struct table straight = make(), crooked = make();

	insert_keys(&straight, 0, KEYS + OTHERS);
	remove_keys(&straight, KEYS, KEYS + OTHERS);
	for (uint32_t i = KEYS; i > 0; i--) {
		insert_keys(&crooked, i - 1, i);
		/* So many others are too few to shrink the larger half of the tables. */
		if (i <= KEYS / 2 && i % 100 == 1) {
			insert_keys(&crooked, KEYS, KEYS + OTHERS);
			remove_keys(&crooked, KEYS, KEYS + OTHERS);
		}
	}
	ck_assert_uint_eq(straight.low, straight.high);
	ck_assert_uint_eq(crooked.low, crooked.high);
	ck_assert_uint_eq(straight.lines, crooked.lines);
	for (uint32_t i = 0; i < straight.lines; i++)
		ck_assert_mem_eq(table_line(&straight, i), table_line(&crooked, i), sizeof(struct table_line));
	ww_table_destroy(&straight);
	ww_table_destroy(&crooked);
}
END_TEST

static void walks_are_short(const struct table *table)
{
	struct shape shape = checked(table);

	ck_assert_uint_lt(shape.walked, shape.entries * 3 / 2);
	ck_assert_uint_le(shape.longest, 12);
}

START_TEST(churn_at_constant_size_leaves_walks_short)
{
	enum { KEYS = 30000, ROUNDS = 20 };
	struct table table = make();
	size_t bytes;

	insert_keys(&table, 0, KEYS);
	bytes = ww_table_bytes(&table);
	for (uint32_t i = 0; i < KEYS * ROUNDS; i++) {
		OK(ww_table_remove(&table, scattered(i), i));
		OK(ww_table_insert(&table, scattered(i + KEYS), i + KEYS));
		if (i % KEYS == 0) {
			walks_are_short(&table);
			ck_assert_uint_le(ww_table_bytes(&table), bytes + 1024);
		}
	}
	ww_table_destroy(&table);
}
END_TEST

START_TEST(walks_are_short_at_every_load)
{
	struct table table = make();

	for (uint32_t i = 0; i < 200000; i += 2000) {
		insert_keys(&table, i, i + 2000);
		walks_are_short(&table);
	}
	for (uint32_t i = 0; i < 200000; i += 2000) {
		remove_keys(&table, i, i + 2000);
		checked(&table);
	}
	ww_table_destroy(&table);
}
END_TEST

/* Most of a table under one hash, at each position where that could be special. */
START_TEST(equal_hashes_work_while_the_table_grows_and_shrinks)
{
	static const uint64_t hashes[] = {0, UINT64_C(0x8000000000000000), UINT64_MAX};
	enum { EQUAL = 4000, OTHERS = 2000 };

	for (size_t h = 0; h < sizeof hashes / sizeof hashes[0]; h++) {
		struct table table = make();

		for (uint32_t i = 0; i < EQUAL; i++) {
			OK(ww_table_insert(&table, hashes[h], i));
			if (i < OTHERS)
				OK(ww_table_insert(&table, scattered(i), EQUAL + i));
			if (i % 50 == 0) {
				checked(&table);
				ck_assert_uint_eq(find(&table, hashes[h], i), i);
				ck_assert_uint_eq(find(&table, hashes[h], 0), 0);
				ck_assert_uint_eq(find(&table, hashes[h], i / 2), i / 2);
				ck_assert_uint_eq(find(&table, hashes[h], i + 1), TABLE_NONE);
			}
		}
		for (uint32_t i = 0; i < EQUAL; i++) {
			OK(ww_table_remove(&table, hashes[h], i));
			if (i % 50 == 0) {
				checked(&table);
				ck_assert_uint_eq(find(&table, hashes[h], i), TABLE_NONE);
				ck_assert_uint_eq(
				    find(&table, hashes[h], EQUAL - 1), i < EQUAL - 1 ? EQUAL - 1 : TABLE_NONE);
			}
		}
		for (uint32_t i = 0; i < OTHERS; i++)
			ck_assert_uint_eq(find(&table, scattered(i), EQUAL + i), EQUAL + i);
		ww_table_destroy(&table);
	}
}
END_TEST

TEST_MAIN("base/table", an_empty_table_finds_nothing_and_removes_nothing,
    every_index_but_one_can_be_stored_under_every_hash, random_operations_agree_with_the_oracle,
    every_invariant_holds_after_every_operation, the_layout_depends_only_on_the_keys,
    churn_at_constant_size_leaves_walks_short, walks_are_short_at_every_load,
    equal_hashes_work_while_the_table_grows_and_shrinks)
