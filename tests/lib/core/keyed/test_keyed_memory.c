/* Keyed maps: the memory they take and give back. */
/* tier: quick */

#include "tests/lib/core/keyed/fixture.h"

/* Longer than a key that fits into a record. */
#define LONG_KEY 100

/* A key that begins with the number. */
static const char *key_of(uint64_t number)
{
	static char key[LONG_KEY];

	memset(key, 'k', sizeof key);
	memcpy(key, &number, sizeof number);
	return key;
}

static void set_numbered(struct ww_keyed *keyed, uint64_t number, size_t length, uint64_t delay)
{
	ck_assert_int_ge(ww_keyed_set(keyed, key_of(number), length, value_of(number), delay, NULL, NULL), 0);
}

/* A rig whose memory is counted. */
static struct rig *make_counted(struct test_memory *memory)
{
	struct ww_driver_config config = quiet_config();

	test_memory_init(memory, 0);
	config.allocator = &memory->table;
	return make_with(&config, note, 0);
}

START_TEST(removed_entries_free_their_memory_before_their_slot_comes_round)
{
	struct test_memory memory;
	struct rig *rig = make_counted(&memory);

	/* Warm up: the first entry takes memory that stays. */
	set_numbered(rig->keyed, 0, LONG_KEY, 86400 * S);
	OK(ww_keyed_remove(rig->keyed, key_of(0), LONG_KEY, ANY, NULL));
	size_t bytes = memory.bytes, blocks = memory.blocks;
	for (uint64_t i = 1; i < 3000; i++) {
		set_numbered(rig->keyed, i, LONG_KEY, 86400 * S);
		ck_assert_uint_eq(memory.bytes, bytes + LONG_KEY);
		OK(ww_keyed_remove(rig->keyed, key_of(i), LONG_KEY, ANY, NULL));
		ck_assert_uint_eq(memory.bytes, bytes);
	}
	ck_assert_uint_eq(memory.blocks, blocks);
	ck_assert_uint_eq(stats_of(rig).entries, 0);
	unmake(rig);
	ck_assert_uint_eq(memory.blocks, 0);
}
END_TEST

START_TEST(replaced_moved_fired_and_drained_entries_leave_nothing)
{
	struct test_memory memory;
	struct rig *rig = make_counted(&memory);
	size_t bytes = 0;

	for (uint64_t round = 0; round < 5; round++) {
		for (uint64_t i = 0; i < 3000; i++)
			set_numbered(rig->keyed, i, LONG_KEY, 86400 * S);
		for (uint64_t i = 0; i < 3000; i++)
			set_numbered(rig->keyed, i, LONG_KEY, 100 * S);
		for (uint64_t i = 0; i < 1000; i++)
			OK(ww_keyed_move(rig->keyed, key_of(i), LONG_KEY, ANY, 50000 * S));
		pass(rig, 200 * S);
		ck_assert_uint_eq(stats_of(rig).entries, 1000);
		OK(ww_keyed_drain(rig->keyed, NULL, NULL, NULL));
		rig->count = 0;
		if (round == 1)
			bytes = memory.bytes;
		if (round > 1)
			ck_assert_uint_le(memory.bytes, bytes);
	}
	/* Only records are left: no key, and hardly a table. */
	ck_assert_uint_le(memory.bytes, bytes);
	unmake(rig);
	ck_assert_uint_eq(memory.blocks, 0);
}
END_TEST

START_TEST(the_bytes_match_the_allocations)
{
	struct test_memory memory;
	struct rig *rig = make_counted(&memory);
	struct ww_keyed *other = NULL;
	struct ww_keyed_stats stats;
	size_t before = memory.bytes;

	OK(ww_keyed_create(&other, rig->driver, &(struct ww_keyed_config){.fn = note, .user = rig, .shards = 5}));
	for (uint64_t i = 0; i < 5000; i++)
		set_numbered(other, i, 8 + i % 90, 10 * S + i * MS);
	for (uint64_t i = 0; i < 5000; i += 3)
		OK(ww_keyed_remove(other, key_of(i), 8 + i % 90, ANY, NULL));
	pass(rig, 12 * S);
	OK(ww_keyed_stats(other, &stats));
	ck_assert_uint_eq(stats.bytes, memory.bytes - before);
	OK(ww_keyed_destroy(other));
	ck_assert_uint_eq(memory.bytes, before);
	unmake(rig);
	ck_assert_uint_eq(memory.blocks, 0);
}
END_TEST

START_TEST(a_short_key_takes_little)
{
	struct rig *rig = make();
	struct ww_keyed_stats empty = stats_of(rig);

	for (uint64_t i = 0; i < 100000; i++)
		set_numbered(rig->keyed, i, 16, 10 * S);
	ck_assert_uint_le((stats_of(rig).bytes - empty.bytes) / 100000, 110);
	unmake(rig);
}
END_TEST

#define KEYS 600

static size_t length_of(uint64_t i)
{
	return i % 2 ? 8 : LONG_KEY;
}

/* Each key is there or not as it should be, with its own value. */
static void check_keys(struct rig *rig, uint64_t from, uint64_t to)
{
	void *value;

	ck_assert_uint_eq(stats_of(rig).entries, to - from);
	for (uint64_t i = 0; i < KEYS; i++) {
		int found = ww_keyed_get(rig->keyed, key_of(i), length_of(i), &value, NULL, NULL);
		ck_assert_int_eq(found, i >= from && i < to);
		ck_assert(!found || value == value_of(i));
	}
}

/* Set many keys, replace, move and remove them. Returns 1 when an allocation failed, and then nothing has changed. */
static int fails_once(struct test_memory *memory, struct rig *rig)
{
	uint64_t version = 42;
	void *former = rig;
	int failed = 0;

	for (uint64_t i = 0; i < KEYS; i++) {
		size_t calls = memory->calls;
		int error =
		    ww_keyed_set(rig->keyed, key_of(i), length_of(i), value_of(i), (i + 1) * S, &version, &former);
		if (error == WW_OK) {
			version = 42;
			former = rig;
			continue;
		}
		ck_assert_int_eq(error, WW_ENOMEM);
		ck_assert_int_eq(failed++, 0);
		ck_assert_uint_ge(memory->fail_at, calls);
		ck_assert_uint_eq(version, 42);
		ck_assert_ptr_eq(former, rig);
		check_keys(rig, 0, i);
		i--;
	}
	memory->fail_at = 0;
	check_keys(rig, 0, KEYS);
	pass(rig, KEYS / 2 * S);
	ck_assert_uint_ge(rig->count, KEYS / 2 - 1);
	check_keys(rig, rig->count, KEYS);
	return failed;
}

START_TEST(each_allocation_of_a_set_fails_in_turn)
{
	size_t failures = 0;
	int failed;

	for (size_t at = 1;; at++) {
		struct test_memory memory;
		struct rig *rig = make_counted(&memory);
		memory.fail_at = memory.calls + at;
		failed = fails_once(&memory, rig);
		unmake(rig);
		ck_assert_uint_eq(memory.blocks, 0);
		failures += (size_t)failed;
		if (at > memory.calls)
			break;
	}
	/* The long keys, two chunks of records, and the growing table. */
	ck_assert_uint_ge(failures, KEYS / 2 + 2 + 3);
}
END_TEST

START_TEST(removals_need_no_memory)
{
	struct test_memory memory;
	struct rig *rig = make_counted(&memory);
	size_t taken;

	for (uint64_t i = 0; i < KEYS; i++)
		set_numbered(rig->keyed, i, length_of(i), (i + 1) * S);
	for (uint64_t i = 0; i < KEYS; i++) {
		/* Every allocation fails, and it works without. */
		memory.fail_at = memory.calls + 1;
		OK(ww_keyed_move(rig->keyed, key_of(i), length_of(i), ANY, 50 * S));
		ck_assert_int_eq(ww_keyed_set(rig->keyed, key_of(i), length_of(i), value_of(i), S, NULL, NULL), 1);
		if (i % 2)
			OK(ww_keyed_remove(rig->keyed, key_of(i), length_of(i), ANY, NULL));
	}
	memory.fail_at = memory.calls + 1;
	OK(ww_keyed_drain(rig->keyed, NULL, NULL, &taken));
	ck_assert_uint_eq(taken, KEYS / 2);
	unmake(rig);
	ck_assert_uint_eq(memory.blocks, 0);
}
END_TEST

START_TEST(each_allocation_of_a_map_fails_in_turn)
{
	int error = WW_ENOMEM;

	for (size_t at = 1; error; at++) {
		struct test_memory memory;
		struct rig *rig = make_counted(&memory);
		struct ww_keyed *other = rig->keyed;
		size_t bytes = memory.bytes;
		memory.fail_at = memory.calls + at;
		error = ww_keyed_create(&other, rig->driver, &(struct ww_keyed_config){.fn = note, .shards = 3});
		if (error) {
			ck_assert_int_eq(error, WW_ENOMEM);
			ck_assert_ptr_eq(other, rig->keyed);
			ck_assert_uint_eq(memory.bytes, bytes);
		} else {
			ck_assert_uint_gt(at, 3);
			OK(ww_keyed_destroy(other));
		}
		unmake(rig);
		ck_assert_uint_eq(memory.blocks, 0);
	}
}
END_TEST

TEST_MAIN("keyed/memory", removed_entries_free_their_memory_before_their_slot_comes_round,
    replaced_moved_fired_and_drained_entries_leave_nothing, the_bytes_match_the_allocations, a_short_key_takes_little,
    each_allocation_of_a_set_fails_in_turn, removals_need_no_memory, each_allocation_of_a_map_fails_in_turn)
