/* A store in Redis that is looked at: not made, and its shards left to those who watch them. */
#include <string.h>

#include "redis/redis_server.h"
#include "support/suite.h"
#include "weekwheel/jobs_redis.h"

static struct redis_server server;
static char url[128];

static struct ww_jobs_redis_config config_of(uint32_t flags)
{
	struct ww_jobs_redis_config config;

	OK(ww_jobs_redis_config_default(&config));
	config.url = url;
	config.shards = 4;
	config.flags = flags;
	return config;
}

static int open_with(struct ww_jobs **jobs, uint32_t flags)
{
	struct ww_jobs_redis_config config = config_of(flags);

	return ww_jobs_redis_open(jobs, &config);
}

static int begin(void)
{
	if (!redis_server_is_there())
		return 0;
	redis_server_start(&server, NULL);
	redis_server_url(&server, url, sizeof url);
	return 1;
}

static void put_one(struct ww_jobs *jobs)
{
	struct ww_job_spec spec;

	OK(ww_job_spec_default(&spec));
	spec.body = "x";
	spec.body_length = 1;
	OK(ww_jobs_put(jobs, &spec, NULL, NULL));
}

START_TEST(one_that_is_not_there_is_not_made)
{
	struct ww_jobs *jobs = NULL;

	if (!begin())
		return;
	ck_assert_int_eq(open_with(&jobs, WW_REDIS_EXISTING), WW_ENOTFOUND);
	ck_assert_int_eq(open_with(&jobs, WW_REDIS_EXISTING | WW_REDIS_PASSIVE), WW_ENOTFOUND);
	ck_assert_int_eq(open_with(&jobs, 4), WW_EINVAL);
	ck_assert_int_eq(redis_server_number(&server, "DBSIZE"), 0);
	redis_server_stop(&server);
}
END_TEST

START_TEST(one_that_is_lost_is_not_made_anew)
{
	struct ww_jobs *maker = NULL;
	struct ww_jobs *jobs = NULL;
	struct ww_jobs_stats stats;

	if (!begin())
		return;
	OK(open_with(&maker, WW_REDIS_PASSIVE));
	OK(ww_jobs_close(maker));
	OK(open_with(&jobs, WW_REDIS_EXISTING | WW_REDIS_PASSIVE));
	redis_server_tell(&server, "FLUSHALL");
	ck_assert_int_eq(ww_jobs_stats(jobs, &stats), WW_ENOTFOUND);
	ck_assert_int_eq(redis_server_number(&server, "DBSIZE"), 0);
	OK(ww_jobs_close(jobs));
	redis_server_stop(&server);
}
END_TEST

START_TEST(who_looks_watches_nothing)
{
	const char *tubes[] = {WW_TUBE_DEFAULT};
	struct ww_jobs_redis_stats stats;
	struct ww_jobs *active = NULL;
	struct ww_jobs *passive = NULL;
	struct ww_lease lease;

	if (!begin())
		return;
	OK(open_with(&active, 0));
	OK(open_with(&passive, WW_REDIS_EXISTING | WW_REDIS_PASSIVE));
	OK(ww_jobs_redis_stats(passive, &stats));
	ck_assert_uint_eq(stats.watched, 0);
	ck_assert_uint_eq(stats.shards, 4);
	/* It hears nothing, and finds what is there. */
	ck_assert_int_eq(ww_jobs_wait(passive, tubes, 1, 3600 * WW_SECOND, &lease), 0);
	put_one(active);
	ck_assert_int_eq(ww_jobs_wait(passive, tubes, 1, 3600 * WW_SECOND, &lease), 1);
	ww_jobs_free(passive, lease.body);
	OK(ww_jobs_finish(passive, lease.id, lease.token));
	/* And what it puts is delivered by the other, which waits. */
	put_one(passive);
	ck_assert_int_eq(ww_jobs_wait(active, tubes, 1, 60 * WW_SECOND, &lease), 1);
	ww_jobs_free(active, lease.body);
	ck_assert_int_le(redis_server_number(&server, "ZCARD {weekwheel}:workers"), 1);
	OK(ww_jobs_close(passive));
	OK(ww_jobs_close(active));
	redis_server_stop(&server);
}
END_TEST

TEST_MAIN(
    "redis/passive", one_that_is_not_there_is_not_made, one_that_is_lost_is_not_made_anew, who_looks_watches_nothing)
