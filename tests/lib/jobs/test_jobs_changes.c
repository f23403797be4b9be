/* Each call that changes a job, in each state of the job, with each kind of store. */
/* tier: check */

#include <string.h>

#include "tests/lib/jobs/fixture.h"

static struct world world;

static struct ww_job_ref by_id(uint64_t id)
{
	return (struct ww_job_ref){.id = id};
}

/* Make a job in a state. If it is reserved, *lease is its lease. */
static uint64_t job_in(enum ww_job_state state, struct ww_lease *lease)
{
	struct ww_job_spec spec = spec_of("x");
	struct ww_lease own;

	lease = lease ? lease : &own;
	spec.due = state == WW_JOB_DELAYED ? 3600 * WW_SECOND : 0;
	uint64_t id = put_job(&world, &spec);
	if (state == WW_JOB_RESERVED || state == WW_JOB_BURIED) {
		OK(ww_jobs_reserve_job(world.jobs, id, lease));
		ww_jobs_free(world.jobs, lease->body);
	}
	if (state == WW_JOB_BURIED)
		OK(ww_jobs_bury(world.jobs, id, lease->token, 7, "bad"));
	ck_assert_int_eq(info_of(&world, id).state, state);
	return id;
}

START_TEST(a_returned_lease_does_not_count_as_an_attempt)
{
	const char *tubes[] = {WW_TUBE_DEFAULT};
	struct ww_lease lease;
	struct ww_lease again;

	world_make(&world, _i);
	struct ww_job_spec spec = spec_of("x");
	spec.key = "k\0}";
	spec.key_length = 3;
	spec.priority = 7;
	spec.backoff = 3 * WW_SECOND;
	spec.attempts = 1;
	uint64_t id = put_job(&world, &spec);
	ck_assert_int_eq(ww_jobs_reserve(world.jobs, tubes, 1, &lease), 1);
	ww_jobs_free(world.jobs, lease.body);
	ck_assert_uint_eq(lease.priority, 7);
	ck_assert_uint_eq(lease.backoff, 3 * WW_SECOND);
	ck_assert_uint_eq(lease.key_length, 3);
	ck_assert_mem_eq(lease.key, "k\0}", 3);
	ck_assert_int_eq(ww_jobs_return(world.jobs, id, lease.token + 1), WW_ESTALE);
	OK(ww_jobs_return(world.jobs, id, lease.token));
	ck_assert_int_eq(ww_jobs_return(world.jobs, id, lease.token), WW_ESTALE);
	ck_assert_int_eq(info_of(&world, id).state, WW_JOB_READY);
	ck_assert_int_eq(ww_jobs_reserve(world.jobs, tubes, 1, &again), 1);
	ww_jobs_free(world.jobs, again.body);
	ck_assert_uint_eq(again.id, id);
	ck_assert_uint_eq(again.attempt, 1);
	ck_assert_uint_gt(again.token, lease.token);
	/* Its only attempt fails now. */
	ck_assert_int_eq(ww_jobs_release(world.jobs, id, again.token, 7, 0, NULL), 1);
	world_end(&world);
}
END_TEST

START_TEST(a_lease_returned_with_a_delay_waits_and_does_not_count_as_an_attempt)
{
	const char *tubes[] = {WW_TUBE_DEFAULT};
	struct ww_lease lease;
	uint64_t begun;

	world_make(&world, _i);
	struct ww_job_spec spec = spec_of("x");
	spec.attempts = 1;
	spec.period = 60 * WW_SECOND;
	uint64_t id = put_job(&world, &spec);
	begun = info_of(&world, id).due;
	ck_assert_int_eq(ww_jobs_reserve(world.jobs, tubes, 1, &lease), 1);
	ww_jobs_free(world.jobs, lease.body);
	ck_assert_int_eq(ww_jobs_return_after(world.jobs, id, lease.token + 1, WW_SECOND), WW_ESTALE);
	ck_assert_int_eq(ww_jobs_return_after(world.jobs, id, lease.token, WW_DRIVER_TIME_MAX + 1), WW_EINVAL);
	OK(ww_jobs_return_after(world.jobs, id, lease.token, 5 * WW_SECOND));
	ck_assert_int_eq(ww_jobs_return_after(world.jobs, id, lease.token, WW_SECOND), WW_ESTALE);
	ck_assert_int_eq(info_of(&world, id).state, WW_JOB_DELAYED);
	ck_assert_uint_eq(info_of(&world, id).delay, 5 * WW_SECOND);
	ck_assert_uint_eq(info_of(&world, id).version, 2);
	world_pass(&world, 5 * WW_SECOND);
	struct ww_lease again = reserve_job(&world);
	ck_assert_uint_eq(again.id, id);
	ck_assert_uint_eq(again.attempt, 1);
	/* It is still the same run of the schedule. */
	ck_assert_uint_eq(again.scheduled, begun);
	ck_assert_uint_eq(again.scheduled, lease.scheduled);
	ck_assert_uint_eq(again.created, lease.created);
	ck_assert_uint_eq(again.attempts, 1);
	OK(ww_jobs_finish(world.jobs, id, again.token));
	world_pass(&world, 60 * WW_SECOND);
	again = reserve_job(&world);
	ck_assert_uint_eq(again.scheduled, begun + 60 * WW_SECOND);
	world_end(&world);
}
END_TEST

START_TEST(a_job_is_moved_by_id_or_key_and_to_a_time)
{
	uint64_t version;

	world_make(&world, _i);
	struct ww_job_spec spec = spec_of("x");
	spec.key = "a\0b";
	spec.key_length = 3;
	spec.due = 100 * WW_SECOND;
	uint64_t id = put_job(&world, &spec);
	struct ww_job_ref key = {.tube = WW_TUBE_DEFAULT, .key = "a\0b", .key_length = 3, .version = 1};
	OK(ww_jobs_move(world.jobs, &key, 50 * WW_SECOND, 0, &version));
	ck_assert_uint_eq(version, 2);
	ck_assert_uint_eq(info_of(&world, id).left, 50 * WW_SECOND);
	ck_assert_int_eq(ww_jobs_move(world.jobs, &key, 0, 0, NULL), WW_ESTALE);
	/* Without a tube, the default tube is meant. */
	key.tube = NULL;
	key.version = 2;
	OK(ww_jobs_move(world.jobs, &key, world_now(&world) + 20 * WW_SECOND, WW_JOB_AT, NULL));
	struct ww_job_ref ref = by_id(id);
	ck_assert_uint_eq(info_of(&world, id).left, 20 * WW_SECOND);
	ck_assert_uint_eq(info_of(&world, id).delay, 20 * WW_SECOND);
	/* A time in the past means now. */
	OK(ww_jobs_move(world.jobs, &ref, 1, WW_JOB_AT, &version));
	ck_assert_uint_eq(version, 4);
	ck_assert_int_eq(info_of(&world, id).state, WW_JOB_READY);
	/* A ready job may be delayed again. */
	OK(ww_jobs_move(world.jobs, &ref, WW_SECOND, 0, NULL));
	expect_none(&world);
	world_pass(&world, WW_SECOND);
	ck_assert_uint_eq(reserve_job(&world).id, id);
	world_end(&world);
}
END_TEST

START_TEST(a_job_that_cannot_be_moved_stays_as_it_is)
{
	world_make(&world, _i);
	struct ww_job_ref reserved = by_id(job_in(WW_JOB_RESERVED, NULL));
	struct ww_job_ref buried = by_id(job_in(WW_JOB_BURIED, NULL));
	struct ww_job_ref delayed = by_id(job_in(WW_JOB_DELAYED, NULL));
	struct ww_job_ref other = {.key = "k", .key_length = 1};
	struct ww_job_ref nothing = {.id = 0};
	ck_assert_int_eq(ww_jobs_move(world.jobs, &reserved, 0, 0, NULL), WW_EINUSE);
	ck_assert_int_eq(ww_jobs_move(world.jobs, &buried, 0, 0, NULL), WW_EINVAL);
	ck_assert_int_eq(ww_jobs_move(world.jobs, &delayed, WW_DRIVER_TIME_MAX + 1, 0, NULL), WW_EOVERFLOW);
	ck_assert_int_eq(ww_jobs_move(world.jobs, &delayed, UINT64_MAX, WW_JOB_AT, NULL), WW_EOVERFLOW);
	ck_assert_int_eq(ww_jobs_move(world.jobs, &delayed, 0, WW_JOB_WALL, NULL), WW_EINVAL);
	ck_assert_int_eq(ww_jobs_move(world.jobs, &other, 0, 0, NULL), WW_ENOTFOUND);
	ck_assert_int_eq(ww_jobs_move(world.jobs, &nothing, 0, 0, NULL), WW_EINVAL);
	ck_assert_uint_eq(info_of(&world, delayed.id).version, 1);
	ck_assert_uint_eq(info_of(&world, delayed.id).left, 3600 * WW_SECOND);
	world_check(&world);
	world_end(&world);
}
END_TEST

START_TEST(a_job_of_any_state_is_cancelled)
{
	for (enum ww_job_state state = WW_JOB_DELAYED; state <= WW_JOB_BURIED; state++) {
		struct ww_jobs_stats stats;
		enum ww_job_state found;
		world_make(&world, _i);
		struct ww_job_ref ref = by_id(job_in(state, NULL));
		ck_assert_int_eq(ww_jobs_cancel(world.jobs, &ref), state != WW_JOB_RESERVED);
		ck_assert_int_eq(ww_jobs_state(world.jobs, ref.id, &found), WW_ENOTFOUND);
		OK(ww_jobs_stats(world.jobs, &stats));
		ck_assert_uint_eq(stats.accepted, 1);
		ck_assert_uint_eq(stats.ended, 1);
		ck_assert_uint_eq(stats.tubes, 0);
		world_check(&world);
		world_end(&world);
	}
}
END_TEST

START_TEST(a_certain_job_is_leased_unless_it_is_reserved)
{
	for (enum ww_job_state state = WW_JOB_DELAYED; state <= WW_JOB_BURIED; state++) {
		struct ww_lease lease;
		world_make(&world, _i);
		uint64_t id = job_in(state, NULL);
		if (state == WW_JOB_RESERVED) {
			ck_assert_int_eq(ww_jobs_reserve_job(world.jobs, id, &lease), WW_EINUSE);
		} else {
			OK(ww_jobs_reserve_job(world.jobs, id, &lease));
			ck_assert_uint_eq(lease.id, id);
			ck_assert_uint_eq(lease.body_length, 1);
			ck_assert_mem_eq(lease.body, "x", 1);
			ww_jobs_free(world.jobs, lease.body);
			ck_assert_uint_eq(info_of(&world, id).token, lease.token);
			/* However the lease ends, the job is then ready. */
			if (world_promises(&world, KIND_KEEPS) && world_promises(&world, KIND_ENDS_LEASES))
				world_reopen(&world);
			else
				world_pass(&world, 60 * WW_SECOND);
			ck_assert_int_eq(info_of(&world, id).state, WW_JOB_READY);
		}
		struct ww_job_ref ref = by_id(id);
		ck_assert_int_ge(ww_jobs_cancel(world.jobs, &ref), 0);
		ck_assert_int_eq(ww_jobs_reserve_job(world.jobs, id, &lease), WW_ENOTFOUND);
		world_check(&world);
		world_end(&world);
	}
}
END_TEST

START_TEST(a_touched_lease_lasts_from_the_touch)
{
	struct ww_lease lease;
	uint64_t ends;

	world_make(&world, _i);
	uint64_t id = job_in(WW_JOB_RESERVED, &lease);
	for (int i = 0; i < 5; i++) {
		world_pass(&world, 40 * WW_SECOND);
		OK(ww_jobs_touch(world.jobs, id, lease.token, i ? &ends : NULL));
	}
	ck_assert_uint_eq(ends, world_now(&world) + 60 * WW_SECOND);
	ck_assert_uint_eq(info_of(&world, id).left, 60 * WW_SECOND);
	world_pass(&world, 60 * WW_SECOND - MS);
	ck_assert_int_eq(info_of(&world, id).state, WW_JOB_RESERVED);
	world_pass(&world, MS);
	ck_assert_int_eq(info_of(&world, id).state, WW_JOB_READY);
	ck_assert_uint_eq(info_of(&world, id).timeouts, 1);
	world_end(&world);
}
END_TEST

START_TEST(a_released_job_waits_for_its_delay_and_keeps_the_reason)
{
	char reason[WW_JOB_ERROR_MAX + 45];
	struct ww_lease lease;

	world_make(&world, _i);
	uint64_t id = job_in(WW_JOB_RESERVED, &lease);
	memset(reason, 'r', sizeof reason);
	reason[sizeof reason - 1] = 0;
	ck_assert_int_eq(ww_jobs_release(world.jobs, id, lease.token, 5, WW_DRIVER_TIME_MAX + 1, NULL), WW_EINVAL);
	ck_assert_int_eq(ww_jobs_release(world.jobs, id, lease.token, 5, 3 * WW_SECOND, reason), 0);
	struct ww_job_info info = info_of(&world, id);
	ck_assert_int_eq(info.state, WW_JOB_DELAYED);
	ck_assert_uint_eq(info.left, 3 * WW_SECOND);
	ck_assert_uint_eq(info.delay, 3 * WW_SECOND);
	ck_assert_uint_eq(info.priority, 5);
	ck_assert_uint_eq(info.releases, 1);
	ck_assert_uint_eq(info.token, 0);
	ck_assert_uint_eq(strlen(info.error), WW_JOB_ERROR_MAX);
	ck_assert_mem_eq(info.error, reason, WW_JOB_ERROR_MAX);
	world_pass(&world, 3 * WW_SECOND);
	lease = reserve_job(&world);
	ck_assert_uint_eq(lease.attempt, 2);
	/* Without a new reason the last one stays. Without a backoff the job does not wait. */
	ck_assert_int_eq(ww_jobs_release(world.jobs, id, lease.token, 6, WW_JOB_BACKOFF, NULL), 0);
	ck_assert_int_eq(info_of(&world, id).state, WW_JOB_READY);
	ck_assert_mem_eq(info_of(&world, id).error, reason, WW_JOB_ERROR_MAX);
	world_end(&world);
}
END_TEST

START_TEST(a_buried_job_has_the_priority_and_the_reason)
{
	char reason[WW_JOB_ERROR_MAX + 45];
	struct ww_lease lease;

	world_make(&world, _i);
	uint64_t id = job_in(WW_JOB_RESERVED, &lease);
	memset(reason, 'b', sizeof reason);
	reason[sizeof reason - 1] = 0;
	OK(ww_jobs_bury(world.jobs, id, lease.token, 5, reason));
	struct ww_job_info info = info_of(&world, id);
	ck_assert_int_eq(info.state, WW_JOB_BURIED);
	ck_assert_uint_eq(info.left, 0);
	ck_assert_uint_eq(info.priority, 5);
	ck_assert_uint_eq(info.buries, 1);
	ck_assert_uint_eq(info.token, 0);
	ck_assert_uint_eq(strlen(info.error), WW_JOB_ERROR_MAX);
	ck_assert_mem_eq(info.error, reason, WW_JOB_ERROR_MAX);
	world_end(&world);
}
END_TEST

START_TEST(a_period_that_is_finished_begins_again_with_all_attempts_and_no_reason)
{
	world_make(&world, _i);
	struct ww_job_spec spec = spec_of("x");
	spec.period = 10 * WW_SECOND;
	spec.attempts = 2;
	uint64_t id = put_job(&world, &spec);
	for (int i = 0; i < 3; i++) {
		struct ww_lease lease = reserve_job(&world);
		ck_assert_int_eq(ww_jobs_release(world.jobs, id, lease.token, 0, 0, "no"), 0);
		ck_assert_uint_eq(info_of(&world, id).tries, 1);
		lease = reserve_job(&world);
		ck_assert_uint_eq(lease.attempt, 2);
		OK(ww_jobs_finish(world.jobs, id, lease.token));
		ck_assert_uint_eq(info_of(&world, id).tries, 0);
		ck_assert_str_eq(info_of(&world, id).error, "");
		world_pass(&world, 10 * WW_SECOND);
	}
	world_end(&world);
}
END_TEST

START_TEST(a_version_grows_by_one_with_each_change)
{
	struct ww_lease lease;

	world_make(&world, _i);
	struct ww_job_spec spec = spec_of("x");
	spec.key = "k";
	spec.key_length = 1;
	struct ww_job_ref ref = by_id(put_job(&world, &spec));
	ck_assert_uint_eq(info_of(&world, ref.id).version, 1);
	ck_assert_int_eq(ww_jobs_put(world.jobs, &spec, NULL, NULL), 1);
	ck_assert_uint_eq(info_of(&world, ref.id).version, 2);
	OK(ww_jobs_move(world.jobs, &ref, 0, 0, NULL));
	ck_assert_uint_eq(info_of(&world, ref.id).version, 3);
	lease = reserve_job(&world);
	OK(ww_jobs_touch(world.jobs, ref.id, lease.token, NULL));
	ck_assert_uint_eq(info_of(&world, ref.id).version, 3);
	OK(ww_jobs_release(world.jobs, ref.id, lease.token, 0, 0, NULL));
	ck_assert_uint_eq(info_of(&world, ref.id).version, 4);
	lease = reserve_job(&world);
	OK(ww_jobs_bury(world.jobs, ref.id, lease.token, 0, NULL));
	ck_assert_uint_eq(info_of(&world, ref.id).version, 5);
	OK(ww_jobs_kick_job(world.jobs, ref.id));
	ck_assert_uint_eq(info_of(&world, ref.id).version, 6);
	lease = reserve_job(&world);
	OK(ww_jobs_return(world.jobs, ref.id, lease.token));
	ck_assert_uint_eq(info_of(&world, ref.id).version, 6);
	lease = reserve_job(&world);
	OK(ww_jobs_return_after(world.jobs, ref.id, lease.token, WW_SECOND));
	ck_assert_uint_eq(info_of(&world, ref.id).version, 7);
	OK(ww_jobs_reserve_job(world.jobs, ref.id, &lease));
	ww_jobs_free(world.jobs, lease.body);
	ck_assert_uint_eq(info_of(&world, ref.id).version, 7);
	world_end(&world);
}
END_TEST

/* The version of a job that was leased, and whose time to run was up. */
static uint64_t version_after_timeout(const struct ww_job_spec *spec)
{
	uint64_t id = put_job(&world, spec);

	(void)reserve_job(&world);
	world_pass(&world, spec->run + MS);
	uint64_t version = info_of(&world, id).version;
	ck_assert_int_eq(ww_jobs_cancel(world.jobs, &(struct ww_job_ref){.id = id}), 1);
	return version;
}

START_TEST(a_version_grows_with_a_timeout_that_is_written_and_with_each_period)
{
	struct ww_job_spec spec = spec_of("x");
	struct ww_lease lease;

	world_make(&world, _i);
	ck_assert_uint_eq(version_after_timeout(&spec), 1);
	spec.attempts = 2;
	ck_assert_uint_eq(version_after_timeout(&spec), 2);
	spec.attempts = 0;
	spec.backoff = WW_SECOND;
	ck_assert_uint_eq(version_after_timeout(&spec), 2);
	spec.backoff = 0;
	spec.keep = WW_SECOND;
	ck_assert_uint_eq(version_after_timeout(&spec), 2);
	spec.period = WW_SECOND;
	uint64_t id = put_job(&world, &spec);
	lease = reserve_job(&world);
	OK(ww_jobs_finish(world.jobs, id, lease.token));
	ck_assert_uint_eq(info_of(&world, id).version, 2);
	if (world_promises(&world, KIND_EXPIRES)) {
		spec.expire = 3 * WW_SECOND;
		spec.period = 10 * WW_SECOND;
		id = put_job(&world, &spec);
		world_pass(&world, 4 * WW_SECOND);
		ck_assert_uint_eq(info_of(&world, id).version, 2);
	}
	world_end(&world);
}
END_TEST

START_TEST(buried_jobs_are_kicked_in_order_and_then_delayed_jobs)
{
	uint64_t ids[4];
	uint64_t count;

	world_make(&world, _i);
	uint64_t delayed = job_in(WW_JOB_DELAYED, NULL);
	for (int i = 0; i < 4; i++) {
		ids[i] = job_in(WW_JOB_BURIED, NULL);
		world_pass(&world, MS);
	}
	OK(ww_jobs_kick(world.jobs, WW_TUBE_DEFAULT, 3, &count));
	ck_assert_uint_eq(count, 3);
	for (int i = 0; i < 4; i++)
		ck_assert_int_eq(info_of(&world, ids[i]).state, i < 3 ? WW_JOB_READY : WW_JOB_BURIED);
	ck_assert_int_eq(info_of(&world, delayed).state, WW_JOB_DELAYED);
	OK(ww_jobs_kick(world.jobs, WW_TUBE_DEFAULT, UINT64_MAX, &count));
	ck_assert_uint_eq(count, 1);
	ck_assert_int_eq(info_of(&world, delayed).state, WW_JOB_DELAYED);
	OK(ww_jobs_kick(world.jobs, WW_TUBE_DEFAULT, UINT64_MAX, NULL));
	ck_assert_int_eq(info_of(&world, delayed).state, WW_JOB_READY);
	OK(ww_jobs_kick(world.jobs, WW_TUBE_DEFAULT, 10, &count));
	ck_assert_uint_eq(count, 0);
	OK(ww_jobs_kick(world.jobs, "nowhere", 10, &count));
	ck_assert_uint_eq(count, 0);
	world_check(&world);
	world_end(&world);
}
END_TEST

START_TEST(a_certain_job_is_kicked_if_it_is_delayed_or_buried)
{
	for (enum ww_job_state state = WW_JOB_DELAYED; state <= WW_JOB_BURIED; state++) {
		int waits = state == WW_JOB_DELAYED || state == WW_JOB_BURIED;
		world_make(&world, _i);
		uint64_t id = job_in(state, NULL);
		ck_assert_int_eq(ww_jobs_kick_job(world.jobs, id), waits ? WW_OK : WW_ENOTFOUND);
		ck_assert_int_eq(info_of(&world, id).state, waits ? WW_JOB_READY : state);
		ck_assert_uint_eq(info_of(&world, id).kicks, (uint32_t)waits);
		ck_assert_int_eq(ww_jobs_kick_job(world.jobs, id + 1000), WW_ENOTFOUND);
		world_end(&world);
	}
}
END_TEST

START_TEST(a_pause_ends_by_a_pause_of_zero_and_by_closing)
{
	struct ww_tube_stats stats;

	world_make(&world, _i);
	uint64_t id = job_in(WW_JOB_READY, NULL);
	OK(ww_jobs_pause(world.jobs, WW_TUBE_DEFAULT, 3600 * WW_SECOND));
	expect_none(&world);
	OK(ww_jobs_pause(world.jobs, WW_TUBE_DEFAULT, 0));
	struct ww_lease lease = reserve_job(&world);
	ck_assert_uint_eq(lease.id, id);
	OK(ww_jobs_tube(world.jobs, WW_TUBE_DEFAULT, &stats));
	ck_assert_uint_eq(stats.pauses, 2);
	ck_assert_uint_eq(stats.pause, 0);
	if (world_promises(&world, KIND_KEEPS) && world_promises(&world, KIND_ENDS_LEASES)) {
		OK(ww_jobs_pause(world.jobs, WW_TUBE_DEFAULT, 3600 * WW_SECOND));
		world_reopen(&world);
		ck_assert_uint_eq(reserve_job(&world).id, id);
	}
	world_end(&world);
}
END_TEST

static unsigned told;

static void note_ready(const char *tube, void *context)
{
	ck_assert_str_eq(tube, WW_TUBE_DEFAULT);
	*(unsigned *)context += 1;
}

START_TEST(callers_hear_when_a_pause_ends)
{
	struct ww_job_spec spec = spec_of("x");

	NEEDS(KIND_IN_PROCESS);
	world_make(&world, _i);
	world.config.ready = note_ready;
	world.config.context = &told;
	world_reopen(&world);
	told = 0;
	(void)put_job(&world, &spec);
	ck_assert_uint_ge(told, 1);
	for (uint64_t left = 1; left <= 2; left++) {
		OK(ww_jobs_pause(world.jobs, WW_TUBE_DEFAULT, left * WW_SECOND));
		told = 0;
		world_pass(&world, WW_SECOND - MS);
		ck_assert_uint_eq(told, 0);
		if (left == 1)
			world_pass(&world, MS);
		else
			OK(ww_jobs_pause(world.jobs, WW_TUBE_DEFAULT, 0));
		ck_assert_uint_ge(told, 1);
	}
	(void)reserve_job(&world);
	world.config.ready = NULL;
	world_end(&world);
}
END_TEST

START_TEST(an_elapsed_time_is_kept_as_it_was_given)
{
	world_make(&world, _i);
	struct ww_job_spec spec = spec_of("x");
	spec.flags = WW_JOB_AT;
	spec.due = world_now(&world) + 30 * WW_SECOND;
	uint64_t id = put_job(&world, &spec);
	ck_assert_uint_eq(info_of(&world, id).due, spec.due);
	ck_assert_uint_eq(info_of(&world, id).delay, 30 * WW_SECOND);
	expect_job_in(&world, 30 * WW_SECOND, id);
	world_end(&world);
}
END_TEST

/* Wall time steps forward and back. A job on elapsed time does not notice. */
START_TEST(each_clock_has_its_own_jobs)
{
	struct ww_driver_config config;
	struct ww_driver *driver;
	struct ww_clock *clock;

	NEEDS(KIND_TWO_CLOCKS);
	world_make(&world, _i);
	OK(ww_clock_virtual_create(&clock, 5000 * WW_SECOND, NULL));
	OK(ww_driver_config_default(&config));
	config.clock = clock;
	config.flags = WW_DRIVER_THREADLESS;
	OK(ww_driver_create(&driver, &config));
	world.config.wall = driver;
	world_reopen(&world);
	struct ww_job_spec spec = spec_of("x");
	spec.due = 100 * WW_SECOND;
	uint64_t elapsed = put_job(&world, &spec);
	spec.flags = WW_JOB_WALL;
	uint64_t wall = put_job(&world, &spec);
	ck_assert_uint_eq(info_of(&world, wall).due, 5100 * WW_SECOND);
	OK(ww_clock_virtual_set(clock, 5100 * WW_SECOND));
	while (ww_driver_dispatch(driver, 1000) > 0)
		continue;
	ck_assert_uint_eq(reserve_job(&world).id, wall);
	expect_none(&world);
	world_pass(&world, 100 * WW_SECOND);
	/* The lease of the other job has ended, on elapsed time. */
	ck_assert_int_eq(info_of(&world, wall).state, WW_JOB_READY);
	ck_assert_int_eq(info_of(&world, elapsed).state, WW_JOB_READY);
	OK(ww_jobs_close(world.jobs));
	world.config.wall = NULL;
	OK(world.kind->open(&world));
	uint64_t ns;
	ck_assert_int_eq(ww_jobs_now(world.jobs, WW_JOB_WALL, &ns), WW_ESYSTEM);
	ck_assert_int_eq(ww_jobs_put(world.jobs, &spec, NULL, NULL), WW_EINVAL);
	OK(ww_driver_destroy(driver));
	OK(ww_clock_virtual_destroy(clock));
	world_end(&world);
}
END_TEST

KINDS_MAIN("jobs/changes", a_returned_lease_does_not_count_as_an_attempt,
    a_lease_returned_with_a_delay_waits_and_does_not_count_as_an_attempt, a_job_is_moved_by_id_or_key_and_to_a_time,
    a_job_that_cannot_be_moved_stays_as_it_is, a_job_of_any_state_is_cancelled,
    a_certain_job_is_leased_unless_it_is_reserved, a_touched_lease_lasts_from_the_touch,
    a_released_job_waits_for_its_delay_and_keeps_the_reason, a_buried_job_has_the_priority_and_the_reason,
    a_period_that_is_finished_begins_again_with_all_attempts_and_no_reason, a_version_grows_by_one_with_each_change,
    a_version_grows_with_a_timeout_that_is_written_and_with_each_period,
    buried_jobs_are_kicked_in_order_and_then_delayed_jobs, a_certain_job_is_kicked_if_it_is_delayed_or_buried,
    a_pause_ends_by_a_pause_of_zero_and_by_closing, callers_hear_when_a_pause_ends,
    an_elapsed_time_is_kept_as_it_was_given, each_clock_has_its_own_jobs)
