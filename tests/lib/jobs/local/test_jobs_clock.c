/* Boots with a clock that is wrong. Each boot has virtual clocks of its own, as a machine has. */
/* tier: check */
#include <stdio.h>
#include <stdlib.h>

#include "tests/lib/jobs/fixture.h"

#define HOUR (3600 * WW_SECOND)
#define DAY (24 * HOUR)
#define YEAR (365 * DAY)
#define TODAY (UINT64_C(1800000000) * WW_SECOND)

static struct world world;
static struct ww_clock *wall_clock;
static struct ww_driver *wall_driver;

static struct ww_driver *driver_of(struct ww_clock *clock)
{
	struct ww_driver_config config;
	struct ww_driver *driver;

	OK(ww_driver_config_default(&config));
	config.clock = clock;
	config.flags = WW_DRIVER_THREADLESS;
	OK(ww_driver_create(&driver, &config));
	return driver;
}

static void off(void)
{
	OK(ww_driver_destroy(world.driver));
	OK(ww_clock_virtual_destroy(world.clock));
	OK(ww_driver_destroy(wall_driver));
	OK(ww_clock_virtual_destroy(wall_clock));
}

/* The machine was up for `up` when the store is opened, and its clock says `wall`. */
static void on(uint64_t up, uint64_t wall)
{
	OK(ww_clock_virtual_create(&world.clock, up, NULL));
	OK(ww_clock_virtual_create(&wall_clock, wall, NULL));
	world.config.driver = world.driver = driver_of(world.clock);
	world.config.wall = wall_driver = driver_of(wall_clock);
	OK(ww_jobs_open(&world.jobs, &world.config));
	world_settle(&world);
}

static void begin(uint64_t up, uint64_t wall)
{
	world_make(&world, KIND_DISK);
	OK(ww_jobs_close(world.jobs));
	world.kind->end(&world);
	wall_clock = NULL;
	wall_driver = NULL;
	off();
	world.kind->make(&world);
	on(up, wall);
}

static void boot(uint64_t up, uint64_t wall)
{
	OK(ww_jobs_close(world.jobs));
	off();
	on(up, wall);
}

static void end(void)
{
	world_end(&world);
	OK(ww_driver_destroy(wall_driver));
	OK(ww_clock_virtual_destroy(wall_clock));
}

static void set_wall(uint64_t wall)
{
	OK(ww_clock_virtual_set(wall_clock, wall));
	while (ww_driver_dispatch(wall_driver, 1000) > 0)
		continue;
}

static void pass(uint64_t ns)
{
	uint64_t wall;

	OK(ww_driver_now(wall_driver, &wall));
	world_pass(&world, ns);
	set_wall(wall + ns);
}

static uint64_t put_in(uint64_t delay)
{
	struct ww_job_spec spec = spec_of("x");

	spec.due = delay;
	return put_job(&world, &spec);
}

static int64_t downtime(void)
{
	struct ww_jobs_stats stats;

	OK(ww_jobs_stats(world.jobs, &stats));
	return stats.downtime;
}

START_TEST(the_time_off_counts)
{
	begin(WW_SECOND, TODAY);
	uint64_t id = put_in(3 * HOUR);
	pass(HOUR / 2);
	boot(20 * WW_SECOND, TODAY + 2 * HOUR + HOUR / 2);
	ck_assert_int_eq(downtime(), 2 * (int64_t)HOUR);
	expect_none(&world);
	pass(HOUR / 2 - WW_SECOND);
	expect_none(&world);
	pass(WW_SECOND);
	ck_assert_uint_eq(reserve_job(&world).id, id);
	end();
}
END_TEST

START_TEST(a_boot_in_1970_makes_jobs_late_by_the_time_off_and_no_later_step_changes_that)
{
	begin(WW_SECOND, TODAY);
	uint64_t id = put_in(3 * HOUR);
	pass(HOUR);
	boot(WW_SECOND, 10 * WW_SECOND);
	ck_assert_int_lt(downtime(), 0);
	uint64_t later = put_in(3 * HOUR);
	/* The clock is set right. */
	set_wall(TODAY + 5 * DAY);
	world_settle(&world);
	expect_none(&world);
	pass(2 * HOUR - WW_SECOND);
	expect_none(&world);
	pass(WW_SECOND);
	ck_assert_uint_eq(reserve_job(&world).id, id);
	/* What was put since is neither early nor late, also by a boot with the right clock. */
	boot(WW_SECOND, TODAY + 5 * DAY + 2 * HOUR + HOUR / 2);
	ck_assert_int_eq(downtime(), (int64_t)HOUR / 2);
	pass(HOUR / 2 - WW_SECOND);
	ck_assert_int_eq(info_of(&world, later).state, WW_JOB_DELAYED);
	pass(WW_SECOND);
	ck_assert_int_eq(info_of(&world, later).state, WW_JOB_READY);
	end();
}
END_TEST

START_TEST(a_boot_ten_years_ahead_delivers_nothing_at_once)
{
	begin(WW_SECOND, TODAY);
	uint64_t soon = put_in(HOUR);
	uint64_t late = put_in(YEAR);
	boot(WW_SECOND, TODAY + 10 * YEAR);
	ck_assert_int_eq(downtime(), 10 * (int64_t)YEAR);
	expect_none(&world);
	/* The clock is set right, and says less than at the last write. That is no time off. */
	set_wall(TODAY + HOUR / 2);
	boot(WW_SECOND, TODAY + HOUR / 2 + HOUR / 4);
	expect_none(&world);
	pass(HOUR - HOUR / 4);
	ck_assert_uint_eq(reserve_job(&world).id, soon);
	ck_assert_int_eq(info_of(&world, late).state, WW_JOB_DELAYED);
	end();
}
END_TEST

START_TEST(the_limit_is_the_longest_time_off)
{
	begin(WW_SECOND, TODAY);
	world.config.downtime_max = DAY;
	uint64_t id = put_in(DAY);
	boot(WW_SECOND, TODAY + DAY + 1);
	expect_none(&world);
	boot(WW_SECOND, TODAY + 2 * DAY + 1);
	ck_assert_uint_eq(reserve_job(&world).id, id);
	end();
}
END_TEST

START_TEST(an_idle_server_that_ends_without_a_word_was_not_off_all_the_time)
{
	begin(WW_SECOND, TODAY);
	uint64_t id = put_in(41 * DAY);
	for (int day = 0; day < 40; day++)
		pass(DAY);
	/* It ends as by a kill: its last write fails. */
	world_fail(&world, FAIL_COMMIT);
	ck_assert_int_eq(ww_jobs_close(world.jobs), WW_EFULL);
	off();
	on(WW_SECOND, TODAY + 41 * DAY);
	ck_assert_uint_eq(reserve_job(&world).id, id);
	end();
}
END_TEST

/* It ends without a word, as by a power failure: its last write fails. `pass` moves one clock after the other. */
START_TEST(a_step_on_an_idle_server_is_no_time_off)
{
	static const int64_t steps[] = {2 * (int64_t)HOUR, -2 * (int64_t)HOUR};
	const uint64_t minute = 60 * WW_SECOND;

	for (size_t i = 0; i < sizeof steps / sizeof *steps; i++) {
		uint64_t after = TODAY + (uint64_t)steps[i];
		begin(WW_SECOND, TODAY);
		uint64_t id = put_in(3 * HOUR);
		set_wall(after);
		for (int passed = 0; passed < 60; passed++)
			pass(minute);
		world_fail(&world, FAIL_COMMIT);
		ck_assert_int_eq(ww_jobs_close(world.jobs), WW_EFULL);
		off();
		on(WW_SECOND, after + HOUR + HOUR / 2);
		pass(HOUR + HOUR / 2 - 2 * minute);
		ck_assert_int_eq(info_of(&world, id).state, WW_JOB_DELAYED);
		pass(2 * minute);
		ck_assert_int_eq(info_of(&world, id).state, WW_JOB_READY);
		end();
	}
}
END_TEST

/* The second boot takes longer than the clock said at the first. */
START_TEST(a_store_that_is_made_in_1970_goes_on)
{
	begin(15 * WW_SECOND, 20 * WW_SECOND);
	uint64_t id = put_in(HOUR);
	boot(100 * WW_SECOND, 21 * WW_SECOND);
	pass(WW_SECOND);
	expect_none(&world);
	boot(WW_SECOND, TODAY);
	expect_none(&world);
	pass(HOUR);
	ck_assert_uint_eq(reserve_job(&world).id, id);
	end();
}
END_TEST

/* How many jobs, 0 or 1, the tube lets start. */
static int starts(const char *tube)
{
	struct ww_lease lease;
	int result = ww_jobs_reserve(world.jobs, &tube, 1, &lease);

	if (result == 1)
		ww_jobs_free(world.jobs, lease.body);
	return result;
}

/* What waits for a timer: a job, a lease, a key, a pause and a limit. */
static void assert_nothing_is_early(void)
{
	const struct ww_limit limit = {.starts = 1, .per = HOUR, .burst = 1};
	struct ww_job_spec spec = spec_of("x");
	struct ww_lease lease;
	uint64_t kept;
	uint64_t id;

	spec.key = "key";
	spec.key_length = 3;
	spec.key_mode = WW_KEY_UNIQUE;
	spec.key_span = HOUR;
	kept = put_job(&world, &spec);
	lease = reserve_job(&world);
	OK(ww_jobs_finish(world.jobs, lease.id, lease.token));
	id = put_in(HOUR);
	OK(ww_jobs_pause(world.jobs, "paused", HOUR));
	OK(ww_jobs_limit_set(world.jobs, &(struct ww_limit_ref){.tube = "limited"}, &limit));
	spec = spec_of("x");
	spec.run = HOUR;
	(void)put_job(&world, &spec);
	lease = reserve_job(&world);
	for (int i = 0; i < 2; i++) {
		spec.tube = "limited";
		(void)put_job(&world, &spec);
	}
	ck_assert_int_eq(starts("limited"), 1);
	ck_assert_int_eq(starts("limited"), 0);
	spec.tube = "paused";
	(void)put_job(&world, &spec);
	pass(HOUR - WW_SECOND);
	expect_none(&world);
	for (int i = 0; i < 2; i++)
		ck_assert_int_eq(starts(i ? "limited" : "paused"), 0);
	spec = spec_of("again");
	spec.key = "key";
	spec.key_length = 3;
	uint64_t had;
	ck_assert_int_eq(ww_jobs_put(world.jobs, &spec, &had, NULL), WW_PUT_ENDED);
	ck_assert_uint_eq(had, kept);
	pass(WW_SECOND);
	for (int i = 0; i < 2; i++)
		ck_assert_int_eq(starts(i ? "limited" : "paused"), 1);
	/* The delayed job, and the one whose lease is over. */
	ck_assert_int_eq(info_of(&world, id).state, WW_JOB_READY);
	(void)reserve_job(&world);
	(void)reserve_job(&world);
	ck_assert_int_eq(ww_jobs_put(world.jobs, &spec, NULL, NULL), WW_PUT_NEW);
}

START_TEST(a_driver_whose_clock_is_ahead_of_unix_time_delivers_nothing_early)
{
	static const uint64_t ahead[] = {0, WW_SECOND, 5 * DAY, 80 * YEAR};

	for (size_t i = 0; i < sizeof ahead / sizeof *ahead; i++) {
		begin(TODAY + ahead[i], TODAY);
		assert_nothing_is_early();
		uint64_t id = put_in(2 * DAY);
		boot(WW_SECOND, TODAY + DAY);
		ck_assert_int_eq(info_of(&world, id).state, WW_JOB_DELAYED);
		boot(TODAY + 2 * YEAR, TODAY + DAY + HOUR);
		pass(DAY - HOUR);
		ck_assert_int_eq(info_of(&world, id).state, WW_JOB_DELAYED);
		pass(HOUR);
		ck_assert_int_eq(info_of(&world, id).state, WW_JOB_READY);
		end();
	}
}
END_TEST

static void note_event(const struct ww_job_event *event, void *context)
{
	*(uint64_t *)context = event->left;
}

static int note_end(const struct ww_job_run *run, void *context)
{
	*(uint64_t *)context = run->ended;
	return 0;
}

/* The clock was set: each job is still told and moved by its own. */
START_TEST(what_is_told_of_a_job_is_by_its_clock)
{
	struct ww_job_spec spec = spec_of("x");
	uint64_t left = 0, ended = 0, id;

	begin(WW_SECOND, TODAY);
	set_wall(TODAY + DAY);
	OK(ww_jobs_listen(world.jobs, note_event, &left));
	spec.flags = WW_JOB_WALL;
	spec.due = HOUR;
	spec.key = "k";
	spec.key_length = 1;
	spec.key_mode = WW_KEY_DEBOUNCE;
	spec.key_span = HOUR;
	ck_assert_int_eq(ww_jobs_put(world.jobs, &spec, &id, NULL), WW_PUT_NEW);
	ck_assert_uint_eq(left, HOUR);
	pass(HOUR / 4);
	spec.flags = 0;
	ck_assert_int_eq(ww_jobs_put(world.jobs, &spec, NULL, NULL), WW_PUT_REPLACED);
	ck_assert_uint_eq(left, HOUR * 3 / 4);
	ck_assert_uint_eq(info_of(&world, id).debounce, HOUR / 4);
	spec.keep = DAY;
	spec.key_mode = WW_KEY_REPLACE;
	spec.due = spec.key_span = 0;
	ck_assert_int_eq(ww_jobs_put(world.jobs, &spec, NULL, NULL), WW_PUT_REPLACED);
	struct ww_lease lease = reserve_job(&world);
	OK(ww_jobs_finish(world.jobs, lease.id, lease.token));
	OK(ww_jobs_history(world.jobs, NULL, 1, note_end, &ended, NULL));
	ck_assert_uint_eq(ended, TODAY + DAY + HOUR / 4);
	OK(ww_jobs_listen(world.jobs, NULL, NULL));
	end();
}
END_TEST

/* The new store's elapsed time begins with the clock that was set. What is left of each time stays. */
START_TEST(a_saved_store_has_what_was_left_of_each_time)
{
	char path[sizeof world.path + 8];
	struct ww_job_spec spec = spec_of("x");
	struct ww_job_info before, after;
	struct ww_job_spec run = spec_of("x");
	uint64_t saved = 0, ended = 0;

	begin(WW_SECOND, TODAY);
	set_wall(TODAY + DAY);
	run.keep = 2 * HOUR;
	(void)put_job(&world, &run);
	struct ww_lease lease = reserve_job(&world);
	OK(ww_jobs_finish(world.jobs, lease.id, lease.token));
	ww_jobs_free(world.jobs, lease.body);
	spec.due = 2 * HOUR;
	spec.expire = HOUR;
	spec.key = "k";
	spec.key_length = 1;
	spec.key_mode = WW_KEY_DEBOUNCE;
	spec.key_span = 4 * HOUR;
	uint64_t id = put_job(&world, &spec);
	pass(HOUR);
	before = info_of(&world, id);
	OK(ww_jobs_close(world.jobs));
	(void)snprintf(path, sizeof path, "%s.saved", world.path);
	const char *first = world.config.path;
	world.config.path = path;
	OK(ww_jobs_recover(first, &world.config, &saved, NULL, NULL));
	ck_assert_uint_eq(saved, 1);
	OK(ww_jobs_open(&world.jobs, &world.config));
	after = info_of(&world, id);
	ck_assert_uint_eq(after.due, before.due + DAY);
	ck_assert_uint_eq(after.left, HOUR);
	ck_assert_uint_eq(after.debounce, HOUR);
	ck_assert_uint_eq(after.expires, after.due + HOUR);
	pass(HOUR - MS);
	OK(ww_jobs_history(world.jobs, NULL, 1, note_end, &ended, NULL));
	ck_assert_uint_eq(ended, TODAY + DAY);
	ended = 0;
	pass(HOUR + MS);
	OK(ww_jobs_history(world.jobs, NULL, 1, note_end, &ended, NULL));
	ck_assert_uint_eq(ended, 0);
	expect_none(&world);
	world_check(&world);
	OK(ww_jobs_close(world.jobs));
	world.config.path = first;
	OK(ww_jobs_open(&world.jobs, &world.config));
	end();
	char command[sizeof path + 16];
	(void)snprintf(command, sizeof command, "rm -r '%s'", path);
	ck_assert_int_eq(system(command), 0);
}
END_TEST

TEST_MAIN("jobs/clock", the_time_off_counts,
    a_boot_in_1970_makes_jobs_late_by_the_time_off_and_no_later_step_changes_that,
    a_boot_ten_years_ahead_delivers_nothing_at_once, the_limit_is_the_longest_time_off,
    an_idle_server_that_ends_without_a_word_was_not_off_all_the_time, a_step_on_an_idle_server_is_no_time_off,
    a_store_that_is_made_in_1970_goes_on, a_driver_whose_clock_is_ahead_of_unix_time_delivers_nothing_early,
    what_is_told_of_a_job_is_by_its_clock, a_saved_store_has_what_was_left_of_each_time)
