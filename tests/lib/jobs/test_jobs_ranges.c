/* The bounds of each range in jobs.h: the last value that is taken, and the first that is refused. */
/* tier: check */

#include <string.h>

#include "tests/lib/jobs/fixture.h"

#define MAX WW_DRIVER_TIME_MAX

static struct world world;
static char bytes[WW_JOB_KEY_MAX + 1];

static void cancel(uint64_t id)
{
	ck_assert_int_eq(ww_jobs_cancel(world.jobs, &(struct ww_job_ref){.id = id}), 1);
}

/* Put it with others and alone. A put that is refused gives no id and no version. */
static void expect_put(const struct ww_job_spec *spec, int result)
{
	struct ww_job_put put = {.spec = spec, .id = 77, .version = 78};
	uint64_t id = 77;
	uint64_t version = 78;

	OK(ww_jobs_put_many(world.jobs, &put, 1));
	ck_assert_int_eq(put.result, result);
	if (result >= 0)
		cancel(put.id);
	ck_assert_int_eq(ww_jobs_put(world.jobs, spec, &id, &version), result);
	if (result >= 0)
		cancel(id);
	else
		ck_assert(put.id == 77 && put.version == 78 && id == 77 && version == 78);
}

/* The good spec with another member. */
#define WITH(member, value, result)                                                                                    \
	do {                                                                                                           \
		spec = good;                                                                                           \
		spec.member = (value);                                                                                 \
		expect_put(&spec, (result));                                                                           \
	} while (0)

START_TEST(each_member_of_a_spec_has_its_range)
{
	struct ww_job_spec good, spec;
	char name[WW_TUBE_MAX + 2];

	world_make(&world, _i);
	memset(name, 'n', sizeof name);
	name[WW_TUBE_MAX + 1] = 0;
	good = spec_of("x");
	WITH(tube, NULL, WW_EINVAL);
	WITH(tube, "", WW_EINVAL);
	WITH(tube, name, WW_EINVAL);
	WITH(tube, name + 1, WW_PUT_NEW);
	WITH(key_length, 1, WW_EINVAL);
	WITH(group_length, 1, WW_EINVAL);
	WITH(body, NULL, WW_EINVAL);
	WITH(run, WW_SECOND - 1, WW_EINVAL);
	WITH(run, WW_SECOND, WW_PUT_NEW);
	WITH(run, MAX, WW_PUT_NEW);
	WITH(run, MAX + 1, WW_EINVAL);
	WITH(period, MS - 1, WW_EINVAL);
	WITH(period, MS, WW_PUT_NEW);
	WITH(period, MAX, WW_PUT_NEW);
	WITH(period, MAX + 1, WW_EINVAL);
	WITH(skip, UINT64_MAX, WW_PUT_NEW);
	WITH(backoff, MAX, WW_PUT_NEW);
	WITH(backoff, MAX + 1, WW_EINVAL);
	WITH(backoff_max, MAX, WW_PUT_NEW);
	WITH(backoff_max, MAX + 1, WW_EINVAL);
	WITH(keep, MAX, WW_PUT_NEW);
	WITH(keep, MAX + 1, WW_EINVAL);
	WITH(key_span, 1, WW_EINVAL);
	WITH(flags, 8, WW_EINVAL);
	WITH(missed, (enum ww_missed)(WW_MISSED_SKIP + 1), WW_EINVAL);
	WITH(expire, MAX, world_promises(&world, KIND_EXPIRES) ? WW_PUT_NEW : WW_EINVAL);
	WITH(expire, MAX + 1, WW_EINVAL);
	WITH(expired, (enum ww_expired)(WW_EXPIRED_BURY + 1), WW_EINVAL);
	good.group = bytes;
	WITH(group_length, WW_JOB_GROUP_MAX, world_promises(&world, KIND_GROUPS) ? WW_PUT_NEW : WW_EINVAL);
	WITH(group_length, WW_JOB_GROUP_MAX + 1, WW_EINVAL);
	world_end(&world);
}
END_TEST

/* The driver's clock has come to 1,000 s. */
START_TEST(a_job_is_due_at_the_drivers_last_time_at_the_latest)
{
	struct ww_job_spec good = spec_of("x");
	struct ww_job_spec spec;

	world_make(&world, _i);
	WITH(due, MAX + 1, WW_EOVERFLOW);
	if (world_promises(&world, KIND_IN_REDIS))
		WITH(due, MAX, WW_PUT_NEW);
	else {
		WITH(due, MAX - 1000 * WW_SECOND, WW_PUT_NEW);
		WITH(due, MAX - 1000 * WW_SECOND + 1, WW_EOVERFLOW);
	}
	good.flags = WW_JOB_AT;
	WITH(due, UINT64_MAX, WW_EOVERFLOW);
	world_end(&world);
}
END_TEST

START_TEST(each_key_has_its_range)
{
	struct ww_job_spec good = spec_of("x");
	struct ww_job_spec spec;

	world_make(&world, _i);
	good.key = bytes;
	WITH(key_mode, (enum ww_key_mode)(WW_KEY_UNIQUE + 1), WW_EINVAL);
	for (int mode = WW_KEY_REPLACE; mode <= WW_KEY_UNIQUE; mode++) {
		int has_span = mode == WW_KEY_DEBOUNCE || mode == WW_KEY_UNIQUE;
		good.key_mode = (enum ww_key_mode)mode;
		good.key_span = has_span ? MS : 0;
		good.key_length = WW_JOB_KEY_MAX;
		WITH(key_span, good.key_span, WW_PUT_NEW);
		WITH(key_span, has_span ? MAX : 0, WW_PUT_NEW);
		WITH(key_length, WW_JOB_KEY_MAX + 1, WW_EINVAL);
		WITH(key_length, 0, mode == WW_KEY_REPLACE ? WW_PUT_NEW : WW_EINVAL);
		WITH(version, 1, mode == WW_KEY_REPLACE ? WW_ESTALE : WW_EINVAL);
		WITH(key_span, has_span ? MS - 1 : MS, WW_EINVAL);
		WITH(key_span, has_span ? MAX + 1 : MS, WW_EINVAL);
		WITH(period, MS, has_span ? WW_EINVAL : WW_PUT_NEW);
	}
	world_end(&world);
}
END_TEST

START_TEST(the_default_spec_is_as_documented)
{
	struct ww_job_spec spec;
	static const struct ww_job_spec expected = {
	    .tube = "default", .run = 60 * WW_SECOND, .backoff_max = 3600 * WW_SECOND, .priority = 1024};

	memset(&spec, 0xff, sizeof spec);
	ck_assert_int_eq(ww_job_spec_default(NULL), WW_EINVAL);
	OK(ww_job_spec_default(&spec));
	ck_assert_str_eq(spec.tube, expected.tube);
	spec.tube = expected.tube;
	ck_assert_mem_eq(&spec, &expected, sizeof spec);
}
END_TEST

/* A move, a release, a return and a pause take each delay that a driver has. */
START_TEST(each_delay_has_its_range)
{
	struct ww_job_spec spec = spec_of("x");
	struct ww_lease lease;
	struct ww_tube_stats stats;
	uint64_t version = 77;

	world_make(&world, _i);
	const struct ww_job_ref ref = {.id = put_job(&world, &spec)};
	ck_assert_int_eq(ww_jobs_move(world.jobs, &ref, MAX + 1, 0, &version), WW_EOVERFLOW);
	ck_assert_int_eq(ww_jobs_move(world.jobs, &ref, UINT64_MAX, WW_JOB_AT, &version), WW_EOVERFLOW);
	ck_assert_int_eq(ww_jobs_move(world.jobs, &ref, 0, WW_JOB_WALL, &version), WW_EINVAL);
	ck_assert_uint_eq(version, 77);
	ck_assert_int_eq(info_of(&world, ref.id).state, WW_JOB_READY);
	lease = reserve_job(&world);
	ck_assert_int_eq(ww_jobs_release(world.jobs, lease.id, lease.token, 0, MAX + 1, NULL), WW_EINVAL);
	ck_assert_int_eq(ww_jobs_release(world.jobs, lease.id, lease.token, 0, WW_JOB_BACKOFF - 1, NULL), WW_EINVAL);
	ck_assert_int_eq(ww_jobs_return_after(world.jobs, lease.id, lease.token, MAX + 1), WW_EINVAL);
	OK(ww_jobs_release(world.jobs, lease.id, lease.token, 0, MAX, NULL));
	ck_assert_uint_ge(info_of(&world, ref.id).left, MAX);
	OK(ww_jobs_kick_job(world.jobs, ref.id));
	lease = reserve_job(&world);
	OK(ww_jobs_return_after(world.jobs, lease.id, lease.token, MAX));
	ck_assert_uint_ge(info_of(&world, ref.id).left, MAX);
	OK(ww_jobs_kick_job(world.jobs, ref.id));
	ck_assert_int_eq(ww_jobs_pause(world.jobs, WW_TUBE_DEFAULT, MAX + 1), WW_EINVAL);
	OK(ww_jobs_pause(world.jobs, WW_TUBE_DEFAULT, MAX));
	expect_none(&world);
	OK(ww_jobs_tube(world.jobs, WW_TUBE_DEFAULT, &stats));
	ck_assert_uint_ge(stats.pause_left, MAX);
	OK(ww_jobs_pause(world.jobs, WW_TUBE_DEFAULT, 0));
	ck_assert_uint_eq(reserve_job(&world).id, ref.id);
	world_end(&world);
}
END_TEST

START_TEST(each_reference_has_its_range)
{
	const struct ww_job_ref wrong[] = {{0}, {.key_length = 1}, {.key = bytes},
	    {.key = bytes, .key_length = WW_JOB_KEY_MAX + 1}, {.tube = "", .key = bytes, .key_length = 1}};
	const struct ww_job_ref longest = {.key = bytes, .key_length = WW_JOB_KEY_MAX};
	struct ww_job_info info;

	world_make(&world, _i);
	for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
		ck_assert_int_eq(ww_jobs_peek(world.jobs, &wrong[i], &info, NULL), WW_EINVAL);
		ck_assert_int_eq(ww_jobs_cancel(world.jobs, &wrong[i]), WW_EINVAL);
		ck_assert_int_eq(ww_jobs_move(world.jobs, &wrong[i], 0, 0, NULL), WW_EINVAL);
	}
	ck_assert_int_eq(ww_jobs_peek(world.jobs, &longest, &info, NULL), WW_ENOTFOUND);
	world_end(&world);
}
END_TEST

static int no_limit(const struct ww_limit_info *info, void *context)
{
	(void)info;
	(void)context;
	return 0;
}

START_TEST(each_limit_has_its_range)
{
	static const struct ww_limit wrong[] = {{0, 1, MS - 1, 1, 1}, {0, 1, WW_LIMIT_PER_MAX + 1, 1, 1},
	    {0, 1, WW_SECOND, 0, 1}, {0, 1, WW_SECOND, WW_LIMIT_BURST_MAX + 1, 1}, {0, 1000001, WW_SECOND, 1, 1},
	    {0, 1001, MS, 1, 1}, {0, 1, WW_SECOND, 1, WW_LIMIT_WEIGHT_MAX + 1}};
	static const struct ww_limit right[] = {{UINT64_C(1) << 53, 0, WW_SECOND, 1, 1},
	    {0, 1000, MS, WW_LIMIT_BURST_MAX, 1}, {0, 1000000, WW_SECOND, 1, 1}, {1, 1, WW_LIMIT_PER_MAX, 1, 1}};
	const struct ww_limit_ref whole = {0};
	struct ww_limit limit;
	struct ww_limit_info info;

	NEEDS(KIND_LIMITS);
	world_make(&world, _i);
	for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
		ck_assert_int_eq(ww_jobs_limit_set(world.jobs, &whole, &wrong[i]), WW_EINVAL);
	ck_assert_int_eq(ww_jobs_limit_get(world.jobs, &whole, &info), WW_ENOTFOUND);
	for (size_t i = 0; i < sizeof right / sizeof *right; i++) {
		OK(ww_jobs_limit_set(world.jobs, &whole, &right[i]));
		OK(ww_jobs_limit_get(world.jobs, &whole, &info));
		ck_assert_mem_eq(&info.limit, &right[i], sizeof info.limit);
	}
	ck_assert_int_eq(ww_jobs_limit_set(world.jobs, NULL, &right[0]), WW_EINVAL);
	ck_assert_int_eq(ww_jobs_limit_set(world.jobs, &whole, NULL), WW_EINVAL);
	ck_assert_int_eq(ww_jobs_limit_set(world.jobs, &(struct ww_limit_ref){.tube = ""}, &right[0]), WW_EINVAL);
	ck_assert_int_eq(ww_jobs_limit_get(world.jobs, &whole, NULL), WW_EINVAL);
	ck_assert_int_eq(ww_jobs_limit_list(world.jobs, "", no_limit, NULL), WW_EINVAL);
	ck_assert_int_eq(ww_jobs_limit_list(world.jobs, NULL, NULL, NULL), WW_EINVAL);
	ck_assert_int_eq(ww_jobs_limit_default(NULL), WW_EINVAL);
	OK(ww_jobs_limit_default(&limit));
	ck_assert(
	    limit.running == 0 && limit.starts == 0 && limit.per == WW_SECOND && limit.burst == 1 && limit.weight == 1);
	/* All zero is none. */
	for (int i = 0; i < 2; i++)
		OK(ww_jobs_limit_set(world.jobs, &whole, &(struct ww_limit){0}));
	ck_assert_int_eq(ww_jobs_limit_get(world.jobs, &whole, &info), WW_ENOTFOUND);
	world_end(&world);
}
END_TEST

KINDS_MAIN("jobs/ranges", each_member_of_a_spec_has_its_range, a_job_is_due_at_the_drivers_last_time_at_the_latest,
    each_key_has_its_range, the_default_spec_is_as_documented, each_delay_has_its_range, each_reference_has_its_range,
    each_limit_has_its_range)
