/* Schedules in each kind of store: their jobs come in time and once, whoever is killed, and their policies hold. */
/* tier: check, threads, no-valgrind */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "tests/lib/jobs/fixture.h"
#include "weekwheel/schedule.h"

/* 2027-03-27T00:00:00Z, a day before Berlin's clocks go forward. */
#define BEGIN (UINT64_C(1806105600) * WW_SECOND)
#define HOUR (3600 * WW_SECOND)

static struct world world;
static struct ww_schedule *schedules;
static struct ww_schedule_spec spec;

static uint64_t wall(void)
{
	uint64_t now;

	OK(ww_jobs_now(world.jobs, WW_JOB_WALL, &now));
	return now;
}

static void begin(int kind)
{
	world_make(&world, kind);
	if (wall() < BEGIN)
		world_pass(&world, BEGIN - wall());
	ck_assert_uint_lt(wall(), BEGIN + HOUR);
	OK(ww_schedule_open(&schedules, world.jobs, NULL));
	OK(ww_schedule_spec_default(&spec));
	spec.name = "backup";
	spec.expression = "0 3 * * *";
	spec.zone = "Europe/Berlin";
	spec.body = "do it";
	spec.body_length = 5;
}

static void end(void)
{
	ww_schedule_close(schedules);
	world_end(&world);
}

static void reopen(void)
{
	ww_schedule_close(schedules);
	world_reopen(&world);
	OK(ww_schedule_open(&schedules, world.jobs, NULL));
}

/* Work until nothing is due. */
static int work(void)
{
	int all = 0;

	for (int worked = 1; worked > 0; all += worked) {
		worked = ww_schedule_work(schedules, 100, 0);
		ck_assert_int_ge(worked, 0);
		ck_assert_int_lt(all, 10000);
	}
	return all;
}

/* Let time pass as a server lets it pass: in steps, with work at each. */
static void pass(uint64_t ns, uint64_t step)
{
	for (uint64_t past = 0; past < ns; past += step) {
		world_pass(&world, step);
		work();
	}
}

static void pass_to(uint64_t time)
{
	world_pass(&world, time - wall());
	work();
}

/* Reserve the next job, and check its key. */
static struct ww_lease take(const char *key)
{
	struct ww_lease lease = reserve_job(&world);

	ck_assert_msg(lease.key_length == strlen(key) && memcmp(lease.key, key, lease.key_length) == 0,
	    "the job of %.*s, not %s", (int)lease.key_length, (const char *)lease.key, key);
	ck_assert_uint_eq(lease.body_length, 5);
	return lease;
}

static void do_job(const char *key)
{
	struct ww_lease lease = take(key);

	OK(ww_jobs_finish(world.jobs, lease.id, lease.token));
}

static struct ww_schedule_info seen;

static int see(const struct ww_schedule_info *info, void *context)
{
	(void)context;
	seen = *info;
	return 0;
}

static const struct ww_schedule_info *look(void)
{
	OK(ww_schedule_peek(schedules, "default", "backup", see, NULL));
	return &seen;
}

static void put(int result)
{
	uint64_t next;

	ck_assert_int_eq(ww_schedule_put(schedules, &spec, &next, NULL), result);
	if (result >= 0 && result != WW_PUT_KEPT)
		ck_assert_uint_eq(next, look()->next);
}

START_TEST(a_night_in_berlin)
{
	begin(_i);
	put(WW_PUT_NEW);
	ck_assert_uint_eq(look()->next, BEGIN + 2 * HOUR);
	expect_none(&world);
	pass_to(BEGIN + 2 * HOUR - WW_SECOND);
	expect_none(&world);
	pass_to(BEGIN + 2 * HOUR);
	do_job("backup@2027-03-27T02:00:00Z");
	expect_none(&world);
	/* Clocks go forward: at one o'clock UTC it is three. */
	ck_assert_uint_eq(look()->next, BEGIN + 25 * HOUR);
	if (world_promises(&world, KIND_KEEPS))
		reopen();
	pass_to(BEGIN + 25 * HOUR);
	do_job("backup@2027-03-28T01:00:00Z");
	ck_assert_uint_eq(look()->made, 2);
	ck_assert_uint_eq(look()->last, BEGIN + 25 * HOUR);
	ck_assert_uint_eq(look()->next, BEGIN + 49 * HOUR);
	OK(ww_schedule_remove(schedules, "default", "backup"));
	ck_assert_int_eq(ww_schedule_remove(schedules, "default", "backup"), WW_ENOTFOUND);
	pass_to(BEGIN + 50 * HOUR);
	expect_none(&world);
	end();
}
END_TEST

/* The schedule's job in the store. */
static struct ww_job_spec stored_schedule(void **body)
{
	static const char key[] = "default\0backup";
	struct ww_job_ref ref = {.tube = WW_SCHEDULE_TUBE, .key = key, .key_length = sizeof key - 1};
	struct ww_job_spec job = spec_of("");
	struct ww_job_info info;

	OK(ww_jobs_peek(world.jobs, &ref, &info, body));
	job.tube = WW_SCHEDULE_TUBE;
	job.key = key;
	job.key_length = sizeof key - 1;
	job.body = info.body;
	job.body_length = info.body_length;
	job.due = info.due;
	job.flags = WW_JOB_WALL | WW_JOB_AT;
	return job;
}

/* A process that was killed has put the job of a time, and its schedule is as it was before. */
static void be_killed(int ends)
{
	void *body;
	struct ww_job_spec former = stored_schedule(&body);

	pass_to(BEGIN + 2 * HOUR);
	if (ends)
		do_job("backup@2027-03-27T02:00:00Z");
	ck_assert_int_eq(ww_jobs_put(world.jobs, &former, NULL, NULL), WW_PUT_REPLACED);
	ww_jobs_free(world.jobs, body);
	ck_assert_int_eq(work(), 1);
}

/* And so it is if it was killed before that: the time is not lost, and comes when its lease has ended. */
START_TEST(a_killed_scheduler_loses_no_time)
{
	static const char *const tubes[] = {WW_SCHEDULE_TUBE};
	struct ww_lease lease;

	begin(_i);
	put(WW_PUT_NEW);
	world_pass(&world, 2 * HOUR);
	ck_assert_int_eq(ww_jobs_reserve(world.jobs, tubes, 1, &lease), 1);
	ww_jobs_free(world.jobs, lease.body);
	ck_assert_int_eq(work(), 0);
	expect_none(&world);
	pass(6 * WW_SECOND, WW_SECOND);
	do_job("backup@2027-03-27T02:00:00Z");
	end();
}
END_TEST

START_TEST(a_killed_scheduler_makes_no_second_job)
{
	for (int ends = 0; ends < 2; ends++) {
		begin(_i);
		put(WW_PUT_NEW);
		be_killed(ends);
		if (!ends)
			do_job("backup@2027-03-27T02:00:00Z");
		expect_none(&world);
		ck_assert_uint_eq(look()->next, BEGIN + 25 * HOUR);
		pass_to(BEGIN + 25 * HOUR);
		do_job("backup@2027-03-28T01:00:00Z");
		end();
	}
}
END_TEST

static void *work_on(void *is_over)
{
	while (!atomic_load((atomic_int *)is_over))
		ck_assert_int_ge(ww_schedule_work(schedules, 1, 0), 0);
	return NULL;
}

/* A schedule that always has something due is changed while another thread works at it. */
START_TEST(a_change_beside_work_stays)
{
	atomic_int is_over = 0;
	pthread_t thread;

	begin(_i);
	spec.expression = "* * * * * *";
	spec.missed = WW_MISSED_ALL;
	spec.overlap = WW_OVERLAP_SKIP;
	put(WW_PUT_NEW);
	world_pass(&world, 1000 * HOUR);
	ck_assert_int_eq(pthread_create(&thread, NULL, work_on, &is_over), 0);
	for (uint32_t i = 0; i < 200; i++) {
		int result;

		spec.priority = i;
		/* It gives up after ten changes by the other. */
		while ((result = ww_schedule_put(schedules, &spec, NULL, NULL)) == WW_EAGAIN)
			continue;
		ck_assert_int_eq(result, WW_PUT_REPLACED);
		for (int looks = 0; looks < 3; looks++)
			ck_assert_uint_eq(look()->spec.priority, i);
	}
	atomic_store(&is_over, 1);
	ck_assert_int_eq(pthread_join(thread, NULL), 0);
	end();
}
END_TEST

/* A time is due for one process, and another one changes the schedule while it is at work. */
START_TEST(a_change_is_not_undone)
{
	static const char *const tubes[] = {WW_SCHEDULE_TUBE};
	struct ww_lease lease;

	begin(_i);
	put(WW_PUT_NEW);
	world_pass(&world, 2 * HOUR);
	ck_assert_int_eq(ww_jobs_reserve(world.jobs, tubes, 1, &lease), 1);
	ww_jobs_free(world.jobs, lease.body);
	/* The time that is due stays due. */
	spec.priority = 7;
	put(WW_PUT_REPLACED);
	ck_assert_uint_eq(look()->next, BEGIN + 2 * HOUR);
	ck_assert_int_eq(work(), 1);
	ck_assert_uint_eq(take("backup@2027-03-27T02:00:00Z").priority, 7);
	ck_assert_int_eq(ww_jobs_finish(world.jobs, lease.id, lease.token), WW_ESTALE);
	/* Other times make it forget that one. */
	spec.expression = "30 4 * * *";
	put(WW_PUT_REPLACED);
	ck_assert_uint_eq(look()->next, BEGIN + 3 * HOUR + HOUR / 2);
	spec.if_absent = 1;
	put(WW_PUT_KEPT);
	end();
}
END_TEST

START_TEST(a_version_that_has_gone)
{
	uint64_t version;

	begin(_i);
	put(WW_PUT_NEW);
	version = look()->version;
	spec.priority = 7;
	spec.version = version;
	put(WW_PUT_REPLACED);
	ck_assert_int_eq(ww_schedule_put(schedules, &spec, NULL, NULL), WW_ESTALE);
	ck_assert_int_eq(ww_schedule_remove_version(schedules, spec.tube, spec.name, version), WW_ESTALE);
	OK(ww_schedule_remove_version(schedules, spec.tube, spec.name, look()->version));
	ck_assert_int_eq(ww_schedule_put(schedules, &spec, NULL, NULL), WW_ESTALE);
	ck_assert_int_eq(ww_schedule_remove_version(schedules, spec.tube, spec.name, version), WW_ENOTFOUND);
	end();
}
END_TEST

START_TEST(missed_times)
{
	static const struct {
		enum ww_missed missed;
		uint64_t skip;
		int jobs;
		const char *first;
	} rows[] = {{WW_MISSED_ONCE, 0, 1, "backup@2027-03-27T01:00:00Z"},
	    {WW_MISSED_ALL, 0, 100, "backup@2027-03-27T01:00:00Z"},
	    {WW_MISSED_SKIP, 5 * HOUR, 6, "backup@2027-03-30T23:00:00Z"}};

	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		begin(_i);
		spec.expression = "0 * * * *";
		spec.missed = rows[i].missed;
		spec.skip = rows[i].skip;
		put(WW_PUT_NEW);
		pass_to(BEGIN + 100 * HOUR);
		if (world_promises(&world, KIND_ONE_ROW) || rows[i].jobs == 1)
			do_job(rows[i].first);
		for (int job = world_promises(&world, KIND_ONE_ROW) || rows[i].jobs == 1; job < rows[i].jobs; job++) {
			struct ww_lease lease = reserve_job(&world);
			OK(ww_jobs_finish(world.jobs, lease.id, lease.token));
		}
		expect_none(&world);
		ck_assert_uint_eq(look()->next, BEGIN + 101 * HOUR);
		pass_to(BEGIN + 101 * HOUR);
		do_job("backup@2027-03-31T05:00:00Z");
		end();
	}
}
END_TEST

/* Its jobs expire after their times, however late they are put. */
START_TEST(missed_times_expire)
{
	struct ww_job_info info;
	struct ww_job_ref ref = {.tube = "default", .key = "backup@2027-03-31T03:00:00Z", .key_length = 27};

	NEEDS(KIND_EXPIRES);
	for (enum ww_missed missed = WW_MISSED_ONCE; missed <= WW_MISSED_SKIP; missed++) {
		begin(_i);
		spec.expression = "0 * * * *";
		spec.missed = missed;
		spec.skip = 5 * HOUR;
		spec.expire = 2 * HOUR;
		put(WW_PUT_NEW);
		pass_to(BEGIN + 100 * HOUR + HOUR / 2);
		OK(ww_jobs_peek(world.jobs, &ref, &info, NULL));
		ck_assert_uint_eq(info.expires, info.due + HOUR / 2);
		if (missed != WW_MISSED_ONCE)
			do_job("backup@2027-03-31T03:00:00Z");
		world_pass(&world, HOUR / 2 - MS);
		if (missed == WW_MISSED_ONCE)
			do_job("backup@2027-03-31T03:00:00Z");
		world_pass(&world, MS);
		ck_assert_uint_eq(look()->skipped, 0);
		if (missed != WW_MISSED_ONCE)
			do_job("backup@2027-03-31T04:00:00Z");
		expect_none(&world);
		end();
	}
}
END_TEST

/* An hourly schedule in its second hour, whose first job is still at work. */
static struct ww_lease begin_at_work(int kind, enum ww_overlap overlap, enum ww_missed missed)
{
	struct ww_lease lease;

	begin(kind);
	spec.expression = "0 * * * *";
	spec.overlap = overlap;
	spec.missed = missed;
	spec.run = 100 * HOUR;
	put(WW_PUT_NEW);
	pass_to(BEGIN + HOUR);
	lease = take("backup@2027-03-27T01:00:00Z");
	pass_to(BEGIN + 2 * HOUR);
	return lease;
}

START_TEST(overlapping_times)
{
	struct ww_lease lease = begin_at_work(_i, WW_OVERLAP_SKIP, WW_MISSED_ONCE);

	expect_none(&world);
	ck_assert_uint_eq(look()->skipped, 1);
	OK(ww_jobs_finish(world.jobs, lease.id, lease.token));
	pass_to(BEGIN + 3 * HOUR);
	do_job("backup@2027-03-27T03:00:00Z");
	expect_none(&world);
	ck_assert_uint_eq(look()->made, 2);
	end();
}
END_TEST

START_TEST(a_job_waits_for_the_former_one)
{
	struct ww_lease lease = begin_at_work(_i, WW_OVERLAP_WAIT, WW_MISSED_ALL);

	pass(HOUR + 60 * WW_SECOND, 10 * WW_SECOND);
	expect_none(&world);
	OK(ww_jobs_finish(world.jobs, lease.id, lease.token));
	pass(20 * WW_SECOND, WW_SECOND);
	do_job("backup@2027-03-27T02:00:00Z");
	pass(20 * WW_SECOND, WW_SECOND);
	do_job("backup@2027-03-27T03:00:00Z");
	expect_none(&world);
	ck_assert_uint_eq(look()->skipped, 0);
	end();
}
END_TEST

START_TEST(pause_and_run_now)
{
	uint64_t id = 0;

	begin(_i);
	put(WW_PUT_NEW);
	OK(ww_schedule_pause(schedules, "default", "backup", 1));
	ck_assert_int_eq(ww_schedule_pause(schedules, "default", "backup", 1), 1);
	ck_assert_int_eq(ww_schedule_pause(schedules, "default", "other", 1), WW_ENOTFOUND);
	ck_assert_uint_eq(look()->next, 0);
	pass_to(BEGIN + 30 * HOUR);
	expect_none(&world);
	OK(ww_schedule_run(schedules, "default", "backup", &id));
	struct ww_lease lease = reserve_job(&world);
	ck_assert_uint_eq(lease.id, id);
	OK(ww_jobs_finish(world.jobs, lease.id, lease.token));
	OK(ww_schedule_pause(schedules, "default", "backup", 0));
	expect_none(&world);
	ck_assert_uint_eq(look()->next, BEGIN + 49 * HOUR);
	pass_to(BEGIN + 49 * HOUR);
	do_job("backup@2027-03-29T01:00:00Z");
	/* Half a year is further than it is looked ahead. */
	OK(ww_schedule_pause(schedules, "default", "backup", 1));
	pass(200 * 24 * HOUR, 20 * 24 * HOUR);
	expect_none(&world);
	ck_assert_uint_eq(look()->next, 0);
	end();
}
END_TEST

START_TEST(jobs_have_the_group)
{
	const struct ww_limit_ref group = {.tube = "default", .group = "a\nb", .group_length = 3};
	struct ww_limit limit;
	struct ww_lease lease;

	begin(_i);
	spec.expression = "@every 1h";
	spec.group = "a\nb";
	spec.group_length = 3;
	put(WW_PUT_NEW);
	/* What is kept is read again. */
	ck_assert_int_eq(ww_schedule_pause(schedules, "default", "backup", 1), 0);
	ck_assert_int_eq(ww_schedule_pause(schedules, "default", "backup", 0), 0);
	ck_assert_uint_eq(look()->spec.group_length, 3);
	ck_assert_mem_eq(look()->spec.group, "a\nb", 3);
	OK(ww_jobs_limit_default(&limit));
	limit.running = 1;
	OK(ww_jobs_limit_set(world.jobs, &group, &limit));
	pass_to(look()->next);
	pass_to(look()->next);
	lease = reserve_job(&world);
	expect_none(&world);
	OK(ww_jobs_finish(world.jobs, lease.id, lease.token));
	lease = reserve_job(&world);
	OK(ww_jobs_finish(world.jobs, lease.id, lease.token));
	spec.group_length = WW_JOB_GROUP_MAX + 1;
	ck_assert_int_eq(ww_schedule_put(schedules, &spec, NULL, NULL), WW_EINVAL);
	end();
}
END_TEST

START_TEST(start_end_and_spread)
{
	uint64_t next;

	begin(_i);
	spec.expression = "@every 1h";
	spec.start = BEGIN + 10 * HOUR;
	spec.end = BEGIN + 11 * HOUR;
	spec.spread = HOUR / 2;
	put(WW_PUT_NEW);
	next = look()->next;
	ck_assert_uint_ge(next, spec.start);
	ck_assert_uint_lt(next, spec.start + spec.spread);
	ck_assert_uint_ne(next, spec.start);
	pass_to(next - 1000);
	expect_none(&world);
	pass_to(next);
	do_job("backup@2027-03-27T10:00:00Z");
	ck_assert_uint_eq(look()->next, next + HOUR);
	pass_to(next + HOUR);
	do_job("backup@2027-03-27T11:00:00Z");
	ck_assert_uint_eq(look()->next, 0);
	pass_to(next + 60 * 24 * HOUR);
	expect_none(&world);
	end();
}
END_TEST

static int count_one(const struct ww_schedule_info *info, void *context)
{
	ck_assert_uint_eq(info->spec.body_length, 5);
	(*(int *)context)++;
	return 0;
}

static int count_of(const char *tube)
{
	/* In Redis a page may repeat what was on the one before. */
	size_t page = world_promises(&world, KIND_LISTS_IN_ORDER) ? 7 : 1000;
	uint64_t next = 0;
	int count = 0;

	do
		OK(ww_schedule_list(schedules, tube, page, count_one, &count, &next));
	while (next);
	return count;
}

START_TEST(many_are_listed_and_spread)
{
	uint64_t first = UINT64_MAX, last = 0;
	char name[20];
	uint64_t next;

	begin(_i);
	spec.name = name;
	spec.spread = HOUR;
	for (int i = 0; i < 100; i++) {
		spec.tube = i % 2 ? "default" : "defaulter";
		snprintf(name, sizeof name, "n%d", i);
		ck_assert_int_eq(ww_schedule_put(schedules, &spec, &next, NULL), WW_PUT_NEW);
		first = next < first ? next : first;
		last = next > last ? next : last;
	}
	ck_assert_uint_lt(first, BEGIN + 2 * HOUR + HOUR / 10);
	ck_assert_uint_gt(last, BEGIN + 3 * HOUR - HOUR / 10);
	ck_assert_int_eq(count_of(NULL), 100);
	ck_assert_int_eq(count_of("default"), 50);
	ck_assert_int_eq(count_of("nobody"), 0);
	pass_to(last);
	struct ww_tube_stats stats;
	OK(ww_jobs_tube(world.jobs, "default", &stats));
	ck_assert_uint_eq(stats.ready, 50);
	end();
}
END_TEST

START_TEST(refusals)
{
	static char long_name[WW_SCHEDULE_NAME_MAX + 2];
	struct ww_calendar_problem problem;

	begin(_i);
	spec.expression = "0 25 * * *";
	ck_assert_int_eq(ww_schedule_put(schedules, &spec, NULL, &problem), WW_EINVAL);
	ck_assert_uint_eq(problem.at, 2);
	spec.expression = "0 3 * * *";
	spec.zone = "Nowhere";
	ck_assert_int_eq(ww_schedule_put(schedules, &spec, NULL, &problem), WW_EINVAL);
	ck_assert_int_eq(problem.in_zone, 1);
	spec.zone = "UTC";
	spec.run = 1;
	ck_assert_int_eq(ww_schedule_put(schedules, &spec, NULL, &problem), WW_EINVAL);
	ck_assert_str_eq(problem.reason, "");
	spec.run = WW_SECOND;
	memset(long_name, 'a', sizeof long_name - 1);
	const char *const names[] = {"", NULL, "a\nb", "\xc2\x80",
	    "a\xc2\x9b"
	    "31m",
	    "a\xc2\x9f", "\x7f", long_name};
	for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
		spec.name = names[i];
		ck_assert_int_eq(ww_schedule_put(schedules, &spec, NULL, &problem), WW_EINVAL);
	}
	/* Beside them: a no-break space, and one whose second byte is the same. */
	spec.name = "\xc2\xa0\xc3\x80";
	OK(ww_schedule_put(schedules, &spec, NULL, &problem));
	OK(ww_schedule_remove(schedules, "default", spec.name));
	ck_assert_int_eq(ww_schedule_peek(schedules, "default", "backup", see, NULL), WW_ENOTFOUND);
	ck_assert_int_eq(ww_schedule_run(schedules, "default", "backup", NULL), WW_ENOTFOUND);
	ck_assert_int_eq(ww_schedule_work(schedules, 0, 0), WW_EINVAL);
	ck_assert_int_eq(count_of(NULL), 0);
	end();
}
END_TEST

/* What cannot be read is set aside and said why. */
START_TEST(a_strange_record_is_buried)
{
	static const char *const bodies[] = {"weekwheel-schedule 2\n\n", "nonsense", "weekwheel-schedule 1\ncron x",
	    "weekwheel-schedule 1\ncron 0 3 * * *\nzone Nowhere\nmissed once\noverlap allow\n\n"};
	struct ww_job_info info;

	begin(_i);
	for (size_t i = 0; i < sizeof bodies / sizeof *bodies; i++) {
		struct ww_job_spec job = spec_of(bodies[i]);

		job.tube = WW_SCHEDULE_TUBE;
		job.key = "default\0strange";
		job.key_length = 15;
		uint64_t id = put_job(&world, &job);
		struct ww_job_ref ref = {.id = id};
		ck_assert_int_eq(work(), 1);
		info = info_of(&world, id);
		ck_assert_int_eq(info.state, WW_JOB_BURIED);
		ck_assert_str_ne(info.error, "");
		ck_assert_int_eq(ww_jobs_cancel(world.jobs, &ref), 1);
	}
	expect_none(&world);
	end();
}
END_TEST

/* Put a request, as who cannot call the library does. */
static uint64_t ask(const char *words)
{
	char body[500] = "";
	struct ww_job_spec job = spec_of(body);

	(void)snprintf(body, sizeof body,
	    "weekwheel-schedule 1\ntube default\nname backup\ncron 0 3 * * *\n"
	    "zone Europe/Berlin\nmissed once\noverlap allow\nrun 60000000000\npriority 7\n%s%sdo it",
	    words, *words ? "\n\n" : "\n");
	job.tube = WW_SCHEDULE_TUBE;
	job.body_length = strlen(body);
	return put_job(&world, &job);
}

static void ask_and_work(const char *words)
{
	ask(words);
	ck_assert_int_eq(work(), 1);
}

/* A request has the meaning of the call, and leaves nothing. */
START_TEST(requests_are_carried_out)
{
	begin(_i);
	ask_and_work("request remove");
	ask_and_work("request add");
	ck_assert_int_eq(count_of(NULL), 1);
	ck_assert_uint_eq(look()->next, BEGIN + 2 * HOUR);
	ck_assert_uint_eq(look()->spec.priority, 7);
	pass_to(BEGIN + 2 * HOUR);
	do_job("backup@2027-03-27T02:00:00Z");
	/* One that replaces keeps the counts. */
	ask_and_work("request put\npaused 1");
	ck_assert_uint_eq(look()->made, 1);
	ck_assert_int_eq(look()->spec.is_paused, 1);
	ask_and_work("request add\npaused 0");
	ck_assert_int_eq(look()->spec.is_paused, 1);
	ask_and_work("request remove");
	ck_assert_int_eq(count_of(NULL), 0);
	ck_assert_int_eq(work(), 0);
	expect_none(&world);
	end();
}
END_TEST

START_TEST(a_request_that_makes_no_sense_is_buried)
{
	static const char *const words[] = {"", "request eat", "request put\ncron 61 * * * *",
	    "request put\nzone Nowhere", "request put\nname ", "request put\nrun 1"};

	begin(_i);
	for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
		uint64_t id = ask(words[i]);

		ck_assert_int_eq(work(), 1);
		struct ww_job_info info = info_of(&world, id);
		ck_assert_int_eq(info.state, WW_JOB_BURIED);
		ck_assert_str_ne(info.error, "");
	}
	ck_assert_int_eq(count_of(NULL), 0);
	end();
}
END_TEST

KINDS_MAIN("schedule", a_night_in_berlin, a_killed_scheduler_makes_no_second_job, a_killed_scheduler_loses_no_time,
    a_change_beside_work_stays, a_change_is_not_undone, a_version_that_has_gone, missed_times, missed_times_expire,
    overlapping_times, a_job_waits_for_the_former_one, pause_and_run_now, start_end_and_spread, jobs_have_the_group,
    many_are_listed_and_spread, refusals, a_strange_record_is_buried, requests_are_carried_out,
    a_request_that_makes_no_sense_is_buried)
