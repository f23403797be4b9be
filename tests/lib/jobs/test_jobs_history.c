/* What became of runs: each end of a lease of a job that asks for it, what the worker said of it, and when it is forgotten. */
/* tier: check */
#include <stdio.h>
#include <string.h>

#include "tests/lib/jobs/fixture.h"

enum { MOST = 64 };

#define DAY (86400 * WW_SECOND)

static struct world world;

/* ---- What the history told, as a line each */

static char told[4096];
static size_t calls;
static size_t stop_at; /* 0: never */
static uint64_t last_number;
static uint64_t last_ended;

static int tell(const struct ww_job_run *run, void *context)
{
	static const char *const words[] = {[WW_EVENT_FINISHED] = "finished",
	    [WW_EVENT_RELEASED] = "released",
	    [WW_EVENT_TIMED_OUT] = "timed out",
	    [WW_EVENT_BURIED] = "buried"};
	size_t length = strlen(told);

	ck_assert_ptr_eq(context, &world);
	ck_assert(last_number == 0 || run->number < last_number);
	last_number = run->number;
	last_ended = run->ended;
	(void)snprintf(told + length, sizeof told - length, "%s %.*s %u %s (%s) %.*s\n", run->tube,
	    (int)run->key_length, (const char *)run->key, (unsigned)run->attempt, words[run->outcome], run->error,
	    (int)run->report_length, (const char *)run->report);
	return ++calls == stop_at ? 7 : 0;
}

static uint64_t ask(const struct ww_run_filter *filter, size_t limit)
{
	uint64_t next = 99;

	told[0] = 0;
	calls = 0;
	last_number = 0;
	ck_assert_int_eq(ww_jobs_history(world.jobs, filter, limit, tell, &world, &next), stop_at ? 7 : 0);
	return next;
}

static void expect(const struct ww_run_filter *filter, const char *lines)
{
	ck_assert_uint_eq(ask(filter, MOST), 0);
	ck_assert_str_eq(told, lines);
}

/* ---- Jobs */

static struct ww_job_spec kept(const char *key)
{
	struct ww_job_spec spec = spec_of("x");

	spec.keep = DAY;
	spec.key = key;
	spec.key_length = strlen(key);
	return spec;
}

static void finish(const struct ww_lease *lease, const char *report)
{
	if (report)
		OK(ww_jobs_report(world.jobs, lease->id, lease->token, report, strlen(report)));
	OK(ww_jobs_finish(world.jobs, lease->id, lease->token));
}

static void run(const char *key, const char *report)
{
	struct ww_job_spec spec = kept(key);
	struct ww_lease lease;

	(void)put_job(&world, &spec);
	lease = reserve_job(&world);
	finish(&lease, report);
}

START_TEST(each_attempt_is_told)
{
	struct ww_job_spec spec = kept("k");
	struct ww_lease lease;
	struct ww_run_filter filter = {.tube = NULL};

	world_make(&world, _i);
	run("other", NULL);
	filter.job = put_job(&world, &spec);
	ck_assert_uint_eq(info_of(&world, filter.job).keep, DAY);
	lease = reserve_job(&world);
	OK(ww_jobs_report(world.jobs, lease.id, lease.token, "status 1", 8));
	OK(ww_jobs_release(world.jobs, lease.id, lease.token, 5, 0, "it failed"));
	lease = reserve_job(&world);
	world_pass(&world, spec.run);
	lease = reserve_job(&world);
	OK(ww_jobs_report(world.jobs, lease.id, lease.token, "not this", 8));
	OK(ww_jobs_return(world.jobs, lease.id, lease.token));
	lease = reserve_job(&world);
	OK(ww_jobs_bury(world.jobs, lease.id, lease.token, 5, "enough"));
	OK(ww_jobs_kick_job(world.jobs, lease.id));
	lease = reserve_job(&world);
	OK(ww_jobs_report(world.jobs, lease.id, lease.token, "first", 5));
	finish(&lease, "status 0");
	expect(&filter, "default k 1 finished () status 0\n"
	                "default k 3 buried (enough) \n"
	                "default k 2 timed out (the time to run was up) \n"
	                "default k 1 released (it failed) status 1\n");
	ck_assert_int_eq(ww_jobs_report(world.jobs, lease.id, lease.token, "x", 1), WW_ESTALE);
	world_end(&world);
}
END_TEST

START_TEST(a_periodic_job_tells_each_delivery)
{
	struct ww_job_spec spec = kept("p");
	struct ww_lease lease;

	world_make(&world, _i);
	spec.period = 10 * WW_SECOND;
	(void)put_job(&world, &spec);
	for (int i = 0; i < 3; i++) {
		char report[2] = {(char)('a' + i), 0};
		lease = reserve_job(&world);
		finish(&lease, report);
		world_pass(&world, 10 * WW_SECOND);
	}
	expect(NULL, "default p 1 finished () c\ndefault p 1 finished () b\ndefault p 1 finished () a\n");
	world_end(&world);
}
END_TEST

START_TEST(runs_are_told_by_tube_key_and_page)
{
	struct ww_run_filter filter = {.tube = "other"};
	uint64_t next;

	world_make(&world, _i);
	run("night@1", NULL);
	world_pass(&world, MS);
	run("day@1", NULL);
	world_pass(&world, MS);
	run("night@2", NULL);
	expect(&filter, "");
	filter = (struct ww_run_filter){.tube = WW_TUBE_DEFAULT, .prefix = "night@", .prefix_length = 6};
	expect(&filter, "default night@2 1 finished () \ndefault night@1 1 finished () \n");
	next = ask(&filter, 1);
	ck_assert_str_eq(told, "default night@2 1 finished () \n");
	ck_assert_uint_ne(next, 0);
	filter.before = next;
	expect(&filter, "default night@1 1 finished () \n");
	stop_at = 2;
	next = ask(NULL, MOST);
	ck_assert_str_eq(told, "default night@2 1 finished () \ndefault day@1 1 finished () \n");
	stop_at = 0;
	filter = (struct ww_run_filter){.before = next};
	expect(&filter, "default night@1 1 finished () \n");
	world_end(&world);
}
END_TEST

START_TEST(only_runs_of_the_tube_and_of_the_whole_prefix_are_told)
{
	static const char *const mail[] = {"mail"};
	struct ww_job_spec spec = kept("a");
	struct ww_run_filter filter = {.tube = "mail"};
	struct ww_lease lease;

	world_make(&world, _i);
	run("night@1", "23");
	world_pass(&world, MS);
	spec.tube = "mail";
	(void)put_job(&world, &spec);
	ck_assert_int_eq(ww_jobs_reserve(world.jobs, mail, 1, &lease), 1);
	ww_jobs_free(world.jobs, lease.body);
	finish(&lease, NULL);
	expect(&filter, "mail a 1 finished () \n");
	filter.tube = "mai";
	expect(&filter, "");
	/* Its report, which may lie behind the key, is no part of that. */
	filter = (struct ww_run_filter){.prefix = "night@123", .prefix_length = 9};
	expect(&filter, "");
	/* After the oldest there is nothing to go on with. */
	ck_assert_uint_eq(ask(NULL, 2), 0);
	ck_assert_uint_ne(ask(NULL, 1), 0);
	world_end(&world);
}
END_TEST

static const char any_bytes[] = "a\0\n\xff\0b";

static int compare_report(const struct ww_job_run *run, void *context)
{
	(void)context;
	ck_assert_uint_eq(run->report_length, sizeof any_bytes);
	ck_assert_mem_eq(run->report, any_bytes, sizeof any_bytes);
	return 5;
}

START_TEST(a_report_may_be_any_bytes)
{
	struct ww_job_spec spec = kept("k");
	struct ww_lease lease;

	world_make(&world, _i);
	(void)put_job(&world, &spec);
	lease = reserve_job(&world);
	OK(ww_jobs_report(world.jobs, lease.id, lease.token, any_bytes, sizeof any_bytes));
	finish(&lease, NULL);
	ck_assert_int_eq(ww_jobs_history(world.jobs, NULL, 1, compare_report, NULL, NULL), 5);
	world_end(&world);
}
END_TEST

START_TEST(runs_that_ended_in_a_batch_are_told_after_it)
{
	NEEDS(KIND_BATCHES);
	world_make(&world, _i);
	run("before", NULL);
	OK(ww_jobs_begin(world.jobs));
	run("k", NULL);
	expect(NULL, "default before 1 finished () \n");
	OK(ww_jobs_commit(world.jobs));
	expect(NULL, "default k 1 finished () \ndefault before 1 finished () \n");
	world_end(&world);
}
END_TEST

static int no_room(void *self, size_t size)
{
	(void)self;
	(void)size;
	return WW_EFULL;
}

START_TEST(without_room_a_job_ends_and_its_run_is_not_kept)
{
	struct ww_job_spec spec = kept("k");
	struct store_ops full;
	struct ww_lease lease;

	NEEDS(KIND_IN_PROCESS);
	world_make(&world, _i);
	(void)put_job(&world, &spec);
	lease = reserve_job(&world);
	const struct store_ops *ops = local_of(world.jobs)->store.ops;
	full = *ops;
	full.room = no_room;
	local_of(world.jobs)->store.ops = &full;
	ck_assert_int_eq(ww_jobs_put(world.jobs, &spec, NULL, NULL), WW_EFULL);
	finish(&lease, NULL);
	local_of(world.jobs)->store.ops = ops;
	expect(NULL, "");
	run("later", NULL);
	expect(NULL, "default later 1 finished () \n");
	world_end(&world);
}
END_TEST

START_TEST(a_run_that_cannot_be_read_is_left_out)
{
	static const unsigned char key[] = {'r', 'u', 'n', 0, 0, 0, 0, 0, 0, 0, 2};

	NEEDS(KIND_IN_PROCESS);
	world_make(&world, _i);
	for (const char *each = "abc"; *each; each++) {
		char name[] = {*each, 0};
		run(name, NULL);
	}
	const struct store *store = &local_of(world.jobs)->store;
	OK(store->ops->begin(store->self));
	OK(store->ops->put(
	    store->self, STORE_META, (struct store_bytes){key, sizeof key}, (struct store_bytes){"x", 1}));
	OK(store->ops->commit(store->self));
	expect(NULL, "default c 1 finished () \ndefault a 1 finished () \n");
	world_end(&world);
}
END_TEST

START_TEST(runs_are_forgotten_in_time)
{
	struct ww_job_spec spec = spec_of("x");
	struct ww_lease lease;

	world_make(&world, _i);
	(void)put_job(&world, &spec);
	lease = reserve_job(&world);
	finish(&lease, "nobody asked for it");
	expect(NULL, "");
	run("old", "o");
	world_pass(&world, DAY / 2);
	run("new", "n");
	world_pass(&world, DAY / 2 - MS);
	expect(NULL, "default new 1 finished () n\ndefault old 1 finished () o\n");
	world_pass(&world, MS);
	expect(NULL, "default new 1 finished () n\n");
	world_end(&world);
}
END_TEST

START_TEST(a_run_ended_by_the_clock_of_the_store)
{
	struct ww_run_filter first = {.prefix = "a", .prefix_length = 1};
	uint64_t before;

	world_make(&world, _i);
	run("a", NULL);
	world_pass(&world, 3600 * WW_SECOND);
	run("b", NULL);
	expect(&first, "default a 1 finished () \n");
	before = last_ended;
	(void)ask(NULL, 1);
	ck_assert_uint_ge(last_ended, before + 3600 * WW_SECOND);
	ck_assert_uint_lt(last_ended, before + 4000 * WW_SECOND);
	world_end(&world);
}
END_TEST

START_TEST(a_call_looks_at_so_many_and_says_where_it_goes_on)
{
	struct ww_run_filter filter = {.prefix = "first", .prefix_length = 5};
	int asked = 0;

	NEEDS(KIND_IN_PROCESS);
	world_make(&world, _i);
	run("first", NULL);
	for (int i = 0; i < 2500; i++)
		run("other", NULL);
	do {
		filter.before = ask(&filter, MOST);
		asked++;
	} while (filter.before);
	ck_assert_str_eq(told, "default first 1 finished () \n");
	ck_assert_int_eq(asked, 3);
	world_end(&world);
}
END_TEST

START_TEST(runs_outlast_the_store)
{
	NEEDS(KIND_KEEPS);
	world_make(&world, _i);
	run("a", "1");
	world_reopen(&world);
	expect(NULL, "default a 1 finished () 1\n");
	world_pass(&world, MS);
	run("b", "2");
	world_reopen(&world);
	expect(NULL, "default b 1 finished () 2\ndefault a 1 finished () 1\n");
	world_end(&world);
}
END_TEST

START_TEST(only_so_many_are_kept)
{
	NEEDS(KIND_IN_PROCESS);
	world_make(&world, _i);
	local_of(world.jobs)->config.history_max = 3;
	for (int i = 0; i < 10; i++) {
		char key[2] = {(char)('a' + i), 0};
		run(key, NULL);
	}
	expect(NULL, "default j 1 finished () \ndefault i 1 finished () \ndefault h 1 finished () \n");
	local_of(world.jobs)->config.history_max = 0;
	run("z", NULL);
	expect(NULL, "default j 1 finished () \ndefault i 1 finished () \ndefault h 1 finished () \n");
	world_end(&world);
}
END_TEST

START_TEST(what_fails_was_no_run)
{
	struct ww_job_spec spec = kept("k");
	struct ww_lease lease;

	NEEDS(KIND_BATCHES);
	world_make(&world, _i);
	run("before", NULL);
	(void)put_job(&world, &spec);
	lease = reserve_job(&world);
	OK(ww_jobs_report(world.jobs, lease.id, lease.token, "r", 1));
	world_fail(&world, FAIL_COMMIT);
	ck_assert_int_lt(ww_jobs_finish(world.jobs, lease.id, lease.token), 0);
	world_fail(&world, FAIL_NOTHING);
	expect(NULL, "default before 1 finished () \n");
	OK(ww_jobs_finish(world.jobs, lease.id, lease.token));
	expect(NULL, "default k 1 finished () r\ndefault before 1 finished () \n");
	world_end(&world);
}
END_TEST

START_TEST(reports_of_leases_that_are_gone_take_no_memory)
{
	struct ww_job_spec spec = spec_of("x");

	NEEDS(KIND_IN_PROCESS);
	world_make(&world, _i);
	spec.keep = DAY;
	for (int i = 0; i < 1000; i++) {
		struct ww_job_ref ref = {.id = put_job(&world, &spec)};
		struct ww_lease lease = reserve_job(&world);
		OK(ww_jobs_report(world.jobs, lease.id, lease.token, "report", 6));
		OK(ww_jobs_cancel(world.jobs, &ref));
	}
	ck_assert_uint_le(local_of(world.jobs)->report_count, 130);
	const unsigned before = local_of(world.jobs)->report_count;
	spec.keep = 0;
	(void)put_job(&world, &spec);
	const struct ww_lease lease = reserve_job(&world);
	OK(ww_jobs_report(world.jobs, lease.id, lease.token, "nobody asked", 12));
	ck_assert_uint_eq(local_of(world.jobs)->report_count, before);
	world_end(&world);
}
END_TEST

START_TEST(wrong_calls_are_refused)
{
	static const char much[WW_JOB_REPORT_MAX + 1];
	struct ww_job_spec spec = kept("k");
	struct ww_run_filter filter = {.prefix_length = 1};
	struct ww_lease lease;

	world_make(&world, _i);
	ck_assert_int_eq(ww_jobs_history(NULL, NULL, 1, tell, NULL, NULL), WW_EINVAL);
	ck_assert_int_eq(ww_jobs_history(world.jobs, NULL, 0, tell, NULL, NULL), WW_EINVAL);
	ck_assert_int_eq(ww_jobs_history(world.jobs, NULL, 1, NULL, NULL, NULL), WW_EINVAL);
	ck_assert_int_eq(ww_jobs_history(world.jobs, &filter, 1, tell, NULL, NULL), WW_EINVAL);
	spec.keep = WW_DRIVER_TIME_MAX + 1;
	ck_assert_int_eq(ww_jobs_put(world.jobs, &spec, NULL, NULL), WW_EINVAL);
	spec.keep = DAY;
	(void)put_job(&world, &spec);
	lease = reserve_job(&world);
	ck_assert_int_eq(ww_jobs_report(NULL, lease.id, lease.token, "", 0), WW_EINVAL);
	ck_assert_int_eq(ww_jobs_report(world.jobs, lease.id, lease.token, NULL, 1), WW_EINVAL);
	ck_assert_int_eq(ww_jobs_report(world.jobs, lease.id, lease.token, much, sizeof much), WW_EINVAL);
	ck_assert_int_eq(ww_jobs_report(world.jobs, lease.id, lease.token + 1, "x", 1), WW_ESTALE);
	OK(ww_jobs_report(world.jobs, lease.id, lease.token, much, WW_JOB_REPORT_MAX));
	finish(&lease, NULL);
	ck_assert_uint_eq(ask(NULL, 2), 0);
	world_end(&world);
}
END_TEST

KINDS_MAIN("jobs/history", each_attempt_is_told, a_periodic_job_tells_each_delivery, runs_are_told_by_tube_key_and_page,
    only_runs_of_the_tube_and_of_the_whole_prefix_are_told, a_report_may_be_any_bytes,
    runs_that_ended_in_a_batch_are_told_after_it, without_room_a_job_ends_and_its_run_is_not_kept,
    a_run_that_cannot_be_read_is_left_out, runs_are_forgotten_in_time, a_run_ended_by_the_clock_of_the_store,
    a_call_looks_at_so_many_and_says_where_it_goes_on, runs_outlast_the_store, only_so_many_are_kept,
    what_fails_was_no_run, reports_of_leases_that_are_gone_take_no_memory, wrong_calls_are_refused)
