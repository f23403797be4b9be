/* Lifetimes: the end that no refresh moves, beside the TTL that one starts anew. */
/* tier: quick */

#include "tests/lib/core/session/fixture.h"

/* Ten seconds idle and a minute in all. */
static void start(struct rig *rig)
{
	rig_plan(rig);
	rig->of_map.lifetime = 60 * SEC;
	rig_open(rig);
}

static struct ww_session_found found(struct rig *rig, const char *key)
{
	struct ww_session_found it = {0};

	ck_assert_int_eq(ww_session_find(rig->map, key, strlen(key), &it), 1);
	return it;
}

static int put(struct rig *rig, const char *key, uintptr_t value, struct ww_session_order order)
{
	return ww_session_put(rig->map, key, strlen(key), (void *)value, &order, NULL, NULL);
}

START_TEST(a_lifetime_ends_however_often_the_entry_is_refreshed)
{
	struct rig rig;

	start(&rig);
	OK(set(&rig, "a", 1, 0));
	for (int s = 1; s < 60; s++) {
		pass(&rig, SEC);
		ck_assert_int_eq(refresh(&rig, "a", 0), 1);
		ck_assert_uint_eq(left(&rig, "a"), (s < 50 ? 10 : 60 - (uint64_t)s) * SEC);
		ck_assert_uint_eq(found(&rig, "a").end_left, (60 - (uint64_t)s) * SEC);
	}
	step(&rig, SEC - 1);
	ck_assert_uint_eq(get(&rig, "a"), 1);
	step(&rig, 1);
	ck_assert_uint_eq(get(&rig, "a"), 0);
	ck_assert_int_eq(refresh(&rig, "a", 0), 0);
	pass(&rig, MS);
	assert_last_gone(1, "a", 1, WW_GONE_EXPIRED);
	rig_close(&rig);
}
END_TEST

START_TEST(an_idle_entry_expires_before_its_lifetime_ends)
{
	struct rig rig;

	start(&rig);
	OK(set(&rig, "a", 1, 0));
	step(&rig, 10 * SEC - 1);
	ck_assert_uint_eq(get(&rig, "a"), 1);
	step(&rig, 1);
	ck_assert_uint_eq(get(&rig, "a"), 0);
	rig_close(&rig);
}
END_TEST

START_TEST(a_ttl_longer_than_the_lifetime_does_not_prolong_it)
{
	struct rig rig;

	start(&rig);
	OK(set(&rig, "a", 1, 3600 * SEC));
	ck_assert_uint_eq(left(&rig, "a"), 60 * SEC);
	ck_assert_uint_eq(found(&rig, "a").ttl, 3600 * SEC);
	step(&rig, 20 * SEC);
	ck_assert_int_eq(refresh(&rig, "a", 1000 * SEC), 1);
	ck_assert_uint_eq(left(&rig, "a"), 40 * SEC);
	rig_close(&rig);
}
END_TEST

START_TEST(jitter_does_not_reach_beyond_the_end_of_a_lifetime)
{
	struct rig rig;
	char key[8];

	rig_plan(&rig);
	rig.of_map.lifetime = 10 * SEC + SEC / 2;
	rig.of_map.jitter = 1000;
	rig_open(&rig);
	for (int i = 0; i < 100; i++) {
		(void)snprintf(key, sizeof key, "%d", i);
		OK(set(&rig, key, 1, 0));
		ck_assert_uint_ge(left(&rig, key), 10 * SEC);
		ck_assert_uint_le(left(&rig, key), 10 * SEC + SEC / 2);
	}
	rig_close(&rig);
}
END_TEST

START_TEST(a_set_begins_a_new_lifetime_unless_it_is_to_keep_the_end)
{
	struct rig rig;

	start(&rig);
	OK(set(&rig, "a", 1, 0));
	step(&rig, 4 * SEC);
	OK(set(&rig, "a", 2, 0));
	ck_assert_uint_eq(found(&rig, "a").end_left, 60 * SEC);
	step(&rig, 5 * SEC);
	OK(put(&rig, "a", 3, (struct ww_session_order){.flags = WW_SESSION_KEEP_END, .lifetime = 500 * SEC}));
	ck_assert_uint_eq(found(&rig, "a").end_left, 55 * SEC);
	/* Nothing is there, or no more, whose end could be kept. */
	OK(put(&rig, "b", 4, (struct ww_session_order){.flags = WW_SESSION_KEEP_END, .lifetime = 500 * SEC}));
	ck_assert_uint_eq(found(&rig, "b").end_left, 500 * SEC);
	step(&rig, 20 * SEC);
	OK(put(&rig, "a", 5, (struct ww_session_order){.flags = WW_SESSION_KEEP_END}));
	ck_assert_uint_eq(found(&rig, "a").end_left, 60 * SEC);
	rig_close(&rig);
}
END_TEST

START_TEST(an_order_may_name_a_lifetime_an_end_or_none)
{
	struct rig rig;

	start(&rig);
	OK(put(&rig, "a", 1, (struct ww_session_order){.lifetime = 7 * SEC}));
	ck_assert_uint_eq(left(&rig, "a"), 7 * SEC);
	OK(put(&rig, "a", 1, (struct ww_session_order){.end = START + 6 * SEC + 1}));
	ck_assert_uint_eq(left(&rig, "a"), 6 * SEC + 1);
	OK(put(&rig, "a", 1, (struct ww_session_order){.end = START + 6 * SEC, .lifetime = 3 * SEC}));
	ck_assert_uint_eq(left(&rig, "a"), 3 * SEC);
	OK(put(&rig, "a", 1, (struct ww_session_order){.end = START + 2 * SEC, .lifetime = 3 * SEC}));
	ck_assert_uint_eq(left(&rig, "a"), 2 * SEC);
	OK(put(&rig, "a", 1, (struct ww_session_order){.lifetime = WW_SESSION_NO_END}));
	ck_assert_uint_eq(found(&rig, "a").end_left, WW_SESSION_NO_END);
	/* Which is kept, too. */
	OK(put(&rig, "a", 1, (struct ww_session_order){.flags = WW_SESSION_KEEP_END}));
	ck_assert_uint_eq(found(&rig, "a").end_left, WW_SESSION_NO_END);
	/* Beyond the last time there is none either. */
	OK(put(&rig, "a", 1, (struct ww_session_order){.lifetime = WW_DRIVER_TIME_MAX}));
	ck_assert_uint_eq(found(&rig, "a").end_left, WW_SESSION_NO_END);
	const struct ww_session_order beyond = {.lifetime = WW_SESSION_NO_END, .end = WW_DRIVER_TIME_MAX + 1};
	OK(put(&rig, "a", 1, beyond));
	ck_assert_uint_eq(found(&rig, "a").end_left, WW_SESSION_NO_END);
	rig_close(&rig);
}
END_TEST

START_TEST(an_end_does_not_put_off_the_maps_own_lifetime)
{
	static const uint64_t ends[] = {START + 500 * SEC, WW_DRIVER_TIME_MAX, WW_SESSION_NO_END};
	struct rig rig;

	start(&rig);
	for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
		OK(put(&rig, "a", 1, (struct ww_session_order){.end = ends[i]}));
		ck_assert_uint_eq(found(&rig, "a").end_left, 60 * SEC);
		const struct ww_session_order order = {.end = ends[i], .flags = WW_SESSION_REPLACE};
		OK(ww_session_rename(rig.map, "a", 1, "b", 1, &order, NULL, NULL));
		ck_assert_uint_eq(found(&rig, "b").end_left, 60 * SEC);
	}
	/* Unless the order says that it has none. */
	OK(put(&rig, "a", 1, (struct ww_session_order){.end = ends[0], .lifetime = WW_SESSION_NO_END}));
	ck_assert_uint_eq(found(&rig, "a").end_left, 500 * SEC);
	rig_close(&rig);
}
END_TEST

START_TEST(an_end_that_has_passed_makes_an_expired_entry)
{
	struct rig rig;
	struct ww_session_found it;

	start(&rig);
	const struct ww_session_order order = {.end = START - 5 * SEC};
	OK(ww_session_put(rig.map, "a", 1, (void *)1, &order, &it, NULL));
	ck_assert_uint_eq(it.left, 0);
	ck_assert_uint_eq(it.end_left, 0);
	ck_assert_uint_eq(get(&rig, "a"), 0);
	pass(&rig, MS);
	assert_last_gone(1, "a", 1, WW_GONE_EXPIRED);
	rig_close(&rig);
}
END_TEST

START_TEST(entries_may_have_lifetimes_in_a_map_that_has_none_of_its_own)
{
	struct rig rig;

	rig_plan(&rig);
	rig.of_map.flags = WW_SESSION_LIFETIMES;
	rig_open(&rig);
	OK(set(&rig, "a", 1, 0));
	ck_assert_uint_eq(found(&rig, "a").end_left, WW_SESSION_NO_END);
	OK(put(&rig, "a", 1, (struct ww_session_order){.lifetime = 7 * SEC}));
	ck_assert_uint_eq(found(&rig, "a").end_left, 7 * SEC);
	rig_close(&rig);

	rig_start(&rig);
	OK(set(&rig, "a", 1, 0));
	ck_assert_uint_eq(found(&rig, "a").end_left, WW_SESSION_NO_END);
	ck_assert_int_eq(put(&rig, "a", 1, (struct ww_session_order){.lifetime = 7 * SEC}), WW_EINVAL);
	ck_assert_int_eq(put(&rig, "a", 1, (struct ww_session_order){.end = START + 7 * SEC}), WW_EINVAL);
	rig_close(&rig);
}
END_TEST

START_TEST(an_end_is_a_time_of_the_clock_when_that_is_stepped_back)
{
	struct rig rig;

	start(&rig);
	OK(set(&rig, "a", 1, 0));
	OK(ww_clock_virtual_set(rig.clock, START - 100 * SEC));
	OK(ww_driver_settle(rig.driver));
	ck_assert_uint_eq(found(&rig, "a").end_left, 160 * SEC);
	ck_assert_uint_ne(found(&rig, "a").version, 0);
	ck_assert_int_eq(refresh(&rig, "a", 3600 * SEC), 1);
	ck_assert_uint_eq(left(&rig, "a"), 160 * SEC);
	pass(&rig, 160 * SEC - 1);
	ck_assert_uint_eq(get(&rig, "a"), 1);
	pass(&rig, MS);
	assert_last_gone(1, "a", 1, WW_GONE_EXPIRED);
	rig_close(&rig);
}
END_TEST

START_TEST(lookups_renew_in_a_map_that_says_so)
{
	struct rig rig;
	void *value = NULL;

	rig_plan(&rig);
	rig.of_map.flags = WW_SESSION_RENEW;
	rig.of_map.lifetime = 60 * SEC;
	rig_open(&rig);
	OK(set(&rig, "a", 1, 8 * SEC));
	for (int i = 1; i <= 13; i++) {
		step(&rig, 4 * SEC);
		switch (i % 4) {
		case 0:
			ck_assert_uint_eq(get(&rig, "a"), 1);
			break;
		case 1:
			ck_assert_uint_eq(found(&rig, "a").left, i < 13 ? 8 * SEC : 60 * SEC - (uint64_t)i * 4 * SEC);
			break;
		case 2:
			ck_assert_int_eq(ww_session_take(rig.map, "a", 1, load_never, NULL, &value), 1);
			break;
		default:
			ck_assert_int_eq(ww_session_refresh(rig.map, "a", 1, 0, NULL), 1);
		}
		/* This is no use of the entry. */
		ck_assert_uint_eq(left(&rig, "a"), 8 * SEC);
	}
	step(&rig, 8 * SEC);
	ck_assert_uint_eq(get(&rig, "a"), 0);
	rig_close(&rig);
}
END_TEST

static void count_look(void *value, void *context)
{
	(void)value;
	++*(int *)context;
}

START_TEST(a_look_renews_too_and_a_map_without_the_flag_renews_nothing)
{
	struct rig rig;
	int looks = 0;

	for (int renew = 0; renew < 2; renew++) {
		rig_plan(&rig);
		rig.of_map.flags = renew ? WW_SESSION_RENEW : 0;
		rig_open(&rig);
		OK(set(&rig, "a", 1, 0));
		step(&rig, 4 * SEC);
		ck_assert_int_eq(ww_session_look(rig.map, "a", 1, count_look, &looks), 1);
		ck_assert_uint_eq(left(&rig, "a"), (renew ? 10 : 6) * SEC);
		rig_close(&rig);
	}
	ck_assert_int_eq(looks, 2);
}
END_TEST

START_TEST(at_the_end_of_all_time_lookups_find_and_renew_no_more)
{
	struct rig rig;
	static const struct ww_session_order order = {.ttl = 20 * SEC};

	rig_plan(&rig);
	rig.of_map.flags = WW_SESSION_RENEW;
	rig_open(&rig);
	OK(ww_clock_virtual_set(rig.clock, WW_DRIVER_TIME_MAX - 20 * SEC));
	OK(set(&rig, "a", 1, 20 * SEC));
	step(&rig, SEC);
	ck_assert_uint_eq(get(&rig, "a"), 1);
	ck_assert_uint_eq(left(&rig, "a"), 19 * SEC);
	ck_assert_int_eq(put(&rig, "b", 2, order), WW_EOVERFLOW);
	ck_assert_int_eq(ww_session_rename(rig.map, "a", 1, "b", 1, &order, NULL, NULL), WW_EOVERFLOW);
	OK(ww_session_rename(rig.map, "a", 1, "b", 1, NULL, NULL, NULL));
	ck_assert_uint_eq(left(&rig, "b"), 19 * SEC);
	/* Its own TTL starts anew with a TTL of the order, which is not too long. */
	OK(ww_session_rename(rig.map, "b", 1, "c", 1, &(struct ww_session_order){.ttl = 15 * SEC}, NULL, NULL));
	ck_assert_uint_eq(left(&rig, "c"), 15 * SEC);
	/* Neither its TTL nor the map's would end in time, but the deadline that it has does. */
	step(&rig, 11 * SEC);
	OK(ww_session_rename(rig.map, "c", 1, "d", 1, NULL, NULL, NULL));
	ck_assert_uint_eq(left(&rig, "d"), 4 * SEC);
	rig_close(&rig);
}
END_TEST

START_TEST(unknown_flags_are_refused)
{
	struct rig rig;

	rig_plan(&rig);
	rig_driver(&rig);
	rig.of_map.flags = UINT32_C(1) << 31;
	ck_assert_int_eq(ww_session_create(&rig.map, rig.driver, &rig.of_map), WW_EINVAL);
	rig.of_map.flags = 0;
	OK(ww_session_create(&rig.map, rig.driver, &rig.of_map));
	ck_assert_int_eq(put(&rig, "a", 1, (struct ww_session_order){.flags = UINT32_C(1) << 31}), WW_EINVAL);
	rig_close(&rig);
}
END_TEST

TEST_MAIN("session/lifetime", a_lifetime_ends_however_often_the_entry_is_refreshed,
    an_idle_entry_expires_before_its_lifetime_ends, a_ttl_longer_than_the_lifetime_does_not_prolong_it,
    jitter_does_not_reach_beyond_the_end_of_a_lifetime, a_set_begins_a_new_lifetime_unless_it_is_to_keep_the_end,
    an_order_may_name_a_lifetime_an_end_or_none, an_end_does_not_put_off_the_maps_own_lifetime,
    an_end_that_has_passed_makes_an_expired_entry, entries_may_have_lifetimes_in_a_map_that_has_none_of_its_own,
    an_end_is_a_time_of_the_clock_when_that_is_stepped_back, lookups_renew_in_a_map_that_says_so,
    a_look_renews_too_and_a_map_without_the_flag_renews_nothing, at_the_end_of_all_time_lookups_find_and_renew_no_more,
    unknown_flags_are_refused)
