/* Reserving many jobs of a store in Redis at once: how often it asks Redis, what is stale, and when it ends. */
/* tier: check */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "tests/support/redis/redis_server.h"
#include "tests/support/suite.h"
#include "weekwheel/jobs_redis.h"

enum { SHARDS = 4, JOBS = 40 };

static struct redis_server server;
static char url[128];
static struct ww_lease leases[JOBS + 1];
static const char *const tubes[] = {WW_TUBE_DEFAULT, "mail"};

/* How many ns each reading of CLOCK_BOOTTIME, the clock of the timeout, advances that clock. */
static uint64_t stride;
/* Called at each reading. Returns by how many ns more the clock goes ahead; then it is NULL. */
static uint64_t (*interrupt)(void);

/* Takes the place of the C library's function in this program. */
int clock_gettime(clockid_t clock, struct timespec *time)
{
	static uint64_t ahead;
	int result = (int)syscall(SYS_clock_gettime, clock, time);

	if (result == 0 && clock == CLOCK_BOOTTIME) {
		ahead += stride;
		uint64_t (*call)(void) = interrupt;
		interrupt = NULL;
		uint64_t more = call ? call() : 0;
		ahead += more;
		interrupt = more ? NULL : call;
		time->tv_sec += (time_t)(ahead / WW_SECOND);
	}
	return result;
}

/* What the worker of a handle heard of this tube, it heard after all messages that came before. */
#define LAST "last"
static _Atomic int heard_last;

static void note_last(const char *tube, void *context)
{
	(void)context;
	if (strcmp(tube, LAST) == 0)
		heard_last = 1;
}

static struct ww_jobs *open_with(uint32_t shards, uint32_t flags)
{
	struct ww_jobs_redis_config config;
	struct ww_jobs *jobs = NULL;

	OK(ww_jobs_redis_config_default(&config));
	config.url = url;
	config.shards = shards;
	config.flags = flags;
	config.ready = note_last;
	OK(ww_jobs_redis_open(&jobs, &config));
	return jobs;
}

/* Jobs without a key go to the shards in turn. */
static void put_one(struct ww_jobs *jobs, const char *tube, uint32_t priority)
{
	struct ww_job_spec spec;

	OK(ww_job_spec_default(&spec));
	spec.tube = tube;
	spec.body = "x";
	spec.body_length = 1;
	spec.priority = priority;
	OK(ww_jobs_put(jobs, &spec, NULL, NULL));
}

static int take_many(struct ww_jobs *jobs, size_t most)
{
	int got = ww_jobs_reserve_many(jobs, tubes, 2, leases, most);

	for (int i = 0; i < got; i++)
		ww_jobs_free(jobs, leases[i].body);
	return got;
}

static uint64_t round_trips(struct ww_jobs *jobs)
{
	struct ww_jobs_redis_stats stats;

	OK(ww_jobs_redis_stats(jobs, &stats));
	return stats.round_trips;
}

/* Only this test asks Redis: the store has no worker. After the first call Redis knows the scripts. */
START_TEST(redis_is_asked_as_often_as_the_order_passes_to_another_shard)
{
	struct ww_jobs *jobs;
	uint64_t before;

	if (!redis_server_begin(&server, url, sizeof url))
		return;
	jobs = open_with(SHARDS, WW_REDIS_PASSIVE);
	put_one(jobs, tubes[0], 0);
	ck_assert_int_eq(take_many(jobs, 1), 1);
	for (int i = 0; i < JOBS; i++)
		put_one(jobs, tubes[0], 7);
	before = round_trips(jobs);
	ck_assert_int_eq(take_many(jobs, JOBS + 1), JOBS);
	/* One question to all shards, then one to each. */
	ck_assert_uint_eq(round_trips(jobs) - before, 1 + SHARDS);
	for (uint32_t i = 0; i < JOBS; i++)
		put_one(jobs, tubes[0], i);
	before = round_trips(jobs);
	ck_assert_int_eq(take_many(jobs, JOBS + 1), JOBS);
	ck_assert_uint_eq(round_trips(jobs) - before, 1 + JOBS);
	OK(ww_jobs_close(jobs));
	redis_server_stop(&server);
}
END_TEST

/* Nothing is lost: the next call goes on in the order. */
START_TEST(leased_jobs_are_returned_when_the_timeout_is_over)
{
	struct ww_jobs *jobs;
	uint32_t next = 0;
	int got;

	if (!redis_server_begin(&server, url, sizeof url))
		return;
	jobs = open_with(SHARDS, WW_REDIS_PASSIVE);
	for (uint32_t i = 0; i < JOBS; i++)
		put_one(jobs, tubes[0], i);
	/* The timeout is 2 s. */
	stride = WW_SECOND;
	while (next < JOBS) {
		got = take_many(jobs, JOBS);
		ck_assert_int_gt(got, 0);
		ck_assert_int_lt(got, JOBS / 2);
		for (int i = 0; i < got; i++)
			ck_assert_uint_eq(leases[i].priority, next++);
	}
	ck_assert_int_eq(take_many(jobs, JOBS), 0);
	stride = 0;
	OK(ww_jobs_close(jobs));
	redis_server_stop(&server);
}
END_TEST

/* ---- A process that is stopped in the middle of a reserve */

static struct ww_jobs *meanwhile;
static uint64_t leased; /* the job */
static int takes;       /* and another takes it, and finishes it */

/* When Redis has leased the job, and before the one who asked reads that: time passes. */
static uint64_t pass_time(void)
{
	struct ww_job_ref job = {.id = leased};
	struct ww_job_info info;
	struct ww_lease lease;

	OK(ww_jobs_peek(meanwhile, &job, &info, NULL));
	if (info.state != WW_JOB_RESERVED)
		return 0;
	for (int has = !takes; !has; usleep(10000)) {
		has = ww_jobs_reserve_job(meanwhile, leased, &lease) == WW_OK;
		if (!has)
			continue;
		ww_jobs_free(meanwhile, lease.body);
		OK(ww_jobs_finish(meanwhile, lease.id, lease.token));
	}
	return 100 * WW_SECOND;
}

static int take_stopped(struct ww_jobs *jobs, int which)
{
	struct ww_job_spec spec;
	int got;

	OK(ww_job_spec_default(&spec));
	spec.run = WW_SECOND;
	spec.tube = tubes[0];
	OK(ww_jobs_put(jobs, &spec, &leased, NULL));
	interrupt = pass_time;
	if (which == 0)
		got = ww_jobs_reserve_many(jobs, tubes, 2, leases, JOBS);
	else if (which == 1)
		got = ww_jobs_reserve(jobs, tubes, 2, leases);
	else
		got = ww_jobs_reserve_job(jobs, leased, leases);
	ck_assert(!interrupt);
	return got;
}

/* Whoever took it then may have finished it: nobody gets a job whose end was acknowledged. */
START_TEST(a_lease_that_ended_while_it_was_under_way_is_not_handed_out)
{
	struct ww_jobs *jobs;

	if (!redis_server_begin(&server, url, sizeof url))
		return;
	jobs = open_with(SHARDS, WW_REDIS_PASSIVE);
	meanwhile = open_with(SHARDS, WW_REDIS_PASSIVE);
	for (int which = 0; which < 3; which++) {
		takes = 1;
		ck_assert_int_eq(take_stopped(jobs, which), which == 2 ? WW_ENOTFOUND : 0);
		/* If it only seems so, as when Redis's clock was set back, it is handed out. */
		takes = 0;
		ck_assert_int_eq(take_stopped(jobs, which), which == 2 ? WW_OK : 1);
		ck_assert_uint_eq(leases[0].id, leased);
		OK(ww_jobs_finish(jobs, leases[0].id, leases[0].token));
	}
	OK(ww_jobs_close(meanwhile));
	OK(ww_jobs_close(jobs));
	redis_server_stop(&server);
}
END_TEST

/* Of two jobs, the more urgent one was over. */
START_TEST(who_got_only_what_was_over_gets_another_job)
{
	struct ww_jobs *jobs;

	if (!redis_server_begin(&server, url, sizeof url))
		return;
	jobs = open_with(SHARDS, WW_REDIS_PASSIVE);
	meanwhile = open_with(SHARDS, WW_REDIS_PASSIVE);
	put_one(jobs, tubes[0], UINT32_MAX);
	takes = 1;
	ck_assert_int_eq(take_stopped(jobs, 1), 1);
	ck_assert_uint_eq(leases[0].priority, UINT32_MAX);
	ww_jobs_free(jobs, leases[0].body);
	OK(ww_jobs_close(meanwhile));
	OK(ww_jobs_close(jobs));
	redis_server_stop(&server);
}
END_TEST

/* Until the lease has ended, too, behind so many others that Redis does not end all of them at once. */
static uint64_t outlast(void)
{
	struct ww_job_ref job = {.id = leased};
	struct ww_job_info info;
	uint64_t begun;
	uint64_t now;

	OK(ww_jobs_peek(meanwhile, &job, &info, NULL));
	if (info.state != WW_JOB_RESERVED)
		return 0;
	OK(ww_jobs_now(meanwhile, 0, &begun));
	do {
		usleep(10000);
		OK(ww_jobs_now(meanwhile, 0, &now));
	} while (now < begun + 3 * WW_SECOND);
	return 100 * WW_SECOND;
}

START_TEST(a_lease_that_has_ended_is_over_though_redis_has_many_to_end)
{
	enum { MANY = 700 };
	static struct ww_lease many[MANY];
	struct ww_jobs *jobs;
	struct ww_job_spec spec;

	if (!redis_server_begin(&server, url, sizeof url))
		return;
	jobs = open_with(1, WW_REDIS_PASSIVE);
	meanwhile = open_with(1, WW_REDIS_PASSIVE);
	OK(ww_job_spec_default(&spec));
	spec.tube = tubes[0];
	spec.run = 2 * WW_SECOND;
	for (int i = 0; i < MANY; i++)
		OK(ww_jobs_put(jobs, &spec, NULL, NULL));
	OK(ww_jobs_put(jobs, &spec, &leased, NULL));
	ck_assert_int_eq(ww_jobs_reserve_many(meanwhile, tubes, 1, many, MANY), MANY);
	interrupt = outlast;
	ck_assert_int_eq(ww_jobs_reserve_job(jobs, leased, leases), WW_ENOTFOUND);
	ck_assert(!interrupt);
	OK(ww_jobs_close(meanwhile));
	OK(ww_jobs_close(jobs));
	redis_server_stop(&server);
}
END_TEST

/* And Redis is away when it is asked. */
static uint64_t lose_redis(void)
{
	struct ww_job_ref job = {.id = leased};
	struct ww_job_info info;

	OK(ww_jobs_peek(meanwhile, &job, &info, NULL));
	if (info.state != WW_JOB_RESERVED)
		return 0;
	redis_server_kill(&server);
	return 100 * WW_SECOND;
}

START_TEST(a_lease_that_lasts_is_handed_out_though_redis_is_away)
{
	static const uint64_t runs[] = {150 * WW_SECOND, 50 * WW_SECOND};
	struct ww_jobs *jobs;
	struct ww_job_spec spec;

	for (int is_over = 0; is_over < 2; is_over++) {
		if (!redis_server_begin(&server, url, sizeof url))
			return;
		jobs = open_with(1, WW_REDIS_PASSIVE);
		meanwhile = open_with(1, WW_REDIS_PASSIVE);
		OK(ww_job_spec_default(&spec));
		spec.tube = tubes[0];
		spec.run = runs[is_over];
		OK(ww_jobs_put(jobs, &spec, &leased, NULL));
		interrupt = lose_redis;
		ck_assert_int_eq(ww_jobs_reserve_job(jobs, leased, leases), is_over ? WW_ENOTFOUND : WW_OK);
		ck_assert(!interrupt);
		(void)ww_jobs_close(meanwhile);
		(void)ww_jobs_close(jobs);
		redis_server_stop(&server);
	}
}
END_TEST

static int place_of(uint32_t priority, int count)
{
	int at = 0;

	while (at < count && leases[at].priority != priority)
		at++;
	ck_assert_int_lt(at, count);
	return at;
}

/* Only the answer tells it. The jobs that are left in that shard come after those of other shards. */
START_TEST(a_single_job_is_taken_where_another_took_the_best)
{
	static const uint32_t priorities[] = {0, 5, 1, 50, 9, 51, 10};
	struct ww_jobs *hears;
	struct ww_jobs *other;

	if (!redis_server_begin(&server, url, sizeof url))
		return;
	hears = open_with(2, 0);
	other = open_with(2, WW_REDIS_PASSIVE);
	for (size_t i = 0; i < sizeof priorities / sizeof *priorities; i++)
		put_one(other, tubes[priorities[i] == 10], priorities[i]);
	/* A message about the first jobs that comes later would send the handle to the wrong shard once more. */
	for (uint32_t priority = 1000000; !heard_last; priority--, usleep(1000))
		put_one(other, LAST, priority);
	/* Now the handle knows the next priorities: 1 in one shard, 5 in the other. */
	ck_assert_int_eq(ww_jobs_wait(hears, tubes, 2, 60 * WW_SECOND, leases), 1);
	ww_jobs_free(hears, leases[0].body);
	ck_assert_uint_eq(leases[0].priority, 0);
	ck_assert_int_eq(take_many(other, 1), 1);
	ck_assert_uint_eq(leases[0].priority, 1);
	ck_assert_int_eq(take_many(hears, JOBS), 5);
	ck_assert_int_lt(place_of(5, 5), place_of(10, 5));
	ck_assert_int_lt(place_of(9, 5), place_of(10, 5));
	ck_assert_int_lt(place_of(10, 5), place_of(50, 5));
	OK(ww_jobs_close(other));
	OK(ww_jobs_close(hears));
	redis_server_stop(&server);
}
END_TEST

/* How often Redis has looked into a tube. */
static long long looks(void)
{
	redisReply *reply = redis_server_ask(&server, "INFO commandstats");
	const char *at = strstr(reply->str, "cmdstat_zrange:calls=");
	long long count = at ? strtoll(at + strlen("cmdstat_zrange:calls="), NULL, 10) : 0;

	freeReplyObject(reply);
	return count;
}

START_TEST(a_thousand_tubes_are_asked_for_as_one_is)
{
	enum { TUBES = 1000, ROUNDS = 100 };
	static char names[TUBES][16];
	const char *watched[TUBES];
	long long before, one = 0;

	if (!redis_server_begin(&server, url, sizeof url))
		return;
	struct ww_jobs *jobs = open_with(SHARDS, 0);
	for (int i = 0; i < TUBES; i++) {
		(void)snprintf(names[i], sizeof names[i], "tube%d", i);
		watched[i] = names[i];
	}
	ck_assert_int_eq(ww_jobs_reserve(jobs, watched, TUBES, leases), 0);
	for (int count = 1; count <= TUBES; count += TUBES - 1) {
		before = looks();
		for (int i = 0; i < ROUNDS; i++) {
			put_one(jobs, count == 1 ? names[0] : names[i * 7 % TUBES], 5);
			ck_assert_int_eq(ww_jobs_reserve(jobs, watched, (size_t)count, leases), 1);
			ww_jobs_free(jobs, leases[0].body);
			OK(ww_jobs_finish(jobs, leases[0].id, leases[0].token));
		}
		if (count == 1)
			one = looks() - before;
		else
			/* The worker asks beside this what is due, more often where all is slow. Asking each tube would be 100,000. */
			ck_assert_int_lt(looks() - before, 2 * one);
	}
	OK(ww_jobs_close(jobs));
	redis_server_stop(&server);
}
END_TEST

static long long scripts(void)
{
	redisReply *reply = redis_server_ask(&server, "INFO commandstats");
	const char *at = strstr(reply->str, "cmdstat_evalsha:calls=");
	long long count = at ? strtoll(at + strlen("cmdstat_evalsha:calls="), NULL, 10) : 0;

	freeReplyObject(reply);
	return count;
}

static int add_up(const struct ww_tube_stats *stats, void *context)
{
	*(uint64_t *)context += stats->ready;
	return 0;
}

/* Redis runs one script at a time, and one that looked at all tubes would hold up all others. */
START_TEST(questions_about_many_tubes_are_many_small_scripts)
{
	enum { TUBES = 1000, PIECE_MOST = 64 };
	static char names[TUBES][16];
	const char *watched[TUBES];
	struct ww_jobs_stats stats;
	uint64_t ready = 0;
	long long before;

	if (!redis_server_begin(&server, url, sizeof url))
		return;
	struct ww_jobs *jobs = open_with(SHARDS, WW_REDIS_PASSIVE);
	for (int i = 0; i < TUBES; i++) {
		(void)snprintf(names[i], sizeof names[i], "tube%d", i);
		watched[i] = names[i];
		put_one(jobs, names[i], 5);
		if (i % 3 == 0)
			put_one(jobs, names[i], 5);
	}
	before = scripts();
	OK(ww_jobs_stats(jobs, &stats));
	ck_assert_uint_eq(stats.tubes, TUBES);
	ck_assert_uint_eq(stats.all.ready, TUBES + (TUBES + 2) / 3);
	ck_assert_int_ge(scripts() - before, TUBES / PIECE_MOST);
	OK(ww_jobs_tubes(jobs, add_up, &ready));
	ck_assert_uint_eq(ready, stats.all.ready);
	for (int i = 0; i < TUBES; i++)
		names[i][0] = 'n';
	before = scripts();
	ck_assert_int_eq(ww_jobs_reserve(jobs, watched, TUBES, leases), 0);
	ck_assert_int_ge(scripts() - before, 4 * SHARDS);
	OK(ww_jobs_close(jobs));
	redis_server_stop(&server);
}
END_TEST

/* What is known of a tube that is asked for stays, whatever is put elsewhere. */
START_TEST(many_tubes_do_not_push_out_those_that_are_asked_for)
{
	enum { TUBES = 9000, ASKED = 10 };
	static char names[TUBES][16];
	const char *watched[] = {"mail"};
	long long before;

	if (!redis_server_begin(&server, url, sizeof url))
		return;
	struct ww_jobs *jobs = open_with(SHARDS, 0);
	ck_assert_int_eq(ww_jobs_reserve(jobs, watched, 1, leases), 0);
	for (int i = 0; i < TUBES; i++) {
		(void)snprintf(names[i], sizeof names[i], "tube%d", i);
		put_one(jobs, names[i], 5);
	}
	before = looks();
	for (int i = 0; i < ASKED; i++) {
		ck_assert_int_eq(ww_jobs_reserve(jobs, watched, 1, leases), 0);
		put_one(jobs, names[i], 5);
	}
	/* Each put looks once. */
	ck_assert_int_eq(looks() - before, ASKED);
	OK(ww_jobs_close(jobs));
	redis_server_stop(&server);
}
END_TEST

TEST_MAIN("redis/take", redis_is_asked_as_often_as_the_order_passes_to_another_shard,
    leased_jobs_are_returned_when_the_timeout_is_over, a_lease_that_ended_while_it_was_under_way_is_not_handed_out,
    who_got_only_what_was_over_gets_another_job, a_lease_that_has_ended_is_over_though_redis_has_many_to_end,
    a_lease_that_lasts_is_handed_out_though_redis_is_away, a_single_job_is_taken_where_another_took_the_best,
    a_thousand_tubes_are_asked_for_as_one_is, questions_about_many_tubes_are_many_small_scripts,
    many_tubes_do_not_push_out_those_that_are_asked_for)
