/* What a put does if its tube has a job of the same key: every mode of a key, in every state of that job. */
/* tier: check */

#include <sched.h>
#include <stdio.h>
#include <string.h>

#include "tests/lib/jobs/fixture.h"

#define MINUTE (60 * WW_SECOND)
#define HOUR (60 * MINUTE)

static struct world world;
static uint64_t last_id, last_version;

static struct ww_job_spec keyed(enum ww_key_mode mode, uint64_t due, uint64_t span)
{
	struct ww_job_spec spec = spec_of("body");

	spec.key = "key";
	spec.key_length = 3;
	spec.key_mode = mode;
	spec.due = due;
	spec.key_span = span;
	return spec;
}

/* Put a job of the key, which is to have that result. */
static uint64_t put(enum ww_key_mode mode, uint64_t due, uint64_t span, int result)
{
	struct ww_job_spec spec = keyed(mode, due, span);

	ck_assert_int_eq(ww_jobs_put(world.jobs, &spec, &last_id, &last_version), result);
	return last_id;
}

static void expect_left(uint64_t id, uint64_t left)
{
	ck_assert_uint_eq(info_of(&world, id).left, left);
}

static void bury_next(void)
{
	struct ww_lease lease = reserve_job(&world);

	OK(ww_jobs_bury(world.jobs, lease.id, lease.token, 0, NULL));
}

static void finish_next(void)
{
	struct ww_lease lease = reserve_job(&world);

	OK(ww_jobs_finish(world.jobs, lease.id, lease.token));
}

static uint64_t kept(void)
{
	struct ww_jobs_stats stats;

	OK(ww_jobs_stats(world.jobs, &stats));
	return stats.kept;
}

/* ---- Absent, earlier, later */

static void expect_kept(enum ww_key_mode mode, uint64_t due, uint64_t id, uint64_t version)
{
	ck_assert_uint_eq(put(mode, due, mode == WW_KEY_UNIQUE ? HOUR : 0, WW_PUT_KEPT), id);
	ck_assert_uint_eq(last_version, version);
	ck_assert_uint_eq(info_of(&world, id).version, version);
}

START_TEST(a_put_only_if_absent_keeps_a_job_in_any_state)
{
	world_make(&world, _i);
	uint64_t id = put(WW_KEY_IF_ABSENT, MINUTE, 0, WW_PUT_NEW);
	expect_kept(WW_KEY_IF_ABSENT, 0, id, 1);
	expect_kept(WW_KEY_UNIQUE, 0, id, 1);
	world_pass(&world, MINUTE);
	expect_kept(WW_KEY_IF_ABSENT, 0, id, 1);
	struct ww_lease lease = reserve_job(&world);
	expect_kept(WW_KEY_IF_ABSENT, 0, id, 1);
	OK(ww_jobs_touch(world.jobs, id, lease.token, NULL));
	OK(ww_jobs_bury(world.jobs, id, lease.token, 0, NULL));
	expect_kept(WW_KEY_IF_ABSENT, 0, id, 2);
	struct ww_job_ref ref = {.id = id};
	ck_assert_int_eq(ww_jobs_cancel(world.jobs, &ref), 1);
	ck_assert_uint_ne(put(WW_KEY_IF_ABSENT, 0, 0, WW_PUT_NEW), id);
	finish_next();
	(void)put(WW_KEY_IF_ABSENT, 0, 0, WW_PUT_NEW);
	world_end(&world);
}
END_TEST

START_TEST(a_put_that_keeps_a_job_writes_nothing)
{
	struct ww_jobs_stats before, after;

	NEEDS(KIND_IN_PROCESS);
	world_make(&world, _i);
	(void)put(WW_KEY_UNIQUE, MINUTE, HOUR, WW_PUT_NEW);
	uint64_t disk = local_of(world.jobs)->commits;
	OK(ww_jobs_stats(world.jobs, &before));
	(void)put(WW_KEY_IF_ABSENT, 0, 0, WW_PUT_KEPT);
	(void)put(WW_KEY_UNIQUE, 0, HOUR, WW_PUT_KEPT);
	(void)put(WW_KEY_KEEP_EARLIER, HOUR, 0, WW_PUT_KEPT);
	(void)put(WW_KEY_KEEP_LATER, 0, 0, WW_PUT_KEPT);
	OK(ww_jobs_stats(world.jobs, &after));
	ck_assert_uint_eq(after.commits, disk);
	ck_assert_uint_eq(after.all.puts, before.all.puts);
	ck_assert_uint_eq(after.accepted, 1);
	world_end(&world);
}
END_TEST

START_TEST(of_two_due_times_the_earlier_or_the_later_is_kept)
{
	world_make(&world, _i);
	uint64_t id = put(WW_KEY_KEEP_EARLIER, 10 * MINUTE, 0, WW_PUT_NEW);
	(void)put(WW_KEY_KEEP_EARLIER, 11 * MINUTE, 0, WW_PUT_KEPT);
	(void)put(WW_KEY_KEEP_EARLIER, 10 * MINUTE, 0, WW_PUT_KEPT);
	expect_left(id, 10 * MINUTE);
	ck_assert_uint_eq(put(WW_KEY_KEEP_EARLIER, 9 * MINUTE, 0, WW_PUT_REPLACED), id);
	expect_left(id, 9 * MINUTE);
	(void)put(WW_KEY_KEEP_LATER, 8 * MINUTE, 0, WW_PUT_KEPT);
	(void)put(WW_KEY_KEEP_LATER, 12 * MINUTE, 0, WW_PUT_REPLACED);
	expect_left(id, 12 * MINUTE);
	(void)put(WW_KEY_KEEP_LATER, 12 * MINUTE, 0, WW_PUT_KEPT);
	/* A job that is due is as early as can be. */
	world_pass(&world, 12 * MINUTE);
	(void)put(WW_KEY_KEEP_EARLIER, 0, 0, WW_PUT_KEPT);
	(void)put(WW_KEY_KEEP_LATER, 0, 0, WW_PUT_KEPT);
	(void)put(WW_KEY_KEEP_LATER, MINUTE, 0, WW_PUT_REPLACED);
	expect_none(&world);
	world_end(&world);
}
END_TEST

START_TEST(what_a_job_in_delivery_or_buried_may_have_missed_is_put)
{
	world_make(&world, _i);
	uint64_t id = put(WW_KEY_KEEP_EARLIER, 0, 0, WW_PUT_NEW);
	struct ww_lease lease = reserve_job(&world);
	ck_assert_uint_eq(put(WW_KEY_KEEP_EARLIER, MINUTE, 0, WW_PUT_REPLACED), id);
	ck_assert_int_eq(ww_jobs_finish(world.jobs, id, lease.token), WW_ESTALE);
	expect_left(id, MINUTE);
	world_pass(&world, MINUTE);
	bury_next();
	ck_assert_uint_eq(put(WW_KEY_KEEP_LATER, 0, 0, WW_PUT_REPLACED), id);
	ck_assert_int_eq(info_of(&world, id).state, WW_JOB_READY);
	world_end(&world);
}
END_TEST

START_TEST(due_times_of_two_clocks_are_compared_by_what_is_left)
{
	struct ww_job_spec spec = keyed(WW_KEY_KEEP_EARLIER, 0, 0);
	uint64_t now;

	world_make(&world, _i);
	(void)put(WW_KEY_KEEP_EARLIER, 10 * MINUTE, 0, WW_PUT_NEW);
	OK(ww_jobs_now(world.jobs, WW_JOB_WALL, &now));
	spec.flags = WW_JOB_WALL | WW_JOB_AT;
	spec.due = now + 11 * MINUTE;
	ck_assert_int_eq(ww_jobs_put(world.jobs, &spec, NULL, NULL), WW_PUT_KEPT);
	spec.due = now + 9 * MINUTE;
	ck_assert_int_eq(ww_jobs_put(world.jobs, &spec, NULL, NULL), WW_PUT_REPLACED);
	(void)put(WW_KEY_KEEP_EARLIER, 10 * MINUTE, 0, WW_PUT_KEPT);
	world_end(&world);
}
END_TEST

/* ---- Debounce */

START_TEST(a_debounced_job_is_moved_but_not_beyond_a_span_after_the_first_put)
{
	world_make(&world, _i);
	uint64_t id = put(WW_KEY_DEBOUNCE, 10 * MINUTE, 25 * MINUTE, WW_PUT_NEW);
	expect_left(id, 10 * MINUTE);
	for (int i = 0; i < 3; i++) {
		world_pass(&world, 5 * MINUTE);
		ck_assert_uint_eq(put(WW_KEY_DEBOUNCE, 10 * MINUTE, 25 * MINUTE, WW_PUT_REPLACED), id);
		expect_left(id, 10 * MINUTE);
		ck_assert_uint_eq(info_of(&world, id).debounce, 5 * MINUTE * (unsigned)(i + 1));
	}
	if (world_promises(&world, KIND_KEEPS))
		world_reopen(&world);
	world_pass(&world, 5 * MINUTE);
	(void)put(WW_KEY_DEBOUNCE, 10 * MINUTE, 25 * MINUTE, WW_PUT_REPLACED);
	expect_left(id, 5 * MINUTE);
	/* It is due, and no put moves it any more. */
	world_pass(&world, 6 * MINUTE);
	(void)put(WW_KEY_DEBOUNCE, 10 * MINUTE, 25 * MINUTE, WW_PUT_REPLACED);
	struct ww_lease lease = reserve_job(&world);
	/* A put while it runs is a first one: what it is about may have come too late for this run. */
	(void)put(WW_KEY_DEBOUNCE, 10 * MINUTE, 25 * MINUTE, WW_PUT_REPLACED);
	expect_left(id, 10 * MINUTE);
	ck_assert_int_eq(ww_jobs_finish(world.jobs, id, lease.token), WW_ESTALE);
	world_end(&world);
}
END_TEST

START_TEST(a_put_after_a_failed_delivery_or_a_burial_is_a_first_one)
{
	struct ww_job_spec spec = keyed(WW_KEY_DEBOUNCE, 0, 25 * MINUTE);

	world_make(&world, _i);
	uint64_t id = put(WW_KEY_DEBOUNCE, 10 * MINUTE, 25 * MINUTE, WW_PUT_NEW);
	world_pass(&world, 10 * MINUTE);
	struct ww_lease lease = reserve_job(&world);
	OK(ww_jobs_release(world.jobs, id, lease.token, 0, 5 * MINUTE, NULL));
	(void)put(WW_KEY_DEBOUNCE, 20 * MINUTE, 25 * MINUTE, WW_PUT_REPLACED);
	expect_left(id, 20 * MINUTE);
	ck_assert_int_eq(ww_jobs_cancel(world.jobs, &(struct ww_job_ref){.id = id}), 1);
	/* It was buried, and nobody has had it. */
	if (world_promises(&world, KIND_EXPIRES)) {
		spec.expire = MINUTE;
		spec.expired = WW_EXPIRED_BURY;
		ck_assert_int_eq(ww_jobs_put(world.jobs, &spec, &id, NULL), WW_PUT_NEW);
		world_pass(&world, MINUTE);
		ck_assert_int_eq(info_of(&world, id).state, WW_JOB_BURIED);
		ck_assert_uint_eq(put(WW_KEY_DEBOUNCE, 25 * MINUTE, 25 * MINUTE, WW_PUT_REPLACED), id);
		expect_left(id, 25 * MINUTE);
	}
	world_end(&world);
}
END_TEST

START_TEST(a_debounced_job_expires_after_the_time_that_it_has_got)
{
	struct ww_job_spec spec = keyed(WW_KEY_DEBOUNCE, HOUR, 25 * MINUTE);
	uint64_t id;

	NEEDS(KIND_EXPIRES);
	world_make(&world, _i);
	spec.expire = 10 * MINUTE;
	ck_assert_int_eq(ww_jobs_put(world.jobs, &spec, &id, NULL), WW_PUT_NEW);
	for (int i = 0; i < 2; i++) {
		struct ww_job_info info = info_of(&world, id);
		ck_assert_uint_eq(info.left, 25 * MINUTE - (unsigned)i * 5 * MINUTE);
		ck_assert_uint_eq(info.expires, info.due + 10 * MINUTE);
		world_pass(&world, 5 * MINUTE);
		ck_assert_int_eq(ww_jobs_put(world.jobs, &spec, NULL, NULL), WW_PUT_REPLACED);
	}
	world_end(&world);
}
END_TEST

START_TEST(a_debounced_job_has_the_last_body_and_never_comes_later_than_the_span)
{
	struct ww_job_spec spec = keyed(WW_KEY_DEBOUNCE, HOUR, MINUTE);
	struct ww_lease lease;
	const char *const tubes[] = {WW_TUBE_DEFAULT};

	world_make(&world, _i);
	ck_assert_int_eq(ww_jobs_put(world.jobs, &spec, NULL, NULL), WW_PUT_NEW);
	spec.body = "last";
	ck_assert_int_eq(ww_jobs_put(world.jobs, &spec, NULL, NULL), WW_PUT_REPLACED);
	world_pass(&world, MINUTE - MS);
	expect_none(&world);
	world_pass(&world, MS);
	ck_assert_int_eq(ww_jobs_reserve(world.jobs, tubes, 1, &lease), 1);
	ck_assert_mem_eq(lease.body, "last", 4);
	ww_jobs_free(world.jobs, lease.body);
	world_end(&world);
}
END_TEST

/* ---- Unique after the end */

static int count(const struct ww_job_info *info, void *context)
{
	(void)info;
	++*(int *)context;
	return 0;
}

static int listed(unsigned states)
{
	struct ww_job_filter filter = {.states = states};
	int found = 0;

	OK(ww_jobs_list(world.jobs, &filter, 1000, count, &found, NULL));
	return found;
}

START_TEST(the_key_of_a_unique_job_stays_taken_for_a_time_after_its_end)
{
	world_make(&world, _i);
	uint64_t id = put(WW_KEY_UNIQUE, 0, HOUR, WW_PUT_NEW);
	ck_assert_uint_eq(info_of(&world, id).hold, HOUR);
	finish_next();
	ck_assert_uint_eq(kept(), 1);
	/* What happens meanwhile must not put it off. */
	struct ww_job_spec other = spec_of("other");
	other.due = HOUR / 4;
	(void)put_job(&world, &other);
	for (int mode = WW_KEY_REPLACE; mode <= WW_KEY_UNIQUE; mode++) {
		int has_span = mode >= WW_KEY_DEBOUNCE;
		ck_assert_uint_eq(put((enum ww_key_mode)mode, 0, has_span ? MINUTE : 0, WW_PUT_ENDED), id);
		ck_assert_uint_eq(last_version, 1);
	}
	world_pass(&world, HOUR / 2);
	if (world_promises(&world, KIND_KEEPS))
		world_reopen(&world);
	world_pass(&world, HOUR / 2 - MS);
	ck_assert_uint_eq(put(WW_KEY_REPLACE, 0, 0, WW_PUT_ENDED), id);
	world_pass(&world, MS);
	ck_assert_uint_eq(kept(), 0);
	ck_assert_uint_ne(put(WW_KEY_REPLACE, 0, 0, WW_PUT_NEW), id);
	world_end(&world);
}
END_TEST

START_TEST(a_put_of_a_taken_key_gives_the_version_that_the_job_had)
{
	struct ww_job_spec spec = keyed(WW_KEY_UNIQUE, 0, HOUR);
	uint64_t now;

	world_make(&world, _i);
	/* On the wall clock, too, the span is one of elapsed time. */
	OK(ww_jobs_now(world.jobs, WW_JOB_WALL, &now));
	spec.flags = WW_JOB_WALL | WW_JOB_AT;
	spec.due = now;
	uint64_t id = put_job(&world, &spec);
	bury_next();
	OK(ww_jobs_kick_job(world.jobs, id));
	finish_next();
	ck_assert_uint_eq(put(WW_KEY_UNIQUE, 0, HOUR, WW_PUT_ENDED), id);
	ck_assert_uint_eq(last_version, 3);
	world_pass(&world, HOUR - MS);
	(void)put(WW_KEY_UNIQUE, 0, HOUR, WW_PUT_ENDED);
	world_pass(&world, MS);
	(void)put(WW_KEY_UNIQUE, 0, HOUR, WW_PUT_NEW);
	world_end(&world);
}
END_TEST

START_TEST(a_job_that_has_ended_is_in_no_list_and_no_count_and_takes_no_call)
{
	struct ww_jobs_stats stats;
	struct ww_lease lease;
	struct ww_job_info info;
	enum ww_job_state state;

	world_make(&world, _i);
	uint64_t id = put(WW_KEY_UNIQUE, 0, HOUR, WW_PUT_NEW);
	struct ww_job_ref by_id = {.id = id};
	struct ww_job_ref by_key = {.tube = WW_TUBE_DEFAULT, .key = "key", .key_length = 3};
	finish_next();
	ck_assert_int_eq(ww_jobs_peek(world.jobs, &by_id, &info, NULL), WW_ENOTFOUND);
	ck_assert_int_eq(ww_jobs_peek(world.jobs, &by_key, &info, NULL), WW_ENOTFOUND);
	ck_assert_int_eq(ww_jobs_state(world.jobs, id, &state), WW_ENOTFOUND);
	ck_assert_int_eq(ww_jobs_reserve_job(world.jobs, id, &lease), WW_ENOTFOUND);
	ck_assert_int_eq(ww_jobs_kick_job(world.jobs, id), WW_ENOTFOUND);
	ck_assert_int_eq(ww_jobs_move(world.jobs, &by_key, 0, 0, NULL), WW_ENOTFOUND);
	ck_assert_int_eq(ww_jobs_cancel(world.jobs, &by_id), WW_ENOTFOUND);
	ck_assert_int_eq(listed(0), 0);
	ck_assert_int_eq(listed(1u << WW_JOB_ENDED), 1);
	OK(ww_jobs_stats(world.jobs, &stats));
	ck_assert_uint_eq(stats.accepted, 1);
	ck_assert_uint_eq(stats.ended, 1);
	ck_assert_uint_eq(stats.tubes, 0);
	world_check(&world);
	/* Whoever cancels the key wants it to be free. */
	ck_assert_int_eq(ww_jobs_cancel(world.jobs, &by_key), 1);
	ck_assert_int_eq(ww_jobs_cancel(world.jobs, &by_key), WW_ENOTFOUND);
	ck_assert_uint_eq(kept(), 0);
	(void)put(WW_KEY_UNIQUE, 0, HOUR, WW_PUT_NEW);
	/* A job that is cancelled was not done. */
	ck_assert_int_eq(ww_jobs_cancel(world.jobs, &by_key), 1);
	(void)put(WW_KEY_UNIQUE, 0, HOUR, WW_PUT_NEW);
	world_end(&world);
}
END_TEST

START_TEST(a_version_is_not_that_of_a_job_that_has_ended)
{
	struct ww_job_spec spec = keyed(WW_KEY_REPLACE, 0, 0);

	world_make(&world, _i);
	(void)put(WW_KEY_UNIQUE, 0, HOUR, WW_PUT_NEW);
	finish_next();
	spec.version = 1;
	ck_assert_int_eq(ww_jobs_put(world.jobs, &spec, NULL, NULL), WW_ESTALE);
	world_pass(&world, HOUR);
	ck_assert_int_eq(ww_jobs_put(world.jobs, &spec, NULL, NULL), WW_ESTALE);
	world_end(&world);
}
END_TEST

static void put_and_finish(unsigned number, uint64_t span, int result)
{
	struct ww_job_spec spec = keyed(WW_KEY_UNIQUE, 0, span);
	char key[16];

	spec.key = key;
	spec.key_length = (size_t)snprintf(key, sizeof key, "k%u", number);
	ck_assert_int_eq(ww_jobs_put(world.jobs, &spec, NULL, NULL), result);
	if (result == WW_PUT_NEW)
		finish_next();
}

START_TEST(no_more_are_kept_than_the_store_may_keep)
{
	NEEDS(KIND_IN_PROCESS);
	world_make(&world, _i);
	OK(ww_jobs_close(world.jobs));
	world.config.ended_max = 3;
	OK(world.kind->open(&world));
	for (unsigned i = 0; i < 5; i++)
		put_and_finish(i, HOUR - i, WW_PUT_NEW);
	ck_assert_uint_eq(kept(), 3);
	/* The last ones would have been forgotten first. */
	for (unsigned i = 0; i < 4; i++)
		put_and_finish(i, HOUR, i < 3 ? WW_PUT_ENDED : WW_PUT_NEW);
	world_end(&world);
}
END_TEST

/* Many calls as one write, where there is such a thing. */
static void begin_batch(void)
{
	if (world_promises(&world, KIND_BATCHES))
		OK(ww_jobs_begin(world.jobs));
}

static void commit_batch(void)
{
	if (world_promises(&world, KIND_BATCHES))
		OK(ww_jobs_commit(world.jobs));
}

START_TEST(many_are_forgotten_at_their_time)
{
	world_make(&world, _i);
	begin_batch();
	for (unsigned i = 0; i < 1200; i++)
		put_and_finish(i, HOUR, WW_PUT_NEW);
	commit_batch();
	ck_assert_uint_eq(kept(), 1200);
	world_pass(&world, HOUR);
	/* In Redis each call forgets some. */
	for (int i = 0; i < 10 && kept(); i++)
		world_settle(&world);
	ck_assert_uint_eq(kept(), 0);
	world_end(&world);
}
END_TEST

/* Threads of the driver forget what is due while the store is being opened. */
START_TEST(a_store_that_opens_late_forgets_what_is_over)
{
	struct ww_driver_config config;
	struct ww_driver *threaded;

	NEEDS(KIND_IN_PROCESS);
	NEEDS(KIND_KEEPS);
	world_make(&world, _i);
	OK(ww_jobs_close(world.jobs));
	OK(ww_driver_config_default(&config));
	config.clock = world.clock;
	OK(ww_driver_create(&threaded, &config));
	world.config.driver = world.config.wall = threaded;
	for (int i = 0; i < 10; i++) {
		uint64_t now;
		OK(world.kind->open(&world));
		while (kept())
			(void)sched_yield();
		(void)put(WW_KEY_UNIQUE, 0, MS, WW_PUT_NEW);
		finish_next();
		OK(ww_jobs_close(world.jobs));
		OK(ww_clock_now(world.clock, &now));
		OK(ww_clock_virtual_set(world.clock, now + HOUR));
	}
	OK(ww_driver_destroy(threaded));
	world.config.driver = world.config.wall = world.driver;
	OK(world.kind->open(&world));
	world_end(&world);
}
END_TEST

/* A tube without jobs is forgotten at some time, and its number is another tube's then. */
START_TEST(a_tube_whose_jobs_have_all_ended_keeps_their_keys)
{
	NEEDS(KIND_IN_PROCESS);
	world_make(&world, _i);
	uint64_t id = put(WW_KEY_UNIQUE, 0, HOUR, WW_PUT_NEW);
	finish_next();
	begin_batch();
	for (int i = 0; i < 2200; i++) {
		struct ww_job_spec spec = keyed(WW_KEY_REPLACE, 0, 0);
		char tube[16];
		(void)snprintf(tube, sizeof tube, "tube-%d", i);
		spec.tube = tube;
		struct ww_job_ref ref = {.id = put_job(&world, &spec)};
		ck_assert_int_eq(ww_jobs_cancel(world.jobs, &ref), 1);
	}
	commit_batch();
	if (world_promises(&world, KIND_KEEPS))
		world_reopen(&world);
	ck_assert_uint_eq(put(WW_KEY_REPLACE, 0, 0, WW_PUT_ENDED), id);
	world_end(&world);
}
END_TEST

START_TEST(a_copy_and_a_saved_store_know_what_has_ended_and_what_is_debounced)
{
	struct world copy = {.jobs = NULL};
	char target[sizeof world.path];
	struct ww_job_spec other = keyed(WW_KEY_DEBOUNCE, 10 * MINUTE, 15 * MINUTE);
	struct ww_jobs_config config;
	uint64_t saved;

	NEEDS(KIND_IN_PROCESS);
	NEEDS(KIND_KEEPS);
	world_make(&world, _i);
	other.tube = "mail";
	(void)put(WW_KEY_UNIQUE, 0, HOUR, WW_PUT_NEW);
	finish_next();
	ck_assert_int_eq(ww_jobs_put(world.jobs, &other, NULL, NULL), WW_PUT_NEW);
	world_pass(&world, 10 * MINUTE - MS);
	OK(ww_jobs_close(world.jobs));
	for (int recovers = 0; recovers < 2; recovers++) {
		(void)snprintf(target, sizeof target, "%.50s-%d", world.path, recovers);
		config = world.config;
		config.path = target;
		if (recovers)
			OK(ww_jobs_recover(world.path, &config, &saved, NULL, NULL));
		else
			OK(ww_jobs_backup(world.path, target));
		OK(ww_jobs_open(&world.jobs, &config));
		world_check(&world);
		ck_assert_uint_eq(kept(), 1);
		(void)put(WW_KEY_REPLACE, 0, 0, WW_PUT_ENDED);
		ck_assert_int_eq(ww_jobs_put(world.jobs, &other, &last_id, NULL), WW_PUT_REPLACED);
		expect_left(last_id, 5 * MINUTE + MS);
		OK(ww_jobs_close(world.jobs));
		(void)snprintf(copy.path, sizeof copy.path, "%s", target);
		world.kind->end(&copy);
	}
	OK(world.kind->open(&world));
	world_end(&world);
}
END_TEST

START_TEST(a_write_that_fails_changes_nothing_of_it)
{
	NEEDS(KIND_BATCHES);
	world_make(&world, _i);
	uint64_t id = put(WW_KEY_UNIQUE, 0, HOUR, WW_PUT_NEW);
	struct ww_lease lease = reserve_job(&world);
	world_fail(&world, FAIL_COMMIT);
	ck_assert_int_eq(ww_jobs_finish(world.jobs, id, lease.token), WW_EFULL);
	world_fail(&world, FAIL_NOTHING);
	ck_assert_uint_eq(kept(), 0);
	(void)put(WW_KEY_IF_ABSENT, 0, 0, WW_PUT_KEPT);
	OK(ww_jobs_finish(world.jobs, id, lease.token));
	/* Its time is over while nothing can be written. Afterwards it is forgotten all the same. */
	world_fail(&world, FAIL_COMMIT);
	world_pass(&world, HOUR);
	ck_assert_uint_eq(kept(), 1);
	world_fail(&world, FAIL_NOTHING);
	world_pass(&world, 2 * WW_SECOND);
	ck_assert_uint_eq(kept(), 0);
	world_end(&world);
}
END_TEST

KINDS_MAIN("jobs/keys", a_put_only_if_absent_keeps_a_job_in_any_state, a_put_that_keeps_a_job_writes_nothing,
    of_two_due_times_the_earlier_or_the_later_is_kept, what_a_job_in_delivery_or_buried_may_have_missed_is_put,
    due_times_of_two_clocks_are_compared_by_what_is_left,
    a_debounced_job_is_moved_but_not_beyond_a_span_after_the_first_put,
    a_put_after_a_failed_delivery_or_a_burial_is_a_first_one, a_debounced_job_expires_after_the_time_that_it_has_got,
    a_debounced_job_has_the_last_body_and_never_comes_later_than_the_span,
    the_key_of_a_unique_job_stays_taken_for_a_time_after_its_end,
    a_put_of_a_taken_key_gives_the_version_that_the_job_had,
    a_job_that_has_ended_is_in_no_list_and_no_count_and_takes_no_call, a_version_is_not_that_of_a_job_that_has_ended,
    no_more_are_kept_than_the_store_may_keep, many_are_forgotten_at_their_time,
    a_store_that_opens_late_forgets_what_is_over, a_tube_whose_jobs_have_all_ended_keeps_their_keys,
    a_copy_and_a_saved_store_know_what_has_ended_and_what_is_debounced, a_write_that_fails_changes_nothing_of_it)
