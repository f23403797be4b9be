/*
 * Workers: their cost, how they share shards, wake-ups, and a Redis that dies, is emptied, fills up, fails over and
 * moves slots.
 */
/* tier: long, waits, no-valgrind */

#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "lib/redis/link/link.h"
#include "tests/support/redis/store_rig.h"
#include "tests/support/seed.h"

#define MS WW_MILLISECOND

static struct store_rig rig;

static void rest(void)
{
	(void)nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
}

static struct ww_jobs_redis_stats stats_of(void)
{
	struct ww_jobs_redis_stats stats;

	OK(ww_jobs_redis_stats(rig.jobs, &stats));
	return stats;
}

/* Wait for something that must happen, however slow the machine is. */
#define UNTIL(condition)                                                                                               \
	for (int turns_ = 0; !(condition); turns_++) {                                                                 \
		ck_assert_msg(turns_ < 6000, "never: %s", #condition);                                                 \
		rest();                                                                                                \
	}

static void finish(const struct ww_lease *lease)
{
	OK(ww_jobs_finish(rig.jobs, lease->id, lease->token));
}

static void put_after(const char *tube, const char *body, uint64_t delay)
{
	struct ww_job_spec spec = store_spec(tube, body);

	spec.due = delay;
	(void)store_put(&rig, &spec);
}

/* ---- Cost */

static long long commands_done(void)
{
	redisReply *info = redis_server_ask(&rig.servers.servers[0], "INFO commandstats");
	long long calls = 0;

	for (const char *at = info->str; (at = strstr(at, "calls=")) != NULL; at += 6)
		calls += strtoll(at + 6, NULL, 10);
	freeReplyObject(info);
	return calls;
}

START_TEST(an_idle_worker_sends_only_its_heartbeats)
{
	uint64_t before;
	long long done;

	NEEDS_SINGLE;
	if (!store_rig_make(&rig, _i, NULL))
		return;
	rig.config.lease = WW_SECOND;
	store_rig_open(&rig);
	for (int i = 0; i < 100; i++)
		put_after("t", "x", 86400 * WW_SECOND);
	UNTIL(stats_of().watched == 16);
	/* The only due job is done: nothing is due from now on. */
	put_after("t", "x", 10 * MS);
	(void)store_wait(&rig, "t", NULL);
	rest();
	before = stats_of().commands;
	done = commands_done();
	UNTIL(stats_of().commands >= before + 3);
	/* A heartbeat is a script of up to six commands. The other commands are those of this test. */
	ck_assert_int_le(commands_done() - done, 3 * 7 + 4);
	store_rig_end(&rig);
}
END_TEST

START_TEST(memory_does_not_depend_on_the_number_of_delayed_jobs)
{
	enum { JOBS = 20000, BATCH = 1000 };
	static struct ww_job_put puts[BATCH];
	static struct ww_job_spec spec;
	uint64_t before;

	NEEDS_SINGLE;
	if (!store_rig_make(&rig, _i, NULL))
		return;
	store_rig_open(&rig);
	put_after("t", "x", 3600 * WW_SECOND);
	before = stats_of().bytes;
	spec = store_spec("t", "0123456789");
	for (int i = 0; i < JOBS / BATCH; i++) {
		spec.due = (uint64_t)i * 3600 * WW_SECOND + WW_SECOND * 60;
		for (int k = 0; k < BATCH; k++)
			puts[k] = (struct ww_job_put){.spec = &spec};
		OK(ww_jobs_put_many(rig.jobs, puts, BATCH));
	}
	ck_assert_uint_eq(stats_of().bytes, before);
	store_rig_end(&rig);
}
END_TEST

/* ---- Sharing */

static long long watched_by(struct actor *actor)
{
	return actor_ask(actor, "stats");
}

START_TEST(shards_are_divided_among_workers_and_taken_over_from_one_that_dies)
{
	struct actor actors[3];
	struct ww_lease lease;

	if (!store_rig_make(&rig, _i, NULL))
		return;
	rig.config.lease = WW_SECOND;
	store_rig_open(&rig);
	UNTIL(stats_of().watched == 16);
	for (int i = 0; i < 3; i++)
		actor_start(&actors[i], &rig, NULL);
	UNTIL(stats_of().watched == 4);
	for (int i = 0; i < 3; i++)
		UNTIL(watched_by(&actors[i]) == 4);
	/* One worker says goodbye, one dies, one hangs. */
	actor_end(&actors[0]);
	UNTIL(stats_of().workers == 3 && watched_by(&actors[1]) + watched_by(&actors[2]) + stats_of().watched == 16);
	actor_kill(&actors[1]);
	UNTIL(stats_of().watched == 8 && watched_by(&actors[2]) == 8);
	ck_assert_int_eq(kill(actors[2].pid, SIGSTOP), 0);
	for (int i = 0; i < 64; i++)
		put_after("t", "x", (uint64_t)i * 20 * MS);
	for (int i = 0; i < 64; i++) {
		lease = store_wait(&rig, "t", NULL);
		finish(&lease);
	}
	UNTIL(stats_of().watched == 16);
	ck_assert_int_eq(kill(actors[2].pid, SIGCONT), 0);
	UNTIL(stats_of().watched == 8 && watched_by(&actors[2]) == 8);
	actor_end(&actors[2]);
	store_rig_check(&rig);
	store_rig_end(&rig);
}
END_TEST

/* ---- Clocks */

START_TEST(a_worker_with_a_wrong_clock_delivers_neither_early_nor_twice)
{
	static const char *const shifts[] = {"ACTOR_SHIFT_S=420", "ACTOR_SHIFT_S=-660"};
	enum { JOBS = 40 };
	uint64_t due[JOBS];
	int times[JOBS];
	uint64_t now;

	for (size_t s = 0; s < 2; s++) {
		const char *const environment[] = {shifts[s], NULL};
		struct actor actor;
		char line[256];
		int skew;
		if (!store_rig_make(&rig, _i, NULL))
			return;
		actor_start(&actor, &rig, environment);
		actor_tell(&actor, "stats");
		actor_hear(&actor, line, sizeof line);
		ck_assert_int_eq(sscanf(line, "%*s %*s %*s %d", &skew), 1);
		ck_assert_int_ge(abs(skew), 400);
		store_rig_open(&rig);
		memset(times, 0, sizeof times);
		for (int i = 0; i < JOBS; i++) {
			char body[16];
			struct ww_job_spec spec;
			(void)snprintf(body, sizeof body, "%d", i);
			OK(ww_jobs_now(rig.jobs, 0, &now));
			spec = store_spec("t", body);
			spec.flags = WW_JOB_AT;
			spec.due = due[i] = now / 1000 * 1000 + (uint64_t)(i * 13 % 300) * MS;
			(void)store_put(&rig, &spec);
		}
		actor_tell(&actor, "work t");
		for (int i = 0; i < JOBS; i++) {
			unsigned long long id, token, ends;
			unsigned attempt;
			int which;
			actor_hear(&actor, line, sizeof line);
			ck_assert_int_eq(
			    sscanf(line, "J %llu %llu %u %llu %d", &id, &token, &attempt, &ends, &which), 5);
			ck_assert_uint_ge(ends * 1000 - 60 * WW_SECOND, due[which]);
			ck_assert_uint_eq(attempt, 1);
			ck_assert_int_eq(times[which]++, 0);
			actor_hear(&actor, line, sizeof line);
			ck_assert_ptr_nonnull(strstr(line, " 0"));
		}
		actor_kill(&actor);
		store_rig_end(&rig);
	}
}
END_TEST

/* ---- Wake-ups */

START_TEST(a_put_wakes_a_wait_in_another_process)
{
	struct actor actor;
	char line[256];

	if (!store_rig_make(&rig, _i, NULL))
		return;
	store_rig_open(&rig);
	actor_start(&actor, &rig, NULL);
	for (int i = 0; i < 60; i++) {
		/* The timeout is longer than this test may take: only a wake-up ends the wait. */
		actor_tell(&actor, "wait t%d 600000", i % 3);
		put_after(i % 3 == 0 ? "t0" : i % 3 == 1 ? "t1" : "t2", "x", i % 4 ? 0 : 5 * MS);
		actor_hear(&actor, line, sizeof line);
		ck_assert_int_eq(line[0], '1');
	}
	actor_end(&actor);
	store_rig_end(&rig);
}
END_TEST

enum { ROUNDS = 30, THREADS = 6, PUTS = 12 };

struct taker {
	pthread_t thread;
	_Atomic int *left;
	int number;
	char end[8]; /* a tube of its own: a job there says that all jobs were taken */
	int failed;
};

static const char *const tubes_of[] = {"a", "b", "c"};

static void end_takers(void)
{
	for (int i = 0; i < THREADS; i++) {
		char tube[8];
		(void)snprintf(tube, sizeof tube, "end%d", i);
		put_after(tube, "end", 0);
	}
}

/*
 * Each waits for two of three tubes, and for its end. No wait may take its whole timeout: that shows a lost wake-up.
 */
static void *take_until_end(void *argument)
{
	struct taker *taker = argument;
	const char *tubes[] = {tubes_of[taker->number % 3], tubes_of[(taker->number + 1) % 3], taker->end};
	struct ww_lease lease;
	int is_end = 0;

	while (!is_end) {
		int got = ww_jobs_wait(rig.jobs, tubes, 3, 60 * WW_SECOND, &lease);
		taker->failed = got == 1 ? taker->failed : -1;
		if (got != 1)
			return NULL;
		is_end = lease.body_length == 3;
		ww_jobs_free(rig.jobs, lease.body);
		got = ww_jobs_finish(rig.jobs, lease.id, lease.token);
		taker->failed = got ? got : taker->failed;
		if (!is_end && --*taker->left == 0)
			end_takers();
	}
	return NULL;
}

START_TEST(no_wakeup_is_lost_among_threads_and_processes_that_wait_and_put)
{
	uint64_t seed;
	struct actor actor;
	struct taker takers[THREADS];

	if (!store_rig_make(&rig, _i, NULL))
		return;
	seed = seed_of_run("test_redis_worker");
	actor_start(&actor, &rig, NULL);
	store_rig_open(&rig);
	for (int round = 0; round < ROUNDS; round++) {
		_Atomic int left = PUTS;
		for (int i = 0; i < THREADS; i++) {
			takers[i] = (struct taker){.left = &left, .number = i};
			(void)snprintf(takers[i].end, sizeof takers[i].end, "end%d", i);
			ck_assert_int_eq(pthread_create(&takers[i].thread, NULL, take_until_end, &takers[i]), 0);
		}
		for (int i = 0; i < PUTS; i++) {
			const char *tube = tubes_of[seed_below(&seed, 3)];
			uint64_t delay = seed_below(&seed, 2) ? 0 : seed_below(&seed, 5000);
			if (seed_below(&seed, 2)) {
				ck_assert_int_gt(
				    actor_ask(&actor, "put %s %llu x", tube, (unsigned long long)delay), 0);
			} else {
				struct ww_job_spec spec = store_spec(tube, "x");
				spec.due = delay * 1000;
				spec.priority = (uint32_t)seed_below(&seed, 3);
				(void)store_put(&rig, &spec);
			}
		}
		for (int i = 0; i < THREADS; i++) {
			ck_assert_int_eq(pthread_join(takers[i].thread, NULL), 0);
			OK(takers[i].failed);
		}
		ck_assert_int_eq(left, 0);
	}
	actor_end(&actor);
	store_rig_check(&rig);
	store_rig_end(&rig);
}
END_TEST

START_TEST(the_end_of_a_pause_wakes_a_wait)
{
	struct ww_lease lease;

	if (!store_rig_make(&rig, _i, NULL))
		return;
	store_rig_open(&rig);
	OK(ww_jobs_pause(rig.jobs, "t", 300 * MS));
	put_after("t", "x", 0);
	store_none(&rig, "t");
	lease = store_wait(&rig, "t", NULL);
	finish(&lease);
	/* Also if a call ends the pause. */
	OK(ww_jobs_pause(rig.jobs, "t", 3600 * WW_SECOND));
	put_after("t", "x", 0);
	store_none(&rig, "t");
	OK(ww_jobs_pause(rig.jobs, "t", 0));
	lease = store_take(&rig, "t", NULL);
	finish(&lease);
	store_rig_end(&rig);
}
END_TEST

/* ---- Redis dies, and comes back */

static const char *const keeping[] = {"--appendonly", "yes", "--appendfsync", "always", NULL};

static void *wait_long(void *argument)
{
	static const char *const tube[] = {"later"};
	struct ww_lease *lease = argument;
	int got;

	do
		got = ww_jobs_wait(rig.jobs, tube, 1, 600 * WW_SECOND, lease);
	while (got == WW_EIO || got == WW_EAGAIN);
	ww_jobs_free(rig.jobs, got == 1 ? lease->body : NULL);
	return got == 1 ? argument : NULL;
}

START_TEST(workers_wait_for_a_killed_redis_and_leases_go_on)
{
	struct ww_lease lease, later;
	struct ww_job_spec spec;
	pthread_t thread;
	void *result;

	NEEDS_SINGLE;
	if (!store_rig_make(&rig, _i, keeping))
		return;
	rig.config.backoff_max = 100 * MS;
	store_rig_open(&rig);
	put_after("t", "x", 0);
	put_after("later", "x", 3 * WW_SECOND);
	lease = store_take(&rig, "t", NULL);
	ck_assert_int_eq(pthread_create(&thread, NULL, wait_long, &later), 0);
	redis_server_kill(&rig.servers.servers[0]);
	UNTIL(store_rig_said(&rig, "") == 1);
	spec = store_spec("t", "y");
	for (int i = 0; i < 50; i++)
		ck_assert_int_eq(ww_jobs_put(rig.jobs, &spec, NULL, NULL), WW_EIO);
	ck_assert_int_eq(ww_jobs_finish(rig.jobs, lease.id, lease.token), WW_EIO);
	ck_assert_int_eq(store_rig_said(&rig, ""), 1);
	redis_server_restart(&rig.servers.servers[0]);
	UNTIL(store_rig_said(&rig, "") == 2);
	UNTIL(ww_jobs_finish(rig.jobs, lease.id, lease.token) == WW_OK);
	ck_assert_int_eq(pthread_join(thread, &result), 0);
	ck_assert_ptr_nonnull(result);
	finish(&later);
	/* Lost once, and back once. */
	ck_assert_int_eq(store_rig_said(&rig, ""), 2);
	ck_assert_uint_eq(stats_of().resets, 0);
	store_rig_check(&rig);
	store_rig_end(&rig);
}
END_TEST

static void empty_all(void)
{
	for (int i = 0; i < rig.servers.primaries; i++)
		redis_server_tell(&rig.servers.servers[i], "FLUSHALL");
}

START_TEST(an_emptied_redis_is_filled_again_and_that_is_reported)
{
	struct ww_lease lease, before;
	struct actor actor;

	if (!store_rig_make(&rig, _i, NULL))
		return;
	rig.config.lease = WW_SECOND;
	store_rig_open(&rig);
	actor_start(&actor, &rig, NULL);
	put_after("t", "x", 0);
	put_after("t", "far", 3600 * WW_SECOND);
	before = store_take(&rig, "t", NULL);
	empty_all();
	ck_assert_int_eq(ww_jobs_finish(rig.jobs, before.id, before.token), WW_ESTALE);
	put_after("t", "y", 20 * MS);
	lease = store_wait(&rig, "t", NULL);
	ck_assert_uint_gt(lease.token, before.token);
	finish(&lease);
	/* Reported once, by this process or by the other, whose heartbeat may come first. */
	ck_assert_int_le(store_rig_said(&rig, "made anew"), 1);
	ck_assert_uint_eq(stats_of().resets, (uint64_t)store_rig_said(&rig, "made anew"));
	actor_end(&actor);
	/* Also if there are no calls. */
	int said = store_rig_said(&rig, "made anew");
	UNTIL(stats_of().watched == 16);
	uint64_t sent = stats_of().commands;
	UNTIL(stats_of().commands > sent + 1);
	empty_all();
	UNTIL(store_rig_said(&rig, "made anew") == said + 1);
	put_after("t", "z", 0);
	lease = store_take(&rig, "t", NULL);
	finish(&lease);
	store_rig_check(&rig);
	store_rig_end(&rig);
}
END_TEST

START_TEST(tokens_grow_even_after_redis_was_restored_from_an_older_copy)
{
	static const char *const options[] = {"--appendonly", "no", NULL};
	struct ww_lease first, second, third;

	NEEDS_SINGLE;
	if (!store_rig_make(&rig, _i, options))
		return;
	rig.config.backoff_max = 100 * MS;
	store_rig_open(&rig);
	put_after("t", "x", 0);
	redis_server_tell(&rig.servers.servers[0], "SAVE");
	first = store_take(&rig, "t", NULL);
	OK(ww_jobs_release(rig.jobs, first.id, first.token, 1024, 0, NULL));
	second = store_take(&rig, "t", NULL);
	ck_assert_uint_gt(second.token, first.token);
	redis_server_kill(&rig.servers.servers[0]);
	redis_server_restart(&rig.servers.servers[0]);
	/* A reserve may fail until the loss is noticed. */
	const char *tube = "t";
	UNTIL(ww_jobs_wait(rig.jobs, &tube, 1, 60 * WW_SECOND, &third) == 1);
	ww_jobs_free(rig.jobs, third.body);
	ck_assert_uint_eq(third.id, first.id);
	ck_assert_uint_gt(third.token, second.token);
	ck_assert_int_eq(ww_jobs_finish(rig.jobs, second.id, second.token), WW_ESTALE);
	finish(&third);
	store_rig_end(&rig);
}
END_TEST

/* ---- Redis that cannot take more */

START_TEST(without_memory_nothing_is_put_and_stored_jobs_can_be_finished)
{
	struct ww_job_spec spec;
	struct ww_job_ref gone = {0};
	struct ww_lease leases[3];
	uint64_t past, now;

	NEEDS_SINGLE;
	if (!store_rig_make(&rig, _i, NULL))
		return;
	rig.config.lease = WW_SECOND;
	rig.config.shards = 1;
	store_rig_open(&rig);
	for (int i = 0; i < 3; i++)
		put_after("t", "x", 0);
	/* This job would have been due later. Then nothing is due, and Redis must record that too. */
	spec = store_spec("t", "gone");
	spec.due = 50 * MS;
	gone.id = store_put(&rig, &spec);
	ck_assert_int_eq(ww_jobs_cancel(rig.jobs, &gone), 1);
	OK(ww_jobs_now(rig.jobs, 0, &past));
	past += 60 * MS;
	put_after("t", "soon", 100 * MS);
	leases[0] = store_take(&rig, "t", NULL);
	redis_server_tell(&rig.servers.servers[0], "CONFIG SET maxmemory 1");
	spec = store_spec("t", "more");
	ck_assert_int_eq(ww_jobs_put(rig.jobs, &spec, NULL, NULL), WW_EFULL);
	UNTIL(ww_jobs_now(rig.jobs, 0, &now) == WW_OK && now > past);
	finish(&leases[0]);
	/* Stored jobs are delivered, those too that come due now. */
	for (int i = 0; i < 3; i++) {
		leases[i] = store_wait(&rig, "t", NULL);
		finish(&leases[i]);
	}
	/* The worker stays registered. */
	redisReply *beats = redis_server_ask(&rig.servers.servers[0], "ZRANGE {weekwheel}:workers 0 -1");
	ck_assert_uint_eq(beats->elements, 1);
	freeReplyObject(beats);
	redis_server_tell(&rig.servers.servers[0], "CONFIG SET maxmemory 0");
	(void)store_put(&rig, &spec);
	store_rig_check(&rig);
	store_rig_end(&rig);
}
END_TEST

START_TEST(a_job_with_a_history_ends_in_a_full_redis)
{
	struct ww_job_spec spec = store_spec("t", "x");
	struct ww_lease leases[3];

	NEEDS_SINGLE;
	if (!store_rig_make(&rig, _i, NULL))
		return;
	rig.config.shards = 1;
	store_rig_open(&rig);
	spec.keep = 3600 * WW_SECOND;
	for (int i = 0; i < 3; i++)
		(void)store_put(&rig, &spec);
	for (int i = 0; i < 3; i++)
		leases[i] = store_take(&rig, "t", NULL);
	redis_server_tell(&rig.servers.servers[0], "CONFIG SET maxmemory 1");
	finish(&leases[0]);
	OK(ww_jobs_release(rig.jobs, leases[1].id, leases[1].token, 0, 0, "later"));
	OK(ww_jobs_bury(rig.jobs, leases[2].id, leases[2].token, 0, "never"));
	redis_server_tell(&rig.servers.servers[0], "CONFIG SET maxmemory 0");
	store_rig_check(&rig);
	store_rig_end(&rig);
}
END_TEST

START_TEST(a_replica_is_denied_until_it_is_a_primary)
{
	struct ww_job_spec spec;

	NEEDS_SINGLE;
	if (!store_rig_make(&rig, _i, NULL))
		return;
	store_rig_open(&rig);
	redis_server_tell(&rig.servers.servers[0], "REPLICAOF 127.0.0.1 1");
	spec = store_spec("t", "x");
	ck_assert_int_eq(ww_jobs_put(rig.jobs, &spec, NULL, NULL), WW_EDENIED);
	redis_server_tell(&rig.servers.servers[0], "REPLICAOF NO ONE");
	UNTIL(ww_jobs_put(rig.jobs, &spec, NULL, NULL) == WW_OK);
	(void)store_wait(&rig, "t", NULL);
	store_rig_end(&rig);
}
END_TEST

/* ---- A cluster that changes */

/* Whether a call must be made again, since a node is away: after a rest, and not for ever. */
static int is_away(int result, int *turns)
{
	if (result != WW_EIO && result != WW_EAGAIN)
		return 0;
	ck_assert_msg(++*turns < 30000, "no node takes the place of the one that died");
	rest();
	return 1;
}

START_TEST(a_primary_that_dies_is_replaced_and_jobs_go_on)
{
	enum { JOBS = 60 };
	struct ww_lease lease;
	int put = 0;
	int taken = 0;
	int turns = 0;

	if (_i != STORE_CLUSTER || !store_rig_make_cluster(&rig, 3, 1, NULL))
		return;
	rig.config.lease = WW_SECOND;
	rig.config.backoff_max = 100 * MS;
	store_rig_open(&rig);
	for (; put < JOBS; put++)
		put_after("t", "x", (uint64_t)put * 50 * MS);
	/* Wait until its replica has everything: late replication may lose jobs. */
	redis_server_wait_replica(&rig.servers.servers[1], &rig.servers.servers[4]);
	redis_server_kill(&rig.servers.servers[1]);
	while (taken < JOBS) {
		const char *tube = "t";
		int got = ww_jobs_wait(rig.jobs, &tube, 1, 180 * WW_SECOND, &lease);
		if (got != 1) {
			ck_assert_msg(is_away(got, &turns), "%d", got);
			continue;
		}
		ww_jobs_free(rig.jobs, lease.body);
		while (is_away(ww_jobs_finish(rig.jobs, lease.id, lease.token), &turns))
			;
		taken++;
	}
	store_none(&rig, "t");
	put_after("t", "x", 0);
	(void)store_wait(&rig, "t", NULL);
	ck_assert_uint_eq(stats_of().resets, 0);
	store_rig_check(&rig);
	store_rig_end(&rig);
}
END_TEST

/* The node with the most urgent job is gone: jobs of other nodes are delivered all the same. */
START_TEST(a_lost_node_delays_no_jobs_of_other_nodes)
{
	enum { SHARDS = 16, JOBS = 32 };
	const char *tube = "t";
	struct ww_lease lease;
	int left = 0;

	if (_i != STORE_CLUSTER ||
	    !store_rig_make(&rig, _i, (const char *const[]){"--cluster-require-full-coverage", "no", NULL}))
		return;
	rig.config.timeout = 500 * MS;
	store_rig_open(&rig);
	/* Now the handle knows all ready jobs. */
	store_none(&rig, tube);
	for (int i = 0; i < JOBS; i++) {
		struct ww_job_spec spec = store_spec(tube, "x");
		char tag[32];
		char key = (char)i;
		spec.key = &key;
		spec.key_length = 1;
		uint64_t id = store_put(&rig, &spec);
		(void)snprintf(tag, sizeof tag, "{weekwheel:%d}", (int)(id % SHARDS));
		int is_gone = redis_cluster_owner(&rig.servers, ww_redis_link_slot(tag, strlen(tag))) == 1;
		left += !is_gone;
		spec.priority = 0;
		/* The same job. */
		if (is_gone)
			(void)store_put(&rig, &spec);
	}
	ck_assert_int_gt(left, 0);
	ck_assert_int_lt(left, JOBS);
	redis_server_kill(&rig.servers.servers[1]);
	for (int turns = 0; left > 0; turns++) {
		int got = ww_jobs_reserve(rig.jobs, &tube, 1, &lease);
		ck_assert_msg(turns < 100, "%d are left", left);
		if (got != 1)
			continue;
		ww_jobs_free(rig.jobs, lease.body);
		left--;
	}
	store_rig_end(&rig);
}
END_TEST

START_TEST(slots_move_while_jobs_flow)
{
	enum { SHARDS = 6, JOBS = 10 };
	struct actor actor;
	struct ww_lease lease;
	int left = 0;

	if (_i != STORE_CLUSTER || !store_rig_make(&rig, _i, NULL))
		return;
	rig.config.shards = SHARDS;
	store_rig_open(&rig);
	actor_start(&actor, &rig, NULL);
	for (int s = 0; s < SHARDS; s++) {
		char tag[32];
		unsigned slot;
		int from;
		(void)snprintf(tag, sizeof tag, "{weekwheel:%d}", s);
		slot = ww_redis_link_slot(tag, strlen(tag));
		from = redis_cluster_owner(&rig.servers, slot);
		for (int i = 0; i < 3 * SHARDS; i++, left++)
			put_after("t", "x", (uint64_t)(i % 3) * 30 * MS);
		redis_cluster_move_begin(&rig.servers, slot, from, (from + 1) % 3);
		/* Calls that ask while two nodes share the slot are answered once one node has all of it. */
		for (int i = 0; i < JOBS; i++, left++)
			actor_tell(&actor, "put t 10000 y");
		rest();
		redis_cluster_move_end(&rig.servers, slot, from, (from + 1) % 3);
		for (int i = 0; i < JOBS; i++) {
			char line[64];
			actor_hear(&actor, line, sizeof line);
			ck_assert_int_gt(strtoll(line, NULL, 10), 0);
		}
		for (int i = 0; i < left; i++) {
			lease = store_wait(&rig, "t", NULL);
			finish(&lease);
		}
		left = 0;
		store_none(&rig, "t");
		store_rig_check(&rig);
	}
	ck_assert_uint_eq(stats_of().resets, 0);
	actor_end(&actor);
	store_rig_end(&rig);
}
END_TEST

STORE_MAIN("redis/worker", an_idle_worker_sends_only_its_heartbeats,
    memory_does_not_depend_on_the_number_of_delayed_jobs,
    shards_are_divided_among_workers_and_taken_over_from_one_that_dies,
    a_worker_with_a_wrong_clock_delivers_neither_early_nor_twice, a_put_wakes_a_wait_in_another_process,
    no_wakeup_is_lost_among_threads_and_processes_that_wait_and_put, the_end_of_a_pause_wakes_a_wait,
    workers_wait_for_a_killed_redis_and_leases_go_on, an_emptied_redis_is_filled_again_and_that_is_reported,
    tokens_grow_even_after_redis_was_restored_from_an_older_copy,
    without_memory_nothing_is_put_and_stored_jobs_can_be_finished, a_job_with_a_history_ends_in_a_full_redis,
    a_replica_is_denied_until_it_is_a_primary, a_primary_that_dies_is_replaced_and_jobs_go_on,
    a_lost_node_delays_no_jobs_of_other_nodes, slots_move_while_jobs_flow)
