/* Pushers on a store in Redis: two share it, and Redis dies while requests are under way. */
/* tier: check, threads */

#include <stdio.h>
#include <string.h>

#include "tests/support/callback/pushing.h"
#include "tests/support/redis/redis_server.h"
#include "weekwheel/jobs_redis.h"

enum { MANY = 60 };

static const char *const options[] = {"--appendonly", "yes", "--appendfsync", "always", NULL};
static const char *const tubes[] = {WW_TUBE_DEFAULT};

static struct redis_server server;
static struct receiver *receiver;

static struct ww_jobs *open_store(void)
{
	struct ww_jobs_redis_config config;
	struct ww_jobs *jobs;
	char url[256];

	redis_server_url(&server, url, sizeof url);
	OK(ww_jobs_redis_config_default(&config));
	config.url = url;
	config.backoff_max = 50 * WW_MILLISECOND;
	OK(ww_jobs_redis_open(&jobs, &config));
	return jobs;
}

static struct ww_callback *open_pusher(struct ww_jobs *jobs)
{
	struct ww_callback_config config;
	struct ww_callback *callback;

	OK(ww_callback_config_default(&config));
	config.jobs = jobs;
	config.tubes = tubes;
	config.tube_count = 1;
	config.in_flight = 4;
	config.networks = WW_CALLBACK_LOOPBACK;
	config.poll = 2 * WW_MILLISECOND;
	OK(ww_callback_open(&callback, &config));
	return callback;
}

static uint64_t put(struct ww_jobs *jobs, const char *lines)
{
	struct ww_job_spec spec;
	char text[256];
	uint64_t id;

	OK(ww_job_spec_default(&spec));
	spec.body = text;
	spec.body_length =
	    (size_t)snprintf(text, sizeof text, "http://127.0.0.1:%u/\n%s\nhello", receiver_port(receiver), lines);
	spec.run = 3600 * WW_SECOND;
	OK(ww_jobs_put(jobs, &spec, &id, NULL));
	return id;
}

/* Nothing is known while Redis is away. */
static void wait_for_end(struct ww_jobs *jobs, uint64_t id)
{
	enum ww_job_state state;
	int times = 0;

	while (ww_jobs_state(jobs, id, &state) != WW_ENOTFOUND)
		pushing_pause(&times);
}

START_TEST(two_pushers_share_the_ready_jobs)
{
	uint64_t ids[MANY];

	if (!redis_server_is_there())
		return;
	redis_server_start(&server, NULL);
	receiver = receiver_start(NULL);
	struct ww_jobs *jobs[2] = {open_store(), open_store()};
	for (size_t i = 0; i < MANY; i++)
		ids[i] = put(jobs[0], "");
	struct ww_callback *pushers[2] = {open_pusher(jobs[0]), open_pusher(jobs[1])};
	for (size_t i = 0; i < MANY; i++)
		wait_for_end(jobs[0], ids[i]);
	/* Each job was delivered once. */
	ck_assert_uint_eq(receiver_count(receiver), MANY);
	for (size_t i = 0; i < 2; i++) {
		ck_assert_int_eq(ww_callback_close(pushers[i], 60 * WW_SECOND), 0);
		OK(ww_jobs_close(jobs[i]));
	}
	receiver_stop(receiver);
	redis_server_stop(&server);
}
END_TEST

START_TEST(results_outlast_the_death_of_redis)
{
	struct ww_callback_stats stats;
	uint64_t ids[3];
	int times = 0;

	if (!redis_server_is_there())
		return;
	redis_server_start(&server, options);
	receiver = receiver_start(NULL);
	struct ww_jobs *jobs = open_store();
	struct ww_callback *pusher = open_pusher(jobs);
	for (size_t i = 0; i < 3; i++)
		ids[i] = put(jobs, "Answer-Do: wait\n");
	receiver_wait(receiver, 3);
	redis_server_kill(&server);
	receiver_open(receiver);
	do {
		pushing_pause(&times);
		OK(ww_callback_stats(pusher, &stats));
	} while (stats.untold != 3 || stats.store_errors == 0);
	redis_server_restart(&server);
	for (size_t i = 0; i < 3; i++)
		wait_for_end(jobs, ids[i]);
	ck_assert_uint_eq(receiver_count(receiver), 3);
	ck_assert_int_eq(ww_callback_close(pusher, 60 * WW_SECOND), 0);
	OK(ww_jobs_close(jobs));
	receiver_stop(receiver);
	redis_server_stop(&server);
}
END_TEST

TEST_MAIN("callback/redis", two_pushers_share_the_ready_jobs, results_outlast_the_death_of_redis)
