/*
 * What others do to a store in Redis: damage, data that makes no sense, a second handle, and handles in many threads.
 */
/* tier: check, threads */

#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "tests/support/redis/kinds.h"

static struct world world;

/* Tests that do not depend on the number of shards use one. */
#define ONCE                                                                                                           \
	do {                                                                                                           \
		if (_i != KIND_REDIS)                                                                                  \
			return;                                                                                        \
	} while (0)
static const char *const tube[] = {WW_TUBE_DEFAULT};
/* The jobs that fill() puts. */
static uint64_t delayed, ready, reserved, buried;
static uint64_t token;

/* A job in each state, each with a key: 1 delayed, 2 ready, 3 reserved, 4 buried. */
static void fill(void)
{
	static const char *const names[] = {"a", "b", "c", "d"};
	uint64_t ids[4];
	struct ww_lease lease;

	for (int i = 0; i < 4; i++) {
		struct ww_job_spec spec = spec_of("x");
		spec.key = names[i];
		spec.key_length = 1;
		spec.due = i == 0 ? 3600 * WW_SECOND : 0;
		ids[i] = put_job(&world, &spec);
	}
	delayed = ids[0];
	ready = ids[1];
	reserved = ids[2];
	buried = ids[3];
	OK(ww_jobs_reserve_job(world.jobs, buried, &lease));
	ww_jobs_free(world.jobs, lease.body);
	OK(ww_jobs_bury(world.jobs, buried, lease.token, 0, "why"));
	OK(ww_jobs_reserve_job(world.jobs, reserved, &lease));
	ww_jobs_free(world.jobs, lease.body);
	token = lease.token;
}

/* ---- Damage */

struct told {
	int count;
	char all[2048];
};

static void hear(const char *problem, void *context)
{
	struct told *told = context;
	size_t length = strlen(told->all);

	told->count++;
	(void)snprintf(told->all + length, sizeof told->all - length, "%s\n", problem);
}

/* A command that damages a key of the only shard, and the problem that ww_jobs_check reports. */
static const struct {
	const char *command;
	const char *rest; /* the end of the key's name, and further words */
	const char *words;
} damages[] = {{"ZREM", "r:default a2", "job 2 is not where its record says"},
    {"ZADD", "r:default 1024 a9", "jobs have a place"}, {"DEL", "f", "job 3 is not where its record says"},
    {"DEL", "b:default", "job 4 is not where its record says"}, {"DEL", "k:716", "the key of job 1 leads elsewhere"},
    {"DEL", "k:789", "the key of job 2 leads elsewhere"},
    {"HSET", "k:7 nonsense 2", "a key leads to job 2, which does not have it"},
    {"HSET", "k:7 nonsense 99", "a key leads to job 99, which does not have it"},
    {"HINCRBY", "c tdefault 1", "the counts of tubes say 5 jobs, and there are 4"},
    {"HINCRBY", "c rdefault 1", "the counts of tubes say that 2 are in flight"},
    {"ZADD", "s 77777777 77777777", "slice 77777777 is listed and empty"},
    {"DEL", "s", "3 jobs have a place, and there are 4"}, {"HDEL", "j 2", "jobs were accepted"},
    {"HSET", "j 2 nonsense", "job 2 has a record that cannot be read"},
    {"HINCRBY", "m seq 1", "5 jobs were accepted and 0 ended, and there are 4"},
    {"HSET", "p default 1", "tubes are paused"}, {"HSET", "m alarm 9007199254740991", "the alarm is later"}};

START_TEST(damage_is_reported)
{
	ONCE;
	for (size_t i = 0; i < sizeof damages / sizeof *damages; i++) {
		struct told told = {.count = 0};
		world_make(&world, KIND_REDIS);
		world.is_damaged = 1;
		fill();
		world_check(&world);
		redis_server_tell(kinds_redis_server(), "%s {%s:0}:%s", damages[i].command, kinds_redis_prefix(&world),
		    damages[i].rest);
		int problems = ww_jobs_check(world.jobs, hear, &told);
		ck_assert_int_eq(problems, told.count);
		ck_assert_msg(strstr(told.all, damages[i].words) != NULL, "%s %s: told: %s", damages[i].command,
		    damages[i].rest, told.all);
		/* Without a function to call, problems are counted all the same. */
		ck_assert_int_eq(ww_jobs_check(world.jobs, NULL, NULL), problems);
		world_end(&world);
	}
}
END_TEST

/* Due jobs are delivered although another one cannot be read. */
START_TEST(a_damaged_record_delays_no_other_job)
{
	ONCE;
	world_make(&world, KIND_REDIS);
	world.is_damaged = 1;
	fill();
	struct ww_job_spec spec = spec_of("x");
	spec.due = 3600 * WW_SECOND;
	uint64_t other = put_job(&world, &spec);
	for (uint64_t id = delayed; id <= reserved; id++)
		redis_server_tell(kinds_redis_server(), "HSET {%s:0}:j %" PRIu64 " %s", kinds_redis_prefix(&world), id,
		    id % 2 ? "x" : "nonsense");
	world_pass(&world, 3600 * WW_SECOND);
	ck_assert_uint_eq(reserve_job(&world).id, other);
	expect_none(&world);
	ck_assert_int_ge(ww_jobs_check(world.jobs, NULL, NULL), 3);
	world_end(&world);
}
END_TEST

START_TEST(a_damaged_record_keeps_no_other_job_from_a_kick)
{
	uint64_t kicked;
	struct ww_lease lease;

	ONCE;
	world_make(&world, KIND_REDIS);
	world.is_damaged = 1;
	fill();
	OK(ww_jobs_bury(world.jobs, reserved, token, 0, "why"));
	redis_server_tell(
	    kinds_redis_server(), "HSET {%s:0}:j %" PRIu64 " nonsense", kinds_redis_prefix(&world), buried);
	OK(ww_jobs_kick(world.jobs, WW_TUBE_DEFAULT, 1, &kicked));
	ck_assert_uint_eq(kicked, 1);
	OK(ww_jobs_reserve_job(world.jobs, ready, &lease));
	ww_jobs_free(world.jobs, lease.body);
	ck_assert_uint_eq(reserve_job(&world).id, reserved);
	/* Then the delayed jobs. */
	OK(ww_jobs_kick(world.jobs, WW_TUBE_DEFAULT, 9, &kicked));
	ck_assert_uint_eq(kicked, 1);
	world_end(&world);
}
END_TEST

START_TEST(unknown_tubes_are_not_remembered_for_ever)
{
	struct ww_jobs_redis_stats stats;
	uint64_t most = 0;

	ONCE;
	world_make(&world, KIND_REDIS);
	for (int i = 0; i < 9000; i++) {
		char name[16];
		const char *names[] = {name};
		struct ww_lease lease;
		(void)snprintf(name, sizeof name, "t%d", i);
		ck_assert_int_eq(ww_jobs_reserve(world.jobs, names, 1, &lease), 0);
		OK(ww_jobs_redis_stats(world.jobs, &stats));
		if (i == 8500)
			most = stats.bytes;
	}
	ck_assert_uint_eq(stats.bytes, most);
	world_end(&world);
}
END_TEST

static int count_one(const struct ww_job_info *info, void *context)
{
	ck_assert_uint_ne(info->id, delayed);
	++*(int *)context;
	return 0;
}

START_TEST(a_list_skips_records_that_cannot_be_read)
{
	struct ww_job_filter filter = {.after = 0};
	int count = 0;
	int errors = 0;

	ONCE;
	world_make(&world, KIND_REDIS);
	world.is_damaged = 1;
	fill();
	redis_server_tell(
	    kinds_redis_server(), "HSET {%s:0}:j %" PRIu64 " nonsense", kinds_redis_prefix(&world), delayed);
	ck_assert_int_eq(ww_jobs_list(world.jobs, &filter, SIZE_MAX, count_one, &count, NULL), WW_ECORRUPT);
	ck_assert_int_eq(count, 3);
	count = 0;
	do {
		int error = ww_jobs_list(world.jobs, &filter, 1, count_one, &count, &filter.after);
		ck_assert(error == WW_OK || error == WW_ECORRUPT);
		errors += error != WW_OK;
	} while (filter.after);
	ck_assert_int_eq(count, 3);
	ck_assert_int_eq(errors, 1);
	world_end(&world);
}
END_TEST

/* Both ways of counting the jobs of a slice. */
START_TEST(a_forecast_counts_within_slices)
{
	enum { JOBS = 300, SPANS = 2000 };
	static const struct {
		uint64_t span;
		size_t count;
	} asked[] = {{WW_SECOND, 10}, {60 * WW_SECOND, 30}, {7 * WW_MILLISECOND, SPANS}, {600 * WW_SECOND, 2},
	    {601 * WW_SECOND, 3}, {86400 * WW_SECOND, 2}, {WW_MILLISECOND, 1}};
	static uint64_t delays[JOBS];
	static uint64_t counts[SPANS];

	ONCE;
	world_make(&world, KIND_REDIS);
	for (uint64_t i = 0; i < JOBS; i++) {
		struct ww_job_spec spec = spec_of("x");
		spec.due = delays[i] = i * i * i * 100 * WW_MILLISECOND / 1000;
		(void)put_job(&world, &spec);
	}
	for (size_t a = 0; a < sizeof asked / sizeof *asked; a++) {
		OK(ww_jobs_forecast(world.jobs, NULL, asked[a].span, counts, asked[a].count));
		for (size_t s = 0; s < asked[a].count; s++) {
			uint64_t expected = 0;
			for (size_t i = 0; i < JOBS; i++)
				expected += delays[i] / asked[a].span == s;
			ck_assert_msg(counts[s] == expected, "span %zu of %zu: %" PRIu64 ", not %" PRIu64, s, a,
			    counts[s], expected);
		}
	}
	world_end(&world);
}
END_TEST

/* The clock of Redis was set: the sum of lateness has more digits than Redis writes exactly. */
START_TEST(jobs_that_are_decades_late_are_delivered)
{
	enum { JOBS = 600 };
	struct ww_job_spec spec = spec_of("x");

	ONCE;
	world_make(&world, KIND_REDIS);
	spec.due = WW_SECOND;
	for (int i = 0; i < JOBS; i++)
		(void)put_job(&world, &spec);
	world_pass(&world, 20 * 365 * 86400 * WW_SECOND);
	for (int i = 0; i < JOBS; i++)
		(void)reserve_job(&world);
	world_end(&world);
}
END_TEST

/* ---- Data that makes no sense */

static int see(const struct ww_job_info *info, void *context)
{
	(void)info;
	++*(int *)context;
	return 0;
}

static int see_tube(const struct ww_tube_stats *stats, void *context)
{
	(void)stats;
	++*(int *)context;
	return 0;
}

/* Make each call once. Returns how many succeeded. */
static int call_all(void)
{
	struct ww_job_spec spec = spec_of("x");
	struct ww_job_filter filter = {0};
	struct ww_job_ref ref = {.id = ready};
	struct ww_job_ref key = {.key = "a", .key_length = 1};
	struct ww_tube_stats stats;
	struct ww_jobs_stats all;
	struct ww_job_info info;
	struct ww_lease leases[3];
	uint64_t counts[3];
	void *body = NULL;
	int seen = 0;
	struct ww_jobs *jobs = world.jobs;

	spec.key = "a";
	spec.key_length = 1;
	int got = ww_jobs_reserve_many(jobs, tube, 1, leases, 3);
	for (int i = 0; i < got; i++)
		ww_jobs_free(jobs, leases[i].body);
	int answers[] = {got, ww_jobs_peek(jobs, &ref, &info, &body), ww_jobs_put(jobs, &spec, NULL, NULL),
	    ww_jobs_move(jobs, &key, 0, 0, NULL), ww_jobs_touch(jobs, reserved, token, NULL),
	    ww_jobs_finish(jobs, reserved, token), ww_jobs_kick(jobs, *tube, 5, &counts[0]),
	    ww_jobs_kick_job(jobs, buried), ww_jobs_pause(jobs, *tube, WW_SECOND),
	    ww_jobs_peek_next(jobs, *tube, WW_JOB_READY, &info, NULL),
	    ww_jobs_peek_next(jobs, *tube, WW_JOB_DELAYED, &info, NULL),
	    ww_jobs_peek_next(jobs, *tube, WW_JOB_BURIED, &info, NULL),
	    ww_jobs_list(jobs, &filter, 100, see, &seen, &filter.after),
	    ww_jobs_forecast(jobs, NULL, WW_SECOND, counts, 3), ww_jobs_forecast(jobs, *tube, WW_SECOND, counts, 3),
	    ww_jobs_stats(jobs, &all), ww_jobs_tube(jobs, *tube, &stats), ww_jobs_tubes(jobs, see_tube, &seen),
	    ww_jobs_cancel(jobs, &ref), ww_jobs_check(jobs, NULL, NULL)};
	int well = 0;

	if (answers[1] == WW_OK)
		ww_jobs_free(jobs, body);
	for (size_t i = 0; i < sizeof answers / sizeof *answers; i++)
		well += answers[i] >= 0;
	return well;
}

START_TEST(keys_of_another_type_are_errors_and_do_no_harm)
{
	static const char *const keys[] = {"j", "r:default", "f", "b:default", "k:716", "c", "s", "d:7", "p", "m"};

	ONCE;
	for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
		world_make(&world, KIND_REDIS);
		world.is_damaged = 1;
		fill();
		const char *prefix = kinds_redis_prefix(&world);
		redis_server_tell(kinds_redis_server(), "SET {%s:0}:%s x", prefix, keys[i]);
		(void)call_all();
		/* Every call begins with these keys: none can succeed. */
		if (strcmp(keys[i], "m") == 0)
			ck_assert_int_eq(call_all(), 0);
		ck_assert_int_ne(ww_jobs_check(world.jobs, NULL, NULL), WW_OK);
		world_end(&world);
	}
}
END_TEST

/* Hand-made msgpack: too short, with other types, with other lengths. */
START_TEST(records_that_make_no_sense_are_errors_and_do_no_harm)
{
	static const char *const scripts[] = {"''", "'x'", "cmsgpack.pack({})", "cmsgpack.pack({1,2,3})",
	    "cmsgpack.pack('text')", "string.rep('\\147',1000)", "string.rep('\\0',100)",
	    "cmsgpack.pack({{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{}})",
	    "cmsgpack.pack({1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21,22,23,24,25,26,27,28})"};

	ONCE;
	for (size_t i = 0; i < sizeof scripts / sizeof *scripts; i++) {
		world_make(&world, KIND_REDIS);
		world.is_damaged = 1;
		fill();
		for (uint64_t id = delayed; id <= buried; id++)
			redis_server_tell(kinds_redis_server(),
			    "EVAL redis.call('HSET',KEYS[1],ARGV[1],%s) 1 {%s:0}:j %" PRIu64, scripts[i],
			    kinds_redis_prefix(&world), id);
		(void)call_all();
		ck_assert_int_ne(ww_jobs_check(world.jobs, NULL, NULL), WW_OK);
		world_end(&world);
	}
}
END_TEST

/* ---- Another handle */

START_TEST(each_handle_sees_what_the_other_does)
{
	struct ww_job_spec spec = spec_of("x");
	struct ww_tube_stats stats;
	struct ww_lease lease;
	uint64_t version;

	NEEDS(KIND_IN_REDIS);
	world_make(&world, _i);
	world_share(&world);
	spec.key = "k";
	spec.key_length = 1;
	uint64_t id = put_job(&world, &spec);
	world_turn(&world);
	lease = reserve_job(&world);
	ck_assert_uint_eq(lease.id, id);
	world_turn(&world);
	ck_assert_int_eq(info_of(&world, id).state, WW_JOB_RESERVED);
	expect_none(&world);
	OK(ww_jobs_touch(world.jobs, id, lease.token, NULL));
	ck_assert_int_eq(ww_jobs_release(world.jobs, id, lease.token, 7, 0, "why"), 0);
	world_turn(&world);
	ck_assert_str_eq(info_of(&world, id).error, "why");
	ck_assert_int_eq(ww_jobs_finish(world.jobs, id, lease.token), WW_ESTALE);
	lease = reserve_job(&world);
	/* The other handle replaces the job, and the lease is stale. */
	world_turn(&world);
	ck_assert_int_eq(ww_jobs_put(world.jobs, &spec, NULL, &version), 1);
	ck_assert_uint_eq(version, 3);
	world_turn(&world);
	ck_assert_int_eq(ww_jobs_finish(world.jobs, id, lease.token), WW_ESTALE);
	OK(ww_jobs_pause(world.jobs, *tube, WW_SECOND));
	world_turn(&world);
	expect_none(&world);
	OK(ww_jobs_tube(world.jobs, *tube, &stats));
	ck_assert_uint_eq(stats.pause_left, WW_SECOND);
	ck_assert_uint_eq(stats.ready, 1);
	world_end(&world);
}
END_TEST

START_TEST(ids_versions_and_tokens_grow_over_both_handles)
{
	struct ww_job_spec spec = spec_of("x");
	uint64_t version, id, first = 0, last = 0;

	NEEDS(KIND_IN_REDIS);
	world_make(&world, _i);
	world_share(&world);
	spec.key = "k";
	spec.key_length = 1;
	for (uint64_t i = 1; i <= 20; i++) {
		ck_assert_int_eq(ww_jobs_put(world.jobs, &spec, &id, &version), i > 1);
		ck_assert_uint_eq(version, i);
		first = i == 1 ? id : first;
		ck_assert_uint_eq(id, first);
		struct ww_lease lease = reserve_job(&world);
		ck_assert_uint_gt(lease.token, last);
		last = lease.token;
		world_turn(&world);
	}
	/* A job that is put again gets a new id. */
	struct ww_job_ref ref = {.id = id};
	ck_assert_int_eq(ww_jobs_cancel(world.jobs, &ref), 0);
	ck_assert_int_eq(ww_jobs_put(world.jobs, &spec, &id, &version), 0);
	ck_assert_uint_gt(id, first);
	ck_assert_uint_eq(version, 1);
	world_end(&world);
}
END_TEST

/* ---- Many threads, with Redis's own time */

enum { HANDS = 4, JOBS_OF_A_HAND = 100 };

static struct ww_jobs *handles[2];
static _Atomic int finished;
static _Atomic int wrong;

static void *work(void *context)
{
	size_t hand = (size_t)(uintptr_t)context;
	struct ww_jobs *jobs = handles[hand % 2];
	struct ww_job_spec spec = spec_of("x");
	struct ww_lease lease;

	for (int i = 0; i < JOBS_OF_A_HAND; i++) {
		spec.due = (uint64_t)(i % 3) * MS;
		wrong += ww_jobs_put(jobs, &spec, NULL, NULL) != 0;
	}
	/* Each job goes to one thread. */
	while (finished + wrong < HANDS * JOBS_OF_A_HAND) {
		int got = ww_jobs_wait(jobs, tube, 1, 100 * MS, &lease);
		if (got == 0)
			continue;
		wrong += got != 1;
		if (got != 1)
			continue;
		ww_jobs_free(jobs, lease.body);
		if (ww_jobs_finish(jobs, lease.id, lease.token) == WW_OK)
			finished++;
		else
			wrong++;
	}
	return NULL;
}

START_TEST(handles_in_threads_share_the_work)
{
	struct ww_jobs_redis_config config;
	struct ww_jobs_stats stats;
	pthread_t threads[HANDS];

	NEEDS(KIND_IN_REDIS);
	world_make(&world, _i);
	config = *kinds_redis_config(&world);
	config.prefix = "threads";
	config.now = NULL;
	for (int i = 0; i < 2; i++)
		OK(ww_jobs_redis_open(&handles[i], &config));
	finished = wrong = 0;
	for (size_t i = 0; i < HANDS; i++)
		ck_assert_int_eq(pthread_create(&threads[i], NULL, work, (void *)(uintptr_t)i), 0);
	for (size_t i = 0; i < HANDS; i++)
		ck_assert_int_eq(pthread_join(threads[i], NULL), 0);
	ck_assert_int_eq(wrong, 0);
	ck_assert_int_eq(finished, HANDS * JOBS_OF_A_HAND);
	OK(ww_jobs_stats(handles[0], &stats));
	ck_assert_uint_eq(stats.accepted, HANDS * JOBS_OF_A_HAND);
	ck_assert_uint_eq(stats.ended, stats.accepted);
	ck_assert_int_eq(ww_jobs_check(handles[1], NULL, NULL), 0);
	for (int i = 0; i < 2; i++)
		OK(ww_jobs_close(handles[i]));
	/* No workers are left either. */
	kinds_redis_expect_bare(kinds_redis_server(), "threads");
	world_end(&world);
}
END_TEST

KINDS_MAIN("redis/store", damage_is_reported, a_damaged_record_delays_no_other_job,
    a_list_skips_records_that_cannot_be_read, a_damaged_record_keeps_no_other_job_from_a_kick,
    unknown_tubes_are_not_remembered_for_ever, a_forecast_counts_within_slices,
    jobs_that_are_decades_late_are_delivered, keys_of_another_type_are_errors_and_do_no_harm,
    records_that_make_no_sense_are_errors_and_do_no_harm, each_handle_sees_what_the_other_does,
    ids_versions_and_tokens_grow_over_both_handles, handles_in_threads_share_the_work)
