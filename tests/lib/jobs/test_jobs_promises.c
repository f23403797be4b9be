/* The promises of jobs.h that hold for each kind of store. */
/* tier: check, threads */

#include <string.h>

#include "tests/lib/jobs/fixture.h"

static struct world world;
static const char *const both[] = {WW_TUBE_DEFAULT, "mail"};

START_TEST(a_job_is_delivered_when_it_is_due_and_not_before)
{
	world_make(&world, _i);
	struct ww_job_spec spec = spec_of("soon");
	spec.due = 5 * WW_SECOND;
	uint64_t id = put_job(&world, &spec);
	world_pass(&world, 5 * WW_SECOND - MS);
	expect_none(&world);
	ck_assert_int_eq(info_of(&world, id).state, WW_JOB_DELAYED);
	world_pass(&world, MS);
	ck_assert_uint_eq(reserve_job(&world).id, id);
	expect_none(&world);
	world_end(&world);
}
END_TEST

START_TEST(a_job_in_half_a_year_is_delivered_to_the_tick)
{
	const uint64_t half_a_year = 182 * 86400 * WW_SECOND;

	world_make(&world, _i);
	struct ww_job_spec spec = spec_of("far");
	struct ww_jobs_stats stats;
	spec.due = half_a_year;
	uint64_t id = put_job(&world, &spec);
	OK(ww_jobs_stats(world.jobs, &stats));
	/* A distant job is not in memory. */
	if (world_promises(&world, KIND_TELLS_MEMORY))
		ck_assert_uint_eq(stats.loaded, 0);
	ck_assert_uint_eq(stats.all.delayed, 1);
	world_pass(&world, half_a_year - 30 * WW_SECOND);
	OK(ww_jobs_stats(world.jobs, &stats));
	if (world_promises(&world, KIND_TELLS_MEMORY))
		ck_assert_uint_eq(stats.loaded, 1);
	expect_job_in(&world, 30 * WW_SECOND, id);
	world_end(&world);
}
END_TEST

/*
 * Here both drivers have one clock, and only the index differs. each_clock_has_its_own_jobs has two clocks.
 */
START_TEST(jobs_on_wall_time_come_on_time)
{
	world_make(&world, _i);
	struct ww_job_spec spec = spec_of("at");
	uint64_t now;
	OK(ww_jobs_now(world.jobs, WW_JOB_WALL, &now));
	if (world_promises(&world, KIND_TWO_CLOCKS))
		ck_assert_uint_eq(now, 1000 * WW_SECOND);
	spec.flags = WW_JOB_WALL | WW_JOB_AT;
	spec.due = now + 90 * WW_SECOND;
	uint64_t id = put_job(&world, &spec);
	ck_assert_uint_eq(info_of(&world, id).due, spec.due);
	expect_job_in(&world, 90 * WW_SECOND, id);
	/* A time in the past means now. */
	spec.due = 5;
	id = put_job(&world, &spec);
	ck_assert_uint_eq(reserve_job(&world).id, id);
	world_end(&world);
}
END_TEST

START_TEST(the_least_priority_comes_first_and_then_the_oldest_job)
{
	static const uint32_t priorities[] = {5, 1, 9, 1, 0};
	static const size_t order[] = {4, 1, 3, 0, 2};
	struct ww_lease lease;
	uint64_t ids[5];
	world_make(&world, _i);
	for (size_t i = 0; i < 5; i++) {
		struct ww_job_spec spec = spec_of("");
		spec.priority = priorities[i];
		/* The two of one priority are in two tubes, and the older one is in the second. */
		spec.tube = both[(i / 2 + 1) % 2];
		ids[i] = put_job(&world, &spec);
	}
	for (size_t i = 0; i < 5; i++) {
		ck_assert_int_eq(ww_jobs_reserve(world.jobs, both, 2, &lease), 1);
		ck_assert_uint_eq(info_of(&world, lease.id).priority, priorities[order[i]]);
		if (world_promises(&world, KIND_ONE_ROW))
			ck_assert_uint_eq(lease.id, ids[order[i]]);
		ck_assert_ptr_null(lease.body);
	}
	world_end(&world);
}
END_TEST

START_TEST(an_expired_lease_is_stale_and_its_token_is_less_than_the_next)
{
	world_make(&world, _i);
	struct ww_job_spec spec = spec_of("slow");
	spec.run = 10 * WW_SECOND;
	uint64_t id = put_job(&world, &spec);
	struct ww_lease first = reserve_job(&world);
	world_pass(&world, 10 * WW_SECOND - MS);
	expect_none(&world);
	world_pass(&world, MS);
	ck_assert_int_eq(ww_jobs_finish(world.jobs, id, first.token), WW_ESTALE);
	struct ww_lease second = reserve_job(&world);
	ck_assert_uint_eq(second.id, id);
	ck_assert_uint_gt(second.token, first.token);
	ck_assert_uint_eq(second.attempt, 2);
	ck_assert_int_eq(ww_jobs_release(world.jobs, id, first.token, 0, 0, NULL), WW_ESTALE);
	ck_assert_int_eq(ww_jobs_bury(world.jobs, id, first.token, 0, NULL), WW_ESTALE);
	ck_assert_int_eq(ww_jobs_touch(world.jobs, id, first.token, NULL), WW_ESTALE);
	OK(ww_jobs_finish(world.jobs, id, second.token));
	world_end(&world);
}
END_TEST

START_TEST(tokens_grow_over_a_restart)
{
	NEEDS(KIND_KEEPS);
	world_make(&world, _i);
	struct ww_job_spec spec = spec_of("x");
	uint64_t id = put_job(&world, &spec);
	uint64_t token = reserve_job(&world).token;
	for (int i = 0; i < 3; i++) {
		world_reopen(&world);
		if (!world_promises(&world, KIND_ENDS_LEASES)) {
			expect_none(&world);
			world_pass(&world, spec.run);
		}
		struct ww_lease lease = reserve_job(&world);
		ck_assert_uint_gt(lease.token, token);
		token = lease.token;
	}
	ck_assert_uint_eq(info_of(&world, id).reserves, 4);
	world_end(&world);
}
END_TEST

START_TEST(failed_attempts_wait_longer_each_time_and_the_last_one_buries)
{
	world_make(&world, _i);
	struct ww_job_spec spec = spec_of("bad");
	spec.backoff = 8 * WW_SECOND;
	spec.backoff_max = 20 * WW_SECOND;
	spec.attempts = 5;
	spec.run = 2 * WW_SECOND;
	uint64_t id = put_job(&world, &spec);
	static const uint64_t longest[] = {8, 16, 20, 20};
	for (uint32_t i = 0; i < 4; i++) {
		struct ww_lease lease = reserve_job(&world);
		ck_assert_uint_eq(lease.attempt, i + 1);
		/* A lease that expires counts as a failed attempt. */
		if (i % 2)
			world_pass(&world, 2 * WW_SECOND + MS); /* the lease may end between two ticks */
		else
			OK(ww_jobs_release(world.jobs, id, lease.token, 7, WW_JOB_BACKOFF, "no route"));
		struct ww_job_info info = info_of(&world, id);
		ck_assert_int_eq(info.state, WW_JOB_DELAYED);
		ck_assert_uint_le(info.left, longest[i] * WW_SECOND);
		ck_assert_uint_ge(info.left, longest[i] * WW_SECOND * 3 / 4);
		ck_assert_str_eq(info.error, i % 2 ? "the time to run was up" : "no route");
		world_pass(&world, info.left > MS ? info.left - MS : 0);
		expect_none(&world);
		world_pass(&world, MS + WW_SECOND);
	}
	struct ww_lease lease = reserve_job(&world);
	ck_assert_int_eq(ww_jobs_release(world.jobs, id, lease.token, 7, 0, "at last"), 1);
	ck_assert_int_eq(info_of(&world, id).state, WW_JOB_BURIED);
	ck_assert_str_eq(info_of(&world, id).error, "at last");
	OK(ww_jobs_kick_job(world.jobs, id));
	ck_assert_uint_eq(reserve_job(&world).attempt, 1);
	world_end(&world);
}
END_TEST

START_TEST(periods_do_not_drift)
{
	world_make(&world, _i);
	struct ww_job_spec spec = spec_of("often");
	spec.period = 700 * MS;
	uint64_t start = world_now(&world);
	uint64_t id = put_job(&world, &spec);
	for (uint64_t i = 0; i < 20; i++) {
		struct ww_lease lease = reserve_job(&world);
		ck_assert_uint_eq(lease.missed, 0);
		world_pass(&world, 13 * MS);
		OK(ww_jobs_finish(world.jobs, id, lease.token));
		ck_assert_uint_eq(info_of(&world, id).due, start + (i + 1) * 700 * MS);
		world_pass(&world, 687 * MS);
	}
	world_end(&world);
}
END_TEST

/* Ten periods pass, and the job says how many deliveries follow. */
START_TEST(missed_periods_are_delivered_once_or_all_or_skipped)
{
	for (int missed = WW_MISSED_ONCE; missed <= WW_MISSED_SKIP; missed++) {
		uint64_t deliveries = 0;
		uint64_t stood_for = 0;
		struct ww_lease lease;
		world_make(&world, _i);
		struct ww_job_spec spec = spec_of("");
		spec.period = 10 * WW_SECOND;
		spec.missed = (enum ww_missed)missed;
		spec.skip = 25 * WW_SECOND;
		(void)put_job(&world, &spec);
		world_pass(&world, 101 * WW_SECOND);
		while (ww_jobs_reserve(world.jobs, both, 1, &lease) == 1) {
			deliveries++;
			stood_for += lease.missed;
			OK(ww_jobs_finish(world.jobs, lease.id, lease.token));
		}
		/* Due times were 0, 10, ... 100: eleven. 80, 90 and 100 are not older than 25 s. */
		ck_assert_uint_eq(deliveries, missed == WW_MISSED_ONCE ? 1 : missed == WW_MISSED_ALL ? 11 : 3);
		ck_assert_uint_eq(stood_for, missed == WW_MISSED_ONCE ? 10 : 0);
		world_pass(&world, 9 * WW_SECOND - MS);
		expect_none(&world);
		world_pass(&world, MS);
		(void)reserve_job(&world);
		world_end(&world);
	}
}
END_TEST

START_TEST(a_put_by_key_replaces_and_ends_the_lease)
{
	world_make(&world, _i);
	struct ww_job_spec spec = spec_of("one");
	uint64_t id, version;
	spec.key = "k\0ey";
	spec.key_length = 4;
	ck_assert_int_eq(ww_jobs_put(world.jobs, &spec, &id, &version), 0);
	struct ww_lease lease = reserve_job(&world);
	spec.body = "two";
	spec.version = 2;
	ck_assert_int_eq(ww_jobs_put(world.jobs, &spec, NULL, NULL), WW_ESTALE);
	spec.version = 1;
	ck_assert_int_eq(ww_jobs_put(world.jobs, &spec, &id, &version), 1);
	ck_assert_uint_eq(id, lease.id);
	ck_assert_uint_eq(version, 2);
	ck_assert_int_eq(ww_jobs_finish(world.jobs, id, lease.token), WW_ESTALE);
	ck_assert_int_eq(ww_jobs_reserve(world.jobs, both, 1, &lease), 1);
	ck_assert_mem_eq(lease.body, "two", 3);
	ww_jobs_free(world.jobs, lease.body);
	OK(ww_jobs_finish(world.jobs, id, lease.token));
	/* The key is free again. In another tube it always was. */
	spec.version = 0;
	ck_assert_int_eq(ww_jobs_put(world.jobs, &spec, &id, NULL), 0);
	spec.tube = "mail";
	ck_assert_int_eq(ww_jobs_put(world.jobs, &spec, &id, NULL), 0);
	world_check(&world);
	world_end(&world);
}
END_TEST

START_TEST(a_cancel_says_whether_it_was_in_time)
{
	world_make(&world, _i);
	struct ww_job_spec spec = spec_of("x");
	struct ww_job_ref ref = {.id = put_job(&world, &spec)};
	struct ww_lease lease = reserve_job(&world);
	ref.version = 2;
	ck_assert_int_eq(ww_jobs_cancel(world.jobs, &ref), WW_ESTALE);
	ref.version = 0;
	ck_assert_int_eq(ww_jobs_cancel(world.jobs, &ref), 0);
	ck_assert_int_eq(ww_jobs_finish(world.jobs, lease.id, lease.token), WW_ESTALE);
	ck_assert_int_eq(ww_jobs_cancel(world.jobs, &ref), WW_ENOTFOUND);
	world_pass(&world, 120 * WW_SECOND);
	expect_none(&world);
	world_end(&world);
}
END_TEST

START_TEST(nothing_of_a_paused_tube_is_delivered_until_the_pause_ends)
{
	world_make(&world, _i);
	struct ww_job_spec spec = spec_of("x");
	struct ww_tube_stats stats;
	/* A tube that is made later is paused too. */
	OK(ww_jobs_pause(world.jobs, WW_TUBE_DEFAULT, 3 * WW_SECOND));
	(void)put_job(&world, &spec);
	expect_none(&world);
	OK(ww_jobs_tube(world.jobs, WW_TUBE_DEFAULT, &stats));
	ck_assert_uint_eq(stats.pause_left, 3 * WW_SECOND);
	world_pass(&world, 3 * WW_SECOND - MS);
	expect_none(&world);
	world_pass(&world, MS);
	(void)reserve_job(&world);
	world_end(&world);
}
END_TEST

START_TEST(time_while_the_store_is_closed_counts_and_a_due_job_is_ready_at_once)
{
	NEEDS(KIND_KEEPS);
	world_make(&world, _i);
	struct ww_job_spec spec = spec_of("x");
	spec.due = 10 * WW_SECOND;
	uint64_t id = put_job(&world, &spec);
	uint64_t before = world_now(&world);
	world_reopen(&world);
	/* A virtual clock stands still meanwhile. */
	ck_assert_uint_eq(world_now(&world), before);
	world_pass(&world, 10 * WW_SECOND);
	world_reopen(&world);
	ck_assert_uint_eq(reserve_job(&world).id, id);
	world_end(&world);
}
END_TEST

START_TEST(lateness_counts_jobs_that_came_due_while_the_store_was_open)
{
	struct ww_jobs_stats stats;
	world_make(&world, _i);
	struct ww_job_spec spec = spec_of("x");
	for (int i = 0; i < 3; i++) {
		spec.due = WW_SECOND;
		(void)put_job(&world, &spec);
	}
	/* The driver was not dispatched for two seconds. */
	world_pass(&world, 3 * WW_SECOND);
	spec.due = 5 * MS;
	(void)put_job(&world, &spec);
	world_pass(&world, 5 * MS);
	OK(ww_jobs_stats(world.jobs, &stats));
	ck_assert_uint_eq(stats.late[0], 1);
	ck_assert_uint_eq(stats.late[4], 3);
	ck_assert_uint_eq(stats.late_ns, 6 * WW_SECOND);
	world_end(&world);
}
END_TEST

START_TEST(a_forecast_counts_what_is_due_in_each_span)
{
	uint64_t counts[4];
	world_make(&world, _i);
	for (uint64_t i = 0; i < 100; i++) {
		struct ww_job_spec spec = spec_of("x");
		spec.due = i * 30 * WW_SECOND;
		spec.tube = both[i % 2];
		(void)put_job(&world, &spec);
	}
	/* In less than an hour: what comes later is not counted so exactly by each kind. */
	OK(ww_jobs_forecast(world.jobs, NULL, 900 * WW_SECOND, counts, 4));
	for (int i = 0; i < 4; i++)
		ck_assert_uint_eq(counts[i], i < 3 ? 30 : 10);
	OK(ww_jobs_forecast(world.jobs, "mail", 1800 * WW_SECOND, counts, 1));
	ck_assert_uint_eq(counts[0], 30);
	world_end(&world);
}
END_TEST

struct listed {
	uint64_t ids[20];
	size_t count;
	int in_order;
};

static int note_listed(const struct ww_job_info *info, void *context)
{
	struct listed *listed = context;

	ck_assert_uint_lt(listed->count, 20);
	for (size_t i = 0; i < listed->count; i++) {
		ck_assert_uint_ne(listed->ids[i], info->id);
		if (listed->in_order)
			ck_assert_uint_lt(listed->ids[i], info->id);
	}
	listed->ids[listed->count++] = info->id;
	return 0;
}

static int is_listed(const struct listed *listed, uint64_t id)
{
	for (size_t i = 0; i < listed->count; i++)
		if (listed->ids[i] == id)
			return 1;
	return 0;
}

START_TEST(a_list_has_pages_and_filters)
{
	struct ww_job_filter filter = {.tube = "mail", .prefix = "b", .prefix_length = 1};
	struct listed listed = {.count = 0};
	uint64_t ids[21];
	size_t before;

	world_make(&world, _i);
	listed.in_order = world_promises(&world, KIND_LISTS_IN_ORDER);
	for (uint64_t i = 1; i <= 20; i++) {
		struct ww_job_spec spec = spec_of("x");
		char key[2] = {(char)('a' + i % 4), (char)('A' + i)};
		spec.key = key;
		spec.key_length = 2;
		spec.tube = both[1];
		ids[i] = put_job(&world, &spec);
	}
	OK(ww_jobs_list(world.jobs, &filter, 3, note_listed, &listed, &filter.after));
	ck_assert_uint_le(listed.count, 3);
	if (listed.in_order) {
		ck_assert_uint_eq(listed.count, 3);
		ck_assert_uint_eq(listed.ids[2], ids[9]);
		ck_assert_uint_ge(filter.after, ids[9]);
	}
	while (filter.after) {
		before = listed.count;
		OK(ww_jobs_list(world.jobs, &filter, 2, note_listed, &listed, &filter.after));
		ck_assert_uint_le(listed.count, before + 2);
	}
	ck_assert_uint_eq(listed.count, 5);
	for (uint64_t i = 1; i <= 20; i++)
		ck_assert_int_eq(is_listed(&listed, ids[i]), i % 4 == 1);
	world_end(&world);
}
END_TEST

START_TEST(invalid_calls_are_refused_and_change_nothing)
{
	char name[WW_TUBE_MAX + 2];
	struct ww_jobs_stats stats;
	world_make(&world, _i);
	struct ww_job_spec spec = spec_of("x");
	memset(name, 'n', sizeof name);
	name[WW_TUBE_MAX + 1] = 0;
	spec.tube = name;
	ck_assert_int_eq(ww_jobs_put(world.jobs, &spec, NULL, NULL), WW_EINVAL);
	spec.tube = "";
	ck_assert_int_eq(ww_jobs_put(world.jobs, &spec, NULL, NULL), WW_EINVAL);
	spec = spec_of("x");
	spec.body_length = 65536;
	ck_assert_int_eq(ww_jobs_put(world.jobs, &spec, NULL, NULL), WW_ETOOBIG);
	spec = spec_of("x");
	spec.due = UINT64_MAX;
	ck_assert_int_eq(ww_jobs_put(world.jobs, &spec, NULL, NULL), WW_EOVERFLOW);
	spec = spec_of("x");
	spec.run = 1;
	ck_assert_int_eq(ww_jobs_put(world.jobs, &spec, NULL, NULL), WW_EINVAL);
	spec = spec_of("x");
	spec.version = 1;
	ck_assert_int_eq(ww_jobs_put(world.jobs, &spec, NULL, NULL), WW_ESTALE);
	ck_assert_int_eq(ww_jobs_put(world.jobs, NULL, NULL, NULL), WW_EINVAL);
	if (world_promises(&world, KIND_BATCHES))
		ck_assert_int_eq(ww_jobs_commit(world.jobs), WW_EBUSY);
	OK(ww_jobs_stats(world.jobs, &stats));
	ck_assert_uint_eq(stats.accepted, 0);
	ck_assert_uint_eq(stats.tubes, 0);
	world_end(&world);
}
END_TEST

KINDS_MAIN_ALL("jobs/promises", a_job_is_delivered_when_it_is_due_and_not_before,
    a_job_in_half_a_year_is_delivered_to_the_tick, jobs_on_wall_time_come_on_time,
    the_least_priority_comes_first_and_then_the_oldest_job,
    an_expired_lease_is_stale_and_its_token_is_less_than_the_next, tokens_grow_over_a_restart,
    failed_attempts_wait_longer_each_time_and_the_last_one_buries, periods_do_not_drift,
    missed_periods_are_delivered_once_or_all_or_skipped, a_put_by_key_replaces_and_ends_the_lease,
    a_cancel_says_whether_it_was_in_time, nothing_of_a_paused_tube_is_delivered_until_the_pause_ends,
    time_while_the_store_is_closed_counts_and_a_due_job_is_ready_at_once,
    lateness_counts_jobs_that_came_due_while_the_store_was_open, a_forecast_counts_what_is_due_in_each_span,
    a_list_has_pages_and_filters, invalid_calls_are_refused_and_change_nothing)
