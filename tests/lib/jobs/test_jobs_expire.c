/* Jobs that expire: nobody gets them from then on, and they are dropped or buried, once, and not before. */
/* tier: check */
#include <string.h>

#include "tests/lib/jobs/fixture.h"

#define HOUR (3600 * WW_SECOND)

static struct world world;

static struct ww_job_spec expiring(uint64_t expire, enum ww_expired expired)
{
	struct ww_job_spec spec = spec_of("x");

	spec.expire = expire;
	spec.expired = expired;
	spec.keep = 24 * HOUR;
	return spec;
}

static int exists(uint64_t id)
{
	enum ww_job_state state;
	int error = ww_jobs_state(world.jobs, id, &state);

	ck_assert(error == WW_OK || error == WW_ENOTFOUND);
	return error == WW_OK;
}

/* Later, without a dispatch: no timer fires. */
static void set_clock(uint64_t ns)
{
	uint64_t now;

	OK(ww_clock_now(world.clock, &now));
	OK(ww_clock_virtual_set(world.clock, now + ns));
}

static uint64_t expired_ones(void)
{
	struct ww_jobs_stats stats;

	OK(ww_jobs_stats(world.jobs, &stats));
	return stats.expired;
}

static uint64_t commits_of(void)
{
	struct ww_jobs_stats stats;

	OK(ww_jobs_stats(world.jobs, &stats));
	return stats.commits;
}

static int note(const struct ww_job_run *run, void *context)
{
	*(struct ww_job_run *)context = *run;
	return 1;
}

static void expect_run(enum ww_event_kind outcome, uint32_t attempt)
{
	struct ww_job_run run = {.number = 0};

	ck_assert_int_eq(ww_jobs_history(world.jobs, NULL, 1, note, &run, NULL), 1);
	ck_assert_uint_eq(run.outcome, outcome);
	ck_assert_uint_eq(run.attempt, attempt);
}

START_TEST(a_job_that_nobody_takes_is_dropped)
{
	struct ww_job_spec spec = expiring(10 * WW_SECOND, WW_EXPIRED_DROP);
	uint64_t id;

	NEEDS(KIND_EXPIRES);
	world_make(&world, _i);
	spec.due = HOUR;
	id = put_job(&world, &spec);
	ck_assert_uint_eq(info_of(&world, id).expires, world_now(&world) + HOUR + 10 * WW_SECOND);
	ck_assert_uint_eq(info_of(&world, id).expire, 10 * WW_SECOND);
	world_pass(&world, HOUR + 10 * WW_SECOND - MS);
	ck_assert_uint_eq(info_of(&world, id).state, WW_JOB_READY);
	world_pass(&world, MS);
	ck_assert(!exists(id));
	expect_none(&world);
	ck_assert_uint_eq(expired_ones(), 1);
	expect_run(WW_EVENT_EXPIRED, 0);
	world_end(&world);
}
END_TEST

START_TEST(a_job_is_buried_if_it_says_so)
{
	struct ww_job_spec spec = expiring(10 * WW_SECOND, WW_EXPIRED_BURY);
	struct ww_lease lease;
	uint64_t id;

	NEEDS(KIND_EXPIRES);
	world_make(&world, _i);
	id = put_job(&world, &spec);
	OK(ww_jobs_pause(world.jobs, WW_TUBE_DEFAULT, HOUR));
	world_pass(&world, 10 * WW_SECOND);
	ck_assert_uint_eq(info_of(&world, id).state, WW_JOB_BURIED);
	ck_assert_str_eq(info_of(&world, id).error, "it expired");
	expect_run(WW_EVENT_BURIED, 0);
	/* A kick gives it a life without an end. */
	OK(ww_jobs_pause(world.jobs, WW_TUBE_DEFAULT, 0));
	OK(ww_jobs_kick_job(world.jobs, id));
	world_pass(&world, HOUR);
	ck_assert_uint_eq(info_of(&world, id).state, WW_JOB_READY);
	ck_assert_uint_eq(info_of(&world, id).expires, 0);
	lease = reserve_job(&world);
	OK(ww_jobs_finish(world.jobs, lease.id, lease.token));
	ck_assert_uint_eq(expired_ones(), 1);
	world_end(&world);
}
END_TEST

START_TEST(a_worker_may_finish_a_job_that_expires_meanwhile)
{
	struct ww_job_spec spec = expiring(10 * WW_SECOND, WW_EXPIRED_DROP);
	struct ww_lease lease;

	NEEDS(KIND_EXPIRES);
	world_make(&world, _i);
	(void)put_job(&world, &spec);
	lease = reserve_job(&world);
	world_pass(&world, 30 * WW_SECOND);
	OK(ww_jobs_touch(world.jobs, lease.id, lease.token, NULL));
	world_pass(&world, 50 * WW_SECOND);
	OK(ww_jobs_finish(world.jobs, lease.id, lease.token));
	expect_run(WW_EVENT_FINISHED, 1);
	ck_assert_uint_eq(expired_ones(), 0);
	world_end(&world);
}
END_TEST

/* Each is the end of a lease, and then the job is not delivered again. */
enum end { RELEASE, RETURN, TIME_OUT, RELEASE_LATER, ENDS };

static void end_lease(const struct ww_lease *lease, enum end end)
{
	switch (end) {
	case RELEASE:
		OK(ww_jobs_release(world.jobs, lease->id, lease->token, 0, 0, NULL));
		break;
	case RETURN:
		OK(ww_jobs_return(world.jobs, lease->id, lease->token));
		break;
	case RELEASE_LATER:
		OK(ww_jobs_release(world.jobs, lease->id, lease->token, 0, HOUR, NULL));
		break;
	default:
		world_pass(&world, 40 * WW_SECOND);
	}
	world_settle(&world);
}

START_TEST(a_lease_that_ends_later_is_the_last)
{
	struct ww_job_spec spec = expiring(30 * WW_SECOND, WW_EXPIRED_DROP);
	struct ww_lease lease;

	NEEDS(KIND_EXPIRES);
	world_make(&world, _i);
	for (enum end end = RELEASE; end < ENDS; end++) {
		(void)put_job(&world, &spec);
		lease = reserve_job(&world);
		world_pass(&world, 30 * WW_SECOND);
		ck_assert(exists(lease.id));
		end_lease(&lease, end);
		ck_assert_msg(!exists(lease.id), "end %d", end);
		expect_none(&world);
		ck_assert_uint_eq(expired_ones(), end + 1);
	}
	world_end(&world);
}
END_TEST

START_TEST(a_retry_does_not_outlast_the_job)
{
	struct ww_job_spec spec = expiring(30 * WW_SECOND, WW_EXPIRED_DROP);
	struct ww_lease lease;

	NEEDS(KIND_EXPIRES);
	world_make(&world, _i);
	(void)put_job(&world, &spec);
	lease = reserve_job(&world);
	OK(ww_jobs_release(world.jobs, lease.id, lease.token, 0, HOUR, NULL));
	world_pass(&world, 30 * WW_SECOND - MS);
	ck_assert(exists(lease.id));
	expect_none(&world);
	world_pass(&world, MS);
	ck_assert(!exists(lease.id));
	expect_run(WW_EVENT_EXPIRED, 1);
	world_end(&world);
}
END_TEST

START_TEST(a_move_takes_the_moment_along)
{
	struct ww_job_spec spec = expiring(10 * WW_SECOND, WW_EXPIRED_DROP);
	struct ww_job_ref ref = {.id = 0};

	NEEDS(KIND_EXPIRES);
	world_make(&world, _i);
	ref.id = put_job(&world, &spec);
	OK(ww_jobs_move(world.jobs, &ref, HOUR, 0, NULL));
	world_pass(&world, HOUR + 10 * WW_SECOND - MS);
	ck_assert(exists(ref.id));
	world_pass(&world, MS);
	ck_assert(!exists(ref.id));
	world_end(&world);
}
END_TEST

START_TEST(a_periodic_job_waits_for_its_next_time)
{
	struct ww_job_spec spec = expiring(90 * WW_SECOND, WW_EXPIRED_DROP);
	struct ww_lease lease;
	uint64_t id, start;

	NEEDS(KIND_EXPIRES);
	world_make(&world, _i);
	spec.period = 60 * WW_SECOND;
	start = world_now(&world);
	id = put_job(&world, &spec);
	/* The second time has come, and has not expired yet. */
	world_pass(&world, 90 * WW_SECOND);
	ck_assert_uint_eq(info_of(&world, id).due, start + 60 * WW_SECOND);
	ck_assert_uint_eq(info_of(&world, id).state, WW_JOB_READY);
	expect_run(WW_EVENT_EXPIRED, 0);
	lease = reserve_job(&world);
	OK(ww_jobs_finish(world.jobs, lease.id, lease.token));
	ck_assert_uint_eq(info_of(&world, id).due, start + 120 * WW_SECOND);
	ck_assert_uint_eq(info_of(&world, id).expires, start + 210 * WW_SECOND);
	ck_assert_uint_eq(expired_ones(), 1);
	world_end(&world);
}
END_TEST

START_TEST(a_job_expires_while_the_store_is_closed)
{
	struct ww_job_spec spec = expiring(10 * WW_SECOND, WW_EXPIRED_DROP);
	uint64_t early, late;

	NEEDS(KIND_EXPIRES);
	NEEDS(KIND_KEEPS);
	world_make(&world, _i);
	early = put_job(&world, &spec);
	spec.expire = HOUR;
	late = put_job(&world, &spec);
	OK(ww_jobs_close(world.jobs));
	set_clock(10 * WW_SECOND);
	OK(world.kind->open(&world));
	world_settle(&world);
	ck_assert(!exists(early));
	ck_assert_uint_eq(reserve_job(&world).id, late);
	world_end(&world);
}
END_TEST

START_TEST(its_key_is_kept_as_after_a_finish)
{
	struct ww_job_spec spec = expiring(10 * WW_SECOND, WW_EXPIRED_DROP);

	NEEDS(KIND_EXPIRES);
	world_make(&world, _i);
	spec.key = "k";
	spec.key_length = 1;
	spec.key_mode = WW_KEY_UNIQUE;
	spec.key_span = HOUR;
	(void)put_job(&world, &spec);
	world_pass(&world, 10 * WW_SECOND);
	ck_assert_int_eq(ww_jobs_put(world.jobs, &spec, NULL, NULL), WW_PUT_ENDED);
	world_pass(&world, HOUR);
	ck_assert_int_eq(ww_jobs_put(world.jobs, &spec, NULL, NULL), WW_PUT_NEW);
	world_end(&world);
}
END_TEST

/* As an import puts a job that has waited for a retry. */
START_TEST(its_moment_is_put_again)
{
	struct ww_job_spec spec = expiring(HOUR, WW_EXPIRED_DROP);
	const struct ww_job_info was = {.state = WW_JOB_READY, .expires = 0};
	struct ww_job_info at = was;
	const struct ww_job_info *const all[] = {&at, &was};
	struct ww_job_put puts[] = {{.spec = &spec}, {.spec = &spec}};

	NEEDS(KIND_EXPIRES);
	world_make(&world, _i);
	at.expires = world_now(&world) + 5 * WW_SECOND;
	OK(ww_jobs_put_again(world.jobs, puts, all, 2));
	ck_assert_uint_eq(info_of(&world, puts[0].id).expires, at.expires);
	ck_assert_uint_eq(info_of(&world, puts[1].id).expires, world_now(&world) + HOUR);
	world_pass(&world, 5 * WW_SECOND);
	ck_assert(!exists(puts[0].id));
	ck_assert_uint_eq(reserve_job(&world).id, puts[1].id);
	world_end(&world);
}
END_TEST

START_TEST(a_late_timer_lets_nobody_have_the_job)
{
	struct ww_job_spec spec = expiring(10 * WW_SECOND, WW_EXPIRED_BURY);
	const char *tube = WW_TUBE_DEFAULT;
	struct ww_lease lease;
	uint64_t id, commits;

	NEEDS(KIND_EXPIRES);
	NEEDS(KIND_IN_PROCESS);
	world_make(&world, _i);
	id = put_job(&world, &spec);
	set_clock(10 * WW_SECOND);
	ck_assert_int_eq(ww_jobs_reserve_job(world.jobs, id, &lease), WW_ENOTFOUND);
	commits = commits_of();
	ck_assert_int_eq(ww_jobs_reserve(world.jobs, &tube, 1, &lease), 0);
	/* However many have expired, a reserve writes none of their ends. */
	ck_assert_uint_eq(commits_of(), commits);
	world_settle(&world);
	ck_assert_uint_eq(info_of(&world, id).state, WW_JOB_BURIED);
	ck_assert_uint_eq(expired_ones(), 1);
	world_end(&world);
}
END_TEST

/* As after a start with many jobs that are overdue. */
START_TEST(a_late_timer_keeps_no_put_out)
{
	static const enum ww_key_mode modes[] = {
	    WW_KEY_REPLACE, WW_KEY_IF_ABSENT, WW_KEY_KEEP_EARLIER, WW_KEY_KEEP_LATER, WW_KEY_DEBOUNCE};

	NEEDS(KIND_EXPIRES);
	NEEDS(KIND_IN_PROCESS);
	world_make(&world, _i);
	for (size_t i = 0; i < sizeof modes / sizeof *modes; i++) {
		struct ww_job_spec spec = expiring(10 * WW_SECOND, WW_EXPIRED_DROP);
		struct ww_lease lease;
		uint64_t old, id;

		spec.key = "k";
		spec.key_length = 1;
		old = put_job(&world, &spec);
		set_clock(10 * WW_SECOND);
		spec.key_mode = modes[i];
		spec.key_span = modes[i] == WW_KEY_DEBOUNCE ? HOUR : 0;
		ck_assert_msg(ww_jobs_put(world.jobs, &spec, &id, NULL) == WW_PUT_NEW, "mode %d", modes[i]);
		ck_assert_uint_ne(id, old);
		world_settle(&world);
		lease = reserve_job(&world);
		ck_assert_uint_eq(lease.id, id);
		OK(ww_jobs_finish(world.jobs, lease.id, lease.token));
		ck_assert_uint_eq(expired_ones(), i + 1);
	}
	world_end(&world);
}
END_TEST

START_TEST(a_failed_write_lets_it_end_later)
{
	struct ww_job_spec spec = expiring(10 * WW_SECOND, WW_EXPIRED_DROP);
	uint64_t id;

	NEEDS(KIND_EXPIRES);
	NEEDS(KIND_BATCHES);
	world_make(&world, _i);
	id = put_job(&world, &spec);
	world_fail(&world, FAIL_COMMIT);
	world_pass(&world, 10 * WW_SECOND);
	world_pass(&world, 2 * WW_SECOND);
	ck_assert(exists(id));
	ck_assert_uint_eq(expired_ones(), 0);
	world_fail(&world, FAIL_NOTHING);
	expect_none(&world);
	world_pass(&world, 2 * WW_SECOND);
	ck_assert(!exists(id));
	ck_assert_uint_eq(expired_ones(), 1);
	world_end(&world);
}
END_TEST

KINDS_MAIN("jobs/expire", a_job_that_nobody_takes_is_dropped, a_job_is_buried_if_it_says_so,
    a_worker_may_finish_a_job_that_expires_meanwhile, a_lease_that_ends_later_is_the_last,
    a_retry_does_not_outlast_the_job, a_move_takes_the_moment_along, a_periodic_job_waits_for_its_next_time,
    a_job_expires_while_the_store_is_closed, its_key_is_kept_as_after_a_finish, its_moment_is_put_again,
    a_late_timer_lets_nobody_have_the_job, a_late_timer_keeps_no_put_out, a_failed_write_lets_it_end_later)
