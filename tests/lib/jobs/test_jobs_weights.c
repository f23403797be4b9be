/* Weights of groups: their share of the turns, what a group gets that comes back, and what is stored. */
/* tier: check */
#include <string.h>

#include "tests/lib/jobs/fixture.h"

static struct world world;
static const char *const here[] = {WW_TUBE_DEFAULT};

static struct ww_limit_ref ref_of(const char *group)
{
	return (struct ww_limit_ref){.tube = WW_TUBE_DEFAULT, .group = group, .group_length = strlen(group)};
}

static int weigh(const char *group, uint64_t weight)
{
	const struct ww_limit_ref ref = ref_of(group);

	return ww_jobs_limit_set(world.jobs, &ref, &(struct ww_limit){.weight = weight});
}

static uint64_t weight_of(const char *group)
{
	const struct ww_limit_ref ref = ref_of(group);
	struct ww_limit_info info;
	int error = ww_jobs_limit_get(world.jobs, &ref, &info);

	if (error == WW_ENOTFOUND)
		return 0;
	OK(error);
	return info.limit.weight;
}

static void put_in(const char *group, int count)
{
	struct ww_job_spec spec = spec_of(group);

	spec.group = group;
	spec.group_length = strlen(group);
	while (count-- > 0)
		(void)put_job(&world, &spec);
}

/* Start and finish jobs; the groups come in this order, a letter each. */
static void expect_order(const char *groups)
{
	struct ww_lease lease;

	for (; *groups; groups++) {
		ck_assert_int_eq(ww_jobs_reserve(world.jobs, here, 1, &lease), 1);
		ck_assert_uint_eq(lease.body_length, *groups != '-');
		if (lease.body_length)
			ck_assert_int_eq(*(const char *)lease.body, *groups);
		ww_jobs_free(world.jobs, lease.body);
		OK(ww_jobs_finish(world.jobs, lease.id, lease.token));
	}
}

START_TEST(three_turns_where_others_get_one)
{
	NEEDS(KIND_WEIGHTS);
	world_make(&world, _i);
	OK(weigh("a", 3));
	put_in("a", 9);
	put_in("b", 3);
	put_in("", 3);
	/* The third turn of a is that of the others, which got theirs before. */
	expect_order("aab-aaab-aaab-a");
	OK(weigh("b", 2));
	put_in("b", 4);
	put_in("a", 6);
	put_in("", 2);
	expect_order("aba-baaba-ba");
	expect_none(&world);
	world_end(&world);
}
END_TEST

START_TEST(rest_earns_no_credit)
{
	NEEDS(KIND_WEIGHTS);
	world_make(&world, _i);
	OK(weigh("a", 3));
	put_in("a", 3);
	put_in("b", 30);
	expect_order("aababbbbbbbbbb");
	put_in("a", 9);
	expect_order("aabaaabaaaba");
	/* Nor does one lose anything that puts its jobs one by one. */
	for (int i = 0; i < 2; i++) {
		put_in("a", 1);
		expect_order("a");
	}
	put_in("a", 1);
	expect_order("babb");
	world_end(&world);
}
END_TEST

START_TEST(nobody_is_starved)
{
	NEEDS(KIND_WEIGHTS);
	world_make(&world, _i);
	OK(weigh("a", WW_LIMIT_WEIGHT_MAX));
	put_in("b", 1);
	put_in("a", WW_LIMIT_WEIGHT_MAX + 10);
	for (int i = 0; i < WW_LIMIT_WEIGHT_MAX; i++)
		expect_order("a");
	expect_order("ba");
	world_end(&world);
}
END_TEST

START_TEST(a_weight_is_no_limit)
{
	const struct ww_limit_ref each = {.each = 1};
	const struct ww_limit_ref a = ref_of("a");
	struct ww_limit limit = {.running = 0, .starts = 1, .per = WW_SECOND, .burst = 2, .weight = 1};
	struct ww_tube_stats stats;

	NEEDS(KIND_WEIGHTS);
	world_make(&world, _i);
	OK(ww_jobs_limit_set(world.jobs, &each, &limit));
	put_in("a", 5);
	expect_order("aa");
	/* It keeps to the limit of each group, and gains nothing of it. */
	OK(weigh("a", 2));
	expect_none(&world);
	OK(weigh("a", 1));
	expect_none(&world);
	OK(weigh("a", 4));
	world_pass(&world, WW_SECOND);
	expect_order("a");
	expect_none(&world);
	OK(ww_jobs_tube(world.jobs, WW_TUBE_DEFAULT, &stats));
	ck_assert_uint_eq(stats.held, 2);
	/* A limit replaces the former one with its weight. */
	limit.starts = 0;
	limit.running = 1;
	OK(ww_jobs_limit_set(world.jobs, &a, &limit));
	ck_assert_uint_eq(weight_of("a"), 1);
	OK(weigh("a", 0));
	ck_assert_uint_eq(weight_of("a"), 0);
	world_end(&world);
}
END_TEST

START_TEST(a_weight_has_its_range)
{
	const struct ww_limit heavy = {.weight = 2};
	const struct ww_limit_ref whole = {.tube = WW_TUBE_DEFAULT};
	const struct ww_limit_ref each = {.each = 1};
	const struct ww_limit_ref a = ref_of("a");

	NEEDS(KIND_GROUPS);
	world_make(&world, _i);
	ck_assert_int_eq(weigh("a", WW_LIMIT_WEIGHT_MAX + 1), WW_EINVAL);
	ck_assert_int_eq(ww_jobs_limit_set(world.jobs, &whole, &heavy), WW_EINVAL);
	ck_assert_int_eq(ww_jobs_limit_set(world.jobs, &each, &heavy), WW_EINVAL);
	ck_assert_int_eq(
	    ww_jobs_limit_set(world.jobs, &a, &heavy), world_promises(&world, KIND_WEIGHTS) ? WW_OK : WW_EINVAL);
	ck_assert_uint_eq(weight_of("a"), world_promises(&world, KIND_WEIGHTS) ? 2 : 0);
	OK(weigh("a", 1));
	ck_assert_uint_eq(weight_of("a"), 0);
	world_end(&world);
}
END_TEST

START_TEST(weights_are_stored)
{
	static char longest[WW_JOB_GROUP_MAX + 1];
	const struct ww_limit_ref both = ref_of("both");
	const struct ww_limit limit = {.running = 5, .per = WW_SECOND, .burst = 1, .weight = 7};
	struct ww_limit_info info;

	NEEDS(KIND_WEIGHTS);
	NEEDS(KIND_KEEPS);
	memset(longest, 'l', WW_JOB_GROUP_MAX);
	world_make(&world, _i);
	OK(weigh("a", 3));
	OK(weigh("gone", 9));
	OK(weigh(longest, 1000));
	OK(ww_jobs_limit_set(world.jobs, &both, &limit));
	OK(weigh("gone", 1));
	world_reopen(&world);
	ck_assert_uint_eq(weight_of("a"), 3);
	ck_assert_uint_eq(weight_of("gone"), 0);
	ck_assert_uint_eq(weight_of(longest), 1000);
	OK(ww_jobs_limit_get(world.jobs, &both, &info));
	ck_assert_mem_eq(&info.limit, &limit, sizeof limit);
	put_in("a", 6);
	put_in("b", 2);
	expect_order("aabaaaba");
	world_end(&world);
}
END_TEST

START_TEST(what_fails_changes_no_weight)
{
	NEEDS(KIND_WEIGHTS);
	NEEDS(KIND_BATCHES);
	world_make(&world, _i);
	OK(weigh("a", 3));
	put_in("a", 6);
	put_in("b", 4);
	OK(ww_jobs_begin(world.jobs));
	OK(weigh("a", 1));
	OK(weigh("b", 3));
	world_fail(&world, FAIL_COMMIT);
	ck_assert_int_lt(ww_jobs_commit(world.jobs), 0);
	world_fail(&world, FAIL_NOTHING);
	ck_assert_uint_eq(weight_of("a"), 3);
	ck_assert_uint_eq(weight_of("b"), 0);
	expect_order("aabaaababb");
	world_end(&world);
}
END_TEST

KINDS_MAIN("jobs/weights", three_turns_where_others_get_one, rest_earns_no_credit, nobody_is_starved,
    a_weight_is_no_limit, a_weight_has_its_range, weights_are_stored, what_fails_changes_no_weight)
