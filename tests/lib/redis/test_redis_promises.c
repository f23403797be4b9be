/* The promises of jobs in a real Redis, a test for each, on one server and on a cluster. */
/* tier: long, waits, no-valgrind */

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "tests/support/redis/store_rig.h"
#include "tests/support/seed.h"

#define MS WW_MILLISECOND
#define HOUR (3600 * WW_SECOND)
#define DAY (24 * HOUR)

static struct store_rig rig;

static uint64_t taken_at(const struct ww_lease *lease, uint64_t run)
{
	return lease->ends - run;
}

static uint64_t redis_time(void)
{
	uint64_t now;

	OK(ww_jobs_now(rig.jobs, 0, &now));
	return now;
}

static void rest(void)
{
	(void)nanosleep(&(struct timespec){.tv_nsec = 5000000}, NULL);
}

static struct ww_job_ref ref_of(const char *tube, const char *key)
{
	return (struct ww_job_ref){.tube = tube, .key = key, .key_length = strlen(key)};
}

static struct ww_job_spec keyed(const char *tube, const char *key, const char *body, uint64_t due)
{
	struct ww_job_spec spec = store_spec(tube, body);

	spec.key = key;
	spec.key_length = strlen(key);
	spec.due = due;
	return spec;
}

/* ---- Workers that die */

START_TEST(the_job_of_a_killed_worker_is_delivered_by_another)
{
	struct ww_job_spec spec;
	struct actor actor;
	unsigned long long id, token, ends;
	unsigned attempt;
	char line[256];
	char body[64];

	if (!store_rig_make(&rig, _i, NULL))
		return;
	/* The killed worker may have been the one that watches the job's shard. */
	rig.config.lease = WW_SECOND;
	store_rig_open(&rig);
	actor_start(&actor, &rig, NULL);
	spec = store_spec("t", "once");
	spec.run = WW_SECOND;
	(void)store_put(&rig, &spec);
	actor_tell(&actor, "wait t 60000");
	actor_hear(&actor, line, sizeof line);
	ck_assert_int_eq(sscanf(line, "1 %llu %llu %u %llu %63s", &id, &token, &attempt, &ends, body), 5);
	ck_assert_uint_eq(attempt, 1);
	actor_kill(&actor);
	struct ww_lease lease = store_wait(&rig, "t", body);
	ck_assert_str_eq(body, "once");
	ck_assert_uint_eq(lease.id, id);
	ck_assert_uint_gt(lease.token, token);
	ck_assert_uint_eq(lease.attempt, 2);
	/* Not before the lease of the killed worker has ended. */
	ck_assert_uint_ge(taken_at(&lease, WW_SECOND) / 1000, ends);
	/* A late message of the killed worker is refused. */
	ck_assert_int_eq(ww_jobs_finish(rig.jobs, id, token), WW_ESTALE);
	OK(ww_jobs_finish(rig.jobs, lease.id, lease.token));
	store_rig_check(&rig);
	store_rig_end(&rig);
}
END_TEST

/* ---- Slices of time that no worker looked at */

START_TEST(a_slice_that_no_worker_looked_at_is_delivered_oldest_first)
{
	enum { JOBS = 40 };
	char body[64];
	uint64_t last;

	if (!store_rig_make(&rig, _i, NULL))
		return;
	rig.config.slice = WW_SECOND;
	rig.config.shards = 1;
	store_rig_open(&rig);
	/* Spread over three slices. */
	for (int i = 0; i < JOBS; i++) {
		(void)snprintf(body, sizeof body, "%d", i);
		struct ww_job_spec spec = store_spec("t", body);
		spec.due = 100 * MS + (uint64_t)i * 50 * MS;
		(void)store_put(&rig, &spec);
	}
	last = redis_time() + 100 * MS + JOBS * 50 * MS;
	store_rig_close(&rig);
	/* Their due times pass while no worker is there. */
	for (;;) {
		redisReply *time = redis_server_ask(&rig.servers.servers[0], "TIME");
		uint64_t now = strtoull(time->element[0]->str, NULL, 10) * WW_SECOND;
		freeReplyObject(time);
		if (now > last)
			break;
		rest();
	}
	store_rig_open(&rig);
	for (int i = 0; i < JOBS; i++) {
		struct ww_lease lease = store_wait(&rig, "t", body);
		ck_assert_int_eq(atoi(body), i);
		OK(ww_jobs_finish(rig.jobs, lease.id, lease.token));
	}
	store_none(&rig, "t");
	store_rig_check(&rig);
	store_rig_end(&rig);
}
END_TEST

START_TEST(slices_of_weeks_ago_are_delivered_oldest_first)
{
	char body[64];

	if (!store_rig_make(&rig, _i, NULL))
		return;
	store_rig_own_time(&rig);
	rig.config.shards = 1;
	store_rig_open(&rig);
	for (int i = 0; i < 30; i++) {
		(void)snprintf(body, sizeof body, "%d", i);
		struct ww_job_spec spec = store_spec("t", body);
		spec.due = (uint64_t)i * DAY + HOUR;
		(void)store_put(&rig, &spec);
	}
	rig.now += 60 * DAY;
	for (int i = 0; i < 30; i++) {
		(void)store_take(&rig, "t", body);
		ck_assert_int_eq(atoi(body), i);
	}
	store_none(&rig, "t");
	store_rig_end(&rig);
}
END_TEST

/* ---- Never early */

START_TEST(around_each_boundary_a_job_is_delivered_from_its_microsecond_on)
{
	static const uint64_t spans[] = {1, 60, 600, 3600, 86400};
	static const int64_t around[] = {-1000000, -1001, -1, 0, 1, 999, 1000, 999999};

	if (!store_rig_make(&rig, _i, NULL))
		return;
	store_rig_own_time(&rig);
	store_rig_open(&rig);
	for (size_t s = 0; s < sizeof spans / sizeof *spans; s++) {
		for (size_t a = 0; a < sizeof around / sizeof *around; a++) {
			uint64_t span = spans[s] * 1000000;
			uint64_t boundary = (rig.now / 1000 / span + 2) * span;
			uint64_t due = (boundary + (uint64_t)around[a]) * 1000;
			struct ww_job_spec spec = store_spec("t", "x");
			spec.flags = WW_JOB_AT;
			spec.due = due;
			uint64_t id = store_put(&rig, &spec);
			store_none(&rig, "t");
			rig.now = due - 1000;
			store_none(&rig, "t");
			rig.now = due;
			struct ww_lease lease = store_take(&rig, "t", NULL);
			ck_assert_uint_eq(lease.id, id);
			store_none(&rig, "t");
			OK(ww_jobs_finish(rig.jobs, id, lease.token));
		}
	}
	store_rig_check(&rig);
	store_rig_end(&rig);
}
END_TEST

struct seen {
	unsigned times;
	uint64_t due;
};

/* Take them all, in any order, and check that none is early. */
static void take_all(struct seen *seen, int count)
{
	char body[64];

	for (int i = 0; i < count; i++) {
		struct ww_lease lease = store_wait(&rig, "t", body);
		struct seen *one = &seen[atoi(body)];
		ck_assert_uint_ge(taken_at(&lease, 60 * WW_SECOND), one->due);
		ck_assert_uint_eq(one->times++, 0);
		OK(ww_jobs_finish(rig.jobs, lease.id, lease.token));
	}
	store_none(&rig, "t");
}

START_TEST(jobs_due_at_a_full_second_are_delivered_like_others)
{
	enum { SECONDS = 2, EACH = 60 };
	static struct seen seen[SECONDS * EACH];
	uint64_t first;
	char body[64];

	if (!store_rig_make(&rig, _i, NULL))
		return;
	memset(seen, 0, sizeof seen);
	rig.config.slice = WW_SECOND;
	store_rig_open(&rig);
	first = (redis_time() / WW_SECOND + 1) * WW_SECOND;
	/* A third is due exactly at :00, a third just before, a third just after. */
	for (int i = 0; i < SECONDS * EACH; i++) {
		struct ww_job_spec spec;
		int64_t by = i % 3 == 0 ? 0 : i % 3 == 1 ? -(int64_t)(i * 37) * 1000 : (int64_t)(i * 41) * 1000;
		(void)snprintf(body, sizeof body, "%d", i);
		spec = store_spec("t", body);
		spec.flags = WW_JOB_AT;
		spec.due = seen[i].due = first + (uint64_t)(i / EACH) * WW_SECOND + (uint64_t)by;
		(void)store_put(&rig, &spec);
	}
	take_all(seen, SECONDS * EACH);
	store_rig_check(&rig);
	store_rig_end(&rig);
}
END_TEST

START_TEST(jobs_at_random_due_times_are_delivered_once_and_not_early)
{
	enum { JOBS = 400 };
	static struct seen seen[JOBS];
	uint64_t seed;
	char body[64];

	if (!store_rig_make(&rig, _i, NULL))
		return;
	seed = seed_of_run("test_redis_promises");
	memset(seen, 0, sizeof seen);
	store_rig_open(&rig);
	for (int i = 0; i < JOBS; i++) {
		(void)snprintf(body, sizeof body, "%d", i);
		struct ww_job_spec spec = store_spec("t", body);
		spec.flags = WW_JOB_AT;
		spec.due = seen[i].due = redis_time() / 1000 * 1000 + seed_below(&seed, 300) * MS;
		(void)store_put(&rig, &spec);
	}
	take_all(seen, JOBS);
	store_rig_check(&rig);
	store_rig_end(&rig);
}
END_TEST

/* ---- Cancel and update */

START_TEST(a_cancel_of_a_distant_job_needs_only_its_key)
{
	static const uint64_t away[] = {5 * HOUR, 9 * DAY, 180 * DAY};
	struct ww_job_ref ref = ref_of("t", "k");

	if (!store_rig_make(&rig, _i, NULL))
		return;
	store_rig_own_time(&rig);
	store_rig_open(&rig);
	for (size_t i = 0; i < sizeof away / sizeof *away; i++) {
		struct ww_job_spec spec = keyed("t", "k", "far", away[i]);
		(void)store_put(&rig, &spec);
		/* Another process cancels it later, and never knew the due time. */
		store_rig_close(&rig);
		rig.now += HOUR;
		store_rig_open(&rig);
		ck_assert_int_eq(ww_jobs_cancel(rig.jobs, &ref), 1);
		ck_assert_int_eq(ww_jobs_cancel(rig.jobs, &ref), WW_ENOTFOUND);
		rig.now += away[i] + DAY;
		store_none(&rig, "t");
	}
	store_rig_check(&rig);
	store_rig_end(&rig);
}
END_TEST

START_TEST(cancel_then_put_with_the_same_key_runs_the_new_one_once)
{
	struct ww_job_ref ref = ref_of("t", "k");
	struct ww_job_spec spec;
	struct ww_lease lease;
	char body[64];

	if (!store_rig_make(&rig, _i, NULL))
		return;
	store_rig_own_time(&rig);
	store_rig_open(&rig);
	for (int i = 0; i < 4; i++) {
		spec = keyed("t", "k", "old", 10 * WW_SECOND);
		(void)store_put(&rig, &spec);
		/* In turn while it is delayed, ready and reserved. */
		rig.now += i ? 20 * WW_SECOND : 0;
		if (i >= 2)
			lease = store_take(&rig, "t", NULL);
		ck_assert_int_eq(ww_jobs_cancel(rig.jobs, &ref), i < 2);
		spec = keyed("t", "k", "new", 15 * WW_SECOND);
		(void)store_put(&rig, &spec);
		if (i >= 2)
			ck_assert_int_eq(ww_jobs_finish(rig.jobs, lease.id, lease.token), WW_ESTALE);
		rig.now += 14 * WW_SECOND;
		store_none(&rig, "t");
		rig.now += WW_SECOND;
		lease = store_take(&rig, "t", body);
		ck_assert_str_eq(body, "new");
		OK(ww_jobs_finish(rig.jobs, lease.id, lease.token));
		rig.now += DAY;
		store_none(&rig, "t");
	}
	store_rig_check(&rig);
	store_rig_end(&rig);
}
END_TEST

START_TEST(an_update_leaves_nothing_of_the_old_job)
{
	static const uint64_t dues[] = {0, WW_SECOND, HOUR, 40 * DAY, 0, 2 * HOUR};
	struct ww_job_spec spec;
	struct ww_lease lease;
	uint64_t id = 0;
	char body[64];

	if (!store_rig_make(&rig, _i, NULL))
		return;
	store_rig_own_time(&rig);
	store_rig_open(&rig);
	for (size_t i = 0; i < sizeof dues / sizeof *dues; i++) {
		uint64_t now_id;
		uint64_t version;
		(void)snprintf(body, sizeof body, "%d", (int)i);
		spec = keyed("t", "k", body, dues[i]);
		ck_assert_int_eq(ww_jobs_put(rig.jobs, &spec, &now_id, &version), i > 0);
		ck_assert(i == 0 || now_id == id);
		ck_assert_uint_eq(version, i + 1);
		id = now_id;
		store_rig_check(&rig);
	}
	rig.now += 2 * HOUR - 1000;
	store_none(&rig, "t");
	rig.now += 1000;
	lease = store_take(&rig, "t", body);
	ck_assert_str_eq(body, "5");
	OK(ww_jobs_finish(rig.jobs, lease.id, lease.token));
	rig.now += 50 * DAY;
	store_none(&rig, "t");
	store_rig_end(&rig);
}
END_TEST

/* ---- Due times in the past */

START_TEST(a_past_due_time_means_now_or_is_refused_as_the_caller_chose)
{
	struct ww_job_spec spec;

	if (!store_rig_make(&rig, _i, NULL))
		return;
	store_rig_open(&rig);
	spec = store_spec("t", "late");
	spec.flags = WW_JOB_AT | WW_JOB_FUTURE;
	spec.due = redis_time() - HOUR;
	ck_assert_int_eq(ww_jobs_put(rig.jobs, &spec, NULL, NULL), WW_EBACKWARDS);
	store_none(&rig, "t");
	spec.flags = WW_JOB_AT;
	uint64_t id = store_put(&rig, &spec);
	/* At once, without waiting for a message. */
	struct ww_lease lease = store_take(&rig, "t", NULL);
	ck_assert_uint_eq(lease.id, id);
	spec.due = 0;
	(void)store_put(&rig, &spec);
	(void)store_take(&rig, "t", NULL);
	store_rig_end(&rig);
}
END_TEST

/* ---- Jobs that fail, and slow jobs */

START_TEST(a_failing_job_is_retried_ever_later_and_buried_with_its_reason)
{
	struct ww_job_spec spec;
	struct ww_job_info info;
	struct ww_job_ref ref = {0};
	uint64_t token = 0;

	if (!store_rig_make(&rig, _i, NULL))
		return;
	store_rig_own_time(&rig);
	store_rig_open(&rig);
	spec = store_spec("t", "x");
	spec.attempts = 5;
	spec.backoff = 8 * WW_SECOND;
	spec.backoff_max = 20 * WW_SECOND;
	ref.id = store_put(&rig, &spec);
	for (unsigned i = 0; i < 5; i++) {
		uint64_t delay = i == 0 ? 8 * WW_SECOND : i == 1 ? 16 * WW_SECOND : 20 * WW_SECOND;
		struct ww_lease lease = store_take(&rig, "t", NULL);
		ck_assert_uint_eq(lease.attempt, i + 1);
		ck_assert_uint_gt(lease.token, token);
		token = lease.token;
		ck_assert_int_eq(
		    ww_jobs_release(rig.jobs, ref.id, token, 1024, WW_JOB_BACKOFF, i < 4 ? "no answer" : "gone"),
		    i == 4);
		rig.now += delay / 4 * 3 - 1000;
		store_none(&rig, "t");
		rig.now += delay / 4 + 1000;
	}
	store_none(&rig, "t");
	OK(ww_jobs_peek(rig.jobs, &ref, &info, NULL));
	ck_assert_int_eq(info.state, WW_JOB_BURIED);
	ck_assert_str_eq(info.error, "gone");
	rig.now += 100 * DAY;
	store_none(&rig, "t");
	OK(ww_jobs_kick_job(rig.jobs, ref.id));
	ck_assert_uint_eq(store_take(&rig, "t", NULL).id, ref.id);
	store_rig_check(&rig);
	store_rig_end(&rig);
}
END_TEST

START_TEST(a_job_that_times_out_repeatedly_is_buried_with_that_reason)
{
	struct ww_job_spec spec;
	struct ww_job_info info;
	struct ww_job_ref ref = {0};

	if (!store_rig_make(&rig, _i, NULL))
		return;
	store_rig_own_time(&rig);
	store_rig_open(&rig);
	spec = store_spec("t", "x");
	spec.attempts = 2;
	spec.run = 3 * WW_SECOND;
	ref.id = store_put(&rig, &spec);
	for (int i = 0; i < 2; i++) {
		(void)store_take(&rig, "t", NULL);
		rig.now += 3 * WW_SECOND;
	}
	store_none(&rig, "t");
	OK(ww_jobs_peek(rig.jobs, &ref, &info, NULL));
	ck_assert_int_eq(info.state, WW_JOB_BURIED);
	ck_assert_uint_eq(info.timeouts, 2);
	ck_assert_str_ne(info.error, "");
	store_rig_end(&rig);
}
END_TEST

START_TEST(a_slow_job_does_not_use_up_the_leases_of_others)
{
	static const char *const tube[] = {"t"};
	static const uint64_t runs[] = {2, 30, 600};
	struct ww_lease leases[4];
	int slow = -1;

	if (!store_rig_make(&rig, _i, NULL))
		return;
	store_rig_own_time(&rig);
	store_rig_open(&rig);
	for (int i = 0; i < 3; i++) {
		struct ww_job_spec spec = store_spec("t", "x");
		spec.run = runs[i] * WW_SECOND;
		spec.priority = (uint32_t)i;
		(void)store_put(&rig, &spec);
	}
	ck_assert_int_eq(ww_jobs_reserve_many(rig.jobs, tube, 1, leases, 4), 3);
	for (int i = 0; i < 3; i++) {
		uint64_t run = leases[i].ends - rig.now;
		ck_assert(run == runs[0] * WW_SECOND || run == runs[1] * WW_SECOND || run == runs[2] * WW_SECOND);
		if (run == runs[0] * WW_SECOND)
			slow = i;
		ww_jobs_free(rig.jobs, leases[i].body);
	}
	ck_assert_int_ge(slow, 0);
	/* It takes ten times its time to run: another worker gets this job, and no other one. */
	rig.now += 20 * WW_SECOND;
	ck_assert_uint_eq(store_take(&rig, "t", NULL).id, leases[slow].id);
	store_none(&rig, "t");
	ck_assert_int_eq(ww_jobs_finish(rig.jobs, leases[slow].id, leases[slow].token), WW_ESTALE);
	for (int i = 0; i < 3; i++) {
		if (i != slow)
			OK(ww_jobs_finish(rig.jobs, leases[i].id, leases[i].token));
	}
	store_rig_end(&rig);
}
END_TEST

/* ---- Nothing is left behind */

START_TEST(no_key_is_left_when_its_jobs_are_gone)
{
	static const char *const stay[] = {"}:store", "}:m"};
	struct ww_job_ref ref = {0};
	struct ww_lease lease;
	char key[32];
	char tube[32];

	if (!store_rig_make(&rig, _i, NULL))
		return;
	store_rig_own_time(&rig);
	store_rig_open(&rig);
	for (int i = 0; i < 200; i++) {
		(void)snprintf(key, sizeof key, "k%d", i);
		(void)snprintf(tube, sizeof tube, "t%d", i % 3);
		struct ww_job_spec spec = keyed(tube, key, "x", (uint64_t)(i % 5) * 7 * HOUR);
		spec.key_length = i % 2 ? strlen(key) : 0;
		spec.attempts = i % 4 == 0;
		uint64_t id = store_put(&rig, &spec);
		if (i % 10 == 9) {
			ref.id = id;
			ck_assert_int_eq(ww_jobs_cancel(rig.jobs, &ref), 1);
		}
	}
	OK(ww_jobs_pause(rig.jobs, "t1", HOUR));
	OK(ww_jobs_pause(rig.jobs, "nobody's", HOUR));
	rig.now += 100 * HOUR;
	for (int t = 0, left = 3; left; t++) {
		const char *name = tube;
		(void)snprintf(tube, sizeof tube, "t%d", t % 3);
		left = t % 3 == 0 ? 3 : left;
		if (ww_jobs_reserve(rig.jobs, &name, 1, &lease) != 1) {
			uint64_t kicked = 0;
			OK(ww_jobs_kick(rig.jobs, tube, 100, &kicked));
			left -= kicked == 0;
			continue;
		}
		ww_jobs_free(rig.jobs, lease.body);
		/* Some leases are released, and some expire. */
		if (lease.attempt == 1 && t % 7 == 0)
			ck_assert_int_ge(ww_jobs_release(rig.jobs, lease.id, lease.token, 5, 0, "again"), 0);
		else if (lease.attempt == 1 && t % 7 == 1)
			rig.now += 60 * WW_SECOND;
		else
			OK(ww_jobs_finish(rig.jobs, lease.id, lease.token));
	}
	store_rig_check(&rig);
	ck_assert_int_eq(store_rig_keys_without(&rig, stay, 2), 0);
	store_rig_end(&rig);
}
END_TEST

START_TEST(workers_and_wakeups_leave_no_key)
{
	static const char *const stay[] = {"}:store", "}:m"};
	struct actor actors[2];

	if (!store_rig_make(&rig, _i, NULL))
		return;
	store_rig_open(&rig);
	for (int i = 0; i < 2; i++)
		actor_start(&actors[i], &rig, NULL);
	for (int i = 0; i < 50; i++) {
		struct ww_job_spec spec = store_spec("t", "x");
		spec.due = (uint64_t)(i % 10) * 10 * MS;
		(void)store_put(&rig, &spec);
	}
	for (int i = 0; i < 50; i++) {
		struct ww_lease lease = store_wait(&rig, "t", NULL);
		OK(ww_jobs_finish(rig.jobs, lease.id, lease.token));
	}
	for (int i = 0; i < 2; i++)
		actor_end(&actors[i]);
	store_rig_close(&rig);
	ck_assert_int_eq(store_rig_keys_without(&rig, stay, 2), 0);
	store_rig_end(&rig);
}
END_TEST

STORE_MAIN("redis/promises", the_job_of_a_killed_worker_is_delivered_by_another,
    a_slice_that_no_worker_looked_at_is_delivered_oldest_first, slices_of_weeks_ago_are_delivered_oldest_first,
    around_each_boundary_a_job_is_delivered_from_its_microsecond_on,
    jobs_due_at_a_full_second_are_delivered_like_others, jobs_at_random_due_times_are_delivered_once_and_not_early,
    a_cancel_of_a_distant_job_needs_only_its_key, cancel_then_put_with_the_same_key_runs_the_new_one_once,
    an_update_leaves_nothing_of_the_old_job, a_past_due_time_means_now_or_is_refused_as_the_caller_chose,
    a_failing_job_is_retried_ever_later_and_buried_with_its_reason,
    a_job_that_times_out_repeatedly_is_buried_with_that_reason, a_slow_job_does_not_use_up_the_leases_of_others,
    no_key_is_left_when_its_jobs_are_gone, workers_and_wakeups_leave_no_key)
