/* A wait takes a job that is there or comes, and ends when its time is up, or when it would wait for itself. */
/* tier: check, threads */
#include "lib/jobs/local/wait.h"

#include <pthread.h>
#include <sched.h>

#include "lib/jobs/local/local.h"
#include "tests/lib/jobs/fixture.h"

static const char *const tubes[] = {"default"};
static struct world world;
static struct ww_lease lease;
static int result;

static int wait_for(uint64_t timeout)
{
	const struct ww_reserve what = {tubes, 1, WW_JOB_CODE_MAX};

	return ww_jobs_local_wait(world.jobs, &what, timeout, &lease);
}

static void put(void)
{
	struct ww_job_spec spec = spec_of("x");

	(void)put_job(&world, &spec);
}

static void *wait_in_a_thread(void *unused)
{
	(void)unused;
	result = wait_for(3600 * WW_SECOND);
	return NULL;
}

/* Start a thread that waits, and return when its time runs. */
static pthread_t begin_wait(void)
{
	struct ww_driver_stats stats = {0};
	uint64_t before;
	pthread_t thread;

	OK(ww_driver_stats(world.driver, &stats));
	before = stats.pending;
	ck_assert_int_eq(pthread_create(&thread, NULL, wait_in_a_thread, NULL), 0);
	while (stats.pending == before) {
		(void)sched_yield();
		OK(ww_driver_stats(world.driver, &stats));
	}
	return thread;
}

static void end_wait(pthread_t thread)
{
	ck_assert_int_eq(pthread_join(thread, NULL), 0);
	ww_jobs_free(world.jobs, result == 1 ? lease.body : NULL);
	world_end(&world);
}

START_TEST(a_job_that_is_there_is_taken_at_once)
{
	world_make(&world, KIND_MEMORY);
	ck_assert_int_eq(wait_for(0), 0);
	put();
	ck_assert_int_eq(wait_for(WW_SECOND), 1);
	ck_assert_uint_eq(lease.id, 1);
	ww_jobs_free(world.jobs, lease.body);
	world_end(&world);
}
END_TEST

START_TEST(a_job_that_comes_ends_the_wait)
{
	pthread_t thread;

	world_make(&world, KIND_MEMORY);
	thread = begin_wait();
	put();
	end_wait(thread);
	ck_assert_int_eq(result, 1);
	ck_assert_uint_eq(lease.id, 1);
}
END_TEST

START_TEST(a_wait_ends_when_its_time_is_up)
{
	pthread_t thread;

	world_make(&world, KIND_MEMORY);
	thread = begin_wait();
	world_pass(&world, 3601 * WW_SECOND);
	end_wait(thread);
	ck_assert_int_eq(result, 0);
}
END_TEST

START_TEST(a_batch_does_not_wait_for_itself)
{
	world_make(&world, KIND_MEMORY);
	OK(ww_jobs_begin(world.jobs));
	ck_assert_int_eq(wait_for(0), 0);
	ck_assert_int_eq(wait_for(WW_SECOND), WW_EBUSY);
	OK(ww_jobs_commit(world.jobs));
	world_end(&world);
}
END_TEST

TEST_MAIN("jobs/wait", a_job_that_is_there_is_taken_at_once, a_job_that_comes_ends_the_wait,
    a_wait_ends_when_its_time_is_up, a_batch_does_not_wait_for_itself)
