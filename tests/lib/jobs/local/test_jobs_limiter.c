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

START_TEST(up_to_10_ms_of_lateness_are_made_up_at_once)
{
	make((struct ww_limit){.starts = 2, .per = WW_SECOND, .burst = 1});
	start(0);
	limiter.waits = 1;
	world_pass(&world, WW_SECOND / 2 + 11 * MS);
	start(0);
	ck_assert_uint_eq(ww_jobs_limiter_allows(&limiter), now() + WW_SECOND / 2 - 10 * MS);
	end();
	/* 10 ms have 2 starts, beside the one that is due. */
	make((struct ww_limit){.starts = 250, .per = WW_SECOND, .burst = 1});
	start(0);
	limiter.waits = 1;
	world_pass(&world, WW_SECOND / 2);
	for (int i = 0; i < 3; i++)
		start(0);
	ck_assert(ww_jobs_limiter_holds(&limiter));
	end();
}
END_TEST

/* Starts in a span that begins now, each at the first moment that is allowed, while others wait. */
static unsigned starts_within(uint64_t span)
{
	uint64_t end_of_span = now() + span;
	unsigned count = 0;

	for (;;) {
		uint64_t next = ww_jobs_limiter_allows(&limiter);
		limiter.waits |= next > now();
		if (next >= end_of_span)
			break;
		if (next > now())
			world_pass(&world, next - now());
		start(0);
		count++;
	}
	world_pass(&world, end_of_span - now());
	return count;
}

START_TEST(a_quick_limit_makes_up_a_tenth_of_a_second)
{
	/* They are 10 ms apart. However long a stall was, 100 ms of it are 10 starts more: one at once, then each 5 ms. */
	make((struct ww_limit){.starts = 100, .per = WW_SECOND, .burst = 1});
	ck_assert_uint_eq(starts_within(300 * MS), 30);
	world_pass(&world, 500 * MS);
	ck_assert_uint_eq(starts_within(90 * MS), 19);
	ck_assert_uint_eq(starts_within(110 * MS), 11);
	/* All of a shorter one is made up. */
	ck_assert_uint_eq(starts_within(WW_SECOND), 100);
	world_pass(&world, 50 * MS);
	ck_assert_uint_eq(starts_within(150 * MS), 20);
	end();
}
END_TEST

START_TEST(a_quick_limit_makes_up_no_more_than_its_span)
{
	/* 40 ms are 4 starts more, one in each span. */
	make((struct ww_limit){.starts = 4, .per = 40 * MS, .burst = 1});
	ck_assert_uint_eq(starts_within(400 * MS), 40);
	world_pass(&world, WW_SECOND);
	ck_assert_uint_eq(starts_within(400 * MS), 44);
	end();
}
END_TEST

START_TEST(limits_up_to_50_ms_apart_are_quick)
{
	static const struct {
		struct ww_limit limit;
		int is_quick;
		unsigned after_stall; /* in 100 ms */
	} rows[] = {
	    {{.starts = 20, .per = WW_SECOND, .burst = 1}, 1, 4},
	    {{.starts = 1, .per = 50 * MS, .burst = 1}, 1, 3},
	    {{.starts = 1, .per = 50 * MS + 1, .burst = 1}, 0, 3},
	    {{.starts = 19, .per = WW_SECOND, .burst = 1}, 0, 3},
	};

	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		make(rows[i].limit);
		start(0);
		ck_assert_msg((limiter.window != NULL) == rows[i].is_quick, "row %zu", i);
		limiter.waits = 1;
		world_pass(&world, 10 * WW_SECOND);
		ck_assert_msg(starts_within(100 * MS) == rows[i].after_stall, "row %zu", i);
		end();
	}
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
    lateness_is_made_up_only_for_jobs_that_wait, up_to_10_ms_of_lateness_are_made_up_at_once,
    a_quick_limit_makes_up_a_tenth_of_a_second, a_quick_limit_makes_up_no_more_than_its_span,
    limits_up_to_50_ms_apart_are_quick, as_many_run_as_may, a_group_keeps_its_own_limit_or_that_of_each)
