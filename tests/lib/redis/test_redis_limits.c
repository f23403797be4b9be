/* Limits in Redis where answers are lost, and where much runs already when a limit is set. */
/* tier: check */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/redis/lossy.h"
#include "tests/support/redis/redis_server.h"
#include "tests/support/suite.h"
#include "weekwheel/jobs_redis.h"

enum { SHARDS = 3, MOST = 2000 };

static struct redis_server server;
static struct lossy lossy;
static struct ww_jobs *jobs;
static uint64_t now;
static struct ww_lease leases[MOST];
static const char *const here[] = {WW_TUBE_DEFAULT};
static const struct ww_limit_ref whole = {.tube = WW_TUBE_DEFAULT};

static struct ww_jobs_redis_config config;
/* What another process does while this one makes a call. */
static void (*meanwhile)(void);

static uint64_t tell_time(void *context)
{
	if (context && meanwhile)
		meanwhile();
	return now;
}

/* Returns 0 if Redis is not installed. */
static int begin(void)
{
	static char url[64];

	if (!redis_server_begin(&server, url, sizeof url))
		return 0;
	meanwhile = NULL;
	lossy_start(&lossy, server.port);
	(void)snprintf(url, sizeof url, "redis://127.0.0.1:%d", lossy.port);
	OK(ww_jobs_redis_config_default(&config));
	config.url = url;
	config.shards = SHARDS;
	config.now = tell_time;
	config.context = &jobs;
	now = 1000000 * WW_SECOND;
	OK(ww_jobs_redis_open(&jobs, &config));
	return 1;
}

static void end(void)
{
	OK(ww_jobs_close(jobs));
	lossy_stop(&lossy);
	redis_server_stop(&server);
}

static void set_limit(uint64_t running, uint64_t starts, uint64_t burst)
{
	struct ww_limit limit = {running, starts, WW_SECOND, burst, 1};

	OK(ww_jobs_limit_set(jobs, &whole, &limit));
}

static void put(unsigned count, const char *group)
{
	struct ww_job_spec spec;

	OK(ww_job_spec_default(&spec));
	spec.run = 3600 * WW_SECOND;
	spec.group = group;
	spec.group_length = strlen(group);
	for (unsigned i = 0; i < count; i++)
		OK(ww_jobs_put(jobs, &spec, NULL, NULL));
}

static unsigned start(size_t most)
{
	int got = ww_jobs_reserve_many(jobs, here, 1, leases, most);

	ck_assert_int_ge(got, 0);
	for (int i = 0; i < got; i++)
		ww_jobs_free(jobs, leases[i].body);
	return (unsigned)got;
}

static uint64_t running(void)
{
	struct ww_limit_info info;

	OK(ww_jobs_limit_get(jobs, &whole, &info));
	return info.running;
}

/* From then on Redis knows the scripts, so that words are not those of a script, and it does what it is asked. */
static void warm(void)
{
	OK(ww_jobs_release(jobs, leases[0].id, leases[0].token, 1024, 0, NULL));
	ck_assert_uint_eq(start(1), 1);
}

/* Nobody knows that the first job has ended, until the home of the limit has to refuse somebody. */
static void lose_an_end(void)
{
	warm();
	lossy_lose(&lossy, "release", LOSSY_ANSWER);
	ck_assert_int_eq(ww_jobs_release(jobs, leases[0].id, leases[0].token, 1024, 0, NULL), WW_EIO);
	ck_assert_uint_eq(lossy_lost(&lossy), 1);
}

START_TEST(a_lost_end_of_a_job_does_not_keep_its_place)
{
	if (!begin())
		return;
	set_limit(1, 0, 1);
	put(3, "");
	ck_assert_uint_eq(start(1), 1);
	lose_an_end();
	ck_assert_uint_eq(running(), 1);
	/* Whoever is refused has the shards asked. */
	unsigned got = start(1);
	ck_assert_uint_eq(got ? got : start(1), 1);
	/* This one runs. */
	for (int i = 0; i < 4; i++) {
		ck_assert_uint_eq(start(1), 0);
		now += 6 * WW_SECOND;
	}
	ck_assert_uint_eq(running(), 1);
	end();
}
END_TEST

START_TEST(nor_does_it_keep_that_of_its_group)
{
	const struct ww_limit_ref each = {.tube = WW_TUBE_DEFAULT, .each = 1};
	const struct ww_limit one = {1, 0, WW_SECOND, 1, 1};

	if (!begin())
		return;
	OK(ww_jobs_limit_set(jobs, &each, &one));
	put(3, "a");
	ck_assert_uint_eq(start(1), 1);
	lose_an_end();
	unsigned got = start(1);
	ck_assert_uint_eq(got ? got : start(1), 1);
	for (int i = 0; i < 4; i++) {
		ck_assert_uint_eq(start(1), 0);
		now += 6 * WW_SECOND;
	}
	end();
}
END_TEST

START_TEST(a_lease_counts_although_the_home_was_not_heard)
{
	if (!begin())
		return;
	set_limit(1, 0, 1);
	put(2, "");
	ck_assert_uint_eq(start(1), 1);
	warm();
	OK(ww_jobs_finish(jobs, leases[0].id, leases[0].token));
	put(1, "");
	lossy_lose(&lossy, "settle", LOSSY_REQUEST);
	ck_assert_uint_eq(start(1), 1);
	ck_assert_uint_eq(lossy_lost(&lossy), 1);
	/* A permit that nobody has settled ends long before the lease. */
	now += 600 * WW_SECOND;
	ck_assert_uint_eq(running(), 1);
	ck_assert_uint_eq(start(1), 0);
	end();
}
END_TEST

START_TEST(permits_are_given_back_once_although_it_is_said_twice)
{
	if (!begin())
		return;
	set_limit(0, 10, 5);
	put(2, "");
	ck_assert_uint_eq(start(1), 1);
	lossy_lose(&lossy, "spare", LOSSY_ANSWER);
	ck_assert_uint_eq(start(4), 1);
	ck_assert_uint_eq(lossy_lost(&lossy), 1);
	put(9, "");
	ck_assert_uint_eq(start(9), 3);
	end();
}
END_TEST

/* ---- Another process between two calls of this one */

enum { JOBS = 2 * SHARDS };

static const struct ww_limit_ref group_a = {.tube = WW_TUBE_DEFAULT, .group = "a", .group_length = 1};
static struct ww_jobs *other;
static uint64_t ids[JOBS];
static int kept;

/* As soon as this process has its permit, the other one is refused everywhere, and cancels all jobs but one. */
static void cancel_all_but_one(void)
{
	struct ww_limit_info info;
	struct ww_lease lease;

	OK(ww_jobs_limit_get(other, &group_a, &info));
	if (!info.running)
		return;
	meanwhile = NULL;
	ck_assert_int_eq(ww_jobs_reserve(other, here, 1, &lease), 0);
	for (int i = 0; i < JOBS; i++) {
		struct ww_job_ref ref = {.id = ids[i]};
		if (i != kept)
			ck_assert_int_eq(ww_jobs_cancel(other, &ref), 1);
	}
}

START_TEST(a_permit_without_a_job_lets_another_shard_go_on)
{
	const struct ww_limit one = {1, 0, WW_SECOND, 1, 1};
	struct ww_job_spec spec;

	if (!begin())
		return;
	config.context = NULL;
	OK(ww_jobs_redis_open(&other, &config));
	OK(ww_jobs_limit_set(jobs, &group_a, &one));
	OK(ww_job_spec_default(&spec));
	spec.group = group_a.group;
	spec.group_length = 1;
	for (kept = 0; kept < JOBS; kept++) {
		for (int i = 0; i < JOBS; i++)
			OK(ww_jobs_put(jobs, &spec, &ids[i], NULL));
		meanwhile = cancel_all_but_one;
		ck_assert_uint_eq(start(1), 1);
		ck_assert(!meanwhile);
		ck_assert_uint_eq(leases[0].id, ids[kept]);
		OK(ww_jobs_finish(jobs, leases[0].id, leases[0].token));
	}
	OK(ww_jobs_close(other));
	end();
}
END_TEST

START_TEST(a_limit_counts_all_jobs_that_run_already)
{
	const struct ww_limit_ref b = {.tube = WW_TUBE_DEFAULT, .group = "b", .group_length = 1};
	const struct ww_limit few = {700, 0, WW_SECOND, 1, 1};
	struct ww_limit_info info;

	if (!begin())
		return;
	/* More than are read at once end at one time, and as many at others. */
	for (int i = 0; i < 2; i++) {
		put(900, i ? "b" : "");
		for (unsigned left = 900; left; now += (uint64_t)i)
			left -= start(i ? 20 : 900);
	}
	set_limit(5, 0, 1);
	ck_assert_uint_eq(running(), 1800);
	OK(ww_jobs_limit_set(jobs, &b, &few));
	OK(ww_jobs_limit_get(jobs, &b, &info));
	ck_assert_uint_eq(info.running, 900);
	/* It may be said again. */
	set_limit(5, 0, 1);
	ck_assert_uint_eq(running(), 1800);
	end();
}
END_TEST

/* ---- A mere rate: the home counts starts, not jobs */

START_TEST(a_mere_rate_needs_no_word_for_each_job)
{
	if (!begin())
		return;
	set_limit(0, 1000, 9);
	put(3, "");
	ck_assert_uint_eq(start(1), 1);
	warm();
	lossy_lose(&lossy, "settle", LOSSY_REQUEST);
	ck_assert_uint_eq(start(2), 2);
	ck_assert_uint_eq(running(), 3);
	lossy_lose(&lossy, "free", LOSSY_REQUEST);
	OK(ww_jobs_finish(jobs, leases[0].id, leases[0].token));
	ck_assert_uint_eq(lossy_lost(&lossy), 0);
	ck_assert_uint_eq(running(), 2);
	end();
}
END_TEST

START_TEST(a_start_that_was_none_is_given_back_once)
{
	if (!begin())
		return;
	set_limit(0, 10, 5);
	put(9, "");
	ck_assert_uint_eq(start(2), 2);
	OK(ww_jobs_return(jobs, leases[0].id, leases[0].token));
	ck_assert_uint_eq(start(2), 2);
	/* Whether Redis has heard it is not known. Said twice, it would let one more start. */
	lossy_lose(&lossy, "spare", LOSSY_ANSWER);
	OK(ww_jobs_return(jobs, leases[0].id, leases[0].token));
	ck_assert_uint_eq(lossy_lost(&lossy), 1);
	ck_assert_uint_eq(start(9), 3);
	end();
}
END_TEST

START_TEST(a_number_after_a_rate_counts_what_runs)
{
	if (!begin())
		return;
	put(9, "");
	set_limit(5, 0, 1);
	ck_assert_uint_eq(start(2), 2);
	set_limit(0, 1000, 9);
	for (int i = 0; i < 2; i++)
		OK(ww_jobs_finish(jobs, leases[i].id, leases[i].token));
	ck_assert_uint_eq(running(), 0);
	ck_assert_uint_eq(start(3), 3);
	set_limit(4, 0, 1);
	ck_assert_uint_eq(running(), 3);
	ck_assert_uint_eq(start(9), 1);
	ck_assert_uint_eq(running(), 4);
	end();
}
END_TEST

/* When the home tells those that it refused to try again, us from a time on. */
static uint64_t opening(uint64_t since)
{
	uint64_t time = 0;

	for (int i = 0; i < SHARDS; i++) {
		redisReply *reply = redis_server_ask(&server, "ZSCORE {weekwheel:%d}:w default", i);
		time += reply->str ? strtoull(reply->str, NULL, 10) : 0;
		freeReplyObject(reply);
	}
	return time - since / 1000;
}

START_TEST(a_rate_that_goes_on_refusing_opens_for_several)
{
	if (!begin())
		return;
	const uint64_t begin_ns = now;
	set_limit(0, 1000, 1);
	put(50, "");
	ck_assert_uint_eq(start(9), 1);
	ck_assert_uint_eq(opening(begin_ns), 1000);
	now += WW_MILLISECOND;
	ck_assert_uint_eq(start(9), 1);
	ck_assert_uint_eq(opening(begin_ns), 5000);
	/* Who asks meanwhile gets what the rate lets start, and does not put the opening off. */
	now += WW_MILLISECOND;
	ck_assert_uint_eq(start(1), 1);
	ck_assert_uint_eq(start(1), 0);
	now += 6 * WW_MILLISECOND;
	ck_assert_uint_eq(start(9), 6);
	/* After a rest, two that come at once are no crowd. */
	now = begin_ns + WW_SECOND;
	ck_assert_uint_eq(start(1), 1);
	ck_assert_uint_eq(start(1), 0);
	ck_assert_uint_eq(opening(begin_ns), 1001000);
	end();
}
END_TEST

TEST_MAIN("redis/limits", a_lost_end_of_a_job_does_not_keep_its_place, nor_does_it_keep_that_of_its_group,
    a_lease_counts_although_the_home_was_not_heard, permits_are_given_back_once_although_it_is_said_twice,
    a_permit_without_a_job_lets_another_shard_go_on, a_limit_counts_all_jobs_that_run_already,
    a_mere_rate_needs_no_word_for_each_job, a_start_that_was_none_is_given_back_once,
    a_number_after_a_rate_counts_what_runs, a_rate_that_goes_on_refusing_opens_for_several)
