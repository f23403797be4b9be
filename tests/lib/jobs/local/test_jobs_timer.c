/* A timer's callback becomes a call, which finds out whether the timer is still set. */
/* tier: check */
#include "lib/jobs/local/timer.h"
#include "tests/lib/jobs/fixture.h"

static struct world world;
static struct jobs_local *jobs;
static ww_handle timer;
static int owner;
static int taken;
static int missed;

static int take(struct jobs_local *local, void *arguments)
{
	const struct fired *fired = arguments;

	ck_assert_ptr_eq(fired->owner, &owner);
	ck_assert(ww_jobs_is_mine(local));
	if (ww_jobs_take_firing(local, fired, &timer))
		taken++;
	else
		missed++;
	return WW_OK;
}

static void on_time(struct ww_driver *driver, const struct ww_firing *firing, void *user)
{
	(void)driver;
	ck_assert_ptr_eq(user, jobs);
	ww_jobs_submit_firing(jobs, take, &owner, firing);
}

static void make(void)
{
	world_make(&world, KIND_MEMORY);
	jobs = local_of(world.jobs);
	taken = missed = 0;
	OK(ww_driver_schedule(world.driver, WW_SECOND, on_time, jobs, &timer));
}

START_TEST(a_timer_that_fires_is_taken_once)
{
	make();
	world_pass(&world, 2 * WW_SECOND);
	ck_assert_int_eq(taken, 1);
	ck_assert_uint_eq(timer, 0);
	world_end(&world);
}
END_TEST

START_TEST(a_cancelled_timer_does_not_fire)
{
	make();
	ww_jobs_cancel_timer(jobs, world.driver, &timer);
	ck_assert_uint_eq(timer, 0);
	ck_assert_uint_eq(jobs->late, 0);
	/* None is set any more. */
	ww_jobs_cancel_timer(jobs, world.driver, &timer);
	ck_assert_uint_eq(jobs->late, 0);
	world_pass(&world, 2 * WW_SECOND);
	ck_assert_int_eq(taken + missed, 0);
	world_end(&world);
}
END_TEST

/* This timer is cancelled while it fires. */
static void on_late(struct ww_driver *driver, const struct ww_firing *firing, void *user)
{
	ww_jobs_cancel_timer(jobs, driver, &timer);
	ck_assert_uint_eq(jobs->late, 1);
	on_time(driver, firing, user);
}

START_TEST(a_callback_that_comes_too_late_finds_another_handle)
{
	ww_handle other;

	make();
	ck_assert_int_eq(ww_driver_cancel(world.driver, timer), 1);
	OK(ww_driver_schedule(world.driver, WW_SECOND, on_late, jobs, &timer));
	world_pass(&world, 2 * WW_SECOND);
	ck_assert_int_eq(taken, 0);
	ck_assert_int_eq(missed, 1);
	ck_assert_uint_eq(jobs->late, 0);
	/* A timer that was set again stays set. */
	OK(ww_driver_schedule(world.driver, WW_SECOND, on_time, jobs, &other));
	timer = other + 1;
	world_pass(&world, 2 * WW_SECOND);
	ck_assert_int_eq(missed, 2);
	ck_assert_uint_eq(timer, other + 1);
	world_end(&world);
}
END_TEST

START_TEST(a_closed_store_takes_no_timer)
{
	make();
	jobs->closed = 1;
	world_pass(&world, 2 * WW_SECOND);
	jobs->closed = 0;
	ck_assert_int_eq(taken, 0);
	ck_assert_int_eq(missed, 1);
	world_end(&world);
}
END_TEST

TEST_MAIN("jobs/timer", a_timer_that_fires_is_taken_once, a_cancelled_timer_does_not_fire,
    a_callback_that_comes_too_late_finds_another_handle, a_closed_store_takes_no_timer)
