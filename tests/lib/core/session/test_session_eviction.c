/*
 * What a full map keeps: weights, pinned entries, and admission by use, which a scan cannot flush. The last test prints
 * the hit rates that docs/measurements.md quotes.
 */
/* tier: quick */

#include <math.h>

#include "tests/lib/core/session/fixture.h"

static int put(struct rig *rig, const char *key, uintptr_t value, uint64_t weight, uint32_t flags)
{
	struct ww_session_order order = {.weight = weight, .flags = flags};

	return ww_session_put(rig->map, key, strlen(key), (void *)value, &order, NULL, NULL);
}

static struct ww_session_found find(struct rig *rig, const char *key)
{
	struct ww_session_found found;

	ck_assert_int_eq(ww_session_find(rig->map, key, strlen(key), &found), 1);
	return found;
}

/* ---- Weights ---------------------------------------------------------------------------------------------------- */

static void start_weighted(struct rig *rig, uint64_t weight_limit, size_t limit)
{
	rig_plan(rig);
	rig->of_map.weight_limit = weight_limit;
	rig->of_map.limit = limit;
	rig_open(rig);
}

START_TEST(the_heaviest_load_is_the_limit)
{
	struct rig rig;

	start_weighted(&rig, 100, 0);
	OK(put(&rig, "a", 1, 40, 0));
	OK(put(&rig, "b", 2, 40, 0));
	OK(set(&rig, "c", 3, 0)); /* weighs 1 */
	ck_assert_uint_eq(stats(&rig).weight, 81);
	OK(put(&rig, "d", 4, 19, 0));
	ck_assert_uint_eq(gone_calls(), 0);
	ck_assert_uint_eq(get(&rig, "a"), 1);
	/* Two have to go for one. */
	OK(put(&rig, "e", 5, 41, 0));
	ck_assert_uint_eq(gone_calls(), 2);
	ck_assert_uint_eq(stats(&rig).evicted, 2);
	ck_assert_uint_eq(get(&rig, "b"), 0);
	ck_assert_uint_eq(get(&rig, "c"), 0);
	ck_assert_uint_eq(stats(&rig).weight, 100);
	ck_assert_uint_eq(find(&rig, "e").weight, 41);
	/* An entry that is replaced weighs what the new one does. */
	OK(put(&rig, "e", 6, 10, 0));
	ck_assert_uint_eq(stats(&rig).weight, 69);
	OK(set(&rig, "e", 6, 0));
	ck_assert_uint_eq(stats(&rig).weight, 60);
	OK(put(&rig, "e", 6, 10, 0));
	OK(ww_session_rename(rig.map, "e", 1, "f", 1, NULL, NULL, NULL));
	ck_assert_uint_eq(find(&rig, "f").weight, 10);
	ck_assert_int_eq(erase(&rig, "f"), 1);
	ck_assert_uint_eq(stats(&rig).weight, 59);
	OK(put(&rig, "g", 7, 100, 0));
	ck_assert_uint_eq(stats(&rig).entries, 1);
	ck_assert_int_eq(put(&rig, "h", 8, 101, 0), WW_ETOOBIG);
	ck_assert_uint_eq(get(&rig, "g"), 7);
	pass(&rig, 10 * SEC + MS);
	ck_assert_uint_eq(stats(&rig).weight, 0);
	rig_close(&rig);
}
END_TEST

START_TEST(a_call_puts_out_a_bounded_number)
{
	struct rig rig;

	start_weighted(&rig, 1000, 0);
	for (unsigned i = 0; i < 1000; i++) {
		char key[8];
		(void)snprintf(key, sizeof key, "%u", i);
		OK(put(&rig, key, i + 1, 1, 0));
	}
	OK(put(&rig, "big", 5000, 1000, 0));
	ck_assert_uint_eq(gone_calls(), 256);
	ck_assert_uint_eq(stats(&rig).weight, 1744);
	for (int i = 0; i < 3; i++)
		OK(put(&rig, "big", 5000, 1000, 0));
	ck_assert_uint_eq(stats(&rig).weight, 1000);
	ck_assert_uint_eq(stats(&rig).entries, 1);
	rig_close(&rig);
}
END_TEST

START_TEST(both_limits_hold_and_maps_without_refuse)
{
	struct rig rig;

	start_weighted(&rig, 100, 2);
	OK(put(&rig, "a", 1, 1, 0));
	OK(put(&rig, "b", 2, 1, 0));
	OK(put(&rig, "c", 3, 1, 0));
	assert_last_gone(1, "a", 1, WW_GONE_EVICTED);
	rig_close(&rig);
	rig_start(&rig);
	OK(put(&rig, "a", 1, 1000, 0)); /* a weight is ignored */
	ck_assert_uint_eq(find(&rig, "a").weight, 0);
	ck_assert_int_eq(put(&rig, "b", 1, 0, WW_SESSION_PINNED), WW_EINVAL);
	rig.of_map.flags = WW_SESSION_ADMIT;
	struct ww_session *other;
	ck_assert_int_eq(ww_session_create(&other, rig.driver, &rig.of_map), WW_EINVAL);
	rig.of_map.flags = 0;
	rig.of_map.weight_limit = UINT64_MAX;
	ck_assert_int_eq(ww_session_create(&other, rig.driver, &rig.of_map), WW_EINVAL);
	rig.of_map.weight_limit = (UINT64_C(1) << 62) + 1;
	ck_assert_int_eq(ww_session_create(&other, rig.driver, &rig.of_map), WW_EINVAL);
	rig.of_map.weight_limit--;
	OK(ww_session_create(&other, rig.driver, &rig.of_map));
	const struct ww_session_order whole = {.weight = rig.of_map.weight_limit, .flags = WW_SESSION_PINNED};
	OK(ww_session_put(other, "a", 1, NULL, &whole, NULL, NULL));
	ck_assert_int_eq(ww_session_put(other, "b", 1, NULL, &whole, NULL, NULL), WW_ENOMEM);
	OK(ww_session_put(other, "a", 1, NULL, &whole, NULL, NULL));
	OK(ww_session_destroy(other));
	rig_close(&rig);
}
END_TEST

START_TEST(few_shards_divide_a_small_limit_of_weight)
{
	struct rig rig;

	rig_plan(&rig);
	rig.of_driver.shards = 8;
	rig.of_map.shards = 0;
	rig.of_map.weight_limit = 8191;
	rig_open(&rig);
	OK(put(&rig, "a", 1, 8191, 0)); /* one shard */
	rig_close(&rig);
	rig_plan(&rig);
	rig.of_driver.shards = 8;
	rig.of_map.shards = 0;
	rig.of_map.weight_limit = 8192;
	rig_open(&rig);
	OK(put(&rig, "a", 1, 4096, 0)); /* two */
	ck_assert_int_eq(put(&rig, "b", 2, 4097, 0), WW_ETOOBIG);
	rig_close(&rig);
}
END_TEST

/* ---- Pins ------------------------------------------------------------------------------------------------------- */

static void pins(uint32_t flags)
{
	struct rig rig;

	rig_plan(&rig);
	rig.of_map.limit = 3;
	rig.of_map.flags = flags;
	rig_open(&rig);
	OK(put(&rig, "a", 1, 0, WW_SESSION_PINNED));
	OK(put(&rig, "b", 2, 0, 0));
	OK(put(&rig, "c", 3, 0, WW_SESSION_PINNED));
	ck_assert_uint_eq(find(&rig, "a").flags, WW_SESSION_PINNED);
	for (uintptr_t i = 0; i < 20; i++) {
		char key[8];
		(void)snprintf(key, sizeof key, "%u", (unsigned)i);
		OK(put(&rig, key, 10 + i, 0, 0));
		ck_assert_uint_eq(get(&rig, key), 10 + i);
		ck_assert_uint_eq(stats(&rig).entries, 3);
	}
	ck_assert_uint_eq(get(&rig, "a"), 1);
	ck_assert_uint_eq(get(&rig, "c"), 3);
	OK(put(&rig, "d", 4, 0, WW_SESSION_PINNED));
	ck_assert_uint_eq(stats(&rig).pinned, 3);
	/* Pinned entries leave no room, but they can be replaced, renamed and deleted. */
	size_t before = gone_calls();
	ck_assert_int_eq(put(&rig, "e", 5, 0, 0), WW_ENOMEM);
	ck_assert_int_eq(set(&rig, "e", 5, 0), WW_ENOMEM);
	ck_assert_uint_eq(gone_calls(), before);
	OK(ww_session_rename(rig.map, "d", 1, "D", 1, NULL, NULL, NULL));
	ck_assert_uint_eq(find(&rig, "D").flags, WW_SESSION_PINNED);
	OK(put(&rig, "c", 6, 0, WW_SESSION_PINNED));
	OK(set(&rig, "a", 7, 0)); /* and so it is pinned no more */
	ck_assert_uint_eq(stats(&rig).pinned, 2);
	OK(set(&rig, "e", 5, 0));
	assert_last_gone(before + 3, "a", 7, WW_GONE_EVICTED);
	/* A pinned entry expires as others do. */
	pass(&rig, 10 * SEC + MS);
	ck_assert_uint_eq(stats(&rig).entries, 0);
	ck_assert_uint_eq(stats(&rig).pinned, 0);
	rig_close(&rig);
}

START_TEST(a_pinned_entry_is_never_evicted)
{
	pins(0);
	pins(WW_SESSION_ADMIT);
}
END_TEST

START_TEST(pinned_weight_leaves_no_room)
{
	struct rig rig;

	start_weighted(&rig, 10, 0);
	OK(put(&rig, "a", 1, 6, WW_SESSION_PINNED));
	OK(put(&rig, "b", 2, 4, 0));
	ck_assert_int_eq(put(&rig, "c", 3, 5, 0), WW_ENOMEM);
	ck_assert_uint_eq(get(&rig, "b"), 2);
	OK(put(&rig, "a", 4, 9, WW_SESSION_PINNED));
	ck_assert_uint_eq(get(&rig, "b"), 0);
	ck_assert_uint_eq(stats(&rig).weight, 9);
	rig_close(&rig);
}
END_TEST

/* What was there before a restart is taken back: the limit refuses nothing and puts out nothing. */
static void beyond(uint32_t flags, uint32_t pinned)
{
	struct rig rig;

	rig_plan(&rig);
	rig.of_map.limit = 300;
	rig.of_map.weight_limit = 300;
	rig.of_map.flags = flags;
	rig_open(&rig);
	for (unsigned i = 0; i < 1000; i++) {
		char key[8];
		(void)snprintf(key, sizeof key, "%u", i);
		OK(put(&rig, key, i + 1, 1, pinned | WW_SESSION_BEYOND));
	}
	ck_assert_uint_eq(gone_calls(), 0);
	ck_assert_uint_eq(stats(&rig).entries, 1000);
	ck_assert_int_eq(put(&rig, "big", 1, 301, WW_SESSION_BEYOND), WW_ETOOBIG);
	if (pinned) {
		/* A touch of what is there makes it no heavier. */
		OK(put(&rig, "7", 8, 1, pinned));
		ck_assert_int_eq(put(&rig, "7", 8, 2, pinned), WW_ENOMEM);
		ck_assert_int_eq(put(&rig, "new", 1, 1, pinned), WW_ENOMEM);
		ck_assert_uint_eq(stats(&rig).entries, 1000);
	} else {
		for (int i = 0; i < 3; i++)
			OK(put(&rig, "999", 1000, 1, 0));
		ck_assert_uint_eq(stats(&rig).entries, 300);
		ck_assert_uint_eq(get(&rig, "999"), 1000);
	}
	rig_close(&rig);
}

START_TEST(beyond_the_limit_nothing_is_refused_or_put_out)
{
	beyond(0, 0);
	beyond(WW_SESSION_ADMIT, 0);
	beyond(0, WW_SESSION_PINNED);
}
END_TEST

/* ---- Admission -------------------------------------------------------------------------------------------------- */

#define POPULAR 20000u
#define LIMIT 1000u
#define ROUNDS 150
#define ASKED 2000
#define SCANNED 2000

static double until[POPULAR]; /* of a Zipf distribution with the exponent 0.9, summed up */

static void make_zipf(void)
{
	double sum = 0;

	for (unsigned i = 0; i < POPULAR; i++)
		until[i] = sum += pow(i + 1, -0.9);
}

static uint64_t popular_key(uint64_t *random)
{
	double at = (double)seed_below(random, UINT64_C(1) << 40) / (double)(UINT64_C(1) << 40) * until[POPULAR - 1];
	unsigned low = 0;
	unsigned high = POPULAR - 1;

	while (low < high) {
		unsigned middle = (low + high) / 2;
		if (until[middle] < at)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static int ask(struct rig *rig, uint64_t key)
{
	int hit = ww_session_get(rig->map, &key, sizeof key, NULL);

	if (!hit)
		OK(ww_session_set(rig->map, &key, sizeof key, (void *)1, 0, NULL));
	return hit;
}

/* Requests of popular keys, and after each round a scan of keys that are asked for once. In thousandths of the requests. */
static unsigned hit_rate(uint32_t flags, unsigned scanned, uint64_t random)
{
	struct rig rig;
	uint64_t next = POPULAR;
	unsigned hits = 0;

	rig_plan(&rig);
	rig.of_map.limit = LIMIT;
	rig.of_map.flags = flags;
	rig.of_map.gone = NULL;
	rig_open(&rig);
	for (int round = 0; round < ROUNDS; round++) {
		for (int i = 0; i < ASKED; i++) {
			int hit = ask(&rig, popular_key(&random));
			/* The first rounds fill the map. */
			hits += round >= ROUNDS / 3 ? (unsigned)hit : 0;
		}
		for (unsigned i = 0; i < scanned; i++)
			(void)ask(&rig, next++);
		ck_assert_uint_le(stats(&rig).entries, LIMIT);
	}
	if (flags)
		ck_assert_uint_gt(stats(&rig).not_admitted, 0);
	rig_close(&rig);
	return hits / (ASKED * (ROUNDS - ROUNDS / 3) / 1000);
}

START_TEST(a_scan_does_not_flush_what_is_used_often)
{
	uint64_t random = seed_of_run("test_session_eviction");

	make_zipf();
	unsigned used = hit_rate(0, SCANNED, random);
	unsigned admitted = hit_rate(WW_SESSION_ADMIT, SCANNED, random);
	unsigned used_alone = hit_rate(0, 0, random);
	unsigned admitted_alone = hit_rate(WW_SESSION_ADMIT, 0, random);

	printf(
	    "test_session_eviction: hits in thousandths, least recently used and with admission: %u and %u between scans, "
	    "%u and %u without scans\n",
	    used, admitted, used_alone, admitted_alone);
	(void)fflush(stdout);
	ck_assert_uint_ge(admitted, used + 80);
	/* Without scans it is not worse. */
	ck_assert_uint_ge(admitted_alone + 20, used_alone);
}
END_TEST

START_TEST(of_a_scan_of_eight_times_the_limit_little_is_flushed_and_of_forty_all)
{
	struct rig rig;
	uint64_t next = 900;
	unsigned left[2] = {0, 0};

	rig_plan(&rig);
	rig.of_map.limit = 1000;
	rig.of_map.flags = WW_SESSION_ADMIT;
	rig.of_map.gone = NULL;
	rig_open(&rig);
	for (int use = 0; use < 16; use++)
		for (uint64_t key = 0; key < 900; key++)
			(void)ask(&rig, key);
	for (int long_one = 0; long_one < 2; long_one++) {
		for (int i = 0; i < (long_one ? 32000 : 8000); i++)
			(void)ask(&rig, next++);
		for (uint64_t key = 0; key < 900; key++) {
			uint64_t ns;
			left[long_one] += ww_session_time_left(rig.map, &key, sizeof key, &ns) == 1;
		}
	}
	ck_assert_uint_ge(left[0], 700);
	ck_assert_uint_le(left[1], 100);
	rig_close(&rig);
}
END_TEST

/* What was used often long ago goes in the end. */
START_TEST(what_was_popular_once_makes_room)
{
	struct rig rig;
	unsigned hits = 0;

	rig_plan(&rig);
	rig.of_map.limit = 100;
	rig.of_map.flags = WW_SESSION_ADMIT;
	rig_open(&rig);
	for (int i = 0; i < 50; i++)
		for (uint64_t key = 0; key < 100; key++)
			(void)ask(&rig, key);
	for (int i = 0; i < 100; i++)
		for (uint64_t key = 1000; key < 1080; key++)
			hits += i >= 60 ? (unsigned)ask(&rig, key) : 0 * (unsigned)ask(&rig, key);
	ck_assert_uint_ge(hits, 80 * 40 * 9 / 10);
	rig_close(&rig);
}
END_TEST

START_TEST(without_memory_for_the_sketch_nothing_is_left)
{
	struct rig rig;
	struct ww_session *map = NULL;
	int answer = WW_ENOMEM;

	rig_start(&rig);
	rig.of_map.limit = 100;
	rig.of_map.shards = 3;
	rig.of_map.flags = WW_SESSION_ADMIT;
	for (size_t fail_at = 1; answer; fail_at++) {
		rig.memory.calls = 0;
		rig.memory.fail_at = fail_at;
		answer = ww_session_create(&map, rig.driver, &rig.of_map);
		rig.memory.fail_at = 0;
		ck_assert(answer == WW_OK || answer == WW_ENOMEM);
	}
	OK(ww_session_destroy(map));
	rig_close(&rig);
}
END_TEST

TEST_MAIN("session/eviction", the_heaviest_load_is_the_limit, a_call_puts_out_a_bounded_number,
    both_limits_hold_and_maps_without_refuse, few_shards_divide_a_small_limit_of_weight,
    a_pinned_entry_is_never_evicted, pinned_weight_leaves_no_room, beyond_the_limit_nothing_is_refused_or_put_out,
    a_scan_does_not_flush_what_is_used_often, of_a_scan_of_eight_times_the_limit_little_is_flushed_and_of_forty_all,
    what_was_popular_once_makes_room, without_memory_for_the_sketch_nothing_is_left)
