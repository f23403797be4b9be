/* When a value expired, or would have: what gone can ask for. */
/* tier: quick */

#include "tests/lib/core/session/fixture.h"

/* Not on a tick. */
#define TTL (3 * SEC + 141592 * WW_MICROSECOND)

static void assert_gone_at(size_t count, const char *key, uintptr_t value, enum ww_gone why, uint64_t deadline)
{
	assert_last_gone(count, key, value, why);
	ck_assert_uint_eq(gone_log[count - 1].deadline, deadline);
}

START_TEST(a_worker_knows_the_deadline_however_late_it_comes)
{
	struct rig rig;

	rig_plan(&rig);
	rig.of_map.lifetime = 60 * SEC;
	rig_open(&rig);
	OK(set(&rig, "a", 1, TTL));
	pass(&rig, 3600 * SEC);
	assert_gone_at(1, "a", 1, WW_GONE_EXPIRED, START + TTL);
	OK(set(&rig, "long key, which is no part of the entry", 2, TTL));
	step(&rig, SEC);
	ck_assert_int_eq(refresh(&rig, "long key, which is no part of the entry", 0), 1);
	pass(&rig, 3600 * SEC);
	assert_gone_at(2, "long key, which is no part of the entry", 2, WW_GONE_EXPIRED, START + 3601 * SEC + TTL);
	OK(set(&rig, "lifetime", 3, 100 * SEC));
	pass(&rig, 3600 * SEC);
	assert_gone_at(3, "lifetime", 3, WW_GONE_EXPIRED, START + 7261 * SEC);
	rig_close(&rig);
}
END_TEST

START_TEST(a_call_that_takes_out_an_expired_value_knows_it_too)
{
	struct rig rig;

	rig_plan(&rig);
	rig.of_map.limit = 2;
	rig_open(&rig);
	OK(set(&rig, "a", 1, TTL));
	step(&rig, 10 * SEC);
	OK(set(&rig, "a", 2, TTL));
	assert_gone_at(1, "a", 1, WW_GONE_EXPIRED, START + TTL);
	OK(set(&rig, "b", 3, 100 * SEC));
	step(&rig, 10 * SEC);
	OK(set(&rig, "c", 4, 100 * SEC));
	assert_gone_at(2, "a", 2, WW_GONE_EXPIRED, START + 10 * SEC + TTL);
	OK(set(&rig, "d", 5, 0));
	assert_gone_at(3, "b", 3, WW_GONE_EVICTED, START + 110 * SEC);
	rig_close(&rig);
}
END_TEST

START_TEST(of_other_values_there_is_nothing_to_know)
{
	struct rig rig;
	uint64_t ns = 4711;

	ck_assert_int_eq(ww_session_gone_deadline(NULL), WW_EINVAL);
	rig_start(&rig);
	OK(set(&rig, "a", 1, TTL));
	OK(set(&rig, "a", 2, TTL));
	assert_gone_at(1, "a", 1, WW_GONE_REPLACED, 0);
	ck_assert_int_eq(erase(&rig, "a"), 1);
	assert_gone_at(2, "a", 2, WW_GONE_DELETED, 0);
	OK(set(&rig, "a", 3, TTL));
	OK(ww_session_clear(rig.map, NULL));
	assert_gone_at(3, "a", 3, WW_GONE_CLEARED, 0);
	OK(set(&rig, "a", 4, TTL));
	pass(&rig, 4 * SEC);
	assert_gone_at(4, "a", 4, WW_GONE_EXPIRED, START + TTL);
	ck_assert_int_eq(ww_session_gone_deadline(&ns), WW_ENOTFOUND);
	ck_assert_uint_eq(ns, 4711);
	rig_close(&rig);
}
END_TEST

/* gone evicts another value, and is told of that, before it asks. */
static uint64_t inner;
static uint64_t outer;

static void gone_that_sets(
    struct ww_session *map, const void *key, size_t length, void *value, enum ww_gone why, void *user)
{
	(void)key;
	(void)length;
	(void)user;
	if (why == WW_GONE_EVICTED) {
		OK(ww_session_gone_deadline(&inner));
	} else if (value == (void *)1 && why == WW_GONE_EXPIRED) {
		OK(ww_session_set(map, "c", 1, (void *)3, 7 * SEC, NULL));
		OK(ww_session_set(map, "d", 1, (void *)4, 8 * SEC, NULL));
		OK(ww_session_gone_deadline(&outer));
	}
}

START_TEST(a_call_in_gone_does_not_disturb_it)
{
	struct rig rig;

	rig_plan(&rig);
	rig.of_map.gone = gone_that_sets;
	rig.of_map.limit = 2;
	rig_open(&rig);
	OK(set(&rig, "a", 1, TTL));
	OK(set(&rig, "b", 2, 100 * SEC));
	pass(&rig, 4 * SEC);
	ck_assert_uint_eq(outer, START + TTL);
	ck_assert_uint_eq(inner, START + 100 * SEC);
	rig_close(&rig);
}
END_TEST

TEST_MAIN("session/gone", a_worker_knows_the_deadline_however_late_it_comes,
    a_call_that_takes_out_an_expired_value_knows_it_too, of_other_values_there_is_nothing_to_know,
    a_call_in_gone_does_not_disturb_it)
