/* The life of a map from create to destroy, with everything that can be under way at its end. */
/* tier: quick */

#include <semaphore.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/lib/core/session/fixture.h"

static const char long_key[] = "a key of which a copy needs a block of its own";

START_TEST(the_defaults_are_those_of_the_header)
{
	struct ww_session_config config;

	memset(&config, 255, sizeof config);
	OK(ww_session_config_default(&config));
	ck_assert_uint_eq(config.ttl, 7 * 86400 * SEC);
	ck_assert_uint_eq(config.jitter_max, 60 * SEC);
	ck_assert(!config.jitter && !config.shards && !config.limit && !config.gone && !config.user);
	ck_assert(!config.lifetime && !config.flags && !config.weight_limit && !config.share);
	ck_assert_int_eq(ww_session_config_default(NULL), WW_EINVAL);
}
END_TEST

START_TEST(create_refuses_values_out_of_range)
{
	static const struct ww_session_config bad[] = {
	    {.ttl = 0},
	    {.ttl = WW_SESSION_TTL_MAX + 1},
	    {.ttl = 1, .jitter = 1001},
	    {.ttl = 1, .jitter_max = WW_SESSION_TTL_MAX + 1},
	    {.ttl = 1, .shards = WW_DRIVER_SHARDS_MAX + 1},
	    {.ttl = 1, .share = WW_DRIVER_SHARE_MAX + 1},
	};
	static const struct ww_session_config most = {.ttl = WW_SESSION_TTL_MAX,
	    .jitter = 1000,
	    .jitter_max = WW_SESSION_TTL_MAX,
	    .shards = WW_DRIVER_SHARDS_MAX,
	    .limit = SIZE_MAX,
	    .lifetime = UINT64_MAX,
	    .weight_limit = UINT64_C(1) << 62,
	    .share = WW_DRIVER_SHARE_MAX};
	struct ww_session *map = (struct ww_session *)&bad;
	struct rig rig;

	rig_plan(&rig);
	rig.of_driver.tick_ns = WW_SESSION_TICK_MAX + 1;
	rig_driver(&rig);
	ck_assert_int_eq(ww_session_create(&map, rig.driver, NULL), WW_EINVAL);
	OK(ww_driver_destroy(rig.driver));
	rig.of_driver.tick_ns = WW_SESSION_TICK_MAX;
	OK(ww_driver_create(&rig.driver, &rig.of_driver));
	for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
		ck_assert_int_eq(ww_session_create(&map, rig.driver, &bad[i]), WW_EINVAL);
	ck_assert_int_eq(ww_session_create(NULL, rig.driver, NULL), WW_EINVAL);
	ck_assert_int_eq(ww_session_create(&map, NULL, NULL), WW_EINVAL);
	ck_assert_ptr_eq(map, &bad);
	OK(ww_session_create(&rig.map, rig.driver, &most));
	OK(set(&rig, "a", 1, 0));
	ck_assert_uint_ge(left(&rig, "a"), WW_SESSION_TTL_MAX);
	ck_assert_uint_le(left(&rig, "a"), 2 * WW_SESSION_TTL_MAX);
	OK(ww_session_destroy(rig.map));
	OK(ww_session_create(&rig.map, rig.driver, NULL));
	OK(set(&rig, "a", 1, 0));
	ck_assert_uint_eq(left(&rig, "a"), 7 * 86400 * SEC);
	OK(ww_session_destroy(NULL));
	rig_close(&rig);
}
END_TEST

START_TEST(each_failed_allocation_of_create_leaves_nothing)
{
	struct ww_session *const nothing = (struct ww_session *)&long_key;
	struct rig rig;
	size_t failed = 0;

	for (uint32_t shards = 1; shards <= 3; shards++) {
		rig_plan(&rig);
		rig.of_map.shards = shards;
		rig_driver(&rig);
		for (size_t fail_at = 1;; fail_at++) {
			size_t blocks = rig.memory.blocks, bytes = rig.memory.bytes;
			rig.map = nothing;
			rig.memory.calls = 0;
			rig.memory.fail_at = fail_at;
			int answer = ww_session_create(&rig.map, rig.driver, &rig.of_map);
			rig.memory.fail_at = 0;
			if (answer == WW_OK)
				break;
			failed++;
			ck_assert_int_eq(answer, WW_ENOMEM);
			ck_assert_ptr_eq(rig.map, nothing);
			ck_assert_uint_eq(rig.memory.blocks, blocks);
			ck_assert_uint_eq(rig.memory.bytes, bytes);
		}
		OK(set(&rig, "a", 1, SEC));
		pass(&rig, SEC + MS);
		assert_last_gone(1, "a", 1, WW_GONE_EXPIRED);
		rig_close(&rig);
	}
	ck_assert_uint_ge(failed, 3 + 2 * (1 + 2 + 3));
}
END_TEST

START_TEST(each_failed_allocation_of_set_changes_nothing)
{
	struct rig rig;
	void *const nothing = &rig;
	size_t failed = 0;

	rig_start(&rig);
	/* Enough to go past the sizes at which slab and table grow. */
	for (uintptr_t i = 0; i < 3000; i++) {
		char key[64];
		(void)snprintf(
		    key, sizeof key, i % 2 ? "%u" : "a long key, longer than sixteen bytes: %u", (unsigned)i);
		for (size_t fail_at = 1;; fail_at++) {
			void *former = nothing;
			struct ww_session_stats before = stats(&rig);
			rig.memory.calls = 0;
			rig.memory.fail_at = fail_at;
			int answer = ww_session_set(rig.map, key, strlen(key), (void *)(i + 1), 0, &former);
			rig.memory.fail_at = 0;
			if (answer == WW_OK)
				break;
			failed++;
			ck_assert_int_eq(answer, WW_ENOMEM);
			ck_assert_ptr_eq(former, nothing);
			ck_assert_uint_eq(get(&rig, key), 0);
			ck_assert_uint_eq(stats(&rig).entries, before.entries);
		}
		ck_assert_uint_eq(get(&rig, key), i + 1);
	}
	ck_assert_uint_gt(failed, 1500 + 6);
	ck_assert_uint_eq(stats(&rig).entries, 3000);
	ck_assert_uint_eq(gone_calls(), 0);
	/* Replacing, refreshing, deleting and expiring take no memory. */
	rig.memory.calls = 0;
	OK(set(&rig, "1", 7, SEC));
	ck_assert_int_eq(refresh(&rig, "1", 0), 1);
	ck_assert_uint_eq(rig.memory.calls, 0);
	pass(&rig, 11 * SEC);
	ck_assert_uint_eq(gone_calls(), 3001);
	rig_close(&rig);
}
END_TEST

START_TEST(a_set_that_fails_in_a_full_map_evicts_nothing)
{
	struct rig rig;

	rig_plan(&rig);
	rig.of_map.limit = 2;
	rig_open(&rig);
	OK(set(&rig, "a", 1, 0));
	OK(set(&rig, "b", 2, 0));
	rig.memory.calls = 0;
	rig.memory.fail_at = 1;
	ck_assert_int_eq(set(&rig, long_key, 3, 0), WW_ENOMEM);
	rig.memory.fail_at = 0;
	ck_assert_uint_eq(gone_calls(), 0);
	OK(set(&rig, "c", 4, 0));
	assert_last_gone(1, "a", 1, WW_GONE_EVICTED);
	rig_close(&rig);
}
END_TEST

START_TEST(after_the_drivers_stop_all_is_refused_and_destroy_tells_gone_of_every_entry)
{
	struct ww_session *another;
	struct rig rig;

	rig_start(&rig);
	OK(set(&rig, "first", 1, SEC));
	OK(set(&rig, long_key, 2, SEC));
	OK(set(&rig, "a", 3, 10 * SEC));
	step(&rig, SEC + MS);
	ck_assert_int_eq(ww_driver_dispatch(rig.driver, 1), 1); /* the other one stays in the queue */
	OK(ww_driver_stop(rig.driver, NULL, NULL, NULL));
	assert_closed(rig.map);
	ck_assert_int_eq(ww_session_create(&another, rig.driver, NULL), WW_ECLOSED);
	ck_assert_uint_eq(stats(&rig).entries, 1);
	ck_assert_uint_eq(gone_calls(), 1);
	ck_assert_int_eq(ww_driver_destroy(rig.driver), WW_EBUSY);
	rig_close(&rig);
	ck_assert_uint_eq(gone_calls(), 3);
	ck_assert_int_eq((int)gone_log[1].why, (int)WW_GONE_CLEARED);
	ck_assert_uint_eq(gone_log[1].value, 3);
	ck_assert_int_eq((int)gone_log[2].why, (int)WW_GONE_EXPIRED);
	ck_assert_uint_eq(gone_log[0].value + gone_log[2].value, 3);
}
END_TEST

static void count(struct ww_session *map, const void *key, size_t length, void *value, enum ww_gone why, void *user)
{
	(void)map;
	(void)key;
	(void)length;
	(void)value;
	(void)why;
	++*(size_t *)user;
}

START_TEST(maps_get_turns_by_their_shares)
{
	size_t calls[2] = {0};
	struct ww_session *map[2];
	struct rig rig;

	rig_plan(&rig);
	rig_driver(&rig);
	rig.of_map.gone = count;
	for (int i = 0; i < 2; i++) {
		rig.of_map.user = &calls[i];
		rig.of_map.share = i ? 3 : 0;
		OK(ww_session_create(&map[i], rig.driver, &rig.of_map));
		for (uint32_t key = 0; key < 1000; key++)
			OK(ww_session_set(map[i], &key, sizeof key, NULL, SEC, NULL));
	}
	step(&rig, SEC + MS);
	/* On a virtual clock each call counts the same. */
	ck_assert_int_eq(ww_driver_dispatch(rig.driver, 800), 800);
	ck_assert_uint_ge(calls[0], 100);
	ck_assert_uint_ge(calls[1], 500);
	OK(ww_session_destroy(map[1]));
	rig.map = map[0];
	rig_close(&rig);
	ck_assert_uint_eq(calls[0] + calls[1], 2000);
}
END_TEST

START_TEST(a_driver_outlives_several_maps)
{
	struct ww_session *other;
	struct rig rig;

	rig_start(&rig);
	OK(ww_session_create(&other, rig.driver, &rig.of_map));
	OK(ww_session_set(other, "a", 1, (void *)2, SEC, NULL));
	OK(set(&rig, "a", 1, SEC));
	step(&rig, SEC + MS);
	ck_assert_int_eq(ww_driver_dispatch(rig.driver, 1), 1);
	/* Both maps had an expiry queued. The destroyed map's is gone, ours comes. */
	OK(ww_session_destroy(other));
	ck_assert_int_eq(ww_driver_destroy(rig.driver), WW_EBUSY);
	OK(ww_driver_settle(rig.driver));
	ck_assert_uint_eq(gone_calls(), 2);
	ck_assert_uint_eq(gone_log[0].value + gone_log[1].value, 3);
	rig_close(&rig);
	ck_assert_uint_eq(gone_calls(), 2);
}
END_TEST

/* ---- A running gone ------------------------------------------------------------------------------------------- */

static sem_t entered, gate;
static int set_answer, destroy_answer;

/* Waits until it is let go, and then sets its key. */
static void hold_and_set(
    struct ww_session *map, const void *key, size_t length, void *value, enum ww_gone why, void *user)
{
	if ((uintptr_t)value == 1) {
		(void)sem_post(&entered);
		while (sem_wait(&gate))
			continue;
		destroy_answer = ww_session_destroy(map);
	}
	set_answer = ww_session_set(map, key, length, (void *)9, 0, NULL);
	if (set_answer == WW_ECLOSED)
		assert_closed(map);
	note(map, key, length, value, why, user);
}

static void *destroy(void *map)
{
	return (void *)(intptr_t)ww_session_destroy(map);
}

START_TEST(destroy_waits_for_a_running_gone_and_the_map_takes_nothing_new)
{
	struct rig rig;
	pthread_t thread;
	void *answer;

	for (int stopped = 0; stopped < 2; stopped++) {
		OK(sem_init(&entered, 0, 0));
		OK(sem_init(&gate, 0, 0));
		rig_plan_threads(&rig, 1);
		rig.of_map.gone = hold_and_set;
		rig_open(&rig);
		OK(set(&rig, "first", 1, SEC));
		step(&rig, SEC + MS);
		(void)sem_wait(&entered);
		OK(set(&rig, "queued", 2, SEC));
		step(&rig, SEC + MS);
		while (stats(&rig).expired < 2)
			(void)sched_yield();
		OK(set(&rig, "there", 3, SEC));
		if (stopped)
			OK(ww_driver_stop(rig.driver, NULL, NULL, NULL));
		OK(pthread_create(&thread, NULL, destroy, rig.map));
		/* destroy tells gone of the entries in the map and of the queued one, and then waits. */
		while (gone_calls() < 2)
			(void)sched_yield();
		(void)sem_post(&gate);
		OK(pthread_join(thread, &answer));
		ck_assert_int_eq((int)(intptr_t)answer, WW_OK);
		ck_assert_int_eq(destroy_answer, WW_EBUSY);
		ck_assert_int_eq(set_answer, WW_ECLOSED);
		ck_assert_uint_eq(gone_calls(), 3);
		ck_assert_uint_eq(gone_log[0].value, 3);
		ck_assert_int_eq((int)gone_log[0].why, (int)WW_GONE_CLEARED);
		ck_assert_uint_eq(gone_log[1].value, 2);
		ck_assert_int_eq((int)gone_log[1].why, (int)WW_GONE_EXPIRED);
		ck_assert_uint_eq(gone_log[2].value, 1);
		rig.map = NULL;
		rig_close(&rig);
	}
}
END_TEST

static int take_answer;

/* Returns once the map is being destroyed. */
static int load_until_closed(const void *key, size_t length, void **value, uint64_t *ttl, void *context)
{
	(void)ttl;
	(void)sem_post(&entered);
	while (ww_session_get(context, key, length, value) != WW_ECLOSED)
		(void)sched_yield();
	*value = (void *)6;
	return WW_OK;
}

static void take_in_gone(
    struct ww_session *map, const void *key, size_t length, void *value, enum ww_gone why, void *user)
{
	void *unused = NULL;

	if ((uintptr_t)value == 1)
		take_answer = ww_session_take(map, key, length, load_until_closed, map, &unused);
	note(map, key, length, value, why, user);
}

START_TEST(a_value_loaded_while_the_map_is_destroyed_goes_to_gone)
{
	struct rig rig;

	OK(sem_init(&entered, 0, 0));
	rig_plan_threads(&rig, 1);
	rig.of_map.gone = take_in_gone;
	rig_open(&rig);
	OK(set(&rig, "a", 1, SEC));
	step(&rig, SEC + MS);
	(void)sem_wait(&entered);
	rig_close(&rig);
	ck_assert_int_eq(take_answer, WW_ECLOSED);
	ck_assert_uint_eq(gone_calls(), 2);
	ck_assert_uint_eq(gone_log[0].value, 6);
	ck_assert_int_eq((int)gone_log[0].why, (int)WW_GONE_REPLACED);
	ck_assert_uint_eq(gone_log[1].value, 1);
}
END_TEST

static unsigned sets_in_gone;

static void set_until_closed(
    struct ww_session *map, const void *key, size_t length, void *value, enum ww_gone why, void *user)
{
	note(map, key, length, value, why, user);
	if (why != WW_GONE_EXPIRED)
		return;
	(void)sem_post(&entered);
	while (ww_session_set(map, key, length, NULL, 0, NULL) == WW_OK)
		sets_in_gone++;
}

START_TEST(destroy_loses_nothing_that_a_gone_sets_meanwhile)
{
	struct rig rig;

	OK(sem_init(&entered, 0, 0));
	for (int round = 0; round < 200; round++) {
		rig_plan_threads(&rig, 1);
		rig.of_map.gone = set_until_closed;
		rig_open(&rig);
		sets_in_gone = 0;
		ck_assert(set(&rig, "a", 1, SEC) == WW_OK);
		step(&rig, SEC + MS);
		(void)sem_wait(&entered);
		rig_close(&rig);
		ck_assert(gone_calls() == 1 + sets_in_gone);
	}
}
END_TEST

static void destroy_in_gone(
    struct ww_session *map, const void *key, size_t length, void *value, enum ww_gone why, void *user)
{
	ck_assert(ww_session_destroy(map) == WW_EBUSY);
	note(map, key, length, value, why, user);
}

START_TEST(destroy_in_gone_of_a_call_is_refused_and_harmless)
{
	struct rig rig;
	size_t count;

	rig_plan(&rig);
	rig.of_map.gone = destroy_in_gone;
	rig.of_map.limit = 2;
	rig_open(&rig);
	OK(set(&rig, "a", 1, SEC));
	OK(set(&rig, "a", 2, SEC));
	assert_last_gone(1, "a", 1, WW_GONE_REPLACED);
	step(&rig, SEC);
	OK(set(&rig, "a", 3, 0));
	assert_last_gone(2, "a", 2, WW_GONE_EXPIRED);
	OK(set(&rig, "b", 4, 0));
	OK(set(&rig, "c", 5, 0));
	assert_last_gone(3, "a", 3, WW_GONE_EVICTED);
	ck_assert_int_eq(erase(&rig, "b"), 1);
	assert_last_gone(4, "b", 4, WW_GONE_DELETED);
	ck_assert_uint_eq(get(&rig, "c"), 5);
	OK(ww_session_clear(rig.map, &count));
	ck_assert_uint_eq(count, 1);
	assert_last_gone(5, "c", 5, WW_GONE_CLEARED);
	OK(set(&rig, "d", 6, 0));
	OK(set(&rig, "e", 7, 0));
	rig_close(&rig);
	ck_assert_uint_eq(gone_calls(), 7);
}
END_TEST

static void destroy_when_expired(
    struct ww_session *map, const void *key, size_t length, void *value, enum ww_gone why, void *user)
{
	if (why == WW_GONE_EXPIRED) {
		OK(ww_session_destroy(map));
		OK(ww_session_destroy(map));
		destroy_answer++;
		/* Map and key are there until this returns. */
		assert_closed(map);
	} else
		ck_assert(ww_session_destroy(map) == WW_EBUSY);
	note(map, key, length, value, why, user);
}

START_TEST(gone_may_destroy_the_map_of_an_expired_value)
{
	struct rig rig;

	for (int threads = 0; threads < 2; threads++) {
		if (threads)
			rig_plan_threads(&rig, 2);
		else
			rig_plan(&rig);
		rig.of_map.gone = destroy_when_expired;
		rig_open(&rig);
		destroy_answer = 0;
		OK(set(&rig, "a", 1, SEC));
		for (uintptr_t i = 0; i < 100; i++) {
			const char key[] = {(char)('b' + i % 20), (char)('b' + i / 20), 0};
			OK(set(&rig, key, 2, 900 * SEC));
		}
		pass(&rig, 2 * SEC);
		ck_assert_int_eq(destroy_answer, 1);
		/* The others were cleared in it, and it was told last. */
		assert_last_gone(101, "a", 1, WW_GONE_EXPIRED);
		rig.map = NULL;
		rig_close(&rig);
	}
}
END_TEST

/* ---- Two maps: the gone of one may destroy the other */

static struct ww_session *other_map;
static int other_answer;

static void destroy_other_in_gone(
    struct ww_session *map, const void *key, size_t length, void *value, enum ww_gone why, void *user)
{
	if (other_map)
		other_answer = ww_session_destroy(other_map);
	other_map = NULL;
	ck_assert(ww_session_destroy(map) == WW_EBUSY);
	note(map, key, length, value, why, user);
}

START_TEST(gone_may_destroy_another_map)
{
	struct rig rig;

	rig_plan(&rig);
	rig.of_map.gone = destroy_other_in_gone;
	rig_open(&rig);
	OK(ww_session_create(&other_map, rig.driver, NULL));
	OK(set(&rig, "a", 1, 0));
	other_answer = WW_EINVAL;
	ck_assert_int_eq(erase(&rig, "a"), 1);
	OK(other_answer);
	rig_close(&rig);
}
END_TEST

/* ---- A gone that always sets again ---------------------------------------------------------------------------- */

static void set_for_ever(
    struct ww_session *map, const void *key, size_t length, void *value, enum ww_gone why, void *user)
{
	note(map, key, length, value, why, user);
	if (why == WW_GONE_CLEARED)
		set_answer = ww_session_set(map, key, length, (void *)((uintptr_t)value + 100), 0, NULL);
}

START_TEST(clear_and_destroy_end_although_gone_sets_again)
{
	struct rig rig;
	char key[] = "0";
	size_t count;

	rig_plan(&rig);
	rig.of_map.gone = set_for_ever;
	rig.of_map.shards = 3;
	rig_open(&rig);
	for (uintptr_t i = 0; i < 10; i++) {
		key[0] = (char)('0' + i);
		OK(set(&rig, key, i, i % 3 ? 0 : 100 * SEC));
	}
	OK(ww_session_clear(rig.map, &count));
	ck_assert_uint_eq(count, 10);
	ck_assert_uint_eq(gone_calls(), 10);
	for (uintptr_t i = 0; i < 10; i++) {
		key[0] = (char)('0' + i);
		ck_assert_uint_eq(get(&rig, key), i + 100);
	}
	rig_close(&rig);
	ck_assert_int_eq(set_answer, WW_ECLOSED);
	ck_assert_uint_eq(gone_calls(), 20);
}
END_TEST

/* What stats answer while the map is being destroyed. */
static int stats_answer;

static void ask_stats(struct ww_session *map, const void *key, size_t length, void *value, enum ww_gone why, void *user)
{
	struct ww_session_stats now;

	note(map, key, length, value, why, user);
	stats_answer = ww_session_stats(map, &now);
}

START_TEST(what_has_expired_and_was_not_taken_out_is_cleared)
{
	for (int ends = 0; ends < 2; ends++) {
		struct rig rig;
		size_t count = 1;
		rig_plan(&rig);
		rig.of_map.gone = ask_stats;
		rig_open(&rig);
		OK(set(&rig, "a", 1, SEC));
		step(&rig, 2 * SEC);
		stats_answer = WW_EINVAL;
		if (!ends)
			OK(ww_session_clear(rig.map, &count));
		ck_assert_uint_eq(count, 1);
		rig_close(&rig);
		assert_last_gone(1, "a", 1, WW_GONE_CLEARED);
		OK(stats_answer);
	}
}
END_TEST

/* How many entries the map had left when gone was called, and what gone does with the lock that clear gave up. */
struct clearing {
	struct rig rig;
	uint64_t entries;
	uint64_t most_at_once;
	uintptr_t set;
};

static void watch_clear(
    struct ww_session *map, const void *key, size_t length, void *value, enum ww_gone why, void *user)
{
	struct clearing *clearing = user;
	uint64_t entries = stats(&clearing->rig).entries;
	uint64_t name;

	(void)key;
	ck_assert_int_eq((int)why, (int)WW_GONE_CLEARED);
	ck_assert_uint_eq(length, sizeof name);
	if (entries < clearing->entries && clearing->entries - entries > clearing->most_at_once)
		clearing->most_at_once = clearing->entries - entries;
	clearing->entries = entries;
	/* What is set during the clear stays, wherever its record lies. */
	if ((uintptr_t)value > 5000 || (uintptr_t)value % 10)
		return;
	name = 10000 + (uintptr_t)value;
	OK(ww_session_set(map, &name, sizeof name, (void *)(uintptr_t)name, 0, NULL));
	clearing->set++;
	clearing->entries++;
}

START_TEST(clear_gives_the_lock_up_between_some_hundred_entries)
{
	struct clearing clearing = {0};
	struct rig *rig = &clearing.rig;
	size_t count = 0;

	rig_plan(rig);
	rig->of_map.gone = watch_clear;
	rig->of_map.user = &clearing;
	rig_open(rig);
	for (uint64_t key = 1; key <= 5000; key++)
		OK(ww_session_set(rig->map, &key, sizeof key, (void *)(uintptr_t)key, 0, NULL));
	clearing.entries = stats(rig).entries;
	OK(ww_session_clear(rig->map, &count));
	ck_assert_uint_eq(count, 5000);
	ck_assert_uint_gt(clearing.most_at_once, 0);
	ck_assert_uint_le(clearing.most_at_once, 512);
	ck_assert_uint_eq(clearing.set, 500);
	ck_assert_uint_eq(stats(rig).entries, 500);
	OK(ww_session_clear(rig->map, &count));
	ck_assert_uint_eq(count, 500);
	ck_assert_uint_eq(stats(rig).entries, 0);
	rig_close(rig);
}
END_TEST

TEST_MAIN("session/life", the_defaults_are_those_of_the_header, maps_get_turns_by_their_shares,
    create_refuses_values_out_of_range, each_failed_allocation_of_create_leaves_nothing,
    each_failed_allocation_of_set_changes_nothing, a_set_that_fails_in_a_full_map_evicts_nothing,
    after_the_drivers_stop_all_is_refused_and_destroy_tells_gone_of_every_entry, a_driver_outlives_several_maps,
    destroy_waits_for_a_running_gone_and_the_map_takes_nothing_new,
    a_value_loaded_while_the_map_is_destroyed_goes_to_gone, destroy_loses_nothing_that_a_gone_sets_meanwhile,
    gone_may_destroy_the_map_of_an_expired_value, destroy_in_gone_of_a_call_is_refused_and_harmless,
    gone_may_destroy_another_map, what_has_expired_and_was_not_taken_out_is_cleared,
    clear_and_destroy_end_although_gone_sets_again, clear_gives_the_lock_up_between_some_hundred_entries)
