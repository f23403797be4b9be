/*
 * The window between an entry's expiry and the start of its callback. While the firing is queued, or a worker has taken
 * it from the queue but has not begun, every call on the entry is still in time. Here the test plays the worker.
 */
/* tier: quick */

#include "lib/core/keyed/keyed_internal.h"
#include "tests/lib/core/keyed/fixture.h"
#include "tests/support/worker.h"

static struct firing *firing;
/* Whether somebody has asked about the entry: then the worker takes the lock before it calls. */
static int asked;

/* Let a second pass, and queue what is due. */
static void let_expire(struct rig *rig)
{
	OK(ww_clock_virtual_advance(rig->clock, 2 * S));
	queue_due(rig->driver);
}

/* Take the oldest firing from the queue, as a worker does. */
static void take_firing(struct rig *rig)
{
	firing = ww_group_withdraw_all(rig->keyed->group);
	ck_assert_ptr_nonnull(firing);
}

static void run_firing(struct rig *rig)
{
	ww_keyed_ops.run(rig->keyed, firing);
}

static uint32_t records_taken(const struct rig *rig)
{
	ww_keyed_entry_collect(&rig->keyed->shards[0], SIZE_MAX);
	return slab_taken(&rig->keyed->shards[0].slab);
}

/* A rig with one entry of value 1, which is queued or taken. */
static struct rig *make_due(int taken)
{
	struct rig *rig = make();

	ck_assert_int_eq(set(rig, "key", 1, S), 0);
	let_expire(rig);
	if (taken)
		take_firing(rig);
	if (asked)
		ck_assert_int_eq(has(rig, "key"), 1);
	return rig;
}

/* The worker runs, and all due entries fire. */
static void finish(struct rig *rig, int taken)
{
	if (taken)
		run_firing(rig);
	settle(rig);
}

/* While a worker has an entry's firing, the entry must not be in the wheel too. */
static uint64_t pending_in(const struct rig *rig)
{
	return wheel_stats(rig->keyed->shards[0].source).pending;
}

#define BOTH(taken)                                                                                                    \
	for (int taken = 0; taken < 2; taken++)                                                                        \
		for (asked = 0; asked < 2; asked++)

START_TEST(an_untouched_entry_fires)
{
	BOTH(taken)
	{
		struct rig *rig = make_due(taken);
		finish(rig, taken);
		ck_assert_uint_eq(rig->count, 1);
		ASSERT_LOGGED(rig, 0, "key", 1);
		ck_assert_uint_eq(records_taken(rig), 0);
		unmake(rig);
	}
}
END_TEST

/* What a callback finds: its entry is out of the map, and the key and the record are still its own. */
static void use_own_key(struct ww_keyed *keyed, const struct ww_keyed_entry *entry, void *user)
{
	struct rig *rig = user;
	size_t count = 1;

	note(keyed, entry, user);
	if (rig->count == 1) {
		ck_assert_uint_eq(stats_of(rig).entries, 0);
		ck_assert_uint_eq(stats_of(rig).fired, 1);
		OK(ww_keyed_drain(keyed, note, rig, &count));
		ck_assert_uint_eq(count, 0);
		ck_assert_int_eq(ww_keyed_remove(keyed, entry->key, entry->length, ANY, NULL), WW_ESTALE);
		ck_assert_int_eq(ww_keyed_get(keyed, entry->key, entry->length, NULL, NULL, NULL), 0);
		ck_assert_int_eq(ww_keyed_set(keyed, entry->key, entry->length, value_of(2), S, NULL, NULL), 0);
		ck_assert_uint_eq(stats_of(rig).entries, 1);
		ck_assert_uint_eq(stats_of(rig).replaced, 0);
		ck_assert_uint_eq(records_taken(rig), 2);
	}
	ck_assert_str_eq(entry->key, "a key that is longer than its record");
}

START_TEST(a_callback_is_out_of_the_map_and_sets_its_key_anew)
{
	static const char key[] = "a key that is longer than its record";

	for (asked = 0; asked < 2; asked++) {
		struct rig *rig = make_with(NULL, use_own_key, 0);
		ck_assert_int_eq(ww_keyed_set(rig->keyed, key, sizeof key, value_of(1), S, NULL, NULL), 0);
		let_expire(rig);
		if (asked)
			ck_assert_int_eq(ww_keyed_get(rig->keyed, key, sizeof key, NULL, NULL, NULL), 1);
		settle(rig);
		pass(rig, 2 * S);
		ck_assert_uint_eq(rig->count, 2);
		ck_assert_ptr_eq(rig->log[1].value, value_of(2));
		ck_assert_uint_eq(stats_of(rig).entries, 0);
		ck_assert_uint_eq(stats_of(rig).fired, 2);
		ck_assert_uint_eq(records_taken(rig), 0);
		unmake(rig);
	}
}
END_TEST

START_TEST(a_remove_is_in_time)
{
	BOTH(taken)
	{
		struct rig *rig = make_due(taken);
		OK(drop(rig, "key", ANY));
		ck_assert_int_eq(has(rig, "key"), 0);
		finish(rig, taken);
		ck_assert_uint_eq(rig->count, 0);
		ck_assert_uint_eq(records_taken(rig), 0);
		unmake(rig);
	}
}
END_TEST

START_TEST(a_move_takes_the_firing_back)
{
	BOTH(taken)
	{
		struct rig *rig = make_due(taken);
		OK(move(rig, "key", ANY, 10 * S));
		ck_assert_uint_eq(pending_in(rig), !taken);
		finish(rig, taken);
		ck_assert_uint_eq(rig->count, 0);
		pass(rig, 9 * S);
		ck_assert_uint_eq(rig->count, 0);
		pass(rig, 2 * S);
		ck_assert_uint_eq(rig->count, 1);
		pass(rig, 20 * S);
		ck_assert_uint_eq(rig->count, 1);
		unmake(rig);
	}
}
END_TEST

START_TEST(a_move_to_now_fires_once)
{
	BOTH(taken)
	{
		struct rig *rig = make_due(taken);
		OK(move(rig, "key", ANY, 0));
		finish(rig, taken);
		pass(rig, S);
		ck_assert_uint_eq(rig->count, 1);
		pass(rig, 20 * S);
		ck_assert_uint_eq(rig->count, 1);
		unmake(rig);
	}
}
END_TEST

START_TEST(a_replaced_value_does_not_fire)
{
	BOTH(taken)
	{
		struct rig *rig = make_due(taken);
		void *former = NULL;
		ck_assert_int_eq(ww_keyed_set(rig->keyed, "key", 3, value_of(2), 10 * S, NULL, &former), 1);
		ck_assert_ptr_eq(former, value_of(1));
		OK(ww_clock_virtual_advance(rig->clock, 5 * S));
		finish(rig, taken);
		ck_assert_uint_eq(rig->count, 0);
		pass(rig, 10 * S);
		ck_assert_uint_eq(rig->count, 1);
		ASSERT_LOGGED(rig, 0, "key", 2);
		unmake(rig);
	}
}
END_TEST

START_TEST(moves_and_a_remove_before_the_worker_comes)
{
	BOTH(taken)
	{
		struct rig *rig = make_due(taken);
		OK(move(rig, "key", ANY, 10 * S));
		ck_assert_int_eq(set(rig, "key", 2, 0), 1);
		OK(move(rig, "key", ANY, 3 * S));
		OK(drop(rig, "key", ANY));
		ck_assert_int_eq(set(rig, "key", 3, 3 * S), 0);
		finish(rig, taken);
		pass(rig, 20 * S);
		ck_assert_uint_eq(rig->count, 1);
		ASSERT_LOGGED(rig, 0, "key", 3);
		ck_assert_uint_eq(records_taken(rig), 0);
		unmake(rig);
	}
}
END_TEST

/* Its record must not be reused while the worker still has its firing. */
START_TEST(a_removed_record_is_not_used_before_the_worker_has_come)
{
	struct rig *rig = make_due(1);

	OK(drop(rig, "key", ANY));
	ck_assert_uint_eq(records_taken(rig), 1);
	for (uint64_t i = 0; i < 2000; i++)
		ck_assert_int_eq(ww_keyed_set(rig->keyed, &i, sizeof i, NULL, 100 * S, NULL, NULL), 0);
	run_firing(rig);
	ck_assert_uint_eq(rig->count, 0);
	ck_assert_uint_eq(records_taken(rig), 2000);
	ck_assert_uint_eq(stats_of(rig).entries, 2000);
	unmake(rig);
}
END_TEST

/* Both calls hand out all entries of a map. */
static void expect_taken_out(int (*take_out)(struct ww_keyed *keyed, ww_keyed_fn *fn, void *context, size_t *count))
{
	BOTH(taken)
	{
		struct rig *rig = make_due(taken);
		size_t count = 0;
		OK(take_out(rig->keyed, note, rig, &count));
		ck_assert_uint_eq(count, 1);
		finish(rig, taken);
		ck_assert_uint_eq(rig->count, 1);
		ck_assert_uint_eq(records_taken(rig), 0);
		unmake(rig);
	}
}

START_TEST(a_drain_takes_the_entry_and_it_does_not_fire)
{
	expect_taken_out(ww_keyed_drain);
}
END_TEST

static void run_in_drain(struct ww_keyed *keyed, const struct ww_keyed_entry *entry, void *user)
{
	struct rig *rig = user;

	run_firing(rig);
	/* The worker came and went. The key must still be there. */
	ck_assert_int_eq(ww_keyed_set(keyed, "other", 5, NULL, 50 * S, NULL, NULL), 0);
	ck_assert_mem_eq(entry->key, "key", 3);
	note(keyed, entry, user);
}

START_TEST(a_worker_may_come_while_its_entry_is_drained)
{
	struct rig *rig = make_due(1);

	OK(ww_keyed_drain(rig->keyed, run_in_drain, rig, NULL));
	ck_assert_uint_eq(rig->count, 1);
	ck_assert_uint_eq(records_taken(rig), 1);
	unmake(rig);
}
END_TEST

START_TEST(a_stop_takes_the_entry_and_it_does_not_fire)
{
	expect_taken_out(ww_keyed_stop);
}
END_TEST

START_TEST(a_worker_that_comes_after_the_drivers_stop_leaves_the_entry)
{
	struct rig *rig = make_due(1);
	size_t count = 0;

	OK(ww_driver_stop(rig->driver, NULL, NULL, NULL));
	run_firing(rig);
	ck_assert_uint_eq(rig->count, 0);
	OK(ww_keyed_stop(rig->keyed, note, rig, &count));
	ck_assert_uint_eq(count, 1);
	ASSERT_LOGGED(rig, 0, "key", 1);
	unmake(rig);
}
END_TEST

START_TEST(destroy_forgets_queued_firings)
{
	struct rig *rig = make_due(0);

	ck_assert_int_eq(set(rig, "a key that is longer than a record", 1, S), 0);
	let_expire(rig);
	unmake(rig);
}
END_TEST

/* The queue has room for one. */
static struct rig *make_full(uint32_t flags)
{
	struct ww_driver_config config = quiet_config();

	config.queue = 1;
	config.flags |= flags;
	struct rig *rig = make_with(&config, note, 0);
	ck_assert_int_eq(set(rig, "a", 1, S), 0);
	ck_assert_int_eq(set(rig, "b", 2, S), 0);
	ck_assert_int_eq(set(rig, "c", 3, S), 0);
	return rig;
}

START_TEST(an_expiry_that_finds_the_queue_full_waits)
{
	struct rig *rig = make_full(0);

	let_expire(rig);
	ck_assert_uint_eq(stats_of(rig).entries, 3);
	settle(rig);
	ck_assert_uint_eq(rig->count, 3);
	unmake(rig);
}
END_TEST

START_TEST(a_dropped_expiry_leaves_its_entry_in_the_map)
{
	struct rig *rig = make_full(WW_DRIVER_DROP);
	size_t count = 0;

	pass(rig, 2 * S);
	ck_assert_uint_eq(rig->count, 1);
	struct ww_keyed_stats stats = stats_of(rig);
	ck_assert_uint_eq(stats.dropped, 2);
	ck_assert_uint_eq(stats.entries, 2);
	const char *left = has(rig, "a") ? "a" : "b";
	OK(move(rig, left, ANY, S));
	pass(rig, 2 * S);
	ck_assert_uint_eq(rig->count, 2);
	ck_assert_str_eq(rig->log[1].key, left);
	OK(ww_keyed_drain(rig->keyed, NULL, NULL, &count));
	ck_assert_uint_eq(count, 1);
	ck_assert_uint_eq(records_taken(rig), 0);
	unmake(rig);
}
END_TEST

/* ---- Equal hashes */

/* An entry with this key, filed under the hash of the key "ab". */
static void collide(struct rig *rig, const char *key)
{
	uint64_t hash = ww_hash_bytes(&rig->keyed->secret, "ab", 2);
	struct keyed_shard *shard = &rig->keyed->shards[0];

	ww_source_lock(shard->source);
	ck_assert_ptr_nonnull(ww_keyed_entry_make(rig->keyed, shard, hash, key, strlen(key)));
	ww_source_unlock(shard->source);
}

START_TEST(keys_with_equal_hashes_are_told_apart)
{
	struct rig *rig = make();

	collide(rig, "abc");
	collide(rig, "xy");
	collide(rig, "a");
	ck_assert_int_eq(has(rig, "ab"), 0);
	ck_assert_int_eq(drop(rig, "ab", ANY), WW_ESTALE);
	ck_assert_int_eq(set(rig, "ab", 5, S), 0);
	ck_assert_uint_eq(at(rig, "ab"), 5);
	ck_assert_uint_eq(stats_of(rig).entries, 4);
	pass(rig, 2 * S);
	ck_assert_uint_eq(rig->count, 1);
	ASSERT_LOGGED(rig, 0, "ab", 5);
	ck_assert_int_eq(has(rig, "ab"), 0);
	ck_assert_uint_eq(stats_of(rig).entries, 3);
	unmake(rig);
}
END_TEST

TEST_MAIN("keyed/window", an_untouched_entry_fires, a_callback_is_out_of_the_map_and_sets_its_key_anew,
    a_remove_is_in_time, a_move_takes_the_firing_back, a_move_to_now_fires_once, a_replaced_value_does_not_fire,
    moves_and_a_remove_before_the_worker_comes, a_removed_record_is_not_used_before_the_worker_has_come,
    a_drain_takes_the_entry_and_it_does_not_fire, a_worker_may_come_while_its_entry_is_drained,
    a_stop_takes_the_entry_and_it_does_not_fire, a_worker_that_comes_after_the_drivers_stop_leaves_the_entry,
    destroy_forgets_queued_firings, an_expiry_that_finds_the_queue_full_waits,
    a_dropped_expiry_leaves_its_entry_in_the_map, keys_with_equal_hashes_are_told_apart)
