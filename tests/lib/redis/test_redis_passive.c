/* Passive handles of a store in Redis: they make no part of the store, and watch no shards. */
/* tier: check */
#include <stdio.h>
#include <string.h>

#include "tests/support/redis/redis_server.h"
#include "tests/support/suite.h"
#include "weekwheel/jobs_redis.h"

static struct redis_server server;
static char url[128];
static char said[1024]; /* the last report */
static int sayings;

static void note(const char *sentence, void *context)
{
	(void)context;
	(void)snprintf(said, sizeof said, "%s", sentence);
	sayings++;
}

static struct ww_jobs_redis_config config_of(uint32_t flags)
{
	struct ww_jobs_redis_config config;

	OK(ww_jobs_redis_config_default(&config));
	config.url = url;
	config.shards = 4;
	config.flags = flags;
	config.report = note;
	return config;
}

static int open_with(struct ww_jobs **jobs, uint32_t flags)
{
	struct ww_jobs_redis_config config = config_of(flags);

	return ww_jobs_redis_open(jobs, &config);
}

static void put_one(struct ww_jobs *jobs)
{
	struct ww_job_spec spec;

	OK(ww_job_spec_default(&spec));
	spec.body = "x";
	spec.body_length = 1;
	OK(ww_jobs_put(jobs, &spec, NULL, NULL));
}

START_TEST(a_missing_store_is_not_made)
{
	struct ww_jobs *jobs = NULL;

	if (!redis_server_begin(&server, url, sizeof url))
		return;
	ck_assert_int_eq(open_with(&jobs, WW_REDIS_EXISTING), WW_ENOTFOUND);
	ck_assert_int_eq(open_with(&jobs, WW_REDIS_EXISTING | WW_REDIS_PASSIVE), WW_ENOTFOUND);
	ck_assert_int_eq(open_with(&jobs, 4), WW_EINVAL);
	ck_assert_int_eq(redis_server_number(&server, "DBSIZE"), 0);
	redis_server_stop(&server);
}
END_TEST

START_TEST(a_lost_store_is_not_made_again)
{
	struct ww_jobs *maker = NULL;
	struct ww_jobs *jobs = NULL;
	struct ww_jobs_stats stats;

	if (!redis_server_begin(&server, url, sizeof url))
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

/* Make a store of so many jobs, which go to the shards in turn. */
static void fill(int jobs)
{
	struct ww_jobs *maker;

	OK(open_with(&maker, WW_REDIS_PASSIVE));
	for (int i = 0; i < jobs; i++)
		put_one(maker);
	OK(ww_jobs_close(maker));
}

static void expect_ready(struct ww_jobs *jobs, uint64_t ready)
{
	struct ww_jobs_stats stats;

	OK(ww_jobs_stats(jobs, &stats));
	ck_assert_uint_eq(stats.all.ready, ready);
}

START_TEST(a_lost_shard_is_not_made_again)
{
	struct ww_jobs *jobs = NULL;
	struct ww_jobs *another = NULL;
	struct ww_jobs_stats stats;
	struct ww_job_info info;

	if (!redis_server_begin(&server, url, sizeof url))
		return;
	fill(8);
	OK(open_with(&jobs, WW_REDIS_EXISTING | WW_REDIS_PASSIVE));
	redis_server_tell(&server, "DEL {weekwheel:2}:m");
	ck_assert_int_eq(open_with(&another, WW_REDIS_EXISTING | WW_REDIS_PASSIVE), WW_ECORRUPT);
	ck_assert_ptr_nonnull(strstr(said, "Shard 2 of the store in Redis is lost (there is no key {weekwheel:2}:m)"));
	said[0] = '\0';
	/* An open handle finds the loss too, but only in calls on that shard. */
	ck_assert_int_eq(ww_jobs_stats(jobs, &stats), WW_ECORRUPT);
	ck_assert_ptr_nonnull(strstr(said, "Shard 2"));
	/* It reports the loss once. */
	sayings = 0;
	ck_assert_int_eq(ww_jobs_stats(jobs, &stats), WW_ECORRUPT);
	ck_assert_int_eq(ww_jobs_stats(jobs, &stats), WW_ECORRUPT);
	ck_assert_int_eq(sayings, 0);
	redis_server_tell(&server, "DEL {weekwheel:1}:m");
	ck_assert_int_eq(ww_jobs_stats(jobs, &stats), WW_ECORRUPT);
	ck_assert_ptr_nonnull(strstr(said, "Shard 1"));
	ck_assert_int_eq(ww_jobs_stats(jobs, &stats), WW_ECORRUPT);
	ck_assert_int_eq(sayings, 1);
	OK(ww_jobs_peek(jobs, &(struct ww_job_ref){.id = 4 + 3}, &info, NULL));
	ck_assert_int_eq(redis_server_number(&server, "EXISTS {weekwheel:2}:m"), 0);
	/* As the report says, a handle that may make the shard does so. */
	OK(open_with(&another, WW_REDIS_PASSIVE));
	ck_assert_int_eq(redis_server_number(&server, "EXISTS {weekwheel:1}:m {weekwheel:2}:m"), 2);
	OK(ww_jobs_stats(jobs, &stats));
	OK(ww_jobs_close(another));
	OK(ww_jobs_close(jobs));
	redis_server_stop(&server);
}
END_TEST

START_TEST(the_store_key_is_made_as_the_shards_say_or_not_at_all)
{
	struct ww_jobs_redis_config config;
	struct ww_jobs_redis_stats stats;
	struct ww_jobs *jobs = NULL;

	if (!redis_server_begin(&server, url, sizeof url))
		return;
	fill(8);
	redis_server_tell(&server, "DEL {weekwheel}:store");
	ck_assert_int_eq(open_with(&jobs, WW_REDIS_EXISTING | WW_REDIS_PASSIVE), WW_ECORRUPT);
	ck_assert_ptr_nonnull(strstr(said, "key {weekwheel}:store of the store in Redis is lost"));
	ck_assert_int_eq(redis_server_number(&server, "EXISTS {weekwheel}:store"), 0);
	/* A new store would get another number of shards. */
	config = config_of(WW_REDIS_PASSIVE);
	config.shards = 7;
	OK(ww_jobs_redis_open(&jobs, &config));
	OK(ww_jobs_redis_stats(jobs, &stats));
	ck_assert_uint_eq(stats.shards, 4);
	expect_ready(jobs, 8);
	OK(ww_jobs_close(jobs));
	OK(open_with(&jobs, WW_REDIS_EXISTING | WW_REDIS_PASSIVE));
	expect_ready(jobs, 8);
	OK(ww_jobs_close(jobs));
	redis_server_stop(&server);
}
END_TEST

/* The node is lost that had both keys. */
START_TEST(the_store_key_is_made_as_any_shard_says)
{
	struct ww_jobs *jobs = NULL;

	if (!redis_server_begin(&server, url, sizeof url))
		return;
	fill(8);
	redis_server_tell(&server, "DEL {weekwheel}:store {weekwheel:0}:m {weekwheel:0}:j {weekwheel:0}:c "
	                           "{weekwheel:0}:r:default {weekwheel:0}:f");
	ck_assert_int_eq(open_with(&jobs, WW_REDIS_EXISTING | WW_REDIS_PASSIVE), WW_ECORRUPT);
	ck_assert_ptr_nonnull(strstr(said, "key {weekwheel}:store of the store in Redis is lost"));
	OK(open_with(&jobs, WW_REDIS_PASSIVE));
	expect_ready(jobs, 6);
	/* The lost shard is there again and takes jobs. */
	for (int i = 0; i < 4; i++)
		put_one(jobs);
	expect_ready(jobs, 10);
	ck_assert_int_eq(ww_jobs_check(jobs, NULL, NULL), 0);
	OK(ww_jobs_close(jobs));
	redis_server_stop(&server);
}
END_TEST

/* A snapshot of one of several nodes was restored. */
START_TEST(two_mixed_stores_are_reported_with_the_way_to_mend_one)
{
	struct ww_jobs *jobs = NULL;
	char command[128];
	const char *advice;

	if (!redis_server_begin(&server, url, sizeof url))
		return;
	fill(8);
	redis_server_tell(&server, "HSET {weekwheel}:store id another");
	ck_assert_int_eq(open_with(&jobs, WW_REDIS_PASSIVE), WW_ECORRUPT);
	ck_assert_ptr_nonnull(strstr(said, "its key {weekwheel}:store has the id another, and {weekwheel:0}:m"));
	advice = strstr(said, "\"HSET ");
	ck_assert_ptr_nonnull(advice);
	(void)snprintf(command, sizeof command, "%.*s", (int)strcspn(advice + 1, "\""), advice + 1);
	redis_server_tell(&server, "%s", command);
	OK(open_with(&jobs, WW_REDIS_PASSIVE));
	expect_ready(jobs, 8);
	OK(ww_jobs_close(jobs));
	redis_server_stop(&server);
}
END_TEST

/* Attempts to open it change nothing: it can still be mended as the report says. */
START_TEST(no_part_of_mixed_stores_is_made)
{
	struct ww_jobs *jobs = NULL;
	redisReply *id;

	if (!redis_server_begin(&server, url, sizeof url))
		return;
	fill(8);
	id = redis_server_ask(&server, "HGET {weekwheel}:store id");
	redis_server_tell(&server, "DEL {weekwheel:0}:m {weekwheel:2}:m");
	redis_server_tell(&server, "HSET {weekwheel}:store id another");
	ck_assert_int_eq(open_with(&jobs, WW_REDIS_PASSIVE), WW_ECORRUPT);
	ck_assert_ptr_nonnull(strstr(said, "its key {weekwheel}:store has the id another, and {weekwheel:1}:m"));
	ck_assert_int_eq(redis_server_number(&server, "EXISTS {weekwheel:0}:m {weekwheel:2}:m"), 0);
	/* Nor without the key that names the store. */
	redis_server_tell(&server, "DEL {weekwheel}:store");
	redis_server_tell(&server, "HSET {weekwheel:3}:m store another");
	ck_assert_int_eq(open_with(&jobs, WW_REDIS_PASSIVE), WW_ECORRUPT);
	ck_assert_ptr_nonnull(
	    strstr(said, "of several stores: {weekwheel:3}:m has the store another, and another one"));
	ck_assert_int_eq(open_with(&jobs, WW_REDIS_PASSIVE | WW_REDIS_EXISTING), WW_ECORRUPT);
	ck_assert_ptr_nonnull(strstr(said, "of several stores"));
	redis_server_tell(&server, "HSET {weekwheel:1}:m slice 0");
	ck_assert_int_eq(open_with(&jobs, WW_REDIS_PASSIVE), WW_ECORRUPT);
	ck_assert_ptr_nonnull(strstr(said, "key {weekwheel:1}:m of the store in Redis says makes no sense"));
	ck_assert_int_eq(redis_server_number(&server, "EXISTS {weekwheel}:store {weekwheel:0}:m {weekwheel:2}:m"), 0);
	redis_server_tell(&server, "HSET {weekwheel:1}:m slice 600000000");
	redis_server_tell(&server, "HSET {weekwheel:3}:m store %s", id->str);
	freeReplyObject(id);
	OK(open_with(&jobs, WW_REDIS_PASSIVE));
	ck_assert_int_eq(redis_server_number(&server, "EXISTS {weekwheel}:store {weekwheel:0}:m {weekwheel:2}:m"), 3);
	OK(ww_jobs_close(jobs));
	redis_server_stop(&server);
}
END_TEST

START_TEST(a_passive_handle_watches_nothing)
{
	const char *tubes[] = {WW_TUBE_DEFAULT};
	struct ww_jobs_redis_stats stats;
	struct ww_jobs *active = NULL;
	struct ww_jobs *passive = NULL;
	struct ww_lease lease;

	if (!redis_server_begin(&server, url, sizeof url))
		return;
	OK(open_with(&active, 0));
	OK(open_with(&passive, WW_REDIS_EXISTING | WW_REDIS_PASSIVE));
	OK(ww_jobs_redis_stats(passive, &stats));
	ck_assert_uint_eq(stats.watched, 0);
	ck_assert_uint_eq(stats.shards, 4);
	/* It hears no messages, yet finds ready jobs. */
	ck_assert_int_eq(ww_jobs_wait(passive, tubes, 1, 3600 * WW_SECOND, &lease), 0);
	put_one(active);
	ck_assert_int_eq(ww_jobs_wait(passive, tubes, 1, 3600 * WW_SECOND, &lease), 1);
	ww_jobs_free(passive, lease.body);
	OK(ww_jobs_finish(passive, lease.id, lease.token));
	/* The other handle waits, and delivers the jobs that this one puts. */
	put_one(passive);
	ck_assert_int_eq(ww_jobs_wait(active, tubes, 1, 60 * WW_SECOND, &lease), 1);
	ww_jobs_free(active, lease.body);
	ck_assert_int_le(redis_server_number(&server, "ZCARD {weekwheel}:workers"), 1);
	OK(ww_jobs_close(passive));
	OK(ww_jobs_close(active));
	redis_server_stop(&server);
}
END_TEST

TEST_MAIN("redis/passive", a_missing_store_is_not_made, a_lost_store_is_not_made_again, a_lost_shard_is_not_made_again,
    the_store_key_is_made_as_the_shards_say_or_not_at_all, the_store_key_is_made_as_any_shard_says,
    two_mixed_stores_are_reported_with_the_way_to_mend_one, no_part_of_mixed_stores_is_made,
    a_passive_handle_watches_nothing)
