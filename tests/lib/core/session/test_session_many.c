/* Many keys in a call. test_session_oracle.c compares them with one by one, test_session_races.c uses threads. */
/* tier: quick */

#include "tests/lib/core/session/fixture.h"

#define MANY 100

static char key[MANY][8];
static struct ww_session_item items[MANY];
static struct rig rig;

/* Keys 0 to MANY - 1, of which the even ones are in the map, with their number and 1 as their value. */
static void open_half(uint32_t shards)
{
	rig_plan(&rig);
	rig.of_map.shards = shards;
	rig_open(&rig);
	for (uintptr_t i = 0; i < MANY; i++) {
		(void)snprintf(key[i], sizeof key[i], "%d", (int)i);
		if (i % 2 == 0)
			OK(set(&rig, key[i], i + 1, 0));
		items[i] = (struct ww_session_item){key[i], strlen(key[i]), &rig, 4711};
	}
}

static void assert_half_found(size_t found)
{
	ck_assert_uint_eq(found, MANY / 2);
	for (uintptr_t i = 0; i < MANY; i++) {
		ck_assert_int_eq(items[i].result, i % 2 == 0);
		ck_assert_ptr_eq(items[i].value, i % 2 == 0 ? (void *)(i + 1) : &rig);
	}
}

START_TEST(get_many_finds_each_key_and_counts)
{
	for (uint32_t shards = 1; shards <= WW_DRIVER_SHARDS_MAX; shards += 21) {
		size_t found = 9;
		open_half(shards);
		OK(ww_session_get_many(rig.map, items, MANY, &found));
		assert_half_found(found);
		ck_assert_uint_eq(stats(&rig).hits, MANY / 2);
		ck_assert_uint_eq(stats(&rig).misses, MANY / 2);
		OK(ww_session_get_many(rig.map, items, MANY, NULL));
		rig_close(&rig);
	}
}
END_TEST

START_TEST(refresh_many_prolongs_each_by_its_own_or_the_ttl_given)
{
	size_t found = 9;

	open_half(4);
	OK(set(&rig, "2", 3, 20 * SEC));
	step(&rig, 5 * SEC);
	OK(ww_session_refresh_many(rig.map, items, MANY, 0, &found));
	assert_half_found(found);
	ck_assert_uint_eq(left(&rig, "0"), 10 * SEC);
	ck_assert_uint_eq(left(&rig, "2"), 20 * SEC);
	OK(ww_session_refresh_many(rig.map, items, 3, 7 * SEC, &found));
	ck_assert_uint_eq(found, 2);
	ck_assert_uint_eq(left(&rig, "0"), 7 * SEC);
	ck_assert_uint_eq(left(&rig, "2"), 7 * SEC);
	ck_assert_uint_eq(left(&rig, "4"), 10 * SEC);
	rig_close(&rig);
}
END_TEST

START_TEST(what_has_expired_is_not_found)
{
	size_t found = 9;

	open_half(4);
	step(&rig, 10 * SEC);
	OK(ww_session_get_many(rig.map, items, MANY, &found));
	ck_assert_uint_eq(found, 0);
	OK(ww_session_refresh_many(rig.map, items, MANY, 0, &found));
	ck_assert_uint_eq(found, 0);
	OK(ww_session_delete_many(rig.map, items, MANY, &found));
	ck_assert_uint_eq(found, 0);
	ck_assert_ptr_eq(items[0].value, &rig);
	rig_close(&rig);
}
END_TEST

START_TEST(delete_many_hands_over_each_value_once)
{
	size_t found = 9;

	open_half(4);
	items[2] = items[0];
	OK(ww_session_delete_many(rig.map, items, 4, &found));
	ck_assert_uint_eq(found, 1);
	ck_assert_int_eq(items[0].result, 1);
	ck_assert_int_eq(items[2].result, 0);
	ck_assert_ptr_eq(items[0].value, (void *)1);
	ck_assert_ptr_eq(items[2].value, &rig);
	ck_assert_uint_eq(gone_calls(), 0);
	ck_assert_uint_eq(get(&rig, "0"), 0);
	ck_assert_uint_eq(get(&rig, "2"), 3);
	rig_close(&rig);
}
END_TEST

START_TEST(an_item_that_is_refused_does_not_stop_the_others)
{
	size_t found = 9;

	open_half(4);
	items[3].length = WW_SESSION_KEY_MAX + 1;
	items[5].key = NULL;
	items[7] = (struct ww_session_item){NULL, 0, &rig, 4711};
	ck_assert_int_eq(ww_session_get_many(rig.map, items, MANY, &found), WW_EINVAL);
	ck_assert_uint_eq(found, MANY / 2);
	ck_assert_int_eq(items[3].result, WW_EINVAL);
	ck_assert_int_eq(items[5].result, WW_EINVAL);
	ck_assert_int_eq(items[7].result, 0);
	ck_assert_int_eq(items[98].result, 1);
	/* The whole TTL is refused, for those that are there or not, as it is one by one. */
	ck_assert_int_eq(ww_session_refresh_many(rig.map, items, 2, WW_SESSION_TTL_MAX + 1, &found), WW_EINVAL);
	ck_assert_uint_eq(found, 0);
	ck_assert_int_eq(items[0].result, WW_EINVAL);
	ck_assert_int_eq(items[1].result, WW_EINVAL);
	ck_assert_uint_eq(left(&rig, "0"), 10 * SEC);
	rig_close(&rig);
}
END_TEST

START_TEST(a_call_that_is_refused_changes_nothing)
{
	size_t found = 9;

	open_half(4);
	ck_assert_int_eq(ww_session_get_many(NULL, items, 1, &found), WW_EINVAL);
	ck_assert_int_eq(ww_session_get_many(rig.map, NULL, 1, &found), WW_EINVAL);
	ck_assert_int_eq(ww_session_refresh_many(rig.map, NULL, 1, 0, &found), WW_EINVAL);
	ck_assert_int_eq(ww_session_delete_many(rig.map, NULL, 1, &found), WW_EINVAL);
	ck_assert_uint_eq(found, 9);
	ck_assert_int_eq(items[0].result, 4711);
	OK(ww_session_get_many(rig.map, NULL, 0, &found));
	ck_assert_uint_eq(found, 0);
	rig_close(&rig);
}
END_TEST

static void call_inside(void *value, void *context)
{
	size_t *found = context;

	ck_assert_ptr_eq(value, (void *)1);
	ck_assert_int_eq(ww_session_get_many(rig.map, items, 1, found), WW_EBUSY);
	ck_assert_int_eq(ww_session_refresh_many(rig.map, items, 1, 0, found), WW_EBUSY);
	ck_assert_int_eq(ww_session_delete_many(rig.map, items, 1, found), WW_EBUSY);
}

START_TEST(a_look_cannot_call_it)
{
	size_t found = 9;

	open_half(4);
	ck_assert_int_eq(ww_session_look(rig.map, "0", 1, call_inside, &found), 1);
	ck_assert_uint_eq(found, 9);
	ck_assert_int_eq(items[0].result, 4711);
	rig_close(&rig);
}
END_TEST

/* In a limited map the last of the items is the one used last. */
START_TEST(the_order_of_items_is_the_order_of_use)
{
	rig_plan(&rig);
	rig.of_map.limit = 3;
	rig_open(&rig);
	OK(set(&rig, "a", 1, 0));
	OK(set(&rig, "b", 2, 0));
	OK(set(&rig, "c", 3, 0));
	struct ww_session_item order[] = {{"c", 1, NULL, 0}, {"a", 1, NULL, 0}, {"b", 1, NULL, 0}, {"c", 1, NULL, 0}};
	OK(ww_session_get_many(rig.map, order, 4, NULL));
	OK(set(&rig, "d", 4, 0));
	assert_last_gone(1, "a", 1, WW_GONE_EVICTED);
	rig_close(&rig);
}
END_TEST

TEST_MAIN("session/many", get_many_finds_each_key_and_counts, refresh_many_prolongs_each_by_its_own_or_the_ttl_given,
    what_has_expired_is_not_found, delete_many_hands_over_each_value_once,
    an_item_that_is_refused_does_not_stop_the_others, a_call_that_is_refused_changes_nothing, a_look_cannot_call_it,
    the_order_of_items_is_the_order_of_use)
