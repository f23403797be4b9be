/* Opening an embedded store: the default configuration, the range of each member, and what an error leaves. */
/* tier: quick */

#include <limits.h>
#include <string.h>

#include "tests/lib/jobs/fixture.h"

#define DAY (86400 * WW_SECOND)

static struct world world;

START_TEST(the_default_is_as_documented)
{
	struct ww_jobs_config config;

	memset(&config, 0xff, sizeof config);
	ck_assert_int_eq(ww_jobs_config_default(NULL), WW_EINVAL);
	OK(ww_jobs_config_default(&config));
	ck_assert(!config.path && !config.driver && !config.wall && !config.allocator && !config.ready &&
	          !config.context && !config.problem);
	ck_assert_int_eq(config.sync, WW_SYNC_ALWAYS);
	ck_assert_uint_eq(config.sync_ns, 50 * MS);
	ck_assert_uint_eq(config.window, 60 * WW_SECOND);
	ck_assert_uint_eq(config.window_jobs, 100000);
	ck_assert_uint_eq(config.body_max, 65535);
	ck_assert_uint_eq(config.max_disk, 0);
	ck_assert_uint_eq(config.downtime_max, 30 * DAY);
	ck_assert_uint_eq(config.ended_max, 1000000);
	ck_assert_uint_eq(config.history_max, 10000);
	ck_assert_uint_eq(config.flags, 0);
}
END_TEST

/* Open a store in memory with this configuration; an error leaves the caller's pointer as it was. */
static void expect_open(const struct ww_jobs_config *config, int result)
{
	struct ww_jobs *untouched = (struct ww_jobs *)(void *)&world;
	struct ww_jobs *jobs = untouched;

	ck_assert_int_eq(ww_jobs_open(&jobs, config), result);
	if (result)
		ck_assert_ptr_eq(jobs, untouched);
	else
		OK(ww_jobs_close(jobs));
}

#define WITH(member, value, result)                                                                                    \
	do {                                                                                                           \
		struct ww_jobs_config config = world.config;                                                           \
		config.member = (value);                                                                               \
		expect_open(&config, (result));                                                                        \
	} while (0)

START_TEST(each_member_has_its_range)
{
	world_make(&world, KIND_MEMORY);
	ck_assert_int_eq(ww_jobs_open(NULL, &world.config), WW_EINVAL);
	expect_open(NULL, WW_EINVAL);
	WITH(driver, NULL, WW_EINVAL);
	WITH(flags, 0, WW_EINVAL); /* neither in memory nor with a path */
	WITH(flags, WW_JOBS_MEMORY | 4, WW_EINVAL);
	WITH(sync, (enum ww_jobs_sync)(WW_SYNC_SYSTEM + 1), WW_EINVAL);
	WITH(sync_ns, MS - 1, WW_EINVAL);
	WITH(sync_ns, MS, WW_OK);
	WITH(window, 0, WW_EINVAL);
	WITH(window, 1, WW_OK);
	WITH(window, WW_DRIVER_TIME_MAX, WW_OK);
	WITH(window, WW_DRIVER_TIME_MAX + 1, WW_EINVAL);
	WITH(window_jobs, 0, WW_EINVAL);
	WITH(window_jobs, 1, WW_OK);
	WITH(window_jobs, 1 << 24, WW_OK);
	WITH(window_jobs, (1 << 24) + 1, WW_EINVAL);
	WITH(body_max, 0, WW_OK);
	WITH(body_max, WW_JOB_BODY_MAX, WW_OK);
	WITH(body_max, (size_t)WW_JOB_BODY_MAX + 1, WW_EINVAL);
	WITH(max_disk, 0, WW_OK);
	WITH(max_disk, 1, WW_EINVAL);
	WITH(max_disk, WW_JOBS_DISK_LEAST - 1, WW_EINVAL);
	WITH(max_disk, WW_JOBS_DISK_LEAST, WW_OK);
	WITH(downtime_max, 0, WW_OK);
	WITH(downtime_max, INT64_MAX, WW_OK);
	WITH(downtime_max, (uint64_t)INT64_MAX + 1, WW_EINVAL);
	world_end(&world);
}
END_TEST

static void no_problem(const char *problem, void *context)
{
	(void)problem;
	(void)context;
}

START_TEST(null_is_refused)
{
	uint64_t saved = 77;

	world_make(&world, KIND_DISK);
	ck_assert_int_eq(ww_jobs_backup(NULL, "/tmp/nowhere"), WW_EINVAL);
	ck_assert_int_eq(ww_jobs_backup(world.path, NULL), WW_EINVAL);
	ck_assert_int_eq(ww_jobs_examine(NULL, no_problem, NULL), WW_EINVAL);
	ck_assert_int_eq(ww_jobs_recover(NULL, &world.config, &saved, no_problem, NULL), WW_EINVAL);
	ck_assert_int_eq(ww_jobs_recover(world.path, NULL, &saved, no_problem, NULL), WW_EINVAL);
	ck_assert_uint_eq(saved, 77);
	world_end(&world);
}
END_TEST

START_TEST(the_path_is_copied)
{
	char path[sizeof world.path];
	struct ww_job_spec spec = spec_of("x");

	world_make(&world, KIND_DISK);
	OK(ww_jobs_close(world.jobs));
	memcpy(path, world.path, sizeof path);
	world.config.path = path;
	OK(world.kind->open(&world));
	memset(path, 'x', sizeof path - 1);
	memset(&world.config, 0xff, sizeof world.config);
	for (int i = 0; i < 10; i++)
		(void)put_job(&world, &spec);
	world_check(&world);
	world_end(&world);
}
END_TEST

TEST_MAIN("jobs/open", the_default_is_as_documented, each_member_has_its_range, null_is_refused, the_path_is_copied)
