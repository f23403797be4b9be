/* A limiter counts starts and leases, and says when the next start is allowed. */
/* tier: check */
#include "lib/jobs/local/limiter.h"

#include "lib/jobs/local/group.h"
#include "lib/jobs/local/window.h"
#include "tests/lib/jobs/fixture.h"

static struct world world;
static struct tube tube;
static struct limiter limiter;

static uint64_t now(void)
{
	return ww_jobs_time(&local_of(world.jobs)->elapsed);
}

static void make(struct ww_limit limit)
{
	world_make(&world, KIND_MEMORY);
	tube = (struct tube){.jobs = local_of(world.jobs)};
	limiter = (struct limiter){.tube = &tube, .rule.limit = limit};
}

static void end(void)
{
	ww_jobs_limiter_forget(&limiter);
	world_end(&world);
}

static void start(int is_last)
{
	ck_assert(!ww_jobs_limiter_holds(&limiter));
	ww_jobs_limiter_start(&limiter, now(), is_last);
}

START_TEST(a_rate_lets_one_start_in_each_interval)
{
	make((struct ww_limit){.starts = 2, .per = WW_SECOND, .burst = 1});
	for (int i = 0; i < 5; i++) {
		start(1);
		ck_assert(ww_jobs_limiter_holds(&limiter));
		ck_assert_uint_eq(ww_jobs_limiter_allows(&limiter), now() + WW_SECOND / 2);
		world_pass(&world, WW_SECOND / 2 - 1);
		ck_assert(ww_jobs_limiter_holds(&limiter));
		world_pass(&world, 1);
	}
	end();
}
END_TEST

START_TEST(a_burst_is_one_more_only_after_a_rest)
{
	make((struct ww_limit){.starts = 1, .per = WW_SECOND, .burst = 3});
	ck_assert(ww_jobs_limiter_is_rested(&limiter));
	for (int i = 0; i < 3; i++)
		start(1);
	ck_assert(ww_jobs_limiter_holds(&limiter));
	ck_assert(!ww_jobs_limiter_is_rested(&limiter));
	world_pass(&world, WW_SECOND);
	start(1);
	ck_assert(ww_jobs_limiter_holds(&limiter));
	world_pass(&world, 3 * WW_SECOND);
	ck_assert(ww_jobs_limiter_is_rested(&limiter));
	end();
}
END_TEST

START_TEST(a_burst_that_is_used_up_comes_back_one_by_one)
{
	make((struct ww_limit){.starts = 1, .per = WW_SECOND, .burst = 3});
	ww_jobs_limiter_use_up(&limiter, now());
	ck_assert(ww_jobs_limiter_holds(&limiter));
	world_pass(&world, WW_SECOND);
	start(1);
	ck_assert(ww_jobs_limiter_holds(&limiter));
	ww_jobs_limiter_use_up(&limiter, 0);
	ck_assert(!ww_jobs_limiter_holds(&limiter));
	end();
}
END_TEST

START_TEST(a_start_that_was_none_is_given_back)
{
	/* So quick a limit counts its starts in a window, too. */
	make((struct ww_limit){.starts = 100, .per = WW_SECOND, .burst = 1});
	start(1);
	ck_assert_ptr_nonnull(limiter.window);
	ck_assert_uint_eq(limiter.window->total, 1);
	ck_assert(ww_jobs_limiter_holds(&limiter));
	ww_jobs_limiter_return(&limiter);
	ck_assert_uint_eq(limiter.window->total, 0);
	ck_assert(!ww_jobs_limiter_holds(&limiter));
	end();
}
END_TEST

START_TEST(lateness_is_made_up_only_for_jobs_that_wait)
{
	const uint64_t late = 4 * MS;

	make((struct ww_limit){.starts = 2, .per = WW_SECOND, .burst = 1});
	start(0);
	world_pass(&world, WW_SECOND / 2 + late);
	limiter.waits = 1;
	start(0);
	ck_assert_uint_eq(ww_jobs_limiter_allows(&limiter), now() + WW_SECOND / 2 - late);
	/* Nobody waits after the last one. */
	world_pass(&world, WW_SECOND / 2);
	start(1);
	ck_assert(!limiter.waits);
	world_pass(&world, WW_SECOND / 2 + late);
	start(1);
	ck_assert_uint_eq(ww_jobs_limiter_allows(&limiter), now() + WW_SECOND / 2);
	end();
}
END_TEST

START_TEST(as_many_run_as_may)
{
	make((struct ww_limit){.running = 2, .per = WW_SECOND, .burst = 1});
	ck_assert(!ww_jobs_limiter_is_full(&limiter));
	tube.reserved = 1;
	ck_assert(!ww_jobs_limiter_holds(&limiter));
	tube.reserved = 2;
	ck_assert_uint_eq(ww_jobs_limiter_running(&limiter), 2);
	ck_assert(ww_jobs_limiter_is_full(&limiter));
	ck_assert(ww_jobs_limiter_holds(&limiter));
	ck_assert_uint_eq(ww_jobs_limiter_allows(&limiter), 0);
	end();
}
END_TEST

START_TEST(a_group_keeps_its_own_limit_or_that_of_each)
{
	struct group group = {.number = 1};
	struct limits limits = {.each.limit.running = 5};

	make((struct ww_limit){0});
	tube.limits = &limits;
	limiter.group = &group;
	ck_assert_uint_eq(ww_jobs_limiter_limit(&limiter)->running, 5);
	limiter.rule.limit.running = 3;
	ck_assert_uint_eq(ww_jobs_limiter_limit(&limiter)->running, 3);
	/* Those that name no group have none. */
	limiter.rule.limit.running = 0;
	group.number = 0;
	ck_assert_uint_eq(ww_jobs_limiter_limit(&limiter)->running, 0);
	end();
}
END_TEST

TEST_MAIN("jobs/limiter", a_rate_lets_one_start_in_each_interval, a_burst_is_one_more_only_after_a_rest,
    a_burst_that_is_used_up_comes_back_one_by_one, a_start_that_was_none_is_given_back,
    lateness_is_made_up_only_for_jobs_that_wait, as_many_run_as_may, a_group_keeps_its_own_limit_or_that_of_each)
