/* Looking at jobs and tubes, and arguments that make no sense, with each kind of store. */
/* tier: check */

#include <string.h>

#include "tests/lib/jobs/fixture.h"
#include "tests/support/seed.h"

static struct world world;
static const char *const both[] = {WW_TUBE_DEFAULT, "mail"};

static uint64_t put_at(const char *tube, uint64_t due, uint32_t priority)
{
	struct ww_job_spec spec = spec_of(tube);

	spec.tube = tube;
	spec.due = due;
	spec.priority = priority;
	return put_job(&world, &spec);
}

static uint64_t bury_one(const char *tube)
{
	struct ww_lease lease;
	uint64_t id = put_at(tube, 0, 0);

	OK(ww_jobs_reserve_job(world.jobs, id, &lease));
	ww_jobs_free(world.jobs, lease.body);
	OK(ww_jobs_bury(world.jobs, id, lease.token, 3, "why"));
	return id;
}

START_TEST(a_peek_shows_everything_that_was_put)
{
	struct ww_job_info info;
	void *body;

	world_make(&world, _i);
	struct ww_job_spec spec = spec_of("the body");
	spec.tube = "mail";
	spec.key = "k\0\xff";
	spec.key_length = 3;
	spec.due = 70 * WW_SECOND;
	spec.run = 9 * WW_SECOND;
	spec.period = 8 * WW_SECOND;
	spec.missed = WW_MISSED_SKIP;
	spec.skip = 7 * WW_SECOND;
	spec.backoff = 6 * WW_SECOND;
	spec.backoff_max = 500 * WW_SECOND;
	spec.priority = 4;
	spec.attempts = 3;
	uint64_t id = put_job(&world, &spec);
	struct ww_job_ref ref = {.tube = "mail", .key = spec.key, .key_length = 3, .version = 1};
	OK(ww_jobs_peek(world.jobs, &ref, &info, &body));
	ck_assert_uint_eq(info.id, id);
	ck_assert_int_eq(info.state, WW_JOB_DELAYED);
	ck_assert_uint_eq(info.flags, 0);
	ck_assert_uint_eq(info.priority, 4);
	ck_assert_uint_eq(info.attempts, 3);
	ck_assert_str_eq(info.tube, "mail");
	ck_assert_uint_eq(info.key_length, 3);
	ck_assert_mem_eq(info.key, spec.key, 3);
	ck_assert_ptr_eq(info.body, body);
	ck_assert_uint_eq(info.body_length, 8);
	ck_assert_mem_eq(body, "the body", 8);
	ww_jobs_free(world.jobs, body);
	ck_assert_uint_gt(info.created, 0);
	ck_assert_uint_eq(info.due, world_now(&world) + spec.due);
	ck_assert_uint_eq(info.left, spec.due);
	ck_assert_uint_eq(info.delay, spec.due);
	ck_assert_uint_eq(info.run, spec.run);
	ck_assert_uint_eq(info.period, spec.period);
	ck_assert_uint_eq(info.skip, spec.skip);
	ck_assert_uint_eq(info.backoff, spec.backoff);
	ck_assert_uint_eq(info.backoff_max, spec.backoff_max);
	ck_assert_int_eq(info.missed, WW_MISSED_SKIP);
	ck_assert_uint_eq(
	    info.token | info.reserves | info.timeouts | info.releases | info.buries | info.kicks | info.tries, 0);
	ck_assert_str_eq(info.error, "");
	ref.version = 2;
	ck_assert_int_eq(ww_jobs_peek(world.jobs, &ref, &info, &body), WW_ESTALE);
	ref.tube = "other";
	ck_assert_int_eq(ww_jobs_peek(world.jobs, &ref, &info, &body), WW_ENOTFOUND);
	world_end(&world);
}
END_TEST

START_TEST(a_lease_shows_its_job)
{
	const char *const tube = "mail";
	struct ww_lease lease;

	world_make(&world, _i);
	struct ww_job_spec spec = spec_of("the body");
	spec.tube = tube;
	spec.key = "k\0\xff";
	spec.key_length = 3;
	spec.due = WW_SECOND;
	spec.run = 9 * WW_SECOND;
	spec.backoff = 6 * WW_SECOND;
	spec.priority = 4;
	spec.attempts = 3;
	uint64_t id = put_job(&world, &spec);
	uint64_t created = info_of(&world, id).created;
	ck_assert_uint_gt(created, 0);
	world_pass(&world, 3 * WW_SECOND);
	ck_assert_int_eq(ww_jobs_reserve(world.jobs, &tube, 1, &lease), 1);
	ck_assert_uint_eq(lease.id, id);
	ck_assert_uint_eq(lease.token, info_of(&world, id).token);
	ck_assert_uint_eq(lease.ends, world_now(&world) + spec.run);
	ck_assert_uint_eq(lease.late, 2 * WW_SECOND);
	ck_assert_uint_eq(lease.missed, 0);
	ck_assert_uint_eq(lease.body_length, spec.body_length);
	ck_assert_mem_eq(lease.body, spec.body, spec.body_length);
	ck_assert_uint_eq(lease.backoff, spec.backoff);
	ck_assert_uint_eq(lease.created, created);
	ck_assert_uint_eq(lease.scheduled, 0);
	ck_assert_uint_eq(lease.attempts, 3);
	ck_assert_uint_eq(lease.kicks, 0);
	ck_assert_uint_eq(lease.priority, 4);
	ck_assert_str_eq(lease.tube, tube);
	ck_assert_uint_eq(lease.key_length, 3);
	ck_assert_mem_eq(lease.key, spec.key, 3);
	ww_jobs_free(world.jobs, lease.body);
	/* A job that was leased before it is due is not late, and a kick is counted. */
	ck_assert_int_eq(ww_jobs_release(world.jobs, id, lease.token, 5, WW_SECOND, NULL), 0);
	OK(ww_jobs_reserve_job(world.jobs, id, &lease));
	ww_jobs_free(world.jobs, lease.body);
	ck_assert_uint_eq(lease.late, 0);
	ck_assert_uint_eq(lease.attempt, 2);
	ck_assert_uint_eq(lease.priority, 5);
	OK(ww_jobs_bury(world.jobs, id, lease.token, 5, NULL));
	OK(ww_jobs_kick_job(world.jobs, id));
	ck_assert_int_eq(ww_jobs_reserve(world.jobs, &tube, 1, &lease), 1);
	ww_jobs_free(world.jobs, lease.body);
	ck_assert_uint_eq(lease.kicks, 1);
	ck_assert_uint_eq(lease.attempt, 1);
	world_end(&world);
}
END_TEST

START_TEST(jobs_are_there_after_a_restart)
{
	struct ww_job_info before[3];
	struct ww_job_info after;

	NEEDS(KIND_KEEPS);
	world_make(&world, _i);
	uint64_t ids[] = {put_at("mail", 0, 5), put_at("mail", 70 * WW_SECOND, 6), bury_one("mail")};
	for (int i = 0; i < 3; i++)
		before[i] = info_of(&world, ids[i]);
	world_reopen(&world);
	for (int i = 0; i < 3; i++) {
		after = info_of(&world, ids[i]);
		ck_assert_int_eq(after.state, before[i].state);
		ck_assert_uint_eq(after.version, before[i].version);
		ck_assert_uint_eq(after.priority, before[i].priority);
		ck_assert_uint_eq(after.due, before[i].due);
		ck_assert_uint_eq(after.left, before[i].left);
		ck_assert_uint_eq(after.created, before[i].created);
		ck_assert_uint_eq(after.buries, before[i].buries);
		ck_assert_str_eq(after.error, before[i].error);
		ck_assert_str_eq(after.tube, before[i].tube);
	}
	world_check(&world);
	world_end(&world);
}
END_TEST

START_TEST(the_next_job_of_a_tube_has_the_state_that_was_asked_for)
{
	struct ww_job_info info;
	struct ww_lease lease;
	void *body;

	world_make(&world, _i);
	(void)put_at("mail", 0, 5);
	uint64_t ready = put_at("mail", 0, 4);
	(void)put_at("mail", 60 * WW_SECOND, 0);
	uint64_t delayed = put_at("mail", 50 * WW_SECOND, 9);
	uint64_t buried = bury_one("mail");
	world_pass(&world, MS);
	(void)bury_one("mail");
	(void)put_at(WW_TUBE_DEFAULT, 0, 0);
	OK(ww_jobs_peek_next(world.jobs, "mail", WW_JOB_READY, &info, &body));
	ck_assert_uint_eq(info.id, ready);
	ck_assert_mem_eq(body, "mail", 4);
	ww_jobs_free(world.jobs, body);
	OK(ww_jobs_peek_next(world.jobs, "mail", WW_JOB_DELAYED, &info, NULL));
	ck_assert_uint_eq(info.id, delayed);
	OK(ww_jobs_peek_next(world.jobs, "mail", WW_JOB_BURIED, &info, NULL));
	ck_assert_uint_eq(info.id, buried);
	ck_assert_uint_eq(info.left, 0);
	ck_assert_int_eq(ww_jobs_peek_next(world.jobs, WW_TUBE_DEFAULT, WW_JOB_DELAYED, &info, NULL), WW_ENOTFOUND);
	ck_assert_int_eq(ww_jobs_peek_next(world.jobs, WW_TUBE_DEFAULT, WW_JOB_BURIED, &info, NULL), WW_ENOTFOUND);
	ck_assert_int_eq(ww_jobs_peek_next(world.jobs, "nowhere", WW_JOB_READY, &info, NULL), WW_ENOTFOUND);
	ck_assert_int_eq(ww_jobs_reserve(world.jobs, &both[1], 1, &lease), 1);
	ww_jobs_free(world.jobs, lease.body);
	ck_assert_int_eq(ww_jobs_peek_next(world.jobs, "mail", WW_JOB_RESERVED, &info, NULL), WW_ENOTFOUND);
	ck_assert_int_eq(ww_jobs_peek_next(world.jobs, "mail", WW_JOB_ENDED, &info, NULL), WW_EINVAL);
	ck_assert_int_eq(ww_jobs_peek_next(world.jobs, "mail", (enum ww_job_state)0, &info, NULL), WW_EINVAL);
	world_end(&world);
}
END_TEST

static int count_info(const struct ww_job_info *info, void *context)
{
	size_t *counts = context;

	counts[info->state]++;
	return 0;
}

static void expect_listed(
    const struct ww_job_filter *filter, size_t delayed, size_t ready, size_t reserved, size_t buried)
{
	size_t counts[5] = {0};

	OK(ww_jobs_list(world.jobs, filter, 100, count_info, counts, NULL));
	ck_assert_uint_eq(counts[WW_JOB_DELAYED], delayed);
	ck_assert_uint_eq(counts[WW_JOB_READY], ready);
	ck_assert_uint_eq(counts[WW_JOB_RESERVED], reserved);
	ck_assert_uint_eq(counts[WW_JOB_BURIED], buried);
}

START_TEST(a_list_has_the_states_and_times_of_its_filter)
{
	struct ww_job_filter filter = {0};
	struct ww_lease lease;

	world_make(&world, _i);
	uint64_t now = world_now(&world);
	(void)bury_one("mail");
	for (uint64_t i = 1; i <= 4; i++)
		(void)put_at(both[i % 2], i * 10 * WW_SECOND, 0);
	(void)put_at("mail", 0, 1);
	(void)put_at("mail", 0, 0);
	ck_assert_int_eq(ww_jobs_reserve(world.jobs, both, 2, &lease), 1);
	ww_jobs_free(world.jobs, lease.body);
	expect_listed(&filter, 4, 1, 1, 1);
	filter.states = 1u << WW_JOB_DELAYED | 1u << WW_JOB_BURIED;
	expect_listed(&filter, 4, 0, 0, 1);
	filter.tube = "mail";
	expect_listed(&filter, 2, 0, 0, 1);
	/* A buried job is never due. The span includes `from` and excludes `to`. */
	filter = (struct ww_job_filter){.from = now + 20 * WW_SECOND};
	expect_listed(&filter, 3, 0, 0, 0);
	filter.to = now + 40 * WW_SECOND;
	expect_listed(&filter, 2, 0, 0, 0);
	filter.from = 0;
	expect_listed(&filter, 3, 1, 1, 0);
	world_end(&world);
}
END_TEST

START_TEST(a_list_takes_a_whole_tube_and_a_whole_prefix)
{
	struct ww_job_filter filter = {.tube = "mail"};
	struct ww_job_spec spec = spec_of("x");

	world_make(&world, _i);
	for (int i = 0; i < 2; i++) {
		spec.tube = i ? "mail" : "mails";
		spec.key = "key-1";
		spec.key_length = 5;
		(void)put_job(&world, &spec);
		spec.key_length = 0;
		(void)put_job(&world, &spec);
	}
	expect_listed(&filter, 0, 2, 0, 0);
	filter.prefix = "key-";
	filter.prefix_length = 4;
	expect_listed(&filter, 0, 1, 0, 0);
	/* What lies behind a key is no part of it. */
	filter.prefix = "key-1\0";
	filter.prefix_length = 6;
	expect_listed(&filter, 0, 0, 0, 0);
	filter.prefix = "\0";
	filter.prefix_length = 1;
	expect_listed(&filter, 0, 0, 0, 0);
	world_end(&world);
}
END_TEST

static int stop_at_third(const struct ww_job_info *info, void *context)
{
	int *calls = context;

	ck_assert_mem_eq(info->body, info->tube, info->body_length);
	return ++*calls == 3 ? 77 : 0;
}

static int stop_at_tube(const struct ww_tube_stats *tube, void *context)
{
	(void)tube;
	(void)context;
	return -1000;
}

START_TEST(a_list_ends_when_its_function_ends_it)
{
	struct ww_job_filter filter = {0};
	int calls = 0;

	world_make(&world, _i);
	for (int i = 0; i < 5; i++)
		(void)put_at("mail", 0, 0);
	ck_assert_int_eq(ww_jobs_list(world.jobs, &filter, 10, stop_at_third, &calls, NULL), 77);
	ck_assert_int_eq(calls, 3);
	OK(ww_jobs_list(world.jobs, &filter, 1, stop_at_third, &calls, NULL));
	ck_assert_int_eq(calls, 4);
	ck_assert_int_eq(ww_jobs_tubes(world.jobs, stop_at_tube, NULL), -1000);
	world_end(&world);
}
END_TEST

enum { MANY = 700 };

struct page {
	uint64_t ids[MANY];
	size_t count;
	size_t most;
};

static int note_page(const struct ww_job_info *info, void *context)
{
	struct page *page = context;

	ck_assert_uint_lt(page->count, page->most);
	page->ids[page->count++] = info->id;
	return 0;
}

/* List all jobs in pages of `limit`, and cancel each listed job except some. Returns how many of those were listed. */
static size_t list_and_cancel(size_t most, const uint64_t *ids, unsigned char *times)
{
	struct ww_job_filter filter = {0};
	struct page page = {.most = most};
	size_t kept = 0;

	do {
		page.count = 0;
		OK(ww_jobs_list(world.jobs, &filter, most, note_page, &page, &filter.after));
		for (size_t i = 0; i < page.count; i++) {
			struct ww_job_ref ref = {.id = page.ids[i]};
			size_t which = 0;
			while (which < MANY && ids[which] != ref.id)
				which++;
			ck_assert_uint_lt(which, MANY);
			kept += which % 10 == 0 && !times[which];
			times[which]++;
			if (which % 10)
				ck_assert_int_eq(ww_jobs_cancel(world.jobs, &ref), 1);
		}
	} while (filter.after);
	return kept;
}

START_TEST(a_list_in_pages_has_each_job_that_stays_while_others_go)
{
	static const size_t sizes[] = {1, 2, 5, 500, 40};
	enum { SIZES = sizeof sizes / sizeof *sizes };
	uint64_t ids[MANY];

	for (int s = SIZES - seed_rounds(SIZES); s < SIZES; s++) {
		unsigned char times[MANY] = {0};
		world_make(&world, _i);
		for (size_t i = 0; i < MANY; i++)
			ids[i] = put_at("mail", 0, 0);
		ck_assert_uint_eq(list_and_cancel(sizes[s], ids, times), MANY / 10);
		for (size_t i = 0; i < MANY && world_promises(&world, KIND_LISTS_IN_ORDER); i++)
			ck_assert_uint_eq(times[i], 1);
		world_end(&world);
	}
}
END_TEST

struct seen {
	size_t count;
	struct ww_tube_stats tubes[4];
};

static int see_tube(const struct ww_tube_stats *tube, void *context)
{
	struct seen *seen = context;

	ck_assert_uint_lt(seen->count, 4);
	seen->tubes[seen->count++] = *tube;
	return 0;
}

/* Make jobs of each state in one tube, a reserved one in another, and a third tube whose only job is gone. */
static void fill_tubes(void)
{
	static const char *const empty[] = {"empty"};
	struct ww_lease lease;

	(void)put_at("mail", 60 * WW_SECOND, 0);
	(void)put_at("mail", 0, 2000);
	(void)put_at("mail", 0, 1024);
	(void)put_at("mail", 0, 1023);
	(void)bury_one("mail");
	(void)put_at(WW_TUBE_DEFAULT, 0, 0);
	(void)reserve_job(&world);
	(void)put_at("empty", 0, 0);
	ck_assert_int_eq(ww_jobs_reserve(world.jobs, empty, 1, &lease), 1);
	ww_jobs_free(world.jobs, lease.body);
	OK(ww_jobs_finish(world.jobs, lease.id, lease.token));
}

START_TEST(a_tube_counts_its_jobs_by_state)
{
	struct seen seen = {0};
	struct ww_tube_stats mail;

	world_make(&world, _i);
	fill_tubes();
	OK(ww_jobs_tube(world.jobs, "mail", &mail));
	ck_assert_str_eq(mail.name, "mail");
	ck_assert_uint_eq(mail.delayed, 1);
	ck_assert_uint_eq(mail.ready, 3);
	ck_assert_uint_eq(mail.urgent, 1);
	ck_assert_uint_eq(mail.reserved, 0);
	ck_assert_uint_eq(mail.buried, 1);
	ck_assert_uint_eq(mail.puts, 5);
	ck_assert_uint_eq(mail.finished, 0);
	ck_assert_int_eq(ww_jobs_tube(world.jobs, "nowhere", &mail), WW_ENOTFOUND);
	OK(ww_jobs_tubes(world.jobs, see_tube, &seen));
	ck_assert_uint_eq(seen.count, 2);
	for (size_t i = 0; i < 2; i++)
		ck_assert_uint_eq(seen.tubes[i].puts, strcmp(seen.tubes[i].name, "mail") == 0 ? 5 : 1);
	world_end(&world);
}
END_TEST

START_TEST(statistics_sum_all_tubes)
{
	struct ww_jobs_stats stats;

	world_make(&world, _i);
	fill_tubes();
	world_pass(&world, 60 * WW_SECOND);
	OK(ww_jobs_stats(world.jobs, &stats));
	ck_assert_str_eq(stats.all.name, "");
	ck_assert_uint_eq(stats.all.delayed, 0);
	ck_assert_uint_eq(stats.all.ready, 5);
	ck_assert_uint_eq(stats.all.urgent, 3);
	ck_assert_uint_eq(stats.all.reserved, 0);
	ck_assert_uint_eq(stats.all.buried, 1);
	ck_assert_uint_eq(stats.all.puts, 7);
	ck_assert_uint_eq(stats.all.finished, 1);
	ck_assert_uint_eq(stats.tubes, 2);
	ck_assert_uint_eq(stats.timeouts, 1);
	ck_assert_uint_eq(stats.accepted, 7);
	ck_assert_uint_eq(stats.ended, 1);
	ck_assert_uint_eq(stats.oldest, 60 * WW_SECOND);
	world_end(&world);
}
END_TEST

START_TEST(a_forecast_of_an_unknown_tube_is_empty)
{
	uint64_t counts[3] = {9, 9, 9};

	world_make(&world, _i);
	(void)put_at("mail", 0, 0);
	OK(ww_jobs_forecast(world.jobs, "nowhere", WW_SECOND, counts, 3));
	for (int i = 0; i < 3; i++)
		ck_assert_uint_eq(counts[i], 0);
	/* Due jobs are in the first span. Jobs after the last span are in none. */
	(void)put_at("mail", 5 * WW_SECOND, 0);
	OK(ww_jobs_forecast(world.jobs, "mail", WW_SECOND, counts, 3));
	ck_assert_uint_eq(counts[0], 1);
	ck_assert_uint_eq(counts[1] + counts[2], 0);
	world_end(&world);
}
END_TEST

static int count_run(const struct ww_job_run *run, void *context)
{
	(void)run;
	(void)context;
	return 0;
}

/* Every call that takes a tube, with a name that is missing, empty or too long. */
START_TEST(an_impossible_tube_name_is_refused)
{
	char too_long[WW_TUBE_MAX + 2];
	const char *const names[] = {NULL, "", too_long};
	struct ww_job_filter filter = {0};
	struct ww_tube_stats stats;
	struct ww_job_info info;
	struct ww_lease lease;
	uint64_t count;

	memset(too_long, 'n', sizeof too_long);
	too_long[sizeof too_long - 1] = 0;
	world_make(&world, _i);
	for (size_t i = 0; i < 3; i++) {
		const char *const tubes[] = {WW_TUBE_DEFAULT, names[i]};
		struct ww_job_ref ref = {.tube = names[i], .key = "k", .key_length = 1};
		filter.tube = names[i];
		const struct ww_run_filter runs = {.tube = names[i]};
		/* Here NULL is allowed: it means any tube, or for a key the default tube. */
		int any = names[i] ? WW_EINVAL : WW_OK;
		ck_assert_int_eq(ww_jobs_list(world.jobs, &filter, 1, count_info, NULL, NULL), any);
		ck_assert_int_eq(ww_jobs_forecast(world.jobs, names[i], 1, &count, 1), any);
		ck_assert_int_eq(ww_jobs_history(world.jobs, &runs, 1, count_run, NULL, NULL), any);
		any = names[i] ? WW_EINVAL : WW_ENOTFOUND;
		ck_assert_int_eq(ww_jobs_peek(world.jobs, &ref, &info, NULL), any);
		ck_assert_int_eq(ww_jobs_cancel(world.jobs, &ref), any);
		ck_assert_int_eq(ww_jobs_move(world.jobs, &ref, 0, 0, NULL), any);
		ck_assert_int_eq(ww_jobs_reserve(world.jobs, tubes, 2, &lease), WW_EINVAL);
		ck_assert_int_eq(ww_jobs_wait(world.jobs, tubes, 2, 0, &lease), WW_EINVAL);
		ck_assert_int_eq(ww_jobs_kick(world.jobs, names[i], 1, &count), WW_EINVAL);
		ck_assert_int_eq(ww_jobs_pause(world.jobs, names[i], 1), WW_EINVAL);
		ck_assert_int_eq(ww_jobs_tube(world.jobs, names[i], &stats), WW_EINVAL);
		ck_assert_int_eq(ww_jobs_peek_next(world.jobs, names[i], WW_JOB_READY, &info, NULL), WW_EINVAL);
	}
	world_end(&world);
}
END_TEST

START_TEST(null_is_refused_where_an_object_is_needed)
{
	struct ww_job_filter filter = {0};
	struct ww_job_filter no_prefix = {.prefix_length = 1};
	struct ww_job_ref ref = {.id = 1};
	struct ww_job_spec spec = spec_of("x");
	struct ww_job_put put = {.spec = &spec};
	struct ww_job_end end = {.id = 1};
	struct ww_tube_stats stats;
	struct ww_job_info info;
	struct ww_lease lease;
	uint64_t count;

	world_make(&world, _i);
	for (unsigned without = 0; without < 2; without++) {
		struct ww_jobs *jobs = without ? NULL : world.jobs;
		ck_assert_int_eq(ww_jobs_now(jobs, 0, without ? &count : NULL), WW_EINVAL);
		ck_assert_int_eq(ww_jobs_now(jobs, WW_JOB_AT, &count), WW_EINVAL);
		ck_assert_int_eq(ww_jobs_move(jobs, without ? &ref : NULL, 0, 0, NULL), WW_EINVAL);
		ck_assert_int_eq(ww_jobs_cancel(jobs, without ? &ref : NULL), WW_EINVAL);
		ck_assert_int_eq(ww_jobs_reserve(jobs, both, 2, without ? &lease : NULL), WW_EINVAL);
		ck_assert_int_eq(ww_jobs_reserve(jobs, without ? both : NULL, 2, &lease), WW_EINVAL);
		ck_assert_int_eq(ww_jobs_wait(jobs, without ? both : NULL, 2, 0, &lease), WW_EINVAL);
		ck_assert_int_eq(ww_jobs_reserve_job(jobs, 1, without ? &lease : NULL), WW_EINVAL);
		ck_assert_int_eq(ww_jobs_peek(jobs, &ref, without ? &info : NULL, NULL), WW_EINVAL);
		ck_assert_int_eq(ww_jobs_state(jobs, 1, NULL), WW_EINVAL);
		ck_assert_int_eq(ww_jobs_list(jobs, &filter, without, count_info, NULL, NULL), WW_EINVAL);
		ck_assert_int_eq(ww_jobs_list(jobs, &filter, 1, NULL, NULL, NULL), WW_EINVAL);
		ck_assert_int_eq(ww_jobs_list(jobs, &no_prefix, 1, count_info, NULL, NULL), WW_EINVAL);
		ck_assert_int_eq(ww_jobs_forecast(jobs, NULL, 0, &count, 1), WW_EINVAL);
		ck_assert_int_eq(ww_jobs_forecast(jobs, NULL, 1, without ? &count : NULL, 1), WW_EINVAL);
		ck_assert_int_eq(
		    ww_jobs_peek_next(jobs, "mail", WW_JOB_READY, without ? &info : NULL, NULL), WW_EINVAL);
		ck_assert_int_eq(ww_jobs_tube(jobs, "mail", without ? &stats : NULL), WW_EINVAL);
		ck_assert_int_eq(ww_jobs_put(jobs, without ? &spec : NULL, NULL, NULL), WW_EINVAL);
		ck_assert_int_eq(ww_jobs_put_many(jobs, without ? &put : NULL, 1), WW_EINVAL);
		ck_assert_int_eq(ww_jobs_finish_many(jobs, without ? &end : NULL, 1), WW_EINVAL);
		ck_assert_int_eq(ww_jobs_stats(jobs, NULL), WW_EINVAL);
		ck_assert_int_eq(ww_jobs_tubes(jobs, NULL, NULL), WW_EINVAL);
		ww_jobs_free(jobs, NULL);
	}
	ck_assert_int_eq(ww_jobs_reserve(world.jobs, NULL, 0, &lease), 0);
	world_end(&world);
}
END_TEST

START_TEST(without_a_store_calls_are_refused)
{
	ck_assert_int_eq(ww_jobs_begin(NULL), WW_EINVAL);
	ck_assert_int_eq(ww_jobs_commit(NULL), WW_EINVAL);
	ck_assert_int_eq(ww_jobs_finish(NULL, 1, 1), WW_EINVAL);
	ck_assert_int_eq(ww_jobs_release(NULL, 1, 1, 0, 0, NULL), WW_EINVAL);
	ck_assert_int_eq(ww_jobs_bury(NULL, 1, 1, 0, NULL), WW_EINVAL);
	ck_assert_int_eq(ww_jobs_touch(NULL, 1, 1, NULL), WW_EINVAL);
	ck_assert_int_eq(ww_jobs_kick(NULL, "mail", 1, NULL), WW_EINVAL);
	ck_assert_int_eq(ww_jobs_kick_job(NULL, 1), WW_EINVAL);
	ck_assert_int_eq(ww_jobs_pause(NULL, "mail", 1), WW_EINVAL);
	ck_assert_int_eq(ww_jobs_check(NULL, NULL, NULL), WW_EINVAL);
	OK(ww_jobs_close(NULL));
}
END_TEST

KINDS_MAIN("jobs/looks", a_peek_shows_everything_that_was_put, a_lease_shows_its_job, jobs_are_there_after_a_restart,
    the_next_job_of_a_tube_has_the_state_that_was_asked_for, a_list_has_the_states_and_times_of_its_filter,
    a_list_takes_a_whole_tube_and_a_whole_prefix, a_list_ends_when_its_function_ends_it,
    a_list_in_pages_has_each_job_that_stays_while_others_go, a_tube_counts_its_jobs_by_state, statistics_sum_all_tubes,
    a_forecast_of_an_unknown_tube_is_empty, an_impossible_tube_name_is_refused,
    null_is_refused_where_an_object_is_needed, without_a_store_calls_are_refused)
