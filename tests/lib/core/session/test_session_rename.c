/* ww_session_rename: an entry gets another key, in its shard or in another. */
/* tier: quick */

#include "tests/lib/core/session/fixture.h"

static int rename_as(struct rig *rig, const char *key, const char *to, struct ww_session_order order, void **former)
{
	return ww_session_rename(rig->map, key, strlen(key), to, strlen(to), &order, NULL, former);
}

static int rename_key(struct rig *rig, const char *key, const char *to)
{
	return ww_session_rename(rig->map, key, strlen(key), to, strlen(to), NULL, NULL, NULL);
}

static struct ww_session_found found(struct rig *rig, const char *key)
{
	struct ww_session_found it = {0};

	ck_assert_int_eq(ww_session_find(rig->map, key, strlen(key), &it), 1);
	return it;
}

/* The same but for the version. */
static void assert_same(struct ww_session_found one, struct ww_session_found other)
{
	ck_assert_ptr_eq(one.value, other.value);
	ck_assert_uint_eq(one.ttl, other.ttl);
	ck_assert_uint_eq(one.left, other.left);
	ck_assert_uint_eq(one.end_left, other.end_left);
}

/* Many keys in many shards, of which some are longer than an entry has room for. */
static void name(char *key, size_t size, int i, const char *what)
{
	(void)snprintf(key, size, i % 3 ? "%s %d" : "%s of more than sixteen bytes: %d", what, i);
}

START_TEST(an_entry_keeps_everything_but_its_key)
{
	struct rig rig;
	char key[64];
	char to[64];

	for (uint32_t shards = 1; shards < 8; shards += 3) {
		rig_plan(&rig);
		rig.of_map.shards = shards;
		rig.of_map.lifetime = 60 * SEC;
		rig.of_map.jitter = 500;
		rig_open(&rig);
		for (int i = 0; i < 200; i++) {
			name(key, sizeof key, i, "from");
			name(to, sizeof to, i + 1, "to");
			OK(set(&rig, key, (uintptr_t)i, (1 + (uint64_t)i) * SEC));
			step(&rig, 12345);
			struct ww_session_found before = found(&rig, key);
			OK(rename_key(&rig, key, to));
			ck_assert_uint_eq(left(&rig, key), 0);
			struct ww_session_found after = found(&rig, to);
			assert_same(after, before);
			ck_assert_uint_ne(after.version, before.version);
		}
		ck_assert_uint_eq(stats(&rig).entries, 200);
		ck_assert_uint_eq(gone_calls(), 0);
		pass(&rig, 60 * SEC + MS);
		ck_assert_uint_eq(gone_calls(), 200);
		rig_close(&rig);
	}
}
END_TEST

START_TEST(a_renamed_entry_expires_in_its_own_time_under_its_new_key)
{
	struct rig rig;

	rig_start(&rig);
	OK(set(&rig, "a", 1, 0));
	step(&rig, 4 * SEC);
	OK(rename_key(&rig, "a", "b"));
	pass(&rig, 6 * SEC - 1);
	ck_assert_uint_eq(get(&rig, "b"), 1);
	pass(&rig, 1 + MS);
	assert_last_gone(1, "b", 1, WW_GONE_EXPIRED);
	ck_assert_int_eq(rename_key(&rig, "b", "a"), WW_ESTALE);
	rig_close(&rig);
}
END_TEST

START_TEST(what_has_the_new_key_stays_unless_it_is_to_be_replaced)
{
	static const struct ww_session_order replace = {.flags = WW_SESSION_REPLACE};
	struct rig rig;

	for (uint32_t shards = 1; shards < 8; shards += 6) {
		void *former = &rig;
		rig_plan(&rig);
		rig.of_map.shards = shards;
		rig_open(&rig);
		OK(set(&rig, "a", 1, 0));
		OK(set(&rig, "b", 2, 7 * SEC));
		struct ww_session_found before = found(&rig, "b");
		ck_assert_int_eq(rename_as(&rig, "a", "b", (struct ww_session_order){0}, &former), WW_EINUSE);
		ck_assert_ptr_eq(former, &rig);
		ck_assert_uint_eq(get(&rig, "a"), 1);
		assert_same(found(&rig, "b"), before);
		before = found(&rig, "a");
		OK(rename_as(&rig, "a", "b", replace, NULL));
		assert_last_gone(1, "b", 2, WW_GONE_REPLACED);
		assert_same(found(&rig, "b"), before);
		OK(set(&rig, "c", 3, 3 * SEC));
		OK(rename_as(&rig, "b", "c", replace, &former));
		ck_assert_ptr_eq(former, (void *)3);
		OK(set(&rig, "d", 4, 3 * SEC));
		/* An expired entry is not there. */
		step(&rig, 3 * SEC);
		OK(rename_as(&rig, "c", "d", (struct ww_session_order){0}, &former));
		ck_assert_ptr_null(former);
		assert_last_gone(2, "d", 4, WW_GONE_EXPIRED);
		ck_assert_uint_eq(left(&rig, "d"), 7 * SEC);
		ck_assert_uint_eq(stats(&rig).entries, 1);
		rig_close(&rig);
	}
}
END_TEST

START_TEST(an_order_names_the_version_and_may_start_times_anew)
{
	struct rig rig;

	rig_plan(&rig);
	rig.of_map.lifetime = 60 * SEC;
	rig_open(&rig);
	OK(set(&rig, "a", 1, 0));
	uint64_t version = found(&rig, "a").version;
	step(&rig, 5 * SEC);
	ck_assert_int_eq(rename_as(&rig, "a", "b", (struct ww_session_order){.version = version + 1}, NULL), WW_ESTALE);
	ck_assert_int_eq(
	    rename_as(&rig, "a", "b", (struct ww_session_order){.version = WW_SESSION_ABSENT}, NULL), WW_ESTALE);
	struct ww_session_order order = {.version = version};
	struct ww_session_found it;
	OK(ww_session_rename(rig.map, "a", 1, "b", 1, &order, &it, NULL));
	assert_same(found(&rig, "b"), it);
	ck_assert_uint_eq(found(&rig, "b").version, it.version);
	ck_assert_uint_eq(it.left, 5 * SEC);
	ck_assert_int_eq(ww_session_rename(rig.map, "b", 1, "c", 1, &order, &it, NULL), WW_ESTALE);
	order = (struct ww_session_order){.version = it.version, .ttl = 20 * SEC};
	OK(ww_session_rename(rig.map, "b", 1, "c", 1, &order, &it, NULL));
	ck_assert_uint_eq(left(&rig, "c"), 20 * SEC);
	ck_assert_uint_eq(found(&rig, "c").end_left, 55 * SEC);
	step(&rig, 5 * SEC);
	OK(rename_as(&rig, "c", "d", (struct ww_session_order){.lifetime = 100 * SEC}, NULL));
	ck_assert_uint_eq(left(&rig, "d"), 20 * SEC);
	ck_assert_uint_eq(found(&rig, "d").end_left, 100 * SEC);
	OK(rename_as(&rig, "d", "e", (struct ww_session_order){.end = START + 17 * SEC}, NULL));
	ck_assert_uint_eq(left(&rig, "e"), 7 * SEC);
	ck_assert_uint_eq(found(&rig, "e").ttl, 20 * SEC);
	rig_close(&rig);
}
END_TEST

START_TEST(a_rename_that_is_refused_changes_nothing)
{
	struct rig rig;
	void *former = &rig;
	char key[64];

	rig_plan(&rig);
	rig.of_map.shards = 5;
	rig_open(&rig);
	OK(set(&rig, "a", 1, 0));
	struct ww_session_found before = found(&rig, "a");
	ck_assert_int_eq(ww_session_rename(NULL, "a", 1, "b", 1, NULL, NULL, &former), WW_EINVAL);
	ck_assert_int_eq(ww_session_rename(rig.map, NULL, 1, "b", 1, NULL, NULL, &former), WW_EINVAL);
	ck_assert_int_eq(ww_session_rename(rig.map, "a", 1, NULL, 1, NULL, NULL, &former), WW_EINVAL);
	ck_assert_int_eq(ww_session_rename(rig.map, "a", 1, "b", 65536, NULL, NULL, &former), WW_EINVAL);
	ck_assert_int_eq(rename_as(&rig, "a", "a", (struct ww_session_order){0}, &former), WW_EINVAL);
	const uint32_t unknown[] = {
	    1u << 31, WW_SESSION_KEEP_END, WW_SESSION_PINNED, WW_SESSION_BEYOND, WW_SESSION_REPLACE << 8};
	for (size_t i = 0; i < sizeof unknown / sizeof unknown[0]; i++)
		ck_assert_int_eq(
		    rename_as(&rig, "a", "b", (struct ww_session_order){.flags = unknown[i]}, &former), WW_EINVAL);
	ck_assert_int_eq(rename_as(&rig, "a", "b", (struct ww_session_order){.lifetime = SEC}, &former), WW_EINVAL);
	ck_assert_int_eq(
	    rename_as(&rig, "a", "b", (struct ww_session_order){.ttl = WW_SESSION_TTL_MAX + 1}, &former), WW_EINVAL);
	ck_assert_int_eq(rename_as(&rig, "b", "a", (struct ww_session_order){0}, &former), WW_ESTALE);
	rig.memory.exhausted = 1;
	int refused = 0;
	for (int i = 0; i < 30; i++) {
		name(key, sizeof key, 3 * i, "to");
		ck_assert_int_eq(rename_as(&rig, "a", key, (struct ww_session_order){0}, &former), WW_ENOMEM);
		refused++;
	}
	ck_assert_int_eq(refused, 30);
	rig.memory.exhausted = 0;
	ck_assert_ptr_eq(former, &rig);
	assert_same(found(&rig, "a"), before);
	ck_assert_uint_eq(stats(&rig).entries, 1);
	rig_close(&rig);
}
END_TEST

START_TEST(times_that_start_anew_may_not_lead_beyond_the_last)
{
	static const struct ww_session_order orders[] = {
	    {.ttl = 10 * SEC}, {.lifetime = SEC}, {.end = WW_DRIVER_TIME_MAX}};
	struct rig rig;

	rig_plan(&rig);
	rig.of_map.flags = WW_SESSION_LIFETIMES;
	rig_open(&rig);
	OK(ww_clock_virtual_set(rig.clock, WW_DRIVER_TIME_MAX - 10 * SEC));
	OK(set(&rig, "a", 1, 10 * SEC));
	step(&rig, SEC);
	for (size_t i = 0; i < sizeof orders / sizeof orders[0]; i++)
		ck_assert_int_eq(rename_as(&rig, "a", "b", orders[i], NULL), WW_EOVERFLOW);
	/* The deadline that it has is none too many. */
	OK(rename_as(&rig, "a", "b", (struct ww_session_order){0}, NULL));
	ck_assert_uint_eq(left(&rig, "b"), 9 * SEC);
	rig_close(&rig);
}
END_TEST

START_TEST(in_a_full_map_a_rename_evicts_only_where_there_is_an_entry_more)
{
	struct rig rig;

	rig_plan(&rig);
	rig.of_map.limit = 3;
	rig_open(&rig);
	OK(set(&rig, "a", 1, 0));
	OK(set(&rig, "b", 2, 0));
	OK(set(&rig, "c", 3, 0));
	/* Of the oldest, which would be evicted first. It is the newest then. */
	OK(rename_key(&rig, "a", "d"));
	ck_assert_uint_eq(gone_calls(), 0);
	OK(set(&rig, "e", 4, 0));
	assert_last_gone(1, "b", 2, WW_GONE_EVICTED);
	rig_close(&rig);

	/* In a map of many shards the other shard may be full. No shard is ever over its limit. */
	rig_plan(&rig);
	rig.of_map.limit = 7;
	rig.of_map.shards = 7;
	rig_open(&rig);
	char key[64];
	char to[64];
	for (int i = 0; i < 400; i++) {
		name(key, sizeof key, i, "key");
		name(to, sizeof to, i, "to");
		size_t before = gone_calls();
		OK(set(&rig, key, 1 + (uintptr_t)i, 0));
		ck_assert_uint_le(gone_calls(), before + 1);
		before = gone_calls();
		OK(rename_key(&rig, key, to));
		ck_assert_uint_le(gone_calls(), before + 1);
		ck_assert_uint_eq(get(&rig, to), 1 + (uintptr_t)i);
		ck_assert_uint_le(stats(&rig).entries, 7);
		ck_assert_uint_eq(stats(&rig).entries + gone_calls(), (size_t)i + 1);
		ck_assert_uint_eq(stats(&rig).evicted, gone_calls());
	}
	rig_close(&rig);
}
END_TEST

START_TEST(long_keys_are_freed_and_the_memory_of_entries_is_used_again)
{
	struct rig rig;
	char key[300] = "";
	char to[300] = "";

	rig_plan(&rig);
	rig.of_map.shards = 4;
	rig.of_map.gone = NULL;
	rig_open(&rig);
	uint64_t most = 0;
	OK(ww_session_set(rig.map, key, sizeof key, (void *)1, 1000 * SEC, NULL));
	for (int i = 1; i < 20000; i++) {
		(void)snprintf(to, sizeof to, "%d", i);
		OK(ww_session_rename(rig.map, key, sizeof key, to, sizeof to, NULL, NULL, NULL));
		memcpy(key, to, sizeof key);
		if (i == 1000)
			most = stats(&rig).bytes;
		ck_assert(i < 1000 || stats(&rig).bytes <= most);
	}
	rig_close(&rig);
}
END_TEST

TEST_MAIN("session/rename", an_entry_keeps_everything_but_its_key,
    a_renamed_entry_expires_in_its_own_time_under_its_new_key, what_has_the_new_key_stays_unless_it_is_to_be_replaced,
    an_order_names_the_version_and_may_start_times_anew, a_rename_that_is_refused_changes_nothing,
    times_that_start_anew_may_not_lead_beyond_the_last, in_a_full_map_a_rename_evicts_only_where_there_is_an_entry_more,
    long_keys_are_freed_and_the_memory_of_entries_is_used_again)
