/* A spread due time: a place within the span that tube and key fix, in every kind of store. */
/* tier: check */
#include <stdio.h>
#include <string.h>

#include "tests/lib/jobs/fixture.h"

#define MINUTE (60 * WW_SECOND)

static struct world world;

static uint64_t place_of(struct ww_job_spec spec, uint64_t span)
{
	const uint64_t due = spec.due;

	OK(ww_job_spread(&spec, span));
	ck_assert_uint_ge(spec.due, due);
	ck_assert_uint_le(spec.due - due, span);
	ck_assert_uint_eq((spec.due - due) % MS, 0);
	return spec.due - due;
}

static struct ww_job_spec keyed(const char *key, const char *body)
{
	struct ww_job_spec spec = spec_of(body);

	spec.key = key;
	spec.key_length = strlen(key);
	return spec;
}

START_TEST(tube_and_key_fix_the_place)
{
	struct ww_job_spec spec = keyed("k", "one");
	uint64_t place = place_of(spec, MINUTE);

	ck_assert_uint_eq(place, place_of(keyed("k", "two"), MINUTE));
	ck_assert_uint_ne(place, place_of(keyed("l", "one"), MINUTE));
	spec.due = 5 * MINUTE;
	spec.flags = WW_JOB_AT;
	ck_assert_uint_eq(place, place_of(spec, MINUTE));
	spec.tube = "mail";
	ck_assert_uint_ne(place, place_of(spec, MINUTE));
	ck_assert_uint_ne(place_of(spec_of("one"), MINUTE), place_of(spec_of("two"), MINUTE));
	/* All versions and machines agree about it: a put may be repeated at another one. */
	ck_assert_uint_eq(place, UINT64_C(45786) * MS);
}
END_TEST

START_TEST(places_are_even)
{
	int tenths[10] = {0};
	char key[20];

	for (int i = 0; i < 10000; i++) {
		snprintf(key, sizeof key, "user-%d", i);
		tenths[place_of(keyed(key, ""), MINUTE) / (6 * WW_SECOND)]++;
	}
	for (int i = 0; i < 10; i++)
		ck_assert(tenths[i] > 850 && tenths[i] < 1150);
}
END_TEST

START_TEST(spans_have_bounds)
{
	struct ww_job_spec spec = keyed("k", "");

	ck_assert_uint_eq(place_of(spec, 0), 0);
	ck_assert_uint_eq(place_of(spec, MS - 1), 0);
	ck_assert_uint_eq(place_of(spec, MS), 0);
	ck_assert_int_eq(ww_job_spread(NULL, MS), WW_EINVAL);
	ck_assert_int_eq(ww_job_spread(&spec, WW_DRIVER_TIME_MAX + 1), WW_EINVAL);
	spec.tube = "";
	ck_assert_int_eq(ww_job_spread(&spec, MS), WW_EINVAL);
	spec = spec_of("x");
	spec.body = NULL;
	ck_assert_int_eq(ww_job_spread(&spec, MS), WW_EINVAL);
	ck_assert_uint_eq(spec.due, 0);
	/* What lies beyond the last time is refused by the put, and does not wrap around. */
	spec = keyed("k", "");
	spec.due = UINT64_MAX;
	spec.flags = WW_JOB_AT;
	OK(ww_job_spread(&spec, MINUTE));
	ck_assert_uint_eq(spec.due, UINT64_MAX);
}
END_TEST

START_TEST(a_spread_job_is_due_at_its_place)
{
	struct ww_job_spec spec = keyed("k", "x");
	struct ww_job_spec late = keyed("l", "x");

	world_make(&world, _i);
	late.due = WW_DRIVER_TIME_MAX;
	OK(ww_job_spread(&late, MINUTE));
	ck_assert_int_eq(ww_jobs_put(world.jobs, &late, NULL, NULL), WW_EOVERFLOW);
	spec.due = 3600 * WW_SECOND;
	OK(ww_job_spread(&spec, MINUTE));
	expect_job_in(&world, spec.due, put_job(&world, &spec));
	world_end(&world);
}
END_TEST

KINDS_MAIN(
    "jobs/spread", tube_and_key_fix_the_place, places_are_even, spans_have_bounds, a_spread_job_is_due_at_its_place)
