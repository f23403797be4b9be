/*
 * Limits of tubes: how many run at once and how many start in a time, the waking when the next may start, and what is
 * stored.
 */
/* tier: check */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/lib/jobs/limits.h"

static struct world world;
static const struct ww_limit_ref whole = {.tube = WW_TUBE_DEFAULT};
static const char *const here[] = {WW_TUBE_DEFAULT};

static void set_limit(uint64_t running, uint64_t starts, uint64_t per, uint64_t burst)
{
	struct ww_limit limit = {running, starts, per, burst, 1};

	OK(ww_jobs_limit_set(world.jobs, &whole, &limit));
}

static struct ww_limit_info limit_now(void)
{
	struct ww_limit_info info;

	OK(ww_jobs_limit_get(world.jobs, &whole, &info));
	return info;
}

/* ---- At once */

static struct ww_lease start(void)
{
	struct ww_lease lease = reserve_job(&world);

	ww_jobs_free(world.jobs, lease.body);
	lease.body = NULL;
	return lease;
}

START_TEST(only_so_many_run_at_once)
{
	NEEDS(KIND_LIMITS);
	world_make(&world, _i);
	set_limit(2, 0, WW_SECOND, 1);
	limits_put(&world, 9);
	struct ww_lease first = start();
	struct ww_lease second = start();
	expect_none(&world);
	ck_assert_uint_eq(limit_now().running, 2);
	ck_assert_uint_eq(limit_now().held, 7);
	/* Each end of a lease gives its place back. */
	OK(ww_jobs_finish(world.jobs, first.id, first.token));
	first = start();
	expect_none(&world);
	OK(ww_jobs_release(world.jobs, first.id, first.token, 1024, 0, NULL));
	first = start();
	OK(ww_jobs_bury(world.jobs, first.id, first.token, 1024, NULL));
	first = start();
	OK(ww_jobs_return(world.jobs, first.id, first.token));
	first = start();
	OK(ww_jobs_return_after(world.jobs, first.id, first.token, 3600 * WW_SECOND));
	first = start();
	struct ww_job_ref ref = {.id = first.id};
	ck_assert_int_eq(ww_jobs_cancel(world.jobs, &ref), 0);
	first = start();
	expect_none(&world);
	/* Both leases expire. */
	world_pass(&world, 61 * WW_SECOND);
	first = start();
	second = start();
	expect_none(&world);
	OK(ww_jobs_finish(world.jobs, first.id, first.token));
	OK(ww_jobs_finish(world.jobs, second.id, second.token));
	limits_clear(&world);
	world_end(&world);
}
END_TEST

START_TEST(a_lower_limit_lets_those_that_run_go_on)
{
	struct ww_lease leases[3];

	NEEDS(KIND_LIMITS);
	world_make(&world, _i);
	limits_put(&world, 7);
	for (int i = 0; i < 3; i++)
		leases[i] = start();
	set_limit(1, 0, WW_SECOND, 1);
	expect_none(&world);
	OK(ww_jobs_finish(world.jobs, leases[0].id, leases[0].token));
	OK(ww_jobs_finish(world.jobs, leases[1].id, leases[1].token));
	expect_none(&world);
	OK(ww_jobs_finish(world.jobs, leases[2].id, leases[2].token));
	leases[0] = start();
	expect_none(&world);
	/* By its id a job is leased all the same, and counts. */
	uint64_t id;
	struct ww_job_info info;
	OK(ww_jobs_peek_next(world.jobs, WW_TUBE_DEFAULT, WW_JOB_READY, &info, NULL));
	id = info.id;
	OK(ww_jobs_reserve_job(world.jobs, id, &leases[1]));
	ww_jobs_free(world.jobs, leases[1].body);
	ck_assert_uint_eq(limit_now().running, 2);
	OK(ww_jobs_finish(world.jobs, leases[0].id, leases[0].token));
	expect_none(&world);
	limits_clear(&world);
	leases[0] = start();
	OK(ww_jobs_finish(world.jobs, leases[0].id, leases[0].token));
	OK(ww_jobs_finish(world.jobs, leases[1].id, leases[1].token));
	world_end(&world);
}
END_TEST

/* ---- In a time */

START_TEST(starts_keep_the_rate_and_their_order)
{
	struct ww_job_spec spec = spec_of("x");
	uint64_t ids[9];

	NEEDS(KIND_LIMITS);
	world_make(&world, _i);
	set_limit(0, 100, 60 * WW_SECOND, 3);
	for (unsigned i = 0; i < 8; i++)
		ids[i] = put_job(&world, &spec);
	spec.priority = 1;
	ids[8] = put_job(&world, &spec);
	static const unsigned order[] = {8, 0, 1, 2, 3, 4, 5, 6, 7};
	for (unsigned i = 0; i < 9; i++) {
		/* Three at once, the others 600 ms apart. */
		if (i >= 3) {
			expect_none(&world);
			ck_assert_uint_eq(limit_now().left, 600 * MS);
			ck_assert_uint_eq(limit_now().held, 9 - i);
			world_pass(&world, 599 * MS);
			expect_none(&world);
			world_pass(&world, 1 * MS);
		}
		struct ww_lease lease = start();
		if (world_promises(&world, KIND_ONE_ROW))
			ck_assert_uint_eq(lease.id, ids[order[i]]);
		OK(ww_jobs_finish(world.jobs, lease.id, lease.token));
	}
	/* After a rest, three at once again. */
	world_pass(&world, 60 * WW_SECOND);
	limits_put(&world, 5);
	ck_assert_uint_eq(limits_run_all(&world), 3);
	limits_clear(&world);
	ck_assert_uint_eq(limits_run_all(&world), 2);
	world_end(&world);
}
END_TEST

START_TEST(lateness_is_made_up_while_jobs_wait)
{
	NEEDS(KIND_IN_PROCESS);
	world_make(&world, _i);
	set_limit(0, 1000, WW_SECOND, 1);
	limits_put(&world, 40);
	ck_assert_uint_eq(limits_run_all(&world), 1);
	world_pass(&world, 5 * MS);
	ck_assert_uint_eq(limits_run_all(&world), 5);
	/* Up to 10 ms. */
	world_pass(&world, 500 * MS);
	ck_assert_uint_eq(limits_run_all(&world), 11);
	/* The rest at twice the pace. */
	world_pass(&world, 3 * MS);
	ck_assert_uint_eq(limits_run_all(&world), 6);
	while (limits_run_all(&world) || world_now(&world) % 7)
		world_pass(&world, 1 * MS);
	ck_assert_uint_eq(limits_run_all(&world), 0);
	/* None waited: there is nothing to make up. */
	world_pass(&world, 500 * MS);
	limits_put(&world, 5);
	ck_assert_uint_eq(limits_run_all(&world), 1);
	limits_clear(&world);
	(void)limits_run_all(&world);
	world_end(&world);
}
END_TEST

/* A server that was not run for a while makes it up, but nobody who counts finds more in any second than was promised. */
START_TEST(a_stall_is_made_up_within_the_second)
{
	enum { SECONDS = 4, BURST = 20 };
	static uint64_t times[SECONDS * 1010 + BURST];
	unsigned in_each[SECONDS] = {0};
	unsigned count = 0;

	NEEDS(KIND_IN_PROCESS);
	world_make(&world, _i);
	set_limit(0, 1000, WW_SECOND, BURST);
	limits_put(&world, sizeof times / sizeof *times);
	for (unsigned ms = 0; ms < SECONDS * 1000; ms++) {
		world_pass(&world, MS);
		/* For 90 ms of each second, nobody is there. */
		if (ms % 1000 >= 300 && ms % 1000 < 390)
			continue;
		unsigned got = limits_run_all(&world);
		for (unsigned i = 0; i < got; i++)
			times[count++] = world_now(&world);
		in_each[ms / 1000] += got;
		ck_assert_uint_le(limits_starts_since(times, count, world_now(&world) - WW_SECOND), 1010 + BURST);
		/* Not all at once. */
		ck_assert_uint_le(limits_starts_since(times, count, world_now(&world) - MS), ms ? 11 + BURST : BURST);
	}
	ck_assert_uint_ge(in_each[0], 1000);
	for (unsigned i = 1; i < SECONDS; i++) {
		ck_assert_uint_ge(in_each[i], 990);
		ck_assert_uint_le(in_each[i], 1010);
	}
	limits_clear(&world);
	while (limits_run_all(&world))
		;
	world_end(&world);
}
END_TEST

START_TEST(a_returned_lease_is_no_start)
{
	NEEDS(KIND_LIMITS);
	world_make(&world, _i);
	set_limit(0, 1, 60 * WW_SECOND, 2);
	limits_put(&world, 3);
	struct ww_lease lease = start();
	OK(ww_jobs_return(world.jobs, lease.id, lease.token));
	lease = start();
	OK(ww_jobs_return_after(world.jobs, lease.id, lease.token, MS));
	world_pass(&world, 2 * MS);
	ck_assert_uint_eq(limits_run_all(&world), 2);
	limits_clear(&world);
	ck_assert_uint_eq(limits_run_all(&world), 1);
	world_end(&world);
}
END_TEST

/* ---- Waking */

static unsigned told;

static void note_ready(const char *tube, void *context)
{
	(void)context;
	told += strcmp(tube, WW_TUBE_DEFAULT) == 0;
}

/* Whoever asks when nothing may start hears once, when something may. */
START_TEST(callers_hear_when_the_next_may_start)
{
	NEEDS(KIND_IN_PROCESS);
	world_make(&world, _i);
	world.config.ready = note_ready;
	world_reopen(&world);
	set_limit(1, 1, WW_SECOND, 1);
	limits_put(&world, 3);
	ck_assert_uint_eq(limits_run_all(&world), 1);
	ck_assert_uint_eq(limits_run_all(&world), 0);
	told = 0;
	world_pass(&world, 999 * MS);
	ck_assert_uint_eq(limits_run_all(&world), 0);
	ck_assert_uint_eq(told, 0);
	world_pass(&world, 1 * MS);
	ck_assert_uint_eq(told, 1);
	/* Nobody has asked since. */
	world_pass(&world, 10 * WW_SECOND);
	ck_assert_uint_eq(told, 1);
	struct ww_lease lease = start();
	expect_none(&world);
	world_pass(&world, 10 * WW_SECOND);
	told = 0;
	OK(ww_jobs_finish(world.jobs, lease.id, lease.token));
	ck_assert_uint_eq(told, 1);
	told = 0;
	limits_clear(&world);
	ck_assert_uint_eq(told, 1);
	ck_assert_uint_eq(limits_run_all(&world), 1);
	world.config.ready = NULL;
	world_end(&world);
}
END_TEST

START_TEST(other_tubes_go_on)
{
	static const char *const both[] = {WW_TUBE_DEFAULT, "mail"};
	struct ww_job_spec spec = spec_of("x");
	struct ww_lease lease;

	NEEDS(KIND_LIMITS);
	world_make(&world, _i);
	set_limit(1, 0, WW_SECOND, 1);
	limits_put(&world, 3);
	struct ww_lease held = start();
	spec.tube = "mail";
	spec.priority = 2000;
	(void)put_job(&world, &spec);
	ck_assert_int_eq(ww_jobs_reserve(world.jobs, both, 2, &lease), 1);
	ck_assert_str_eq(lease.tube, "mail");
	ww_jobs_free(world.jobs, lease.body);
	struct ww_tube_stats stats;
	OK(ww_jobs_tube(world.jobs, WW_TUBE_DEFAULT, &stats));
	ck_assert_uint_eq(stats.held, 2);
	ck_assert_uint_eq(stats.ready, 2);
	OK(ww_jobs_tube(world.jobs, "mail", &stats));
	ck_assert_uint_eq(stats.held, 0);
	OK(ww_jobs_finish(world.jobs, lease.id, lease.token));
	OK(ww_jobs_finish(world.jobs, held.id, held.token));
	limits_clear(&world);
	world_end(&world);
}
END_TEST

/* ---- Stored */

static int note_limit(const struct ww_limit_info *info, void *context)
{
	struct ww_limit_info *found = context;

	ck_assert_str_eq(info->ref.tube, found->ref.tube ? found->ref.tube : info->ref.tube);
	found->limit = info->limit;
	found->running++;
	return 0;
}

static unsigned count_limits(const char *tube)
{
	struct ww_limit_info found = {.ref.tube = tube};

	ck_assert_int_eq(ww_jobs_limit_list(world.jobs, tube, note_limit, &found), 0);
	return (unsigned)found.running;
}

START_TEST(limits_are_stored)
{
	struct ww_limit limit = {5, 7, 2 * WW_SECOND, 3, 1};
	const struct ww_limit_ref mail = {.tube = "mail"};
	struct ww_limit_info info;

	NEEDS(KIND_KEEPS);
	NEEDS(KIND_LIMITS);
	world_make(&world, _i);
	OK(ww_jobs_limit_set(world.jobs, &mail, &limit));
	set_limit(0, 1, 60 * WW_SECOND, 2);
	limits_put(&world, 3);
	ck_assert_uint_eq(limits_run_all(&world), 2);
	world_pass(&world, 5 * WW_SECOND);
	world_reopen(&world);
	ck_assert_uint_eq(count_limits(NULL), 2);
	ck_assert_uint_eq(count_limits("mail"), 1);
	ck_assert_uint_eq(count_limits("nothing"), 0);
	OK(ww_jobs_limit_get(world.jobs, &mail, &info));
	ck_assert_mem_eq(&info.limit, &limit, sizeof limit);
	/* What was started before counts. */
	ck_assert_uint_eq(limit_now().left, 55 * WW_SECOND);
	ck_assert_uint_eq(limits_run_all(&world), 0);
	world_pass(&world, 55 * WW_SECOND);
	ck_assert_uint_eq(limits_run_all(&world), 1);
	limits_clear(&world);
	ck_assert_int_eq(ww_jobs_limit_get(world.jobs, &whole, &info), WW_ENOTFOUND);
	world_reopen(&world);
	ck_assert_int_eq(ww_jobs_limit_get(world.jobs, &whole, &info), WW_ENOTFOUND);
	ck_assert_uint_eq(count_limits(NULL), 1);
	limit.running = limit.starts = 0;
	OK(ww_jobs_limit_set(world.jobs, &mail, &limit));
	ck_assert_uint_eq(count_limits(NULL), 0);
	world_end(&world);
}
END_TEST

/* A copy of an open store is what a crash leaves: nobody knows how many have started. */
START_TEST(after_a_crash_the_burst_is_used_up)
{
	char path[sizeof world.path + 4];
	const char *before = world.config.path;

	world_make(&world, _i);
	if (!world.path[0]) {
		world_end(&world);
		return;
	}
	set_limit(0, 1, 10 * WW_SECOND, 4);
	limits_put(&world, 3);
	(void)snprintf(path, sizeof path, "%s.new", world.path);
	OK(ww_jobs_backup(world.path, path));
	struct ww_jobs *first = world.jobs;
	before = world.config.path;
	world.config.path = path;
	OK(ww_jobs_open(&world.jobs, &world.config));
	ck_assert_uint_eq(limits_run_all(&world), 0);
	ck_assert_uint_eq(limit_now().left, 10 * WW_SECOND);
	world_pass(&world, 10 * WW_SECOND);
	ck_assert_uint_eq(limits_run_all(&world), 1);
	OK(ww_jobs_close(world.jobs));
	/* What is recovered has its limits. */
	uint64_t saved;
	char third[sizeof path + 4];
	(void)snprintf(third, sizeof third, "%s.new", path);
	world.config.path = third;
	OK(ww_jobs_recover(path, &world.config, &saved, NULL, NULL));
	OK(ww_jobs_open(&world.jobs, &world.config));
	ck_assert_uint_eq(limit_now().limit.burst, 4);
	ck_assert_uint_eq(limits_run_all(&world), 0);
	OK(ww_jobs_close(world.jobs));
	world.jobs = first;
	world.config.path = before;
	ck_assert_uint_eq(limits_run_all(&world), 3);
	world_end(&world);
	char command[sizeof third * 2 + 16];
	(void)snprintf(command, sizeof command, "rm -r '%s' '%s'", path, third);
	ck_assert_int_eq(system(command), 0);
}
END_TEST

START_TEST(a_limit_that_cannot_be_written_is_not_set)
{
	struct ww_limit limit = {1, 0, WW_SECOND, 1, 1};

	NEEDS(KIND_BATCHES);
	world_make(&world, _i);
	set_limit(2, 0, WW_SECOND, 1);
	limits_put(&world, 4);
	world_fail(&world, FAIL_COMMIT);
	ck_assert_int_lt(ww_jobs_limit_set(world.jobs, &whole, &limit), 0);
	world_fail(&world, FAIL_NOTHING);
	ck_assert_uint_eq(limit_now().limit.running, 2);
	world_fail(&world, FAIL_PUT);
	ck_assert_int_lt(ww_jobs_limit_set(world.jobs, &whole, &limit), 0);
	world_fail(&world, FAIL_NOTHING);
	ck_assert_uint_eq(limit_now().limit.running, 2);
	(void)start();
	(void)start();
	expect_none(&world);
	/* A lease that a failed write took back does not run. */
	OK(ww_jobs_begin(world.jobs));
	struct ww_lease lease;
	limits_clear(&world);
	OK(ww_jobs_reserve(world.jobs, here, 1, &lease) - 1);
	ww_jobs_free(world.jobs, lease.body);
	world_fail(&world, FAIL_COMMIT);
	ck_assert_int_lt(ww_jobs_commit(world.jobs), 0);
	world_fail(&world, FAIL_NOTHING);
	ck_assert_uint_eq(limit_now().running, 2);
	expect_none(&world);
	world_end(&world);
}
END_TEST

KINDS_MAIN("jobs/limits", only_so_many_run_at_once, a_lower_limit_lets_those_that_run_go_on,
    starts_keep_the_rate_and_their_order, lateness_is_made_up_while_jobs_wait, a_stall_is_made_up_within_the_second,
    a_returned_lease_is_no_start, callers_hear_when_the_next_may_start, other_tubes_go_on, limits_are_stored,
    after_a_crash_the_burst_is_used_up, a_limit_that_cannot_be_written_is_not_set)
