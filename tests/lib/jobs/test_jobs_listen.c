/* What a listener hears: every change of the embedded store once it is written, and what calls to Redis have done. */
/* tier: check */
#include <stdio.h>
#include <string.h>

#include "tests/lib/jobs/fixture.h"
#include "tests/support/seed.h"

#define HOUR (3600 * WW_SECOND)

static const char *const words[] = {"put", "moved", "cancelled", "due", "started", "finished", "released", "timed-out",
    "returned", "buried", "kicked", "lost", "expired"};

static struct world world;
static char heard[4096];
static unsigned count;
static enum ww_event_kind last;

/* "put k +3600 v1 #0;": the word, the key, when it is due, its version and the attempt. */
static void hear(const struct ww_job_event *event, void *context)
{
	size_t length = strlen(heard);
	char left[32] = "-";

	ck_assert_ptr_eq(context, &world);
	last = event->kind;
	if (++count > 100)
		return;
	if (event->left != WW_EVENT_UNKNOWN)
		snprintf(left, sizeof left, "+%d", (int)((event->left + WW_SECOND - 1) / WW_SECOND));
	snprintf(heard + length, sizeof heard - length, "%s %.*s %s v%d #%d%s%s;", words[event->kind],
	    (int)event->key_length, event->key ? (const char *)event->key : "", left, (int)event->version,
	    (int)event->attempt, event->error ? " " : "", event->error ? event->error : "");
	if (event->kind != WW_EVENT_LOST && world_promises(&world, KIND_IN_PROCESS))
		ck_assert_str_eq(event->tube, "default");
}

#define HEARD(text)                                                                                                    \
	do {                                                                                                           \
		ck_assert_str_eq(heard, text);                                                                         \
		*heard = '\0';                                                                                         \
	} while (0)

static void begin(int kind)
{
	world_make(&world, kind);
	*heard = '\0';
	count = 0;
	OK(ww_jobs_listen(world.jobs, hear, &world));
}

static struct ww_job_spec keyed(uint64_t due)
{
	struct ww_job_spec spec = spec_of("body");

	spec.key = "k";
	spec.key_length = 1;
	spec.due = due;
	return spec;
}

static uint64_t put(const struct ww_job_spec *spec)
{
	uint64_t id = 0;

	ck_assert_int_ge(ww_jobs_put(world.jobs, spec, &id, NULL), 0);
	return id;
}

START_TEST(all_that_becomes_of_a_job)
{
	NEEDS(KIND_IN_PROCESS);
	begin(_i);
	struct ww_job_spec spec = keyed(HOUR);
	spec.attempts = 4;
	spec.run = 10 * WW_SECOND;
	uint64_t id = put(&spec);
	HEARD("put k +3600 v1 #0;");
	OK(ww_jobs_move(world.jobs, &(struct ww_job_ref){.id = id}, 60 * WW_SECOND, 0, NULL));
	HEARD("moved k +60 v2 #0;");
	world_pass(&world, 60 * WW_SECOND);
	HEARD("due k +0 v2 #0;");
	struct ww_lease lease = reserve_job(&world);
	HEARD("started k - v2 #1;");
	OK(ww_jobs_return(world.jobs, id, lease.token));
	HEARD("returned k +0 v2 #0;");
	lease = reserve_job(&world);
	OK(ww_jobs_release(world.jobs, id, lease.token, 0, 5 * WW_SECOND, "no time"));
	HEARD("started k - v2 #1;released k +5 v3 #1 no time;");
	world_pass(&world, 5 * WW_SECOND);
	lease = reserve_job(&world);
	OK(ww_jobs_return_after(world.jobs, id, lease.token, 0));
	(void)reserve_job(&world);
	HEARD("due k +0 v3 #0;started k - v3 #2;returned k +0 v3 #0;started k - v3 #2;");
	world_pass(&world, 10 * WW_SECOND);
	HEARD("timed-out k +0 v4 #2 the time to run was up;");
	lease = reserve_job(&world);
	OK(ww_jobs_bury(world.jobs, id, lease.token, 0, "never"));
	HEARD("started k - v4 #3;buried k - v5 #3 never;");
	OK(ww_jobs_kick_job(world.jobs, id));
	HEARD("kicked k +0 v6 #0;");
	/* A replacement, and the end. */
	put(&spec);
	HEARD("put k +3600 v7 #0;");
	ck_assert_int_eq(ww_jobs_cancel(world.jobs, &(struct ww_job_ref){.id = id}), 1);
	HEARD("cancelled k - v7 #0;");
	world_end(&world);
}
END_TEST

START_TEST(a_last_attempt_and_a_period)
{
	NEEDS(KIND_IN_PROCESS);
	begin(_i);
	struct ww_job_spec spec = keyed(0);
	spec.attempts = 1;
	spec.run = WW_SECOND;
	put(&spec);
	(void)reserve_job(&world);
	world_pass(&world, WW_SECOND);
	HEARD("put k +0 v1 #0;started k - v1 #1;buried k - v2 #1 the time to run was up;");
	spec = keyed(0);
	spec.period = HOUR;
	uint64_t id = put(&spec);
	struct ww_lease lease = reserve_job(&world);
	OK(ww_jobs_finish(world.jobs, id, lease.token));
	HEARD("put k +0 v3 #0;started k - v3 #1;finished k +3600 v4 #1;");
	spec.period = 0;
	put(&spec);
	lease = reserve_job(&world);
	OK(ww_jobs_finish(world.jobs, id, lease.token));
	HEARD("put k +0 v5 #0;started k - v5 #1;finished k - v5 #1;");
	/* What is refused or kept changes nothing, and nobody hears of it. */
	ck_assert_int_eq(ww_jobs_finish(world.jobs, id, lease.token), WW_ESTALE);
	put(&spec);
	spec.key_mode = WW_KEY_IF_ABSENT;
	ck_assert_int_eq(ww_jobs_put(world.jobs, &spec, NULL, NULL), WW_PUT_KEPT);
	HEARD("put k +0 v1 #0;");
	OK(ww_jobs_listen(world.jobs, NULL, NULL));
	spec = spec_of("unheard");
	put(&spec);
	HEARD("");
	world_end(&world);
}
END_TEST

START_TEST(a_job_that_expired)
{
	NEEDS(KIND_IN_PROCESS);
	begin(_i);
	struct ww_job_spec spec = keyed(0);
	spec.expire = WW_SECOND;
	put(&spec);
	world_pass(&world, WW_SECOND);
	HEARD("put k +0 v1 #0;expired k - v1 #0;");
	spec.period = HOUR;
	put(&spec);
	world_pass(&world, WW_SECOND);
	HEARD("put k +0 v1 #0;expired k +3599 v2 #0;");
	spec.period = 0;
	spec.expired = WW_EXPIRED_BURY;
	put(&spec);
	world_pass(&world, WW_SECOND);
	HEARD("put k +0 v3 #0;buried k - v4 #0 it expired;");
	world_end(&world);
}
END_TEST

static void note_context(const struct ww_job_event *event, void *context)
{
	*(uint64_t *)context = event->id;
}

START_TEST(another_listener_has_a_context_of_its_own)
{
	uint64_t first = 0, second = 0;

	world_make(&world, _i);
	struct ww_job_spec spec = spec_of("x");
	OK(ww_jobs_listen(world.jobs, note_context, &first));
	uint64_t id = put(&spec);
	ck_assert_uint_eq(first, id);
	OK(ww_jobs_listen(world.jobs, NULL, NULL));
	OK(ww_jobs_listen(world.jobs, note_context, &second));
	uint64_t other = put(&spec);
	ck_assert_uint_eq(first, id);
	ck_assert_uint_eq(second, other);
	world_end(&world);
}
END_TEST

START_TEST(what_could_not_be_written_is_not_told)
{
	NEEDS(KIND_BATCHES);
	begin(_i);
	struct ww_job_spec spec = keyed(HOUR);
	OK(ww_jobs_begin(world.jobs));
	put(&spec);
	HEARD("");
	OK(ww_jobs_commit(world.jobs));
	HEARD("put k +3600 v1 #0;");
	world_fail(&world, FAIL_COMMIT);
	ck_assert_int_lt(ww_jobs_put(world.jobs, &spec, NULL, NULL), 0);
	world_fail(&world, FAIL_NOTHING);
	HEARD("");
	put(&spec);
	HEARD("put k +3600 v2 #0;");
	world_end(&world);
}
END_TEST

/* Far jobs are loaded when their time has passed already. */
START_TEST(each_of_many_is_told_once)
{
	const unsigned many = (unsigned)seed_rounds(30000);

	NEEDS(KIND_IN_PROCESS);
	begin(_i);
	struct ww_job_spec spec = spec_of("body");
	spec.due = HOUR;
	OK(ww_jobs_begin(world.jobs));
	for (unsigned i = 0; i < many; i++) {
		put(&spec);
		*heard = '\0';
	}
	OK(ww_jobs_commit(world.jobs));
	ck_assert_uint_eq(count, many);
	count = 0;
	for (int i = 0; i < 100 && count < many; i++)
		world_pass(&world, HOUR + HOUR / 2);
	ck_assert_uint_eq(count, many);
	OK(ww_jobs_listen(world.jobs, NULL, NULL));
	world_end(&world);
}
END_TEST

/* 4 MiB of events are kept for a batch; here each takes more than its key. */
START_TEST(a_batch_that_is_too_large_is_said_to_be)
{
	enum { MANY = 25000 };
	char key[WW_JOB_KEY_MAX];

	NEEDS(KIND_BATCHES);
	begin(_i);
	struct ww_job_spec spec = keyed(HOUR);
	memset(key, 'k', sizeof key);
	spec.key = key;
	spec.key_length = sizeof key;
	for (int round = 0; round < 2; round++) {
		count = 0;
		last = WW_EVENT_PUT;
		OK(ww_jobs_begin(world.jobs));
		for (int i = 0; i < MANY; i++)
			put(&spec);
		OK(ww_jobs_commit(world.jobs));
		ck_assert_uint_gt(count, 5000);
		ck_assert_uint_lt(count, MANY);
		ck_assert_int_eq(last, WW_EVENT_LOST);
	}
	put(&spec);
	ck_assert_int_eq(last, WW_EVENT_PUT);
	world_end(&world);
}
END_TEST

START_TEST(calls_to_redis)
{
	NEEDS(KIND_IN_REDIS);
	begin(_i);
	struct ww_job_spec spec = keyed(HOUR);
	uint64_t id = put(&spec);
	OK(ww_jobs_move(world.jobs, &(struct ww_job_ref){.key = "k", .key_length = 1}, 60 * WW_SECOND, 0, NULL));
	OK(ww_jobs_kick_job(world.jobs, id));
	HEARD("put k +3600 v1 #0;moved k +60 v2 #0;kicked  - v0 #0;");
	struct ww_lease lease = reserve_job(&world);
	OK(ww_jobs_release(world.jobs, id, lease.token, 0, 0, "no"));
	lease = reserve_job(&world);
	OK(ww_jobs_bury(world.jobs, id, lease.token, 0, "never"));
	HEARD("started k - v0 #1;released  - v0 #0 no;started k - v0 #2;buried  - v0 #0 never;");
	uint64_t kicked;
	OK(ww_jobs_kick(world.jobs, WW_TUBE_DEFAULT, 5, &kicked));
	lease = reserve_job(&world);
	struct ww_job_end ends[] = {{.id = id, .token = lease.token}, {.id = id, .token = 1}};
	OK(ww_jobs_finish_many(world.jobs, ends, 2));
	HEARD("kicked  +0 v0 #0;started k - v0 #1;finished  - v0 #0;");
	world_end(&world);
}
END_TEST

START_TEST(calls_to_redis_for_many_and_those_that_do_nothing)
{
	struct ww_lease leases[2];
	static const char *const here[] = {WW_TUBE_DEFAULT};
	uint64_t kicked;

	NEEDS(KIND_IN_REDIS);
	begin(_i);
	struct ww_job_spec spec = keyed(0);
	spec.attempts = 1;
	struct ww_job_put puts[] = {{.spec = &spec}, {.spec = &spec}};
	OK(ww_jobs_put_many(world.jobs, puts, 2));
	HEARD("put k +0 v1 #0;put k +0 v2 #0;");
	spec.key_mode = WW_KEY_IF_ABSENT;
	ck_assert_int_eq(ww_jobs_put(world.jobs, &spec, NULL, NULL), WW_PUT_KEPT);
	spec.key_mode = WW_KEY_REPLACE;
	spec.version = 7;
	ck_assert_int_eq(ww_jobs_put(world.jobs, &spec, NULL, NULL), WW_ESTALE);
	OK(ww_jobs_kick(world.jobs, WW_TUBE_DEFAULT, 5, &kicked));
	ck_assert_uint_eq(kicked, 0);
	HEARD("");
	spec.version = 0;
	struct ww_lease lease = reserve_job(&world);
	OK(ww_jobs_return(world.jobs, lease.id, lease.token));
	lease = reserve_job(&world);
	ck_assert_int_eq(ww_jobs_release(world.jobs, lease.id, lease.token, 0, 0, "no"), 1);
	HEARD("started k - v0 #1;returned  - v0 #0;started k - v0 #1;buried  - v0 #0 no;");
	ck_assert_int_eq(ww_jobs_cancel(world.jobs, &(struct ww_job_ref){.key = "k", .key_length = 1}), 1);
	ck_assert_int_eq(ww_jobs_cancel(world.jobs, &(struct ww_job_ref){.id = lease.id}), WW_ENOTFOUND);
	HEARD("cancelled k - v0 #0;");
	put(&spec);
	ck_assert_int_eq(ww_jobs_cancel(world.jobs, &(struct ww_job_ref){.id = put(&spec)}), 1);
	HEARD("put k +0 v1 #0;put k +0 v2 #0;cancelled  - v0 #0;");
	spec.key_length = 0;
	put(&spec);
	put(&spec);
	HEARD("put  +0 v1 #0;put  +0 v1 #0;");
	ck_assert_int_eq(ww_jobs_reserve_many(world.jobs, here, 1, leases, 2), 2);
	HEARD("started  - v0 #1;started  - v0 #1;");
	for (int i = 0; i < 2; i++)
		ww_jobs_free(world.jobs, leases[i].body);
	world_end(&world);
}
END_TEST

KINDS_MAIN("jobs/listen", all_that_becomes_of_a_job, a_last_attempt_and_a_period, what_could_not_be_written_is_not_told,
    each_of_many_is_told_once, a_batch_that_is_too_large_is_said_to_be, calls_to_redis, a_job_that_expired,
    another_listener_has_a_context_of_its_own, calls_to_redis_for_many_and_those_that_do_nothing)
