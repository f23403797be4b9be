/* Each call alone: set, get, refresh, look, time_left, delete, clear, statistics, and keys of every kind. */
/* tier: quick */

#include "tests/lib/core/session/fixture.h"

START_TEST(a_value_is_found_until_its_ttl_has_passed)
{
	struct rig rig;

	rig_start(&rig);
	OK(set(&rig, "default", 1, 0));
	OK(set(&rig, "own", 2, 3 * SEC));
	ck_assert_uint_eq(left(&rig, "default"), 10 * SEC);
	ck_assert_uint_eq(left(&rig, "own"), 3 * SEC);
	pass(&rig, 3 * SEC - 1);
	ck_assert_uint_eq(get(&rig, "own"), 2);
	ck_assert_uint_eq(left(&rig, "own"), 1);
	ck_assert_uint_eq(gone_calls(), 0);
	pass(&rig, 1);
	ck_assert_uint_eq(get(&rig, "own"), 0);
	ck_assert_uint_eq(left(&rig, "own"), 0);
	ck_assert_uint_eq(gone_calls(), 0); /* its tick is not over */
	pass(&rig, MS);
	assert_last_gone(1, "own", 2, WW_GONE_EXPIRED);
	ck_assert_uint_eq(get(&rig, "default"), 1);
	pass(&rig, 7 * SEC);
	assert_last_gone(2, "default", 1, WW_GONE_EXPIRED);
	ck_assert_uint_eq(stats(&rig).entries, 0);
	rig_close(&rig);
	ck_assert_uint_eq(gone_calls(), 2);
}
END_TEST

START_TEST(a_key_that_was_never_set_is_not_found)
{
	struct rig rig;

	rig_start(&rig);
	ck_assert_uint_eq(get(&rig, "a"), 0);
	ck_assert_int_eq(refresh(&rig, "a", 0), 0);
	ck_assert_int_eq(refresh(&rig, "a", SEC), 0);
	ck_assert_int_eq(erase(&rig, "a"), 0);
	ck_assert_uint_eq(left(&rig, "a"), 0);
	rig_close(&rig);
	ck_assert_uint_eq(gone_calls(), 0);
}
END_TEST

START_TEST(null_is_a_value)
{
	struct rig rig;
	void *value = &rig;

	rig_start(&rig);
	OK(set(&rig, "a", 0, SEC));
	ck_assert_int_eq(ww_session_get(rig.map, "a", 1, &value), 1);
	ck_assert_ptr_null(value);
	ck_assert_int_eq(ww_session_get(rig.map, "a", 1, NULL), 1);
	pass(&rig, SEC + MS);
	assert_last_gone(1, "a", 0, WW_GONE_EXPIRED);
	rig_close(&rig);
}
END_TEST

START_TEST(set_replaces_and_starts_the_new_ttl)
{
	struct rig rig;
	void *former = &rig;

	rig_start(&rig);
	OK(ww_session_set(rig.map, "a", 1, (void *)1, SEC, &former));
	ck_assert_ptr_null(former);
	OK(set(&rig, "a", 2, 5 * SEC));
	assert_last_gone(1, "a", 1, WW_GONE_REPLACED);
	OK(ww_session_set(rig.map, "a", 1, (void *)3, 2 * SEC, &former));
	ck_assert_ptr_eq(former, (void *)2);
	ck_assert_uint_eq(gone_calls(), 1);
	ck_assert_uint_eq(left(&rig, "a"), 2 * SEC);
	ck_assert_uint_eq(stats(&rig).entries, 1);
	pass(&rig, 2 * SEC - 1);
	ck_assert_uint_eq(get(&rig, "a"), 3);
	pass(&rig, MS + 1);
	assert_last_gone(2, "a", 3, WW_GONE_EXPIRED);
	rig_close(&rig);
}
END_TEST

START_TEST(refresh_slides_by_the_entrys_ttl_or_by_a_given_one_which_it_keeps)
{
	struct rig rig;
	void *value = NULL;

	rig_start(&rig);
	OK(set(&rig, "a", 1, 3 * SEC));
	for (int i = 0; i < 5; i++) {
		pass(&rig, 2 * SEC);
		ck_assert_int_eq(ww_session_refresh(rig.map, "a", 1, 0, &value), 1);
		ck_assert_ptr_eq(value, (void *)1);
		ck_assert_uint_eq(left(&rig, "a"), 3 * SEC);
	}
	ck_assert_int_eq(refresh(&rig, "a", SEC), 1);
	ck_assert_uint_eq(left(&rig, "a"), SEC);
	pass(&rig, SEC / 2);
	ck_assert_int_eq(refresh(&rig, "a", 0), 1);
	ck_assert_uint_eq(left(&rig, "a"), SEC);
	pass(&rig, SEC - 1);
	ck_assert_int_eq(refresh(&rig, "a", 7 * SEC), 1);
	pass(&rig, 7 * SEC - 1);
	ck_assert_uint_eq(gone_calls(), 0);
	ck_assert_uint_eq(get(&rig, "a"), 1);
	pass(&rig, 1);
	ck_assert_int_eq(refresh(&rig, "a", 0), 0);
	pass(&rig, MS);
	assert_last_gone(1, "a", 1, WW_GONE_EXPIRED);
	rig_close(&rig);
}
END_TEST

START_TEST(a_shorter_refresh_expires_earlier)
{
	struct rig rig;

	rig_start(&rig);
	OK(set(&rig, "a", 1, 3600 * SEC));
	ck_assert_int_eq(refresh(&rig, "a", MS), 1);
	pass(&rig, 2 * MS);
	assert_last_gone(1, "a", 1, WW_GONE_EXPIRED);
	rig_close(&rig);
}
END_TEST

START_TEST(an_entrys_ttl_is_kept_in_microseconds_rounded_up)
{
	struct rig rig;

	rig_start(&rig);
	OK(set(&rig, "a", 1, 1500));
	ck_assert_uint_eq(left(&rig, "a"), 1500);
	ck_assert_int_eq(refresh(&rig, "a", 0), 1);
	ck_assert_uint_eq(left(&rig, "a"), 2000);
	OK(set(&rig, "b", 1, WW_SESSION_TTL_MAX));
	ck_assert_int_eq(refresh(&rig, "b", 0), 1);
	ck_assert_uint_eq(left(&rig, "b"), WW_SESSION_TTL_MAX);
	rig_close(&rig);
}
END_TEST

START_TEST(get_look_and_time_left_do_not_prolong)
{
	struct rig rig;

	rig_start(&rig);
	OK(set(&rig, "a", 1, 3 * SEC));
	pass(&rig, 2 * SEC);
	ck_assert_uint_eq(get(&rig, "a"), 1);
	ck_assert_uint_eq(left(&rig, "a"), SEC);
	rig_close(&rig);
}
END_TEST

static void look(void *value, void *context)
{
	*(uintptr_t *)context += (uintptr_t)value;
}

START_TEST(look_calls_its_function_with_the_value_once_or_not_at_all)
{
	struct rig rig;
	uintptr_t seen = 0;

	rig_start(&rig);
	OK(set(&rig, "a", 5, SEC));
	ck_assert_int_eq(ww_session_look(rig.map, "a", 1, look, &seen), 1);
	ck_assert_uint_eq(seen, 5);
	ck_assert_int_eq(ww_session_look(rig.map, "b", 1, look, &seen), 0);
	step(&rig, SEC);
	ck_assert_int_eq(ww_session_look(rig.map, "a", 1, look, &seen), 0);
	ck_assert_uint_eq(seen, 5);
	ck_assert_int_eq(ww_session_look(rig.map, "a", 1, NULL, &seen), WW_EINVAL);
	rig_close(&rig);
}
END_TEST

static int inspect(const void *key, size_t length, const struct ww_session_found *found, void *context)
{
	*(struct ww_session_found *)context = *found;
	ck_assert_uint_eq(length, 1);
	ck_assert(*(const char *)key == 'a');
	return (int)(uintptr_t)found->value;
}

START_TEST(inspect_tells_what_find_tells_and_is_a_lookup)
{
	struct rig rig;
	struct ww_session_found seen = {0}, found;

	rig_plan(&rig);
	rig.of_map.flags = WW_SESSION_RENEW;
	rig.of_map.limit = 9;
	rig_open(&rig);
	ck_assert_int_eq(ww_session_inspect(rig.map, "a", 1, inspect, &seen), 0);
	OK(ww_session_put(rig.map, "a", 1, NULL, &(struct ww_session_order){.flags = WW_SESSION_PINNED}, NULL, NULL));
	step(&rig, 6 * SEC);
	ck_assert_int_eq(ww_session_inspect(rig.map, "a", 1, inspect, &seen), 1);
	ck_assert_int_eq(ww_session_find(rig.map, "a", 1, &found), 1);
	ck_assert_uint_eq(seen.left, 10 * SEC);
	ck_assert_ptr_eq(seen.value, found.value);
	ck_assert_uint_eq(seen.version, found.version);
	ck_assert_uint_eq(seen.ttl, found.ttl);
	ck_assert_uint_eq(seen.left, found.left);
	ck_assert_uint_eq(seen.end_left, found.end_left);
	ck_assert_uint_eq(seen.weight, found.weight);
	ck_assert_uint_eq(seen.flags, found.flags);
	ck_assert_uint_eq(stats(&rig).hits, 2);
	ck_assert_uint_eq(stats(&rig).misses, 1);
	/* What the function returns. */
	OK(set(&rig, "a", (uintptr_t)-77, 0));
	ck_assert_int_eq(ww_session_inspect(rig.map, "a", 1, inspect, &seen), -77);
	OK(set(&rig, "a", 5, 0));
	ck_assert_int_eq(ww_session_inspect(rig.map, "a", 1, inspect, &seen), 5);
	step(&rig, 10 * SEC);
	ck_assert_int_eq(ww_session_inspect(rig.map, "a", 1, inspect, &seen), 0);
	ck_assert_int_eq(ww_session_inspect(rig.map, "a", 1, NULL, &seen), WW_EINVAL);
	rig_close(&rig);
}
END_TEST

/* The map that look is called on, and another one. */
static struct rig *looked_at;
static struct ww_session *another;

static int no_load(const void *key, size_t length, void **value, uint64_t *ttl, void *context)
{
	(void)key;
	(void)length;
	(void)value;
	(void)ttl;
	(void)context;
	return WW_ENOMEM;
}

static void assert_refused(struct ww_session *map)
{
	struct ww_session_stats unused;
	void *value = NULL;
	uint64_t ns;
	size_t count;

	ck_assert(ww_session_set(map, "b", 1, NULL, 0, NULL) == WW_EBUSY);
	ck_assert(ww_session_get(map, "b", 1, NULL) == WW_EBUSY);
	ck_assert(ww_session_refresh(map, "b", 1, 0, NULL) == WW_EBUSY);
	ck_assert(ww_session_time_left(map, "b", 1, &ns) == WW_EBUSY);
	ck_assert(ww_session_delete(map, "b", 1, NULL) == WW_EBUSY);
	ck_assert(ww_session_put(map, "b", 1, NULL, NULL, NULL, NULL) == WW_EBUSY);
	ck_assert(ww_session_find(map, "b", 1, &(struct ww_session_found){0}) == WW_EBUSY);
	ck_assert(ww_session_rename(map, "b", 1, "c", 1, NULL, NULL, NULL) == WW_EBUSY);
	ck_assert(ww_session_delete_if(map, "b", 1, 1, NULL) == WW_EBUSY);
	ck_assert(ww_session_take(map, "b", 1, no_load, NULL, &value) == WW_EBUSY);
	ck_assert(ww_session_look(map, "b", 1, look, NULL) == WW_EBUSY);
	ck_assert(ww_session_inspect(map, "b", 1, inspect, NULL) == WW_EBUSY);
	ck_assert(ww_session_clear(map, &count) == WW_EBUSY);
	ck_assert(ww_session_stats(map, &unused) == WW_EBUSY);
	ck_assert(ww_session_destroy(map) == WW_EBUSY);
}

static void call_maps(void *value, void *context)
{
	struct ww_session *made = NULL;

	assert_refused(looked_at->map);
	assert_refused(another);
	ck_assert(ww_session_create(&made, looked_at->driver, NULL) == WW_EBUSY);
	ck_assert(!made);
	look(value, context);
}

static int call_maps_inspecting(const void *key, size_t length, const struct ww_session_found *found, void *context)
{
	call_maps(found->value, context);
	(void)key;
	(void)length;
	return 0;
}

START_TEST(every_call_is_refused_in_a_look)
{
	struct rig rig;
	uintptr_t seen = 0;

	rig_start(&rig);
	looked_at = &rig;
	OK(ww_session_create(&another, rig.driver, NULL));
	OK(set(&rig, "a", 1, 0));
	ck_assert_int_eq(ww_session_look(rig.map, "a", 1, call_maps, &seen), 1);
	ck_assert_uint_eq(seen, 1);
	ck_assert_int_eq(ww_session_inspect(rig.map, "a", 1, call_maps_inspecting, &seen), 1);
	/* After the look, none is refused. */
	ck_assert_uint_eq(get(&rig, "a"), 1);
	ck_assert_uint_eq(stats(&rig).entries, 1);
	OK(ww_session_destroy(another));
	rig_close(&rig);
}
END_TEST

START_TEST(delete_hands_over_to_the_caller_or_to_gone)
{
	struct rig rig;
	void *value = &rig;

	rig_start(&rig);
	OK(set(&rig, "a", 1, 0));
	OK(set(&rig, "b", 2, 0));
	ck_assert_int_eq(ww_session_delete(rig.map, "a", 1, &value), 1);
	ck_assert_ptr_eq(value, (void *)1);
	ck_assert_uint_eq(gone_calls(), 0);
	ck_assert_int_eq(erase(&rig, "b"), 1);
	assert_last_gone(1, "b", 2, WW_GONE_DELETED);
	value = &rig;
	ck_assert_int_eq(ww_session_delete(rig.map, "a", 1, &value), 0);
	ck_assert_ptr_eq(value, &rig);
	ck_assert_uint_eq(stats(&rig).entries, 0);
	pass(&rig, 60 * SEC);
	rig_close(&rig);
	ck_assert_uint_eq(gone_calls(), 1);
}
END_TEST

START_TEST(clear_tells_gone_of_all_and_the_empty_map_still_works)
{
	struct rig rig;
	char key[16];
	size_t count = 7;

	rig_plan(&rig);
	rig.of_map.shards = 5;
	rig_open(&rig);
	OK(ww_session_clear(rig.map, &count));
	ck_assert_uint_eq(count, 0);
	for (uintptr_t i = 0; i < 1000; i++) {
		(void)snprintf(key, sizeof key, "%u", (unsigned)i);
		OK(set(&rig, key, i + 1, i * SEC));
	}
	OK(ww_session_clear(rig.map, &count));
	ck_assert_uint_eq(count, 1000);
	ck_assert_uint_eq(gone_calls(), 1000);
	ck_assert_uint_eq(stats(&rig).entries, 0);
	unsigned char seen[1001] = {0};
	for (size_t i = 0; i < 1000; i++) {
		ck_assert_int_eq((int)gone_log[i].why, (int)WW_GONE_CLEARED);
		ck_assert_uint_eq(seen[gone_log[i].value]++, 0);
		ck_assert_uint_eq(strtoul(gone_log[i].key, NULL, 10) + 1, gone_log[i].value);
	}
	ck_assert_uint_eq(get(&rig, "1"), 0);
	OK(set(&rig, "1", 5, SEC));
	ck_assert_uint_eq(get(&rig, "1"), 5);
	OK(ww_session_clear(rig.map, NULL));
	rig_close(&rig);
	ck_assert_uint_eq(gone_calls(), 1001);
}
END_TEST

/* ---- Keys ----------------------------------------------------------------------------------------------------- */

START_TEST(keys_of_every_length_and_with_zero_bytes_are_told_apart)
{
	static const size_t lengths[] = {0, 1, 2, 15, 16, 17, 18, 64, 4096, 65534, WW_SESSION_KEY_MAX};
	size_t count = sizeof lengths / sizeof lengths[0];
	unsigned char *key = calloc(1, WW_SESSION_KEY_MAX + 1);
	struct rig rig;
	void *value = NULL;

	rig_start(&rig);
	/* Keys of zeros differ only in length. The same with another last byte. */
	for (size_t i = 0; i < count; i++) {
		OK(ww_session_set(rig.map, key, lengths[i], (void *)(i + 1), 0, NULL));
		if (lengths[i] == 0)
			continue;
		key[lengths[i] - 1] = 1;
		OK(ww_session_set(rig.map, key, lengths[i], (void *)(i + 101), 0, NULL));
		key[lengths[i] - 1] = 0;
	}
	ck_assert_uint_eq(stats(&rig).entries, 2 * count - 1);
	for (size_t i = 0; i < count; i++) {
		ck_assert_int_eq(ww_session_get(rig.map, key, lengths[i], &value), 1);
		ck_assert_uint_eq((uintptr_t)value, i + 1);
		ck_assert_int_eq(ww_session_delete(rig.map, key, lengths[i], &value), 1);
		ck_assert_uint_eq((uintptr_t)value, i + 1);
		ck_assert_int_eq(ww_session_get(rig.map, key, lengths[i], &value), 0);
	}
	ck_assert_uint_eq(stats(&rig).entries, count - 1);
	ck_assert_int_eq(ww_session_set(rig.map, key, WW_SESSION_KEY_MAX + 1, key, 0, NULL), WW_EINVAL);
	ck_assert_int_eq(ww_session_get(rig.map, key, 65536, &value), WW_EINVAL);
	ck_assert_int_eq(ww_session_refresh(rig.map, key, 65536, 0, &value), WW_EINVAL);
	ck_assert_int_eq(ww_session_delete(rig.map, key, 65536, &value), WW_EINVAL);
	ck_assert_int_eq(ww_session_get(rig.map, key, SIZE_MAX, &value), WW_EINVAL);
	rig_close(&rig);
	free(key);
}
END_TEST

START_TEST(the_key_is_copied_and_passed_whole_to_gone)
{
	char key[40] = "a key that is longer than sixteen bytes";
	struct rig rig;

	rig_start(&rig);
	OK(set(&rig, key, 1, SEC));
	key[0] = 'b';
	ck_assert_uint_eq(get(&rig, key), 0);
	ck_assert_uint_eq(get(&rig, "a key that is longer than sixteen bytes"), 1);
	pass(&rig, 2 * SEC);
	ck_assert_uint_eq(gone_calls(), 1);
	ck_assert_uint_eq(gone_log[0].length, 39);
	ck_assert_mem_eq(gone_log[0].key, "a key that is lo", 16);
	rig_close(&rig);
}
END_TEST

START_TEST(an_empty_key_is_a_key_whether_null_or_not)
{
	struct rig rig;
	void *value = NULL;

	rig_start(&rig);
	OK(ww_session_set(rig.map, NULL, 0, (void *)1, 0, NULL));
	ck_assert_uint_eq(get(&rig, ""), 1);
	ck_assert_int_eq(ww_session_get(rig.map, NULL, 0, &value), 1);
	ck_assert_int_eq(ww_session_set(rig.map, NULL, 0, (void *)2, 0, &value), WW_OK);
	ck_assert_uint_eq((uintptr_t)value, 1);
	ck_assert_int_eq(ww_session_delete(rig.map, NULL, 0, NULL), 1);
	assert_last_gone(1, "", 2, WW_GONE_DELETED);
	ck_assert_int_eq(ww_session_set(rig.map, NULL, 1, (void *)1, 0, NULL), WW_EINVAL);
	ck_assert_int_eq(ww_session_get(rig.map, NULL, 1, NULL), WW_EINVAL);
	rig_close(&rig);
}
END_TEST

/* ---- The rest ------------------------------------------------------------------------------------------------- */

START_TEST(refused_calls_change_nothing)
{
	struct rig rig;
	void *former = &rig;
	uint64_t ns;

	rig_start(&rig);
	OK(set(&rig, "a", 1, SEC));
	ck_assert_int_eq(ww_session_set(rig.map, "a", 1, (void *)2, WW_SESSION_TTL_MAX + 1, &former), WW_EINVAL);
	ck_assert_ptr_eq(former, &rig);
	ck_assert_int_eq(refresh(&rig, "a", WW_SESSION_TTL_MAX + 1), WW_EINVAL);
	ck_assert_int_eq(refresh(&rig, "b", UINT64_MAX), WW_EINVAL);
	ck_assert_int_eq(ww_session_set(NULL, "a", 1, NULL, 0, NULL), WW_EINVAL);
	ck_assert_int_eq(ww_session_get(NULL, "a", 1, NULL), WW_EINVAL);
	ck_assert_int_eq(ww_session_refresh(NULL, "a", 1, 0, NULL), WW_EINVAL);
	ck_assert_int_eq(ww_session_look(NULL, "a", 1, look, NULL), WW_EINVAL);
	ck_assert_int_eq(ww_session_time_left(NULL, "a", 1, &ns), WW_EINVAL);
	ck_assert_int_eq(ww_session_time_left(rig.map, "a", 1, NULL), WW_EINVAL);
	ck_assert_int_eq(ww_session_delete(NULL, "a", 1, NULL), WW_EINVAL);
	ck_assert_int_eq(ww_session_clear(NULL, NULL), WW_EINVAL);
	ck_assert_int_eq(ww_session_stats(NULL, &(struct ww_session_stats){0}), WW_EINVAL);
	ck_assert_int_eq(ww_session_stats(rig.map, NULL), WW_EINVAL);
	ck_assert_int_eq(ww_session_config_default(NULL), WW_EINVAL);
	ck_assert_uint_eq(left(&rig, "a"), SEC);
	ck_assert_uint_eq(stats(&rig).hits + stats(&rig).misses, 0);
	ck_assert_uint_eq(get(&rig, "a"), 1);
	rig_close(&rig);
}
END_TEST

START_TEST(statistics_count_every_event)
{
	struct rig rig;
	uintptr_t seen = 0;

	rig_plan(&rig);
	rig.of_map.limit = 2;
	rig_open(&rig);
	OK(set(&rig, "a", 1, SEC));
	(void)get(&rig, "a");
	(void)get(&rig, "b");
	(void)refresh(&rig, "a", 0);
	(void)refresh(&rig, "b", 0);
	(void)ww_session_look(rig.map, "a", 1, look, &seen);
	(void)ww_session_look(rig.map, "b", 1, look, &seen);
	(void)left(&rig, "a");
	(void)erase(&rig, "b");
	ck_assert_uint_eq(stats(&rig).hits, 3);
	ck_assert_uint_eq(stats(&rig).misses, 3);
	OK(set(&rig, "b", 2, SEC));
	OK(set(&rig, "c", 3, SEC));
	ck_assert_uint_eq(stats(&rig).evicted, 1);
	step(&rig, SEC);
	ck_assert_uint_eq(stats(&rig).entries, 2); /* until their tick */
	(void)get(&rig, "b");
	ck_assert_uint_eq(stats(&rig).misses, 4);
	OK(set(&rig, "b", 4, SEC));
	ck_assert_uint_eq(stats(&rig).expired, 1);
	pass(&rig, MS);
	ck_assert_uint_eq(stats(&rig).expired, 2);
	ck_assert_uint_eq(stats(&rig).entries, 1);
	ck_assert_uint_eq(stats(&rig).loads + stats(&rig).loads_failed + stats(&rig).loads_shared, 0);
	rig_close(&rig);
}
END_TEST

static void test_in_gone(
    struct ww_session *map, const void *key, size_t length, void *value, enum ww_gone why, void *user)
{
	note(map, key, length, value, why, user);
	pthread_testcancel();
}

static void test_in_look(void *value, void *context)
{
	look(value, context);
	pthread_testcancel();
}

/* Replaces, looks and clears, with a cancellation pending. */
static void *call_when_cancelled(void *argument)
{
	/* Not on the stack: AddressSanitizer still guards the frames that a cancelled thread has left. */
	static uintptr_t seen;
	static size_t count;
	struct rig *rig = argument;

	pthread_cancel(pthread_self());
	OK(set(rig, "a", 3, 0));
	ck_assert(ww_session_look(rig->map, "a", 1, test_in_look, &seen) == 1 && seen == 3);
	ck_assert(ww_session_clear(rig->map, &count) == WW_OK && count == 2);
	rig->of_map.user = rig;
	pthread_testcancel();
	return NULL;
}

START_TEST(a_thread_is_not_cancelled_in_gone_or_look)
{
	struct rig rig;
	pthread_t thread;
	void *result = NULL;

	rig_plan(&rig);
	rig.of_map.gone = test_in_gone;
	rig_open(&rig);
	OK(set(&rig, "a", 1, 0));
	OK(set(&rig, "a key that is a block of its own", 2, 0));
	ck_assert_int_eq(pthread_create(&thread, NULL, call_when_cancelled, &rig), 0);
	ck_assert_int_eq(pthread_join(thread, &result), 0);
	ck_assert_ptr_eq(result, PTHREAD_CANCELED);
	/* The thread got to the end of its function. */
	ck_assert_ptr_eq(rig.of_map.user, &rig);
	ck_assert_uint_eq(gone_calls(), 3);
	rig_close(&rig);
}
END_TEST

TEST_MAIN("session/calls", a_value_is_found_until_its_ttl_has_passed, a_key_that_was_never_set_is_not_found,
    null_is_a_value, set_replaces_and_starts_the_new_ttl,
    refresh_slides_by_the_entrys_ttl_or_by_a_given_one_which_it_keeps, a_shorter_refresh_expires_earlier,
    an_entrys_ttl_is_kept_in_microseconds_rounded_up, get_look_and_time_left_do_not_prolong,
    look_calls_its_function_with_the_value_once_or_not_at_all, inspect_tells_what_find_tells_and_is_a_lookup,
    every_call_is_refused_in_a_look, delete_hands_over_to_the_caller_or_to_gone,
    clear_tells_gone_of_all_and_the_empty_map_still_works, keys_of_every_length_and_with_zero_bytes_are_told_apart,
    the_key_is_copied_and_passed_whole_to_gone, an_empty_key_is_a_key_whether_null_or_not, refused_calls_change_nothing,
    statistics_count_every_event, a_thread_is_not_cancelled_in_gone_or_look)
