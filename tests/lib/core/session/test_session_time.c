/* When values expire: to the nanosecond for lookups, in their tick for gone, whatever happens meanwhile. */
/* tier: quick */

#include <semaphore.h>

#include "tests/lib/core/session/fixture.h"

/* A tick of a second, which lookups must not depend on. */
static void start_coarse(struct rig *rig)
{
	rig_plan(rig);
	rig->of_driver.tick_ns = SEC;
	rig_open(rig);
}

START_TEST(a_lookup_never_finds_an_expired_value_however_coarse_the_tick)
{
	struct rig rig;

	start_coarse(&rig);
	for (int round = 0; round < 40; round++) {
		ck_assert(set(&rig, "a", 1, 300 * MS) == WW_OK);
		for (uint64_t ms = 0; ms < 300; ms++) {
			ck_assert(get(&rig, "a") == 1);
			ck_assert(left(&rig, "a") == (300 - ms) * MS);
			step(&rig, MS);
		}
		for (uint64_t ms = 300; ms < 1350; ms++) {
			ck_assert(get(&rig, "a") == 0);
			ck_assert(left(&rig, "a") == 0);
			ck_assert(refresh(&rig, "a", 0) == 0);
			ck_assert(refresh(&rig, "a", SEC) == 0);
			ck_assert(erase(&rig, "a") == 0);
			ck_assert(ww_session_look(rig.map, "a", 1, look_never, NULL) == 0);
			step(&rig, MS);
		}
		/* The driver has not run yet. If it runs now, it is late. */
		if (round % 2)
			OK(ww_driver_settle(rig.driver));
	}
	rig_close(&rig);
	ck_assert(gone_calls() == 40);
}
END_TEST

START_TEST(the_deadline_is_exact_to_a_nanosecond_for_every_tick)
{
	static const uint64_t ticks[] = {1000, 1001, MS, 7 * MS + 3, SEC, 2 * SEC + 1, WW_SESSION_TICK_MAX};
	static const uint64_t ttls[] = {1, 2, 999, 1000, 1001, MS - 1, MS, 300 * MS, SEC, 86400 * SEC + 1};

	for (size_t t = 0; t < sizeof ticks / sizeof ticks[0]; t++) {
		struct rig rig;
		rig_plan(&rig);
		rig.of_driver.tick_ns = ticks[t];
		rig_open(&rig);
		for (size_t i = 0; i < sizeof ttls / sizeof ttls[0]; i++) {
			OK(set(&rig, "a", 1, ttls[i]));
			ck_assert_uint_eq(left(&rig, "a"), ttls[i]);
			step(&rig, ttls[i] - 1);
			ck_assert_uint_eq(get(&rig, "a"), 1);
			if (i % 2)
				OK(ww_driver_settle(rig.driver));
			ck_assert_uint_eq(gone_calls(), i);
			ck_assert_uint_eq(get(&rig, "a"), 1);
			step(&rig, 1);
			ck_assert_uint_eq(get(&rig, "a"), 0);
			pass(&rig, ticks[t]);
			assert_last_gone(i + 1, "a", 1, WW_GONE_EXPIRED);
		}
		rig_close(&rig);
	}
}
END_TEST

START_TEST(setting_an_expired_key_tells_gone_and_returns_no_former_value)
{
	struct rig rig;
	void *former = &rig;

	start_coarse(&rig);
	OK(set(&rig, "a", 1, 300 * MS));
	step(&rig, 300 * MS);
	OK(ww_session_set(rig.map, "a", 1, (void *)2, 300 * MS, &former));
	ck_assert_ptr_null(former);
	assert_last_gone(1, "a", 1, WW_GONE_EXPIRED);
	ck_assert_uint_eq(stats(&rig).expired, 1);
	ck_assert_uint_eq(stats(&rig).entries, 1);
	ck_assert_uint_eq(left(&rig, "a"), 300 * MS);
	step(&rig, 300 * MS - 1);
	ck_assert_uint_eq(get(&rig, "a"), 2);
	pass(&rig, 1 + SEC);
	assert_last_gone(2, "a", 2, WW_GONE_EXPIRED);
	rig_close(&rig);
}
END_TEST

START_TEST(an_expiry_on_its_way_leaves_a_newer_value_alone)
{
	struct rig rig;
	void *former = &rig;

	rig_start(&rig);
	OK(set(&rig, "first", 1, SEC));
	OK(set(&rig, "a", 2, SEC + 2 * MS));
	step(&rig, SEC + 4 * MS);
	ck_assert_int_eq(ww_driver_dispatch(rig.driver, 1), 1);
	assert_last_gone(1, "first", 1, WW_GONE_EXPIRED);
	/* a's expiry is in the queue. */
	ck_assert_uint_eq(stats(&rig).expired, 2);
	ck_assert_uint_eq(get(&rig, "a"), 0);
	OK(ww_session_set(rig.map, "a", 1, (void *)3, 5 * SEC, &former));
	ck_assert_ptr_null(former);
	ck_assert_uint_eq(gone_calls(), 1);
	OK(ww_driver_settle(rig.driver));
	assert_last_gone(2, "a", 2, WW_GONE_EXPIRED);
	ck_assert_uint_eq(get(&rig, "a"), 3);
	ck_assert_uint_eq(left(&rig, "a"), 5 * SEC);
	pass(&rig, 5 * SEC + MS);
	assert_last_gone(3, "a", 3, WW_GONE_EXPIRED);
	rig_close(&rig);
}
END_TEST

/* Nobody dispatches in between. */
START_TEST(what_is_due_is_not_counted)
{
	struct rig rig;
	const char *const keys[] = {"a", "b", "c"};

	rig_plan(&rig);
	rig.of_map.shards = 4;
	rig_open(&rig);
	for (unsigned i = 0; i < 3; i++)
		OK(set(&rig, keys[i], i + 1, (i + 1) * SEC));
	for (unsigned i = 0; i < 3; i++) {
		step(&rig, SEC + (i == 0) * MS);
		ck_assert_uint_eq(get(&rig, keys[i]), 0);
		ck_assert_uint_eq(stats(&rig).entries, 2 - i);
		ck_assert_uint_eq(stats(&rig).expired, i + 1);
	}
	/* It is only told later, and once. */
	ck_assert_uint_eq(gone_calls(), 0);
	OK(ww_driver_settle(rig.driver));
	assert_last_gone(3, "c", 3, WW_GONE_EXPIRED);
	rig_close(&rig);
}
END_TEST

/* A gone that holds its worker until it is let go. */
static sem_t entered, gate;

static void hold(struct ww_session *map, const void *key, size_t length, void *value, enum ww_gone why, void *user)
{
	if ((uintptr_t)value == 1) {
		(void)sem_post(&entered);
		(void)sem_wait(&gate);
	}
	note(map, key, length, value, why, user);
}

START_TEST(an_expiry_behind_a_blocked_worker_leaves_a_newer_value_alone)
{
	struct rig rig;

	OK(sem_init(&entered, 0, 0));
	OK(sem_init(&gate, 0, 0));
	rig_plan_threads(&rig, 1);
	rig.of_map.gone = hold;
	rig_open(&rig);
	OK(set(&rig, "first", 1, SEC));
	step(&rig, SEC + MS);
	(void)sem_wait(&entered);
	OK(set(&rig, "a", 2, SEC));
	OK(set(&rig, "first", 4, SEC));
	step(&rig, SEC + MS);
	while (stats(&rig).expired < 3)
		(void)sched_yield();
	ck_assert_uint_eq(get(&rig, "a"), 0);
	ck_assert_uint_eq(get(&rig, "first"), 0);
	OK(set(&rig, "a", 3, 5 * SEC));
	(void)sem_post(&gate);
	OK(ww_driver_settle(rig.driver));
	ck_assert_uint_eq(gone_calls(), 3);
	ck_assert_uint_eq(gone_log[0].value, 1);
	ck_assert_uint_eq(gone_log[1].value + gone_log[2].value, 6);
	ck_assert_uint_eq(get(&rig, "a"), 3);
	pass(&rig, 5 * SEC + MS);
	assert_last_gone(4, "a", 3, WW_GONE_EXPIRED);
	rig_close(&rig);
}
END_TEST

static void count_call(struct ww_driver *driver, const struct ww_firing *firing, void *user)
{
	(void)driver;
	(void)firing;
	++*(_Atomic int *)user;
}

START_TEST(an_expiry_that_finds_the_queue_full_waits_although_the_driver_drops)
{
	struct ww_driver_stats of_driver;
	struct rig rig;
	char key[] = "00";
	_Atomic int fired = 0;

	OK(sem_init(&entered, 0, 0));
	OK(sem_init(&gate, 0, 0));
	rig_plan_threads(&rig, 1);
	rig.of_driver.queue = 2;
	rig.of_driver.flags = WW_DRIVER_DROP;
	rig.of_map.gone = hold;
	rig_open(&rig);
	OK(set(&rig, "first", 1, SEC));
	step(&rig, SEC + MS);
	(void)sem_wait(&entered);
	for (uintptr_t i = 0; i < 100; i++) {
		key[0] = (char)('0' + i / 10);
		key[1] = (char)('0' + i % 10);
		OK(set(&rig, key, 2, SEC));
	}
	step(&rig, SEC + MS);
	do
		OK(ww_driver_stats(rig.driver, &of_driver));
	while (of_driver.queued < 2);
	/*
	 * The driver's own timers have places of their own, and are dropped when those are taken. Once that happened,
	 * the driver has looked at the map, too.
	 */
	for (int i = 0; i < 3; i++)
		OK(ww_driver_schedule(rig.driver, 0, count_call, &fired, NULL));
	step(&rig, MS);
	do
		OK(ww_driver_stats(rig.driver, &of_driver));
	while (of_driver.dropped == 0);
	ck_assert_uint_eq(of_driver.queued, 4);
	ck_assert_uint_eq(stats(&rig).expired, 3);
	ck_assert_uint_eq(get(&rig, "99"), 0);
	(void)sem_post(&gate);
	OK(ww_driver_settle(rig.driver));
	ck_assert_uint_eq(gone_calls(), 101);
	ck_assert_int_eq(fired, 2);
	rig_close(&rig);
}
END_TEST

START_TEST(a_late_removal_leaves_the_newer_timer_alone)
{
	struct rig rig;

	rig_start(&rig);
	/*
	 * The old deadlines of deleted, replaced and evicted entries come while newer entries have their memory and
	 * keys.
	 */
	for (uintptr_t i = 1; i <= 50; i++) {
		OK(set(&rig, "a", 2 * i, 100 * MS));
		ck_assert_int_eq(erase(&rig, "a"), 1);
		OK(set(&rig, "a", 2 * i + 1, 10 * SEC));
		pass(&rig, 99 * MS + (i % 3) * MS);
		ck_assert_uint_eq(get(&rig, "a"), 2 * i + 1);
		ck_assert_int_eq(erase(&rig, "a"), 1);
	}
	ck_assert_uint_eq(gone_calls(), 100);
	for (size_t i = 0; i < 100; i++)
		ck_assert_int_eq((int)gone_log[i].why, (int)WW_GONE_DELETED);
	OK(set(&rig, "b", 1, 100 * MS));
	OK(set(&rig, "b", 2, 10 * SEC));
	pass(&rig, SEC);
	ck_assert_uint_eq(get(&rig, "b"), 2);
	OK(set(&rig, "b", 3, 100 * MS));
	pass(&rig, 102 * MS);
	assert_last_gone(103, "b", 3, WW_GONE_EXPIRED);
	rig_close(&rig);
}
END_TEST

/* Sets the key that just left again, with a value 10 higher, up to 50. */
static void set_again(struct ww_session *map, const void *key, size_t length, void *value, enum ww_gone why, void *user)
{
	uintptr_t next = (uintptr_t)value + 10;

	note(map, key, length, value, why, user);
	if (next < 50)
		ck_assert_int_eq(ww_session_set(map, key, length, (void *)next, 100 * MS, NULL), *(int *)user);
}

START_TEST(gone_may_set_the_same_key)
{
	struct rig rig;
	int answer = WW_OK;

	for (int threads = 0; threads < 2; threads++) {
		if (threads)
			rig_plan_threads(&rig, 2);
		else
			rig_plan(&rig);
		rig.of_map.gone = set_again;
		rig.of_map.user = &answer;
		rig_open(&rig);
		OK(set(&rig, "a", 11, 100 * MS));
		pass(&rig, 101 * MS);
		assert_last_gone(1, "a", 11, WW_GONE_EXPIRED);
		ck_assert_uint_eq(get(&rig, "a"), 21);
		ck_assert_int_eq(erase(&rig, "a"), 1);
		assert_last_gone(2, "a", 21, WW_GONE_DELETED);
		ck_assert_uint_eq(get(&rig, "a"), 31);
		OK(ww_session_clear(rig.map, NULL));
		assert_last_gone(3, "a", 31, WW_GONE_CLEARED);
		ck_assert_uint_eq(get(&rig, "a"), 41);
		OK(set(&rig, "a", 39, SEC));
		assert_last_gone(4, "a", 41, WW_GONE_REPLACED);
		OK(set(&rig, "a", 51, SEC));
		/* gone gets 39 and sets 49, which replaces 51. */
		ck_assert_uint_eq(gone_calls(), 6);
		ck_assert_uint_eq(get(&rig, "a"), 49);
		rig_close(&rig);
		assert_last_gone(7, "a", 49, WW_GONE_CLEARED);
	}
}
END_TEST

START_TEST(a_thousand_of_a_hundred_thousand_entries_leave_within_their_tick)
{
	struct rig rig;
	size_t many = 100000;

	rig_plan(&rig);
	rig.of_map.shards = 4;
	rig.of_driver.queue = 100; /* fewer than expire at once */
	rig_open(&rig);
	for (uintptr_t i = 0; i < many; i++) {
		uintptr_t key = i;
		uint64_t ttl = i % 100 == 7 ? 3600 * SEC : 3600 * SEC + (1 + i) * 10 * MS;
		ck_assert(ww_session_set(rig.map, &key, sizeof key, (void *)i, ttl, NULL) == WW_OK);
	}
	pass(&rig, 3600 * SEC - 1);
	ck_assert(gone_calls() == 0);
	pass(&rig, 1 + MS);
	ck_assert(gone_calls() == 1000);
	unsigned char *seen = calloc(many, 1);
	for (size_t i = 0; i < 1000; i++) {
		ck_assert(gone_log[i].value % 100 == 7);
		ck_assert((int)gone_log[i].why == (int)WW_GONE_EXPIRED);
		ck_assert(seen[gone_log[i].value]++ == 0);
	}
	free(seen);
	ck_assert(stats(&rig).entries == many - 1000);
	pass(&rig, 86400 * SEC);
	ck_assert(gone_calls() == many);
	rig_close(&rig);
}
END_TEST

START_TEST(a_clock_stepped_back_delays_expiries_and_loses_none)
{
	struct rig rig;

	rig_start(&rig);
	OK(set(&rig, "a", 1, 10 * SEC));
	pass(&rig, 9 * SEC);
	OK(ww_clock_virtual_set(rig.clock, START - 100 * SEC));
	ck_assert_uint_eq(left(&rig, "a"), 110 * SEC);
	OK(set(&rig, "b", 2, 5 * SEC)); /* before the driver has noticed the step */
	OK(ww_driver_settle(rig.driver));
	OK(set(&rig, "c", 3, 6 * SEC));
	ck_assert_uint_eq(left(&rig, "b"), 5 * SEC);
	pass(&rig, 5 * SEC + MS);
	assert_last_gone(1, "b", 2, WW_GONE_EXPIRED);
	pass(&rig, SEC);
	assert_last_gone(2, "c", 3, WW_GONE_EXPIRED);
	ck_assert_uint_eq(get(&rig, "a"), 1);
	pass(&rig, 110 * SEC);
	assert_last_gone(3, "a", 1, WW_GONE_EXPIRED);
	/* It expires, and the clock goes back before the driver notices: it lives again. */
	OK(set(&rig, "d", 4, SEC));
	step(&rig, 2 * SEC);
	ck_assert_uint_eq(get(&rig, "d"), 0);
	OK(ww_clock_virtual_set(rig.clock, START));
	ck_assert_uint_eq(get(&rig, "d"), 4);
	rig_close(&rig);
}
END_TEST

START_TEST(a_deadline_beyond_the_last_time_is_refused)
{
	struct rig rig;

	rig_start(&rig);
	OK(ww_clock_virtual_set(rig.clock, WW_DRIVER_TIME_MAX - 20 * SEC));
	OK(set(&rig, "a", 1, 20 * SEC));
	OK(set(&rig, "b", 2, 5 * SEC));
	ck_assert_int_eq(set(&rig, "c", 3, 20 * SEC + 1), WW_EOVERFLOW);
	step(&rig, SEC);
	/* Its own TTL of 20 s is too long by now. The map's 10 s would not be. */
	ck_assert_int_eq(refresh(&rig, "a", 0), WW_EOVERFLOW);
	ck_assert_uint_eq(left(&rig, "a"), 19 * SEC);
	step(&rig, 3 * SEC);
	ck_assert_int_eq(refresh(&rig, "b", 0), 1);
	step(&rig, 4 * SEC);
	/* b's own 5 s are not too long. From 10 s before the end the map's TTL would be. */
	step(&rig, 4 * SEC - SEC);
	ck_assert_uint_eq(left(&rig, "a"), 9 * SEC);
	ck_assert_int_eq(refresh(&rig, "nobody", 0), 0);
	ck_assert_int_eq(set(&rig, "c", 3, 0), WW_EOVERFLOW);
	OK(set(&rig, "d", 4, 5 * SEC));
	ck_assert_int_eq(refresh(&rig, "d", 0), 1);
	ck_assert_int_eq(refresh(&rig, "d", 9 * SEC + 1), WW_EOVERFLOW);
	OK(ww_clock_virtual_set(rig.clock, WW_CLOCK_MAX));
	ck_assert_int_eq(set(&rig, "c", 3, 1), WW_EOVERFLOW);
	ck_assert_uint_eq(get(&rig, "d"), 0);
	rig_close(&rig);
}
END_TEST

START_TEST(without_gone_expired_values_are_forgotten)
{
	struct rig rig;
	char key[64];

	rig_plan(&rig);
	rig.of_map.gone = NULL;
	rig_open(&rig);
	for (uintptr_t i = 0; i < 1000; i++) {
		(void)snprintf(key, sizeof key, "%u, and a key longer than sixteen bytes", (unsigned)i);
		OK(set(&rig, key, i, (1 + i) * MS));
	}
	pass(&rig, 500 * MS + MS);
	ck_assert_uint_eq(stats(&rig).expired, 500);
	ck_assert_uint_eq(stats(&rig).entries, 500);
	ck_assert_int_eq(erase(&rig, key), 1);
	rig_close(&rig);
}
END_TEST

TEST_MAIN("session/time", a_lookup_never_finds_an_expired_value_however_coarse_the_tick,
    the_deadline_is_exact_to_a_nanosecond_for_every_tick, setting_an_expired_key_tells_gone_and_returns_no_former_value,
    an_expiry_on_its_way_leaves_a_newer_value_alone, what_is_due_is_not_counted,
    an_expiry_behind_a_blocked_worker_leaves_a_newer_value_alone,
    an_expiry_that_finds_the_queue_full_waits_although_the_driver_drops, a_late_removal_leaves_the_newer_timer_alone,
    gone_may_set_the_same_key, a_thousand_of_a_hundred_thousand_entries_leave_within_their_tick,
    a_clock_stepped_back_delays_expiries_and_loses_none, a_deadline_beyond_the_last_time_is_refused,
    without_gone_expired_values_are_forgotten)
