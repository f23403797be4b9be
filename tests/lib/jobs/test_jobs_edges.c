/* Edge cases: writes that fail at a bad moment, extreme times, forks, calls in the wrong place. */
/* tier: check */

#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/jobs/local/load.h"
#include "tests/lib/jobs/fixture.h"

static struct world world;
static const char *const tube[] = {WW_TUBE_DEFAULT};

START_TEST(a_lease_that_expires_while_writes_fail_ends_later)
{
	NEEDS(KIND_BATCHES);
	world_make(&world, _i);
	struct ww_job_spec spec = spec_of("x");
	spec.attempts = 3;
	spec.run = 2 * WW_SECOND;
	uint64_t id = put_job(&world, &spec);
	(void)reserve_job(&world);
	world_fail(&world, FAIL_PUT);
	world_pass(&world, 2 * WW_SECOND);
	/* The store tries to write again, but pauses between two tries. */
	for (int i = 0; i < 5; i++)
		ck_assert_int_eq(ww_driver_dispatch(world.driver, 1000), 0);
	world_pass(&world, 10 * WW_SECOND);
	ck_assert_int_eq(info_of(&world, id).state, WW_JOB_RESERVED);
	world_fail(&world, FAIL_NOTHING);
	world_pass(&world, 2 * WW_SECOND);
	ck_assert_int_eq(info_of(&world, id).state, WW_JOB_READY);
	ck_assert_uint_eq(reserve_job(&world).attempt, 2);
	world_check(&world);
	world_end(&world);
}
END_TEST

START_TEST(a_write_that_fails_changes_no_count)
{
	NEEDS(KIND_BATCHES);
	struct ww_tube_stats before, after;
	struct ww_job_ref ref;
	uint64_t count;
	world_make(&world, _i);
	struct ww_job_spec spec = spec_of("x");
	spec.key = "k";
	spec.key_length = 1;
	ref = (struct ww_job_ref){.id = put_job(&world, &spec)};
	struct ww_lease lease = reserve_job(&world);
	OK(ww_jobs_bury(world.jobs, lease.id, lease.token, 0, NULL));
	OK(ww_jobs_tube(world.jobs, WW_TUBE_DEFAULT, &before));
	world_fail(&world, FAIL_PUT);
	ck_assert_int_eq(ww_jobs_put(world.jobs, &spec, NULL, NULL), WW_EFULL);
	ck_assert_int_eq(ww_jobs_kick_job(world.jobs, ref.id), WW_EFULL);
	ck_assert_int_eq(ww_jobs_kick(world.jobs, WW_TUBE_DEFAULT, 1, &count), WW_EFULL);
	ck_assert_int_eq(ww_jobs_reserve_job(world.jobs, ref.id, &lease), WW_EFULL);
	/* A cancel writes the counts of the tube. */
	ck_assert_int_eq(ww_jobs_cancel(world.jobs, &ref), WW_EFULL);
	world_fail(&world, FAIL_NOTHING);
	OK(ww_jobs_tube(world.jobs, WW_TUBE_DEFAULT, &after));
	/* What pads the struct may be anything. */
	ck_assert_mem_eq(&before.delayed, &after.delayed,
	    offsetof(struct ww_tube_stats, is_limited) - offsetof(struct ww_tube_stats, delayed));
	ck_assert_int_eq(before.is_limited, after.is_limited);
	world_check(&world);
	world_end(&world);
}
END_TEST

START_TEST(a_periodic_job_kicked_early_keeps_its_next_time)
{
	for (int missed = WW_MISSED_ONCE; missed <= WW_MISSED_SKIP; missed++) {
		world_make(&world, _i);
		struct ww_job_spec spec = spec_of("x");
		spec.due = 10 * WW_SECOND;
		spec.period = 60 * WW_SECOND;
		spec.missed = (enum ww_missed)missed;
		spec.skip = 5 * WW_SECOND;
		uint64_t id = put_job(&world, &spec);
		OK(ww_jobs_kick_job(world.jobs, id));
		struct ww_lease lease = reserve_job(&world);
		ck_assert_uint_eq(lease.id, id);
		OK(ww_jobs_finish(world.jobs, id, lease.token));
		ck_assert_uint_eq(info_of(&world, id).left, 10 * WW_SECOND);
		world_end(&world);
	}
}
END_TEST

START_TEST(a_time_to_run_of_a_century_delays_no_other_job)
{
	world_make(&world, _i);
	struct ww_job_spec spec = spec_of("x");
	spec.run = WW_DRIVER_TIME_MAX;
	uint64_t id = put_job(&world, &spec);
	struct ww_lease lease = reserve_job(&world);
	ck_assert_uint_eq(lease.id, id);
	OK(ww_jobs_touch(world.jobs, id, lease.token, NULL));
	OK(ww_jobs_finish(world.jobs, id, lease.token));
	world_end(&world);
}
END_TEST

static int see_none(const struct ww_job_info *info, void *context)
{
	(void)info;
	(void)context;
	return 0;
}

static int see_no_tube(const struct ww_tube_stats *stats, void *context)
{
	(void)stats;
	(void)context;
	return 0;
}

static int see_no_run(const struct ww_job_run *run, void *context)
{
	(void)run;
	(void)context;
	return 0;
}

static int see_no_limit(const struct ww_limit_info *info, void *context)
{
	(void)info;
	(void)context;
	return 0;
}

START_TEST(close_and_wait_are_refused_in_a_batch)
{
	struct ww_lease lease;

	NEEDS(KIND_BATCHES);
	world_make(&world, _i);
	OK(ww_jobs_begin(world.jobs));
	ck_assert_int_eq(ww_jobs_close(world.jobs), WW_EBUSY);
	ck_assert_int_eq(ww_jobs_wait(world.jobs, tube, 1, WW_SECOND, &lease), WW_EBUSY);
	OK(ww_jobs_commit(world.jobs));
	world_end(&world);
}
END_TEST

START_TEST(a_wait_ends_when_the_driver_stops)
{
	struct ww_lease lease;

	NEEDS(KIND_IN_PROCESS);
	world_make(&world, _i);
	OK(ww_driver_stop(world.driver, NULL, NULL, NULL));
	ck_assert_int_eq(ww_jobs_wait(world.jobs, tube, 1, WW_SECOND, &lease), WW_ECLOSED);
	world_end(&world);
}
END_TEST

/* The number, from 1 on, of the first call that does not answer as expected; 0: all do. */
static int answers_of_child(const struct ww_job_spec *spec, uint64_t id, void *body)
{
	struct ww_job_filter filter = {0};
	struct ww_job_ref ref = {.id = id};
	struct ww_job_put put = {.spec = spec};
	struct ww_job_end end = {.id = id, .token = 1};
	const struct ww_job_info *was = NULL;
	const struct ww_limit_ref whole = {0};
	const struct ww_limit limit = {.running = 1, .per = WW_SECOND, .burst = 1};
	struct ww_limit_info limited;
	struct ww_tube_stats stats;
	struct ww_jobs_stats all;
	struct ww_job_info info;
	enum ww_job_state state;
	struct ww_lease lease;
	uint64_t number;
	struct ww_jobs *jobs = world.jobs;
	int answers[] = {ww_jobs_put(jobs, spec, NULL, NULL), ww_jobs_begin(jobs), ww_jobs_commit(jobs),
	    ww_jobs_now(jobs, 0, &number), ww_jobs_put_many(jobs, &put, 1), ww_jobs_move(jobs, &ref, 0, 0, NULL),
	    ww_jobs_cancel(jobs, &ref), ww_jobs_reserve(jobs, tube, 1, &lease),
	    ww_jobs_reserve_many(jobs, tube, 1, &lease, 1), ww_jobs_wait(jobs, tube, 1, 0, &lease),
	    ww_jobs_reserve_job(jobs, id, &lease), ww_jobs_finish(jobs, id, 1), ww_jobs_finish_many(jobs, &end, 1),
	    ww_jobs_release(jobs, id, 1, 0, 0, NULL), ww_jobs_bury(jobs, id, 1, 0, NULL), ww_jobs_return(jobs, id, 1),
	    ww_jobs_return_after(jobs, id, 1, 1), ww_jobs_report(jobs, id, 1, "", 0),
	    ww_jobs_history(jobs, NULL, 1, see_no_run, NULL, NULL), ww_jobs_limit_set(jobs, &whole, &limit),
	    ww_jobs_limit_get(jobs, &whole, &limited), ww_jobs_limit_list(jobs, NULL, see_no_limit, NULL),
	    ww_jobs_put_again(jobs, &put, &was, 1), ww_jobs_touch(jobs, id, 1, NULL),
	    ww_jobs_kick(jobs, *tube, 1, &number), ww_jobs_kick_job(jobs, id), ww_jobs_pause(jobs, *tube, 0),
	    ww_jobs_peek(jobs, &ref, &info, NULL), ww_jobs_peek_next(jobs, *tube, WW_JOB_READY, &info, NULL),
	    ww_jobs_state(jobs, id, &state), ww_jobs_list(jobs, &filter, 1, see_none, NULL, NULL),
	    ww_jobs_forecast(jobs, NULL, 1, &number, 1), ww_jobs_stats(jobs, &all), ww_jobs_tube(jobs, *tube, &stats),
	    ww_jobs_tubes(jobs, see_no_tube, NULL), ww_jobs_check(jobs, NULL, NULL), ww_jobs_close(jobs)};

	for (int i = 0; i < (int)(sizeof answers / sizeof *answers); i++)
		if (answers[i] != WW_ECLOSED) {
			(void)fprintf(stderr, "call %d answers %d\n", i + 1, answers[i]);
			return i + 1;
		}
	/* These do not need the store. */
	if (ww_jobs_listen(jobs, NULL, NULL))
		return -1;
	ww_jobs_free(jobs, body);
	return 0;
}

START_TEST(calls_in_a_child_process_are_refused_and_do_no_harm)
{
	struct ww_job_spec spec = spec_of("x");
	struct ww_job_info info;
	int status;
	void *body;

	world_make(&world, _i);
	uint64_t id = put_job(&world, &spec);
	OK(ww_jobs_peek(world.jobs, &(struct ww_job_ref){.id = id}, &info, &body));
	pid_t child = fork();
	if (child == 0) {
		/* Valgrind would miss what the threads had that are not in this process: another program has no leaks. */
		execlp(answers_of_child(&spec, id, body) == 0 ? "true" : "false", "answered", NULL);
		_exit(1);
	}
	ww_jobs_free(world.jobs, body);
	ck_assert_int_eq(waitpid(child, &status, 0), child);
	ck_assert_int_eq(status, 0);
	ck_assert_uint_gt(put_job(&world, &spec), 0);
	ck_assert_uint_eq(info_of(&world, id).version, 1);
	world_check(&world);
	world_end(&world);
}
END_TEST

START_TEST(many_due_jobs_are_ready_when_the_store_is_open)
{
	enum { MANY = 3 * LOAD_BATCH };
	static struct ww_job_spec specs[MANY];
	static struct ww_job_put given[MANY];
	struct ww_tube_stats stats;

	NEEDS(KIND_KEEPS);
	world_make(&world, _i);
	for (uint32_t i = 0; i < MANY; i++) {
		specs[i] = spec_of("x");
		specs[i].priority = MANY - i;
		given[i] = (struct ww_job_put){.spec = &specs[i]};
	}
	OK(ww_jobs_put_many(world.jobs, given, MANY));
	OK(ww_jobs_close(world.jobs));
	OK(world.kind->open(&world));
	OK(ww_jobs_tube(world.jobs, WW_TUBE_DEFAULT, &stats));
	ck_assert_uint_eq(stats.ready, MANY);
	ck_assert_uint_eq(reserve_job(&world).id, given[MANY - 1].id);
	world_end(&world);
}
END_TEST

KINDS_MAIN("jobs/edges", a_lease_that_expires_while_writes_fail_ends_later, a_write_that_fails_changes_no_count,
    a_periodic_job_kicked_early_keeps_its_next_time, a_time_to_run_of_a_century_delays_no_other_job,
    close_and_wait_are_refused_in_a_batch, a_wait_ends_when_the_driver_stops,
    calls_in_a_child_process_are_refused_and_do_no_harm, many_due_jobs_are_ready_when_the_store_is_open)
