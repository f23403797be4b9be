/* The memory of an entry, as the map and the allocator count it, and that it is given back. */
/* tier: long, no-valgrind, no-sanitizers (it counts memory, and a sanitizer adds its own) */

#include "tests/lib/core/session/fixture.h"

#define MANY 100000

/* A key of 16 bytes. */
static void make_key(uint64_t key[2], uint64_t i)
{
	key[0] = i;
	key[1] = ~i;
}

static void add(struct rig *rig, uint64_t from, uint64_t to)
{
	uint64_t key[2];

	for (uint64_t i = from; i < to; i++) {
		make_key(key, i);
		OK(ww_session_set(rig->map, key, sizeof key, NULL, (1 + i % 3600) * SEC, NULL));
	}
}

static void drop(struct rig *rig, uint64_t from, uint64_t to)
{
	uint64_t key[2];

	for (uint64_t i = from; i < to; i++) {
		make_key(key, i);
		ck_assert(ww_session_delete(rig->map, key, sizeof key, NULL) == 1);
	}
}

/* Add the bytes per entry of a map at each load, divided by the number of maps. */
static void weigh(uint32_t shards, uint64_t lifetime, const size_t *loads, size_t count, double *each, int maps)
{
	struct rig rig;
	uint64_t done = 0;

	rig_plan(&rig);
	rig.of_map.gone = NULL;
	rig.of_map.shards = shards;
	rig.of_map.lifetime = lifetime;
	rig_driver(&rig);
	size_t outside = rig.memory.bytes;
	OK(ww_session_create(&rig.map, rig.driver, &rig.of_map));
	ck_assert_uint_eq(stats(&rig).bytes + outside, rig.memory.bytes);
	uint64_t empty = stats(&rig).bytes;
	for (size_t i = 0; i < count; i++) {
		add(&rig, done, loads[i]);
		done = loads[i];
		ck_assert_uint_eq(stats(&rig).entries, done);
		/* The map's count agrees with the allocator's. */
		ck_assert_uint_eq(stats(&rig).bytes + outside, rig.memory.bytes);
		each[i] += (double)(stats(&rig).bytes - empty) / (double)done / maps;
	}
	rig_close(&rig);
}

/* The most bytes that an entry takes at any load. */
static double most_bytes(uint64_t lifetime)
{
	/* From just above a growth of the table to just before the next, and a table of ten times the size. */
	static const size_t loads[] = {MANY, 103000, 106000, 109000, 112000, 115000, 118000, 121000, 200000, 1000000};
	enum { LOADS = sizeof loads / sizeof loads[0], MAPS = 3 };
	double most = 0;

	for (uint32_t shards = 1; shards <= 4; shards *= 4) {
		/*
		 * Chance decides which shard a key is in, and so how full the tables are: take the mean of several
		 * maps.
		 */
		double each[LOADS] = {0};
		for (int map = 0; map < (shards > 1 ? MAPS : 1); map++)
			weigh(shards, lifetime, loads, LOADS, each, shards > 1 ? MAPS : 1);
		for (size_t i = 0; i < LOADS; i++) {
			printf("session/memory: %u shards, %7zu entries: %.2f bytes each\n", shards, loads[i], each[i]);
			most = each[i] > most ? each[i] : most;
		}
	}
	printf("session/memory: %.2f bytes an entry at most\n", most);
	return most;
}

START_TEST(an_entry_with_a_key_of_16_bytes_takes_at_most_100_bytes)
{
	double most = most_bytes(0);

	ck_assert_msg(most <= 100, "%.2f bytes an entry", most);
}
END_TEST

START_TEST(an_entry_with_both_lifetimes_takes_at_most_108_bytes)
{
	double most = most_bytes(7 * 24 * 3600 * SEC);

	ck_assert_msg(most <= 108, "%.2f bytes an entry", most);
}
END_TEST

START_TEST(the_memory_of_entries_that_left_is_used_again)
{
	struct rig rig;

	rig_plan(&rig);
	rig.of_map.gone = NULL;
	rig_open(&rig);
	add(&rig, 0, MANY);
	uint64_t full = stats(&rig).bytes;
	for (uint64_t round = 1; round <= 10; round++) {
		switch (round % 3) {
		case 0:
			drop(&rig, (round - 1) * MANY, round * MANY);
			break;
		case 1:
			OK(ww_session_clear(rig.map, NULL));
			break;
		default:
			pass(&rig, 3601 * SEC);
		}
		ck_assert_uint_eq(stats(&rig).entries, 0);
		/* Pieces of a size that is not asked for again stay with the map. */
		ck_assert_uint_le(stats(&rig).bytes, full + full / 50);
		add(&rig, round * MANY, (round + 1) * MANY);
		/* The table may have stopped growing a step earlier or later. */
		ck_assert_uint_le(stats(&rig).bytes, full + full / 50);
	}
	rig_close(&rig);
}
END_TEST

START_TEST(the_blocks_of_long_keys_are_counted_and_freed)
{
	char key[1000] = "";
	struct rig rig;

	for (int how = 0; how < 5; how++) {
		rig_plan(&rig);
		rig.of_map.limit = how == 3 ? 20 : 0;
		rig_open(&rig);
		OK(set(&rig, "a", 1, 3600 * SEC));
		size_t outside = rig.memory.bytes - stats(&rig).bytes;
		for (int i = 0; i < 20; i++) {
			(void)snprintf(key, sizeof key, "%d", i);
			OK(ww_session_set(rig.map, key, sizeof key, NULL, SEC, NULL));
			ck_assert_uint_eq(stats(&rig).bytes + outside, rig.memory.bytes);
		}
		size_t blocks = rig.memory.blocks;
		uint64_t bytes = stats(&rig).bytes;
		for (int i = 0; i < 20; i++) {
			char short_key[8];
			(void)snprintf(key, sizeof key, "%d", i);
			(void)snprintf(short_key, sizeof short_key, "s%d", i);
			if (how == 0)
				ck_assert_int_eq(ww_session_delete(rig.map, key, sizeof key, NULL), 1);
			if (how == 3)
				OK(set(&rig, short_key, 1, 0));
		}
		if (how == 1)
			pass(&rig, SEC + MS);
		if (how == 2)
			OK(ww_session_clear(rig.map, NULL));
		if (how < 4) {
			ck_assert_uint_eq(rig.memory.blocks, blocks - 20);
			ck_assert_uint_eq(stats(&rig).bytes, bytes - 20 * sizeof key);
		}
		ck_assert_uint_eq(stats(&rig).bytes + outside, rig.memory.bytes);
		rig_close(&rig);
	}
}
END_TEST

TEST_MAIN("session/memory", an_entry_with_a_key_of_16_bytes_takes_at_most_100_bytes,
    an_entry_with_both_lifetimes_takes_at_most_108_bytes, the_memory_of_entries_that_left_is_used_again,
    the_blocks_of_long_keys_are_counted_and_freed)
