/* Versions: storing if nothing or the expected is there. */
/* tier: quick */

#include "tests/lib/core/session/fixture.h"

static int put(struct rig *rig, const char *key, uintptr_t value, uint64_t version, struct ww_session_found *found)
{
	const struct ww_session_order order = {.version = version};

	return ww_session_put(rig->map, key, strlen(key), (void *)value, &order, found, NULL);
}

static uint64_t version_of(struct rig *rig, const char *key)
{
	struct ww_session_found found;

	ck_assert_int_eq(ww_session_find(rig->map, key, strlen(key), &found), 1);
	return found.version;
}

START_TEST(a_put_without_an_order_is_a_set)
{
	struct rig rig;
	struct ww_session_found found;
	void *former = &rig;

	rig_start(&rig);
	OK(ww_session_put(rig.map, "a", 1, (void *)1, NULL, NULL, NULL));
	ck_assert_uint_eq(left(&rig, "a"), 10 * SEC);
	OK(ww_session_put(rig.map, "a", 1, (void *)2, &(struct ww_session_order){.ttl = 3 * SEC}, &found, &former));
	ck_assert_ptr_eq(former, (void *)1);
	ck_assert_ptr_eq(found.value, (void *)2);
	ck_assert_uint_eq(found.left, 3 * SEC);
	ck_assert_uint_eq(found.ttl, 3 * SEC);
	ck_assert_uint_eq(found.end_left, WW_SESSION_NO_END);
	ck_assert_uint_eq(gone_calls(), 0);
	OK(ww_session_put(rig.map, "a", 1, (void *)3, NULL, NULL, NULL));
	assert_last_gone(1, "a", 2, WW_GONE_REPLACED);
	rig_close(&rig);
}
END_TEST

START_TEST(a_put_if_absent_stores_once_until_the_entry_has_left_or_expired)
{
	struct rig rig;
	struct ww_session_found found;

	rig_start(&rig);
	OK(put(&rig, "a", 1, WW_SESSION_ABSENT, NULL));
	step(&rig, 4 * SEC);
	ck_assert_int_eq(put(&rig, "a", 2, WW_SESSION_ABSENT, &found), WW_ESTALE);
	ck_assert_ptr_eq(found.value, (void *)1);
	ck_assert_uint_eq(found.left, 6 * SEC);
	ck_assert_uint_eq(get(&rig, "a"), 1);
	ck_assert_uint_eq(left(&rig, "a"), 6 * SEC);
	step(&rig, 6 * SEC);
	OK(put(&rig, "a", 3, WW_SESSION_ABSENT, NULL));
	assert_last_gone(1, "a", 1, WW_GONE_EXPIRED);
	ck_assert_int_eq(erase(&rig, "a"), 1);
	OK(put(&rig, "a", 4, WW_SESSION_ABSENT, NULL));
	ck_assert_uint_eq(get(&rig, "a"), 4);
	rig_close(&rig);
}
END_TEST

START_TEST(a_put_with_a_version_replaces_that_very_entry)
{
	struct rig rig;
	struct ww_session_found found;

	rig_start(&rig);
	OK(set(&rig, "a", 1, 0));
	uint64_t first = version_of(&rig, "a");
	OK(put(&rig, "a", 2, first, &found));
	ck_assert_uint_ne(found.version, first);
	ck_assert_uint_eq(found.version, version_of(&rig, "a"));
	ck_assert_int_eq(put(&rig, "a", 3, first, &found), WW_ESTALE);
	ck_assert_ptr_eq(found.value, (void *)2);
	OK(put(&rig, "a", 4, found.version, NULL));
	/* Setting the same value again makes another version, too. */
	uint64_t former = version_of(&rig, "a");
	OK(set(&rig, "a", 4, 0));
	ck_assert_int_eq(put(&rig, "a", 5, former, NULL), WW_ESTALE);
	ck_assert_int_eq(refresh(&rig, "a", 0), 1);
	former = version_of(&rig, "a");
	step(&rig, 10 * SEC);
	ck_assert_int_eq(put(&rig, "a", 6, former, &found), WW_ESTALE);
	ck_assert_ptr_null(found.value);
	ck_assert_uint_eq(found.version, 0);
	ck_assert_int_eq(put(&rig, "b", 6, former, NULL), WW_ESTALE);
	ck_assert_uint_eq(get(&rig, "b"), 0);
	rig_close(&rig);
}
END_TEST

START_TEST(neither_refreshes_nor_rewound_clocks_change_a_version)
{
	struct rig rig;

	rig_start(&rig);
	OK(set(&rig, "a", 1, 0));
	uint64_t version = version_of(&rig, "a");
	for (int i = 0; i < 10; i++) {
		ck_assert_int_eq(refresh(&rig, "a", (uint64_t)(1 + i * i) * 100 * SEC), 1);
		pass(&rig, SEC);
	}
	OK(ww_clock_virtual_set(rig.clock, START - 100 * SEC));
	OK(ww_driver_settle(rig.driver));
	ck_assert_int_eq(refresh(&rig, "a", SEC), 1);
	ck_assert_uint_eq(version_of(&rig, "a"), version);
	rig_close(&rig);
}
END_TEST

START_TEST(versions_differ_between_keys_and_shards)
{
	struct rig rig;
	uint64_t seen[300];
	char key[8];

	rig_plan(&rig);
	rig.of_map.shards = 7;
	rig_open(&rig);
	for (int i = 0; i < 300; i++) {
		(void)snprintf(key, sizeof key, "%d", i % 100);
		OK(set(&rig, key, 1, 0));
		seen[i] = version_of(&rig, key);
		ck_assert_uint_ne(seen[i], WW_SESSION_ANY);
		for (int k = 0; k < i; k++)
			ck_assert_uint_ne(seen[k], seen[i]);
	}
	rig_close(&rig);
}
END_TEST

START_TEST(an_unconditional_put_that_is_refused_changes_nothing)
{
	struct rig rig;
	struct ww_session_found found = {.version = 4711};
	struct ww_session_order order = {.ttl = WW_SESSION_TTL_MAX + 1};

	rig_start(&rig);
	ck_assert_int_eq(ww_session_put(rig.map, "a", 1, NULL, &order, &found, NULL), WW_EINVAL);
	ck_assert_int_eq(ww_session_put(NULL, "a", 1, NULL, NULL, &found, NULL), WW_EINVAL);
	ck_assert_int_eq(ww_session_find(rig.map, "a", 1, NULL), WW_EINVAL);
	ck_assert_int_eq(ww_session_find(rig.map, "a", 1, &found), 0);
	ck_assert_uint_eq(found.version, 4711);
	rig.memory.exhausted = 1;
	ck_assert_int_eq(ww_session_put(rig.map, "a", 1, NULL, NULL, &found, NULL), WW_ENOMEM);
	ck_assert_uint_eq(found.version, 4711);
	rig.memory.exhausted = 0;
	ck_assert_uint_eq(get(&rig, "a"), 0);
	rig_close(&rig);
}
END_TEST

START_TEST(what_is_not_found_or_is_refused_leaves_what_the_caller_has)
{
	static const struct {
		int error;
		struct ww_session_order order;
	} refused[] = {
	    {WW_ESTALE, {.version = WW_SESSION_ABSENT}},
	    {WW_EINVAL, {.ttl = WW_SESSION_TTL_MAX + 1}},
	    {WW_EINVAL, {.flags = WW_SESSION_PINNED}},
	    {WW_EOVERFLOW, {.deadline = WW_DRIVER_TIME_MAX + 1}},
	};
	struct ww_session_found found, before;
	void *former = &found;
	struct rig rig;

	rig_start(&rig);
	memset(&before, 7, sizeof before);
	memcpy(&found, &before, sizeof found);
	ck_assert_int_eq(ww_session_find(rig.map, "a", 1, &found), 0);
	OK(set(&rig, "a", 1, 0));
	for (size_t i = 0; i < sizeof refused / sizeof refused[0]; i++) {
		/* A stale version stores what is there instead. */
		struct ww_session_found *to = refused[i].error == WW_ESTALE ? NULL : &found;
		ck_assert_int_eq(
		    ww_session_put(rig.map, "a", 1, (void *)2, &refused[i].order, to, &former), refused[i].error);
	}
	ck_assert_mem_eq(&found, &before, sizeof found);
	ck_assert_ptr_eq(former, &found);
	ck_assert_uint_eq(get(&rig, "a"), 1);
	rig_close(&rig);
}
END_TEST

START_TEST(a_put_at_a_deadline_expires_then_and_repeats_its_ttl)
{
	struct rig rig;
	struct ww_session_found found;
	uint64_t now;

	rig_start(&rig);
	OK(ww_driver_now(rig.driver, &now));
	OK(ww_session_put(rig.map, "a", 1, (void *)1,
	    &(struct ww_session_order){.ttl = 9 * SEC, .deadline = now + 4 * SEC + 7}, &found, NULL));
	ck_assert_uint_eq(found.deadline, now + 4 * SEC + 7);
	ck_assert_uint_eq(found.ttl, 9 * SEC);
	step(&rig, 2 * SEC);
	ck_assert_int_eq(ww_session_find(rig.map, "a", 1, &found), 1);
	ck_assert_uint_eq(found.deadline, now + 4 * SEC + 7);
	OK(ww_session_put(rig.map, "b", 1, (void *)2, &(struct ww_session_order){.deadline = now}, NULL, NULL));
	ck_assert_int_eq(ww_session_find(rig.map, "b", 1, &found), 0);
	OK(ww_session_put(
	    rig.map, "c", 1, (void *)3, &(struct ww_session_order){.deadline = WW_DRIVER_TIME_MAX}, &found, NULL));
	ck_assert_uint_eq(found.deadline, WW_DRIVER_TIME_MAX);
	ck_assert_int_eq(ww_session_put(rig.map, "c", 1, (void *)4,
	                     &(struct ww_session_order){.deadline = WW_DRIVER_TIME_MAX + 1}, NULL, NULL),
	    WW_EOVERFLOW);
	ck_assert_uint_eq(get(&rig, "c"), 3);
	ck_assert_int_eq(ww_session_refresh(rig.map, "a", 1, 0, NULL), 1);
	ck_assert_uint_eq(left(&rig, "a"), 9 * SEC);
	rig_close(&rig);
}
END_TEST

START_TEST(a_delete_with_a_version_takes_out_that_very_entry)
{
	struct rig rig;
	void *value = &rig;

	rig_start(&rig);
	OK(set(&rig, "a", 1, 0));
	uint64_t first = version_of(&rig, "a");
	OK(set(&rig, "a", 2, 0));
	ck_assert_int_eq(ww_session_delete_if(rig.map, "a", 1, first, &value), WW_ESTALE);
	ck_assert_int_eq(ww_session_delete_if(rig.map, "a", 1, WW_SESSION_ABSENT, &value), WW_ESTALE);
	ck_assert_ptr_eq(value, &rig);
	ck_assert_uint_eq(get(&rig, "a"), 2);
	ck_assert_int_eq(ww_session_delete_if(rig.map, "a", 1, version_of(&rig, "a"), &value), 1);
	ck_assert_ptr_eq(value, (void *)2);
	ck_assert_int_eq(ww_session_delete_if(rig.map, "a", 1, first, NULL), 0);
	ck_assert_uint_eq(gone_calls(), 1);
	OK(set(&rig, "a", 3, 0));
	ck_assert_int_eq(ww_session_delete_if(rig.map, "a", 1, WW_SESSION_ANY, NULL), 1);
	assert_last_gone(2, "a", 3, WW_GONE_DELETED);
	rig_close(&rig);
}
END_TEST

TEST_MAIN("session/put", a_put_without_an_order_is_a_set,
    a_put_if_absent_stores_once_until_the_entry_has_left_or_expired, a_put_with_a_version_replaces_that_very_entry,
    neither_refreshes_nor_rewound_clocks_change_a_version, versions_differ_between_keys_and_shards,
    an_unconditional_put_that_is_refused_changes_nothing, what_is_not_found_or_is_refused_leaves_what_the_caller_has,
    a_put_at_a_deadline_expires_then_and_repeats_its_ttl, a_delete_with_a_version_takes_out_that_very_entry)
