/*
 * Saving and loading: what is kept, and what time does meanwhile. Clocks are virtual, also the wall clock. Damage and
 * errors are in test_session_damage.c.
 */
/* tier: quick */

#include <stdatomic.h>
#include <stdio.h>

#include "tests/lib/core/session/stream.h"

enum { MANY = 3000 };

/* The i-th key: of every length from 0 to 40, and then some numbers. */
static size_t key_of(uintptr_t i, char key[64])
{
	int length = snprintf(key, 64, "%040" PRIuPTR, i);

	return i <= 40 ? i : (size_t)length;
}

static struct ww_session_found find(struct rig *rig, const char *key)
{
	struct ww_session_found found = {0};

	ck_assert_int_ge(ww_session_find(rig->map, key, strlen(key), &found), 0);
	return found;
}

/* Another process: its clock counts from elsewhere. */
static void restart(struct rig *rig, uint64_t start)
{
	OK(ww_clock_virtual_create(&rig->clock, start, NULL));
	rig->of_driver.clock = rig->clock;
	OK(ww_driver_create(&rig->driver, &rig->of_driver));
	OK(ww_session_create(&rig->map, rig->driver, &rig->of_map));
}

/* ---- What is kept */

static void set_many(struct rig *rig)
{
	for (uintptr_t i = 0; i < MANY; i++) {
		char key[64];
		size_t length = key_of(i, key);
		const struct ww_session_order order = {
		    .ttl = (i + 1) * SEC, .lifetime = i % 3 ? (2 * i + 3) * SEC : WW_SESSION_NO_END};
		OK(ww_session_put(rig->map, key, length, (void *)i, &order, NULL, NULL));
	}
}

static void assert_many(struct rig *rig, uint64_t passed)
{
	for (uintptr_t i = 0; i < MANY; i++) {
		char key[64];
		size_t length = key_of(i, key);
		struct ww_session_found found;
		int there = ww_session_find(rig->map, key, length, &found);
		ck_assert_int_eq(there, passed < (i + 1) * SEC);
		if (!there)
			continue;
		ck_assert_uint_eq((uintptr_t)found.value, i);
		ck_assert_uint_eq(found.ttl, (i + 1) * SEC);
		ck_assert_uint_eq(found.left, (i + 1) * SEC - passed);
		ck_assert_uint_eq(found.end_left, i % 3 ? (2 * i + 3) * SEC - passed : WW_SESSION_NO_END);
	}
}

static void assert_keeps_all(uint64_t start, uint32_t shards, size_t piece)
{
	struct ww_session_loaded loaded;
	struct stream stream;
	struct rig rig;
	size_t count = 9;

	stream_init(&stream);
	stream.piece = piece;
	rig_plan(&rig);
	rig.of_map.flags = WW_SESSION_LIFETIMES;
	rig.of_map.shards = 3;
	rig_open(&rig);
	set_many(&rig);
	step(&rig, 10 * SEC);
	OK(stream_save(&stream, rig.map, &count));
	ck_assert_uint_eq(count, MANY - 10);
	assert_many(&rig, 10 * SEC);
	rig_close(&rig);

	OK(ww_clock_virtual_advance(stream.wall, 5 * SEC + 3));
	rig.of_map.shards = shards;
	restart(&rig, start);
	gone_count = 0;
	OK(stream_load(&stream, rig.map, &loaded));
	assert_many(&rig, 15 * SEC + 3);
	ck_assert_uint_eq(loaded.entries, MANY - 15);
	ck_assert_uint_eq(loaded.expired, 5);
	ck_assert_uint_eq(stream.expired, 5);
	ck_assert_uint_eq(stream.decodes, MANY - 15);
	ck_assert_uint_eq(loaded.present + loaded.left_out, 0);
	ck_assert_uint_eq(loaded.bytes, stream.size);
	ck_assert_uint_eq(loaded.downtime, 5 * SEC + 3);
	ck_assert_uint_eq(gone_count, 0);

	/* They live on like any other. */
	OK(ww_clock_virtual_advance(rig.clock, 1000 * SEC));
	OK(ww_driver_settle(rig.driver));
	assert_many(&rig, 1015 * SEC + 3);
	OK(ww_clock_virtual_advance(rig.clock, MS));
	OK(ww_driver_settle(rig.driver));
	ck_assert_uint_eq(gone_count, 1000);
	rig_close(&rig);
	stream_free(&stream);
}

START_TEST(test_keeps_all)
{
	assert_keeps_all(START, 3, 0);
	assert_keeps_all(0, 1, 1);
	assert_keeps_all(UINT64_C(300) * 86400 * SEC + 1, 16, 777);
}
END_TEST

/* The format: an older release's file must load for ever. A change of it needs a new version. */
START_TEST(test_format)
{
	static const char saved[] =
	    /* header: magic, version 1, ends, wall clock 1,000,000,000,000, sum */
	    "\x89wwsess\n\1\0\0\0\1\0\0\0\0\x10\xa5\xd4\xe8\0\0\0\0\0\0\0\366\224\202\044"
	    /* one block: 44 bytes, 1 record, sum */
	    "\x2c\0\0\0\1\0\0\0\014\145\174\017"
	    /* record: value of 9 bytes, key of 3, with an end; 10 s left, TTL 10 s, end in 60 s */
	    "\x09\0\0\0\3\0\1\0\0\xe4\x0b\x54\2\0\0\0\x80\x96\x98\0\0\0\0\0\0\x58\x47\xf8\x0d\0\0\0ada\1\0\0\0\0\0\0\0\1"
	    /* the end */
	    "\0\0\0\0\0\0\0\0\006\016\037\221";
	struct ww_session_loaded loaded;
	struct stream stream;
	struct rig rig;

	stream_init(&stream);
	OK(ww_clock_virtual_set(stream.wall, 1000 * SEC));
	rig_plan(&rig);
	rig.of_map.lifetime = 60 * SEC;
	rig_open(&rig);
	OK(set(&rig, "ada", 1, 0));
	OK(stream_save(&stream, rig.map, NULL));
	ck_assert_uint_eq(stream.size, sizeof saved - 1);
	ck_assert_mem_eq(stream.bytes, saved, sizeof saved - 1);
	rig_close(&rig);
	restart(&rig, 5);
	OK(ww_clock_virtual_advance(stream.wall, SEC));
	OK(stream_load(&stream, rig.map, &loaded));
	ck_assert_uint_eq(find(&rig, "ada").left, 9 * SEC);
	ck_assert_uint_eq(find(&rig, "ada").end_left, 59 * SEC);
	rig_close(&rig);
	stream_free(&stream);
}
END_TEST

/* ---- Time */

/* One entry with 10 s to live, saved, and loaded after the wall clock has gone from one time to the other. */
static uint64_t left_after(uint64_t saved, uint64_t loaded)
{
	struct ww_session_loaded result;
	struct stream stream;
	struct rig rig;
	uint64_t ns;

	stream_init(&stream);
	OK(ww_clock_virtual_set(stream.wall, saved));
	rig_start(&rig);
	OK(set(&rig, "ada", 1, 0));
	OK(stream_save(&stream, rig.map, NULL));
	rig_close(&rig);
	restart(&rig, 7 * START);
	OK(ww_clock_virtual_set(stream.wall, loaded));
	OK(stream_load(&stream, rig.map, &result));
	ck_assert_uint_eq(result.downtime, loaded > saved ? loaded - saved : 0);
	ck_assert_uint_eq(result.entries + result.expired, 1);
	ns = left(&rig, "ada");
	ck_assert_int_eq(ns == 0, result.expired == 1);
	/* What has expired is not in the map in any way. */
	ck_assert_uint_eq(stats(&rig).entries, result.entries);
	ck_assert(result.entries || (strcmp(stream.expired_key, "ada") == 0 && stream.expired_value == 1));
	rig_close(&rig);
	stream_free(&stream);
	return ns;
}

START_TEST(test_downtime)
{
	uint64_t then = UINT64_C(1700000000) * SEC;

	ck_assert_uint_eq(left_after(then, then), 10 * SEC);
	ck_assert_uint_eq(left_after(then, then + 1), 10 * SEC - 1);
	ck_assert_uint_eq(left_after(then, then + 10 * SEC - 1), 1);
	ck_assert_uint_eq(left_after(then, then + 10 * SEC), 0);
	ck_assert_uint_eq(left_after(then, then + 10 * SEC + 1), 0);
	ck_assert_uint_eq(left_after(0, WW_CLOCK_MAX), 0);
	/* Stepped back: nobody expires early, and nobody gets more than was left. */
	ck_assert_uint_eq(left_after(then, then - 1), 10 * SEC);
	ck_assert_uint_eq(left_after(then, 0), 10 * SEC);
	ck_assert_uint_eq(left_after(WW_CLOCK_MAX, 0), 10 * SEC);
}
END_TEST

static void take_a_second(struct stream *stream)
{
	struct rig *rig = stream->user;

	step(rig, SEC);
	OK(ww_clock_virtual_advance(stream->wall, SEC));
}

/* All entries have one deadline, and however long the rest of save and load takes, they keep it. */
START_TEST(test_slow)
{
	struct ww_session_loaded loaded;
	struct stream stream;
	struct rig rig;

	stream_init(&stream);
	rig_start(&rig);
	for (uintptr_t i = 1; i <= 5; i++) {
		char key[64];
		OK(ww_session_set(rig.map, key, key_of(i, key), (void *)(i * 1000 - 1), 100 * SEC, NULL));
	}
	stream.user = &rig;
	stream.in_write = take_a_second;
	OK(stream_save(&stream, rig.map, NULL));
	ck_assert_uint_gt(stream.writes, 6);
	uint64_t passed = stream.writes * SEC;
	ck_assert_uint_eq(left(&rig, "000"), 100 * SEC - passed);
	rig_close(&rig);
	restart(&rig, START);
	stream.in_decode = take_a_second;
	OK(stream_load(&stream, rig.map, &loaded));
	ck_assert_uint_eq(loaded.entries, 5);
	ck_assert_uint_eq(left(&rig, "000"), 100 * SEC - passed - 5 * SEC);
	ck_assert_uint_eq(left(&rig, "00000"), 100 * SEC - passed - 5 * SEC);
	rig_close(&rig);

	/* One that expires while the others are loaded goes to gone, since it has its value. */
	restart(&rig, START);
	OK(ww_clock_virtual_advance(stream.wall, 100 * SEC - passed - 5 * SEC - SEC / 2));
	gone_count = 0;
	OK(stream_load(&stream, rig.map, &loaded));
	ck_assert_uint_eq(loaded.expired, 5);
	assert_last_gone(5, "00000", 4999, WW_GONE_EXPIRED);
	ck_assert_uint_eq(stream.decodes, 5);
	ck_assert_uint_eq(stream.expired, 0);
	rig_close(&rig);
	stream_free(&stream);
}
END_TEST

/* What jitter added when an entry was set is kept, and nothing is added again. */
START_TEST(test_jitter)
{
	uint64_t before[50];
	struct stream stream;
	struct rig rig;

	stream_init(&stream);
	rig_plan(&rig);
	rig.of_map.jitter = 500;
	rig_open(&rig);
	for (uintptr_t i = 0; i < 50; i++) {
		char key[64];
		size_t length = key_of(i, key);
		OK(ww_session_set(rig.map, key, length, (void *)i, 0, NULL));
		ck_assert_int_eq(ww_session_time_left(rig.map, key, length, &before[i]), 1);
	}
	OK(stream_save(&stream, rig.map, NULL));
	rig_close(&rig);
	restart(&rig, 0);
	OK(stream_load(&stream, rig.map, NULL));
	for (uintptr_t i = 0; i < 50; i++) {
		char key[64];
		uint64_t ns;
		ck_assert_int_eq(ww_session_time_left(rig.map, key, key_of(i, key), &ns), 1);
		ck_assert_uint_eq(ns, before[i]);
	}
	ck_assert_uint_eq(find(&rig, "000").ttl, 10 * SEC);
	rig_close(&rig);
	stream_free(&stream);
}
END_TEST

/* Restarts upon restarts: after each, every entry has its deadline still, or has expired because it was reached. */
START_TEST(test_restarts)
{
	enum { KEYS = 60 };
	uint64_t state = seed_of_run("session/save");
	uint64_t deadline[KEYS] = {0}, end[KEYS]; /* on a clock that never stops */
	uint64_t now = 0;
	struct stream stream;
	struct rig rig;

	stream_init(&stream);
	rig_plan(&rig);
	rig.of_map.flags = WW_SESSION_LIFETIMES;
	rig.of_map.shards = 2;
	rig_open(&rig);
	for (int round = 0; round < 300; round++) {
		for (int call = 0; call < 20; call++) {
			uintptr_t i = seed_below(&state, KEYS);
			char key[64];
			size_t length = key_of(i, key);
			uint64_t ttl = (1 + seed_below(&state, 1000000)) * WW_MICROSECOND;
			uint64_t lifetime = seed_below(&state, 2) ? 1 + seed_below(&state, 2 * SEC) : WW_SESSION_NO_END;
			if (seed_below(&state, 2)) {
				int found = ww_session_refresh(rig.map, key, length, ttl, NULL);
				ck_assert_int_eq(found, deadline[i] > now);
				if (found)
					deadline[i] = now + ttl < end[i] ? now + ttl : end[i];
			} else {
				const struct ww_session_order order = {.ttl = ttl, .lifetime = lifetime};
				OK(ww_session_put(rig.map, key, length, (void *)i, &order, NULL, NULL));
				end[i] = lifetime == WW_SESSION_NO_END ? UINT64_MAX : now + lifetime;
				deadline[i] = now + ttl < end[i] ? now + ttl : end[i];
			}
		}
		uint64_t up = seed_below(&state, SEC / 2), down = seed_below(&state, 4) * seed_below(&state, SEC / 4);
		pass(&rig, up);
		OK(ww_clock_virtual_advance(stream.wall, up));
		OK(stream_save(&stream, rig.map, NULL));
		rig_close(&rig);
		OK(ww_clock_virtual_advance(stream.wall, down));
		now += up + down;
		stream.piece = seed_below(&state, 100);
		restart(&rig, seed_next(&state) >> 2);
		OK(stream_load(&stream, rig.map, NULL));
		for (uintptr_t i = 0; i < KEYS; i++) {
			char key[64];
			struct ww_session_found found;
			int there = ww_session_find(rig.map, key, key_of(i, key), &found);
			ck_assert_int_eq(there, deadline[i] > now);
			if (!there)
				continue;
			ck_assert_uint_eq(found.left, deadline[i] - now);
			ck_assert_uint_eq(found.end_left, end[i] == UINT64_MAX ? UINT64_MAX : end[i] - now);
		}
	}
	rig_close(&rig);
	stream_free(&stream);
}
END_TEST

/* ---- Maps of other configurations, and maps that are not empty */

static void assert_lifetimes(int saved_with, int loaded_with, uint64_t end_left, uint64_t left_later)
{
	struct stream stream;
	struct rig rig;

	stream_init(&stream);
	rig_plan(&rig);
	rig.of_map.lifetime = saved_with ? 14 * SEC : 0;
	rig_open(&rig);
	OK(set(&rig, "ada", 1, 0));
	OK(stream_save(&stream, rig.map, NULL));
	rig_close(&rig);
	OK(ww_clock_virtual_advance(stream.wall, SEC));
	rig.of_map.lifetime = loaded_with ? 15 * SEC : 0;
	restart(&rig, 0);
	OK(stream_load(&stream, rig.map, NULL));
	ck_assert_uint_eq(find(&rig, "ada").left, 9 * SEC);
	ck_assert_uint_eq(find(&rig, "ada").end_left, end_left);
	step(&rig, 8 * SEC);
	ck_assert_int_eq(refresh(&rig, "ada", 0), 1);
	ck_assert_uint_eq(find(&rig, "ada").left, left_later);
	rig_close(&rig);
	stream_free(&stream);
}

START_TEST(test_lifetimes)
{
	assert_lifetimes(0, 0, WW_SESSION_NO_END, 10 * SEC);
	assert_lifetimes(1, 1, 13 * SEC, 5 * SEC);
	assert_lifetimes(0, 1, 15 * SEC, 7 * SEC);
	assert_lifetimes(1, 0, WW_SESSION_NO_END, 10 * SEC);
}
END_TEST

/* What is in the map is newer and stays, unless it has expired. The value that was loaded is not lost. */
START_TEST(test_present)
{
	struct ww_session_loaded loaded;
	struct stream stream;
	struct rig rig;

	stream_init(&stream);
	rig_start(&rig);
	OK(set(&rig, "ada", 1, 0));
	OK(set(&rig, "bob", 2, 0));
	OK(stream_save(&stream, rig.map, NULL));
	OK(ww_session_set(rig.map, "ada", 3, (void *)3, 20 * SEC, &(void *){NULL}));
	OK(stream_load(&stream, rig.map, &loaded));
	ck_assert_uint_eq(loaded.entries, 0);
	ck_assert_uint_eq(loaded.present, 2);
	ck_assert_uint_eq(get(&rig, "ada"), 3);
	ck_assert_uint_eq(left(&rig, "ada"), 20 * SEC);
	assert_last_gone(2, "bob", 2, WW_GONE_REPLACED);
	ck_assert_uint_eq(gone_log[0].value, 1);

	step(&rig, 10 * SEC);
	OK(stream_load(&stream, rig.map, &loaded));
	ck_assert_uint_eq(loaded.entries, 1);
	ck_assert_uint_eq(left(&rig, "bob"), 10 * SEC);
	assert_last_gone(4, "bob", 2, WW_GONE_EXPIRED);
	rig_close(&rig);
	stream_free(&stream);
}
END_TEST

START_TEST(test_limit)
{
	struct ww_session_loaded loaded;
	struct stream stream;
	struct rig rig;

	stream_init(&stream);
	rig_start(&rig);
	for (uintptr_t i = 1; i <= 100; i++) {
		char key[64];
		OK(ww_session_set(rig.map, key, key_of(i, key), (void *)i, 0, NULL));
	}
	OK(stream_save(&stream, rig.map, NULL));
	rig_close(&rig);
	rig.of_map.limit = 10;
	restart(&rig, 0);
	gone_count = 0;
	OK(stream_load(&stream, rig.map, &loaded));
	ck_assert_uint_eq(loaded.entries, 100);
	ck_assert_uint_eq(stats(&rig).entries, 10);
	ck_assert_uint_eq(gone_count, 90);
	ck_assert_int_eq(gone_log[0].why, WW_GONE_EVICTED);
	rig_close(&rig);
	stream_free(&stream);
}
END_TEST

START_TEST(test_versions)
{
	struct stream stream;
	struct rig rig;
	struct ww_session_found first, found;

	stream_init(&stream);
	rig_start(&rig);
	OK(set(&rig, "ada", 1, 0));
	first = find(&rig, "ada");
	OK(stream_save(&stream, rig.map, NULL));
	ck_assert_int_eq(erase(&rig, "ada"), 1);
	OK(stream_load(&stream, rig.map, NULL));
	found = find(&rig, "ada");
	ck_assert_uint_ne(found.version, first.version);
	ck_assert_uint_ne(found.version, 0);
	rig_close(&rig);
	stream_free(&stream);
}
END_TEST

/* While the map is saved, a key that was saved is removed and set, and saved again: the last value counts. */
static void set_again(struct stream *stream)
{
	struct rig *rig = stream->user;

	if (stream->writes != 2)
		return;
	ck_assert_int_eq(erase(rig, "ada"), 1);
	OK(set(rig, "ida", 3, 0));
	OK(set(rig, "ada", 4, 20 * SEC));
}

START_TEST(test_saved_twice)
{
	struct ww_session_loaded loaded;
	struct stream stream;
	struct rig rig;
	size_t count;

	stream_init(&stream);
	rig_start(&rig);
	OK(set(&rig, "ada", 1, 0));
	OK(set(&rig, "bob", 999, 0));
	stream.user = &rig;
	stream.in_write = set_again;
	OK(stream_save(&stream, rig.map, &count));
	ck_assert_uint_eq(count, 3);
	OK(ww_session_clear(rig.map, NULL));
	gone_count = 0;
	OK(stream_load(&stream, rig.map, &loaded));
	ck_assert_uint_eq(get(&rig, "ada"), 4);
	ck_assert_uint_eq(left(&rig, "ada"), 20 * SEC);
	assert_last_gone(1, "ada", 1, WW_GONE_REPLACED);
	/* What is set after a load stays when another one comes. */
	OK(set(&rig, "ada", 5, 0));
	OK(stream_load(&stream, rig.map, &loaded));
	ck_assert_uint_eq(loaded.present, 2);
	ck_assert_uint_eq(get(&rig, "ada"), 5);
	rig_close(&rig);
	stream_free(&stream);
}
END_TEST

/* ---- Without values, and values that are left out */

START_TEST(test_no_values)
{
	const struct ww_session_writer writer = {.write = stream_write, .context = &(struct stream){0}};
	struct ww_session_reader reader = {.read = stream_read, .context = writer.context};
	struct stream *stream = writer.context;
	struct ww_session_loaded loaded;
	struct rig rig;
	void *value = &rig;

	rig_start(&rig);
	OK(set(&rig, "ada", 1, 0));
	OK(ww_session_save(rig.map, &writer, NULL));
	ck_assert_uint_eq(stream->size, 32 + 12 + 24 + 3 + 12);
	ck_assert_int_eq(erase(&rig, "ada"), 1);
	OK(ww_session_load(rig.map, &reader, &loaded));
	ck_assert_int_eq(ww_session_get(rig.map, "ada", 3, &value), 1);
	ck_assert_ptr_null(value);
	rig_close(&rig);
	free(stream->bytes);
}
END_TEST

START_TEST(test_left_out)
{
	struct ww_session_loaded loaded;
	struct stream stream;
	struct rig rig;
	size_t count;

	stream_init(&stream);
	rig_start(&rig);
	for (uintptr_t i = 1; i <= 100; i++) {
		char key[64];
		OK(ww_session_set(rig.map, key, key_of(i, key), (void *)i, 0, NULL));
	}
	stream.leave_out = 50;
	OK(stream_save(&stream, rig.map, &count));
	ck_assert_uint_eq(count, 99);
	OK(ww_session_clear(rig.map, NULL));
	gone_count = 0;
	stream.leave_out = 20;
	OK(stream_load(&stream, rig.map, &loaded));
	ck_assert_uint_eq(loaded.entries, 98);
	ck_assert_uint_eq(loaded.left_out, 1);
	ck_assert_uint_eq(gone_count, 0);
	ck_assert_uint_eq(get(&rig, "00000000000000000000"), 0);
	rig_close(&rig);
	stream_free(&stream);
}
END_TEST

/* ---- Calls in the caller's functions */

static void call_in_write(struct stream *stream)
{
	struct rig *rig = stream->user;

	OK(set(rig, "new", 4711, 0));
	ck_assert_int_eq(ww_session_destroy(rig->map), WW_EBUSY);
}

static void call_in_encode(struct stream *stream)
{
	struct rig *rig = stream->user;

	ck_assert_int_eq(set(rig, "new", 4712, 0), WW_EBUSY);
	ck_assert_int_eq(ww_session_destroy(rig->map), WW_EBUSY);
}

START_TEST(test_calls)
{
	struct stream stream;
	struct rig rig;

	stream_init(&stream);
	rig_start(&rig);
	OK(set(&rig, "ada", 1, 0));
	stream.user = &rig;
	stream.in_write = call_in_write;
	stream.in_encode = call_in_encode;
	OK(stream_save(&stream, rig.map, NULL));
	ck_assert_uint_eq(get(&rig, "new"), 4711);
	OK(ww_session_clear(rig.map, NULL));
	stream.in_decode = call_in_write;
	OK(stream_load(&stream, rig.map, NULL));
	ck_assert_uint_eq(get(&rig, "new"), 4711);
	ck_assert_uint_eq(get(&rig, "ada"), 1);
	rig_close(&rig);
	stream_free(&stream);
}
END_TEST

START_TEST(test_stopped)
{
	struct stream stream;
	struct rig rig;
	size_t count;

	stream_init(&stream);
	rig_start(&rig);
	OK(set(&rig, "ada", 1, 0));
	OK(ww_driver_stop(rig.driver, NULL, NULL, NULL));
	OK(stream_save(&stream, rig.map, &count));
	ck_assert_uint_eq(count, 1);
	ck_assert_int_eq(stream_load(&stream, rig.map, NULL), WW_ECLOSED);
	ck_assert_uint_eq(stream.reads, 0);
	rig_close(&rig);
	stream_free(&stream);
}
END_TEST

/* ---- Next to other threads: even numbers stay, odd ones come and go */

static atomic_int done;

static void *change(void *context)
{
	struct rig *rig = context;
	uint64_t state = 7;

	while (!done) {
		uintptr_t i = seed_below(&state, MANY);
		char key[64];
		size_t length = key_of(i, key);
		/* The value says what the TTL is: an entry must be saved with both of one moment. */
		uintptr_t value = i + MANY * seed_below(&state, 3);
		if (i % 2 == 0 || seed_below(&state, 2))
			OK(ww_session_set(rig->map, key, length, (void *)value, (value + 1) * SEC, NULL));
		else
			ck_assert_int_ge(ww_session_delete(rig->map, key, length, NULL), 0);
	}
	return NULL;
}

START_TEST(test_others)
{
	struct ww_session_loaded loaded;
	struct stream stream;
	struct rig rig, other;
	pthread_t thread[2];

	stream_init(&stream);
	rig_plan(&other);
	rig_plan_threads(&rig, 2);
	rig.of_map.shards = 3;
	rig_open(&rig);
	for (uintptr_t i = 0; i < MANY; i++) {
		char key[64];
		size_t length = key_of(i, key);
		OK(ww_session_set(rig.map, key, length, (void *)i, (i + 1) * SEC, NULL));
	}
	done = 0;
	for (int i = 0; i < 2; i++)
		ck_assert_int_eq(pthread_create(&thread[i], NULL, change, &rig), 0);
	for (int round = 0; round < 10; round++) {
		OK(stream_save(&stream, rig.map, NULL));
		rig_open(&other);
		OK(stream_load(&stream, other.map, &loaded));
		ck_assert_uint_eq(loaded.present + loaded.expired, 0);
		for (uintptr_t i = 0; i < MANY; i++) {
			char key[64];
			struct ww_session_found found;
			int there = ww_session_find(other.map, key, key_of(i, key), &found);
			ck_assert(there || i % 2);
			if (!there)
				continue;
			ck_assert_uint_eq((uintptr_t)found.value % MANY, i);
			ck_assert_uint_eq(found.ttl, ((uintptr_t)found.value + 1) * SEC);
			ck_assert_uint_eq(found.left, found.ttl);
		}
		rig_close(&other);
	}
	done = 1;
	for (int i = 0; i < 2; i++)
		ck_assert_int_eq(pthread_join(thread[i], NULL), 0);
	rig_close(&rig);
	stream_free(&stream);
}
END_TEST

/* What a map with limits saves. One without ignores it, and one with a smaller limit takes as much as it has. */
START_TEST(test_weights)
{
	struct rig rig, other;
	struct stream stream;
	struct ww_session_loaded loaded;
	struct ww_session_order order = {.weight = 70, .flags = WW_SESSION_PINNED};
	struct ww_session_found found;
	static const uint64_t limits[] = {1000, 50, 0};

	stream_init(&stream);
	rig_plan(&rig);
	rig.of_map.weight_limit = 1000;
	rig_open(&rig);
	OK(ww_session_put(rig.map, "pinned", 6, (void *)1, &order, NULL, NULL));
	order.flags = 0;
	OK(ww_session_put(rig.map, "heavy", 5, (void *)2, &order, NULL, NULL));
	OK(stream_save(&stream, rig.map, NULL));
	for (int i = 0; i < 3; i++) {
		rig_plan(&other);
		other.of_map.weight_limit = limits[i];
		rig_open(&other);
		OK(stream_load(&stream, other.map, &loaded));
		ck_assert_uint_eq(loaded.entries + loaded.left_out, 2);
		if (ww_session_find(other.map, "pinned", 6, &found)) {
			ck_assert_uint_eq(found.weight, limits[i] < 70 ? limits[i] : 70);
			ck_assert_uint_eq(found.flags, limits[i] ? WW_SESSION_PINNED : 0);
		}
		ck_assert(limits[i] == 50 || stats(&other).entries == 2);
		ck_assert_uint_eq(stats(&other).pinned, limits[i] != 0);
		ck_assert_uint_le(stats(&other).weight, limits[i]);
		rig_close(&other);
	}
	rig_close(&rig);
	stream_free(&stream);
}
END_TEST

/* Where pinned entries fill the map, what was saved goes to gone, and the load goes on. */
START_TEST(test_pins)
{
	const struct ww_session_order pinned = {.flags = WW_SESSION_PINNED};
	struct ww_session_loaded loaded;
	struct stream stream;
	struct rig rig;

	stream_init(&stream);
	rig_plan(&rig);
	rig.of_map.limit = 1;
	rig_open(&rig);
	OK(set(&rig, "ada", 1, 0));
	OK(stream_save(&stream, rig.map, NULL));
	OK(ww_session_clear(rig.map, NULL));
	OK(ww_session_put(rig.map, "rock", 4, (void *)9, &pinned, NULL, NULL));
	gone_count = 0;
	OK(stream_load(&stream, rig.map, &loaded));
	ck_assert_uint_eq(loaded.entries, 0);
	ck_assert_uint_eq(loaded.left_out, 1);
	assert_last_gone(1, "ada", 1, WW_GONE_EVICTED);
	ck_assert_uint_eq(get(&rig, "rock"), 9);
	rig_close(&rig);
	stream_free(&stream);
}
END_TEST

TEST_MAIN("session/save", test_keeps_all, test_format, test_downtime, test_slow, test_jitter, test_restarts,
    test_lifetimes, test_present, test_limit, test_versions, test_saved_twice, test_no_values, test_left_out,
    test_calls, test_stopped, test_others, test_weights, test_pins)
