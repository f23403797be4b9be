/* Jobs are loaded before they are due, not all at once, and become ready in time. */
/* tier: check */
#include "lib/jobs/local/load.h"

#include "lib/jobs/local/entries.h"
#include "tests/lib/jobs/fixture.h"

static struct world world;

static const struct entry *entry_of(uint64_t id)
{
	return ww_jobs_find(local_of(world.jobs), id);
}

static uint64_t put_in(uint64_t delay)
{
	struct ww_job_spec spec = spec_of("x");

	spec.due = delay;
	return put_job(&world, &spec);
}

/* Open the store again with so many jobs in memory. */
static void make(uint64_t window_jobs)
{
	world_make(&world, KIND_DISK);
	world.config.window_jobs = (uint32_t)window_jobs;
	world_reopen(&world);
}

START_TEST(a_far_job_is_loaded_half_a_window_before_it_is_due)
{
	uint64_t id;

	make(100);
	ck_assert_uint_eq(world.config.window, 60 * WW_SECOND);
	id = put_in(600 * WW_SECOND);
	ck_assert_ptr_null(entry_of(id));
	world_pass(&world, 569 * WW_SECOND);
	ck_assert_ptr_null(entry_of(id));
	world_pass(&world, 2 * WW_SECOND);
	ck_assert_ptr_nonnull(entry_of(id));
	ck_assert_int_eq(entry_of(id)->is.state, WW_JOB_DELAYED);
	world_pass(&world, 29 * WW_SECOND);
	ck_assert_int_eq(entry_of(id)->is.state, WW_JOB_READY);
	world_end(&world);
}
END_TEST

START_TEST(a_job_that_comes_due_is_counted_with_its_lateness)
{
	struct ww_jobs_stats stats;

	make(100);
	(void)put_in(WW_SECOND);
	expect_none(&world);
	world_pass(&world, WW_SECOND + 5 * MS);
	OK(ww_jobs_stats(world.jobs, &stats));
	ck_assert_uint_eq(stats.all.ready, 1);
	ck_assert_uint_eq(stats.late[0], 0);
	ck_assert_uint_eq(stats.late[1], 1);
	ck_assert_uint_eq(stats.late_ns, 5 * MS);
	world_end(&world);
}
END_TEST

START_TEST(memory_keeps_the_first_jobs_if_they_are_many)
{
	enum { WINDOW = 10, JOBS = 50 };
	uint64_t ids[JOBS];

	make(WINDOW);
	/* The later one comes first: each one after that lies before the edge. */
	for (unsigned i = JOBS; i-- > 0;) {
		ids[i] = put_in((i + 1) * WW_SECOND / 10);
		ck_assert_uint_le(local_of(world.jobs)->elapsed.loaded, 2 * WINDOW);
	}
	ck_assert_ptr_nonnull(entry_of(ids[0]));
	ck_assert_ptr_null(entry_of(ids[JOBS - 1]));
	for (unsigned i = 0; i < JOBS; i++)
		expect_job_in(&world, WW_SECOND / 10, ids[i]);
	world_end(&world);
}
END_TEST

START_TEST(a_store_that_is_opened_loads_what_is_near)
{
	uint64_t ids[3];

	make(2);
	for (unsigned i = 0; i < 3; i++)
		ids[i] = put_in((i + 1) * WW_SECOND);
	world_reopen(&world);
	ck_assert_uint_eq(local_of(world.jobs)->elapsed.loaded, 2);
	ck_assert_ptr_null(entry_of(ids[2]));
	for (unsigned i = 0; i < 3; i++)
		expect_job_in(&world, WW_SECOND, ids[i]);
	world_end(&world);
}
END_TEST

TEST_MAIN("jobs/load", a_far_job_is_loaded_half_a_window_before_it_is_due,
    a_job_that_comes_due_is_counted_with_its_lateness, memory_keeps_the_first_jobs_if_they_are_many,
    a_store_that_is_opened_loads_what_is_near)
