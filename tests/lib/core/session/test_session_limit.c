/* Which entries a limit evicts, and how much jitter adds. */
/* tier: quick */

#include "tests/lib/core/session/fixture.h"

static void start_limited(struct rig *rig, size_t limit)
{
	rig_plan(rig);
	rig->of_map.limit = limit;
	rig_open(rig);
}

static void touch_nothing(void *value, void *context)
{
	(void)value;
	(void)context;
}

static int load_seven(const void *key, size_t length, void **value, uint64_t *ttl, void *context)
{
	(void)key;
	(void)length;
	(void)ttl;
	(void)context;
	*value = (void *)7;
	return WW_OK;
}

static int take(struct rig *rig, const char *key)
{
	void *value;

	return ww_session_take(rig->map, key, strlen(key), load_seven, NULL, &value);
}

START_TEST(the_least_recently_used_entry_is_evicted_and_every_lookup_is_a_use)
{
	struct rig rig;

	start_limited(&rig, 5);
	OK(set(&rig, "get", 1, 0));
	OK(set(&rig, "refresh", 2, 0));
	OK(set(&rig, "look", 3, 0));
	OK(set(&rig, "take", 4, 0));
	OK(set(&rig, "set", 5, 0));
	ck_assert_uint_eq(gone_calls(), 0);
	OK(ww_session_set(rig.map, "set", 3, (void *)5, 0, &(void *){NULL}));
	ck_assert_int_eq(take(&rig, "take"), 1);
	ck_assert_int_eq(ww_session_look(rig.map, "look", 4, touch_nothing, NULL), 1);
	ck_assert_int_eq(refresh(&rig, "refresh", 0), 1);
	ck_assert_uint_eq(get(&rig, "get"), 1);
	/* Now in the order of these uses. time_left is no use, and a miss changes nothing. */
	ck_assert_uint_gt(left(&rig, "set"), 0);
	ck_assert_uint_eq(get(&rig, "missing"), 0);
	static const char *const order[] = {"set", "take", "look", "refresh", "get"};
	for (uintptr_t i = 0; i < 5; i++) {
		char key[] = "new 0";
		key[4] = (char)('0' + i);
		OK(set(&rig, key, 10 + i, 0));
		assert_last_gone(i + 1, order[i], 5 - i, WW_GONE_EVICTED);
		ck_assert_uint_eq(stats(&rig).entries, 5);
	}
	/* A loaded value evicts, too. */
	ck_assert_int_eq(take(&rig, "loaded"), 0);
	assert_last_gone(6, "new 0", 10, WW_GONE_EVICTED);
	ck_assert_uint_eq(get(&rig, "loaded"), 7);
	ck_assert_uint_eq(stats(&rig).evicted, 6);
	rig_close(&rig);
}
END_TEST

START_TEST(a_limit_of_one_keeps_the_newest)
{
	struct rig rig;

	start_limited(&rig, 1);
	for (uintptr_t i = 0; i < 200; i++) {
		char key[24];
		(void)snprintf(key, sizeof key, i % 3 ? "%u" : "long: %017u", (unsigned)i);
		OK(set(&rig, key, i + 1, 0));
		ck_assert_uint_eq(get(&rig, key), i + 1);
		ck_assert_uint_eq(stats(&rig).entries, 1);
		ck_assert_uint_eq(gone_calls(), i);
		if (i) {
			ck_assert_uint_eq(gone_log[i - 1].value, i);
			ck_assert_int_eq((int)gone_log[i - 1].why, (int)WW_GONE_EVICTED);
		}
	}
	rig_close(&rig);
}
END_TEST

START_TEST(replacing_evicts_nothing_and_an_entry_that_leaves_makes_room)
{
	struct rig rig;

	start_limited(&rig, 3);
	OK(set(&rig, "a", 1, 0));
	OK(set(&rig, "b", 2, 0));
	OK(set(&rig, "c", 3, SEC));
	OK(set(&rig, "a", 4, 0));
	assert_last_gone(1, "a", 1, WW_GONE_REPLACED);
	ck_assert_int_eq(erase(&rig, "b"), 1);
	OK(set(&rig, "d", 5, 0));
	pass(&rig, SEC + MS);
	assert_last_gone(3, "c", 3, WW_GONE_EXPIRED);
	OK(set(&rig, "e", 6, 0));
	ck_assert_uint_eq(gone_calls(), 3);
	OK(set(&rig, "f", 7, 0));
	assert_last_gone(4, "a", 4, WW_GONE_EVICTED);
	OK(ww_session_clear(rig.map, NULL));
	ck_assert_uint_eq(gone_calls(), 7);
	for (uintptr_t i = 0; i < 3; i++)
		OK(set(&rig, i == 0 ? "x" : i == 1 ? "y" : "z", i, 0));
	ck_assert_uint_eq(gone_calls(), 7);
	rig_close(&rig);
}
END_TEST

START_TEST(the_limit_is_divided_among_the_shards_rounded_up)
{
	struct rig rig;

	rig_plan(&rig);
	rig.of_map.shards = 8;
	rig.of_map.limit = 801;
	rig_open(&rig);
	for (uintptr_t i = 0; i < 20000; i++) {
		ck_assert(ww_session_set(rig.map, &i, sizeof i, (void *)i, 0, NULL) == WW_OK);
		ck_assert(ww_session_get(rig.map, &i, sizeof i, NULL) == 1);
	}
	ck_assert(stats(&rig).entries == 808);
	ck_assert(gone_calls() == 20000 - 808);
	rig_close(&rig);

	/* Unless told otherwise, a map has no more shards than make sense: a small limit is exact. */
	rig_plan(&rig);
	rig.of_driver.shards = 64;
	rig.of_map.shards = 0;
	rig.of_map.limit = 1000;
	rig_open(&rig);
	for (uintptr_t i = 0; i < 3000; i++)
		ck_assert(ww_session_set(rig.map, &i, sizeof i, (void *)i, 0, NULL) == WW_OK);
	ck_assert(stats(&rig).entries == 1000);
	for (size_t i = 0; i < 2000; i++)
		ck_assert(gone_log[i].value == i);
	rig_close(&rig);

	rig_plan(&rig);
	rig.of_map.shards = 64;
	rig.of_map.limit = SIZE_MAX;
	rig_open(&rig);
	for (uintptr_t i = 0; i < 1000; i++)
		ck_assert(ww_session_set(rig.map, &i, sizeof i, (void *)i, 0, NULL) == WW_OK);
	ck_assert(stats(&rig).entries == 1000);
	rig_close(&rig);
}
END_TEST

/* ---- Jitter --------------------------------------------------------------------------------------------------- */

/* Set 2,000 keys for ten seconds, and find the least and the most time that they get. */
static void spread(uint32_t jitter, uint64_t cap, uint64_t *least, uint64_t *most, size_t *different)
{
	enum { N = 2000, PARTS = 100 };
	unsigned part[PARTS] = {0};
	uint64_t former = 0;
	struct rig rig;

	rig_plan(&rig);
	rig.of_map.jitter = jitter;
	rig.of_map.jitter_max = cap;
	rig.of_map.shards = 3;
	rig_open(&rig);
	*least = UINT64_MAX;
	*most = *different = 0;
	for (uintptr_t i = 0; i < N; i++) {
		uint64_t ns;
		OK(ww_session_set(rig.map, &i, sizeof i, (void *)i, i % 2 ? 0 : 10 * SEC, NULL));
		if (i % 5 == 0)
			ck_assert_int_eq(ww_session_refresh(rig.map, &i, sizeof i, 0, NULL), 1);
		ck_assert_int_eq(ww_session_time_left(rig.map, &i, sizeof i, &ns), 1);
		ck_assert_uint_ge(ns, 10 * SEC);
		*least = ns < *least ? ns : *least;
		*most = ns > *most ? ns : *most;
		*different += ns != former;
		former = ns;
		if (jitter == 1000 && cap == 10 * SEC)
			part[(ns - 10 * SEC) / (SEC / 10 + 1)]++;
	}
	for (size_t i = 0; i < PARTS && jitter == 1000 && cap == 10 * SEC; i++) {
		/* 20 on average. One of these is outside the bounds with a probability below 1e-7. */
		ck_assert_uint_gt(part[i], 0);
		ck_assert_uint_lt(part[i], 60);
	}
	rig_close(&rig);
}

START_TEST(jitter_never_shortens_stays_below_its_cap_and_spreads)
{
	static const struct {
		uint32_t jitter;
		uint64_t cap, most;
	} rows[] = {
	    {0, 60 * SEC, 0},
	    {100, 60 * SEC, SEC},
	    {100, 0, 0},
	    {100, 1, 1},
	    {1000, 10 * SEC, 10 * SEC},
	    {1000, WW_SESSION_TTL_MAX, 10 * SEC},
	    {1000, 3 * SEC, 3 * SEC},
	    {1, SEC, 10 * MS},
	};

	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
		uint64_t least, most;
		size_t different;
		spread(rows[i].jitter, rows[i].cap, &least, &most, &different);
		ck_assert_uint_le(most - 10 * SEC, rows[i].most);
		/* Except with a probability of 1e-13, the least and the most of 2,000 are within 1.5% of the ends. */
		ck_assert_uint_le((least - 10 * SEC) * 200, rows[i].most * 3);
		ck_assert_uint_ge((most - 10 * SEC) * 200, rows[i].most * 197);
		ck_assert_uint_ge(different, rows[i].most > 1 ? 1900 : rows[i].most ? 800 : 0);
	}
}
END_TEST

START_TEST(with_jitter_lookups_end_when_time_left_says)
{
	struct rig rig;

	rig_plan(&rig);
	rig.of_driver.tick_ns = SEC;
	rig.of_map.jitter = 500;
	rig_open(&rig);
	for (int i = 0; i < 200; i++) {
		OK(set(&rig, "a", 1, 300 * MS));
		uint64_t ns = left(&rig, "a");
		ck_assert_uint_ge(ns, 300 * MS);
		ck_assert_uint_le(ns, 450 * MS);
		step(&rig, ns - 1);
		ck_assert_uint_eq(get(&rig, "a"), 1);
		step(&rig, 1);
		ck_assert_uint_eq(get(&rig, "a"), 0);
	}
	/* A refresh does not add jitter to the entry's TTL again and again. */
	for (int i = 0; i < 100; i++) {
		OK(set(&rig, "b", 1, SEC));
		for (int k = 0; k < 10; k++)
			ck_assert_int_eq(refresh(&rig, "b", 0), 1);
		ck_assert_uint_le(left(&rig, "b"), 1500 * MS);
	}
	rig_close(&rig);
}
END_TEST

START_TEST(jitter_may_not_lead_beyond_the_last_time)
{
	struct rig rig;

	rig_plan(&rig);
	rig.of_map.jitter = 1000;
	rig.of_map.jitter_max = 5 * SEC;
	rig_open(&rig);
	OK(ww_clock_virtual_set(rig.clock, WW_DRIVER_TIME_MAX - 20 * SEC));
	OK(set(&rig, "a", 1, 15 * SEC));
	ck_assert_int_eq(set(&rig, "b", 1, 15 * SEC + 1), WW_EOVERFLOW);
	rig_close(&rig);
}
END_TEST

/* Nobody dispatches: what has expired stays until it is put out. */
START_TEST(what_has_expired_is_put_out_before_the_living_and_counts_as_expired)
{
	struct rig rig;

	start_limited(&rig, 4);
	OK(set(&rig, "oldest", 1, 0));
	OK(set(&rig, "second", 2, 2 * SEC));
	OK(set(&rig, "older", 3, 0));
	OK(set(&rig, "first", 4, SEC));
	step(&rig, 3 * SEC);
	OK(set(&rig, "a", 5, 0));
	assert_last_gone(1, "first", 4, WW_GONE_EXPIRED);
	OK(set(&rig, "b", 6, 0));
	assert_last_gone(2, "second", 2, WW_GONE_EXPIRED);
	ck_assert_uint_eq(stats(&rig).expired, 2);
	ck_assert_uint_eq(stats(&rig).evicted, 0);
	OK(set(&rig, "c", 7, 0));
	assert_last_gone(3, "oldest", 1, WW_GONE_EVICTED);
	ck_assert_uint_eq(stats(&rig).evicted, 1);
	ck_assert_uint_eq(get(&rig, "older"), 3);
	/* The driver has nothing left to do, and what comes due later still expires. */
	OK(ww_driver_settle(rig.driver));
	ck_assert_uint_eq(gone_calls(), 3);
	pass(&rig, 10 * SEC + MS);
	ck_assert_uint_eq(gone_calls(), 7);
	ck_assert_uint_eq(stats(&rig).entries, 0);
	ck_assert_uint_eq(stats(&rig).expired, 6);
	rig_close(&rig);
}
END_TEST

/* In the rest of its tick the wheel does not know yet that it has expired. */
START_TEST(the_least_recently_used_that_has_expired_within_its_tick_counts_as_expired)
{
	struct rig rig;

	start_limited(&rig, 1);
	OK(set(&rig, "a", 1, MS / 4));
	step(&rig, MS / 4);
	OK(set(&rig, "b", 2, 0));
	assert_last_gone(1, "a", 1, WW_GONE_EXPIRED);
	ck_assert_uint_eq(stats(&rig).expired, 1);
	ck_assert_uint_eq(stats(&rig).evicted, 0);
	rig_close(&rig);
}
END_TEST

START_TEST(a_clock_that_was_stepped_back_evicts_by_use)
{
	struct rig rig;

	start_limited(&rig, 2);
	OK(set(&rig, "a", 1, 0));
	OK(set(&rig, "b", 2, SEC));
	pass(&rig, SEC / 2);
	OK(ww_clock_virtual_set(rig.clock, START - 100 * SEC));
	OK(set(&rig, "c", 3, SEC));
	assert_last_gone(1, "a", 1, WW_GONE_EVICTED);
	pass(&rig, SEC + MS);
	assert_last_gone(2, "c", 3, WW_GONE_EXPIRED);
	ck_assert_uint_eq(left(&rig, "b"), 100 * SEC - MS);
	rig_close(&rig);
}
END_TEST

TEST_MAIN("session/limit", the_least_recently_used_entry_is_evicted_and_every_lookup_is_a_use,
    a_limit_of_one_keeps_the_newest, replacing_evicts_nothing_and_an_entry_that_leaves_makes_room,
    the_limit_is_divided_among_the_shards_rounded_up, jitter_never_shortens_stays_below_its_cap_and_spreads,
    with_jitter_lookups_end_when_time_left_says, jitter_may_not_lead_beyond_the_last_time,
    what_has_expired_is_put_out_before_the_living_and_counts_as_expired,
    the_least_recently_used_that_has_expired_within_its_tick_counts_as_expired,
    a_clock_that_was_stepped_back_evicts_by_use)
